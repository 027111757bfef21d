//! What reads cost at most, in nanoseconds of one disk: the unit in which admission by disk time
//! books.
//!
//! ```text
//!   a sweep of n reads  ≤  Σ transfer(place, length)  exact to the zone, added up read by read
//!                        + positioning(n)             whatever the places and wherever the head is
//! ```
//!
//! A sweep begins with the end of its reads that is nearer to the head. Then the head either starts
//! outside of them and crosses at most the whole stroke in n movements, or inside and comes to the
//! nearer end in a movement of at most half a stroke before it crosses it in n - 1. With `h` the
//! concave bound of the seek curve, and a whole revolution and an overhead for each read:
//!
//! ```text
//!   positioning(n) = n × (overhead + revolution) + max( n h(1/n), h(1/2) + (n-1) h(1/(n-1)) )
//! ```
//!
//! It never falls and is subadditive, positioning(a + b) ≤ positioning(a) + positioning(b): two
//! sweeps made into one never take longer. Admission's proof stands on both properties.
//!
//! Reads that lie one behind the other and are given to the disk in that order, at once, are one
//! *visit*: the platter has not gone on without them, because the disk reads ahead while it takes
//! the next command. Then n is the number of visits, and each read that goes on where the last one
//! ended costs its transfer and
//!
//! ```text
//!   following = overhead + h'(step back) × (stroke that a read covers)
//! ```
//!
//! where the second part is for the head's way back over a longer visit: h is concave, so nowhere
//! steeper than at the shortest movement that is charged.
//!
//! Only reads whose transfer is at least what one visit more costs a sweep may be taken for going
//! on ([`Costs::shortest_following`]): so a sweep that a read is taken out of, in the middle of a
//! visit, is never dearer for it.
//!
//! A disk whose actuator was fitted to timed reads is charged as the model that they make
//! ([`Calibration::model`]), its read ahead excepted: of that nothing is known, but what a read
//! that goes on took at most was timed, with the next read in the device already
//! ([`Actuator::following`](crate::Actuator::following)). That takes the place of the overhead
//! above, where two reads are in the device at once. One whose actuator was not measured is charged
//! the measured rate of the zone, for each read alike what the worst placement tried cost beyond
//! transfer, and once a sweep what the longest read took beyond that: calibration speaks of slots
//! full of reads, not of a few.
//!
//! ```text
//!   positioning(n) = (longest - slot/minRead) + n × (slot/minRead - transfer in the slowest zone)
//! ```

use crate::model::{Chips, Kind};
use crate::platters::Platters;
use crate::{Calibration, DiskModel};
use units::{BitRate, ByteCount, float, nanos, rounded};

/// Upper bounds, in nanoseconds, of what sweeps of reads take on one disk: positioning by the
/// number of reads, and transfer by place.
#[derive(Clone, PartialEq)]
pub struct Costs {
    transfer: Transfer,
    /// Positioning of a sweep, by its number of reads; a longer row of reads is several sweeps.
    positioning: Vec<u64>,
    /// For any number of reads but none: not above the first plus so many times the second.
    line: (u64, u64),
    /// What a sequential read costs beside its transfer, and the shortest transfer of a read that
    /// counts as one.
    following: Option<(u64, u64)>,
    /// Reads in the device at once for which this holds.
    depth: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Transfer {
    Model(DiskModel),
    Measured(Measured),
}

#[derive(Clone, Debug, PartialEq)]
struct Measured {
    /// (offset, nanoseconds a byte), lowest offset first, from offset zero on.
    zones: Vec<(u64, f64)>,
    end: u64,
}

impl Costs {
    /// Costs of a disk exactly as modelled, for reads of at most `largest`, `depth` of them in the
    /// device at once.
    pub fn of_model(model: &DiskModel, largest: ByteCount, depth: u32) -> Self {
        let positioning = |reads| match &model.kind {
            Kind::Spinning(platters) => platters.positioning(largest.0, reads),
            Kind::Flash(chips) => chips.positioning(reads, depth.max(1)),
        };
        let table = (0..=MOST_IN_A_SWEEP).map(|reads| rounded(positioning(reads).ceil()));
        let costs = Self::new(Transfer::Model(model.clone()), table.collect(), depth);
        let Kind::Spinning(platters) = &model.kind else { return costs };
        costs.with_following(platters.following(largest.0))
    }

    // A read that goes on costs so much beside transfer, if that is less than a visit.
    fn with_following(self, nanos: Option<f64>) -> Self {
        let more = self.positioning.windows(2).map(|n| n[1] - n[0]).skip(1).max().unwrap_or(0);
        let following = nanos.map(|nanos| (rounded(nanos.ceil()), more));
        Self { following: following.filter(|(nanos, more)| nanos < more), ..self }
    }

    fn new(transfer: Transfer, positioning: Vec<u64>, depth: u32) -> Self {
        let each = positioning.last().copied().unwrap_or(0).div_ceil(MOST_IN_A_SWEEP);
        let beyond = |(reads, nanos): (u64, &u64)| nanos.saturating_sub(reads.saturating_mul(each));
        let once = (0..).zip(&positioning).map(beyond).max().unwrap_or(0);
        Self { transfer, positioning, line: (once, each), following: None, depth }
    }

