//! Signals to a command that has an emulated disk of its own: the first signal stops it in order, a
//! second one at once, and further signals do not interrupt the removal of the disk.
//!
//! ```text
//!   working ──signal──▶ ending ──signal, or out of patience──▶ pulled ──GRACE later──▶ exit
//!                       ask                                    pull
//! ```

use crate::failure::{Code, Failure};
use crate::out;
use device::DiskStop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Handles SIGINT and SIGTERM from here on, and returns the stop flag that they set. `patience`:
/// the longest time for an orderly stop; without it the command waits until a second signal.
pub(crate) fn by_signals(patience: Option<Duration>) -> Result<Arc<DiskStop>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let stop = Arc::new(DiskStop::default());
    let told = Arc::clone(&stop);
    let look = move || {
        let (start, mut course) = (Instant::now(), Course { patience, state: State::Working });
        loop {
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

fn act(step: Step, stop: &DiskStop) {
    match step {
        Step::Ask(patience) => {
            stop.ask();
            if let Some(patience) = patience {
                out::note(&format!(
                    "stopping in order, in {} s at most; a second signal pulls the disk out at once",
                    patience.as_secs()
                ));
            }
        }
        Step::Pull => {
            out::note(&format!(
                "pulling the emulated disk out; this ends in {} s at most",
                GRACE.as_secs()
            ));
            // Whoever may not has not mounted anything from it, and the kernel fails what waits for
            // it when this process is gone.
            if stop.pull().is_err() {
                end();
            }
        }
        Step::Still(left) => {
            out::note(&format!("still stopping: {} s at most", left.as_secs() + 1));
        }
        Step::GiveUp => end(),
    }
}

fn end() -> ! {
    out::note("the next `tenuto disk emulate` with the same backing file takes down what is left");
    std::process::exit(Code::Failed as i32)
}

/// The state of an orderly stop, and the time that it may take.
#[derive(Debug)]
struct Course {
    patience: Option<Duration>,
    state: State,
}

#[derive(Debug)]
enum State {
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
            State::Working => {
                self.state = State::Ending(self.patience.map(|patience| now + patience));
                Step::Ask(self.patience)
            }
            State::Ending(_) => self.pull(now),
            State::Pulled(until) => Step::Still(until.saturating_sub(now)),
            State::Over => Step::Still(Duration::ZERO),
        }
    }

    fn time(&mut self, now: Duration) -> Option<Step> {
        match self.state {
            State::Ending(Some(until)) if now >= until => Some(self.pull(now)),
            State::Pulled(until) if now >= until => {
                self.state = State::Over;
                Some(Step::GiveUp)
            }
            _ => None,
        }
    }

    fn pull(&mut self, now: Duration) -> Step {
        self.state = State::Pulled(now + GRACE);
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

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn course(patience: Option<Duration>) -> Course {
        Course { patience, state: State::Working }
    }

    #[test]
    fn signals_hurry_it_and_never_break_it_off() {
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
    fn it_ends_though_nobody_asks_again_where_it_has_a_patience() {
        let mut course_of_a_run = course(Some(S(60)));
        course_of_a_run.signal(S(5));
        let steps = [64, 65, 84, 85].map(|now| course_of_a_run.time(S(now)));
        assert_eq!(steps, [None, Some(Step::Pull), None, Some(Step::GiveUp)]);
        let mut of_a_disk = course(None);
        assert_eq!(of_a_disk.signal(S(5)), Step::Ask(None));
        assert_eq!(of_a_disk.time(S(100_000)), None);
    }
}
