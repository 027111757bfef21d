//! The attributes of a file that FUSE asks for.

use fuser::FileType;
use std::sync::Arc;
use std::time::SystemTime;
use store::{RecordingLook, TitleOwner};

/// The attributes of a file that FUSE asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
    pub(crate) time: SystemTime,
    pub(crate) can_write: bool,
    /// Whether it may be another one at the next look: the kernel asks again each time.
    pub(crate) grows: bool,
    /// Number of names: of a folder those in it and in its subfolders, of an unlinked file none.
    pub(crate) links: u32,
}

impl About {
    /// The attributes of the file of a recording.
    pub(crate) fn growing(look: &RecordingLook<Arc<dyn TitleOwner>>) -> Self {
        Self {
            kind: FileType::RegularFile,
            bytes: look.body().len(),
            time: look.modified(),
            can_write: false,
            grows: true,
            links: 1,
        }
    }
}
