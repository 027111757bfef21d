//! Guarantees of sessions in a running server, and the refusal when a resource is short.

use crate::fixture::{TestStore, eventually, media};
use units::BitRate;

#[test]
fn guaranteed_and_observed_slack_are_reported_and_no_guarantee_is_violated() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.as_disk = disk::DiskModel::preset("ssd-sata"));
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
