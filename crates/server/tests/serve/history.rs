//! What a disk was seen to do outlives the server that saw it.

use crate::fixture::{TestServer, TestStore, eventually, media};
use scheduler::{BusySlots, DiskHistory, Guard, HistoryKey, ObservedCurve, PolicyKind, TimeGuard};
use std::time::Duration;
use store::Store;
use units::ByteCount;

fn serve(fixture: &TestStore) -> TestServer {
    fixture.serve_with(|config| config.policy = PolicyKind::Observed)
}

/// The disk as `/status` tells it, once there was a slot.
fn disk(serving: &TestServer) -> serde_json::Value {
    let status = || serving.client().get("/status").json();
    eventually("the books are open", || status()["disks"][0].is_object());
    status()["disks"][0].clone()
}

/// Ends the server as a person does, and looks at what it left.
fn stop(serving: TestServer, fixture: &TestStore) -> Option<DiskHistory> {
    serving.server.stop(Duration::ZERO);
    serving.server.wait().unwrap();
    let store = Store::open(&fixture.path).unwrap();
    store.disk_history().map(|bytes| DiskHistory::decode(&bytes).unwrap())
}

/// What is kept of a disk that did half of what it should, and at least so much while it was busy.
fn half_as_fast(
    fixture: &TestStore,
    min_read: u32,
    read_size: u64,
    busy_reads: u32,
) -> DiskHistory {
    let calibration = Store::open(&fixture.path).unwrap().calibration().expect("of a fast disk");
    let costs = disk::Costs::of_calibration(&calibration, ByteCount(read_size));
    let charged = costs.map_or(0, |costs| costs.batch(1, costs.slowest_transfer(read_size)));
    let key = HistoryKey { slot: calibration.slot, read_size, min_read, charged };
    let mut guard = Guard::new(min_read);
    let (mut observed_curve, mut busy_slots) = (ObservedCurve::default(), BusySlots::default());
    for _ in 0..10 {
        guard.slot_ended(min_read, min_read / 2);
        observed_curve.slot_ended(min_read / 2, min_read);
    }
    (0..60).for_each(|_| busy_slots.slot_ended(busy_reads));
    DiskHistory { key, guard, time_guard: TimeGuard::default(), observed_curve, busy_slots }
}

#[test]
fn a_slow_disk_is_still_slow_after_a_restart_and_recovers_slowly() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = serve(&fixture);
    let fresh = disk(&serving);
    let [min_read, read_size] = ["min_read", "read_size"].map(|of| fresh[of].as_u64().unwrap());
    let left = stop(serving, &fixture);
    assert_eq!(left, None, "nobody played, and nothing is worth keeping");

    let min_read = u32::try_from(min_read).unwrap();
    let kept = half_as_fast(&fixture, min_read, read_size, 1234);
    Store::open(&fixture.path).unwrap().set_disk_history(&kept.encode()).unwrap();
    let serving = serve(&fixture);
    let notes = serving.server.notes().join("\n");
    assert!(notes.contains("100 % slower than calibrated when it was last used"), "{notes}");
    let half = u64::from(min_read.div_ceil(2)) + 1;
    let last = disk(&serving);
    assert_eq!(
        (&last["observed_slot_reads"], &last["slowdown"]),
        (&1234.into(), &1.0.into()),
        "{last}"
    );
    assert!(last["min_read"].as_u64() < Some(half), "{last}");
    let metrics = serving.client().get("/metrics").text().to_owned();
    let line = |line: &&str| line.starts_with("tenuto_disk_observed_slot_reads{");
    assert!(metrics.lines().find(line).is_some_and(|line| line.ends_with(" 1234")), "{metrics}");

    // A viewer is there, and slots go by.
    assert_eq!(serving.client().get("/t/film.mp4").status, 307);
    let believed = || serving.status("/disks/0/min_read");
    let before = u64::from(kept.guard.min_read());
    eventually("every few slots in time give a read back", || believed() > before);
    let left = stop(serving, &fixture).expect("it is kept at the end");
    assert!(left.guard.min_read() > kept.guard.min_read(), "{:?}", left.guard);
    assert_eq!(left.busy_slots.fewest(), Some(1234));
    assert_ne!(
        left.observed_curve.curve(),
        None,
        "a slow slot is remembered for five minutes of use"
    );
}

#[test]
fn what_was_seen_of_other_reads_or_is_not_understood_is_told_and_not_used() {
    let fixture = TestStore::with(&[&media().film]);
    let of_others = half_as_fast(&fixture, 7, 1 << 20, 3).encode();
    for (bytes, told) in
        [(&of_others[..], "with other reads"), (b"torn", "kept with it is not used")]
    {
        Store::open(&fixture.path).unwrap().set_disk_history(bytes).unwrap();
        let serving = serve(&fixture);
        let notes = serving.server.notes().join("\n");
        assert!(notes.contains(told), "{notes}");
        let disk = disk(&serving);
        assert_eq!(
            (&disk["observed_slot_reads"], &disk["slowdown"]),
            (&serde_json::Value::Null, &0.0.into())
        );
        drop(serving);
    }
}
