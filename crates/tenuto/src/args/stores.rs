//! Arguments of the commands on a store.

use super::shared::{EndpointArgs, OverwriteArgs, ReportArgs, StoresArgs, TlsArgs};
use super::values::{interval, some_rate, some_time, subtitle_file, text, whole};
use s3::S3Address;
use std::path::PathBuf;
use std::time::Duration;
use store::{PictureRate, RecordingInput, SubtitleFile};
use units::{BitRate, ByteCount};

/// Arguments of `tenuto format`.
#[derive(clap::Args)]
pub(crate) struct FormatArgs {
    /// The file to make, or the device to use.
    pub(crate) target: PathBuf,
    /// Length of the store's file.
    ///
    /// Needed for a new file, whose space is allocated at once. Of a block device the whole length
    /// is used.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// Allocation unit, a power of two from 64KiB to 64MiB.
    ///
    /// Titles take whole chunks. The size of a read is another number, which the server chooses.
    #[arg(long, default_value = "1MiB")]
    pub(crate) chunk: ByteCount,
    /// A name for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) label: String,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto ingest`.
#[derive(clap::Args)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// Files to ingest.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The kind of the files.
    #[arg(long = "as", default_value = "media", value_enum)]
    pub(crate) kind: IngestKind,
    /// The title's name, for a single file.
    ///
    /// Without it a title is named after its file, without the extension.
    #[arg(long, value_parser = text())]
    pub(crate) title: Option<String>,
    /// Ingest the readable part of a damaged file.
    ///
    /// Without it a file that FFmpeg cannot read to its end is refused. With it the readable part
    /// becomes a title, with a note.
    #[arg(long)]
    pub(crate) allow_damaged: bool,
    /// Ingest the files as renditions of one title.
    ///
    /// The first file gives sound and pictures, the others only pictures. A player gets the best
    /// rendition that there is capacity for and may change between them, so their key frames must
    /// be at the same times.
    #[arg(long)]
    pub(crate) renditions: bool,
    /// Number of the programme to take from a file with several.
    ///
    /// A transport stream may contain several programmes. Without the option such a file is
    /// refused, with the list of its programmes.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) program: Option<u32>,
    /// A file of subtitles for the title, with its language: `en=film.srt`.
    ///
    /// A text file that FFmpeg reads (SubRip, ASS, WebVTT and others, in UTF-8). `en,forced=FILE`:
    /// players show it also if subtitles are off; `en,sdh=FILE`: it describes sounds, too. Repeat
    /// the option for each file. The text tracks of the film itself are ingested in any case.
    #[arg(long, value_name = "LANGUAGE[,MARK]=FILE", value_parser = subtitle_file)]
    pub(crate) subtitles: Vec<SubtitleFile>,
    /// Make thumbnails, one each INTERVAL.
    ///
    /// Players show them while a viewer moves the position. The pictures are decoded for it, of
    /// most films the key frames alone. A title has at most 1,000 thumbnails and 2 MiB of them: a
    /// long one has them at a multiple of the interval.
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10s",
        value_parser = interval
    )]
    pub(crate) thumbnails: Option<u32>,
    /// Ingest numbered pictures, so many in a second.
    ///
    /// FILE is a pattern such as `shot.%06d.dpx`: all pictures in the folder that have such a name
    /// become one title, from the lowest number on, and are stored as they are. `%06d` is a number
    /// of six digits, `%d` one without zeros in front. FPS is a number or a ratio: 25, 30000/1001.
    #[arg(long, value_name = "FPS", conflicts_with_all = ["renditions", "program"])]
    pub(crate) fps: Option<PictureRate>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto record`.
#[derive(clap::Args)]
pub(crate) struct RecordArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// The title's name.
    #[arg(value_parser = text())]
    pub(crate) title: String,
    /// An address, a named pipe, a file, or `-` for the standard input.
    ///
    /// Addresses are those of rtsp, rtsps, srt, udp, rtp and tcp: `rtsp://camera/stream1`,
    /// `srt://0.0.0.0:9000?mode=listener`, `udp://239.1.1.1:5000`. The options behind `?` are those
    /// of FFmpeg's protocols.
    pub(crate) input: RecordingInput,
    /// Play-out time after which the recording ends.
    #[arg(long, value_parser = some_time)]
    pub(crate) duration: Option<Duration>,
    /// Number of the programme to record of an input with several.
    ///
    /// Without the option all video and audio streams of a transport stream are recorded.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) program: Option<u32>,
    /// Time without a byte after which the input counts as lost.
    #[arg(long, default_value = "10s", value_parser = some_time)]
    pub(crate) silence: Duration,
    /// Highest rate of the input, for which the server keeps disk time.
    ///
    /// Refused if the disk does not hold it beside its viewers and other recordings. Without the
    /// option the recording has the time that these leave. On a store that no server has there is
    /// nobody to keep time from.
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    pub(crate) rate: Option<BitRate>,
    /// Record parts into the folder TITLE, and remove them so long after.
    ///
    /// Each part is a title named by its start: `hall/20261128T083512Z`. Where the store is full
    /// the oldest parts are removed earlier, with a warning. A part that has another name stays.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) keep: Option<Duration>,
    /// Record parts into the folder TITLE; at least so long [default: 10m].
    ///
    /// The next key frame begins a new part. Without --keep all parts stay.
    #[arg(long, value_name = "TIME", value_parser = part_time)]
    pub(crate) part: Option<Duration>,
    /// Record parts into the folder TITLE, and open a lost input again.
    ///
    /// After 1 s, then less often, up to every 30 s. What comes then is a new part.
    #[arg(long)]
    pub(crate) reconnect: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Parses the play-out time of a part of a recording.
