//! Arguments of the commands in virtual time, and of the program about itself.

use super::shared::{OverwriteArgs, ReportArgs, SeedArgs};
use super::values::{CommaList, model, some_time, text, wait, whole, words};
use disk::DiskModel;
use meter::emulated::System;
use scheduler::PolicyKind;
use std::path::PathBuf;
use std::time::Duration;
use studies::fleet::{FleetPolicy, FleetScenario};
use studies::reproduce::{self, Reproduction};
use tenuto_client::Arrivals;
use units::{BitRate, ByteCount, Reason};

/// The subcommands of `tenuto simulate`.
#[derive(clap::Subcommand)]
pub(crate) enum SimulateCommand {
    /// Compare admission policies on thousands of scenarios.
    ///
    /// Draws scenarios (viewers that request parts of titles, faster, slower, skipping, backwards,
    /// at random times) and plays each with every policy in virtual time. Reports which policies
    /// admit all viewers, which reads are late, how many buffers are used, and what the disk would
    /// have delivered. The policies and the dispatcher are those of the server; the disk is a
    /// model. The same seed gives the same result on every machine, except for the mean time of a
    /// decision, which is measured. docs/concepts/admission.md explains the results.
    Admission(Box<AdmissionArgs>),
    /// Let months pass on a nearly full store, and compare it with a fresh one.
    ///
    /// Titles of a broadcaster come and go in virtual time: clips, programmes, films, and
    /// recordings that grow side by side, as many bytes a month as the store holds. Space is taken
    /// by the code of the store; no data is written. Reports for each month the extents of the
    /// titles, the holes, titles that found no room, and the streams that the disk holds, beside
    /// those of an empty store to which the same titles were written. docs/guide/plan.md explains
    /// the results.
    Ageing(Box<AgeingArgs>),
    /// Simulate many nodes with a million viewers.
    ///
    /// Viewers come and go in virtual time and ask for titles by Zipf's law. The placement of
    /// copies, the director that sends each viewer to a node, and the books of the nodes are those
    /// of the crate `cluster`; a stream is a rate, and a disk holds the streams that `tenuto plan`
    /// guarantees. Reports how many viewers are refused, what copies cost, and what the loss of
    /// nodes does. `tenuto director` sends viewers to real nodes. docs/guide/fleet.md explains the
    /// results.
    Fleet(Box<FleetSimulationArgs>),
}

/// Arguments of `tenuto simulate fleet`.
#[derive(clap::Args)]
pub(crate) struct FleetSimulationArgs {
    /// What happens, with commas between.
    #[arg(long, default_value = "steady", value_delimiter = ',', value_parser = words(scenarios()))]
    pub(crate) scenario: Vec<FleetScenario>,
    /// Placement and choice of nodes, with commas between. Without it all.
    #[arg(long, value_delimiter = ',', value_parser = words(fleet_policies()))]
    pub(crate) policy: Vec<FleetPolicy>,
    /// Exponents of Zipf's law, with commas between.
    #[arg(long, default_value = "0.8,1", value_delimiter = ',', value_parser = exponent)]
    pub(crate) zipf: Vec<f64>,
    /// Number of nodes.
    #[arg(long, default_value = "500", value_parser = whole::<u32>(1, 10_000))]
    pub(crate) nodes: u32,
    /// Number of disks of a node.
    #[arg(long, default_value = "20", value_parser = whole::<u16>(1, 200))]
    pub(crate) disks: u16,
    /// Number of nodes of a rack: copies of a title are in different racks.
    #[arg(long, default_value = "20", value_parser = whole::<u32>(1, 10_000))]
    pub(crate) rack: u32,
    /// Number of titles.
    #[arg(long, default_value = "50000", value_parser = whole::<u32>(1, 1_000_000))]
    pub(crate) titles: u32,
    /// The disk: a model's name, or a file.
    #[arg(long, default_value = "hdd-20tb", value_parser = model)]
    pub(crate) model: DiskModel,
    /// Bytes of a read, for the plan of a disk.
    #[arg(long, default_value = "1MiB")]
    pub(crate) read_size: ByteCount,
    /// Rate of a stream.
    #[arg(long, default_value = "5Mbps")]
    pub(crate) rate: BitRate,
    /// Viewers at a time, in percent of the guaranteed streams.
    #[arg(long, default_value = "91", value_parser = whole::<u32>(1, 200))]
    pub(crate) load: u32,
    /// Mean time for which a viewer stays.
    #[arg(long, default_value = "1h", value_parser = some_time)]
    pub(crate) hold: Duration,
    /// Time that is simulated.
    #[arg(long, default_value = "4h", value_parser = some_time)]
    pub(crate) time: Duration,
    /// Age of what the director knows of a node, at most.
    #[arg(long, default_value = "1s", value_parser = some_time)]
    pub(crate) digests: Duration,
    /// Number of seeds, from --seed on: runs of each row.
    #[arg(long, default_value = "20", value_parser = whole::<u64>(1, 10_000))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// A directory for the page and the chart.
    ///
    /// Made if it does not exist. The page is fleet.html; the chart is an SVG file, too.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn scenarios() -> impl Iterator<Item = (&'static str, &'static str, FleetScenario)> {
    FleetScenario::ALL.into_iter().map(|(name, scenario)| (name, scenario.about(), scenario))
}

