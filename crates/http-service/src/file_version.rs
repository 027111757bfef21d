//! Whether a file has changed since it was read: for keys and certificates, which may be replaced
//! while the server runs.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What changes when a file is written or replaced: device, inode, size, seconds and nanoseconds of
/// its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion(u64, u64, u64, i64, i64);

impl FileVersion {
    /// The present version of a file. To be asked for before its content is read: a change in
    /// between is then seen at the next look.
    pub fn of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        Ok(Self(meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
    }
}
