//! A file system that is fuller than it is: space that is taken for the time of a run.
//!
//! The space is reserved and not written: the file system finds room as on a full one, the disk
//! beneath it is not told. The file has no name for longer than it takes to open it.

use super::storage::TargetError;
use super::test_files::name;
use device::{preallocate, space};
use std::fs::File;
use std::path::Path;
use units::ByteCount;

/// Given back when it is dropped.
#[derive(Debug)]
pub struct FillLevel {
    /// Its space is the file system's again when it is closed.
    #[expect(dead_code, reason = "kept open, and nothing else")]
    file: File,
}

impl FillLevel {
    /// Fills the file system of this directory until `percent` of it are in use once `still`
    /// bytes more have been written. `None`: it is as full already.
    pub fn make(dir: &Path, percent: u64, still: ByteCount) -> Result<Option<Self>, TargetError> {
        let there = space(dir)?;
        let used = there.total.0.saturating_sub(there.free.0);
        let wanted = there.total.0 / 100 * percent;
        let missing = wanted.saturating_sub(used.saturating_add(still.0));
        if missing == 0 {
            return Ok(None);
        }
        let path = dir.join(format!("{}-fill", name()));
        File::create_new(&path).map_err(|source| TargetError::making(dir, source))?;
        let made = preallocate(&path, ByteCount(missing)).map_err(TargetError::from);
        let opened = File::open(&path).map_err(|source| TargetError::making(dir, source));
        // From here on it lives as long as it is open.
        let unnamed = std::fs::remove_file(&path);
        made?;
        unnamed.map_err(|source| TargetError::making(dir, source))?;
        Ok(Some(Self { file: opened? }))
    }
}
