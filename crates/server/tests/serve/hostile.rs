//! Malformed, slow and abandoned requests: each is refused with a reason and affects no other
//! client.

use crate::client::{Client, TestResponse};
use crate::fixture::{TestStore, eventually, media};
use std::time::Duration;
use units::ByteCount;

#[test]
fn a_malformed_request_gets_its_error_and_the_next_client_is_served() {
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
        // Behind a proxy that reads the body by its other length, the rest would be a request.
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\nTransfer-Encoding: chunked\r\n\r\n\
             0\r\n\r\nGET /status HTTP/1.1\r\n\r\n",
            400,
            "body-not-allowed",
        ),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400, "malformed-request"),
        ("POST /titles HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("DELETE /t/film.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("PUT /t/film.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("PATCH /t/film/master.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "version-not-supported"),
        (&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414, "url-too-long"),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), 431, "head-too-large"),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431, "head-too-large"),
    ];
    for (sent, status, word) in table {
        let mut client = serving.client();
        client.send(sent.as_bytes());
        let response =
            client.read_response(true).unwrap_or_else(|| panic!("no response to {word}"));
        assert_eq!((response.status, &*response.error()), (*status, *word));
        assert_eq!(response.field("connection"), Some("close"), "{word}");
        assert!(client.read_response(true).is_none(), "{word}: the connection ends");
    }
    assert_eq!(serving.client().get("/healthz").status, 200);
}

#[test]
fn paths_with_tricks_are_not_found() {
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
        let response = client.get(path);
        assert_eq!(response.status, 404, "{path}");
        response.error();
    }
    assert_eq!(serving.status("/admitted"), 0);
}

#[test]
fn the_session_of_a_manifest_opens_no_file() {
    let serving = TestStore::with(&[&media().film]).serve();
    let mut client = serving.client();
    for manifest in [
        "master.m3u8",
        "master.m3u8?skip=1",
        "master.m3u8?speed=-1",
        "master-ts.m3u8",
        "manifest.mpd",
        "ondemand.mpd",
    ] {
        let text = client.get(&format!("/t/film/{manifest}")).text().to_owned();
        let token = text.split_once("?s=").unwrap().1.get(..32).unwrap().to_owned();
        for file in ["film.mp4", "film.ts"] {
            let found = client.get(&format!("/t/{file}?s={token}"));
            let is_refused =
                found.status == 404 && ["session-unknown", "not-found"].contains(&&*found.error());
            assert!(is_refused, "{manifest} {file}: {} {}", found.status, found.text());
        }
    }
}

#[test]
fn a_token_is_valid_for_one_title_and_its_existing_tracks_and_segments() {
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
fn a_slow_request_head_is_answered_with_408() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.head_timeout = Duration::from_millis(200));
    let mut client = serving.client();
    client.send(b"GET / HTTP/1.1\r\nHost:");
    let response = client.read_response(true).unwrap();
    assert_eq!((response.status, &*response.error()), (408, "request-timeout"));
    assert!(client.read_response(true).is_none());
    let mut silent = serving.client();
    assert!(
        silent.read_response(true).is_none(),
        "a silent connection is closed without a response"
    );
}

#[test]
fn a_connection_above_the_limit_is_answered_with_503() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.max_connections = 2);
    let mut connected = [serving.client(), serving.client()];
    for client in &mut connected {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let response = serving.client().read_response(true).expect("a response without a request");
    assert_eq!((response.status, &*response.error()), (503, "too-many-connections"));
    assert_is_problem(&response);
    assert!(response.field("retry-after").is_some());
    drop(connected);
    eventually("a new connection is accepted", || {
        let mut client = serving.client();
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        client.read_response(true).is_some_and(|response| response.status == 200)
    });
}

#[test]
fn connections_above_a_clients_limit_are_answered_with_429_and_then_closed() {
    let fixture = TestStore::with(&[]);
    let serving = fixture.serve_with(|config| config.max_client_connections = Some(2));
    let mut connected = [serving.client(), serving.client()];
    for client in &mut connected {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let mut told = [serving.client(), serving.client()];
    for client in &mut told {
        let response = client.read_response(true).expect("a response without a request");
        assert_eq!((response.status, &*response.error()), (429, "too-many-client-connections"));
        assert_is_problem(&response);
        assert!(response.text().contains("127.0.0.1 has 2 connections"), "{}", response.text());
        assert!(response.field("retry-after").is_some());
    }
    drop((connected, told));
    eventually("a new connection is accepted", || {
        let mut client = serving.client();
        client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        client.read_response(true).is_some_and(|response| response.status == 200)
    });
}

#[test]
fn a_viewer_that_takes_a_few_bytes_from_time_to_time_is_disconnected() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve_with(|config| {
        config.send_timeout = Duration::from_secs(1);
        config.memory = Some(ByteCount::mib(512));
    });
    let mut client = serving.client();
    let path = client.get("/t/large.mp4").field("location").unwrap().to_owned();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let mut bytes = [0; 64];
    eventually("the trickle is ended", || {
        let _ = std::io::Read::read(client.stream.get_mut(), &mut bytes);
        let metrics = serving.client().get("/metrics");
        metrics.text().contains("tenuto_http_send_timeouts_total 1")
    });
}

#[test]
fn a_viewer_that_stops_reading_is_disconnected_and_its_memory_is_released() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve_with(|config| {
        config.send_timeout = Duration::from_secs(1);
        config.memory = Some(ByteCount::mib(512));
    });
    let mut stalled = serving.client();
    let path = stalled.get("/t/large.mp4").field("location").unwrap().to_owned();
    stalled.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    eventually("the send timeout is counted", || {
        let metrics = serving.client().get("/metrics");
        metrics.text().contains("tenuto_http_send_timeouts_total 1")
    });
    let response = stalled.read_response(true).unwrap();
    assert!(response.status == 200 && !response.whole, "bytes sent before the timeout arrive");
    assert_eq!(fetch_whole(&mut serving.client(), "/t/large.mp4"), 200, "other viewers are served");
}

#[test]
fn a_viewer_that_disconnects_during_a_response_affects_no_other_viewer() {
    let fixture = TestStore::with(&[&media().large]);
    let serving = fixture.serve_with(|config| config.memory = Some(ByteCount::mib(512)));
    for _ in 0..3 {
        let mut leaver = serving.client();
        let response = leaver.get("/t/large.mp4");
        let path = response.field("location").unwrap_or_else(|| panic!("{response:?}")).to_owned();
        leaver.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        // A signal may end the wait early.
        while let Err(error) = std::io::BufRead::fill_buf(&mut leaver.stream) {
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
        }
    }
    assert_eq!(fetch_whole(&mut serving.client(), "/t/large.mp4"), 200);
}

/// Fetches a whole file; returns the status.
fn fetch_whole(client: &mut Client, path: &str) -> u16 {
    let (_, response) = client.get_following(path);
    assert!(response.whole, "{path}");
    response.status
}

/// Answered before it is known whether the request is for the admin API.
fn assert_is_problem(response: &TestResponse) {
    let problem = response.json();
    assert_eq!(response.field("content-type"), Some("application/problem+json"));
    assert_eq!(problem["status"], response.status);
    for field in ["title", "detail", "hint", "message"] {
        assert!(problem[field].is_string(), "{field}: {problem}");
    }
}
