//! Byte ranges: any range of a body equals that part of the whole body.

use crate::client::Client;
use crate::fixture::{TestStore, media};
use std::ops::Range;

#[test]
fn any_range_of_a_file_equals_that_part_of_the_whole_file() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let (path, whole) = client.get_following("/t/film.mp4");
    assert_eq!(whole.status, 200);
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    let (whole, etag) = (&whole.body, whole.field("etag").unwrap().to_owned());
    let length = whole.len();

    let seed = 7;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ranges: Vec<(usize, usize)> = vec![(0, 0), (0, length - 1), (length - 1, length - 1)];
    for _ in 0..60 {
        let first = random.usize(0..length);
        let size = if random.bool() { random.usize(0..1000) } else { random.usize(0..length) };
        ranges.push((first, (first + size).min(length - 1)));
    }
    for (first, last) in ranges {
        let range = format!("bytes={first}-{last}");
        let part = client.request("GET", &path, &[("Range", &range)]);
        assert_eq!(part.status, 206, "{range}, seed {seed}");
        assert_eq!(part.field("content-range"), Some(&*format!("bytes {first}-{last}/{length}")));
        assert!(part.body == whole[first..=last], "{range}, seed {seed}");
    }
    check_fields(&mut client, &path, whole, &etag);
}

/// Checks `Range` fields other than one range with both ends.
fn check_fields(client: &mut Client, path: &str, whole: &[u8], etag: &str) {
    let length = whole.len();
    let all = 0..length;
    // (fields, status, the part)
    type Row<'a> = (&'a [(&'a str, &'a str)], u16, Range<usize>);
    let table: &[Row<'_>] = &[
        (&[("Range", "bytes=-100")], 206, length - 100..length),
        (&[("Range", "bytes=100-")], 206, 100..length),
        (&[("Range", "bytes=5-99999999999999999999999")], 206, 5..length),
        (&[("Range", "bytes=0-4,10-14")], 206, 0..15),
        (&[("Range", "bytes=7-3")], 200, all.clone()),
        (&[("Range", "seconds=1-2")], 200, all.clone()),
        (&[("Range", "bytes=2-5"), ("If-Range", etag)], 206, 2..6),
        (&[("Range", "bytes=2-5"), ("If-Range", "\"other\"")], 200, all),
    ];
    for (fields, status, part) in table {
        let response = client.request("GET", path, fields);
        assert_eq!(response.status, *status, "{fields:?}");
        assert!(response.body == whole[part.clone()], "{fields:?}");
    }
    for range in [format!("bytes={length}-"), "bytes=-0".into(), "bytes=99999999999999-".into()] {
        let response = client.request("GET", path, &[("Range", &range)]);
        assert_eq!(response.status, 416, "{range}");
        assert_eq!(response.field("content-range"), Some(&*format!("bytes */{length}")));
        assert_eq!(response.error(), "range-not-satisfiable");
    }
    let head = client.request("HEAD", path, &[("Range", "bytes=0-9")]);
    // Only GET has ranges (RFC 9110, 14.2).
    assert_eq!((head.status, head.field("content-length")), (200, Some(&*length.to_string())));
    assert_eq!(client.get(path).body.len(), length, "the connection stays usable");
}

#[test]
fn head_and_options_requests_reserve_nothing() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    for path in ["/t/film.mp4", "/t/film/master.m3u8", "/t/film/manifest.mpd"] {
        let head = client.request("HEAD", path, &[]);
        assert_eq!(head.status, 200, "{path}");
        assert!(head.field("content-length").unwrap().parse::<u64>().unwrap() > 0);
    }
    let options = client.request("OPTIONS", "/t/film.mp4", &[("Origin", "http://elsewhere")]);
    assert_eq!(options.status, 204);
    assert!(options.field("access-control-allow-headers").unwrap().contains("Range"));
    for path in ["/titles", "/t/film/manifest.mpd", "/t/none.mp4"] {
        let response = client.request("HEAD", path, &[("Origin", "http://elsewhere")]);
        for field in
            ["access-control-allow-origin", "access-control-expose-headers", "timing-allow-origin"]
        {
            assert_eq!(response.field(field), Some("*"), "{path}");
        }
    }
    assert_eq!(serving.status("/admitted"), 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let path = client.get("/t/film.mp4").field("location").unwrap().to_owned();
    let request = |range: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nRange: {range}\r\n\r\n");
    let all = [request("bytes=0-9"), request("bytes=100-299999"), request("bytes=4-7")].concat();
    client.send(all.as_bytes());
    for length in [10, 299_900, 4] {
        let response = client.read_response(true).unwrap();
        assert_eq!((response.status, response.body.len()), (206, length));
    }
}
