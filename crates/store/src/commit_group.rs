//! Makes the commits of several recordings one flush of the data and one journal entry.
//!
//! A recording writes its data, puts its records into the group, and waits to lead it. The one that
//! leads commits all that are in the group by then; the others find theirs committed.

use crate::format::record::Record;
use crate::recording_load::COMMIT;
use crate::{BackgroundIo, Store, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use units::locked;

/// The commits that wait.
#[derive(Debug, Default)]
pub(crate) struct CommitGroup {
    waiting: Mutex<Vec<WaitingCommit>>,
    lead: Mutex<()>,
}

/// The records of one recording, and whether they are durable.
#[derive(Debug)]
struct WaitingCommit {
    records: Vec<Record>,
    is_done: Arc<AtomicBool>,
}

impl Store {
    /// Flushes what was written, and makes the records that refer to it durable. The one that leads
    /// asks `io` for a permit for both flushes with what they write.
    pub(crate) fn commit_recording(
        &self,
        records: Vec<Record>,
        io: &dyn BackgroundIo,
    ) -> Result<(), StoreError> {
        let group = self.commits();
        let is_done = Arc::new(AtomicBool::new(false));
        let own = WaitingCommit { records: records.clone(), is_done: Arc::clone(&is_done) };
        locked(&group.waiting).push(own);
        let _lead = locked(&group.lead);
        if is_done.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut others = std::mem::take(&mut *locked(&group.waiting));
        others.retain(|it| !Arc::ptr_eq(&it.is_done, &is_done));
        let (places, bytes) = COMMIT;
        let _permit = io.acquire_writes(places, bytes);
        // Covers also the data of the others, which wrote it before they joined the group.
        self.flush()?;
        if !others.is_empty() {
            let all = others.iter().flat_map(|it| &it.records).chain(&records).cloned().collect();
            if self.change_all(|_| Ok(all), |_| {}).is_ok() {
                others.iter().for_each(|it| it.is_done.store(true, Ordering::Release));
                return Ok(());
            }
        }
        // Of a group that cannot be committed, for instance for want of room in the catalogue, each
        // one tries it alone.
        self.change_all(|_| Ok(records), |_| {})
    }
}