fn part_time(text: &str) -> Result<Duration, String> {
    let time = some_time(text)?;
    if time < Duration::from_secs(1) {
        return Err(format!("'{text}' is less than a second, which parts are named by"));
    }
    Ok(time)
}

/// What ingested files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum IngestKind {
    /// Films: tracks with times that players can play.
    Media,
    /// Any bytes: stored and exported bit for bit, never streamed.
    File,
}

/// Arguments of `tenuto ls`.
#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// The stores: files or block devices.
    #[arg(required = true, value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Show size, play-out time, rate, tracks and date.
    #[arg(long)]
    pub(crate) long: bool,
    /// List at most N titles.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1_000_000_000))]
    pub(crate) limit: Option<u32>,
    /// List titles behind this name: the next page.
    #[arg(long, value_name = "NAME", value_parser = text())]
    pub(crate) after: Option<String>,
    /// List titles in this folder and in folders inside.
    #[arg(long, value_name = "NAME", value_parser = text())]
    pub(crate) folder: Option<String>,
    /// List titles whose names have this part, in any case.
    #[arg(long, value_name = "TEXT", value_parser = text())]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto info`.
#[derive(clap::Args)]
pub(crate) struct InfoArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// A title's name.
    #[arg(value_parser = text())]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto export`.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// The title's name.
    #[arg(value_parser = text())]
    pub(crate) title: String,
    /// The file to write.
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto mount`.
#[derive(clap::Args)]
pub(crate) struct MountArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// An empty directory.
    pub(crate) directory: PathBuf,
    /// Allow no changes through the mount.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Directory for the bytes of files that are being written.
    ///
    /// A file becomes a title when it is closed; until then its bytes are here. It needs room for
    /// the files that are written at the same time.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) spool: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto rm`.
#[derive(clap::Args)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// The title's name.
    #[arg(value_parser = text())]
    pub(crate) title: String,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto rename`.
#[derive(clap::Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// The title's present name.
    #[arg(value_parser = text())]
    pub(crate) old: String,
    /// The title's new name.
    #[arg(value_parser = text())]
    pub(crate) new: String,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto library`.
#[derive(clap::Args)]
pub(crate) struct LibraryArgs {
    /// The stores: files or block devices.
    #[arg(required = true, value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Also all other stores of the server that has these.
    #[arg(long)]
    pub(crate) served: bool,
    /// In how many stores each title is wanted.
    ///
    /// A copy goes to the store with the largest part free; where parts differ by no more than 5 %,
    /// to the one with the fewest sessions. Copies beyond this number stay.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1, 1000))]
    pub(crate) copies: usize,
    /// A store that all titles are to leave.
    ///
    /// A title is removed from it after the other stores have as many copies as wanted. May be
    /// given several times.
    #[arg(long, value_name = "STORE")]
    pub(crate) empty: Vec<PathBuf>,
    /// Move titles from full stores to emptier ones.
    ///
    /// Until the used parts of the stores differ by no more than 5 %, or no title is small enough.
    #[arg(long)]
    pub(crate) balance: bool,
    /// Do what is to be done; without it, only show it.
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto relabel`.
#[derive(clap::Args)]
pub(crate) struct RelabelArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// Write a new uuid to the store.
    #[arg(long, required = true)]
    pub(crate) new_identity: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto resize`.
#[derive(clap::Args)]
pub(crate) struct ResizeArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// The new length of the store.
    ///
    /// A file is lengthened to it, and its space is allocated at once. Without SIZE the store takes
    /// all of its file or device.
    pub(crate) size: Option<ByteCount>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto trim`.
#[derive(clap::Args)]
pub(crate) struct TrimArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto check`.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) stores: StoresArgs,
    /// Also read all media and verify its checksums.
    #[arg(long)]
    pub(crate) scrub: bool,
    /// Repair each store from the others.
    ///
    /// Reads all titles. Damaged data and indexes are written again from the copies in the other
    /// stores, and a title that a store does not have is copied into it: so an empty store takes
    /// the place of a dead disk. A title of the same name with other content is left as it is.
    #[arg(long)]
    pub(crate) repair: bool,
    /// Find titles that the store's catalogue has lost.
    ///
    /// Reads the start of every chunk that the catalogue leaves free, of all chunks if it cannot be
    /// read: on a large hard disk that takes hours. Nothing is written without --destroy. Titles
    /// are recovered under the names of their ingest; with the catalogue the calibration is lost.
    #[arg(long)]
    pub(crate) rebuild: bool,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The subcommands of `tenuto bucket`.
