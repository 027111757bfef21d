//! A store that a server owns: the same commands, the same output, through its control socket.

use crate::copies::status;
use crate::program::{Served, TestDir, program};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn commands_reach_a_served_store() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.write("words.txt", "no film\n");
    dir.ok("ingest a.store film.mkv");
    let lines = [
        "ls a.store",
        "ls a.store --long",
        "ls a.store --json",
        "info a.store film --json",
        "plan --model hdd-20tb --title a.store:film",
    ];
    let before = lines.map(|line| dir.ok(line));

    // Measures the disk first.
    let server = dir.serve_by(program(&dir.path("")), "");
    assert_eq!(lines.map(|line| dir.ok(line)), before, "served or not, the same output");
    let run = dir.run("ingest a.store absent.mkv words.txt");
    assert_eq!(run.code, Some(1), "neither is a film");
    assert!(run.err.contains("words.txt is not taken in"), "{}", run.err);
    let report = dir.json("ingest a.store words.txt --as file --title text");
    assert_eq!(report["files"][0]["title"]["name"], json!("text"));
    dir.ok("rename a.store text words");
    dir.fails("rename a.store text words", 1, "there is no title 'text'");
    assert_eq!(dir.ok("ls a.store"), "film\nwords\n");
    dir.ok("export a.store words back.txt");
    assert_eq!(dir.read("back.txt"), b"no film\n");
    dir.write("old.txt", "old");
    dir.fails("export a.store words old.txt", 1, "would be overwritten");
    dir.ok("export a.store words old.txt --destroy");
    assert_eq!(dir.read("old.txt"), b"no film\n");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    let found = dir.json("calibrate a.store --time 200ms");
    assert_eq!(dir.json("info a.store")["calibration"], found, "measured by turns, and kept");
    assert_eq!(dir.json("rm a.store words")["in_use"], json!(false));
    assert_eq!(dir.ok("ls a.store"), "film\n");

    dir.fails("serve a.store --listen 127.0.0.1:0", 1, "in use");
    dir.fails("format a.store --destroy", 1, "in use");
    assert_eq!(server.stop(), Some(0), "SIGTERM ends it well");
    assert_eq!(lines.map(|line| dir.ok(line)), before, "and leaves the store as it was");
}

#[test]
fn a_server_that_was_killed_leaves_a_store_that_opens() {
    let dir = TestDir::with_store();
    dir.write("words.txt", "no film\n");
    let server = dir.serve("");
    dir.ok("ingest a.store words.txt --as file");
    // SIGKILL: its control socket stays behind.
    drop(server);
    assert_eq!(dir.ok("ls a.store"), "words\n");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    let server = dir.serve("");
    assert_eq!(dir.ok("ls a.store"), "words\n");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn viewers_are_let_in_or_told() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");

    let server = dir.serve("");
    for address in ["", "/t/film/master.m3u8", "/t/film.mp4"] {
        let report = dir.json(&format!("play {}{address}", server.origin));
        let totals = &report["totals"];
        assert_eq!(
            (&totals["admitted"], &totals["finished"], &report["complete"]),
            (&json!(1), &json!(1), &json!(true)),
            "{address}: {totals}"
        );
    }
    let saved = format!("play {}/t/film.mp4 --save film.mp4", server.origin);
    dir.ok(&saved);
    dir.fails(&saved, 1, "film.mp4 would be overwritten\nhint: if that is meant, allow it with");
    dir.ok(&format!("{saved} --destroy"));
    dir.fails(&format!("play {}/t/none.mp4", server.origin), 1, "404");
    let misspelt = format!("play {}/t/Flim/master.m3u8", server.origin);
    dir.fails(&misspelt, 1, "there is no title 'Flim'\nhint: did you mean 'film'?\n");
    // The semicolon is within the server's sentence, which has no hint.
    let after_the_end = format!("play {}/t/film/master.m3u8 --from 1min", server.origin);
    let error = " s long; start and stop must lie within that\n";
    dir.fails(&after_the_end, 1, error);
    dir.fails("info a.store Film", 1, "there is no title 'Film'\nhint: did you mean 'film'?\n");
    assert_eq!(server.stop(), Some(0));

    let rate = dir.json("info a.store film")["bit_rate"].as_u64().unwrap();
    let server = dir.serve(&format!("--network {}bps", 5 * rate));
    let line = format!("play {}/t/film/master.m3u8 --viewers 20 --strict --json", server.origin);
    let run = dir.run(&line);
    let totals = serde_json::from_str::<Value>(&run.out).expect("a report")["totals"].clone();
    let counts = ["admitted", "refused"].map(|name| totals[name].as_u64().unwrap());
    assert!(counts.iter().all(|count| *count > 0), "{totals}");
    assert_eq!(run.code, Some(3), "some were refused: {totals}");
    assert_eq!(server.stop(), Some(0));

    // A busy machine may have measured a disk that holds nobody, which would be the reason.
    let server = dir.serve("--network 10kbps --as-disk hdd-20tb");
    let run = dir.run(&format!("play {}/t/film/master.m3u8 --json", server.origin));
    let report: Value = serde_json::from_str(&run.out).expect("a report of the refusal");
    assert_eq!(run.code, Some(3), "nobody was let in: {}", run.err);
    assert_eq!(report["totals"]["refused_by"], json!({ "network": 1 }));
}

