//! Which titles are in use, so that a removed one's space is freed when nobody reads it any more.

use super::{Action, Engine, TitleKey};
use std::collections::{BTreeMap, BTreeSet};
use units::Moment;

#[derive(Debug, Default)]
pub(super) struct Titles {
    uses: BTreeMap<TitleKey, Use>,
    withdrawn: BTreeSet<TitleKey>,
}

#[derive(Debug, Default)]
struct Use {
    sessions: usize,
    // Sessions, requests that outlived theirs, and reads in flight.
    total: usize,
}

impl Titles {
    pub(super) fn session_began(&mut self, title: TitleKey) {
        self.uses.entry(title).or_default().sessions += 1;
        self.began(title);
    }

    pub(super) fn began(&mut self, title: TitleKey) {
        self.uses.entry(title).or_default().total += 1;
    }

    pub(super) fn session_ended(&mut self, title: TitleKey) {
        self.uses.get_mut(&title).expect("a session uses its title").sessions -= 1;
    }

    pub(super) fn sessions(&self, title: TitleKey) -> usize {
        self.uses.get(&title).map_or(0, |used| used.sessions)
    }

    pub(super) fn is_withdrawn(&self, title: TitleKey) -> bool {
        self.withdrawn.contains(&title)
    }
}

impl Engine {
    /// The title is to go: no new sessions. Says whether it is still in use; if so,
    /// [`Action::TitleIdle`] follows when it no longer is.
    pub fn withdraw_title(&mut self, now: Moment, title: TitleKey) -> bool {
        self.advance(now);
        self.titles.withdrawn.insert(title);
        while self.titles.withdrawn.len() > MAX_WITHDRAWN {
            // The oldest that is not in use: keys are given out in ascending order.
            let unused = |key: &&TitleKey| !self.titles.uses.contains_key(key);
            let Some(oldest) = self.titles.withdrawn.iter().find(unused).copied() else { break };
            self.titles.withdrawn.remove(&oldest);
        }
        if self.titles.uses.contains_key(&title) {
            return true;
        }
        self.purge(title);
        false
    }

    /// A use of a title has ended.
    pub(super) fn title_use_ended(&mut self, title: TitleKey) {
        let used = self.titles.uses.get_mut(&title).expect("what ended began");
        used.total -= 1;
        if used.total > 0 {
            return;
        }
        self.titles.uses.remove(&title);
        if self.titles.is_withdrawn(title) {
            self.purge(title);
            self.actions.push(Action::TitleIdle { title });
        }
    }

    fn purge(&mut self, title: TitleKey) {
        let mut forgotten = Vec::new();
        self.buffers.purge(title, &mut forgotten);
        self.actions.extend(forgotten.into_iter().map(|read| Action::Forget { read }));
    }
}

/// Removed titles remembered, so that a viewer who looked one up just before its removal is not
/// let in just after.
const MAX_WITHDRAWN: usize = 1 << 16;
