//! Keeps with each store what its disk was seen to do, on a thread of its own: the core tells it once a
//! minute and when it ends, and what has changed since is written in a turn of its own, like all work
//! without a deadline.
//!
//! ```text
//!   core ──Kept (once a minute, at the end)──▶ keeper ──turn──▶ Store::set_seen   if it changed
//!   start: Store::seen ──▶ decoded ──▶ Engine::recall            what is not of these reads: a note
//! ```
//!
//! A server that is killed loses at most that minute. What cannot be written is logged and tried again
//! the next time.

use crate::core::CoreHandle;
use crate::engine::DiskNumber;
use crate::library::Shelf;
use crate::pace::EnginePace;
use crate::shared::Shared;
use crossbeam_channel::{Receiver, Sender, bounded};
use scheduler::Remembered;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::{Pace, Store};

/// What the core tells the keeper.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) disk: DiskNumber,
    pub(crate) remembered: Remembered,
}

/// Begins to keep; ends when nobody can tell it anything any more, with all that was told written.
pub(crate) fn start(
    shared: Arc<Shared>,
    core: CoreHandle,
) -> io::Result<(Sender<Kept>, JoinHandle<()>)> {
    let (tell, told) = bounded(QUEUE);
    let thread = thread::Builder::new().name("keeper".to_owned());
    Ok((tell, thread.spawn(move || keep(&told, &shared, &core))?))
}

fn keep(told: &Receiver<Kept>, shared: &Shared, core: &CoreHandle) {
    let mut written: HashMap<DiskNumber, Vec<u8>> = HashMap::new();
    while let Ok(Kept { disk, remembered }) = told.recv() {
        let shelf = &shared.titles.shelves[usize::from(disk.0)];
        let before = written.remove(&disk).or_else(|| shelf.store.seen());
        if before.is_none() && remembered.is_nothing() {
            continue;
        }
        let bytes = remembered.encode();
        if before.as_deref() == Some(&*bytes) || write(shelf, core, &bytes, shared) {
            written.insert(disk, bytes);
        }
    }
}

fn write(shelf: &Shelf, core: &CoreHandle, bytes: &[u8], shared: &Shared) -> bool {
    let turn = EnginePace::new(core.clone(), shelf.disk, shelf.read_size);
    let turn = turn.wait_turn(shelf.read_size);
    let result = shelf.store.set_seen(bytes);
    drop(turn);
    let Err(error) = &result else { return true };
    let store = shelf.path.display().to_string();
    let error = error.to_string();
    shared.log.line(|| json!({ "event": "seen-not-kept", "store": store, "error": error }));
    false
}

/// What was kept with a store; what cannot be read is told in `notes` and is nothing.
pub(crate) fn read(store: &Store, path: &Path, notes: &mut Vec<String>) -> Option<Remembered> {
    let bytes = store.seen()?;
    match Remembered::decode(&bytes) {
        Ok(remembered) => Some(remembered),
        Err(why) => {
            let name = path.display();
            notes.push(format!(
                "{name}: what was kept of what its disk was seen to do is not used, because {why}"
            ));
            None
        }
    }
}

/// What to tell who starts a server on a disk that was seen before: whether that was of these reads,
/// and how far it was behind.
pub(crate) fn told_of(path: &Path, of_these: bool, behind: f64) -> Option<String> {
    let name = path.display();
    if !of_these {
        return Some(format!(
            "{name}: what its disk was seen to do last was with other reads, in another slot or before \
             it was calibrated, and says nothing of these; it is seen anew"
        ));
    }
    (behind > 0.0).then(|| {
        format!(
            "{name}: its disk was {:.0} % slower than counted with when it was last used, and is taken \
             for that until it is seen to be itself again",
            100.0 * behind
        )
    })
}

/// How often what was seen is kept.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// The core never waits: what does not fit is told a minute later. At the end there is room for all.
const QUEUE: usize = 2 * 256;
