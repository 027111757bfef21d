//! Entries by id: sessions, streams, requests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A map that is indexed by ids of which the caller knows that they name an entry.
///
/// The invariant behind every index: an id that is kept in the engine (a session's streams and
/// requests, a stream's session, a queue's streams) names an entry of its table between any two
/// calls. Whoever removes an entry removes its id from where it is kept, in the same call. An id
/// that comes from the driver may name nothing: it is looked up with [`BTreeMap::get`].
#[derive(Clone, Debug)]
pub(super) struct Table<K, V>(BTreeMap<K, V>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Debug, V> Table<K, V> {
    /// Removes an entry that is there.
    pub(super) fn take(&mut self, id: &K) -> V {
        self.0.remove(id).unwrap_or_else(|| panic!("{id:?} is live"))
    }
}

impl<K, V> Deref for Table<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<K, V> DerefMut for Table<K, V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<K: Ord + Debug, V> Index<&K> for Table<K, V> {
    type Output = V;

    fn index(&self, id: &K) -> &V {
        self.0.get(id).unwrap_or_else(|| panic!("{id:?} is live"))
    }
}

impl<K: Ord + Debug, V> IndexMut<&K> for Table<K, V> {
    fn index_mut(&mut self, id: &K) -> &mut V {
        self.0.get_mut(id).unwrap_or_else(|| panic!("{id:?} is live"))
    }
}
