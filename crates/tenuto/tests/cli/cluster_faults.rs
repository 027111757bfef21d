//! Parts of a cluster that hang, are cut off or come back from the past, with a real etcd: viewers
//! who play go on, others are sent to those who may admit them, and all comes back by itself.
//!
//! A program that is stopped (SIGSTOP) accepts connections and does not answer, as a machine behind
//! a network that has failed. Leases of nodes are 10 s long. What is killed is in `directed`.

use crate::directed::{
    MASTER, Part, QUOTA, assert_undisturbed, director, etcd, etcd_member, eventually, free_address,
    node_of, prepared, report, viewers,
};
use crate::program::{TestDir, program};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn is_registered(node: &Part) -> bool {
    node.cluster()["registered"] == true
}

/// Where a new viewer is sent; `None`: the viewer is refused.
fn sent_to(director: &Part) -> Option<String> {
    let (head, _) = director.get(MASTER);
    let location = head.lines().find_map(|line| line.strip_prefix("Location: http://"));
    location.map(|rest| rest.split('/').next().unwrap_or_default().to_owned())
}

/// The number of viewers that a node has admitted, as of a moment ago.
fn admitted(node: &Part) -> u64 {
    node.json("/status")["admitted"].as_u64().expect("it answers")
}

/// Waits until the viewers of `node` have a buffer of a few seconds.
fn wait_for_buffers(dir: &TestDir, node: &Part, viewers: u64) {
    let rate = dir.json("info n1.store film")["bit_rate"].as_u64().expect("a number");
    eventually("they have a buffer of 4 s", || {
        node.json("/status")["sent_bytes"].as_u64() > Some(rate / 8 * 4 * viewers)
    });
}

