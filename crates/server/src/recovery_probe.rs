//! Probes a lost disk, on a thread of its own, at growing intervals, until it holds its data again,
//! and then reports that to the core.
//!
//! ```text
//!   lost ──1 s──▶ probe ──2 s──▶ probe ──4 s──▶ ... at most a minute
//!                   └─ superblock, journal, catalogue as in memory; parts of titles match their
//!                      checksums ──▶ Restore ──▶ the core: used again, or not yet
//!                                       └─ used: what the store missed is made
//! ```
//!
//! It reads through the file that the server has open. A disk that was removed and inserted again
//! is another device to the kernel: it is found at its path, and the server restarts in its own
//! place to use it. A probe of a disk that does not answer blocks as long as the kernel does.

use crate::messages::{CoreHandle, Event};
use crate::missed_changes;
use crate::shared::Shared;
use crate::store_search;
use crossbeam_channel::bounded;
use engine::DiskNumber;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use store::Store;

/// Starts probing a lost disk. The thread is not joined: the server may end before it.
pub(crate) fn spawn_recovery_probe(
    disk: DiskNumber,
    shared: &Arc<Shared>,
    core: CoreHandle,
) -> io::Result<()> {
    let opened = &shared.content.stores[usize::from(disk.0)];
    let lost = LostDisk { disk, store: Arc::clone(&opened.store), path: opened.path.clone() };
    let shared = Arc::downgrade(shared);
    let name = format!("probe-{}", disk.0);
    thread::Builder::new().name(name).spawn(move || probe_until_restored(&lost, &shared, &core))?;
    Ok(())
}

struct LostDisk {
    disk: DiskNumber,
    store: Arc<Store>,
    path: PathBuf,
}

fn probe_until_restored(lost: &LostDisk, shared: &Weak<Shared>, core: &CoreHandle) {
    let LostDisk { disk, store, path } = lost;
    let mut interval = FIRST_INTERVAL;
    while Shared::sleep_unless_stopping(shared, interval) {
        match store.probe() {
            Ok(()) => {
                let (restored, answer) = bounded(1);
                core.send(Event::Restore { disk: *disk, restored });
                // Without an answer the core has ended.
                if answer.recv().unwrap_or(true) {
                    if let Some(shared) = shared.upgrade() {
                        missed_changes::catch_up(&shared, core);
                    }
                    return;
                }
            }
            // Still the device that the server has open, or none, if this fails, too.
            Err(_) if store_search::look(path, shared).is_ok() => {}
            Err(error) => store_search::tell("disk-still-lost", path, Some(&error), shared),
        }
        interval = (interval * 2).min(LONGEST_INTERVAL);
    }
}

const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
