//! The documented JSON of everything that reports: what `--json` prints, what the control socket
//! carries, what `/titles` and `/status` answer.
//!
//! Names here are a promise to other people's programs; they are converted by hand from the types
//! inside, so that those may change. Sizes are bytes, rates bits per second, times seconds with
//! fractions unless the name says otherwise, moments Unix seconds.

use media::{TitleIndex, TitleKind, TrackKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount};

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
    /// How it was measured.
    pub method: String,
    /// When.
    pub measured_at: u64,
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

/// A server at one moment (`/status`, `status`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Since its start.
    pub uptime: f64,
    /// Whether it lets nobody in because it is about to stop.
    pub stopping: bool,
    /// The admission policy.
    pub policy: String,
    /// The scheduling period.
    pub slot: f64,
    /// How sockets are driven.
    pub network: String,
    /// Sessions admitted and not ended.
    pub sessions: u64,
    /// Of those, holding a reservation.
    pub active: u64,
    /// Since the start.
    pub admitted: u64,
    /// Since the start, by resource.
    pub refused: Refused,
    /// Pieces late for admitted streams.
    pub glitches: u64,
    /// Pieces on time.
    pub on_time: u64,
    /// The worst lateness of an ended session.
    pub worst_lateness: f64,
    /// Bytes of read buffers in use.
    pub buffers_used: u64,
    /// Bytes of read buffers there are.
    pub buffers_total: u64,
    /// Pieces found in memory when their turn to be read came.
    pub cache_hits: u64,
    /// Open connections.
    pub connections: u64,
    /// Bytes sent to viewers.
    pub sent_bytes: u64,
    /// The disks.
    pub disks: Vec<DiskStatus>,
    /// Titles being watched.
    pub watched: Vec<Watched>,
}

/// Refusals by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Reads per slot.
    pub disk: u64,
    /// Buffers.
    pub memory: u64,
    /// Bits per second.
    pub network: u64,
}

/// One disk of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// The store on it.
    pub store: String,
    /// Its uuid.
    pub uuid: String,
    /// How its reads are made.
    pub method: String,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Guaranteed reads per slot now.
    pub min_read: u32,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads failed or damaged.
    pub failures: u64,
    /// Reads in the device.
    pub in_flight: u32,
    /// The smallest slack of the admitted schedule ahead, in reads.
    pub least_slack: u64,
    /// How well a disk slowed down (`--as-disk`, `--throttle`) keeps the times that it should;
    /// `null` for a disk as it is.
    #[serde(default)]
    pub slowed: Option<Slowed>,
    /// The last slots, oldest first.
    pub slots: Vec<SlotUse>,
}

/// How late a slowed disk hands out what it reads, in seconds after the moment that its model says:
/// what of the server's lateness is not the model's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowed {
    /// Requests handed out.
    pub requests: u64,
    /// Half of them were at most so late.
    pub late_median: f64,
    /// 99 of 100.
    pub late_p99: f64,
    /// The worst.
    pub late_longest: f64,
}

/// One slot of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotUse {
    /// Which, counted from the server's start.
    pub slot: u64,
    /// Reads completed in it.
    pub reads: u32,
    /// Guaranteed then.
    pub min_read: u32,
    /// Sessions holding a reservation then.
    pub active: u64,
}

/// Viewers of one title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its name.
    pub title: String,
    /// Sessions.
    pub sessions: u64,
}

impl StoreInfo {
    /// A store and what it knows of its device.
    pub fn new(info: &store::StoreInfo, calibration: Option<&disk::Calibration>) -> Self {
        let bytes = |chunks: u64| chunks * info.chunk.0;
        Self {
            uuid: info.uuid.to_string(),
            label: info.label.clone(),
            kind: match info.kind {
                device::DeviceKind::File => "file",
                device::DeviceKind::Block => "block",
                device::DeviceKind::Memory => "memory",
            }
            .to_owned(),
            size: info.size.0,
            chunk: info.chunk.0,
            data_bytes: bytes(info.data_chunks),
            free_bytes: bytes(info.free_chunks),
            largest_free_bytes: bytes(info.largest_free),
            titles: info.titles,
            sparse: info.sparse,
            calibration: calibration.map(Calibration::from),
        }
    }
}

impl From<&store::TitleRecord> for Title {
    fn from(record: &store::TitleRecord) -> Self {
        Self {
            name: record.name.clone(),
            kind: kind_word(record.kind).to_owned(),
            duration: record.duration.as_secs_f64(),
            bytes: record.bytes,
            bit_rate: BitRate::of(ByteCount(record.bytes), record.duration).0,
            tracks: record.tracks.len(),
            created: record.created,
            hls: None,
            mp4: None,
        }
    }
}

impl TitleDetail {
    /// A title with what its index says.
    pub fn new(record: &store::TitleRecord, index: &TitleIndex) -> Self {
        let tracks = record.tracks.iter().zip(&index.tracks).enumerate();
        let track_list = tracks.map(|(number, (place, track))| {
            let description = &track.description;
            Track {
                number,
                kind: match description.kind {
                    TrackKind::Video => "video",
                    TrackKind::Audio => "audio",
                    TrackKind::File => "file",
                }
                .to_owned(),
                codec: description.codec.clone(),
                language: description.language.clone(),
                width: description.width,
                height: description.height,
                sample_rate: description.sample_rate,
                channels: description.channels,
                ldus: track.ldus.len() as u64,
                bytes: track.data_len,
                bit_rate: BitRate::of(ByteCount(track.data_len), record.duration).0,
                extents: place
                    .extents
                    .iter()
                    .map(|extent| Extent { start: extent.start.0, chunks: extent.chunks })
                    .collect(),
            }
        });
        Self {
            title: Title::from(record),
            track_list: track_list.collect(),
            index_bytes: record.index_bytes,
        }
    }
}

