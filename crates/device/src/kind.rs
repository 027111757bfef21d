//! Whether a path names a regular file or a block device; anything else is refused.

use crate::{DeviceError, DeviceKind};
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use units::Reason;

/// The kind of device of a file of this type; an error for directories, sockets and others.
pub(crate) fn kind_of(path: &Path, file_type: FileType) -> Result<DeviceKind, DeviceError> {
    if file_type.is_block_device() {
        Ok(DeviceKind::Block)
    } else if file_type.is_file() {
        Ok(DeviceKind::File)
    } else {
        let what = if file_type.is_dir() { "a directory" } else { "no file and no block device" };
        let reason = Reason::new(format!("it is {what}"), "name a regular file or a block device");
        Err(DeviceError::unusable(path, reason))
    }
}
