//! One setting of a study: the operations and the files.

use crate::transfers::{Length, TransferMix};
use std::time::Duration;
use units::ByteCount;

/// How large a study is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The size of all files of a setting together.
    pub size: ByteCount,
    /// The number of concurrent clients.
    pub clients: u32,
}

/// One thing tried.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name: on the axis, where it is no number, and in answers.
    pub name: String,
    /// Where on the axis, if that has numbers.
    pub x: Option<f64>,
    /// Which line of the plot it belongs to; empty if there is one only.
    pub line: &'static str,
    /// What clients do.
    pub mix: TransferMix,
    /// Transfers of each client at most.
    pub most: Option<u64>,
    /// The layout of the files.
    pub lie: FileLayout,
    /// What memory on the way may answer.
    pub cache: Cache,
    /// From which byte of each file on.
    pub from: u64,
    /// Bytes of each file, of which `mix` may be given a part.
    pub whole: u64,
    /// Directories, or simulated disks, that files are dealt out to.
    pub nodes: u32,
}

/// A file layout. Settings with the same layout share files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// Each written in one go.
    InOneGo,
    /// Room made for pieces of so many bytes, in any order.
    InPieces(u64),
    /// Written in one go on a file system that is so full, in per cent; 0: as it is. They are made
    /// anew each time.
    FilledTo(u8),
}

/// What this machine's page cache may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nothing: it is passed.
    Passed,
    /// It is emptied of the files before.
    Emptied,
    /// All of the files is read before.
    Filled,
}

impl Scale {
    /// Sequential reads of up to 10 MiB in blocks of 1 MiB, as in the paper, from several files.
    pub(super) fn reads(&self, files: u32) -> TransferMix {
        let each = units::align_down(self.size.0 / u64::from(files), PAGE);
        TransferMix {
            write_percent: 0,
            random_percent: 0,
            length: Length::UpTo(LONGEST.min(each / 2)),
            blocks: vec![MIB],
            delay: Duration::ZERO,
            unrepeated: false,
            ms_meter: false,
            files,
            own_file: false,
            each: ByteCount(each),
            replace: false,
            drawn: None,
        }
    }
}

impl Setting {
    /// Past the page cache, on one node, over all of files that were written in one go.
    pub(super) fn new(name: impl Into<String>, mix: TransferMix) -> Self {
        Self {
            name: name.into(),
            x: None,
            line: "",
            whole: mix.each.0,
            mix,
            most: None,
            lie: FileLayout::InOneGo,
            cache: Cache::Passed,
            from: 0,
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
