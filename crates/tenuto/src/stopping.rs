//! Signals to a command with an emulated disk: the first signal stops the command when the users of
//! the disk have ended, a second one removes the disk at once, and further signals do not interrupt
//! that removal.
//!
//! ```text
//!   working ──signal──▶ ending ──signal, or after patience──▶ removed ──after GRACE──▶ exit
//!                       ask                                  remove
//! ```
//!
//! Signals to a recording: the first one ends it, and a title is made of what came. At a second
//! one, as of a key that is held, a note tells what goes on; a third one ends the command at once.
//!
//! Signals to a computation: the first one ends it with a report of the runs that are complete,
//! where it has such runs; runs that have begun are waited for, for some seconds. The next one, or
//! the first where it has no such runs, ends the command without a report.

use crate::failure::{Code, Failure};
use crate::out;
use crate::spread::PATIENCE;
use device::DiskStop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenuto_agent::hangup_is_ignored;

/// Handles SIGINT and SIGTERM from here on, and returns the stop flag that they set. `patience`:
/// the longest time for an orderly stop; without it the command waits until a second signal.
pub(crate) fn on_signals(patience: Option<Duration>) -> Result<Arc<DiskStop>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let stop = Arc::new(DiskStop::default());
    let told = Arc::clone(&stop);
    // A thread instead of a signal handler: writing notes and removing a disk are not allowed in a
    // handler.
    let look = move || {
        let (start, mut course) = (Instant::now(), Course { patience, state: StopState::Working });
        loop {
            // Asked for again and again instead of waited for, because the time limits expire
            // without a signal.
            for _ in signals.pending() {
                act(course.signal(start.elapsed()), &told);
            }
            if let Some(step) = course.time(start.elapsed()) {
                act(step, &told);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(look).map_err(failed)?;
    Ok(stop)
}

/// Handles SIGINT, SIGTERM and SIGHUP to a computation of many runs from here on, and returns the
/// flag that ends it with the runs that are complete soon after. A second signal ends the command.
pub(crate) fn on_signals_to_runs() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    hear(move |before| {
        if before > 0 {
            leave();
        }
        told.store(true, Ordering::Relaxed);
        out::note(&format!(
            "ending within {} s, with the runs that are complete by then; a second signal ends \
             this command at once",
            PATIENCE.as_secs()
        ));
    })?;
    Ok(stop)
}

/// Lets SIGINT, SIGTERM and SIGHUP end the command with a documented code from here on: for
/// computations that have no result before their end.
pub(crate) fn end_on_signals() -> Result<(), Failure> {
    hear(|_| leave())
}

/// The failure of a computation of which nothing was complete when a signal came.
pub(crate) fn without_result() -> Failure {
    Failure::new("interrupted before there was a result").hint("nothing was written: run it again")
}

/// Calls `act` at every signal with the number of those before.
fn hear(act: impl Fn(u32) + Send + 'static) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    let hangup = (!hangup_is_ignored()).then_some(SIGHUP);
    let handled = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let mut signals = Signals::new(handled).map_err(failed)?;
    let each = move || {
        for (before, _) in (0..).zip(signals.forever()) {
            act(before);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(each).map_err(failed)?;
    Ok(())
}

fn leave() -> ! {
    out::complain(&without_result());
    // Not through `main`, whose thread computes.
    std::process::exit(Code::Failed as i32)
}

/// Handles SIGINT, SIGTERM and SIGHUP to a recording from here on, and returns the flag that ends
/// the recording.
/// `is_served`: whether a server records for this command.
pub(crate) fn on_signals_to_a_recording(is_served: bool) -> Result<Arc<AtomicBool>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    let hangup = (!hangup_is_ignored()).then_some(SIGHUP);
    let handled = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let mut signals = Signals::new(handled).map_err(failed)?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let hear = move || {
        let mut before = 0;
        for signal in signals.forever() {
            match recording_step(&mut before, signal) {
                RecordingStep::End => told.store(true, Ordering::Relaxed),
                RecordingStep::Tell => out::note(
                    "the recording is ending, and becomes a title; a further signal ends this \
                     command at once",
                ),
                RecordingStep::Leave => {
                    out::complain(&left_recording(is_served));
                    // Not through `main`, whose thread waits for the end of the recording.
                    std::process::exit(Code::Failed as i32)
                }
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map_err(failed)?;
    Ok(stop)
}

/// What becomes of a recording whose command does not wait for its end.
fn left_recording(is_served: bool) -> Failure {
    let why = "ended by a signal before the recording was a title";
    Failure::new(why).hint(match is_served {
        true => "its server makes a title of what came: `tenuto ls STORE` lists it in a moment",
        false => "what came is kept: the next command that opens the store makes a title of it",
    })
}

/// What a signal to a recording does.
#[derive(Debug, PartialEq, Eq)]
enum RecordingStep {
    End,
    Tell,
    Leave,
}

/// `before`: the signals so far. SIGHUP may come twice, from the shell and from the kernel.
fn recording_step(before: &mut u32, signal: i32) -> RecordingStep {
    if signal != SIGHUP || *before == 0 {
        *before += 1;
    }
    match *before {
        1 => RecordingStep::End,
        2 => RecordingStep::Tell,
        _ => RecordingStep::Leave,
    }
}

fn act(step: Step, stop: &DiskStop) {
    match step {
        Step::Ask(patience) => {
            stop.ask();
            if let Some(patience) = patience {
                out::note(&format!(
                    "stopping within {} s; a second signal removes the emulated disk at once",
                    patience.as_secs()
                ));
            }
        }
        Step::Pull => {
            out::note(&format!("removing the emulated disk, within {} s", GRACE.as_secs()));
            // A user without the right to remove it has mounted no file system from it, and
            // requests that wait for it fail in the kernel when this process has ended.
            if stop.pull().is_err() {
                end();
            }
        }
        Step::Still(left) => {
            out::note(&format!("stopping takes {} s at most", left.as_secs() + 1));
        }
        Step::GiveUp => end(),
    }
}

fn end() -> ! {
    out::note(
        "the next `tenuto disk emulate` with the same backing file removes the mounts that are left",
    );
    // Not through `main`, because the thread of the command may be blocked in a read of the disk.
    std::process::exit(Code::Failed as i32)
}

/// The state of an orderly stop, and the time that it may take.
#[derive(Debug)]
struct Course {
    patience: Option<Duration>,
    state: StopState,
}

#[derive(Debug)]
enum StopState {
    Working,
    Ending(Option<Duration>),
    Pulled(Duration),
    Over,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Stop in order, within this time.
    Ask(Option<Duration>),
    Pull,
    /// The disk is being removed; this time is left at most.
    Still(Duration),
    GiveUp,
}

impl Course {
    fn signal(&mut self, now: Duration) -> Step {
        match self.state {
            StopState::Working => {
                self.state = StopState::Ending(self.patience.map(|patience| now + patience));
                Step::Ask(self.patience)
            }
            StopState::Ending(_) => self.pull(now),
            StopState::Pulled(until) => Step::Still(until.saturating_sub(now)),
            // The process is about to exit, and no signal makes that sooner.
            StopState::Over => Step::Still(Duration::ZERO),
        }
    }

    fn time(&mut self, now: Duration) -> Option<Step> {
        match self.state {
            // Without a limit only a second signal removes the disk: its users may need hours to
            // finish.
            StopState::Ending(Some(until)) if now >= until => Some(self.pull(now)),
            StopState::Pulled(until) if now >= until => {
                self.state = StopState::Over;
                Some(Step::GiveUp)
            }
            _ => None,
        }
    }

    fn pull(&mut self, now: Duration) -> Step {
        self.state = StopState::Pulled(now + GRACE);
        Step::Pull
    }
}

/// Time between two looks for signals; signals within it count once.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Time from the removal of the disk to the end of the process. It covers the five seconds in which
/// a loop device that another process has open is tried again.
const GRACE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_signal_leaves_a_recording_and_a_hangup_counts_once() {
        use RecordingStep::{End, Leave, Tell};
        for (signals, steps) in [
            (&[SIGINT, SIGTERM, SIGINT, SIGINT][..], &[End, Tell, Leave, Leave][..]),
            (&[SIGHUP, SIGHUP, SIGHUP, SIGTERM], &[End, End, End, Tell]),
            (&[SIGTERM, SIGHUP, SIGTERM, SIGTERM], &[End, End, Tell, Leave]),
        ] {
            let mut before = 0;
            let taken: Vec<_> =
                signals.iter().map(|signal| recording_step(&mut before, *signal)).collect();
            assert_eq!(taken, steps, "{signals:?}");
        }
    }

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn course(patience: Option<Duration>) -> Course {
        Course { patience, state: StopState::Working }
    }

    #[test]
    fn further_signals_shorten_the_stop_and_do_not_interrupt_it() {
        let mut course = course(Some(S(60)));
        assert_eq!(course.time(S(1000)), None);
        let steps = [1, 2, 3, 4].map(|now| course.signal(S(now)));
        let still = [S(19), S(18)].map(Step::Still);
        let [third, fourth] = still;
        assert_eq!(steps, [Step::Ask(Some(S(60))), Step::Pull, third, fourth]);
        assert_eq!(course.time(S(21)), None);
        assert_eq!(course.time(S(22)), Some(Step::GiveUp));
        assert_eq!(course.time(S(23)), None);
    }

    #[test]
    fn a_stop_with_a_time_limit_ends_without_a_second_signal() {
        let mut course_of_a_run = course(Some(S(60)));
        course_of_a_run.signal(S(5));
        let steps = [64, 65, 84, 85].map(|now| course_of_a_run.time(S(now)));
        assert_eq!(steps, [None, Some(Step::Pull), None, Some(Step::GiveUp)]);
        let mut of_a_disk = course(None);
        assert_eq!(of_a_disk.signal(S(5)), Step::Ask(None));
        assert_eq!(of_a_disk.time(S(100_000)), None);
    }
}
