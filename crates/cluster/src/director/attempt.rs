//! One viewer on the way to a place: which node is asked next, and how it ends.
//!
//! ```text
//!   step:  1. the best copy that has room in the view ─────────────▶ Ask
//!             (on a node that is drained only where no other node has the title; of a title that
//!             was replaced in the bucket one of the new content first)
//!          2. none: a viewer of another title who could move ──────▶ Move, then Ask again
//!          3. none: a copy that seems full; the view may be old ───▶ Ask
//!          4. no copy, or enough tried ────────────────────────────▶ Refused
//! ```
//!
//! Each node that refuses says when there would be room. The refusal of the attempt has the
//! earliest of these times, or none, where no node knew one: no time is invented.

use super::ranking::Search;
use super::{DirectorCounters, DirectorSettings, Headroom, NodeAnswer, StreamMove, moves};
use crate::books::{AdmissionClass, StreamNeed, kept_of};
use crate::chance::Chance;
use crate::view::{ClusterView, CopyPlace, TitleNumber};
use std::time::Duration;
use units::{BitRate, Moment};

/// One viewer on the way to a place. Call [`Self::step`], do what it says, give the answer to
/// [`Self::answered`], and so on until the viewer is admitted or refused.
#[derive(Clone, Debug)]
pub struct AdmissionAttempt {
    settings: DirectorSettings,
    title: TitleNumber,
    need: StreamNeed,
    class: AdmissionClass,
    chance: Chance,
    state: AttemptState,
    /// Places that did not accept the viewer.
    asked: Vec<CopyPlace>,
    /// Places with room that is kept for viewers who lose their node, at the present step.
    kept: Vec<CopyPlace>,
    moves: Vec<StreamMove>,
    questions: u64,
    /// The place that was best at the beginning.
    first: Option<CopyPlace>,
    earliest: Option<Duration>,
    refused: u64,
    unreachable: u64,
    moved: u64,
}

#[derive(Clone, Copy, Debug)]
enum AttemptState {
    Choosing,
    /// A viewer has moved from there.
    RoomMade(CopyPlace),
    Asking(CopyPlace),
    Moving(StreamMove),
    Ended(Result<CopyPlace, DirectorRefusal>),
}

/// What is to be done for a viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DirectorStep {
    /// Ask the node to reserve a stream of the title from this disk.
    Ask(CopyPlace),
    /// Reserve a stream elsewhere for one viewer, then steer that viewer there.
    Move(StreamMove),
    /// The viewer is admitted.
    Admitted(Admitted),
    /// The viewer is refused.
    Refused(DirectorRefusal),
}

/// An admitted viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Where the stream is reserved.
    pub place: CopyPlace,
}

/// A refusal, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectorRefusal {
    /// What is missing.
    pub reason: RefusalReason,
    /// The time after which a node would have room, if nobody else takes it; `None` where no node
    /// knew one. Up to a tenth later than the node said, so that those who were refused together
    /// do not come back together.
    pub retry_after: Option<Duration>,
}

/// What is missing for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// No node that answers has a ready copy.
    NoCopy,
    /// The nodes with copies are full.
    Full,
    /// None of the nodes that were asked answered, or serves viewers of this kind.
    Unreachable,
    /// There is room, and it is kept for the viewers of a node that may be lost.
    Headroom,
}

impl AdmissionAttempt {
    pub(super) fn new(
        settings: DirectorSettings,
        title: TitleNumber,
        need: StreamNeed,
        class: AdmissionClass,
        seed: u64,
    ) -> Self {
        Self {
            settings,
            title,
            need,
            class,
            chance: Chance::from_seed(seed),
            state: AttemptState::Choosing,
            asked: Vec::new(),
            kept: Vec::new(),
            moves: Vec::new(),
            questions: 0,
            first: None,
            earliest: None,
            refused: 0,
            unreachable: 0,
            moved: 0,
        }
    }

