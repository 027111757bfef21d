//! One-step moves: room for a title whose disks are full, by steering away a viewer of another
//! title that has copies elsewhere.
//!
//! ```text
//!   wanted: cold title C, on disk A and disk B, both full
//!
//!   disk A  | H H H H C C |full        1. reserve a stream of H on disk D
//!   disk B  | G G C C C C |full        2. steer one viewer of H from A to D
//!   disk D  | H H K K . . |room        3. ask A for C
//! ```
//!
//! The viewer who moves loses nothing: the new stream is reserved before the old one ends. A viewer
//! moves one step only; moves of moves are not tried. A new viewer has others moved only to what
//! new viewers may take.

use super::ranking::Search;
use crate::books::{AdmissionClass, StreamNeed};
use crate::chance::Chance;
use crate::view::{ClusterView, CopyPlace, NodeNumber, TitleNumber};
use units::float;

/// A viewer who is steered to another copy of what is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMove {
    /// The title that the viewer plays.
    pub title: TitleNumber,
    /// What the viewer's stream needs.
    pub need: StreamNeed,
    /// Where the viewer's stream is.
    pub from: CopyPlace,
    /// Where it goes.
    pub to: CopyPlace,
}

/// A move that makes room for `title`: of the title that has most `viewers` on one of its disks,
/// and that has a copy with room elsewhere. None of those that were tried.
pub(super) fn find(
    search: &Search<'_>,
    title: TitleNumber,
    tried: &[StreamMove],
    viewers: impl Fn(CopyPlace, TitleNumber) -> Option<f64>,
    chance: &mut Chance,
) -> Option<StreamMove> {
    let view = search.view;
    let again = Search { class: AdmissionClass::Again, ..*search };
    // To a node that is drained nobody comes, so that nobody makes room there.
    let (copies, _) = view.staying_copies(title);
    let (before, after) = copies.split_at(chance.below(copies.len()));
    let mut best: Option<(StreamMove, f64)> = None;
    let mut looks = MOST_LOOKS;
    for copy in after.iter().chain(before).take(MOST_SOURCES) {
        let from = copy.place;
        if again.room(from).is_none() {
            continue;
        }
        let here = view.node(from.node).titles_on(from.disk);
        let (before, after) = here.split_at(chance.below(here.len()));
        for &other in after.iter().chain(before).filter(|other| **other != title) {
            if looks == 0 {
                break;
            }
            looks -= 1;
            let was_tried = |stream: &StreamMove| (stream.title, stream.from) == (other, from);
            let Some(size) = view.title(other).size() else { continue };
            if size.rate < search.need.disk || tried.iter().any(was_tried) {
                continue;
            }
            // Where most viewers are expected, there is one who can move.
            let Some(viewers) = viewers(from, other) else { continue };
            let need = StreamNeed { disk: size.rate, network: size.rate, ..search.need };
            let moved = Search { need, ..*search };
            let elsewhere = moved.best(view.staying_copies(other).0, chance, |to| to == from);
            let may_go =
                |(to, room): &(CopyPlace, u64)| *room > 0 && moved.leaves_headroom(other, *to);
            let Some((to, _)) = elsewhere.filter(may_go) else { continue };
            if best.is_none_or(|(_, most)| viewers > most) {
                best = Some((StreamMove { title: other, need, from, to }, viewers));
            }
        }
    }
    best.map(|(stream, _)| stream)
}

/// The viewers of a title that are expected at each of its copies.
pub(super) fn expected_viewers(view: &ClusterView, title: TitleNumber) -> f64 {
    view.title(title).demand().viewers / float(view.ready_copies(title).len() as u64)
}

/// The viewers of a title at a node, as that has said; `None`: it has said of none.
pub(super) fn known_viewers(
    view: &ClusterView,
    node: NodeNumber,
    title: TitleNumber,
) -> Option<f64> {
    let (_, viewers) = view.node(node).viewers().iter().find(|(of, _)| *of == title)?;
    (*viewers > 0).then(|| f64::from(*viewers))
}

/// Disks of the wanted title that are looked at.
const MOST_SOURCES: usize = 4;
/// Titles that are looked at for one move: all of a few disks, and a bound for a disk of thousands.
const MOST_LOOKS: usize = 64;
