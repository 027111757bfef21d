//! Output of an experiment: progress on a terminal, notes, and the report at the end.

use super::live::LiveScreen;
use crate::args::meter::SavedReportArgs;
use crate::args::shared::ReportArgs;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use meter::report::LiveFigures;
use meter::{ExperimentReport, MeterError, MeterErrorKind, Observer, new_directory, save_summary};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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

/// Runs an experiment as [`show`] does; `live`: with its figures while it is in progress, where
/// standard error is a terminal.
pub(super) fn show_live(
    report: &ReportArgs,
    live: bool,
    experiment: impl FnOnce(&dyn Observer) -> Result<ExperimentReport, MeterError>,
) -> Result<(), Failure> {
    let terminal = Terminal {
        json: report.json,
        stop: stop_on_signals()?,
        live: live && out::is_terminal(),
        bar: RefCell::default(),
        screen: RefCell::default(),
    };
    let ExperimentReport { summary, text, verdict } = experiment(&terminal)?;
    // Removes the bar before the report is printed.
    drop(terminal);
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
    /// Present while figures are shown, in place of the bar.
    screen: RefCell<Option<LiveScreen>>,
}

impl Terminal {
    fn clear(&self) {
        self.bar.take();
        // The last figures stay above what follows.
        self.screen.take();
    }
}

impl Observer for Terminal {
    fn status(&self, line: &str) {
        if self.screen.borrow().is_some() {
            return;
        }
        self.bar.borrow_mut().get_or_insert_with(Bar::new).say(line);
    }

    fn wants_figures(&self) -> bool {
        self.live
    }

    fn figures(&self, groups: &[LiveFigures]) {
        self.bar.take();
        self.screen.borrow_mut().get_or_insert_with(LiveScreen::open).show(groups);
    }

    fn bytes(&self, stage: &str, done: u64, total: u64) {
        self.bar.borrow_mut().get_or_insert_with(Bar::new).bytes(stage, done, Some(total));
    }

    fn run_done(&self, line: &str) {
        self.clear();
        out::live(line);
    }

    fn note(&self, text: &str) {
        self.clear();
        out::note(text);
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
