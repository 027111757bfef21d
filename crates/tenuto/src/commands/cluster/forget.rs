//! `cluster forget`: removes the records of a node that is gone for good, or of titles that no node
//! has any more. What would be lost is named first.

use super::{NAMED, records};
use crate::args::director::ClusterForgetArgs;
use crate::failure::Failure;
use cluster::forgetting::{ForgetRefusal, Forgetting, forget_node, forget_titles};
use cluster::{NodeId, TitleName};
use serde::Serialize;
use std::collections::BTreeSet;
use units::show::{count, first_of};

/// The report of `cluster forget`.
#[derive(Serialize)]
struct ForgetReport<'a> {
    /// The node; `None`: titles that no node had.
    node: Option<&'a NodeId>,
    /// Number of titles that it had.
    titles: usize,
    /// The titles of these that nobody else is known to have.
    lost: BTreeSet<TitleName>,
}

pub(super) fn forget(args: &ClusterForgetArgs) -> Result<(), Failure> {
    let ClusterForgetArgs { node, titles, cluster, destroy, report } = args;
    if node.is_some() && *titles {
        let failure = Failure::usage("NODE and --titles contradict each other");
        return Err(failure.hint("forget the node first: its titles go with it"));
    }
    let mut records = records(cluster)?;
    let view = records.view()?;
    let found = match node {
        Some(node) => {
            let refused = |refusal| refused(refusal, node, cluster.cluster_name.as_str());
            forget_node(&view, node).map_err(refused)?
        }
        None => forget_titles(&view),
    };
    if !found.lost.is_empty() && !destroy {
        return Err(would_be_lost(node.as_ref(), &found));
    }
    if !records.forget(node.as_ref(), &found, &view)? {
        let message = "the records have changed meanwhile, and some may be left";
        let hint = "look at them (`tenuto cluster nodes`), and repeat the command";
        return Err(Failure::new(message).hint(hint));
    }
    let done = ForgetReport { node: node.as_ref(), titles: found.titles, lost: found.lost.clone() };
    report.show(&done, || done.text());
    Ok(())
}

fn refused(refusal: ForgetRefusal, node: &NodeId, cluster: &str) -> Failure {
    match refusal {
        ForgetRefusal::Registered => Failure::new(format!(
            "'{node}' is registered in '{cluster}': it is alive, or ended a moment ago"
        ))
        .hint(format!(
            "give its copies to other nodes (`tenuto cluster drain {node}`), stop it, then repeat \
             this; one that ended without notice stays registered for 10 s"
        )),
        ForgetRefusal::Unknown => {
            Failure::new(format!("nothing is known of '{node}' in '{cluster}'"))
                .hint("`tenuto cluster nodes` lists the nodes")
        }
    }
}

/// The refusal to forget what nobody else has.
fn would_be_lost(node: Option<&NodeId>, found: &Forgetting) -> Failure {
    let titles = count(found.lost.len() as u64, "title");
    let lost = named(&found.lost);
    let bucket = match found.is_bucket_known {
        true => "",
        false => {
            "; what the bucket has is not known, because no director with --bucket plans placement"
        }
    };
    match node {
        Some(node) => Failure::new(format!(
            "{titles} would be lost that only '{node}' is known to have: {lost}{bucket}"
        ))
        .hint(
            "start the node again, or serve its disks by another node, to keep them; if they are \
             gone for good, allow it with --destroy",
        ),
        None => Failure::new(format!("no node has {titles}: {lost}{bucket}"))
            .hint("if they are gone for good, allow it with --destroy"),
    }
}

impl ForgetReport<'_> {
    fn text(&self) -> String {
        let lost = match self.lost.len() {
            0 => String::new(),
            lost => format!("{}: {}", count(lost as u64, "title"), named(&self.lost)),
        };
        match (self.node, self.titles) {
            (Some(node), 0) => format!("{node} is forgotten; it had no titles\n"),
            (Some(node), titles) if lost.is_empty() => {
                let titles = count(titles as u64, "title");
                format!("{node} is forgotten; others have all it had: {titles}\n")
            }
            (Some(node), _) => format!("{node} is forgotten, and with it {lost}\n"),
            (None, _) if lost.is_empty() => "no title is without a node\n".to_owned(),
            (None, _) => format!("forgotten: {lost}\n"),
        }
    }
}

/// The first titles, and the number of the others.
fn named(titles: &BTreeSet<TitleName>) -> String {
    first_of(titles.iter().map(TitleName::as_str), NAMED, titles.len() as u64, "")
}
