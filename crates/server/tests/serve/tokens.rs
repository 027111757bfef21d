//! A server with keys: who may open a title, see the list, or see the server.

use crate::client::playlist_uris;
use crate::fixture::{TestServer, TestStore, eventually, media};
use server::access::{TitlePatterns, TokenClaims, new_key_file};
use server::{Server, ServerConfig};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn claims(change: impl FnOnce(&mut TokenClaims)) -> TokenClaims {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = TokenClaims { exp: now + 600, ..TokenClaims::default() };
    change(&mut claims);
    claims
}

fn token(keys: &Path, change: impl FnOnce(&mut TokenClaims)) -> String {
    claims(change).sign(keys).unwrap()
}

#[test]
fn titles_list_and_views_are_opened_by_the_tokens_that_allow_them() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    let log = fixture.directory.join("access.log");
    new_key_file(&keys).unwrap();
    let viewer = token(&keys, |claims| claims.title = Some(TitlePatterns::One("film".to_owned())));
    let other = token(&keys, |claims| claims.title = Some(TitlePatterns::One("other".to_owned())));
    let expired = token(&keys, |claims| claims.exp = 1);
    let everything = token(&keys, |_| {});
    let operator = token(&keys, |claims| claims.operator = true);
    let serving = fixture.serve_with(|config| {
        config.tokens = Some(keys.clone());
        config.access_log = Some(log.clone());
    });
    let mut client = serving.client();
    let master = "/t/film/master.m3u8";
    for (path, token, status, word) in [
        (master, "", 401, "token-missing"),
        (master, "x", 401, "token-invalid"),
        (master, &expired, 401, "token-invalid"),
        (master, &other, 403, "token-not-allowed"),
        (master, &viewer, 200, ""),
        (master, &operator, 200, ""),
        ("/t/film/manifest.mpd", "", 401, "token-missing"),
        ("/t/film/manifest.mpd", &viewer, 200, ""),
        ("/t/film.mp4", "", 401, "token-missing"),
        ("/t/film.mp4", &viewer, 307, ""),
        ("/t/none/master.m3u8", "", 401, "token-missing"),
        ("/t/none/master.m3u8", &everything, 404, "no-title"),
        ("/titles", &viewer, 403, "token-not-allowed"),
        ("/titles", &everything, 200, ""),
        ("/status", &everything, 403, "token-not-allowed"),
        ("/sessions", "", 401, "token-missing"),
        ("/metrics", "", 401, "token-missing"),
        ("/metrics", &operator, 200, ""),
        ("/healthz", "", 200, ""),
        ("/time", "", 200, ""),
        ("/console/", "", 200, ""),
    ] {
        let bearer = format!("Bearer {token}");
        let fields: &[_] = if token.is_empty() { &[] } else { &[("Authorization", &*bearer)] };
        let by_field = client.request("GET", path, fields);
        let by_query = client.get(&format!("{path}?token={token}"));
        assert_eq!(by_field.status, status, "{path} {token}: {}", by_field.text());
        // An empty parameter is a token that is not valid.
        if !token.is_empty() {
            assert_eq!(by_query.status, status, "{path} {token}: {}", by_query.text());
        }
        if status == 401 || status == 403 {
            assert_eq!(by_field.error(), word);
            assert!(by_field.field("www-authenticate").unwrap().starts_with("Bearer "));
        }
        let head = client.request("HEAD", path, fields);
        assert!([status, 200].contains(&head.status), "HEAD {path}: {}", head.status);
        assert_eq!(head.status == 401, status == 401, "HEAD {path}");
    }
    assert_eq!(
        client.request("OPTIONS", master, &[]).status,
        204,
        "a browser asks without a token"
    );

    // What the manifest names is opened by the session's own token.
    let manifest = client.get(&format!("{master}?token={viewer}"));
    let list = &playlist_uris(manifest.text(), master)[0];
    assert!(!list.contains(&viewer));
    let playlist = client.get(list);
    let segment = &playlist_uris(playlist.text(), list)[1];
    assert_eq!(client.get(segment).status, 200);
    assert_eq!(
        client.get(&segment.replace("?s=", "?s=0")).status,
        404,
        "no session has this token"
    );

    drop(serving);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("?token=..."), "{log}");
    let signature = viewer.rsplit('.').next().unwrap();
    assert!(!log.contains(signature), "the log must not let its readers play");
}

