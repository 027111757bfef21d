//! Which titles are in use, so that a removed title's space is freed once no session reads it.

use crate::TitleKey;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(crate) struct Titles {
    /// Per title its sessions, detached transfers and reads in flight, as a number above zero.
    uses: BTreeMap<TitleKey, usize>,
    withdrawn: BTreeSet<TitleKey>,
}

impl Titles {
    pub(crate) fn use_began(&mut self, title: TitleKey) {
        *self.uses.entry(title).or_default() += 1;
    }

    /// Returns whether that was the last use.
    pub(super) fn use_ended(&mut self, title: TitleKey) -> bool {
        let uses = self.uses.get_mut(&title).expect("a use that ends has begun");
        *uses -= 1;
        let last = *uses == 0;
        if last {
            self.uses.remove(&title);
        }
        last
    }

    pub(super) fn withdraw(&mut self, title: TitleKey) {
        self.withdrawn.insert(title);
        while self.withdrawn.len() > MAX_WITHDRAWN {
            // The oldest that is not in use: keys are given out in ascending order.
            let unused = |key: &&TitleKey| !self.uses.contains_key(key);
            let Some(oldest) = self.withdrawn.iter().find(unused).copied() else { break };
            self.withdrawn.remove(&oldest);
        }
    }

    pub(super) fn is_in_use(&self, title: TitleKey) -> bool {
        self.uses.contains_key(&title)
    }

    pub(crate) fn is_withdrawn(&self, title: TitleKey) -> bool {
        self.withdrawn.contains(&title)
    }
}

/// Removed titles that are remembered, so that a viewer who looked one up just before its removal
/// is not admitted just after.
const MAX_WITHDRAWN: usize = 1 << 16;
