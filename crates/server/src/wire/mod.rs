//! The documented JSON: what `--json` prints, what the control socket carries, what `/titles`,
//! `/status`, `/sessions` and the admin API answer.
//!
//! Other programs rely on these names, so they do not follow the internal types: values are
//! converted field by field. Sizes are bytes, rates bits per second, times seconds with fractions
//! unless the name says otherwise, moments Unix seconds.

mod capacity;
mod convert;
mod decision;
mod status;
pub(crate) mod words;

pub use capacity::*;
pub use decision::*;
pub use status::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An open store (`info STORE`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreInfo {
    /// The store's uuid, made when it was formatted or given by `relabel`.
    pub uuid: String,
    /// The store's label, for people.
    pub label: String,
    /// `file`, `block` or `memory`.
    #[schemars(extend("enum" = ["file", "block", "memory"]))]
    pub kind: String,
    /// Bytes of the device or file that the store uses.
    pub size: u64,
    /// Bytes of a chunk, the allocation unit.
    pub chunk: u64,
    /// Bytes of the data region.
    pub data_bytes: u64,
    /// Free bytes of the data region.
    pub free_bytes: u64,
    /// Bytes of the longest run of free chunks.
    pub largest_free_bytes: u64,
    /// Number of titles.
    pub titles: u64,
    /// Whether the store is a file whose blocks are not all allocated.
    pub sparse: bool,
    /// Why its server writes nothing more to the store, until it is restarted; `null`: it is
    /// written to.
    pub write_failure: Option<String>,
    /// The titles that are being recorded, in the order in which they began.
    pub recordings: Vec<Recording>,
    /// The regular reading of all its titles by a server; `null` before the first.
    pub scrub: Option<Scrub>,
    /// The calibration of its device, if there is one.
    pub calibration: Option<Calibration>,
}

/// What a trim has done (`trim STORE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimReport {
    /// Bytes that were discarded.
    pub bytes: u64,
    /// Whether the store is a file that has no longer all of its space.
    pub sparse: bool,
}

/// The regular reading of all titles of a store (`serve --scrub`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scrub {
    /// When the present pass began or will begin, in Unix seconds.
    pub begun: u64,
    /// Bytes that it has read.
    pub bytes: u64,
    /// Bytes that it has still to read.
    pub bytes_left: u64,
    /// Pieces of damage that it has found.
    pub damage: u32,
    /// When the last complete pass ended, in Unix seconds; `null` before.
    pub last: Option<u64>,
    /// Pieces of damage that the last complete pass found.
    pub last_damage: Option<u32>,
}

/// A title that is being recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The title's name.
    pub title: String,
    /// When it began, in Unix seconds.
    pub since: u64,
    /// Bytes that a power cut would leave.
    pub bytes: u64,
}

/// The recordings that run on a disk (`/api/v1/disks/UUID/recordings`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordingList {
    /// The recordings with a title in the store, then the ones that wait for their input.
    pub recordings: Vec<Recording>,
}

/// Work that writes titles into a store, beside recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningWrite {
    /// `ingest`, `copy` (from another store or a bucket), or `repair`.
    pub kind: String,
    /// The title's name; `null` for a repair of the whole store.
    pub title: Option<String>,
    /// When it began, in Unix seconds.
    pub since: u64,
    /// Where the file that is to become the title waits for its user, in the mount of the store: it
    /// was closed in the folder `.ingest`, and has a hidden name or no bytes. `null`: it does not.
    #[serde(default)]
    pub waits_at: Option<String>,
}

/// The disks of a server (`/api/v1/disks`).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DiskList {
    /// The disks in the order in which the server was given them.
    pub disks: Vec<ServedDisk>,
}

/// A disk of a server (`/api/v1/disks/UUID`).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServedDisk {
    /// Path of its store.
    pub store: String,
    /// Whether it is lost.
    pub lost: bool,
    /// Whether it is drained.
    pub draining: bool,
    /// Sessions that are read from it.
    pub sessions: u64,
    /// The store on it, and its calibration.
    #[serde(flatten)]
    pub info: StoreInfo,
}

