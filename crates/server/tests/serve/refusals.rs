//! One viewer too many is refused, and nobody else notices.

use crate::client::addresses;
use crate::fixture::{TestStore, eventually, media};
use units::BitRate;

#[test]
fn one_too_many_is_refused_with_the_resource_and_a_time_and_the_others_play_on() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.throttle = Some(SLOW));
    let mut client = serving.client();
    let (mut admitted, mut refused) = (Vec::new(), None);
    for _ in 0..30 {
        let answer = client.get("/t/film/master.m3u8");
        match answer.status {
            200 => admitted.push(answer.text().to_owned()),
            _ => refused = Some(answer),
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
        for list in addresses(master, "/t/film/master.m3u8") {
            let playlist = client.get(&list);
            for piece in addresses(playlist.text(), &list) {
                let answer = client.get(&piece);
                assert!(answer.status == 200 && answer.whole, "{piece}: {}", answer.status);
            }
        }
    }
    let word = json["resource"].as_str().unwrap();
    let line = format!("tenuto_refused_total{{resource=\"{word}\"}}");
    eventually("the next slot's books count the refusals", || {
        let metrics = client.get("/metrics");
        metrics.text().lines().any(|l| l.starts_with(&line) && !l.ends_with(" 0"))
    });
    let metrics = client.get("/metrics");
    assert!(metrics.text().ends_with("# EOF\n"));
    assert!(metrics.field("content-type").unwrap().starts_with("application/openmetrics-text"));
}

#[test]
fn without_admission_everybody_comes_in() {
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
fn a_session_that_asks_for_nothing_ends_and_its_token_says_so() {
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

/// A few of the film's viewers fit through this.
const SLOW: BitRate = BitRate(40_000_000);