impl From<&store::FileOutcome> for IngestedFile {
    fn from(outcome: &store::FileOutcome) -> Self {
        let file = outcome.file.clone();
        match &outcome.result {
            Ok(report) => Self {
                file,
                title: Some(Title::from(&report.title)),
                left_out: report.left_out.clone(),
                notes: report.notes.clone(),
                error: None,
            },
            Err(error) => Self {
                file,
                title: None,
                left_out: Vec::new(),
                notes: Vec::new(),
                error: Some(Failure::from(error)),
            },
        }
    }
}

impl From<&[store::FileOutcome]> for IngestReport {
    fn from(outcomes: &[store::FileOutcome]) -> Self {
        Self { files: outcomes.iter().map(IngestedFile::from).collect() }
    }
}

impl From<&store::StoreError> for Failure {
    fn from(error: &store::StoreError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string() }
    }
}

impl From<&store::ExportReport> for ExportReport {
    fn from(report: &store::ExportReport) -> Self {
        Self {
            title: report.title.clone(),
            out: report.out.clone(),
            bytes: report.bytes,
            notes: report.notes.clone(),
        }
    }
}

impl From<&store::CheckReport> for CheckReport {
    fn from(report: &store::CheckReport) -> Self {
        let all = |findings: &[store::Finding]| findings.iter().map(Finding::from).collect();
        Self {
            clean: report.is_clean(),
            findings: all(&report.findings),
            healed: all(&report.healed),
            titles: report.titles,
            bytes_read: report.bytes_read,
        }
    }
}

impl From<&store::Finding> for Finding {
    fn from(finding: &store::Finding) -> Self {
        use store::FindingKind as Kind;
        let kind = match finding.kind {
            Kind::Superblock => "superblock",
            Kind::Journal => "journal",
            Kind::Checkpoint => "checkpoint",
            Kind::Extents => "extents",
            Kind::Index => "index",
            Kind::Data => "data",
        };
        Self { kind: kind.to_owned(), title: finding.title.clone(), text: finding.text.clone() }
    }
}

impl From<&disk::Calibration> for Calibration {
    fn from(calibration: &disk::Calibration) -> Self {
        Self {
            slot: calibration.slot.as_secs_f64(),
            guarantees: calibration.guarantees.iter().map(ReadGuarantee::from).collect(),
            queue_depth: calibration.queue_depth,
            r0: calibration.r0.0,
            t0: calibration.t0.as_secs_f64(),
            zones: calibration
                .zones
                .iter()
                .map(|(offset, rate)| Zone { offset: offset.0, bit_rate: rate.0 })
                .collect(),
            writing: calibration.writing.map(|cost| WriteCost {
                write_size: cost.write_size.0,
                mean: cost.mean.as_secs_f64(),
                slowest: cost.slowest.as_secs_f64(),
            }),
            method: calibration.method.clone(),
            measured_at: calibration.measured_at,
        }
    }
}

impl From<&disk::ReadGuarantee> for ReadGuarantee {
    fn from(guarantee: &disk::ReadGuarantee) -> Self {
        Self {
            read_size: guarantee.read_size.0,
            min_read: guarantee.min_read,
            mean_read: guarantee.mean_read,
            longest_read: guarantee.longest_read.as_secs_f64(),
        }
    }
}

impl From<&Calibration> for disk::Calibration {
    fn from(calibration: &Calibration) -> Self {
        let guarantee = |g: &ReadGuarantee| disk::ReadGuarantee {
            read_size: ByteCount(g.read_size),
            min_read: g.min_read,
            mean_read: g.mean_read,
            longest_read: seconds(g.longest_read),
        };
        Self {
            slot: seconds(calibration.slot),
            guarantees: calibration.guarantees.iter().map(guarantee).collect(),
            queue_depth: calibration.queue_depth,
            r0: BitRate(calibration.r0),
            t0: seconds(calibration.t0),
            zones: calibration
                .zones
                .iter()
                .map(|zone| (ByteCount(zone.offset), BitRate(zone.bit_rate)))
                .collect(),
            writing: calibration.writing.map(|cost| disk::WriteCost {
                write_size: ByteCount(cost.write_size),
                mean: seconds(cost.mean),
                slowest: seconds(cost.slowest),
            }),
            method: calibration.method.clone(),
            measured_at: calibration.measured_at,
        }
    }
}

impl Progress {
    /// Of work that is not counted in bytes: a part from 0 to 1, in thousandths.
    pub fn of_part(stage: &str, part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 1,000"
        )]
        let done = (part.clamp(0.0, 1.0) * 1000.0) as u64;
        Self { stage: stage.to_owned(), done, total: Some(1000) }
    }

    /// The part that is done of work that is not counted in bytes.
    pub fn part(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "below a thousand")]
        let part = self.done as f64 / self.total.unwrap_or(1000).max(1) as f64;
        part
    }
}

impl From<store::Progress> for Progress {
    fn from(progress: store::Progress) -> Self {
        Self { stage: progress.stage.to_owned(), done: progress.done, total: progress.total }
    }
}

fn kind_word(kind: TitleKind) -> &'static str {
    match kind {
        TitleKind::Media => "media",
        TitleKind::File => "file",
    }
}

/// What somebody else wrote as seconds; nonsense is no time at all.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}
