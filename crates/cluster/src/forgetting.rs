//! What a cluster forgets of a node that is gone for good, and what is lost with it.
//!
//! ```text
//!   titles that the node had ──another node has it──────────────▶ stays
//!                            ──the bucket has, or replaced it───▶ stays
//!                            ──neither────▶ lost: named, and its records go with the node's
//! ```
//!
//! A node that is away counts as one that has its titles, until it is forgotten itself. What the
//! bucket has is known only while a director plans placement and has listed the bucket.
//!
//! Nothing is removed from disks: a node that comes back registers with all of its titles.

use crate::names::{ContentTag, NodeId, TitleName};
use crate::records::{ClusterChange, NodeOrders, TitleGroup};
use crate::view::{ClusterView, NodeNumber, TitleNumber};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be forgotten.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgetting {
    /// Number of titles that are looked at: those of the node.
    pub titles: usize,
    /// The titles of these that nobody else is known to have.
    pub lost: BTreeSet<TitleName>,
    /// Whether it is known what the bucket has.
    pub is_bucket_known: bool,
    /// Titles whose records go, because no node and no bucket has them any more.
    pub records: BTreeSet<TitleName>,
    /// The records of the node that go, after those of the titles.
    pub of_node: Vec<ClusterChange>,
}

/// Why a node is not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgetRefusal {
    /// The node is registered.
    Registered,
    /// The cluster has no record of it.
    Unknown,
}

/// What the cluster forgets of a node that is away.
///
/// # Errors
/// A node that is registered, or of which nothing is known.
pub fn forget_node(view: &ClusterView, node: &NodeId) -> Result<Forgetting, ForgetRefusal> {
    let known = view.node_named(node).filter(|number| view.node(*number).is_known());
    let number = known.ok_or(ForgetRefusal::Unknown)?;
    let known = view.node(number);
    if known.digest().is_some() {
        return Err(ForgetRefusal::Registered);
    }
    let mut forgetting = forgotten_titles(view, known.held(), &holders(view, Some(number)));
    let id = || node.clone();
    let held = TitleGroup::all().map(|group| ClusterChange::Held(id(), group, BTreeMap::new()));
    forgetting.of_node.extend(held);
    forgetting.of_node.extend([
        ClusterChange::Orders(id(), NodeOrders::default()),
        ClusterChange::Drained(id(), false),
        ClusterChange::Member(id(), None),
    ]);
    Ok(forgetting)
}

/// What the cluster forgets of titles that no node has, neither a registered one nor one that is
/// away.
pub fn forget_titles(view: &ClusterView) -> Forgetting {
    let holders = holders(view, None);
    let nowhere = view.titles().filter(|(number, title)| {
        let is_there = !view.copies(*number).is_empty() || holders.contains_key(number);
        title.size().is_some() && !is_there && !bucket_has(view, *number, None)
    });
    let nowhere: Vec<_> = nowhere.map(|(number, _)| (number, None)).collect();
    forgotten_titles(view, nowhere.into_iter(), &holders)
}

/// The contents that nodes other than `node` have of each title while they are away.
type Holders = BTreeMap<TitleNumber, Vec<Option<ContentTag>>>;

fn holders(view: &ClusterView, node: Option<NodeNumber>) -> Holders {
    let mut holders = Holders::new();
    let others = view.nodes().filter(|(number, other)| {
        // What a registered node has is in its copies.
        Some(*number) != node && other.digest().is_none()
    });
    for (title, content) in others.flat_map(|(_, other)| other.held()) {
        holders.entry(title).or_default().push(content);
    }
    holders
}

fn forgotten_titles(
    view: &ClusterView,
    titles: impl Iterator<Item = (TitleNumber, Option<ContentTag>)>,
    holders: &Holders,
) -> Forgetting {
    let mut forgetting =
        Forgetting { is_bucket_known: is_bucket_known(view), ..Forgetting::default() };
    for (number, content) in titles {
        forgetting.titles += 1;
        let name = || view.title(number).name().clone();
        // Content that is not known may be the same.
        let is_same = |other: Option<ContentTag>| {
            content.is_none() || other.is_none_or(|it| Some(it) == content)
        };
        let away = holders.get(&number).map_or(&[][..], Vec::as_slice);
        let is_elsewhere = view.ready_copies(number).iter().any(|copy| is_same(copy.content))
            || away.iter().any(|other| is_same(*other));
        if !is_elsewhere && !bucket_has(view, number, content) {
            forgetting.lost.insert(name());
        }
        let is_nowhere = view.copies(number).is_empty() && away.is_empty();
        if is_nowhere && !bucket_has(view, number, None) {
            forgetting.records.insert(name());
        }
    }
    forgetting
}

