//! What a collector of OpenTelemetry gets: spans of viewers, and the log.

use crate::client::playlist_uris;
use crate::collector::Collector;
use crate::fixture::{TestServer, TestStore, eventually, media};
use crate::rtsp::{Player, interleaved};
use serde_json::{Value, json};
use server::{OtlpTarget, Server, ServerConfig, TracedPart};
use std::time::Duration;
use units::{BitRate, Hinted};

fn target(url: &str) -> Option<OtlpTarget> {
    OtlpTarget::new(Some(url.to_owned()), TracedPart::ALL, |_| None)
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

#[test]
fn an_admitted_and_a_refused_viewer_are_traced_with_their_log() {
    let fixture = TestStore::with(&[&media().film]);
    let collector = Collector::start(&[]);
    let log = fixture.directory.join("log");
    let config = ServerConfig {
        access_log: Some(log.clone()),
        segment: Duration::from_secs(1),
        // Room for some viewers of 1.5 Mb/s.
        network: Some(BitRate(24_000_000)),
        otlp: target(&collector.url),
        ..fixture.config()
    };
    let started = config.clone();
    let serving = fixture.serve_with(|config| *config = started);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let (master, field) = ("/t/film/master.m3u8", format!("00-{trace}-{parent}-01"));
    let mut client = serving.client();
    let first = client.request("GET", master, &[("traceparent", &field)]);
    let list = playlist_uris(first.text(), master)[0].clone();
    let segments = playlist_uris(client.get(&list).text(), &list);
    // The first of a playlist is its initialization segment.
    for segment in [&segments[1], segments.last().unwrap()] {
        assert_eq!(client.get(segment).status, 200, "{segment}");
    }
    let others = (0..40).take_while(|_| serving.client().get(master).status == 200).count();
    assert!(others < 40, "{others} more viewers of 1.5 Mb/s in 24 Mb/s");
    // The session and its trace go on in another program.
    let handover = serving.server.hand_over().unwrap();
    let serving = TestServer { server: Server::take_over(handover, config).unwrap() };
    let token = list.split("?s=").nth(1).unwrap();
    let ended = serving.client().request("DELETE", &format!("/t/film/session?s={token}"), &[]);
    assert_eq!(ended.status, 204);
    let address = serving.server.address().to_string();
    // What waits is sent before the end.
    drop(serving);

    let (spans, logs) = (collector.spans(), collector.logs());
    assert_eq!(collector.faults(), Vec::<String>::new());
    let resources = collector.resources();
    let names = ["service.name", "service.version"];
    let wanted = ["tenuto", env!("CARGO_PKG_VERSION")];
    assert!(names.iter().zip(wanted).all(|(name, value)| resources[0][name] == value));
    assert_eq!(resources.last().unwrap()["service.instance.id"], address.as_str());

    let sessions = named(&spans, "session");
    assert_eq!(sessions.len(), others + 2, "{spans:#?}");
    let only = |is_it: &dyn Fn(&Value) -> bool| -> &Value {
        let mut found = sessions.iter().filter(|span| is_it(span));
        let first = found.next().expect("one session");
        assert!(found.next().is_none(), "several: {spans:#?}");
        first
    };
    let admitted = only(&|span| span["traceId"] == trace);
    let refused = only(&|span| span["attributes"]["tenuto.decision"] == "refused");
    let stopped = sessions.iter().filter(|it| it["attributes"]["tenuto.end"] == "server-stopped");
    assert_eq!(stopped.count(), others, "{spans:#?}");
    let all = |span: &Value, names: &[&str]| -> Value {
        names.iter().map(|name| span["attributes"][name].clone()).collect()
    };
    let what = ["tenuto.title", "tenuto.protocol", "tenuto.priority", "tenuto.decision"];
    assert_eq!(all(admitted, &what), json!(["film", "hls", "normal", "admitted"]));
    assert_eq!(all(refused, &what), json!(["film", "hls", "normal", "refused"]));
    let what = ["tenuto.played", "tenuto.offer", "tenuto.end"];
    assert_eq!(all(admitted, &what), json!([true, 0, null]));
    // A busy machine may have missed some.
    assert!(admitted["attributes"]["tenuto.deadline_misses"].is_u64(), "{admitted}");
    assert!(admitted["attributes"]["tenuto.delivered_bytes"].as_u64().unwrap() > 10_000);
    assert_eq!(all(refused, &["tenuto.reason", "tenuto.resource"]), json!(["sessions", "network"]));
    assert_eq!(admitted["parentSpanId"], parent);
    assert!(refused["parentSpanId"].is_null(), "{refused}");
    assert!(admitted["status"].is_null() && refused["status"]["code"] == 2, "{refused}");
    assert!(refused["status"]["message"].as_str().unwrap().len() > 10, "{refused}");
    assert_eq!([&admitted["kind"], &refused["kind"]], [2, 2], "a server's");

    // Its steps are within the session, in their order.
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    let mut since = time(admitted, "startTimeUnixNano");
    for name in ["admission", "start-up", "seek"] {
        let mut steps = named(&spans, name).into_iter().filter(|step| step["traceId"] == trace);
        let step = steps.next().expect(name);
        assert!(name == "seek" || steps.next().is_none(), "{name}: {spans:#?}");
        assert_eq!(step["parentSpanId"], admitted["spanId"], "{name}");
        let ended = time(step, "endTimeUnixNano");
        assert!(since <= ended && ended <= time(admitted, "endTimeUnixNano"), "{name}");
        since = ended;
    }
    let of_refused = named(&spans, "admission").into_iter();
    let of_refused: Vec<_> = of_refused.filter(|it| it["status"]["code"] == 2).collect();
    assert_eq!(of_refused[0]["parentSpanId"], refused["spanId"]);

    // The log has their identifiers.
    let of = |event: &str, span: &Value| {
        let of_event = logs.iter().filter(|record| record["eventName"] == event);
        of_event
            .filter(|it| it["spanId"] == span["spanId"] && it["traceId"] == span["traceId"])
            .count()
    };
    assert_eq!([of("decision", admitted), of("decision", refused)], [1, 1], "{logs:#?}");
    assert_eq!(of("session-ended", admitted), 1, "{logs:#?}");
    // The manifest, the playlist, two segments, and the end.
    assert_eq!(of("request", admitted), 5, "{logs:#?}");
    let get = logs.iter().find(|record| record["attributes"]["target"] == master).unwrap();
    assert_eq!(get["body"]["stringValue"], format!("GET {master}"));
    assert_eq!((&get["attributes"]["status"], &get["severityText"]), (&200.into(), &"INFO".into()));
    assert!(get["attributes"]["trace_id"].is_null(), "{get}");
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begun = lines.iter().find(|line| line["target"] == master).unwrap();
    assert_eq!((&begun["trace_id"], &begun["span_id"]), (&trace.into(), &admitted["spanId"]));
    assert_eq!(begun["session"], admitted["attributes"]["tenuto.session"]);
    let refused_line = lines.iter().find(|line| line["verdict"] == "refused").unwrap();
    assert_eq!(refused_line["trace_id"], refused["traceId"]);
    let turned_away = lines.iter().find(|line| line["status"] == 503).unwrap();
    assert_eq!(
        (&turned_away["trace_id"], &turned_away["span_id"]),
        (&refused["traceId"], &refused["spanId"])
    );
    assert!(turned_away["session"].is_null(), "{turned_away}");
}

#[test]
fn requests_over_rtsp_are_logged_with_the_session_that_they_are_of() {
    let fixture = TestStore::with(&[&media().film]);
    let collector = Collector::start(&[]);
    let log = fixture.directory.join("log");
    let serving = fixture.serve_with(|config| {
        config.access_log = Some(log.clone());
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        // Room for some viewers of 1.5 Mb/s.
        config.network = Some(BitRate(9_500_000));
        config.wait = Duration::ZERO;
        config.otlp = target(&collector.url);
    });
    let mut player = Player::connect(&serving);
    player.set_up("film", &[interleaved(0)]);
    assert_eq!(player.ask("PLAY", "/t/film", "").status, 200);
    // All ask at once: on a slow machine a film would be over before the last asks.
    let mut others: Vec<Player> = (0..12).map(|_| Player::connect(&serving)).collect();
    for other in &mut others {
        other.set_up("film", &[interleaved(0)]);
    }
    for other in &mut others {
        other.request("PLAY", "/t/film", "");
    }
    let statuses: Vec<u16> = others.iter_mut().map(|other| other.answer().status).collect();
    assert!(statuses.contains(&453), "12 viewers of 1.5 Mb/s do not fit in 9.5 Mb/s: {statuses:?}");
    for method in ["PAUSE", "TEARDOWN", "OPTIONS"] {
        assert_eq!(player.ask(method, "/t/film", "").status, 200, "{method}");
    }
    drop(serving);
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |line: &Value| [&line["session"], &line["trace_id"], &line["span_id"]].map(Value::clone);
    let none = [Value::Null, Value::Null, Value::Null];
    let admitted = lines.iter().find(|line| line["verdict"] == "admitted").map(of).unwrap();
    assert!(!admitted.contains(&Value::Null), "{text}");
    let peer = &lines.iter().find(|line| line["method"] == "SETUP").unwrap()["peer"];
    let asked = lines.iter().filter(|line| line["protocol"] == "RTSP" && line["peer"] == *peer);
    let got: Vec<_> = asked.map(|line| (line["method"].as_str().unwrap(), of(line))).collect();
    let wanted = [
        ("SETUP", none.clone()),
        ("PLAY", admitted.clone()),
        ("PAUSE", admitted.clone()),
        ("TEARDOWN", admitted),
        ("OPTIONS", none),
    ];
    assert_eq!(got, wanted, "{text}");
    let refused = lines.iter().find(|line| line["verdict"] == "refused").map(of).unwrap();
    let answered = lines.iter().find(|line| line["status"] == 453).map(of).unwrap();
    assert_eq!(answered, [&Value::Null, &refused[1], &refused[2]].map(Value::clone), "{text}");
    assert!(!refused[1..].contains(&Value::Null), "{text}");
}

#[test]
fn a_collector_that_fails_delays_nobody_and_what_is_lost_is_counted() {
    let fixture = TestStore::with(&[]);
    let log = fixture.directory.join("log");
    let collector = Collector::start(&[503, 400]);
    let serving = fixture.serve_with(|config| {
        config.otlp = target(&collector.url);
        config.access_log = Some(log.clone());
    });
    let mut client = serving.client();
    let mut metric = |name: &str| {
        let metrics = client.get("/metrics").text().to_owned();
        let line = format!("tenuto_otlp_{name}{{signal=\"logs\"}} ");
        let value = metrics.lines().find_map(|other| other.strip_prefix(&line).map(str::to_owned));
        value.expect(name).parse::<u64>().unwrap()
    };
    assert_eq!(metric("failing"), 0);
    // The first batch is sent again after a 503, and given up with the 400.
    eventually("it is said that the collector fails", || metric("failing") == 1);
    eventually("a batch is dropped", || metric("dropped_total") > 0);
    eventually("the next one is taken", || metric("sent_total") > 0 && metric("failing") == 0);
    assert!(collector.requests() >= 3);
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|line| !line["signal"].is_null()).collect()
    };
    eventually("the log has both events", || events().len() >= 2);
    let events = events();
    let of = |name: &str| -> Vec<&Value> { events.iter().map(|event| &event[name]).collect() };
    assert_eq!(of("event"), ["otlp-failing", "otlp-resumed"], "{events:#?}");
    assert_eq!(events[0]["error"], "answered with 503");
    assert_eq!(collector.faults(), Vec::<String>::new());
    drop(serving);
    // Nobody listens: the server starts and ends all the same.
    drop(fixture.serve_with(|config| config.otlp = target("http://127.0.0.1:9")));
}

#[test]
fn a_collector_that_cannot_be_used_is_refused_at_the_start() {
    let fixture = TestStore::with(&[]);
    let secret = |name: &str| name.ends_with("HEADERS").then(|| "line=a%0Asecret".to_owned());
    let pairs = |name: &str| name.ends_with("ATTRIBUTES").then(|| "rack".to_owned());
    let good = || Some("http://127.0.0.1:4318".to_owned());
    for (otlp, why) in [
        (target("127.0.0.1:4318"), "begins neither with"),
        (target("grpc://127.0.0.1:4317"), "begins neither with"),
        (target("http://me:word@a/"), "has no host, or a password"),
        (OtlpTarget::new(good(), TracedPart::ALL, secret), "cannot be a field of HTTP"),
        (OtlpTarget::new(good(), TracedPart::ALL, pairs), "is no list of pairs"),
    ] {
        let shown = format!("{otlp:?}");
        let error = Server::check(&ServerConfig { otlp, ..fixture.config() }).unwrap_err();
        assert!(error.one_line().contains(why), "{shown}: {}", error.one_line());
        assert!(!format!("{shown}{}", error.one_line()).contains("secret"), "{shown}");
    }
}
