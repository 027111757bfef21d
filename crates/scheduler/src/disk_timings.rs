//! What is known of a disk beside the reads that it completes in any slot: whatever a policy may
//! want to count with. Numbers only; a policy says what it makes of them, and what it does where
//! they are missing.
//!
//! ```text
//!   known from       costs  round  line  rates  curve  observed  seen, behind
//!   a model            x      x      x     x      -       -           -
//!   a calibration      x*     -      x     x*     x*      -           -        * for sizes measured
//!   trying it out      -      -      -     -      x       x           -        set by the caller
//!   using it           -      -      -     -      -       -           x        these only tighten
//!   admission          the share that is kept for writes                       see `writes`
//! ```

use crate::curve::ServiceCurve;
use crate::rates::Rates;
use crate::writes::WriteShare;
use disk::bounds::RoundCost;
use disk::{Calibration, Costs, DiskModel, ReadCost, WriteCost};
use units::ByteCount;

/// What is known of one disk's speed; by default nothing. A policy that needs more than is known
/// falls back to a simpler policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskTimings {
    /// What reads cost at most, in time: the disk's geometry, or its measured zones.
    pub costs: Option<Costs>,
    /// Revolution, settling, full stroke and the slowest zone's rate.
    pub round: Option<RoundCost>,
    /// The mean time of a read as a straight line over its bytes.
    pub line: Option<ReadCost>,
    /// What reads and bytes cost by themselves, wherever they lie, and what is kept for writes.
    pub rates: Option<Rates>,
    /// The fewest reads in any number of consecutive slots, as measured.
    pub curve: Option<ServiceCurve>,
    /// The fewest reads in a busy slot, as observed in use: not guaranteed. See
    /// [`BusySlots`](crate::BusySlots).
    pub observed_min_read: Option<u32>,
    /// The fewest reads in any number of consecutive slots, as observed lately where that was fewer
    /// than guaranteed: see [`ObservedCurve`](crate::ObservedCurve). An upper bound for `curve`.
    pub observed_curve: Option<ServiceCurve>,
    /// How much longer than calibrated the disk takes at present, in 1,024ths: see
    /// [`TimeGuard`](crate::TimeGuard) and [`Guard::slowdown`](crate::Guard::slowdown).
    pub slowdown: u64,
    /// What a write takes from concurrent reads, where it is known to be more than what a read of
    /// the same size takes.
    pub writing: Option<WriteCost>,
    /// What is kept of the disk for writes at a guaranteed rate.
    pub write_share: WriteShare,
}

impl DiskTimings {
    /// Timings of a disk exactly as modelled, for reads of at most `largest`, `depth` of them in
    /// the device at once.
    pub fn of_model(model: &DiskModel, largest: ByteCount, depth: u32) -> Self {
        let costs = Costs::of_model(model, largest, depth);
        let write_size = ByteCount::MIB;
        let writing = model.write_time(write_size);
        let writing = writing.map(|time| WriteCost { write_size, mean: time, slowest: time });
        let mean = |size| (size, model.mean_read_time(size, EVEN_SWEEP));
        let sizes = [ByteCount(largest.0 / 4), largest, ByteCount(largest.0.saturating_mul(2))];
        Self {
            round: Some(model.round_cost()),
            line: ReadCost::fit(&sizes.map(mean)),
            rates: Some(Rates::of_costs(&costs, largest)),
            writing,
            costs: Some(costs),
            ..Self::default()
        }
    }

    /// Timings of a disk as measured, for reads of at most `largest`.
    pub fn of_calibration(calibration: &Calibration, largest: ByteCount) -> Self {
        let guarantee = calibration.guarantee_for(largest);
        Self {
            costs: Costs::of_calibration(calibration, largest),
            line: Some(ReadCost { r0: calibration.r0, t0: calibration.t0 })
                .filter(|line| line.r0.0 > 0),
            rates: Rates::of_calibration(calibration, largest),
            writing: calibration.writing,
            curve: guarantee.map(|g| {
                ServiceCurve::of_fewest(g.fewest().map(|(slots, reads)| (slots, reads.into())))
            }),
            ..Self::default()
        }
    }

    /// Whether the disk was slower lately than calibrated.
    pub fn is_behind(&self) -> bool {
        self.slowdown > 0 || self.observed_curve.is_some()
    }

    /// Nanoseconds that a sweep takes at most at the present slowdown; see [`Costs::batch`].
    #[inline]
    pub fn charge(&self, costs: &Costs, reads: u64, transfer: u64) -> u64 {
        self.slowed(costs.batch(reads, transfer))
    }

    /// Nanoseconds that a sweep takes at most at the present slowdown, where `follows` of its reads
    /// are sequential to another; see [`Costs::sweep`].
    #[inline]
    pub fn charge_visits(&self, costs: &Costs, reads: u64, follows: u64, transfer: u64) -> u64 {
        self.slowed(costs.sweep(reads, follows, transfer))
    }

    /// `nanos` made longer by the slowdown and by the writes that come between.
    #[inline]
    pub fn stretch(&self, nanos: u64) -> u64 {
        self.beside_writes(self.slowed(nanos))
    }

    /// `nanos` made longer by the slowdown.
    #[inline]
    pub fn slowed(&self, nanos: u64) -> u64 {
        // Nearly always zero; then the multiplication is all it costs.
        nanos.saturating_add(nanos.saturating_mul(self.slowdown) >> 10)
    }

    /// `nanos` made longer by the writes that come between, beyond those that may come at once.
    #[inline]
    pub fn beside_writes(&self, nanos: u64) -> u64 {
        self.write_share.beside(nanos, self.slowdown)
    }

    /// Nanoseconds by which writes may delay all reads after a pause.
    #[inline]
    pub fn writes_at_once(&self) -> u64 {
        self.stretch(self.write_share.burst)
    }

    /// `reads` made fewer by the slowdown.
    pub(crate) fn shrink(&self, reads: u64) -> u64 {
        // Rounded down: a guarantee is never overstated.
        let shrunk = u128::from(reads) * 1024 / (1024 + u128::from(self.slowdown));
        u64::try_from(shrunk).expect("not above what it was")
    }

    /// The reads that are left beside writes of the `reads` that the disk completes in any so many
    /// slots of `slot` nanoseconds.
    ///
    /// Writes that have come in the slot before may be in the device still.
    pub fn reads_beside_writes(&self, reads: u64, slots: u64, slot: u64) -> u64 {
        let WriteShare { part, burst } = self.write_share;
        if part == 0 {
            return reads;
        }
        let all = u128::from(slots) * u128::from(slot);
        let whole = u128::from(WriteShare::WHOLE);
        let refilled = (all + u128::from(slot)).saturating_mul(part.into()) / whole;
        let calibrated = refilled.saturating_add(burst.into());
        let writes = calibrated.saturating_mul(1024 + u128::from(self.slowdown)) >> 10;
        let left = u128::from(reads).saturating_mul(all.saturating_sub(writes)) / all.max(1);
        u64::try_from(left).expect("not above what it was")
    }
}

/// The mean read is that of a sweep of so many: what a slot of a hard disk holds.
const EVEN_SWEEP: u32 = 32;
