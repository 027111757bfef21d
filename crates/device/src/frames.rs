//! The allocation of a pool's memory: the bookkeeping of [`Pool`](crate::Pool), without the memory.
//!
//! ```text
//!   frame 0          frame 1                    frame 2
//!  ┌───────────────┬──┬──┬──┬──┬──┬──┬──┬──┬───────────────┐
//!  │ one buffer    │  parts of one size      │  free         │
//!  └───────────────┴──┴──┴──┴──┴──┴──┴──┴──┴───────────────┘
//! ```
//!
//! A frame is lent whole, or cut into equal parts (powers of two from 4 KiB to half a frame) until
//! the last of them is returned. Parts come from the lowest frame that has one free, so that the
//! others become whole again. Parts that are kept for long can still hold on to frames that are
//! otherwise empty, so that a buffer may not be available although as many bytes are free. A caller
//! that needs it must return other buffers first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::index;

/// A part of the memory that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameSlot {
    frame: u32,
    /// The number and size of the part; `None` for the whole frame.
    part: Option<(u32, usize)>,
}

impl FrameSlot {
    pub(crate) fn frame(self) -> u32 {
        self.frame
    }

    /// The offset from the start of the memory.
    pub(crate) fn offset(self, frame_size: usize) -> usize {
        let within = self.part.map_or(0, |(number, size)| index(number) * size);
        index(self.frame) * frame_size + within
    }
}

/// All frames of a pool.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    frame_size: usize,
    count: u32,
    /// Free frames; the last returned is on top, because its memory is warm.
    free: Vec<u32>,
    /// Free frames whose memory the kernel has again.
    returned: BTreeSet<u32>,
    /// The first frame that was never lent: the memory from here on was never touched.
    untouched: u32,
    cut: BTreeMap<u32, CutFrame>,
    /// Frames with a free part, by size of the parts. The lowest frame is used first, so that the
    /// others become whole again.
    open: BTreeMap<usize, BTreeSet<u32>>,
}

#[derive(Debug)]
struct CutFrame {
    free: Vec<u32>,
    total: usize,
}

impl Frames {
    pub(crate) fn new(frame_size: usize, count: u32) -> Self {
        Self { frame_size, count, ..Self::default() }
    }

    /// Allocates `len` bytes, 0 < `len` <= the frame.
    pub(crate) fn take(&mut self, len: usize) -> Option<FrameSlot> {
        // Two parts would not fit into a frame, so cutting it would gain nothing.
        if len.next_power_of_two() * 2 > self.frame_size {
            return self.take_frame().map(|frame| FrameSlot { frame, part: None });
        }
        let size = len.next_power_of_two().max(SMALLEST_PART);
        let frame = match self.open.get(&size).and_then(BTreeSet::first) {
            Some(frame) => *frame,
            None => self.cut_frame(size)?,
        };
        let parts = self.cut.get_mut(&frame).expect("an open frame is cut");
        let number = parts.free.pop().expect("an open frame has a free part");
        if parts.free.is_empty() {
            self.open_of(size).remove(&frame);
        }
        Some(FrameSlot { frame, part: Some((number, size)) })
    }

    /// Returns an allocation of [`Frames::take`].
    pub(crate) fn give(&mut self, place: FrameSlot) {
        let Some((number, size)) = place.part else {
            self.free.push(place.frame);
            return;
        };
        let parts = self.cut.get_mut(&place.frame).expect("a lent part is of a cut frame");
        parts.free.push(number);
        // A whole frame again can serve any size, so it does not wait for the next part of this
        // one.
        if parts.free.len() == parts.total {
            self.cut.remove(&place.frame);
            self.open_of(size).remove(&place.frame);
            self.free.push(place.frame);
        } else {
            // The set has the frame already unless all of its parts were lent.
            self.open_of(size).insert(place.frame);
        }
    }

