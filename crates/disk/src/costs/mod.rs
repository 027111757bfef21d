//! Upper bounds of the cost of reads in nanoseconds of one disk: the unit in which time-based
//! admission counts.
//!
//! ```text
//!   a sweep of n reads  ≤  Σ transfer(place, length)  exact to the zone, added up read by read
//!                        + positioning(n)             whatever the places and wherever the head is
//! ```
//!
//! A sweep begins at the end of its reads that is nearer to the head. The head either starts
//! outside of them and crosses at most the whole stroke in n seeks, or it starts inside and first
//! moves to the nearer end, by at most half a stroke, before it crosses the reads in n - 1 seeks.
//! With `h` the concave bound of the seek curve, and a whole revolution and an overhead for each
//! read:
//! ```text
//!   positioning(n) = n × (overhead + revolution) + max( n h(1/n), h(1/2) + (n-1) h(1/(n-1)) )
//! ```
//!
//! It is monotonic and subadditive, positioning(a + b) ≤ positioning(a) + positioning(b): joining
//! two sweeps never takes longer. The proof of admission relies on both properties.
//!
//! Contiguous reads that are submitted to the disk together and in order are one *visit*: no
//! revolution is lost between them, because the disk reads ahead while it takes the next command.
//! Then n is the number of visits, and each read that continues the last one costs its transfer and
//!
//! ```text
//!   following = overhead + h'(step back) × (stroke that a read covers)
//! ```
//!
//! where the second part is for the head's way back over a longer visit: h is concave, so that it
//! is nowhere steeper than at the shortest seek that is charged.
//!
//! Only a read whose transfer takes at least the cost of one more visit may count as following
//! ([`Costs::shortest_following`]): so removing a read from the middle of a visit never makes a
//! sweep more expensive.
//!
//! The bound of a sweep applies to a whole sweep that begins with the end of its reads nearer to
//! the head. Two costs are for what is no such sweep. Reads in a known order, such as what is left
//! of one sweep with the beginning of the next behind it, are charged along the path of the head:
//!
//! ```text
//!   step(from, to) = overhead + revolution + h(from ... to)        h(1) from an unknown place
//! ```
//!
//! A sweep that begins with its farther end, because nobody knows where the head is, takes longer
//! than the bound by at most
//!
//! ```text
//!   unknown_start = h(1) - h(1/2)
//! ```
//!
//! A disk whose actuator was fitted to timed reads is charged as the resulting model
//! ([`Calibration::model`]), except for its read-ahead, which is unknown; instead, the longest time
//! of a sequential read was measured with the next read already in the device
//! ([`Actuator::following`](crate::Actuator::following)). It replaces the overhead above if the
//! queue depth is at least two. A disk whose actuator was not measured is charged the pace of its
//! reads ([`ReadPace`](crate::ReadPace)), a bound for any number of reads that are made without a
//! pause, as a sweep is: the longest delay once per sweep, and for each read the long-run time of
//! the worst placement. Of a read's time its transfer depends on the place where the rates fall
//! from the first to the last zone; otherwise each place is charged the same, by the least line
//! above the measured times of all read sizes ([`Calibration::line`]).
//!
//! ```text
//!   positioning(n) = once + n × (each - transfer in the slowest zone)
//! ```
//!
//! Reads that go on without a pause are delayed by `once` in all, whichever of them are regarded.
//! The bound of a sweep contains it, because a sweep may follow a pause, after which a throttle may
//! delay again. Sweeps that follow each other without a pause take
//! ([`Costs::after_pause`], [`Costs::sweep_without_pause`]):
//!
//! ```text
//!   k sweeps of n reads in all  ≤  Σ transfer + once + n × (each - transfer in the slowest zone)
//! ```

use crate::model::{Chips, Kind};
use crate::platters::Platters;
use crate::{Calibration, DiskModel};
use units::{BitRate, ByteCount, float, nanos, rounded};

