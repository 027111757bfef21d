//! Disks that fail, and stores that are changed while they are served: requests fail with a reason,
//! and the server keeps running.

use crate::client::TestResponse;
use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::json;
use server::control::{Client, Request};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use store::Store;

/// Fetches a whole title.
fn fetch(serving: &TestServer, path: &str) -> TestResponse {
    serving.client().get_following(path).1
}

#[test]
fn a_truncated_store_file_fails_requests_with_a_reason_and_nothing_else() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    // Opens the title, so that only the media is missing afterwards.
    assert_eq!(serving.client().request("HEAD", "/t/film.mp4", &[]).status, 200);
    OpenOptions::new().write(true).open(&fixture.path).unwrap().set_len(4096).unwrap();
    let response = fetch(&serving, "/t/film.mp4");
    assert!(
        response.status == 500 && response.error() == "read-failed" || !response.whole,
        "{response:?}"
    );
    assert_eq!(serving.client().get("/healthz").status, 200);
    eventually("the failure is counted", || serving.status("/disks/0/failures") > 0);
}

/// Nobody watches: a disk that is cut short is found lost by the read of an operator, or by the
/// scrub.
#[test]
fn a_truncated_store_file_is_told_as_lost_by_any_read() {
    for by_scrub in [false, true] {
        let [first, second] = [(); 2].map(|()| TestStore::with(&[&media().film]));
        let serving = first.serve_with(|config| {
            config.stores.push(second.path.clone());
            config.scrub = by_scrub.then_some(Duration::from_millis(500));
        });
        let is_lost = |disk: usize| {
            serving.client().get("/status").json()["disks"][disk]["lost"].as_bool().unwrap()
        };
        let mut control = Client::connect(&Store::peek(&second.path).unwrap()).unwrap().unwrap();
        assert!(!is_lost(1));
        OpenOptions::new().write(true).open(&second.path).unwrap().set_len(4096).unwrap();
        if !by_scrub {
            let title = Some("film".to_owned());
            let asked = control.call(&Request::Info { title }, |_| {});
            assert!(asked.is_err(), "{asked:?}");
        }
        eventually("the disk is lost", || is_lost(1));
        assert!(!is_lost(0));
        let played = fetch(&serving, "/t/film.mp4");
        assert!(played.status == 200 && played.whole, "from the other disk: {played:?}");
    }
}

#[test]
fn a_title_that_is_removed_while_a_disk_is_lost_is_gone_when_the_disk_is_back() {
    let [first, second] = [(); 2].map(|()| TestStore::with(&[&media().film, &media().song]));
    let serving = first.serve_with(|config| config.stores.push(second.path.clone()));
    let is_lost = || serving.client().get("/status").json()["disks"][1]["lost"] == json!(true);
    let [mut control, mut lost] = [&first, &second]
        .map(|it| Client::connect(&Store::peek(&it.path).unwrap()).unwrap().unwrap());
    let whole = std::fs::read(&second.path).unwrap();
    let file = OpenOptions::new().write(true).open(&second.path).unwrap();
    file.set_len(4096).unwrap();
    let info = Request::Info { title: Some("song".to_owned()) };
    lost.call(&info, |_| {}).unwrap_err();
    eventually("the disk is lost", is_lost);
    let rm = Request::Rm { title: "film".to_owned(), copy_only: false };
    control.call(&rm, |_| {}).unwrap();
    let titles = || {
        let list = serving.client().get("/titles").json();
        list["titles"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect::<Vec<_>>()
    };
    // Before the disk is back, too.
    assert_eq!(titles(), [json!("song")]);
    assert_eq!(serving.client().get("/t/film.mp4").status, 404);
    file.write_all_at(&whole, 0).unwrap();
    eventually("the disk is back", || !is_lost());
    let film = Request::Info { title: Some("film".to_owned()) };
    eventually("its copy is gone, too", || lost.call(&film, |_| {}).is_err());
    lost.call(&info, |_| {}).unwrap();
    assert_eq!(titles(), [json!("song")]);
}

#[test]
fn an_unlinked_store_file_is_still_served() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    std::fs::remove_file(&fixture.path).unwrap();
    let response = fetch(&serving, "/t/film.mp4");
    assert!(response.status == 200 && response.whole);
}

#[test]
fn damaged_bytes_are_never_served() {
    let fixture = TestStore::with(&[&media().film]);
    let store = Store::open(&fixture.path).unwrap();
    let title = store.title("film").unwrap();
    let offset = store.runs(title.id, 0).unwrap()[0].start + 70_000;
    drop(store);
    let file = OpenOptions::new().read(true).write(true).open(&fixture.path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    file.sync_all().unwrap();

    let log = fixture.directory.join("access.log");
    let serving = fixture.serve_with(|config| config.access_log = Some(log.clone()));
    // A read is repeated, and each viewer reads the place: it is damaged once.
    for _ in 0..2 {
        let response = fetch(&serving, "/t/film.mp4");
        assert!(response.status == 500 || !response.whole, "{}", response.status);
    }
    let found = |by: &str| {
        let metrics = serving.client().get("/metrics").text().to_owned();
        let name = format!("{{store=\"{}\",by=\"{by}\"}} ", fixture.path.display());
        let line = metrics.lines().find_map(|line| line.split_once(&name));
        line.expect("a line for each").1.parse::<u64>().unwrap()
    };
    assert_eq!(["viewer", "scrub", "check"].map(found), [1, 0, 0]);
    let mut control = Client::connect(&Store::peek(&fixture.path).unwrap()).unwrap().unwrap();
    control.call(&Request::Check { scrub: true }, |_| {}).unwrap();
    assert_eq!(["viewer", "scrub", "check"].map(found), [1, 0, 1]);
    drop(serving);
    let lines = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["event"] == "damaged"), "{lines:?}");
    let told = lines.iter().filter(|line| line["event"] == "damage-found");
    let told: Vec<_> = told.map(|it| json!([it["by"], it["title"], it["message"]])).collect();
    let what = "damaged data in title 'film', track 0: 65536 bytes at 65536 (40ms into it)";
    assert_eq!(told, [json!(["viewer", "film", what]), json!(["check", "film", what])]);
    let request =
        lines.iter().find(|line| line["status"] == 307).expect("a log line for the request");
    assert_eq!(request["target"], "/t/film.mp4");
    assert!(request["time"].is_string() && request["peer"].is_string());
}
