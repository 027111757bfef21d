//! Parts of titles, other speeds, replaced sessions, and postponed starts.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, media};
use crate::playing::frames;
use std::time::{Duration, Instant};
use units::BitRate;

/// Frames in a group of pictures of the film: a key frame each second.
const GROUP: usize = 25;

#[test]
fn the_requested_part_is_played_and_no_deadline_is_missed() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let source = frames(media().film.to_str().unwrap());
    let source: Vec<&String> = source.iter().filter(|frame| frame.starts_with("0 ")).collect();
    let table: &[(&str, &[usize])] = &[
        ("start=2&stop=4", &[2, 3]),
        ("start=4.2", &[4, 5]),
        ("stop=1", &[0]),
        ("skip=1", &[0, 2, 4]),
        ("skip=2&start=1", &[1, 4]),
        ("speed=-1", &[5, 4, 3, 2, 1, 0]),
        ("speed=-2&skip=1", &[4, 2, 0]),
        ("speed=2", &[0, 1, 2, 3, 4, 5]),
        ("speed=0.5&start=3&stop=4", &[3]),
    ];
    for (query, groups) in table {
        let played = frames(&serving.url(&format!("/t/film/master.m3u8?{query}")));
        let (video, audio): (Vec<_>, Vec<_>) =
            played.iter().partition(|frame| frame.starts_with("0 "));
        let wanted: Vec<&String> = groups
            .iter()
            .flat_map(|group| source[group * GROUP..(group + 1) * GROUP].iter().copied())
            .collect();
        assert!(video == wanted, "{query}: {} frames of {}", video.len(), wanted.len());
        let is_video_only = query.contains("skip") || query.contains("speed=-");
        assert_eq!(audio.is_empty(), is_video_only, "{query}: {} audio frames", audio.len());
    }
    // A file has any part to the picture, forwards and with all its pictures.
    let mut client = serving.client();
    for (query, shown) in [
        ("start=2&stop=4", 50..100),
        ("start=2.2&stop=3.4", 55..85),
        ("start=4.2", 105..150),
        ("stop=0.5&speed=4", 0..13),
        ("speed=2", 0..150),
    ] {
        let played = frames(&serving.url(&format!("/t/film.mp4?{query}")));
        let video: Vec<&String> = played.iter().filter(|frame| frame.starts_with("0 ")).collect();
        assert!(video == source[shown.clone()], "{query}: {} frames", video.len());
        assert!(played.len() > video.len(), "{query}: sound");
        let head = client.request("HEAD", &format!("/t/film.mp4?{query}"), &[]);
        assert_eq!(head.status, 200, "{query}");
    }
    for query in ["skip=1", "speed=-1"] {
        let response = client.get(&format!("/t/film.mp4?{query}"));
        assert_eq!((response.status, &*response.error()), (400, "forwards-only"), "{query}");
        client = serving.client();
    }
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn an_impossible_part_is_refused_with_the_allowed_values() {
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
            let response = client.request(method, &format!("/t/{path}"), &[]);
            if method == "HEAD" {
                assert!(response.status == 400 || path.contains("wait"), "{path}");
                continue;
            }
            assert_eq!((response.status, &*response.error()), (400, "bad-parameter"), "{path}");
            let message = response.json()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(why), "{path}: {message}");
        }
    }
    assert_eq!(serving.status("/sessions"), 0, "an invalid request reserves nothing");
}

#[test]
fn a_manifest_request_with_a_token_replaces_the_session_only_if_it_is_admitted() {
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
    let list = playlist_uris(&first, "/t/film/master.m3u8").remove(0);
    assert_eq!(client.get(&list).status, 200, "the session is unchanged");
    let second = client.get(&format!("/t/film/master.m3u8?s={token}&speed=2")).text().to_owned();
    assert_ne!(token_of(&second), token);
    // Playlists are answered without the engine, so the end of the session shows a little later.
    eventually("the first session has ended", || {
        let response = serving.client().get(&list);
        response.status != 200 && response.error() == "session-ended"
    });
    let list = playlist_uris(&second, "/t/film/master.m3u8").remove(0);
    let playlist = client.get(&list);
    for piece in playlist_uris(playlist.text(), &list) {
        assert_eq!(client.get(&piece).status, 200, "{piece}");
    }
    let rejected = client.get(&format!("{list}&start=2"));
    assert_eq!(rejected.error(), "bad-parameter", "only a manifest takes parameters");
    eventually("one session is open", || serving.status("/sessions") == 1);
}

#[test]
fn a_request_that_waits_is_answered_when_its_start_time_has_come() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        // Viewers of one title share its reads, but not what is sent to them.
        config.network = Some(BitRate(12_000_000));
        config.reservation_hold = Duration::from_secs(2);
    });
    let mut client = serving.client();
    let refused = loop {
        let response = client.get("/t/film/master.m3u8");
        if response.status != 200 {
            break response;
        }
    };
    assert!(refused.json()["retry"].is_string());
    // Several requests at once, each on a connection of its own.
    let requested_at = Instant::now();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let mut client = serving.client();
            std::thread::spawn(move || {
                let response = client.get("/t/film/master.m3u8?wait=20");
                let (status, text) = (response.status, response.text().to_owned());
                // At once: a session without requests ends soon.
                let list = playlist_uris(&text, "/t/film/master.m3u8").into_iter().next();
                let list_status = list.map(|list| client.get(&list).status);
                (status, list_status, text, requested_at.elapsed())
            })
        })
        .collect();
    // One more disconnects while it waits: its reservation must be released.
    let mut disconnected = serving.client();
    disconnected.send(b"GET /t/film/master.m3u8?wait=20 HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(disconnected);
    for thread in waiting {
        let (status, list_status, text, after) = thread.join().unwrap();
        assert_eq!((status, list_status), (200, Some(200)), "after {after:?}: {text}");
    }
    eventually("sessions without requests have ended", || serving.status("/sessions") == 0);
    assert_eq!(serving.status("/deadline_misses"), 0);
}

#[test]
fn a_player_that_names_no_wait_is_admitted_within_the_servers() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        // Viewers of one title share its reads, but not what is sent to them.
        config.network = Some(BitRate(12_000_000));
        config.reservation_hold = Duration::from_secs(2);
        config.wait = Duration::from_secs(20);
    });
    let mut client = serving.client();
    let waited = (0..40).find_map(|_| {
        let asked = Instant::now();
        let response = client.get("/t/film/master.m3u8");
        assert_eq!(response.status, 200, "{}", response.text());
        let said = response.field("server-timing")?.to_owned();
        Some((asked.elapsed(), said))
    });
    let (took, said) = waited.expect("40 viewers of 1.5 Mb/s do not fit into 12 Mb/s");
    let said: u64 = said.strip_prefix("admission;dur=").unwrap().parse().unwrap();
    assert!(said > 0 && took >= Duration::from_millis(said), "{took:?}, {said} ms");
    // A viewer that does not want to wait is refused at once, or there is room again.
    let response = client.get("/t/film/master.m3u8?wait=0");
    assert!(response.field("server-timing").is_none(), "{}", response.status);
}
