//! Titles of record in a bucket: pushed from a store, filled into another, served or not. The
//! bucket is in memory, and checks the form of requests.

use crate::program::{Run, TestDir, program};
use serde_json::{Value, json};
use std::process::Command;
use testkit::bucket::TestBucket;

/// The program with the address and the keys of a bucket.
fn with_bucket(dir: &TestDir, endpoint: &str) -> Command {
    let mut command = program(&dir.path(""));
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

fn run(dir: &TestDir, endpoint: &str, line: &str) -> Run {
    let output = with_bucket(dir, endpoint).args(line.split_whitespace()).output();
    Run::from(output.expect("tenuto runs"))
}

fn json_of(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err))
}

#[test]
fn a_bucket_holds_what_stores_lose() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.write("words.txt", "a file title\n");
    dir.ok("ingest a.store film.mkv");
    dir.ok("ingest a.store words.txt --as file");
    let bucket = TestBucket::default();
    let endpoint = bucket.listen(|_| None);

    let pushed = run(&dir, &endpoint, "bucket push s3://films/house a.store");
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    assert!(pushed.out.contains("'film' is in the bucket: "), "{}", pushed.out);
    assert!(pushed.out.contains("2 of 2 objects written\n"), "{}", pushed.out);
    let again = run(&dir, &endpoint, "bucket push s3://films/house a.store film");
    assert_eq!((again.code, again.out.as_str()), (Some(0), "'film' was in the bucket\n"));
    let listed = json_of(&run(&dir, &endpoint, "bucket ls s3://films/house --json"));
    let stored = dir.json("ls a.store");
    for number in 0..2 {
        let (there, here) = (&listed["titles"][number], &stored["titles"][number]);
        assert_eq!(there["title"], here["name"]);
        assert_eq!((&there["bytes"], &there["content"]), (&here["bytes"], &here["content"]));
    }

    // A new store gets everything, and has the same.
    dir.ok("format b.store --size 64MiB");
    let filled = run(&dir, &endpoint, "bucket fill s3://films/house b.store --json");
    assert_eq!(filled.code, Some(0), "{}", filled.err);
    assert_eq!(json_of(&filled)["titles"][0]["filled"]["content"], stored["titles"][0]["content"]);
    let same = dir.ok("check a.store --replica b.store --scrub");
    assert!(same.ends_with("2 titles are alike in 2 stores\n"), "{same}");
    let none = run(&dir, &endpoint, "bucket fill s3://films/house b.store");
    let wanted = "nothing is to be done: all titles are there\n";
    assert_eq!((none.code, none.out.as_str()), (Some(0), wanted));

    let sound = run(&dir, &endpoint, "bucket check s3://films/house --scrub --json");
    assert_eq!(sound.code, Some(0), "{}", sound.err);
    assert_eq!(json_of(&sound)["titles"], json!(2));
    for (path, object) in bucket.objects.lock().unwrap().iter_mut() {
        if path.contains("/parts/") && object.len() > 10_000 {
            object[5000] ^= 1;
        }
    }
    let rotten = run(&dir, &endpoint, "bucket check s3://films/house --scrub");
    assert_eq!(rotten.code, Some(4), "{}", rotten.err);
    assert!(rotten.out.contains("has other content than its name says"), "{}", rotten.out);
    let blind = run(&dir, &endpoint, "bucket check s3://films/house");
    assert_eq!(blind.code, Some(0), "sizes are as they were");
    // A title with another content of this name stays, and is named.
    dir.ok("rename b.store words other");
    dir.ok("rename b.store film words");
    let other = run(&dir, &endpoint, "bucket fill s3://films/house b.store --json");
    assert_eq!(json_of(&other)["different"], json!(["words"]));
    dir.ok("rename b.store words film");
    dir.ok("rename b.store other words");
    // Nothing false comes into a store.
    dir.ok("rm b.store film");
    let refused = run(&dir, &endpoint, "bucket fill s3://films/house b.store film words");
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(
        refused.err.contains("'film': title 'film' of the bucket is damaged"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("'words': there is already a title"), "{}", refused.err);
    assert_eq!(dir.ok("ls b.store"), "words\n");

    let removed = run(&dir, &endpoint, "bucket rm s3://films/house film");
    assert_eq!((removed.code, removed.out.as_str()), (Some(0), "'film' is removed\n"));
    let left = bucket.objects.lock().unwrap().len();
    assert_eq!(left, 4, "the manifest and the two parts of the other, and the probe");
}

