//! Waiting until the next frame is due: by sleeping, or by polling the clock for the last part.
//!
//! ```text
//!   now ────────── sleep ──────────▶ ┬ ─ poll the clock ──▶ due
//!                                    due - ahead
//! ```
//!
//! A sleeping thread is woken tens of microseconds late on an idle machine and half a millisecond
//! late on many virtual ones. With [`StreamsPlan::spin`](super::StreamsPlan::spin) the thread
//! sleeps only until shortly before a frame is due, and polls the clock (and completions) from then
//! on: `ahead` follows the measured wake-up delay, so that frames due at shorter intervals keep the
//! thread awake and use a whole processor. It never yields: a yield gives milliseconds even to
//! threads of the idle class. A woken thread takes precedence over one that polls, and a busy one
//! gets an equal share. Where that happens, because there is more work than processors, polling
//! makes the thread later than sleeping would: then it sleeps for a while.
//!
//! Polling time is kept apart from working time ([`Pacer::take_watched`]).

use crate::target::{IoCompletion, Port};
use device::DeviceError;
use std::time::Duration;
use units::Moment;

/// Waits until the next frame is due, by sleeping or by polling the clock. Times are in
/// nanoseconds.
pub(super) struct Pacer {
    spin: bool,
    /// The time before a frame is due from which the clock is polled.
    ahead: u64,
    watched: u64,
    /// The intervals between clock readings in which other programs ran, and the rest of the judged
    /// time.
    window: JudgedTime,
    /// The end of the back-off's sleep, and the length of the next one.
    rests_until: Moment,
    rest: Duration,
}

#[derive(Clone, Copy, Default)]
struct JudgedTime {
    watched: u64,
    lost: u64,
}

impl Pacer {
    pub(super) fn new(spin: bool) -> Self {
        Self {
            spin,
            ahead: LEAST_AHEAD,
            watched: 0,
            window: JudgedTime::default(),
            rests_until: Moment::ZERO,
            rest: FIRST_REST,
        }
    }

    /// Waits as [`Port::wait`] does, until `wake` or shortly before `due`. Returns the moment up to
    /// which no completion can have gone unnoticed.
    pub(super) fn wait(
        &mut self,
        port: &mut dyn Port,
        now: Moment,
        wake: Moment,
        due: Option<Moment>,
        done: &mut Vec<IoCompletion>,
    ) -> Result<Moment, DeviceError> {
        let Some(due) = due.filter(|_| self.spin && now >= self.rests_until) else {
            port.wait(wake, done)?;
            return Ok(wake);
        };
        // The estimate decays, so that one slow wake-up does not keep the thread polling.
        self.ahead = (self.ahead - self.ahead / FORGETS).max(LEAST_AHEAD);
        let nap = Moment(due.0.saturating_sub(self.ahead)).min(wake);
        if nap <= now {
            return self.watch(port, now, wake, done);
        }
        port.wait(nap, done)?;
        // A completion ends the sleep early and shows nothing about wake-up delay.
        if done.is_empty() {
            let late = port.now().0.saturating_sub(nap.0);
            self.ahead = self.ahead.max(late).min(MOST_AHEAD);
        }
        Ok(nap)
    }

    /// The polling time since the last call.
    pub(super) fn take_watched(&mut self) -> u64 {
        std::mem::take(&mut self.watched)
    }

    fn watch(
        &mut self,
        port: &mut dyn Port,
        now: Moment,
        until: Moment,
        done: &mut Vec<IoCompletion>,
    ) -> Result<Moment, DeviceError> {
        let mut last = now;
        while last < until {
            // A wait until a moment that has passed only collects completions.
            port.wait(last, done)?;
            if !done.is_empty() {
                break;
            }
            std::hint::spin_loop();
            let now = port.now();
            let between = now.0.saturating_sub(last.0);
            // A longer gap is no polling: the thread was not running.
            if between < TAKEN {
                self.window.watched += between;
                self.watched += between;
            } else {
                self.window.lost += between;
            }
            last = now;
        }
        self.judge(last);
        Ok(last.min(until))
    }

    /// Decides whether polling is useful.
    fn judge(&mut self, now: Moment) {
        let JudgedTime { watched, lost } = self.window;
        if watched + lost < JUDGED_AFTER {
            return;
        }
        if lost * MOST_LOST > watched + lost {
            // Polling takes time from the threads that it waits for: sleep, twice as long each
            // time.
            self.rests_until = now + self.rest;
            self.rest = (self.rest * 2).min(LONGEST_REST);
        } else {
            self.rest = FIRST_REST;
        }
        self.window = JudgedTime::default();
    }
}

