//! A store that nobody serves.

use crate::program::TestDir;
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
fn format_overwrites_nothing_without_the_word() {
    let dir = TestDir::with_store();
    dir.write("note.txt", "hi\n");
    dir.write("film.mkv", vec![7; 2 << 20]);
    for name in ["a.store", "note.txt", "film.mkv"] {
        let before = dir.read(name);
        let line = format!("format {name} --size 64MiB");
        dir.fails(
            &line,
            1,
            "would be overwritten\nhint: if that is meant, allow it with --destroy",
        );
        assert!(dir.read(name) == before, "{name} is as it was");
        dir.ok(&format!("{line} --destroy"));
    }
}

#[test]
fn format_says_what_it_needs() {
    let dir = TestDir::new();
    dir.fails(
        "format a.store",
        1,
        "a.store does not exist\nhint: give the size of a new file, for example --size 40GiB",
    );
    dir.fails("format a.store --size 64KiB", 1, "choose a larger --size");
    dir.fails("format a.store --size 64MiB --chunk 3MiB", 2, "a power of two");
    assert_eq!(dir.path(".").read_dir().unwrap().count(), 0, "nothing was made");
    dir.ok("format decimal.store --size 100MB");
    let info = dir.json("format a.store --size 64MiB --label films");
    assert_eq!((&info["label"], &info["size"]), (&json!("films"), &json!(64 << 20)));
    assert_eq!(dir.json("info a.store")["uuid"], info["uuid"]);
}

#[test]
fn a_store_grows_and_says_why_it_does_not() {
    let dir = TestDir::with_store();
    dir.write("a.bin", vec![1; 40 << 20]);
    dir.write("b.bin", vec![2; 60 << 20]);
    dir.ok("ingest a.store a.bin --as file");
    dir.fails("ingest a.store b.bin --as file", 1, "the store is full");

    let has =
        "the store is 64 MiB long, and a size of 64 MiB adds nothing to it\nhint: give a larger";
    dir.fails("resize a.store", 1, has);
    dir.fails("resize a.store 64MiB", 1, has);
    let shorter = "a store cannot become shorter: it is 64 MiB long, and not 32 MiB\nhint: make a";
    dir.fails("resize a.store 32MiB", 1, shorter);
    dir.fails("resize a.bin 128MiB", 1, "is not a Tenuto store");
    dir.fails("resize none.store 128MiB", 1, "none.store");
    let server = dir.serve("");
    dir.fails("resize a.store 128MiB", 1, "in use by another process\nhint: stop the server");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(dir.path("a.store").metadata().unwrap().len(), 64 << 20, "nothing changed");

    let grown = dir.json("resize a.store 128MiB");
    assert_eq!(grown, json!({ "before": 64 << 20, "size": 128 << 20 }));
    dir.ok("ingest a.store b.bin --as file");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    // A file that is longer already, as after a power cut or on a grown device.
    let file = std::fs::OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.set_len(200 << 20).unwrap();
    assert_eq!(dir.json("resize a.store")["size"], json!(200 << 20));
    for name in ["a", "b"] {
        dir.ok(&format!("export a.store {name} {name}.out"));
        assert!(dir.read(&format!("{name}.out")) == dir.read(&format!("{name}.bin")), "{name}");
    }
    file.set_len(100 << 20).unwrap();
    dir.fails("resize a.store 300MiB", 1, "hint: give the device or file its old length back");
    assert_eq!(dir.path("a.store").metadata().unwrap().len(), 100 << 20, "nothing changed");
}

