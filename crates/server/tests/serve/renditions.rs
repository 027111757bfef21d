//! Renditions: if the best one does not fit, admission offers the next; if none fits, it refuses.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, ffmpeg};
use server::access::{TokenClaims, ViewerLimits, new_key_file};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use store::{IngestOptions, Store, Unthrottled};
use units::BitRate;

/// A title with two video renditions of about 6 and 0.4 Mb/s, and one audio track.
pub(crate) fn film() -> TestStore {
    let fixture = TestStore::with(&[]);
    let sizes = [("large", "640x360", "6M"), ("small", "160x90", "400k")];
    let files: Vec<PathBuf> = sizes
        .iter()
        .map(|(name, size, rate)| {
            let file = fixture.directory.join(format!("{name}.mp4"));
            let source = format!("testsrc2=s={size}:r=25:d=8,noise=alls=20:allf=t");
            ffmpeg(
                &format!(
                    "-f lavfi -i {source} -f lavfi -i sine=440:d=8 -c:v libx264 -preset veryfast \
                     -b:v {rate} -maxrate {rate} -bufsize {rate} -g 25 -sc_threshold 0 -c:a aac"
                ),
                &file,
            );
            file
        })
        .collect();
    let store = Store::open(&fixture.path).unwrap();
    let options = IngestOptions {
        name: Some("film".to_owned()),
        renditions: true,
        ..IngestOptions::default()
    };
    let never = AtomicBool::new(false);
    for outcome in store::ingest(&store, &files, &options, &Unthrottled, &mut |_| {}, &never) {
        outcome.result.unwrap();
    }
    fixture
}

#[test]
fn a_session_that_does_not_get_the_best_rendition_gets_the_next_one_only() {
    let fixture = film();
    // The network is the short resource, because its limit is equal on every machine.
    let serving = fixture.serve_with(|config| config.network = Some(BitRate(40_000_000)));
    let mut client = serving.client();
    // Number of variants offered to each viewer; 0: refused.
    let offered: Vec<usize> = (0..150)
        .map(|_| {
            let response = client.get("/t/film/master.m3u8");
            match response.status {
                200 => response.text().matches("#EXT-X-STREAM-INF").count(),
                status => {
                    assert_eq!(status, 503);
                    0
                }
            }
        })
        .collect();
    assert!(offered.contains(&2) && offered.contains(&1) && offered.contains(&0), "{offered:?}");
    assert_eq!(offered[0], 2, "the first viewer is offered all renditions");
    let smaller = offered.iter().filter(|count| **count == 1).count() as u64;
    eventually("the downgrades are counted", || serving.status("/admitted_downgraded") == smaller);
    let metrics = client.get("/metrics");
    let line = format!("tenuto_admitted_downgraded_total {smaller}");
    assert!(metrics.text().lines().any(|l| l == line), "{line}");
}

#[test]
fn a_token_opens_pictures_up_to_its_height_and_no_others() {
    let fixture = film();
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let token = |max_height| {
        let limits = ViewerLimits { max_height, ..ViewerLimits::default() };
        let claims = TokenClaims { exp: u64::MAX, limits, ..TokenClaims::default() };
        claims.sign(&keys).unwrap()
    };
    let serving = fixture.serve_with(|config| config.tokens = Some(keys.clone()));
    let mut client = serving.client();
    // The height of the token, the status, and which of the two renditions the manifests have.
    for (max_height, status, large, small) in [
        (None, 200, true, true),
        (Some(360), 200, true, true),
        (Some(359), 200, false, true),
        (Some(90), 200, false, true),
        (Some(89), 403, false, false),
    ] {
        let query = format!("?token={}", token(max_height));
        for path in ["/t/film/master.m3u8", "/t/film/manifest.mpd"] {
            for method in ["GET", "HEAD"] {
                let manifest = client.request(method, &format!("{path}{query}"), &[]);
                assert_eq!(manifest.status, status, "{method} {path}, {max_height:?}");
            }
            let manifest = client.get(&format!("{path}{query}"));
            let text = manifest.text();
            let has = |size: &str, both: &str| text.contains(size) || text.contains(both);
            let found = (
                has("RESOLUTION=640x360", "height=\"360\""),
                has("RESOLUTION=160x90", "height=\"90\""),
            );
            assert_eq!(found, (large, small), "{path}, {max_height:?}: {text}");
        }
        let file = client.get(&format!("/t/film.mp4{query}"));
        assert_eq!(file.status, if status == 200 { 307 } else { 403 }, "{max_height:?}");
    }

    // Nor by an address that a player makes up: the large rendition is track 0.
    let small = client.get(&format!("/t/film/master.m3u8?token={}", token(Some(90))));
    let list = playlist_uris(small.text(), "/t/film/master.m3u8");
    let list = list.iter().find(|list| list.contains("/1.m3u8")).unwrap();
    assert_eq!(client.get(list).status, 200);
    let (_, session) = list.split_once('?').unwrap();
    for resource in ["0.m3u8", "0/init.mp4", "0/0.m4s", "0/0.ts", "0-iframes.m3u8"] {
        let answer = client.get(&format!("/t/film/{resource}?{session}"));
        assert!([403, 404].contains(&answer.status), "{resource}: {}", answer.status);
    }
    let refused = client.get(&format!("/t/film/0/0.m4s?{session}"));
    assert_eq!((refused.status, &*refused.error()), (403, "token-not-allowed"));
}

#[test]
fn a_player_may_switch_renditions_at_any_segment() {
    let fixture = film();
    let serving = fixture.serve();
    let mut client = serving.client();
    let master = client.get("/t/film/master.m3u8").text().to_owned();
    let lists: Vec<String> = playlist_uris(&master, "/t/film/master.m3u8");
    let videos: Vec<&String> =
        lists.iter().filter(|list| list.contains("/0.m3u8") || list.contains("/1.m3u8")).collect();
    assert_eq!(videos.len(), 2, "{lists:?}");
    let segments: Vec<Vec<String>> = videos
        .iter()
        .map(|list| playlist_uris(client.get(list).text(), list))
        .map(|all| all.into_iter().filter(|piece| piece.contains(".m4s")).collect())
        .collect();
    assert_eq!(segments[0].len(), segments[1].len(), "cut at the same times");
    for (number, pieces) in segments[0].iter().zip(&segments[1]).enumerate() {
        let piece = if number % 2 == 0 { pieces.0 } else { pieces.1 };
        let response = client.get(piece);
        assert!(response.status == 200 && response.whole, "{piece}: {}", response.status);
    }
}
