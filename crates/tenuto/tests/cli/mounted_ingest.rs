//! The folder of a mounted store in which files become media titles: what waits there, what is
//! told, and what is refused.

use crate::copies::operate;
use crate::directed::eventually;
use crate::mounted::{LeftMount, Mounted, run};
use crate::program::{TestDir, program};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_failed_rename_in_the_ingest_folder_changes_nothing() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title h2");
    dir.write("text.mp4", "no film");
    let mounted = Mounted::start(&dir, "");
    let at = |name: &str| mounted.path(name);
    for (from, to, kind) in [
        ("film.mp4", ".ingest/h2.mp4", ErrorKind::AlreadyExists),
        ("text.mp4", ".ingest/text.mp4", ErrorKind::InvalidInput),
    ] {
        let (from, waits) = (dir.path(from), at(".ingest/.a.mp4"));
        run(&["cp", from.to_str().unwrap(), &waits]);
        assert_eq!(fs::rename(&waits, at(to)).unwrap_err().kind(), kind, "{to}");
        assert!(fs::read(&waits).unwrap() == fs::read(&from).unwrap(), "{to}");
        assert_eq!(mounted.names(".ingest"), [".a.mp4"]);
    }
    run(&["cp", dir.path("film.mp4").to_str().unwrap(), &at(".ingest/.a.mp4")]);
    run(&["mv", &at(".ingest/.a.mp4"), &at(".ingest/h3.mp4")]);
    assert_eq!(mounted.names(".ingest"), [""; 0]);
    assert_eq!(mounted.names(""), [".ingest", "h2.mp4", "h3.mp4"]);
    let (code, said) = mounted.stop();
    assert_eq!(code, Some(0));
    assert!(said.contains("note: text is not taken in: "), "{said}");
    dir.ok("check a.store --scrub");
}

#[test]
fn what_is_left_out_and_what_is_lost_is_told() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    let words = "-v error -f lavfi -i testsrc2=s=64x48:r=25:d=1 -timecode 01:00:00:00";
    let clip = dir.path("clip.mov");
    let made = Command::new("ffmpeg").args(words.split(' ')).arg(&clip).status();
    assert!(made.expect("ffmpeg runs").success());
    let clip = clip.to_str().unwrap();
    let mounted = Mounted::start(&dir, "");
    let at = |name: &str| mounted.path(name);
    run(&["cp", clip, &at(".ingest/whole.mov")]);
    // A program that makes the file, and writes it when it has opened it again.
    run(&["touch", &at(".ingest/later.mov")]);
    assert_eq!(fs::metadata(at(".ingest/later.mov")).unwrap().len(), 0);
    run(&["sh", "-c", &format!("cat {clip} > {}", at(".ingest/later.mov"))]);
    run(&["sh", "-c", &format!(": > {}", at(".ingest/zero.mov"))]);
    run(&["cp", clip, &at(".ingest/.waits.mov")]);
    assert_eq!(mounted.names(".ingest"), [".waits.mov", "zero.mov"]);
    assert_eq!(mounted.names(""), [".ingest", "later.mp4", "whole.mp4"]);
    let (code, said) = mounted.stop();
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [
        "note: whole: left out: ",
        "note: .ingest/later.mov is empty: it waits until something is written to it",
        "note: later: left out: ",
        "note: .ingest/zero.mov is empty: it waits until something is written to it",
        "note: unmounted: what waited in .ingest is lost: .ingest/.waits.mov, .ingest/zero.mov",
    ];
    assert_eq!(lines.len(), wanted.len(), "{said}");
    for (line, wanted) in lines.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{said}");
    }
}

/// Whoever takes a disk out learns which file of its mount holds that up, and goes on with it.
#[test]
fn a_drain_names_the_file_that_waits_in_the_ingest_folder() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    dir.film("film.mp4");
    dir.ok("token keys.json --new");
    let token = dir.ok("token keys.json --operator");
    let _left = LeftMount(dir.path("mnt/a.store"));
    let mut command = program(&dir.path(""));
    command.stderr(Stdio::piped());
    let mut server = dir.serve_by(command, "--mount mnt --grace 1s --tokens keys.json");
    let at = |name: &str| dir.path(&format!("mnt/a.store/{name}")).to_str().unwrap().to_owned();
    eventually("it is mounted", || Path::new(&at(".ingest")).exists());
    run(&["cp", dir.path("film.mp4").to_str().unwrap(), &at(".ingest/.film.mp4")]);
    let uuid = dir.json("info a.store")["uuid"].as_str().unwrap().to_owned();
    let drain = |method: &str| {
        let answer =
            operate(&server.origin, &token, method, &format!("/api/v1/disks/{uuid}/drain"));
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        serde_json::from_str::<Value>(body).unwrap()["ingests"].clone()
    };
    let waits = drain("POST");
    assert_eq!(waits[0]["waits_at"], ".ingest/.film.mp4", "{waits}");
    let mut said = BufReader::new(server.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let named = said.find(|line| line.contains("not drained yet")).expect("it says so");
    let wanted = "and 1 file waits in its mount ('.ingest/.film.mp4'): rename each to the name";
    assert!(named.contains(wanted), "{named}");
    run(&["mv", &at(".ingest/.film.mp4"), &at(".ingest/film.mp4")]);
    assert_eq!(drain("GET"), serde_json::json!([]));
    assert!(said.any(|line| line.contains("and nothing is written there")));
    assert_eq!(dir.json("ls a.store")["titles"][0]["name"], "film");
    assert_eq!(server.stop(), Some(0));
}
