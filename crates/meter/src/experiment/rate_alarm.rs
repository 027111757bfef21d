//! The alarm of a run: it reports immediately when the mean rate within a window falls below a
//! threshold, of all streams together or of any single one.

use crate::error::MeterError;
use crate::log::{NONE, Record, RecordSink};
use crate::observer::Observer;
use crate::report::time;
use crate::threshold::{Crossing, Threshold, ThresholdWatch};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use units::show::{self, count};
use units::{BitRate, ByteCount};

/// The threshold below which a run raises an alarm.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateAlarmConfig {
    /// The mean rate below which the alarm is raised; `None` for no alarm.
    pub rate: Option<BitRate>,
    /// The window of the mean; `None` for the time that a client's buffer lasts.
    pub window: Option<Duration>,
    /// Watch each stream by itself rather than all together.
    pub each: bool,
}

impl RateAlarmConfig {
    pub(super) fn check(&self) -> Result<(), MeterError> {
        let Self { rate, window, each } = *self;
        if rate.is_none() && window.is_some() {
            return Err(MeterError::usage("--threshold-window is for --threshold"));
        }
        if rate.is_none() && each {
            return Err(MeterError::usage("--threshold-each is for --threshold"));
        }
        if window == Some(Duration::ZERO) {
            return Err(MeterError::usage("--threshold-window: no rate has a mean of no time"));
        }
        Ok(())
    }

    /// The time over which the mean is taken, where clients buffer for `buffer`. `None` without an
    /// alarm.
    pub(super) fn window(&self, buffer: Duration) -> Option<Duration> {
        self.rate.map(|_| self.window.unwrap_or(buffer))
    }

    /// Refuses a run of `length` without a single full window, in which clients buffer for
    /// `buffer`. `longer` is the option that sets the length.
    pub(super) fn check_length(
        &self,
        buffer: Duration,
        length: Duration,
        longer: &str,
    ) -> Result<(), MeterError> {
        let Some(window) = self.window(buffer).filter(|window| *window > length) else {
            return Ok(());
        };
        let (least, most) =
            (show::length(window.as_secs_f64()), show::length(length.as_secs_f64()));
        let message = format!(
            "--threshold would never be checked: its window of {least} is longer than {most}"
        );
        let hint = format!(
            "take a {longer} of {least} at least, or a --threshold-window of {most} at most"
        );
        Err(MeterError::usage(message).hint(hint))
    }
}

/// Watches one run against a threshold, if there is one.
pub(super) struct RateAlarm<'a> {
    armed: Option<Armed>,
    run: AlarmedRun,
    observer: &'a dyn Observer,
}

/// The run that an alarm watches.
enum AlarmedRun {
    /// The only one.
    Only,
    /// The step of a ramp with this number of clients.
    Clients(u32),
    /// The group of a job with this name.
    Group(String),
}

struct Armed {
    threshold: Threshold,
    /// Whether there is a watch for each stream.
    each: bool,
    watches: RefCell<Vec<ThresholdWatch>>,
    next_look: Cell<Duration>,
}

/// A log that also feeds an alarm.
pub(super) struct WatchedLog<'a> {
    pub(super) log: &'a mut dyn RecordSink,
    pub(super) alarm: &'a RateAlarm<'a>,
}

impl<'a> RateAlarm<'a> {
    /// An alarm for a run of `streams` streams whose clients buffer for `buffer`.
    pub(super) fn new(
        config: &RateAlarmConfig,
        buffer: Duration,
        streams: u32,
        observer: &'a dyn Observer,
    ) -> Self {
        let RateAlarmConfig { rate, each, .. } = *config;
        let armed = rate.map(|rate| {
            let window = config.window(buffer).unwrap_or(buffer);
            let threshold = Threshold { rate, window };
            // One watch for all streams together, or one for each.
            let count = if each { streams } else { 1 };
            let watches = (0..count).map(|_| ThresholdWatch::new(threshold)).collect();
            let (watches, next_look) = (RefCell::new(watches), Cell::new(Duration::ZERO));
            Armed { threshold, each, watches, next_look }
        });
        Self { armed, run: AlarmedRun::Only, observer }
    }

    /// Makes this the alarm of one of several runs, which its number of clients identifies.
    pub(super) fn of_run(self, clients: u32) -> Self {
        Self { run: AlarmedRun::Clients(clients), ..self }
    }

    /// Makes this the alarm of a group of a job.
    pub(super) fn of_group(self, name: &str) -> Self {
        Self { run: AlarmedRun::Group(name.to_owned()), ..self }
    }

    /// Reports every crossing until `now`.
    pub(super) fn look(&self, now: Duration) {
        let Some(armed) = &self.armed else { return };
        if now < armed.next_look.get() {
            return;
        }
        // One watch is cheap to look at each time; one for each of many streams is not.
        armed.next_look.set(now + if armed.each { BETWEEN } else { Duration::ZERO });
        for (stream, watch) in armed.watches.borrow_mut().iter_mut().enumerate() {
            if let Some(crossing) = watch.look(now) {
                self.report(armed, stream, &crossing);
            }
        }
    }

