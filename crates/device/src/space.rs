//! The used and free space of a file system.

use crate::DeviceError;
use crate::refusal::cannot_open;
use std::path::Path;
use units::ByteCount;

/// Total and free bytes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The total, without the part reserved for the administrator.
    pub total: ByteCount,
    /// The part that is free for this user.
    pub free: ByteCount,
}

/// Total and free bytes of the file system at `path`.
pub fn space(path: &Path) -> Result<Space, DeviceError> {
    let about = rustix::fs::statvfs(path).map_err(|error| cannot_open(path, error.into()))?;
    let bytes = |blocks: u64| ByteCount(blocks.saturating_mul(about.f_frsize));
    let reserved = about.f_bfree.saturating_sub(about.f_bavail);
    Ok(Space { total: bytes(about.f_blocks.saturating_sub(reserved)), free: bytes(about.f_bavail) })
}