#[test]
fn a_store_takes_what_its_block_device_has_gained() {
    testkit::needs!(Root, Loop, Program("losetup"));
    let dir = TestDir::new();
    File::create(dir.path("disk")).unwrap().set_len(64 << 20).unwrap();
    let losetup = |args: &[&str]| {
        let output =
            Command::new("losetup").args(args).current_dir(dir.path(".")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let disk = losetup(&["--find", "--show", "disk"]);
    let _end = Defer(|| drop(losetup(&["--detach", &disk])));
    dir.ok(&format!("format {disk} --destroy"));
    dir.write("a.bin", vec![1; 40 << 20]);
    dir.ok(&format!("ingest {disk} a.bin --as file"));
    dir.fails(&format!("resize {disk}"), 1, "a block device must be made larger");
    let too_long = "160 MiB were requested, and the device has only 64 MiB\nhint: make the device";
    dir.fails(&format!("resize {disk} 160MiB"), 1, too_long);
    File::options().write(true).open(dir.path("disk")).unwrap().set_len(160 << 20).unwrap();
    losetup(&["--set-capacity", &disk]);
    assert_eq!(dir.json(&format!("resize {disk} 100MiB"))["size"], json!(100 << 20));
    assert_eq!(dir.json(&format!("resize {disk}"))["size"], json!(160 << 20));
    assert_eq!(dir.json(&format!("check {disk} --scrub"))["clean"], json!(true));
    dir.ok(&format!("export {disk} a a.out"));
    assert!(dir.read("a.out") == dir.read("a.bin"));

    let queue = Path::new("/sys/block").join(disk.rsplit('/').next().unwrap()).join("queue");
    // Zero where an emulated disk was attached before: the kernel keeps that with the loop device.
    let most = std::fs::read_to_string(queue.join("discard_max_bytes")).unwrap();
    if most.trim() == "0" {
        let cannot = "its device cannot discard\nhint: nothing is to be done";
        dir.fails(&format!("trim {disk}"), 1, cannot);
        return;
    }
    let free = dir.json(&format!("info {disk}"))["free_bytes"].clone();
    let trimmed = dir.json(&format!("trim {disk}"));
    assert_eq!(trimmed, json!({ "bytes": free, "sparse": false }));
    assert_eq!(dir.json(&format!("check {disk} --scrub"))["clean"], json!(true));
    assert!(dir.path("disk").metadata().unwrap().blocks() * 512 < 60 << 20);
}

#[test]
fn the_space_of_removed_titles_is_given_back() {
    let dir = TestDir::with_store();
    let held = || dir.path("a.store").metadata().unwrap().blocks() * 512;
    for name in ["a.bin", "b.bin"] {
        dir.write(name, vec![1; 20 << 20]);
        dir.ok(&format!("ingest a.store {name} --as file"));
    }
    dir.ok("rm a.store a");
    assert!(held() >= 64 << 20, "all of its space");
    let free = dir.json("info a.store")["free_bytes"].clone();
    assert_eq!(dir.json("trim a.store"), json!({ "bytes": free, "sparse": true }));
    let left = 64 * 1024 * 1024 - free.as_u64().unwrap();
    // A file system may keep a little more for itself.
    assert!((left..left + (1 << 20)).contains(&held()), "{} of {left}", held());
    dir.ok("export a.store b b.out");
    assert!(dir.read("b.out") == dir.read("b.bin"));
    // Served.
    let server = dir.serve("");
    dir.ok("ingest a.store a.bin --as file");
    dir.ok("rm a.store a");
    let said = dir.ok("trim a.store");
    assert!(said.ends_with("of free space discarded; its file has holes now: writes may find the file system full\n"), "{said}");
    assert_eq!(dir.json("info a.store")["sparse"], json!(true));
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    assert_eq!(server.stop(), Some(0));
    assert!(held() < 40 << 20, "{}", held());
}

/// Runs its function when it is dropped.
struct Defer<F: Fn()>(F);

impl<F: Fn()> Drop for Defer<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn films_go_in_and_come_out() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.write("words.txt", "no film\n");
    let run = dir.run("ingest a.store words.txt film.mkv absent.mkv");
    assert_eq!(run.code, Some(1), "two of three were not taken in");
    assert!(run.out.starts_with("'film' is in the store: 4.0 s, 2 tracks"), "{}", run.out);
    assert!(run.err.contains("words.txt is not taken in"), "{}", run.err);
    assert!(run.err.contains("absent.mkv"), "{}", run.err);

    dir.ok("ingest a.store words.txt --as file");
    assert_eq!(dir.ok("ls a.store"), "film\nwords\n");
    let titles = dir.json("ls a.store");
    let kinds: Vec<(&Value, &Value)> = titles["titles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|title| (&title["name"], &title["kind"]))
        .collect();
    assert_eq!(kinds, [(&json!("film"), &json!("media")), (&json!("words"), &json!("file"))]);
    let film = dir.json("info a.store film");
    let kinds: Vec<&Value> =
        film["track_list"].as_array().unwrap().iter().map(|track| &track["kind"]).collect();
    assert_eq!(kinds, ["video", "audio"]);
    assert_eq!(film["track_list"][0]["ldus"], 100);
    assert_eq!(film["track_list"][1]["purposes"], json!([]));

    dir.ok("export a.store words back.txt");
    assert_eq!(dir.read("back.txt"), b"no film\n");
    dir.ok("export a.store film out.mp4");
    dir.write("old.mp4", "old");
    dir.fails("export a.store film old.mp4", 1, "would be overwritten");
    assert_eq!(dir.read("old.mp4"), b"old");
    dir.ok("export a.store film old.mp4 --destroy");
    assert!(dir.read("old.mp4") == dir.read("out.mp4"), "the same file again");
    // Whatever is allowed: no store, also a damaged one, and no folder or device.
    dir.ok("format b.store --size 64MiB");
    let mut damaged = dir.read("b.store");
    damaged[100..108].fill(0);
    dir.write("b.store", damaged);
    std::fs::create_dir(dir.path("folder")).unwrap();
    for (out, why) in [
        ("a.store", "is a Tenuto store"),
        ("b.store", "is a Tenuto store"),
        ("folder", "is a directory"),
        ("/dev/null", "is not a regular file"),
    ] {
        dir.fails(&format!("export a.store film {out} --destroy"), 1, why);
    }
    dir.ok("info a.store film");
}

#[test]
fn names_are_kept_apart() {
    let dir = TestDir::with_store();
    dir.write("a.txt", "a");
    dir.write("b.txt", "b");
    dir.ok("ingest a.store a.txt b.txt --as file");
    dir.fails("ingest a.store a.txt --as file", 1, "there is already a title 'a'");
    dir.fails("rename a.store a b", 1, "there is already a title 'b'");
    for line in ["info a.store A", "rm a.store A", "rename a.store A c", "export a.store A c"] {
        dir.fails(line, 1, "error: there is no title 'A'\nhint: did you mean 'a'?\n");
    }
    dir.fails("info a.store words", 1, "hint: `tenuto ls` lists the titles\n");
    dir.fails("rename a.store c d", 1, "there is no title 'c'");
    dir.ok("rename a.store a c");
    assert_eq!(dir.ok("ls a.store"), "b\nc\n");
    assert_eq!(dir.json("rm a.store b")["in_use"], json!(false));
    dir.fails("rm a.store b", 1, "there is no title 'b'");
    assert_eq!(dir.ok("ls a.store"), "c\n");
    dir.fails("export a.store b out", 1, "there is no title 'b'");
    dir.fails("info a.store b", 1, "there is no title 'b'");
}

#[test]
fn damage_is_found_and_never_given_out() {
    let dir = TestDir::with_store();
    dir.write("data.bin", vec![1; 300_000]);
    dir.ok("ingest a.store data.bin --as file");
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));

    let chunk = dir.json("info a.store")["chunk"].as_u64().unwrap();
    let extents = &dir.json("info a.store data")["track_list"][0]["extents"];
    let place = extents[0]["start"].as_u64().unwrap() * chunk + 200_000;
    let file = std::fs::OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.write_all_at(&[2], place).unwrap();

    let run = dir.run("check a.store --scrub --json");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &report["clean"]), (Some(4), &json!(false)));
    assert_eq!(dir.json("info a.store")["scrub"]["last_damage"], json!(1));
    let kinds: Vec<(&Value, &Value)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (&finding["kind"], &finding["title"]))
        .collect();
    assert_eq!(kinds, [(&json!("data"), &json!("data"))]);
    dir.fails("export a.store data out.bin", 4, "damaged data in title 'data'");
    dir.fails("export a.store data out.bin", 4, "hint: repair it from a store with a copy:");
    assert!(!dir.path("out.bin").exists(), "nothing half is left");
}

