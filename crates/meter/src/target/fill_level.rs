//! A fuller file system: space that is reserved for the time of a run.
//!
//! The space is reserved and not written: the file system allocates as on a full one, but the disk
//! beneath it does not know. The file has a name only while it is being opened.

use super::storage::cannot_make;
use super::test_files::name;
use crate::error::MeterError;
use device::{no_links, space};
use std::fs::File;
use std::path::Path;
use units::ByteCount;

/// Reserved space, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct FillLevel {
    /// The unnamed file, whose space is free again when it is closed.
    #[expect(dead_code, reason = "kept open, and nothing else")]
    file: File,
}

impl FillLevel {
    /// Reserves space until `percent` of the directory's file system will be in use after `still`
    /// more bytes are written. `None` if it is as full already.
    pub(crate) fn make(
        dir: &Path,
        percent: u64,
        still: ByteCount,
    ) -> Result<Option<Self>, MeterError> {
        let there = space(dir)?;
        let used = there.total.0.saturating_sub(there.free.0);
        let wanted = there.total.0 / 100 * percent;
        let missing = wanted.saturating_sub(used.saturating_add(still.0));
        if missing == 0 {
            return Ok(None);
        }
        let path = dir.join(format!("{}-fill", name()));
        let file = no_links::create_file(&path).map_err(|error| cannot_make(dir, &error))?;
        let made = no_links::preallocate(&path, ByteCount(missing));
        // From here on the file exists as long as it is open.
        let unnamed = no_links::remove_file(&path);
        made?;
        unnamed.map_err(|error| cannot_make(dir, &error))?;
        Ok(Some(Self { file }))
    }
}