#[test]
fn a_server_is_measured_by_its_titles() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");

    let server = dir.serve("");
    let line = format!("meter run --target {}/t/film.mp4 --streams 2 --out seen", server.origin);
    let run = dir.run(&format!("{line} --json"));
    let seen: Value = serde_json::from_str(&run.out).expect(&run.err);
    assert_eq!(seen["streams"], json!(2));
    assert_eq!(seen["play"]["totals"]["admitted"], json!(2));
    assert!(seen["frames"].as_u64() > Some(0) && seen["bytes_read"].as_u64() > Some(0));
    let page = String::from_utf8(dir.read("seen/report.html")).unwrap();
    assert!(page.contains("2 viewers") && page.contains("those of the server"), "{page}");
    assert!(dir.path("seen/operations.parquet").exists());
    let address = format!("meter run --target {}", server.origin);
    dir.fails(&format!("{address}/t/film.mp4 --profile xdcam422"), 2, "its own rate");
    dir.fails(&format!("{address}/t/film.mp4 --buffered"), 2, "--buffered is not for players");
    dir.fails(&format!("{address}/manifest.mpd"), 1, "not found (404)");
    let both = format!("{address}/t/film.mp4 --ca-file ca.pem --insecure");
    dir.fails(&both, 2, "--ca-file and --insecure contradict each other");
    let key = format!("{address}/t/film.mp4 --key-file me.key");
    dir.fails(&key, 2, "--key-file needs --cert-file");

    let list = format!("{}/t/film/master.m3u8 --switching hls.js", server.origin);
    let seen = dir.json(&format!("meter run --target {list} --streams 2"));
    assert_eq!(
        (&seen["scenario"]["switching"], &seen["below_best"]),
        (&json!("hls.js"), &json!(0))
    );
    assert_eq!(seen["play"]["totals"]["share_of_best"], json!(1.0), "there is but one rendition");
    dir.fails(&format!("play {list} --save film.mp4"), 2, "cannot put several renditions into one");
    dir.fails("meter run --profile xdcam422 --target . --switching hls.js", 2, "is for players");
    assert_eq!(server.stop(), Some(0));

    let server = dir.serve("--network 10kbps");
    let run = dir.run(&format!("meter capacity --target {}/t/film.mp4 --json", server.origin));
    let none: Value = serde_json::from_str(&run.out).expect(&run.err);
    assert_eq!((&none["streams"], &none["too_many"]), (&json!(0), &json!(1)), "refused: not held");
}

