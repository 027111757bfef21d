//! A disk that is not there, as a person makes one: started, asked, stopped, killed, made again.
//!
//! Needs root and /dev/fuse, and is counted as skipped without them.

use crate::program::{TestDir, program};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

struct Emulated {
    child: Child,
    about: Value,
    notes: BufReader<ChildStderr>,
}

/// `tenuto disk emulate ... --json`, once it is there.
fn emulate(dir: &TestDir, words: &str) -> Emulated {
    let mut child = program(&dir.path("."))
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
    testkit::needs!(Root, Fuse);
    let dir = TestDir::new();
    let mut disk = emulate(&dir, "ssd-sata --backing d.img --size 8MiB --at here --no-delay");
    assert_eq!(disk.about["size"], 8 << 20);
    assert_eq!((&disk.about["fast"], &disk.about["device"]), (&true.into(), &Value::Null));
    let file = disk.about["file"].as_str().unwrap().to_owned();
    assert!(file.ends_with("/here/disk"), "{file}");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap_err();
    assert_eq!(dir.json("disk stats here --delay on")["fast"], false);
    assert_eq!(std::fs::read(&file).unwrap().len(), 8 << 20);
    let before = dir.json("disk stats here --reset");
    assert_eq!(before["read_bytes"], 8 << 20);
    assert!(before["busy"].as_f64().unwrap() > 8e6 / 550e6, "{before}");
    assert_eq!(dir.json("disk stats here")["reads"], 0);
    assert!(dir.ok("disk stats here").contains("\nlate "));
    dir.fails("disk emulate ssd-sata --backing d.img", 1, "another process holds its lock");
    send(&disk.child, "-TERM");
    assert_eq!(disk.child.wait().expect("it ends").code(), Some(0));
    assert!(!dir.path("here").exists(), "the folder was made for it");
    dir.fails("disk stats here", 1, "no emulated disk has its control file");
}

/// As a server that is gone: a disk whose program stands still answers nothing.
#[test]
fn a_meter_whose_storage_hangs_tells_what_it_measured() {
    testkit::needs!(Root, Fuse);
    let dir = TestDir::new();
    let mut disk = emulate(&dir, "ssd-nvme --backing d.img --size 8MiB --at here --no-delay");
    let line = "meter run --profile audio-16ch --streams 4 --duration 10min --target here/disk \
                --out run";
    let mut meter = program(&dir.path("."))
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tenuto runs");
    while !dir.path("run/operations.parquet").exists() {
        assert!(meter.try_wait().expect("a child").is_none(), "the meter ended before it began");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Each stream wants a frame every 40 ms.
    std::thread::sleep(Duration::from_millis(300));
    send(&disk.child, "-STOP");
    std::thread::sleep(Duration::from_millis(300));
    send(&meter, "-INT");
    // It has told before it ends: the kernel keeps who reads until the disk is back.
    let told = BufReader::new(meter.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let told: Vec<String> = told.take_while(|line| !line.starts_with("broke first")).collect();
    send(&disk.child, "-CONT");
    let ended = meter.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert!(said.contains("the storage hangs: ") && said.contains("did not complete"), "{said}");
    assert!(told.iter().any(|line| line.starts_with("frames ")), "{told:?}");
    let kept: Value = serde_json::from_slice(&dir.read("run/summary.json")).unwrap();
    assert!(kept["stuck"].as_u64().unwrap() > 0, "{kept}");
    assert_eq!(dir.json("meter report run")["summary_agrees"], true);
    send(&disk.child, "-TERM");
    disk.child.wait().expect("it ends");
}

#[test]
fn what_a_killed_one_leaves_is_taken_down_by_the_next() {
    testkit::needs!(Root, Fuse);
    let dir = TestDir::new();
    let mut disk = emulate(&dir, "ssd-nvme --backing d.img --size 1MiB");
    send(&disk.child, "-KILL");
    disk.child.wait().expect("it ends");
    let mut next = emulate(&dir, "ssd-nvme --backing d.img");
    let note = next.about["notes"][0].as_str().unwrap_or_default().to_owned();
    assert!(note.contains("what a dead process had left at"), "{note}");
    send(&next.child, "-INT");
    assert_eq!(next.child.wait().expect("it ends").code(), Some(0));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut next.notes, &mut said).expect("text");
    assert_eq!(said, "", "nothing else to say");
    assert!(!dir.path("d.img.emulated").exists());
}

/// Killed while a file system is mounted from its block device and its folder has been looked at:
/// the worst moment. Nobody uses the file system any more, or somebody does.
#[test]
fn what_a_killed_one_was_mounted_from_is_taken_down_or_named_by_the_next() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    for used in [false, true] {
        let dir = TestDir::new();
        let mut disk = emulate(&dir, "ssd-nvme --backing d.img --size 4MiB --attach --no-delay");
        let device = disk.about["device"].as_str().unwrap().to_owned();
        let mount = dir.path("mnt");
        std::fs::create_dir(&mount).unwrap();
        shell(&format!("mkfs.ext2 -q -F {device} && mount {device} {}", mount.display()));
        let folder = dir.path("d.img.emulated");
        assert!(folder.metadata().unwrap().is_dir());
        dir.fails(
            &format!("calibrate {device}"),
            1,
            "release it first: the reads of other programs would be measured, too",
        );
        let held = used.then(|| std::fs::File::open(mount.join("lost+found")).unwrap());
        send(&disk.child, "-KILL");
        disk.child.wait().expect("it ends");
        let mut next = emulate(&dir, "ssd-nvme --backing d.img");
        let note = next.about["notes"][0].as_str().unwrap_or_default().to_owned();
        let there = mount.display();
        if used {
            let by_hand = format!("take it down with `umount {there}`");
            assert!(note.contains(&by_hand), "{note}");
            drop(held);
            shell(&format!("umount {there}"));
        } else {
            assert!(note.ends_with(&format!(", and {there}, which was mounted from it")), "{note}");
            std::fs::remove_dir(&mount).unwrap();
        }
        send(&next.child, "-INT");
        assert_eq!(next.child.wait().expect("it ends").code(), Some(0));
        assert!(!folder.exists());
    }
}

