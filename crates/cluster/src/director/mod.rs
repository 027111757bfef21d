//! The director: sends each viewer to a node that accepts it.
//!
//! ```text
//!   begin ─▶ AdmissionAttempt ─step─▶ Ask place ──────────────── answered ─┐
//!                  ▲                  Move a viewer, to make room ─────────┤
//!                  └───────────────────────────────────────────────────────┘
//!                          └─step─▶ Admitted: the place
//!                          └─step─▶ Refused: why, and when it would fit
//! ```
//!
//! The director has no state but its view and counters, so that any number of directors run beside
//! each other, and one that starts needs a list of the records only. An attempt sends nothing:
//! whoever drives it asks the node and returns the answer. The nodes decide.
//!
//! Four files: what is asked next (`attempt`), which copy is best (`ranking`), who may move
//! (`moves`), and what new viewers leave to those who lose their node (`headroom`).

mod attempt;
mod headroom;
mod moves;
mod ranking;

pub use attempt::{AdmissionAttempt, Admitted, DirectorRefusal, DirectorStep, RefusalReason};
pub use moves::StreamMove;
pub(crate) use ranking::room_for;

use crate::books::{AdmissionClass, StreamNeed};
use crate::chance::Chance;
use crate::view::{ClusterView, CopyPlace, TitleNumber};
use std::time::Duration;
use units::Moment;

/// The answer of a node to a step of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAnswer {
    /// The stream is reserved, or moved.
    Accepted,
    /// There is not room for it, or no such viewer to move. With the time after which there would
    /// be room, where the node knows one.
    Refused(Option<Duration>),
    /// The node did not answer in time.
    Unreachable,
    /// The node serves no viewers of this kind. What it has free is not known by that.
    Unsuited,
}

/// How a director chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectorSettings {
    /// Copies that are compared; the one with most room is asked. With 1 a random copy is asked.
    pub choices: usize,
    /// Nodes that are asked for one viewer, at most.
    pub tries: usize,
    /// Moves that are tried to make room for one viewer, at most; 0 for none. More than tries: the
    /// director does not know which viewers a disk has, and a node without such a viewer refuses.
    pub moves: usize,
    /// The part of each disk and network that new viewers leave free, for viewers whose node is
    /// lost.
    pub kept: f64,
    /// What new viewers leave free for those who lose their node.
    pub headroom: Headroom,
}

/// What new viewers leave free, so that the loss of any one node is survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headroom {
    /// Nothing.
    None,
    /// The rate of the node that holds most, anywhere: a title's other nodes may be full.
    #[default]
    Node,
    /// Room for the viewers of each title at each node, on other nodes that have the title, as far
    /// as the view knows the viewers.
    Title,
}

impl Default for DirectorSettings {
    fn default() -> Self {
        Self { choices: 4, tries: 4, moves: 12, kept: 0.0, headroom: Headroom::Node }
    }
}

/// Sends viewers to nodes, and counts how that went.
#[derive(Clone, Debug)]
pub struct Director {
    settings: DirectorSettings,
    counters: DirectorCounters,
}

/// What a director has done.
///
/// The two kinds of misses tell what to do: content misses, that copies are missing; health misses,
/// that there are copies and their nodes are full or away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectorCounters {
    /// Attempts that have ended.
    pub attempts: u64,
    /// Viewers admitted.
    pub admitted: u64,
    /// Viewers refused.
    pub refused: u64,
    /// Questions to nodes, moves included.
    pub asked: u64,
    /// Questions that a node refused.
    pub node_refusals: u64,
    /// Questions without an answer.
    pub unreachable: u64,
    /// Viewers moved, to make room for others.
    pub moved: u64,
    /// Attempts for a title without a ready copy on a node that answers.
    pub content_misses: u64,
    /// Attempts for a title with ready copies whose first choice did not accept the viewer.
    pub health_misses: u64,
}

impl Director {
    /// A director that has done nothing yet.
    pub fn new(settings: DirectorSettings) -> Self {
        Self { settings, counters: DirectorCounters::default() }
    }

    /// Begins to place a viewer. The seed is any number; equal seeds choose alike, so that viewers
    /// who come at the same time should have different ones.
    pub fn begin(
        &self,
        title: TitleNumber,
        need: StreamNeed,
        class: AdmissionClass,
        seed: u64,
    ) -> AdmissionAttempt {
        AdmissionAttempt::new(self.settings, title, need, class, seed)
    }

    /// A move that would make room for a viewer who was refused, of a title that has viewers there
    /// as the node says; `None` where none is known, or where one would not help because what is
    /// free is kept. For a director that cannot move viewers within an attempt
    /// ([`DirectorSettings::moves`] is 0).
    pub fn find_move(
        &self,
        view: &ClusterView,
        title: TitleNumber,
        need: StreamNeed,
        class: AdmissionClass,
        seed: u64,
        now: Moment,
    ) -> Option<StreamMove> {
        let settings = &self.settings;
        let search = ranking::Search { view, need, class, settings, now };
        if !search.survives_a_node() {
            return None;
        }
        let viewers = |from: CopyPlace, other| moves::known_viewers(view, from.node, other);
        moves::find(&search, title, &[], viewers, &mut Chance::from_seed(seed))
    }

    /// Whether a new viewer of a title, or one who moves to make room for a new one, may take this
    /// place, as far as viewers who lose their node are concerned ([`Headroom::Title`]).
    pub fn leaves_headroom(
        &self,
        view: &ClusterView,
        title: TitleNumber,
        (place, need): (CopyPlace, StreamNeed),
        now: Moment,
    ) -> bool {
        let (class, settings) = (AdmissionClass::New, &self.settings);
        ranking::Search { view, need, class, settings, now }.leaves_headroom(title, place)
    }

    /// Counts an attempt that has ended.
    pub fn end(&mut self, attempt: &AdmissionAttempt) {
        attempt.count(&mut self.counters);
    }

    /// The settings.
    pub fn settings(&self) -> &DirectorSettings {
        &self.settings
    }

    /// What was done until now.
    pub fn counters(&self) -> &DirectorCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
