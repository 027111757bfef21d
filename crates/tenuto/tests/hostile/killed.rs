//! Processes that are killed in the middle of their work: what was in the store is there, what was
//! not finished is not, and nobody they started lives on.

use crate::program::{TestDir, program};
use crate::stage::{assert_unchanged, connect, eventually, ffmpeg, holdings};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A folder with a title in its store, and an `ffmpeg` that remuxes half of a film and then hangs.
struct Halfway {
    dir: TestDir,
}

impl Halfway {
    fn new() -> Self {
        let dir = TestDir::with_store();
        dir.film("old.mkv");
        dir.ok("ingest a.store old.mkv");
        dir.film("new.mkv");
        let whole = ffmpeg(
            &dir,
            "-i new.mkv -c copy -movflags +empty_moov+default_base_moof+frag_keyframe",
            "whole.mp4",
        );
        let whole = std::fs::read(whole).unwrap();
        std::fs::create_dir(dir.path("bin")).unwrap();
        dir.write("bin/half.mp4", &whole[..whole.len() / 2]);
        dir.write("hangs.sh", HANGS);
        dir.install(dir.path("hangs.sh"), "bin/ffmpeg");
        Self { dir }
    }

    /// `tenuto`, which finds the `ffmpeg` that hangs.
    fn program(&self) -> Command {
        let mut command = program(&self.dir.path("."));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.dir.path("bin").display()));
        command
    }

    /// Begins to take a film in.
    fn ingest(&self) -> Child {
        let mut command = self.program();
        command.args(["ingest", "a.store", "new.mkv"]).stderr(Stdio::piped()).stdout(Stdio::null());
        command.spawn().expect("tenuto runs")
    }

    /// Waits until the film is half-way in; the process that hangs.
    fn wait_for_half(&self) -> String {
        let mut found = None;
        eventually("half of the film is in", || {
            let names = std::fs::read_dir(self.dir.path("bin")).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            found = names.find_map(|name| Some(name.strip_prefix("half-way.")?.to_owned()));
            found.is_some()
        });
        found.expect("just found")
    }
}

/// A program that may write no files, but make folders. `exec`, so that who hangs is who was
/// started.
const HANGS: &str = "#!/bin/sh\n\
    here=$(dirname \"$0\")\n\
    cat \"$here/half.mp4\"\n\
    mkdir \"$here/half-way.$$\"\n\
    exec sleep 120\n";

#[test]
fn an_ingest_that_is_killed_leaves_nothing() {
    let scene = Halfway::new();
    let before = holdings(&scene.dir);
    let mut ingest = scene.ingest();
    let ffmpeg = scene.wait_for_half();
    ingest.kill().unwrap();
    ingest.wait().unwrap();
    eventually("FFmpeg is gone, too", || !Path::new("/proc").join(&ffmpeg).exists());
    assert_unchanged(&scene.dir, &before, "killed half-way");
    scene.dir.ok("ingest a.store new.mkv");
}

#[test]
fn an_ingest_that_is_killed_at_any_moment_is_done_or_was_never_begun() {
    let dir = TestDir::with_store();
    dir.write("data.bin", vec![1; 24 << 20]);
    let before = holdings(&dir);
    for ms in [0, 3, 6, 10, 15, 22, 30, 40, 60] {
        let mut command = program(&dir.path("."));
        command.args(["ingest", "a.store", "data.bin", "--as", "file"]).stdout(Stdio::null());
        let mut ingest = command.spawn().expect("tenuto runs");
        std::thread::sleep(Duration::from_millis(ms));
        ingest.kill().unwrap();
        ingest.wait().unwrap();
        assert_eq!(dir.json("check a.store --scrub")["clean"], true, "after {ms} ms");
        if !dir.ok("ls a.store").is_empty() {
            dir.ok("export a.store data back.bin --destroy");
            assert!(dir.read("back.bin") == dir.read("data.bin"), "after {ms} ms");
            dir.ok("rm a.store data");
        }
        assert_eq!(holdings(&dir), before, "after {ms} ms");
    }
}