/// Whether the bucket has this content under the name, or had it and has replaced it; without
/// content, whether it has the name.
fn bucket_has(view: &ClusterView, title: TitleNumber, content: Option<ContentTag>) -> bool {
    let title = view.title(title);
    let contents = title.contents();
    let is_content = content.map_or(!contents.is_empty(), |it| contents.contains(&it));
    // What the bucket had is remembered as long as a node has the title.
    let is_listed = view.unlisted().is_some_and(|it| it.has(title.name()) != Some(true));
    is_bucket_known(view) && is_content && is_listed
}

fn is_bucket_known(view: &ClusterView) -> bool {
    view.planner().is_some() && view.unlisted().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NodeDisk;
    use crate::records::{
        CopyRecord, CopyState, HeldTitles, MemberRecord, TitleSize, UnlistedTitles,
    };
    use crate::view::tests::digest;
    use crate::{ClusterEvent, NodeDigest};
    use units::{BitRate, ByteCount, Moment};

    fn id(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn title(name: &str) -> TitleName {
        TitleName::new(name).unwrap()
    }

    fn tag(content: &str) -> Option<ContentTag> {
        Some(ContentTag::of(content))
    }

    /// A cluster: nodes with the titles that they have, `title` or `title=content`; those whose
    /// names begin with `-` are away. Then what the bucket has, the same way; `None`: no director
    /// plans.
    fn cluster(nodes: &[(&str, &[&str])], bucket: Option<&[&str]>) -> ClusterView {
        let mut view = ClusterView::new();
        let mut change = |change| {
            let revision = view.revision() + 1;
            view.apply(ClusterEvent { revision, change }, Moment::ZERO);
        };
        let parsed = |text: &str| {
            let (name, content) = text.split_once('=').unwrap_or((text, text));
            (title(name), tag(content))
        };
        for (name, titles) in nodes {
            let (is_away, name) = (name.starts_with('-'), name.trim_start_matches('-'));
            let member = MemberRecord { address: String::new(), rack: None };
            change(ClusterChange::Member(id(name), Some(member)));
            let there: Option<NodeDigest> = (!is_away).then(|| digest(&[100]));
            change(ClusterChange::Node(id(name), there));
            for (title, content) in titles.iter().map(|text| parsed(text)) {
                let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
                change(ClusterChange::Title(title.clone(), Some(size)));
                if !is_away {
                    let copy = CopyRecord::ready(NodeDisk(0), content);
                    change(ClusterChange::Copies(title, id(name), vec![copy]));
                }
            }
            for group in TitleGroup::all() {
                let titles = titles.iter().map(|text| parsed(text));
                let here: HeldTitles =
                    titles.filter(|(title, _)| TitleGroup::of(title) == group).collect();
                change(ClusterChange::Held(id(name), group, here));
            }
        }
        if let Some(bucket) = bucket {
            change(ClusterChange::Planner(Some("d".to_owned())));
            change(ClusterChange::Unlisted(Some(UnlistedTitles::default())));
            for text in bucket {
                let (title, content) = parsed(text);
                let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
                change(ClusterChange::Title(title.clone(), Some(size)));
                change(ClusterChange::Contents(title, content.into_iter().collect()));
            }
        }
        view
    }

    fn names(titles: &BTreeSet<TitleName>) -> String {
        titles.iter().map(TitleName::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_nobody_else_has_is_lost() {
        // Nodes, the bucket, what is lost with n1, and which titles go.
        type Row = (
            &'static [(&'static str, &'static [&'static str])],
            Option<&'static [&'static str]>,
            &'static str,
            &'static str,
        );
        let rows: &[Row] = &[
            (&[("-n1", &["a", "b"]), ("n2", &["b"])], None, "a", "a"),
            // Another node that is away has it until that one is forgotten, too.
            (&[("-n1", &["a"]), ("-n2", &["a"])], None, "", ""),
            (&[("-n1", &["a", "b"])], Some(&["a"]), "b", "b"),
            // Without a planner nobody knows what the bucket has.
            (&[("-n1", &["a", "b"])], None, "a b", "a b"),
            // A title of the name with another content is another title.
            (&[("-n1", &["a=old"]), ("n2", &["a=new"])], None, "a", ""),
            (&[("-n1", &["a=own"])], Some(&["a=new"]), "a", ""),
            (&[("-n1", &[])], Some(&[]), "", ""),
        ];
        for (nodes, bucket, lost, records) in rows {
            let view = cluster(nodes, *bucket);
            let found = forget_node(&view, &id("n1")).unwrap();
            let shown = (names(&found.lost), names(&found.records));
            assert_eq!(shown, ((*lost).to_owned(), (*records).to_owned()), "{nodes:?} {bucket:?}");
            assert_eq!(found.is_bucket_known, bucket.is_some());
        }
    }

    #[test]
    fn a_title_that_was_replaced_in_the_bucket_is_not_lost_and_one_that_was_removed_is() {
        let mut view = cluster(&[("-n1", &["a=old"])], Some(&["a=new"]));
        let mut change = |change| {
            let revision = view.revision() + 1;
            view.apply(ClusterEvent { revision, change }, Moment::ZERO);
            names(&forget_node(&view, &id("n1")).unwrap().lost)
        };
        let contents = [tag("new"), tag("old")].into_iter().flatten().collect();
        assert_eq!(change(ClusterChange::Contents(title("a"), contents)), "");
        let unlisted = UnlistedTitles { count: 1, titles: BTreeSet::from([title("a")]) };
        assert_eq!(change(ClusterChange::Unlisted(Some(unlisted))), "a");
    }

    #[test]
    fn nothing_of_a_node_is_known_after_it_was_forgotten() {
        let mut view = cluster(&[("-n1", &["a", "b"]), ("n2", &["b"])], None);
        let apply = |view: &mut ClusterView, change| {
            let revision = view.revision() + 1;
            view.apply(ClusterEvent { revision, change }, Moment::ZERO);
        };
        apply(&mut view, ClusterChange::Drained(id("n1"), true));
        let orders = NodeOrders { later: 1, ..NodeOrders::default() };
        apply(&mut view, ClusterChange::Orders(id("n1"), orders));
        let found = forget_node(&view, &id("n1")).unwrap();
        assert_eq!(found.titles, 2);
        for name in found.records {
            apply(&mut view, ClusterChange::Title(name, None));
        }
        found.of_node.into_iter().for_each(|change| apply(&mut view, change));
        assert_eq!(forget_node(&view, &id("n1")), Err(ForgetRefusal::Unknown));
        assert_eq!(forget_node(&view, &id("n2")), Err(ForgetRefusal::Registered));
        assert_eq!(forget_node(&view, &id("n9")), Err(ForgetRefusal::Unknown));
        let titles = view.titles().filter(|(_, title)| title.size().is_some());
        assert_eq!(titles.map(|(_, title)| title.name().as_str()).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn titles_that_no_node_has_are_forgotten_by_themselves() {
        let mut view = cluster(&[("-n1", &["a"]), ("n2", &["b"])], Some(&["c"]));
        let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
        for name in ["old", "filling"] {
            let change = ClusterChange::Title(title(name), Some(size));
            view.apply(ClusterEvent { revision: view.revision(), change }, Moment::ZERO);
        }
        let copy = CopyRecord { disk: NodeDisk(0), state: CopyState::Filling, content: None };
        let change = ClusterChange::Copies(title("filling"), id("n2"), vec![copy]);
        view.apply(ClusterEvent { revision: view.revision(), change }, Moment::ZERO);
        let found = forget_titles(&view);
        assert_eq!((names(&found.lost), names(&found.records)), ("old".into(), "old".into()));
        assert_eq!(found.of_node, []);
    }
}