/// The drain of a disk (`/api/v1/disks/UUID/drain`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainReport {
    /// Path of its store.
    pub store: String,
    /// Whether it is drained: sessions leave it for copies on other disks, and new ones are read
    /// from it only where there is no other copy.
    pub draining: bool,
    /// Sessions that are still read from it.
    pub sessions: u64,
    /// The recordings that still run on it, those also that wait for their input. They go on until
    /// they are ended: a recording does not change its disk.
    pub recordings: Vec<Recording>,
    /// The other work that still writes titles to it, and goes on to its end: ingests, also of
    /// files of a mount that have not been closed, and copies.
    #[serde(default)]
    pub ingests: Vec<RunningWrite>,
    /// Titles without a copy on another disk that is there and not drained.
    pub titles_only_here: u64,
    /// The names of the first of these titles, at most 1,000.
    pub titles: Vec<String>,
}

/// The titles of a disk (`/api/v1/disks/UUID/titles`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TitleList {
    /// The titles, sorted by name.
    pub titles: Vec<ListedTitle>,
    /// The name behind which the list goes on (`after`); `null` at its end.
    pub next: Option<String>,
}

impl From<&store::TitlePage> for TitleList {
    fn from(page: &store::TitlePage) -> Self {
        let titles = page.titles.iter().map(ListedTitle::from).collect();
        Self { titles, next: page.next.clone() }
    }
}

/// A title that was made of an uploaded file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UploadedTitle {
    /// The new title.
    pub title: ListedTitle,
    /// Parts of the file that are not in the title, in words.
    pub left_out: Vec<String>,
    /// Further notes for people.
    pub notes: Vec<String>,
}

/// The uploads and downloads that are under way (`/api/v1/ingests`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningIngests {
    /// The ingests, the oldest first.
    pub ingests: Vec<RunningIngest>,
}

/// An upload or a download, or the ingest of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningIngest {
    /// The ingest's number.
    pub ingest: u64,
    /// The uuid of the store.
    pub disk: String,
    /// The title's name.
    pub title: String,
    /// The address that the file is downloaded from, without its query; none for an upload.
    pub address: Option<String>,
    /// The stage: `receiving` until all of the file is there, then that of the ingest.
    #[schemars(extend("enum" = words::stages()))]
    pub stage: String,
    /// Bytes done of this stage.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}

/// An ingest over the admin API with what came of it (`/api/v1/ingests/NUMBER`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IngestDetail {
    /// The ingest, with how far it was when it ended.
    #[serde(flatten)]
    pub ingest: RunningIngest,
    /// What came of it; none while it is under way.
    pub ended: Option<EndedIngest>,
}

/// What came of an ingest: the answer to whoever has asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndedIngest {
    /// The status of the answer: 201 where there is a title.
    pub status: u16,
    /// One stable word for what failed; none where there is a title.
    pub error: Option<String>,
    /// One sentence: what failed.
    pub message: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The file or device that a server has a store on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedFile {
    /// The store's path, as the server was given it.
    pub path: String,
    /// The kernel's identity of it, as text to be compared.
    pub file: String,
}

/// [`Title::kind`] of titles that can be played.
pub const MEDIA_KIND: &str = "media";

/// A title in a list (`ls`, `/titles`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTitle {
    /// The title's name, unique in its store.
    pub name: String,
    /// `media` or `file`.
    #[schemars(extend("enum" = ["media", "file"]))]
    pub kind: String,
    /// Play-out time in seconds; zero for files.
    pub duration: f64,
    /// Bytes of all tracks.
    pub bytes: u64,
    /// Mean rate of all tracks together; zero for files.
    pub bit_rate: u64,
    /// Number of tracks.
    pub tracks: usize,
    /// When it was ingested.
    pub created: u64,
    /// Digest of the title's content: titles of the same name and content are copies.
    pub content: String,
    /// The title is being recorded: `duration` is the time since the beginning, `bytes` what is
    /// durable. Only in a server's list, and absent there of all other titles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub growing: bool,
    /// Number of the server's stores that have a copy; only in a server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
    /// URL of the HLS playlist, relative to the server; only in a server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hls: Option<String>,
    /// URL of the DASH manifest, relative to the server; only in a server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dash: Option<String>,
    /// URL of the MP4 file, relative to the server; only in a server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mp4: Option<String>,
}

