//! What a viewer is promised, audited in a running server, and what it is told where there is no
//! room.

use crate::fixture::{TestStore, eventually, media};
use units::BitRate;

#[test]
fn a_certificate_is_kept_and_told_while_the_film_plays() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.as_disk = disk::DiskModel::preset("ssd-sata"));
    let mut viewer = serving.client();
    let path = viewer.get("/t/film.mp4").field("location").unwrap().to_owned();
    assert!(viewer.get(&path).whole);
    let session = || serving.client().get("/sessions").json()["sessions"][0].clone();
    eventually("what it was promised and what came", || session()["observed_slack"].is_f64());
    let of = |name: &str| session()[name].as_f64().expect(name);
    assert!(of("guaranteed_slack") > 0.0 && of("observed_slack") > 0.0, "{}", session());
    assert_eq!(session()["guarantee_violations"]["scheduler"], 0, "{}", session());
    assert_eq!(serving.status("/guarantee_violations/scheduler"), 0);
}

#[test]
fn a_network_that_is_full_is_named() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.network = Some(BitRate(12_000_000)));
    let mut client = serving.client();
    let refused = (0..30).map(|_| client.get("/t/film/master.m3u8")).find(|a| a.status != 200);
    let refused = refused.expect("30 viewers of 1.5 Mb/s do not fit into 12 Mb/s");
    assert_eq!((refused.status, &*refused.error()), (503, "refused"));
    assert_eq!(refused.json()["resource"], "network", "{}", refused.text());
    assert!(refused.field("retry-after").is_some());
    eventually("it is counted", || serving.status("/refused/network") > 0);
}
