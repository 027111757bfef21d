//! One title in two stores.

use crate::program::{TestDir, program};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_title_goes_into_several_stores_and_out_of_them() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB --chunk 256KiB");
    dir.film("film.mkv");
    let report = dir.json("ingest a.store film.mkv --replica b.store");
    let (one, other) = (&report["files"][0]["title"], &report["copies"][0]["files"][0]["title"]);
    assert_eq!(one["content"], other["content"], "the same, whatever the chunk");
    assert!(one["content"].as_str().is_some_and(|content| content.len() > 20));
    assert_eq!(dir.ok("ls a.store b.store"), "film\n");
    let listed = dir.json("ls a.store b.store");
    assert_eq!(listed["titles"][0]["stores"], json!(["a.store", "b.store"]));
    assert!(dir.ok("ls a.store b.store --long").contains("a.store, b.store"));

    dir.ok("rename b.store film other");
    assert_eq!(dir.ok("ls a.store b.store"), "film\nother\n", "copies have one name");
    dir.ok("rename b.store other film");
    // A store without a copy is none of those that are changed, and no error.
    dir.ok("format none.store --size 16MiB");
    let renamed = dir.ok("rename none.store film other --replica a.store --replica b.store");
    let lines = "renamed 'film' to 'other' in a.store\nrenamed 'film' to 'other' in b.store\n";
    assert_eq!(renamed, lines);
    // One of them has a title of that name: none is renamed.
    dir.write("words.txt", "a title of its own\n");
    dir.ok("ingest b.store words.txt --as file --title taken");
    let taken = "error: b.store: there is already a title 'taken'";
    dir.fails("rename a.store other taken --replica b.store", 1, taken);
    assert_eq!(dir.ok("ls a.store"), "other\n");
    dir.ok("rm b.store taken");
    let renamed = dir.json("rename a.store other feature --replica none.store --replica b.store");
    let both = json!(["a.store", "b.store"]);
    assert_eq!(renamed, json!({"old": "other", "new": "feature", "stores": both}));
    let gone = dir.json("rm a.store feature --replica none.store --replica b.store");
    let stores = gone["stores"].as_array().unwrap().iter().map(|it| it["store"].clone());
    assert_eq!(stores.collect::<Value>(), both);
    let nowhere = "there is no title 'feature' in any store";
    dir.fails("rename a.store feature film --replica none.store --json", 1, nowhere);
    assert_eq!(dir.ok("ls a.store b.store"), "");
    dir.write("words.txt", "alike but for the name\n");
    dir.ok("ingest a.store words.txt --as file --title words");
    dir.write("words.txt", "something else\n");
    dir.ok("ingest b.store words.txt --as file --title words");
    assert_eq!(dir.ok("ls a.store b.store"), "words\nwords\n", "one name, two titles");
    // Page by page: two titles of one name are on one page.
    dir.ok("ingest a.store words.txt --as file --title x/words");
    dir.ok("ingest b.store words.txt --as file --title a/words");
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let page = dir.json(&format!("ls a.store b.store --limit 1{after}"));
        let names = page["titles"].as_array().unwrap().iter();
        pages.push(names.map(|it| it["name"].as_str().unwrap()).collect::<Vec<_>>().join(" "));
        let Some(next) = page["next"].as_str() else { break };
        after = format!(" --after {next}");
    }
    assert_eq!(pages, ["a/words", "words words", "x/words"]);
    assert_eq!(dir.ok("ls a.store b.store --folder x"), "x/words\n");
    assert_eq!(dir.ok("ls a.store b.store --search /WORDS"), "a/words\nx/words\n");
    let found = dir.json("ls a.store b.store --search /w --limit 1");
    assert_eq!(
        (&found["titles"][0]["name"], &found["next"]),
        (&"a/words".into(), &"a/words".into())
    );
    let first = dir.run("ls b.store --limit 1");
    assert_eq!((first.out.as_str(), first.code), ("a/words\n", Some(0)));
    assert!(first.err.contains("--after 'a/words'"), "{}", first.err);
    dir.fails("rm a.store nothing --replica b.store", 1, "there is no title 'nothing'");
}

