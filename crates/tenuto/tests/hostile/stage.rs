//! What these tests do again and again: look at a store before and after, make films, wait.

use crate::client::{Client, playlist_uris};
use crate::program::{Served, TestDir};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a store holds, as far as its owner cares.
#[derive(Debug, PartialEq)]
pub(crate) struct Holdings {
    titles: Value,
    free_bytes: Value,
}

/// What `a.store` holds.
#[track_caller]
pub(crate) fn holdings(dir: &TestDir) -> Holdings {
    let titles = dir.json("ls a.store")["titles"].take();
    Holdings { titles, free_bytes: dir.json("info a.store")["free_bytes"].take() }
}

/// Panics unless `a.store` holds what it did, and all of it is whole.
#[track_caller]
pub(crate) fn assert_unchanged(dir: &TestDir, before: &Holdings, context: &str) {
    assert_eq!(holdings(dir), *before, "{context}");
    let report = dir.json("check a.store --scrub");
    assert_eq!(report["healed"], serde_json::json!([]), "{context}");
}

/// Makes a file with FFmpeg, run in the folder.
pub(crate) fn ffmpeg(dir: &TestDir, arguments: &str, name: &str) -> PathBuf {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let made = testkit::clips::make(&dir.path(name), &words);
    made.unwrap_or_else(|said| panic!("making {name}: {said}"));
    dir.path(name)
}

/// A connection to a running server.
pub(crate) fn connect(server: &Served) -> Client {
    let address = server.origin.trim_start_matches("http://").parse();
    Client::connect(address.expect("the server's address"))
}

/// Everything that a player of a multivariant playlist would fetch: address, status, body.
pub(crate) fn fetch_all(client: &mut Client, master: &str) -> Vec<(String, u16, Vec<u8>)> {
    let answer = client.get(master);
    assert_eq!(answer.status, 200, "{master}");
    let mut all = Vec::new();
    for list in playlist_uris(answer.text(), master) {
        let answer = client.get(&list);
        assert_eq!(answer.status, 200, "{list}");
        for address in playlist_uris(answer.text(), &list) {
            let answer = client.get(&address);
            assert!(answer.whole, "{address}");
            // Without the session, which is another each time.
            let place = address.split('?').next().unwrap_or_default().to_owned();
            all.push((place, answer.status, answer.body));
        }
    }
    all
}

/// Waits until something is so. Long enough for a loaded machine; a test that needs it all fails.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
