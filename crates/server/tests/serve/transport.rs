//! HLS with transport streams: admission as for fragmented MP4, the rules of ISO/IEC 13818-1 on
//! what is served, ranges, and titles without a form.

use crate::channels::{assert_constant, between_tables};
use crate::client::{Client, playlist_uris};
use crate::fixture::{TestServer, TestStore, ffmpeg, media};
use std::process::Command;
use testkit::ts::CheckedPlaylist;

/// The rules of the playlists of a title, with everything that they name fetched from the server.
fn check(client: &mut Client, folder: &str, query: &str) -> Vec<CheckedPlaylist> {
    let response = client.get(&format!("{folder}/master-ts.m3u8{query}"));
    assert_eq!(response.status, 200, "{folder}{query}: {}", response.text());
    assert_eq!(response.field("content-type"), Some("application/vnd.apple.mpegurl"));
    assert_eq!(response.field("cache-control"), Some("no-store"));
    testkit::ts::check_hls(folder, response.text(), &mut |uri| {
        let response = client.get(&format!("{folder}/{uri}"));
        assert!(response.status == 200 && response.whole, "{uri}: {response:?}");
        assert!(response.field("etag").is_some(), "{uri}");
        if uri.contains(".ts?") {
            assert_eq!(response.field("content-type"), Some("video/mp2t"), "{uri}");
        }
        response.body
    })
}

fn assert_kept(serving: &TestServer) {
    assert_eq!(serving.status("/deadline_misses"), 0);
    assert_eq!(serving.status("/guarantee_violations/scheduler"), 0);
}

#[test]
fn each_part_at_each_speed_is_a_sound_transport_stream() {
    let fixture = TestStore::with(&[&media().film, &media().song, &media().heavy]);
    let serving = fixture.serve();
    let mut client = serving.client();
    // Title and query; streams, PES packets of the one that leads.
    let table = [
        ("film", "", 2, 150),
        ("film", "?start=2&stop=4", 2, 50),
        ("film", "?skip=1", 1, 75),
        ("film", "?speed=-1", 1, 150),
        ("film", "?speed=2", 2, 150),
        ("heavy", "", 1, 100),
    ];
    for (title, query, streams, packets) in table {
        let found = check(&mut client, &format!("/t/{title}"), query);
        assert_eq!(found[0].streams.len(), streams, "{title}{query}");
        assert_eq!(found[0].streams[0].packets.len(), packets, "{title}{query}");
    }
    assert_eq!(check(&mut client, "/t/song", "")[0].streams[0].stream_type, 0x0f);
    assert_kept(&serving);
}

#[test]
fn a_session_books_pictures_and_sound_as_that_of_fragmented_mp4_does() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let mut booked = |manifest: &str| {
        let at = format!("/t/film/{manifest}");
        let master = client.get(&at).text().to_owned();
        // The variant's playlist, whose first track is the video.
        let lists = playlist_uris(&master, &at);
        let list = lists.iter().find(|list| list.starts_with("/t/film/0")).expect("a playlist");
        let segments = playlist_uris(client.get(list).text(), list);
        let segment = segments.iter().find(|uri| !uri.contains("init")).expect("a segment");
        let reserved = client.get(segment).field("cmsd-dynamic").expect("a rate").to_owned();
        let token = segment.split_once("?s=").expect("a token").1;
        let ended = client.request("DELETE", &format!("/t/film/session?s={token}"), &[]);
        assert_eq!(ended.status, 204, "{manifest}");
        reserved
    };
    let reserved = booked("master-ts.m3u8");
    assert!(reserved.starts_with("\"tenuto\";mb="), "{reserved}");
    assert_eq!(reserved, booked("master.m3u8"));
    assert_kept(&serving);
}

