//! A store that nobody serves.

use crate::program::Room;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;

#[test]
fn format_overwrites_nothing_without_the_word() {
    let room = Room::with_store();
    room.write("note.txt", "hi\n");
    room.write("film.mkv", vec![7; 2 << 20]);
    for name in ["a.store", "note.txt", "film.mkv"] {
        let before = room.read(name);
        let line = format!("format {name} --size 64MiB");
        room.fails(
            &line,
            1,
            "would be overwritten\nhint: if that is meant, allow it with --destroy",
        );
        assert!(room.read(name) == before, "{name} is as it was");
        room.ok(&format!("{line} --destroy"));
    }
}

#[test]
fn format_says_what_it_needs() {
    let room = Room::new();
    room.fails(
        "format a.store",
        1,
        "a.store does not exist\nhint: give the size of a new file, for example --size 40GiB",
    );
    room.fails("format a.store --size 64KiB", 1, "choose a larger --size");
    room.fails("format a.store --size 64MiB --chunk 3MiB", 1, "a power of two");
    assert_eq!(room.path(".").read_dir().unwrap().count(), 0, "nothing was made");
    room.ok("format decimal.store --size 100MB");
    let info = room.json("format a.store --size 64MiB --label films");
    assert_eq!((&info["label"], &info["size"]), (&json!("films"), &json!(64 << 20)));
    assert_eq!(room.json("info a.store")["uuid"], info["uuid"]);
}

#[test]
fn films_go_in_and_come_out() {
    let room = Room::with_store();
    room.film("film.mkv");
    room.write("words.txt", "no film\n");
    let run = room.run("ingest a.store words.txt film.mkv absent.mkv");
    assert_eq!(run.code, Some(1), "two of three were not taken in");
    assert!(run.out.starts_with("'film' is in the store: 4.0 s, 2 tracks"), "{}", run.out);
    assert!(run.err.contains("words.txt is not taken in"), "{}", run.err);
    assert!(run.err.contains("absent.mkv"), "{}", run.err);

    room.ok("ingest a.store words.txt --as file");
    assert_eq!(room.ok("ls a.store"), "film\nwords\n");
    let titles = room.json("ls a.store");
    let kinds: Vec<(&Value, &Value)> = titles["titles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|title| (&title["name"], &title["kind"]))
        .collect();
    assert_eq!(kinds, [(&json!("film"), &json!("media")), (&json!("words"), &json!("file"))]);
    let film = room.json("info a.store film");
    let kinds: Vec<&Value> =
        film["track_list"].as_array().unwrap().iter().map(|track| &track["kind"]).collect();
    assert_eq!(kinds, ["video", "audio"]);
    assert_eq!(film["track_list"][0]["ldus"], 100);

    room.ok("export a.store words back.txt");
    assert_eq!(room.read("back.txt"), b"no film\n");
    room.ok("export a.store film out.mp4");
    room.write("old.mp4", "old");
    room.fails("export a.store film old.mp4", 1, "would be overwritten");
    assert_eq!(room.read("old.mp4"), b"old");
    room.ok("export a.store film old.mp4 --destroy");
    assert!(room.read("old.mp4") == room.read("out.mp4"), "the same file again");
}

#[test]
fn names_are_kept_apart() {
    let room = Room::with_store();
    room.write("a.txt", "a");
    room.write("b.txt", "b");
    room.ok("ingest a.store a.txt b.txt --as file");
    room.fails("ingest a.store a.txt --as file", 1, "there is already a title 'a'");
    room.fails("rename a.store a b", 1, "there is already a title 'b'");
    for line in ["info a.store A", "rm a.store A", "rename a.store A c", "export a.store A c"] {
        room.fails(line, 1, "error: there is no title 'A'\nhint: did you mean 'a'?\n");
    }
    room.fails("info a.store words", 1, "hint: `tenuto ls` lists the titles\n");
    room.fails("rename a.store c d", 1, "there is no title 'c'");
    room.ok("rename a.store a c");
    assert_eq!(room.ok("ls a.store"), "b\nc\n");
    assert_eq!(room.json("rm a.store b")["in_use"], json!(false));
    room.fails("rm a.store b", 1, "there is no title 'b'");
    assert_eq!(room.ok("ls a.store"), "c\n");
    room.fails("export a.store b out", 1, "there is no title 'b'");
    room.fails("info a.store b", 1, "there is no title 'b'");
}

#[test]
fn damage_is_found_and_never_given_out() {
    let room = Room::with_store();
    room.write("data.bin", vec![1; 300_000]);
    room.ok("ingest a.store data.bin --as file");
    assert_eq!(room.json("check a.store --scrub")["clean"], json!(true));

    let chunk = room.json("info a.store")["chunk"].as_u64().unwrap();
    let extents = &room.json("info a.store data")["track_list"][0]["extents"];
    let place = extents[0]["start"].as_u64().unwrap() * chunk + 200_000;
    let file = std::fs::OpenOptions::new().write(true).open(room.path("a.store")).unwrap();
    file.write_all_at(&[2], place).unwrap();

    let run = room.run("check a.store --scrub --json");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &report["clean"]), (Some(4), &json!(false)));
    let kinds: Vec<(&Value, &Value)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (&finding["kind"], &finding["title"]))
        .collect();
    assert_eq!(kinds, [(&json!("data"), &json!("data"))]);
    room.fails("export a.store data out.bin", 4, "damaged data in title 'data'");
    assert!(!room.path("out.bin").exists(), "nothing half is left");
}

