//! Stores that are full, of another version, no stores at all, or gone under their server.

use crate::program::TestDir;
use crate::stage::{assert_unchanged, connect, eventually, holdings};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_full_store_says_what_is_missing_and_takes_more_in_once_there_is_room() {
    let dir = TestDir::with_store();
    dir.write("much.bin", vec![1; 40 << 20]);
    dir.ok("ingest a.store much.bin --as file");
    let before = holdings(&dir);
    for server in [None, Some(dir.serve(""))] {
        let line = "ingest a.store much.bin --as file --title more";
        dir.fails(line, 1, "error: the store is full: 20 MiB are free, 20 MiB too little");
        dir.fails(line, 1, "hint: remove titles first");
        assert_unchanged(&dir, &before, if server.is_some() { "served" } else { "not served" });
    }
    dir.ok("rm a.store much");
    dir.ok("ingest a.store much.bin --as file --title more");
    assert_eq!(dir.ok("ls a.store"), "more\n");
}

#[test]
fn a_store_of_another_version_is_named_and_left_alone() {
    let dir = TestDir::with_store();
    let file = OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    for copy in [0, 64 << 10, 32 << 20, (64 << 20) - (64 << 10)] {
        file.write_all_at(&2u32.to_le_bytes(), copy + VERSION_AT).unwrap();
    }
    dir.write("a.bin", "a");
    let before = dir.read("a.store");
    let words = "format version 2, this program knows version 1";
    for line in [
        "ls a.store",
        "info a.store",
        "ingest a.store a.bin --as file",
        "rm a.store x",
        "check a.store",
        "calibrate a.store",
        "serve a.store --listen 127.0.0.1:0",
    ] {
        dir.fails(line, 1, words);
        dir.fails(line, 1, "hint: use the version of Tenuto that made it");
    }
    dir.fails("format a.store", 1, "would be overwritten");
    assert!(dir.read("a.store") == before, "not a byte is changed");
}

/// In a superblock: behind the magic.
const VERSION_AT: u64 = 8;

#[test]
fn what_cannot_be_a_store_is_named_without_waiting_for_it() {
    let dir = TestDir::new();
    dir.write("empty", "");
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    for (name, words) in [
        ("empty", "empty is not a Tenuto store\nhint: check the path; `tenuto format` makes"),
        ("pipe", "it is no file and no block device\nhint: name a regular file"),
        (".", "it is a directory\nhint: name a regular file"),
        ("/dev/zero", "it is no file and no block device\nhint: name a regular file"),
    ] {
        dir.fails(&format!("ls {name}"), 1, words);
        let reason =
            words.split_once("is ").expect("a sentence").1.split('\n').next().expect("one");
        dir.fails(&format!("serve {name} --listen 127.0.0.1:0"), 1, reason);
    }
}

#[test]
fn a_store_that_vanishes_under_its_server_fails_requests_by_name_and_nothing_else() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve("");
    let mut client = connect(&server);
    // Opens the title, and lets nobody in for whom something would be read beforehand.
    assert_eq!(client.request("HEAD", "/t/film.mp4", &[]).status, 200);
    let file = OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.set_len(4096).unwrap();
    let (_, answer) = client.get_following("/t/film.mp4");
    assert!(answer.status == 500 && answer.error() == "read-failed" || !answer.whole, "{answer:?}");
    assert_eq!(connect(&server).get("/healthz").status, 200);
    let run = dir.run("check a.store --scrub");
    assert_eq!(run.code, Some(4), "what it served is not there any more: {}{}", run.out, run.err);
    assert!(run.err.starts_with("error: the store is damaged: "), "{}", run.err);
    assert_eq!(run.err.matches("the store is damaged").count(), 1, "{}", run.err);
    assert_eq!(server.stop(), Some(0), "and stops well");
    file.set_len(64 << 20).unwrap();
    let run = dir.run("ls a.store");
    assert_eq!(run.code, Some(4), "three of four superblocks are gone: {}", run.err);
}

#[test]
fn a_store_cut_short_says_what_is_missing() {
    let dir = TestDir::with_store();
    let file = OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.set_len(48 << 20).unwrap();
    let words = "the store was made 64 MiB long but only 48 MiB are left\nhint: give the device or";
    dir.fails("ls a.store", 1, words);
    dir.fails("serve a.store --listen 127.0.0.1:0", 1, "made 64 MiB long but only 48 MiB");
}

#[test]
fn garbage_on_the_control_socket_is_answered_and_the_next_command_is_served() {
    let dir = TestDir::with_store();
    dir.write("a.bin", "a");
    dir.ok("ingest a.store a.bin --as file");
    let before = holdings(&dir);
    let uuid = dir.json("info a.store")["uuid"].as_str().unwrap().to_owned();
    let server = dir.serve("");
    let path = dir.path(&format!("tenuto/{uuid}.sock"));
    let deep = "[".repeat(100_000);
    for sent in ["nonsense", "{\"ls\":1}", "{\"format\":null}", "\u{0}", "null", &deep] {
        let mut socket = UnixStream::connect(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.write_all(format!("{sent}\n").as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let got = socket.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..got]);
        assert!(answer.contains("this is not a request"), "{sent:.20}: {answer}");
    }
    // More at once than are served, who say nothing at all.
    let mut crowd = Vec::new();
    eventually("there are too many", || {
        crowd.extend((0..16).map(|_| UnixStream::connect(&path).unwrap()));
        let run = dir.run("ls a.store");
        let told = run.err.starts_with("error: too many commands run on this store\nhint: ");
        assert!(run.code == Some(0) || told, "{}", run.err);
        told
    });
    drop(crowd);
    eventually("there is dir again", || dir.run("ls a.store").code == Some(0));
    assert_unchanged(&dir, &before, "after the garbage");
    assert_eq!(server.stop(), Some(0));
}
