//! Content coding: text as gzip for those who take it, with tags and lengths of its own.

use crate::client::{Client, playlist_uris};
use crate::fixture::{TestStore, eventually, ffmpeg, media};
use std::io::Read;
use std::time::Duration;

const GZIP: (&str, &str) = ("Accept-Encoding", "gzip, deflate, br");

fn unzipped(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut text).expect("gzip");
    text
}

/// The path of a title's first media playlist, of a new session.
fn playlist(client: &mut Client, title: &str) -> String {
    let master = format!("/t/{title}/master.m3u8");
    playlist_uris(client.get(&master).text(), &master).remove(0)
}

#[test]
fn text_is_sent_as_gzip_to_those_who_take_it_and_media_never() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    for path in ["/metrics", "/api/v1/openapi.json", "/t/film/manifest.mpd"] {
        let plain = client.get(path);
        assert_eq!((plain.status, plain.field("content-encoding")), (200, None), "{path}");
        let coded = client.request("GET", path, &[GZIP]);
        assert_eq!(coded.field("content-encoding"), Some("gzip"), "{path}");
        assert!(coded.body.len() < plain.body.len() / 2, "{path}: {coded:?}");
        let text = String::from_utf8(unzipped(&coded.body)).unwrap();
        assert_eq!(text.lines().next(), plain.text().lines().next(), "{path}");
        for response in [plain, coded] {
            assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{path}");
        }
        for refused in ["identity", "gzip;q=0", "br"] {
            let response = client.request("GET", path, &[("Accept-Encoding", refused)]);
            assert_eq!(response.field("content-encoding"), None, "{path} {refused}");
        }
        let head = client.request("HEAD", path, &[GZIP]);
        assert_eq!(head.field("content-encoding"), Some("gzip"), "HEAD {path}");
    }
    // JSON, which grows with each slot until it is worth coding.
    eventually("a status is sent as gzip", || {
        let response = client.request("GET", "/status", &[GZIP]);
        let coded = response.field("content-encoding").is_some();
        assert_eq!(coded, response.body.starts_with(b"\x1f\x8b"), "{response:?}");
        coded
    });
    // Too small to gain anything.
    let health = client.request("GET", "/healthz", &[GZIP]);
    assert_eq!((health.status, health.field("content-encoding")), (200, None));
    let uris = {
        let path = playlist(&mut client, "film");
        playlist_uris(client.get(&path).text(), &path)
    };
    for path in [&uris[0], &uris[1], &client.get_following("/t/film.mp4").0] {
        let response = client.request("GET", path, &[GZIP]);
        assert_eq!((response.status, response.field("content-encoding")), (200, None), "{path}");
        assert_eq!(response.field("vary"), None, "{path}");
    }
}

#[test]
fn a_playlist_has_a_tag_for_each_coding() {
    let fixture = TestStore::with(&[]);
    let long = fixture.directory.join("long.mp4");
    ffmpeg("-f lavfi -i testsrc2=s=64x36:r=5:d=30 -c:v libx264 -g 5", &long);
    fixture.add(&[&long]);
    let serving = fixture.serve_with(|config| config.segment = Duration::from_secs(1));
    let mut client = serving.client();
    let path = playlist(&mut client, "long");
    let plain = client.get(&path);
    let coded = client.request("GET", &path, &[GZIP]);
    assert!(unzipped(&coded.body) == plain.body && coded.body.len() < plain.body.len() / 3);
    let tag = plain.field("etag").expect("a tag");
    let coded_tag = coded.field("etag").expect("a tag");
    assert_ne!(tag, coded_tag);
    for (fields, status) in [
        (vec![("If-None-Match", tag)], 304),
        (vec![("If-None-Match", coded_tag)], 200),
        (vec![("If-None-Match", tag), GZIP], 200),
        (vec![("If-None-Match", coded_tag), GZIP], 304),
        (vec![("If-Match", tag)], 200),
        (vec![("If-Match", "\"other\"")], 412),
    ] {
        let response = client.request("GET", &path, &fields);
        assert_eq!(response.status, status, "{fields:?}");
        if status == 304 {
            for field in ["etag", "cache-control", "vary"] {
                let whole = if fields.contains(&GZIP) { &coded } else { &plain };
                assert_eq!(response.field(field), whole.field(field), "{fields:?}");
            }
        }
        let head = client.request("HEAD", &path, &fields);
        assert_eq!(head.status, status, "HEAD {fields:?}");
        for field in ["etag", "content-length", "content-encoding", "vary"] {
            assert_eq!(head.field(field), response.field(field), "HEAD {fields:?}");
        }
    }
    // After the session a kept playlist is of no use, and a cache learns that.
    let session = path.split_once('?').unwrap().1;
    client.request("DELETE", &format!("/t/long/session?{session}"), &[]);
    eventually("the session has ended", || {
        client.request("GET", &path, &[("If-None-Match", tag)]).status == 410
    });
}
