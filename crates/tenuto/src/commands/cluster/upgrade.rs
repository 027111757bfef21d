//! `cluster upgrade`: a command for one node after the other, each awaited.
//!
//! ```text
//!   for each node:   lease, copies ─▶ COMMAND ─▶ another lease ─▶ wanted copies ─▶ next
//!                                       │ fails        │ not in time
//!                                       └──────────────┴─▶ the others are left as they are
//! ```
//!
//! A program that is started anew, in its place or not, registers under another lease: by that a
//! node that was started anew differs from one that goes on as before.

use super::{LOOK, copies_of, records};
use crate::args::director::ClusterUpgradeArgs;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use cluster::{AwaitedCopies, ClusterView, NodeId, NodeView};
use director::operations::{ClusterRecords, NodeLease};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tenuto_agent::stop_on_signals;
use units::show::count;
use units::{Reason, show_duration};

/// The report of `cluster upgrade`.
#[derive(Default, Serialize)]
struct UpgradeReport {
    done: Vec<UpgradedNode>,
    failed: Option<FailedNode>,
    /// Nodes that are as they were.
    left: Vec<NodeId>,
    /// Nodes that are known and were not registered at the beginning.
    away: Vec<NodeId>,
}

#[derive(Serialize)]
struct UpgradedNode {
    node: NodeId,
    /// Seconds until it was registered again with all copies.
    took: f64,
    copies: usize,
}

#[derive(Serialize)]
struct FailedNode {
    node: NodeId,
    reason: String,
}

pub(super) fn upgrade(args: &ClusterUpgradeArgs) -> Result<(), Failure> {
    let mut records = records(&args.cluster)?;
    let view = records.view()?;
    let (mut left, away) = nodes_of(&view);
    if !args.nodes.is_empty() {
        if let Some(unknown) = args.nodes.iter().find(|node| !left.contains(node)) {
            let name = &args.cluster.cluster_name;
            let message = format!("no node '{unknown}' is registered in '{name}'");
            return Err(Failure::new(message).hint("`tenuto cluster nodes` lists them"));
        }
        left.clone_from(&args.nodes);
    }
    let stop = stop_on_signals()?;
    let mut report = UpgradeReport { away, ..UpgradeReport::default() };
    let bar = Bar::new();
    while !left.is_empty() && report.failed.is_none() && !stop.load(Ordering::Relaxed) {
        let node = left.remove(0);
        let begun = Instant::now();
        match upgrade_one(&mut records, &node, args, &bar, &stop) {
            Ok(copies) => {
                let took = begun.elapsed().as_secs_f64();
                bar.above(|| out::signal(&format!("{node} is registered again after {took:.1} s")));
                report.done.push(UpgradedNode { node, took, copies });
            }
            Err(reason) => report.failed = Some(FailedNode { node, reason }),
        }
    }
    drop(bar);
    report.left = left;
    let is_whole = report.failed.is_none() && report.left.is_empty();
    args.report.show(&report, || report.text());
    if is_whole { Ok(()) } else { Err(Failure::reported(Code::Failed)) }
}

/// The registered nodes and those that are only known, by name.
fn nodes_of(view: &ClusterView) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut all: Vec<_> = view.nodes().map(|(_, node)| node).collect();
    all.sort_by_key(|node| node.id().to_string());
    let (here, away): (Vec<_>, Vec<_>) = all.into_iter().partition(|node| node.digest().is_some());
    let away = away.into_iter().filter(|node| node.is_known());
    let names = |nodes: Vec<&NodeView>| nodes.iter().map(|it| it.id().clone()).collect();
    (names(here), names(away.collect()))
}

/// What must be there again after a node was started anew.
struct Before {
    lease: NodeLease,
    copies: AwaitedCopies,
    address: String,
}

