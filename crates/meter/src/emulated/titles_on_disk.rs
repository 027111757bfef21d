//! A store on the emulated disk, as a reproduction sees it. The meter has no store of its own: its
//! caller gives one, which is read beside the files of file systems.

use crate::error::MeterError;
use std::io::Read;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The titles that a store is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TitlesPlan {
    /// Number of titles, written one after another.
    pub count: u32,
    /// The length of each.
    pub len: ByteCount,
}

/// Makes a store with titles on a block device, whose content is overwritten. The last argument is
/// called before each title with its number; if it returns false, the making ends with an error.
pub type MakeTitles =
    fn(&Path, TitlesPlan, &mut dyn FnMut(u32) -> bool) -> Result<Box<dyn TitlesOnDisk>, MeterError>;

/// A store on a block device. Dropped, it is unmounted and closed.
pub trait TitlesOnDisk {
    /// Readers of titles, by their numbers in the order of writing, none of whose bytes are in
    /// memory. The store decides in which order it reads for them, and nothing is read before the
    /// first of them asks.
    ///
    /// # Errors
    /// Those of the store.
    fn readers(&mut self, titles: &[u32]) -> Result<Vec<Box<dyn Read + Send>>, MeterError>;

    /// Mounts the store on an empty directory, anew if it is mounted, so that no file of it is in
    /// memory.
    ///
    /// # Errors
    /// Those of the mount.
    fn mount_cold(&mut self, at: &Path) -> Result<(), MeterError>;

    /// The file of a title within the mount, by its number in the order of writing.
    fn file(&self, title: u32) -> PathBuf;
}
