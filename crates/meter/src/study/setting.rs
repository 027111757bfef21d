//! One setting of a study: the operations and the files.

use crate::transfers::{Length, TransferMix};
use units::ByteCount;

/// The size of a study.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The size of all files of a setting together.
    pub size: ByteCount,
    /// The number of concurrent clients.
    pub clients: u32,
}

/// One setting of a study.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name: on the axis, where that has no numbers, and in results.
    pub name: String,
    /// The position on the axis, if that has numbers.
    pub x: Option<f64>,
    /// The line of the plot that it belongs to; empty if there is only one.
    pub line: &'static str,
    /// The transfers of the clients.
    pub mix: TransferMix,
    /// The largest number of transfers of each client.
    pub most: Option<u64>,
    /// The layout of the files.
    pub layout: FileLayout,
    /// The state of the page cache.
    pub cache: Cache,
    /// Bytes of each file, of which `mix` may use a part.
    pub whole: u64,
    /// Number of directories, or simulated disks, over which files are distributed.
    pub nodes: u32,
}

/// A file layout. Settings with the same layout share files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// Each file is written in one go.
    InOneGo,
    /// Space is allocated in pieces of this many bytes, in random order.
    InPieces(u64),
    /// Each file is written in one go, on a file system filled to this percentage; 0 means as it
    /// is. The files are made again for each run.
    FilledTo(u8),
}

/// The use of this machine's page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Not used: direct I/O.
    Passed,
    /// Used, but emptied of the files before the run.
    Emptied,
    /// Used, and filled with all of the files before the run.
    Filled,
}

impl Scale {
    /// Sequential reads of up to 10 MiB in blocks of 1 MiB, as in the paper, from several files.
    pub(super) fn reads(&self, files: u32) -> TransferMix {
        let each = units::align_down(self.size.0 / u64::from(files), PAGE);
        TransferMix {
            length: Length::UpTo(LONGEST.min(each / 2)),
            blocks: vec![MIB],
            files,
            each: ByteCount(each),
            ..TransferMix::default()
        }
    }
}

impl Setting {
    /// A setting with direct I/O, on one node, over all of files that were written in one go.
    pub(super) fn new(name: impl Into<String>, mix: TransferMix) -> Self {
        Self {
            name: name.into(),
            x: None,
            line: "",
            whole: mix.each.0,
            mix,
            most: None,
            layout: FileLayout::InOneGo,
            cache: Cache::Passed,
            nodes: 1,
        }
    }

    /// The bytes of all files of the setting.
    pub(super) fn bytes(&self) -> u64 {
        self.whole.saturating_mul(self.mix.files.into())
    }
}

/// The longest transfer of the paper's profile (section 5.4).
const LONGEST: u64 = 10 << 20;

/// The block of the paper's plots.
pub(super) const MIB: u32 = 1 << 20;

const PAGE: u64 = 4096;