#[test]
fn a_damaged_object_is_named_for_all_titles_that_share_it_and_repaired() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    dir.ok("ingest a.store film.mkv --title same");
    let bucket = TestBucket::default();
    let endpoint = bucket.listen(|_| None);
    let push = |words: &str| {
        let done = run(&dir, &endpoint, &format!("bucket push s3://films a.store {words}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        done.out
    };
    push("");
    assert_eq!(push("film --verify"), "'film' was in the bucket: 3 objects verified\n");
    {
        let mut objects = bucket.objects.lock().unwrap();
        let parts = objects.iter_mut().filter(|(path, _)| path.contains("/parts/"));
        parts.max_by_key(|(_, part)| part.len()).unwrap().1[5000] ^= 1;
    }
    let rotten = run(&dir, &endpoint, "bucket check s3://films --scrub");
    assert_eq!(rotten.code, Some(4), "{}", rotten.err);
    let lines: Vec<&str> = rotten.out.lines().collect();
    for (line, title) in lines.iter().zip(["'film': ", "'same': "]) {
        assert!(line.starts_with(title), "{}", rotten.out);
        assert!(line.ends_with("has other content than its name says"), "{}", rotten.out);
    }
    assert!(lines[2].starts_with("to repair: `tenuto bucket push --verify` "), "{}", rotten.out);
    let json = json_of(&run(&dir, &endpoint, "bucket check s3://films --scrub --json"));
    let hint = json["findings"][1]["hint"].as_str().unwrap();
    assert!(hint.contains("push --verify"), "{hint}");
    assert_eq!(push("film"), "'film' was in the bucket\n", "its size is right");
    let repaired = "'film' was in the bucket: 3 objects verified, 1 object missing or damaged, \
                    written anew\n";
    assert_eq!(push("film --verify"), repaired);
    let sound = run(&dir, &endpoint, "bucket check s3://films --scrub");
    assert_eq!(sound.code, Some(0), "{}", sound.out);
}

#[test]
fn a_damaged_manifest_is_named_and_removed() {
    let dir = TestDir::with_store();
    dir.film_of(60, "film.mkv");
    dir.write("bad.txt", "a file title\n");
    dir.write("alone.txt", "another file title\n");
    dir.ok("ingest a.store film.mkv");
    dir.ok("ingest a.store bad.txt alone.txt --as file");
    let bucket = TestBucket::default();
    let endpoint = bucket.listen(|_| None);
    let run = |line: &str| run(&dir, &endpoint, line);
    assert_eq!(run("bucket push s3://films a.store").code, Some(0));
    let listed = run("bucket ls s3://films").out;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert!(!listed.ends_with("\n\n"), "{listed}");
    // As `ls` has it.
    assert!(dir.ok("ls a.store --long").contains(" 1:00 "));
    assert!(listed.contains(" 1:00 "), "{listed}");

    let manifest = "/films/titles/bad.json".to_owned();
    bucket.objects.lock().unwrap().insert(manifest, b"{}".to_vec()).unwrap();
    let listed = run("bucket ls s3://films");
    assert_eq!(listed.code, Some(4), "{}", listed.err);
    let lines: Vec<&str> = listed.out.lines().collect();
    for (line, start) in lines[1..].iter().zip(["alone ", "film ", "'bad': its manifest is not"]) {
        assert!(line.starts_with(start), "{}", listed.out);
    }
    assert!(lines[4].starts_with("to repair: remove the title from the bucket"), "{}", listed.out);
    let json = json_of(&run("bucket ls s3://films --json"));
    assert_eq!(
        (&json["titles"][1]["title"], &json["damaged"][0]["title"]),
        (&json!("film"), &json!("bad"))
    );

    let refused = run("bucket push s3://films a.store bad film");
    assert_eq!(refused.code, Some(4), "{}", refused.err);
    assert!(
        refused.err.contains("remove the title from the bucket (`tenuto bucket rm`)"),
        "{}",
        refused.err
    );
    assert_eq!(refused.out, "'film' was in the bucket\n");
    let beside = run("bucket rm s3://films alone");
    assert_eq!(beside.code, Some(0), "{}", beside.err);
    let stays = ["'alone' is removed\n2 objects, ", " and stay: 'bad'\nremove those titles, too"];
    assert!(stays.iter().all(|words| beside.out.contains(words)), "{}", beside.out);
    let removed = json_of(&run("bucket rm s3://films bad --json"));
    assert_eq!((&removed["removed"], &removed["unreadable"]), (&json!(4), &json!([])));
    assert_eq!(run("bucket push s3://films a.store").code, Some(0));
    let sound = json_of(&run("bucket check s3://films --scrub --json"));
    assert_eq!(
        (&sound["clean"], &sound["titles"], &sound["unused_parts"]),
        (&json!(true), &json!(3), &json!(0))
    );

    // A copy of a manifest under a name that no title can have.
    {
        let mut objects = bucket.objects.lock().unwrap();
        let manifest = objects["/films/titles/alone.json"].clone();
        objects.insert("/films/titles/a//b.json".to_owned(), manifest);
    }
    assert_eq!(run("bucket ls s3://films").code, Some(0));
    let checked = run("bucket check s3://films");
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    assert!(
        checked.out.ends_with("no title can have such a name: titles/a//b.json\n"),
        "{}",
        checked.out
    );
    let removed = run("bucket rm s3://films alone").out;
    let stays = " stay because objects name them that are no titles: titles/a//b.json\n";
    assert!(
        removed.contains("'alone' is removed\n2 objects, ") && removed.ends_with(stays),
        "{removed}"
    );
    assert_eq!(json_of(&run("bucket rm s3://films bad --json"))["removed"], 2);
}

#[test]
fn a_served_store_is_read_and_filled_by_its_server() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let bucket = TestBucket::default();
    let endpoint = bucket.listen(|_| None);
    // The server has no keys; the command brings them.
    let server = dir.serve("--as-disk hdd-20tb");
    let pushed = run(&dir, &endpoint, "bucket push s3://films/ a.store");
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    let verified = run(&dir, &endpoint, "bucket push s3://films/ a.store --verify");
    assert_eq!((verified.code, verified.err.as_str()), (Some(0), ""));
    assert_eq!(verified.out, "'film' was in the bucket: 3 objects verified\n");
    dir.ok("rm a.store film");
    let filled = run(&dir, &endpoint, "bucket fill s3://films/ a.store film");
    assert_eq!(filled.code, Some(0), "{}", filled.err);
    assert_eq!(dir.ok("ls a.store"), "film\n");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
}

#[test]
fn a_bucket_that_cannot_be_used_says_why() {
    let dir = TestDir::with_store();
    let cases = [
        ("bucket ls films", 2, "'films' is not an address of the form s3://BUCKET[/PREFIX]"),
        ("bucket ls s3://films", 2, "nothing says where the bucket is"),
        ("bucket ls s3://films --endpoint here", 2, "'here' is not an endpoint"),
        ("bucket push s3://films a.store film --endpoint http://127.0.0.1:1", 1, "no title 'film'"),
    ];
    for (line, code, words) in cases {
        dir.fails(line, code, words);
    }
    let endpoint = TestBucket::default().listen(|_| None);
    let missing = run(&dir, &endpoint, "bucket fill s3://films a.store film");
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("there is no title 'film' in s3://films/"), "{}", missing.err);
    assert!(missing.err.contains("`tenuto bucket ls` lists the titles"), "{}", missing.err);
}
