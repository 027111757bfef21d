//! A disk that is drained over the API: titles with a copy are read elsewhere, and what is only
//! there is named.

use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::{Value, json};
use server::control::{Client, ControlError, RecordingSeries, Reply, Request};
use server::{Server, ServerConfig};
use std::process::Command;
use store::{RecordingInput, Store};

#[test]
fn a_drained_disk_is_left_by_those_who_can() {
    let (first, second) =
        (TestStore::with(&[&media().film, &media().song]), TestStore::with(&[&media().film]));
    let config = || {
        let stores = vec![first.path.clone(), second.path.clone()];
        ServerConfig { stores, ..first.config() }
    };
    let serving = first.serve_with(|used| *used = config());
    let store = Store::peek(&first.path).unwrap();
    let ask = |drain| {
        let mut control = Client::connect(&store).unwrap().expect("a control socket");
        match control.call(&Request::Drain { drain }, |_| {}).unwrap() {
            Reply::Drain(report) => report,
            other => panic!("{other:?}"),
        }
    };
    let play = |serving: &TestServer| serving.client().get("/t/film/master.m3u8").status;
    let on_first = |serving: &TestServer| -> Value {
        serving.client().get("/status").json()["disks"][0]["sessions"].clone()
    };
    // An idle server always reads from the same disk.
    assert_eq!(play(&serving), 200);
    let before = ask(None);
    assert_eq!((before.draining, before.titles_only_here), (false, 1));
    assert_eq!(before.titles, ["song"]);
    assert!(ask(Some(true)).draining);
    eventually("its session has left it", || ask(None).sessions == 0);
    eventually("that is told", || {
        serving.server.take_notices().iter().any(|line| line.contains("no session is read"))
    });
    assert_eq!(play(&serving), 200);
    assert_eq!(on_first(&serving), json!(0));
    let song = serving.client().get_following("/t/song.mp4").1;
    assert!(song.status == 200 && song.whole, "the one that is only there is served");
    // The next server goes on with it.
    let handover = serving.server.hand_over().unwrap();
    let serving = TestServer { server: Server::take_over(handover, config()).unwrap() };
    assert!(ask(None).draining);
    assert!(serving.client().get("/metrics").text().contains("tenuto_disk_draining"));
    assert!(!ask(Some(false)).draining);
}

#[test]
fn a_disk_is_not_drained_while_something_is_recorded_there() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let store = Store::peek(&fixture.path).unwrap();
    let call = |request: &Request| {
        let mut control = Client::connect(&store).unwrap().expect("a control socket");
        control.call(request, |_| {})
    };
    let drained = |drain| match call(&Request::Drain { drain }).unwrap() {
        Reply::Drain(report) => report,
        other => panic!("{other:?}"),
    };
    let pipe = fixture.path.with_extension("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let record = |title: &str, series| Request::Record {
        input: RecordingInput::File(pipe.clone()),
        title: title.to_owned(),
        seconds: None,
        program: None,
        silence: 600.0,
        rate: None,
        series,
    };
    std::thread::scope(|scope| {
        // Nothing of it has come: no title is in the store yet.
        let series = Some(RecordingSeries { keep: None, part: 60.0, reconnect: false });
        let recording = scope.spawn(|| call(&record("hall", series)));
        eventually("it is listed", || !drained(None).recordings.is_empty());
        let report = drained(Some(true));
        let names: Vec<&str> = report.recordings.iter().map(|it| it.title.as_str()).collect();
        assert_eq!((report.sessions, names), (0, vec!["hall"]));
        let said = |words: &str| {
            let words = words.to_owned();
            eventually("that is told", || {
                let lines = serving.server.take_notices();
                let ready = "and nothing is recorded there";
                assert!(words == ready || !lines.iter().any(|line| line.contains(ready)));
                lines.iter().any(|line| line.contains(&words))
            });
        };
        said("not drained yet: no session is read from it, and 1 recording goes on there ('hall')");
        let refused = call(&record("other", None)).unwrap_err();
        let ControlError::Failed(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.code, "draining", "{refused:?}");
        assert!(refused.hint.unwrap().contains("record into another store"));
        // The pipe's end without a byte ends it.
        let _ = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        assert!(recording.join().unwrap().is_err());
        said("and nothing is recorded there");
        assert_eq!(drained(None).recordings, []);
    });
    std::fs::remove_file(&pipe).unwrap();
}