/// Upper bounds, in nanoseconds, of sweeps of reads on one disk: positioning by the number of
/// reads, and transfer by place.
#[derive(Clone, PartialEq)]
pub struct Costs {
    transfer: TransferCost,
    /// Positioning of a sweep without a pause before it, by its number of reads; more reads are
    /// charged as several sweeps.
    positioning: Vec<u64>,
    /// A linear bound of `positioning` for at least one read: constant and slope.
    line: (u64, u64),
    /// The cost of a sequential read beside its transfer, and the shortest transfer of a read that
    /// counts as sequential.
    following: Option<(u64, u64)>,
    /// Charged in addition for a sweep after a pause.
    after_pause: u64,
    /// The queue depth for which the bounds hold.
    depth: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum TransferCost {
    Model(DiskModel),
    Measured(Measured),
}

#[derive(Clone, Debug, PartialEq)]
struct Measured {
    /// Zones as offset and nanoseconds per byte, lowest offset first, from offset zero on.
    zones: Vec<(u64, f64)>,
    end: u64,
}

impl Costs {
    /// The costs of a disk exactly as modelled, for reads of at most `largest` with a queue depth
    /// of `depth`.
    pub fn of_model(model: &DiskModel, largest: ByteCount, depth: u32) -> Self {
        let positioning = |reads| match &model.kind {
            Kind::Spinning(platters) => platters.positioning(largest.0, reads),
            Kind::Flash(chips) => chips.positioning(reads, depth.max(1)),
        };
        let table = (0..=MOST_IN_A_SWEEP).map(|reads| rounded(positioning(reads).ceil()));
        let costs = Self::new(TransferCost::Model(model.clone()), table.collect(), depth);
        let Kind::Spinning(platters) = &model.kind else { return costs };
        costs.with_following(platters.following(largest.0))
    }

    // Following reads have their own cost only if that is less than a visit.
    fn with_following(self, nanos: Option<f64>) -> Self {
        // A read that is taken out of a visit adds a second visit at most. The first visit of a
        // sweep, which pays for the way to it, is never added.
        let more = self.positioning.windows(2).map(|n| n[1] - n[0]).skip(1).max().unwrap_or(0);
        let following = nanos.map(|nanos| (rounded(nanos.ceil()), more));
        Self { following: following.filter(|(nanos, more)| nanos < more), ..self }
    }

    fn new(transfer: TransferCost, positioning: Vec<u64>, depth: u32) -> Self {
        // The slope is that of the longest sweep; the constant lifts the line above the whole
        // table.
        let each = positioning.last().copied().unwrap_or(0).div_ceil(MOST_IN_A_SWEEP);
        let beyond = |(reads, nanos): (u64, &u64)| nanos.saturating_sub(reads.saturating_mul(each));
        let once = (0..).zip(&positioning).map(beyond).max().unwrap_or(0);
        let line = (once, each);
        Self { transfer, positioning, line, following: None, after_pause: 0, depth }
    }

    /// The costs of a measured disk, for reads of at most `largest`. `None` if the record has too
    /// little: no zones, or no guarantee for such reads.
    pub fn of_calibration(calibration: &Calibration, largest: ByteCount) -> Option<Self> {
        let guarantee = calibration.guarantee_for(largest).filter(|g| g.min_read > 0)?;
        if let Some(model) = calibration.model() {
            let depth = calibration.queue_depth;
            let costs = Self::of_model(&model, largest, depth);
            let (Some(arm), Kind::Spinning(platters)) = (&calibration.actuator, &model.kind) else {
                return Some(costs);
            };
            // It was measured with the next read in the device, which needs a depth of two.
            let measured = arm.following.filter(|_| depth >= 2);
            let way_back = || platters.way_back(largest.0) + ROUNDING;
            let each = measured.map(|time| float(nanos(time)) + way_back());
            return Some(costs.with_following(each));
        }
        let line = calibration.line(largest)?;
        let each = float(nanos(guarantee.pace.each));
        let by_zone = falling(&calibration.zones).and_then(|zones| {
            let slowest = zones.iter().map(|(_, per_byte)| *per_byte).fold(0.0, f64::max);
            let transfer = float(guarantee.read_size.0) * slowest;
            // If by the zones the transfers alone took longer than the measured reads, the zones
            // are wrong.
            (transfer <= each).then(|| (zones, rounded((each - transfer).ceil())))
        });
        let (zones, position) = by_zone.unwrap_or_else(|| {
            let per_byte = float(line.per_mib) / float(1 << 20);
            (vec![(0, per_byte)], line.each)
        });
        let table = (0..=MOST_IN_A_SWEEP).map(|n| n.saturating_mul(position)).collect();
        let transfer = TransferCost::Measured(Measured { zones, end: u64::MAX });
        let costs = Self::new(transfer, table, calibration.queue_depth);
        Some(Self { after_pause: line.once, ..costs })
    }

