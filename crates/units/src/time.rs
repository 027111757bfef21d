//! Time: of media, of clocks, and of the schedule.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Ticks per second of a track or movie clock. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timescale(pub u32);

/// A position in a title, in nanoseconds from its start. Negative before it (priming, pre-roll).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediaTime(pub i64);

impl MediaTime {
    pub const ZERO: Self = Self(0);

    /// Converts from ticks of `scale`, rounded down so that nothing is due after its time.
    pub fn from_ticks(ticks: i64, scale: Timescale) -> Self {
        // `div_euclid` also rounds down before zero, where a division rounds up.
        let nanos = (i128::from(ticks) * 1_000_000_000).div_euclid(i128::from(scale.0));
        Self(i64::try_from(nanos).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX }))
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since the title's start; zero for anything before it.
    pub fn since_start(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl Add for MediaTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for MediaTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A moment of an engine's clock, in nanoseconds from the zero of that clock.
///
/// The clock may be a real one, the simulator's or a test's; the number alone does not tell which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(crate::nanos(time)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(crate::nanos(time)))
    }
}

/// A scheduling period, counted from the zero of the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u64);

impl SlotIndex {
    /// The slot that contains `moment`. `slot` (the period) is not zero.
    pub fn at(moment: Moment, slot: Duration) -> Self {
        Self(moment.0 / crate::nanos(slot))
    }

    /// The start of this slot.
    pub fn start(self, slot: Duration) -> Moment {
        Moment(self.0.saturating_mul(crate::nanos(slot)))
    }

    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Add<u64> for SlotIndex {
    type Output = Self;
    fn add(self, slots: u64) -> Self {
        Self(self.0.saturating_add(slots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_in_both_directions() {
        let scale = Timescale(90_000);
        assert_eq!(MediaTime::from_ticks(90_000, scale), MediaTime(1_000_000_000));
        assert_eq!(MediaTime::from_ticks(-1, scale), MediaTime(-11_112));
        assert_eq!(MediaTime::from_ticks(i64::MAX, Timescale(1)), MediaTime(i64::MAX));
    }

    #[test]
    fn slots_start_at_multiples_of_the_period() {
        let slot = Duration::from_millis(500);
        assert_eq!(SlotIndex::at(Moment::from_millis(1499), slot), SlotIndex(2));
        assert_eq!(SlotIndex(2).start(slot), Moment::from_secs(1));
        assert_eq!(Moment::from_secs(1).since(Moment::from_secs(2)), Duration::ZERO);
    }
}
