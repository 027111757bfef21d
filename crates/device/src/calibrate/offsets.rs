//! The places of calibration reads: the placements that are worst for a disk.
//!
//! ```text
//!   spread      |  |  |  |  |  |  |  |    equally spaced: the longest seeks of a sweep
//!   both ends   ||||              ||||   one long seek: where seek curves are not concave
//!   inner                      ||||||||   the slowest zone
//!   random      | ||   |   |   |||    |   as streams are placed
//! ```
//!
//! All are in order of place, as scheduled reads are. Each round is shifted a little, so that the
//! disk's own cache does not answer. Places that were never written are replaced by the nearest
//! written ones, because a file system answers for them without reading the disk.

use disk::MeasuredPart;
use std::ops::Range;
use units::ByteCount;

/// The parts of a device that can be measured.
#[derive(Clone, Debug)]
pub(super) struct ReadableArea {
    area: Range<u64>,
    /// The written ranges in order, each large enough for the largest read.
    written: Vec<Range<u64>>,
}

impl ReadableArea {
    /// The parts of `area` that are large enough; `None` if there are none.
    pub(super) fn new(area: Range<u64>, written: &[Range<u64>], largest: u64) -> Option<Self> {
        let whole = |range: &Range<u64>| {
            let start = units::align_up(range.start, ALIGNMENT);
            start..units::align_down(range.end, ALIGNMENT).max(start)
        };
        let written: Vec<_> =
            written.iter().map(whole).filter(|range| range.end - range.start >= largest).collect();
        (!written.is_empty()).then_some(Self { area, written })
    }

    /// The number of bytes that can be read.
    pub(super) fn bytes(&self) -> u64 {
        self.written.iter().map(|range| range.end - range.start).sum()
    }

    /// The part of the area that can be read.
    pub(super) fn measured(&self) -> MeasuredPart {
        let whole = ByteCount(self.area.end - self.area.start);
        MeasuredPart { bytes: ByteCount(self.bytes()), whole }
    }

    /// A remark on the parts for the user; empty if all of the area was written.
    pub(super) fn remark(&self) -> String {
        let written = self.bytes();
        let whole = self.area.end - self.area.start;
        if written + whole / 100 >= whole {
            return String::new();
        }
        let (written, whole) = (ByteCount(written), ByteCount(whole));
        format!("; only the {written} of {whole} that were ever written")
    }

    /// Returns `count` places of `size` bytes, equally spaced over a part of the area.
    pub(super) fn spread(
        &self,
        part: Range<f64>,
        count: u32,
        size: u64,
        random: &mut Random,
    ) -> Vec<u64> {
        // One shift for the whole round: the distances stay equal and the places differ from the
        // last.
        let shift = random.next();
        let step = (part.end - part.start) / f64::from(count);
        (0..count).map(|i| self.at(part.start + step * (f64::from(i) + shift), size)).collect()
    }

    /// Returns `count` random places of `size` bytes in the area, in order.
    pub(super) fn random(&self, count: u32, size: u64, random: &mut Random) -> Vec<u64> {
        let mut places: Vec<u64> = (0..count).map(|_| self.at(random.next(), size)).collect();
        places.sort_unstable();
        places
    }

    /// Returns up to `count` consecutive places of `size` bytes, at about a share `part` of the
    /// area; fewer at its end.
    pub(super) fn run(&self, part: f64, count: u32, size: u64) -> Vec<u64> {
        let wanted = self.at(part, size);
        let before = self.written.iter().rfind(|range| range.start <= wanted);
        let range = before.expect("a place lies in a written part");
        let count = u64::from(count).min((range.end - range.start) / size);
        let start = wanted.min(range.end - count * size);
        (0..count).map(|i| start + i * size).collect()
    }

    /// Returns up to `count` consecutive offsets of `size` bytes, beginning at the written place
    /// nearest to `place`.
    pub(super) fn run_at(&self, place: u64, count: u32, size: u64) -> Vec<u64> {
        let room = self.area.end - self.area.start - size;
        #[expect(clippy::cast_precision_loss, reason = "about there")]
        let part = place.saturating_sub(self.area.start) as f64 / room.max(1) as f64;
        self.run(part.min(1.0), count, size)
    }

    /// The end of the area.
    pub(super) fn end(&self) -> u64 {
        self.area.end
    }

    /// The written place of `size` bytes that is nearest to a share (0 to 1) of the area.
    pub(super) fn at(&self, part: f64, size: u64) -> u64 {
        let room = self.area.end - self.area.start - size;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a size; which block exactly does not matter"
        )]
        let exact = self.area.start + ((room as f64 * part) as u64).min(room);
        let wanted = units::align_down(exact, ALIGNMENT);
        let nearest = |range: &Range<u64>| wanted.clamp(range.start, range.end - size);
        let next = self.written.partition_point(|range| range.start <= wanted);
        let before = next.checked_sub(1).map(|i| nearest(&self.written[i]));
        let after = self.written.get(next).map(nearest);
        let both = before.into_iter().chain(after);
        both.min_by_key(|place| place.abs_diff(wanted)).expect("there is a written part")
    }
}

/// Random numbers from 0 to 1, determined by the seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let upper = u32::try_from((z ^ (z >> 31)) >> 32).expect("32 bits");
        f64::from(upper) / f64::from(u32::MAX)
    }
}

/// The alignment of offsets: the largest block of any disk, in bytes.
const ALIGNMENT: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn places_are_in_order_and_within_written_parts() {
        let written = [MIB..3 * MIB, 40 * MIB..41 * MIB + 100, 60 * MIB..100 * MIB];
        for largest in [4096, 2 * MIB] {
            let places = ReadableArea::new(0..100 * MIB, &written, largest).unwrap();
            let random = &mut Random::new(5);
            for size in [4096, largest] {
                for places in [
                    places.spread(0.0..1.0, 50, size, random),
                    places.spread(0.9..1.0, 3, size, random),
                    places.random(50, size, random),
                    places.run(0.99, 50, size),
                ] {
                    assert!(places.is_sorted());
                    for place in places {
                        let holds =
                            |range: &&Range<u64>| range.start <= place && place + size <= range.end;
                        assert!(written.iter().any(|range| holds(&range)), "{size} at {place}");
                        assert_eq!(place % ALIGNMENT, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn a_device_wholly_written_is_read_all_over() {
        let whole = 0..64 * MIB;
        let places = ReadableArea::new(whole.clone(), std::slice::from_ref(&whole), MIB).unwrap();
        assert_eq!(places.remark(), "");
        let random = &mut Random::new(1);
        let spread = places.spread(0.0..1.0, 8, MIB, random);
        let gaps: Vec<u64> = spread.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|gap| gap.abs_diff(63 * MIB / 8) <= ALIGNMENT), "{gaps:?}");
        assert_ne!(spread, places.spread(0.0..1.0, 8, MIB, random), "shifted every round");
        assert_eq!(places.run(1.0, 2, MIB), [62 * MIB, 63 * MIB]);
    }

    #[test]
    fn unwritten_parts_are_remarked() {
        let written = 0..16 * MIB;
        let places = ReadableArea::new(0..64 * MIB, std::slice::from_ref(&written), MIB).unwrap();
        assert_eq!(places.remark(), "; only the 16 MiB of 64 MiB that were ever written");
        let crumb = 0..MIB / 2;
        assert!(ReadableArea::new(0..64 * MIB, std::slice::from_ref(&crumb), MIB).is_none());
    }
}
