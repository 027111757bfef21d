//! Titles in several stores, each as often as is wanted: served by one server, or by none.

use crate::copies::operate;
use crate::mounted_errors::SmallDisk;
use crate::program::{Run, TestDir, program};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::process::Command;

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.out).expect(&run.err)
}

/// What became of each step: `copy film to b.store: done`.
fn steps(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let steps = report["steps"].as_array().unwrap().iter();
    let line = |step: &Value| {
        let store = if step["to"].is_null() { &step["from"][0] } else { &step["to"] };
        let way = if step["to"].is_null() { "from" } else { "to" };
        let (what, title, state) =
            (text(&step["step"]), text(&step["title"]), text(&step["state"]));
        format!("{what} {title} {way} {}: {state}", text(store))
    };
    steps.map(line).collect()
}

#[test]
fn everything_is_there_twice_after_a_disk_has_died() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB --chunk 256KiB");
    dir.film("film.mkv");
    dir.write("words.txt", "a file title\n");
    dir.ok("ingest a.store film.mkv");
    dir.ok("ingest b.store words.txt --as file");

    // Only shown.
    let run = dir.run("library a.store b.store --copies 2 --json");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let planned = ["copy film to b.store: planned", "copy words to a.store: planned"];
    assert_eq!(steps(&report(&run)), planned);
    assert_eq!(dir.ok("ls b.store"), "words\n");
    assert_eq!(dir.json("library a.store b.store")["done"], json!(true), "each is there once");

    let done = dir.json("library a.store b.store --copies 2 --apply");
    assert_eq!((&done["done"], &done["titles"]), (&json!(true), &json!(2)));
    assert_eq!(done["stores"][1]["titles"], json!(2), "as it is afterwards");
    let words = dir.ok("library a.store b.store --copies 2");
    assert!(words.ends_with("\n2 titles, each in at least 2 stores\n"), "{words}");
    let same = dir.ok("check a.store --replica b.store --scrub");
    assert!(same.ends_with("2 titles are alike in 2 stores\n"), "{same}");

    std::fs::remove_file(dir.path("a.store")).unwrap();
    dir.fails("library a.store b.store", 1, "a.store: ");
    dir.ok("format new.store --size 64MiB");
    dir.ok("library b.store new.store --copies 2 --apply");
    let same = dir.ok("check b.store --replica new.store --scrub");
    assert!(same.ends_with("2 titles are alike in 2 stores\n"), "{same}");
}

#[test]
fn titles_leave_a_store_and_a_served_one_goes_on() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    dir.ok("format c.store --size 64MiB");
    dir.film("film.mkv");
    dir.write("words.txt", "a file title\n");
    dir.ok("ingest a.store film.mkv --replica b.store");
    dir.ok("ingest a.store words.txt --as file");
    let server = dir.serve("b.store c.store");
    // An unserved store cannot be written from a served one.
    dir.ok("format alone.store --size 64MiB");
    for words in ["", " --apply", " --apply --json"] {
        let line = format!("library a.store alone.store --copies 2{words}");
        dir.fails(&line, 1, "a.store is served, and alone.store is not: nobody can copy between");
        dir.fails(&line, 1, "hint: start the server that has a.store anew with alone.store beside");
    }
    assert_eq!(dir.ok("ls alone.store"), "");

    let run = dir.run("library b.store c.store --empty a.store --copies 2 --apply --json");
    let done = report(&run);
    assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
    let mut all = steps(&done);
    all.sort();
    let expected = [
        "copy film to c.store: done",
        "copy words to b.store: done",
        "copy words to c.store: done",
        "remove film from a.store: done",
        "remove words from a.store: done",
    ];
    assert_eq!(all, expected);
    assert_eq!(done["stores"][2]["sessions"], json!(0), "served: {done}");
    assert_eq!(dir.ok("ls a.store"), "");
    dir.ok(&format!("play {}/t/film/master.m3u8", server.origin));
    let run = dir.run("library b.store --served");
    assert!(run.err.contains("the server has a store as 'a.store'"), "{}", run.err);
    assert_eq!(server.stop(), Some(0));
    dir.fails("library b.store --served", 2, "b.store is not served");
    let words = dir.run("library b.store --empty c.store").out;
    let fewer = "2 titles lose a copy: with --copies 2 another one is made first";
    assert!(words.contains(fewer), "{words}");
}

