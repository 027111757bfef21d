//! Bytes that rot in a store's file. Whatever the place: no panic, `check` finds it and names it,
//! and nothing damaged is exported or served as good.

use crate::program::TestDir;
use crate::stage::{connect, fetch_all};
use serde_json::json;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const STORE: u64 = 8 << 20;
const CHUNK: u64 = 64 << 10;
/// `docs/concepts/format.md` has the picture.
const MIDDLE: u64 = STORE / 2;
const JOURNAL: u64 = MIDDLE + CHUNK;
const CHECKPOINTS: [u64; 2] = [JOURNAL + 4 * CHUNK, JOURNAL + 5 * CHUNK];
const COPIES: [u64; 4] = [0, CHUNK, MIDDLE, STORE - CHUNK];
const LABEL: u64 = 16 << 10;

/// A store of 8 MiB with a film.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.ok("format a.store --size 8MiB --chunk 64KiB");
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    dir.ok("export a.store film whole.mp4");
    dir
}

/// Where a track's bytes begin.
fn track(dir: &TestDir, number: usize) -> u64 {
    let film = dir.json("info a.store film");
    film["track_list"][number]["extents"][0]["start"].as_u64().unwrap() * CHUNK
}

/// Where the film's index region begins: in the only used chunk without a track in it.
fn index(dir: &TestDir) -> u64 {
    let bytes = dir.read("a.store");
    let places = (0..STORE).step_by(usize::try_from(CHUNK).unwrap());
    let labels =
        places.filter(|at| bytes[usize::try_from(*at).unwrap()..].starts_with(b"TNLABEL\n"));
    let all: Vec<u64> = labels.collect();
    assert_eq!(all.len(), 1, "one title, one label");
    all[0]
}

/// Flips a bit behind each of these places.
fn rot(dir: &TestDir, places: &[u64]) {
    let file = OpenOptions::new().read(true).write(true).open(dir.path("a.store")).unwrap();
    for place in places {
        let mut byte = [0];
        file.read_exact_at(&mut byte, place + 21).unwrap();
        file.write_all_at(&[byte[0] ^ 4], place + 21).unwrap();
    }
}

#[test]
fn each_region_that_rots_is_named() {
    let dir = dir();
    let (pictures, sound, index) = (track(&dir, 0), track(&dir, 1), index(&dir));
    let whole = dir.read("a.store");
    let table: &[(&str, &[u64], i32, &str)] = &[
        ("a superblock", &COPIES[..1], 0, "healed: superblock: copy 0"),
        ("two superblocks", &COPIES[1..3], 0, "healed: superblock: copy 2"),
        ("three superblocks", &COPIES[..3], 4, "error: the store is damaged: "),
        ("all superblocks", &COPIES, 4, "error: the store is damaged: "),
        (
            "half an entry",
            &[JOURNAL],
            0,
            "healed: journal: one of the two copies of journal entry 1",
        ),
        ("a checkpoint", &CHECKPOINTS[..1], 0, "healed: checkpoint: "),
        ("both checkpoints", &CHECKPOINTS, 4, "error: the store is damaged: "),
        ("the label", &[index], 4, "damage: index of 'film': the label of title 'film' is damaged"),
        (
            "the index",
            &[index + LABEL],
            4,
            "damage: index of 'film': the index of title 'film' does",
        ),
        (
            "pictures",
            &[pictures + 5000],
            4,
            "damage: data of 'film': damaged data in title 'film', track 0",
        ),
        (
            "sound",
            &[sound + 5000],
            4,
            "damage: data of 'film': damaged data in title 'film', track 1",
        ),
        ("nothing", &[], 0, "nothing to repair"),
        ("free space", &[STORE - 3 * CHUNK], 0, "nothing to repair"),
    ];
    for (region, places, code, words) in table {
        dir.write("a.store", &whole);
        rot(&dir, places);
        let run = dir.run("check a.store --scrub");
        let said = format!("{}{}", run.out, run.err);
        assert_eq!(run.code, Some(*code), "{region}: {said}");
        assert!(said.contains(words), "{region}: '{words}' is not in: {said}");
        let plays = *code == 0 || *region == "the label";
        let run = dir.run("export a.store film out.mp4");
        assert_eq!(run.code, Some(if plays { 0 } else { 4 }), "{region}: {}", run.err);
        assert_eq!(dir.path("out.mp4").exists(), plays, "{region}: half an export");
        if plays {
            assert!(dir.read("out.mp4") == dir.read("whole.mp4"), "{region}");
            std::fs::remove_file(dir.path("out.mp4")).unwrap();
        }
    }
}

