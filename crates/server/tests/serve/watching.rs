//! Clients that watch the server: what happens comes as events, and who goes is forgotten.

use crate::client::Client;
use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::Value;
use std::io::BufRead;

/// A client that watches, with the events that it has not read yet.
fn watch(serving: &TestServer) -> Client {
    let mut client = serving.client();
    client.send(b"GET /api/v1/events HTTP/1.1\r\nHost: test\r\n\r\n");
    let head = client.read_response(false).expect("a response");
    assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.field("access-control-allow-origin"), None);
    client
}

/// The next event; `None` where the response has ended.
fn next(client: &mut Client) -> Option<(String, Value)> {
    let mut line = || {
        let mut line = String::new();
        let count = client.stream.read_line(&mut line).unwrap_or(0);
        (count > 0).then(|| line.trim_end().to_owned())
    };
    let (name, data, end) = (line()?, line()?, line()?);
    assert_eq!(end, "");
    let data = data.strip_prefix("data: ").expect("data");
    let name = name.strip_prefix("event: ").expect("a name").to_owned();
    Some((name, serde_json::from_str(data).expect("JSON")))
}

/// The next event of this name.
fn next_of(client: &mut Client, wanted: &str) -> Value {
    loop {
        let (name, data) = next(client).expect("the response goes on");
        if name == wanted {
            return data;
        }
    }
}

fn slots(status: &Value) -> Vec<u64> {
    let slots = status["disks"][0]["slots"].as_array().expect("slots").iter();
    slots.map(|slot| slot["slot"].as_u64().expect("a number")).collect()
}

#[test]
fn who_watches_sees_each_slot_once_and_each_decision() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    eventually("some slots are over", || {
        serving.status("/disks/0/reads") == 0 && {
            let status = serving.client().get("/status").json();
            slots(&status).len() > 2
        }
    });
    let mut client = watch(&serving);
    let first = next_of(&mut client, "status");
    assert_eq!(first["policy"], "time-domain");
    let mut seen = slots(&first);
    assert!(seen.len() > 2, "{seen:?}");
    for _ in 0..4 {
        seen.extend(slots(&next_of(&mut client, "status")));
    }
    let from = seen[0];
    let all: Vec<u64> = (from..).take(seen.len()).collect();
    assert_eq!(seen, all, "no slot is missing and none comes twice");

    assert_eq!(serving.client().get("/t/film/master.m3u8").status, 200);
    let decision = next_of(&mut client, "decision");
    assert_eq!((&decision["verdict"], &decision["title"]), (&"admitted".into(), &"film".into()));
    assert_eq!(next_of(&mut client, "status")["sessions"], 1);

    drop(serving);
    while next(&mut client).is_some() {}
}

#[test]
fn those_who_watch_are_bounded_and_forgotten_when_they_go() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.http_threads = 1);
    let connections = serving.status("/connections");
    let watching: Vec<Client> = (0..32).map(|_| watch(&serving)).collect();
    let refused = serving.client().get("/api/v1/events");
    let problem = (refused.status, refused.json()["error"].clone(), refused.field("content-type"));
    assert_eq!(problem, (503, "busy".into(), Some("application/problem+json")));
    assert!(refused.field("retry-after").is_some());
    drop(watching);
    eventually("they are forgotten", || serving.status("/connections") <= connections);
    watch(&serving);
}
