//! Room for the viewers of each title, if any one node is lost: what new viewers leave free with
//! [`Headroom::Title`](super::Headroom::Title).
//!
//! ```text
//!   n1 is lost:  5 viewers of A, 3 of B          a viewer of A comes to n1, or one of D to n2:
//!   n2 | A A A A . . . |  A and C                may it?   yes, if all viewers of A, B and C find
//!   n3 | B C . . . . . |  A, B and C             room elsewhere after the loss of each node, and
//!                                                the new viewer, too
//! ```
//!
//! A loss is played through: the titles with fewest other copies choose first, the copy with most
//! free rate each. That finds room for all wherever there is plenty, and may miss it where all is
//! tight, so that a viewer is refused in vain at worst. Viewers of titles that no other node has
//! find no room whatever is left free, and refuse nobody.
//!
//! The viewers of a node are known as it has told, once a minute, and as this director has sent
//! them since. What other directors have sent meanwhile is only seen in what is free.

use super::ranking::Search;
use crate::view::{ClusterView, CopyPlace, NodeNumber, TitleNumber};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use units::Moment;

/// Whether any node could be lost with this viewer at this place.
pub(super) fn leaves_enough(search: &Search<'_>, title: TitleNumber, place: CopyPlace) -> bool {
    let taken = Taken { title, place, rate: search.need.disk.0 };
    let Search { view, now, .. } = *search;
    !others(view, title, place.node, now).is_empty()
        && go_on(view, place.node, &taken, now)
        && depending(view, &taken, now).into_iter().all(|lost| go_on(view, lost, &taken, now))
}

/// The place of a new viewer.
struct Taken {
    title: TitleNumber,
    place: CopyPlace,
    rate: u64,
}

/// The other nodes whose viewers may need what this viewer takes, if they are lost: those with more
/// viewers of titles that are here, too, than fit beside this one.
fn depending(view: &ClusterView, taken: &Taken, now: Moment) -> BTreeSet<NodeNumber> {
    let here = view.node(taken.place.node);
    let Some(digest) = here.digest() else { return BTreeSet::new() };
    // What the viewers of a node might take of the disk, and of the network.
    let mut needs: BTreeMap<NodeNumber, (u64, u64)> = BTreeMap::new();
    for disk in (0..).take(digest.disks.len()).map(crate::NodeDisk) {
        for title in here.titles_on(disk) {
            let Some(size) = view.title(*title).size() else { continue };
            let copies = view.ready_copies(*title).iter().take(LOOKED_AT);
            // A title on several disks of a node has its viewers there once.
            let mut nodes: Vec<NodeNumber> = copies.map(|copy| copy.place.node).collect();
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes.into_iter().filter(|node| *node != taken.place.node) {
                let viewers = u64::from(view.node(node).viewers_of(*title, now));
                let rate = size.rate.0.saturating_mul(viewers);
                let need = needs.entry(node).or_default();
                need.0 += if disk == taken.place.disk { rate } else { 0 };
                need.1 += rate;
            }
        }
    }
    let disk = digest.disks.get(usize::from(taken.place.disk.0)).map_or(0, |disk| disk.free);
    let left = [disk, digest.network.free].map(|free| free.saturating_sub(taken.rate));
    needs.retain(|_, need| need.0 > left[0] || need.1 > left[1]);
    needs.into_keys().collect()
}

/// Whether the viewers of a node find room elsewhere if it is lost, beside the new viewer.
fn go_on(view: &ClusterView, lost: NodeNumber, taken: &Taken, now: Moment) -> bool {
    let is_here = taken.place.node == lost;
    let mut titles: Vec<TitleNumber> = view.node(lost).viewed_titles().collect();
    if is_here && !titles.contains(&taken.title) {
        titles.push(taken.title);
    }
    let waiting = titles.into_iter().filter_map(|title| {
        let is_new = is_here && title == taken.title;
        let viewers = u64::from(view.node(lost).viewers_of(title, now)) + u64::from(is_new);
        let rate = view.title(title).size().map_or(taken.rate, |size| size.rate.0).max(1);
        let places = others(view, title, lost, now);
        (viewers > 0 && !places.is_empty()).then_some((places, rate, viewers))
    });
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort_by_key(|(places, ..)| places.len());
    let mut free = FreeRates { view, disks: BTreeMap::new(), networks: BTreeMap::new() };
    if !is_here {
        free.take(taken.place, taken.rate);
    }
    waiting.into_iter().all(|(places, rate, viewers)| free.has_for(places, rate, viewers))
}

