//! `cluster`: what etcd knows of the nodes, how to empty one or to have it forgotten, and how to
//! start all anew.

mod forget;
mod upgrade;

use crate::args::director::{ClusterArgs, ClusterCommand, ClusterDrainArgs, ClusterNodesArgs};
use crate::failure::{Code, Failure};
use crate::out::{Bar, Table};
use cluster::{
    CapacityShare, ClusterView, CopyVersion, CopyView, NodeDisk, NodeId, NodeNumber, NodeView,
    TitleName, TitleNumber, UnableDirector, UnlistedTitles,
};
use director::operations::ClusterRecords;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenuto_agent::stop_on_signals;
use units::show::{count, first_of};
use units::{BitRate, ByteCount};

pub(crate) fn run(command: &ClusterCommand) -> Result<(), Failure> {
    match command {
        ClusterCommand::Nodes(args) => nodes(args),
        ClusterCommand::Drain(args) => drain(args),
        ClusterCommand::Upgrade(args) => upgrade::upgrade(args),
        ClusterCommand::Forget(args) => forget::forget(args),
    }
}

fn records(args: &ClusterArgs) -> Result<ClusterRecords, Failure> {
    Ok(ClusterRecords::new(&args.etcd())?)
}

/// The report of `cluster nodes`.
#[derive(Serialize)]
struct ClusterReport {
    /// The address of the director that plans placement.
    planner: Option<String>,
    /// Directors that cannot list the bucket, and leave placement to others.
    unable: Vec<UnableDirector>,
    titles: usize,
    /// Titles without a ready copy on a registered node.
    titles_away: usize,
    /// Titles on nodes that the bucket of the planner has not; `None`: nobody knows.
    not_in_bucket: Option<NotInBucket>,
    /// Titles that were replaced in the bucket, with the nodes that have the old content.
    outdated: Vec<TitleOnNodes>,
    /// Titles with the nodes that have a content of the name that the bucket never had.
    own: Vec<TitleOnNodes>,
    nodes: Vec<NodeReport>,
}

#[derive(Serialize)]
struct NotInBucket {
    count: u32,
    /// The first of them.
    titles: Vec<TitleOnNodes>,
}

#[derive(Serialize)]
struct TitleOnNodes {
    title: TitleName,
    nodes: BTreeSet<String>,
}

#[derive(Serialize)]
struct NodeReport {
    name: String,
    registered: bool,
    drained: bool,
    /// Whether the node has no bucket, so that copies cannot be ordered.
    takes_no_copies: bool,
    address: Option<String>,
    rack: Option<String>,
    /// Bits per second of all disks.
    disks: CapacityShare,
    /// Bytes of all disks.
    space: CapacityShare,
    /// Viewers of titles, as of a minute ago at most.
    viewers: u64,
    /// Ready copies; of a node that is away those that it had.
    copies: usize,
    filling: usize,
    /// Copies that the node should still write and remove.
    fills_ordered: u64,
    evictions_ordered: usize,
}

impl ClusterReport {
    fn of(view: &ClusterView) -> Self {
        let known = view.nodes().filter(|(_, node)| node.is_known());
        let titles = view.titles().filter(|(_, title)| title.size().is_some());
        let titles: Vec<_> = titles.map(|(number, _)| number).collect();
        let is_away = |title: &&TitleNumber| view.ready_copies(**title).is_empty();
        let mut nodes: Vec<NodeReport> =
            known.map(|(number, node)| NodeReport::of(view, number, node)).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            planner: view.planner().map(str::to_owned),
            unable: view.unable().cloned().collect(),
            titles_away: titles.iter().filter(is_away).count(),
            titles: titles.len(),
            not_in_bucket: view.unlisted().map(|unlisted| NotInBucket::of(view, unlisted)),
            outdated: different(view, CopyVersion::Outdated),
            own: different(view, CopyVersion::Own),
            nodes,
        }
    }
}

impl ClusterReport {
    /// What people can do about nodes that do not come back; nothing where all are registered.
    fn away_text(&self) -> String {
        let away = self.nodes.iter().filter(|node| !node.registered);
        let names: Vec<&str> = away.map(|node| node.name.as_str()).collect();
        if names.is_empty() {
            return String::new();
        }
        let (verb, them) = if names.len() == 1 { ("is", "it") } else { ("are", "them") };
        format!(
            "{} {verb} away: {}\n  start {them} again; one that is gone for good can be forgotten \
             (tenuto cluster forget NODE)\n",
            count(names.len() as u64, "node"),
            names.join(", "),
        )
    }
}

