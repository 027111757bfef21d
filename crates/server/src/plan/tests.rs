//! Plans for start-up times and rates at the ends of their ranges.

use super::*;

fn held(model: &str, rate: BitRate, read: ByteCount, startup: Duration) -> Vec<CapacityResult> {
    let disk = PlanDisk::Model(DiskModel::preset(model).unwrap());
    let question = Question {
        audience: PlannedAudience::Rate(rate),
        memory: None,
        disks: 1,
        startup,
        read: Some(read),
        popularity: None,
        policies: vec![PolicyKind::TimeDomain, PolicyKind::VbrSim],
    };
    let mut plan = plan(&disk, question, &mut in_turn);
    plan.admitted.remove(0).unwrap()
}

/// With more time the disk can do all that it can do with less.
#[test]
fn a_longer_start_up_holds_no_fewer_streams() {
    let rate = BitRate(5_000_000);
    for (model, kib) in [("hdd-20tb", 1024), ("hdd-20tb", 4096), ("ssd-sata", 256)] {
        let mut before = [0; 2];
        for secs in [1, 10, 60, 3600] {
            let startup = Duration::from_secs(secs);
            let results = held(model, rate, ByteCount(kib << 10), startup);
            for (result, before) in results.iter().zip(&mut before) {
                let case = format!("{model}, {kib} KiB, {secs} s: {result:?}, {before} before");
                assert!(result.streams + 1 >= *before, "{case}");
                assert_eq!(result.short_of, Some(Resource::Disk), "{case}");
                *before = result.streams.max(*before);
            }
        }
    }
}

/// While viewers arrive, the disk reads ahead for those who are there. What it guarantees in a slot
/// is what it holds of titles that last much longer than that.
#[test]
fn what_was_read_ahead_holds_no_more_streams_of_long_titles() {
    let (rate, read) = (BitRate(5_000_000), ByteCount::MIB);
    let disk = PlanDisk::Model(DiskModel::preset("ssd-sata").unwrap());
    let reads = f64::from(disk.min_read(read)) / SLOT.as_secs_f64();
    let sustained = reads * read.time_at(rate).as_secs_f64();
    let by_count = &held("ssd-sata", rate, read, Duration::from_secs(1))[1];
    // A half of a percent: a stream ends after two hours.
    let streams = by_count.streams as f64;
    assert!(streams <= sustained * 1.005 && streams >= sustained * 0.98, "{streams} {sustained}");
}

/// One stream would have a hundred million reads in the time that is simulated.
#[test]
fn a_stream_above_the_rate_of_the_disk_is_refused_at_once() {
    let startup = Duration::from_secs(1);
    for rate in [BitRate(1_800_000_000), *RATES.end()] {
        let results = held("hdd-20tb", rate, ByteCount::MIB, startup);
        assert_eq!(results, [NOT_ONE; 2], "{rate}");
    }
}

fn plan_with(
    model: &str,
    rate: BitRate,
    memory: Option<ByteCount>,
    startup: Duration,
) -> PlanResult {
    let disk = PlanDisk::Model(DiskModel::preset(model).unwrap());
    let question = Question {
        audience: PlannedAudience::Rate(rate),
        memory,
        disks: 1,
        startup,
        read: None,
        popularity: None,
        policies: vec![PolicyKind::TimeDomain],
    };
    plan(&disk, question, &mut in_turn)
}

/// The limits in MiB include those where a simulation alone holds fewer with more memory.
#[test]
fn more_memory_never_holds_fewer_streams() {
    for (model, rate, limits) in [
        ("hdd-20tb", 5_000_000, &[1, 1217, 1327, 3072, 3500][..]),
        ("st39183w", 1_500_000, &[8, 64, 77, 512]),
    ] {
        let limits = limits.iter().map(|mib| Some(ByteCount::mib(*mib))).chain([None]);
        let mut before: Option<PlanResult> = None;
        for memory in limits {
            let plan = plan_with(model, BitRate(rate), memory, Duration::from_secs(1));
            let held = |plan: &PlanResult| plan.held().map_or(0, |(_, held)| held.streams);
            if let Some(before) = before {
                assert!(held(&plan) >= held(&before), "{model}, {memory:?}");
                for (more, less) in plan.admitted.iter().zip(&before.admitted) {
                    let streams =
                        |row: &Option<Vec<CapacityResult>>| Some(row.as_ref()?[0].streams);
                    assert!(streams(more) >= streams(less), "{model}, {memory:?}");
                }
            }
            before = Some(plan);
        }
    }
}

/// What plays in ten minutes is 112 MB of each stream.
#[test]
fn memory_is_short_where_a_late_start_holds_fewer_streams() {
    let held = |secs| {
        let memory = Some(ByteCount::mib(1024));
        let startup = Duration::from_secs(secs);
        plan_with("st39183w", BitRate(1_500_000), memory, startup).held().unwrap().1
    };
    let (soon, late) = (held(60), held(600));
    assert_eq!((soon.short_of, late.short_of), (Some(Resource::Disk), Some(Resource::Memory)));
    assert!(late.streams < soon.streams / 2, "{late:?}, {soon:?}");
}