    /// Nanoseconds from the first to the last byte of a read at `offset`. Bytes beyond the disk's
    /// end are charged like those before it.
    pub fn transfer(&self, offset: u64, len: u64) -> u64 {
        rounded(match &self.transfer {
            TransferCost::Model(model) => model.transfer_bound(offset, len),
            TransferCost::Measured(measured) => measured.transfer(offset, len),
        })
    }

    /// The longest transfer of `len` bytes at any place, in nanoseconds.
    pub fn slowest_transfer(&self, len: u64) -> u64 {
        rounded(match &self.transfer {
            TransferCost::Model(model) => model.slowest_transfer(len),
            TransferCost::Measured(measured) => {
                let slowest = measured.zones.iter().map(|(_, per_byte)| *per_byte);
                (float(len) * slowest.fold(0.0, f64::max)).ceil() + 1.0
            }
        })
    }

    /// The positioning of a sweep of `reads` reads in nanoseconds, from any position of the head,
    /// after a pause.
    #[inline]
    pub fn positioning(&self, reads: u64) -> u64 {
        let pauses = reads.div_ceil(MOST_IN_A_SWEEP);
        self.positioning_without_pause(reads)
            .saturating_add(pauses.saturating_mul(self.after_pause))
    }

    #[inline]
    fn positioning_without_pause(&self, reads: u64) -> u64 {
        match usize::try_from(reads) {
            Ok(n) if n < self.positioning.len() => self.positioning[n],
            _ => self.of_many(reads),
        }
    }

    #[cold]
    fn of_many(&self, reads: u64) -> u64 {
        let (sweeps, rest) = (reads / MOST_IN_A_SWEEP, reads % MOST_IN_A_SWEEP);
        let rest = self.positioning_without_pause(rest);
        sweeps.saturating_mul(self.of_most()).saturating_add(rest)
    }

    /// An upper bound, in nanoseconds, of the positioning of `sweeps` sweeps with `reads` reads in
    /// all, however the reads are distributed over them, if no sweep follows a pause: a straight
    /// line above [`Costs::sweep_without_pause`], for a quick check that there is enough time.
    #[inline]
    pub fn positioning_of_sweeps(&self, sweeps: u64, reads: u64) -> u64 {
        let (once, each) = self.line;
        sweeps.saturating_mul(once).saturating_add(reads.saturating_mul(each))
    }

    /// Nanoseconds of a sweep with this number of reads and this transfer time.
    #[inline]
    pub fn batch(&self, reads: u64, transfer: u64) -> u64 {
        self.positioning(reads).saturating_add(transfer)
    }

    /// Nanoseconds of a sweep with this number of reads and this transfer time, of which
    /// `following` reads continue the last one.
    #[inline]
    pub fn sweep(&self, reads: u64, following: u64, transfer: u64) -> u64 {
        let (visits, following) = self.visits(reads, following);
        self.batch(visits, transfer).saturating_add(following)
    }

    /// The delay in nanoseconds that reads without a pause between them suffer once in all, which
    /// [`Costs::sweep`] contains. Zero for a modelled disk: each of its sweeps takes its whole
    /// time.
    #[inline]
    pub fn after_pause(&self) -> u64 {
        self.after_pause
    }

    /// Nanoseconds of a sweep that follows another without a pause: [`Costs::sweep`] without
    /// [`Costs::after_pause`].
    #[inline]
    pub fn sweep_without_pause(&self, reads: u64, following: u64, transfer: u64) -> u64 {
        let (visits, following) = self.visits(reads, following);
        let positioning = self.positioning_without_pause(visits);
        positioning.saturating_add(transfer).saturating_add(following)
    }

