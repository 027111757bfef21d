//! Conditional requests, and several ranges in one response.

use crate::client::{Client, TestResponse, playlist_uris};
use crate::fixture::{TestStore, media};
use std::ops::Range;

/// The path of a resource of each kind, for one session each: a file, an initialization segment
/// and a media segment.
fn resources(client: &mut Client) -> [String; 3] {
    let (file, _) = client.get_following("/t/film.mp4");
    let master = "/t/film/master.m3u8";
    let playlist = playlist_uris(client.get(master).text(), master).remove(0);
    let uris = playlist_uris(client.get(&playlist).text(), &playlist);
    [file, uris[0].clone(), uris[1].clone()]
}

#[test]
fn conditions_hold_for_every_kind_of_media() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    for path in resources(&mut client) {
        let whole = client.get(&path);
        assert_eq!(whole.status, 200, "{path}");
        let (etag, date) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
        let (before, after) = ("Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT");
        let range = ("Range", "bytes=2-5");
        let table: &[(&[(&str, &str)], u16)] = &[
            (&[("If-None-Match", etag)], 304),
            (&[("If-None-Match", etag), range], 304),
            (&[("If-None-Match", "\"other\"")], 200),
            (&[("If-Modified-Since", date)], 304),
            (&[("If-Modified-Since", after)], 304),
            (&[("If-Modified-Since", before)], 200),
            (&[("If-Modified-Since", after), ("If-None-Match", "\"other\"")], 200),
            (&[("If-Match", etag)], 200),
            (&[("If-Match", "*"), range], 206),
            (&[("If-Match", "\"other\"")], 412),
            (&[("If-Match", "\"other\""), ("If-None-Match", etag), range], 412),
            (&[("If-Unmodified-Since", date), range], 206),
            (&[("If-Unmodified-Since", before)], 412),
            (&[("If-Range", etag), range], 206),
            (&[("If-Range", "\"other\""), range], 200),
            (&[("If-Range", before), range], 200),
            (&[("If-Range", after), range], 200),
        ];
        for (fields, status) in table {
            let response = client.request("GET", &path, fields);
            assert_eq!(response.status, *status, "{path} {fields:?}");
            let body: &[u8] = match status {
                200 => &whole.body,
                206 => &whole.body[2..6],
                304 => &[],
                _ => {
                    assert_eq!(response.error(), "precondition-failed", "{path} {fields:?}");
                    &response.body
                }
            };
            assert!(response.body == body, "{path} {fields:?}: {response:?}");
            // A cache updates what it holds by the fields of a 304 (RFC 9110, 15.4.5).
            if *status != 412 {
                for field in ["etag", "last-modified", "cache-control"] {
                    assert_eq!(response.field(field), whole.field(field), "{path} {fields:?}");
                }
            }
            let head = client.request("HEAD", &path, fields);
            // Only GET has ranges (RFC 9110, 14.2).
            let (status, same) = if *status == 206 { (200, &whole) } else { (*status, &response) };
            assert_eq!(head.status, status, "HEAD {path} {fields:?}");
            for field in ["etag", "last-modified", "content-length", "content-range"] {
                assert_eq!(head.field(field), same.field(field), "HEAD {path} {fields:?}");
            }
        }
    }
}

#[test]
fn a_date_allows_a_range_once_its_second_is_over() {
    let fixture = TestStore::with(&[&media().song]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (path, whole) = client.get_following("/t/song.mp4");
    let date = whole.field("last-modified").unwrap().to_owned();
    // The title was ingested moments ago, perhaps in this second.
    crate::fixture::eventually("the date is strong", || {
        let fields = [("Range", "bytes=0-9"), ("If-Range", &*date)];
        client.request("GET", &path, &fields).status == 206
    });
}

#[test]
fn several_ranges_are_parts_of_one_response() {
    let fixture = TestStore::with(&[&media().heavy]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (path, whole) = client.get_following("/t/heavy.mp4");
    let length = whole.body.len();
    // Nearly a window of the transfer, several windows, and places far from each other.
    let wanted: [&[Range<usize>]; 4] = [
        &[0..10, 1000..1010],
        &[0..100, length / 2..length / 2 + 500_000, length - 7..length],
        &[100..9_000_000, 10_000_000..10_000_001],
        &[5_000_000..5_000_001, 15_000_000..15_000_001],
    ];
    for ranges in wanted {
        // The last range first: the response is in ascending order.
        let listed: Vec<String> =
            ranges.iter().rev().map(|range| format!("{}-{}", range.start, range.end - 1)).collect();
        let field = format!("bytes={}", listed.join(", "));
        let response = client.request("GET", &path, &[("Range", &field)]);
        assert_eq!(response.status, 206, "{field}");
        assert!(response.whole && response.field("content-range").is_none(), "{response:?}");
        let parts = parts(&response);
        assert_eq!(parts.len(), ranges.len(), "{field}");
        for (range, (fields, body)) in ranges.iter().zip(parts) {
            let content = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            assert_eq!(fields, ["Content-Type: video/mp4", &format!("Content-Range: {content}")]);
            assert!(body == &whole.body[range.clone()], "{content}");
        }
        let head = client.request("HEAD", &path, &[("Range", &field)]);
        assert_eq!(head.status, 200, "{field}");
        assert_eq!(head.field("content-length"), Some(&*length.to_string()), "{field}");
    }
    let many: Vec<String> = (0..17).map(|i| format!("{0}-{0}", i * 1000)).collect();
    let ignored = client.request("GET", &path, &[("Range", &format!("bytes={}", many.join(",")))]);
    assert!(ignored.status == 200 && ignored.body == whole.body, "{ignored:?}");
    crate::fixture::eventually("one session is counted", || serving.status("/admitted") == 1);
}

/// The fields and the body of each part of a multipart response.
fn parts(response: &TestResponse) -> Vec<(Vec<&str>, &[u8])> {
    let kind = response.field("content-type").unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let begin = format!("--{boundary}\r\n");
    let mut rest = response.body.strip_prefix(begin.as_bytes()).expect("a first part");
    let find = |rest: &[u8], text: &str| {
        rest.windows(text.len()).position(|window| window == text.as_bytes())
    };
    let mut parts = Vec::new();
    loop {
        let head_end = find(rest, "\r\n\r\n").expect("fields of a part");
        let fields = std::str::from_utf8(&rest[..head_end]).unwrap().lines().collect();
        rest = &rest[head_end + 4..];
        let delimiter = format!("\r\n--{boundary}");
        let end = find(rest, &delimiter).expect("the end of a part");
        parts.push((fields, &rest[..end]));
        rest = &rest[end + delimiter.len()..];
        if rest == b"--\r\n" {
            return parts;
        }
        rest = rest.strip_prefix(b"\r\n").expect("the next part");
    }
}
