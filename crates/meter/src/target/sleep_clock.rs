//! Tells a thread that the kernel kept asleep from one that worked, or waited for a processor.
//!
//! The kernel counts both for each thread (`schedstat`: nanoseconds on a processor, and nanoseconds
//! ready to run without one). What of a time is neither the thread was asleep. Reading the counts
//! is dear beside an operation, so they are read every few milliseconds, and what was counted since
//! is taken to lie in the time that is asked about: what is said is never too long.

use std::time::Duration;
use units::Moment;

/// The time for which the kernel blocked the issuing thread while it queued operations.
#[derive(Debug, Default)]
pub(super) struct SleepClock {
    read_at: Moment,
    /// `None` where the kernel does not count.
    awake: Option<Duration>,
}

impl SleepClock {
    /// To be called now and then.
    pub(super) fn look(&mut self, now: Moment) {
        if self.awake.is_none() || now.since(self.read_at) >= EVERY {
            (self.read_at, self.awake) = (now, awake());
        }
    }

    /// At least so much of this time, which has just ended, this thread was asleep.
    pub(super) fn through(&mut self, from: Moment, until: Moment) -> Duration {
        let before = self.awake;
        (self.read_at, self.awake) = (until, awake());
        match (before, self.awake) {
            (Some(before), Some(after)) => {
                until.since(from).saturating_sub(after.saturating_sub(before))
            }
            _ => Duration::ZERO,
        }
    }
}

/// On a processor, or ready and without one, since this thread began.
fn awake() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
    // A kernel without these statistics reports zero.
    (ran > 0).then(|| Duration::from_nanos(ran + waited))
}

/// As often as the streams look around in any case.
const EVERY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn sleep_is_told_from_work() {
        if awake().is_none() {
            return;
        }
        let origin = Instant::now();
        let now = || Moment::ZERO + origin.elapsed();
        let mut asleep = SleepClock::default();
        let mut through = |what: &dyn Fn()| {
            asleep.look(now());
            let from = now();
            what();
            let until = now();
            (asleep.through(from, until), until.since(from))
        };
        let (slept, _) = through(&|| std::thread::sleep(Duration::from_millis(20)));
        assert!(slept >= Duration::from_millis(10), "{slept:?}");
        let begun = awake().unwrap_or_default();
        let worked = || awake().unwrap_or_default().saturating_sub(begun);
        let (slept, took) = through(&|| while worked() < Duration::from_millis(30) {});
        assert!(slept + Duration::from_millis(20) <= took, "{slept:?} of {took:?}");
    }
}