/// A first signal waits for a program that has a file open there; a second one does not, and a
/// third one changes nothing.
#[test]
fn a_second_signal_removes_a_disk_in_use() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    let dir = TestDir::new();
    let mut disk = emulate(&dir, "st39183w --backing d.img --size 4MiB --attach --no-delay");
    let device = disk.about["device"].as_str().unwrap().to_owned();
    let mount = dir.path("mnt");
    std::fs::create_dir(&mount).unwrap();
    shell(&format!("mkfs.ext2 -q -F {device} && mount {device} {}", mount.display()));
    let held = std::fs::File::create(mount.join("film")).unwrap();
    send(&disk.child, "-INT");
    let mut said = String::new();
    disk.notes.read_line(&mut said).expect("text");
    assert!(
        said.contains("waiting for the users of the disk: ") && said.contains("a second signal"),
        "{said}"
    );
    for _ in 0..2 {
        send(&disk.child, "-INT");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let code = disk.child.wait().expect("it ends").code();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut disk.notes, &mut rest).expect("text");
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("error: the disk was removed: "), "{rest}");
    assert!(!dir.path("d.img.emulated").exists());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&*mount.to_string_lossy()), "{mounts}");
    held.sync_all().expect_err("its disk is gone");
    drop(held);
    let mut next = emulate(&dir, "st39183w --backing d.img");
    assert_eq!(next.about["notes"].as_array().map(Vec::len), Some(0), "{}", next.about);
    send(&next.child, "-TERM");
    assert_eq!(next.child.wait().expect("it ends").code(), Some(0));
}

