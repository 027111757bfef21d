//! The observed history of a disk is stored and used again after a restart of the server.

use crate::fixture::{TestServer, TestStore, eventually, media};
use scheduler::{BusySlots, DiskHistory, Guard, HistoryKey, ObservedCurve, PolicyKind, TimeGuard};
use std::time::Duration;
use store::Store;
use units::ByteCount;

fn serve(fixture: &TestStore) -> TestServer {
    fixture.serve_with(|config| config.policy = PolicyKind::Observed)
}

/// The disk in `/status`, after the first slot.
fn disk(serving: &TestServer) -> serde_json::Value {
    let status = || serving.client().get("/status").json();
    eventually("the first status is published", || status()["disks"][0].is_object());
    status()["disks"][0].clone()
}

/// Stops the server and returns the disk history that it has stored.
fn stop(serving: TestServer, fixture: &TestStore) -> Option<DiskHistory> {
    serving.server.stop(Duration::ZERO);
    serving.server.wait().unwrap();
    let store = Store::open(&fixture.path).unwrap();
    store.disk_history().map(|bytes| DiskHistory::decode(&bytes).unwrap())
}

/// The history of a disk that completed half of its guaranteed reads, and at least `busy_reads` in
/// each busy slot.
fn history_of_slow_disk(
    fixture: &TestStore,
    min_read: u32,
    read_size: u64,
    busy_reads: u32,
) -> DiskHistory {
    let calibration =
        Store::open(&fixture.path).unwrap().calibration().expect("the calibration of the fixture");
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
fn a_slow_disk_stays_slow_after_a_restart_and_recovers_slowly() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = serve(&fixture);
    let fresh = disk(&serving);
    let [min_read, read_size] = ["min_read", "read_size"].map(|name| fresh[name].as_u64().unwrap());
    let stored = stop(serving, &fixture);
    assert_eq!(stored, None, "without viewers no history is stored");

    let min_read = u32::try_from(min_read).unwrap();
    let history = history_of_slow_disk(&fixture, min_read, read_size, 1234);
    Store::open(&fixture.path).unwrap().set_disk_history(&history.encode()).unwrap();
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

    // Recovery needs slots with reads, so a viewer plays.
    assert_eq!(serving.client().get("/t/film.mp4").status, 307);
    let min_read_now = || serving.status("/disks/0/min_read");
    let before = u64::from(history.guard.min_read());
    eventually("slots without late reads raise the guarantee", || min_read_now() > before);
    let stored = stop(serving, &fixture).expect("the history is stored at the end");
    assert!(stored.guard.min_read() > history.guard.min_read(), "{:?}", stored.guard);
    assert_eq!(stored.busy_slots.fewest(), Some(1234));
    assert_ne!(
        stored.observed_curve.curve(),
        None,
        "a slow slot stays in the curve for five minutes of use"
    );
}

#[test]
fn a_history_of_other_reads_or_one_that_cannot_be_decoded_is_reported_and_not_used() {
    let fixture = TestStore::with(&[&media().film]);
    let of_other_reads = history_of_slow_disk(&fixture, 7, 1 << 20, 3).encode();
    for (bytes, note) in [
        (&of_other_reads[..], "with other reads"),
        (b"torn", "its stored disk history is not used"),
    ] {
        Store::open(&fixture.path).unwrap().set_disk_history(bytes).unwrap();
        let serving = serve(&fixture);
        let notes = serving.server.notes().join("\n");
        assert!(notes.contains(note), "{notes}");
        let disk = disk(&serving);
        assert_eq!(
            (&disk["observed_slot_reads"], &disk["slowdown"]),
            (&serde_json::Value::Null, &0.0.into())
        );
        drop(serving);
    }
}