fn fleet_policies() -> impl Iterator<Item = (&'static str, &'static str, FleetPolicy)> {
    FleetPolicy::ALL.into_iter().map(|policy| (policy.name, policy.about, policy))
}

fn exponent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=3.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is not an exponent from 0 to 3"))
}

/// Arguments of `tenuto simulate ageing`.
#[derive(clap::Args)]
pub(crate) struct AgeingArgs {
    /// The disk: a model's name, or a file.
    #[arg(long, default_value = "hdd-20tb", value_parser = model)]
    pub(crate) model: DiskModel,
    /// Size of the disk and its store, instead of the model's.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// The part of the store that is in use, in percent.
    #[arg(long, default_value = "90", value_parser = whole::<u32>(10, 99))]
    pub(crate) full: u32,
    /// Number of months.
    #[arg(long, default_value = "6", value_parser = whole::<u32>(1, 120))]
    pub(crate) months: u32,
    /// The title that is removed to make room.
    #[arg(long, default_value = "random", value_enum)]
    pub(crate) remove: RemovedTitle,
    /// Largest number of bytes of a read.
    #[arg(long, default_value = "4MiB")]
    pub(crate) read_size: ByteCount,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// A directory for the page and the chart.
    ///
    /// Made if it does not exist. The page is ageing.html; the chart is an SVG file, too.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The title that is removed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RemovedTitle {
    /// Any title, old or new.
    Random,
    /// The oldest title.
    Oldest,
}

/// Arguments of `tenuto simulate admission`.
#[derive(clap::Args)]
pub(crate) struct AdmissionArgs {
    /// The set of scenarios.
    #[arg(long, default_value = "paper", value_enum)]
    pub(crate) preset: AdmissionPreset,
    /// Policies to compare, with commas between.
    ///
    /// The names of `tenuto serve --admission` and more; 'all' is every policy but `none`. Without
    /// it the policies of the preset. A policy named here makes long reads, as Tenuto does; the
    /// policies that read single blocks, as the paper's vbrSim, are in the presets. Not for
    /// --preset crowd.
    #[arg(long, value_parser = policies)]
    pub(crate) policy: Option<CommaList<PolicyKind>>,
    /// The disk, instead of the preset's: a model's name, or a file.
    #[arg(long, value_parser = model)]
    pub(crate) model: Option<DiskModel>,
    /// A store whose titles, with their places, are requested.
    ///
    /// Its disk is the preset's, or --model, scaled to the size of the store. Not for --preset
    /// stress and crowd.
    #[arg(long)]
    pub(crate) store: Option<PathBuf>,
    /// Scenarios for each arrival rate.
    ///
    /// With --preset stress and long-run the number of runs; not for slowing and crowd. Without
    /// it: 10500 for paper, so that more than 1000 are in each band near the limit (about six
    /// minutes of two cores), 3000 for large, 60 for library, 360 for stress. 560 show the trend.
    #[arg(long, value_parser = whole::<u64>(1, 10_000_000))]
    pub(crate) scenarios: Option<u64>,
    /// When viewers arrive, instead of the preset's rates.
    ///
    /// For example poisson:500ms: at random, with this mean time between two. For --preset paper,
    /// large and library.
    #[arg(long, value_parser = arrivals)]
    pub(crate) arrivals: Option<Arrivals>,
    /// Largest number of bytes of a long read.
    ///
    /// Without it 1 MiB; 4 MiB with --preset library, and for the first disk of --preset crowd. Not
    /// for --preset stress.
    #[arg(long)]
    pub(crate) read_size: Option<ByteCount>,
    /// Memory for buffers.
    ///
    /// Without it unlimited, as in the paper; 125 MiB with --preset long-run and slowing; 4 GiB
    /// with --preset crowd. Not less than a long read. Not for --preset stress, which draws it at
    /// random.
    #[arg(long)]
    pub(crate) memory: Option<ByteCount>,
    /// How long a viewer of --preset crowd waits for its admission.
    ///
    /// As `--wait` of `tenuto serve`. Without it 5 s.
    #[arg(long, value_parser = wait)]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// A directory for the page and the charts.
    ///
    /// Made if it does not exist. The page is admission-PRESET.html; each chart is an SVG file,
    /// too.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn arrivals(text: &str) -> Result<Arrivals, Reason> {
    // The other ways to arrive are for players, so the error does not name them.
    text.parse().map_err(|_: Reason| {
        let sentence =
            format!("'{text}' is not a mean time between arrivals such as poisson:500ms");
        Reason::from(sentence)
    })
}

