//! The guarantees of a modelled disk, for any places of the reads.
//!
//! A guarantee is about *sweeps*: the reads of a slot are issued in the order of their places, from
//! one end to the other. Then the head crosses the disk once to reach the first of them and once
//! more to serve them all, in n - 1 seeks, which take longest if equally long (the seek curve's
//! concave bound). Each read may wait for a whole revolution and be in the slowest zone. If reads
//! overlap or the disk reads ahead, the head may have to step back by as much, which is also
//! counted.
//!
//! Writes, a busy host, and disks that differ from their model are not covered.

use crate::DiskModel;
use crate::model::{Chips, Kind};
use crate::platters::{Platters, duration};
use std::time::Duration;
use units::{ByteCount, float};

impl DiskModel {
    /// The longest time of a single read of `size` bytes from the start of its service.
    pub fn worst_read(&self, size: ByteCount) -> Duration {
        duration(self.worst_sweep(size, 1))
    }

    /// The number of reads of at most `read_size` bytes that are complete within any `slot` that
    /// begins with the first of them, at any places and from any position of the head (`minRead`).
    /// They are issued in order of place with a depth of [`DiskModel::queue_depth`], without pause.
    pub fn guaranteed_reads(&self, read_size: ByteCount, slot: Duration) -> u32 {
        let nanos = float(units::nanos(slot));
        most(|count| self.worst_sweep(read_size, count) <= nanos)
    }

    /// The mean time of a read of `size` bytes when `per_sweep` reads are spread evenly over the
    /// disk: mean seek, half a revolution, mean rate.
    pub fn mean_read_time(&self, size: ByteCount, per_sweep: u32) -> Duration {
        duration(self.mean_nanos(size, per_sweep))
    }

    /// Nanoseconds of a read, on average, when `per_sweep` are spread evenly over the disk.
    pub(crate) fn mean_nanos(&self, size: ByteCount, per_sweep: u32) -> f64 {
        let bytes = float(size.0);
        match &self.kind {
            Kind::Spinning(p) => {
                let seek = p.seek.time(1.0 / f64::from(per_sweep.max(1)));
                float(p.overhead) + seek + float(p.revolution) / 2.0 + bytes * p.mean_per_byte()
            }
            Kind::Flash(chips) => {
                let depth = f64::from(self.queue_depth(size));
                bytes * chips.read_per_byte + float(chips.latency) / depth
            }
        }
    }

    /// The queue depth at which the disk never waits for the host and, on a solid-state disk,
    /// latencies are a small part of the time.
    pub fn queue_depth(&self, read_size: ByteCount) -> u32 {
        let Kind::Flash(chips) = &self.kind else { return DEPTH_OF_ARM };
        let transfer = float(read_size.0.max(1)) * chips.read_per_byte;
        let mut depth = 2;
        // Until a batch transfers for 16 latencies: then waiting is a small part of its time.
        while depth * 2 <= chips.lanes && f64::from(depth) * transfer < 16.0 * float(chips.latency)
        {
            depth *= 2;
        }
        depth
    }

    /// Nanoseconds within which `count` > 0 reads of one sweep are guaranteed to be complete.
    /// Monotonic in both arguments.
    fn worst_sweep(&self, size: ByteCount, count: u32) -> f64 {
        match &self.kind {
            Kind::Spinning(platters) => platters.worst_sweep(size.0, count),
            Kind::Flash(chips) => chips.worst_batches(size.0, count, self.queue_depth(size)),
        }
    }
}

impl Platters {
    fn worst_sweep(&self, size: u64, count: u32) -> f64 {
        let transfer = float(size) * self.slowest_per_byte();
        let each = transfer + self.cylinder_switch;
        self.worst_positioning(size, count) + f64::from(count) * each
    }

