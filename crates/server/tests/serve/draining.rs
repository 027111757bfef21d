//! A disk that is drained over the API: titles with a copy are read elsewhere, and what is only
//! there is named.

use crate::admin::Administered;
use crate::fixture::{TestServer, TestStore, eventually, ingest_request, media};
use serde_json::{Value, json};
use server::control::{Client, ControlError, RecordingSeries, Reply, Request};
use server::{Server, ServerConfig};
use std::process::Command;
use std::time::Duration;
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
    // The next server goes on with it, and does not tell it again.
    eventually("nobody watches the song", || ask(None).sessions == 0);
    let is_told = |lines: &[String]| lines.iter().any(|line| line.contains("no session is read"));
    let slots = |serving: &TestServer| {
        let status = serving.client().get("/status").json();
        status["disks"][0]["slots"].as_array().unwrap().len()
    };
    let before = slots(&serving);
    eventually("the disk has been looked at", || slots(&serving) > before + 1);
    serving.server.take_notices();
    let handover = serving.server.hand_over().unwrap();
    let serving = TestServer { server: Server::take_over(handover, config()).unwrap() };
    assert!(ask(None).draining);
    eventually("the disk has been looked at", || slots(&serving) > 2);
    assert!(!is_told(&serving.server.take_notices()));
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
                let ready = "and nothing is written there";
                assert!(words == ready || !lines.iter().any(|line| line.contains(ready)));
                lines.iter().any(|line| line.contains(&words))
            });
        };
        said("not drained yet: no session is read from it, and 1 recording goes on there ('hall')");
        let refused = call(&record("other", None)).unwrap_err();
        let ControlError::Failed(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.code, "draining", "{refused:?}");
        assert!(refused.hint.unwrap().contains("record into another store"));
        let end = |title: &str| call(&Request::EndRecording { title: title.to_owned() });
        let ControlError::Failed(absent) = end("other").unwrap_err() else { panic!("other ends") };
        assert_eq!(absent.code, "no-recording");
        assert_eq!(end("hall").unwrap(), Reply::RecordingEnding);
        let ControlError::Failed(ended) = recording.join().unwrap().unwrap_err() else {
            panic!("it fails in another way")
        };
        assert_eq!(ended.code, "ended-by-operator");
        assert!(ended.message.contains("an operator of the server has ended the recording"));
        said("and nothing is written there");
        assert_eq!(drained(None).recordings, []);
    });
    std::fs::remove_file(&pipe).unwrap();
}

#[test]
fn nothing_is_ingested_onto_a_draining_disk_and_what_runs_goes_on() {
    let api = Administered::new(Duration::from_secs(20));
    let disk = format!("/api/v1/disks/{}", api.disk);
    let (song, new) = (std::fs::read(&media().song).unwrap(), api.title("new"));
    let drain = |method| api.ask(method, &format!("{disk}/drain"), "", b"").json();
    // An upload that has begun, of which half has come.
    let mut client = api.serving.client();
    let length = format!("Content-Length: {}\r\n", song.len());
    api.begin(&mut client, "PUT", &new, &length);
    client.send(&song[..song.len() / 2]);
    eventually("it has begun", || api.uploads() == 1);
    let report = drain("POST");
    let ingests = &report["ingests"];
    assert_eq!((&ingests[0]["kind"], &ingests[0]["title"]), (&json!("ingest"), &json!("new")));
    let notices = || api.serving.server.take_notices();
    let wanted = "not drained yet: no session is read from it, and 1 ingest goes on there ('new')";
    eventually("that is told", || notices().iter().any(|line| line.contains(wanted)));

    // No other begins: over the API, by a command, as a copy or as a repair.
    let refused = api.ask("PUT", &api.title("other"), "", &song);
    assert_eq!((refused.status, &refused.json()["error"]), (409, &json!("draining")));
    assert!(refused.json()["hint"].as_str().unwrap().starts_with("ingest into another store, or"));
    let store = Store::peek(&api.fixture.path).unwrap();
    let title = "other".to_owned();
    let ingest = ingest_request(vec![media().song.clone()]);
    let copy = Request::Copy { title, from: Vec::new() };
    for request in [ingest, copy, Request::Repair { from: Vec::new() }] {
        let mut control = Client::connect(&store).unwrap().expect("a control socket");
        let failed = control.call(&request, |_| {}).unwrap_err();
        let ControlError::Failed(failure) = failed else { panic!("{failed}") };
        assert_eq!(failure.code, "draining", "{request:?}");
    }

    // The one that had begun becomes a title, and then the disk is drained.
    client.send(&song[song.len() / 2..]);
    assert_eq!(client.read_response(true).unwrap().status, 201);
    eventually("it is drained", || {
        notices().iter().any(|line| line.contains("and nothing is written there"))
    });
    assert_eq!(drain("GET")["ingests"], json!([]));
    drain("DELETE");
    assert_eq!(api.ask("PUT", &api.title("other"), "", &song).status, 201);
}
