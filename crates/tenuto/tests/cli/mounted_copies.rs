//! A mounted store of which there is another mount. A bind mount is one, and a mount namespace that
//! is made later (of a container, of a unit of systemd) begins with one.
//!
//! No namespace here: it would have copies of the mounts of all tests that run meanwhile.

use crate::mounted::{LeftMount, Mounted, noise, run};
use crate::program::{TestDir, program};
use crate::served::restarted;
use rustix::mount::UnmountFlags;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Binds what is mounted at a path to another directory, until it is dropped.
fn copy(dir: &TestDir, of: &str, name: &str) -> (LeftMount, PathBuf) {
    let at = dir.path(name);
    fs::create_dir_all(&at).expect("a directory");
    run(&["mount", "--bind", dir.path(of).to_str().unwrap(), at.to_str().unwrap()]);
    (LeftMount(at.clone()), at.join("a.bin"))
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn with_a_title() -> TestDir {
    let dir = TestDir::with_store();
    dir.write("a.bin", noise(300_000));
    dir.ok("ingest a.store a.bin --as file --title a.bin");
    dir
}

#[test]
fn a_copy_of_a_mount_keeps_it_until_a_second_signal() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = with_a_title();
    let mut mounted = Mounted::start(&dir, "");
    let (_copy, file) = copy(&dir, "mnt", "copy");
    mounted.signal();
    until("it is unmounted here", || !dir.path("mnt/a.bin").exists());
    assert!(fs::read(&file).unwrap() == noise(300_000), "it goes on for those that have a copy");
    mounted.signal();
    until("a second signal ends it", || mounted.child.try_wait().unwrap().is_some());
    let (code, said) = mounted.end();
    assert_eq!(code, Some(1), "{said}");
    let waits = "waiting for programs that use mnt: a bind mount or another mount namespace has a \
                 copy of it; a second signal unmounts it at once";
    assert!(said.contains(waits), "{said}");
    assert!(fs::read(&file).is_err(), "the copy has lost its server");
    drop(mounted);

    // It ends by itself when the last copy has gone.
    let mut mounted = Mounted::start(&dir, "");
    let (copy, file) = copy(&dir, "mnt", "other");
    mounted.signal();
    until("it is unmounted here", || !dir.path("mnt/a.bin").exists());
    assert!(fs::read(&file).unwrap() == noise(300_000));
    drop(copy);
    until("it ends with its copy", || mounted.child.try_wait().unwrap().is_some());
    assert_eq!(mounted.end().0, Some(0));
}

#[test]
fn a_server_restarts_and_stops_though_its_mount_has_a_copy() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = with_a_title();
    let _left = LeftMount(dir.path("mnt/a.store"));
    let mut command = program(&dir.path(""));
    command.stderr(Stdio::piped());
    let mut server = dir.serve_by(command, "--mount mnt --grace 1s --access-log log");
    let mounted = dir.path("mnt/a.store/a.bin");
    until("it is mounted soon after the start", || mounted.exists());
    let (_before, before) = copy(&dir, "mnt/a.store", "before");
    assert!(fs::read(&before).unwrap() == noise(300_000));
    restarted(&dir, &server, "restarted");
    until("it is mounted again", || mounted.exists());
    assert!(fs::read(&before).is_err(), "the copy has lost its server");
    let (_after, after) = copy(&dir, "mnt/a.store", "after");
    assert!(fs::read(&after).unwrap() == noise(300_000));
    let id = server.child.id().to_string();
    run(&["kill", "-TERM", &id]);
    until("it stops", || server.child.try_wait().unwrap().is_some());
    assert!(fs::read(&after).is_err(), "the copy has lost its server");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let told = "mnt/a.store has a copy, a bind mount or in another mount namespace: the users of \
                the copy get errors from now on";
    assert_eq!(said.matches(told).count(), 2, "{said}");
    dir.ok("check a.store --scrub");
}

/// A server goes on when somebody unmounts its store, and says so. A restart that could not mount
/// it again is refused.
#[test]
fn a_store_that_is_unmounted_by_others_is_told_and_ends_no_session() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = with_a_title();
    let (at, _left) = (dir.path("mnt/a.store"), LeftMount(dir.path("mnt/a.store")));
    let mut command = program(&dir.path(""));
    command.stderr(Stdio::piped());
    let mut server = dir.serve_by(command, "--mount mnt --grace 1s --access-log log");
    let file = at.join("a.bin");
    until("it is mounted soon after the start", || file.exists());
    fs::write(at.join(".ingest/.waits"), "text").unwrap();
    until("it is unmounted", || rustix::mount::unmount(&at, UnmountFlags::empty()).is_ok());
    let event = |name: &str| {
        let log = String::from_utf8(dir.read("log")).unwrap();
        let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["event"] == name)
    };
    until("it is told", || event("unmounted").is_some() && event("mount-note").is_some());
    let told = event("unmounted").unwrap();
    assert_eq!((&told["store"], &told["directory"]), (&"a.store".into(), &"mnt/a.store".into()));
    let lost = event("mount-note").unwrap()["note"].to_string();
    assert!(lost.contains("what waited in .ingest is lost: .ingest/.waits"), "{lost}");
    let metrics = run(&["curl", "-sf", &format!("{}/metrics", server.origin)]);
    assert!(metrics.contains("\ntenuto_mounts_lost_total 1\n"), "{metrics}");
    // What is copied there now would be hidden.
    fs::write(&file, "beneath").unwrap();
    let why = restarted(&dir, &server, "not-restarted")["error"].to_string();
    assert!(why.contains("cannot mount on mnt/a.store: it is not empty"), "{why}");
    run(&["curl", "-sf", "-o", "/dev/null", &format!("{}/metrics", server.origin)]);
    fs::remove_file(&file).unwrap();
    restarted(&dir, &server, "restarted");
    until("it is mounted again", || file.exists());
    // A restart of a server whose mount is in place is as ever.
    fs::write(dir.path("log"), "").unwrap();
    restarted(&dir, &server, "restarted");
    until("it is mounted again", || file.exists());
    run(&["kill", "-TERM", &server.child.id().to_string()]);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let told = "a.store is not mounted on mnt/a.store any more: another program has unmounted it";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    // At a start it is an error.
    fs::write(&file, "beneath").unwrap();
    let run = dir.run("serve a.store --listen 127.0.0.1:0 --mount mnt");
    assert!(run.code == Some(1) && run.err.contains("it is not empty"), "{}", run.err);
}

#[test]
fn a_directory_keeps_what_others_have_mounted_there() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = with_a_title();
    let at = dir.path("mnt");
    let at = at.to_str().unwrap();
    fs::create_dir(at).unwrap();
    let is_mounted = || fs::read_to_string("/proc/self/mountinfo").unwrap().contains(at);
    let mount = || run(&["mount", "-t", "tmpfs", "none", at]);
    // Below it before, and in its place since.
    for is_below in [true, false] {
        let _others = LeftMount(dir.path("mnt"));
        if is_below {
            mount();
        }
        let mut mounted = Mounted::start(&dir, "");
        // A copy keeps it alive until the place belongs to others.
        let (copy, _) = copy(&dir, "mnt", "copy");
        if is_below {
            mounted.signal();
        } else {
            run(&["umount", at]);
            mount();
        }
        drop(copy);
        assert_eq!(mounted.end().0, Some(0));
        assert!(is_mounted(), "{is_below}");
    }
}