    /// How many visits these reads are, and the cost beside transfer of those that follow.
    #[inline]
    fn visits(&self, reads: u64, following: u64) -> (u64, u64) {
        let (each, _) = self.following.unwrap_or_default();
        let following = if self.following.is_some() { following.min(reads) } else { 0 };
        (reads - following, following.saturating_mul(each))
    }

    /// The shortest transfer, in nanoseconds, of two reads of which the second may count as
    /// following the first; `None` if none may.
    pub fn shortest_following(&self) -> Option<u64> {
        self.following.map(|(_, shortest)| shortest)
    }

    /// The position of a byte as a share of the stroke: 0 first, 1 last. Zero without an actuator,
    /// or if nothing is known of it.
    pub fn place(&self, offset: u64) -> f64 {
        match &self.transfer {
            TransferCost::Model(model) => model.stroke_part(offset),
            TransferCost::Measured(_) => 0.0,
        }
    }

    /// The positioning, in nanoseconds, of a read at `offset` at most, if the head has read up to
    /// `from`; `None`: from any position. Zero without an actuator, or if nothing is known of it.
    pub fn step(&self, from: Option<u64>, offset: u64) -> u64 {
        match &self.transfer {
            TransferCost::Model(model) => match &model.kind {
                Kind::Spinning(p) => rounded(p.step(from, offset).ceil()),
                Kind::Flash(_) => 0,
            },
            TransferCost::Measured(_) => 0,
        }
    }

    /// Whether reads in a known order can be charged along the path of the head by [`Costs::step`].
    pub fn has_path(&self) -> bool {
        match &self.transfer {
            TransferCost::Model(model) => matches!(model.kind, Kind::Spinning(_)),
            TransferCost::Measured(_) => false,
        }
    }

    /// The excess of a sweep over its charge, in nanoseconds at most, if it begins with any end of
    /// its reads from any position of the head.
    pub fn unknown_start(&self) -> u64 {
        match &self.transfer {
            TransferCost::Model(model) => match &model.kind {
                Kind::Spinning(p) => rounded(p.unknown_start().ceil()),
                Kind::Flash(_) => 0,
            },
            // Measured at the worst placement, which begins anywhere.
            TransferCost::Measured(_) => 0,
        }
    }

    /// Nanoseconds of a read that continues the last one beside its transfer, if the disk is known
    /// to support this.
    pub fn following(&self) -> Option<u64> {
        self.following.map(|(nanos, _)| nanos)
    }

    /// The queue depth of these costs.
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
            TransferCost::Model(model) => model.name(),
            TransferCost::Measured(_) => "measured",
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
        // The sum of several products may be rounded down; one nanosecond keeps it a bound.
        nanos.ceil() + 1.0
    }
}

impl DiskModel {
    fn transfer_bound(&self, offset: u64, len: u64) -> f64 {
        match &self.kind {
            Kind::Spinning(p) => {
                let end = offset.saturating_add(len).min(p.capacity);
                let from = offset.min(end).min(p.capacity.saturating_sub(len));
                // Bytes beyond the disk's end take their time, too.
                p.transfer(from, end).max(float(len) * p.bus_per_byte).ceil() + 1.0
            }
            Kind::Flash(chips) => (float(len) * chips.read_per_byte).ceil() + 1.0,
        }
    }

