//! Copies whose parts come from other nodes: two servers of one cluster, a bucket in memory, and
//! peers that do wrong.

use crate::copies::{add_film, assert_sound, copies, node, push, source, titles};
use crate::directed::cluster;
use crate::fixture::{TestServer, TestStore, eventually, media};
use director::question::PEER_HEADER;
use director::secret::ClusterSecret;
use serde_json::json;
use server::{CopySource, ServerConfig};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{Store, TitleRecord, Unthrottled};
use testkit::bucket::TestBucket;
use testkit::etcd::TestEtcd;
use units::BitRate;

/// What a node is told to be its peers when it fills the film.
fn order(etcd: &TestEtcd, peers: &[String]) {
    let fill = json!([{ "title": "film", "disk": 0, "peers": peers }]);
    etcd.put("/tenuto/c/orders/n1", &json!({ "fill": fill }).to_string());
}

/// A node of a cluster of its own that has a film, and a bucket that has it, too.
struct Peer {
    bucket: TestBucket,
    fixture: TestStore,
    film: TitleRecord,
    /// The first bytes of its first track.
    begins: Vec<u8>,
    serving: TestServer,
}

impl Peer {
    fn with(film: &Path) -> Self {
        let (bucket, fixture) = (TestBucket::default(), TestStore::with(&[]));
        add_film(&fixture, film);
        push(&bucket, &fixture, "film");
        let store = Store::open(&fixture.path).unwrap();
        let film = store.find("film").unwrap();
        let reader = store.reader(film.id, &Unthrottled).unwrap();
        let begins = reader.piece(0, 0, 1000).unwrap().to_vec();
        drop(reader);
        drop(store);
        let serving = serve(&fixture, |_| {});
        Self { bucket, fixture, film, begins, serving }
    }

    fn metric(&self, name: &str) -> u64 {
        metric(&self.serving, name)
    }
}

/// A node that knows the secret of the cluster; whether it is registered does not matter.
fn serve(fixture: &TestStore, change: impl FnOnce(&mut ServerConfig)) -> TestServer {
    let member = TestEtcd::new().listen();
    fixture.serve_with(|config| {
        config.cluster = Some(cluster(fixture, &member));
        change(config);
    })
}

fn metric(serving: &TestServer, name: &str) -> u64 {
    let metrics = serving.client().get("/metrics").text().to_owned();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    value.trim().parse().unwrap()
}

/// The bytes of the film that an empty node gets of these peers and of the bucket.
fn filled_from(bucket: &TestBucket, peers: &[String]) -> (u64, u64) {
    filled_at(source(titles(bucket, |_| None)), peers)
}

fn filled_at(source: CopySource, peers: &[String]) -> (u64, u64) {
    let (fixture, etcd) = (TestStore::with(&[]), TestEtcd::new());
    let serving = node(&fixture, &etcd, source);
    order(&etcd, peers);
    eventually("it is filled", || copies(&serving)["filled"] == 1);
    let report = copies(&serving);
    assert_eq!(report["failures"], 0, "{report}");
    let bytes = |name: &str| report[name].as_u64().unwrap();
    let (all, of_peers) = (bytes("filled_bytes"), bytes("filled_bytes_of_peers"));
    let metrics = serving.client().get("/metrics").text().to_owned();
    for (source, bytes) in [("peers", of_peers), ("bucket", all - of_peers)] {
        let line = format!("tenuto_copies_filled_bytes_total{{source=\"{source}\"}} {bytes}\n");
        assert!(metrics.contains(&line), "{line}");
    }
    drop(serving);
    assert_sound(&fixture, &["film"]);
    (of_peers, all - of_peers)
}

/// A peer that answers each request in this way; its address, and how often it was asked.
fn wrong_peer(answer: fn(&mut dyn Write, u64)) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                let mut input = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if input.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
                let number = |name: &str| -> u64 {
                    let value = head.split_once(name).unwrap().1;
                    value.split(['&', ' ']).next().unwrap().parse().unwrap()
                };
                answer(input.get_mut(), number("&to=") - number("from="));
                // Until the node ends the connection.
                let _ = input.read(&mut [0]);
            });
        }
    });
    (address, asked)
}

#[test]
fn a_copy_comes_from_a_peer_that_reads_it_for_a_node_as_for_a_viewer() {
    let peer = Peer::with(&media().heavy);
    peer.bucket.asked.lock().unwrap().clear();
    // Two parts, each at half of this rate.
    let source = source(titles(&peer.bucket, |_| None));
    let source = CopySource { rate: BitRate(100_000_000), ..source };
    let all = peer.film.bytes;
    assert!(all > 16 << 20, "{all}");
    assert_eq!(filled_at(source, &[peer.serving.url("")]), (all, 0));
    // The manifest and the index.
    assert_eq!(*peer.bucket.asked.lock().unwrap(), ["GET", "GET"]);
    eventually("its sessions have ended", || {
        peer.metric("tenuto_peer_parts_sent_bytes_total") == all
    });
    assert_eq!(peer.metric("tenuto_peer_parts_total{answer=\"refused\"}"), 0);
}

