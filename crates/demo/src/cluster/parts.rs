//! The programs of the cluster: started, lost and started again.

use super::gateway::{NEW_TITLES, with_bucket};
use super::network::{FIRST_DIRECTOR, FIRST_MEMBER, FIRST_NODE};
use super::{ClusterDemo, LOOK, Loss};
use crate::children::{Call, Problem, Running, check};
use crate::server::{Server, ask};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A title, and the nodes that have it where no bucket fills them.
pub(super) struct PlacedTitle {
    pub(super) name: &'static str,
    pub(super) nodes: &'static [usize],
}

const fn title(name: &'static str, nodes: &'static [usize]) -> PlacedTitle {
    PlacedTitle { name, nodes }
}

/// One title is everywhere; the others have two copies in different racks. A node with a copy of
/// the second title has little else: all viewers of that go there when the other is lost.
pub(super) const TITLES: [PlacedTitle; 6] = [
    title("hot", &[1, 2, 3, 4, 5]),
    title("a", &[1, 2]),
    title("b", &[3, 4]),
    title("c", &[5, 4]),
    title("d", &[3, 4]),
    title("e", &[5, 4]),
];

/// Number of nodes; those with odd numbers are in one rack.
pub(super) const NODES: usize = 5;

/// What directors and nodes have counted.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterCounts {
    /// Viewers that directors sent to nodes, and refused.
    pub(super) sent: u64,
    pub(super) refused: u64,
    /// Sessions that nodes admitted.
    pub(super) admitted: u64,
    /// Reads that nodes had guaranteed and did not complete in time.
    pub(super) late: u64,
}

impl ClusterCounts {
    /// The growth since then; a program that was started again counts from zero.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            refused: self.refused.saturating_sub(before.refused),
            admitted: self.admitted.saturating_sub(before.admitted),
            late: self.late.saturating_sub(before.late),
        }
    }
}

/// The server of the bucket.
enum GatewayState {
    NotInstalled,
    Lost,
    Running(Running),
}

/// All programs; `None`: lost.
pub(super) struct Parts {
    etcd: Vec<Option<Running>>,
    pub(super) nodes: Vec<Option<Server>>,
    directors: Vec<Option<Server>>,
    gateway: GatewayState,
    /// Titles in the bucket.
    titles: usize,
    /// What programs had counted when they were lost.
    gone: ClusterCounts,
    /// The number of the node that is drained.
    pub(super) drained: Option<usize>,
    /// The number of the node whose link is cut.
    cut_off: Option<usize>,
    /// Per cent of each node that directors keep for viewers who lose theirs.
    keep_free: u64,
}