/// Holds for longer than the lease of a node.
fn for_a_lease(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(12);
    while Instant::now() < until {
        assert!(holds(), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A request to the JSON gateway of etcd.
fn ask_etcd(etcd: &Part, path: &str, body: &Value) -> Value {
    let (head, text) = etcd.request("POST", path, &body.to_string());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {head}"))
}

/// Bytes as the gateway takes them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let four = |three: &[u8]| {
        let number = (0..3)
            .fold(0, |sum, at| sum << 8 | usize::from(three.get(at).copied().unwrap_or_default()));
        let digit = |at: usize| char::from(DIGITS[number >> (18 - 6 * at) & 63]);
        [0, 1, 2, 3].map(|at| if at <= three.len() { digit(at) } else { '=' })
    };
    bytes.chunks(3).flat_map(four).collect()
}

fn put(etcd: &Part, key: &str, value: &[u8]) -> Value {
    let (key, value) = (base64(key.as_bytes()), base64(value));
    ask_etcd(etcd, "/v3/kv/put", &json!({ "key": key, "value": value }))
}

#[test]
fn a_node_or_a_director_that_hangs_does_no_harm_when_it_goes_on() {
    testkit::needs!(Program("etcd"), Program("ffmpeg"));
    let dir = prepared(&["n1", "n2", "twin"]);
    let client = free_address();
    let _etcd = etcd(&dir, &client, &free_address());
    let url = format!("http://{client}");
    let hung = node_of(&dir, &url, "n1", "n1", free_address());
    let other = node_of(&dir, &url, "n2", "n2", free_address());
    let directors = [director(&dir, &url), director(&dir, &url)];
    eventually("both are registered", || is_registered(&hung) && is_registered(&other));
    eventually("the directors know both", || {
        directors.iter().all(|it| it.json("/status")["nodes"].as_array().map(Vec::len) == Some(2))
    });
    let playing = viewers(&dir, &hung, 1, 18);
    wait_for_buffers(&dir, &hung, 1);
    eventually("it is counted", || admitted(&hung) == 1);

    // Another one gets the name of a node that hangs, when the lease has ended.
    hung.signal("-STOP");
    directors[1].signal("-STOP");
    let twin = node_of(&dir, &url, "n1", "twin", free_address());
    eventually("the twin is told", || {
        twin.cluster()["error"].as_str().is_some_and(|why| why.contains("another node"))
            || is_registered(&twin)
    });
    eventually("the other one answers", || {
        is_registered(&twin) || sent_to(&directors[0]).as_ref() == Some(&other.address)
    });
    eventually("the twin has the name", || is_registered(&twin));

    // The first one is not taken for a node any more, and the director has not lost anything.
    hung.signal("-CONT");
    directors[1].signal("-CONT");
    eventually("the first is told", || {
        hung.cluster()["error"].as_str().is_some_and(|why| why.contains("another node"))
    });
    for director in &directors {
        for wanted in [&other.address, &twin.address] {
            eventually("viewers are sent to both", || {
                let to = sent_to(director);
                assert!(to.as_ref() != Some(&hung.address), "it is no node now");
                to.as_ref() == Some(wanted)
            });
        }
    }
    let totals = report(playing)["totals"].take();
    assert_eq!((&totals["admitted"], &totals["failed"]), (&1.into(), &0.into()), "{totals}");
    assert!(!is_registered(&hung) && is_registered(&twin));
    assert_eq!(admitted(&hung), 1, "nobody was sent to a node that hung");
    twin.stop();
    eventually("the first is registered again", || is_registered(&hung));
}

#[test]
fn nodes_that_are_cut_off_from_etcd_admit_nobody_and_come_back() {
    testkit::needs!(Program("etcd"), Program("ffmpeg"));
    let dir = prepared(&["n1", "n2"]);
    let clients = [0; 3].map(|_| free_address());
    let names = ["e1", "e2", "e3"];
    let members: Vec<String> =
        names.iter().map(|name| format!("{name}=http://{}", free_address())).collect();
    let members = members.join(",");
    let etcd = [0, 1, 2].map(|at| etcd_member(&dir, names[at], &clients[at], &members));
    eventually("etcd answers", || etcd.iter().all(|it| it.get("/health").1.contains("true")));
    let urls = clients.each_ref().map(|client| format!("http://{client}"));
    // One node reaches one member only, on the other side of a split network.
    let cut_off = node_of(&dir, &urls[2], "n1", "n1", free_address());
    let other = node_of(&dir, &urls.join(","), "n2", "n2", free_address());
    let director = director(&dir, &urls.join(","));
    eventually("both are registered", || is_registered(&cut_off) && is_registered(&other));
    eventually("the director knows both", || {
        director.json("/titles")["titles"][0]["ready"].as_array().map(Vec::len) == Some(2)
    });
    let playing = [&cut_off, &other].map(|node| viewers(&dir, node, 1, 30));
    [&cut_off, &other].into_iter().for_each(|node| wait_for_buffers(&dir, node, 1));

    etcd[2].signal("-STOP");
    eventually("one node is cut off", || {
        assert!(is_registered(&other), "the others go on");
        !is_registered(&cut_off)
    });
    // On a busy machine a node may answer too late.
    eventually("viewers are sent to the other", || {
        let to = sent_to(&director);
        assert!(to.as_ref() != Some(&cut_off.address), "it admits nobody");
        to.as_ref() == Some(&other.address)
    });
    etcd[2].signal("-CONT");
    eventually("it is back", || is_registered(&cut_off) && is_registered(&other));

    // Without a majority nobody is admitted, and those who play go on.
    etcd[..2].iter().for_each(|member| member.signal("-STOP"));
    eventually("both are cut off", || !is_registered(&cut_off) && !is_registered(&other));
    assert_eq!(sent_to(&director), None);
    assert_eq!(admitted(&cut_off), 1, "nobody was admitted meanwhile");
    etcd[..2].iter().for_each(|member| member.signal("-CONT"));
    eventually("both are back", || is_registered(&cut_off) && is_registered(&other));
    eventually("viewers are sent again", || sent_to(&director).is_some());
    playing.into_iter().for_each(|viewers| assert_undisturbed(&report(viewers), 1));
}

#[test]
fn an_etcd_that_is_full_or_restored_is_used_again() {
    testkit::needs!(Program("etcd"), Program("ffmpeg"));
    let dir = prepared(&["n1", "n2"]);
    let (client, peers) = (free_address(), free_address());
    let url = format!("http://{client}");
    let mut member = etcd(&dir, &client, &peers);
    let node = node_of(&dir, &url, "n1", "n1", free_address());
    let director = director(&dir, &url);
    eventually("a viewer is sent", || sent_to(&director).is_some());

    // Full: who is there stays, and nobody comes.
    let large = vec![b'x'; 1 << 20];
    let refused = (0..2 * QUOTA / large.len()).find_map(|number| {
        put(&member, &format!("/other/{number}"), &large)["error"].as_str().map(str::to_owned)
    });
    assert!(refused.is_some_and(|why| why.contains("space exceeded")), "it becomes full");
    let late = node_of(&dir, &url, "n2", "n2", free_address());
    for_a_lease("the node stays registered", || {
        is_registered(&node) && sent_to(&director).is_some()
    });
    assert!(!is_registered(&late));
    let why = late.cluster()["error"].take();
    assert!(why.as_str().is_some_and(|why| why.contains("space exceeded")), "{why}");
    let all = json!({ "key": base64(b"/other/"),
                      "range_end": base64(b"/other0") });
    let removed = ask_etcd(&member, "/v3/kv/deleterange", &all);
    let revision = &removed["header"]["revision"];
    let compacted = json!({ "revision": revision, "physical": true });
    ask_etcd(&member, "/v3/kv/compaction", &compacted);
    ask_etcd(&member, "/v3/maintenance/defragment", &json!({}));
    let this = &removed["header"]["member_id"];
    let disarm = json!({ "action": "DEACTIVATE", "alarm": "NOSPACE", "memberID": this });
    ask_etcd(&member, "/v3/maintenance/alarm", &disarm);
    eventually("the other comes", || is_registered(&late));
    eventually("all is well", || {
        [&node, &late].iter().all(|node| node.cluster()["error"].is_null())
            && director.json("/status")["etcd"]["error"].is_null()
    });

    // Restored, while the director hangs: what it knows is from a time that never was.
    member.kill();
    let copy = |from: &str, to: &str| {
        let _ = std::fs::remove_dir_all(dir.path(to));
        let mut command = std::process::Command::new("cp");
        command.arg("-r").arg(dir.path(from)).arg(dir.path(to));
        assert!(command.status().expect("cp runs").success());
    };
    copy("etcd", "backup");
    let mut member = etcd(&dir, &client, &peers);
    let drain = format!("cluster drain n1 --no-wait --cluster {url} --cluster-name c");
    put(&member, "/tenuto/c/planner", b"\"nobody\"");
    let mut command = program(&dir.path(""));
    command.args(drain.split_whitespace());
    assert!(command.output().expect("tenuto runs").status.success());
    let drained = |director: &Part| director.json("/status")["nodes"][0]["drained"].clone();
    eventually("the director knows", || drained(&director) == true);
    let revision = director.json("/status")["revision"].as_u64().expect("a number");
    director.signal("-STOP");
    member.kill();
    copy("backup", "etcd");
    let member = etcd(&dir, &client, &peers);
    let latest = || {
        let put = put(&member, "/tenuto/c/epoch", b"1");
        put["header"]["revision"].as_str().and_then(|it| it.parse::<u64>().ok())
    };
    eventually("its revision is beyond what the director knows", || latest() > Some(revision));
    eventually("the nodes are back", || is_registered(&node) && is_registered(&late));
    for_a_lease("they stay", || is_registered(&node) && is_registered(&late));
    director.signal("-CONT");
    eventually("the director knows what is true", || drained(&director) == false);
    eventually("viewers are sent", || sent_to(&director).is_some());
}
