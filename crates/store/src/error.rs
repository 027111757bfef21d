//! What can go wrong with a store, each said so that a person knows what to do next.

use device::DeviceError;
use std::path::PathBuf;
use std::time::Duration;
use units::{ByteCount, show_duration};

/// A failure of the store, or its refusal to do what was asked. After any of them but
/// [`StoreError::Stopped`]'s cause the store is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The device or file beneath failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A file (the store's own, or one read by ingest or written by export) failed.
    #[error("cannot {action} {}: {source}{}", path.display(), device::room_hint(source))]
    File {
        /// `open`, `create`, `read`, ...
        action: &'static str,
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Nothing on it looks like a store.
    #[error("{what} is not a Tenuto store; `tenuto format` makes one")]
    NotAStore {
        /// The device or file.
        what: String,
    },
    /// A store, but of another format version.
    #[error(
        "the store has format version {found}, this program knows version {known}; \
         use the version of Tenuto that made it"
    )]
    Version {
        /// As found.
        found: u32,
        /// As known here.
        known: u32,
    },
    /// The device or file is shorter than the store on it.
    #[error(
        "the store was made {formatted} long but only {found} are left; \
         give the device or file its old length back"
    )]
    Shrunk {
        /// As formatted.
        formatted: ByteCount,
        /// As it is.
        found: ByteCount,
    },
    /// Not enough room for a store.
    #[error("{size} are too few for a store with chunks of {chunk}; at least {needed} are needed")]
    TooSmall {
        /// What there is.
        size: ByteCount,
        /// The chunk asked for.
        chunk: ByteCount,
        /// The least that would do.
        needed: ByteCount,
    },
    /// A chunk size that cannot be.
    #[error("a chunk of {chunk} cannot be: it must be a power of two from 64 KiB to 64 MiB")]
    BadChunk {
        /// As asked.
        chunk: ByteCount,
    },
    /// A new file needs a size.
    #[error("{} does not exist; give its size to create it", path.display())]
    SizeNeeded {
        /// Which file.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("{what} would be overwritten; if that is meant, allow it with --destroy")]
    WouldDestroy {
        /// What is there.
        what: String,
    },
    /// The catalogue or its superblock cannot be trusted.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What was found, and where.
        what: String,
    },
    /// Another process has it.
    #[error("{} is in use by another process", path.display())]
    Owned {
        /// Which.
        path: PathBuf,
    },
    /// No such title.
    #[error("there is no title '{name}'")]
    NoTitle {
        /// As asked.
        name: String,
    },
    /// The name is taken, or a writer is at work under it.
    #[error("there is a title '{name}' already; remove or rename it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// A name that cannot be.
    #[error("'{}' cannot be a title's name: {reason}; choose another name", name.escape_debug())]
    BadName {
        /// As asked.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// No room for a title.
    #[error("the store is full: {missing} more are needed, {free} are free; remove titles first")]
    Full {
        /// How much more would be needed at least.
        missing: ByteCount,
        /// What is free.
        free: ByteCount,
    },
    /// The free space lies in more pieces than a track may have.
    #[error(
        "the free space lies in too many pieces for one track (at most {limit} extents); \
         remove titles first"
    )]
    TooManyPieces {
        /// Extents that a track may have.
        limit: usize,
    },
    /// The metadata region is full.
    #[error("the store's catalogue is full: {needed} are needed, it holds {holds}; remove titles")]
    CatalogueFull {
        /// What the next checkpoint would take.
        needed: ByteCount,
        /// What a checkpoint may take.
        holds: ByteCount,
    },
    /// More than the format has room for.
    #[error("the store's format has no room for {what}; take less")]
    TooMuch {
        /// What there is too much of, and the limit.
        what: String,
    },
    /// A calibration that could not be read back from the store.
    #[error("the calibration cannot be kept: {reason}; calibrate again, with fewer read sizes")]
    BadCalibration {
        /// Why not.
        reason: String,
    },
    /// What a writer was told of a title does not fit what it was given.
    #[error("the title does not fit its index: {what}")]
    Mismatch {
        /// How they differ.
        what: String,
    },
    /// A write or flush failed before, so that nothing more is written.
    #[error(
        "nothing more is written since a write failed ({why}); \
         look after the disk, then open the store again"
    )]
    Stopped {
        /// The failure.
        why: String,
    },
    /// Data that does not match its checksum.
    #[error("damaged data in title '{title}', track {track}: {length} bytes at {offset}{}",
            time.map(|t| format!(" ({} into it)", show_duration(t))).unwrap_or_default())]
    DataDamaged {
        /// The title's name.
        title: String,
        /// Track number.
        track: u16,
        /// Where in the track's data.
        offset: u64,
        /// How many bytes one checksum covers there.
        length: u64,
        /// When in the title it plays; `None` for files.
        time: Option<Duration>,
    },
    /// A file that is not taken in, and why.
    #[error("{} is not taken in: {reason}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// Why, and what to do about it.
        reason: String,
    },
    /// A program that ingest needs could not be run.
    #[error("cannot run {program}: {source}{hint}")]
    Tool {
        /// `ffmpeg` or `ffprobe`.
        program: &'static str,
        /// What to do, starting with `; `, or empty.
        hint: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The title cannot be exported as it was asked for.
    #[error("title '{title}' cannot be exported: {reason}")]
    NotExported {
        /// The title's name.
        title: String,
        /// Why.
        reason: String,
    },
    /// Whoever asked for the work called it off.
    #[error("cancelled")]
    Cancelled,
}

impl StoreError {
    /// One stable word per kind of failure, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Device(_) => "device",
            Self::File { .. } => "file",
            Self::NotAStore { .. } => "not-a-store",
            Self::Version { .. } => "version",
            Self::Shrunk { .. } => "shrunk",
            Self::TooSmall { .. } => "too-small",
            Self::BadChunk { .. } => "bad-chunk",
            Self::SizeNeeded { .. } => "size-needed",
            Self::WouldDestroy { .. } => "would-destroy",
            Self::Damaged { .. } => "damaged",
            Self::Owned { .. } => "owned",
            Self::NoTitle { .. } => "no-title",
            Self::Exists { .. } => "exists",
            Self::BadName { .. } => "bad-name",
            Self::Full { .. } => "full",
            Self::TooManyPieces { .. } => "too-many-pieces",
            Self::CatalogueFull { .. } => "catalogue-full",
            Self::TooMuch { .. } => "too-much",
            Self::BadCalibration { .. } => "bad-calibration",
            Self::Mismatch { .. } => "mismatch",
            Self::Stopped { .. } => "stopped",
            Self::DataDamaged { .. } => "data-damaged",
            Self::Refused { .. } => "refused",
            Self::Tool { .. } => "tool",
            Self::NotExported { .. } => "not-exported",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it means that bytes on the disk are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::DataDamaged { .. })
    }
}
