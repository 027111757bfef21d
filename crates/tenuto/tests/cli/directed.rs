//! Two nodes and two directors with a real etcd: who is sent where, and what viewers notice when
//! one of them is killed. `make deps` installs etcd.

use crate::program::{Run, TestDir, program};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is killed when the test ends.
pub(crate) struct Part {
    child: Child,
    /// `HOST:PORT`.
    pub(crate) address: String,
}

impl Part {
    pub(crate) fn new(mut command: Command, address: String) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("the program starts"), address }
    }

    /// SIGKILL; the address stays for a program that is started again.
    pub(crate) fn kill(&mut self) -> String {
        self.child.kill().expect("it still runs");
        self.child.wait().expect("it ends");
        self.address.clone()
    }

    /// SIGTERM; returns when it has ended.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        self.child.wait().expect("it ends");
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(name).arg(self.child.id().to_string()).status();
        assert!(status.expect("kill runs").success());
    }

    /// The head and the body of the response to a GET; empty without one.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        self.request("GET", path, "")
    }

    /// The head and the body of a response; empty without one.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (String, String) {
        let read = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let (host, length) = (&self.address, body.len());
            let head = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n");
            write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().unwrap_or_default();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        (head.to_owned(), body.to_owned())
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).1).unwrap_or_default()
    }

    /// What the cluster's part of a node's status is now.
    pub(crate) fn cluster(&self) -> Value {
        self.json("/status")["cluster"].take()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

/// Waits until `holds`: other tests may keep the machine busy.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn etcd(dir: &TestDir, address: &str, peers: &str) -> Part {
    let part = etcd_member(dir, "etcd", address, &format!("etcd=http://{peers}"));
    eventually("etcd answers", || part.get("/health").1.contains("true"));
    part
}

/// The member `name` of an etcd of these `members`, each `NAME=URL`, with commas between them.
pub(crate) fn etcd_member(dir: &TestDir, name: &str, address: &str, members: &str) -> Part {
    Part::new(etcd_command(dir, name, "http", address, members), address.to_owned())
}