/// Where the viewers of a title go on who have lost this node: at the content that they play.
fn others(view: &ClusterView, title: TitleNumber, lost: NodeNumber, now: Moment) -> Vec<CopyPlace> {
    let here = view.ready_copies(title).iter().find(|copy| copy.place.node == lost);
    let content = here.and_then(|copy| copy.content);
    let (staying, _) = view.staying_copies(title);
    let is_other = |place: CopyPlace| place.node != lost && view.node(place.node).answers(now);
    let is_same = |other: Option<_>| content.is_none() || other.is_none() || other == content;
    let copies = staying.iter().filter(|copy| is_other(copy.place) && is_same(copy.content));
    copies.take(LOOKED_AT).map(|copy| copy.place).collect()
}

/// What disks and networks have free while a loss is played through.
struct FreeRates<'a> {
    view: &'a ClusterView,
    disks: BTreeMap<CopyPlace, u64>,
    networks: BTreeMap<NodeNumber, u64>,
}

impl FreeRates<'_> {
    fn at(&self, place: CopyPlace) -> u64 {
        let Some(digest) = self.view.node(place.node).digest() else { return 0 };
        let of_disk = || digest.disks.get(usize::from(place.disk.0)).map_or(0, |disk| disk.free);
        let disk = self.disks.get(&place).copied().unwrap_or_else(of_disk);
        disk.min(self.networks.get(&place.node).copied().unwrap_or(digest.network.free))
    }

    fn take(&mut self, place: CopyPlace, rate: u64) {
        let Some(digest) = self.view.node(place.node).digest() else { return };
        let disk = digest.disks.get(usize::from(place.disk.0)).map_or(0, |disk| disk.free);
        let disk = self.disks.entry(place).or_insert(disk);
        *disk = disk.saturating_sub(rate);
        let network = self.networks.entry(place.node).or_insert(digest.network.free);
        *network = network.saturating_sub(rate);
    }

    /// Takes places for the viewers of a title; whether there is room for all.
    fn has_for(&mut self, mut places: Vec<CopyPlace>, rate: u64, mut viewers: u64) -> bool {
        places.sort_by_key(|place| Reverse(self.at(*place)));
        for place in places {
            let fit = (self.at(place) / rate).min(viewers);
            self.take(place, fit * rate);
            viewers -= fit;
        }
        viewers == 0
    }
}

/// Copies of a title that are looked at: a popular one has hundreds.
const LOOKED_AT: usize = 64;

#[cfg(test)]
mod tests {
    use crate::director::{Director, DirectorSettings, DirectorStep, Headroom, NodeAnswer};
    use crate::names::{NodeId, TitleName};
    use crate::records::{ClusterChange, ClusterEvent};
    use crate::view::tests::{NEED, view};
    use crate::view::{ClusterView, CopyPlace, TitleNumber};
    use crate::{AdmissionClass, Chance, RefusalReason};
    use units::{Moment, index};

    const NOW: Moment = Moment::from_secs(1);

    fn director() -> Director {
        let headroom = Headroom::Title;
        Director::new(DirectorSettings { headroom, moves: 0, ..DirectorSettings::default() })
    }