#[test]
fn copies_are_compared_title_by_title() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB --chunk 256KiB");
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv --replica b.store");
    let all = dir.ok("check a.store --replica b.store");
    assert!(all.contains("b.store: nothing to repair in 1 title"), "{all}");
    assert!(all.ends_with("1 title is alike in 2 stores\n"), "{all}");
    dir.write("words.txt", "alike but for the bytes\n");
    dir.ok("ingest a.store words.txt --as file");
    let run = dir.run("check a.store --replica b.store");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.contains("unlike: 'words': it is not in b.store\n"), "{}", run.out);
    let copied = "1 title is alike in 2 stores, 1 is not in all of them: `tenuto check --repair` copies \
                  what is missing into each, `tenuto library --copies` as often as is wanted\n";
    assert!(run.out.ends_with(copied), "{}", run.out);
    dir.write("words.txt", "alike but for the bites\n");
    dir.ok("ingest b.store words.txt --as file");
    let run = dir.run("check a.store --replica b.store");
    let chosen = "1 differs: export the correct copy, or ingest its source again\n";
    assert!(run.out.ends_with(chosen), "{}", run.out);
    let run = dir.run("check a.store --replica b.store --json");
    let report: Value = serde_json::from_str(&run.out).expect(&run.err);
    assert_eq!((run.code, &report["clean"], &report["alike"]), (Some(1), &json!(true), &json!(1)));
    let unlike = &report["unlike"][0];
    let how = unlike["how"].as_str().unwrap();
    assert!(how.ends_with("equal tracks and sizes, different checksums"), "{how}");
    assert_eq!(unlike["copies"][0]["bytes"], unlike["copies"][1]["bytes"]);
    assert_eq!(report["stores"][1]["store"], json!("b.store"));

    for (also, code, words) in [("a.store", 2, "the same store"), ("absent", 1, "absent: ")] {
        let run = dir.run(&format!("check a.store --replica {also}"));
        assert_eq!(run.code, Some(code), "{}", run.err);
        assert!(run.err.contains(words), "{}", run.err);
        let read = run.out.starts_with("a.store: nothing to repair in 2 titles");
        assert_eq!(read, also == "absent", "a store named twice is not read: {}", run.out);
    }
}

#[test]
fn copies_repair_each_other_served_or_not() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB --chunk 256KiB");
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv --replica b.store");
    dir.fails("check a.store --repair", 2, "--repair needs a store with copies of the titles");
    dir.fails("check a.store --repair --rebuild", 2, "--rebuild works on one store");
    // A store that cannot be opened is named, also where another one needs it.
    let whole = dir.read("a.store");
    let mut dead = whole.clone();
    let end = dead.len();
    dead[..200_000].fill(7);
    dead[end - (2 << 20)..].fill(7);
    dir.write("a.store", dead);
    let run = dir.run("check a.store --replica b.store --repair");
    assert_eq!(run.code, Some(4), "{}", run.err);
    for words in ["error: a.store: ", "leave it out of the command", "error: b.store: cannot use /"]
    {
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
    dir.write("a.store", whole);
    let track = &dir.json("info a.store film")["track_list"][0];
    let place = track["extents"][0]["start"].as_u64().unwrap() << 20;
    let damage = || {
        let file = std::fs::OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"rotten", place + 7).unwrap();
    };
    damage();
    let run = dir.run("check a.store --replica b.store --repair");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("a.store: repaired: data of 'film': damaged data"), "{}", run.out);
    assert!(run.out.ends_with("1 title is alike in 2 stores\n"), "{}", run.out);

    // A server of both, and a new store in the place of a dead disk.
    dir.ok("rm b.store film");
    damage();
    let server = dir.serve("b.store");
    let run = dir.run("check a.store --replica b.store --repair");
    assert_eq!(run.code, Some(4), "{}", run.out);
    assert!(run.out.contains("a.store: damage: data of 'film': damaged data"), "{}", run.out);
    // A store that never had the title is no worse than before.
    assert!(run.out.contains("b.store: not copied: 'film': damaged data"), "{}", run.out);
    assert!(!run.out.contains("b.store: damage"), "{}", run.out);
    for verdict in [
        "a.store: 1 piece of damage that no copy repairs in 1 title",
        "b.store: nothing to repair in 0 titles",
    ] {
        assert!(run.out.contains(verdict), "{verdict}: {}", run.out);
    }
    for (store, found) in [("a.store", 1), ("b.store", 0)] {
        let scrub = &dir.json(&format!("info {store}"))["scrub"];
        assert_eq!(scrub["last_damage"], json!(found), "{store}: {scrub}");
    }
    assert_eq!(server.stop(), Some(0));
    dir.ok("rm a.store film");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve("b.store");
    let report = dir.json("check a.store --replica b.store --repair");
    assert_eq!(report["repairs"][1]["copied"][0]["name"], json!("film"), "{report}");
    assert_eq!((&report["alike"], &report["clean"]), (&json!(1), &json!(true)));
    dir.ok(&format!("play {}/t/film/master.m3u8", server.origin));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_store_without_room_is_named_and_the_others_keep_what_they_have() {
    let dir = TestDir::with_store();
    dir.ok("format small.store --size 16MiB");
    dir.write("data.bin", vec![7; 20 << 20]);
    let run = dir.run("ingest a.store data.bin --as file --replica small.store");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("no copy in small.store: "), "{}", run.err);
    assert!(run.err.contains("the title stays in the other stores"), "{}", run.err);
    assert_eq!(dir.ok("ls a.store"), "data\n");
    assert_eq!(dir.ok("ls small.store"), "");
    let run = dir.run("ingest a.store data.bin --as file --title again --replica absent --json");
    let report: Value = serde_json::from_str(&run.out).expect(&run.err);
    assert_eq!(run.code, Some(1));
    assert_eq!(report["files"][0]["error"], Value::Null);
    assert_eq!(report["copies"][0]["files"][0]["error"]["code"], json!("store"));
}

