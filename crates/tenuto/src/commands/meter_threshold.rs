//! `--threshold`: told the moment the mean rate within a buffer's time is too low.

use crate::cli::Args;
use crate::commands::meter_streams::time;
use crate::failure::Failure;
use crate::out;
use meter::log::{Keep, NONE, Record};
use meter::threshold::{Crossing, Threshold, Watch};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Watches a run, if that is asked for.
pub(super) struct Alarm {
    asked: Option<(Threshold, RefCell<Watch>)>,
    json: bool,
    /// Of the run that is on, where there are several.
    clients: Option<u32>,
}

/// A log that is watched.
pub(super) struct Watched<'a, K> {
    pub(super) log: &'a mut K,
    pub(super) alarm: &'a Alarm,
}

impl Alarm {
    /// `buffer`: how long a client's buffer lasts.
    pub(super) fn new(args: &Args<'_>, buffer: Duration) -> Result<Self, Failure> {
        let window = args.maybe::<Duration>("window");
        let rate = args.maybe::<BitRate>("threshold");
        let asked = match (rate, window.unwrap_or(buffer)) {
            (None, _) if window.is_some() => {
                return Err(Failure::usage("--window is for --threshold"));
            }
            (_, Duration::ZERO) => {
                return Err(Failure::usage("--window: no rate has a mean of no time"));
            }
            (None, _) => None,
            (Some(rate), window) => {
                let threshold = Threshold { rate, window };
                Some((threshold, RefCell::new(Watch::new(threshold))))
            }
        };
        Ok(Self { asked, json: args.has("json"), clients: None })
    }

    /// Of a run of so many clients among others.
    pub(super) fn of(self, clients: u32) -> Self {
        Self { clients: Some(clients), ..self }
    }

    /// Time has passed: tells of a crossing, if there is one.
    pub(super) fn look(&self, now: Duration) {
        let Some((threshold, watch)) = &self.asked else { return };
        let Some(crossing) = watch.borrow_mut().look(now) else { return };
        if self.json {
            let mut event = object(&crossing);
            event["event"] = json!("threshold");
            if let Some(clients) = self.clients {
                event["clients"] = json!(clients);
            }
            out::event(&event);
            return;
        }
        let Crossing { at, below, mean } = crossing;
        let which = if below { "below" } else { "again above" };
        let (rate, window) = (threshold.rate, time(threshold.window));
        let run = self.clients.map_or(String::new(), |clients| format!("{clients} clients: "));
        out::note(&format!("{run}{which} {rate} at {}: {mean} in the last {window}", time(at)));
    }

    /// For the summary; null where it was not asked for.
    pub(super) fn json(&self) -> Value {
        let Some((Threshold { rate, window }, watch)) = &self.asked else { return Value::Null };
        let watch = watch.borrow();
        json!({
            "bits_per_s": rate.0,
            "window": window.as_secs_f64(),
            "least_bits_per_s": watch.least().map(|least| least.0),
            "crossings": watch.crossings().iter().map(object).collect::<Vec<_>>(),
        })
    }
}

fn object(crossing: &Crossing) -> Value {
    json!({
        "at": crossing.at.as_secs_f64(),
        "below": crossing.below,
        "bits_per_s": crossing.mean.0,
    })
}

impl<K: Keep> Keep for Watched<'_, K> {
    fn keep(&mut self, record: &Record) {
        if let Some((_, watch)) = &self.alarm.asked
            && record.end != NONE
            && record.errno == 0
        {
            let bytes = ByteCount(record.bytes.into());
            watch.borrow_mut().moved(Duration::from_nanos(record.end), bytes);
        }
        self.log.keep(record);
    }
}
