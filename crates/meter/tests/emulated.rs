//! Published results on an emulated disk, from the first file system made to the last thing taken
//! down: on a disk of 64 MiB that runs twenty times as fast, so that it takes seconds. What is held
//! is not judged: that is the machine's.
//!
//! Needs root, /dev/fuse and e2fsprogs, and says so where it does not have them.

use meter::emulated::{EmulatedError, EmulatedOptions, FileSystem, Progress, Reproduction, System};
use rustix::thread::CapabilitySet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use units::ByteCount;

/// Whether disks can be emulated here; if not, says that `test` was skipped.
fn can_emulate(test: &str) -> bool {
    let rights = rustix::thread::capabilities(None).map(|rights| rights.effective);
    let root = rights.is_ok_and(|rights| rights.contains(CapabilitySet::SYS_ADMIN));
    let devices = ["/dev/fuse", "/dev/loop-control"].iter().all(|path| Path::new(path).exists());
    let can = root && devices && FileSystem::Ext2.available().is_ok();
    if !can {
        // Not through the macros: the harness hides what they print of a test that passes.
        let needs = "root, /dev/fuse, /dev/loop-control and mkfs.ext2";
        let _ = writeln!(std::io::stderr(), "note: {test} skipped: it needs {needs}");
    }
    can
}

fn options(name: &str) -> EmulatedOptions {
    let backing = format!("tenuto-made-again-{name}-{}", std::process::id());
    EmulatedOptions {
        backing: std::env::temp_dir().join(backing),
        size: Some(ByteCount::mib(64)),
        systems: vec![System::Raw, System::On(FileSystem::Ext2)],
        rounds: 5,
        block: ByteCount(64_000),
        speed: 20,
    }
}

fn nothing_is_left(backing: &Path) {
    assert!(!backing.exists(), "the file that was made for it");
    let folder = PathBuf::from(format!("{}.emulated", backing.display()));
    assert!(!folder.exists(), "{}", folder.display());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let ours = backing.display().to_string();
    assert!(!mounts.contains(&ours), "{mounts}");
    let mounted = format!("tenuto-mounted-{}", std::process::id());
    assert!(!mounts.contains(&mounted), "{mounts}");
}

#[test]
fn tables_are_made_from_end_to_end_and_nothing_is_left() {
    if !can_emulate("published results on an emulated disk") {
        return;
    }
    for (name, rows) in [("alderman-table1", [12, 12, 2].as_slice()), ("alderman-rounds", &[2])] {
        let options = options(name);
        let mut found = Vec::new();
        let mut hear = |progress: Progress<'_>| {
            assert!((0.0..=1.0).contains(&progress.done), "{progress:?}");
            if progress.found {
                found.push(progress.what.to_owned());
            }
        };
        let one = Reproduction::named(name).unwrap();
        let made = one.run(&options, &mut hear, &AtomicBool::new(false)).unwrap();
        assert!(made.ended.is_none());
        let tables = &made.report.tables;
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), rows);
        assert_eq!(found.len(), rows[0], "{found:?}");
        let charted = made.report.figures.iter().all(|figure| figure.plot.svg().is_ok());
        assert!(charted && !made.report.figures.is_empty());
        let late = made.report.notes.iter().any(|note| note.contains("the longest of all was"));
        assert!(late, "the emulation's own lateness is told: {:?}", made.report.notes);
        nothing_is_left(&options.backing);
    }
}

/// As Ctrl-C does: at once, and when something was found on a file system that is mounted.
#[test]
fn an_interrupted_one_tells_what_it_found_and_leaves_nothing() {
    if !can_emulate("an interrupted result on an emulated disk") {
        return;
    }
    let one = Reproduction::named("alderman-table1").unwrap();
    let options =
        EmulatedOptions { systems: vec![System::On(FileSystem::Ext2)], ..options("interrupted") };
    let at_once = one.run(&options, &mut |_| {}, &AtomicBool::new(true));
    assert!(matches!(at_once, Err(EmulatedError::Interrupted)), "{at_once:?}");
    nothing_is_left(&options.backing);

    let stop = AtomicBool::new(false);
    let mut at_the_first = |progress: Progress<'_>| {
        stop.fetch_or(progress.found, Ordering::Relaxed);
    };
    let made = one.run(&options, &mut at_the_first, &stop).unwrap();
    assert!(matches!(made.ended, Some(EmulatedError::Interrupted)));
    assert_eq!(made.report.tables[0].rows.len(), 1);
    assert!(made.report.notes[0].contains("ended early"), "{:?}", made.report.notes);
    nothing_is_left(&options.backing);
}

#[test]
fn more_than_a_streams_file_is_refused_before_anything_is_made() {
    let one = Reproduction::named("alderman-rounds").unwrap();
    let many = EmulatedOptions { rounds: 100, ..options("refused") };
    for (options, what) in [
        (EmulatedOptions { rounds: 100, ..many.clone() }, "100 rounds of 62.5 KiB"),
        (EmulatedOptions { block: ByteCount::ZERO, ..many }, "100 rounds of 0 B"),
    ] {
        let said = one.run(&options, &mut |_| {}, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(said.starts_with(what) && said.contains("a stream's file"), "{said}");
        nothing_is_left(&options.backing);
    }
}
