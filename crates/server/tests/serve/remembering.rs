//! What a disk was seen to do outlives the server that saw it.

use crate::stage::{Serving, Stage, eventually, media};
use scheduler::{BusySlots, Guard, PolicyKind, Remembered, Seeing, Seen, TimeGuard};
use std::time::Duration;
use store::Store;
use units::ByteCount;

fn serve(stage: &Stage) -> Serving {
    stage.serve_with(|config| config.policy = PolicyKind::Observed)
}

/// The disk as `/status` tells it, once there was a slot.
fn disk(serving: &Serving) -> serde_json::Value {
    let status = || serving.client().get("/status").json();
    eventually("the books are open", || status()["disks"][0].is_object());
    status()["disks"][0].clone()
}

/// Ends the server as a person does, and looks at what it left.
fn stop(serving: Serving, stage: &Stage) -> Option<Remembered> {
    serving.server.stop(Duration::ZERO);
    serving.server.wait().unwrap();
    let store = Store::open(&stage.path).unwrap();
    store.seen().map(|bytes| Remembered::decode(&bytes).unwrap())
}

/// What is kept of a disk that did half of what it should, and at least so much while it was busy.
fn half_as_fast(stage: &Stage, min_read: u32, read_size: u64, busy_reads: u32) -> Remembered {
    let calibration = Store::open(&stage.path).unwrap().calibration().expect("of a fast disk");
    let costs = disk::Costs::of_calibration(&calibration, ByteCount(read_size));
    let charged = costs.map_or(0, |costs| costs.batch(1, costs.slowest_transfer(read_size)));
    let of = Seeing { slot: calibration.slot, read_size, min_read, charged };
    let mut guard = Guard::new(min_read);
    let (mut seen, mut busy) = (Seen::default(), BusySlots::default());
    for _ in 0..10 {
        guard.slot_ended(min_read, min_read / 2);
        seen.slot_ended(min_read / 2, min_read);
    }
    (0..60).for_each(|_| busy.slot_ended(busy_reads));
    Remembered { of, guard, time_guard: TimeGuard::default(), seen, busy }
}

#[test]
fn a_slow_disk_is_still_slow_after_a_restart_and_recovers_slowly() {
    let stage = Stage::with(&[&media().film]);
    let serving = serve(&stage);
    let fresh = disk(&serving);
    let [min_read, read_size] = ["min_read", "read_size"].map(|of| fresh[of].as_u64().unwrap());
    let left = stop(serving, &stage);
    assert_eq!(left, None, "nobody played, and nothing is worth keeping");

    let min_read = u32::try_from(min_read).unwrap();
    let kept = half_as_fast(&stage, min_read, read_size, 1234);
    Store::open(&stage.path).unwrap().set_seen(&kept.encode()).unwrap();
    let serving = serve(&stage);
    let notes = serving.server.notes().join("\n");
    assert!(notes.contains("100 % slower than counted with when it was last used"), "{notes}");
    let half = u64::from(min_read.div_ceil(2)) + 1;
    let last = disk(&serving);
    assert_eq!((&last["observed"], &last["behind"]), (&1234.into(), &1.0.into()), "{last}");
    assert!(last["min_read"].as_u64() < Some(half), "{last}");
    let metrics = serving.client().get("/metrics").text().to_owned();
    let line = |line: &&str| line.starts_with("tenuto_disk_observed_slot_reads{");
    assert!(metrics.lines().find(line).is_some_and(|line| line.ends_with(" 1234")), "{metrics}");

    // A viewer is there, and slots go by.
    assert_eq!(serving.client().get("/t/film.mp4").status, 307);
    let believed = || serving.status("/disks/0/min_read");
    let before = u64::from(kept.guard.min_read());
    eventually("every few slots in time give a read back", || believed() > before);
    let left = stop(serving, &stage).expect("it is kept at the end");
    assert!(left.guard.min_read() > kept.guard.min_read(), "{:?}", left.guard);
    assert_eq!(left.busy.fewest(), Some(1234));
    assert_ne!(left.seen.curve(), None, "a slow slot is remembered for five minutes of use");
}

#[test]
fn what_was_seen_of_other_reads_or_is_not_understood_is_told_and_not_used() {
    let stage = Stage::with(&[&media().film]);
    let of_others = half_as_fast(&stage, 7, 1 << 20, 3).encode();
    for (bytes, told) in [(&of_others[..], "with other reads"), (b"torn", "is not used, because")] {
        Store::open(&stage.path).unwrap().set_seen(bytes).unwrap();
        let serving = serve(&stage);
        let notes = serving.server.notes().join("\n");
        assert!(notes.contains(told), "{notes}");
        let disk = disk(&serving);
        assert_eq!((&disk["observed"], &disk["behind"]), (&serde_json::Value::Null, &0.0.into()));
        drop(serving);
    }
}
