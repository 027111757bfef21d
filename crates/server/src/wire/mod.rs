//! The documented JSON of everything that reports: what `--json` prints, what the control socket
//! carries, what `/titles` and `/status` answer.
//!
//! Names here are a promise to other people's programs; they are converted by hand from the types
//! inside, so that those may change. Sizes are bytes, rates bits per second, times seconds with
//! fractions unless the name says otherwise, moments Unix seconds.

mod convert;
mod status;

pub use convert::{from_hex, to_hex};
pub use status::*;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An open store (`info STORE`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// Made at format.
    pub uuid: String,
    /// For people.
    pub label: String,
    /// `file`, `block` or `memory`.
    pub kind: String,
    /// Bytes of the device or file that the store takes.
    pub size: u64,
    /// The allocation unit.
    pub chunk: u64,
    /// Bytes that titles can have.
    pub data_bytes: u64,
    /// Bytes that nobody has.
    pub free_bytes: u64,
    /// The longest contiguous run of those.
    pub largest_free_bytes: u64,
    /// Titles in the catalogue.
    pub titles: u64,
    /// A file whose blocks are not all allocated.
    pub sparse: bool,
    /// What the store knows of its device's speed.
    pub calibration: Option<Calibration>,
}

/// A title in a list (`ls`, `/titles`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Title {
    /// Unique in its store.
    pub name: String,
    /// `media` or `file`.
    pub kind: String,
    /// Play-out time.
    pub duration: f64,
    /// Bytes of all tracks.
    pub bytes: u64,
    /// Mean of all tracks together; zero for files.
    pub bit_rate: u64,
    /// How many tracks.
    pub tracks: usize,
    /// When it was taken in.
    pub created: u64,
    /// Titles in which this is the same hold the same: under the same name they are copies.
    #[serde(default)]
    pub content: String,
    /// In how many stores of a server it is; absent in lists made without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// Where to play it, relative to the server; absent in lists made without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hls: Option<String>,
    /// See `hls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mp4: Option<String>,
}

/// One title with its tracks (`info STORE TITLE`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TitleDetail {
    /// As in lists.
    #[serde(flatten)]
    pub title: Title,
    /// In the order of their numbers.
    pub track_list: Vec<Track>,
    /// Bytes of the encoded index.
    pub index_bytes: u64,
}

/// One track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// As in URLs.
    pub number: usize,
    /// `video`, `audio` or `file`.
    pub kind: String,
    /// RFC 6381; empty for files.
    pub codec: String,
    /// ISO 639-2.
    pub language: String,
    /// Pixels; zero for sound.
    pub width: u32,
    /// See `width`.
    pub height: u32,
    /// Samples per second; zero for pictures.
    pub sample_rate: u32,
    /// Zero for pictures.
    pub channels: u16,
    /// Frames or packets.
    pub ldus: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Mean; zero for files.
    pub bit_rate: u64,
    /// Where the data lies.
    pub extents: Vec<Extent>,
}

/// A run of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The first chunk, counted from the start of the device.
    pub start: u64,
    /// How many.
    pub chunks: u64,
}

/// What became of the files given to `ingest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngestReport {
    /// One for each file, in their order.
    pub files: Vec<IngestedFile>,
}

/// What became of one file: `title` or `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngestedFile {
    /// As given.
    pub file: PathBuf,
    /// The title it became.
    pub title: Option<Title>,
    /// What of the file is not in the title.
    pub left_out: Vec<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
    /// Why it was not taken in.
    pub error: Option<Failure>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One stable word.
    pub code: String,
    /// One sentence: what, and what to do next.
    pub message: String,
}

/// A title given back (`export`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// The title's name.
    pub title: String,
    /// The file made.
    pub out: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// What a check found (`check`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Whether there is nothing to repair.
    pub clean: bool,
    /// Damage found now.
    pub findings: Vec<Finding>,
    /// Damage put right from a good copy when the store was opened.
    pub healed: Vec<Finding>,
    /// Titles looked at.
    pub titles: u64,
    /// Bytes read.
    pub bytes_read: u64,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `superblock`, `journal`, `checkpoint`, `extents`, `index` or `data`.
    pub kind: String,
    /// Whose, if a title's.
    pub title: Option<String>,
    /// What, and where.
    pub text: String,
}

/// What a device guarantees (`calibrate`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The slot that the guarantees speak of.
    pub slot: f64,
    /// Smallest read first.
    pub guarantees: Vec<ReadGuarantee>,
    /// Reads in the device at once that held the most.
    pub queue_depth: u32,
    /// Fitted rate of an endless read.
    pub r0: u64,
    /// Fitted cost of a read before its first byte.
    pub t0: f64,
    /// Sequential rate by place.
    pub zones: Vec<Zone>,
    /// What writes take from reads beside them; `null` where it was not measured.
    #[serde(default)]
    pub writing: Option<WriteCost>,
    /// The arm and its platters; `null` where none was seen.
    #[serde(default)]
    pub arm: Option<Arm>,
    /// How it was measured.
    pub method: String,
    /// When.
    pub measured_at: u64,
}

/// A disk's arm as fitted to timed reads, never quicker than it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Bytes over which it moved.
    pub capacity: u64,
    /// Seconds of one turn of the platters.
    pub revolution: f64,
    /// Seconds of the shortest movement, with everything that a command costs.
    pub shortest_seek: f64,
    /// What the root of the crossed part of the stroke is multiplied by, in seconds.
    pub seek_root: f64,
    /// The part of the stroke from which on the time grows evenly.
    pub knee: f64,
    /// Seconds of the longest movement.
    pub full_seek: f64,
    /// Seconds that a read that goes on where the one before ended takes at most beside its transfer;
    /// `null` where it was not measured.
    #[serde(default)]
    pub following: Option<f64>,
}

/// What writes take from the reads that go on beside them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteCost {
    /// Bytes of each write.
    pub write_size: u64,
    /// Seconds of disk time that one takes from the reads: mean.
    pub mean: f64,
    /// In the worst round measured.
    pub slowest: f64,
}

/// The guarantee for reads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadGuarantee {
    /// Bytes of each read.
    pub read_size: u64,
    /// Reads completed in any slot under the worst placement.
    pub min_read: u32,
    /// What the disk usually does.
    pub mean_read: f64,
    /// The longest single read seen.
    pub longest_read: f64,
}

/// Sequential rate from a place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Where it starts.
    pub offset: u64,
    /// Rate there.
    pub bit_rate: u64,
}

/// How far a long piece of work has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub stage: String,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}
