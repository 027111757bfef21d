//! The interface of a running experiment to the program that started it.

use crate::streams::LiveFigures;
use crate::target::LeftBehind;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Receives the reports of a running experiment, and tells it when to stop.
///
/// The meter itself never prints: the command line implements this with a progress bar and standard
/// error, a test with vectors. What an implementation leaves out is not shown.
pub trait Observer {
    /// The current state in one line, which replaces the line before; called up to some hundred
    /// times a second.
    fn status(&self, _line: &str) {}

    /// Whether [`Observer::figures`] shows anything. The figures take some of the meter's time.
    fn wants_figures(&self) -> bool {
        false
    }

    /// The figures of a run of streams while it is in progress, some times a second: one entry, or
    /// one for each group of a job.
    fn figures(&self, _groups: &[LiveFigures]) {}

    /// Bytes done of `total` while files are filled; `stage` names the work.
    fn bytes(&self, _stage: &str, _done: u64, _total: u64) {}

    /// A line that remains visible: one for each run of a search.
    fn run_done(&self, _line: &str) {}

    /// A note for the user beside the report.
    fn note(&self, _text: &str) {}

    /// The list of test files and objects that cannot be removed, whose notes the user gets after
    /// the experiment: they are removed after its report is made.
    fn left_behind(&self) -> LeftBehind {
        LeftBehind::default()
    }

    /// A line for the program that started this process; see [`agents`](crate::agents).
    fn signal(&self, _line: &str) {}

    /// The rate crossed the threshold: in words, and as an object with the key `event`.
    fn crossing(&self, _text: &str, _event: &Value) {}

    /// The flag that stops the experiment once it is true.
    fn stop(&self) -> &Arc<AtomicBool>;

    /// Whether the experiment is to stop.
    fn is_stopped(&self) -> bool {
        self.stop().load(Ordering::Relaxed)
    }
}

/// Limits the lines of state to what a reader can see: virtual time passes so fast that making them
/// would take most of a run.
#[derive(Default)]
pub(crate) struct StatusPace(Option<Instant>);

impl StatusPace {
    /// Whether the last line is old enough for a new one.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= STATUS_EVERY);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

const STATUS_EVERY: Duration = Duration::from_millis(20);
