//! Arguments of the commands on disks.

use super::shared::{OverwriteArgs, ReportArgs};
use super::values::{model, text, whole};
use disk::DiskModel;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount, parse_duration};

/// Arguments of `tenuto calibrate`.
#[derive(clap::Args)]
pub(crate) struct CalibrateArgs {
    /// The store, block device or file to measure.
    pub(crate) device: PathBuf,
    /// Approximate time of the first part, of reads one by one.
    ///
    /// The long run behind it takes 2.7 times as long. A slow disk needs a minute or two, so that
    /// its worst placements occur often; every measurement is made at least once, however short
    /// the time.
    #[arg(long, default_value = "15s", value_parser = parse_duration)]
    pub(crate) time: Duration,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Write the model that fits the measurements into this file.
    ///
    /// `plan --model` and `disk emulate` take this parameter file. The model of a disk with an arm
    /// is nowhere faster than the measurements. A file that exists is not overwritten.
    #[arg(long)]
    pub(crate) write_model: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto plan`.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// The disk: a model's name, or a parameter file.
    ///
    /// `tenuto disk models` lists the names.
    #[arg(long, value_parser = model)]
    pub(crate) model: Option<DiskModel>,
    /// The disk: a calibration, from a store or a JSON file.
    ///
    /// A store that was calibrated, or the output of `tenuto calibrate --json`.
    #[arg(long)]
    pub(crate) calibration: Option<PathBuf>,
    /// The streams: their constant rate.
    #[arg(long)]
    pub(crate) rate: Option<BitRate>,
    /// The streams: a title's own demand, as STORE:TITLE.
    ///
    /// Viewers start one after the other and watch the title from its start. A store that is being
    /// served is read through its server.
    #[arg(long, value_name = "STORE:TITLE", value_parser = text())]
    pub(crate) title: Option<String>,
    /// Memory for buffers, of all disks together.
    ///
    /// Without it unlimited.
    #[arg(long)]
    pub(crate) memory: Option<ByteCount>,
    /// Number of such disks.
    #[arg(long, default_value = "1", value_parser = whole::<u64>(1, 10_000))]
    pub(crate) disks: u64,
    /// Viewers choose among so many titles, and share reads.
    ///
    /// An estimate of how many viewers disks and memory hold together; needs --memory. Without it
    /// each viewer watches a title of its own.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 100_000_000))]
    pub(crate) titles: Option<u64>,
    /// Popularity of the titles: exponent of Zipf's law.
    ///
    /// 0.8 unless said otherwise.
    #[arg(long)]
    pub(crate) zipf: Option<f64>,
    /// Time within which viewers of a title come.
    ///
    /// The length of titles; less where viewers come together. 2 h unless said otherwise.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) within: Option<Duration>,
    /// From admission until the first media is in memory.
    ///
    /// Less than two slots is taken as two; an hour at most. All media that plays within this time
    /// is in memory at its end: with little --memory, a long time holds fewer streams.
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub(crate) startup: Duration,
    /// Write a plot of streams by size of read to this SVG file.
    #[arg(long)]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The subcommands of `tenuto disk`.
#[derive(clap::Subcommand)]
pub(crate) enum DiskCommand {
    /// Describe the built-in disk models, or your own.
    ///
    /// `serve --as-disk`, `disk emulate`, `plan` and the simulations use disk models.
    /// Rates are sequential, in the outermost zone, over the whole disk and in the innermost zone.
    /// With a NAME: everything about one, with its sources and its guarantees.
    Models(ModelsArgs),
    /// Describe a device or file, and how it can be read.
    ///
    /// Its size, its disk, the kernel's queue in front of that disk, the programs that use it, and
    /// the read interfaces that this kernel allows. Nothing is written. Each interface is tried
    /// with one small read, which needs read permission; the rest does not.
    Show(ShowArgs),
    /// Emulate a disk with the seeks, rotation and zones of a model.
    ///
    /// Any program and any file system can use it: as a file, and with --attach as a block device.
    /// Every request completes when the modelled disk would have completed it. A disk that is
    /// smaller than its model has all seeks and zones of the model, closer together.
    ///
    /// Runs until Ctrl-C or SIGTERM, then unmounts file systems on the disk, detaches it and ends;
    /// the bytes stay in the backing file. After a second signal it does not wait: programs that
    /// use the disk get errors. Needs root and /dev/fuse. docs/guide/emulated-disk.md shows its
    /// use.
    Emulate(Box<EmulateArgs>),
    /// Show the time that an emulated disk spent, and its lateness.
    ///
    /// The time by overhead, seeks, rotation and transfers; and how much later than in the model
    /// requests completed, which is the error of the emulation itself.
    Stats(StatsArgs),
}

/// Arguments of `tenuto disk models`.
#[derive(clap::Args)]
pub(crate) struct ModelsArgs {
    /// One model in full: its name, or a parameter file.
    #[arg(value_parser = text())]
    pub(crate) name: Option<String>,
    /// Print the model's parameter file, as a start for your own.
    ///
    /// Every option that takes a model also takes a file. docs/concepts/disks.md explains each
    /// name.
    #[arg(long)]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto disk show`.
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    /// A block device or file.
    pub(crate) device: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto disk emulate`.
#[derive(clap::Args)]
pub(crate) struct EmulateArgs {
    /// The disk to emulate: a model's name, or a parameter file.
    ///
    /// `tenuto disk models` lists the names.
    #[arg(value_parser = model)]
    pub(crate) model: DiskModel,
    /// The file that holds the disk's bytes.
    ///
    /// Made, with all its space allocated, if it does not exist. Always needed.
    #[arg(long)]
    pub(crate) backing: Option<PathBuf>,
    /// Size of the disk.
    ///
    /// Needed for a new file. Without it the size of the existing file. At most the size of the
    /// model.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// The directory in which its files appear.
    ///
    /// An empty one, or a new one, which is removed at the end. Without it the backing file's name
    /// followed by .emulated. In it: `disk`, and `control`, which has the statistics.
    #[arg(long)]
    pub(crate) at: Option<PathBuf>,
    /// Also make a block device of the disk.
    ///
    /// A loop device that bypasses the page cache, for file systems.
    #[arg(long)]
    pub(crate) attach: bool,
    /// Start at the speed of the backing file.
    ///
    /// For filling the disk; then use `tenuto disk stats ... --delay on`.
    #[arg(long)]
    pub(crate) no_delay: bool,
    /// Number of waiting requests from which the disk chooses.
    ///
    /// It serves the one that its arm and platter reach first, unless another has waited for half a
    /// second. 1: in order of arrival.
    #[arg(long, default_value = "32", value_parser = whole::<u32>(1, 1024))]
    pub(crate) queue: u32,
    /// The factor by which the disk is faster than the model.
    ///
    /// For long measurements by a clock that runs faster by the same factor. Lateness of this
    /// program counts that many times; `tenuto disk stats` shows all times in the model's time.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 100))]
    pub(crate) time_scale: u32,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto disk stats`.
#[derive(clap::Args)]
pub(crate) struct StatsArgs {
    /// The backing file, or the directory with the disk's files.
    pub(crate) disk: PathBuf,
    /// Switch the delays of the model, then show.
    #[arg(long, value_enum)]
    pub(crate) delay: Option<Delay>,
    /// Show the statistics, then set them to zero.
    #[arg(long)]
    pub(crate) reset: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Whether an emulated disk takes the time of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Delay {
    /// Requests take the time of the model.
    On,
    /// Requests take the time of the backing file, and are not counted.
    Off,
}
