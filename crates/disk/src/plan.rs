//! The number of equal streams of constant rate that a disk holds, by each bound and read size.
//!
//! Every stream makes one read of `d` bytes a round, and a round lasts as long as those bytes play:
//! T = d / R. The bounds differ in the cost of a read:
//!
//! | bound | transfer | rotation | seeks | guaranteed |
//! |---|---|---|---|---|
//! | ratio | mean rate | none | none | no: no other cost is counted |
//! | S_max (Lee & Srivastava eq. 5) | fitted r0 | none | none | no |
//! | usual | mean rate | half a revolution | n at 1/n of the stroke | no: the mean |
//! | zone-exact | own place of each read | a revolution | worst of a sweep | yes, if spread evenly |
//! | any place | slowest zone | a revolution | worst of a sweep | yes |
//! | Özden | slowest zone | a revolution, settle | two strokes, settle each | if its figures hold |
//!
//! For a calibrated disk only the measured bounds exist: the ratio, S_max, and the usual. The
//! scheduler decides which streams a *policy* admits.

use crate::bounds::{ReadCost, RoundCost, ratio};
use crate::guarantee::most;
use crate::model::Kind;
use crate::parameters::Mechanics;
use crate::platters::Platters;
use crate::{Calibration, Costs, DiskModel};
use std::time::Duration;
use units::{BitRate, ByteCount, float};

/// The data on the disk that a plan is for.
#[derive(Clone, Copy, Debug)]
pub enum DiskSource<'a> {
    /// A complete model.
    Model(&'a DiskModel),
    /// A calibration.
    Measured(&'a Calibration),
}

/// The plan for a disk; its fields other than `rows` do not depend on the read size.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityPlan {
    /// Lee and Srivastava's r0 and t0 of this disk.
    pub cost: ReadCost,
    /// The disk's mean rate divided by that of a stream.
    pub ratio: u64,
    /// The largest number of streams by eq. 5.
    pub s_max: u64,
    /// The rows by read size, in the requested order.
    pub rows: Vec<PlanRow>,
}

/// The number of streams held with reads of one size; `None` where the bound is unknown for this
/// disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// d: the size of a read.
    pub read: ByteCount,
    /// d / R: the play-out time of a read, which is the round.
    pub lasts: Duration,
    /// The number of streams by mean times.
    pub usual: Option<u64>,
    /// The guaranteed number if the streams are spread evenly over the disk.
    pub zone_exact: Option<u64>,
    /// The guaranteed number for any places.
    pub any_place: Option<u64>,
    /// The number by Özden, Rastogi and Silberschatz.
    pub ozden: Option<u64>,
    /// The number for which the memory suffices: one read being filled, one being sent. `None` if
    /// memory is unlimited.
    pub in_memory: Option<u64>,
}

/// Plans streams of rate `stream` with reads of these sizes and, if limited, `memory` for this
/// disk's buffers. A disk is planned for the sizes that it contains and, if calibrated, that a
/// guarantee covers.
pub fn plan(
    disk: DiskSource<'_>,
    stream: BitRate,
    sizes: &[ByteCount],
    memory: Option<ByteCount>,
) -> CapacityPlan {
    let cost = disk.cost(sizes);
    let row = |read: &ByteCount| PlanRow {
        read: *read,
        lasts: read.time_at(stream),
        usual: disk.usual(*read, stream),
        zone_exact: disk.model().map(|model| model.zone_exact_streams(*read, stream)),
        any_place: disk
            .model()
            .map(|model| u64::from(model.guaranteed_reads(*read, read.time_at(stream)))),
        ozden: disk.model().map(|model| model.round_cost().streams(*read, stream)),
        in_memory: memory.map(|memory| memory.0 / double_buffer(*read).0.max(1)),
    };
    CapacityPlan {
        cost,
        ratio: ratio(disk.mean_rate(), stream),
        s_max: cost.streams(stream),
        rows: sizes.iter().filter(|size| disk.knows(**size)).map(row).collect(),
    }
}

/// The memory for double buffers (Alderman and Diallo, 5.3): while a round is read, the round
/// before is being sent, so that each stream needs two reads. (10 disks × 60 streams × 1 MB × 2 =
/// 1.2 GB.)
pub fn memory_needed(read: ByteCount, streams: u64) -> ByteCount {
    ByteCount(double_buffer(read).0.saturating_mul(streams))
}

fn double_buffer(read: ByteCount) -> ByteCount {
    ByteCount(read.0.saturating_mul(2))
}

