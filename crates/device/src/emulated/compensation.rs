//! Compensation for the emulation's own lateness, so that it does not count as the disk's.
//!
//! A program that reads one block after another receives each block late, by the emulation's
//! lateness and by the time of the round trip through the kernel, and therefore asks late for the
//! next one. A disk that began only then would seem slower than its model by as much for each read.
//!
//! ```text
//!   model      ├── a read ──┤├── the next ─────
//!                          due   ▲ asked: as early as it would have been asked for,
//!                           │    │        but not before `due`
//!                  answered ▼    │
//!   clock      ───────────────┬──┴──────┬──────▶
//!                             └ way and program
//!                                       came ── late, way ──▶ asked
//! ```
//!
//! Only time that is known to be the emulation's own is subtracted, and only for a request that
//! arrives soon after an answer, as one that waited for it does. The type has no clock.

use std::time::Duration;
use units::Moment;

/// Subtracts the emulation's own lateness from the arrival times of requests. All times are the
/// model's.
#[derive(Debug)]
pub(super) struct Compensation {
    /// The time from the program to the disk and back, without the disk.
    round_trip: Duration,
    /// A request that arrives within this time after an answer waited for that answer.
    soon: Duration,
    last: Option<LastAnswer>,
    newest: Moment,
}

#[derive(Clone, Copy, Debug)]
struct LastAnswer {
    due: Moment,
    /// The time at which the answer was sent; `None` if it was not sent yet.
    answered: Option<Moment>,
}

impl Compensation {
    /// Makes a compensation for a disk that runs `speed` times as fast as its model.
    pub(super) fn new(speed: u32) -> Self {
        let (round_trip, newest) = (Duration::ZERO, Moment::ZERO);
        Self { round_trip, soon: SOON * speed, last: None, newest }
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// Discards the last answer, so that nothing is subtracted.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Notes that a request is being answered that the model finished at `finish` and that arrived
    /// at `came`. No program can have received the answer before both.
    pub(super) fn answers(&mut self, finish: Moment, came: Moment) {
        self.last = Some(LastAnswer { due: finish.max(came), answered: None });
    }

    /// The answer last announced by [`Compensation::answers`] was sent at `at`.
    pub(super) fn answered(&mut self, at: Moment) {
        if let Some(last) = &mut self.last {
            last.answered = Some(at);
        }
    }

    /// The time at which a request that arrives at `came` would have arrived without the emulation.
    /// Never decreases.
    pub(super) fn asked(&mut self, came: Moment) -> Moment {
        let asked = match self.last {
            Some(LastAnswer { due, answered }) => {
                // The request overtook this thread: its answer was sent at the latest when the
                // request came.
                let answered = answered.unwrap_or(came);
                let late = answered.since(due).min(self.soon);
                let caused = came.since(answered) <= self.soon;
                // Never before the answer was due, and never later than it came.
                if caused { (came - late - self.round_trip).max(due).min(came) } else { came }
            }
            None => came,
        };
        // Two programs can get different corrections; the command queue needs arrivals in order.
        self.newest = self.newest.max(asked);
        self.newest
    }
}

/// The real time after an answer within which a request counts as waiting for it, and the largest
/// lateness that is compensated for. It is as long as a turn of the platter.
const SOON: Duration = Duration::from_millis(8);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    /// A compensation at twice the model's speed, with a round trip of 2 ms of the model.
    fn compensation() -> Compensation {
        let mut compensation = Compensation::new(2);
        compensation.set_round_trip(Duration::from_millis(2));
        compensation
    }

    #[test]
    fn lateness_and_round_trip_are_subtracted_down_to_the_model() {
        // The times at which the model finished, the request had arrived, the answer was sent and
        // the next request arrived; and the time at which that would have arrived.
        for (finish, came, answered, next, asked, why) in [
            (100, 10, 103, 106, 101, "late by 3, a way of 2, a program of 1"),
            (100, 10, 100, 102, 100, "a program that takes no time"),
            (100, 10, 103, 104, 100, "a shorter way than usual: not before the disk was done"),
            (100, 105, 107, 110, 106, "done before its own request came: late from then on"),
            (100, 10, 103, 119, 114, "a program of 14 has waited for it still"),
            (100, 10, 103, 120, 120, "one that comes later has not"),
            (100, 10, 180, 190, 172, "no more than 16 are made up for"),
        ] {
            let mut compensation = compensation();
            compensation.answers(ms(finish), ms(came));
            compensation.answered(ms(answered));
            assert_eq!(compensation.asked(ms(next)), ms(asked), "{why}");
        }
    }

    #[test]
    fn a_request_that_precedes_the_answers_record_has_waited_for_it() {
        let mut compensation = compensation();
        assert_eq!(compensation.asked(ms(50)), ms(50), "nothing was answered");
        compensation.answers(ms(100), ms(50));
        assert_eq!(compensation.asked(ms(101)), ms(100));
        compensation.forget();
        assert_eq!(compensation.asked(ms(102)), ms(102));
    }

    #[test]
    fn the_arrival_times_never_decrease() {
        let mut compensation = compensation();
        compensation.answers(ms(10), ms(0));
        compensation.answered(ms(10));
        assert_eq!(compensation.asked(ms(100)), ms(100));
        compensation.answers(ms(96), ms(0));
        compensation.answered(ms(101));
        assert_eq!(
            compensation.asked(ms(102)),
            ms(100),
            "96 would be before the one that came first"
        );
    }

    /// Reads of 80 ms one after another, each answered late and with a round trip: the total is the
    /// model's time.
    #[test]
    fn sequential_reads_have_the_rate_of_the_model() {
        let (mut compensation, mut rng) = (compensation(), fastrand::Rng::with_seed(1));
        let (mut came, mut free, mut own) = (ms(5), ms(0), Duration::ZERO);
        for _ in 0..1000 {
            let start = compensation.asked(came).max(free);
            let finish = start + Duration::from_millis(80);
            free = finish;
            compensation.answers(finish, came);
            let answered = finish + Duration::from_micros(rng.u64(100..4000));
            compensation.answered(answered);
            let program = Duration::from_micros(rng.u64(0..200));
            own += program;
            came = answered + Duration::from_millis(2) + program;
        }
        let last = Duration::from_millis(200);
        assert!(free.since(ms(5)) <= Duration::from_secs(80) + own + last);
        assert!(free.since(ms(5)) + last >= Duration::from_secs(80) + own);
    }
}