/// One title with its tracks (`info STORE TITLE`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TitleDetail {
    /// The title as in lists.
    #[serde(flatten)]
    pub title: ListedTitle,
    /// The tracks in the order of their numbers.
    pub track_list: Vec<ListedTrack>,
    /// The text tracks (subtitles and captions) in the order of their numbers.
    pub text_list: Vec<ListedText>,
    /// The thumbnails; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnails: Option<ListedThumbnails>,
    /// Bytes of the encoded index.
    pub index_bytes: u64,
}

/// One track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTrack {
    /// The track's number, as in URLs.
    pub number: usize,
    /// `video`, `audio` or `file`.
    #[schemars(extend("enum" = ["video", "audio", "file"]))]
    pub kind: String,
    /// The codec string of RFC 6381; empty for files.
    pub codec: String,
    /// The language in ISO 639-2.
    pub language: String,
    /// The title of the track, for menus; empty if it has none.
    pub title: String,
    /// What sound is for, beside what every viewer hears: any of `visual_impaired`,
    /// `hearing_impaired`, `comment` and `dub`.
    pub purposes: Vec<String>,
    /// Width in pixels; zero for audio.
    pub width: u32,
    /// Height in pixels; zero for audio.
    pub height: u32,
    /// Samples per second; zero for video.
    pub sample_rate: u32,
    /// Number of audio channels; zero for video.
    pub channels: u16,
    /// Number of logical data units: frames or packets.
    pub ldus: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Mean rate; zero for files.
    pub bit_rate: u64,
    /// The extents of the data.
    pub extents: Vec<Extent>,
}

/// One text track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedText {
    /// The text track's number, as in URLs: `text/0.vtt`.
    pub number: usize,
    /// The language in ISO 639-2.
    pub language: String,
    /// The title of the track, for menus; empty if it has none.
    pub title: String,
    /// Whether players show it by default.
    pub default: bool,
    /// Whether it has only what every viewer needs.
    pub forced: bool,
    /// Whether it describes sounds, too.
    pub hearing_impaired: bool,
    /// Number of cues.
    pub cues: u64,
}

/// The thumbnails of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedThumbnails {
    /// Number of thumbnails.
    pub count: u32,
    /// Seconds from one to the next.
    pub interval: u64,
    /// Width of one in pixels.
    pub width: u32,
    /// Height of one in pixels.
    pub height: u32,
    /// Bytes of all images.
    pub bytes: u64,
}

/// A run of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// The first chunk, counted from the start of the device.
    pub start: u64,
    /// Number of chunks.
    pub chunks: u64,
}

/// The results of `ingest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngestReport {
    /// One result for each file, in their order.
    pub files: Vec<IngestedFile>,
}

/// The result of ingesting one file: `title` or `error`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngestedFile {
    /// The file's path as given.
    pub file: PathBuf,
    /// The new title.
    pub title: Option<ListedTitle>,
    /// Parts of the file that are not in the title, in words.
    pub left_out: Vec<String>,
    /// Further notes for people.
    pub notes: Vec<String>,
    /// Why the file was not ingested.
    pub error: Option<Failure>,
}

/// The result of a repair of one store (`check --repair`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepairReport {
    /// Damage that is repaired.
    pub repaired: Vec<Finding>,
    /// Damage that no copy could repair.
    pub left: Vec<Finding>,
    /// The titles that were missing and are copied.
    pub copied: Vec<ListedTitle>,
    /// The titles that are still missing.
    pub not_copied: Vec<NotCopied>,
    /// Number of checked titles.
    pub titles: u64,
    /// Bytes of the store that were read.
    pub bytes_read: u64,
}

/// A title that a store does not have, and of which a repair has made no copy there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotCopied {
    /// Name of the title.
    pub title: String,
    /// Why not, in words.
    pub text: String,
}