impl NotInBucket {
    fn of(view: &ClusterView, unlisted: &UnlistedTitles) -> Self {
        let nodes = |title: &TitleName| -> BTreeSet<String> {
            let copies = view.title_named(title).map_or(&[][..], |number| view.copies(number));
            copies.iter().map(|copy| view.node(copy.place.node).id().to_string()).collect()
        };
        let on_nodes =
            |title: &TitleName| TitleOnNodes { title: title.clone(), nodes: nodes(title) };
        Self { count: unlisted.count, titles: unlisted.titles.iter().map(on_nodes).collect() }
    }

    /// What people should know and do; nothing where all titles are in the bucket. `on_nodes`: the
    /// number of all titles on nodes.
    fn text(&self, on_nodes: usize) -> String {
        if self.count == 0 {
            return String::new();
        }
        let (verb, them) = if self.count == 1 { ("is", "it") } else { ("are", "them") };
        let away = self.titles.iter().filter(|title| title.nodes.is_empty()).count();
        let here = usize::try_from(self.count).unwrap_or(usize::MAX) - away;
        let is_all = here > 0 && here >= on_nodes;
        let doubt = match is_all {
            true => "  it has none of the cluster's titles: is the director's --bucket right?\n",
            false => "",
        };
        format!(
            "{} on nodes {verb} not in the bucket and {}: {}\n{doubt}  to keep {them} for \
             good, push {them} into the bucket (tenuto bucket push); to free the space, remove \
             {them} on\n  each of these nodes (tenuto rm STORE TITLE)\n",
            count(u64::from(self.count), "title"),
            if self.count == 1 { "stays" } else { "stay" },
            named(&self.titles, self.count.into()),
        )
    }
}

/// The titles with copies of this version, and the nodes that have them.
fn different(view: &ClusterView, wanted: CopyVersion) -> Vec<TitleOnNodes> {
    let on_nodes = view.titles().map(|(number, title)| {
        let copies = view.different_copies(number).filter(|(_, version)| *version == wanted);
        let nodes = copies.map(|(copy, _)| view.node(copy.place.node).id().to_string()).collect();
        TitleOnNodes { title: title.name().clone(), nodes }
    });
    let mut titles: Vec<_> = on_nodes.filter(|title| !title.nodes.is_empty()).collect();
    titles.sort_by(|one, other| one.title.cmp(&other.title));
    titles
}

/// The first titles with their nodes, and the number of the others.
fn named(titles: &[TitleOnNodes], count: u64) -> String {
    let name = |title: &TitleOnNodes| {
        let nodes: Vec<&str> = title.nodes.iter().map(String::as_str).collect();
        let nodes =
            if nodes.is_empty() { "its nodes are away".to_owned() } else { nodes.join(", ") };
        format!("{} ({nodes})", title.title)
    };
    first_of(titles.iter().map(name), NAMED, count, " (--json)")
}

/// What people should know of copies that differ from the bucket; nothing where none does.
fn different_text(outdated: &[TitleOnNodes], own: &[TitleOnNodes]) -> String {
    let mut text = String::new();
    if !outdated.is_empty() {
        let titles = outdated.len() as u64;
        text += &format!(
            "{} {} replaced in the bucket, and the old content is still on: {}\n  it is served \
             until the new one is written there; /status of the node says why one is not\n",
            count(titles, "title"),
            if titles == 1 { "was" } else { "were" },
            named(outdated, titles),
        );
    }
    if !own.is_empty() {
        let titles = own.len() as u64;
        text += &format!(
            "{} of another content than the bucket's {} on nodes and {}: {}\n  the bucket never \
             had it under this name, so that it may be the only copy; to get the bucket's,\n  remove \
             it on each of these nodes (tenuto rm STORE TITLE)\n",
            count(titles, "title"),
            if titles == 1 { "is" } else { "are" },
            if titles == 1 { "stays" } else { "stay" },
            named(own, titles),
        );
    }
    text
}

