//! Refusals: a viewer that does not fit is refused, and the admitted ones play on.

use crate::client::{Client, playlist_uris};
use crate::fixture::{TestStore, eventually, media};
use units::BitRate;

#[test]
fn a_viewer_that_does_not_fit_is_refused_with_resource_and_time_and_the_others_play_on() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.throttle = Some(SLOW));
    let mut client = serving.client();
    let (mut admitted, mut refused) = (Vec::new(), None);
    for number in 0..30 {
        // Viewers at different speeds do not share reads.
        let response = client.get(&format!("/t/film/master.m3u8?speed=1.0{number:02}"));
        match response.status {
            200 => admitted.push(response.text().to_owned()),
            _ => refused = Some(response),
        }
    }
    let refused = refused.expect("30 viewers of 1.5 Mb/s do not fit into 40 Mb/s");
    assert!(!admitted.is_empty(), "{}", refused.text());
    assert_eq!((refused.status, &*refused.error()), (503, "refused"));
    let json = refused.json();
    assert!(["disk", "memory"].contains(&json["resource"].as_str().unwrap()), "{json}");
    let wait = json["retry_after_ms"].as_u64().unwrap();
    let seconds: u64 = refused.field("retry-after").unwrap().parse().unwrap();
    assert_eq!(seconds, wait.div_ceil(1000).max(1), "{json}");

    for master in admitted.iter().take(3) {
        let mut lists = playlist_uris(master, "/t/film/master.m3u8");
        // A viewer who winds needs another reservation, which may not fit.
        lists.retain(|list| !list.contains("-iframes"));
        for list in lists {
            let playlist = client.get(&list);
            for piece in playlist_uris(playlist.text(), &list) {
                // On a slow machine the start-up time is over by now, and one that has not begun to
                // play may have given way to another of those.
                eventually("an admitted viewer plays", || {
                    let response = client.get(&piece);
                    response.status == 200 && response.whole
                });
            }
        }
    }
    assert_eq!(json["cause"], "sessions", "{json}");
    let word = json["resource"].as_str().unwrap();
    let line = format!("tenuto_refused_total{{cause=\"sessions\",resource=\"{word}\"}}");
    eventually("the next snapshot counts the refusals", || {
        let metrics = client.get("/metrics");
        metrics.text().lines().any(|l| l.starts_with(&line) && !l.ends_with(" 0"))
    });
    let metrics = client.get("/metrics");
    assert!(metrics.text().ends_with("# EOF\n"));
    assert!(metrics.field("content-type").unwrap().starts_with("application/openmetrics-text"));
}

#[test]
fn without_admission_all_viewers_are_admitted() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        config.throttle = Some(SLOW);
        config.policy = scheduler::PolicyKind::None;
    });
    let mut client = serving.client();
    for _ in 0..30 {
        assert_eq!(client.get("/t/film/master.m3u8").status, 200);
    }
}

#[test]
fn a_session_without_requests_ends_and_its_token_is_answered_with_session_ended() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        config.reservation_hold = std::time::Duration::from_millis(300);
        config.session_timeout = std::time::Duration::from_millis(300);
    });
    let mut client = serving.client();
    let path = client.get("/t/film.mp4").field("location").unwrap().to_owned();
    eventually("the session has ended", || {
        serving.status("/admitted") == 1 && serving.status("/sessions") == 0
    });
    assert_eq!(client.get(&path).error(), "session-ended");
}

#[test]
fn a_client_that_plays_none_of_its_sessions_gets_no_more_of_them() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        config.policy = scheduler::PolicyKind::None;
        config.max_client_unplayed = Some(3);
    });
    let mut client = serving.client();
    let begin = |client: &mut Client| {
        client.get("/t/film.mp4").field("location").expect("a session").to_owned()
    };
    let sessions: Vec<String> = (0..3).map(|_| begin(&mut client)).collect();
    let mut another = serving.client();
    for path in ["/t/film.mp4", "/t/film/master.m3u8", "/t/film/manifest.mpd"] {
        let refused = another.get(path);
        assert_eq!((refused.status, &*refused.error()), (429, "too-many-unplayed"), "{path}");
        let said = refused.text();
        assert!(said.contains("127.0.0.1 has 3 sessions that it has not begun to play"), "{said}");
        assert!(refused.field("retry-after").is_some());
    }
    // Playing one of them is the way out.
    assert_eq!(client.get(&sessions[0]).status, 200);
    begin(&mut another);
    assert_eq!(another.get("/t/film.mp4").status, 429);
}

#[test]
fn a_session_that_replaces_an_unplayed_one_takes_its_place() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.max_client_unplayed = Some(1));
    let mut client = serving.client();
    let token = |text: &str| {
        let found = text.split("?s=").nth(1).expect("a token");
        found.split(['"', '\n']).next().expect("its end").to_owned()
    };
    let mut present = token(client.get("/t/film/master.m3u8").text());
    for _ in 0..3 {
        let next = client.get(&format!("/t/film/master.m3u8?s={present}&start=1"));
        assert_eq!(next.status, 200, "{}", next.text());
        present = token(next.text());
    }
    assert_eq!(client.get("/t/film/master.m3u8").status, 429);
}

#[test]
fn unplayed_sessions_expire_and_give_their_client_its_places_back() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| {
        config.reservation_hold = std::time::Duration::from_millis(300);
        config.max_client_unplayed = Some(1);
    });
    let mut client = serving.client();
    assert_eq!(client.get("/t/film/master.m3u8").status, 200);
    eventually("its place is free again", || client.get("/t/film/master.m3u8").status == 200);
}

/// A rate for a few viewers of the film.
const SLOW: BitRate = BitRate(40_000_000);