    /// Where a new viewer of a title is sent; a node accepts whoever has room.
    fn sent(
        director: &Director,
        view: &mut ClusterView,
        title: u32,
        seed: u64,
    ) -> Result<CopyPlace, RefusalReason> {
        let mut attempt = director.begin(TitleNumber(title), NEED, AdmissionClass::New, seed);
        loop {
            match attempt.step(view, NOW) {
                DirectorStep::Admitted(admitted) => return Ok(admitted.place),
                DirectorStep::Refused(refused) => return Err(refused.reason),
                DirectorStep::Ask(place) => {
                    let disks = &view.node(place.node).digest().unwrap().disks;
                    let answer = match disks[usize::from(place.disk.0)].free >= NEED.disk.0 {
                        true => NodeAnswer::Accepted,
                        false => NodeAnswer::Refused(None),
                    };
                    attempt.answered(view, answer, NOW);
                }
                DirectorStep::Move(_) => panic!("nobody moves"),
            }
        }
    }

    /// As many viewers of each title in turn as are taken: of one who is refused no more come.
    fn taken(view: &mut ClusterView, titles: &[u32]) -> Vec<usize> {
        let director = director();
        titles
            .iter()
            .map(|title| {
                let viewers =
                    (0..1_000).take_while(|seed| sent(&director, view, *title, *seed).is_ok());
                viewers.count()
            })
            .collect()
    }

    #[test]
    fn a_viewer_is_refused_who_would_have_no_room_elsewhere_or_leaves_others_none() {
        // A stream takes 5.
        let told = |nodes: &[&[u64]], titles: &[&[(u32, u16)]], order: &[u32]| {
            taken(&mut view(nodes, titles), order)
        };
        let both: &[(u32, u16)] = &[(0, 0), (1, 0)];
        // Each node can take all viewers of the other one.
        assert_eq!(told(&[&[50], &[50]], &[both], &[0]), [10]);
        assert_eq!(told(&[&[50], &[20]], &[both], &[0]), [4]);
        // One copy is none to spare.
        assert_eq!(told(&[&[50], &[50]], &[&[(0, 0)]], &[0]), [0]);
        // Two titles share what is kept.
        assert_eq!(told(&[&[50], &[50]], &[both, both], &[0, 1]), [10, 0]);
        // Of three nodes each leaves a third.
        let three: &[(u32, u16)] = &[(0, 0), (1, 0), (2, 0)];
        assert_eq!(told(&[&[50], &[50], &[50]], &[three], &[0]), [20]);
        // The viewers of title 0 need node 1; those of title 1, whose copies have room, leave it.
        let nodes: &[&[u64]] = &[&[50], &[50], &[50]];
        assert_eq!(told(nodes, &[both, &[(1, 0), (2, 0)]], &[0, 1]), [10, 5]);
        // With `Node`, the rate that is free may be anywhere.
        let settings = DirectorSettings { moves: 0, ..DirectorSettings::default() };
        let mut view = view(&[&[50], &[50], &[100], &[100]], &[both]);
        let director = Director::new(settings);
        let viewers = (0..99).take_while(|seed| sent(&director, &mut view, 0, *seed).is_ok());
        assert_eq!(viewers.count(), 20);
    }

    #[test]
    fn nobody_moves_to_where_a_viewer_of_the_title_would_be_refused() {
        // Title 0 is full; a viewer of title 1 leaves node 0, if room is left for one who does.
        let copies: &[(u32, u16)] = &[(0, 0), (1, 0), (2, 0)];
        let rows = [
            (Headroom::None, 2, Some(1)),
            (Headroom::Title, 2, None),
            (Headroom::Title, 3, Some(1)),
        ];
        for (headroom, count, to) in rows {
            let mut view = view(&[&[0], &[50], &[20]], &[&[(0, 0)], &copies[..count]]);
            let viewers = [(TitleName::new("t1").unwrap(), 3)].into();
            let told = ClusterChange::Viewers(NodeId::new("n0").unwrap(), viewers);
            view.apply(ClusterEvent { revision: 1_000, change: told }, NOW);
            let director = Director::new(DirectorSettings { headroom, ..<_>::default() });
            let class = AdmissionClass::New;
            let found = director.find_move(&view, TitleNumber(0), NEED, class, 1, NOW);
            assert_eq!(found.map(|found| found.to.node.0), to, "{headroom:?}, {count} copies");
        }
    }

