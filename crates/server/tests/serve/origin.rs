//! Addresses for caches: the same bytes as for players, fields by which caches keep them, and a
//! most of fills beside the viewers.

use crate::client::{Client, TestResponse, playlist_uris};
use crate::fixture::{TestStore, eventually, ffmpeg, media};
use server::access::{TokenClaims, new_key_file};
use std::collections::BTreeMap;
use std::time::Duration;

const BRIEFLY: &str = "public, max-age=10";
const AN_HOUR: &str = "public, max-age=3600";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// All that a manifest names, by what stands behind the version or before the token; and the path
/// of each.
fn all_of(client: &mut Client, master: &str) -> BTreeMap<String, (String, Vec<u8>)> {
    let name = |path: &str| {
        let path = path.split('?').next().unwrap();
        let skip = if path.starts_with("/origin/") { 4 } else { 3 };
        path.split('/').skip(skip).collect::<Vec<_>>().join("/")
    };
    let list = client.get(master);
    assert_eq!(list.status, 200, "{master}: {}", list.text());
    let (mut all, mut todo) = (BTreeMap::new(), playlist_uris(list.text(), master));
    while let Some(path) = todo.pop() {
        if all.contains_key(&name(&path)) {
            continue;
        }
        let found = client.get(&path);
        assert!(found.status == 200 && found.whole, "{path}: {found:?}");
        if path.contains(".m3u8") {
            todo.extend(playlist_uris(found.text(), &path));
        } else {
            all.insert(name(&path), (path, found.body));
        }
    }
    all
}

fn cache_control(response: &TestResponse) -> &str {
    response.field("cache-control").unwrap_or_default()
}

#[test]
fn caches_get_the_bytes_that_players_get_and_may_keep_them() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    let mut client = serving.client();
    for (title, master) in [
        ("film", "master.m3u8"),
        ("film", "master-ts.m3u8"),
        ("song", "master.m3u8"),
        ("song", "master-ts.m3u8"),
    ] {
        let players = all_of(&mut client, &format!("/t/{title}/{master}"));
        let caches = all_of(&mut client, &format!("/origin/{title}/{master}"));
        let names = |all: &BTreeMap<String, _>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&caches), names(&players), "{title}/{master}");
        for (name, (path, bytes)) in &caches {
            assert!(*bytes == players[name].1, "{path}");
            assert_kept_by_caches(&mut client, path, bytes);
        }
    }
    let (path, file) = client.get_following("/origin/film.mp4");
    assert_eq!(file.status, 200, "{path}: {file:?}");
    assert!(file.body == client.get_following("/t/film.mp4").1.body);
    assert_kept_by_caches(&mut client, &path, &file.body);
    let (path, file) = client.get_following("/origin/film.ts?rate=3Mbps");
    assert!(path.ends_with("/file-3000000.ts"), "{path}: one address of each rate");
    assert!(file.body == client.get_following("/t/film.ts?rate=3000kbps").1.body);
    // Also ranges of null packets, for which nothing is read.
    assert_kept_by_caches(&mut client, &path, &file.body);
    let manifest = client.get("/origin/film/ondemand.mpd").text().to_owned();
    let folder =
        manifest.split("<BaseURL>").nth(1).and_then(|it| it.split("0.mp4").next()).unwrap();
    let players = client.get("/t/film/ondemand.mpd").text().to_owned();
    let token = players.split("?s=").nth(1).and_then(|it| it.split('<').next()).unwrap();
    for track in 0..2 {
        let path = format!("/origin/film/{folder}{track}.mp4");
        let file = client.get(&path);
        assert!(file.body == client.get(&format!("/t/film/{track}.mp4?s={token}")).body, "{path}");
        assert_kept_by_caches(&mut client, &path, &file.body);
    }
    eventually("every fill has ended", || {
        serving.status("/fills/admitted") > 40
            && serving.status("/fills/active") == 0
            && serving.status("/fills/sent_bytes") > 1_000_000
    });
    assert_eq!(serving.status("/deadline_misses"), 0);
    assert_eq!(serving.status("/fills/refused"), 0);
}

