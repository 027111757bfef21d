//! Asking somebody who uses an emulated disk of their own to end, in order or in haste.
//!
//! It takes nothing down: whoever has the disk does that, and is freed here from waiting for it.

use super::EmulatedDisk;
use super::drive::Drive;
use super::mounts;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A word from another thread, at any time: before the disk is there, and after it is gone.
#[derive(Debug, Default)]
pub struct DiskStop {
    asked: AtomicBool,
    cable: Mutex<CableState>,
}

#[derive(Debug, Default)]
struct CableState {
    disk: Option<(PathBuf, Weak<Drive>)>,
    pulled: bool,
}

impl DiskStop {
    /// To end, and to take the disk down in order: file systems write what they hold.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// To end as soon as possible: as if the disk's cable were pulled, all that waits for it and
    /// all that comes later fails, and what file systems hold is lost. As often as one likes.
    ///
    /// # Errors
    /// It needs the right to unmount (root).
    pub fn pull(&self) -> io::Result<()> {
        self.ask();
        let mut cable = self.cable();
        cable.pulled = true;
        cable.pull()
    }

    /// Whether it is to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether in haste.
    pub fn is_pulled(&self) -> bool {
        self.cable().pulled
    }

    /// From here on this is the disk.
    pub(super) fn is_for(&self, drive: &Arc<Drive>, at: PathBuf) {
        let mut cable = self.cable();
        cable.disk = Some((at, Arc::downgrade(drive)));
        if cable.pulled {
            // Whoever pulled it before hears of it when the disk is used.
            let _ = cable.pull();
        }
    }

    fn cable(&self) -> std::sync::MutexGuard<'_, CableState> {
        self.cable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CableState {
    fn pull(&self) -> io::Result<()> {
        match &self.disk {
            // Of one that is gone, the place may be another's.
            Some((at, drive)) if drive.strong_count() > 0 => mounts::abort(at),
            _ => Ok(()),
        }
    }
}

impl EmulatedDisk {
    /// Lets `stop` pull it.
    pub fn obey(&self, stop: &DiskStop) {
        stop.is_for(&self.drive, self.at.clone());
    }
}
