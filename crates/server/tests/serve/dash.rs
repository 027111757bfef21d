//! DASH: admission as for HLS, and a manifest of which each address answers.

use crate::client::{Client, TestResponse};
use crate::fixture::{TestStore, eventually, media};
use testkit::dash::CheckedRepresentation;
use units::BitRate;

/// The manifest's rules, with everything that it names fetched from the server.
fn check(
    client: &mut Client,
    what: &str,
    title: &str,
    manifest: &str,
) -> Vec<CheckedRepresentation> {
    testkit::dash::check(what, manifest, &mut |uri| {
        let response = client.get(&format!("/t/{title}/{uri}"));
        match response.status {
            200 => {
                assert!(response.whole && response.field("etag").is_some(), "{uri}: {response:?}");
                Some(response.body)
            }
            404 => None,
            status => panic!("{what}, {uri}: {status} {}", response.text()),
        }
    })
}

fn token(manifest: &str) -> &str {
    manifest.split("?s=").nth(1).and_then(|rest| rest.split('"').next()).expect("a token")
}

#[test]
fn each_part_at_each_speed_is_a_sound_manifest() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let serving = fixture.serve();
    let mut client = serving.client();
    // Title and query; number of representations, and seconds that the longest lasts.
    let table = [
        ("film", "", 2, 6.0),
        ("film", "?start=2&stop=4", 2, 2.0),
        ("film", "?start=4.2", 2, 2.0),
        ("film", "?skip=1", 1, 3.0),
        ("film", "?speed=-1", 1, 6.0),
        ("film", "?speed=2", 2, 6.0),
        ("song", "", 1, 4.0),
        ("song", "?start=1", 1, 3.0),
    ];
    let both = |row| [("manifest.mpd", row), ("ondemand.mpd", row)];
    for (manifest, (title, query, count, lasts)) in table.into_iter().flat_map(both) {
        let what = format!("{title}/{manifest}{query}");
        let response = client.get(&format!("/t/{title}/{manifest}{query}"));
        assert_eq!((response.status, response.field("content-type")), (200, Some(DASH)), "{what}");
        assert_eq!(response.field("cache-control"), Some("no-store"), "{what}");
        let found = check(&mut client, &what, title, response.text());
        assert_eq!(found.len(), count, "{what}");
        let longest = found.iter().map(|it| it.time.end).fold(0.0, f64::max);
        assert!((longest - lasts).abs() < 0.05, "{what}: {longest} s");
    }
}

#[test]
fn a_manifest_is_an_admission_request() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.throttle = Some(SLOW));
    let mut client = serving.client();
    let mut admitted: Vec<String> = Vec::new();
    let mut refused: Option<TestResponse> = None;
    for number in 0..30 {
        let response = client.get(&format!("/t/film/manifest.mpd?wait=0&speed=1.0{number:02}"));
        match response.status {
            200 => admitted.push(response.text().to_owned()),
            _ => refused = Some(response),
        }
    }
    let refused = refused.expect("30 viewers of 1.5 Mb/s do not fit into 40 Mb/s");
    assert!(!admitted.is_empty(), "{}", refused.text());
    assert_eq!((refused.status, &*refused.error()), (503, "refused"));
    assert!(refused.field("retry-after").is_some());
    assert_eq!(refused.json()["cause"], "sessions", "{}", refused.text());

    // The session that ends gives its place to the next.
    let session = format!("/t/film/session?s={}", token(&admitted[0]));
    assert_eq!(client.request("DELETE", &session, &[]).status, 204);
    let init = format!("/t/film/0/init-dash.mp4?s={}", token(&admitted[0]));
    eventually("its token is not taken any more", || client.get(&init).status == 410);
}

#[test]
fn errors_are_those_of_hls() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let manifest = serving.client().get("/t/film/manifest.mpd").text().to_owned();
    let token = token(&manifest);
    let table: &[(&str, &str, u16, &str)] = &[
        ("GET", "/t/none/manifest.mpd", 404, "no-title"),
        ("GET", "/t/film/manifest.mpd?start=99", 400, "bad-parameter"),
        ("GET", "/t/film/manifest.mpd?speed=0", 400, "bad-parameter"),
        ("GET", "/t/film/0/init-dash.mp4", 404, "session-missing"),
        ("GET", "/t/film/0/init-dash.mp4?s=TOKEN&start=1", 400, "bad-parameter"),
        ("GET", "/t/film/9/init-dash.mp4?s=TOKEN", 404, "not-found"),
        ("GET", "/t/film/0/99.m4s?s=TOKEN", 404, "not-found"),
        ("GET", "/t/none/ondemand.mpd", 404, "no-title"),
        ("GET", "/t/film/ondemand.mpd?skip=99", 400, "bad-parameter"),
        ("GET", "/t/film/0.mp4", 404, "session-missing"),
        ("GET", "/t/film/0.mp4?s=0", 404, "session-unknown"),
        ("GET", "/t/film/0.mp4?s=TOKEN&start=1", 400, "bad-parameter"),
        ("GET", "/t/film/9.mp4?s=TOKEN", 404, "not-found"),
        ("GET", "/t/film/65535.mp4?s=TOKEN", 404, "not-found"),
        ("DELETE", "/t/film/0.mp4?s=TOKEN", 405, "method-not-allowed"),
        ("DELETE", "/t/film/ondemand.mpd", 405, "method-not-allowed"),
        ("GET", "/t/none/manifest-imsc.mpd", 404, "no-title"),
        ("GET", "/t/film/manifest-imsc.mpd?start=99", 400, "bad-parameter"),
        ("GET", "/t/film/text/0/init.mp4", 404, "session-missing"),
        ("GET", "/t/film/text/0/init.mp4?s=TOKEN", 404, "not-found"),
        ("GET", "/t/film/text/0/0.m4s?s=TOKEN", 404, "not-found"),
        ("GET", "/t/film/text/0.ttml", 404, "not-found"),
        ("DELETE", "/t/film/manifest-imsc.mpd", 405, "method-not-allowed"),
        ("DELETE", "/t/film/manifest.mpd", 405, "method-not-allowed"),
    ];
    for (method, path, status, error) in table {
        let response = serving.client().request(method, &path.replace("TOKEN", token), &[]);
        assert_eq!((response.status, &*response.error()), (*status, *error), "{path}");
    }
}

