//! Disks of an array, and where the bytes of a volume lie on them.
//!
//! They are not `device::SimulatedDisk`, because the node computes the end of each request when it
//! is made, at arrival times that it names itself: there is no clock to wait for, and no byte.
//!
//! ```text
//!   stripe 0 (group 0)   │ unit 0 │ unit 1 │ unit 2 │ unit 3 │ parity │
//!   stripe 1 (group 1)   │ unit 4 │ ...
//!   stripe 2 (group 0)   │ parity │ unit 8 │ unit 9 │ ...              turned by one each row
//! ```
//!
//! A read makes one request to each disk for all bytes that are contiguous on it. A write of a
//! whole stripe writes the stripe with its parity; a write of a part first reads the bytes that it
//! changes and the parity. Disks serve requests in FIFO order. No disk fails, and nothing is
//! computed from parity.

use disk::{DiskModel, Head};
use std::ops::Range;
use units::Moment;

/// How an array is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Raid {
    /// Groups, each with parity of its own.
    pub(super) groups: u64,
    /// Disks' worth of data in a group.
    pub(super) data: u64,
    /// Disks' worth of parity in a group.
    pub(super) parity: u64,
    /// Bytes that lie together on a disk.
    pub(super) unit: u64,
}

pub(super) struct Array {
    raid: Raid,
    heads: Vec<Head>,
}

impl Raid {
    /// Bytes of data in a stripe.
    pub(super) fn stripe(&self) -> u64 {
        self.data * self.unit
    }

    fn width(&self) -> u64 {
        self.data + self.parity
    }
}

impl Array {
    pub(super) fn new(raid: Raid, disk: &DiskModel) -> Self {
        let count = raid.groups * raid.width();
        Self { raid, heads: (0..count).map(|_| disk.head()).collect() }
    }

    /// Bytes of data that fit.
    pub(super) fn capacity(&self) -> u64 {
        let rows = self.heads[0].model().capacity().0 / self.raid.unit;
        rows * self.raid.groups * self.raid.stripe()
    }

    /// When all of it is there.
    pub(super) fn read(&mut self, now: Moment, range: Range<u64>) -> Moment {
        let mut runs = vec![None; self.heads.len()];
        self.units(&range, &mut |head, place| join(&mut runs[head], place));
        self.serve(now, &runs, false)
    }

    /// When all of it is on the disks.
    pub(super) fn write(&mut self, now: Moment, range: Range<u64>) -> Moment {
        let stripe = self.raid.stripe();
        // Only the parity of a whole stripe is known without reading old bytes.
        let whole = range.start.next_multiple_of(stripe)..range.end / stripe * stripe;
        if whole.is_empty() {
            return self.change(now, range);
        }
        let mut runs = vec![None; self.heads.len()];
        self.units(&whole, &mut |head, place| join(&mut runs[head], place));
        for number in whole.start / stripe..whole.end / stripe {
            self.parity(number, &mut |head, place| join(&mut runs[head], place));
        }
        let done = self.serve(now, &runs, true);
        let before = self.change(now, range.start..whole.start);
        done.max(before).max(self.change(now, whole.end..range.end))
    }

    /// Parts of stripes: read with the parity, and written again.
    fn change(&mut self, now: Moment, range: Range<u64>) -> Moment {
        if range.is_empty() {
            return now;
        }
        let stripe = self.raid.stripe();
        let mut runs = vec![None; self.heads.len()];
        self.units(&range, &mut |head, place| join(&mut runs[head], place));
        for number in range.start / stripe..range.end.div_ceil(stripe) {
            self.parity(number, &mut |head, place| join(&mut runs[head], place));
        }
        let old = self.serve(now, &runs, false);
        // Each disk goes on by itself: what it read is in memory until the rest is there.
        old.max(self.serve(now, &runs, true))
    }

    fn serve(&mut self, now: Moment, runs: &[Option<Range<u64>>], write: bool) -> Moment {
        let asked = self.heads.iter_mut().zip(runs);
        let served = asked.filter_map(|(head, run)| {
            let run = run.as_ref()?;
            Some(head.serve(now, run.start, run.end - run.start, write).finish)
        });
        served.max().unwrap_or(now)
    }

    /// Each part of the range that lies on one disk, with its place there.
    fn units(&self, range: &Range<u64>, each: &mut dyn FnMut(usize, Range<u64>)) {
        let Raid { groups, data, unit, .. } = self.raid;
        let mut at = range.start;
        while at < range.end {
            let number = at / unit;
            let len = ((number + 1) * unit).min(range.end) - at;
            let (stripe, column) = (number / data, number % data);
            let (row, from) = (stripe / groups, stripe / groups * unit + at % unit);
            each(self.head(stripe % groups, row + column), from..from + len);
            at += len;
        }
    }

    fn parity(&self, stripe: u64, each: &mut dyn FnMut(usize, Range<u64>)) {
        let Raid { groups, data, parity, unit } = self.raid;
        let row = stripe / groups;
        for column in data..data + parity {
            each(self.head(stripe % groups, row + column), row * unit..(row + 1) * unit);
        }
    }

    fn head(&self, group: u64, turned: u64) -> usize {
        let width = self.raid.width();
        usize::try_from(group * width + turned % width).expect("a few disks")
    }
}

/// What lies between two parts is read, or written, with them.
fn join(run: &mut Option<Range<u64>>, place: Range<u64>) {
    *run = Some(match run.take() {
        None => place,
        Some(run) => run.start.min(place.start)..run.end.max(place.end),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAID: Raid = Raid { groups: 2, data: 4, parity: 1, unit: 65_536 };

    fn array() -> Array {
        Array::new(RAID, &DiskModel::preset("st318406lw").unwrap())
    }

    #[test]
    fn every_unit_has_a_place_of_its_own() {
        let array = array();
        let mut places = Vec::new();
        array.units(&(0..40 * RAID.stripe()), &mut |head, place| places.push((head, place.start)));
        for stripe in 0..40 {
            array.parity(stripe, &mut |head, place| places.push((head, place.start)));
        }
        let count = places.len();
        assert_eq!(count, 40 * 5);
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), count);
        assert!(places.iter().all(|(head, place)| *head < 10 && *place < 20 * 65_536));
    }

    #[test]
    fn changing_a_part_of_a_stripe_takes_a_turn_more_than_writing_all_of_it() {
        let revolution = DiskModel::preset("st318406lw").unwrap().revolution();
        let took = |range| array().write(Moment::ZERO, range).since(Moment::ZERO);
        let (whole, part) = (took(0..RAID.stripe()), took(0..RAID.unit));
        assert!(part > whole && part - whole > revolution / 2, "{whole:?} {part:?}");
    }
}
