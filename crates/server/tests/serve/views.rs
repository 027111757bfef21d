//! Parts of titles, other speeds, changes while playing, and waiting for a place.

use crate::client::addresses;
use crate::fixture::{TestStore, eventually, media};
use crate::playing::frames;
use std::time::{Duration, Instant};
use units::BitRate;

/// The film's groups: a key frame each second of 25 pictures.
const GROUP: usize = 25;

#[test]
fn what_is_asked_for_is_played_and_nothing_is_late() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let source = frames(media().film.to_str().unwrap());
    let source: Vec<&String> = source.iter().filter(|frame| frame.starts_with("0 ")).collect();
    let table: &[(&str, &[usize])] = &[
        ("start=2&stop=4", &[2, 3]),
        ("start=4.2", &[4, 5]),
        ("stop=0.5", &[0]),
        ("skip=1", &[0, 2, 4]),
        ("skip=2&start=1", &[1, 4]),
        ("speed=-1", &[5, 4, 3, 2, 1, 0]),
        ("speed=-2&skip=1", &[4, 2, 0]),
        ("speed=2", &[0, 1, 2, 3, 4, 5]),
        ("speed=0.5&start=3&stop=4", &[3]),
    ];
    for (query, groups) in table {
        let played = frames(&serving.url(&format!("/t/film/master.m3u8?{query}")));
        let (pictures, sound): (Vec<_>, Vec<_>) =
            played.iter().partition(|frame| frame.starts_with("0 "));
        let wanted: Vec<&String> = groups
            .iter()
            .flat_map(|group| source[group * GROUP..(group + 1) * GROUP].iter().copied())
            .collect();
        assert!(pictures == wanted, "{query}: {} pictures of {}", pictures.len(), wanted.len());
        let alone = query.contains("skip") || query.contains("speed=-");
        assert_eq!(sound.is_empty(), alone, "{query}: {} frames of sound", sound.len());
    }
    // Half of the file is a file for nobody; its speed may be any.
    let mut client = serving.client();
    assert_eq!(client.get("/t/film.mp4?speed=2").status, 307);
    for query in ["start=1", "stop=2", "skip=1", "speed=-1"] {
        let answer = client.get(&format!("/t/film.mp4?{query}"));
        assert_eq!((answer.status, &*answer.error()), (400, "whole-file-only"), "{query}");
        client = serving.client();
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn what_cannot_be_shown_is_refused_with_what_can() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let serving = fixture.serve();
    let table: &[(&str, &str)] = &[
        ("film/master.m3u8?start=6.1", "s long; start and stop"),
        ("film/master.m3u8?start=1e8", "s long; start and stop"),
        ("film/master.m3u8?stop=7", "s long; start and stop"),
        ("film/master.m3u8?start=3&stop=2", "stop must be later than start"),
        ("film/master.m3u8?start=NaN", "not a number of seconds"),
        ("film/master.m3u8?speed=0", "from 0.016 to 64"),
        ("film/master.m3u8?speed=NaN", "from 0.016 to 64"),
        ("film/master.m3u8?skip=6", "6 groups of pictures"),
        ("film/master.m3u8?skip=99999999999", "not a number of groups"),
        ("film/master.m3u8?wait=3600", "at most 30 s"),
        ("song/master.m3u8?skip=1", "only pictures can be skipped"),
        ("song/master.m3u8?speed=-1", "only pictures can be skipped"),
    ];
    for (path, why) in table {
        for method in ["GET", "HEAD"] {
            let mut client = serving.client();
            let answer = client.ask(method, &format!("/t/{path}"), &[]);
            if method == "HEAD" {
                assert!(answer.status == 400 || path.contains("wait"), "{path}");
                continue;
            }
            assert_eq!((answer.status, &*answer.error()), (400, "bad-parameter"), "{path}");
            let message = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(why), "{path}: {message}");
        }
    }
    assert_eq!(serving.status("/sessions"), 0, "nothing is booked for nonsense");
}

#[test]
fn a_manifest_asked_for_with_a_session_replaces_it_only_if_it_is_granted() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let token_of = |text: &str| {
        let line = text.lines().find(|line| line.contains("?s=")).unwrap().to_owned();
        line.split("?s=").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let first = client.get("/t/film/master.m3u8").text().to_owned();
    let token = token_of(&first);
    let bad = client.get(&format!("/t/film/master.m3u8?s={token}&skip=1000"));
    assert_eq!(bad.status, 400);
    let mut client = serving.client();
    let list = addresses(&first, "/t/film/master.m3u8").remove(0);
    assert_eq!(client.get(&list).status, 200, "it is as it was");
    let second = client.get(&format!("/t/film/master.m3u8?s={token}&speed=2")).text().to_owned();
    assert_ne!(token_of(&second), token);
    // Lists are answered without the engine, which tells of the end a moment later.
    eventually("the first session is over", || {
        let answer = serving.client().get(&list);
        answer.status != 200 && answer.error() == "session-ended"
    });
    let list = addresses(&second, "/t/film/master.m3u8").remove(0);
    let playlist = client.get(&list);
    for piece in addresses(playlist.text(), &list) {
        assert_eq!(client.get(&piece).status, 200, "{piece}");
    }
    let asked = client.get(&format!("{list}&start=2"));
    assert_eq!(asked.error(), "bad-parameter", "what is played is the manifest's to say");
    eventually("one session is there", || serving.status("/sessions") == 1);
}

#[test]
fn who_waits_is_answered_when_its_place_has_come() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        config.throttle = Some(BitRate(40_000_000));
        config.reservation_hold = Duration::from_secs(2);
    });
    let mut client = serving.client();
    let refused = loop {
        let answer = client.get("/t/film/master.m3u8");
        if answer.status != 200 {
            break answer;
        }
    };
    assert!(refused.json()["exact"].is_boolean());
    // All at the door at once, each with a connection of its own.
    let asked = Instant::now();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let mut client = serving.client();
            std::thread::spawn(move || {
                let answer = client.get("/t/film/master.m3u8?wait=20");
                (answer.status, answer.text().to_owned(), asked.elapsed())
            })
        })
        .collect();
    // One more goes away before its time: what it had is free again.
    let mut gone = serving.client();
    gone.send(b"GET /t/film/master.m3u8?wait=20 HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(gone);
    for thread in waiting {
        let (status, text, after) = thread.join().unwrap();
        assert_eq!(status, 200, "after {after:?}: {text}");
        let list = addresses(&text, "/t/film/master.m3u8").remove(0);
        assert_eq!(client.get(&list).status, 200);
    }
    eventually("those who never asked for media are gone", || serving.status("/sessions") == 0);
    assert_eq!(serving.status("/deadline_misses"), 0);
}
