//! A disk that is drained over the API: titles with a copy are read elsewhere, and what is only
//! there is named.

use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::{Value, json};
use server::control::{Client, Reply, Request};
use server::{Server, ServerConfig};
use store::Store;

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
