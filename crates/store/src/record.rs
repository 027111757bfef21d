//! The records of a store and of its titles.

use device::{DeviceKind, FileIdentity};
use media::TitleKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;
use units::{ByteCount, Extent};
use uuid::Uuid;

/// The identifier of a title in one store, where it is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TitleId(pub u64);

/// A title in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleRecord {
    /// The identifier, which renaming does not change.
    pub id: TitleId,
    /// The name, unique in the store.
    pub name: String,
    /// Media or file.
    pub kind: TitleKind,
    /// The Unix time in seconds at which it was sealed.
    pub created: u64,
    /// The length of all tracks' data in bytes.
    pub bytes: u64,
    /// The play-out time; zero for files.
    pub duration: Duration,
    /// The tracks in the order of the title's index.
    pub tracks: Vec<TrackRecord>,
    /// The extents of the index region.
    pub index: Vec<Extent>,
    /// The length of the encoded index.
    pub index_bytes: u64,
    /// CRC-32C of the encoded index.
    pub index_checksum: u32,
}

impl TitleRecord {
    /// All extents: the tracks' and the index region's.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.tracks.iter().flat_map(|track| &track.extents).chain(&self.index).copied()
    }

    /// The identity of its content, to be compared with other titles.
    pub fn content(&self) -> Content {
        Content {
            file: self.kind == TitleKind::File,
            duration: self.duration,
            tracks: self.tracks.iter().map(|track| track.bytes).collect(),
            index_bytes: self.index_bytes,
            index_checksum: self.index_checksum,
        }
    }

    /// The number of chunks that it occupies.
    pub fn chunks(&self) -> u64 {
        self.extents().map(|extent| extent.chunks).sum()
    }
}

/// Which titles of a store are listed. The default: all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleSelection {
    /// The titles in this folder and in folders inside.
    pub folder: Option<String>,
    /// The titles behind this name, which no title needs to have.
    pub after: Option<String>,
    /// The titles whose names have this part, whatever the case of its letters.
    pub search: Option<String>,
    /// Number of titles at most.
    pub limit: Option<NonZeroU32>,
}

impl TitleSelection {
    /// Names that a page with a limit is searched in, at most: a thread that serves viewers makes
    /// it. The next page goes on behind them.
    pub const SEARCHED: usize = 10_000;

    /// What the names begin with: the folder with one `/` behind it, as which `FOLDER/` is taken,
    /// too.
    pub(crate) fn inside(&self) -> String {
        let folder = self.folder.as_deref().map(|folder| folder.trim_end_matches('/'));
        folder.map_or_else(String::new, |folder| format!("{folder}/"))
    }

    /// Whether a title of this name is among them, whatever their number.
    pub fn has(&self, name: &str) -> bool {
        name.starts_with(&self.inside())
            && self.after.as_ref().is_none_or(|after| name > after.as_str())
            && self.searched()(name)
    }

    /// Whether a name has the part that is searched for.
    pub(crate) fn searched(&self) -> impl Fn(&str) -> bool {
        let part = self.search.as_ref().map(|part| part.to_lowercase());
        move |name| part.as_ref().is_none_or(|part| name.to_lowercase().contains(part))
    }
}

/// A part of the list of titles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TitlePage {
    /// The titles in the order of their names.
    pub titles: Vec<TitleRecord>,
    /// The name behind which the next part begins; `None` if this is the last one. All names up to
    /// it were looked at.
    pub next: Option<String>,
}

/// The identity of a title's content, independent of name and position: titles with equal values
/// are copies.
///
/// Their indexes are equal byte for byte (CRC-32C), and an index has the checksum of every 64 KiB
/// of every track, so that data read from one copy can be verified by the index of the other.
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

/// A position in the reading of all titles: everything before it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScrubPosition {
    /// The title, or the next one that there is.
    pub title: TitleId,
    /// The track.
    pub track: u16,
    /// The offset in the track's data.
    pub offset: u64,
}

impl ScrubPosition {
    /// The position before all titles.
    pub const START: Self = Self::before(TitleId(0));

    /// The position before a title's label and index.
    pub const fn before(title: TitleId) -> Self {
        Self { title, track: 0, offset: 0 }
    }
}

