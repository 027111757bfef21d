//! The programs of the cluster: started, lost and started again.

use super::gateway::NODE as COPYING;
use super::{ClusterDemo, LOOK, Loss};
use crate::children::{Call, Problem, Running, check};
use crate::server::{Server, ask};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A title and the nodes that have it.
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

/// The copies in one line.
pub(super) fn placement() -> String {
    let mut line = String::new();
    for PlacedTitle { name, nodes } in &TITLES {
        let nodes: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
        let _ = write!(line, "{name} on {}; ", nodes.join(" "));
    }
    line.trim_end_matches("; ").to_owned()
}

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
    nodes: Vec<Option<Server>>,
    directors: Vec<Option<Server>>,
    gateway: GatewayState,
    /// What programs had counted when they were lost.
    gone: ClusterCounts,
}

impl Parts {
    /// Starts all of them; those that have started end with an error.
    pub(super) fn start(demo: &ClusterDemo) -> Result<Self, Problem> {
        let none = |count: usize| (0..count).map(|_| None).collect::<Vec<_>>();
        let mut parts = Self {
            etcd: (0..MEMBERS).map(|_| None).collect(),
            nodes: none(NODES),
            directors: none(2),
            gateway: match demo.has_gateway() {
                true => GatewayState::Running(demo.start_gateway()?),
                false => GatewayState::NotInstalled,
            },
            gone: ClusterCounts::default(),
        };
        for number in 1..=MEMBERS {
            let data = demo.folder.join(format!("etcd{number}"));
            let _ = std::fs::remove_dir_all(data);
        }
        let secret = demo.folder.join("cluster.secret");
        std::fs::write(&secret, [b's'; 32]).map_err(|error| error.to_string())?;
        let only_mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&secret, only_mine).map_err(|error| error.to_string())?;
        if parts.has_gateway() {
            // Between them they have all titles.
            [1, 4].iter().try_for_each(|number| demo.push(*number))?;
        }
        parts.restore(demo)?;
        Ok(parts)
    }

    /// Whether there is a bucket.
    pub(super) fn has_gateway(&self) -> bool {
        !matches!(self.gateway, GatewayState::NotInstalled)
    }

    /// Starts what is not running, and waits until viewers can be sent to every node.
    pub(super) fn restore(&mut self, demo: &ClusterDemo) -> Result<(), Problem> {
        for (number, member) in (1..).zip(&mut self.etcd) {
            if member.is_none() {
                *member = Some(etcd(demo, number)?);
            }
        }
        wait(demo, "etcd has a leader", || leader().is_some())?;
        for (number, node) in (1..).zip(&mut self.nodes) {
            if node.is_none() {
                let (call, log) = (node_call(demo, number), demo.log(&format!("n{number}")));
                *node = Some(Server::start(&call, &log, &demo.stop)?);
            }
        }
        for (number, director) in (1..).zip(&mut self.directors) {
            if director.is_none() {
                let call = director_call(demo, number);
                let log = demo.log(&format!("director{number}"));
                *director = Some(Server::start(&call, &log, &demo.stop)?);
            }
        }
        if matches!(self.gateway, GatewayState::Lost) {
            self.gateway = GatewayState::Running(demo.start_gateway()?);
            demo.copy_again()?;
        }
        // A node that ended without notice waits until its old lease has ended.
        let copies: usize = TITLES.iter().map(|title| title.nodes.len()).sum();
        wait(demo, "every node is registered", || {
            let registered =
                |node: &Server| node.get("/status").ok()?["cluster"]["registered"].as_bool();
            let sees = |director: &Server| {
                let titles = director.get("/titles").ok()?;
                let ready = titles["titles"].as_array()?.iter();
                let copies_ready = ready.filter_map(|title| Some(title["ready"].as_array()?.len()));
                let status = director.get("/status").ok()?;
                let nodes = status["nodes"].as_array()?.clone();
                let answering = nodes.iter().filter(|node| node["answers"] == true).count();
                Some(copies_ready.sum::<usize>() == copies && answering == NODES)
            };
            self.nodes.iter().flatten().all(|node| registered(node) == Some(true))
                && self.directors.iter().flatten().all(|director| sees(director) == Some(true))
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
    pub(super) fn directors(&self) -> [String; 2] {
        [1, 2].map(|number| format!("http://{}", director_address(number)))
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
            Loss::EtcdLeader => leader().ok_or("etcd has no leader")?,
            Loss::Node | Loss::Director | Loss::Gateway => 1,
            Loss::NodeInOrder => 2,
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
                let copying = demo.copy()?;
                std::thread::sleep(BEGUN);
                gateway.kill();
                let copied = match copying.wait(demo)? {
                    Ok(()) => "was complete by then",
                    Err(_) => "ended with an error",
                };
                Ok(format!(
                    "SIGKILL to the server of the bucket while n{COPYING} copied titles from it, \
                     which {copied}"
                ))
            }
            Loss::Node | Loss::NodeInOrder => {
                let node = self.nodes[number - 1].take().ok_or("it does not run")?;
                let status = node.get("/status").unwrap_or_default();
                // Not those whose viewers have left in the rounds before.
                let sessions = |name: &str| status[name].as_u64().unwrap_or_default();
                let viewers = sessions("active").saturating_sub(sessions("revocable"));
                add_node(&mut self.gone, &status);
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

    /// Leaves all of them running.
    pub(super) fn keep(mut self) -> String {
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
        let at = format!("http://{}/t/hot/master.m3u8", director_address(1));
        format!("The cluster goes on: {at}\nto end it: kill {}", ids.join(" "))
    }
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

fn member_address(number: usize) -> String {
    format!("127.0.0.{}:23790", 20 + number)
}

fn director_address(number: usize) -> String {
    format!("127.0.0.{}:8090", 30 + number)
}

/// The member of etcd that leads the others.
fn leader() -> Option<usize> {
    (1..=MEMBERS).find(|number| {
        let status = ask(&member_address(*number), "POST", "/v3/maintenance/status", "{}");
        let Ok(status) = status else { return false };
        status["leader"].is_string() && status["leader"] == status["header"]["member_id"]
    })
}

fn etcd(demo: &ClusterDemo, number: usize) -> Result<Running, Problem> {
    let peer = |number: usize| format!("http://127.0.0.{}:23800", 20 + number);
    let members: Vec<String> =
        (1..=MEMBERS).map(|number| format!("e{number}={}", peer(number))).collect();
    let here = format!("http://{}", member_address(number));
    let call = Call::new("etcd")
        .args(["--name", &format!("e{number}"), "--data-dir"])
        .arg(demo.folder.join(format!("etcd{number}")))
        .args(["--listen-client-urls", &here, "--advertise-client-urls", &here])
        .args(["--listen-peer-urls", &peer(number)])
        .args(["--initial-advertise-peer-urls", &peer(number)])
        .args(["--initial-cluster", &members.join(",")]);
    call.start(&demo.log(&format!("etcd{number}")))
}

/// The options that nodes and directors have in common.
fn in_cluster(demo: &ClusterDemo, call: Call) -> Call {
    let members: Vec<String> =
        (1..=MEMBERS).map(|number| format!("http://{}", member_address(number))).collect();
    call.args(["--cluster", &members.join(","), "--cluster-name", "demo", "--cluster-secret"])
        .arg(demo.folder.join("cluster.secret"))
        .arg("--json")
}

fn node_call(demo: &ClusterDemo, number: usize) -> Call {
    let address = format!("127.0.0.{}:8080", 10 + number);
    let rack = if number % 2 == 1 { "r1" } else { "r2" };
    let call = demo
        .call("serve")
        .arg(demo.store(number))
        .args(["--listen", &address, "--node-address", &format!("http://{address}")])
        .args(["--node", &format!("n{number}"), "--rack", rack])
        .args(["--as-disk", "st39183w", "--network", "48Mbps", "--memory", "256MiB"])
        .args(["--grace", "3s"]);
    in_cluster(demo, call)
}

fn director_call(demo: &ClusterDemo, number: usize) -> Call {
    let call = demo.call("director").args(["--listen", &director_address(number)]);
    in_cluster(demo, call.args(["--keep-free", KEEP_FREE]))
}

/// Members of etcd.
const MEMBERS: usize = 3;

/// Per cent of each node that new viewers leave to those who lose theirs.
const KEEP_FREE: &str = "30";

/// Time for the cluster to be complete: leases of 10 s, and a leader that is chosen.
const START: Duration = Duration::from_secs(60);

/// Time from the start of a copy to the loss of what it comes from.
const BEGUN: Duration = Duration::from_millis(700);
