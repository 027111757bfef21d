//! `--threshold`: told the moment the mean rate within a buffer's time is too low, of all streams together
//! or, with `--each`, of any of them.

use crate::cli::Args;
use crate::commands::meter_streams::time;
use crate::failure::Failure;
use crate::out;
use meter::log::{Keep, NONE, Record};
use meter::threshold::{Crossing, Threshold, Watch};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Watches a run, if that is asked for.
pub(super) struct Alarm {
    asked: Option<Asked>,
    json: bool,
    /// Of the run that is on, where there are several.
    clients: Option<u32>,
}

struct Asked {
    threshold: Threshold,
    /// Whether each stream is watched by itself: then there is a watch for each.
    each: bool,
    watches: RefCell<Vec<Watch>>,
    /// When the next look is due.
    next: Cell<Duration>,
}

/// A log that is watched.
pub(super) struct Watched<'a, K> {
    pub(super) log: &'a mut K,
    pub(super) alarm: &'a Alarm,
}

impl Alarm {
    /// For a run of so many streams. `buffer`: how long a client's buffer lasts.
    pub(super) fn new(args: &Args<'_>, buffer: Duration, streams: u32) -> Result<Self, Failure> {
        let window = args.maybe::<Duration>("window");
        let rate = args.maybe::<BitRate>("threshold");
        let each = args.has("each");
        let asked = match (rate, window.unwrap_or(buffer)) {
            (None, _) if window.is_some() => {
                return Err(Failure::usage("--window is for --threshold"));
            }
            (None, _) if each => return Err(Failure::usage("--each is for --threshold")),
            (_, Duration::ZERO) => {
                return Err(Failure::usage("--window: no rate has a mean of no time"));
            }
            (None, _) => None,
            (Some(rate), window) => {
                let threshold = Threshold { rate, window };
                let count = if each { streams } else { 1 };
                let watches = (0..count).map(|_| Watch::new(threshold)).collect();
                let (watches, next) = (RefCell::new(watches), Cell::new(Duration::ZERO));
                Some(Asked { threshold, each, watches, next })
            }
        };
        Ok(Self { asked, json: args.has("json"), clients: None })
    }

    /// Of a run of so many clients among others.
    pub(super) fn of(self, clients: u32) -> Self {
        Self { clients: Some(clients), ..self }
    }

    /// Time has passed: tells of every crossing.
    pub(super) fn look(&self, now: Duration) {
        let Some(asked) = &self.asked else { return };
        if now < asked.next.get() {
            return;
        }
        asked.next.set(now + if asked.each { BETWEEN } else { Duration::ZERO });
        for (stream, watch) in asked.watches.borrow_mut().iter_mut().enumerate() {
            if let Some(crossing) = watch.look(now) {
                self.tell(asked, stream, &crossing);
            }
        }
    }

    fn tell(&self, asked: &Asked, stream: usize, crossing: &Crossing) {
        if self.json {
            let mut event = asked.object(stream, crossing);
            event["event"] = json!("threshold");
            if let Some(clients) = self.clients {
                event["clients"] = json!(clients);
            }
            out::event(&event);
            return;
        }
        let Crossing { at, below, mean } = *crossing;
        let which = if below { "below" } else { "again above" };
        let (rate, window) = (asked.threshold.rate, time(asked.threshold.window));
        let run = self.clients.map_or(String::new(), |clients| format!("{clients} clients: "));
        let whose = if asked.each { format!("stream {stream}: ") } else { String::new() };
        let at = time(at);
        out::note(&format!("{run}{whose}{which} {rate} at {at}: {mean} in the last {window}"));
    }

    /// For the summary; null where it was not asked for.
    pub(super) fn json(&self) -> Value {
        let Some(asked) = &self.asked else { return Value::Null };
        let Threshold { rate, window } = asked.threshold;
        let watches = asked.watches.borrow();
        let of = |(stream, watch): (usize, &Watch)| -> Vec<(Duration, Value)> {
            let crossings = watch.crossings().iter();
            crossings.map(|crossing| (crossing.at, asked.object(stream, crossing))).collect()
        };
        let mut crossings: Vec<(Duration, Value)> =
            watches.iter().enumerate().flat_map(of).collect();
        crossings.sort_by_key(|(at, _)| *at);
        json!({
            "bits_per_s": rate.0,
            "window": window.as_secs_f64(),
            "each": asked.each,
            "least_bits_per_s": watches.iter().filter_map(Watch::least).min().map(|least| least.0),
            "crossings": crossings.into_iter().map(|(_, crossing)| crossing).collect::<Vec<_>>(),
        })
    }
}

impl Asked {
    fn object(&self, stream: usize, crossing: &Crossing) -> Value {
        let mut said = json!({
            "at": crossing.at.as_secs_f64(),
            "below": crossing.below,
            "bits_per_s": crossing.mean.0,
        });
        if self.each {
            said["stream"] = json!(stream);
        }
        said
    }
}

/// Of many streams: often enough for people, seldom enough to cost nothing.
const BETWEEN: Duration = Duration::from_millis(10);

impl<K: Keep> Keep for Watched<'_, K> {
    fn keep(&mut self, record: &Record) {
        if let Some(asked) = &self.alarm.asked
            && record.end != NONE
            && record.errno == 0
        {
            let of =
                if asked.each { usize::try_from(record.stream).unwrap_or(usize::MAX) } else { 0 };
            if let Some(watch) = asked.watches.borrow_mut().get_mut(of) {
                watch.moved(Duration::from_nanos(record.end), ByteCount(record.bytes.into()));
            }
        }
        self.log.keep(record);
    }
}
