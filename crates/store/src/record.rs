//! What the catalogue knows of a store and of its titles.

use device::DeviceKind;
use media::TitleKind;
use std::fmt;
use std::time::Duration;
use units::{ByteCount, Extent};
use uuid::Uuid;

/// A title of one store; never used twice there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TitleId(pub u64);

/// A title as the catalogue has it: the inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleRecord {
    /// Stays the same when the title is renamed.
    pub id: TitleId,
    /// Unique in the store.
    pub name: String,
    /// Media or file.
    pub kind: TitleKind,
    /// Unix time in seconds of the moment it was sealed.
    pub created: u64,
    /// Bytes of all tracks' data.
    pub bytes: u64,
    /// Play-out time; zero for files.
    pub duration: Duration,
    /// In the order of the title's index.
    pub tracks: Vec<TrackRecord>,
    /// Where the index region lies.
    pub index: Vec<Extent>,
    /// Bytes of the encoded index.
    pub index_bytes: u64,
    /// CRC-32C of the encoded index.
    pub index_checksum: u32,
}

impl TitleRecord {
    /// All extents: the tracks' and the index region's.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.tracks.iter().flat_map(|track| &track.extents).chain(&self.index).copied()
    }

    /// What it holds, to be compared with others.
    pub fn content(&self) -> Content {
        Content {
            file: self.kind == TitleKind::File,
            duration: self.duration,
            tracks: self.tracks.iter().map(|track| track.bytes).collect(),
            index_bytes: self.index_bytes,
            index_checksum: self.index_checksum,
        }
    }

    /// Chunks that it occupies.
    pub fn chunks(&self) -> u64 {
        self.extents().map(|extent| extent.chunks).sum()
    }
}

/// What a title holds, whatever its name and its place: two that agree in this are copies.
///
/// Their indexes are the same byte for byte (CRC-32C), and an index has the checksum of every 64
/// KiB of every track, so that what is read of one copy is verified by the index of the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    file: bool,
    duration: Duration,
    tracks: Vec<u64>,
    index_bytes: u64,
    index_checksum: u32,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.tracks.iter().sum();
        let (index, checksum) = (self.index_bytes, self.index_checksum);
        write!(f, "{:x}-{bytes:x}-{index:x}-{checksum:08x}", self.duration.as_nanos())
    }
}

/// One track of a title: where its data lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackRecord {
    /// Bytes of data.
    pub bytes: u64,
    /// In order; the data fills all but the last chunk of the last one.
    pub extents: Vec<Extent>,
}

/// What a superblock alone tells of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Made at format.
    pub uuid: Uuid,
    /// For people.
    pub label: String,
    /// Bytes of the device or file that the store takes.
    pub size: ByteCount,
    /// The allocation unit.
    pub chunk: ByteCount,
}

/// What an open store tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    /// Made at format.
    pub uuid: Uuid,
    /// For people.
    pub label: String,
    /// Bytes of the device or file that the store takes.
    pub size: ByteCount,
    /// The allocation unit.
    pub chunk: ByteCount,
    /// Chunks that titles can have.
    pub data_chunks: u64,
    /// Chunks that no title, writer or reader has.
    pub free_chunks: u64,
    /// The longest run of free chunks.
    pub largest_free: u64,
    /// Titles in the catalogue.
    pub titles: u64,
    /// What it lies on.
    pub kind: DeviceKind,
    /// A regular file whose blocks are not all allocated: writes may find the file system full,
    /// and extents are contiguous in the file only.
    pub sparse: bool,
}

/// How [`crate::Store::format`] makes a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// Creates the file so long, or changes its length; `None`: as long as it is.
    pub size: Option<ByteCount>,
    /// The allocation unit: a power of two from 64 KiB to 64 MiB.
    pub chunk: ByteCount,
    /// For people; at most 64 bytes are kept.
    pub label: String,
    /// Overwrite what is there.
    pub destroy: bool,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self { size: None, chunk: ByteCount::MIB, label: String::new(), destroy: false }
    }
}