#[test]
fn what_is_no_store_is_named() {
    let room = Room::new();
    room.write("film.mkv", vec![7; 1 << 20]);
    room.fails("ls film.mkv", 1, "film.mkv is not a Tenuto store\nhint: `tenuto format` makes one");
    room.fails("ls absent.store", 1, "absent.store");
    room.fails("serve film.mkv --listen 127.0.0.1:0", 1, "film.mkv");
}

#[test]
fn any_disk_is_measured_and_nothing_is_written_without_the_word() {
    let room = Room::with_store();
    room.write("a.disk", vec![7; 24 << 20]);
    let before = room.read("a.disk");
    let found = room.json("calibrate a.disk --time 200ms");
    let sizes: Vec<&Value> =
        found["guarantees"].as_array().unwrap().iter().map(|g| &g["read_size"]).collect();
    assert_eq!(sizes, [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]);
    assert_eq!(found["writing"], Value::Null);
    assert!(room.read("a.disk") == before, "only read");

    let found = room.json("calibrate a.disk --time 200ms --destroy");
    assert_eq!(found["writing"]["write_size"], 1 << 20);
    let after = room.read("a.disk");
    assert!(after != before && after[..12 << 20] == before[..12 << 20], "only in the middle");

    room.ok("calibrate a.disk --time 200ms --write-model mine.toml");
    let fitted = room.json("disk models mine.toml");
    assert_eq!((&fitted["name"], &fitted["size"]), (&json!("mine"), &json!(24 << 20)));
    room.ok("plan --model mine.toml --rate 5Mbps");
    room.fails("calibrate a.disk --write-model mine.toml", 1, "mine.toml would be overwritten");

    let store = room.read("a.store");
    room.fails("calibrate a.store --destroy", 1, "is a store, which calibrate does not overwrite");
    assert!(room.read("a.store") == store);
    let sparse = std::fs::File::create(room.path("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    room.fails("calibrate sparse", 1, "is sparse: only 0 B of 1 GiB are allocated");
    room.write("tiny", vec![7; 8192]);
    room.fails("calibrate tiny", 1, "8 KiB is too little to calibrate reads of 64 KiB in");
    room.fails("calibrate absent", 1, "absent");
}

#[test]
fn what_the_kernel_says_of_a_disk_is_shown() {
    let room = Room::new();
    room.write("a.disk", vec![7; 1 << 20]);
    let shown = room.json("disk show a.disk");
    assert_eq!((&shown["kind"], &shown["size"]), (&json!("file"), &json!(1 << 20)));
    assert_eq!((&shown["sparse"], &shown["unreadable"]), (&json!(false), &Value::Null));
    let methods = shown["methods"].as_array().unwrap();
    let works = |name: &str| methods.iter().find(|m| m["name"] == name).unwrap()["works"].clone();
    assert_eq!((works("threads"), works("pread")), (json!(true), json!(true)));
    assert!(room.ok("disk show a.disk").contains("posix-aio"));
    room.fails("disk show absent", 1, "absent");
}

#[test]
fn a_user_who_may_only_read_a_store_can_list_check_and_export() {
    testkit::needs!(Root);
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let room = Room::with_store();
    room.write("a.txt", "words\n");
    room.ok("ingest a.store a.txt --as file");
    let mode = |name: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(room.path(name), mode).unwrap();
    };
    // A copy, because that user may be unable to reach the one under `target`.
    std::fs::copy(env!("CARGO_BIN_EXE_tenuto"), room.path("tenuto")).unwrap();
    mode("tenuto", 0o755);
    mode("a.store", 0o644);
    mode(".", 0o777);
    let before = room.read("a.store");
    let run = |line: &str| {
        let mut command = std::process::Command::new(room.path("tenuto"));
        command.args(line.split(' ')).current_dir(room.path(".")).uid(NOBODY).gid(NOBODY);
        let output = command.env("XDG_RUNTIME_DIR", room.path(".")).output().expect("tenuto runs");
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
    assert_eq!(room.read("copy.txt"), b"words\n");
    let (code, _, err) = run("rm a.store a");
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot open a.store: Permission denied"), "{err}");
    assert!(room.read("a.store") == before, "nothing is written");
}

/// The user `nobody`.
const NOBODY: u32 = 65534;
