//! Recordings with a guaranteed rate: how many a disk holds, and what is left when they end.

use super::*;
use crate::background_io::GuaranteedWrites;
use disk::DiskModel;
use scheduler::DiskTimings;
use store::RecordingLoad;

/// An engine with one idle disk of this model, which is read by plan.
fn engine(model: &str) -> Engine {
    let model = DiskModel::preset(model).unwrap();
    let mut config = EngineConfig { policy: PolicyKind::TimeDomain, ..config(8, 64) };
    config.disks[0].read_size = ByteCount::MIB;
    let mut engine = Engine::new(config);
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