    /// The time of a sweep without its transfers.
    pub(crate) fn worst_positioning(&self, size: u64, count: u32) -> f64 {
        let each = float(self.overhead + self.revolution) + ROUNDING;
        let moves = f64::from(count.max(1) - 1);
        let step_back = self.widest(size.saturating_add(self.read_ahead));
        let seeks = if count <= 1 {
            0.0
        } else {
            // Each step back is crossed forwards again, so that all moves together cover the stroke
            // and these steps.
            moves * self.seek.bound((1.0 + moves * step_back) / moves)
        };
        self.seek.bound(1.0) + seeks + f64::from(count) * each
    }
}

impl Chips {
    /// The time in batches, as if new reads arrived only after all of the last `depth` were
    /// complete; they arrive earlier, which delays nothing.
    fn worst_batches(&self, size: u64, count: u32, depth: u32) -> f64 {
        let batch = |reads: u32| {
            let latencies = u64::from(reads.div_ceil(self.lanes)) * self.latency;
            float(latencies) + f64::from(reads) * (float(size) * self.read_per_byte + ROUNDING)
        };
        let (whole, rest) = (count / depth, count % depth);
        f64::from(whole) * batch(depth) + batch(rest)
    }
}

/// The largest number for which `fits` holds, if it holds for all smaller ones.
pub(crate) fn most(fits: impl Fn(u32) -> bool) -> u32 {
    let (mut fitting, mut too_many) = (0, 1);
    while too_many < MOST_READS && fits(too_many) {
        (fitting, too_many) = (too_many, too_many * 2);
    }
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

/// The rounding error in ns: a head rounds each part of a service up to a nanosecond.
const ROUNDING: f64 = 4.0;

/// The queue depth of a disk with an arm: with some reads waiting a late host costs nothing, and
/// more would only be requested earlier than necessary.
const DEPTH_OF_ARM: u32 = 4;

/// The largest number of reads in a slot, a bound of the search.
const MOST_READS: u32 = 1 << 26;

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::fmt::Write;
    use units::Moment;

    const SLOT: Duration = Duration::from_millis(500);

    fn disks() -> impl Strategy<Value = DiskModel> {
        let sizes = prop_oneof![Just(None), (1u64 << 28..1 << 34).prop_map(Some)];
        let mut models = DiskModel::presets();
        models.push(behind_a_slow_bus());
        (prop::sample::select(models), sizes).prop_map(|(model, size)| match size {
            Some(size) => model.scaled_to(ByteCount(size)),
            None => model,
        })
    }

    /// A disk whose interface is slower than its outer zones and faster than its inner ones.
    fn behind_a_slow_bus() -> DiskModel {
        let text = DiskModel::preset_text("hdd-20tb").unwrap();
        let text = text.replacen("bus_mb_s = 550.0", "bus_mb_s = 200.0", 1);
        DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap()
    }

    /// Serves a sweep on a head that has just come from `from`, with a queue depth of `depth`;
    /// returns the time from its start to its end.
    fn sweep(model: &DiskModel, from: u64, places: &[u64], size: u64, depth: u32) -> Duration {
        let mut head = model.head();
        let start = head.serve(Moment(12_345_678), from, 4096, false).finish;
        let mut under_way = VecDeque::new();
        let mut now = start;
        for place in places {
            if under_way.len() >= usize::try_from(depth).unwrap() {
                now = under_way.pop_front().unwrap();
            }
            under_way.push_back(head.serve(now, *place, size, false).finish);
        }
        under_way.back().copied().unwrap_or(start).since(start)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn no_placement_takes_longer_than_guaranteed(
            model in disks(),
            read in 16u64..=(8 << 8),
            slot in 100u64..2000,
            down in any::<bool>(),
            clustered in 1u64..64,
            seed in any::<u64>(),
        ) {
            let (size, slot) = (read * 4096, Duration::from_millis(slot));
            let promised = model.guaranteed_reads(ByteCount(size), slot).min(5000);
            let mut rng = fastrand::Rng::with_seed(seed);
            let room = (model.capacity().0 - size) / clustered;
            let mut places: Vec<u64> = (0..promised)
                .map(|_| rng.u64(0..clustered) * room + rng.u64(0..=room / clustered))
                .collect();
            places.sort_unstable();
            if down {
                places.reverse();
            }
            let from = rng.u64(0..model.capacity().0 - 4096);
            let took = sweep(&model, from, &places, size, model.queue_depth(ByteCount(size)));
            prop_assert!(took <= slot, "{promised} reads took {took:?} of {slot:?}");
        }

        #[test]
        fn one_read_never_takes_longer_than_the_worst(
            model in disks(), from in 0.0..1.0, to in 0.0..1.0, read in 1u64..4096, wait in 0u64..1 << 30,
        ) {
            let size = read * 4096;
            let place = |part: f64| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
                let place = (part * float(model.capacity().0 - size)) as u64;
                place
            };
            let mut head = model.head();
            let first = head.serve(Moment(wait), place(from), size, false);
            let second = head.serve(first.finish + Duration::from_nanos(wait), place(to), size, false);
            prop_assert!(second.finish.since(second.start) <= model.worst_read(ByteCount(size)));
        }

        #[test]
        fn more_time_or_smaller_reads_never_guarantee_less(
            model in disks(), read in 1u64..1 << 24, slot in 1u64..10_000,
        ) {
            let (size, time) = (ByteCount(read), Duration::from_millis(slot));
            let promised = model.guaranteed_reads(size, time);
            prop_assert!(model.guaranteed_reads(ByteCount(read / 2), time) >= promised);
            prop_assert!(model.guaranteed_reads(size, time * 2) >= promised * 2);
        }
    }

    #[test]
    fn guarantees_of_the_built_in_disks() {
        let mut table =
            String::from("reads in 500 ms of   64 KiB    1 MiB    4 MiB   worst 4 MiB\n");
        for model in DiskModel::presets() {
            write!(table, "{:<18}", model.name()).unwrap();
            for kib in [64, 1024, 4096] {
                let reads = model.guaranteed_reads(ByteCount::kib(kib), SLOT);
                write!(table, " {reads:>8}").unwrap();
            }
            let worst = model.worst_read(ByteCount::mib(4)).as_secs_f64() * 1e3;
            writeln!(table, " {worst:>10.1} ms").unwrap();
        }
        expect![[r#"
            reads in 500 ms of   64 KiB    1 MiB    4 MiB   worst 4 MiB
            st39183w                 23        3        1      483.9 ms
            atlas-iv                 28        5        1      341.8 ms
            st318406lw               47       13        4      125.2 ms
            hdd-20tb                 38       24       11       53.9 ms
            ssd-sata               3871      251       64        7.8 ms
            ssd-nvme              43798     3000      750        0.7 ms
            makaroff-small           29        3        0      539.6 ms
            makaroff-large           45       13        4      125.7 ms
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_disk_too_slow_for_one_read_guarantees_none() {
        let disk = DiskModel::preset("st39183w").unwrap();
        assert_eq!(disk.guaranteed_reads(ByteCount::mib(16), SLOT), 0);
        assert_eq!(disk.guaranteed_reads(ByteCount::kib(64), Duration::ZERO), 0);
    }

    /// The smaller disk of the VBR paper: its calibration placed 64 KiB reads equally over the disk
    /// and completed 46 to 50 of them in 500 ms.
    #[test]
    fn the_substitute_for_the_atlas_iv_calibrates_as_in_the_paper() {
        let model = DiskModel::preset("atlas-iv").unwrap();
        let fits = |count: &u64| {
            let step = model.capacity().0 / count;
            let places: Vec<u64> = (0..*count).map(|i| i * step).collect();
            let rounds: Vec<Duration> = (0..40)
                .map(|i| sweep(&model, i * (model.capacity().0 / 41), &places, 64 << 10, 1))
                .collect();
            rounds.iter().sum::<Duration>() / 40 <= SLOT
        };
        let most = (1..200).take_while(fits).last().unwrap();
        assert!((46..=50).contains(&most), "{most}");
    }
}
