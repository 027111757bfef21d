//! Refusals: a viewer that does not fit is refused, and the admitted ones play on.

use crate::client::playlist_uris;
use crate::fixture::{TestStore, eventually, media};
use units::BitRate;

#[test]
fn a_viewer_that_does_not_fit_is_refused_with_resource_and_time_and_the_others_play_on() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.throttle = Some(SLOW));
    let mut client = serving.client();
    let (mut admitted, mut refused) = (Vec::new(), None);
    for _ in 0..30 {
        let response = client.get("/t/film/master.m3u8");
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
        for list in playlist_uris(master, "/t/film/master.m3u8") {
            let playlist = client.get(&list);
            for piece in playlist_uris(playlist.text(), &list) {
                let response = client.get(&piece);
                assert!(response.status == 200 && response.whole, "{piece}: {}", response.status);
            }
        }
    }
    let word = json["resource"].as_str().unwrap();
    let line = format!("tenuto_refused_total{{resource=\"{word}\"}}");
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

/// A rate for a few viewers of the film.
const SLOW: BitRate = BitRate(40_000_000);
