//! A configuration that is read again while viewers play: what changes, what is kept, and that a
//! wrong one changes nothing.

use crate::client::playlist_uris;
use crate::fixture::{TestServer, TestStore, eventually, media};
use serde_json::json;
use server::access::new_key_file;
use server::{ServerConfig, TlsFiles};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{BitRate, Reason};

/// A server, and the configuration that it reads.
fn serve(fixture: &TestStore) -> (TestServer, Arc<Mutex<Result<ServerConfig, Reason>>>) {
    let log = Some(fixture.directory.join("log"));
    let config = ServerConfig { access_log: log, ..fixture.config() };
    let written = Arc::new(Mutex::new(Ok(config.clone())));
    let serving = fixture.serve_with(|used| *used = config);
    let source = Arc::clone(&written);
    serving.server.reads_again_from(move || source.lock().unwrap().clone());
    (serving, written)
}

#[test]
fn what_may_change_changes_and_sessions_go_on() {
    let fixture = TestStore::with(&[&media().film]);
    let (serving, written) = serve(&fixture);
    let write = |change: &dyn Fn(&mut ServerConfig)| {
        change(written.lock().unwrap().as_mut().unwrap());
        let report = serving.server.reload().unwrap();
        (report.changed.join(" "), report.needs_restart.join(" "))
    };
    let status = |path: &str| serving.client().get(path).status;
    let mut viewer = serving.client();
    let master = "/t/film/master.m3u8";
    let list = playlist_uris(viewer.get(master).text(), master)[0].clone();
    let segments = playlist_uris(viewer.get(&list).text(), &list);
    let nothing = || (String::new(), String::new());
    let changed = |names: &str| (names.to_owned(), String::new());

    assert_eq!(write(&|_| {}), nothing());
    assert_eq!(write(&|config| config.network = Some(BitRate(1000))), changed("network"));
    let refused = serving.client().get(master);
    assert_eq!((refused.status, &refused.json()["resource"]), (503, &json!("network")));
    assert_eq!(write(&|config| config.network = None), changed("network"));
    assert_eq!(status(master), 200);

    assert_eq!(status("/origin/film/master.m3u8"), 404);
    assert_eq!(write(&|config| config.fills = Some(4)), changed("origin"));
    assert_eq!(status("/origin/film/master.m3u8"), 200);

    let limit = |config: &mut ServerConfig| config.max_client_unplayed = Some(1);
    assert_eq!(write(&limit), changed("max-client-unplayed"));
    assert_eq!(status(master), 429);
    assert_eq!(write(&|config| config.max_client_unplayed = None), changed("max-client-unplayed"));
    assert_eq!(write(&|config| config.max_connections = 1), changed("max-connections"));
    assert_eq!(status("/healthz"), 503, "the viewer has the one connection");
    assert_eq!(write(&|config| config.max_connections = 100), changed("max-connections"));

    let keys = fixture.directory.join("keys");
    new_key_file(&keys).unwrap();
    assert_eq!(write(&|config| config.tokens = Some(keys.clone())), changed("tokens"));
    assert_eq!((status(master), status("/status")), (401, 401));
    assert_eq!(write(&|config| config.tokens = None), changed("tokens"));

    // A log that was moved away is left, and a new one is begun.
    let (log, moved) = (fixture.directory.join("log"), fixture.directory.join("log.1"));
    eventually("the log has lines", || std::fs::read_to_string(&log).is_ok_and(|l| l.len() > 9));
    std::fs::rename(&log, &moved).unwrap();
    assert_eq!(write(&|config| config.grace = Duration::ZERO), changed("grace"));
    assert_eq!(serving.server.grace(), Duration::ZERO);
    eventually("the new log has lines", || {
        std::fs::read_to_string(&log).is_ok_and(|lines| lines.contains("configuration-reloaded"))
    });

    let (_, kept) = write(&|config| {
        config.listen = "127.0.0.1:1".parse().unwrap();
        config.segment = Duration::from_secs(2);
    });
    assert_eq!(kept, "listen segment");

    // A store is served after the next start: what is wrong with it is told now.
    let (none, gone) = (fixture.directory.join("log"), fixture.directory.join("gone.store"));
    written.lock().unwrap().as_mut().unwrap().stores.push(none.clone());
    let refused = serving.server.reload().unwrap_err();
    assert!(refused.message.contains(&none.display().to_string()), "{refused:?}");
    *written.lock().unwrap().as_mut().unwrap().stores.last_mut().unwrap() = gone.clone();
    let report = serving.server.reload().unwrap();
    assert_eq!(report.needs_restart, ["stores", "listen", "segment"]);
    let [missing] = &report.missing_stores[..] else { panic!("{report:?}") };
    assert_eq!(missing.store, gone.display().to_string());
    let named =
        missing.reason.contains("No such file") && missing.reason.contains("check the path");
    assert!(named, "{missing:?}");
    assert_eq!(viewer.get(&segments[1]).status, 200, "the session goes on");
}

#[test]
fn a_configuration_that_cannot_be_used_changes_nothing() {
    let fixture = TestStore::with(&[&media().film]);
    let (serving, written) = serve(&fixture);
    let good = written.lock().unwrap().clone().unwrap();
    let missing = fixture.directory.join("missing");
    let tls = TlsFiles { certificate: missing.clone(), key: missing.clone() };
    let with = |change: &dyn Fn(&mut ServerConfig)| {
        // Would be seen if a part of it were used.
        let mut config = ServerConfig { fills: Some(1), ..good.clone() };
        change(&mut config);
        Ok(config)
    };
    let table = [
        (Err(Reason::new("line 1: no TOML", "mend it")), "line 1: no TOML; mend it"),
        (with(&|config| config.tokens = Some(missing.clone())), "missing"),
        (with(&|config| config.access_log = Some("/no/such/log".into())), "--access-log /no"),
        (with(&|config| config.slot = Duration::ZERO), "a slot must be from 10 ms to 1 min"),
        (with(&|config| config.segment = Duration::ZERO), "a segment must be at least 100 ms"),
        (with(&|config| config.network = Some(BitRate(0))), "--network 0 serves nobody"),
        (with(&|config| config.throttle = Some(BitRate(0))), "--throttle 0 serves nobody"),
        (with(&|config| config.stores.clear()), "there is no store to serve"),
    ];
    let rows = table.len();
    for (config, why) in table {
        *written.lock().unwrap() = config;
        let error = units::Hinted::one_line(&serving.server.reload().unwrap_err());
        assert!(error.contains(why), "{error}");
        assert_eq!(serving.client().get("/origin/film/master.m3u8").status, 404, "{why}");
    }
    // TLS cannot be turned on, so that its files are of no interest.
    *written.lock().unwrap() = with(&|config| config.tls = Some(tls.clone()));
    let report = serving.server.reload().unwrap();
    assert_eq!(report.needs_restart, ["tls-certificate", "tls-key"]);
    assert_eq!(report.changed, ["origin"]);
    // The log is written by a thread of its own.
    let log = || std::fs::read_to_string(fixture.directory.join("log")).unwrap();
    let failed = || log().matches("\"event\":\"configuration-not-reloaded\"").count();
    eventually("each failure is in the log", || failed() == rows);
}
