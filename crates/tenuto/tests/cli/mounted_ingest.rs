//! The folder of a mounted store in which files become media titles: what waits there, what is
//! told, and what is refused.

use crate::mounted::{Mounted, run};
use crate::program::TestDir;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;

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