/// The result of a recording (`record`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingReport {
    /// The new title.
    pub title: ListedTitle,
    /// `complete`: the input ended, or the recording had the wanted length; `stopped`: it was ended
    /// by its user, or by an operator; `failed`: by an error.
    pub end: String,
    /// `operator`, if one has ended it over the admin API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Parts of the input that are not in the title, in words.
    pub left_out: Vec<String>,
    /// Further notes for people.
    pub notes: Vec<String>,
    /// Why the recording is not longer, if it failed.
    pub error: Option<Failure>,
}

/// The result of a recording into a folder of parts (`record` with `--keep`, `--part` or
/// `--reconnect`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesReport {
    /// The folder.
    pub folder: String,
    /// Number of parts that were recorded.
    pub parts: u64,
    /// Number of parts that were removed, of earlier recordings of the folder also.
    pub removed: u64,
    /// Bytes of all parts that were recorded.
    pub bytes: u64,
    /// Play-out time of all parts that were recorded, in seconds.
    pub duration: f64,
    /// `complete`, `stopped` or `failed`, as of a recording of one title.
    pub end: String,
    /// `operator`, if one has ended it over the admin API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Parts of the input that are not in the titles, in words.
    pub left_out: Vec<String>,
    /// Further notes for people.
    pub notes: Vec<String>,
    /// Why the recording is not longer, if it failed.
    pub error: Option<Failure>,
}

/// What happens while a folder of parts is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RecordingEvent {
    /// A part has ended.
    Part {
        /// The title that it is.
        title: Box<ListedTitle>,
    },
    /// A part was removed.
    PartRemoved {
        /// The title's name.
        title: String,
        /// `expired`, or `full`: for want of room, earlier than wanted.
        why: String,
    },
    /// The store has no room for as much as is to be kept.
    KeptShort {
        /// Seconds that are kept.
        kept: f64,
        /// Seconds that are to be kept.
        wanted: f64,
    },
    /// Streams of the input are not in the parts that are recorded from now on.
    StreamsLeftOut {
        /// What they are, in words.
        streams: Vec<String>,
    },
    /// The input was lost, has changed its form, or could not be opened.
    InputLost {
        /// The reason.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Seconds until it is opened again.
        wait: f64,
    },
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One stable word.
    pub code: String,
    /// One sentence: what failed.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    /// A failure of this word, with what to do about it.
    pub fn new(code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: Some(hint.to_owned()) }
    }

    /// A recording that is not there.
    pub fn no_recording(title: &str) -> Self {
        let message = format!("'{title}' is not being recorded on this disk");
        Self::new("no-recording", message, "list the recordings: it may have ended")
    }

    /// A session that is not there.
    pub fn no_session(session: u64) -> Self {
        let message = format!("the server has no session {session}");
        Self::new("no-session", message, "list the sessions: it may have ended")
    }
}

/// A removed title (`rm`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedTitle {
    /// The removed title.
    pub title: ListedTitle,
    /// Whether sessions still play it; its space is freed when the last has ended.
    pub in_use: bool,
}

/// A title that was written into a bucket (`bucket push`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedTitle {
    /// The title's name.
    pub title: String,
    /// Bytes of all tracks.
    pub bytes: u64,
    /// Number of objects, besides the manifest.
    pub parts: u64,
    /// Number of objects that were written; the others were there.
    pub written: u64,
    /// Whether the bucket keeps two clients from writing one title at the same time; absent where
    /// the title was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_conditions: Option<bool>,
    /// Whether the content of the objects that were there was read and verified, as it was asked
    /// for; absent in the reply of a server that knows no such request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// An exported title (`export`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// The title's name.
    pub title: String,
    /// The path of the new file.
    pub out: PathBuf,
    /// Bytes of the new file.
    pub bytes: u64,
    /// The paths of the WebVTT files of its text tracks, beside it.
    pub texts: Vec<PathBuf>,
    /// Notes for people.
    pub notes: Vec<String>,
}

/// The result of `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Whether there is nothing to repair.
    pub clean: bool,
    /// Damage that this check found.
    pub findings: Vec<Finding>,
    /// Damage that was repaired from a good copy when the store was opened.
    pub healed: Vec<Finding>,
    /// Number of titles checked.
    pub titles: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `superblock`, `journal`, `checkpoint`, `extents`, `index` or `data`.
    pub kind: String,
    /// The damaged title, if it is a title's damage.
    pub title: Option<String>,
    /// The damage and its place, in words.
    pub text: String,
}