    fn slowest_transfer(&self, len: u64) -> f64 {
        match &self.kind {
            Kind::Spinning(p) => {
                (float(len) * p.slowest_per_byte() + p.cylinder_switch).ceil() + 1.0
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
        // If reads overlap or the disk reads ahead, the head may have to step back by as much; also
        // inwards, over contiguous reads that are read in order.
        let step_back = self.widest((size * 2).saturating_add(self.read_ahead));
        let hull = |moves: f64, stroke: f64| moves * self.seek.bound(stroke / moves + step_back);
        // A single read is reached, and crosses nothing after that.
        let inside = if reads == 1 { 0.0 } else { hull(1.0, 0.5) + hull(n - 1.0, 1.0) };
        n * (float(self.overhead + self.revolution) + ROUNDING) + hull(n, 1.0).max(inside)
    }

    fn step(&self, from: Option<u64>, offset: u64) -> f64 {
        let at = |offset: u64| self.place(self.streamed(offset.min(self.capacity)));
        let to = at(offset);
        // The head may have moved on with the read-ahead, by any part of it.
        let distance = from.map_or(1.0, |end| {
            let ahead = at(end.saturating_add(self.read_ahead));
            (to - at(end)).abs().max((to - ahead).abs())
        });
        float(self.overhead + self.revolution) + ROUNDING + self.seek.bound(distance)
    }

    fn unknown_start(&self) -> f64 {
        self.seek.bound(1.0) - self.seek.bound(0.5) + ROUNDING
    }

    /// Nanoseconds of a sequential read beside its transfer, if the disk reads ahead for long
    /// enough while it takes the next command.
    fn following(&self, size: u64) -> Option<f64> {
        // In the fastest zone the read-ahead is over first.
        let reads_on = float(self.read_ahead) * self.quickest_of_medium();
        (self.read_ahead > 0 && reads_on >= READS_ON * float(self.overhead))
            .then(|| float(self.overhead) + ROUNDING + self.way_back(size))
    }

    /// The addition of one more read in a visit to the head's way back over it.
    fn way_back(&self, size: u64) -> f64 {
        let step_back = self.widest((size * 2).saturating_add(self.read_ahead));
        self.seek.steepest_from(step_back) * self.widest(size)
    }
}

impl Chips {
    /// Positioning in batches, as if new reads arrived only after all of the last `depth` were
    /// complete; they arrive earlier, which delays nothing.
    fn positioning(&self, reads: u64, depth: u32) -> f64 {
        let latencies = |reads: u64| reads.div_ceil(u64::from(self.lanes.max(1))) * self.latency;
        let (whole, rest) = (reads / u64::from(depth), reads % u64::from(depth));
        float(whole * latencies(u64::from(depth)) + latencies(rest)) + float(reads) * ROUNDING
    }
}

/// The zones of a record as offset and nanoseconds per byte, if their rates fall from the first to
/// the last place, as those of every disk with zones do. Rates that rise and fall are noise of
/// whatever limits the disk, and say nothing about a place.
fn falling(measured: &[(ByteCount, BitRate)]) -> Option<Vec<(u64, f64)>> {
    let (first, last) = (measured.first()?.1, measured.last()?.1);
    let falls = |pair: &[(ByteCount, BitRate)]| {
        pair[0].0 < pair[1].0 && float(pair[1].1.0) <= float(pair[0].1.0) * ZONE_NOISE
    };
    let has_zones = float(last.0) * ZONE_FALL <= float(first.0);
    if !has_zones || !measured.windows(2).all(falls) {
        return None;
    }
    let mut zones = Vec::with_capacity(measured.len());
    for (offset, rate) in measured {
        // Bytes before the first measured place are charged like those at it.
        let from = if zones.is_empty() { 0 } else { offset.0 };
        zones.push((from, per_byte(*rate)?));
    }
    Some(zones)
}

fn per_byte(rate: BitRate) -> Option<f64> {
    (rate.0 > 0).then(|| 8e9 / float(rate.0))
}

/// The factor by which the rate of a zone may exceed that of the zone before it: rates are means of
/// a few reads.
const ZONE_NOISE: f64 = 1.05;

/// The factor between the rates of the first and the last place from which a disk has zones. Hard
/// disks have about two.
const ZONE_FALL: f64 = 1.1;

/// The shortest read-ahead, in overheads of a command, with which a following read is served in
/// time.
const READS_ON: f64 = 2.0;

/// The rounding error in ns: a head rounds each part of a service up to a nanosecond.
const ROUNDING: f64 = 4.0;

/// The number of reads from which they are charged as several sweeps: by then the seek part is a
/// few percent of the mean, and a table of this length stays in the nearest cache. A multiple of
/// all queue depths in use.
const MOST_IN_A_SWEEP: u64 = 1024;

#[cfg(test)]
mod tests;
