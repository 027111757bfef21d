//! What a stranger may send, and what it may not cause.

use crate::client::Client;
use crate::fixture::{TestStore, eventually, media};
use std::time::Duration;
use units::ByteCount;

#[test]
fn malformed_requests_are_named_and_the_next_viewer_is_served() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve();
    let long = "x".repeat(20_000);
    let many = "A: b\r\n".repeat(100);
    let table: &[(&str, u16, &str)] = &[
        ("BLAH\r\n\r\n", 400, "malformed-request"),
        ("GET / HTTP/1.1\r\n\r\n", 400, "host-missing"),
        ("GET nothing HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"),
        ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-url"),
        ("GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-url"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 400, "body-not-allowed"),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400, "malformed-request"),
        ("POST /titles HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("DELETE /t/film.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "version-not-supported"),
        (&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414, "url-too-long"),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), 431, "head-too-large"),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431, "head-too-large"),
    ];
    for (sent, status, word) in table {
        let mut client = serving.client();
        client.send(sent.as_bytes());
        let answer = client.answer(true).unwrap_or_else(|| panic!("no answer to {word}"));
        assert_eq!((answer.status, &*answer.error()), (*status, *word));
        assert_eq!(answer.field("connection"), Some("close"), "{word}");
        assert!(client.answer(true).is_none(), "{word}: the connection ends");
    }
    assert_eq!(serving.client().get("/healthz").status, 200);
}

#[test]
fn names_that_play_tricks_are_names_of_nothing() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let token = "0".repeat(32);
    for path in [
        "/t/../../../../etc/passwd",
        "/t/%2e%2e%2f%2e%2e%2fetc%2fpasswd.mp4",
        "/../etc/passwd",
        "/console/../../Cargo.toml",
        "/console/%2e%2e%2fconsole.js",
        "/t/film%00.mp4",
        "/t/film/./master.m3u8",
        "//t/film/master.m3u8",
        "/t/film/master.m3u8/",
        "/t/FILM.mp4",
        "/t/film.mp4.mp4",
        "/t/film/0.m3u8",
        "/t/film/0/init.mp4",
        "/t/film/0/0.m4s?s=",
        &format!("/t/film/0/0.m4s?s={token}"),
        &format!("/t/film.mp4?s={token}"),
        "/t/film.mp4?s=%2e%2e",
        "/t/film/99.m3u8",
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, 404, "{path}");
        answer.error();
    }
    assert_eq!(serving.status("/admitted"), 0);
}

#[test]
fn a_token_is_of_one_title_and_its_numbers_have_ends() {
    let media = media();
    let fixture = TestStore::with(&[&media.film, &media.song]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let path = client.get("/t/film.mp4").field("location").unwrap().to_owned();
    let token = path.split_once("?s=").unwrap().1;
    assert_eq!(client.get(&format!("/t/song.mp4?s={token}")).error(), "session-unknown");
    for (path, status) in [
        (format!("/t/film/0/0.m4s?s={token}"), 200),
        (format!("/t/film/0/4294967295.m4s?s={token}"), 404),
        (format!("/t/film/7/0.m4s?s={token}"), 404),
        (format!("/t/film/65535.m3u8?s={token}"), 404),
        (format!("/t/film/65535/init.mp4?s={token}"), 404),
    ] {
        assert_eq!(client.get(&path).status, status, "{path}");
    }
}

#[test]
fn a_slow_head_is_told_so() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.head_timeout = Duration::from_millis(200));
    let mut client = serving.client();
    client.send(b"GET / HTTP/1.1\r\nHost:");
    let answer = client.answer(true).unwrap();
    assert_eq!((answer.status, &*answer.error()), (408, "request-timeout"));
    assert!(client.answer(true).is_none());
    let mut silent = serving.client();
    assert!(silent.answer(true).is_none(), "who says nothing is let go without a word");
}

#[test]
fn one_connection_too_many_is_told_so() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.max_connections = 2);
    let mut inside = [serving.client(), serving.client()];
    for client in &mut inside {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let answer = serving.client().answer(true).expect("told before it asks");
    assert_eq!((answer.status, &*answer.error()), (503, "too-many-connections"));
    assert!(answer.field("retry-after").is_some());
    drop(inside);
    eventually("a place is free again", || {
        let mut client = serving.client();
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        client.answer(true).is_some_and(|answer| answer.status == 200)
    });
}

#[test]
fn a_viewer_that_stops_reading_is_cut_off_and_gives_its_memory_back() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve_with(|config| {
        config.send_timeout = Duration::from_secs(1);
        config.memory = ByteCount::mib(512);
    });
    let mut stuck = serving.client();
    let path = stuck.get("/t/large.mp4").field("location").unwrap().to_owned();
    stuck.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    eventually("cut off", || {
        let metrics = serving.client().get("/metrics");
        metrics.text().contains("tenuto_http_send_timeouts_total 1")
    });
    let answer = stuck.answer(true).unwrap();
    assert!(answer.status == 200 && !answer.whole, "what was sent before still comes");
    assert_eq!(whole(&mut serving.client(), "/t/large.mp4"), 200, "others are served");
}

#[test]
fn a_viewer_that_leaves_in_the_middle_costs_nobody_anything() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve_with(|config| config.memory = ByteCount::mib(512));
    for _ in 0..3 {
        let mut leaver = serving.client();
        let answer = leaver.get("/t/large.mp4");
        let path = answer.field("location").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
        leaver.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        // A signal may end the wait early.
        while let Err(error) = std::io::BufRead::fill_buf(&mut leaver.stream) {
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
        }
    }
    assert_eq!(whole(&mut serving.client(), "/t/large.mp4"), 200);
}

/// Fetches a file whole; its status.
fn whole(client: &mut Client, path: &str) -> u16 {
    let (_, answer) = client.get_following(path);
    assert!(answer.whole, "{path}");
    answer.status
}