/// The fields of media for caches, in each kind of response; only responses with bytes are fills.
fn assert_kept_by_caches(client: &mut Client, path: &str, bytes: &[u8]) {
    let etag = client.request("HEAD", path, &[]).field("etag").expect("a tag").to_owned();
    let date = client.request("HEAD", path, &[]).field("last-modified").expect("a date").to_owned();
    let (several, none) = ("bytes=0-0,200-200", "bytes=999999999-");
    let range = [("Range", "bytes=1-100"), ("If-Range", &*etag)];
    for (method, fields, status) in [
        ("GET", &[("If-None-Match", &*etag)][..], 304),
        ("GET", &[("If-Modified-Since", &*date)], 304),
        ("GET", &[("If-Match", "\"other\"")], 412),
        ("HEAD", &[], 200),
        ("GET", &range, 206),
        ("GET", &[("Range", several)], 200),
        ("GET", &[("Range", none)], 416),
    ] {
        let response = client.request(method, path, fields);
        assert_eq!(response.status, status, "{path} {fields:?}: {response:?}");
        let rule = if status < 400 { FOR_EVER } else { "no-store" };
        assert_eq!(cache_control(&response), rule, "{path} {fields:?}");
        assert_eq!(response.field("vary"), None, "{path}: media has one coding");
        assert_eq!(response.field("access-control-allow-origin"), Some("*"));
        match status {
            206 => assert!(response.body == bytes[1..101], "{path}"),
            200 if method == "GET" => assert!(response.body == bytes, "{path}"),
            _ => {}
        }
        if status < 300 {
            let length = if status == 206 { 100 } else { bytes.len() };
            assert_eq!(response.field("content-length"), Some(&*length.to_string()), "{path}");
            assert_eq!(response.field("cmsd-dynamic"), None, "{path}: nothing of one viewer");
        }
    }
}

#[test]
fn playlists_are_kept_for_a_while_and_asked_for_again_by_their_tags() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    let mut client = serving.client();
    let master = "/origin/film/master.m3u8";
    let below = playlist_uris(client.get(master).text(), master).remove(0);
    for (path, rule, is_dated) in [
        (master, BRIEFLY, false),
        ("/origin/film/master-ts.m3u8", BRIEFLY, false),
        ("/origin/film/manifest.mpd", BRIEFLY, false),
        (&below, AN_HOUR, true),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, cache_control(&response)), (200, rule), "{path}");
        assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{path}");
        assert_eq!(response.field("last-modified").is_some(), is_dated, "{path}");
        let etag = response.field("etag").expect("a tag").to_owned();
        let again = client.request("GET", path, &[("If-None-Match", &etag)]);
        assert_eq!((again.status, cache_control(&again)), (304, rule), "{path}");
        assert_eq!(again.field("vary"), Some("Accept-Encoding"), "{path}");
        let head = client.request("HEAD", path, &[]);
        assert_eq!(head.field("content-length"), response.field("content-length"), "{path}");
    }
    let redirect = client.get("/origin/film.mp4");
    assert_eq!((redirect.status, cache_control(&redirect)), (307, BRIEFLY));
    // Text is in memory; the file is read.
    assert_eq!(client.get_following("/origin/film.mp4").1.status, 200);
    eventually("one fill was admitted", || serving.status("/fills/admitted") > 0);
    assert_eq!(serving.status("/fills/admitted"), 1);
}

#[test]
fn titles_in_folders_have_addresses_that_every_proxy_passes_on() {
    let fixture = TestStore::with(&[&media().film]);
    store::Store::open(&fixture.path).unwrap().rename("film", "news/7").unwrap();
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    let mut client = serving.client();
    for master in ["master.m3u8", "master-ts.m3u8"] {
        let plain = all_below(&mut client, "/origin/news/7", master);
        assert!(plain.len() > 2, "{:?}", plain.keys());
        // The other form, which some caches pass on.
        assert!(all_below(&mut client, "/origin/news%2F7", master) == plain);
        // What a cache asks for that joins it.
        let list = client.get(&format!("/origin/news%2F7/{master}"));
        let joined = playlist_uris(list.text(), "/origin/news/7/");
        assert_eq!(client.get(&joined[0]).status, 200, "{joined:?}");
    }
    for form in ["/origin/news/7", "/origin/news%2F7"] {
        for file in [".mp4", ".ts?rate=3Mbps"] {
            // The same for both forms: a cache that joins them keeps one response.
            let location = client.get(&format!("{form}{file}"));
            let location = location.field("location").unwrap_or_default().to_owned();
            assert!(location.contains("~") && location.contains("/news/7/file"), "{location}");
            // So is a cache with other folders in front, which only it knows.
            assert!(!location.starts_with('/') && !location.contains(':'), "{location}");
            let joined = client.get(&format!("/origin/news/{location}")).body;
            assert!(
                joined == client.get(&format!("/origin/{location}")).body && !joined.is_empty()
            );
            assert_eq!(client.get(&format!("/origin/new/{location}")).status, 404);
            let (path, found) = client.get_following(&format!("{form}{file}"));
            assert_eq!(found.status, 200, "{path}");
        }
        let manifest = client.get(&format!("{form}/manifest.mpd")).text().to_owned();
        testkit::dash::check("news/7", &manifest, &mut |uri| {
            let response = client.get(&format!("{form}/{uri}"));
            (response.status == 200).then_some(response.body)
        });
    }
    let other = client.get("/origin/news/7/1-2-3-4-5~0.0.1/0.mp4");
    assert_eq!((other.status, &*other.error()), (404, "version-unknown"));
    assert!(other.text().contains("/origin/news/7/master.m3u8"), "{}", other.text());
    // Caches would join it to the name of another title.
    let odd = client.get("/origin/news%2F%2F7/master.m3u8");
    assert_eq!((odd.status, cache_control(&odd)), (404, "no-store"));
    assert!(odd.text().contains("tenuto rename"), "{}", odd.text());
    // Addresses of viewers have one form, in which no name of a title is another address.
    assert_eq!(client.get("/t/news%2F7/master.m3u8").status, 200);
    assert_eq!(client.get("/t/news/7/master.m3u8").error(), "not-found");
}

