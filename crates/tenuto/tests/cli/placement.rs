//! A cluster that is filled from a bucket: nodes with empty stores get the titles of record, and a
//! node that is drained gives its copies and its viewers to others while they play. The bucket is
//! in memory, etcd is a real one.

use crate::directed::{Part, etcd, eventually, free_address, report};
use crate::program::{Run, TestDir, program};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use testkit::bucket::TestBucket;

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const TITLES: [&str; 3] = ["one", "two", "three"];

struct Fleet {
    dir: TestDir,
    etcd: String,
    bucket: String,
}

impl Fleet {
    fn command(&self, line: &str) -> Command {
        let mut command = program(&self.dir.path(""));
        command
            .args(line.split_whitespace())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    fn run(&self, line: &str) -> Run {
        Run::from(self.command(line).output().expect("tenuto runs"))
    }

    /// The options of a part of the cluster.
    fn cluster(&self) -> String {
        format!("--cluster http://{} --cluster-name c", self.etcd)
    }

    fn source(&self) -> String {
        format!("--bucket s3://films --bucket-endpoint {}", self.bucket)
    }

    fn part(&self, address: String, line: &str) -> Part {
        let secret = "--cluster-secret secret";
        let line =
            format!("{line} --listen {address} {} {} {secret}", self.cluster(), self.source());
        Part::new(self.command(&line), address)
    }

    fn node(&self, name: &str) -> Part {
        self.dir.ok(&format!("format {name}.store --size 64MiB"));
        let address = free_address();
        let own = format!("--node {name} --node-address http://{address} --fill-rate 800Mbps");
        let disk = "--as-disk ssd-sata --grace 1s";
        let rtsp = free_address();
        self.part(address, &format!("serve {name}.store {own} {disk} --rtsp {rtsp}"))
    }

    fn nodes(&self) -> Value {
        let run = self.run(&format!("cluster nodes {} --json", self.cluster()));
        serde_json::from_str(&run.out).unwrap_or_default()
    }

    fn play(&self, at: &Part, title: &str) -> Child {
        self.play_from(&format!("http://{}/t/{title}/master.m3u8", at.address), 1)
    }

    fn play_from(&self, url: &str, viewers: u32) -> Child {
        let line = format!("play {url} --viewers {viewers} --duration 20s --json");
        in_background(self.command(&line))
    }
}

fn in_background(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tenuto starts")
}

/// The connection over which segments of a title have come from a node.
fn fetched(node: &Part, title: &str, segments: &[u32], query: &str) -> TcpStream {
    let mut connection = TcpStream::connect(&node.address).unwrap();
    let mut answers = BufReader::new(connection.try_clone().unwrap());
    for number in segments {
        let path = format!("/t/{title}/0/{number}.m4s?{query}");
        write!(connection, "GET {path} HTTP/1.1\r\nHost: n\r\n\r\n").unwrap();
        let lines = answers.by_ref().lines().map(|line| line.unwrap());
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        assert_eq!(head[0], "HTTP/1.1 200 OK", "{path}");
        let length = head.iter().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: u64 = length.unwrap().parse().unwrap();
        std::io::copy(&mut answers.by_ref().take(length), &mut std::io::sink()).unwrap();
    }
    connection
}

/// A viewer of HLS that plays at the node to which a director has sent it.
struct HlsViewer {
    connection: TcpStream,
    /// Path and query of the steering manifest.
    steering: String,
    /// The query of its addresses, with its session and its ticket.
    query: String,
}

impl HlsViewer {
    /// Begins to play a title, and comes again until it is sent to this node.
    fn at(node: &Part, director: &Part, title: &str) -> Self {
        let wanted = format!("http://{}", node.address);
        let mut path = None;
        eventually("it is sent there", || {
            let (head, _) = director.get(&format!("/t/{title}/master.m3u8"));
            let location = head.lines().find_map(|line| line.strip_prefix("Location: "));
            path = location.and_then(|it| it.strip_prefix(&wanted)).map(str::to_owned);
            path.is_some()
        });
        let master = node.get(&path.unwrap()).1;
        let between = |from: &str, to: &str| {
            let rest = master.split(from).nth(1).unwrap_or_else(|| panic!("{master}"));
            rest.split(to).next().unwrap().to_owned()
        };
        let steering = between("SERVER-URI=\"", "\"");
        let query = between("\n0.m3u8?", "\n");
        let connection = fetched(node, title, &[0, 1], &query);
        let host = steering.find("/steer/").unwrap();
        Self { connection, steering: steering[host..].to_owned(), query }
    }

