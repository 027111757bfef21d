//! Weighted rendezvous hashing: which nodes a title's copies are on.
//!
//! ```text
//!   score(title, node) = -weight / ln(u),  u from the hash of both names, even in (0, 1)
//!
//!   title "Metropolis":   n7 41.2   n3 17.9   n9 12.0   n1 8.8   ...
//!                         ▲ first   ▲ same rack as n7   ▲ second
//! ```
//!
//! A score depends on no other node. A node that comes takes its share from all others and nothing
//! else moves; a node that leaves is replaced by the next of each of its titles. The probability
//! that a node is the first of a title is its part of all weights (rendezvous hashing by Thaler and
//! Ravishankar; weights by Schindelhauer and Schomaker).
//!
//! Racks have equal parts of a title's copies, as nearly as possible, and so have nodes.

use crate::chance::{hash_of, mixed};
use crate::names::{NodeId, TitleName};
use crate::records::NodeDigest;
use crate::view::NodeNumber;
use std::collections::BTreeMap;
use units::float;

/// A node that may have copies.
#[derive(Clone, Debug)]
pub(super) struct Member {
    number: NodeNumber,
    hash: u64,
    weight: f64,
    disks: usize,
    rack: Option<String>,
}

impl Member {
    pub(super) fn new(number: NodeNumber, id: &NodeId, digest: &NodeDigest) -> Self {
        Self {
            number,
            hash: hash_of(id.as_str()),
            weight: digest.weight.into(),
            disks: digest.disks.iter().filter(|disk| disk.guaranteed > 0).count(),
            rack: digest.rack.clone(),
        }
    }
}

/// Chooses nodes for titles, one title after the other.
pub(super) struct Chooser {
    members: Vec<Member>,
    /// The rack of each member, as a number; a member without one has its own.
    racks: Vec<usize>,
    rack_count: usize,
    disks: usize,
    // Reused from title to title.
    scores: Vec<(f64, usize)>,
    in_rack: Vec<usize>,
    on_member: Vec<usize>,
    /// Copies that each member may have.
    limits: Vec<usize>,
    chosen: Vec<NodeNumber>,
}

impl Chooser {
    pub(super) fn new(members: Vec<Member>) -> Self {
        let mut named = BTreeMap::new();
        let mut rack_count = 0;
        let mut next = || {
            rack_count += 1;
            rack_count - 1
        };
        let racks = members
            .iter()
            .map(|member| match &member.rack {
                Some(rack) => *named.entry(rack.as_str()).or_insert_with(&mut next),
                None => next(),
            })
            .collect();
        Self {
            racks,
            rack_count,
            disks: members.iter().map(|member| member.disks).sum(),
            scores: Vec::new(),
            in_rack: Vec::new(),
            on_member: Vec::new(),
            limits: Vec::new(),
            chosen: Vec::new(),
            members,
        }
    }

    /// Disks of all members.
    pub(super) fn disks(&self) -> usize {
        self.disks
    }

    /// The nodes of a title's copies, best first: a node as often as it has copies. Fewer than
    /// wanted only where there are not as many disks. `room`: the number of a node's disks that may
    /// have a copy; `None`: all.
    pub(super) fn choose(
        &mut self,
        title: &TitleName,
        wanted: usize,
        room: impl Fn(NodeNumber) -> Option<usize>,
    ) -> &[NodeNumber] {
        self.limits.clear();
        let limit = |member: &Member| room(member.number).unwrap_or(member.disks);
        self.limits.extend(self.members.iter().map(limit));
        let wanted = wanted.min(self.limits.iter().sum());
        self.chosen.clear();
        if wanted == 0 {
            return &self.chosen;
        }
        let hash = hash_of(title.as_str());
        self.scores.clear();
        self.scores.extend(
            self.members
                .iter()
                .enumerate()
                .map(|(member, node)| (-node.weight / even(mixed(hash ^ node.hash)).ln(), member)),
        );
        // Most titles have two copies: only the best few are put in order.
        let head = (4 * wanted + 8).min(self.scores.len());
        if head < self.scores.len() {
            self.scores.select_nth_unstable_by(head, better);
        }
        self.scores[..head].sort_unstable_by(better);
        let rack_limit = wanted.div_ceil(self.rack_count);
        let mut walk = Walk { level: 1, rack_limit, end: head };
        if !self.walk(&mut walk, wanted) {
            self.scores.sort_unstable_by(better);
            walk.end = self.scores.len();
            while !self.walk(&mut walk, wanted) {
                let grew = self.on_member.contains(&walk.level);
                // Copies beyond one for each node, then beyond the equal part of a rack.
                if grew { walk.level += 1 } else { walk.rack_limit += 1 }
            }
        }
        &self.chosen
    }

    /// Takes members in the order of their scores; whether all wanted copies have one.
    fn walk(&mut self, walk: &mut Walk, wanted: usize) -> bool {
        self.chosen.clear();
        self.in_rack.clear();
        self.in_rack.resize(self.rack_count, 0);
        self.on_member.clear();
        self.on_member.resize(self.members.len(), 0);
        for level in 1..=walk.level {
            for &(_, member) in &self.scores[..walk.end] {
                if self.chosen.len() == wanted {
                    return true;
                }
                let rack = &mut self.in_rack[self.racks[member]];
                let here = &mut self.on_member[member];
                if *here < level && *here < self.limits[member] && *rack < walk.rack_limit {
                    *rack += 1;
                    *here += 1;
                    self.chosen.push(self.members[member].number);
                }
            }
        }
        self.chosen.len() == wanted
    }
}

/// How far a walk goes.
struct Walk {
    /// Copies on one member, at most.
    level: usize,
    /// Copies in one rack, at most.
    rack_limit: usize,
    /// Scores in order.
    end: usize,
}

/// The higher score first; among equal ones the member that came first.
fn better(a: &(f64, usize), b: &(f64, usize)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// A hash as a number above 0 and below 1.
fn even(hash: u64) -> f64 {
    (float(hash >> 12) + 0.5) / float(1 << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::digest;

    #[test]
    fn the_nodes_are_those_of_a_walk_over_all_in_order() {
        let mut random = fastrand::Rng::with_seed(1);
        let members: Vec<Member> = (0..200)
            .map(|number| {
                let rack = Some(random.u32(..30).to_string());
                let digest = NodeDigest { weight: random.u32(1..5), rack, ..digest(&[1; 3]) };
                Member::new(
                    NodeNumber(number),
                    &NodeId::new(format!("n{number}")).unwrap(),
                    &digest,
                )
            })
            .collect();
        let mut chooser = Chooser::new(members.clone());
        for number in 0..500 {
            let title = TitleName::new(format!("title {number}")).unwrap();
            let score = |member: &Member| {
                let even = even(mixed(hash_of(title.as_str()) ^ member.hash));
                -member.weight / even.ln()
            };
            let mut order: Vec<&Member> = members.iter().collect();
            order.sort_by(|a, b| score(b).total_cmp(&score(a)));
            let wanted = random.usize(1..9);
            let mut racks = Vec::new();
            order.retain(|member| {
                let first = !racks.contains(&member.rack);
                racks.push(member.rack.clone());
                first
            });
            let expected: Vec<NodeNumber> =
                order.iter().take(wanted).map(|member| member.number).collect();
            assert_eq!(chooser.choose(&title, wanted, |_| None), expected, "title {number}");
        }
    }
}
