//! Looks after a lost disk, on a thread of its own: reads what it holds after a while, ever less often,
//! until it is what it was, and then says so to the core.
//!
//! ```text
//!   lost ──1 s──▶ probe ──2 s──▶ probe ──4 s──▶ ... at most a minute
//!                   └─ superblock, journal, catalogue as in memory; parts of titles match their
//!                      checksums ──▶ Restore ──▶ the core: back, or not yet
//! ```
//!
//! It reads through the file that the server has open: a disk that was taken out and put in again is
//! another for the kernel, and stays lost until the server is started again. A probe of a disk that does
//! not answer waits as long as the kernel does.

use crate::core::{CoreHandle, Event};
use crate::engine::DiskNumber;
use crate::shared::Shared;
use crossbeam_channel::bounded;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Begins to look after a lost disk. Nobody waits for the thread: the server may end before it.
pub(crate) fn look_after(
    disk: DiskNumber,
    shared: Arc<Shared>,
    core: CoreHandle,
) -> io::Result<()> {
    let name = format!("probe-{}", disk.0);
    thread::Builder::new().name(name).spawn(move || probe_until_back(disk, &shared, &core))?;
    Ok(())
}

fn probe_until_back(disk: DiskNumber, shared: &Shared, core: &CoreHandle) {
    let shelf = &shared.titles.shelves[usize::from(disk.0)];
    let mut pause = FIRST;
    loop {
        if !waited(pause, shared) {
            return;
        }
        match shelf.store.probe() {
            Ok(()) => {
                let (back, answer) = bounded(1);
                core.tell(Event::Restore { disk, back });
                // No answer: the core has ended.
                if answer.recv().unwrap_or(true) {
                    return;
                }
            }
            Err(error) => {
                let store = shelf.path.display().to_string();
                shared.log.line(|| {
                    json!({ "event": "disk-still-lost", "store": store, "error": error.to_string() })
                });
            }
        }
        pause = (pause * 2).min(LAST);
    }
}

// False: the server is about to stop.
fn waited(pause: Duration, shared: &Shared) -> bool {
    let mut left = pause;
    while !left.is_zero() {
        if shared.stopping.load(Ordering::Relaxed) {
            return false;
        }
        let step = left.min(LOOK);
        thread::sleep(step);
        left -= step;
    }
    true
}

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(60);
/// Whether the server stops is looked at so often.
const LOOK: Duration = Duration::from_millis(250);
