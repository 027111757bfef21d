//! Errors of a store, each with a text that tells the user the next step.

use device::DeviceError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{BitRate, ByteCount, Hinted, Reason, show_duration};

/// A failure of the store, or a refusal of an operation. After any of them, except for the cause of
/// [`StoreError::Stopped`], the store is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The device or file beneath the store failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A file (the store's own, or one read by ingest or written by export) failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation: `open`, `create`, `read`, ...
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The device or file contains no store.
    #[error("{what} is not a Tenuto store")]
    NotAStore {
        /// The device or file.
        what: String,
    },
    /// The store has another format version.
    #[error("the store has format version {found}, this program knows version {known}")]
    Version {
        /// The version of the store.
        found: u32,
        /// The version that this program knows.
        known: u32,
    },
    /// The device or file is shorter than the store on it.
    #[error("the store was made {formatted} long but only {found} are left")]
    Shrunk {
        /// The length at format.
        formatted: ByteCount,
        /// The length now.
        found: ByteCount,
    },
    /// The requested size does not make the store larger.
    #[error("{}", not_larger(*now, *asked))]
    NotLarger {
        /// The length of the store.
        now: ByteCount,
        /// The requested length.
        asked: ByteCount,
    },
    /// The device is shorter than the requested size.
    #[error("{asked} were requested, and the device has only {found}")]
    NotThatLong {
        /// The requested length.
        asked: ByteCount,
        /// The length of the device.
        found: ByteCount,
    },
    /// The device or file is too small for a store.
    #[error("{size} are too few for a store with chunks of {chunk}: at least {needed} are needed")]
    TooSmall {
        /// The available size.
        size: ByteCount,
        /// The requested chunk size.
        chunk: ByteCount,
        /// The smallest sufficient size.
        needed: ByteCount,
    },
    /// The chunk size is invalid.
    #[error("a chunk of {chunk} cannot be: it must be a power of two from 64 KiB to 64 MiB")]
    BadChunk {
        /// The requested chunk size.
        chunk: ByteCount,
    },
    /// A new file needs a size.
    #[error("{} does not exist", path.display())]
    SizeNeeded {
        /// The path of the file.
        path: PathBuf,
    },
    /// The device or file is not empty.
    #[error("{what} would be overwritten")]
    WouldDestroy {
        /// A description of its content.
        what: String,
    },
    /// The catalogue or its superblock is damaged.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// The damage and its position.
        what: String,
    },
    /// Another store, which is needed for this one, cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    OtherStore {
        /// The other store.
        path: PathBuf,
        /// The reason.
        source: Box<StoreError>,
    },
    /// Another process has the store open.
    #[error("{} is in use by another process", path.display())]
    Owned {
        /// The path of the store.
        path: PathBuf,
    },
    /// There is no title with this name.
    #[error("there is no title '{name}'")]
    NoTitle {
        /// The requested name.
        name: String,
        /// The title with the most similar name, if one is similar.
        nearest: Option<String>,
    },
    /// The name is in use by a title.
    #[error("there is already a title '{name}'")]
    Exists {
        /// The requested name.
        name: String,
    },
    /// The title of this name, or into the folder of this name, is being recorded.
    #[error("'{name}' is being recorded")]
    BeingRecorded {
        /// The name of the title or the folder.
        name: String,
    },
    /// No title is written into the store, whose disk is to be taken out.
    #[error("{} is drained: its disk is to be taken out", store.display())]
    Draining {
        /// The store's path.
        store: PathBuf,
        /// What to do instead.
        hint: String,
    },
    /// The name is in use by a writer, and no title has it yet.
    #[error("'{name}' is being written: a recording or an ingest with this name has not ended")]
    BeingWritten {
        /// The requested name.
        name: String,
    },
    /// The name is invalid.
    #[error("'{}' cannot be a title's name: {reason}", name.escape_debug())]
    BadName {
        /// The requested name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// There is not enough space for a title.
    #[error("the store is full: {free} are free, {missing} too little")]
    Full {
        /// The space needed beyond what is free, at least.
        missing: ByteCount,
        /// The free space.
        free: ByteCount,
    },
    /// The free space is in more pieces than a track may have.
    #[error("the free space is in too many pieces for one track (at most {limit} extents)")]
    TooManyPieces {
        /// The largest number of extents of a track.
        limit: usize,
    },
    /// The metadata region is full.
    #[error("the store's catalogue is full: {needed} are needed, it holds {holds}")]
    CatalogueFull {
        /// The size of the next checkpoint.
        needed: ByteCount,
        /// The largest size of a checkpoint.
        holds: ByteCount,
    },
    /// Something exceeds a limit of the format.
    #[error("the store's format has no room for {what}")]
    TooMuch {
        /// A description with the limit.
        what: String,
    },
    /// A calibration that the store could not read back.
    #[error("the calibration cannot be kept: {reason}")]
    BadCalibration {
        /// The reason.
        reason: String,
    },
    /// The description of a title does not match the data that was written.
    #[error("the title does not fit its index: {what}")]
    Mismatch {
        /// The difference.
        what: String,
    },
    /// A write or flush failed before, so that nothing more is written.
    #[error("nothing more is written since a write failed ({why})")]
    Stopped {
        /// The error of that write or flush.
        why: String,
    },
    /// The disk of a served store is lost, so that nothing is written to it.
    #[error("its disk is lost: nothing is written until it holds the store again")]
    DiskLost,
    /// Data that does not match its checksum.
    #[error("damaged data in title '{title}', track {track}: {length} bytes at {offset}{}",
            time.map(|t| format!(" ({} into it)", show_duration(t))).unwrap_or_default())]
    DataDamaged {
        /// The title's name.
        title: String,
        /// Track number.
        track: u16,
        /// The offset in the track's data.
        offset: u64,
        /// The number of bytes that the checksum covers.
        length: u64,
        /// The play-out time of the data; `None` for files.
        time: Option<Duration>,
    },
    /// A file was refused at ingest.
    #[error("{} is not taken in: {reason}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The reason and the remedy.
        reason: Reason,
    },
    /// An input could not be recorded.
    #[error("{input} is not recorded: {reason}")]
    NotRecorded {
        /// The input, without a password.
        input: String,
        /// The reason and the remedy.
        reason: Reason,
    },
    /// The disk does not hold the rate of a recording beside what it holds already.
    #[error("the disk does not hold {rate} more: {reason}")]
    RateNotHeld {
        /// The rate of the recording.
        rate: BitRate,
        /// The reason and the remedy.
        reason: Reason,
    },
    /// A program that ingest needs could not be run.
    #[error("cannot run {program}: {source}")]
    Tool {
        /// The program: `ffmpeg` or `ffprobe`.
        program: &'static str,
        /// The remedy, where one is known.
        hint: Option<&'static str>,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The title cannot be exported in the requested form.
    #[error("title '{title}' cannot be exported: {reason}")]
    NotExported {
        /// The title's name.
        title: String,
        /// The reason.
        reason: String,
    },
    /// The device has no discard.
    #[error("its device cannot discard")]
    NoDiscard,
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
}

