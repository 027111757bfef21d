//! Distinguishes a thread that the kernel put to sleep from one that worked or waited for a
//! processor.
//!
//! The kernel counts both for each thread (`schedstat`: nanoseconds on a processor, and nanoseconds
//! ready to run without one). In the rest of a time span the thread was asleep. Reading the counts
//! is expensive compared with an operation, so they are read every few milliseconds, and all that
//! was counted since the last reading is attributed to the span in question: the result is never
//! too long.

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
    /// Reads the counts; to be called every few milliseconds.
    pub(super) fn look(&mut self, now: Moment) {
        if self.awake.is_none() || now.since(self.read_at) >= EVERY {
            (self.read_at, self.awake) = (now, awake());
        }
    }

    /// A lower bound of the time that this thread was asleep in a span that has just ended.
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

/// The time on a processor, or ready without one, since this thread began.
fn awake() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
    // A kernel without these statistics reports zero.
    (ran > 0).then(|| Duration::from_nanos(ran + waited))
}

/// The interval between readings, the same as that of the streams' own looks.
const EVERY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn sleep_is_distinguished_from_work() {
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
