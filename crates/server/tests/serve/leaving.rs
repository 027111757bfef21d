//! Viewers who go: sessions that are ended, and places that newcomers take.

use crate::client::{Client, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, media};
use units::BitRate;

const MASTER: &str = "/t/film/master.m3u8";

/// The URL of the session of a manifest.
fn session_of(master: &str) -> String {
    let list = &playlist_uris(master, MASTER)[0];
    let token = list.split("?s=").nth(1).expect("a token");
    format!("/t/film/session?s={token}")
}

#[test]
fn a_session_is_ended_by_its_player_once_and_for_all() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    for method in ["DELETE", "POST"] {
        let mut client = serving.client();
        let master = client.get(MASTER).text().to_owned();
        let session = session_of(&master);
        let wrong = serving.client().request("GET", &session, &[]);
        assert_eq!((wrong.status, wrong.field("allow")), (405, Some("DELETE, POST, OPTIONS")));
        for _ in 0..2 {
            let ended = client.request(method, &session, &[]);
            assert_eq!((ended.status, ended.body.len()), (204, 0), "{method}");
        }
        eventually("nothing is held", || serving.status("/sessions") == 0);
        let list = &playlist_uris(&master, MASTER)[0];
        // The status of a moment ago may be of the time before the session.
        eventually("its token is not taken any more", || client.get(list).status != 200);
        assert_eq!(client.get(list).error(), "session-ended");
    }
    let mut client = serving.client();
    let unknown = format!("/t/film/session?s={}", "0".repeat(32));
    assert_eq!(client.request("DELETE", &unknown, &[]).error(), "session-unknown");
    let mut client = serving.client();
    assert_eq!(client.request("DELETE", "/t/film/session", &[]).error(), "session-missing");
    let mut client = serving.client();
    let refused = client.request("DELETE", "/titles", &[]);
    assert_eq!(refused.field("allow"), Some("GET, HEAD, OPTIONS"));
}

/// Begins to play, and returns the connection; `None`: refused.
fn begin(serving: &TestServer) -> Option<Client> {
    let mut client = serving.client();
    let master = client.get(MASTER);
    if master.status != 200 {
        return None;
    }
    let list = &playlist_uris(master.text(), MASTER)[0];
    let playlist = client.get(list);
    let segment = playlist_uris(playlist.text(), list).into_iter().nth(1).expect("a segment");
    // Asked for, and not read.
    client.send(format!("GET {segment} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    Some(client)
}

#[test]
fn newcomers_take_the_places_of_viewers_who_hang_up() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.throttle = Some(BitRate(40_000_000)));
    eventually("the places of those who hung up are taken", || {
        // Without that, those who came first would keep theirs until the film is over.
        drop(begin(&serving));
        serving.status("/revoked") > 0
    });
    eventually("a viewer has a place", || begin(&serving).is_some());
}

#[test]
fn viewers_who_play_when_the_server_stops_are_in_the_log() {
    let fixture = TestStore::with(&[&media().film]);
    let log = fixture.directory.join("stopped.log");
    let serving = fixture.serve_with(|config| config.access_log = Some(log.clone()));
    let players: Vec<Client> = (0..3).filter_map(|_| begin(&serving)).collect();
    // One has left before.
    let mut client = serving.client();
    let left = session_of(client.get(MASTER).text());
    assert_eq!(client.request("DELETE", &left, &[]).status, 204);
    eventually("three play", || serving.status("/sessions") == 3);
    drop(serving);
    drop(players);
    let log = std::fs::read_to_string(&log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let ended = lines.filter(|line| line["event"] == "session-ended");
    let mut why: Vec<String> = ended.map(|line| line["cut_short"].to_string()).collect();
    why.sort();
    assert_eq!(why, [r#""server-stopped""#, r#""server-stopped""#, r#""server-stopped""#, "null"]);
}
