//! Arguments of the commands of `tenuto meter`.

use super::shared::{
    CertificateArgs, EndpointArgs, OverwriteArgs, ReportArgs, SeedArgs, SwitchingArgs, TlsArgs,
};
use super::values::{CommaList, Words, described, text, whole};
use clap::{ArgMatches, Error, FromArgMatches, Subcommand};
use device::Method;
use meter::rounds::Order;
use meter::study::{self, Study};
use meter::{FrameNames, HoldRule, Layout, RoundsConfig, SearchConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tenuto_agent::{AgentArgs, address};
use units::{BitRate, ByteCount, parse_duration};

/// The subcommands of `tenuto meter`.
#[derive(clap::Subcommand)]
pub(crate) enum MeterCommand {
    /// Find the largest number of streams that a storage holds.
    ///
    /// Runs more and more streams until frames are late, narrows the number down, and confirms it:
    /// one stream more must fail again, and the number must hold in a run three times as long. If
    /// it does not, the search continues with such long runs, at most 40 runs in all. Ends with
    /// exit code 3 when not one stream is held, and with 5 when the results are not repeatable, or
    /// when this machine and not the storage was late.
    Capacity(Box<CapacityArgs>),
    /// Find the bottleneck on the path to a storage.
    ///
    /// Searches the largest number of streams on longer and longer parts of the path: with no
    /// storage, from this machine's memory, from the memory of the server (if there is one), and
    /// from the storage. The first part that holds no more streams than the whole path is the
    /// bottleneck; the report names the resource that was full. Each search takes 14 runs at most.
    Bottleneck(Box<VariantsArgs>),
    /// Find the largest number of streams for each of the kernel's read interfaces.
    ///
    /// Makes the search of `meter capacity` on one file with io_uring, threads, pread, preadv2,
    /// mmap, mmap-all, libaio, posix-aio and io_uring-poll, one after another: the first table of
    /// Alderman and Diallo's paper for this machine. An interface that the kernel refuses for that
    /// file is reported with the reason: io_uring-poll needs a disk with polled queues. Each search
    /// takes 14 runs at most. mmap reads through the page cache, from which the file is removed
    /// before each run.
    Methods(Box<VariantsArgs>),
    /// Read and write as players and cameras do, and count late frames.
    ///
    /// Every stream requests its frames by the clock, however late the storage is. A frame is late
    /// when it has not been read, or written, --buffer-frames frames after its request was due.
    /// Frames that are late because of this machine are counted separately; a run with more than
    /// one such frame in a thousand is not valid (exit code 5). Ends with exit code 3 when a frame
    /// is late because of the storage.
    ///
    /// With a JOB file several groups of streams run at the same time, each with its own profile,
    /// target, direction and rate. docs/guide/measure-storage.md describes the file.
    Run(Box<RunArgs>),
    /// Move data at full speed: rate and latency as EBU TECH 3362 defines them.
    ///
    /// Each client makes one transfer after another, and draws the parameters of each: the file,
    /// read or write, sequential or random, length, start and block size. Rate is the number of
    /// bytes divided by the time in block transfers; latency is all other time (opening, closing,
    /// and between blocks). Both are reported by operation and block size. Writes go to files made
    /// for the run.
    Transfers(Box<TransfersArgs>),
    /// Make transfers with more and more clients, as in the EBU's test scripts.
    ///
    /// ebu-single-read, -write and -edit: 1 to 10 clients on a single file; ebu-multi-read, -write,
    /// -edit and -file-write, -file-replace: 4 to 40 clients with a file each. An hour for each
    /// number unless --step is given. The report has rate and latency by number of clients.
    Ramp(Box<RampArgs>),
    /// Run the whole procedure of EBU TECH 3362, with one report.
    ///
    /// The network, access profiles, ramps of clients on one file and on a file for each, caches,
    /// fill level, fragmentation, and one node and several, in the order of the paper's chapters.
    /// Each part has its own directory in --out; the report says of each what was found, and draws
    /// rates and largest latencies by number of clients. What the target does not allow is left
    /// out with the reason. Ninety steps of an hour unless --step is given. With --agents or
    /// --hosts the ramps are made on many machines, and the comparisons are left out.
    Ebu(Box<EbuArgs>),
    /// Count and plot the late frames of a run again, from its log alone.
    ///
    /// Reads operations.parquet of a directory that --out made, also of an interrupted run; of
    /// meter capacity and ramp, the log of each run. Writes recount.html beside it, with plots.
    /// Ends with exit code 5 if the count differs from the summary by more than one frame.
    Report(RecountArgs),
    /// List the stream profiles of known formats.
    ///
    /// Bytes of a frame, frames a second, rate, and the source of the figures. verified: the source
    /// states them; derived: computed from the source or from a published layout; house: our own
    /// choice. With a NAME: all figures of that profile, or of your own file.
    Profiles(ProfilesArgs),
    /// Read in rounds, as many streams would, and count late rounds.
    ///
    /// Every stream gets a block every round, which lasts as long as a block plays. Block k must be
    /// in memory k + 1 rounds after the start, however late earlier rounds were. A hundred rounds
    /// with at most one late round count as held. The start places of the streams are spread over
    /// the TARGET, which is only read.
    ///
    /// Several targets are read at the same time, each with the same number of streams. sim:MODEL
    /// is a simulated disk (`tenuto disk models` lists them), read in virtual time: runs are short
    /// and always give the same result. Ends with exit code 3 when the rounds are not held.
    Rounds(RoundsArgs),
    /// Compare two runs, and report the differences that are more than chance.
    ///
    /// A and B are directories that `meter run --out` made. Figures are taken second by second; a
    /// block bootstrap estimates how much they vary by chance. The same two runs always give the
    /// same verdict. Of two directories of `meter capacity` the numbers of streams are shown.
    ///
    /// Storage varies from day to day: repeat the runs, A B A B, before you draw conclusions.
    Compare(CompareArgs),
    /// Make a profile from a trace of a program.
    ///
    /// Prints a profile as TOML, with the share of reads, the share of sequential operations, the
    /// sizes and the rate of the TRACE. Its format is detected:
    ///
    /// fio: --write_iolog=TRACE (version 3; version 2 has no times)
    ///
    /// strace: strace -f -ttt -y -e
    /// trace=openat,dup2,read,write,pread64,pwrite64,readv,writev,lseek,close -o TRACE PROGRAM;
    /// reads of system files (/usr, /etc, /proc) are left out
    ///
    /// blktrace: blktrace -d DEVICE -o - | blkparse -i - > TRACE, or binary: blkparse -i DEVICE -d
    /// TRACE
    ///
    /// NFS: tshark -r CAPTURE -Y 'rpc.msgtyp == 0 && nfs' -T fields -E header=y -e frame.time_epoch
    /// -e nfs.fh.hash -e nfs.procedure_v3 -e nfs.offset3 -e nfs.count3 -e nfs.opcode -e nfs.offset4
    /// -e nfs.count4 -e nfs.write.data_length > TRACE
    ///
    /// sar: sar -d -p 1 60 > TRACE; rates and a mean size only, all taken as sequential
    ProfileFrom(ProfileFromArgs),
    /// Measure on this machine for commands with --agents elsewhere.
    ///
    /// Waits for a controller with the same token, and runs what it asks for, on
    /// targets inside DIR only. Nothing is overwritten. Both sides prove the token to each other
    /// (HMAC-SHA256) and authenticate every message with it; nothing is encrypted. One measurement
    /// runs at a time, and ends when its controller is gone or silent for 4 s. Ctrl-C stops the
    /// agent.
    Agent(AgentArgs),
    /// Measure in a web browser, and keep the reports.
    ///
    /// Serves a page at http://127.0.0.1:8099/console/ that starts a run or a search, shows it
    /// while it runs, and opens, compares and removes the reports in DIR. Each report is a
    /// directory as --out makes it; those of earlier commands are listed, too. A measurement is a
    /// process of this program with the same options, and gives the same report.
    ///
    /// Measured are simulated disks (sim:MODEL), null:, and what is inside the directories of
    /// --allow. Nothing is overwritten and no other machine is loaded; for that there is the
    /// command line. Only this machine can connect unless --listen says otherwise. Ctrl-C stops
    /// the console, and the measurement that runs.
    Console(ConsoleArgs),
    /// Measure the effect of one factor, with all others equal.
    #[command(subcommand)]
    Study(StudyCommand),
}

/// The target of a measurement and how it is used.
#[derive(clap::Args)]
#[command(next_help_heading = "Target options")]
pub(crate) struct TargetArgs {
    /// The storage: a directory, a file, a bucket, or a server.
    ///
    /// In a directory, or at s3://BUCKET/PREFIX, files are made, filled, used and removed
    /// afterwards. A file or a block device is only read, unless --destroy allows writing.
    /// http(s)://... is a title (HLS, DASH or MP4), or a server with all its titles, which `meter
    /// run` and `meter capacity` play as viewers would. sim:MODEL is a simulated disk, in virtual
    /// time; MODEL is a name or a file. null: is no storage, in real time, and shows the lateness
    /// of the meter and of this machine.
    #[arg(long, value_parser = text())]
    pub(crate) target: Option<String>,
    /// Size of the files that are made, together (4GiB).
    ///
    /// Must be larger than the caches on the path, or those are measured.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// Fill the file system to this percentage first.
    ///
    /// The space is reserved, and freed afterwards; nothing is written to it.
    #[arg(long, value_name = "PERCENT", value_parser = whole::<u64>(1, 99))]
    pub(crate) fill_level: Option<u64>,
    /// Names of files that each hold a frame, as cameras write them.
    ///
    /// A path below --target with %07d for the frame, in seven digits, and %03c for the clip, one
    /// for each stream: A001C%03c/A001C%03c_%07d.dpx. For profiles and layouts with a file per
    /// frame.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) names: Option<FrameNames>,
    /// Read the files with these --names that are there.
    ///
    /// None is made, changed or removed. They are read in the order of clips and frames, divided
    /// among the streams.
    #[arg(long)]
    pub(crate) existing: bool,
    /// Use the page cache.
    ///
    /// As most programs read. Data that was read before may come from memory.
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Remove the files from the page cache before each run.
    ///
    /// For --buffered, and for file systems that cannot bypass the page cache: reads then come from
    /// the storage.
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Write recognisable data, and verify everything that is read.
    ///
    /// In a directory, of this machine or of agents. Every page of 4 KiB that is not as it was
    /// written is reported with file, offset and time, also one that an acknowledged write should
    /// have changed. Ends with exit code 4 if there is one. Takes processor time, as the meter's
    /// part.
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

/// The machines that measure.
#[derive(clap::Args)]
#[command(next_help_heading = "Agent options")]
pub(crate) struct FleetArgs {
    /// Run on these agents: ADDRESS,ADDRESS.
    ///
    /// Streams or clients are divided among them; --target is a directory on each. `tenuto meter
    /// agent` starts an agent. A lost agent makes the run invalid. Operations are not logged.
    #[arg(long)]
    pub(crate) agents: Option<CommaList<String>>,
    /// Run on these hosts, by ssh: HOST,HOST.
    ///
    /// Copies this program to each host, starts it as an agent, and removes it afterwards. ssh must
    /// not ask questions.
    #[arg(long)]
    pub(crate) hosts: Option<CommaList<String>>,
    /// The ssh command of --hosts, with its options.
    ///
    /// Split at blanks. OpenSSH 8.0 and later is asked for a fast key exchange and cipher
    /// (curve25519-sha256, aes128-gcm), which shortens many logins; options given here come first.
    #[arg(long, default_value = "ssh", value_parser = text())]
    pub(crate) ssh: String,
    /// The agent's program for --hosts, instead of this one.
    ///
    /// `make agent` builds target/agent/tenuto-agent, which is small and runs on any Linux of its
    /// architecture. It must have the same version as this program.
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    /// A file with the token of --agents.
    #[arg(long)]
    pub(crate) token_file: Option<PathBuf>,
    /// Processes on each agent.
    ///
    /// Streams or clients are divided among them. Each process makes its own files of --size.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 256))]
    pub(crate) workers: u32,
}

/// Where the figures of a measurement go.
#[derive(clap::Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputArgs {
    /// Serve metrics during the run at this address: ADDR:PORT.
    ///
    /// OpenMetrics text at http://ADDR:PORT/metrics; docs/reference/metrics.md explains each
    /// metric. Port 0 takes any free port; a note on stderr names it.
    #[arg(long, value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// A new directory for the report and all figures.
    ///
    /// docs/guide/measure-storage.md explains its files.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Where the figures of a command without a page go.
#[derive(clap::Args)]
pub(crate) struct SavedReportArgs {
    /// A new directory for all figures: JSON, CSV and Parquet.
    ///
    /// summary.json, and each of its lists as a table. docs/guide/measure-storage.md explains the
    /// files.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// How streams are read and written.
#[derive(clap::Args)]
#[command(next_help_heading = "Stream options")]
pub(crate) struct StreamsArgs {
    /// The stream profile: its name, or a TOML file.
    ///
    /// `tenuto meter profiles` lists the names.
    #[arg(long, value_parser = text())]
    pub(crate) profile: Option<String>,
    /// How streams share files.
    ///
    /// Without it as in the profile: a file for each frame, or one file.
    #[arg(long, value_parser = layouts())]
    pub(crate) layout: Option<Layout>,
    /// Frames in one read or write, instead of the profile's.
    ///
    /// As programs read formats with groups of pictures. In time is as for the first frame of a
    /// group.
    #[arg(long, value_parser = whole::<u32>(1, 1000))]
    pub(crate) read_frames: Option<u32>,
    /// Frames that a client buffers (8).
    ///
    /// A frame is late when it arrives this number of frames after its request was due.
    #[arg(long, value_parser = whole::<u32>(1, 10_000))]
    pub(crate) buffer_frames: Option<u32>,
    /// How a single file is read and written (best).
    ///
    /// If the kernel refuses it, threads are used, which the report states. Several files are
    /// always read and written by threads.
    #[arg(long, value_parser = methods())]
    pub(crate) method: Option<Method>,
    /// Give the measuring thread priority over all other programs.
    ///
    /// On a busy machine frames are otherwise requested milliseconds late. Needs root or
    /// CAP_SYS_NICE. Not for a storage that is itself a program on this machine, because that
    /// program would wait for the meter.
    #[arg(long)]
    pub(crate) realtime: bool,
    /// Watch the clock instead of sleeping until a frame is due.
    ///
    /// Frames are then requested on time where sleeping threads wake late, as on virtual machines.
    /// Takes up to one processor; with too few processors the meter sleeps. Not with --realtime.
    #[arg(long)]
    pub(crate) busy_poll: bool,
    #[command(flatten)]
    pub(crate) view: LiveArgs,
}

/// `--live`, a view of runs.
#[derive(clap::Args)]
pub(crate) struct LiveArgs {
    /// Show figures and a heat map of responses during runs.
    ///
    /// Streams or clients, what they do in a second, and the responses of each of the last 60
    /// seconds by length, late ones in red. On a terminal; elsewhere with --json lines of JSON on
    /// standard error, and otherwise nothing is shown.
    #[arg(long)]
    pub(crate) live: bool,
}

/// Streams, the storage that they read or write, and the place of the figures.
#[derive(clap::Args)]
pub(crate) struct StreamsOnTarget {
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn layouts() -> Words<Layout> {
    described(Layout::NAMES, |layout| match layout {
        Layout::OneFile => "one file; each stream has a part of it",
        Layout::SharedFile => "one file; all streams read it, from different places",
        Layout::FilePerStream => "a file for each stream",
        Layout::FilePerFrame => "a file for each frame, opened and closed each time",
    })
}

fn methods() -> Words<Method> {
    described(Method::NAMES, Method::description)
}

/// `--threshold` and its options.
#[derive(clap::Args)]
#[command(next_help_heading = "Threshold options")]
pub(crate) struct ThresholdArgs {
    /// Report at once when the mean rate falls below this.
    ///
    /// The rate of all streams together (with --threshold-each of any stream), averaged over
    /// --threshold-window. The recovery is reported, too.
    #[arg(long)]
    pub(crate) threshold: Option<BitRate>,
    /// Compare each stream or client with --threshold.
    #[arg(long)]
    pub(crate) threshold_each: bool,
    /// The time over which the mean rate is taken.
    ///
    /// Without it the play-out time of a client's buffer; for transfers a second.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) threshold_window: Option<Duration>,
}

/// Options of searches for the largest number of streams.
#[derive(clap::Args)]
#[command(next_help_heading = "Search options")]
pub(crate) struct SearchArgs {
    /// The rule by which a number of streams is held.
    #[arg(long, default_value = "strict", value_parser = rules())]
    pub(crate) rule: HoldRule,
    /// Largest number of streams that is tried.
    #[arg(long, default_value = "4096", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) max_streams: u32,
}

impl SearchArgs {
    /// The search, with its files in `out`, whose result has to hold for `confirm` at last.
    pub(crate) fn config(&self, confirm: Option<Duration>, out: Option<PathBuf>) -> SearchConfig {
        SearchConfig { rule: self.rule, max_streams: self.max_streams, confirm, out }
    }
}

fn rules() -> Words<HoldRule> {
    described(HoldRule::NAMES, |rule| match rule {
        HoldRule::Strict => {
            "no frame is late, the backlog does not grow; players get the best rendition throughout"
        }
        HoldRule::OneLateRoundOf100 => {
            "frames with the same number are a round; at most one round in 100 is late"
        }
    })
}

/// Arguments of `tenuto meter capacity`.
#[derive(clap::Args)]
pub(crate) struct CapacityArgs {
    /// Length of each run; the confirming one is three times as long (20s).
    ///
    /// Without it 20 s, or 11 times as long as a client buffers if that is more. A confirming run
    /// lasts at least 33 times as long as a client buffers, because in less time a backlog does not
    /// show. Longer runs give more certainty, which the report states.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Length of a last run, in which the number found must hold.
    ///
    /// If it does not, the number is lowered until one does. Without it a simulated disk has to
    /// hold the number for a day of virtual time, or for 10 million operations if that is less;
    /// other targets only for the confirming run. No such run is made where the confirming run is
    /// as long.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) confirm: Option<Duration>,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) on: StreamsOnTarget,
}

/// Arguments of `tenuto meter bottleneck` and `tenuto meter methods`.
#[derive(clap::Args)]
pub(crate) struct VariantsArgs {
    /// Length of each run; a confirming one is three times as long (5s).
    ///
    /// Without it 5 s, or 11 times as long as a client buffers if that is more. A search has 14
    /// runs; `bottleneck` makes up to four searches, `methods` up to nine. That takes six to ten
    /// minutes, or three times as long where results are not repeatable.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) on: StreamsOnTarget,
}

/// Arguments of `tenuto meter run`.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// A job file: several groups of streams at the same time.
    ///
    /// The file says what --target, --profile, --streams and their like say otherwise. --duration,
    /// --destroy, --realtime, --busy-poll, the options of buckets, those of agents and those of the
    /// output are for all its groups.
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<PathBuf>,
    /// Number of streams; one unless it is given.
    #[arg(long = "streams", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) count: Option<u32>,
    /// Rate of all streams together, instead of the profile's.
    ///
    /// Frames are as large as in the profile, and due at other intervals. A profile without frame
    /// rate is paced by it.
    #[arg(long)]
    pub(crate) rate: Option<BitRate>,
    /// Length of the run (60s).
    ///
    /// Without it 60 s, or 11 times as long as a client buffers if that is more. In less time a
    /// backlog does not show. Longer runs give more certainty, which the report states.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Prepare, print `ready`, and start at a line of standard input.
    ///
    /// For programs that start several runs at once. The end of standard input stops the run.
    #[arg(long)]
    pub(crate) hold: bool,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    #[command(flatten)]
    pub(crate) on: StreamsOnTarget,
}

/// Arguments of `tenuto meter transfers`.
#[derive(clap::Args)]
pub(crate) struct TransfersArgs {
    /// The profile of the transfers: its name, or a TOML file.
    ///
    /// `tenuto meter profiles` lists the names.
    #[arg(long, value_parser = text())]
    pub(crate) profile: Option<String>,
    /// Number of clients that work at the same time.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 1000))]
    pub(crate) clients: u32,
    /// Length of the run; no transfer starts later.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Largest number of transfers of each client.
    #[arg(long, value_parser = whole::<u64>(1, 1_000_000_000))]
    pub(crate) transfers: Option<u64>,
    /// Transfer whole files; a written file is a new one.
    ///
    /// It is written beside the old file and takes its name when it is closed. In a directory, with
    /// space for one more file for each client.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Number of files, in a directory; together they take --size.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 10_000))]
    pub(crate) files: u32,
    /// Each client has a file of its own.
    #[arg(long)]
    pub(crate) file_per_client: bool,
    /// Largest size of a transfer, instead of the profile's.
    #[arg(long)]
    pub(crate) length: Option<ByteCount>,
    /// The only block size, instead of the profile's.
    ///
    /// Up to 256 MiB.
    #[arg(long)]
    pub(crate) block: Option<ByteCount>,
    /// Lengths of one to this number of whole frames.
    ///
    /// For a profile with frames; each frame is a block.
    #[arg(long, value_parser = whole::<u32>(1, 10_000))]
    pub(crate) frames: Option<u32>,
    /// Wait up to this time before each transfer.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) think: Option<Duration>,
    /// Rate of all clients together.
    ///
    /// Blocks are due by the clock at this rate, and a client that is free takes the next one.
    /// After a delay of the storage those that were due meanwhile follow at full speed; the
    /// response of a block counts from when it was due. Without it as fast as the storage allows.
    #[arg(long)]
    pub(crate) rate: Option<BitRate>,
    /// Transfer no byte twice before all have been transferred.
    ///
    /// For storage whose caches cannot be switched off.
    #[arg(long)]
    pub(crate) no_repeat: bool,
    #[command(flatten)]
    pub(crate) view: LiveArgs,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `tenuto meter ramp`.
#[derive(clap::Args)]
pub(crate) struct RampArgs {
    /// A built-in script, or a TOML file.
    #[arg(value_parser = text())]
    pub(crate) script: String,
    /// Time for each number of clients, instead of the script's.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) step: Option<Duration>,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// Print the script, as a start for your own.
    #[arg(long)]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) view: LiveArgs,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `tenuto meter ebu`.
#[derive(clap::Args)]
pub(crate) struct EbuArgs {
    /// Time for each number of clients, instead of an hour.
    ///
    /// Runs of comparisons take 10 s, or this time if it is shorter.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) step: Option<Duration>,
    /// A directory on a second node, for the comparison of nodes.
    #[arg(long)]
    pub(crate) second: Option<PathBuf>,
    /// Runs of each setting of a comparison, in shuffled order.
    ///
    /// With six or more, a difference is distinguished from chance with 95 % confidence.
    #[arg(long, default_value = "6", value_parser = whole::<u32>(1, 100))]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// A new directory for the report and all figures.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto meter report`.
#[derive(clap::Args)]
pub(crate) struct RecountArgs {
    /// A directory that --out made.
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}

/// Arguments of `tenuto meter profiles`.
#[derive(clap::Args)]
pub(crate) struct ProfilesArgs {
    /// One profile in full: its name, or a TOML file.
    #[arg(value_parser = text())]
    pub(crate) name: Option<String>,
    /// Compute the figures again and report disagreements.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print the profile's file, as a start for your own.
    #[arg(long)]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}

/// Arguments of `tenuto meter rounds`.
#[derive(clap::Args)]
pub(crate) struct RoundsArgs {
    /// Files, block devices, or sim:MODEL.
    #[arg(required = true, value_name = "TARGET", value_parser = text())]
    pub(crate) targets: Vec<String>,
    /// Streams of each target.
    #[arg(long, default_value = "10", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) streams: u32,
    /// Bytes that a stream reads in a round.
    #[arg(long, default_value = "1MiB")]
    pub(crate) block: ByteCount,
    /// Rate of a stream.
    #[arg(long, default_value = "5Mbps")]
    pub(crate) rate: BitRate,
    /// Number of rounds.
    #[arg(long, default_value = "100", value_parser = whole::<u32>(1, 1_000_000))]
    pub(crate) rounds: u32,
    /// Order of the blocks in a round.
    #[arg(long, default_value = "scan", value_parser = orders())]
    pub(crate) order: Order,
    /// Reads in flight at once.
    ///
    /// With the number of streams, the kernel and the disk choose the order.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 4096))]
    pub(crate) iodepth: u32,
    /// How blocks are read.
    ///
    /// If the kernel refuses it, threads are used, which the report states.
    #[arg(long, default_value = "best", value_parser = methods())]
    pub(crate) method: Method,
    /// Use the page cache.
    ///
    /// As most programs read. Data that was read or written before may come from memory. mmap
    /// always uses the page cache.
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Start each round when the previous round is complete.
    ///
    /// Measures the rate at full speed, and each stream's share of it.
    #[arg(long)]
    pub(crate) unpaced: bool,
    /// Read each of several targets by itself first, then all together.
    ///
    /// Shows the cost of the resources that they share: bus, processor, memory.
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}

fn orders() -> Words<Order> {
    described(RoundsConfig::ORDERS, |order| match order {
        Order::Scan => "by place on disk, every other round from the far end",
        Order::Arrival(_) => "at random, as requests arrive",
        Order::Streams => "by stream",
    })
}

/// Arguments of `tenuto meter compare`.
#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// The first run.
    pub(crate) a: PathBuf,
    /// The run that is compared with A.
    pub(crate) b: PathBuf,
    /// Confidence that no verdict is a false alarm, in per cent.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = whole::<u32>(50, 99))]
    pub(crate) confidence: u32,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}

/// Arguments of `tenuto meter console`.
#[derive(clap::Args)]
pub(crate) struct ConsoleArgs {
    /// The directory of the reports.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// A directory in which may be measured; once for each.
    ///
    /// Files and devices in it can be read, and files are made in it and removed afterwards.
    #[arg(long, value_name = "PATH")]
    pub(crate) allow: Vec<PathBuf>,
    /// Where browsers connect.
    ///
    /// Port 0 takes any free port. An address that other machines can reach needs --token-file.
    /// Without --tls-certificate nothing is encrypted: `ssh -L 8099:127.0.0.1:8099 HOST` is better
    /// than such an address.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8099", value_parser = address)]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,
    /// A file with the token that browsers must have.
    ///
    /// 16 bytes or more: openssl rand -hex 32 > secret; chmod 600 secret. The page is then opened
    /// as /console/?token=TOKEN.
    #[arg(long, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto meter profile-from`.
#[derive(clap::Args)]
pub(crate) struct ProfileFromArgs {
    /// The trace.
    pub(crate) trace: PathBuf,
    /// Name of the profile; without it the file's name.
    #[arg(long, value_parser = text())]
    pub(crate) name: Option<String>,
    /// Only files or devices with this in their names.
    ///
    /// In blkparse's text a device is named by its number (8,0), in a capture a file by its hash.
    #[arg(long, value_parser = text())]
    pub(crate) only: Option<String>,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}

/// A study with its options: one of storage, or the one of a network.
pub(crate) enum StudyCommand {
    Storage(&'static Study, StudyArgs),
    Network(NetworkArgs),
}

const NETWORK: &str = "network";

impl Subcommand for StudyCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        // The studies are data of the meter, which a derived parser cannot read.
        let storage = study::ALL.iter().map(|study| {
            let about = format!("{}.\n\n{}", study.about, study.long);
            let command = <StudyArgs as clap::Args>::augment_args(clap::Command::new(&*study.name));
            command.about(&*study.about).long_about(about)
        });
        let about = "Measure the effect of link speed, queue, TCP window and packet size";
        let network = <NetworkArgs as clap::Args>::augment_args(clap::Command::new(NETWORK))
            .about(about)
            .long_about(format!("{about}.\n\n{NETWORK_LONG}"));
        command.subcommand_required(true).subcommands(storage.chain([network]))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == NETWORK || Study::named(name).is_some()
    }
}

impl FromArgMatches for StudyCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        match matches.subcommand() {
            Some((NETWORK, inner)) => Ok(Self::Network(NetworkArgs::from_arg_matches(inner)?)),
            Some((name, inner)) if let Some(study) = Study::named(name) => {
                Ok(Self::Storage(study, StudyArgs::from_arg_matches(inner)?))
            }
            _ => Err(Error::new(clap::error::ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Arguments of a study of storage.
#[derive(clap::Args)]
pub(crate) struct StudyArgs {
    /// A directory, a file, a device, or sim:MODEL.
    ///
    /// In a directory, files are made, filled, used and removed afterwards. A file or a block
    /// device is only read; studies that write or that make several files need a directory.
    /// sim:MODEL is a simulated disk, in virtual time, without a page cache.
    #[arg(long, value_parser = text())]
    pub(crate) target: Option<String>,
    /// A directory on the second node, for the study `nodes`.
    ///
    /// The study needs it unless --target is a simulated disk.
    #[arg(long)]
    pub(crate) second: Option<PathBuf>,
    /// Size of the files that are made for a setting, together (1GiB).
    ///
    /// Must be larger than the caches on the path, or those are measured. Of a simulated disk it is
    /// the part that is used; `position` uses all of it.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// Number of clients that work at the same time.
    #[arg(long, default_value = "4", value_parser = whole::<u32>(1, 1000))]
    pub(crate) clients: u32,
    /// Length of each run: no transfer starts later.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Runs of each setting, in shuffled order.
    ///
    /// With six or more, a difference is distinguished from chance with 95 % confidence.
    #[arg(long, default_value = "6", value_parser = whole::<u32>(1, 100))]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) random: SeedArgs,
    /// A new directory for the report and all figures.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const NETWORK_LONG: &str = "\
Makes two network namespaces on this machine, and removes them afterwards. Clients in one read blocks of \
64 KiB from a server in the other, one after another, over a link of the given speed and of a tenth of it, \
with a long and a short queue, with a small window, and with large packets. The counters of the sending \
side show the limit of each run. Needs root, and `ip`, `tc` and `ss`.";

/// Arguments of `tenuto meter study network`.
#[derive(clap::Args)]
pub(crate) struct NetworkArgs {
    /// Speed of the fast link.
    ///
    /// Must be lower than the rate between namespaces of this machine.
    #[arg(long, default_value = "100Mbps")]
    pub(crate) link: BitRate,
    /// Number of clients that read at the same time.
    #[arg(long, default_value = "4", value_parser = whole::<u32>(1, 64))]
    pub(crate) clients: u32,
    /// Length of each of the six runs.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) saved: SavedReportArgs,
}