    /// Costs of a disk as measured, for reads of at most `largest`. `None` where the record says
    /// too little: no zones, no guarantee that covers such reads, or none at all.
    pub fn of_calibration(calibration: &Calibration, largest: ByteCount) -> Option<Self> {
        let guarantee = calibration.guarantee_for(largest).filter(|g| g.min_read > 0)?;
        if let Some(model) = calibration.model() {
            let depth = calibration.queue_depth;
            let costs = Self::of_model(&model, largest, depth);
            let (Some(arm), Kind::Spinning(platters)) = (&calibration.actuator, &model.kind) else {
                return Some(costs);
            };
            let measured = arm.following.filter(|_| depth >= 2);
            let way_back = || platters.way_back(largest.0) + ROUNDING;
            let each = measured.map(|time| float(nanos(time)) + way_back());
            return Some(costs.with_following(each));
        }
        let mut zones: Vec<(u64, f64)> = Vec::with_capacity(calibration.zones.len());
        for (offset, rate) in &calibration.zones {
            let from = if zones.is_empty() { 0 } else { offset.0 };
            zones.push((from, per_byte(*rate)?));
        }
        let slowest = zones.iter().map(|(_, per_byte)| *per_byte).fold(0.0, f64::max);
        let each = float(nanos(calibration.slot)) / f64::from(guarantee.min_read);
        let transfer = float(guarantee.read_size.0) * slowest;
        // Where the zones say that the reads alone took longer than they did, zones are what is
        // wrong: then a read costs no less than its share of the slot.
        if zones.is_empty() || transfer > each {
            return None;
        }
        let position = (each - transfer).ceil();
        let once = (float(nanos(guarantee.longest_read)) - each).max(0.0).ceil();
        let positioning = |n| if n == 0 { 0 } else { rounded(once + float(n) * position) };
        let sorted = zones.is_sorted_by(|a, b| a.0 < b.0);
        let table = || (0..=MOST_IN_A_SWEEP).map(positioning).collect();
        let transfer = Transfer::Measured(Measured { zones, end: u64::MAX });
        sorted.then(|| Self::new(transfer, table(), calibration.queue_depth))
    }

    /// Nanoseconds from the first byte to the last of a read that lies here. What lies beyond the
    /// disk's end is charged as what lies before it.
    pub fn transfer(&self, offset: u64, len: u64) -> u64 {
        rounded(match &self.transfer {
            Transfer::Model(model) => model.transfer_bound(offset, len),
            Transfer::Measured(measured) => measured.transfer(offset, len),
        })
    }

    /// Nanoseconds that the transfer of `len` bytes takes at most, wherever they lie.
    pub fn slowest_transfer(&self, len: u64) -> u64 {
        rounded(match &self.transfer {
            Transfer::Model(model) => model.slowest_transfer(len),
            Transfer::Measured(measured) => {
                let slowest = measured.zones.iter().map(|(_, per_byte)| *per_byte);
                (float(len) * slowest.fold(0.0, f64::max)).ceil() + 1.0
            }
        })
    }

    /// Nanoseconds that a sweep of so many reads takes beside transfer, wherever the head was.
    #[inline]
    pub fn positioning(&self, reads: u64) -> u64 {
        match usize::try_from(reads) {
            Ok(n) if n < self.positioning.len() => self.positioning[n],
            _ => self.of_many(reads),
        }
    }

    #[cold]
    fn of_many(&self, reads: u64) -> u64 {
        let (sweeps, rest) = (reads / MOST_IN_A_SWEEP, reads % MOST_IN_A_SWEEP);
        sweeps.saturating_mul(self.of_most()).saturating_add(self.positioning(rest))
    }

    /// Nanoseconds that so many sweeps with so many reads in all take at most beside transfer,
    /// however the reads are shared out among them: a straight line above
    /// [`Costs::positioning`], for who wants no more than to see that there is time enough.
    #[inline]
    pub fn positioning_of_sweeps(&self, sweeps: u64, reads: u64) -> u64 {
        let (once, each) = self.line;
        sweeps.saturating_mul(once).saturating_add(reads.saturating_mul(each))
    }

    /// Nanoseconds of a sweep of so many reads with so much transfer.
    #[inline]
    pub fn batch(&self, reads: u64, transfer: u64) -> u64 {
        self.positioning(reads).saturating_add(transfer)
    }

    /// Nanoseconds of a sweep of so many reads with so much transfer, of which so many go on where
    /// the last one ended.
    #[inline]
    pub fn sweep(&self, reads: u64, following: u64, transfer: u64) -> u64 {
        let (each, _) = self.following.unwrap_or_default();
        let following = if self.following.is_some() { following.min(reads) } else { 0 };
        self.batch(reads - following, transfer).saturating_add(following.saturating_mul(each))
    }

    /// The least transfer of two reads, in nanoseconds, of which the second may be taken for going
    /// on where the first ended; `None` if none may.
    pub fn shortest_following(&self) -> Option<u64> {
        self.following.map(|(_, shortest)| shortest)
    }