/// The state of the regular reading of all titles, as the store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubState {
    /// When the present pass began or will begin, in Unix seconds.
    pub begun: u64,
    /// What the present pass reads next.
    pub next: ScrubPosition,
    /// Bytes that the present pass has read.
    pub bytes: u64,
    /// Pieces of damage that the present pass has found.
    pub found: u32,
    /// The last complete pass.
    pub last: Option<ScrubResult>,
}

impl ScrubState {
    /// A pass that begins at this time, in Unix seconds.
    pub const fn beginning(begun: u64) -> Self {
        Self { begun, next: ScrubPosition::START, bytes: 0, found: 0, last: None }
    }
}

/// The result of a complete reading of all titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubResult {
    /// When it was complete, in Unix seconds.
    pub finished: u64,
    /// Pieces of damage that it found.
    pub found: u32,
}

/// A title that is being recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningRecording {
    /// The identifier that the title will have.
    pub id: TitleId,
    /// The title's name.
    pub title: String,
    /// The Unix time in seconds at which the recording began.
    pub since: u64,
    /// The bytes of all tracks that a power cut would leave.
    pub bytes: u64,
    /// The number of its tracks.
    pub tracks: usize,
}

/// Another store of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// The identity of the store.
    pub uuid: Uuid,
    /// Where it was when all were there; empty where that cannot be kept.
    pub path: String,
    /// Since when it has not been there, in Unix seconds: it has no title that is younger. Zero: it
    /// was there.
    pub away_since: u64,
}

/// A removal or a renaming of a title of which a sibling has a copy as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedChange {
    /// The identity of the sibling.
    pub store: Uuid,
    /// When the change was made, in Unix seconds.
    pub at: u64,
    /// The title's content, as [`Content`] shows it.
    pub content: String,
    /// The name that the copy has.
    pub name: String,
    /// The name that it is to have; `None`: it is to be removed.
    pub new_name: Option<String>,
}

impl MissedChange {
    /// Whether a title is the copy that is to be changed.
    pub fn is_of(&self, title: &TitleRecord) -> bool {
        self.name == title.name
            && title.created <= self.at
            && self.content == title.content().to_string()
    }
}

impl Sibling {
    /// Whether a title is younger than the absence of the store, which has no copy of it then.
    pub(crate) fn has_none_as_young(&self, title: &TitleRecord) -> bool {
        self.away_since != 0 && title.created > self.away_since
    }
}

/// One track of a title with the extents of its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackRecord {
    /// The length of the data in bytes.
    pub bytes: u64,
    /// The extents in order; the data fills all but the last chunk of the last one.
    pub extents: Vec<Extent>,
}

/// The identity of a store, as in its superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// The unique identifier, made at format or by [`crate::Store::relabel`].
    pub uuid: Uuid,
    /// The name that the user gave the store.
    pub label: String,
    /// The bytes of the device or file that the store uses.
    pub size: ByteCount,
    /// The allocation unit.
    pub chunk: ByteCount,
    /// The file or block device that it is on: another one for a copy of the store.
    pub file: FileIdentity,
}

/// The state of an open store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreInfo {
    /// The unique identifier, made at format or by [`crate::Store::relabel`].
    pub uuid: Uuid,
    /// The name that the user gave the store.
    pub label: String,
    /// The bytes of the device or file that the store uses.
    pub size: ByteCount,
    /// The allocation unit.
    pub chunk: ByteCount,
    /// Number of chunks that are available to titles.
    pub data_chunks: u64,
    /// Number of chunks that no title, writer or reader uses.
    pub free_chunks: u64,
    /// The longest run of free chunks.
    pub largest_free: u64,
    /// Number of titles in the catalogue.
    pub titles: u64,
    /// The kind of the device beneath the store.
    pub kind: DeviceKind,
    /// Whether it is a regular file whose blocks are not all allocated: writes may fill the file
    /// system, and extents are contiguous in the file only.
    pub sparse: bool,
}

/// The options of [`crate::Store::format`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// The length to which the file is created or changed; `None` keeps the length.
    pub size: Option<ByteCount>,
    /// The allocation unit: a power of two from 64 KiB to 64 MiB.
    pub chunk: ByteCount,
    /// The name of the store, of which at most 64 bytes are kept.
    pub label: String,
    /// Overwrite existing content.
    pub destroy: bool,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self { size: None, chunk: ByteCount::MIB, label: String::new(), destroy: false }
    }
}