#[test]
fn a_disk_that_is_cut_short_ends_nobody_whose_title_has_a_copy() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    dir.film("one.mkv");
    dir.film("two.mkv");
    dir.ok("ingest a.store one.mkv two.mkv --replica b.store");
    dir.fails("serve a.store --survive-loss", 1, "--survive-loss needs a second store");
    dir.fails("serve a.store --buffered", 1, "hint: add --admission none, or leave out --buffered");
    let server = dir.serve("b.store --survive-loss");
    let plays = |title: &str| {
        let report = dir.json(&format!("play {}/t/{title}/master.m3u8", server.origin));
        assert_eq!(report["complete"], json!(true), "{title}: {}", report["totals"]);
    };
    plays("one");
    let start = std::time::Instant::now();
    while status(&server.origin)["active"] != json!(0) {
        assert!(start.elapsed().as_secs() < 60, "its player has ended its session");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let before = status(&server.origin);
    let read = |disk: &Value| disk["reads"].as_u64() > Some(0);
    let disk = before["disks"].as_array().unwrap().iter().position(read).expect("one was read");
    let path = dir.path(before["disks"][disk]["store"].as_str().unwrap());
    let held = std::fs::read(&path).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(64 << 10).unwrap();
    // Either disk may be the one that a title is read from.
    let start = std::time::Instant::now();
    let mut after = status(&server.origin);
    while after["disks"][disk]["lost"] != json!(true) {
        assert!(start.elapsed().as_secs() < 120, "a player has read there: {after}");
        ["two", "one"].into_iter().for_each(plays);
        after = status(&server.origin);
    }
    assert_eq!(
        (&after["survive_loss"], &after["sessions_ended_by_disk_loss"]),
        (&json!(true), &json!(0))
    );
    // What returns in its place may be older: it is not written over until it was looked at.
    let store = before["disks"][disk]["store"].as_str().unwrap();
    let (most, rest) = held.split_at(held.len() - 4096);
    file.write_all(most).unwrap();
    for line in [format!("rm {store} two"), format!("ingest {store} one.mkv --title new")] {
        let run = dir.run(&line);
        // A note of the server on its disk may have failed before the disk was lost.
        let why = ["its disk is lost: nothing is written", "written since a write failed"];
        assert!(why.iter().any(|why| run.err.contains(why)), "{line}: {}", run.err);
        assert_eq!(run.code, Some(1), "{line}");
    }
    // What it held is there again, and seen to be.
    file.write_all(rest).unwrap();
    let start = std::time::Instant::now();
    while status(&server.origin)["disks"][disk]["lost"] == json!(true) {
        assert!(start.elapsed().as_secs() < 120, "it is looked at again at least once a minute");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    plays("one");
}

#[test]
fn a_server_starts_without_a_disk_that_is_gone_and_takes_it_in_when_it_is_back() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    dir.film("one.mkv");
    dir.film("two.mkv");
    dir.ok("ingest a.store one.mkv");
    dir.ok("ingest b.store two.mkv");
    std::fs::rename(dir.path("a.store"), dir.path("unplugged")).unwrap();
    let run = dir.run("serve a.store b.store --check-config");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let without = "a.store cannot be served: cannot open a.store: No such file or directory";
    assert!(run.err.contains(without), "{}", run.err);
    dir.fails("serve a.store absent.store --listen 127.0.0.1:0", 1, "a.store cannot be served");
    dir.write("film.store", vec![7; 1 << 20]);
    dir.fails(
        "serve film.store b.store --listen 127.0.0.1:0",
        1,
        "film.store cannot be served: this is not",
    );
    // With a log, which nobody may keep open when the server restarts.
    let server = dir.serve("b.store --survive-loss --access-log log");
    let before = status(&server.origin);
    assert_eq!((&before["disks"][1], &before["survive_loss"]), (&Value::Null, &json!(false)));
    let [missing] = before["missing_stores"].as_array().unwrap().as_slice() else {
        panic!("{before}")
    };
    assert_eq!(missing["store"], json!("a.store"));
    assert!(missing["reason"].as_str().unwrap().starts_with(without), "{missing}");
    let metrics = fetched(&server.origin, "/metrics");
    assert!(metrics.contains("tenuto_disk_lost{store=\"a.store\"} 1"), "{metrics}");
    let play = |title: &str| format!("play {}/t/{title}/master.m3u8 --buffer 1s", server.origin);
    let viewer = program(&dir.path("")).args(play("two").split(' ')).spawn().expect("it plays");
    std::fs::rename(dir.path("unplugged"), dir.path("a.store")).unwrap();
    let start = std::time::Instant::now();
    while status(&server.origin)["missing_stores"] != json!([]) {
        assert!(start.elapsed().as_secs() < 120, "it is looked for at least once a minute");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let after = status(&server.origin);
    assert_eq!((&after["disks"][1]["lost"], &after["survive_loss"]), (&json!(false), &json!(true)));
    let viewer = viewer.wait_with_output().unwrap();
    assert!(viewer.status.success(), "the restart ended a viewer");
    dir.ok(&play("one"));
}

#[test]
fn the_reason_why_a_store_is_missing_is_that_of_the_last_try() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    let file = std::fs::OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.set_len(1 << 20).unwrap();
    let server = dir.serve("b.store");
    let reason = || {
        let status = status(&server.origin);
        status["missing_stores"][0]["reason"].as_str().unwrap().to_owned()
    };
    let before = reason();
    // As long as before, and without what was cut off.
    file.set_len(64 << 20).unwrap();
    let start = std::time::Instant::now();
    while reason() == before {
        assert!(start.elapsed().as_secs() < 120, "it is looked for at least once a minute");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let (start, after) = ("a.store cannot be served: ", reason());
    assert!(before.starts_with(start) && after.starts_with(start), "{before} {after}");
}

pub(crate) fn status(origin: &str) -> Value {
    serde_json::from_str(&fetched(origin, "/status")).unwrap()
}

fn fetched(origin: &str, path: &str) -> String {
    let text = asked(origin, "GET", path, "");
    text.split_once("\r\n\r\n").expect("a head and a body").1.to_owned()
}

/// The response to a request of an operator with this token.
pub(crate) fn operate(origin: &str, token: &str, method: &str, path: &str) -> String {
    asked(origin, method, path, &format!("Authorization: Bearer {}\r\n", token.trim()))
}

fn asked(origin: &str, method: &str, path: &str, fields: &str) -> String {
    let address = origin.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{fields}");
    write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}