    /// Where a byte lies, as a part of the stroke: 0 first, 1 last. Zero where there is no
    /// actuator, or nothing is known of it.
    pub fn place(&self, offset: u64) -> f64 {
        match &self.transfer {
            Transfer::Model(model) => model.stroke_part(offset),
            Transfer::Measured(_) => 0.0,
        }
    }

    /// Reads to have in the device at once.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    fn of_most(&self) -> u64 {
        self.positioning.last().copied().unwrap_or(0)
    }
}

impl std::fmt::Debug for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = match &self.transfer {
            Transfer::Model(model) => model.name(),
            Transfer::Measured(_) => "measured",
        };
        write!(f, "Costs({of}, {} ns for one read)", self.positioning(1))
    }
}

impl Measured {
    fn transfer(&self, offset: u64, len: u64) -> f64 {
        let end = offset.saturating_add(len).min(self.end);
        let after = self.zones.partition_point(|(from, _)| *from <= offset);
        let (mut nanos, mut from) = (0.0, offset);
        for at in after.saturating_sub(1)..self.zones.len() {
            let until = self.zones.get(at + 1).map_or(end, |next| next.0.min(end));
            nanos += float(until.saturating_sub(from)) * self.zones[at].1;
            from = until.max(from);
        }
        nanos.ceil() + 1.0
    }
}

impl DiskModel {
    fn transfer_bound(&self, offset: u64, len: u64) -> f64 {
        match &self.kind {
            Kind::Spinning(p) => {
                let end = offset.saturating_add(len).min(p.capacity);
                let from = offset.min(end).min(p.capacity.saturating_sub(len));
                (p.streamed(end) - p.streamed(from)).max(float(len) * p.bus_per_byte).ceil() + 1.0
            }
            Kind::Flash(chips) => (float(len) * chips.read_per_byte).ceil() + 1.0,
        }
    }

    fn slowest_transfer(&self, len: u64) -> f64 {
        match &self.kind {
            Kind::Spinning(p) => {
                let per_byte = p.slowest_per_byte().max(p.bus_per_byte);
                (float(len) * per_byte + p.cylinder_switch).ceil() + 1.0
            }
            Kind::Flash(chips) => (float(len) * chips.read_per_byte).ceil() + 1.0,
        }
    }

    fn stroke_part(&self, offset: u64) -> f64 {
        match &self.kind {
            Kind::Spinning(p) => p.place(p.streamed(offset.min(p.capacity))),
            Kind::Flash(_) => 0.0,
        }
    }
}

impl Platters {
    fn positioning(&self, size: u64, reads: u64) -> f64 {
        if reads == 0 {
            return 0.0;
        }
        let n = float(reads);
        // Where reads overlap or the disk reads on, the head may have to step back by as much; and
        // inwards, over reads that lie one behind the other and are read in that order.
        let step_back = self.widest((size * 2).saturating_add(self.read_ahead));
        let hull = |moves: f64, stroke: f64| moves * self.seek.bound(stroke / moves + step_back);
        let inside = if reads == 1 { 0.0 } else { hull(1.0, 0.5) + hull(n - 1.0, 1.0) };
        n * (float(self.overhead + self.revolution) + ROUNDING) + hull(n, 1.0).max(inside)
    }

    /// Nanoseconds that a sequential read costs beside its transfer, if the disk reads ahead for
    /// long enough while it takes the next command.
    fn following(&self, size: u64) -> Option<f64> {
        let reads_on = float(self.read_ahead) * self.quickest_per_byte();
        (self.read_ahead > 0 && reads_on >= READS_ON * float(self.overhead))
            .then(|| float(self.overhead) + ROUNDING + self.way_back(size))
    }

    /// What a read more in a visit adds to the head's way back over it.
    fn way_back(&self, size: u64) -> f64 {
        let step_back = self.widest((size * 2).saturating_add(self.read_ahead));
        self.seek.steepest_from(step_back) * self.widest(size)
    }
}

impl Chips {
    /// As if the next reads came only when all of the last `depth` were done; they come earlier,
    /// which makes nothing later.
    fn positioning(&self, reads: u64, depth: u32) -> f64 {
        let latencies = |reads: u64| reads.div_ceil(u64::from(self.lanes.max(1))) * self.latency;
        let (whole, rest) = (reads / u64::from(depth), reads % u64::from(depth));
        float(whole * latencies(u64::from(depth)) + latencies(rest)) + float(reads) * ROUNDING
    }
}

fn per_byte(rate: BitRate) -> Option<f64> {
    (rate.0 > 0).then(|| 8e9 / float(rate.0))
}

/// A disk reads on for so many times the overhead of a command, at least, if what comes next is to
/// go on: so that it is there in time.
const READS_ON: f64 = 2.0;

/// A head rounds each part of a service up to a nanosecond.
const ROUNDING: f64 = 4.0;

/// More reads are charged as several sweeps, though one would do: by then the seek part is a few
/// percent of the mean, and a table of this length stays in the nearest cache. A multiple of every
/// queue depth used.
const MOST_IN_A_SWEEP: u64 = 1024;

#[cfg(test)]
mod tests;