impl Parts {
    /// Starts all of them; those that have started end with an error.
    pub(super) fn start(demo: &ClusterDemo, has_gateway: bool) -> Result<Self, Problem> {
        let none = |count: usize| (0..count).map(|_| None).collect::<Vec<_>>();
        let mut parts = Self {
            etcd: (0..MEMBERS).map(|_| None).collect(),
            nodes: none(NODES),
            directors: none(2),
            gateway: match has_gateway {
                true => GatewayState::Running(demo.start_gateway()?),
                false => GatewayState::NotInstalled,
            },
            titles: TITLES.len(),
            gone: ClusterCounts::default(),
            drained: None,
            cut_off: None,
            keep_free: KEEP_FREE,
        };
        for number in 1..=MEMBERS {
            let data = demo.folder.join(format!("etcd{number}"));
            let _ = std::fs::remove_dir_all(data);
        }
        let secret = demo.folder.join("cluster.secret");
        std::fs::write(&secret, [b's'; 32]).map_err(|error| error.to_string())?;
        let only_mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&secret, only_mine).map_err(|error| error.to_string())?;
        if has_gateway {
            demo.push(TITLES.map(|title| title.name))?;
        }
        parts.restore(demo)?;
        Ok(parts)
    }

    /// Starts the directors anew, which keep so many per cent of each node free from then on.
    pub(super) fn keep_free(&mut self, demo: &ClusterDemo, per_cent: u64) -> Result<(), Problem> {
        self.keep_free = per_cent;
        for director in self.directors.iter_mut().filter_map(Option::take) {
            add_director(&mut self.gone, &director.get("/status").unwrap_or_default());
        }
        self.restore(demo)
    }

    /// What the first director says of itself and the nodes.
    pub(super) fn director_status(&self) -> Option<Value> {
        self.directors[0].as_ref()?.get("/status").ok()
    }

    /// Whether there is a bucket.
    pub(super) fn has_gateway(&self) -> bool {
        !matches!(self.gateway, GatewayState::NotInstalled)
    }

    /// Puts new titles into the bucket, and waits until nodes copy them.
    pub(super) fn publish(&mut self, demo: &ClusterDemo) -> Result<(), Problem> {
        let begun = Instant::now();
        demo.push(NEW_TITLES)?;
        self.titles = TITLES.len() + NEW_TITLES.len();
        wait(demo, "nodes copy the new titles", || {
            self.copying().iter().any(|(_, title)| NEW_TITLES.contains(&title.as_str()))
        })?;
        let (titles, took) = (NEW_TITLES.join(", "), begun.elapsed().as_secs());
        println!("{titles}: new in the bucket, and ordered by the director that plans in {took} s");
        Ok(())
    }

    /// The copies that nodes write: node and title.
    fn copying(&self) -> Vec<(usize, String)> {
        let mut copies = Vec::new();
        for (number, node) in (1..).zip(&self.nodes) {
            let status =
                node.as_ref().and_then(|node| node.get("/status").ok()).unwrap_or_default();
            let filling = status["cluster"]["copies"]["filling"].as_array();
            let titles = filling.into_iter().flatten().filter_map(|copy| copy["title"].as_str());
            copies.extend(titles.map(|title| (number, title.to_owned())));
        }
        copies
    }

    /// The copies in one line, as a director knows them.
    pub(super) fn placement(&self) -> String {
        let director = self.directors.iter().flatten().next();
        let known = director.and_then(|director| director.get("/titles").ok()).unwrap_or_default();
        let titles = known["titles"].as_array().into_iter().flatten().map(|title| {
            let ready = title["ready"].as_array().into_iter().flatten();
            let nodes: Vec<&str> = ready.filter_map(Value::as_str).collect();
            format!("{} on {}", title["name"].as_str().unwrap_or_default(), nodes.join(" "))
        });
        titles.collect::<Vec<_>>().join("; ")
    }

    /// Whether every title has its copies, as far as a director knows.
    fn has_copies(&self, director: &Server) -> Option<bool> {
        let titles = director.get("/titles").ok()?;
        let titles = titles["titles"].as_array()?;
        let ready = |title: &Value| title["ready"].as_array().map_or(0, Vec::len);
        if !self.has_gateway() {
            let wanted: usize = TITLES.iter().map(|title| title.nodes.len()).sum();
            return Some(titles.iter().map(ready).sum::<usize>() == wanted);
        }
        let here = &director.get("/status").ok()?["planning"]["here"];
        // One of the directors plans, and knows what is ordered.
        let is_done = here["plans"] == false
            || here["titles"] == self.titles && here["fills"] == 0 && here["evictions"] == 0;
        Some(is_done && titles.len() == self.titles && titles.iter().all(|it| ready(it) >= COPIES))
    }

    /// Starts what is not running, and waits until viewers can be sent to every node and the
    /// directors have nothing to order.
    pub(super) fn restore(&mut self, demo: &ClusterDemo) -> Result<(), Problem> {
        for (number, member) in (1..).zip(&mut self.etcd) {
            if member.is_none() {
                *member = Some(etcd(demo, number)?);
            }
        }
        wait(demo, "etcd has a leader", || leader(demo).is_some())?;
        let has_gateway = self.has_gateway();
        for (number, node) in (1..).zip(&mut self.nodes) {
            if node.is_none() {
                let call = node_call(demo, number, has_gateway);
                let log = demo.log(&format!("n{number}"));
                *node = Some(Server::start(&call, &log, &demo.stop)?);
            }
        }
        for (number, director) in (1..).zip(&mut self.directors) {
            if director.is_none() {
                let call = director_call(demo, number, has_gateway, self.keep_free);
                let log = demo.log(&format!("director{number}"));
                *director = Some(Server::start(&call, &log, &demo.stop)?);
            }
        }
        self.undo_drain(demo)?;
        if matches!(self.gateway, GatewayState::Lost) {
            self.gateway = GatewayState::Running(demo.start_gateway()?);
        }
        // A node that ended without notice waits until its old lease has ended.
        wait(demo, "every node is registered, and every title has its copies", || {
            let registered =
                |node: &Server| node.get("/status").ok()?["cluster"]["registered"].as_bool();
            let sees = |director: &Server| {
                let status = director.get("/status").ok()?;
                let nodes = status["nodes"].as_array()?;
                let answering = nodes.iter().filter(|node| node["answers"] == true).count();
                Some(answering == NODES && self.has_copies(director)?)
            };
            let plans = |director: &Server| {
                director.get("/status").is_ok_and(|it| it["planning"]["here"]["plans"] == true)
            };
            self.nodes.iter().flatten().all(|node| registered(node) == Some(true))
                && self.directors.iter().flatten().all(|director| sees(director) == Some(true))
                && (!has_gateway || self.directors.iter().flatten().any(plans))
        })
    }

    /// The streams that the disks and the networks of all nodes guarantee.
    pub(super) fn guaranteed(&self, demo: &ClusterDemo) -> Result<u64, Problem> {
        check(&demo.stop)?;
        let director = self.directors[0].as_ref().ok_or("no director")?;
        let (status, titles) = (director.get("/status")?, director.get("/titles")?);
        let rate = titles["titles"][0]["bit_rate"].as_u64().filter(|rate| *rate > 0);
        let rate = rate.ok_or("the directors show no title")?;
        let of_node = |node: &Value| {
            let share = |share: &Value| share["guaranteed"].as_u64().unwrap_or_default();
            let disks: u64 = node["disks"].as_array().into_iter().flatten().map(share).sum();
            disks.min(share(&node["network"])) / rate
        };
        Ok(status["nodes"].as_array().into_iter().flatten().map(of_node).sum())
    }

    /// The addresses of the directors.
    pub(super) fn directors(&self, demo: &ClusterDemo) -> [String; 2] {
        [1, 2].map(|number| format!("http://{}", director_address(demo, number)))
    }

    /// What is counted so far.
    pub(super) fn counted(&self) -> ClusterCounts {
        let mut all = self.gone.clone();
        for director in self.directors.iter().flatten() {
            add_director(&mut all, &director.get("/status").unwrap_or_default());
        }
        for node in self.nodes.iter().flatten() {
            add_node(&mut all, &node.get("/status").unwrap_or_default());
        }
        all
    }

    /// Loses one of them; returns what it was.
    pub(super) fn lose(&mut self, demo: &ClusterDemo, loss: Loss) -> Result<String, Problem> {
        check(&demo.stop)?;
        let number = match loss {
            Loss::EtcdLeader => leader(demo).ok_or("etcd has no leader")?,
            Loss::Node | Loss::Director | Loss::Gateway => 1,
            Loss::NodeInOrder => 2,
            Loss::Link => self.fullest().ok_or("no node runs")?,
            Loss::Drained => return self.drain(demo),
            Loss::Nothing => return Ok("nothing is lost".to_owned()),
        };
        match loss {
            Loss::EtcdLeader => {
                self.etcd[number - 1].take().ok_or("it does not run")?.kill();
                Ok(format!("SIGKILL to member {number} of etcd, the leader"))
            }
            Loss::Director => {
                let director = self.directors[0].take().ok_or("it does not run")?;
                add_director(&mut self.gone, &director.get("/status").unwrap_or_default());
                director.kill();
                Ok("SIGKILL to the director that these viewers came by".to_owned())
            }
            Loss::Gateway => {
                let gateway = std::mem::replace(&mut self.gateway, GatewayState::Lost);
                let GatewayState::Running(gateway) = gateway else {
                    return Err("it does not run".to_owned());
                };
                let copying = self.copying();
                gateway.kill();
                let words = copying.iter().map(|(node, title)| format!("n{node} copied {title}"));
                let words = words.collect::<Vec<_>>().join(", ");
                let words = if words.is_empty() { "nothing was copied" } else { &words };
                Ok(format!("SIGKILL to the server of the bucket while {words}"))
            }
            Loss::Link => {
                let viewers = viewers(self.nodes[number - 1].as_ref().ok_or("it does not run")?);
                demo.network.cut(number)?;
                self.cut_off = Some(number);
                Ok(format!("the link of n{number} is cut, with {viewers} viewers"))
            }
            Loss::Nothing | Loss::Node | Loss::NodeInOrder | Loss::Drained => {
                let node = self.nodes[number - 1].take().ok_or("it does not run")?;
                let viewers = viewers(&node);
                self.is_gone(&node);
                if loss == Loss::Node {
                    node.kill();
                    return Ok(format!("SIGKILL to n{number} with {viewers} viewers"));
                }
                // Waits for its end: viewers go on for the time of grace.
                drop(node);
                Ok(format!("SIGTERM to n{number} with {viewers} viewers, which has ended"))
            }
        }
    }

    /// The number of the node that most viewers are at.
    fn fullest(&self) -> Option<usize> {
        let nodes = (1..).zip(&self.nodes);
        nodes.max_by_key(|(_, node)| node.as_ref().map(viewers)).map(|(number, _)| number)
    }

    /// Mends a link that was cut, and waits until its node answers.
    pub(super) fn mend_link(&mut self, demo: &ClusterDemo) -> Result<(), Problem> {
        let Some(number) = self.cut_off.take() else { return Ok(()) };
        demo.network.mend(number)?;
        let node = self.nodes[number - 1].as_ref().ok_or("it does not run")?;
        wait(demo, "the node answers whose link was cut", || node.get("/status").is_ok())
    }

    /// Takes over what a node has counted, which ends now.
    pub(super) fn is_gone(&mut self, node: &Server) {
        add_node(&mut self.gone, &node.get("/status").unwrap_or_default());
    }

    /// Leaves all of them running.
    pub(super) fn keep(mut self, demo: &mut ClusterDemo) -> String {
        let mut ids = Vec::new();
        for member in self.etcd.iter_mut().flatten() {
            member.keep();
            ids.push(member.id().to_string());
        }
        if let GatewayState::Running(gateway) = &mut self.gateway {
            gateway.keep();
            ids.push(gateway.id().to_string());
        }
        let servers = self.nodes.drain(..).chain(self.directors.drain(..)).flatten();
        ids.extend(servers.map(|server| server.keep().to_string()));
        let links = demo.network.keep().map_or(String::new(), |links| format!("; {links}"));
        let at = format!("http://{}/t/hot/master.m3u8", director_address(demo, 1));
        format!("The cluster goes on: {at}\nto end it: kill {}{links}", ids.join(" "))
    }
}

