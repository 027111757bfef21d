//! A handle to end the use of an emulated disk, in order or immediately.
//!
//! It removes nothing: the owner of the disk does that, and is freed from waiting for the disk.

use super::EmulatedDisk;
use super::drive::Drive;
use crate::mounts;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use units::locked;

/// A stop signal that other threads can set at any time, before the disk exists and after its end.
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
    /// Asks to end and to stop the disk in order: file systems write their data.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Ends the disk immediately, as if its cable were pulled: all waiting and later requests fail,
    /// and unwritten data of file systems is lost. Can be called repeatedly.
    ///
    /// # Errors
    /// Fails without the right to unmount (root).
    pub fn pull(&self) -> io::Result<()> {
        self.ask();
        let mut cable = locked(&self.cable);
        cable.pulled = true;
        cable.pull()
    }

    /// Whether the owner is asked to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether the disk was ended immediately.
    pub fn is_pulled(&self) -> bool {
        locked(&self.cable).pulled
    }

    /// Sets the disk that this handle ends.
    pub(super) fn is_for(&self, drive: &Arc<Drive>, at: PathBuf) {
        let mut cable = locked(&self.cable);
        cable.disk = Some((at, Arc::downgrade(drive)));
        if cable.pulled {
            // If it was pulled before, the error shows when the disk is used.
            let _ = cable.pull();
        }
    }
}

impl CableState {
    fn pull(&self) -> io::Result<()> {
        match &self.disk {
            // The mount point of a disk that has ended may belong to another one.
            Some((at, drive)) if drive.strong_count() > 0 => mounts::abort(at),
            _ => Ok(()),
        }
    }
}

impl EmulatedDisk {
    /// Connects the disk to `stop`.
    pub fn obey(&self, stop: &DiskStop) {
        stop.is_for(&self.drive, self.at.clone());
    }
}