    /// What is to be done next. The same until it is answered.
    pub fn step(&mut self, view: &ClusterView, now: Moment) -> DirectorStep {
        match self.state {
            AttemptState::Choosing => self.state = self.choose(view, now),
            AttemptState::RoomMade(place) => self.state = AttemptState::Asking(place),
            _ => {}
        }
        match self.state {
            AttemptState::Asking(place) => DirectorStep::Ask(place),
            AttemptState::Moving(stream) => DirectorStep::Move(stream),
            AttemptState::Ended(Ok(place)) => DirectorStep::Admitted(Admitted { place }),
            AttemptState::Ended(Err(refusal)) => DirectorStep::Refused(refusal),
            AttemptState::Choosing | AttemptState::RoomMade(_) => {
                unreachable!("both have just been replaced")
            }
        }
    }

    fn choose(&mut self, view: &ClusterView, now: Moment) -> AttemptState {
        let Self { settings, need, class, .. } = *self;
        let search = Search { view, need, class, settings: &settings, now };
        self.kept.clear();
        let mut best = self.best(&search);
        self.first = self.first.or(best.map(|(place, _)| place));
        if self.first.is_none() {
            return self.refuse(RefusalReason::NoCopy);
        }
        if !search.survives_a_node() {
            return self.refuse(RefusalReason::Headroom);
        }
        let may_ask = self.asked.len() < settings.tries;
        while let Some((place, room)) = best.filter(|_| may_ask) {
            if !search.leaves_headroom(self.title, place) {
                self.kept.push(place);
                if self.kept.len() == settings.tries {
                    break;
                }
                best = self.best(&search);
            } else if room > 0 {
                return AttemptState::Asking(place);
            } else {
                break;
            }
        }
        if !self.kept.is_empty() {
            return self.refuse(RefusalReason::Headroom);
        }
        let viewers = |_, other| Some(moves::expected_viewers(view, other));
        if self.moves.len() < settings.moves
            && let Some(stream) =
                moves::find(&search, self.title, &self.moves, viewers, &mut self.chance)
        {
            return AttemptState::Moving(stream);
        }
        // What is left is kept: the node would give it to a new viewer.
        let left = Search { class: AdmissionClass::Again, ..search };
        let is_kept = |place| settings.kept > 0.0 && left.room(place).is_some_and(|room| room > 0);
        match best {
            Some((place, _)) if may_ask && class == AdmissionClass::New && is_kept(place) => {
                self.refuse(RefusalReason::Headroom)
            }
            Some((place, _)) if may_ask => AttemptState::Asking(place),
            _ if self.refused == 0 => self.refuse(RefusalReason::Unreachable),
            _ => self.refuse(RefusalReason::Full),
        }
    }

    /// The best copy that was not asked yet. One on a node that is drained only where no other node
    /// that answers has the title, or, for a viewer who was admitted before, where none has room.
    fn best(&mut self, search: &Search<'_>) -> Option<(CopyPlace, u64)> {
        let (staying, drained) = search.view.staying_copies(self.title);
        let tried = || self.asked.iter().chain(&self.kept);
        let was_asked = |place| tried().any(|it| *it == place);
        // Only a title that was replaced has more than one.
        if search.view.title(self.title).contents().len() > 1 {
            let old: Vec<_> = search.view.different_copies(self.title).collect();
            let is_old = |place| was_asked(place) || old.iter().any(|(it, _)| it.place == place);
            let new = search.best(staying, &mut self.chance, is_old);
            if new.is_some_and(|(_, room)| room > 0) {
                return new;
            }
        }
        let best = search.best(staying, &mut self.chance, was_asked);
        let stays = |place: &&CopyPlace| !search.view.node(place.node).is_drained();
        let have_refused = || tried().filter(stays).any(|place| search.room(*place).is_some());
        let is_final = match self.class {
            AdmissionClass::New => best.is_some() || have_refused(),
            AdmissionClass::Again => best.is_some_and(|(_, room)| room > 0),
        };
        if drained.is_empty() || is_final {
            return best;
        }
        let last = search.best(drained, &mut self.chance, was_asked);
        last.filter(|(_, room)| best.is_none() || *room > 0).or(best)
    }

