//! The network of the cluster: each node in a network namespace, behind a link of its own rate.
//!
//! ```text
//!   n1, n3, n5 ── 100 Mb/s ──┐
//!   n2, n4 ──────── 1 Gb/s ──┴─ bridge: etcd, directors, the server of the bucket, viewers
//! ```
//!
//! Only root may make it. For other users all have loopback addresses of their own.

use super::parts::NODES;
use crate::children::{Call, Problem};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The addresses of all parts of the cluster, and the links of its nodes.
#[derive(Debug)]
pub(crate) struct ClusterNetwork {
    /// Where the tools' standard error goes; `None`: loopback addresses.
    links: Option<PathBuf>,
    kept: bool,
}

impl ClusterNetwork {
    /// Makes the links, where this user may. What a run before has left is removed first.
    pub(crate) fn make(log: PathBuf) -> Result<Self, Problem> {
        if !rustix::process::geteuid().is_root() {
            println!("not root: the nodes have loopback addresses, and no links of their own");
            return Ok(Self { links: None, kept: false });
        }
        let network = Self { links: Some(log), kept: false };
        network.refuse_if_used()?;
        network.remove();
        network.ip(&format!("link add {BRIDGE} type bridge"))?;
        for host in HOSTS {
            network.ip(&format!("addr add {}/24 dev {BRIDGE}", network.address(host)))?;
        }
        network.ip(&format!("link set {BRIDGE} up"))?;
        (1..=NODES).try_for_each(|number| network.add_node(number))?;
        Ok(network)
    }

    /// The address of this host of the cluster.
    pub(super) fn address(&self, host: usize) -> String {
        let net = if self.links.is_some() { "10.98.7" } else { "127.0.0" };
        format!("{net}.{host}")
    }

    /// A program of a node, where the node is.
    pub(super) fn at_node(&self, number: usize, call: Call) -> Call {
        match &self.links {
            Some(_) => call.within("ip", ["netns", "exec", &namespace(number)]),
            None => call,
        }
    }

    /// The links in a sentence.
    pub(super) fn sentence(&self) -> Option<String> {
        self.links.as_ref()?;
        let links = (1..=NODES).map(|number| format!("n{number} {}", link(number).words));
        Some(format!("links: {}", links.collect::<Vec<_>>().join(", ")))
    }

    /// Leaves the links; returns how to remove them.
    pub(super) fn keep(&mut self) -> Option<String> {
        self.links.as_ref()?;
        self.kept = true;
        let namespaces = (1..=NODES).map(|number| format!("ip netns del {}", namespace(number)));
        let all: Vec<_> = namespaces.chain([format!("ip link del {BRIDGE}")]).collect();
        Some(all.join("; "))
    }

    /// Whether nodes have links that can be cut.
    pub(super) fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// Cuts the link of a node: nothing comes through, and nobody is told.
    pub(super) fn cut(&self, number: usize) -> Result<(), Problem> {
        self.ip(&format!("link set {BRIDGE}{number} down"))
    }

    /// Mends the link of a node.
    pub(super) fn mend(&self, number: usize) -> Result<(), Problem> {
        self.ip(&format!("link set {BRIDGE}{number} up"))
    }

    fn add_node(&self, number: usize) -> Result<(), Problem> {
        let (place, port) = (namespace(number), format!("{BRIDGE}{number}"));
        let address = self.address(FIRST_NODE + number);
        self.ip(&format!("netns add {place}"))?;
        self.ip(&format!("link add {port} type veth peer name {PORT} netns {place}"))?;
        self.ip(&format!("link set {port} master {BRIDGE} up"))?;
        self.ip(&format!("-n {place} addr add {address}/24 dev {PORT}"))?;
        self.ip(&format!("-n {place} link set {PORT} up"))?;
        self.ip(&format!("-n {place} link set lo up"))?;
        let shape = format!("root tbf rate {} {QUEUE}", link(number).rate);
        self.run("tc", &format!("qdisc add dev {port} {shape}"))?;
        self.run("tc", &format!("-n {place} qdisc add dev {PORT} {shape}"))
    }

    /// Refuses to take the links from programs that use them.
    fn refuse_if_used(&self) -> Result<(), Problem> {
        for place in (1..=NODES).map(namespace) {
            // An error means that there is no such namespace.
            let pids = self.output("ip", &format!("netns pids {place}")).unwrap_or_default();
            if !pids.trim().is_empty() {
                let pids = pids.split_whitespace().collect::<Vec<_>>().join(" ");
                return Err(format!(
                    "another cluster runs on this machine: {pids} in the network namespace {place}; \
                     end it first"
                ));
            }
        }
        Ok(())
    }

    /// Removes the links, or what there is of them.
    fn remove(&self) {
        for number in 1..=NODES {
            let _ = self.ip(&format!("netns del {}", namespace(number)));
        }
        let _ = self.ip(&format!("link del {BRIDGE}"));
    }

    fn ip(&self, arguments: &str) -> Result<(), Problem> {
        self.run("ip", arguments)
    }

    fn run(&self, tool: &str, arguments: &str) -> Result<(), Problem> {
        let hint = "hint: iproute2 has `ip` and `tc`, and the kernel needs veth, bridge and tbf; \
                    as another user than root the cluster has loopback addresses";
        self.output(tool, arguments).map(drop).map_err(|problem| format!("{problem}\n{hint}"))
    }

    /// What a tool prints.
    fn output(&self, tool: &str, arguments: &str) -> Result<String, Problem> {
        let Some(log) = &self.links else { return Ok(String::new()) };
        // Each takes milliseconds, and those that remove run after Ctrl-C, too.
        let never = AtomicBool::new(false);
        Call::new(tool).args(arguments.split(' ')).output(log, &never)
    }
}

impl Drop for ClusterNetwork {
    fn drop(&mut self) {
        if !self.kept {
            self.remove();
        }
    }
}

/// The network namespace of a node.
fn namespace(number: usize) -> String {
    format!("tenuto-n{number}")
}

/// The rate of a link, for people and for `tc`.
struct Link {
    words: &'static str,
    rate: &'static str,
}

fn link(number: usize) -> Link {
    match number % 2 {
        1 => Link { words: "100 Mb/s", rate: "100mbit" },
        _ => Link { words: "1 Gb/s", rate: "1gbit" },
    }
}

/// Nodes have the hosts after this one.
pub(super) const FIRST_NODE: usize = 10;
/// Members of etcd have the hosts after this one.
pub(super) const FIRST_MEMBER: usize = 20;
/// Directors have the hosts after this one.
pub(super) const FIRST_DIRECTOR: usize = 30;
/// The server of the bucket.
pub(super) const GATEWAY: usize = 41;
/// Viewers, etcd, directors and the server of the bucket, on the bridge.
const HOSTS: [usize; 7] = [
    1,
    FIRST_MEMBER + 1,
    FIRST_MEMBER + 2,
    FIRST_MEMBER + 3,
    FIRST_DIRECTOR + 1,
    FIRST_DIRECTOR + 2,
    GATEWAY,
];

/// The bridge; with a node's number, the end of that node's link at it.
const BRIDGE: &str = "tenuto-c";
/// The end of a link in the namespace of its node.
const PORT: &str = "eth0";
/// Bytes that go at once, for the time between two ticks of the kernel, and what is not dropped.
const QUEUE: &str = "burst 256kb latency 50ms";