/// Runs the command for a node and waits for it; returns the number of its copies.
fn upgrade_one(
    records: &mut ClusterRecords,
    node: &NodeId,
    args: &ClusterUpgradeArgs,
    bar: &Bar,
    stop: &AtomicBool,
) -> Result<usize, String> {
    let (lease, view) = look(records, node).map_err(|error| error.to_string())?;
    let number = view.node_named(node).filter(|number| view.node(*number).digest().is_some());
    let Some((lease, number)) = lease.zip(number) else {
        return Err("it is not registered any more; nothing was run".to_owned());
    };
    let address = view.node(number).digest().map_or_else(String::new, |it| it.address.clone());
    let mut before = Before { lease, copies: AwaitedCopies::of(&view, number), address };
    bar.say(&format!("{node}: {}", args.run));
    run_command(&args.run, node, &before.address)?;
    let begun = Instant::now();
    let mut state = "it does not answer";
    while begun.elapsed() < args.timeout {
        if stop.load(Ordering::Relaxed) {
            return Err(format!("interrupted: {state}"));
        }
        std::thread::sleep(LOOK);
        // Etcd may be started anew, too.
        let Ok((lease, view)) = look(records, node) else { continue };
        let are_there = before.copies.are_there(&view);
        state = match lease {
            Some(now) if now == before.lease => {
                "it goes on as before: the command did not start it anew"
            }
            Some(_) if are_there => return Ok(ready_copies(&view, node)),
            Some(_) => "it is registered again, and not all its copies are",
            None => "it is not registered",
        };
        bar.say(&format!("{node}: {state}"));
    }
    Err(format!("after {} {state}", show_duration(args.timeout)))
}

fn look(
    records: &mut ClusterRecords,
    node: &NodeId,
) -> Result<(Option<NodeLease>, ClusterView), Reason> {
    Ok((records.lease_of(node)?, records.view()?))
}

/// The number of ready copies on a node.
fn ready_copies(view: &ClusterView, node: &NodeId) -> usize {
    let number = view.node_named(node);
    number.map_or(0, |number| copies_of(view, number, view.node(number)).0)
}

/// Runs the command. What it prints goes to standard error, beside the progress.
fn run_command(command: &str, node: &NodeId, address: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    shell.env("TENUTO_NODE", node.to_string()).env("TENUTO_NODE_ADDRESS", address);
    shell.env("TENUTO_NODE_HOST", host(address)).stdout(std::io::stderr());
    let status = shell.status().map_err(|error| format!("cannot run sh: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the command failed ({status})")),
    }
}

/// The host in an address, without the brackets of IPv6.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    match rest.strip_prefix('[') {
        Some(ipv6) => ipv6.split(']').next().unwrap_or(ipv6),
        None => rest.split([':', '/']).next().unwrap_or(rest),
    }
}

impl UpgradeReport {
    fn text(&self) -> String {
        let names =
            |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" ");
        let mut text = String::new();
        for UpgradedNode { node, took, copies } in &self.done {
            let copies = count(*copies as u64, "copy");
            text += &format!("{node} was started anew in {took:.1} s, with {copies}\n");
        }
        if let Some(FailedNode { node, reason }) = &self.failed {
            text += &format!("{node}: {reason}\n");
        }
        if !self.left.is_empty() {
            text += &format!("as they were: {}\n", names(&self.left));
        }
        if !self.away.is_empty() {
            text += &format!("away, left out: {}\n", names(&self.away));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    //! The host that a command is told.

    use super::host;

    #[test]
    fn the_host_has_no_port_path_or_brackets() {
        let rows = [
            ("http://10.0.0.1:8080", "10.0.0.1"),
            ("https://n1.example", "n1.example"),
            ("https://n1.example/films/", "n1.example"),
            ("http://[2001:db8::1]:8080", "2001:db8::1"),
            ("http://[::1]", "::1"),
        ];
        for (address, wanted) in rows {
            assert_eq!(host(address), wanted, "{address}");
        }
    }
}
