//! Thumbnails over HTTP: of a session and of a title, who may have them, and how they are kept.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, media};
use server::access::{TokenClaims, new_key_file};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::IngestOptions;
use testkit::thumbnails;

/// A store whose title `film` has a thumbnail each second, and whose title `song` has none.
fn store() -> TestStore {
    let fixture = TestStore::with(&[&media().song]);
    let thumbnails = Some(Duration::from_secs(1));
    fixture.add_with(&[&media().film], &IngestOptions { thumbnails, ..IngestOptions::default() });
    fixture
}

#[test]
fn thumbnails_are_served_in_each_form_and_take_no_reservation() {
    let fixture = store();
    let serving = fixture.serve();
    let mut client = serving.client();
    let cues = client.get("/t/film/thumbnails.vtt");
    assert_eq!((cues.status, cues.field("content-type")), (200, Some("text/vtt")));
    let mut fetch = |uri: &str| {
        let image = client.get(&format!("/t/film/{uri}"));
        (image.status == 200).then_some(image.body)
    };
    let of_title = thumbnails::of_webvtt(&cues.body, &mut fetch).unwrap();
    // The sound ends after six seconds.
    assert!((6..=7).contains(&of_title.len()), "{of_title:?}");
    assert_eq!(serving.status("/admitted"), 0);

    let master = "/t/film/master.m3u8";
    let manifest = client.get(master);
    let list = playlist_uris(manifest.text(), master).pop().expect("the images come last");
    assert!(list.starts_with("/t/film/thumbnails.m3u8?s="), "{list}");
    let playlist = client.get(&list);
    assert_eq!(playlist.field("content-type"), Some("application/vnd.apple.mpegurl"));
    let image = playlist_uris(playlist.text(), &list).remove(0);
    let query = list.split_once('?').expect("a token").1;
    let cues = client.get(&format!("/t/film/thumbnails.vtt?{query}"));
    assert!(cues.text().contains(&format!("thumbnails/0.jpg?{query}#xywh=")), "{}", cues.text());

    let whole = client.get(&image);
    let field = |name| whole.field(name).unwrap_or_default();
    assert_eq!((whole.status, field("content-type")), (200, "image/jpeg"));
    assert_eq!(field("cache-control"), "private, no-cache");
    assert_eq!(field("access-control-allow-origin"), "*");
    let etag = field("etag");
    assert_eq!(client.request("GET", &image, &[("If-None-Match", etag)]).status, 304);
    let head = client.request("HEAD", &image, &[("Accept-Encoding", "gzip")]);
    assert_eq!(head.field("content-length"), whole.field("content-length"));
    let of_title = client.get("/t/film/thumbnails/0.jpg");
    assert!((of_title.field("etag"), &of_title.body) == (Some(etag), &whole.body));

    for path in [
        "/t/film/thumbnails/1.jpg",
        "/t/film/thumbnails.vtt?skip=1",
        "/t/song/thumbnails.vtt",
        "/t/song/thumbnails/0.jpg",
        "/t/film/thumbnails.m3u8",
        "/t/film/thumbnails/0.jpg?s=x",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    let ended = client.request("DELETE", &format!("/t/film/session?{query}"), &[]);
    assert_eq!(ended.status, 204);
    eventually("the session has ended", || client.get(&image).status == 410);
}

#[test]
fn caches_keep_thumbnails_for_ever() {
    let fixture = store();
    let serving = fixture.serve_with(|config| config.fills = Some(1));
    let mut client = serving.client();
    let master = "/origin/film/master.m3u8";
    let manifest = client.get(master);
    let list = playlist_uris(manifest.text(), master).pop().expect("the images come last");
    let playlist = client.get(&list);
    assert_eq!(playlist.field("cache-control"), Some("public, max-age=3600"));
    let image = client.get(&playlist_uris(playlist.text(), &list)[0]);
    assert_eq!(image.field("content-type"), Some("image/jpeg"));
    let folder = list.strip_suffix("thumbnails.m3u8").expect("the playlist of the images");
    let cues = client.get(&format!("{folder}thumbnails.vtt"));
    assert!(cues.text().contains("\nthumbnails/0.jpg#xywh="), "{}", cues.text());
    for kept in [&image, &cues] {
        let rule = kept.field("cache-control").unwrap_or_default();
        assert!(rule.contains("public") && rule.contains("immutable"), "{rule}");
    }
}

#[test]
fn thumbnails_need_a_token_where_the_title_does() {
    let fixture = store();
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let token = TokenClaims { exp: now + 600, ..TokenClaims::default() }.sign(&keys).unwrap();
    let serving = fixture.serve_with(|config| config.tokens = Some(keys.clone()));
    let mut client = serving.client();
    for path in ["/t/film/thumbnails.vtt", "/t/film/thumbnails/0.jpg"] {
        assert_eq!(client.get(path).error(), "token-missing", "{path}");
        assert_eq!(client.get(&format!("{path}?token={token}")).status, 200, "{path}");
    }
    // A page gives the addresses of the cues to an image, which has no field of its own.
    let cues = client.get(&format!("/t/film/thumbnails.vtt?token={token}"));
    let named = cues.text().lines().find_map(|line| line.split_once("#xywh=")).expect("a cue").0;
    assert_eq!(client.get(&format!("/t/film/{named}")).status, 200, "{named}");
}