#[test]
fn commands_that_are_killed_are_done_or_were_never_begun() {
    let dir = TestDir::with_store();
    dir.write("data.bin", vec![1; 1 << 20]);
    dir.ok("ingest a.store data.bin --as file");
    for ms in [0, 1, 2, 3, 4, 6, 8, 12, 20] {
        let killed = |line: &str| {
            let mut command = program(&dir.path("."));
            command.args(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("tenuto runs");
            std::thread::sleep(Duration::from_millis(ms));
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(dir.json("check a.store --scrub")["clean"], true, "{line} after {ms} ms");
            dir.ok("ls a.store")
        };
        match &*killed("rename a.store data other") {
            "data\n" => {}
            "other\n" => drop(dir.ok("rename a.store other data")),
            names => panic!("after {ms} ms: {names}"),
        }
        match &*killed("rm a.store data") {
            "data\n" => {}
            "" => drop(dir.ok("ingest a.store data.bin --as file")),
            names => panic!("after {ms} ms: {names}"),
        }
        dir.ok("export a.store data back.bin --destroy");
        assert!(dir.read("back.bin") == dir.read("data.bin"), "after {ms} ms");
    }
}

#[test]
fn a_server_killed_while_it_plays_and_takes_in_leaves_a_store_as_it_was() {
    let scene = Halfway::new();
    let dir = &scene.dir;
    let before = holdings(dir);
    let server = dir.serve_by(scene.program(), "");
    let mut viewer = connect(&server);
    let (address, whole) = viewer.get_following("/t/old.mp4");
    viewer.send(format!("GET {address} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
    let mut client = scene.ingest();
    let ffmpeg = scene.wait_for_half();
    // Dropping it is SIGKILL.
    drop(server);
    assert_eq!(client.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.starts_with("error: lost the connection to the store's server"), "{said}");
    assert!(said.ends_with("hint: try again when it runs\n"), "{said}");
    eventually("FFmpeg is gone, too", || !Path::new("/proc").join(&ffmpeg).exists());
    assert_unchanged(dir, &before, "killed half-way");
    let server = dir.serve("");
    let (_, again) = connect(&server).get_following("/t/old.mp4");
    assert!(again.status == 200 && again.body == whole.body, "it plays as before");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_client_that_is_killed_calls_off_what_the_server_does_for_it() {
    let scene = Halfway::new();
    let before = holdings(&scene.dir);
    let server = scene.dir.serve_by(scene.program(), "");
    let mut client = scene.ingest();
    let ffmpeg = scene.wait_for_half();
    client.kill().unwrap();
    client.wait().unwrap();
    eventually("the server has called it off", || !Path::new("/proc").join(&ffmpeg).exists());
    eventually("its space is free again", || holdings(&scene.dir) == before);
    assert_unchanged(&scene.dir, &before, "called off");
    assert_eq!(server.stop(), Some(0));
}

/// Forty titles move from one store to another; the command is killed again and again, ever later,
/// and goes on where it was.
#[test]
fn a_library_that_is_killed_between_many_titles_loses_none() {
    let dir = TestDir::with_store();
    for store in ["from.store", "to.store"] {
        dir.ok(&format!("format {store} --size 64MiB --chunk 64KiB"));
    }
    let name = |title: usize| format!("t{title:02}");
    let content = |title: usize| vec![u8::try_from(title).unwrap() + 1; 30_000 + title * 997];
    let all: Vec<String> = (0..40).map(name).collect();
    for title in 0..40 {
        dir.write(&format!("{}.bin", name(title)), content(title));
    }
    let files: Vec<String> = all.iter().map(|name| format!("{name}.bin")).collect();
    dir.ok(&format!("ingest from.store {} --as file", files.join(" ")));
    let names = |store: &str| -> BTreeSet<String> {
        dir.ok(&format!("ls {store}")).lines().map(str::to_owned).collect()
    };
    let words: Vec<&str> = "library to.store --empty from.store --apply".split(' ').collect();
    let (mut wait, mut in_the_middle) = (Duration::from_millis(40), 0);
    loop {
        let mut command = program(&dir.path("."));
        let mut moving = command.args(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let moving = moving.as_mut().expect("tenuto runs");
        std::thread::sleep(wait);
        // It may have ended by itself.
        let ended = moving.try_wait().unwrap();
        moving.kill().unwrap();
        moving.wait().unwrap();
        for store in ["from.store", "to.store"] {
            let report = dir.json(&format!("check {store}"));
            assert_eq!(report["clean"], true, "after {wait:?}: {report}");
        }
        let (from, to) = (names("from.store"), names("to.store"));
        assert_eq!(from.union(&to).count(), all.len(), "after {wait:?}: {from:?} {to:?}");
        if let Some(status) = ended {
            assert!(status.success(), "after {wait:?}");
            break;
        }
        in_the_middle += usize::from(!to.is_empty() && !from.is_empty());
        wait += wait / 2;
    }
    assert!(in_the_middle >= 2, "killed {in_the_middle} times in the middle");
    assert!(names("from.store").is_empty() && names("to.store").into_iter().eq(all));
    for title in [0, 21, 39] {
        dir.ok(&format!("export to.store {} back.bin --destroy", name(title)));
        assert!(dir.read("back.bin") == content(title), "{}", name(title));
    }
    assert_eq!(dir.json("check to.store --scrub")["clean"], true);
    assert_eq!(dir.json("library to.store from.store")["done"], true);
}