impl DiskSource<'_> {
    fn model(&self) -> Option<&DiskModel> {
        match self {
            Self::Model(model) => Some(model),
            Self::Measured(_) => None,
        }
    }

    /// Whether such reads can be planned for.
    fn knows(&self, size: ByteCount) -> bool {
        match self {
            // No read is larger than the disk.
            Self::Model(model) => size <= model.capacity(),
            // A calibration guarantees nothing for reads above its largest measured size.
            Self::Measured(record) => record.guarantee_for(size).is_some(),
        }
    }

    fn cost(&self, sizes: &[ByteCount]) -> ReadCost {
        match self {
            Self::Model(model) => {
                let record = Calibration::from_model(model, SLOT, sizes);
                ReadCost { r0: record.r0, t0: record.t0 }
            }
            Self::Measured(record) => ReadCost { r0: record.r0, t0: record.t0 },
        }
    }

    fn mean_rate(&self) -> BitRate {
        match self {
            Self::Model(model) => model.mean_rate(),
            Self::Measured(record) => {
                let rates: u64 = record.zones.iter().map(|(_, rate)| rate.0).sum();
                // Without zones the fitted rate of an endless read is the best known mean.
                BitRate(rates.checked_div(record.zones.len() as u64).unwrap_or(record.r0.0))
            }
        }
    }

    fn usual(&self, read: ByteCount, stream: BitRate) -> Option<u64> {
        match self {
            Self::Model(model) => Some(model.usual_streams(read, stream)),
            Self::Measured(record) => {
                let guarantee = record.guarantee_for(read)?;
                let each = record.slot.div_f64(guarantee.mean_read.max(f64::MIN_POSITIVE));
                let reads = read.time_at(stream).as_nanos() / each.as_nanos().max(1);
                u64::try_from(reads).ok()
            }
        }
    }
}

impl DiskModel {
    /// This disk as in the equation of Özden, Rastogi and Silberschatz.
    pub fn round_cost(&self) -> RoundCost {
        let millis = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let (settle, full_seek) = match &self.parameters().mechanics {
            Mechanics::Spinning(arm) => (millis(arm.seek.settle_ms), millis(arm.seek.full_ms)),
            Mechanics::Flash(chips) => (millis(chips.latency_ms), Duration::ZERO),
        };
        RoundCost { rate: self.slowest_rate(), revolution: self.revolution(), settle, full_seek }
    }

    /// The largest number of streams of rate `stream` whose reads of `read` bytes take on average
    /// at most their play-out time.
    pub fn usual_streams(&self, read: ByteCount, stream: BitRate) -> u64 {
        let round = read.time_at(stream);
        let fits =
            |streams: u32| self.mean_read_time(read, streams).saturating_mul(streams) <= round;
        u64::from(most(fits))
    }

    /// The largest number of streams, spread evenly over the disk, whose reads of `read` bytes are
    /// guaranteed within their play-out time: like [`DiskModel::guaranteed_reads`], but each read
    /// at the rate of its own zone.
    pub fn zone_exact_streams(&self, read: ByteCount, stream: BitRate) -> u64 {
        let round = read.time_at(stream);
        match &self.kind {
            Kind::Flash(_) => u64::from(self.guaranteed_reads(read, round)),
            Kind::Spinning(platters) => {
                let nanos = float(units::nanos(round));
                let fits = |n: u32| n <= MOST_STREAMS && platters.even_sweep(read.0, n) <= nanos;
                u64::from(most(fits))
            }
        }
    }
}

impl Platters {
    /// Nanoseconds within which `count` reads, spread evenly over the disk, are guaranteed to be
    /// complete.
    fn even_sweep(&self, size: u64, count: u32) -> f64 {
        let size = size.min(self.capacity);
        let room = self.capacity - size;
        // A single read is at the start; two or more divide the room between first and last byte.
        let place = |i: u32| room / u64::from(count.max(2) - 1) * u64::from(i);
        let transfer = |i: u32| self.transfer(place(i), place(i) + size);
        self.worst_positioning(size, count) + (0..count).map(transfer).sum::<f64>()
    }
}

/// The slot for which a model's mean times are calculated: with more reads in a sweep they are
/// closer together.
const SLOT: Duration = Duration::from_millis(500);

/// The largest number of streams, a bound on a sum over all of them: no actuator serves as many.
const MOST_STREAMS: u32 = 1 << 17;

/// The times in nanoseconds that a piece takes at places all over the first `span` bytes of a disk,
/// as a capacity simulation takes them.
pub fn evenly_placed(costs: &Costs, span: u64, piece: u32) -> Vec<[u32; 1]> {
    let room = u128::from(span.saturating_sub(piece.into()));
    let place = |i: u64| u64::try_from((room * u128::from(i.wrapping_mul(GOLDEN))) >> 64);
    let nanos = |at| u32::try_from(costs.transfer(at, piece.into())).unwrap_or(u32::MAX);
    (0..PLACES).map(|i| [place(i).map_or(u32::MAX, nanos)]).collect()
}