#[test]
fn any_range_of_a_segment_is_that_part_of_it_and_head_has_its_length() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let at = "/t/film/master-ts.m3u8";
    let master = client.get(at).text().to_owned();
    let list = playlist_uris(&master, at).remove(0);
    let segments = playlist_uris(client.get(&list).text(), &list);
    let path = &segments[1];
    let whole = client.get(path);
    let (tag, length) = (whole.field("etag").expect("a tag").to_owned(), whole.body.len());
    let seed = 11;
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..40 {
        let first = random.usize(0..length);
        let last = (first + random.usize(0..100_000)).min(length - 1);
        let range = format!("bytes={first}-{last}");
        let part = client.request("GET", path, &[("Range", &range)]);
        assert_eq!(part.status, 206, "{range}, seed {seed}");
        assert!(part.body == whole.body[first..=last], "{range}, seed {seed}");
    }
    let two = client.request("GET", path, &[("Range", "bytes=100-999,50000-50187")]);
    assert_eq!(two.status, 206);
    for part in [&whole.body[100..1000], &whole.body[50_000..50_188]] {
        assert!(two.body.windows(part.len()).any(|window| window == part));
    }
    let head = client.request("HEAD", path, &[]);
    assert_eq!(head.field("content-length"), Some(&*length.to_string()));
    let unchanged = client.request("GET", path, &[("If-None-Match", &tag)]);
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert!(client.get(path).body == whole.body, "the same bytes each time");
    // Addresses that do not exist, and those of another kind of session.
    let token = path.split_once("?s=").expect("a token").1.to_owned();
    let other = client.get("/t/film/master.m3u8").text().to_owned();
    let other = other.split("?s=").nth(1).expect("a token")[..32].to_owned();
    for path in [
        format!("/t/film/0/999.ts?s={token}"),
        format!("/t/film/9-ts.m3u8?s={token}"),
        format!("/t/film/0/0.ts?s={other}"),
        "/t/film/0/0.ts".to_owned(),
    ] {
        assert_eq!(client.get(&path).status, 404, "{path}");
    }
    assert_kept(&serving);
}

#[test]
fn a_title_in_one_file_has_a_constant_rate_and_the_length_that_follows() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    // Query, bits per second, seconds of pictures; FFmpeg reads each without a remark.
    let table = [
        ("rate=3Mbps", 3_000_000, 6),
        ("rate=3.1Mbps&start=2&stop=4", 3_100_000, 2),
        ("rate=3200000&speed=2", 3_200_000, 6),
    ];
    for (query, rate, seconds) in table {
        let address = format!("/t/film.ts?{query}");
        let (path, whole) = client.get_following(&address);
        assert!(whole.status == 200 && whole.whole, "{query}: {whole:?}");
        assert_eq!(whole.field("content-type"), Some("video/mp2t"));
        let head = client.request("HEAD", &address, &[]);
        assert_eq!(head.field("content-length"), whole.field("content-length"), "{query}");
        // Sound may go on after the pictures.
        let (length, least) = (whole.body.len() as u64, rate * seconds / 8);
        assert!((least..least + rate / 8).contains(&length), "{query}: {length} of {least}");
        assert!(assert_constant(&whole.body, rate) > 150 / 6 * usize::try_from(seconds).unwrap());
        let streams = testkit::ts::check(&between_tables(&whole.body)).unwrap();
        assert_eq!(streams[0].packets.len() as u64, 25 * seconds, "{query}");
        let mut random = fastrand::Rng::with_seed(rate);
        for _ in 0..15 {
            let first = random.usize(0..whole.body.len());
            let last = (first + random.usize(0..100_000)).min(whole.body.len() - 1);
            let range = format!("bytes={first}-{last}");
            let part = client.request("GET", &path, &[("Range", &range)]);
            assert_eq!(part.status, 206, "{query} {range}");
            assert!(part.body == whole.body[first..=last], "{query} {range}");
        }
        let beyond = [("Range", &*format!("bytes={length}-"))];
        let beyond = serving.client().request("GET", &path, &beyond);
        assert_eq!((beyond.status, &*beyond.error()), (416, "range-not-satisfiable"));
        let mut ffprobe = Command::new("ffprobe");
        ffprobe.args(["-v", "warning", "-show_entries", "packet=size", &serving.url(&address)]);
        let said = ffprobe.output().expect("ffprobe runs; apt install ffmpeg");
        let (out, remarks) = (said.stdout, String::from_utf8_lossy(&said.stderr).into_owned());
        assert!(said.status.success() && remarks.is_empty() && !out.is_empty(), "{remarks}");
        let other = serving.client().get(&format!("{path}&rate=4Mbps"));
        assert_eq!(other.error(), "bad-parameter");
    }
    assert_kept(&serving);
}