    #[test]
    fn viewers_whom_a_node_has_told_of_count_and_those_sent_since() {
        let both: &[(u32, u16)] = &[(0, 0), (1, 0)];
        let mut view = view(&[&[50], &[50]], &[both]);
        let viewers = [(TitleName::new("t0").unwrap(), 9)].into();
        let told = ClusterChange::Viewers(NodeId::new("n0").unwrap(), viewers);
        view.apply(ClusterEvent { revision: 1_000, change: told.clone() }, NOW);
        assert_eq!(taken(&mut view, &[0]), [1]);
        // Told again, the one is among the nine.
        view.apply(ClusterEvent { revision: 1_001, change: told }, NOW);
        assert_eq!(taken(&mut view, &[0]), [0]);
    }

    /// The viewers of a lost node, by their titles, and the seats for streams at the others, by
    /// their nodes: a matching by augmenting paths finds a seat for each if there is a way.
    struct Loss<'a> {
        copies: &'a [Vec<u32>],
        waiting: Vec<u32>,
        seats: Vec<u32>,
        taken: Vec<Option<usize>>,
    }

    impl Loss<'_> {
        fn seats_all(&mut self) -> bool {
            self.taken = vec![None; self.seats.len()];
            (0..self.waiting.len()).all(|viewer| self.seats_one(viewer, &mut Vec::new()))
        }

        fn seats_one(&mut self, viewer: usize, seen: &mut Vec<usize>) -> bool {
            let nodes = &self.copies[index(self.waiting[viewer])];
            let fits: Vec<usize> =
                (0..self.seats.len()).filter(|seat| nodes.contains(&self.seats[*seat])).collect();
            for seat in fits {
                if seen.contains(&seat) {
                    continue;
                }
                seen.push(seat);
                let other = self.taken[seat];
                if other.is_none_or(|other| self.seats_one(other, seen)) {
                    self.taken[seat] = Some(viewer);
                    return true;
                }
            }
            false
        }
    }

    #[test]
    fn after_the_loss_of_any_node_all_viewers_of_each_title_have_room_at_others() {
        let mut taken = 0;
        for seed in 0..60 {
            let mut chance = Chance::from_seed(seed);
            let mut draw = |below| u32::try_from(chance.below(below)).unwrap();
            // Streams that fit at each node, and the nodes of each title.
            let nodes: Vec<u32> = (0..3 + draw(3)).map(|_| 2 + draw(9)).collect();
            let all = || 0..u32::try_from(nodes.len()).unwrap();
            let titles = 2 + draw(4);
            let copies: Vec<Vec<u32>> =
                (0..titles).map(|_| all().filter(|_| draw(5) < 3).collect()).collect();
            let rates: Vec<[u64; 1]> = nodes.iter().map(|it| [u64::from(*it) * RATE]).collect();
            let places: Vec<Vec<(u32, u16)>> =
                copies.iter().map(|nodes| nodes.iter().map(|node| (*node, 0)).collect()).collect();
            let rates: Vec<&[u64]> = rates.iter().map(|rates| &rates[..]).collect();
            let places: Vec<&[(u32, u16)]> = places.iter().map(Vec::as_slice).collect();
            let mut view = view(&rates, &places);
            let director = director();
            let mut viewers: Vec<(u32, u32)> = Vec::new();
            for viewer in 0..80 {
                let title = draw(copies.len());
                if let Ok(place) = sent(&director, &mut view, title, viewer) {
                    viewers.push((place.node.0, title));
                }
            }
            taken += viewers.len();
            for lost in all() {
                let free = |node: u32| {
                    let used = viewers.iter().filter(|(at, _)| *at == node).count();
                    vec![node; index(nodes[index(node)]) - used]
                };
                let seats = all().filter(|node| *node != lost).flat_map(free).collect();
                let here = viewers.iter().filter(|(at, _)| *at == lost);
                let waiting = here.map(|(_, title)| *title).collect();
                let mut loss = Loss { copies: &copies, waiting, seats, taken: Vec::new() };
                assert!(loss.seats_all(), "seed {seed}, node {lost} is lost");
            }
        }
        assert!(taken > 600, "only {taken} viewers were taken");
    }

    /// The rate of a stream.
    const RATE: u64 = NEED.disk.0;
}
