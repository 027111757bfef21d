//! Titles that go while they are played, servers that stop, and stores that have an owner.

use crate::fixture::{TestStore, eventually, media};
use serde_json::json;
use server::control::{Client, Reply, Request};
use server::{Server, ServerError};
use std::time::Duration;
use store::Store;

#[test]
fn two_viewers_of_a_removed_title_see_it_to_the_end_and_nobody_else_sees_it() {
    let fixture = TestStore::with(&[&media().film]);
    let uuid = Store::peek(&fixture.path).unwrap().uuid;
    let serving = fixture.serve_with(|config| config.session_timeout = Duration::from_secs(1));
    let mut viewers = [serving.client(), serving.client()];
    let paths =
        viewers.each_mut().map(|v| v.get("/t/film.mp4").field("location").unwrap().to_owned());
    assert_eq!(viewers[0].get(&paths[0]).status, 200);

    let mut control = Client::connect(uuid).unwrap().expect("a control socket");
    let free = || match Client::connect(uuid).unwrap().unwrap().call(&info(), |_| {}).unwrap() {
        Reply::Store(info) => info.free_bytes,
        other => panic!("{other:?}"),
    };
    let before = free();
    let removed = control.call(&Request::Rm { title: "film".to_owned() }, |_| {}).unwrap();
    assert!(matches!(removed, Reply::Removed { in_use: true, .. }), "{removed:?}");
    assert_eq!(serving.client().get("/t/film.mp4").error(), "no-title");
    assert_eq!(serving.client().get("/titles").json()["titles"].as_array().unwrap().len(), 0);
    let again = control.call(&Request::Rm { title: "film".to_owned() }, |_| {});
    assert!(again.unwrap_err().to_string().contains("film"));
    for (viewer, path) in viewers.iter_mut().zip(&paths) {
        let answer = viewer.get(path);
        assert!(answer.status == 200 && answer.whole, "{path}: {}", answer.status);
    }
    assert_eq!(free(), before, "its space is kept while it is played");
    eventually("its space is free when the last viewer has gone", || free() > before);
}

fn info() -> Request {
    Request::Info { title: None }
}

#[test]
fn titles_are_open_before_anybody_asks_for_them() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let serving = fixture.serve();
    let open = || serving.client().get("/metrics").text().contains("\ntenuto_titles_open 2\n");
    eventually("both indexes are in memory", open);
}

#[test]
fn a_second_server_on_an_owned_store_is_told_so() {
    let fixture = TestStore::with(&[]);
    let first = fixture.serve();
    let error = Server::start(fixture.config()).unwrap_err();
    let ServerError::Store { path, reason } = error else { panic!("{error}") };
    assert_eq!(path, fixture.path);
    assert!(reason.contains("in use by another process"), "{reason}");
    assert_eq!(first.client().get("/healthz").status, 200);
    drop(first);
    drop(fixture.serve());
}

#[test]
fn a_taken_address_is_named() {
    let fixture = TestStore::with(&[]);
    let other = TestStore::with(&[]);
    let serving = fixture.serve();
    let mut config = other.config();
    config.listen = serving.server.address();
    let error = Server::start(config).unwrap_err();
    assert!(error.to_string().contains(&serving.server.address().to_string()), "{error}");
}

#[test]
fn who_plays_is_listed_without_what_would_let_others_in() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut viewer = serving.client();
    let path = viewer.get("/t/film.mp4").field("location").unwrap().to_owned();
    let delivered = viewer.get(&path).body.len() as u64;
    let list = || serving.client().get("/sessions").json();
    eventually("it is listed, with what it got", || {
        let got = list()["sessions"][0]["delivered"].as_u64().unwrap_or(0);
        // All but what is made for it: headers.
        got > delivered * 9 / 10
    });
    let list = list();
    assert_eq!((&list["total"], &list["sessions"][0]["title"]), (&json!(1), &json!("film")));
    assert_eq!(list["sessions"][0]["store"], json!(fixture.path.display().to_string()));
    assert_eq!(list["sessions"][0]["deadline_misses"], json!(0));
    let token = path.split_once("?s=").unwrap().1;
    assert!(!list.to_string().contains(token), "{list}");
}

#[test]
fn stopping_lets_nobody_in_and_waits_for_those_who_play() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut viewer = serving.client();
    let path = viewer.get("/t/film.mp4").field("location").unwrap().to_owned();
    serving.server.stop(Duration::from_secs(60));
    eventually("it says so", || serving.client().get("/healthz").status == 503);
    let newcomer = serving.client().get("/t/film.mp4");
    assert_eq!((newcomer.status, &*newcomer.error()), (503, "stopping"));
    let answer = viewer.get(&path);
    assert!(answer.status == 200 && answer.whole, "who plays plays on: {answer:?}");
    serving.server.stop(Duration::ZERO);
    serving.server.wait().unwrap();
    Store::open(&fixture.path).expect("the store is nobody's now");
}

#[test]
fn a_server_that_nobody_uses_stops_at_once() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve();
    assert!(serving.server.is_running());
    serving.server.stop(Duration::from_secs(3600));
    serving.server.wait().unwrap();
}
