//! Stores with each store what the engine has observed of its disk, on a thread of its own. The
//! core sends a record once a minute and at its end; a changed record is written as
//! background I/O.
//!
//! ```text
//!   core ──HistoryRecord (once a minute, at the end)──▶ writer ──▶ Store::set_disk_history
//!   start: stored record ──▶ decoded ──▶ Engine::restore_history, if observed with the same reads
//! ```
//!
//! A server that is killed loses at most the last minute. A record that cannot be written is logged
//! and tried again at the next interval.

use crate::background_io::EngineBackgroundIo;
use crate::library::OpenStore;
use crate::messages::CoreHandle;
use crate::shared::Shared;
use crossbeam_channel::{Receiver, Sender, bounded};
use engine::DiskNumber;
use scheduler::DiskHistory;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::{BackgroundIo, Store};
use units::Hinted;

/// What the engine has observed of one disk.
#[derive(Debug)]
pub(crate) struct HistoryRecord {
    pub(crate) disk: DiskNumber,
    pub(crate) history: DiskHistory,
}

/// Starts the writer. It ends, with all records written, when the last sender is dropped.
pub(crate) fn start(
    shared: Arc<Shared>,
    core: CoreHandle,
) -> io::Result<(Sender<HistoryRecord>, JoinHandle<()>)> {
    let (records, queue) = bounded(QUEUE);
    let thread = thread::Builder::new().name("disk-history".to_owned());
    Ok((records, thread.spawn(move || write_records(&queue, &shared, &core))?))
}

fn write_records(queue: &Receiver<HistoryRecord>, shared: &Shared, core: &CoreHandle) {
    let mut written: HashMap<DiskNumber, Vec<u8>> = HashMap::new();
    while let Ok(HistoryRecord { disk, history }) = queue.recv() {
        let opened = &shared.content.stores[usize::from(disk.0)];
        // Removed until it is written: a record that fails is written again at the next interval.
        let before = written.remove(&disk).or_else(|| opened.store.disk_history());
        if before.is_none() && history.is_nothing() {
            continue;
        }
        let bytes = history.encode();
        if before.as_deref() == Some(&*bytes) || write(opened, core, &bytes, shared) {
            written.insert(disk, bytes);
        }
    }
}

/// Writes a record; false where that failed.
fn write(opened: &OpenStore, core: &CoreHandle, bytes: &[u8], shared: &Shared) -> bool {
    let io = EngineBackgroundIo::new(core.clone(), opened);
    let permit = io.acquire(opened.read_size);
    let result = opened.store.set_disk_history(bytes);
    drop(permit);
    let Err(failure) = &result else { return true };
    let (store, error) = (opened.path.display().to_string(), failure.one_line());
    shared
        .log
        .line(|| json!({ "event": "disk-history-not-written", "store": store, "error": error }));
    false
}

/// Reads the record stored with a store. A record that cannot be decoded is not used, and a note
/// gives the reason.
pub(crate) fn read(store: &Store, path: &Path, notes: &mut Vec<String>) -> Option<DiskHistory> {
    let bytes = store.disk_history()?;
    match DiskHistory::decode(&bytes) {
        Ok(history) => Some(history),
        Err(why) => {
            let name = path.display();
            notes.push(format!("{name}: its stored disk history is not used: {why}"));
            None
        }
    }
}

/// The note for the start on a disk with a history. `applies`: whether the history was observed
/// with the present reads; `slowdown`: by which part the disk was slower than calibrated.
pub(crate) fn start_note(path: &Path, applies: bool, slowdown: f64) -> Option<String> {
    let name = path.display();
    if !applies {
        return Some(format!(
            "{name}: its disk history was observed with other reads, in another slot or before its \
             last calibration; it is not used, and observation starts anew"
        ));
    }
    (slowdown > 0.0).then(|| {
        format!(
            "{name}: its disk was {:.0} % slower than calibrated when it was last used; admission \
             counts with that until the disk is observed to be as calibrated",
            100.0 * slowdown
        )
    })
}

/// How often records are written.
pub(crate) const INTERVAL: Duration = Duration::from_secs(60);
/// Records that wait to be written: the core's last ones for all disks must fit, because it does
/// not wait for room.
const QUEUE: usize = 2 * 256;