#[derive(clap::Subcommand)]
pub(crate) enum BucketCommand {
    /// Write titles of a store into a bucket.
    ///
    /// Without TITLE all titles of the store. Of a title that the bucket has with the same content,
    /// objects are written that are missing or cut off; another one of the same name is an error.
    /// An interrupted command goes on where it was when it is run again: objects that are there are
    /// not written twice.
    ///
    /// With --verify the objects that are there are read, too, and written again where they are
    /// damaged. A title whose manifest is damaged is removed first (`tenuto bucket rm`).
    ///
    /// A store being served is read by its server, in disk time that no viewer has reserved.
    Push(BucketPushArgs),
    /// Copy titles of a bucket into a store.
    ///
    /// Without TITLE all titles that the store does not have. Every object is verified before it is
    /// written, and a title appears in the store after all of it is on disk. It has the content of
    /// the one that was pushed, so that `tenuto library` takes both for copies of each other.
    ///
    /// A store being served is written by its server, in disk time that no viewer has reserved.
    Fill(BucketStoreArgs),
    /// List the titles of a bucket.
    ///
    /// Titles whose manifests are damaged are named after the others, with exit code 4.
    Ls(BucketArgs),
    /// Remove a title from a bucket.
    ///
    /// Its objects are removed unless another title has the same. Push nothing at the same time.
    ///
    /// With a title whose manifest is damaged, all objects that no title has are removed. While the
    /// manifest of another title is damaged, all objects stay, because they may be of that one.
    Rm(BucketRmArgs),
    /// Look whether all objects of all titles are in a bucket.
    ///
    /// Compares the manifests with a list of the objects. With --scrub all objects are read and
    /// verified. An object that is damaged is named for each title that has it, with a command that
    /// repairs it. Ends with exit code 4 when something is damaged. Objects that no title uses are
    /// counted: they are left by pushes that were interrupted.
    Check(BucketCheckArgs),
}

/// A bucket with titles.
#[derive(clap::Args)]
pub(crate) struct BucketArgs {
    /// The bucket: s3://BUCKET[/PREFIX].
    #[arg(value_name = "BUCKET", value_parser = S3Address::parse)]
    pub(crate) bucket: S3Address,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto bucket push`.
#[derive(clap::Args)]
pub(crate) struct BucketPushArgs {
    #[command(flatten)]
    pub(crate) transfer: BucketStoreArgs,
    /// Read the objects that are there, too, and write damaged ones again.
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Arguments of `tenuto bucket push` and `tenuto bucket fill`.
#[derive(clap::Args)]
pub(crate) struct BucketStoreArgs {
    #[command(flatten)]
    pub(crate) bucket: BucketArgs,
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// The titles; without it all.
    #[arg(value_name = "TITLE", value_parser = text())]
    pub(crate) titles: Vec<String>,
}

/// Arguments of `tenuto bucket rm`.
#[derive(clap::Args)]
pub(crate) struct BucketRmArgs {
    #[command(flatten)]
    pub(crate) bucket: BucketArgs,
    /// The title.
    #[arg(value_parser = text())]
    pub(crate) title: String,
}

/// Arguments of `tenuto bucket check`.
#[derive(clap::Args)]
pub(crate) struct BucketCheckArgs {
    #[command(flatten)]
    pub(crate) bucket: BucketArgs,
    /// Read and verify all objects, too.
    #[arg(long)]
    pub(crate) scrub: bool,
}