/// Number of places of a piece.
const PLACES: u64 = 987;
/// The golden ratio of 2^64: its multiples, modulo that, fall evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    const VIDEO: BitRate = BitRate(5_550_000);

    fn rows(name: &str, stream: BitRate, mib: &[u64]) -> Vec<PlanRow> {
        let sizes: Vec<ByteCount> = mib.iter().map(|mib| ByteCount::mib(*mib)).collect();
        let model = DiskModel::preset(name).unwrap();
        plan(DiskSource::Model(&model), stream, &sizes, Some(ByteCount::mib(4096))).rows
    }

    #[test]
    fn a_plan_for_a_current_disk() {
        let mut table = String::from(" read  usual  zone-exact  any place  Özden  in memory\n");
        for row in rows("hdd-20tb", VIDEO, &[1, 2, 4, 8, 16]) {
            let PlanRow { usual, zone_exact, any_place, ozden, in_memory, .. } = row;
            let known = |n: Option<u64>| n.unwrap();
            writeln!(
                table,
                "{:>6} {:>5} {:>11} {:>10} {:>6} {:>10}",
                row.read.to_string(),
                known(usual),
                known(zone_exact),
                known(any_place),
                known(ozden),
                known(in_memory),
            )
            .unwrap();
            assert!(ozden <= usual && any_place <= zone_exact && zone_exact <= usual, "{row:?}");
        }
        expect![[r#"
             read  usual  zone-exact  any place  Özden  in memory
             1 MiB   136          97         78     90       2048
             2 MiB   192         150        114    126       1024
             4 MiB   238         203        147    156        512
             8 MiB   270         247        172    177        256
            16 MiB   290         275        187    190        128
        "#]]
        .assert_eq(&table);
    }

    /// The cost of a guarantee when the zone of every read is known.
    #[test]
    fn the_guarantee_is_near_the_usual_with_large_reads() {
        for (mib, least) in [(4, 0.85), (8, 0.9)] {
            let row = rows("hdd-20tb", VIDEO, &[mib])[0];
            let (certain, usual) = (row.zone_exact.unwrap(), row.usual.unwrap());
            assert!(certain as f64 >= least * usual as f64, "{mib} MiB: {certain} of {usual}");
        }
    }

    /// Alderman and Diallo's disk: the model's inner rate gives the result of the paper's measured
    /// one, and its mean rate the paper's ratio.
    #[test]
    fn a_plan_for_the_papers_disk() {
        let model = DiskModel::preset("st39183w").unwrap();
        let (mb, mpeg1) = (ByteCount(1_000_000), BitRate(1_500_000));
        let plan = plan(DiskSource::Model(&model), mpeg1, &[mb], None);
        assert_eq!((plan.ratio, plan.rows[0].ozden), (68, Some(44)));
        assert_eq!(memory_needed(mb, 60 * 10), ByteCount(1_200_000_000));
    }

    #[test]
    fn a_measured_disk_is_planned_with_its_measured_values() {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let sizes = [ByteCount::MIB, ByteCount::mib(4)];
        let record = Calibration::from_model(&model, SLOT, &sizes);
        let asked = [ByteCount::MIB, ByteCount::mib(4), ByteCount::mib(8)];
        let plan = plan(DiskSource::Measured(&record), VIDEO, &asked, None);
        assert_eq!(plan.rows.len(), 2, "nothing is known of larger reads");
        let row = plan.rows[1];
        let of_model = rows("hdd-20tb", VIDEO, &[4])[0];
        assert_eq!((row.zone_exact, row.ozden, row.in_memory), (None, None, None));
        assert!(row.usual.unwrap().abs_diff(of_model.usual.unwrap()) < 30, "{row:?}");
    }

    #[test]
    fn no_bound_exceeds_an_interface_that_is_slower_than_the_medium() {
        let text = DiskModel::preset_text("hdd-20tb").unwrap();
        let text = text.replacen("bus_mb_s = 550.0", "bus_mb_s = 50.0", 1);
        let model = DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap();
        let stream = BitRate(8_000_000);
        let sizes = [ByteCount::MIB, ByteCount::mib(16)];
        let plan = plan(DiskSource::Model(&model), stream, &sizes, None);
        assert_eq!((plan.ratio, plan.s_max <= 50), (50, true), "50 MB/s are 50 streams of 8 Mb/s");
        for row in plan.rows {
            let PlanRow { usual, zone_exact, any_place, ozden, .. } = row;
            assert!(usual <= Some(50) && ozden <= usual, "{row:?}");
            assert!(any_place <= zone_exact && zone_exact <= usual, "{row:?}");
        }
    }

    #[test]
    fn no_read_larger_than_the_disk_is_planned() {
        let model = DiskModel::preset("hdd-20tb").unwrap().scaled_to(ByteCount::mib(2));
        let sizes = [ByteCount::MIB, ByteCount::mib(2), ByteCount::mib(4)];
        let plan = plan(DiskSource::Model(&model), VIDEO, &sizes, None);
        assert_eq!(plan.rows.iter().map(|row| row.read).collect::<Vec<_>>(), sizes[..2]);
    }

    #[test]
    fn extreme_arguments_have_results() {
        for row in rows("hdd-20tb", BitRate(0), &[1]) {
            assert_eq!(row.lasts, Duration::MAX);
        }
        let row = rows("st39183w", BitRate(u64::MAX), &[1])[0];
        assert_eq!((row.usual, row.zone_exact, row.ozden), (Some(0), Some(0), Some(0)));
    }
}
