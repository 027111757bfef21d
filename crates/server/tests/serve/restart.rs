//! A server that another one takes the place of: sessions go on, connections wait, and one that
//! cannot go on says so.

use crate::client::{Client, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::{Value, json};
use server::{Server, ServerConfig};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use store::{FormatOptions, Store};
use units::{ByteCount, Reason};

/// The addresses of a player's segments of its first rendition, and its connection.
fn player(serving: &TestServer) -> (Client, Vec<String>) {
    let mut client = serving.client();
    let master = "/t/film/master.m3u8";
    let list = playlist_uris(client.get(master).text(), master)[0].clone();
    let segments = playlist_uris(client.get(&list).text(), &list);
    (client, segments)
}

/// The sessions without what changes from moment to moment.
fn sessions(serving: &TestServer) -> Vec<(Value, Value, Value)> {
    let list = serving.client().get("/sessions").json();
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions.map(|s| (s["session"].clone(), s["title"].clone(), s["store"].clone())).collect()
}

/// The highest number of a session.
fn newest(serving: &TestServer) -> Option<u64> {
    sessions(serving).iter().filter_map(|(number, ..)| number.as_u64()).max()
}

/// Another server in the place of this one.
fn replaced(serving: TestServer, config: ServerConfig) -> TestServer {
    let handover = serving.server.hand_over().unwrap();
    TestServer { server: Server::take_over(handover, config).unwrap() }
}

/// Connects again and again until `ended`; returns how many requests were answered. Each must be.
fn connect_all_the_time(address: SocketAddr, ended: &AtomicBool) -> u64 {
    let mut answered = 0;
    while !ended.load(Ordering::Relaxed) {
        let mut client = Client::connect(address);
        client.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        let response = client.read_response(true).expect("no connection ends without an answer");
        assert_eq!(response.status, 200);
        answered += 1;
    }
    answered
}

#[test]
fn sessions_go_on_and_no_connection_is_refused() {
    let fixture = TestStore::with(&[&media().film]);
    let config =
        ServerConfig { access_log: Some(fixture.directory.join("log")), ..fixture.config() };
    let started = config.clone();
    let serving = fixture.serve_with(|config| *config = started);
    let (mut hls, segments) = player(&serving);
    let mut whole = serving.client();
    let (file, _) = whole.get_following("/t/film.mp4");
    let first = hls.get(&segments[1]);
    assert_eq!(first.status, 200);
    let (before, address) = (sessions(&serving), serving.server.address());
    assert_eq!(before.len(), 2);

    let ended = Arc::new(AtomicBool::new(false));
    let others = [(); 4].map(|()| {
        let ended = Arc::clone(&ended);
        thread::spawn(move || connect_all_the_time(address, &ended))
    });
    let serving = replaced(serving, config.clone());
    assert_eq!(serving.server.address(), address);
    assert_eq!(sessions(&serving), before);
    ended.store(true, Ordering::Relaxed);
    for other in others {
        assert!(other.join().unwrap() > 0);
    }

    let mut hls = serving.client();
    for segment in &segments[2..] {
        let response = hls.get(segment);
        assert!(response.status == 200 && response.whole, "{segment}: {response:?}");
    }
    assert_eq!(hls.get(&segments[1]).body, first.body, "the same bytes as before");
    let part = serving.client().request("GET", &file, &[("Range", "bytes=100-199")]);
    assert_eq!((part.status, part.body.len()), (206, 100));
    for counter in ["/deadline_misses", "/guarantee_violations/scheduler"] {
        assert_eq!(serving.status(counter), 0, "{counter}");
    }
    // Once more: what was taken over can be again. A session that has ended leaves its number.
    let (mut ended, segments_of_it) = player(&serving);
    let number = newest(&serving);
    let (_, query) = segments_of_it[0].split_once('?').expect("a session");
    assert_eq!(ended.request("DELETE", &format!("/t/film/session?{query}"), &[]).status, 204);
    eventually("it has ended", || sessions(&serving) == before);
    let serving = replaced(serving, config);
    assert_eq!(sessions(&serving), before);
    let _newer = player(&serving);
    assert!(newest(&serving) > number, "{number:?} is used again");
    assert_eq!(serving.client().get(&segments[2]).status, 200);
    eventually("both are in the log", || {
        let log = std::fs::read_to_string(fixture.directory.join("log")).unwrap();
        log.matches("\"event\":\"restarted\"").count() == 2
    });
}

/// A disk that the server before could not measure, because the store was empty then.
#[test]
fn no_disk_is_measured_while_sessions_wait() {
    let fixture = TestStore::with(&[]);
    let empty = fixture.directory.join("empty.store");
    let options = FormatOptions { size: Some(ByteCount::mib(128)), ..FormatOptions::default() };
    Store::format(&empty, &options).unwrap();
    std::fs::rename(&empty, &fixture.path).unwrap();
    let serving = fixture.serve();
    let min_read = |serving: &TestServer| serving.status("/disks/0/min_read");
    let before = min_read(&serving);
    let handover = serving.server.hand_over().unwrap();
    fixture.add(&[&media().film]);
    let next = TestServer { server: Server::take_over(handover, fixture.config()).unwrap() };
    let notes = next.server.notes().join("\n");
    assert!(notes.contains("its disk has not been measured"), "{notes}");
    assert_eq!(min_read(&next), before);
    drop(next);
    assert!(Store::open(&fixture.path).unwrap().calibration().is_none(), "nothing was measured");
}

#[test]
fn a_session_whose_title_is_another_one_now_ends() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let serving = fixture.serve();
    let (_, segments) = player(&serving);
    let (song, _) = serving.client().get_following("/t/song.mp4");
    let handover = serving.server.hand_over().unwrap();
    assert_eq!(handover.sessions(), 2);
    let store = Store::open(&fixture.path).unwrap();
    store.rename("film", "nosferatu").unwrap();
    store.remove("song").unwrap();
    drop(store);
    let next = TestServer { server: Server::take_over(handover, fixture.config()).unwrap() };
    assert_eq!(next.client().get(&segments[1]).status, 200, "the name in its address stays");
    assert_eq!(next.client().get(&song).error(), "session-ended");
    // With other segments a player would get bytes that it does not expect.
    let segment = Duration::from_secs(1);
    let next = replaced(next, ServerConfig { segment, ..fixture.config() });
    assert_eq!(next.client().get(&segments[2]).error(), "session-ended");
}

