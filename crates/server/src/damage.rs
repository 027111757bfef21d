//! Damage of a store that is found while it is served: the pieces by what has found them, and the
//! places that reads for viewers have come to. `telling_damage` tells it.
//!
//! ```text
//!   a read for a viewer ──▶ each place once ──┐
//!   a scrub ──▶ each piece of each pass ──────┼──▶ counter ──▶ event `damage-found`
//!   a check ──▶ each piece of each check ─────┘
//! ```
//!
//! Nothing is repaired: `check --repair` does that.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use store::TitleId;

/// What has found damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBy {
    /// A read for a session.
    Viewer,
    /// The server's own regular reading of all titles.
    Scrub,
    /// A check that somebody has asked the server for.
    Check,
}

impl FoundBy {
    /// All of them, in the order of their declaration.
    pub(crate) const ALL: [Self; 3] = [Self::Viewer, Self::Scrub, Self::Check];

    /// The word in events and metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Scrub => "scrub",
            Self::Check => "check",
        }
    }
}

/// A place in the data of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DamagedPlace {
    pub(crate) title: TitleId,
    /// The track as it is stored.
    pub(crate) track: u16,
    /// The first byte of those whose checksum is wrong.
    pub(crate) start: u64,
}

/// The damage that was found in one store since the start of the server.
#[derive(Debug, Default)]
pub(crate) struct FoundDamage {
    counts: [AtomicU64; FoundBy::ALL.len()],
    /// Where reads for viewers have found damage.
    places: Mutex<BTreeSet<DamagedPlace>>,
}

impl FoundDamage {
    /// Pieces of damage that were found so.
    pub(crate) fn count(&self, by: FoundBy) -> u64 {
        self.counts[by as usize].load(Ordering::Relaxed)
    }

    /// Counts a piece of damage.
    pub(crate) fn add(&self, by: FoundBy) {
        self.counts[by as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this place, to which a read for a viewer has come, is a new one. Beyond
    /// [`MOST_PLACES`] none is.
    pub(crate) fn is_new(&self, place: DamagedPlace) -> bool {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.len() < MOST_PLACES && places.insert(place)
    }

    /// What was damaged may have been written again, so that it is told again if it still is.
    pub(crate) fn forget_places(&self) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Places of one store that are kept: a disk that fails as a whole has millions.
const MOST_PLACES: usize = 1000;
/// Pieces of damage of one pass of a scrub, or of one check, that are told one by one: a disk that
/// fails as a whole has as many as it has titles. All are counted.
pub(crate) const TOLD: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_new_once_until_the_store_is_repaired() {
        let found = FoundDamage::default();
        let place = |start| DamagedPlace { title: TitleId(7), track: 0, start };
        let new: Vec<bool> = [0, 65_536, 0, 65_536].map(|at| found.is_new(place(at))).to_vec();
        assert_eq!(new, [true, true, false, false]);
        found.forget_places();
        assert!(found.is_new(place(0)));
        let all = (1..2000).filter(|span| found.is_new(place(span * 65_536))).count();
        assert_eq!(all, MOST_PLACES - 1);
    }
}
