//! Which copy of a title is best, as far as the view knows: most room of a few that are compared.
//!
//! With the best of all, every director would send every viewer to the same node until the next
//! digest. With the best of a few random ones, the loads are nearly as even, and no node gets a
//! herd.

use super::{DirectorSettings, Headroom, headroom};
use crate::books::{AdmissionClass, StreamNeed, kept_of};
use crate::chance::Chance;
use crate::view::{ClusterView, CopyPlace, CopyView, TitleNumber};
use units::Moment;

/// A viewer who looks for a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search<'a> {
    pub(super) view: &'a ClusterView,
    pub(super) need: StreamNeed,
    pub(super) class: AdmissionClass,
    pub(super) settings: &'a DirectorSettings,
    pub(super) now: Moment,
}

/// The number of such streams for which a place has room that new viewers may take; `None` where
/// none can be sent to.
pub(crate) fn room_for(
    view: &ClusterView,
    place: CopyPlace,
    need: StreamNeed,
    settings: &DirectorSettings,
    now: Moment,
) -> Option<u64> {
    Search { view, need, class: AdmissionClass::New, settings, now }.room(place)
}

impl Search<'_> {
    /// Whether the streams of any one node would fit elsewhere beside this stream, where a new
    /// viewer has to leave so much.
    pub(super) fn survives_a_node(&self) -> bool {
        let is_kept = self.class == AdmissionClass::New && self.settings.headroom == Headroom::Node;
        !is_kept || self.view.survives_a_node(self.need)
    }

    /// Whether the viewers of each title would have room elsewhere after the loss of any one node,
    /// beside this viewer at this place, where a new viewer has to leave so much.
    pub(super) fn leaves_headroom(&self, title: TitleNumber, place: CopyPlace) -> bool {
        let is_kept =
            self.class == AdmissionClass::New && self.settings.headroom == Headroom::Title;
        !is_kept || headroom::leaves_enough(self, title, place)
    }

    /// The number of such streams for which a place has room; `None` where none can be sent to.
    #[inline]
    pub(super) fn room(&self, place: CopyPlace) -> Option<u64> {
        let node = self.view.node(place.node);
        if !node.answers(self.now) {
            return None;
        }
        let digest = node.digest()?;
        let disk = digest.disks.get(usize::from(place.disk.0))?;
        let kept = |guaranteed| match self.class {
            AdmissionClass::New => kept_of(guaranteed, self.settings.kept),
            AdmissionClass::Again => 0,
        };
        let streams = |free: u64, need: u64| free.checked_div(need).unwrap_or(u64::MAX);
        let mut room = streams(disk.free.saturating_sub(kept(disk.guaranteed)), self.need.disk.0);
        let network = digest.network.free.saturating_sub(kept(digest.network.guaranteed));
        let others = [(network, self.need.network.0), (digest.memory.free, self.need.memory.0)];
        for (free, need) in others {
            // Divided only where it is short: most often the disk is.
            if room.saturating_mul(need) > free {
                room = streams(free, need);
            }
        }
        Some(room)
    }

    /// The copy with most room of a few, and its room; copies without room only where all
    /// that are looked at have none. Copies for which `skip` is true are left out.
    pub(super) fn best(
        &self,
        copies: &[CopyView],
        chance: &mut Chance,
        skip: impl Fn(CopyPlace) -> bool,
    ) -> Option<(CopyPlace, u64)> {
        let choices = self.settings.choices.max(1);
        let mut best: Option<(CopyPlace, u64)> = None;
        let mut compare = |copy: &CopyView| {
            let room = if skip(copy.place) { None } else { self.room(copy.place) };
            if let Some(room) = room
                && best.is_none_or(|(_, most)| room > most)
            {
                best = Some((copy.place, room));
            }
            best.is_some_and(|(_, room)| room > 0)
        };
        if copies.len() > choices {
            let mut found = false;
            for _ in 0..choices {
                found = compare(&copies[chance.below(copies.len())]);
            }
            if found {
                return best;
            }
        }
        // All of a few copies; of many the next with room. From a random one on, so that equal ones
        // are taken in turn.
        let (before, after) = copies.split_at(chance.below(copies.len()));
        for copy in after.iter().chain(before).take(LOOKED_AT.max(choices)) {
            if compare(copy) && copies.len() > choices {
                break;
            }
        }
        best
    }
}

/// Copies that are looked at for one question, at most: a popular title has hundreds.
const LOOKED_AT: usize = 16;
