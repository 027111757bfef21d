//! `meter study network`: what a network does to storage behind it.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_streams::time;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table};
use meter::network::{Measured, NetworkError, conditions, study};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::BitRate;

pub(crate) fn network(args: &Args<'_>) -> Result<(), Failure> {
    let link: BitRate = args.get("link");
    if link < SLOWEST {
        return Err(Failure::usage(format!(
            "--link: {link} is too slow for a tenth of it to move"
        ))
        .hint(format!("take {SLOWEST} or more")));
    }
    let (clients, length): (u32, Duration) = (args.count("clients"), args.get("duration"));
    let wanted = conditions(link);
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let made = study(&wanted, clients, length, &mut |condition| {
        bar.say(&format!("{}: {}", condition.name, condition.about));
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    if args.has("json") {
        out::print_json(&json!({
            "link_bits_per_s": link.0,
            "clients": clients,
            "complete": made.len() == wanted.len(),
            "runs": made.iter().map(object).collect::<Vec<_>>(),
        }));
    } else {
        out::print(&page(&made));
    }
    if made.len() < wanted.len() {
        out::note("interrupted: these are the runs until then");
        return Err(Failure::reported(Code::Invalid));
    }
    Ok(())
}

/// A tenth still moves a block in a second or so.
const SLOWEST: BitRate = BitRate(10_000_000);

fn page(made: &[Measured]) -> String {
    let mut table = Table::new(&[
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

fn object(measured: &Measured) -> Value {
    let Measured { condition, counters, response, .. } = measured;
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

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        Self::of(&error.to_string())
    }
}
