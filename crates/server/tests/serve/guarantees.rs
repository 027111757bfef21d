//! Guarantees of sessions in a running server, and the refusal when a resource is short.

use crate::fixture::{TestStore, eventually, media};
use disk::{Calibration, MeasuredPart};
use std::time::Duration;
use store::Store;
use units::{BitRate, ByteCount};

#[test]
fn guaranteed_and_observed_slack_are_reported_and_no_guarantee_is_violated() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.as_disk = disk::DiskModel::preset("ssd-sata"));
    let idle = serving.client().get("/status").json()["disks"][0].clone();
    // With nothing due there is no tightest place; all of the next slot is slack.
    assert!(idle["guaranteed_slack"].is_null(), "{idle}");
    assert_eq!(idle["slack_reads"], idle["min_read"]);
    let mut viewer = serving.client();
    let path = viewer.get("/t/film.mp4").field("location").unwrap().to_owned();
    assert!(viewer.get(&path).whole);
    let session = || serving.client().get("/sessions").json()["sessions"][0].clone();
    eventually("the observed slack is reported", || session()["observed_slack"].is_f64());
    let seconds = |name: &str| session()[name].as_f64().expect(name);
    assert!(seconds("guaranteed_slack") > 0.0, "{}", session());
    assert!(seconds("observed_slack") > 0.0, "{}", session());
    assert_eq!(session()["guarantee_violations"]["scheduler"], 0, "{}", session());
    assert_eq!(serving.status("/guarantee_violations/scheduler"), 0);
}

#[test]
fn a_refusal_for_network_rate_names_the_network() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.network = Some(BitRate(12_000_000)));
    let mut client = serving.client();
    let refused = (0..30).map(|_| client.get("/t/film/master.m3u8")).find(|a| a.status != 200);
    let refused = refused.expect("30 viewers of 1.5 Mb/s do not fit into 12 Mb/s");
    assert_eq!((refused.status, &*refused.error()), (503, "refused"));
    assert_eq!(refused.json()["resource"], "network", "{}", refused.text());
    assert!(refused.field("retry-after").is_some());
    eventually("the refusal is counted", || serving.status("/refused/network") > 0);
}

/// Writes a record as the server's own measurement of a store with one short film gives it.
fn keep_provisional(fixture: &TestStore, bytes: u64) {
    let store = Store::open(&fixture.path).unwrap();
    let part = MeasuredPart { bytes: ByteCount(bytes), whole: store.device().geometry().size };
    let record = Calibration { measured: Some(part), ..store.calibration().unwrap() };
    assert!(record.is_provisional());
    store.set_calibration(&record).unwrap();
}

/// The only disk's guarantee is provisional, by `/status`, by the notes and by the stored record.
fn provisional(fixture: &TestStore) -> (bool, bool, u64) {
    let serving = fixture.serve();
    let status = || serving.client().get("/status").json();
    eventually("the first status is published", || status()["disks"][0].is_object());
    let shown = status()["disks"][0]["provisional"].as_bool().unwrap();
    let noted = serving.server.notes().iter().any(|note| note.contains("is provisional"));
    serving.server.stop(Duration::ZERO);
    serving.server.wait().unwrap();
    let stored = Store::open(&fixture.path).unwrap().calibration().unwrap();
    assert_eq!(stored.is_provisional(), shown);
    (shown, noted, stored.measured.unwrap().bytes.0)
}

#[test]
fn a_provisional_guarantee_is_reported_and_measured_again_with_more_stored() {
    let fixture = TestStore::with(&[&media().film]);
    keep_provisional(&fixture, 1 << 20);
    let (shown, noted, measured) = provisional(&fixture);
    assert!(shown && noted, "one film of 1 MB is too little");
    // Nothing more is stored: the record stays as it is.
    keep_provisional(&fixture, 8 << 20);
    assert_eq!(provisional(&fixture), (true, true, 8 << 20));
    fixture.add(&[&media().large]);
    let (shown, noted, more) = provisional(&fixture);
    assert!(shown == noted && more > 40 << 20 && more > measured, "{more}");
}
