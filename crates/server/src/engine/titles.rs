//! Which titles are in use, so that a removed title's space is freed when nobody reads it any more.

use super::{Action, Engine, TitleKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Titles {
    /// Per title its sessions, detached transfers and reads in flight, as a number above zero.
    uses: BTreeMap<TitleKey, usize>,
    withdrawn: BTreeSet<TitleKey>,
}

impl Titles {
    pub(super) fn use_began(&mut self, title: TitleKey) {
        *self.uses.entry(title).or_default() += 1;
    }

    /// Says whether that was the last use.
    fn use_ended(&mut self, title: TitleKey) -> bool {
        let uses = self.uses.get_mut(&title).expect("a use that ends has begun");
        *uses -= 1;
        let last = *uses == 0;
        if last {
            self.uses.remove(&title);
        }
        last
    }

    fn withdraw(&mut self, title: TitleKey) {
        self.withdrawn.insert(title);
        while self.withdrawn.len() > MAX_WITHDRAWN {
            // The oldest that is not in use: keys are given out in ascending order.
            let unused = |key: &&TitleKey| !self.uses.contains_key(key);
            let Some(oldest) = self.withdrawn.iter().find(unused).copied() else { break };
            self.withdrawn.remove(&oldest);
        }
    }

    pub(super) fn is_withdrawn(&self, title: TitleKey) -> bool {
        self.withdrawn.contains(&title)
    }
}

impl Engine {
    /// Admits nobody to a title any more; says whether it is still in use.
    pub(super) fn withdraw(&mut self, title: TitleKey) -> bool {
        self.titles.withdraw(title);
        let in_use = self.titles.uses.contains_key(&title);
        if !in_use {
            self.purge(title);
        }
        in_use
    }

    /// A use of a title has ended. The last use of a withdrawn title frees its buffers.
    pub(super) fn title_use_ended(&mut self, title: TitleKey) {
        if self.titles.use_ended(title) && self.titles.is_withdrawn(title) {
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

/// Removed titles that are remembered, so that a viewer who looked one up just before its removal
/// is not admitted just after.
const MAX_WITHDRAWN: usize = 1 << 16;
