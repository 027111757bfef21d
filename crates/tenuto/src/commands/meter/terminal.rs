//! Output of an experiment: progress on a terminal, notes, and the report at the end.

use super::live::LiveScreen;
use crate::args::meter::SavedReportArgs;
use crate::args::shared::ReportArgs;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use meter::report::LiveFigures;
use meter::{
    ExperimentReport, LeftBehind, MeterError, MeterErrorKind, Observer, new_directory, save_summary,
};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenuto_agent::stop_on_signals;

/// Runs an experiment with Ctrl-C as its stop, and prints its report.
pub(super) fn show(
    report: &ReportArgs,
    experiment: impl FnOnce(&dyn Observer) -> Result<ExperimentReport, MeterError>,
) -> Result<(), Failure> {
    show_live(report, false, experiment)
}

/// Runs an experiment as [`show`] does, and saves its summary in a new directory, if there is one.
pub(super) fn show_saved(
    SavedReportArgs { out, report }: &SavedReportArgs,
    experiment: impl FnOnce(&dyn Observer) -> Result<ExperimentReport, MeterError>,
) -> Result<(), Failure> {
    // Before the experiment, which may take long.
    out.as_deref().map_or(Ok(()), new_directory)?;
    show(report, |observer| {
        let mut report = experiment(observer)?;
        let save = |dir| save_summary(dir, &report.summary, observer);
        let saved = out.as_deref().map_or(Ok(()), save);
        // A report that cannot be saved is still shown; the verdict contains the error.
        report.verdict = saved.and(report.verdict);
        Ok(report)
    })
}

/// Runs an experiment as [`show`] does; `live`: with its figures while it is in progress, on a
/// terminal as a screen, and elsewhere with `--json` as events.
pub(super) fn show_live(
    report: &ReportArgs,
    live: bool,
    experiment: impl FnOnce(&dyn Observer) -> Result<ExperimentReport, MeterError>,
) -> Result<(), Failure> {
    let terminal = Terminal {
        json: report.json,
        stop: stop_on_signals()?,
        live: live && out::is_terminal(),
        events: (live && report.json && !out::is_terminal()).then(LiveEvents::default),
        bar: RefCell::default(),
        screen: RefCell::default(),
        left: LeftBehind::default(),
    };
    let done = experiment(&terminal);
    // The files are removed by now, unless that failed.
    terminal.left.take().iter().for_each(|note| terminal.note(note));
    // Removes the bar before the report is printed.
    drop(terminal);
    let ExperimentReport { summary, text, verdict } = done?;
    report.show(&summary, || text);
    verdict.map_err(|error| match error.kind {
        // The report is complete up to the signal, so that the reason is a note, not an error.
        MeterErrorKind::Interrupted => {
            out::note(&error.message);
            Failure::reported(Code::Invalid)
        }
        // The report tells what was not held.
        MeterErrorKind::NotHeld => Failure::reported(Code::Refused),
        _ => error.into(),
    })
}

struct Terminal {
    json: bool,
    stop: Arc<AtomicBool>,
    /// Present while a state is shown; lines on standard error take its place.
    bar: RefCell<Option<Bar>>,
    /// Whether the figures of runs are shown.
    live: bool,
    /// Present where the progress of runs is written for a program.
    events: Option<LiveEvents>,
    /// Present while figures are shown, in place of the bar.
    screen: RefCell<Option<LiveScreen>>,
    /// Files and objects that could not be removed.
    left: LeftBehind,
}

/// Lines of JSON for the program that started this one (docs/reference/json.md). Virtual time
/// passes so fast that only some can be written.
#[derive(Default)]
struct LiveEvents {
    state: Cell<Option<Instant>>,
    figures: Cell<Option<Instant>>,
}

/// The shortest time between two events of a kind.
const BETWEEN: Duration = Duration::from_millis(250);

impl LiveEvents {
    /// Whether an event of a kind is due, whose last one was at a time.
    fn is_due(last: &Cell<Option<Instant>>) -> bool {
        let now = Instant::now();
        let is_due = last.get().is_none_or(|last| now.duration_since(last) >= BETWEEN);
        if is_due {
            last.set(Some(now));
        }
        is_due
    }
}

impl Terminal {
    /// Writes an event. A program that has gone needs no measurement.
    fn tell(&self, event: &Value) {
        if !out::try_event(event) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.bar.take();
        // The last figures stay above what follows.
        self.screen.take();
    }
}

impl Observer for Terminal {
    fn status(&self, line: &str) {
        if let Some(events) = &self.events {
            if LiveEvents::is_due(&events.state) {
                self.tell(&json!({ "event": "state", "text": line }));
            }
            return;
        }
        if self.screen.borrow().is_some() {
            return;
        }
        self.bar.borrow_mut().get_or_insert_with(Bar::new).say(line);
    }

    fn wants_figures(&self) -> bool {
        self.live || self.events.is_some()
    }

    fn figures(&self, groups: &[LiveFigures]) {
        if let Some(events) = &self.events {
            if LiveEvents::is_due(&events.figures) {
                let groups: Vec<Value> = groups.iter().map(LiveFigures::json).collect();
                self.tell(&json!({ "event": "figures", "groups": groups }));
            }
            return;
        }
        self.bar.take();
        self.screen.borrow_mut().get_or_insert_with(LiveScreen::open).show(groups);
    }

    fn bytes(&self, stage: &str, done: u64, total: u64) {
        if let Some(events) = &self.events {
            if LiveEvents::is_due(&events.state) {
                let event = json!({ "event": "fill", "text": stage, "done": done, "total": total });
                self.tell(&event);
            }
            return;
        }
        self.bar.borrow_mut().get_or_insert_with(Bar::new).bytes(stage, done, Some(total));
    }

    fn run_done(&self, line: &str) {
        if self.events.is_some() {
            self.tell(&json!({ "event": "run", "text": line }));
            return;
        }
        self.clear();
        out::live(line);
    }

    fn note(&self, text: &str) {
        self.clear();
        out::note(text);
    }

    fn left_behind(&self) -> LeftBehind {
        self.left.clone()
    }

    fn signal(&self, line: &str) {
        out::signal(line);
    }

    fn crossing(&self, text: &str, event: &Value) {
        if self.json {
            out::event(event);
        } else {
            self.note(text);
        }
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}