#[test]
fn a_lost_catalogue_is_shown_first_and_rebuilt_when_allowed() {
    let dir = dir();
    let run = dir.run("check a.store --rebuild --destroy");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out, "the catalogue has all titles (1 title): nothing to rebuild\n");
    rot(&dir, &CHECKPOINTS);
    let lost = dir.read("a.store");
    let run = dir.run("ls a.store");
    assert_eq!(run.code, Some(4), "{}", run.err);
    assert!(run.err.contains("`tenuto check STORE --rebuild`"), "{}", run.err);
    let run = dir.run("check a.store --rebuild");
    assert_eq!(run.code, Some(4), "{}", run.err);
    for words in
        ["damage: neither checkpoint can be read", "title: 'film'", "with --destroy this becomes"]
    {
        assert!(run.out.contains(words), "'{words}' is not in: {}", run.out);
    }
    assert!(dir.read("a.store") == lost, "a report writes nothing");
    let report = dir.json("check a.store --rebuild --destroy");
    assert_eq!((&report["written"], &report["titles"][0]["name"]), (&json!(true), &json!("film")));
    assert_eq!(report["given_up"], json!([]));
    dir.ok("check a.store --scrub");
    dir.ok("export a.store film again.mp4");
    assert!(dir.read("again.mp4") == dir.read("whole.mp4"));
}

#[test]
fn a_title_whose_entry_is_lost_is_found_by_its_label() {
    let dir = dir();
    // As if the entries had never been written: nothing tells that they were.
    let file = OpenOptions::new().write(true).open(dir.path("a.store")).unwrap();
    file.write_all_at(&[0; 256 << 10], JOURNAL).unwrap();
    drop(file);
    assert_eq!(dir.json("check a.store --scrub")["findings"], json!([]));
    assert_eq!(dir.json("ls a.store")["titles"], json!([]));
    let run = dir.run("check a.store --rebuild");
    assert_eq!(run.code, Some(4), "{}", run.err);
    for words in ["title: 'film'", "beside the 0 of the catalogue", "with --destroy it gets them"] {
        assert!(run.out.contains(words), "'{words}' is not in: {}", run.out);
    }
    dir.ok("check a.store --rebuild --destroy");
    dir.ok("check a.store --scrub");
    dir.ok("export a.store film again.mp4");
    assert!(dir.read("again.mp4") == dir.read("whole.mp4"));
    dir.ok("check a.store --rebuild");
}

#[test]
fn one_superblock_copy_is_enough_to_make_the_others_again() {
    let dir = dir();
    rot(&dir, &COPIES[1..]);
    let run = dir.run("ls a.store");
    assert_eq!(run.code, Some(4), "{}", run.err);
    assert!(run.err.contains("1 of the 4 superblock copies"), "{}", run.err);
    assert!(run.err.contains("`tenuto check STORE --rebuild`"), "{}", run.err);
    let run = dir.run("check a.store --rebuild");
    assert_eq!(run.code, Some(4), "{}", run.err);
    assert!(run.out.contains("0 not recovered, beside the 1 of the catalogue"), "{}", run.out);
    dir.ok("check a.store --rebuild --destroy");
    dir.ok("check a.store --scrub");
}