impl NodeReport {
    fn of(view: &ClusterView, number: NodeNumber, node: &NodeView) -> Self {
        let digest = node.digest();
        let sum = |shares: &[CapacityShare]| {
            let all = |of: fn(&CapacityShare) -> u64| shares.iter().map(of).sum();
            CapacityShare { guaranteed: all(|share| share.guaranteed), free: all(|it| it.free) }
        };
        let (ready, filling) = match digest {
            Some(_) => copies_of(view, number, node),
            None => (node.held().count(), 0),
        };
        let member = node.member();
        let orders = node.orders();
        Self {
            name: node.id().to_string(),
            registered: digest.is_some(),
            drained: node.is_drained(),
            takes_no_copies: digest.is_some_and(|digest| digest.weight == 0),
            address: digest
                .map(|digest| digest.address.clone())
                .or_else(|| member.map(|member| member.address.clone())),
            rack: match digest {
                Some(digest) => digest.rack.clone(),
                None => member.and_then(|member| member.rack.clone()),
            },
            disks: digest.map(|digest| sum(&digest.disks)).unwrap_or_default(),
            space: digest.map(|digest| sum(&digest.space)).unwrap_or_default(),
            viewers: node.viewers().iter().map(|(_, viewers)| u64::from(*viewers)).sum(),
            copies: ready,
            filling,
            fills_ordered: orders.fill.len() as u64 + u64::from(orders.later),
            evictions_ordered: orders.evict.len(),
        }
    }

    /// In words; `is_planned`: a director orders copies.
    fn state(&self, is_planned: bool) -> &'static str {
        match (self.registered, self.drained) {
            (true, false) if is_planned && self.takes_no_copies => "has no --bucket",
            (true, false) => "",
            (true, true) => "drained",
            (false, false) => "away",
            (false, true) => "away, drained",
        }
    }
}

/// What people should know and do about a director that cannot list the bucket.
fn unable_text(director: &UnableDirector) -> String {
    format!(
        "the director at {} plans nothing until it can list the bucket: {}\n  check its --bucket and \
         the keys in its environment; others with --bucket plan meanwhile\n",
        director.address, director.why
    )
}

/// The copies on a node that are ready, and those that are being filled.
fn copies_of(view: &ClusterView, number: NodeNumber, node: &NodeView) -> (usize, usize) {
    let disks = node.digest().map_or(0, |digest| digest.disks.len());
    let disks = (0..u16::try_from(disks).unwrap_or(u16::MAX)).map(NodeDisk);
    let titles: BTreeSet<_> = disks.flat_map(|disk| node.titles_on(disk)).collect();
    let copies = titles.into_iter().flat_map(|title| view.copies(*title));
    let here = copies.filter(|copy| copy.place.node == number);
    let (ready, filling): (Vec<CopyView>, Vec<CopyView>) = here.partition(|copy| copy.is_ready());
    (ready.len(), filling.len())
}

fn nodes(args: &ClusterNodesArgs) -> Result<(), Failure> {
    let report = ClusterReport::of(&records(&args.cluster)?.view()?);
    args.report.show(&report, || {
        let mut table = Table::new(&[
            "node",
            "rack",
            ">viewers",
            ">free rate",
            ">of",
            ">free space",
            ">of",
            ">copies",
            ">to fill",
            "state",
        ]);
        for node in &report.nodes {
            table.row(vec![
                node.name.clone(),
                node.rack.clone().unwrap_or_else(|| "-".to_owned()),
                node.viewers.to_string(),
                BitRate(node.disks.free).to_string(),
                BitRate(node.disks.guaranteed).to_string(),
                ByteCount(node.space.free).to_string(),
                ByteCount(node.space.guaranteed).to_string(),
                node.copies.to_string(),
                (node.fills_ordered + node.filling as u64).to_string(),
                node.state(report.planner.is_some()).to_owned(),
            ]);
        }
        let planner = report.planner.as_ref().map_or_else(
            || "no director plans placement (director --bucket)".to_owned(),
            |address| format!("the director at {address} plans placement"),
        );
        let (titles, away) = (count(report.titles as u64, "title"), report.titles_away);
        let on_nodes = report.titles - report.titles_away;
        let stay = report.not_in_bucket.as_ref().map_or_else(String::new, |it| it.text(on_nodes));
        let different = different_text(&report.outdated, &report.own);
        let unable: String = report.unable.iter().map(unable_text).collect();
        let gone = report.away_text();
        format!(
            "{}\n{titles}, {away} with no copy on a registered node; {planner}\n{gone}{unable}\
             {stay}{different}",
            table.show()
        )
    });
    Ok(())
}

