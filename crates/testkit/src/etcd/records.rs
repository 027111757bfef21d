//! The records, leases and history of an etcd in memory.

use std::collections::{BTreeMap, BTreeSet};

/// What an etcd in memory has.
#[derive(Clone)]
pub(super) struct Records {
    state: TestEtcdState,
    /// Raised to end all watches.
    pub(super) generation: u64,
    pub(super) writes: u64,
    /// The name and the password of the only user; `None`: requests need none.
    pub(super) user: Option<(String, String)>,
    /// What was given to the user since the last start.
    pub(super) tokens: BTreeSet<String>,
}

/// A state of an etcd in memory that can be restored.
#[derive(Clone)]
pub struct TestEtcdState {
    revision: u64,
    compacted: u64,
    records: BTreeMap<Vec<u8>, TestRecord>,
    history: Vec<TestChange>,
    leases: BTreeSet<u64>,
}

/// A record with what conditions ask for.
#[derive(Clone)]
pub(super) struct TestRecord {
    pub(super) value: Vec<u8>,
    pub(super) lease: u64,
    pub(super) version: u64,
    pub(super) changed: u64,
}

#[derive(Clone)]
pub(super) struct TestChange {
    pub(super) revision: u64,
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl Default for Records {
    fn default() -> Self {
        let state = TestEtcdState {
            revision: 1,
            compacted: 0,
            records: BTreeMap::new(),
            history: Vec::new(),
            leases: BTreeSet::new(),
        };
        Self { state, generation: 0, writes: 0, user: None, tokens: BTreeSet::new() }
    }
}

impl Records {
    pub(super) fn revision(&self) -> u64 {
        self.state.revision
    }

    pub(super) fn compacted(&self) -> u64 {
        self.state.compacted
    }

    pub(super) fn range(&self, from: &[u8], end: Option<&[u8]>) -> Vec<(&[u8], &TestRecord)> {
        let in_range = |key: &[u8]| end.map_or(key == from, |end| from <= key && key < end);
        let records = self.state.records.iter().map(|(key, record)| (&key[..], record));
        records.filter(|(key, _)| in_range(key)).collect()
    }

    pub(super) fn history(&self) -> &[TestChange] {
        &self.state.history
    }

    /// Begins the revision of one transaction.
    pub(super) fn begin(&mut self) -> u64 {
        self.state.revision += 1;
        self.state.revision
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8], lease: u64) {
        let revision = self.begin();
        self.put_at(revision, key, value, lease);
    }

    pub(super) fn put_at(&mut self, revision: u64, key: &[u8], value: &[u8], lease: u64) {
        let version = self.state.records.get(key).map_or(0, |record| record.version) + 1;
        let record = TestRecord { value: value.to_vec(), lease, version, changed: revision };
        self.state.records.insert(key.to_vec(), record);
        let (key, value) = (key.to_vec(), Some(value.to_vec()));
        self.state.history.push(TestChange { revision, key, value });
    }

    pub(super) fn delete(&mut self, key: &[u8]) {
        let revision = self.begin();
        self.delete_at(revision, key);
    }

    pub(super) fn delete_at(&mut self, revision: u64, key: &[u8]) {
        if self.state.records.remove(key).is_some() {
            self.state.history.push(TestChange { revision, key: key.to_vec(), value: None });
        }
    }

    pub(super) fn grant(&mut self) -> u64 {
        let id = self.state.leases.last().map_or(1, |last| last + 1).max(self.state.revision << 8);
        self.state.leases.insert(id);
        id
    }

    pub(super) fn has_lease(&self, lease: u64) -> bool {
        self.state.leases.contains(&lease)
    }

    /// Ends a lease and its records; false where there is no such lease.
    pub(super) fn end_lease(&mut self, lease: u64) -> bool {
        if !self.state.leases.remove(&lease) {
            return false;
        }
        let revision = self.begin();
        let held = self.state.records.iter().filter(|(_, record)| record.lease == lease);
        let keys: Vec<Vec<u8>> = held.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.delete_at(revision, key));
        true
    }

    pub(super) fn lease_of(&self, key: &[u8]) -> Option<u64> {
        self.state.records.get(key).map(|record| record.lease)
    }

    pub(super) fn compact(&mut self) {
        self.state.compacted = self.state.revision;
        self.state.history.clear();
    }

    pub(super) fn as_text(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let records = self.state.records.iter();
        records.map(|(key, record)| (text(key), text(&record.value))).collect()
    }

    pub(super) fn snapshot(&self) -> TestEtcdState {
        self.state.clone()
    }

    pub(super) fn restore(&mut self, state: TestEtcdState) {
        self.state = state;
        self.tokens.clear();
        self.generation += 1;
    }
}