#[test]
fn a_session_is_for_the_address_that_its_token_is_for() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let bound = token(&keys, |claims| claims.ip = Some("127.0.0.1".parse().unwrap()));
    let serving = fixture.serve_with(|config| config.tokens = Some(keys.clone()));
    let base = format!("http://{}", serving.server.address());
    let status = |from: &str, path: &str| {
        let url = format!("{base}{path}");
        let curl = Command::new("curl")
            .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}"])
            .args(["--interface", from, &url])
            .output();
        String::from_utf8(curl.expect("curl runs; apt install curl").stdout).unwrap()
    };
    let master = "/t/film/master.m3u8";
    let manifest = serving.client().get(&format!("{master}?token={bound}"));
    let list = &playlist_uris(manifest.text(), master)[0];
    let segment = &playlist_uris(serving.client().get(list).text(), list)[1];
    let of_file = serving.client().get(&format!("/t/film.mp4?token={bound}"));
    let file = of_file.field("location").unwrap().to_owned();
    for path in [&format!("{master}?token={bound}"), list, segment, &file] {
        let statuses = ["127.0.0.1", "127.0.0.9"].map(|from| status(from, path));
        assert_eq!(statuses, ["200", "403"], "{path}");
    }
    // Without an address in the token a player may change its own, as mobile ones do.
    let free = token(&keys, |_| {});
    let manifest = serving.client().get(&format!("{master}?token={free}"));
    assert_eq!(status("127.0.0.9", &playlist_uris(manifest.text(), master)[0]), "200");
}

/// An operator finds all sessions of a customer, also after a restart in place.
#[test]
fn sessions_show_whose_tokens_began_them_and_are_listed_by_subject() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let log = fixture.directory.join("access.log");
    let of = |sub: Option<&str>, jti: Option<&str>| {
        let (sub, jti) = (sub.map(str::to_owned), jti.map(str::to_owned));
        token(&keys, |claims| (claims.sub, claims.jti) = (sub, jti))
    };
    let operator = token(&keys, |claims| claims.operator = true);
    let config = ServerConfig {
        tokens: Some(keys.clone()),
        access_log: Some(log.clone()),
        ..fixture.config()
    };
    let started = config.clone();
    let serving = fixture.serve_with(|config| *config = started);
    for token in [
        of(Some("a & b"), Some("t1")),
        of(Some("a & b"), None),
        of(None, Some("t3")),
        of(None, None),
        of(Some("a"), None),
    ] {
        let manifest = serving.client().get(&format!("/t/film/master.m3u8?token={token}"));
        assert_eq!(manifest.status, 200, "{}", manifest.text());
    }
    let listed = |serving: &TestServer, query: &str| {
        let path = format!("/api/v1/sessions?token={operator}{query}");
        let list = serving.client().get(&path).json();
        let all = list["sessions"].as_array().unwrap().clone();
        assert_eq!(list["total"], all.len());
        all.iter().map(|one| format!("{} {}", one["subject"], one["token_id"])).collect::<Vec<_>>()
    };
    let all = [r#""a & b" "t1""#, r#""a & b" null"#, r#"null "t3""#, "null null", r#""a" null"#];
    assert_eq!(listed(&serving, ""), all);
    assert_eq!(listed(&serving, "&subject=a%20%26%20b"), all[..2]);
    assert_eq!(listed(&serving, "&subject=b"), [""; 0]);
    // They go on with the next program, and are the same customer's there.
    let handover = serving.server.hand_over().unwrap();
    let serving = TestServer { server: Server::take_over(handover, config).unwrap() };
    assert_eq!(listed(&serving, "&subject=a%20%26%20b"), all[..2]);
    assert_eq!(listed(&serving, ""), all);
    let path = format!("/api/v1/sessions?token={operator}&subject=a");
    let number = serving.client().get(&path).json()["sessions"][0]["session"].clone();
    let path = format!("/api/v1/sessions/{number}?token={operator}");
    assert_eq!(serving.client().get(&path).json()["subject"], "a");
    assert_eq!(serving.client().request("DELETE", &path, &[]).status, 204);
    assert_eq!(listed(&serving, ""), all[..4]);
    eventually("its end is in the log", || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.lines().any(|line| line.contains("session-ended") && line.contains(r#""subject":"a""#))
    });
}

/// All sessions of one customer end with one request, and nobody else's.
#[test]
fn an_operator_ends_all_sessions_of_a_subject_and_never_those_of_all() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let serving = fixture.serve_with(|config| config.tokens = Some(keys.clone()));
    let master = "/t/film/master.m3u8";
    let begin = |sub: Option<&str>| {
        let token = token(&keys, |claims| claims.sub = sub.map(str::to_owned));
        let manifest = serving.client().get(&format!("{master}?token={token}"));
        playlist_uris(manifest.text(), master)[0].clone()
    };
    let lists = [Some("a & b"), Some("a"), None, Some("a & b"), Some("")].map(begin);
    let operator = token(&keys, |claims| claims.operator = true);
    let viewer = token(&keys, |claims| claims.sub = Some("a & b".to_owned()));
    let end = |query: &str, token: &str| {
        let path = format!("/api/v1/sessions?{query}token={token}");
        serving.client().request("DELETE", &path, &[])
    };
    let playing = || lists.each_ref().map(|list| serving.client().get(list).status);
    for (query, token, status, word) in [
        ("", &operator, 400, "bad-parameter"),
        ("subjects=a&", &operator, 400, "bad-parameter"),
        ("token_id=a&", &operator, 400, "bad-parameter"),
        ("subject=a%20%26%20b&", &viewer, 403, "token-not-allowed"),
    ] {
        let answer = end(query, token);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, error), (status, word.into()), "{query}");
    }
    assert_eq!(playing(), [200; 5]);
    for (subject, ended, left) in [
        ("a%20%26%20b", 2, [410, 200, 200, 410, 200]),
        ("a%20%26%20b", 0, [410, 200, 200, 410, 200]),
        ("none", 0, [410, 200, 200, 410, 200]),
        ("", 1, [410, 200, 200, 410, 410]),
        ("a", 1, [410, 410, 200, 410, 410]),
    ] {
        let answer = end(&format!("subject={subject}&"), &operator);
        assert_eq!(
            (answer.status, answer.json()["ended"].clone()),
            (200, ended.into()),
            "{subject}"
        );
        assert_eq!(playing(), left, "{subject}");
    }
}