#[test]
fn a_handover_waits_for_a_response_and_not_for_ever() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve();
    let (file, _) = serving.client().get_following("/t/large.mp4");
    // A peer that takes a part of the file and then nothing.
    let mut slow = TcpStream::connect(serving.server.address()).unwrap();
    slow.write_all(format!("GET {file} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
    eventually("the response begins", || slow.peek(&mut [0; 9]).unwrap() == 9);
    let next = replaced(serving, fixture.config());
    let part = next.client().request("GET", &file, &[("Range", "bytes=-1000")]);
    assert_eq!((part.status, part.body.len()), (206, 1000), "it goes on with a range");
}

#[test]
fn a_successor_that_cannot_be_used_changes_nothing() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let why = |serving: &TestServer| serving.server.request_restart().unwrap_err().message;
    assert!(why(&serving).contains("nothing starts this server again"));
    let usable = Arc::new(AtomicBool::new(false));
    let is_usable = Arc::clone(&usable);
    serving.server.checks_successor_by(move || match is_usable.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err(Reason::new("line 3: no TOML", "mend it")),
    });
    assert_eq!(why(&serving), "line 3: no TOML");
    assert!(!serving.server.is_to_restart());
    // Another address has to be free.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = std::net::TcpListener::bind(taken).unwrap();
    let listen = other.local_addr().unwrap();
    let wanted = ServerConfig { listen, ..fixture.config() };
    serving.server.reads_again_from(move || Ok(wanted.clone()));
    assert!(why(&serving).starts_with(&format!("cannot listen on {listen}: ")));
    drop(other);
    usable.store(true, Ordering::Relaxed);
    serving.server.request_restart().unwrap();
    assert!(serving.server.is_to_restart());
    assert_eq!(serving.client().get("/titles").json()["titles"][0]["name"], json!("film"));
}