/// All media that a playlist of a title names, by what is behind the folder of the title.
fn all_below(client: &mut Client, folder: &str, master: &str) -> BTreeMap<String, Vec<u8>> {
    let mut todo = vec![format!("{folder}/{master}")];
    let mut all = BTreeMap::new();
    while let Some(path) = todo.pop() {
        let found = client.get(&path);
        assert!(found.status == 200 && found.whole, "{path}: {found:?}");
        if path.contains(".m3u8") {
            todo.extend(playlist_uris(found.text(), &path));
        } else {
            let below = path.strip_prefix(folder).expect("below the folder");
            all.insert(below.to_owned(), found.body);
        }
    }
    all
}

#[test]
fn dash_names_the_segments_of_its_version() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    let mut client = serving.client();
    let manifest = client.get("/origin/film/manifest.mpd").text().to_owned();
    testkit::dash::check("film", &manifest, &mut |uri| {
        let response = client.get(&format!("/origin/film/{uri}"));
        (response.status == 200).then_some(response.body)
    });
}

#[test]
fn addresses_without_a_place_are_refused_with_what_to_do() {
    let fixture = TestStore::with(&[&media().film]);
    let without = fixture.serve();
    assert_eq!(without.client().get("/origin/film/master.m3u8").error(), "not-found");
    drop(without);
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    for (path, status, word) in [
        ("/origin/film/master.m3u8?start=2", 400, "bad-parameter"),
        ("/origin/film/1-2-3-4-5~0.0.1/0/1.m4s", 404, "version-unknown"),
        ("/origin/film/1-2-3-4-5~0.0.1/0.m3u8", 404, "version-unknown"),
        ("/origin/film/1-2-3-4-5~0.0.1/file-3000000.ts", 404, "version-unknown"),
        ("/origin/film.ts", 400, "rate-missing"),
        ("/origin/film.ts?rate=100kbps", 400, "rate-too-low"),
        ("/origin/film.ts?rate=3Mbps&start=2", 400, "bad-parameter"),
        ("/origin/none/master.m3u8", 404, "no-title"),
        ("/origin/film/0/1.m4s", 404, "not-found"),
        ("/origin/film/session", 404, "not-found"),
    ] {
        let response = serving.client().get(path);
        assert_eq!((response.status, &*response.error()), (status, word), "{path}");
        assert_eq!(cache_control(&response), "no-store", "{path}");
    }
    // What players and caches add to an address changes nothing.
    let reported = serving.client().get("/origin/film/master.m3u8?CMCD=bs&x=1");
    assert_eq!(reported.status, 200);
}

/// What caches keep for ever is never that of another title of the name, or of other packaging.
#[test]
fn a_new_title_of_the_name_and_other_packaging_have_other_addresses() {
    let fixture = TestStore::with(&[&media().film]);
    let version = |segment: u64| {
        let serving = fixture.serve_with(|config| {
            (config.fills, config.segment) = (Some(4), Duration::from_secs(segment));
        });
        let mut client = serving.client();
        let location = client.get("/origin/film.mp4").field("location").unwrap().to_owned();
        assert_eq!(client.get(&format!("/origin/{location}")).status, 200);
        location
    };
    let first = version(1);
    assert_eq!(version(1), first, "the same after a restart");
    assert_ne!(version(2), first, "other segments");
    let store = store::Store::open(&fixture.path).unwrap();
    store.remove("film").unwrap();
    drop(store);
    let other = fixture.directory.join("film.mp4");
    ffmpeg("-f lavfi -i testsrc2=s=320x180:r=25:d=6 -c:v libx264 -preset ultrafast", &other);
    fixture.add(&[&other]);
    assert_ne!(version(1), first, "another film");
    let store = store::Store::open(&fixture.path).unwrap();
    store.remove("film").unwrap();
    drop(store);
    fixture.add(&[&media().film]);
    assert_eq!(version(1), first, "the first film again: what caches have of it is right");
}

