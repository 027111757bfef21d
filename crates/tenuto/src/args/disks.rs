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
    /// About how long it may take.
    ///
    /// A slow disk needs a minute or two to meet its worst placements often; every measurement is
    /// made at least once, however short the time.
    #[arg(long, default_value = "15s", value_parser = parse_duration)]
    pub(crate) time: Duration,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Write the model that fits the measurements into this file.
    ///
    /// A parameter file, which `plan --model` and `disk emulate` take. A disk with an arm is
    /// nowhere faster in it than it was measured. A file that exists is not overwritten.
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
    /// The disk: as measured, from a store or a JSON file.
    ///
    /// A store that was calibrated, or what `tenuto calibrate --json` printed.
    #[arg(long)]
    pub(crate) calibration: Option<PathBuf>,
    /// The streams: this constant rate.
    #[arg(long)]
    pub(crate) rate: Option<BitRate>,
    /// The streams: a title's own demand, as STORE:TITLE.
    ///
    /// Every viewer watches it from its start, one after the other. A store that is being served is
    /// asked through its server.
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
    /// From admission until the first media is in memory.
    ///
    /// At least two slots.
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub(crate) startup: Duration,
    /// Draw streams against size of read into this SVG file.
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
    /// Describe the disk models that come along, or your own.
    ///
    /// The models slow a store down for --as-disk, drive the simulator and answer `tenuto plan`.
    /// Rates are sequential, in the outermost zone, over the whole disk and in the innermost zone.
    /// With a NAME: everything about one, with its sources and its guarantees.
    Models(ModelsArgs),
    /// Show what is known of a device or file.
    ///
    /// Its size, the disk it is or lies on, what the kernel does to requests on their way there,
    /// who uses it, and which ways of reading this kernel allows. Nothing is written. Each way of
    /// reading is tried with one small read, which needs read permission; the rest does not.
    Show(ShowArgs),
    /// Make a disk with a model's seeks, rotation and zones.
    ///
    /// Any program and any file system can use it: as a file, and with --attach as a block device.
    /// Every request is answered when the modelled disk would have answered it. A disk that is
    /// smaller than its model has the whole model's seeks and zones, only closer together.
    ///
    /// Runs until Ctrl-C or SIGTERM, then unmounts file systems on the disk, detaches it and ends;
    /// the bytes stay in the backing file. A second signal does not wait: programs that use the
    /// disk get errors. Needs root and /dev/fuse. docs/guide/emulated-disk.md shows its use.
    Emulate(Box<EmulateArgs>),
    /// Show what an emulated disk has done, and how late it was.
    ///
    /// Where the time went: overhead, seeks, rotation, transfers. And how much later than in the
    /// model requests were answered, which is the error of the emulation itself.
    Stats(StatsArgs),
}

/// Arguments of `tenuto disk models`.
#[derive(clap::Args)]
pub(crate) struct ModelsArgs {
    /// One model in full: its name, or a parameter file.
    #[arg(value_parser = text())]
    pub(crate) name: Option<String>,
    /// Print the model's parameter file, to change and use.
    ///
    /// A changed copy is used with --model FILE; docs/concepts/disks.md explains each name.
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
    /// Made, all of it allocated, if it does not exist. Always needed.
    #[arg(long)]
    pub(crate) backing: Option<PathBuf>,
    /// Size of the disk.
    ///
    /// Needed for a new file; of an existing one by default all is used. At most what the model
    /// has.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// The folder in which its files appear.
    ///
    /// An empty one, or one to be made and removed again; by default the backing file's name with
    /// .emulated after it. In it: `disk`, and `control`, which has the statistics.
    #[arg(long)]
    pub(crate) at: Option<PathBuf>,
    /// Also make a block device of it.
    ///
    /// A loop device that bypasses the page cache; file systems take it for a disk.
    #[arg(long)]
    pub(crate) attach: bool,
    /// Start at the speed of the backing file.
    ///
    /// For filling the disk; `tenuto disk stats ... --delay on` ends it.
    #[arg(long)]
    pub(crate) no_delay: bool,
    /// Waiting requests that the disk chooses from.
    ///
    /// It serves the one that its arm and platter reach first, unless another has waited for half a
    /// second. 1: in the order of arrival.
    #[arg(long, default_value = "32", value_parser = whole::<u32>(1, 1024))]
    pub(crate) queue: u32,
    /// Times as fast as the model.
    ///
    /// Everything takes that part of the model's time, for long measurements by a clock that runs
    /// as fast. Lateness of this program counts as many times more; `tenuto disk stats` shows all
    /// in the model's time.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 100))]
    pub(crate) time_scale: u32,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto disk stats`.
#[derive(clap::Args)]
pub(crate) struct StatsArgs {
    /// Its backing file, or the folder with its files.
    pub(crate) disk: PathBuf,
    /// Switch the delays of the model, then show.
    #[arg(long, value_enum)]
    pub(crate) delay: Option<Delay>,
    /// Show, then begin to count anew.
    #[arg(long)]
    pub(crate) reset: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Whether an emulated disk takes the time of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Delay {
    /// In the time of the model.
    On,
    /// At the speed of the backing file, uncounted.
    Off,
}