/// The report of `cluster drain`.
#[derive(Serialize)]
struct DrainReport<'a> {
    node: &'a NodeId,
    drained: bool,
    /// Copies that are still on the node.
    copies: usize,
    /// Titles among them that no other registered node has.
    only_here: usize,
}

fn drain(args: &ClusterDrainArgs) -> Result<(), Failure> {
    let ClusterDrainArgs { cluster, node, undo, no_wait, report } = args;
    let mut records = records(cluster)?;
    let view = records.view()?;
    let named = view.node_named(node);
    if !*undo && named.is_none_or(|number| view.node(number).digest().is_none()) {
        let message = format!("no node '{node}' is registered in '{}'", cluster.cluster_name);
        let hint = "`tenuto cluster nodes` lists them; one that is away is replaced after ten minutes, \
                    and can be drained when it is back";
        return Err(Failure::new(message).hint(hint));
    }
    if !*undo && view.planner().is_none() {
        let message = "no director plans placement, so that nobody would move the copies";
        let hint = "start a director with --bucket; titles must be in the bucket to be moved";
        return Err(Failure::new(message).hint(hint));
    }
    if *undo && !named.is_some_and(|number| view.node(number).is_drained()) {
        let message = format!("no node '{node}' is drained in '{}'", cluster.cluster_name);
        return Err(Failure::new(message).hint("`tenuto cluster nodes` lists the nodes"));
    }
    let stop = stop_on_signals()?;
    records.set_drained(node, !undo)?;
    let bar = Bar::new();
    let mut left = left_on(&records.view()?, node);
    let mut looks_at_rest = 0;
    while !*undo && !*no_wait && left.0 > 0 && !stop.load(Ordering::Relaxed) {
        if looks_at_rest == AT_REST {
            break;
        }
        let (copies, only_here) = left;
        let copies = count(copies as u64, "copy");
        bar.say(&format!("{copies} on {node}, {only_here} of titles that no other node has"));
        std::thread::sleep(LOOK);
        let view = records.view()?;
        looks_at_rest = if is_at_rest(&view) { looks_at_rest + 1 } else { 0 };
        left = left_on(&view, node);
    }
    drop(bar);
    let (copies, only_here) = left;
    let stays = looks_at_rest == AT_REST;
    let done = DrainReport { node, drained: !undo, copies, only_here };
    report.show(&done, || match (*undo, copies) {
        (true, _) => format!("{node} gets copies again\n"),
        (false, 0) => format!("{node} has no copies any more, and can be stopped for good\n"),
        (false, _) if stays => format!(
            "{node} keeps {}, {only_here} of titles that no other node has: they are not in the \
             bucket, or no other node has room for them\n",
            count(copies as u64, "copy")
        ),
        (false, _) => format!(
            "{node} is being drained: {} left, {only_here} of titles that no other node has\n",
            count(copies as u64, "copy")
        ),
    });
    match copies > 0 && !*undo && !*no_wait {
        true => Err(Failure::reported(Code::Failed)),
        false => Ok(()),
    }
}

/// The copies on a node, and the titles among them that no other registered node has.
fn left_on(view: &ClusterView, node: &NodeId) -> (usize, usize) {
    let Some(number) = view.node_named(node) else { return (0, 0) };
    let copies = view.titles().map(|(title, _)| view.copies(title));
    let here = copies.filter(|copies| copies.iter().any(|copy| copy.place.node == number));
    let (mut left, mut only_here) = (0, 0);
    for copies in here {
        left += 1;
        let elsewhere = copies.iter().any(|it| it.place.node != number && it.is_ready());
        only_here += usize::from(!elsewhere);
    }
    (left, only_here)
}

/// Whether no node has anything to fill or to remove.
fn is_at_rest(view: &ClusterView) -> bool {
    let fills = view.titles().any(|(title, _)| view.copies(title).iter().any(|it| !it.is_ready()));
    !fills && view.nodes().all(|(_, node)| node.orders().has_no_copies())
}

/// Looks in a row at a cluster at rest, after which nothing more is expected: some plans.
const AT_REST: u32 = 15;
/// Titles that are named of those that the bucket lacks.
const NAMED: usize = 10;
/// Time between two looks at the records.
const LOOK: Duration = Duration::from_secs(1);
