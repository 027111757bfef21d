//! Writes at a guaranteed rate: how many recordings a disk holds, what is left when they end, and
//! what is kept for copies.

use super::*;
use disk::DiskModel;
use engine::{DiskGuarantee, Engine, EngineConfig};
use scheduler::{DiskTimings, PolicyKind, WriteShare};
use units::Moment;

/// An engine with one idle disk of this model, which is read by plan.
fn engine(model: &str) -> Engine {
    let model = DiskModel::preset(model).unwrap();
    let mut engine = Engine::new(EngineConfig {
        slot: Duration::from_millis(500),
        policy: PolicyKind::TimeDomain,
        startup: Duration::from_secs(2),
        buffers: ByteCount(64 * 4096),
        network: None,
        reservation_hold: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        session_timeout: Duration::from_secs(30),
        survive_loss: false,
        fills: 0,
        disks: vec![DiskGuarantee {
            min_read: 8,
            read_size: ByteCount::MIB,
            longest_read: Duration::from_millis(100),
            queue_depth: 1,
        }],
    });
    engine.set_timings(
        Moment::ZERO,
        DiskNumber(0),
        DiskTimings::of_model(&model, ByteCount::MIB, 4),
    );
    engine
}

/// How many recordings of this rate are admitted one after the other, up to a thousand.
fn held(engine: &mut Engine, megabits: u64, tracks: u32) -> Vec<RecordingId> {
    let load = RecordingLoad { rate: BitRate(megabits * 1_000_000), tracks };
    let admit = |_| {
        engine
            .admit_recording(
                Moment::ZERO,
                DiskNumber(0),
                GuaranteedWrites::Recording(load).demand(),
            )
            .ok()
    };
    (0..1000).map_while(admit).collect()
}

/// What `docs/guide/record.md` says of idle disks.
#[test]
fn so_many_recordings_are_held_by_an_idle_disk() {
    let table = [
        ("hdd-20tb", 4, 1, 17),
        ("hdd-20tb", 4, 2, 9),
        ("hdd-20tb", 20, 2, 7),
        ("hdd-20tb", 50, 2, 5),
        ("ssd-sata", 4, 1, 845),
        ("ssd-sata", 4, 2, 758),
        ("ssd-sata", 20, 2, 178),
        ("ssd-sata", 50, 2, 71),
    ];
    let held = table.map(|(model, megabits, tracks, _)| {
        (model, megabits, tracks, held(&mut engine(model), megabits, tracks).len())
    });
    assert_eq!(held, table, "disk, Mb/s, tracks, recordings");
}

#[test]
fn what_a_recording_had_is_free_when_it_ends() {
    let mut engine = engine("hdd-20tb");
    let all = held(&mut engine, 4, 2);
    let status = |engine: &Engine| {
        let disk = engine.status(Moment::ZERO).disks[0];
        (disk.recordings, disk.write_share.part)
    };
    let full = status(&engine);
    assert!(full.0 == all.len() && full.1 > 0);
    all.iter().for_each(|recording| engine.end_recording(Moment::ZERO, *recording));
    assert_eq!(status(&engine), (0, 0));
    assert_eq!(held(&mut engine, 4, 2).len(), all.len());
    assert_eq!(status(&engine), full);
}

/// The part of a disk's time, in thousandths, that is kept for a copy of 100 Mb/s.
#[test]
fn large_writes_of_a_copy_take_less_of_a_disk_with_an_arm() {
    let rows = [("hdd-20tb", 1), ("hdd-20tb", 4), ("hdd-20tb", 8), ("ssd-sata", 1)];
    let kept = rows.map(|(model, mebibytes)| {
        let model = DiskModel::preset(model).expect("a built-in model");
        let timings = DiskTimings::of_model(&model, ByteCount::MIB, 1);
        let write = ByteCount::mib(mebibytes);
        let demand = GuaranteedWrites::Copy { rate: BitRate(100_000_000), write }.demand();
        let charge = |job: WriteJob| job.charge(&timings).expect("the times are known");
        let share = WriteDemand::share_of([&demand].into_iter(), charge);
        share.part * 1000 / WriteShare::WHOLE
    });
    assert_eq!(kept, [702, 245, 169, 28], "{rows:?}");
}
