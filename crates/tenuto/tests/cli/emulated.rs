//! A disk that is not there, as a person makes one: started, asked, stopped, killed, made again.
//!
//! Needs root and /dev/fuse, and says so where it does not have them.

use crate::program::{Room, program};
use rustix::thread::CapabilitySet;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// Whether disks can be emulated here; if not, says that `test` was skipped.
fn can_emulate(test: &str) -> bool {
    let rights = rustix::thread::capabilities(None).map(|rights| rights.effective);
    let root = rights.is_ok_and(|rights| rights.contains(CapabilitySet::SYS_ADMIN));
    let can = root && Path::new("/dev/fuse").exists();
    if !can {
        // Not through the macros: the harness hides what they print of a test that passes.
        let _ = writeln!(std::io::stderr(), "note: {test} skipped: it needs root and /dev/fuse");
    }
    can
}

struct Emulated {
    child: Child,
    about: Value,
    notes: BufReader<ChildStderr>,
}

/// `tenuto disk emulate ... --json`, once it is there.
fn emulate(room: &Room, words: &str) -> Emulated {
    let mut child = program(&room.path("."))
        .args("disk emulate --json".split(' '))
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tenuto runs");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let lines = out.lines().map(|line| line.expect("text"));
    // The object ends with a brace on a line of its own.
    let mut object = String::new();
    for line in lines {
        object += &line;
        if line == "}" {
            break;
        }
    }
    let notes = BufReader::new(child.stderr.take().expect("piped"));
    let about = serde_json::from_str(&object).unwrap_or_else(|error| panic!("{error}: {object}"));
    Emulated { child, about, notes }
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn an_emulated_disk_is_made_asked_and_stopped() {
    if !can_emulate("an emulated disk on the command line") {
        return;
    }
    let room = Room::new();
    let mut disk = emulate(&room, "ssd-sata --backing d.img --size 8MiB --at here --fast");
    assert_eq!(disk.about["size"], 8 << 20);
    assert_eq!((&disk.about["fast"], &disk.about["device"]), (&true.into(), &Value::Null));
    let file = disk.about["file"].as_str().unwrap().to_owned();
    assert!(file.ends_with("/here/disk"), "{file}");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap_err();
    assert_eq!(room.json("disk stats here --fast off")["fast"], false);
    assert_eq!(std::fs::read(&file).unwrap().len(), 8 << 20);
    let before = room.json("disk stats here --reset");
    assert_eq!(before["read_bytes"], 8 << 20);
    assert!(before["busy"].as_f64().unwrap() > 8e6 / 550e6, "{before}");
    assert_eq!(room.json("disk stats here")["reads"], 0);
    assert!(room.ok("disk stats here").contains("\nlate "));
    room.fails("disk emulate ssd-sata --backing d.img", 1, "another process holds its lock");
    send(&disk.child, "-TERM");
    assert_eq!(disk.child.wait().expect("it ends").code(), Some(0));
    assert!(!room.path("here").exists(), "the folder was made for it");
    room.fails("disk stats here", 1, "no emulated disk answers");
}

#[test]
fn what_a_killed_one_leaves_is_taken_down_by_the_next() {
    if !can_emulate("an emulated disk that is killed") {
        return;
    }
    let room = Room::new();
    let mut disk = emulate(&room, "ssd-nvme --backing d.img --size 1MiB");
    send(&disk.child, "-KILL");
    disk.child.wait().expect("it ends");
    let mut next = emulate(&room, "ssd-nvme --backing d.img");
    let note = next.about["notes"][0].as_str().unwrap_or_default().to_owned();
    assert!(note.contains("what a dead process had left at"), "{note}");
    send(&next.child, "-INT");
    assert_eq!(next.child.wait().expect("it ends").code(), Some(0));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut next.notes, &mut said).expect("text");
    assert_eq!(said, "", "nothing else to say");
    assert!(!room.path("d.img.emulated").exists());
}

#[test]
fn a_disk_of_nothing_is_refused() {
    let room = Room::new();
    room.fails("disk emulate hdd-20tb", 2, "--backing is missing\nhint: name a file");
    room.fails("disk stats nowhere", 1, "no emulated disk answers at nowhere.emulated/control");
}