#[test]
fn what_cannot_be_done_is_said_and_loses_nothing() {
    let dir = TestDir::with_store();
    dir.ok("format small.store --size 16MiB");
    dir.write("large.bin", vec![7; 20 << 20]);
    dir.write("words.txt", "one\n");
    dir.ok("ingest a.store large.bin words.txt --as file");
    dir.write("words.txt", "other\n");
    dir.ok("ingest small.store words.txt --as file");
    let run = dir.run("library small.store --empty a.store --apply --json");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let done = report(&run);
    assert_eq!(steps(&done), Vec::<String>::new());
    let left = json!([{"title": "large", "copies": 0}, {"title": "words", "copies": null}]);
    assert_eq!(done["left"], left, "{done}");
    assert_eq!(dir.ok("ls a.store"), "large\nwords\n");
    let words = dir.run("library small.store --empty a.store").out;
    assert!(
        words.contains("left: 'large': there is room for no copy in another store\n"),
        "{words}"
    );

    // Damage in the only copy: nothing is made of it, and nothing removed.
    dir.ok("format b.store --size 64MiB");
    dir.ok("rm a.store words");
    let track = &dir.json("info a.store large")["track_list"][0];
    let place = track["extents"][0]["start"].as_u64().unwrap() << 20;
    let file = std::fs::OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.write_all_at(b"rotten", place + 7).unwrap();
    let run = dir.run("library b.store --empty a.store --apply --json");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let done = report(&run);
    assert_eq!(
        steps(&done),
        ["copy large to b.store: failed", "remove large from a.store: skipped"]
    );
    let error = done["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("damaged data"), "{error}");
    assert_eq!((dir.ok("ls a.store"), dir.ok("ls b.store")), ("large\n".into(), String::new()));

    dir.fails(
        "library a.store b.store --copies 3",
        2,
        "3 copies need as many stores, not 2 stores",
    );
    dir.fails("library a.store --empty b.store --copies 2", 2, "2 copies need as many stores");
    dir.fails("library a.store a.store", 2, "a.store is the same store as a.store");
    dir.fails("library a.store absent", 1, "absent: ");
    let same = "./a.store is the same store as a.store\nhint: a replica is a copy in another store";
    dir.fails("ingest a.store words.txt --as file --replica ./a.store", 2, same);
    dir.fails("library", 2, "STORE");
}

#[test]
fn no_copy_is_removed_before_one_that_is_left_was_read_whole() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB --chunk 256KiB");
    dir.write("one.bin", vec![1; 3 << 20]);
    dir.write("two.bin", vec![2; 3 << 20]);
    dir.ok("ingest a.store one.bin two.bin --as file --replica b.store");
    let track = &dir.json("info b.store one")["track_list"][0];
    let place = track["extents"][0]["start"].as_u64().unwrap() * (256 << 10);
    let file = std::fs::OpenOptions::new().write(true).open(dir.path("b.store")).unwrap();
    // It decayed long after it was written.
    file.write_all_at(b"rotten", place + (1 << 20)).unwrap();
    let run = dir.run("library b.store --empty a.store --apply --json");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let left = report(&run);
    let wanted = ["remove one from a.store: failed", "remove two from a.store: done"];
    assert_eq!(steps(&left), wanted, "{left}");
    let why = left["steps"][0]["error"].as_str().unwrap();
    assert!(why.contains("a copy that is left is not whole: b.store: "), "{why}");
    assert_eq!((dir.ok("ls a.store"), dir.ok("ls b.store")), ("one\n".into(), "one\ntwo\n".into()));
    // The good copy repairs the other; then it may go.
    dir.ok("check a.store --replica b.store --repair");
}

