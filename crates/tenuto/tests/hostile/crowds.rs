//! Ten times the load, the slow, the rude, and two who watch what is being removed.

use crate::client::Client;
use crate::limits::raise_open_files;
use crate::program::{Served, TestDir};
use crate::stage::{connect, eventually, fetch_all};
use serde_json::json;
use std::io::{BufRead, Write};

/// A served store with a film, and as many open files as a crowd needs.
fn stage(words: &str) -> (TestDir, Served) {
    raise_open_files();
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve(words);
    (dir, server)
}

#[test]
fn a_thousand_who_ask_at_once_are_let_in_or_told_when_to_come() {
    let (dir, server) = stage("--throttle 40Mbps --memory 64MiB");
    let mut crowd: Vec<Client> = (0..1000).map(|_| connect(&server)).collect();
    for client in &mut crowd {
        client.send(b"GET /t/film/master.m3u8 HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    let (mut admitted, mut refused) = (0, 0);
    for client in &mut crowd {
        let answer = client.read_response(true).expect("an answer for each");
        match answer.status {
            200 => admitted += 1,
            503 => {
                assert_eq!(answer.error(), "refused");
                let seconds: u64 = answer.field("retry-after").unwrap().parse().unwrap();
                assert!(seconds >= 1 && answer.json()["resource"].is_string(), "{answer:?}");
                refused += 1;
            }
            other => panic!("{other}: {}", answer.text()),
        }
    }
    assert!(admitted > 0 && refused > 0, "{admitted} admitted, {refused} refused");
    let bound = 64 * 1024 + 1000 * 1024 + PROGRAM_KIB;
    assert!(peak_kib(&server) < bound, "{} KiB", peak_kib(&server));
    drop(crowd);
    // The books are laid open once in a slot.
    eventually("all refusals are counted", || {
        let status = connect(&server).get("/status").json();
        assert_eq!(status["deadline_misses"], json!(0));
        let counts =
            ["disk", "memory", "network"].map(|it| status["refused"][it].as_u64().unwrap());
        counts.iter().sum::<u64>() == refused
    });
    drop(server);
    let server = dir.serve("");
    assert!(fetch_all(&mut connect(&server), "/t/film/master.m3u8").len() > 2);
}

/// The program itself, its libraries, and a title's index.
const PROGRAM_KIB: u64 = 64 * 1024;

/// The most memory that a server has had, in KiB.
fn peak_kib(server: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_connections_is_told_so_and_leaves_room_when_it_is_gone() {
    let (_room, server) = stage("--max-connections 100");
    let mut flood: Vec<Client> = (0..1000).map(|_| connect(&server)).collect();
    let (mut served, mut told) = (0, 0);
    for client in &mut flood {
        client.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n");
        match client.read_response(true) {
            Some(answer) if answer.status == 200 => served += 1,
            Some(answer) => {
                assert_eq!((answer.status, &*answer.error()), (503, "too-many-connections"));
                assert!(answer.field("retry-after").is_some());
                told += 1;
            }
            // Closed before what we sent had arrived: the answer may be lost on the way.
            None => told += 1,
        }
    }
    assert_eq!((served, told), (100, 900));
    drop(flood);
    eventually("there is dir again", || {
        let mut client = connect(&server);
        client.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n");
        client.read_response(true).is_some_and(|answer| answer.status == 200)
    });
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_slow_and_the_rude_cost_the_others_nothing() {
    let (dir, server) = stage("");
    let (address, whole) = connect(&server).get_following("/t/film.mp4");
    let ask_for = |address: &str| format!("GET {address} HTTP/1.1\r\nHost: test\r\n\r\n");
    // One who asks properly, and comes for the answer late: by a session of its own, because the
    // others crowd theirs.
    let mut late = connect(&server);
    let began = late.get("/t/film.mp4");
    let its_own = began.field("location").unwrap_or_else(|| panic!("{}", began.text())).to_owned();
    late.send(ask_for(&its_own).as_bytes());
    let ask = ask_for(&address);
    let mut slow: Vec<Client> = (0..40).map(|_| connect(&server)).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        match number % 4 {
            // Asks and does not read.
            0 => client.send(ask.as_bytes()),
            // Does not come to the end of its question.
            1 => client.send(&ask.as_bytes()[..30]),
            // Says nothing.
            2 => {}
            // Asks for more than it will ever take.
            _ => client.send(ask.repeat(20).as_bytes()),
        }
    }
    let report = dir.json(&format!("play {}/t/film/master.m3u8 --viewers 4", server.origin));
    let totals = &report["totals"];
    assert_eq!((&totals["finished"], &totals["failed"]), (&json!(4), &json!(0)), "{totals}");
    // Byte for byte, a while later.
    let answer = late.read_response(true).expect("its answer has waited");
    let said = String::from_utf8_lossy(&answer.body[..answer.body.len().min(400)]);
    assert_eq!((answer.status, answer.body.len()), (200, whole.body.len()), "{said}");
    assert!(answer.body == whole.body);
    // Who resets in the middle.
    for client in &mut slow {
        let _ = client.stream.get_mut().write_all(ask.as_bytes());
        if client.stream.fill_buf().is_err() {
            break;
        }
    }
    drop(slow);
    let (_, again) = connect(&server).get_following("/t/film.mp4");
    assert!(again.status == 200 && again.body == whole.body);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn two_watch_a_title_that_is_removed_and_replaced_to_its_end() {
    let (dir, server) = stage("");
    dir.write("film.bin", vec![7; 4 << 20]);
    let mut first = connect(&server);
    let whole = fetch_all(&mut first, "/t/film/master.m3u8");
    let (address, file) = first.get_following("/t/film.mp4");
    // The second has its playlists only.
    let mut second = connect(&server);
    let master = second.get("/t/film/master.m3u8");
    let token = master.text().split("?s=").nth(1).unwrap().split(['"', '\n']).next().unwrap();

    let said = dir.ok("rm a.store film");
    assert!(said.contains("free when its last viewer has left"), "{said}");
    assert_eq!(connect(&server).get("/t/film/master.m3u8").error(), "no-title");
    dir.fails("rm a.store film", 1, "there is no title 'film'");
    // Its name and whatever space is free are another's now.
    dir.ok("ingest a.store film.bin --as file --title film");

    assert!(first.get(&address).body == file.body, "the first sees the old film");
    for (place, status, body) in whole {
        let answer = second.get(&format!("{place}?s={token}"));
        assert!(answer.status == status && answer.body == body, "the second, too: {place}");
    }
    assert_eq!(dir.json("check a.store --scrub")["clean"], json!(true));
    assert_eq!(server.stop(), Some(0));
    assert_eq!(dir.ok("ls a.store"), "film\n");
    dir.ok("export a.store film back.bin");
    assert!(dir.read("back.bin") == dir.read("film.bin"));
}
