//! Makes the commits of several recordings one sweep of writes, one flush of the data and one
//! journal entry.
//!
//! ```text
//!   recordings   blocks + records ─▶ waiting          lead: one of them
//!   lead         permit ─▶ its blocks ─▶ permit ─▶ those of all that wait ─▶ flush ─▶ entry, flush
//! ```
//!
//! A recording puts its blocks and records into the group, and waits to lead it. The one that leads
//! commits all that are in the group when its permit is there; the others find theirs committed. So
//! the busier the disk, the more commits share what each costs by itself.

use crate::format::record::Record;
use crate::recording_load::RecordingLoad;
use crate::{BackgroundIo, Store, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use units::{ByteCount, locked};

/// A whole block, or several in a row, and their place on the device.
type PlacedBytes = (u64, Vec<u8>);

/// What a recording makes durable together.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    /// What is to be written, to which no record refers yet.
    pub(crate) blocks: Vec<PlacedBytes>,
    /// Records that refer to the blocks.
    pub(crate) records: Vec<Record>,
}

/// The commits that wait.
#[derive(Debug, Default)]
pub(crate) struct CommitGroup {
    waiting: Mutex<Vec<WaitingCommit>>,
    lead: Mutex<()>,
}

/// The commit of one recording, and whether it is durable.
#[derive(Debug)]
struct WaitingCommit {
    commit: Arc<Commit>,
    is_done: Arc<AtomicBool>,
}

impl Commit {
    /// The places and bytes of the blocks.
    fn size(&self) -> (u32, ByteCount) {
        let bytes = self.blocks.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        (u32::try_from(self.blocks.len()).unwrap_or(u32::MAX), ByteCount(bytes))
    }
}

impl Store {
    /// Writes the blocks, and then makes the records that refer to them durable. The one that leads
    /// asks `io` for permits for all of it.
    pub(crate) fn commit_recording(
        &self,
        commit: Commit,
        io: &dyn BackgroundIo,
    ) -> Result<(), StoreError> {
        let group = self.commits();
        let (commit, is_done) = (Arc::new(commit), Arc::new(AtomicBool::new(false)));
        let own = WaitingCommit { commit: Arc::clone(&commit), is_done: Arc::clone(&is_done) };
        locked(&group.waiting).push(own);
        let _lead = locked(&group.lead);
        if is_done.load(Ordering::Acquire) {
            return Ok(());
        }
        let (places, bytes) = commit.size();
        let (more, entry) = RecordingLoad::COMMIT;
        let mut permit = io.acquire_writes(places + more, ByteCount(bytes.0 + entry.0));
        let mut others = std::mem::take(&mut *locked(&group.waiting));
        others.retain(|it| !Arc::ptr_eq(&it.is_done, &is_done));
        if !others.is_empty() {
            self.write_blocks(&in_order(&[&commit]))?;
            let all: Vec<&Commit> = others.iter().map(|it| &*it.commit).collect();
            let mut written = Ok(());
            let blocks = in_order(&all);
            for turn in blocks.chunks(usize::try_from(io.most_places()).unwrap_or(usize::MAX)) {
                let bytes = turn.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                let places = u32::try_from(turn.len()).unwrap_or(u32::MAX);
                // Not beside the one before: in time that nobody keeps, a disk gives one at a time.
                drop(permit);
                permit = io.acquire_writes(places, ByteCount(bytes));
                written = self.write_blocks(turn);
                if written.is_err() {
                    break;
                }
            }
            let records = all.iter().copied().chain([&*commit]).flat_map(|it| &it.records);
            if written.and_then(|()| self.commit_records(records.cloned().collect())).is_ok() {
                others.iter().for_each(|it| it.is_done.store(true, Ordering::Release));
                return Ok(());
            }
        }
        // Of a group that cannot be committed, for instance for want of room in the catalogue, each
        // one tries it alone.
        self.write_blocks(&in_order(&[&commit]))?;
        let committed = self.commit_records(commit.records.clone());
        drop(permit);
        committed
    }

    fn write_blocks(&self, blocks: &[&PlacedBytes]) -> Result<(), StoreError> {
        blocks.iter().try_for_each(|(place, bytes)| self.write_data(*place, bytes))
    }

    /// Makes the records durable, and before them the blocks that they refer to.
    fn commit_records(&self, records: Vec<Record>) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        self.flush()?;
        self.change_all(|_| Ok(records), |_| {})
    }
}

#[cfg(test)]
mod tests;

/// The blocks in the order of their places.
fn in_order<'a>(all: &[&'a Commit]) -> Vec<&'a PlacedBytes> {
    let mut blocks: Vec<&PlacedBytes> = all.iter().flat_map(|it| &it.blocks).collect();
    blocks.sort_unstable_by_key(|(place, _)| *place);
    blocks
}