#[test]
fn a_file_at_a_constant_rate_is_refused_with_the_rates_that_there_are() {
    let fixture = TestStore::with(&[&media().film, &media().large]);
    let serving = fixture.serve();
    let request = |method: &str, path: &str| serving.client().request(method, path, &[]);
    let table = [
        ("film.ts", "400 rate-missing"),
        ("film.ts?rate=much", "400 bad-parameter"),
        ("film.ts?rate=100kbps", "400 rate-too-low"),
        ("film.ts?rate=1Gbps", "400 rate-too-high"),
        ("film.ts?rate=3Mbps&skip=1", "400 forwards-only"),
        ("film.ts?rate=3Mbps&speed=-1", "400 forwards-only"),
        ("film.ts?rate=3Mbps&start=60", "400 bad-parameter"),
        ("film.ts?rate=3Mbps&s=x", "404 session-unknown"),
        ("large.ts?rate=3Mbps", "404 no-transport-stream"),
        ("none.ts?rate=3Mbps", "404 no-title"),
    ];
    for (path, wanted) in table {
        let refused = request("GET", &format!("/t/{path}"));
        assert_eq!(format!("{} {}", refused.status, refused.error()), wanted, "{path}");
        let head = request("HEAD", &format!("/t/{path}"));
        assert_eq!(head.status, refused.status, "{path}");
    }
    // Both ends of what the hint names can be had, and nothing beyond.
    let hint = request("GET", "/t/film.ts?rate=100kbps").json()["hint"].to_string();
    let rates = hint.split("rate=").skip(1).map(|text| {
        let digits = text.chars().take_while(char::is_ascii_digit);
        digits.collect::<String>().parse::<u64>().expect("a rate")
    });
    let rates: Vec<u64> = rates.collect();
    for (rate, status) in
        [(rates[0] - 1, 400), (rates[0], 200), (rates[1], 200), (rates[1] + 1, 400)]
    {
        let head = request("HEAD", &format!("/t/film.ts?rate={rate}"));
        assert_eq!(head.status, status, "{rate} of {hint}");
    }
    // The token of a session that began at another address.
    let other = request("GET", "/t/film/master-ts.m3u8").text().to_owned();
    let other = other.split("?s=").nth(1).expect("a token")[..32].to_owned();
    assert_eq!(request("GET", &format!("/t/film.ts?s={other}")).status, 404);
    let sessions = request("GET", "/sessions").json();
    assert_eq!(sessions["total"], 1, "nothing is reserved for the others");
}

#[test]
fn a_title_without_a_form_is_refused_with_the_reason() {
    let fixture = TestStore::with(&[&media().large]);
    let opus = fixture.directory.join("opus.mkv");
    ffmpeg(
        "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -f lavfi -i sine=d=1 -c:v libx264 -c:a libopus",
        &opus,
    );
    fixture.add(&[&opus]);
    let serving = fixture.serve();
    let mut client = serving.client();
    for (title, why) in [
        (
            "large",
            "this title is not offered as HLS with transport streams: its video cannot go out in \
             an MPEG transport stream: mp4v.6C has no form there; H.264, HEVC, MPEG-1, MPEG-2 and \
             MPEG-4 part 2 have",
        ),
        (
            "opus",
            "this title is not offered as HLS with transport streams: its audio cannot go out in \
             an MPEG transport stream: Opus has no form there; AAC, AC-3, E-AC-3 and MPEG audio \
             have",
        ),
    ] {
        for method in ["GET", "HEAD"] {
            let path = format!("/t/{title}/master-ts.m3u8");
            let refused = client.request(method, &path, &[]);
            assert_eq!(refused.status, 404, "{title}");
            if method == "GET" {
                let json = refused.json();
                assert_eq!(
                    (&json["error"], &json["message"]),
                    (&"no-transport-stream".into(), &why.into())
                );
                let hint = format!("/t/{title}/master.m3u8 has it in fragmented MP4");
                assert_eq!(json["hint"], hint);
            }
        }
        let other = client.request("HEAD", &format!("/t/{title}/master.m3u8"), &[]);
        assert_eq!(other.status, 200, "{title}");
    }
}