/// The shortest polling time: an idle machine wakes a sleeping thread within less.
const LEAST_AHEAD: u64 = 100_000;

/// The longest polling time: longer wake-up delays occur once in a thousand times.
const MOST_AHEAD: u64 = 1_000_000;

/// The decay of the estimate of wake-up delay: a value is halved after 700 frames.
const FORGETS: u64 = 1024;

/// A longer interval between two clock readings means that another program had the processor.
const TAKEN: u64 = 100_000;

/// The polling time, in nanoseconds, over which its usefulness is judged.
const JUDGED_AFTER: u64 = 100_000_000;

/// The share of the time, one in this number, whose loss to other programs is too much.
const MOST_LOST: u64 = 10;

const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TickingPort;
    use std::cell::Cell;

    const MS: Duration = Duration::from_millis(1);

    /// Waits for times at a fixed interval, and returns the delay of each.
    fn waits(pace: &mut Pacer, port: &mut dyn Port, apart: Duration, times: u32) -> Vec<u64> {
        let mut due = port.now() + apart;
        let mut late = Vec::new();
        for _ in 0..times {
            loop {
                let now = port.now();
                if now >= due {
                    late.push(now.0 - due.0);
                    break;
                }
                pace.wait(port, now, due, Some(due), &mut Vec::new()).unwrap();
            }
            due = due + apart;
        }
        late
    }

    /// A port whose clock reading takes a microsecond.
    fn port() -> TickingPort {
        TickingPort::new(MS / 1000)
    }

    #[test]
    fn it_is_late_once_and_then_wakes_sooner_by_as_much() {
        let (mut port, mut pace) = (port().waking_late(MS / 2), Pacer::new(true));
        let late = waits(&mut pace, &mut port, MS * 40, 100);
        assert!(late[0] > 300_000 && late[1..].iter().all(|late| *late < 5_000), "{late:?}");
        assert_eq!(port.slept, 100);
    }

    #[test]
    fn a_thread_woken_in_time_polls_the_clock_for_the_rest() {
        let (mut port, mut pace) = (port(), Pacer::new(true));
        waits(&mut pace, &mut port, MS * 40, 100);
        let watched = pace.take_watched();
        assert!((9_000_000..11_000_000).contains(&watched), "{watched}: 0.1 ms of each");
        assert_eq!(pace.take_watched(), 0);
    }

    #[test]
    fn without_polling_it_only_sleeps() {
        let (mut port, mut pace) = (port().waking_late(MS / 2), Pacer::new(false));
        let late = waits(&mut pace, &mut port, MS * 40, 100);
        assert!(late.iter().all(|late| *late > 490_000), "{late:?}");
        assert_eq!(pace.take_watched(), 0);
    }

    #[test]
    fn frames_every_forty_microseconds_keep_it_awake() {
        let (mut port, mut pace) = (port().waking_late(MS / 2), Pacer::new(true));
        let late = waits(&mut pace, &mut port, MS / 25, 25_000);
        assert_eq!(port.slept, 0);
        assert!(late.iter().all(|late| *late < 5_000));
    }

    /// A machine on which another program has the processor for 3 ms after each 5 ms of polling.
    struct Contended {
        inner: TickingPort,
        looks: Cell<u64>,
    }

    impl Contended {
        fn lost(&self) -> u64 {
            self.looks.get() / 5_000 * 3_000_000
        }
    }

    impl Port for Contended {
        fn now(&self) -> Moment {
            self.looks.set(self.looks.get() + 1);
            Moment(self.inner.now().0 + self.lost())
        }
        fn begin(&mut self, request: crate::target::IoRequest) -> Result<(), DeviceError> {
            self.inner.begin(request)
        }
        fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
            self.inner.wait(Moment(until.0.saturating_sub(self.lost())), done)
        }
        fn method(&self) -> String {
            self.inner.method()
        }
    }

    #[test]
    fn on_a_contended_processor_it_sleeps_for_longer_and_longer() {
        let mut contended = Contended { inner: port(), looks: Cell::new(0) };
        let mut pace = Pacer::new(true);
        waits(&mut pace, &mut contended, MS / 25, 1_000_000);
        assert_eq!(pace.rest, LONGEST_REST);
        assert!(contended.inner.slept > 500_000, "{}", contended.inner.slept);
        let mut alone = Pacer::new(true);
        waits(&mut alone, &mut port(), MS / 25, 100_000);
        assert_eq!((alone.rest, alone.rests_until), (FIRST_REST, Moment::ZERO));
    }
}
