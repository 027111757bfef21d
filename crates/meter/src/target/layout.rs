//! The layout of streams: which bytes of which file belong to which stream.
//!
//! ```text
//!   one-file          │ stream 0   │ stream 1   │ stream 2   │      a part of the file each
//!   shared-file       │ 0 ──▶      1 ──▶        2 ──▶        │     the whole file for all, begun
//!                                                                  at different places
//!   file-per-stream   │ stream 0 │  │ stream 1 │  │ stream 2 │
//!   file-per-frame    │f│ │f│ │f│ │f│ ...                          opened, moved, closed
//! ```
//!
//! A slot is the space of one frame: whole pages, so that direct reads read nothing twice.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use units::{ByteCount, name_of};

/// The layout of streams in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// One file, with a part for each stream.
    #[default]
    OneFile,
    /// One file that all streams read from different positions.
    SharedFile,
    /// One file for each stream.
    FilePerStream,
    /// One file for each frame.
    FilePerFrame,
}

/// The files: their number and their common length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    /// How streams use the files.
    pub layout: Layout,
    /// The number of files.
    pub files: u32,
    /// Bytes of each file.
    pub each: ByteCount,
}

impl Layout {
    /// All layouts by the names that users type.
    pub const NAMES: [(&str, Self); 4] = [
        ("one-file", Self::OneFile),
        ("shared-file", Self::SharedFile),
        ("file-per-stream", Self::FilePerStream),
        ("file-per-frame", Self::FilePerFrame),
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }

    /// Whether it uses a single file, so that an existing one will do.
    pub fn is_single(self) -> bool {
        matches!(self, Self::OneFile | Self::SharedFile)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, layout)| *layout).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("'{text}' is no layout; say {}", names.join(", "))
        })
    }
}

impl FileSet {
    /// The set of one file or device of this size.
    pub fn one(size: ByteCount) -> Self {
        Self { layout: Layout::OneFile, files: 1, each: size }
    }

    /// The files that `size` bytes make, for at most `streams` streams with slots of `slot` bytes
    /// (see [`slot`]).
    pub fn of(layout: Layout, size: ByteCount, streams: u32, slot: u64) -> Self {
        let (files, each) = match layout {
            Layout::OneFile | Layout::SharedFile => (1, size.0),
            Layout::FilePerStream => (streams, size.0 / u64::from(streams.max(1))),
            Layout::FilePerFrame => (u32::try_from(size.0 / slot).unwrap_or(u32::MAX), slot),
        };
        Self { layout, files, each: ByteCount(units::align_down(each, PAGE)) }
    }

    /// The size of all files together.
    pub fn size(&self) -> ByteCount {
        ByteCount(self.each.0.saturating_mul(self.files.into()))
    }

    /// The number of streams that have room.
    pub fn most_streams(&self, slot: u64) -> u32 {
        let slots = u32::try_from(self.each.0 / slot).unwrap_or(u32::MAX);
        match self.layout {
            Layout::OneFile => slots,
            Layout::SharedFile => {
                if slots == 0 {
                    0
                } else {
                    u32::MAX
                }
            }
            Layout::FilePerStream | Layout::FilePerFrame if slots == 0 => 0,
            Layout::FilePerStream | Layout::FilePerFrame => self.files,
        }
    }

    /// The positions of `streams` streams, for which there is room.
    pub fn places(&self, streams: u32, slot: u64) -> FilePositions {
        let slots = match self.layout {
            Layout::OneFile => self.each.0 / u64::from(streams) / slot,
            Layout::SharedFile | Layout::FilePerStream => self.each.0 / slot,
            Layout::FilePerFrame => u64::from(self.files / streams),
        };
        FilePositions { layout: self.layout, streams: streams.into(), slots, slot, base: 0 }
    }
}

/// The positions of streams in a file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePositions {
    layout: Layout,
    streams: u64,
    /// The number of slots of each stream.
    slots: u64,
    slot: u64,
    /// The offset in a single file at which the streams' part of it begins.
    base: u64,
}

impl FilePositions {
    /// These positions in the part of a single file that begins at `base`.
    pub fn from(self, base: u64) -> Self {
        Self { base, ..self }
    }

    /// The number of slots of each stream.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The file and offset of a stream's slot. After the last slot follows the first again.
    #[inline]
    pub fn of(&self, stream: u32, number: u64) -> (u32, u64) {
        let number = if number < self.slots { number } else { number % self.slots };
        let before = u64::from(stream);
        match self.layout {
            Layout::OneFile => (0, self.base + (before * self.slots + number) * self.slot),
            Layout::SharedFile => {
                let begins = self.slots * before / self.streams;
                (0, self.base + (begins + number) % self.slots * self.slot)
            }
            Layout::FilePerStream => (stream, number * self.slot),
            Layout::FilePerFrame => {
                let file = before * self.slots + number;
                (u32::try_from(file).expect("below the number of files"), 0)
            }
        }
    }
}

/// The space of a frame: whole pages.
pub(crate) fn slot(frame: ByteCount) -> u64 {
    units::align_up(frame.0, PAGE)
}

/// The page size: direct transfers are whole pages, in position and length.
pub(super) const PAGE: u64 = 4096;
