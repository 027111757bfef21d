//! Recordings: what has come and is not on the disk, for how long, and what became of each byte.
//!
//! ```text
//!   input     ├─ round ─┼─ round ─┼─ round ─┤            bytes come all the time
//!   written   ├─────────┤ at the end of a write: durable
//!   waiting             ├───────────────────┤ a power cut takes it
//! ```
//!
//! Written from outside the engine. While the disk keeps its guarantee, a round is on the disk
//! [`Keeping::longest`] after it was due, so that a buffer of [`Keeping::room`] is never full.
//! Where the disk does not, what comes while the buffer is full is dropped, as from a camera.

use std::collections::VecDeque;
use std::time::Duration;
use units::{ByteCount, Moment};

/// What a recording is guaranteed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// The time from one round to the next.
    pub(crate) period: Duration,
    /// The bytes of a round at the rate that was admitted.
    pub(crate) round: ByteCount,
    /// The scheduling period.
    pub(crate) slot: Duration,
}

impl Keeping {
    /// The longest time from when a round is due until it is on the disk: that in which its tokens
    /// come, that of the write in front of it, and what the device is at.
    pub(crate) fn longest(&self) -> Duration {
        self.period * MOST_PERIODS + self.slot * MOST_SLOTS
    }

    /// The bytes that come in that time and in the period before it.
    pub(crate) fn room(&self) -> u64 {
        let periods = (self.longest() + self.period).as_nanos().div_ceil(self.period.as_nanos());
        self.round.0.saturating_mul(u64::try_from(periods).unwrap_or(u64::MAX))
    }
}

/// The bytes of one recording.
#[derive(Debug, Default)]
pub(crate) struct RecordedBytes {
    /// Rounds that are not on the disk, oldest first: when each was due, and its bytes.
    waiting: VecDeque<(Moment, u64)>,
    /// Bytes that have come.
    came: u64,
    /// Bytes that are on the disk.
    pub(crate) written: u64,
    /// Bytes that came while the buffer was full, or whose write failed.
    pub(crate) dropped: u64,
}

impl RecordedBytes {
    /// A round is due. Returns whether it had room.
    pub(crate) fn comes(&mut self, now: Moment, bytes: u64, keeping: &Keeping) -> bool {
        self.came += bytes;
        let has_room = self.waiting_bytes() + bytes <= keeping.room();
        match has_room {
            true => self.waiting.push_back((now, bytes)),
            false => self.dropped += bytes,
        }
        has_room
    }

    /// The oldest round has been written, or its write has failed. Returns when it was due.
    pub(crate) fn written(&mut self, is_good: bool) -> Option<Moment> {
        let (due, bytes) = self.waiting.pop_front()?;
        *if is_good { &mut self.written } else { &mut self.dropped } += bytes;
        Some(due)
    }

    /// Whether a round waits.
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The bytes of the oldest round that waits.
    pub(crate) fn next(&self) -> u64 {
        self.waiting.front().map_or(0, |(_, bytes)| *bytes)
    }

    /// For how long the oldest byte that is not on the disk has been there at most: what a power
    /// cut takes. `last_due`: when the last round was due, or the recording began.
    pub(crate) fn at_risk(&self, now: Moment, last_due: Moment, keeping: &Keeping) -> Duration {
        let oldest = self.waiting.front().map(|(due, _)| now.since(*due) + keeping.period);
        oldest.unwrap_or_else(|| now.since(last_due))
    }

    /// Whether each byte that has come waits, is on the disk or was dropped.
    pub(crate) fn balances(&self) -> bool {
        self.came == self.waiting_bytes() + self.written + self.dropped
    }

    fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().map(|(_, bytes)| bytes).sum()
    }
}

const MOST_PERIODS: u32 = 3;
const MOST_SLOTS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_waits_is_written_or_was_dropped() {
        let (period, slot) = (Duration::from_millis(400), Duration::from_millis(500));
        let keeping = Keeping { period, round: ByteCount(100), slot };
        assert_eq!((keeping.longest(), keeping.room()), (Duration::from_millis(2200), 700));
        let at = |ms: u64| Moment(ms * 1_000_000);
        let mut bytes = RecordedBytes::default();
        assert_eq!(bytes.at_risk(at(100), at(0), &keeping), Duration::from_millis(100));
        let had_room: Vec<bool> =
            (1..=8).map(|round| bytes.comes(at(400 * round), 100, &keeping)).collect();
        assert_eq!(had_room, [true, true, true, true, true, true, true, false]);
        assert_eq!(bytes.at_risk(at(3200), at(3200), &keeping), Duration::from_millis(3200));
        assert_eq!(bytes.written(true), Some(at(400)));
        assert_eq!(bytes.written(false), Some(at(800)));
        assert_eq!((bytes.written, bytes.dropped, bytes.balances()), (100, 200, true));
        assert_eq!(bytes.at_risk(at(3200), at(3200), &keeping), Duration::from_millis(2400));
    }
}