#[test]
fn who_began_before_an_upgrade_goes_on_and_ranges_of_files_are_of_one_version() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.fills = Some(4));
    let mut client = serving.client();
    let location = client.get("/origin/film.mp4").field("location").unwrap().to_owned();
    let version = location.split('/').nth(1).unwrap();
    let (content, _) = version.rsplit_once('~').unwrap();
    for (before, of_segments) in [
        (format!("{content}~0.0.9"), 200),
        (format!("{content}0~0.0.9"), 404),
        (content.to_owned(), 404),
    ] {
        for (file, status) in [
            ("0.m3u8", of_segments),
            ("0/init.mp4", of_segments),
            ("0/1.m4s", of_segments),
            ("0.mp4", 404),
            ("file.mp4", 404),
            ("file-9000000.ts", 404),
        ] {
            let path = format!("/origin/film/{before}/{file}");
            assert_eq!(client.get(&path).status, status, "{path}");
        }
    }
    let of = |client: &mut Client, version: &str| {
        client.get(&format!("/origin/film/{version}/0/1.m4s")).body
    };
    assert_eq!(of(&mut client, &format!("{content}~0.0.9")), of(&mut client, version));
}

#[test]
fn fills_beyond_the_limit_wait_or_are_refused_and_viewers_are_not() {
    let fixture = TestStore::with(&[&media().film, &media().large]);
    let serving = fixture.serve_with(|config| {
        (config.fills, config.wait) = (Some(1), Duration::ZERO);
    });
    let mut client = serving.client();
    let address = |client: &mut Client, title: &str, what: &str| {
        let path = format!("/origin/{title}.mp4");
        let location = client.get(&path).field("location").expect("a file").to_owned();
        format!("/origin/{}{what}", location.strip_suffix("file.mp4").unwrap())
    };
    let large = address(&mut client, "large", "file.mp4");
    let small = address(&mut client, "film", "0/1.m4s");
    // More than sockets buffer, and it is not read.
    let mut slow = serving.client();
    slow.send(format!("GET {large} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    eventually("it is under way", || serving.status("/fills/active") == 1);
    let refused = client.get(&small);
    assert_eq!((refused.status, &*refused.error()), (503, "refused"), "{}", refused.text());
    assert_eq!(refused.json()["cause"], "fills", "{}", refused.text());
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    assert_eq!(cache_control(&refused), "no-store");
    assert_eq!(client.request("HEAD", &small, &[]).status, 200, "no fill");
    let init = small.replace("1.m4s", "init.mp4");
    assert_eq!(client.get(&init).status, 200, "nothing of it is stored");
    assert_eq!(client.get("/t/film/master.m3u8").status, 200, "a viewer is no fill");
    assert!(slow.read_response(true).expect("a response").whole);
    eventually("its place is free", || client.get(&small).status == 200);
    // A cache that goes away gives its place back as well.
    let mut gone = serving.client();
    gone.send(format!("GET {large} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    eventually("it is under way", || serving.status("/fills/active") == 1);
    drop(gone);
    eventually("its place is free", || serving.status("/fills/active") == 0);
    eventually("each refusal is counted by its cause", || {
        let refused = serving.status("/refused_by_cause/fills");
        refused > 0 && refused == serving.status("/fills/refused")
    });
    drop(serving);

    let serving = fixture.serve_with(|config| {
        (config.fills, config.wait) = (Some(1), Duration::from_secs(20));
    });
    let mut slow = serving.client();
    slow.send(format!("GET {large} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    eventually("it is under way", || serving.status("/fills/active") == 1);
    let mut waiting = serving.client();
    waiting.send(format!("GET {small} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    assert!(slow.read_response(true).expect("a response").whole);
    assert_eq!(waiting.read_response(true).expect("a response").status, 200);
    assert_eq!(serving.status("/fills/refused"), 0);
}

#[test]
fn with_tokens_only_the_cache_s_own_opens_the_addresses_for_caches() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let token = |origin| {
        TokenClaims { exp: u64::MAX, origin, ..TokenClaims::default() }.sign(&keys).unwrap()
    };
    let serving = fixture.serve_with(|config| {
        (config.fills, config.tokens) = (Some(4), Some(keys.clone()));
    });
    let mut client = serving.client();
    let (viewer, cache) = (token(false), token(true));
    let bearer = format!("Bearer {cache}");
    let master = "/origin/film/master.m3u8";
    let list = client.request("GET", master, &[("Authorization", &bearer)]);
    let playlist = playlist_uris(list.text(), master).remove(0);
    for path in [master, "/origin/film.mp4", &playlist] {
        assert_eq!(client.get(path).error(), "token-missing", "{path}");
        let with = |token: &str| format!("{path}?token={token}");
        assert_eq!(client.get(&with(&viewer)).error(), "token-not-allowed", "{path}");
        assert!(client.get(&with(&cache)).status < 400, "{path}");
    }
}