#[test]
fn bytes_anywhere_may_be_anything() {
    let dir = dir();
    let whole = dir.read("a.store");
    // Both copies of the newest entry gone look like a power cut in the middle of writing it, and
    // are taken for that: one copy is left alone.
    let second = usize::try_from(JOURNAL).unwrap() + 4096;
    let used: Vec<usize> = (0..whole.len())
        .step_by(4096)
        .filter(|at| *at != second)
        .filter(|at| whole[*at..at + 4096].iter().any(|byte| *byte != 0))
        .collect();
    let mut found = 0;
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut image = whole.clone();
        for _ in 0..random.choice([1, 8, 64]).unwrap() {
            let block = *random.choice(&used).unwrap();
            image[block + random.usize(..4096)] = random.u8(..);
        }
        dir.write("a.store", &image);
        let check = dir.run("check a.store --scrub");
        assert!(matches!(check.code, Some(0 | 4)), "seed {seed}: {check:?}");
        found += usize::from(check.code == Some(4));
        let export = dir.run("export a.store film out.mp4 --destroy");
        assert!(matches!(export.code, Some(0 | 4)), "seed {seed}: {export:?}");
        if export.code == Some(0) {
            assert!(dir.read("out.mp4") == dir.read("whole.mp4"), "seed {seed}: damage passed");
        }
    }
    assert!(found > 20, "only {found} of 60 were found");
}

#[test]
fn damaged_media_is_never_served_as_good_and_the_rest_is_served() {
    let dir = dir();
    let pictures = track(&dir, 0);
    let server = dir.serve("");
    let whole = fetch_all(&mut connect(&server), "/t/film/master.m3u8");
    assert_eq!(server.stop(), Some(0));
    // The second span of 64 KiB of the pictures.
    rot(&dir, &[pictures + CHUNK]);
    let server = dir.serve("--access-log access.log");
    let (mut good, mut bad) = (0, 0);
    for (place, _, body) in &whole {
        let mut client = connect(&server);
        let master = client.get("/t/film/master.m3u8");
        let token = master.text().split("?s=").nth(1).unwrap().split(['"', '\n']).next().unwrap();
        client.send(format!("GET {place}?s={token} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
        match client.read_response(true) {
            Some(answer) if answer.status == 200 && answer.whole => {
                assert!(answer.body == *body, "{place}: damage passed");
                good += 1;
            }
            Some(answer) if answer.status == 500 => {
                assert!(!answer.error().is_empty(), "{place}");
                bad += 1;
            }
            _ => bad += 1,
        }
    }
    assert!(good > 0 && bad > 0, "{good} parts served, {bad} refused");
    assert_eq!(connect(&server).get("/healthz").status, 200);
    assert_eq!(server.stop(), Some(0));
    let log = String::from_utf8(dir.read("access.log")).unwrap();
    assert!(log.contains("\"event\":\"damaged\"") && log.contains("film"), "{log}");
}

#[test]
fn a_title_whose_index_is_damaged_is_refused_by_name_and_the_others_play() {
    let dir = dir();
    let index = index(&dir);
    dir.ok("ingest a.store film.mkv --title other");
    rot(&dir, &[index + LABEL]);
    let server = dir.serve("");
    let mut client = connect(&server);
    for path in ["/t/film/master.m3u8", "/t/film.mp4"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 500, "{path}");
        assert!(answer.json()["message"].as_str().unwrap().contains("film"), "{}", answer.text());
    }
    let parts = fetch_all(&mut client, "/t/other/master.m3u8");
    assert!(parts.iter().all(|(_, status, _)| *status == 200));
    let run = dir.run("check a.store --scrub");
    assert_eq!(run.code, Some(4), "{}", run.out);
    assert!(run.out.contains("damage: index of 'film'"), "{}", run.out);
    assert_eq!(server.stop(), Some(0));
}
