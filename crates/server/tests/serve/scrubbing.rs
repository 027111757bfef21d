//! Titles of a served store that are read again and again: damage is told, and a new start goes on
//! where the last one was.

use crate::fixture::{TestStore, eventually, media};
use serde_json::{Value, json};
use server::control::{Client, Reply, Request};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{ScrubPosition, ScrubState, Store};

#[test]
fn damage_is_told_and_a_start_goes_on_where_the_last_one_was() {
    let fixture = TestStore::with(&[&media().film, &media().song]);
    let store = Store::open(&fixture.path).unwrap();
    let (film, song) = (store.find("film").unwrap(), store.find("song").unwrap());
    // Begun long ago, so that the rest is read at the highest pace.
    let next = ScrubPosition::before(song.id);
    let state = ScrubState { begun: 1_700_000_000, next, bytes: 1000, found: 0, last: None };
    store.change_scrub_state(|_| state).unwrap();
    let place = film.tracks[0].extents[0].start.0 * store.info().chunk.0;
    drop(store);
    let file = File::options().write(true).open(&fixture.path).unwrap();
    file.write_all_at(b"damaged", place + 5000).unwrap();

    let log = fixture.directory.join("log");
    let serving = fixture.serve_with(|config| {
        config.access_log = Some(log.clone());
        config.scrub = Some(Duration::from_millis(500));
    });
    let events = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let names = ["scrub-done", "damage-found"];
        lines.filter(|line: &Value| names.iter().any(|name| line["event"] == *name)).collect()
    };
    eventually("two passes", || {
        events().iter().filter(|it| it["event"] == "scrub-done").count() > 1
    });
    let events = events();
    let rest = song.bytes + song.index_bytes;
    let all = rest + film.bytes + film.index_bytes;
    let told: Vec<Value> =
        events[..3].iter().map(|it| json!([it["event"], it["bytes"], it["damage"]])).collect();
    let expected = [
        json!(["scrub-done", 1000 + rest, 0]),
        json!(["damage-found", null, null]),
        json!(["scrub-done", all, 1]),
    ];
    assert_eq!(told, expected);
    let message = events[1]["message"].as_str().unwrap();
    assert!(
        message.contains("damaged data in title 'film', track 0: 65536 bytes at 0"),
        "{message}"
    );
    assert_eq!((&events[1]["title"], &events[1]["by"]), (&json!("film"), &json!("scrub")));

    let status = serving.client().get("/status").json();
    let scrub = &status["disks"][0]["scrub"];
    assert_eq!((&scrub["last_damage"], scrub["last"].is_u64()), (&json!(1), true), "{scrub}");
    let mut control = Client::connect(&Store::peek(&fixture.path).unwrap()).unwrap().unwrap();
    let Reply::Store(info) = control.call(&Request::Info { title: None }, |_| {}).unwrap() else {
        panic!("another reply");
    };
    assert_eq!(info.scrub.and_then(|scrub| scrub.last_damage), Some(1));
    let metrics = serving.client().get("/metrics");
    let metrics = metrics.text();
    let name = fixture.path.display();
    assert!(metrics.contains(&format!("tenuto_scrub_damage{{store=\"{name}\"}} 1\n")), "{metrics}");
    let due = format!("tenuto_scrub_due_timestamp_seconds{{store=\"{name}\"}} ");
    let due = metrics.lines().find_map(|line| line.strip_prefix(&due)).expect(&due);
    assert!(due.parse::<u64>().unwrap() > 1_700_000_000, "{due}");
    drop(serving);
    let kept = Store::open(&fixture.path).unwrap().scrub_state().unwrap();
    assert_eq!(kept.last.map(|last| last.found), Some(1));
    // What only begins has read nothing: a server that does not scrub leaves the state as it is.
    drop(fixture.serve_with(|config| config.scrub = None));
    assert_eq!(Store::open(&fixture.path).unwrap().scrub_state(), Some(kept));
}

#[test]
fn a_scrub_that_has_read_nothing_yet_is_due_as_well() {
    let fixture = TestStore::with(&[]);
    let period = Duration::from_secs(86_400);
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (before, serving) =
        (since(SystemTime::now()), fixture.serve_with(|config| config.scrub = Some(period)));
    let metrics = serving.client().get("/metrics");
    let name = fixture.path.display();
    let due = format!("tenuto_scrub_due_timestamp_seconds{{store=\"{name}\"}} ");
    let due = metrics.text().lines().find_map(|line| line.strip_prefix(&due)).expect(&due);
    let due: u64 = due.parse().unwrap();
    let range = before + period.as_secs()..=since(SystemTime::now()) + period.as_secs();
    assert!(range.contains(&due), "{due} is not in {range:?}");
}