/// The viewers of a node who are there: not those who have left in the rounds before.
pub(super) fn viewers(node: &Server) -> u64 {
    let status = node.get("/status").unwrap_or_default();
    let sessions = |name: &str| status[name].as_u64().unwrap_or_default();
    sessions("active").saturating_sub(sessions("revocable"))
}

fn add_director(all: &mut ClusterCounts, status: &Value) {
    let counters = &status["counters"];
    all.sent += counters["admitted"].as_u64().unwrap_or_default();
    let refused = counters["refused"].as_object().into_iter().flatten();
    all.refused += refused.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
}

fn add_node(all: &mut ClusterCounts, status: &Value) {
    all.admitted += status["admitted"].as_u64().unwrap_or_default();
    let violations = status["guarantee_violations"].as_object().into_iter().flatten();
    all.late += violations.filter_map(|(_, count)| count.as_u64()).sum::<u64>();
}

/// Waits until `holds`, or for Ctrl-C.
pub(super) fn wait(
    demo: &ClusterDemo,
    what: &str,
    mut holds: impl FnMut() -> bool,
) -> Result<(), Problem> {
    let deadline = Instant::now() + START;
    while !holds() {
        check(&demo.stop)?;
        if Instant::now() > deadline {
            let logs = demo.folder.display();
            return Err(format!(
                "not within {} s: {what}; the logs are in {logs}",
                START.as_secs()
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn member_address(demo: &ClusterDemo, number: usize) -> String {
    format!("{}:23790", demo.network.address(FIRST_MEMBER + number))
}

fn director_address(demo: &ClusterDemo, number: usize) -> String {
    format!("{}:8090", demo.network.address(FIRST_DIRECTOR + number))
}

/// Where a director answers players of RTSP.
pub(super) fn director_rtsp(demo: &ClusterDemo, number: usize) -> String {
    format!("rtsp://{}:8554", demo.network.address(FIRST_DIRECTOR + number))
}

/// The member of etcd that leads the others.
fn leader(demo: &ClusterDemo) -> Option<usize> {
    (1..=MEMBERS).find(|number| {
        let status = ask(&member_address(demo, *number), "POST", "/v3/maintenance/status", "{}");
        let Ok(status) = status else { return false };
        status["leader"].is_string() && status["leader"] == status["header"]["member_id"]
    })
}

fn etcd(demo: &ClusterDemo, number: usize) -> Result<Running, Problem> {
    let peer =
        |number: usize| format!("http://{}:23800", demo.network.address(FIRST_MEMBER + number));
    let members: Vec<String> =
        (1..=MEMBERS).map(|number| format!("e{number}={}", peer(number))).collect();
    let here = format!("http://{}", member_address(demo, number));
    let call = Call::new("etcd")
        .args(["--name", &format!("e{number}"), "--data-dir"])
        .arg(demo.folder.join(format!("etcd{number}")))
        .args(["--listen-client-urls", &here, "--advertise-client-urls", &here])
        .args(["--listen-peer-urls", &peer(number)])
        .args(["--initial-advertise-peer-urls", &peer(number)])
        .args(["--initial-cluster", &members.join(",")]);
    call.start(&demo.log(&format!("etcd{number}")))
}

/// The addresses of all members of etcd.
pub(super) fn members(demo: &ClusterDemo) -> String {
    let all = (1..=MEMBERS).map(|number| format!("http://{}", member_address(demo, number)));
    all.collect::<Vec<_>>().join(",")
}

/// The options that nodes and directors have in common.
fn in_cluster(demo: &ClusterDemo, call: Call) -> Call {
    call.args(["--cluster", &members(demo), "--cluster-name", "demo", "--cluster-secret"])
        .arg(demo.folder.join("cluster.secret"))
        .arg("--json")
}

fn node_call(demo: &ClusterDemo, number: usize, has_gateway: bool) -> Call {
    let host = demo.network.address(FIRST_NODE + number);
    let address = format!("{host}:8080");
    let rack = if number % 2 == 1 { "r1" } else { "r2" };
    let call = demo
        .call("serve")
        .arg(demo.store(number))
        .args(["--listen", &address, "--node-address", &format!("http://{address}")])
        .args(["--node", &format!("n{number}"), "--rack", rack])
        .args(["--as-disk", "st39183w", "--network", "48Mbps", "--memory", "256MiB"])
        .args(["--rtsp", &format!("{host}:8554"), "--grace", "3s"]);
    let call = in_cluster(
        demo,
        if has_gateway { with_bucket(demo, call).args(["--fill-rate", FILL_RATE]) } else { call },
    );
    demo.network.at_node(number, call)
}

fn director_call(demo: &ClusterDemo, number: usize, has_gateway: bool, keep_free: u64) -> Call {
    let call = demo.call("director").args(["--listen", &director_address(demo, number)]);
    let call = call.args(["--rtsp", director_rtsp(demo, number).trim_start_matches("rtsp://")]);
    let copies = COPIES.to_string();
    let call = if has_gateway { with_bucket(demo, call).args(["--copies", &copies]) } else { call };
    in_cluster(demo, call.args(["--keep-free", &keep_free.to_string()]))
}

/// Members of etcd.
const MEMBERS: usize = 3;

/// Per cent of each node that new viewers leave to those who lose theirs.
pub(super) const KEEP_FREE: u64 = 30;

/// The rate at which a node writes copies. The disk time that is kept for it is not there for new
/// viewers: at 30 Mb/s, half of them were refused. Copies take long enough to be under way when a
/// round loses something.
const FILL_RATE: &str = "12Mbps";

/// Copies of a title, at least. With two, all viewers of a title on a lost node need room at one
/// other node, which placement does not keep.
const COPIES: usize = 3;

/// Time for the cluster to be complete: leases of 10 s, and a leader that is chosen; the planner
/// looks at the bucket once a minute, and copies that failed are tried again after up to 40 s.
const START: Duration = Duration::from_secs(180);
