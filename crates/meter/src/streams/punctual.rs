//! The part of a frame's wait for room that the meter's own lateness caused.
//!
//! A client with a full buffer has room again when one of its operations is complete. After a delay
//! of the meter that need not be the operation that would have been the first one otherwise:
//!
//! ```text
//!   punctual      ├── A ──┤ room                 late by the meter        ├── A ──┤
//!                   ├────── B ──────┤            both begin at once       ├─────── B ...
//!   issued late,     B quick, A slow: the room comes from B, and what B was late is not
//!   together         what A was late, which would have made room first
//! ```
//!
//! After a notable delay [`PunctualRoom`] keeps, for one stream, when its operations would have
//! completed if the meter had been punctual, and finds when there would have been room.

use super::issuer::IssuedRead;
use units::{Moment, index};

/// The operations of one stream since a delay of the meter.
#[derive(Debug)]
pub(super) struct PunctualRoom {
    /// The number of operations that fill the client's buffer.
    buffer: usize,
    /// The latest ends that there would have been, with the frames: enough of them for each frame.
    ends: Vec<(u64, u64)>,
    /// Operations in flight: their frames, and the meter's part of their starts.
    in_flight: Vec<(u64, u64)>,
    /// Completions without a notable delay since the last one with it.
    calm: usize,
}

impl PunctualRoom {
    /// Follows a stream with these operations in flight, given by frame and by the meter's part.
    pub(super) fn new(buffer: u32, in_flight: impl Iterator<Item = (u64, u64)>) -> Self {
        let buffer = index(buffer);
        Self { buffer, ends: Vec::new(), in_flight: in_flight.collect(), calm: 0 }
    }

    /// Takes an operation that was requested.
    pub(super) fn issued(&mut self, frame: u64, inherited: u64) {
        self.in_flight.push((frame, inherited));
    }

    /// Takes an operation that completed at `at`, noticed up to `overslept` nanoseconds late, and
    /// returns the meter's part of its start.
    pub(super) fn arrived(&mut self, asked: &IssuedRead, at: Moment, overslept: u64) -> u64 {
        let IssuedRead { frame, intended, start, inherited, .. } = *asked;
        self.in_flight.retain(|(other, _)| *other != frame);
        let inherited = match self.room_for(frame, at) {
            Some(room) => inherited.max(start.0.saturating_sub(intended.0.max(room))),
            None => inherited,
        };
        let end = at.0.saturating_sub(overslept).max(start.0).saturating_sub(inherited);
        self.ends.push((end, frame));
        if self.ends.len() > 2 * self.buffer {
            // A frame needs the latest ends of the frames before, and few of those after it.
            let earliest = (0..self.ends.len()).min_by_key(|at| self.ends[*at]);
            self.ends.swap_remove(earliest.expect("it has ends"));
        }
        inherited
    }

    /// When there would have been room for a frame, as far as is known at `now`. `None` with too
    /// few frames before it to tell.
    fn room_for(&self, frame: u64, now: Moment) -> Option<u64> {
        let ended = self.ends.iter().filter(|(_, other)| *other < frame).map(|(end, _)| *end);
        // Those in flight have not ended yet, and would have ended sooner by their part at most.
        let before = self.in_flight.iter().filter(|(other, _)| *other < frame);
        let running = before.map(|(_, inherited)| now.0.saturating_sub(*inherited));
        let mut ends: Vec<u64> = ended.chain(running).collect();
        // All but `buffer` - 1 of the frames before have to be complete.
        let place = ends.len().checked_sub(self.buffer)?;
        Some(*ends.select_nth_unstable(place).1)
    }

    /// Counts a completion with or without a notable delay. True when no trace of a delay is left.
    pub(super) fn is_over(&mut self, notable: bool) -> bool {
        self.calm = if notable { 0 } else { self.calm + 1 };
        self.calm > 2 * self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Ask;
    use super::*;
    use crate::log::OperationKind;

    /// An operation of a meter that was late by `inherited` with it.
    fn asked(frame: u64, intended: u64, start: u64, inherited: u64) -> IssuedRead {
        let ask = Ask { kind: OperationKind::Read, random: false, file: 0, offset: 0 };
        let (intended, start) = (Moment(intended), Moment(start));
        IssuedRead { stream: 0, frame, ask, intended, start, own: 0, inherited }
    }

    /// Frames 0 and 1 were due at 800 and 900, and begun at 1,000; frame 1 was complete first, and
    /// made room for frame 2. Of a punctual meter frame 0 would have been complete first, at 950.
    #[test]
    fn room_comes_from_the_operation_that_would_have_been_the_first() {
        let mut room = PunctualRoom::new(2, [(0, 200)].into_iter());
        assert_eq!(room.arrived(&asked(1, 900, 1000, 100), Moment(1100), 0), 100);
        room.issued(2, 100);
        assert_eq!(room.arrived(&asked(0, 800, 1000, 200), Moment(1150), 0), 200);
        assert_eq!(room.arrived(&asked(2, 920, 1100, 100), Moment(1200), 0), 150);
    }

    /// The storage holds frame 0, so that frame 2 has no room before frame 1 is complete.
    #[test]
    fn the_storage_s_part_of_a_wait_stays_the_storage_s() {
        let mut room = PunctualRoom::new(2, [(0, 10)].into_iter());
        assert_eq!(room.arrived(&asked(1, 900, 910, 10), Moment(1110), 0), 10);
        room.issued(2, 10);
        assert_eq!(room.arrived(&asked(2, 940, 1110, 10), Moment(1200), 0), 10);
        assert!((0..4).all(|_| !room.is_over(false)) && room.is_over(false));
    }
}