#[test]
fn a_store_is_not_empty_while_something_is_recorded_into_it() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    let _server = dir.serve("b.store");
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let words = ["record", "a.store", "news/today", "pipe"];
    let mut recording = program(&dir.path("")).args(words).spawn().expect("it records");
    // It waits for its input, and the store has nothing of it yet.
    let is_listed =
        || !report(&dir.run("library b.store --empty a.store --json"))["left"][0].is_null();
    while !is_listed() {
        assert_eq!(recording.try_wait().unwrap(), None, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(dir.json("library a.store b.store")["done"], json!(true), "nothing else is empty");
    for words in ["", " --apply"] {
        let run = dir.run(&format!("library b.store --empty a.store{words} --json"));
        assert_eq!(run.code, Some(1), "{}", run.err);
        let left = json!([{"title": "news/today", "copies": 0, "recording_in": "a.store"}]);
        let report = report(&run);
        assert_eq!((&report["left"], &report["done"]), (&left, &json!(false)), "{report}");
    }
    let run = dir.run("library b.store --empty a.store");
    let left = "left: 'news/today': it is being recorded into a.store; end the recording, then run \
                the command again\n0 titles, nothing can be done\n";
    assert!(run.out.ends_with(left), "{}", run.out);
    // The end of its input without a byte ends it.
    drop(std::fs::OpenOptions::new().write(true).open(dir.path("pipe")).unwrap());
    assert_eq!(recording.wait().unwrap().code(), Some(1));
    assert_eq!(dir.json("library b.store --empty a.store")["done"], json!(true));
}

#[test]
fn a_store_whose_disk_is_drained_gets_no_title_and_has_no_copies_that_count() {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    dir.ok("format c.store --size 64MiB");
    dir.write("words.txt", "a file title\n");
    dir.write("more.txt", "another\n");
    dir.ok("ingest a.store words.txt --as file");
    dir.ok("token keys.json --new");
    let server = dir.serve("b.store c.store --tokens keys.json");
    let token = dir.ok("token keys.json --operator");
    let uuid = dir.json("info b.store")["uuid"].as_str().unwrap().to_owned();
    let drain = format!("/api/v1/disks/{uuid}/drain");
    let drained = operate(&server.origin, &token, "POST", &drain);
    assert!(drained.starts_with("HTTP/1.1 200"), "{drained}");

    // The emptiest store is no target, and what was planned for it goes to another one.
    let found = dir.json("library a.store b.store c.store --copies 2 --apply");
    assert_eq!((&found["done"], &found["stores"][1]["draining"]), (&json!(true), &json!(true)));
    let steps = found["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["to"] == json!("c.store")) && steps.len() == 1, "{found}");
    let words = dir.ok("library a.store b.store c.store --copies 2");
    assert!(words.contains("b.store: its disk is drained: it gets no title"), "{words}");
    let run = dir.run("library a.store b.store --copies 2");
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.out.contains("left: 'words': there is room for one copy only"), "{}", run.out);

    let refusal = "b.store is drained: its disk is to be taken out";
    dir.fails("ingest b.store more.txt --as file", 1, refusal);
    let replica = dir.run("ingest a.store more.txt --as file --replica b.store");
    assert_eq!(replica.code, Some(1), "{}", replica.out);
    assert!(replica.err.contains(&format!("no copy in b.store: {refusal}")), "{}", replica.err);
    let ended = operate(&server.origin, &token, "DELETE", &drain);
    assert!(ended.starts_with("HTTP/1.1 200"), "{ended}");
    dir.ok("library a.store b.store --copies 2 --apply");
}

#[test]
fn a_store_that_is_not_written_to_has_no_copies_that_count() {
    testkit::needs!(Root, Mount);
    let dir = TestDir::with_store();
    // Sparse, on a file system with less room: its titles can be read when a write has failed.
    let _full = SmallDisk::at(dir.path("full"), 8);
    std::fs::File::create(dir.path("full/b.store")).unwrap().set_len(64 << 20).unwrap();
    dir.ok("format full/b.store");
    dir.ok("format c.store --size 64MiB");
    dir.write("words.txt", "a file title\n");
    dir.ok("ingest a.store words.txt --as file --replica full/b.store");
    let _server = dir.serve("full/b.store c.store --access-log log");
    assert_eq!(dir.json("library a.store full/b.store --copies 2")["done"], json!(true));
    assert_eq!(dir.json("info full/b.store")["write_failure"], Value::Null);
    dir.write("more.bin", vec![7; 8 << 20]);
    assert_eq!(dir.run("ingest full/b.store more.bin --as file").code, Some(1));
    let why = dir.json("info full/b.store")["write_failure"].clone();
    assert!(why.as_str().is_some_and(|why| dir.ok("info full/b.store").contains(why)), "{why}");

    let run = dir.run("library a.store full/b.store --copies 2 --json");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let found = report(&run);
    assert_eq!((&found["done"], &found["stores"][1]["write_failure"]), (&json!(false), &why));
    assert_eq!(found["left"], json!([{"title": "words", "copies": 1}]), "{found}");
    let words = dir.run("library a.store full/b.store --copies 2").out;
    assert!(words.contains("full/b.store: nothing more is written to it, because"), "{words}");
    // Whole without it: it is named nevertheless, until it is to be emptied.
    dir.ok("library a.store c.store --copies 2 --apply");
    let run = dir.run("library a.store full/b.store c.store --copies 2");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let all = "1 title, each in at least 2 other stores: see above what is not well\n";
    assert!(run.out.ends_with(all), "{}", run.out);
    let left = dir.json("library a.store c.store --empty full/b.store --copies 2");
    assert_eq!((&left["done"], &left["steps"]), (&json!(true), &json!([])), "{left}");
    let told = || String::from_utf8(dir.read("log")).unwrap();
    while !told().contains("\"event\":\"disk-write-failed\"") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Two stores with copies of three titles that a server has had, the second of which is unplugged.
fn unplugged() -> TestDir {
    let dir = TestDir::with_store();
    dir.ok("format b.store --size 64MiB");
    for name in ["gone", "old", "kept"] {
        dir.write(&format!("{name}.txt"), format!("{name}\n"));
        dir.ok(&format!("ingest a.store {name}.txt --as file --replica b.store"));
    }
    assert_eq!(dir.serve("b.store").stop(), Some(0));
    std::fs::rename(dir.path("b.store"), dir.path("unplugged")).unwrap();
    dir
}

fn plug_in(dir: &TestDir) {
    std::fs::rename(dir.path("unplugged"), dir.path("b.store")).unwrap();
}

#[test]
fn what_was_removed_while_a_disk_was_away_does_not_come_back_with_it() {
    // Each command has a.store alone, and no server runs.
    let dir = unplugged();
    dir.ok("rm a.store gone");
    dir.ok("rename a.store old new");
    dir.write("gone.txt", "another one\n");
    dir.ok("ingest a.store gone.txt --as file");
    plug_in(&dir);
    let shown = dir.run("library a.store b.store --copies 2");
    let [remove, rename] = [
        "planned: remove 'gone' from b.store, as in the other stores while it was away\n",
        "planned: rename 'old' to 'new' in b.store, as in the other stores while it was away\n",
    ];
    assert!(shown.out.contains(remove) && shown.out.contains(rename), "{}", shown.out);
    assert_eq!(shown.code, Some(1));
    assert_eq!(dir.ok("ls b.store"), "gone\nkept\nold\n", "nothing is changed without --apply");
    dir.ok("library a.store b.store --copies 2 --apply");
    let same = dir.ok("check a.store --replica b.store --scrub");
    assert!(same.ends_with("3 titles are alike in 2 stores\n"), "{same}");
    assert_eq!(dir.ok("ls b.store"), "gone\nkept\nnew\n");

    // By a server at its start, which others may look at before.
    let dir = unplugged();
    dir.ok("rm a.store gone");
    plug_in(&dir);
    // A copy that is there is removed alone.
    dir.ok("rm a.store kept");
    let server = dir.serve("b.store");
    assert_eq!(dir.ok("ls b.store"), "kept\nold\n");
    assert_eq!(server.stop(), Some(0));
    // What only b.store has is copied by a repair, and what was removed is not.
    let dir = unplugged();
    dir.ok("rm a.store gone");
    plug_in(&dir);
    dir.ok("check a.store --replica b.store --repair");
    assert_eq!(dir.ok("ls a.store"), "kept\nold\n");
}

#[test]
fn what_a_server_removes_while_a_disk_is_away_is_removed_when_it_takes_the_disk_in() {
    let dir = unplugged();
    dir.ok("token keys.json --new");
    let server = dir.serve("b.store --tokens keys.json");
    let token = dir.ok("token keys.json --operator");
    let uuid = dir.json("info a.store")["uuid"].as_str().unwrap().to_owned();
    let removed =
        operate(&server.origin, &token, "DELETE", &format!("/api/v1/disks/{uuid}/titles/gone"));
    assert!(removed.starts_with("HTTP/1.1 200"), "{removed}");
    dir.ok("rename a.store old new");
    plug_in(&dir);
    let start = std::time::Instant::now();
    while dir.run("library a.store b.store --copies 2").code != Some(0) {
        assert!(start.elapsed().as_secs() < 120, "it is looked for at least once a minute");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(dir.ok("ls b.store"), "kept\nnew\n");
    assert_eq!(server.stop(), Some(0));
}