#[test]
fn a_copy_goes_on_where_a_peer_does_wrong() {
    let peer = Peer::with(&media().film);
    let (bucket, all, good) = (&peer.bucket, peer.film.bytes, peer.serving.url(""));
    let answers: [fn(&mut dyn Write, u64); 5] = [
        |out, length| {
            let _ = write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let _ = out.write_all(&vec![7; usize::try_from(length).unwrap()]);
        },
        // It ends in the middle.
        |out, length| {
            let _ = write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
            let _ = write!(out, "Connection: close\r\n\r\nabc");
        },
        |out, _| drop(out.write_all(b"HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n")),
        |out, _| drop(out.write_all(b"HTTP/1.1 404 Other\r\nContent-Length: 0\r\n\r\n")),
        |out, length| {
            let _ = write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", length * 2);
            let _ = out.write_all(&vec![7; 2 * usize::try_from(length).unwrap()]);
        },
    ];
    // Each is asked at most twice, by each of two connections; then the good one has all.
    let (mut peers, counts): (Vec<String>, Vec<_>) = answers.map(wrong_peer).into_iter().unzip();
    peers.push(good);
    assert_eq!(filled_from(bucket, &peers), (all, 0));
    for (number, asked) in counts.iter().enumerate() {
        assert!((1..=2).contains(&asked.load(Ordering::Relaxed)), "{number}");
    }
    // One that answers nothing, and one where nobody is; then the bucket.
    let (silent, _) = wrong_peer(|_, _| std::thread::sleep(Duration::from_secs(20)));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(filled_from(bucket, &[silent, format!("http://{gone}")]), (0, all));
}

#[test]
fn a_peer_with_another_version_or_without_room_leaves_the_bytes_to_the_bucket() {
    let Peer { bucket, fixture, film, serving, .. } = Peer::with(&media().heavy);
    drop(serving);
    // A node whose network has less than the rate of a part.
    let full = serve(&fixture, |config| config.network = Some(BitRate(10_000_000)));
    assert_eq!(filled_from(&bucket, &[full.url("")]), (0, film.bytes));
    assert!(metric(&full, "tenuto_peer_parts_total{answer=\"refused\"}") >= 1);
    // Another film under the name.
    let other = TestStore::with(&[]);
    add_film(&other, &media().song);
    let old = serve(&other, |_| {});
    assert_eq!(filled_from(&bucket, &[old.url("")]), (0, film.bytes));
}

#[test]
fn parts_are_for_nodes_of_the_cluster_only() {
    let peer = Peer::with(&media().film);
    let content = peer.film.content().to_string();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let target = |content: &str, to: u64, expires: u64| {
        format!(
            "/parts/film?content={content}&track=0&from=0&to={to}&rate=8000000&expires={expires}"
        )
    };
    let good = target(&content, 1000, now + 60);
    let ask_at = |serving: &TestServer, target: &str, secret: &[u8], signed: &str| {
        let signature = ClusterSecret::from_bytes(secret).unwrap().sign_peer(signed);
        serving.client().request("GET", target, &[(PEER_HEADER, &signature)])
    };
    let ask =
        |target: &str, secret: &[u8], signed: &str| ask_at(&peer.serving, target, secret, signed);
    let (secret, other) = (b"0123456789abcdef0123456789abcdef", &[b'x'; 32]);
    let answer = ask(&good, secret, &good);
    assert_eq!((answer.status, &answer.body), (200, &peer.begins), "as they are stored");
    assert_eq!(peer.serving.client().get(&good).error(), "peer-unknown");
    assert_eq!(ask(&good, other, &good).error(), "peer-unknown");
    let longer = target(&content, 1001, now + 60);
    assert_eq!(ask(&longer, secret, &good).error(), "peer-unknown");
    for (target, word) in [
        (target(&content, 1000, now - 1), "peer-unknown"),
        (target(&content, 1000, now + 100_000), "peer-unknown"),
        (target("1-2-3-4", 1000, now + 60), "version-unknown"),
        (target(&content, 1 << 40, now + 60), "bad-part"),
        (target(&content, 16 << 20, now + 60).replace("track=0", "track=9"), "version-unknown"),
        (good.replace("film", "none"), "no-title"),
        (good.replace("rate=8000000", "rate=0"), "bad-part"),
    ] {
        assert_eq!(ask(&target, secret, &target).error(), word, "{target}");
    }
    let alone = TestStore::with(&[]);
    let answer = ask_at(&alone.serve(), &good, secret, &good);
    assert_eq!(answer.error(), "director-unknown", "a server in no cluster");
}
