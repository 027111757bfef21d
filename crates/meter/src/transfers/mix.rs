//! The mix from which transfers are drawn.

use crate::error::MeterError;
use crate::profiles::{Drawn, Profile, Rolled};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::ByteCount;

/// The settings of figure 13 of EBU TECH 3362, with the additions of its section 9.1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferMix {
    /// Percentage of transfers that write.
    pub write_percent: u8,
    /// Percentage of transfers that seek to a random position before each block.
    pub random_percent: u8,
    /// The length of a transfer.
    pub length: Length,
    /// Block sizes in bytes, all with the same probability. Not empty.
    pub blocks: Vec<u32>,
    /// Think time: the longest pause before a transfer.
    pub delay: Duration,
    /// Whether no byte is requested twice before all have been.
    pub unrepeated: bool,
    /// Whether to draw with msMeter's generator and split as it does: whole blocks only, at any
    /// byte.
    pub ms_meter: bool,
    /// The number of files. Each transfer draws one, unless clients have their own.
    pub files: u32,
    /// Whether client i uses only file i.
    pub own_file: bool,
    /// Bytes of each file.
    pub each: ByteCount,
    /// The first byte of each file that is used; the `each` bytes from there count as the file.
    pub from: u64,
    /// A write creates a new file, which replaces the old one when it is complete.
    pub replace: bool,
    /// The trace's mix, from which operations are drawn as fast as possible, each as a transfer of
    /// one block. Percentages, `length` and `blocks` only summarise it then.
    pub drawn: Option<Drawn>,
}

/// The length of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Length {
    /// From 1 KiB to this many bytes.
    UpTo(u64),
    /// Whole frames of this many bytes, from one frame to this number.
    Frames(u64, u32),
    /// The whole file from its beginning.
    #[default]
    Whole,
}

impl TransferMix {
    /// The mix of a profile on these files. A profile without its own transfers reads or writes one
    /// frame at a time.
    pub fn of(profile: &Profile, files: u32, each: ByteCount) -> Self {
        let transfers = profile.transfers.as_ref();
        let drawn = profile.drawn.as_ref();
        Self {
            write_percent: 100 - profile.read_percent,
            random_percent: profile.random_percent,
            length: match (drawn, transfers) {
                (Some(drawn), _) => Length::UpTo(drawn.sizes().last().copied().unwrap_or(0)),
                (None, Some(transfers)) => Length::UpTo(transfers.length),
                (None, None) => Length::Frames(profile.read().0, 1),
            },
            blocks: match (drawn, transfers) {
                (Some(drawn), _) => {
                    let block = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
                    drawn.sizes().into_iter().map(block).collect()
                }
                (None, Some(transfers)) => transfers.blocks.clone(),
                (None, None) => vec![u32::try_from(profile.read().0).unwrap_or(u32::MAX)],
            },
            ms_meter: transfers.is_some_and(|transfers| transfers.dice == Rolled::Msmeter),
            files,
            each,
            drawn: profile.drawn.clone(),
            ..Self::default()
        }
    }

    /// Checks that this mix works with a number of clients.
    pub fn check(&self, clients: u32) -> Result<(), MeterError> {
        let smallest = if self.drawn.is_some() { 1 } else { SMALLEST_BLOCK };
        let wrong = |block: &&u32| **block < smallest || **block > LARGEST_BLOCK;
        if let Some(block) = self.blocks.iter().find(wrong) {
            let block = ByteCount(u64::from(*block));
            return Err(
                MeterError::usage(format!("{block} is no block")).hint("take 1KiB to 256MiB")
            );
        }
        let length = ByteCount(self.length.most().max(u64::from(self.largest_block())));
        // A page more, because positions are aligned to pages.
        if self.each.0 < length.0 + PAGE {
            let each = self.each;
            let message = format!("files of {each} are too small for transfers of up to {length}");
            return Err(MeterError::usage(message).hint("make --size larger"));
        }
        if self.own_file && self.files < clients {
            let files = self.files;
            let message = format!("{files} files are too few for {clients} clients with their own");
            return Err(MeterError::usage(message));
        }
        Ok(())
    }

    /// The size of the largest block.
    pub fn largest_block(&self) -> u32 {
        self.blocks.iter().copied().max().unwrap_or(SMALLEST_BLOCK)
    }

    /// Whether any transfer writes.
    pub fn writes(&self) -> bool {
        self.drawn.as_ref().map_or(self.write_percent > 0, Drawn::writes)
    }
}

impl Length {
    /// The longest length, where it does not depend on the file.
    pub fn most(self) -> u64 {
        match self {
            Self::UpTo(most) => most,
            Self::Frames(bytes, most) => bytes * u64::from(most),
            Self::Whole => 0,
        }
    }
}

/// The smallest block, as in the published tool.
pub(super) const SMALLEST_BLOCK: u32 = 1024;

/// The largest block: it must fit in the memory of one operation.
const LARGEST_BLOCK: u32 = 256 << 20;

/// The page size, to which direct I/O is aligned.
pub(super) const PAGE: u64 = 4096;