fn policies(text: &str) -> Result<CommaList<PolicyKind>, Reason> {
    if text.trim() == "all" {
        // `none` admits every viewer, so there is nothing to compare.
        let all = PolicyKind::all().filter(|policy| *policy != PolicyKind::None);
        return Ok(CommaList(all.collect()));
    }
    let named = |name: &str| {
        PolicyKind::named(name.trim()).ok_or_else(|| {
            let known: Vec<&str> = PolicyKind::all().map(PolicyKind::name).collect();
            let hint = format!("the policies are {}; 'all' is all of them", known.join(", "));
            Reason::new(format!("'{name}' is not a policy"), hint)
        })
    };
    text.split(',').map(named).collect::<Result<_, _>>().map(CommaList)
}

/// The sets of scenarios of `tenuto simulate admission`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AdmissionPreset {
    /// Clips on the smaller disk of Makaroff, Coutu and Liu, by bands of load.
    Paper,
    /// Clips on the larger disk of Makaroff, Coutu and Liu, by bands of load.
    Large,
    /// Feature-length titles on a current disk.
    Library,
    /// Random workloads, to find late reads.
    Stress,
    /// 45 minutes of twice what the disk holds, to see what is admitted.
    LongRun,
    /// A disk that is slower for ten minutes, to see what is admitted meanwhile.
    Slowing,
    /// As many viewers as a disk holds, who come within seconds.
    Crowd,
}

/// Arguments of `tenuto reproduce`.
#[derive(clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The result to reproduce.
    #[arg(value_parser = words(reproductions()))]
    pub(crate) name: Option<&'static Reproduction>,
    /// A directory for the page and the charts.
    ///
    /// Made if it does not exist. The page is NAME.html; each chart is NAME-CHART.svg, too.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) emulation: EmulationArgs,
}

fn reproductions() -> impl Iterator<Item = (&'static str, &'static str, &'static Reproduction)> {
    reproduce::ALL.iter().map(|one| (one.name, one.about, one))
}

/// Options of a reproduction on an emulated disk.
#[derive(clap::Args)]
#[command(next_help_heading = "Options with --emulated")]
pub(crate) struct EmulationArgs {
    /// Use a disk emulated in real time, and file systems on it.
    #[arg(long)]
    pub(crate) emulated: bool,
    /// The file systems, with commas between.
    ///
    /// Without it all that the reproduction measures. `raw` is no file system; `store` a Tenuto
    /// store read by its library, and `mount` its mount, both in `park-figures` only.
    #[arg(long, requires = "emulated")]
    pub(crate) filesystems: Option<CommaList<System>>,
    /// The file for the disk's bytes.
    ///
    /// Without it a temporary file, which is removed at the end. A file that exists is overwritten,
    /// if --destroy allows it, and kept.
    #[arg(long, requires = "emulated")]
    pub(crate) backing: Option<PathBuf>,
    /// Number of rounds in each attempt.
    ///
    /// The paper's 100 rounds take hours at the disk's own speed. One late round is allowed, which
    /// weighs more in few rounds: a stream or two more are held. In `lee-drift` a round is 0.6 s of
    /// playing. Without it 100. Not for `lee-streams` and `park-figures`.
    #[arg(long, requires = "emulated", value_parser = whole::<u32>(5, 100))]
    pub(crate) rounds: Option<u32>,
    /// The factor by which the emulated disk is faster than the real one.
    ///
    /// The clock of the rounds is faster by the same factor. Lateness of this machine counts that
    /// many times, which the report shows. Without it 4. Not for `lee-streams`, whose server and
    /// players have the clock of this machine.
    #[arg(long, requires = "emulated", value_parser = whole::<u32>(1, 20))]
    pub(crate) time_scale: Option<u32>,
    /// Bytes that a stream reads in a round.
    ///
    /// Without it 1MB; the paper also uses 512KB. For `alderman-table1` and `alderman-rounds`.
    #[arg(long, requires = "emulated")]
    pub(crate) block: Option<ByteCount>,
    /// The numbers of streams of `park-figures`, with commas between.
    ///
    /// Without it 1,10,20,30,40,50,60.
    #[arg(long, requires = "emulated")]
    pub(crate) streams: Option<CommaList<u32>>,
    /// The bytes of one read of a stream of `park-figures`: one size or two.
    ///
    /// Without it 32KiB,64KiB.
    #[arg(long, requires = "emulated")]
    pub(crate) ldu: Option<CommaList<ByteCount>>,
}

/// Arguments of `tenuto completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `tenuto man`.
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The command, and its subcommand.
    #[arg(value_name = "COMMAND", value_parser = text())]
    pub(crate) command: Vec<String>,
    /// Print the whole reference as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Print the JSON schema of the configuration file of `serve`.
    #[arg(long, conflicts_with_all = ["command", "markdown"])]
    pub(crate) config_schema: bool,
    /// Print the OpenAPI document of the admin API of `serve`.
    #[arg(long, conflicts_with_all = ["command", "markdown", "config_schema"])]
    pub(crate) openapi: bool,
    /// Write the pages of all commands to this directory
    ///
    /// One file for each command and subcommand, such as tenuto-meter-run.1. The directory is made
    /// if it does not exist; pages that are there are replaced.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["command", "markdown", "config_schema", "openapi"])]
    pub(crate) out: Option<PathBuf>,
}