/// Ranges of the file of a track, as players fetch them: the index first, then segments anywhere.
#[test]
fn ranges_of_the_file_of_a_track_are_its_segments() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let manifest = client.get("/t/film/ondemand.mpd").text().to_owned();
    let token = token(&manifest).split('<').next().expect("its end").to_owned();
    let file = format!("/t/film/0.mp4?s={token}");
    let stated = manifest.split("indexRange=\"").nth(1).and_then(|it| it.split('"').next());
    let (first, last) = stated.and_then(|it| it.split_once('-')).expect("a range");
    let mut range = |bytes: &str| {
        let response = client.request("GET", &file, &[("Range", &format!("bytes={bytes}"))]);
        assert_eq!(response.status, 206, "{bytes}: {response:?}");
        response.body
    };
    let head = range(&format!("0-{last}"));
    let index = &head[first.parse().expect("a byte")..];
    assert_eq!(&index[4..8], b"sidx");
    let field = |at: usize| u32::from_be_bytes(index[at..at + 4].try_into().unwrap()) as usize;
    let count = field(28) & 0xffff;
    assert_eq!((index.len(), count > 1), (32 + 12 * count, true));
    let starts: Vec<usize> = (0..=count)
        .map(|k| head.len() + (0..k).map(|k| field(32 + 12 * k)).sum::<usize>())
        .collect();
    for k in (0..count).rev() {
        let segment = range(&format!("{}-{}", starts[k], starts[k + 1] - 1));
        let numbered = serving.client().get(&format!("/t/film/0/{k}.m4s?s={token}"));
        assert!(segment == numbered.body, "segment {k}");
    }
    let beyond = [("Range", &*format!("bytes={}-", starts[count]))];
    assert_eq!(client.request("GET", &file, &beyond).status, 416);
    let head = client.request("HEAD", &file, &[]);
    assert_eq!(head.field("content-length"), Some(&*starts[count].to_string()));
    assert_eq!(head.field("content-type"), Some("video/mp4"));
    assert!(head.field("cmsd-static").is_some_and(|it| it.contains("sf=d")), "{head:?}");
}

/// Ranges of the file of I-frames are those that the live profile has at addresses of their own.
#[test]
fn ranges_of_the_file_of_i_frames_are_its_i_frames() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve();
    let mut client = serving.client();
    let manifest = client.get("/t/film/ondemand.mpd").text().to_owned();
    let token = token(&manifest).split('<').next().expect("its end").to_owned();
    let set = manifest.split("guidelines/trickmode").nth(1).expect("a set for winding");
    assert!(set.contains("<BaseURL>0-iframes.mp4?s="), "{set}");
    let file = format!("/t/film/0-iframes.mp4?s={token}");
    let whole = client.get(&file);
    assert_eq!((whole.status, whole.field("content-type")), (200, Some("video/mp4")));
    let mut at = whole.body.len();
    let numbers = (0..).take_while(|number| {
        let path = format!("/t/film/0/iframe-{number}.m4s?s={token}");
        serving.client().request("HEAD", &path, &[]).status == 200
    });
    for number in numbers.collect::<Vec<_>>().into_iter().rev() {
        let iframe = serving.client().get(&format!("/t/film/0/iframe-{number}.m4s?s={token}"));
        let from = at - iframe.body.len();
        let range = format!("bytes={from}-{}", at - 1);
        let part = client.request("GET", &file, &[("Range", &range)]);
        assert!(part.status == 206 && part.body == iframe.body, "I-frame {number}: {range}");
        at = from;
    }
    assert!(at < whole.body.len(), "no I-frames");
    assert_eq!(&whole.body[4..8], b"ftyp");
    let sound = client.get(&format!("/t/film/1-iframes.mp4?s={token}"));
    assert_eq!((sound.status, &*sound.error()), (404, "not-found"));
}

/// A manifest that is asked for with a token replaces the session, as an HLS playlist does.
#[test]
fn hls_and_dash_replace_each_others_sessions() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.max_client_unplayed = Some(1));
    let mut client = serving.client();
    let mut present = client.get("/t/film/manifest.mpd").text().to_owned();
    for name in ["master.m3u8", "manifest.mpd", "manifest.mpd"] {
        let found = present.split("?s=").nth(1).expect("a token");
        let present_token = found.split(['"', '\n']).next().expect("its end");
        let next = client.get(&format!("/t/film/{name}?s={present_token}&start=1"));
        assert_eq!(next.status, 200, "{name}: {}", next.text());
        present = next.text().to_owned();
    }
}

const DASH: &str = "application/dash+xml";
/// The rate of the emulated slow disk.
const SLOW: BitRate = BitRate(40_000_000);