/// Starts a member whose clients come over `http` or `https`.
pub(crate) fn etcd_command(
    dir: &TestDir,
    name: &str,
    scheme: &str,
    address: &str,
    members: &str,
) -> Command {
    let mut command = Command::new("etcd");
    let here = format!("{scheme}://{address}");
    let of = |member: &str| member.strip_prefix(&format!("{name}=")).map(str::to_owned);
    let peers = members.split(',').find_map(of).expect("it is one of them");
    command.arg("--data-dir").arg(dir.path(name)).args(["--name", name]);
    command.args(["--listen-client-urls", &here, "--advertise-client-urls", &here]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", members]);
    // Only where a test fills it.
    command.args(["--quota-backend-bytes", &QUOTA.to_string()]);
    command
}

/// The node `n1` or `n2` with its store.
fn node(dir: &TestDir, etcd: &str, name: &str, address: String) -> Part {
    node_of(dir, etcd, name, name, address)
}

/// A node with a store of another name.
pub(crate) fn node_of(dir: &TestDir, etcd: &str, name: &str, store: &str, address: String) -> Part {
    let line = format!(
        "serve {store}.store --listen {address} --node {name} --node-address http://{address} \
         --cluster {etcd} --cluster-name c --cluster-secret secret --as-disk st39183w \
         --network 30Mbps --grace 1s --max-client-unplayed 1000"
    );
    let mut command = program(&dir.path(""));
    command.args(line.split_whitespace());
    Part::new(command, address)
}

pub(crate) fn director(dir: &TestDir, etcd: &str) -> Part {
    let address = free_address();
    let line = format!(
        "director --listen {address} --cluster {etcd} --cluster-name c \
         --cluster-secret secret"
    );
    let mut command = program(&dir.path(""));
    command.args(line.split_whitespace());
    Part::new(command, address)
}

/// Viewers in the background, and their report at the end.
pub(crate) fn viewers(dir: &TestDir, at: &Part, number: usize, seconds: u32) -> Child {
    let line = format!(
        "play http://{}{MASTER} --viewers {number} --buffer 8s --duration {seconds}s --json",
        at.address
    );
    let mut command = program(&dir.path(""));
    command.args(line.split_whitespace()).stdout(Stdio::piped()).spawn().expect("it plays")
}

#[track_caller]
pub(crate) fn report(viewers: Child) -> Value {
    let output = viewers.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("a report")
}

/// Neither an error nor a stall.
#[track_caller]
pub(crate) fn assert_undisturbed(report: &Value, admitted: usize) {
    let totals = &report["totals"];
    assert_eq!(totals["admitted"], admitted, "{report}");
    assert_eq!((&totals["failed"], &totals["refused"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(totals["stalls"], 0, "{report}");
}

/// The growth of a counter of both nodes.
fn since(before: [Option<u64>; 2], now: [Option<u64>; 2]) -> Vec<u64> {
    let growth = now.iter().zip(before);
    growth.map(|(now, before)| now.unwrap_or_default() - before.unwrap_or_default()).collect()
}

pub(crate) const MASTER: &str = "/t/film/master.m3u8";
/// Bytes of an etcd: far more than any test writes in order.
pub(crate) const QUOTA: usize = 16 << 20;

/// The stores of these names with one film, and the secret.
pub(crate) fn prepared(stores: &[&str]) -> TestDir {
    let dir = TestDir::new();
    dir.film_of(60, "film.mkv");
    for name in stores {
        dir.ok(&format!("format {name}.store --size 32MiB"));
        dir.ok(&format!("ingest {name}.store film.mkv"));
    }
    write_secret(&dir);
    dir
}

fn write_secret(dir: &TestDir) {
    dir.write("secret", [b's'; 32]);
    let only_mine = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path("secret"), only_mine).unwrap();
}

#[test]
fn a_director_shows_itself_to_holders_of_a_token() {
    let dir = TestDir::new();
    write_secret(&dir);
    dir.ok("token keys.json --new");
    let token = |words: &str| dir.ok(&format!("token keys.json {words}")).trim().to_owned();
    let tokens = [String::new(), token("--title film"), token(""), token("--operator")];
    // No etcd answers there: the director says so, and goes on.
    let line = "director --cluster http://127.0.0.1:1 --cluster-name c --cluster-secret secret";
    let address = free_address();
    let mut command = program(&dir.path(""));
    command.args(format!("{line} --listen {address} --tokens keys.json").split_whitespace());
    let director = Part::new(command, address);
    eventually("it answers", || !director.get("/console/").0.is_empty());
    let rows = [
        ("/status", ["401", "403", "403", "200"]),
        ("/metrics", ["401", "403", "403", "200"]),
        ("/titles", ["401", "403", "200", "200"]),
        ("/console/", ["200"; 4]),
    ];
    for (path, wanted) in rows {
        let status = tokens.each_ref().map(|token| {
            let query = if token.is_empty() { token.clone() } else { format!("?token={token}") };
            let head = director.get(&format!("{path}{query}")).0;
            head.split(' ').nth(1).unwrap_or_default().to_owned()
        });
        assert_eq!(status, wanted, "{path}");
    }
    let public = format!("{line} --listen 0.0.0.0:0");
    dir.fails(&public, 1, "everybody could see its nodes and titles");
    dir.fails(&format!("{line} --tokens none.json"), 1, "--tokens: ");
}

#[test]
fn viewers_go_on_when_a_part_of_the_cluster_is_killed() {
    testkit::needs!(Program("etcd"), Program("ffmpeg"));
    let dir = prepared(&["n1", "n2"]);
    let (client, peers) = (free_address(), free_address());
    let etcd_url = format!("http://{client}");
    let mut etcd_member = etcd(&dir, &client, &peers);
    let mut nodes = ["n1", "n2"].map(|name| node(&dir, &etcd_url, name, free_address()));
    let (mut lost, director) = (director(&dir, &etcd_url), director(&dir, &etcd_url));
    let is_sent = |director: &Part| director.get(MASTER).0.starts_with("HTTP/1.1 302");
    let registered = |node: &Part| node.cluster()["registered"] == true;
    eventually("both are registered", || nodes.iter().all(registered));
    eventually("both have the film", || {
        [&lost, &director].iter().all(|director| {
            director.json("/titles")["titles"][0]["ready"].as_array().map(Vec::len) == Some(2)
        })
    });

    // Both are filled, and then viewers are told why.
    let full = report(viewers(&dir, &director, 60, 2));
    let admitted = full["totals"]["admitted"].as_u64().unwrap();
    assert!(nodes.iter().all(|node| node.json("/status")["admitted"].as_u64() > Some(0)), "{full}");
    let refused: Vec<&Value> = full["viewers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|viewer| &viewer["refusal"])
        .filter(|refusal| refusal.is_object())
        .collect();
    assert!(!refused.is_empty(), "{full}");
    for refusal in refused {
        assert_eq!(refusal["cause"], "full", "{refusal}");
        assert!(refusal["retry_after_s"].as_u64() > Some(0), "{refusal}");
    }

    // As many as one node holds; then a director is killed, and a node.
    let crowd = usize::try_from(admitted / 2).unwrap();
    eventually("the director has seen that they have left", || {
        let nodes = lost.json("/status")["nodes"].as_array().cloned().unwrap_or_default();
        let share = |node: &Value, name: &str| node["network"][name].as_u64().unwrap_or_default();
        nodes.len() == 2
            && nodes.iter().all(|node| share(node, "free") * 4 > share(node, "guaranteed") * 3)
    });
    let status = |name: &str| nodes.each_ref().map(|node| node.json("/status")[name].as_u64());
    let (viewers_before, bytes_before) = (status("admitted"), status("sent_bytes"));
    let playing = viewers(&dir, &lost, crowd, 14);
    eventually("viewers are at both nodes", || {
        let begun = since(viewers_before, status("admitted"));
        // A node that answers late has reserved for a viewer who is at the other one by then.
        begun.iter().all(|begun| *begun > 0) && begun.iter().sum::<u64>() >= crowd as u64
    });
    let rate = dir.json("info n1.store film")["bit_rate"].as_u64().unwrap();
    eventually("they have a buffer of 4 s", || {
        let sent: u64 = since(bytes_before, status("sent_bytes")).iter().sum();
        sent > rate / 8 * 4 * crowd as u64
    });
    lost.kill();
    let address = nodes[1].kill();
    nodes[1] = node(&dir, &etcd_url, "n2", address);
    // Its lease has not ended, unless the machine took so long to start it: for etcd this is a
    // second node of the name.
    eventually("the second is told", || {
        let told = nodes[1].cluster();
        let why = told["error"].as_str();
        why.is_some_and(|why| why.contains("another node")) || told["registered"] == true
    });
    assert!(is_sent(&director), "another director answers");
    let after = report(playing);
    assert_undisturbed(&after, crowd);
    let moved = after["totals"]["viewers_with_failovers"].as_u64().unwrap();
    assert!(moved > 0 && moved < crowd as u64, "those of one node: {after}");
    eventually("registered when the lease has ended", || registered(&nodes[1]));

    // Without etcd all goes on, until the leases have ended.
    let playing = viewers(&dir, &director, 2, 16);
    eventually("they play", || {
        nodes.iter().any(|node| node.json("/sessions").to_string().contains("\"title\""))
    });
    etcd_member.kill();
    assert!(is_sent(&director), "the view is what it was");
    eventually("nodes are cut off", || !nodes.iter().any(registered));
    eventually("nobody is sent there", || director.get(MASTER).0.starts_with("HTTP/1.1 503"));
    let _again = etcd(&dir, &client, &peers);
    assert_undisturbed(&report(playing), 2);
    eventually("registered again", || nodes.iter().all(registered));
    eventually("sent again", || is_sent(&director));

    // All nodes are started anew in their places, one after the other.
    for (node, name) in nodes.iter().zip(["n1", "n2"]) {
        dir.write(&format!("{name}.pid"), node.child.id().to_string());
    }
    let upgrade = |run: &str, more: &str| {
        let mut command = program(&dir.path(""));
        command.args(["cluster", "upgrade", "--cluster", &etcd_url]);
        command.args(["--cluster-name", "c", "--run", run]).args(more.split_whitespace());
        Run::from(command.output().expect("tenuto runs"))
    };
    let admitted = || nodes.each_ref().map(|node| node.json("/status")["admitted"].as_u64());
    let before = admitted();
    let playing = viewers(&dir, &director, 4, 12);
    eventually("they play", || since(before, admitted()).iter().sum::<u64>() >= 4);
    let done = upgrade("kill -USR2 $(cat $TENUTO_NODE.pid) && echo at $TENUTO_NODE_HOST", "--json");
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let names = |nodes: &Value| {
        let nodes = nodes.as_array().unwrap().iter();
        nodes.map(|node| node["node"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let told: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(names(&told["done"]), ["n1", "n2"], "{told}");
    assert_eq!((&told["failed"], &told["left"]), (&Value::Null, &json!([])), "{told}");
    assert_eq!(told["done"][0]["copies"], 1, "{told}");
    assert!(done.err.starts_with("at 127.0.0.1\nn1 is registered again after "), "{}", done.err);
    assert_undisturbed(&report(playing), 4);
    let refused = [
        ("exit 3", "", "n1: the command failed (exit status: 3)\nas they were: n2\n"),
        (
            "true",
            "--timeout 2s n2 n1",
            "n2: after 2s it goes on as before: the command did not start it anew\n\
             as they were: n1\n",
        ),
        ("true", "n9", "error: no node 'n9' is registered in 'c'"),
    ];
    for (run, more, wanted) in refused {
        let refused = upgrade(run, more);
        let text = format!("{}{}", refused.out, refused.err);
        assert!(refused.code == Some(1) && text.starts_with(wanted), "{text}");
    }
    assert!(nodes.iter().all(registered));
}