    fn refuse(&mut self, reason: RefusalReason) -> AttemptState {
        let later = 1.0 + LATER * self.chance.part();
        let retry_after = self.earliest.map(|time| time.mul_f64(later));
        AttemptState::Ended(Err(DirectorRefusal { reason, retry_after }))
    }

    /// Takes the answer to the last step, and corrects the view by it. Without effect when nothing
    /// was asked.
    pub fn answered(&mut self, view: &mut ClusterView, answer: NodeAnswer, now: Moment) {
        if let AttemptState::Asking(place) | AttemptState::Moving(StreamMove { to: place, .. }) =
            self.state
            && answer != NodeAnswer::Unreachable
        {
            view.found_reachable(place.node);
        }
        match self.state {
            AttemptState::Asking(place) => {
                self.questions += 1;
                self.state = self.after_ask(view, place, answer, now);
            }
            AttemptState::Moving(stream) => {
                self.questions += 1;
                self.moves.push(stream);
                self.state = self.after_move(view, stream, answer, now);
            }
            _ => {}
        }
    }

    fn after_ask(
        &mut self,
        view: &mut ClusterView,
        place: CopyPlace,
        answer: NodeAnswer,
        now: Moment,
    ) -> AttemptState {
        match answer {
            NodeAnswer::Accepted => {
                view.booked(place, self.need, now);
                if self.settings.headroom == Headroom::Title {
                    view.sent(self.title, place.node, now);
                }
                return AttemptState::Ended(Ok(place));
            }
            NodeAnswer::Refused(time) => {
                self.refused += 1;
                let earlier = |known: Duration| time.map_or(known, |time| known.min(time));
                self.earliest = self.earliest.map(earlier).or(time);
                view.found_full(place, self.kept(view, place), now);
            }
            NodeAnswer::Unreachable => {
                self.unreachable += 1;
                view.found_unreachable(place.node, now);
            }
            NodeAnswer::Unsuited => {}
        }
        self.asked.push(place);
        AttemptState::Choosing
    }

    fn after_move(
        &mut self,
        view: &mut ClusterView,
        stream: StreamMove,
        answer: NodeAnswer,
        now: Moment,
    ) -> AttemptState {
        match answer {
            NodeAnswer::Accepted => {
                self.moved += 1;
                view.left(stream.from, stream.need, now);
                view.booked(stream.to, stream.need, now);
                return AttemptState::RoomMade(stream.from);
            }
            NodeAnswer::Refused(_) => self.refused += 1,
            NodeAnswer::Unsuited => {}
            NodeAnswer::Unreachable => {
                self.unreachable += 1;
                view.found_unreachable(stream.to.node, now);
            }
        }
        AttemptState::Choosing
    }

    /// What a disk that refused may still have free.
    fn kept(&self, view: &ClusterView, place: CopyPlace) -> BitRate {
        let digest = view.node(place.node).digest();
        let disk = digest.and_then(|digest| digest.disks.get(usize::from(place.disk.0)));
        match self.class {
            AdmissionClass::Again => BitRate(0),
            AdmissionClass::New => {
                BitRate(disk.map_or(0, |disk| kept_of(disk.guaranteed, self.settings.kept)))
            }
        }
    }

    pub(super) fn count(&self, counters: &mut DirectorCounters) {
        let AttemptState::Ended(result) = self.state else { return };
        counters.attempts += 1;
        counters.asked += self.questions;
        counters.node_refusals += self.refused;
        counters.unreachable += self.unreachable;
        counters.moved += self.moved;
        match result {
            Ok(_) => counters.admitted += 1,
            Err(_) => counters.refused += 1,
        }
        if self.first.is_none() {
            counters.content_misses += 1;
        } else if result.ok() != self.first {
            counters.health_misses += 1;
        }
    }
}

/// The part by which a viewer comes back later than the node said, at most.
const LATER: f64 = 0.1;