    /// Number of frames that are lent, whole or in parts.
    pub(crate) fn lent(&self) -> u32 {
        self.resident() - u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// Number of frames that have memory: those that are lent, and free ones that were.
    pub(crate) fn resident(&self) -> u32 {
        self.untouched - u32::try_from(self.returned.len()).unwrap_or(u32::MAX)
    }

    /// Free frames that are given up so that no more than `most` frames have memory, the last ones
    /// first. The caller returns their memory to the kernel.
    pub(crate) fn give_up(&mut self, most: u32) -> Vec<u32> {
        let over = index(self.resident().saturating_sub(most)).min(self.free.len());
        if over == 0 {
            return Vec::new();
        }
        // The lowest frame is taken next.
        self.free.sort_unstable_by(|one, other| other.cmp(one));
        let given_up: Vec<u32> = self.free.drain(..over).collect();
        self.returned.extend(&given_up);
        given_up
    }

    /// Whether the kernel has the memory of none of these frames back.
    pub(crate) fn none_returned(&self, frames: Range<u32>) -> bool {
        self.returned.range(frames).next().is_none()
    }

    fn take_frame(&mut self) -> Option<u32> {
        // The lowest returned frame, so that whole stretches of memory stay returned.
        self.free.pop().or_else(|| self.returned.pop_first()).or_else(|| {
            // Only when no used frame is free: new memory costs page faults.
            let frame = (self.untouched < self.count).then_some(self.untouched)?;
            self.untouched += 1;
            Some(frame)
        })
    }

    fn cut_frame(&mut self, size: usize) -> Option<u32> {
        let frame = self.take_frame()?;
        let total = self.frame_size / size;
        let free = (0..u32::try_from(total).unwrap_or(u32::MAX)).rev().collect();
        self.cut.insert(frame, CutFrame { free, total });
        self.open_of(size).insert(frame);
        Some(frame)
    }

    fn open_of(&mut self, size: usize) -> &mut BTreeSet<u32> {
        self.open.entry(size).or_default()
    }
}

/// The smallest part, a page: the alignment of direct I/O and registered memory.
const SMALLEST_PART: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 1 << 20;

    fn offsets(places: &[FrameSlot]) -> Vec<usize> {
        places.iter().map(|p| p.offset(FRAME)).collect()
    }

    #[test]
    fn large_buffers_take_frames_and_small_ones_share() {
        let mut frames = Frames::new(FRAME, 4);
        let places: Vec<FrameSlot> =
            [FRAME, 100 << 10, 128 << 10, 4096].map(|len| frames.take(len).unwrap()).into();
        assert_eq!(offsets(&places), [0, FRAME, FRAME + (128 << 10), 2 * FRAME]);
        assert_eq!(frames.lent(), 3);
        let last = frames.take((512 << 10) + 4096).unwrap();
        assert_eq!(last.frame(), 3, "more than half takes a frame of its own");
        assert_eq!(frames.take(FRAME), None);
        assert_eq!(frames.take(64 << 10), None, "no frame is left for another size");
        assert!(frames.take(4096).is_some(), "but this size has one with room");
    }

    #[test]
    fn a_cut_frame_is_whole_again_when_its_last_part_is_returned() {
        let mut frames = Frames::new(FRAME, 1);
        let parts: Vec<FrameSlot> = (0..8).map(|_| frames.take(128 << 10).unwrap()).collect();
        assert_eq!(frames.take(128 << 10), None);
        for part in &parts[1..] {
            frames.give(*part);
            assert_eq!(frames.take(FRAME), None);
        }
        frames.give(parts[0]);
        assert_eq!(frames.lent(), 0);
        assert!(frames.take(FRAME).is_some());
    }

    #[test]
    fn buffers_of_half_a_frame_and_less_waste_nothing() {
        for len in [512 << 10, 256 << 10, 64 << 10] {
            let mut frames = Frames::new(FRAME, 3);
            let lent = std::iter::from_fn(|| frames.take(len)).count();
            assert_eq!(lent * len, 3 * FRAME);
        }
    }

    /// Compared with a simple oracle: a list of lent ranges, none of which may overlap.
    #[test]
    fn nothing_is_lent_twice_and_everything_is_returned() {
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut frames = Frames::new(FRAME, 8);
            let mut lent: Vec<(FrameSlot, usize)> = Vec::new();
            for _ in 0..2000 {
                if rng.bool() || lent.is_empty() {
                    let len = 4096 << rng.u32(0..=8);
                    let Some(place) = frames.take(len) else { continue };
                    let start = place.offset(FRAME);
                    assert!(start + len <= 8 * FRAME, "seed {seed}");
                    let overlaps = |(other, size): &(FrameSlot, usize)| {
                        let other = other.offset(FRAME);
                        start < other + size && other < start + len
                    };
                    assert!(!lent.iter().any(overlaps), "seed {seed}: {place:?} is lent already");
                    lent.push((place, len));
                } else {
                    let (place, _) = lent.swap_remove(rng.usize(0..lent.len()));
                    frames.give(place);
                }
            }
            for (place, _) in lent.drain(..) {
                frames.give(place);
            }
            assert_eq!(frames.lent(), 0, "seed {seed}");
            assert!((0..8).all(|_| frames.take(FRAME).is_some()), "seed {seed}");
        }
    }
}