/// A device's calibration (`calibrate`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Seconds of the slot in which the guarantees count reads.
    pub slot: f64,
    /// The guarantees by read size, smallest first.
    pub guarantees: Vec<ReadGuarantee>,
    /// The queue depth that completed the most reads.
    pub queue_depth: u32,
    /// Fitted rate of an infinitely long read.
    pub r0: u64,
    /// Fitted seconds of a read before its first byte.
    pub t0: f64,
    /// Sequential rate by offset on the device.
    pub zones: Vec<Zone>,
    /// Disk time that writes take from concurrent reads; `null` where it was not measured.
    pub writing: Option<WriteCost>,
    /// The actuator and the platters; `null` where the device shows no seek times.
    pub actuator: Option<Actuator>,
    /// The method of the measurement, in words.
    pub method: String,
    /// When it was measured.
    pub measured_at: u64,
    /// The part of the device that was measured; `null` where the record was computed.
    pub measured: Option<MeasuredPart>,
    /// Whether too little of the device was written for guarantees that are kept.
    #[serde(default)]
    pub provisional: bool,
    /// Delays that were measured once, did not recur, and are not part of the guarantees.
    pub outliers: Vec<Outlier>,
}

/// The part of a device that a calibration could read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredPart {
    /// Bytes that were written before.
    pub bytes: u64,
    /// Bytes of the whole area.
    pub whole: u64,
}

/// A disk's seek and rotation times as fitted to timed reads, never shorter than measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Actuator {
    /// Bytes of the part of the disk over which seeks were measured.
    pub capacity: u64,
    /// Seconds of one revolution.
    pub revolution: f64,
    /// Seconds of the shortest seek, with the whole overhead of a command.
    pub shortest_seek: f64,
    /// Factor in seconds of the square root of the part of the stroke that a seek crosses.
    pub seek_root: f64,
    /// The part of the stroke from which the seek time grows linearly.
    pub knee: f64,
    /// Seconds of a seek over the whole stroke.
    pub full_seek: f64,
    /// Longest overhead in seconds, beside its transfer, of a read that begins where the previous
    /// one ended; `null` where it was not measured.
    pub following: Option<f64>,
}

/// Disk time that writes take from concurrent reads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteCost {
    /// Bytes of each write.
    pub write_size: u64,
    /// Mean seconds of disk time that one write takes from the reads.
    pub mean: f64,
    /// Seconds of disk time that one write takes in the slowest round.
    pub slowest: f64,
}

/// The guarantee for reads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadGuarantee {
    /// Bytes of each read.
    pub read_size: u64,
    /// Reads completed in every slot, wherever they are on the disk.
    pub min_read: u32,
    /// Mean number of reads completed in a slot.
    pub mean_read: f64,
    /// Seconds of the longest read measured.
    pub longest_read: f64,
    /// Fewest reads in any 2, 4, 8, 16, 32 and 64 consecutive slots; 0 where not measured.
    pub longer: [u32; disk::LONGER],
    /// A bound for `n` reads without a pause: `once + n × each` seconds.
    pub pace: ReadPace,
}

/// A bound for reads without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadPace {
    /// Seconds of the longest delay, once.
    pub once: f64,
    /// Seconds of each read in the long run.
    pub each: f64,
}

/// A delay that did not recur when it was measured again; it is not part of the guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Bytes of the reads that were delayed.
    pub read_size: u64,
    /// Seconds from the beginning of the calibration.
    pub at: f64,
    /// Seconds of the delay.
    pub delay: f64,
}

/// Sequential rate from an offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    /// The offset in bytes where the zone starts.
    pub offset: u64,
    /// The sequential rate in the zone.
    pub bit_rate: u64,
}

/// The stage of an upload or a download before those of its ingest.
pub(crate) const RECEIVING: &str = "receiving";

/// Progress of a long request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The stage of the work.
    pub stage: String,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
    /// What has happened, which is reported as it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<RecordingEvent>,
}