#[test]
fn no_title_that_a_token_does_not_open_is_named() {
    let serving = TestStore::with(&[&media().film]);
    let keys = serving.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let gone = token(&keys, |claims| claims.title = Some(TitlePatterns::One("filn".to_owned())));
    let serving = serving.serve_with(|config| config.tokens = Some(keys.clone()));
    for path in ["/t/filn/master.m3u8", "/t/filn.mp4", "/t/filn/thumbnails.vtt"] {
        let answer = serving.client().get(&format!("{path}?token={gone}"));
        assert_eq!((answer.status, &*answer.error()), (404, "no-title"), "{path}");
        assert!(!answer.text().contains("'film'"), "{}", answer.text());
    }
}

#[test]
fn keys_are_exchanged_while_viewers_play() {
    let fixture = TestStore::with(&[&media().film]);
    let (keys, next) = (fixture.directory.join("keys.json"), fixture.directory.join("next.json"));
    new_key_file(&keys).unwrap();
    new_key_file(&next).unwrap();
    let (old, new) = (token(&keys, |_| {}), token(&next, |_| {}));
    let serving = fixture.serve_with(|config| config.tokens = Some(keys.clone()));
    let mut client = serving.client();
    let open = |token: &str| format!("/t/film/master.m3u8?token={token}");
    let manifest = client.get(&open(&old));
    assert_eq!((manifest.status, client.get(&open(&new)).status), (200, 401));
    std::fs::rename(&next, &keys).unwrap();
    eventually("the new keys are used", || client.get(&open(&new)).status == 200);
    assert_eq!(client.get(&open(&old)).status, 401);
    let list = &playlist_uris(manifest.text(), "/t/film/master.m3u8")[0];
    assert_eq!(client.get(list).status, 200, "a session goes on");
    // A file that cannot be used leaves the keys as they are.
    std::fs::write(&keys, "{").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(client.get(&open(&new)).status, 200);
}