    /// Asks where it should be; the address of the server if that is another node.
    fn is_led_from(&self, node: &str, director: &Part) -> Option<String> {
        let list = director.json(&format!("{}&_HLS_pathway=\"{node}\"", self.steering));
        let next = list["PATHWAY-PRIORITY"][0].as_str().filter(|next| *next != node)?;
        let clones = list["PATHWAY-CLONES"].as_array()?;
        let clone = clones.iter().find(|clone| clone["ID"] == next)?;
        let address = clone["URI-REPLACEMENT"]["PER-VARIANT-URIS"]["0"].as_str()?;
        Some(address.strip_prefix("http://")?.split('/').next()?.to_owned())
    }
}

/// The nodes that have each title, as a director knows them.
fn ready(director: &Part) -> Vec<BTreeSet<String>> {
    let listed = director.json("/titles");
    let titles = listed["titles"].as_array().cloned().unwrap_or_default();
    let names = |title: &Value| -> BTreeSet<String> {
        let nodes = title["ready"].as_array().into_iter().flatten();
        nodes.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    titles.iter().map(names).collect()
}

#[test]
fn nodes_are_filled_from_a_bucket_and_drained() {
    testkit::needs!(Program("etcd"), Program("ffmpeg"));
    let dir = TestDir::with_store();
    dir.film_of(30, "one.mkv");
    for copy in &TITLES[1..] {
        std::fs::copy(dir.path("one.mkv"), dir.path(&format!("{copy}.mkv"))).unwrap();
    }
    TITLES.iter().for_each(|title| drop(dir.ok(&format!("ingest a.store {title}.mkv"))));
    dir.write("secret", [b's'; 32]);
    let only_mine = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path("secret"), only_mine).unwrap();
    let bucket = TestBucket::default();
    let bucket = bucket.listen(|_| None);
    let fleet = Fleet { dir, etcd: free_address(), bucket };
    let push = format!("bucket push s3://films a.store --endpoint {}", fleet.bucket);
    assert_eq!(fleet.run(&push).code, Some(0));
    let _etcd = etcd(&fleet.dir, &fleet.etcd, &free_address());
    let parts = NODES.map(|name| fleet.node(name));
    let line = "director --copies 2 --extra-copies 0";
    let rtsp = free_address();
    let lines = [line.to_owned(), format!("{line} --rtsp {rtsp}")];
    let directors = lines.map(|line| fleet.part(free_address(), &line));

    eventually("each title has two copies", || {
        let ready = ready(&directors[0]);
        ready.len() == 3 && ready.iter().all(|nodes| nodes.len() == 2)
    });
    let plan = |director: &Part| director.json("/status")["planning"]["here"]["plans"] == true;
    eventually("one of the directors plans", || plan(&directors[0]) != plan(&directors[1]));
    eventually("all is quiet", || {
        let nodes = fleet.nodes();
        let fills = nodes["nodes"].as_array().into_iter().flatten();
        let rests = |node: &&Value| {
            // A node that came later gets a copy that another one then gives up.
            ["fills_ordered", "filling", "evictions_ordered"].iter().all(|what| node[what] == 0)
        };
        let copies = |node: &Value| node["copies"].as_u64().unwrap();
        let (count, copies) =
            fills.filter(rests).fold((0, 0), |(count, sum), node| (count + 1, sum + copies(node)));
        (count, copies) == (3, 6)
    });
    let nodes = fleet.nodes();
    let copies: u64 = NODES
        .iter()
        .zip(0..)
        .map(|(name, number)| {
            let node = &nodes["nodes"][number];
            assert_eq!(
                (&node["name"], &node["registered"]),
                (&(*name).into(), &true.into()),
                "{nodes}"
            );
            node["copies"].as_u64().unwrap()
        })
        .sum();
    assert_eq!((copies, &nodes["titles"]), (6, &3.into()), "{nodes}");

    // A viewer plays from the node that is drained, or from another: none stalls.
    let admitted = || {
        let sessions = parts.iter().map(|node| node.json("/status")["admitted"].as_u64());
        sessions.flatten().sum::<u64>()
    };
    // Over RTSP they go on at another node as soon as the planner knows of them.
    // Parts of copies that nodes have read for each other are sessions, too.
    let before = admitted() + 4;
    let over_rtsp = fleet.play_from(&format!("rtsp://{rtsp}/t/{}", TITLES[0]), 4);
    eventually("all are admitted", || admitted() == before);
    // The node that is drained is one that they were sent to.
    let mut drained = None;
    eventually("a node has viewers", || {
        let nodes = fleet.nodes();
        let has_viewers = |number: &usize| nodes["nodes"][*number]["viewers"].as_u64() > Some(0);
        drained = (0..NODES.len()).find(has_viewers);
        drained.is_some()
    });
    let node = NODES[drained.unwrap()];
    let playing: Vec<Child> = TITLES.map(|title| fleet.play(&directors[1], title)).into();
    eventually("they play", || admitted() == before + 3);
    let here = &parts[drained.unwrap()];
    let steered = HlsViewer::at(here, &directors[1], TITLES[0]);
    let drain = fleet.command(&format!("cluster drain {node} {}", fleet.cluster()));
    let drain = in_background(drain);
    let mut next = None;
    eventually("a viewer of HLS is led elsewhere", || {
        next = steered.is_led_from(node, &directors[1]);
        next.is_some()
    });
    let next = parts.iter().find(|part| Some(&part.address) == next.as_ref()).unwrap();
    // It goes on there.
    let _goes_on = fetched(next, TITLES[0], &[2], &steered.query);
    drop(steered.connection);
    let drained = Run::from(drain.wait_with_output().expect("it ends"));
    let told = format!("{node} has no copies any more, and can be stopped for good\n");
    assert_eq!((drained.code, drained.out.as_str()), (Some(0), told.as_str()), "{}", drained.err);
    let others = NODES.into_iter().filter(|other| *other != node);
    let wanted: BTreeSet<String> = others.map(str::to_owned).collect();
    // The director hears of it from etcd, as the command has.
    eventually("the others have all", || ready(&directors[0]).iter().all(|nodes| *nodes == wanted));
    for viewer in playing {
        let totals = report(viewer)["totals"].take();
        assert_eq!((&totals["admitted"], &totals["stalls"]), (&1.into(), &0.into()), "{totals}");
    }
    let totals = report(over_rtsp)["totals"].take();
    assert_eq!((&totals["admitted"], &totals["failed"]), (&4.into(), &0.into()), "{totals}");
    assert!(totals["failovers"].as_u64() > Some(0), "{totals}");
    eventually("nobody plays there any more", || {
        let playing = here.json("/status")["playing"].as_array().cloned().unwrap_or_default();
        playing.iter().all(|title| title["viewers"] == 0)
    });
    let undone = fleet.run(&format!("cluster drain {node} --undo {}", fleet.cluster()));
    assert_eq!(undone.out, format!("{node} gets copies again\n"));
    eventually("it gets copies again", || {
        ready(&directors[0]).iter().any(|nodes| nodes.contains(node))
    });

    // One is replaced in the bucket. A director that begins to plan lists the bucket at once.
    let content = |run: Run| serde_json::from_str::<Value>(&run.out).unwrap()["titles"][0].take();
    let bucket = format!("s3://films --endpoint {}", fleet.bucket);
    assert_eq!(fleet.run(&format!("bucket rm {bucket} one")).code, Some(0));
    fleet.dir.ok("rm a.store one");
    fleet.dir.film_of(4, "short.mkv");
    fleet.dir.ok("ingest a.store short.mkv");
    fleet.dir.ok("rename a.store short one");
    let push = format!("bucket push s3://films a.store one --endpoint {}", fleet.bucket);
    assert_eq!(fleet.run(&push).code, Some(0));
    let planner = directors.iter().position(plan).unwrap();
    let [first, second] = directors;
    let (gone, director) = if planner == 0 { (first, second) } else { (second, first) };
    gone.stop();
    let new = content(fleet.run(&format!("bucket ls {bucket} --json")))["content"].take();
    let replaced = || {
        let copies = parts.iter().map(|node| node.json("/status")["cluster"]["copies"].take());
        copies.filter_map(|copies| copies["replaced"].as_u64()).sum::<u64>()
    };
    eventually("two copies are replaced", || replaced() >= 2);
    let contents = || -> BTreeSet<String> {
        let titles = parts.iter().flat_map(|node| {
            let titles = node.json("/titles")["titles"].as_array().cloned().unwrap_or_default();
            titles.into_iter().filter(|title| title["name"] == "one")
        });
        titles.map(|title| title["content"].as_str().unwrap().to_owned()).collect()
    };
    eventually("all have the new one", || contents().len() == 1);
    assert_eq!(contents().first().map(String::as_str), new.as_str());
    eventually("nothing differs", || {
        let nodes = fleet.nodes();
        (&nodes["outdated"], &nodes["own"]) == (&json!([]), &json!([]))
    });

    // A title that the bucket lacks stays where it is, and is named.
    assert_eq!(fleet.nodes()["not_in_bucket"]["count"], 0);
    std::fs::copy(fleet.dir.path("one.mkv"), fleet.dir.path("own.mkv")).unwrap();
    fleet.dir.ok("ingest n3.store own.mkv");
    eventually("it is known", || fleet.nodes()["not_in_bucket"]["count"] == 1);
    let told = fleet.run(&format!("cluster nodes {}", fleet.cluster())).out;
    assert!(told.contains("1 title on nodes is not in the bucket and stays: own (n3)"), "{told}");
    let own = director.json("/titles")["titles"][1].take();
    assert_eq!((&own["name"], &own["in_bucket"]), (&"own".into(), &false.into()));

    // A node that is gone for good is forgotten, with the title that only it had.
    let forget =
        |options: &str| fleet.run(&format!("cluster forget {options} {}", fleet.cluster()));
    let alive = forget("n3");
    assert_eq!(alive.code, Some(1));
    assert!(alive.err.contains("'n3' is registered in 'c'"), "{}", alive.err);
    assert!(alive.err.contains("`tenuto cluster drain n3`"), "{}", alive.err);
    let [first, second, third] = parts;
    third.stop();
    let away = |nodes: &Value| {
        (nodes["nodes"][2]["name"].clone(), nodes["nodes"][2]["registered"].clone())
    };
    eventually("it is away", || away(&fleet.nodes()) == ("n3".into(), false.into()));
    assert!(fleet.nodes()["nodes"][2]["copies"].as_u64() > Some(0), "{}", fleet.nodes());
    let refused = forget("n3");
    assert_eq!(refused.code, Some(1), "{} {}", refused.out, fleet.nodes());
    let lost = "1 title would be lost that only 'n3' is known to have: own";
    assert!(refused.err.contains(lost) && refused.err.contains("--destroy"), "{}", refused.err);
    let forgotten = forget("n3 --destroy");
    assert_eq!(forgotten.out, "n3 is forgotten, and with it 1 title: own\n", "{}", forgotten.err);
    let nodes = fleet.nodes();
    assert_eq!(
        (nodes["nodes"].as_array().unwrap().len(), &nodes["titles"]),
        (2, &3.into()),
        "{nodes}"
    );
    assert!(forget("n3").err.contains("nothing is known of 'n3' in 'c'"));
    assert_eq!(forget("--titles").out, "no title is without a node\n");
    // Its copies are replaced, and its own title is one that does not exist.
    let both: BTreeSet<String> = ["n1".to_owned(), "n2".to_owned()].into();
    eventually("two have all", || {
        let ready = ready(&director);
        ready.len() == 3 && ready.iter().all(|nodes| *nodes == both)
    });
    let (head, _) = director.get("/t/own/master.m3u8");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    first.stop();
    second.stop();

    // What cannot be done is said.
    let unknown = fleet.run(&format!("cluster drain n9 {}", fleet.cluster()));
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.err.contains("no node 'n9' is registered in 'c'"), "{}", unknown.err);
    let other =
        fleet.run(&format!("cluster nodes --cluster http://{} --cluster-name d", fleet.etcd));
    assert!(other.err.contains("no records of a cluster 'd'"), "{}", other.err);
}