impl Hinted for StoreError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Device(error) => return error.hint(),
            Self::Refused { reason, .. }
            | Self::NotRecorded { reason, .. }
            | Self::RateNotHeld { reason, .. } => {
                return reason.hint.clone();
            }
            Self::Draining { hint, .. } => return Some(hint.clone()),
            Self::NoTitle { nearest: Some(title), .. } => {
                return Some(format!("did you mean '{}'?", title.escape_debug()));
            }
            Self::NoTitle { nearest: None, .. } => "`tenuto ls` lists the titles",
            Self::OtherStore { source, .. } if source.is_damage() => {
                "leave that store out of the command"
            }
            Self::OtherStore { source, .. } => return source.hint(),
            Self::NotAStore { .. } => {
                "check the path; `tenuto format` makes a store, and destroys what is there"
            }
            Self::Version { .. } => "use the version of Tenuto that made it",
            Self::Shrunk { formatted: ByteCount(bytes), .. } => {
                return Some(format!(
                    "give the device or file its old length back, {bytes} bytes (a file: truncate \
                     -s {bytes}), then check it"
                ));
            }
            Self::NotLarger { now, asked } if asked < now => {
                "make a smaller store, and copy the titles into it with `tenuto check NEW \
                 --replica OLD --repair`"
            }
            Self::NotLarger { .. } => {
                "give a larger size: `tenuto resize STORE SIZE`; a block device must be made larger \
                 first"
            }
            Self::NotThatLong { .. } => {
                "make the device larger first, or give no size to use all of it"
            }
            Self::TooSmall { .. } => "choose a larger --size",
            Self::SizeNeeded { .. } => "give the size of a new file, for example --size 40GiB",
            Self::WouldDestroy { .. } => "if that is meant, allow it with --destroy",
            Self::Exists { .. } => "remove or rename it first, or choose another name",
            Self::BeingRecorded { .. } => "end that recording first, or choose another name",
            Self::BeingWritten { .. } => "wait for its end, or choose another name",
            Self::BadName { .. } => "choose another name",
            Self::Full { .. } | Self::TooManyPieces { .. } => {
                "remove titles first; recordings that are running keep room until they end"
            }
            Self::CatalogueFull { .. } => "remove titles",
            Self::TooMuch { .. } => "take less",
            Self::BadCalibration { .. } => "calibrate again, with fewer read sizes",
            Self::NoDiscard => {
                "nothing is to be done: a hard disk or an emulated one keeps its bytes until they \
                 are overwritten"
            }
            Self::Stopped { .. } => "look after the disk, then open the store again",
            Self::DiskLost => {
                "look after the disk: the server uses it again by itself when it holds what it held; \
                 write into another store meanwhile"
            }
            Self::File { source, .. } => device::room_hint(source)?,
            Self::Tool { hint, .. } => (*hint)?,
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl StoreError {
    /// The error of an operation on the file at `path`, for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }

    /// A stable word for the kind of failure, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Device(DeviceError::NotWritten { .. }) => "not-written",
            Self::Device(_) => "device",
            Self::File { .. } => "file",
            Self::NotAStore { .. } => "not-a-store",
            Self::Version { .. } => "version",
            Self::Shrunk { .. } => "shrunk",
            Self::NotLarger { .. } => "not-larger",
            Self::NotThatLong { .. } => "not-that-long",
            Self::TooSmall { .. } => "too-small",
            Self::BadChunk { .. } => "bad-chunk",
            Self::SizeNeeded { .. } => "size-needed",
            Self::WouldDestroy { .. } => "would-destroy",
            Self::Damaged { .. } => "damaged",
            Self::OtherStore { source, .. } => source.code(),
            Self::Owned { .. } => "owned",
            Self::NoTitle { .. } => "no-title",
            Self::Exists { .. } => "exists",
            Self::BeingRecorded { .. } => "being-recorded",
            Self::BeingWritten { .. } => "being-written",
            Self::Draining { .. } => "draining",
            Self::BadName { .. } => "bad-name",
            Self::Full { .. } => "full",
            Self::TooManyPieces { .. } => "too-many-pieces",
            Self::CatalogueFull { .. } => "catalogue-full",
            Self::TooMuch { .. } => "too-much",
            Self::BadCalibration { .. } => "bad-calibration",
            Self::Mismatch { .. } => "mismatch",
            Self::Stopped { .. } => "stopped",
            Self::DiskLost => "disk-lost",
            Self::DataDamaged { .. } => "data-damaged",
            Self::Refused { .. } => "refused",
            Self::NotRecorded { .. } => "not-recorded",
            Self::RateNotHeld { .. } => "rate-not-held",
            Self::Tool { .. } => "tool",
            Self::NotExported { .. } => "not-exported",
            Self::NoDiscard => "no-discard",
            Self::Cancelled => "cancelled",
        }
    }

    /// What is said of damage where it is one piece in a list: without the words that the store is
    /// damaged, with which a list or an error of its own begins.
    pub(crate) fn finding_text(&self) -> String {
        match self {
            Self::Damaged { what } => what.clone(),
            other => other.one_line(),
        }
    }

    /// Whether the error means that bytes on the disk differ from what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::OtherStore { source, .. } => source.is_damage(),
            _ => matches!(self, Self::Damaged { .. } | Self::DataDamaged { .. }),
        }
    }
}

fn not_larger(now: ByteCount, asked: ByteCount) -> String {
    if asked < now {
        return format!("a store cannot become shorter: it is {now} long, and not {asked}");
    }
    format!("the store is {now} long, and a size of {asked} adds nothing to it")
}