/// The loop device of a disk with an arm, measured bare, then as a store, then as one that is
/// being served. What is measured is the machine's; that it is measured is what is tested.
#[test]
fn an_emulated_disk_is_calibrated_bare_as_a_store_and_being_served() {
    testkit::needs!(Root, Fuse);
    let dir = TestDir::new();
    let mut disk = emulate(&dir, "st39183w --backing d.img --size 128MiB --attach --time-scale 5");
    let device = disk.about["device"].as_str().unwrap().to_owned();
    std::os::unix::fs::symlink(&device, dir.path("a.store")).unwrap();
    // Twice: the first has let go of the device when it ends.
    for _ in 0..2 {
        let bare = dir.json("calibrate a.store --time 1s");
        assert_eq!(bare["writing"], Value::Null, "not a word of destroying: {bare}");
        assert!(bare["guarantees"][0]["min_read"].as_u64().unwrap() > 0, "{bare}");
    }
    dir.ok("disk stats d.img --delay off");
    dir.ok("format a.store");
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    dir.fails(
        "calibrate a.store --destroy",
        1,
        "a.store is a store, which calibrate does not overwrite",
    );
    dir.ok("disk stats d.img --delay on");
    let alone = dir.json("calibrate a.store --time 1s");
    let served = dir.serve("");
    let beside = dir.json("calibrate a.store --time 1s");
    for measured in [&alone, &beside] {
        let usual = measured["guarantees"][0]["mean_read"].as_f64().unwrap();
        assert!(usual > 0.0, "{measured}");
    }
    drop(served);
    send(&disk.child, "-TERM");
    assert_eq!(disk.child.wait().expect("it ends").code(), Some(0));
}

fn shell(line: &str) {
    let output = Command::new("sh").args(["-c", line]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

#[test]
fn what_cannot_be_emulated_is_refused_with_the_way_out() {
    let dir = TestDir::new();
    dir.write("small.img", vec![0; 1 << 20]);
    for (line, code, words) in [
        ("disk emulate hdd-20tb", 2, "--backing is missing\nhint: name a file"),
        ("disk emulate floppy --backing d.img --size 1MiB", 2, "no disk model 'floppy'"),
        (
            "disk stats nowhere",
            1,
            "no emulated disk has its control file at nowhere.emulated/control",
        ),
        (
            "reproduce alderman-bounds --emulated",
            2,
            "with it there are alderman-table1, alderman-rounds, lee-streams, lee-drift",
        ),
        (
            "reproduce lee-streams --emulated --filesystems raw,xfs",
            2,
            "lee-streams does not measure 'xfs'\nhint: name some of raw, ext2",
        ),
        (
            "reproduce alderman-table1 --emulated --filesystems ext9",
            2,
            "'ext9' is none of raw, ext2, ext4",
        ),
        (
            "reproduce alderman-table1 --emulated --backing small.img",
            1,
            "small.img would be overwritten\nhint: if that is meant, allow it with --destroy",
        ),
        (
            "reproduce alderman-table1 --emulated --block 2MB",
            1,
            "hint: ask for fewer or smaller ones",
        ),
    ] {
        dir.fails(line, code, words);
    }
}

#[test]
fn what_is_no_disks_backing_is_refused_by_those_who_emulate() {
    testkit::needs!(Root, Fuse);
    let dir = TestDir::new();
    dir.write("small.img", vec![0; 1 << 20]);
    std::fs::File::create(dir.path("sparse.img")).unwrap().set_len(9_105_018_880).unwrap();
    let again = "reproduce alderman-rounds --emulated --filesystems raw --destroy";
    dir.fails(&format!("{again} --backing small.img"), 1, "hint: take a larger file");
    dir.fails(&format!("{again} --backing sparse.img"), 1, "fill it with `fallocate -l 9105018880");
    dir.fails("disk emulate ssd-sata --backing /dev/null --size 1MiB", 1, "it is no regular file");
    assert!(dir.path("small.img").exists(), "what was there stays there");
    // Nobody, who may not mount: nothing is made, and it says what is missing.
    // A checkout in a home folder is not for everybody: the program is copied to where it is.
    dir.install(env!("CARGO_BIN_EXE_tenuto"), "tenuto");
    let output = Command::new(dir.path("tenuto"))
        .current_dir(dir.path("."))
        .env("XDG_RUNTIME_DIR", dir.path("."))
        .args("disk emulate ssd-sata --backing n.img --size 1MiB --attach".split(' '))
        .uid(65534)
        .output();
    let output = output.expect("tenuto runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a block device needs root"), "{said}");
    assert!(!dir.path("n.img").exists());
}