/// Sends SIGHUP, and waits until the log names the outcome, behind so many others; returns its
/// line.
fn reloaded(dir: &TestDir, server: &Served, others: usize) -> Value {
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill runs").success());
    let start = Instant::now();
    loop {
        let log = String::from_utf8(dir.read("log")).expect("a log in UTF-8");
        let mut outcomes = log.lines().filter(|line| line.contains("\"event\":\"configuration-"));
        if let Some(line) = outcomes.nth(others) {
            return serde_json::from_str(line).expect("a line of JSON");
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no outcome in the log: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_hangup_lets_a_server_read_its_file_again() {
    let dir = TestDir::with_store();
    let file = |lines: &str| dir.write("serve.toml", format!("access-log = \"log\"\n{lines}"));
    file("wait = \"2s\"\n");
    let server = dir.serve("--config serve.toml --network 1Gbps");
    file("wait = \"3s\"\nsegment = \"2s\"\nnetwork = \"1Mbps\"\n");
    let line = reloaded(&dir, &server, 0);
    assert_eq!(line["changed"], json!(["wait"]), "the command line goes before the file");
    assert_eq!(line["needs_restart"], json!(["segment"]));
    file("wait = \"3 parsecs\"\n");
    let line = reloaded(&dir, &server, 1);
    assert_eq!(line["event"], "configuration-not-reloaded");
    assert!(
        line["error"].as_str().is_some_and(|why| why.starts_with("serve.toml: --wait")),
        "{line}"
    );
    file("wait = \"2s\"\n");
    assert_eq!(reloaded(&dir, &server, 2)["changed"], json!(["wait"]));
    assert_eq!(server.stop(), Some(0));
}

/// Sends SIGUSR2, and waits until the log names this event; returns its line.
pub(crate) fn restarted(dir: &TestDir, server: &Served, event: &str) -> Value {
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-USR2", &id]).status().expect("kill runs").success());
    let start = Instant::now();
    loop {
        let log = String::from_utf8(dir.read("log")).expect("a log in UTF-8");
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        if let Some(line) = lines.into_iter().find(|line| line["event"] == event) {
            return line;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no {event} in the log: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_restart_keeps_the_process_and_its_viewers() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let file = |lines: &str| dir.write("serve.toml", format!("access-log = \"log\"\n{lines}"));
    file("");
    let server = dir.serve("--config serve.toml");
    // A recording, which the restart ends.
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().expect("mkfifo runs").success());
    let recording = program(&dir.path(""))
        .args("record a.store live pipe --silence 60s --json".split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .expect("tenuto records");
    let mut pipe = std::fs::OpenOptions::new().write(true).open(dir.path("pipe")).expect("read");
    pipe.write_all(&dir.read("film.mkv")).expect("it is read");
    let start = Instant::now();
    while dir.json("info a.store")["recordings"][0]["bytes"].as_u64().unwrap_or(0) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is recorded");
        std::thread::sleep(Duration::from_millis(100));
    }
    // So little is buffered that segments are fetched before and after the restart.
    let viewer = format!("play {}/t/film/master.m3u8 --buffer 1s --json", server.origin);
    let viewer = program(&dir.path(""))
        .args(viewer.split(' '))
        .stdout(Stdio::piped())
        .spawn()
        .expect("tenuto plays");
    let start = Instant::now();
    while status(&server.origin)["active"] != json!(1) {
        assert!(start.elapsed() < Duration::from_secs(30), "no viewer has come");
        std::thread::sleep(Duration::from_millis(20));
    }
    file("segment = \"3 parsecs\"\n");
    let line = restarted(&dir, &server, "not-restarted");
    assert!(line["error"].as_str().is_some_and(|why| why.starts_with("serve.toml: --segment")));
    file("grace = \"5s\"\nslot = \"250ms\"\n");
    let line = restarted(&dir, &server, "restarted");
    assert_eq!((&line["sessions"], &line["sessions_ended"]), (&json!(1), &json!(0)), "{line}");
    assert_eq!(status(&server.origin)["slot"], json!(0.25), "the option has its new value");
    let recorded = recording.wait_with_output().expect("it ends");
    assert_eq!(recorded.status.code(), Some(1), "its user has not ended it");
    let recorded: Value = serde_json::from_slice(&recorded.stdout).expect("a report");
    assert_eq!(recorded["error"]["code"], json!("server-ended"));
    assert_eq!((&recorded["end"], &recorded["title"]["name"]), (&json!("stopped"), &json!("live")));
    drop(pipe);
    let report = viewer.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&report.stdout).expect("a report");
    assert_eq!(report["complete"], json!(true), "{report}");
    assert_eq!(server.stop(), Some(0), "the process is the same");
}
