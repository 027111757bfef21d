//! Files that are made and filled for a run, and gone afterwards.
//!
//! ```text
//!   DIR/.tenuto-meter-PID/00000000 00000001 00000002 ...
//! ```
//!
//! The directory is made new; nothing that somebody else made is ever opened. Files and directory
//! are removed when the value is dropped, which is at the end of the run however it ends - but not
//! if the program is killed outright: then the next run says what to remove.

use super::place::{PlaceError, fill};
use device::{FileDevice, OpenOptions, preallocate};
use std::path::{Path, PathBuf};
use units::ByteCount;

/// See the head of this file.
#[derive(Debug)]
pub struct MadeFiles {
    dir: PathBuf,
    files: u32,
    each: ByteCount,
}

impl MadeFiles {
    /// Makes and fills so many files. `go_on` is told how many bytes are written in all.
    pub fn make(
        dir: &Path,
        files: u32,
        each: ByteCount,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, PlaceError> {
        let dir = dir.join(name());
        std::fs::create_dir(&dir).map_err(|source| PlaceError::making(&dir, source))?;
        // From here on it is removed whatever happens.
        let mut made = Self { dir, files: 0, each };
        for number in 0..files {
            made.files = number + 1;
            let path = made.path(number);
            preallocate(&path, each)?;
            let write = OpenOptions { direct: true, write: true, exclusive: false };
            let before = u64::from(number) * each.0;
            fill(&FileDevice::open(&path, write)?, each, number, &mut |done| go_on(before + done))?;
        }
        Ok(made)
    }

    /// Of one of them.
    pub fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{number:08}"))
    }

    /// How many.
    pub fn files(&self) -> u32 {
        self.files
    }

    /// Bytes of each.
    pub fn each(&self) -> ByteCount {
        self.each
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        // Whatever cannot be removed stays: there is nobody left to tell.
        for number in 0..self.files {
            let _ = std::fs::remove_file(self.path(number));
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// Of what is made in somebody's directory.
pub(super) fn name() -> String {
    format!(".tenuto-meter-{}", std::process::id())
}
