//! Commands over the control socket of a served store.

use crate::fixture::{TestStore, ingest_request, media};
use server::control::{Client, ControlError, Reply, Request};
use server::wire;
use std::os::unix::ffi::OsStrExt as _;
use store::{Store, TitleSelection};
use units::ByteCount;

fn control(fixture: &TestStore) -> Client {
    let store = Store::peek(&fixture.path).unwrap();
    Client::connect(&store).unwrap().expect("a control socket")
}

fn call(client: &mut Client, request: &Request) -> Reply {
    client.call(request, |_| {}).unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

#[test]
fn a_title_is_ingested_renamed_exported_and_checked_while_others_play() {
    let media = media();
    let fixture = TestStore::with(&[&media.film]);
    let serving = fixture.serve_with(|config| config.memory = Some(ByteCount::mib(512)));
    let mut client = control(&fixture);
    let files = vec![media.large.clone(), "/no/such/file.mp4".into()];
    let mut progress = 0;
    let request = ingest_request(files);
    let reply = client.call(&request, |_| progress += 1).unwrap();
    let files = vec![std::ffi::OsStr::from_bytes(b"/films/\xff.mp4").into()];
    let request = ingest_request(files);
    let error = client.call(&request, |_| {}).unwrap_err();
    assert!(matches!(error, ControlError::NotUtf8), "{error}");
    let Reply::Ingest(report) = reply else { panic!("{reply:?}") };
    assert_eq!(report.files[0].title.as_ref().unwrap().name, "large");
    assert!(report.files[1].error.is_some(), "{report:?}");
    assert!(progress > 0, "a long request reports its progress");

    let renamed = Request::Rename { old: "large".to_owned(), new: "big/ä %".to_owned() };
    assert_eq!(call(&mut client, &renamed), Reply::Renamed);
    let all = Request::Ls(TitleSelection::default());
    let Reply::Titles(list) = call(&mut client, &all) else { panic!() };
    let names: Vec<&str> = list.titles.iter().map(|title| title.name.as_str()).collect();
    assert_eq!(names, ["big/ä %", "film"]);
    let played = serving.client().get_following("/t/big%2F%C3%A4%20%25.mp4").1;
    assert!(played.status == 200 && played.whole, "{played:?}");

    let detail = Request::Info { title: Some("film".to_owned()) };
    let Reply::Title(detail) = call(&mut client, &detail) else { panic!() };
    assert!(detail.track_list.iter().any(|track| track.codec.starts_with("avc1")), "{detail:?}");

    let out = fixture.directory.join("exported.mp4");
    let export = Request::Export { title: "film".to_owned(), out: out.clone() };
    let Reply::Export(report) = call(&mut client, &export) else { panic!() };
    assert_eq!(report.bytes, std::fs::metadata(&out).unwrap().len());

    let Reply::Check(report) = call(&mut client, &Request::Check { scrub: true }) else { panic!() };
    assert!(report.clean && report.titles == 2, "{report:?}");
    let Reply::Status(status) = call(&mut client, &Request::Status) else { panic!() };
    assert_eq!(status.disks.len(), 1);
}

#[test]
fn a_failed_request_names_the_reason_and_the_connection_stays_usable() {
    let fixture = TestStore::with(&[]);
    let _serving = fixture.serve();
    let mut client = control(&fixture);
    let missing = || "nothing".to_owned();
    for request in [
        Request::Rm { title: missing(), copy_only: false },
        Request::Info { title: Some(missing()) },
        Request::Rename { old: missing(), new: "x".to_owned() },
        Request::Export { title: missing(), out: fixture.directory.join("x.mp4") },
    ] {
        match client.call(&request, |_| {}) {
            Err(ControlError::Failed(failure)) => assert_eq!(failure.code, "no-title"),
            other => panic!("{request:?}: {other:?}"),
        }
    }
    let all = Request::Ls(TitleSelection::default());
    assert_eq!(call(&mut client, &all), Reply::Titles(wire::TitleList::default()));
}

#[test]
fn a_store_that_is_not_served_has_no_control_socket() {
    let fixture = TestStore::with(&[]);
    let store = Store::peek(&fixture.path).unwrap();
    assert!(Client::connect(&store).unwrap().is_none());
    drop(fixture.serve());
    assert!(Client::connect(&store).unwrap().is_none(), "the socket is removed with its server");
}