#[test]
fn what_is_no_store_is_named() {
    let dir = TestDir::new();
    dir.write("film.mkv", vec![7; 1 << 20]);
    dir.fails(
        "ls film.mkv",
        1,
        "film.mkv is not a Tenuto store\nhint: check the path; `tenuto format` makes",
    );
    dir.fails("ls absent.store", 1, "absent.store");
    dir.fails("serve film.mkv --listen 127.0.0.1:0", 1, "film.mkv");
}

#[test]
fn any_disk_is_measured_and_nothing_is_written_without_the_word() {
    let dir = TestDir::with_store();
    dir.write("a.disk", vec![7; 24 << 20]);
    let before = dir.read("a.disk");
    let found = dir.json("calibrate a.disk --time 200ms");
    let sizes: Vec<&Value> =
        found["guarantees"].as_array().unwrap().iter().map(|g| &g["read_size"]).collect();
    assert_eq!(sizes, [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]);
    assert_eq!(found["writing"], Value::Null);
    assert!(dir.read("a.disk") == before, "only read");

    let found = dir.json("calibrate a.disk --time 200ms --destroy --write-model mine.toml");
    assert_eq!(found["writing"]["write_size"], 1 << 20);
    let after = dir.read("a.disk");
    assert!(after != before && after[..12 << 20] == before[..12 << 20], "only in the middle");

    let fitted = dir.json("disk models mine.toml");
    assert_eq!((&fitted["name"], &fitted["size"]), (&json!("mine"), &json!(24 << 20)));
    dir.ok("plan --model mine.toml --rate 5Mbps --memory 64MiB");
    dir.fails("calibrate a.disk --write-model mine.toml", 1, "mine.toml would be overwritten");

    let store = dir.read("a.store");
    dir.fails("calibrate a.store --destroy", 1, "is a store, which calibrate does not overwrite");
    assert!(dir.read("a.store") == store);
    let sparse = std::fs::File::create(dir.path("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    dir.fails("calibrate sparse", 1, "is sparse: only 0 B of 1 GiB are allocated");
    dir.write("tiny", vec![7; 8192]);
    dir.fails("calibrate tiny", 1, "8 KiB is too little to calibrate reads of 64 KiB in");
    dir.fails("calibrate absent", 1, "absent");
}

#[test]
fn what_the_kernel_says_of_a_disk_is_shown() {
    let dir = TestDir::new();
    dir.write("a.disk", vec![7; 1 << 20]);
    let shown = dir.json("disk show a.disk");
    assert_eq!((&shown["kind"], &shown["size"]), (&json!("file"), &json!(1 << 20)));
    assert_eq!((&shown["sparse"], &shown["unreadable"]), (&json!(false), &Value::Null));
    let methods = shown["methods"].as_array().unwrap();
    let works = |name: &str| methods.iter().find(|m| m["name"] == name).unwrap()["works"].clone();
    assert_eq!((works("threads"), works("pread")), (json!(true), json!(true)));
    assert!(dir.ok("disk show a.disk").contains("posix-aio"));
    dir.fails("disk show absent", 1, "absent");
}

#[test]
fn a_user_who_may_only_read_a_store_can_list_check_and_export() {
    testkit::needs!(Root);
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let dir = TestDir::with_store();
    dir.write("a.txt", "words\n");
    dir.ok("ingest a.store a.txt --as file");
    let mode = |name: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path(name), mode).unwrap();
    };
    // A copy, because that user may be unable to reach the one under `target`.
    dir.install(env!("CARGO_BIN_EXE_tenuto"), "tenuto");
    mode("a.store", 0o644);
    mode(".", 0o777);
    let before = dir.read("a.store");
    let run = |line: &str| {
        let mut command = std::process::Command::new(dir.path("tenuto"));
        command.args(line.split(' ')).current_dir(dir.path(".")).uid(NOBODY).gid(NOBODY);
        let output = command.env("XDG_RUNTIME_DIR", dir.path(".")).output().expect("tenuto runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for (line, words) in [
        ("ls a.store", "a\n"),
        ("info a.store", "titles      1"),
        ("info a.store a", "kind    file"),
        ("check a.store --scrub", "nothing to repair in 1 title ("),
        ("export a.store a copy.txt", "'a' is in "),
    ] {
        let (code, out, err) = run(line);
        assert_eq!((code, err.as_str()), (Some(0), ""), "tenuto {line}");
        assert!(out.contains(words), "tenuto {line}: {out}");
    }
    assert_eq!(dir.read("copy.txt"), b"words\n");
    let (code, _, err) = run("rm a.store a");
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot open a.store: Permission denied"), "{err}");
    assert!(dir.read("a.store") == before, "nothing is written");
}

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// A server that starts has its store some seconds before it answers for it: it measures the disk.
#[test]
fn a_command_waits_for_a_store_that_is_just_being_opened() {
    let dir = TestDir::with_store();
    let owner = File::open(dir.path("a.store")).unwrap();
    owner.lock().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| dir.run("ls a.store --json"));
        thread::sleep(Duration::from_millis(600));
        assert!(!waiting.is_finished(), "nobody may open what another process has");
        owner.unlock().unwrap();
        let run = waiting.join().unwrap();
        assert_eq!((run.code, run.out.contains("titles")), (Some(0), true), "{}", run.err);
    });
}
