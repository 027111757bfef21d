//! The study of a network: the effect of link, queue, window and packet size on a storage behind
//! it.

use super::record::ExperimentReport;
use crate::error::MeterError;
use crate::network::{ConditionResult, conditions, study};
use crate::observer::Observer;
use crate::report::{TextTable, time};
use serde_json::{Value, json};
use std::time::Duration;
use units::BitRate;

/// A study of a network between two network namespaces of this machine.
#[derive(Clone, Copy, Debug)]
pub struct NetworkConfig {
    /// Speed of the fast link.
    pub link: BitRate,
    /// Number of clients that read in parallel.
    pub clients: u32,
    /// Length of each run.
    pub duration: Duration,
}

/// Makes a run under each condition of the network.
pub fn study_network(
    config: &NetworkConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let NetworkConfig { link, clients, duration } = *config;
    if link < SLOWEST {
        let message = format!("--link: {link} is too slow for a tenth of it to move");
        return Err(MeterError::usage(message).hint(format!("take {SLOWEST} or more")));
    }
    let wanted = conditions(link);
    let made = study(&wanted, clients, duration, &mut |condition| {
        observer.status(&format!("{}: {}", condition.name, condition.about));
        !observer.is_stopped()
    })?;
    // The study itself does not tell an interruption from its end.
    let complete = made.len() == wanted.len();
    let summary = json!({
        "link_bits_per_s": link.0,
        "clients": clients,
        "complete": complete,
        "runs": made.iter().map(object).collect::<Vec<_>>(),
    });
    let verdict = match complete {
        true => Ok(()),
        false => Err(MeterError::interrupted("interrupted: these are the runs until then")),
    };
    Ok(ExperimentReport { summary, text: text(&made), verdict })
}

/// The slowest link: a tenth of it still transfers a block in about a second.
const SLOWEST: BitRate = BitRate(10_000_000);

fn text(made: &[ConditionResult]) -> String {
    let mut table = TextTable::new(&[
        "condition",
        ">link",
        ">came",
        ">half within",
        ">99 % within",
        ">window full",
        ">dropped",
        ">sent again",
        "limit",
    ]);
    for measured in made {
        let counters = &measured.counters;
        let at = |share| time(measured.response.quantile(share));
        table.row(vec![
            measured.condition.name.to_owned(),
            measured.condition.link.to_string(),
            measured.rate().to_string(),
            at(0.5),
            at(0.99),
            format!("{:.0} %", counters.window_limited() * 100.0),
            counters.dropped.to_string(),
            counters.sent_again.to_string(),
            measured.limit().word().to_owned(),
        ]);
    }
    table.show()
}

fn object(measured: &ConditionResult) -> Value {
    let ConditionResult { condition, counters, response, .. } = measured;
    let at = |share| response.quantile(share).as_secs_f64();
    json!({
        "condition": condition.name,
        "about": condition.about,
        "link_bits_per_s": condition.link.0,
        "queue": condition.queue.0,
        "window": condition.window.map(|window| window.0),
        "mtu": condition.mtu,
        "bytes": measured.bytes.0,
        "took": measured.took.as_secs_f64(),
        "bits_per_s": measured.rate().0,
        "response": { "count": response.count(), "p50": at(0.5), "p99": at(0.99), "max": at(1.0) },
        "busy": Duration::from_millis(counters.busy_ms).as_secs_f64(),
        "window_limited": counters.window_limited(),
        "dropped": counters.dropped,
        "sent_again": counters.sent_again,
        "limit": measured.limit().word(),
    })
}
