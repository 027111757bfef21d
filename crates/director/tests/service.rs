//! A director between viewers, nodes and an etcd in memory: who is sent where, and what a viewer
//! sees when nodes are full, silent or strangers.
//!
//! ```text
//!   HTTP request ──▶ DirectorService ──▶ StubNode: a closure from the request to the answer
//!                           ▲
//!                       TestEtcd
//! ```

use cluster::placement::CopyRules;
use cluster::{ClusterName, ContentTag, Headroom};
use director::etcd::EtcdConfig;
use director::planning::{ListedTitles, PlanningConfig};
use director::question::SignedText;
use director::secret::ClusterSecret;
use director::service::{DirectorService, PageCheck, PageKind, PageRefusal, ServiceConfig};
use director::ticket::Ticket;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::etcd::{TestEtcd, TestEtcdMember};

/// A node that answers as a test wants.
struct StubNode {
    address: String,
    /// The heads of the requests, in order.
    asked: Arc<Mutex<Vec<String>>>,
}

/// The answer to a request, by its head; none for a node that is silent.
type StubAnswer = fn(&str) -> Option<String>;

impl StubNode {
    fn start(answer: StubAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let of_thread = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let asked = Arc::clone(&of_thread);
                std::thread::spawn(move || {
                    while let Some(head) = read_head(&mut stream) {
                        asked.lock().unwrap().push(head.clone());
                        let Some(answer) = answer(&head) else { continue };
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn whole(status: &str, fields: &str, body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()))
}

fn reserves(head: &str) -> Option<String> {
    let path = head.split([' ', '?']).nth(1).unwrap();
    whole("201 Created", &format!("Location: {path}?s=abc\r\n"), "")
}

/// As [`reserves`], with a clock that was never set.
fn reserves_long_ago(head: &str) -> Option<String> {
    let answer = reserves(head)?;
    Some(answer.replacen("\r\n", "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 1))
}

/// With the address of its RTSP port.
fn reserves_over_rtsp(head: &str) -> Option<String> {
    let stream = if head.starts_with("GET /t/film/rtsp-ts") { "/ts" } else { "" };
    whole("201 Created", &format!("Location: rtsp://n0:554/t/film{stream}?ticket=a.b\r\n"), "")
}

fn has_no_rtsp(_: &str) -> Option<String> {
    whole("503 Service Unavailable", "", r#"{"error":"no-rtsp"}"#)
}

fn knows_the_client_too_well(_: &str) -> Option<String> {
    let body = r#"{"error":"too-many-unplayed"}"#;
    whole("429 Too Many Requests", "Retry-After: 2\r\n", body)
}

fn is_full(_: &str) -> Option<String> {
    let body = r#"{"error":"refused","cause":"sessions","retry_after_ms":20000}"#;
    whole("503 Service Unavailable", "Retry-After: 20\r\n", body)
}

fn is_full_for_minutes(_: &str) -> Option<String> {
    whole("503 Service Unavailable", "", r#"{"error":"refused","retry_after_ms":200000}"#)
}

fn is_cut_off(_: &str) -> Option<String> {
    whole("503 Service Unavailable", "", r#"{"error":"refused","cause":"cut-off"}"#)
}

fn knows_no_director(_: &str) -> Option<String> {
    whole("403 Forbidden", "", r#"{"error":"forbidden","cause":"director-unknown"}"#)
}

fn wants_a_token(_: &str) -> Option<String> {
    let body = r#"{"error":"no-token","message":"a token is needed"}"#;
    whole("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", body)
}

fn has_no_such_title(_: &str) -> Option<String> {
    whole("404 Not Found", "", r#"{"error":"no-title","message":"it was removed"}"#)
}

fn is_silent(_: &str) -> Option<String> {
    None
}

/// A cluster with these nodes, which all have the title `film`.
struct TestCluster {
    etcd: TestEtcd,
    member: TestEtcdMember,
    director: DirectorService,
    said: Arc<Mutex<Vec<String>>>,
}

const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

impl TestCluster {
    fn start(nodes: &[&StubNode]) -> Self {
        let etcd = TestEtcd::new();
        let film = r#"{"rate":5000000,"size":1000}"#;
        etcd.put("/tenuto/c/titles/film", film);
        etcd.put("/tenuto/c/titles/lost", film);
        // Each has more free than the next, so that they are asked in this order.
        for (number, node) in nodes.iter().enumerate() {
            put_digest(&etcd, number, node, 1_000_000_000 - 100_000_000 * number);
            let copies = r#"[{"disk":0,"state":"ready"}]"#;
            etcd.put(&format!("/tenuto/c/copies/film/n{number}"), copies);
        }
        let member = etcd.listen();
        let cluster = Self::of(etcd, member, None);
        until(|| cluster.director.is_ready());
        cluster
    }

    fn of(etcd: TestEtcd, member: TestEtcdMember, planning: Option<PlanningConfig>) -> Self {
        Self::with(etcd, member, planning, None)
    }

    fn with(
        etcd: TestEtcd,
        member: TestEtcdMember,
        planning: Option<PlanningConfig>,
        check: Option<PageCheck>,
    ) -> Self {
        let config = ServiceConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            tls: None,
            rtsp: Some("127.0.0.1:0".parse().unwrap()),
            etcd: EtcdConfig {
                endpoints: vec![member.address().parse().unwrap()],
                cluster: ClusterName::new("c").unwrap(),
                access: <_>::default(),
            },
            secret: ClusterSecret::from_bytes(SECRET).unwrap(),
            headroom: Headroom::None,
            keep_free: 0.5,
            planning,
            check,
            version: "test".to_owned(),
        };
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let to = Arc::clone(&said);
        let say = move |text: &str| to.lock().unwrap().push(text.to_owned());
        let director = DirectorService::start(config, say).unwrap();
        Self { etcd, member, director, said }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.director.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The whole answer to a request on a connection of its own.
    fn send(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A refused head ends the connection at once, also while more of it comes.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// The replies to what a player of RTSP sends before it closes its direction.
    fn rtsp(&self, requests: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.director.rtsp_address().unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A director that refuses the first bytes may have closed before the last.
        let _ = stream.write_all(requests);
        let _ = stream.shutdown(Shutdown::Write);
        let mut replies = Vec::new();
        let _ = stream.read_to_end(&mut replies);
        String::from_utf8_lossy(&replies).into_owned()
    }

    fn describe(&self) -> String {
        self.rtsp(b"DESCRIBE rtsp://d/t/film RTSP/1.0\r\nCSeq: 1\r\n\r\n")
    }

    fn get(&self, target: &str) -> String {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n"))
    }

    fn json(&self, target: &str) -> Value {
        serde_json::from_str(body(&self.get(target))).unwrap()
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split_once("\r\n\r\n")?.0;
    head.lines().filter_map(|line| line.split_once(": ")).find(|(n, _)| *n == name).map(|(_, v)| v)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn cause(answer: &str) -> String {
    let body: Value = serde_json::from_str(body(answer)).unwrap();
    body["cause"].as_str().unwrap_or_default().to_owned()
}

/// The ticket of a viewer whom a node has just let go.
fn ticket(title: &str) -> Ticket {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Ticket {
        session: "0".repeat(32),
        title: title.to_owned(),
        version: "v".to_owned(),
        expires: now.as_secs() - 1,
        form: "rtsp".to_owned(),
        part: String::new(),
        max_height: None,
        priority: "normal".to_owned(),
        client: None,
        subject: None,
        token_id: None,
        until: None,
    }
}

/// A node with so much free of its disk's gigabit per second.
fn put_digest(etcd: &TestEtcd, number: usize, node: &StubNode, free: usize) {
    let disk = format!(r#"{{"guaranteed":1000000000,"free":{free}}}"#);
    let spare = r#"{"guaranteed":10000000000,"free":10000000000}"#;
    let digest = format!(
        r#"{{"address":"{}","weight":1,"lease":600,"disks":[{disk}],"network":{spare},"memory":{spare}}}"#,
        node.address
    );
    etcd.put(&format!("/tenuto/c/nodes/n{number}"), &digest);
}

/// Far longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_viewer_is_sent_to_the_node_that_has_reserved() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    for target in ["/t/film/master.m3u8?start=3", "/t/film/manifest.mpd", "/t/film.mp4"] {
        let answer = cluster.get(target);
        assert_eq!(status(&answer), 302, "{answer}");
        let path = target.split('?').next().unwrap();
        let wanted = format!("{}{path}?s=abc", node.address);
        assert_eq!(field(&answer, "Location"), Some(&*wanted));
        assert_eq!(field(&answer, "Cache-Control"), Some("no-store"));
        assert_eq!(field(&answer, "Access-Control-Allow-Origin"), Some("*"));
    }
    let request = "GET /t/film/master.m3u8?a=b HTTP/1.1\r\nAuthorization: Bearer x\r\n\
                   Cookie: no\r\nTraceparent: 00-a-b-01\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&cluster.send(request)), 302);
    let asked = node.asked.lock().unwrap();
    let question = asked.last().unwrap();
    assert!(question.starts_with("GET /t/film/master.m3u8?a=b HTTP/1.1\r\n"), "{question}");
    assert_eq!(field(question, "Tenuto-Client"), Some("127.0.0.1"));
    assert_eq!(field(question, "Authorization"), Some("Bearer x"));
    assert_eq!(field(question, "traceparent"), Some("00-a-b-01"), "the node decides on it");
    assert!(!question.contains("Cookie"));
    let signature = field(question, "Tenuto-Director").unwrap();
    let secret = ClusterSecret::from_bytes(SECRET).unwrap();
    let target = "/t/film/master.m3u8?a=b";
    let signed = SignedText { client: "127.0.0.1", target, ..SignedText::default() };
    assert!(secret.verify(signed, signature), "alone, there is no other node to name");
    assert_eq!(cluster.etcd.writes(), 0, "nothing is written for a viewer");
}

#[test]
fn a_title_in_a_folder_is_found_by_its_encoded_name() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    cluster.etcd.put("/tenuto/c/titles/hall/1 a", r#"{"rate":5000000,"size":1000}"#);
    cluster.etcd.put("/tenuto/c/copies/hall/1 a/n0", r#"[{"disk":0,"state":"ready"}]"#);
    let target = "/t/hall%2F1%20a/master.m3u8";
    until(|| status(&cluster.get(target)) == 302);
    let asked = node.asked.lock().unwrap().last().cloned().unwrap();
    assert!(asked.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{asked}");
    let titles = cluster.json("/titles");
    assert!(titles.to_string().contains(target), "{titles}");
}

#[test]
fn a_cache_is_sent_to_a_node_with_the_content_of_its_address() {
    let nodes = [(); 3].map(|()| StubNode::start(reserves));
    let cluster = TestCluster::start(&[&nodes[0], &nodes[1], &nodes[2]]);
    let (old, new) = (ContentTag::of("a-1-1-1"), ContentTag::of("b-2-2-2"));
    cluster.etcd.put("/tenuto/c/titles/news/7", r#"{"rate":5000000,"size":1000}"#);
    let version = "b-2-2-2-7d0~0.1.0";
    let below = |file: &str| format!("/origin/news/7/{version}/{file}");
    let missing = cluster.get("/origin/none/master.m3u8");
    assert_eq!((status(&missing), cause(&missing).as_str()), (404, ""));
    until(|| status(&cluster.get("/origin/news/7/master.m3u8")) == 503);
    let away = cluster.get(&below("0/1.m4s"));
    assert_eq!((status(&away), cause(&away).as_str()), (503, "no-copy"));
    assert!(field(&away, "Retry-After").is_some(), "{away}");
    for (number, content) in [old, new, new].into_iter().enumerate() {
        let copies = format!(r#"[{{"disk":0,"state":"ready","content":"{content}"}}]"#);
        cluster.etcd.put(&format!("/tenuto/c/copies/news/7/n{number}"), &copies);
    }
    let to = |target: &str| {
        let answer = cluster.get(target);
        let location = field(&answer, "Location").unwrap_or_default();
        let is_there = |node: &StubNode| location == format!("{}{target}", node.address);
        assert_eq!(field(&answer, "Cache-Control"), Some("no-store"), "{answer}");
        (status(&answer) == 307).then(|| nodes.iter().position(is_there)).flatten()
    };
    // Each with room gets a part, and no other content.
    let mut named = BTreeSet::new();
    until(|| {
        named.extend(to(&below("0/1.m4s?x=y")));
        named.contains(&1) && named.contains(&2)
    });
    assert!((0..50).all(|_| to(&below("0.mp4")) != Some(0)));
    // The beginning of any content, in both forms of the name.
    for target in ["/origin/news/7.mp4", "/origin/news%2F7/manifest.mpd", "/origin/film.mp4"] {
        assert!(to(target).is_some(), "{target}");
    }
    let head = cluster.send("HEAD /origin/film.mp4 HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&head), 307);
    // One that a node has failed is sent to the other node with the content.
    for (failed, other) in [(1, 2), (2, 1)] {
        let target = below("0/2.m4s?x=y");
        for _ in 0..20 {
            let again = format!("{target}&failed={}{target}", nodes[failed].address);
            let answer = cluster.get(&again);
            let location = field(&answer, "Location").unwrap_or_default();
            assert_eq!(location, format!("{}{target}", nodes[other].address), "{again}");
        }
    }
    let counters = cluster.json("/status")["counters"].clone();
    let of = |outcome: &str| counters["cache_requests"][outcome].as_u64().expect("a count");
    // Once or more often, until the director had heard of the title.
    let unknown = of("no-title");
    assert!(unknown >= 1 && counters["cache_retries"].as_u64() == Some(40), "{counters}");
    assert!(of("no-copy") >= 2 && of("sent") > 90 && of("not-allowed") == 0, "{counters}");
    let metrics = cluster.get("/metrics");
    let line = format!("tenuto_director_cache_requests_total{{outcome=\"no-title\"}} {unknown}\n");
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("tenuto_director_cache_retries_total 40\n"), "{metrics}");
    assert!(nodes.iter().all(|node| node.asked() == 0), "nothing is reserved for a cache");
}

#[test]
fn full_nodes_are_followed_by_the_next_and_then_by_a_refusal_with_a_time() {
    let (full, free) = (StubNode::start(is_full), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&full, &free]);
    let answer = cluster.get("/t/film/master.m3u8");
    assert!(field(&answer, "Location").unwrap().starts_with(&free.address), "{answer}");
    assert_eq!((full.asked(), free.asked()), (1, 1));

    let others = [StubNode::start(is_full), StubNode::start(is_full)];
    let cluster = TestCluster::start(&[&others[0], &others[1]]);
    let answer = cluster.get("/t/film/master.m3u8");
    assert_eq!((status(&answer), cause(&answer).as_str()), (503, "full"));
    let time: u64 = field(&answer, "Retry-After").unwrap().parse().unwrap();
    assert!((20..=22).contains(&time), "up to a tenth later: {time}");
    assert_eq!((others[0].asked(), others[1].asked()), (1, 1));
    let counters = &cluster.json("/status")["counters"];
    assert_eq!(counters["refused"]["full"], 1);
    assert_eq!([&counters["questions"], &counters["node_refusals"]], [2, 2]);
}

#[test]
fn a_player_of_rtsp_is_sent_to_the_node_that_has_reserved() {
    let node = StubNode::start(reserves_over_rtsp);
    let cluster = TestCluster::start(&[&node]);
    let at = |path: &str| format!("rtsp://n0:554/t/film{path}?ticket=a.b");
    let from = |range: &str| format!("Range: {range}\r\n");
    for (request, range, wanted, question) in [
        ("DESCRIBE rtsp://d/t/film", String::new(), at(""), "/t/film/rtsp"),
        ("DESCRIBE rtsp://d/t/film/", from("npt=-9"), at(""), "/t/film/rtsp"),
        (
            "DESCRIBE rtsp://d:554/t/film/ts?token=a.b&x=y",
            from("npt=0:01:01.5-"),
            at("/ts"),
            "/t/film/rtsp-ts?token=a.b&start=61.500",
        ),
        ("DESCRIBE rtsp://d/t/film?token=%26x", from("a&b"), at(""), "/t/film/rtsp?token=%26x"),
        (
            "SETUP rtsp://d/t/film/trackID=1",
            from("npt=7-9"),
            at("/trackID=1"),
            "/t/film/rtsp?start=7.000",
        ),
    ] {
        let fields = format!("CSeq: 7\r\nAuthorization: Bearer x\r\n{range}");
        let reply = cluster.rtsp(format!("{request} RTSP/1.0\r\n{fields}\r\n").as_bytes());
        assert_eq!(reply.lines().next(), Some("RTSP/1.0 302 Found"), "{request}");
        assert_eq!(field(&reply, "Location"), Some(&*wanted), "{request}");
        assert_eq!(field(&reply, "CSeq"), Some("7"));
        let asked = node.asked.lock().unwrap().last().cloned().unwrap();
        assert!(asked.starts_with(&format!("GET {question} HTTP/1.1\r\n")), "{asked}");
        assert_eq!(field(&asked, "Tenuto-Client"), Some("127.0.0.1"));
        assert_eq!(field(&asked, "Authorization"), Some("Bearer x"));
    }
    // A field may go on in the next line, which must not become a field of the question.
    let fields = "CSeq: 7\r\nAuthorization: Bearer x\r\n Tenuto-Client: 192.0.2.9\r\n";
    let request = format!("DESCRIBE rtsp://d/t/film RTSP/1.0\r\n{fields}\r\n");
    cluster.rtsp(request.as_bytes());
    let asked = node.asked.lock().unwrap().last().cloned().unwrap();
    assert!(asked.lines().all(|line| !line.starts_with(' ')), "{asked}");
    assert_eq!(field(&asked, "Tenuto-Client"), Some("127.0.0.1"));
    let counters = &cluster.json("/status")["counters"];
    assert_eq!(counters["admitted"], 6);
    let metrics = cluster.get("/metrics");
    assert!(metrics.contains("tenuto_director_rtsp_responses_total{class=\"3xx\"} 6"), "{metrics}");
    // What new viewers leave free is for those who go on.
    put_digest(&cluster.etcd, 0, &node, 499_999_999);
    until(|| cluster.describe().contains("\"headroom\""));
    let with_ticket = |of: &str, secret: &ClusterSecret| {
        let ticket = ticket(of).sign(secret);
        let line = format!("DESCRIBE rtsp://d/t/film?ticket={ticket} RTSP/1.0");
        cluster.rtsp(format!("{line}\r\nCSeq: 1\r\nRange: npt=9-\r\n\r\n").as_bytes())
    };
    let [own, other] = [SECRET, &[b'o'; 32]].map(|bytes| ClusterSecret::from_bytes(bytes).unwrap());
    for (title, secret, status) in
        [("film", &own, 302), ("other", &own, 453), ("film", &other, 453)]
    {
        let answer = with_ticket(title, secret);
        assert!(answer.starts_with(&format!("RTSP/1.0 {status} ")), "{title}: {answer}");
    }
}

#[test]
fn a_player_of_rtsp_is_refused_as_one_of_http_is() {
    let rows: [(&[StubAnswer], &str, Option<&str>, &str); 6] = [
        (&[is_full, is_full], "453 Not Enough Bandwidth", Some("2"), "full"),
        (&[wants_a_token], "401 Unauthorized", None, ""),
        (&[knows_the_client_too_well], "453 Not Enough Bandwidth", Some("2"), ""),
        (&[has_no_rtsp, has_no_rtsp], "453 Not Enough Bandwidth", Some("2"), "unreachable"),
        (&[has_no_rtsp, reserves_over_rtsp], "302 Found", None, ""),
        (&[is_silent, reserves_over_rtsp], "302 Found", None, ""),
    ];
    for (number, (answers, wanted, again, word)) in rows.into_iter().enumerate() {
        let nodes: Vec<StubNode> = answers.iter().map(|answer| StubNode::start(*answer)).collect();
        let cluster = TestCluster::start(&nodes.iter().collect::<Vec<_>>());
        let reply = cluster.describe();
        assert_eq!(reply.lines().next(), Some(&*format!("RTSP/1.0 {wanted}")), "row {number}");
        // Of the times only the first digit is the same each time.
        let time = field(&reply, "Retry-After").map(|time| &time[..1]);
        assert_eq!(time, again, "row {number}: {reply}");
        if !word.is_empty() {
            assert_eq!(cause(&reply), word, "row {number}");
        }
    }
    // Nothing is thought of the room of a node without RTSP.
    let (without, full) = (StubNode::start(has_no_rtsp), StubNode::start(is_full));
    let cluster = TestCluster::start(&[&without, &full]);
    assert_eq!(field(&cluster.describe(), "Retry-After").map(|time| &time[..1]), Some("2"));
    assert_eq!(cluster.json("/status")["nodes"][0]["answers"], true);
    let said = cluster.said.lock().unwrap().join("\n");
    assert!(said.contains("n0 has no RTSP"), "{said}");
}

#[test]
fn what_is_no_request_for_a_title_reserves_nothing() {
    let node = StubNode::start(reserves_over_rtsp);
    let cluster = TestCluster::start(&[&node]);
    let long = format!("DESCRIBE rtsp://d/t/film RTSP/1.0\r\nA: {}", "x".repeat(20_000));
    for (bytes, wanted) in [
        ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", 200),
        ("$\0\0\x02abOPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", 200),
        ("DESCRIBE rtsp://d/t/film RTSP/1.0\r\n\r\n", 400),
        ("DESCRIBE rtsp://d/t/film RTSP/2.0\r\nCSeq: 1\r\n\r\n", 505),
        ("DESCRIBE rtsp://d/film RTSP/1.0\r\nCSeq: 1\r\n\r\n", 404),
        ("DESCRIBE rtsp://d/t/none RTSP/1.0\r\nCSeq: 1\r\n\r\n", 404),
        ("DESCRIBE rtsp://d/t/a%0Ab RTSP/1.0\r\nCSeq: 1\r\n\r\n", 404),
        ("PLAY rtsp://d/t/film RTSP/1.0\r\nCSeq: 1\r\nSession: 1\r\n\r\n", 454),
        ("RECORD rtsp://d/t/film RTSP/1.0\r\nCSeq: 1\r\n\r\n", 501),
        ("\0\x01 GET RTSP\r\n\r\n", 400),
        (&long, 413),
        ("GET /t/film HTTP/1.0\r\nx-sessioncookie: a\r\n\r\n", 400),
        ("DESCRIBE rtsp://d/t/fi", 0),
    ] {
        let reply = cluster.rtsp(bytes.as_bytes());
        let start: String = bytes.chars().take(60).collect();
        assert_eq!(status(&reply), wanted, "{}", start.escape_debug());
    }
    assert_eq!(node.asked(), 0);
}

#[test]
fn a_node_that_is_drained_gets_no_new_viewers_while_another_has_the_title() {
    let (drained, stays) = (StubNode::start(reserves), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&drained, &stays]);
    let location = || {
        let answer = cluster.get("/t/film/master.m3u8");
        field(&answer, "Location").unwrap().to_owned()
    };
    assert!(location().starts_with(&drained.address), "it has most room");
    cluster.etcd.put("/tenuto/c/drained/n0", "true");
    until(|| cluster.json("/status")["nodes"][0]["drained"] == true);
    assert!(location().starts_with(&stays.address));
    cluster.etcd.delete("/tenuto/c/copies/film/n1");
    until(|| cluster.json("/titles")["titles"][0]["ready"] == serde_json::json!(["n0"]));
    assert!(location().starts_with(&drained.address), "no other node has it");
}

#[test]
fn a_node_that_is_away_is_shown_until_it_is_forgotten() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    let counted = || {
        let text = cluster.get("/metrics");
        text.contains("\ntenuto_director_nodes_away 1\n")
    };
    assert_eq!(cluster.json("/status")["away"], serde_json::json!([]));
    assert!(!counted());
    cluster.etcd.put("/tenuto/c/drained/gone", "true");
    cluster.etcd.put("/tenuto/c/held/gone/00", r#"{"film":null,"other":null}"#);
    let away = serde_json::json!([{ "name": "gone", "titles": 2, "drained": true }]);
    until(|| cluster.json("/status")["away"] == away);
    assert!(counted());
    cluster.etcd.delete("/tenuto/c/drained/gone");
    cluster.etcd.delete("/tenuto/c/held/gone/00");
    until(|| cluster.json("/status")["away"] == serde_json::json!([]));
    assert_eq!(cluster.json("/status")["nodes"][0]["name"], "n0");
}

#[test]
fn a_silent_node_is_left_out_for_a_while() {
    let (silent, free) = (StubNode::start(is_silent), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&silent, &free]);
    let start = Instant::now();
    for viewer in 0..3 {
        let answer = cluster.get("/t/film/master.m3u8");
        assert!(field(&answer, "Location").unwrap().starts_with(&free.address), "{viewer}");
    }
    // On a machine that is busy for longer than that, it is asked again.
    assert!(silent.asked() == 1 || start.elapsed() > Duration::from_secs(2));
    let answers = |cluster: &TestCluster| {
        let nodes = &cluster.json("/status")["nodes"];
        ["n0", "n1"].map(|name| {
            let mut nodes = nodes.as_array().unwrap().iter();
            nodes.find(|node| node["name"] == name).unwrap()["answers"].as_bool().unwrap()
        })
    };
    assert_eq!(answers(&cluster), [false, true]);
    let metrics = cluster.get("/metrics");
    assert!(metrics.contains("tenuto_director_nodes_answering 1\n"), "{metrics}");
    let said = cluster.said.lock().unwrap().join("\n");
    assert!(said.starts_with("the node n0 gets no viewers, as it does not answer: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // It is asked again, and answers.
    put_digest(&cluster.etcd, 0, &free, 1_000_000_000);
    until(|| {
        cluster.get("/t/film/master.m3u8");
        answers(&cluster) == [true, true]
    });
    let (cut_off, gone) = (StubNode::start(is_cut_off), StubNode::start(|_| None));
    let cluster = TestCluster::start(&[&cut_off, &gone]);
    let answer = cluster.get("/t/film/master.m3u8");
    assert_eq!((status(&answer), cause(&answer).as_str()), (503, "unreachable"));
    assert_eq!(field(&answer, "Retry-After"), Some("2"));
}

#[test]
fn a_node_with_another_secret_is_left_out_and_named_once() {
    let (stranger, free) = (StubNode::start(knows_no_director), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&stranger, &free]);
    let answer = cluster.get("/t/film/master.m3u8");
    assert!(field(&answer, "Location").unwrap().starts_with(&free.address), "{answer}");
    cluster.etcd.put("/tenuto/c/epoch", "1");
    let said = cluster.said.lock().unwrap().join("\n");
    let wanted =
        "the node n0 does not take this director for one of its cluster: its secret differs";
    assert_eq!(said, wanted);
}

#[test]
fn a_node_that_has_the_title_no_more_is_followed_by_the_next() {
    let other = StubNode::start;
    let rows = [
        (other(reserves), 302, ""),
        (other(is_full), 503, "full"),
        (other(has_no_such_title), 404, ""),
    ];
    for (other, wanted, why) in rows {
        let gone = StubNode::start(has_no_such_title);
        let cluster = TestCluster::start(&[&gone, &other]);
        let answer = cluster.get("/t/film/master.m3u8");
        let told = if why.is_empty() { String::new() } else { cause(&answer) };
        assert_eq!((status(&answer), told.as_str()), (wanted, why), "{answer}");
        assert_eq!((gone.asked(), other.asked()), (1, 1), "{answer}");
    }
}

#[test]
fn what_a_node_says_of_the_viewer_is_given_to_the_viewer() {
    let (node, other) = (StubNode::start(wants_a_token), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&node, &other]);
    let answer = cluster.get("/t/film/master.m3u8");
    assert_eq!((status(&answer), field(&answer, "WWW-Authenticate")), (401, Some("Bearer")));
    assert!(body(&answer).contains("a token is needed") && other.asked() == 0);
    assert_eq!(cluster.json("/status")["counters"]["refused"]["by-node"], 1);
}

#[test]
fn titles_without_a_copy_and_without_a_record_are_told_apart() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    let answer = cluster.get("/t/lost/master.m3u8");
    assert_eq!((status(&answer), cause(&answer).as_str()), (503, "no-copy"));
    let answer = cluster.get("/t/unknown/master.m3u8");
    assert!(status(&answer) == 404 && body(&answer).contains(r#""error":"no-title""#));
    assert_eq!(status(&cluster.get("/nothing")), 404);
    assert_eq!(node.asked(), 0);
    cluster.etcd.delete("/tenuto/c/titles/lost");
    until(|| status(&cluster.get("/t/lost/master.m3u8")) == 404);
}

#[test]
fn a_director_without_a_list_is_not_ready_and_with_an_old_view_goes_on() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    member.refuse(true);
    let cluster = TestCluster::of(etcd, member, None);
    let answer = cluster.get("/t/film/master.m3u8");
    assert_eq!((status(&answer), cause(&answer).as_str()), (503, "not-ready"));
    assert_eq!(field(&answer, "Retry-After"), Some("1"));
    assert_eq!(status(&cluster.get("/healthz")), 503);

    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    assert_eq!(status(&cluster.get("/healthz")), 200);
    cluster.member.refuse(true);
    until(|| cluster.json("/status")["etcd"]["error"].is_string());
    assert_eq!(status(&cluster.get("/t/film/master.m3u8")), 302);
}

#[test]
fn what_is_shown_of_the_cluster() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    cluster.get("/t/film/master.m3u8");
    let shown = cluster.json("/status");
    assert_eq!([&shown["version"], &shown["cluster"]], ["test", "c"]);
    assert_eq!([&shown["titles"], &shown["etcd"]["lists"], &shown["etcd"]["writes"]], [2, 1, 0]);
    assert_eq!([&shown["nodes"][0]["name"], &shown["nodes"][0]["address"]], ["n0", &*node.address]);
    assert_eq!(
        [&shown["nodes"][0]["lease"], &shown["nodes"][0]["answers"]],
        [&json!(600.0), &json!(true)]
    );
    assert_eq!(shown["nodes"][0]["disks"][0]["free"], 995_000_000, "a viewer was counted");
    assert_eq!(shown["counters"]["admitted"], 1);
    let titles = &cluster.json("/titles")["titles"];
    assert_eq!([&titles[0]["name"], &titles[1]["name"]], ["film", "lost"]);
    assert_eq!([&titles[0]["ready"][0], &titles[0]["hls"]], ["n0", "/t/film/master.m3u8"]);
    let metrics = cluster.get("/metrics");
    for line in [
        "tenuto_cluster_info{cluster=\"c\"} 1",
        "tenuto_director_admitted_total 1",
        "tenuto_director_refused_total{cause=\"full\"} 0",
        "tenuto_director_questions_total 1",
        "tenuto_director_admission_seconds_count 1",
        "tenuto_director_nodes_answering 1",
        "tenuto_director_titles 2",
        "tenuto_director_etcd_writes_total 0",
        "# TYPE tenuto_director_view_age_seconds gauge",
    ] {
        assert!(body(&metrics).lines().any(|found| found == line), "{line} in\n{metrics}");
    }
}

#[test]
fn a_node_whose_clock_is_wrong_is_named_once_and_gets_viewers() {
    let node = StubNode::start(reserves_long_ago);
    let cluster = TestCluster::start(&[&node]);
    assert_eq!(cluster.json("/status")["nodes"][0]["clock_difference"], Value::Null);
    assert_eq!(status(&cluster.get("/t/film/master.m3u8")), 302);
    assert_eq!(status(&cluster.get("/t/film/master.m3u8")), 302);
    let said = cluster.said.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("the clock of the node n0 is "), "{said:?}");
    assert!(
        said[0].ends_with(
            " s behind that of this director; synchronise the clocks of both machines (NTP)"
        ),
        "{said:?}"
    );
    let behind = |value: f64| value < -1e9 && value > -1e11;
    let shown = cluster.json("/status")["nodes"][0]["clock_difference"].as_f64();
    assert!(shown.is_some_and(behind), "{shown:?}");
    let metrics = cluster.get("/metrics");
    let sample = body(&metrics).lines().find_map(|line| {
        line.strip_prefix("tenuto_director_clock_difference_seconds ")?.parse::<f64>().ok()
    });
    assert!(sample.is_some_and(behind), "{metrics}");
}

#[test]
fn what_is_shown_needs_a_token_where_there_is_a_check() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    // Titles are shown to everybody with this token, nodes and numbers to nobody else.
    let check = PageCheck::new(|kind, token, client| {
        assert!(client.is_loopback());
        let (status, error) = match (kind, token) {
            (_, Some("operator")) | (PageKind::Titles, Some("viewer")) => return Ok(()),
            (_, None) => (401, "token-missing"),
            _ => (403, "token-not-allowed"),
        };
        let (message, challenge) = ("no".to_owned(), "Bearer realm=\"tenuto\"".to_owned());
        Err(PageRefusal { status, error, message, challenge })
    });
    let cluster = TestCluster::with(etcd, member, None, Some(check));
    until(|| cluster.director.is_ready());
    // What is asked for, and the status without a token, with a viewer's and with an operator's.
    let rows = [
        ("/status", [401, 403, 200]),
        ("/metrics", [401, 403, 200]),
        ("/titles", [401, 200, 200]),
        ("/healthz", [200, 200, 200]),
        ("/console/", [200, 200, 200]),
        ("/t/film/master.m3u8", [401, 403, 404]),
        ("/steer/film", [401, 403, 404]),
        ("/origin/film/master.m3u8", [401, 403, 404]),
    ];
    for (path, wanted) in rows {
        let tokens = ["", "?token=viewer", "?token=operator"];
        let by_query = tokens.map(|token| status(&cluster.get(&format!("{path}{token}"))));
        assert_eq!(by_query, wanted, "{path}");
    }
    let ticket = ticket("film").sign(&ClusterSecret::from_bytes(SECRET).unwrap());
    let with_ticket = format!("/steer/film?node=n0&s={}&ticket={ticket}", "0".repeat(32));
    assert_eq!(status(&cluster.get(&with_ticket)), 404, "a viewer of a node needs no token");
    for (query, wanted) in [("", 401), ("?token=viewer", 403), ("?token=operator", 404)] {
        let request = format!("DESCRIBE rtsp://d/t/film{query} RTSP/1.0\r\nCSeq: 1\r\n\r\n");
        assert_eq!(status(&cluster.rtsp(request.as_bytes())), wanted, "{query}");
    }
    let by_field = |token: &str| {
        let fields = format!("Authorization: Bearer {token}\r\nConnection: close");
        cluster.send(&format!("GET /status HTTP/1.1\r\n{fields}\r\n\r\n"))
    };
    assert_eq!(status(&by_field("operator")), 200);
    let refused = by_field("viewer");
    assert_eq!(field(&refused, "WWW-Authenticate"), Some("Bearer realm=\"tenuto\""));
    assert!(body(&refused).contains("tenuto token KEYS --operator"), "{refused}");
    let head = cluster.send("HEAD /status HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&head), 401);
    let asked = cluster.send("OPTIONS /status HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&asked), 204, "a page of another origin asks for the field first");
}

#[test]
fn a_browser_may_ask_before_its_request() {
    let cluster = TestCluster::start(&[]);
    let options =
        |target| cluster.send(&format!("OPTIONS {target} HTTP/1.1\r\nConnection: close\r\n\r\n"));
    let answer = options("/t/film/master.m3u8");
    assert_eq!(status(&answer), 204);
    assert_eq!(field(&answer, "Access-Control-Allow-Methods"), Some("GET, OPTIONS"));
    assert!(field(&answer, "Access-Control-Allow-Headers").unwrap().contains("Authorization"));
    assert_eq!(field(&options("/titles"), "Allow"), Some("GET, HEAD, OPTIONS"));
    let post = "POST /t/film/master.m3u8 HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&cluster.send(post)), 405);
}

#[test]
fn connections_are_kept_and_requests_may_be_pipelined() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    let mut stream = cluster.connect();
    let request = "GET /t/film/master.m3u8 HTTP/1.1\r\n\r\n";
    stream.write_all(request.repeat(3).as_bytes()).unwrap();
    for _ in 0..3 {
        assert_eq!(status(&read_head(&mut stream).unwrap()), 302);
    }
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut stream).unwrap()), 302);
    assert_eq!(node.asked(), 4);
    cluster.director.stop();
}

#[test]
fn garbage_is_refused_and_slow_clients_hold_nobody_up() {
    let node = StubNode::start(reserves);
    let cluster = TestCluster::start(&[&node]);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
    let rows = [
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\n\r\n", 505),
        ("GET /t/film.mp4 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 400),
        ("GET /t/%zz%ff.mp4 HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        ("GET /t/..%2f..%2fetc.mp4 HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        (&*long, 431),
        (&many, 431),
    ];
    for (request, wanted) in rows {
        let answer = cluster.send(request);
        assert_eq!(status(&answer), wanted, "{}", &request[..request.len().min(50)]);
    }
    // Heads that do not end, each on a connection that stays open.
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = cluster.connect();
            stream.write_all(b"GET /t/film.mp4 HTTP/1.1\r\nA: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(status(&cluster.get("/t/film.mp4")), 302);
    assert!(cluster.json("/status")["connections"].as_u64().unwrap() >= 50);
    drop(slow);
    until(|| cluster.json("/status")["connections"] == 1);
}

#[test]
fn other_nodes_are_told_to_the_node_and_to_the_player() {
    let (first, second) = (StubNode::start(reserves), StubNode::start(reserves));
    let cluster = TestCluster::start(&[&first, &second]);
    let request = "GET /t/film/master.m3u8 HTTP/1.1\r\nHost: films.example:80\r\n\
                   X-Forwarded-Proto: https\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&cluster.send(request)), 302);
    let asked: Vec<String> =
        [&first, &second].iter().flat_map(|node| node.asked.lock().unwrap().clone()).collect();
    let question = asked.last().unwrap();
    let (own, other) = match first.asked.lock().unwrap().is_empty() {
        true => ("n1", "n0"),
        false => ("n0", "n1"),
    };
    let steering = format!("https://films.example:80/steer/film?node={own}");
    assert_eq!(field(question, "Tenuto-Steering"), Some(&*steering), "{question}");
    let addresses = [("n0", &first.address), ("n1", &second.address)];
    let (_, address) = addresses.iter().find(|(name, _)| *name == other).unwrap();
    let elsewhere = format!("{other}={address}");
    assert_eq!(field(question, "Tenuto-Elsewhere"), Some(&*elsewhere), "{question}");

    let target =
        format!("/steer/film?node={own}&s=S&ticket=T&names=0,text/0&_HLS_pathway=%22{own}%22");
    let answer = cluster.get(&target);
    assert_eq!((status(&answer), field(&answer, "Access-Control-Allow-Origin")), (200, Some("*")));
    let manifest: serde_json::Value = serde_json::from_str(body(&answer)).unwrap();
    assert_eq!(manifest["VERSION"], 1);
    assert_eq!(manifest["PATHWAY-PRIORITY"], serde_json::json!([own, other]));
    let clone = &manifest["PATHWAY-CLONES"][0];
    assert_eq!((&clone["BASE-ID"], &clone["ID"]), (&own.into(), &other.into()));
    let replaced = &clone["URI-REPLACEMENT"]["PER-RENDITION-URIS"]["text/0"];
    assert_eq!(*replaced, format!("{address}/t/film/text/0.m3u8?s=S&ticket=T"));
    let priority = || {
        let manifest: Value = serde_json::from_str(body(&cluster.get(&target))).unwrap();
        manifest["PATHWAY-PRIORITY"].clone()
    };
    // A player of DASH names the nodes that its manifest has, and those that it has fetched from.
    let dash = |locations: &str, pathway: &str| {
        let target = format!("/steer/film?node={own}&s=S&ticket=T&locations={locations}{pathway}");
        let answer = cluster.get(&target);
        assert_eq!(field(&answer, "Content-Type"), Some("application/json"));
        let manifest: Value = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(manifest.as_object().unwrap().len(), 3, "{manifest}");
        assert_eq!((&manifest["VERSION"], &manifest["TTL"]), (&1.into(), &30.into()));
        manifest["PATHWAY-PRIORITY"].clone()
    };
    let both = format!("{own},{other}");
    let rows = [
        (&*both, String::new(), vec![own, other]),
        (&both, format!("&_DASH_pathway=%22{own}%22&_DASH_throughput=9"), vec![own, other]),
        (&both, format!("&_DASH_pathway=%22{own},{other}%22"), vec![other, own]),
        (&both, format!("&_DASH_pathway={other}"), vec![other, own]),
        (own, String::new(), vec![own]),
    ];
    for (locations, pathway, wanted) in rows {
        assert_eq!(dash(locations, &pathway), serde_json::json!(wanted), "{locations} {pathway}");
    }
    // Viewers stay at a node that is drained until they are ordered to leave.
    cluster.etcd.put(&format!("/tenuto/c/viewers/{own}"), r#"{"film":4}"#);
    cluster.etcd.put(&format!("/tenuto/c/drained/{own}"), "true");
    let number = usize::from(own == "n1");
    until(|| cluster.json("/status")["nodes"][number]["drained"] == true);
    assert_eq!(priority(), serde_json::json!([own, other]));
    cluster.etcd.put(&format!("/tenuto/c/orders/{own}"), r#"{"remain":{"film":0}}"#);
    until(|| priority() == serde_json::json!([other, own]));
    cluster.etcd.delete(&format!("/tenuto/c/orders/{own}"));
    until(|| priority() == serde_json::json!([own, other]));
    cluster.etcd.delete(&format!("/tenuto/c/copies/film/{own}"));
    until(|| cluster.json("/titles")["titles"][0]["ready"] == serde_json::json!([other]));
    assert_eq!(priority(), serde_json::json!([own, other]), "it is played to its end");
    assert_eq!(status(&cluster.get("/steer/none?node=n0")), 404);
    assert_eq!(status(&cluster.get("/steer/film?names=%22%3E,..%0d&s=%0a")), 200);
}

/// The names of a director's metrics in a text, of histograms without what is behind.
#[test]
fn a_viewer_of_a_title_with_copies_elsewhere_makes_room_for_one_who_was_refused() {
    // (viewers at the full node as it says, seconds after which the refused come again, orders)
    let rows = [
        ("{}", 200..=220, ["n0", "n0", "n0"]),
        (r#"{"cold":4}"#, 200..=220, ["n0", "n0", "n0"]),
        (r#"{"cold":2,"film":2}"#, 40..=40, ["n1", "n1", "n0"]),
    ];
    let hls = rows.clone().map(|row| (row, "names=0"));
    let dash = rows.map(|row| (row, "locations=n0,n1&_DASH_pathway=%22n0%22"));
    for ((viewers, seconds, orders), player) in hls.into_iter().chain(dash) {
        let (full, free) = (StubNode::start(is_full_for_minutes), StubNode::start(reserves));
        let cluster = TestCluster::start(&[&full, &free]);
        cluster.etcd.put("/tenuto/c/viewers/n0", viewers);
        cluster.etcd.put("/tenuto/c/titles/cold", r#"{"rate":5000000,"size":1000}"#);
        cluster.etcd.put("/tenuto/c/copies/cold/n0", r#"[{"disk":0,"state":"ready"}]"#);
        let mut answer = String::new();
        until(|| {
            answer = cluster.get("/t/cold/master.m3u8");
            status(&answer) == 503 && cause(&answer) == "full"
        });
        let order = |(session, player): (&str, &str)| {
            let target = format!("/steer/film?node=n0&s={session}&ticket=T&{player}");
            let manifest: Value = serde_json::from_str(body(&cluster.get(&target))).unwrap();
            manifest["PATHWAY-PRIORITY"][0].clone()
        };
        let retry: u64 = field(&answer, "Retry-After").unwrap().parse().unwrap();
        assert!(seconds.contains(&retry), "{viewers}: after {retry} s");
        let asked = [("a", player), ("a", player), ("b", player)];
        assert_eq!(asked.map(order), orders, "{viewers} {player}");
        let metrics = cluster.get("/metrics");
        let made = u8::from(orders[0] == "n1");
        assert!(metrics.contains(&format!("\ntenuto_director_moves_total {made}\n")), "{metrics}");
    }
}

fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    let names = words.filter(|word| word.starts_with("tenuto_director_"));
    let ends = ["_bucket", "_sum", "_count"];
    names.map(|name| ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)).collect()
}

#[test]
fn every_metric_is_documented_and_every_alert_and_plot_has_its_metric() {
    let etcd = TestEtcd::new();
    let member = etcd.listen();
    let titles = Box::new(|| Ok(ListedTitles::default()));
    let planning = PlanningConfig { rules: CopyRules::default(), titles };
    let cluster = TestCluster::of(etcd, member, Some(planning));
    until(|| cluster.director.is_ready());
    let answer = cluster.get("/metrics");
    let samples = body(&answer).lines().filter(|line| !line.starts_with('#'));
    let samples: String = samples.map(|line| format!("{line}\n")).collect();
    // Of causes that have not come about there is no sample, but the kind of each metric.
    let kinds = body(&answer).lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let kinds = kinds.map(|line| match line.split_once(' ').unwrap() {
        (name, "counter") => format!("{name}_total\n"),
        (name, _) => format!("{name}\n"),
    });
    let text = samples + &kinds.collect::<String>();
    let exposed = metrics_in(&text);
    let documented = metrics_in(include_str!("../../../docs/reference/metrics.md"));
    assert_eq!(exposed, documented);
    let alerts = metrics_in(include_str!("../../../packaging/prometheus/alerts.yml"));
    assert!(alerts.len() >= 3 && alerts.is_subset(&exposed), "{alerts:?} {exposed:?}");
    let board: Value =
        serde_json::from_str(include_str!("../../../packaging/grafana/tenuto-cluster.json"))
            .unwrap();
    let board = board.to_string();
    let plots = metrics_in(&board);
    assert!(plots.len() >= 15 && plots.is_subset(&exposed), "{plots:?} {exposed:?}");
}

#[test]
fn the_console_is_served_with_what_the_page_may_do() {
    let cluster = TestCluster::start(&[]);
    for path in ["/console/", "/console/index.html"] {
        let answer = cluster.get(path);
        assert_eq!(status(&answer), 200);
        assert!(field(&answer, "Content-Security-Policy").is_some());
        assert_eq!(field(&answer, "Cache-Control"), Some("no-cache"));
    }
    assert_eq!(field(&cluster.get("/"), "Location"), Some("/console/"));
    assert_eq!(status(&cluster.get("/console/none.js")), 404);
}
