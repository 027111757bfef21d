//! Priorities: who takes whose place, and what operators see of each decision.

use crate::client::Client;
use crate::fixture::{TestServer, TestStore, eventually, media};
use engine::Priority;
use serde_json::Value;
use server::access::{TokenClaims, ViewerLimits, new_key_file};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::BitRate;

/// The decisions, the newest first.
fn decisions(client: &mut Client, token: &str) -> Vec<Value> {
    let list = client.get(&format!("/api/v1/decisions?token={token}")).json();
    list["decisions"].as_array().unwrap().clone()
}

/// The sessions that are listed.
fn sessions(serving: &TestServer, token: &str) -> Vec<Value> {
    let list = serving.client().get(&format!("/api/v1/sessions?token={token}")).json();
    list["sessions"].as_array().unwrap().clone()
}

#[test]
fn a_viewer_of_a_higher_priority_takes_a_place_and_every_decision_is_shown() {
    let fixture = TestStore::with(&[&media().film]);
    let (keys, log) = (fixture.directory.join("keys.json"), fixture.directory.join("log"));
    new_key_file(&keys).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let token = |priority, operator| {
        let limits = ViewerLimits { priority, ..ViewerLimits::default() };
        let claims = TokenClaims { exp: now + 600, limits, operator, ..TokenClaims::default() };
        claims.sign(&keys).unwrap()
    };
    let [low, high] = [Priority::Low, Priority::High].map(|priority| token(Some(priority), false));
    let operator = token(None, true);
    let serving = fixture.serve_with(|config| {
        config.network = Some(BitRate(1_000_000));
        config.tokens = Some(keys.clone());
        config.access_log = Some(log.clone());
        // Nobody counts as gone who has not begun to play.
        (config.startup, config.reservation_hold) =
            (Duration::from_secs(20), Duration::from_secs(60));
    });
    let ask = |query: &str, token: &str| {
        serving.client().get(&format!("/t/film/master.m3u8?speed=0.05&{query}&token={token}"))
    };
    let mut client = serving.client();
    let is = |value: &Value, subject: &str, verdict: &str| {
        value["subject"] == subject && value["verdict"] == verdict
    };
    let (mut admitted, mut refused, mut highs, mut refused_highs) = (0, 0, 0, 0);
    let mut all = Vec::new();
    // The network is full for some seconds: if it has room for another viewer by now, or less than
    // one place gives, it is filled again.
    for _ in 0..5 {
        if all.iter().any(|it| is(it, "end", "ended")) {
            break;
        }
        // A viewer may lower its priority, and not raise it.
        for (query, token) in [("", &low), ("&priority=low", &high), ("&priority=high", &low)] {
            let full = |_: &usize| ask(&format!("wait=0{query}"), token).status == 200;
            admitted += (0..200).take_while(full).count();
            refused += 1;
        }
        match ask("wait=0", &high).status {
            200 => highs += 1,
            503 => refused_highs += 1,
            other => panic!("an answer with status {other}"),
        }
        all = decisions(&mut client, &operator);
    }
    assert_eq!(ask("wait=0&priority=first", &high).error(), "bad-parameter");
    assert!((1..200).contains(&admitted), "{admitted} viewers of 75 kb/s in 1 Mb/s");
    let answers = admitted + refused + highs + refused_highs;
    assert_eq!(all.len(), answers + 1, "{all:#?}");
    let (ended, came) = (
        all.iter().find(|it| is(it, "end", "ended")).unwrap(),
        // Before that one may have been refused, where less than one place gives was free.
        all.iter().find(|it| it["priority"] == "high" && is(it, "session", "admitted")).unwrap(),
    );
    assert!(came["offer"] == 0, "{came}");
    assert_eq!(came["preempted"], serde_json::json!([ended["session"]]), "{came}");
    assert_eq!((&ended["reason"], &ended["priority"]), (&"priority".into(), &"low".into()));
    let newest = all.iter().find(|it| it["priority"] == "low" && is(it, "session", "admitted"));
    assert_eq!(ended["session"], newest.unwrap()["session"], "the newest of them");
    assert!(ended["client"].as_str().unwrap().contains("127.0.0.1"), "{ended}");
    let each: Vec<&Value> = all.iter().filter(|it| is(it, "session", "refused")).collect();
    assert_eq!(each.len(), refused + refused_highs, "{each:#?}");
    for it in each {
        let about = (&it["reason"], &it["resource"]);
        assert_eq!(about, (&"sessions".into(), &"network".into()), "{it}");
        assert!(it["detail"].is_string() && it["session"].is_null(), "{it}");
    }
    let listed = sessions(&serving, &operator);
    assert!(listed.iter().all(|it| it["session"] != ended["session"]), "{listed:#?}");
    assert_eq!(listed.last().unwrap()["priority"], "high");

    eventually("the next snapshot counts it", || {
        let metrics = client.get(&format!("/metrics?token={operator}"));
        let has = |line: &str| metrics.text().lines().any(|other| other == line);
        has("tenuto_sessions_preempted_total{cause=\"priority\"} 1")
            && has("tenuto_sessions_preempted_by_priority_total{priority=\"low\"} 1")
            // An earlier one has gone, and a newcomer may have taken its place.
            && (1..=highs).any(|highs| {
                has(&format!("tenuto_sessions_by_priority{{priority=\"high\"}} {highs}"))
            })
            && has(&format!("tenuto_refused_by_priority_total{{priority=\"low\"}} {refused}"))
    });
    eventually("the log has each decision", || {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines = lines.filter(|line| line["event"] == "decision");
        lines.filter(|line| line["verdict"] == "ended").count() == 1
    });
}

#[test]
fn the_promised_start_of_a_waiting_viewer_is_shown_until_it_starts() {
    let fixture = TestStore::with(&[&media().film]);
    let serving = fixture.serve_with(|config| config.network = Some(BitRate(12_000_000)));
    let mut client = serving.client();
    let path = "/t/film/master.m3u8";
    let admitted = (0..40).take_while(|_| client.get(&format!("{path}?wait=0")).status == 200);
    assert!(admitted.count() < 40, "40 viewers of 1.5 Mb/s do not fit into 12 Mb/s");
    let mut waits = serving.client();
    waits.send(format!("GET {path}?wait=30 HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let all = decisions_of_later(&mut client);
    let promised = all["until"].as_f64().unwrap() - all["at"].as_f64().unwrap();
    assert!(promised > 0.0 && promised <= 30.0, "{all}");
    let is_it = |it: &&Value| it["session"] == all["session"];
    let listed = sessions(&serving, "");
    let left = listed.iter().find(is_it).and_then(|it| it["starts_in"].as_f64());
    // A machine that is busy may have let the time pass.
    assert!(left.is_none_or(|left| left <= promised), "{left:?} of {promised}");
    let response = waits.read_response(true).unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.field("server-timing").unwrap().starts_with("admission;dur="));
    let listed = sessions(&serving, "");
    assert!(listed.iter().find(is_it).is_none_or(|it| it["starts_in"].is_null()), "{listed:#?}");
}

/// The decision by which a viewer waits.
fn decisions_of_later(client: &mut Client) -> Value {
    let mut found = None;
    eventually("a viewer is admitted for later", || {
        found = decisions(client, "").into_iter().find(|it| it["verdict"] == "later");
        found.is_some()
    });
    found.unwrap()
}