    /// Looks at the end of a complete run of `length`, where no look found a full window before: a
    /// run as long as the window is over with its last operation, a little earlier.
    pub(super) fn look_at_end(&self, length: Duration) {
        let Some(armed) = &self.armed else { return };
        for (stream, watch) in armed.watches.borrow_mut().iter_mut().enumerate() {
            if watch.least().is_none()
                && let Some(crossing) = watch.look(length)
            {
                self.report(armed, stream, &crossing);
            }
        }
    }

    fn report(&self, armed: &Armed, stream: usize, crossing: &Crossing) {
        let mut event = armed.object(stream, crossing);
        event["event"] = json!("threshold");
        let run = match &self.run {
            AlarmedRun::Only => String::new(),
            AlarmedRun::Clients(clients) => {
                event["clients"] = json!(clients);
                count(*clients, "client") + ": "
            }
            AlarmedRun::Group(name) => {
                event["group"] = json!(name);
                format!("{name}: ")
            }
        };
        let Crossing { at, below, mean } = *crossing;
        let which = if below { "below" } else { "again above" };
        let (rate, window) = (armed.threshold.rate, time(armed.threshold.window));
        // The one watch over all streams has the number 0, which names no stream.
        let whose = if armed.each { format!("stream {stream}: ") } else { String::new() };
        let at = time(at);
        let text = format!("{run}{whose}{which} {rate} at {at}: {mean} in the last {window}");
        self.observer.crossing(&text, &event);
    }

    /// Refuses a run whose rate fell below the threshold.
    pub(super) fn check_held(&self) -> Result<(), MeterError> {
        let Some(armed) = &self.armed else { return Ok(()) };
        let (watches, rate) = (armed.watches.borrow(), armed.threshold.rate);
        if watches.iter().flat_map(ThresholdWatch::crossings).any(|crossing| crossing.below) {
            return Err(MeterError::not_held(format!("not held: the rate fell below {rate}")));
        }
        Ok(())
    }

    /// Refuses a complete run that was over before its rate could be compared with the threshold.
    pub(super) fn check_seen(&self) -> Result<(), MeterError> {
        let Some(armed) = &self.armed else { return Ok(()) };
        if armed.watches.borrow().iter().any(|watch| watch.least().is_none()) {
            let window = time(armed.threshold.window);
            let message =
                format!("not valid: --threshold was not checked once in its window of {window}");
            return Err(MeterError::new(message)
                .hint("make the run longer, or take a shorter --threshold-window")
                .invalid());
        }
        Ok(())
    }

    /// The threshold and all crossings, for a summary; null without a threshold.
    pub(super) fn json(&self) -> Value {
        let Some(armed) = &self.armed else { return Value::Null };
        let Threshold { rate, window } = armed.threshold;
        let watches = armed.watches.borrow();
        let mut crossings: Vec<(Duration, Value)> = Vec::new();
        for (stream, watch) in watches.iter().enumerate() {
            let all = watch.crossings().iter();
            crossings.extend(all.map(|crossing| (crossing.at, armed.object(stream, crossing))));
        }
        // Collected stream by stream; a reader wants them in the order of time.
        crossings.sort_by_key(|(at, _)| *at);
        json!({
            "bits_per_s": rate.0,
            "window": window.as_secs_f64(),
            "each": armed.each,
            "least_bits_per_s": watches.iter().filter_map(ThresholdWatch::least).min().map(|least| least.0),
            "crossings": crossings.into_iter().map(|(_, crossing)| crossing).collect::<Vec<_>>(),
        })
    }
}

impl Armed {
    fn object(&self, stream: usize, crossing: &Crossing) -> Value {
        let mut object = json!({
            "at": crossing.at.as_secs_f64(),
            "below": crossing.below,
            "bits_per_s": crossing.mean.0,
        });
        if self.each {
            object["stream"] = json!(stream);
        }
        object
    }
}

/// The interval between two looks at the watches of many streams: short enough for a reader, long
/// enough to cost nothing.
const BETWEEN: Duration = Duration::from_millis(10);

impl RecordSink for WatchedLog<'_> {
    fn keep(&mut self, record: &Record) {
        if let Some(armed) = &self.alarm.armed
            // Only delivered bytes have a rate; a failed operation delivered none.
            && record.end != NONE
            && record.errno == 0
        {
            let of =
                if armed.each { usize::try_from(record.stream).unwrap_or(usize::MAX) } else { 0 };
            if let Some(watch) = armed.watches.borrow_mut().get_mut(of) {
                watch.moved(Duration::from_nanos(record.end), ByteCount(record.bytes.into()));
            }
        }
        self.log.keep(record);
    }
}
