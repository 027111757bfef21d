//! Arguments of the commands of `tenuto meter`.

use super::shared::{OverwriteArgs, ReportArgs, SwitchingArgs, TlsArgs};
use super::values::{CommaList, address, text, whole, words};
use clap::{ArgMatches, Error, FromArgMatches, Subcommand};
use device::Method;
use meter::RoundsConfig;
use meter::capacity::HoldRule;
use meter::rounds::Order;
use meter::study::{self, Study};
use meter::target::Layout;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount, parse_duration};

/// The subcommands of `tenuto meter`.
#[derive(clap::Subcommand)]
pub(crate) enum MeterCommand {
    /// Find the largest number of streams that a storage holds.
    ///
    /// Runs more and more streams until frames are late, narrows the number down, and confirms it:
    /// one more than the largest held must fail once more, and the largest held must hold for three
    /// times as long right after. Where it does not, the search goes on with such long runs; there
    /// are at most 40. Ends with exit code 5 when the results are not repeatable, or when this
    /// machine and not the storage was late.
    #[cfg(feature = "whole")]
    Capacity(Box<CapacityArgs>),
    /// Find the bottleneck on the way to a storage.
    ///
    /// Searches the largest number of streams on more and more of the way: with no storage, from
    /// this machine's memory, from the memory of the server (where there is one), and from the
    /// storage. The first that holds no more than the last is the bottleneck; the resource that was
    /// full there is named. Each search takes 14 runs at most.
    #[cfg(feature = "whole")]
    Bottleneck(Box<VariantsArgs>),
    /// Find how many streams each of the kernel's ways of reading holds.
    ///
    /// The same search on the same file by io_uring, threads, pread, preadv2, mmap, mmap-all,
    /// libaio, posix-aio and io_uring-poll, one after another: the first table of Alderman and
    /// Diallo's paper for this machine. A way that the kernel refuses for that file is left out,
    /// and named with its reason: io_uring-poll needs a disk with polled queues. Each search takes
    /// 14 runs at most. mmap reads through the page cache, which is emptied of the file before each
    /// run.
    #[cfg(feature = "whole")]
    Methods(Box<VariantsArgs>),
    /// Read and write as players and cameras do, and count late frames.
    ///
    /// Every stream requests its frames by the clock, however late the storage is. A frame is late
    /// when it is not there, or not written, --buffer-frames frames after its request was due.
    /// Frames that are late because of this machine are counted apart; a run with more than one
    /// such frame in a thousand is not valid (exit code 5).
    Run(Box<RunArgs>),
    /// Move data at full speed: rate and latency as EBU TECH 3362 defines them.
    ///
    /// Each client makes one transfer after another, and draws for each: the file, read or write,
    /// sequential or random, length, start and block size. Rate is the bytes over the time in block
    /// transfers, latency all other time (opening, closing, and between blocks), by operation and
    /// block size. Writes go to files made for the run.
    #[cfg(feature = "whole")]
    Transfers(Box<TransfersArgs>),
    /// Make transfers with more and more clients, as in the EBU's test scripts.
    ///
    /// ebu-single-read, -write and -edit: 1 to 10 clients on a single file; ebu-multi-read, -write,
    /// -edit and -file-write, -file-replace: 4 to 40 clients with a file each; an hour for each
    /// number unless --step is given. The report has rate and latency against the number of
    /// clients.
    #[cfg(feature = "whole")]
    Ramp(Box<RampArgs>),
    /// Count a run's late frames again, and plot it, from its log alone.
    ///
    /// Reads operations.parquet of a directory that --out made, also of a run that was interrupted,
    /// and reports what was late; of meter capacity and ramp, that of each of its runs. Writes
    /// recount.html beside it, with plots. Ends with exit code 5 where the summary differs by more
    /// than one frame.
    #[cfg(feature = "whole")]
    Report(RecountArgs),
    /// List the stream profiles of known formats.
    ///
    /// Bytes of a frame, frames a second, rate, and the source of the figures. verified: the source
    /// states them; derived: computed from what it states or from a published layout; house: our
    /// own choice. With a NAME: everything about one, or about your own file.
    #[cfg(feature = "whole")]
    Profiles(ProfilesArgs),
    /// Read in rounds, as many streams would, and count late rounds.
    ///
    /// Every stream gets a block every round, which lasts as long as a block plays. Block k must be
    /// in memory k + 1 rounds after the start, however late the rounds before were. A hundred
    /// rounds with at most one late count as held. Streams start all over the TARGET, which is only
    /// read.
    ///
    /// Several targets are read at the same time, each with the same number of streams. sim:MODEL
    /// is a simulated disk (`tenuto disk models` lists them), read in virtual time: a run takes no
    /// time and always gives the same result.
    #[cfg(feature = "whole")]
    Rounds(RoundsArgs),
    /// Compare two runs, and report the differences that are more than chance.
    ///
    /// A and B are directories that `meter run --out` made. Figures are taken second by second, and
    /// blocks of seconds are drawn again and again to see how much chance alone would move them (a
    /// block bootstrap). The same two runs always give the same verdict. Of two directories of
    /// `meter capacity` the counts are shown.
    ///
    /// Storage varies from day to day: repeat runs, A B A B, before blaming a change.
    #[cfg(feature = "whole")]
    Compare(CompareArgs),
    /// Make a profile from a trace of a program.
    ///
    /// Prints a profile as TOML: share of reads, share of sequential operations, sizes and rate as
    /// in the TRACE, whose format is detected:
    ///
    /// fio: --write_iolog=TRACE (version 3; version 2 has no times)
    ///
    /// strace: strace -f -ttt -y -e
    /// trace=openat,dup2,read,write,pread64,pwrite64,readv,writev,lseek,close -o TRACE PROGRAM; its
    /// reads of the system (/usr, /etc, /proc) are left out
    ///
    /// blktrace: blktrace -d DEVICE -o - | blkparse -i - > TRACE, or binary: blkparse -i DEVICE -d
    /// TRACE
    ///
    /// NFS: tshark -r CAPTURE -Y 'rpc.msgtyp == 0 && nfs' -T fields -E header=y -e frame.time_epoch
    /// -e nfs.fh.hash -e nfs.procedure_v3 -e nfs.offset3 -e nfs.count3 -e nfs.opcode -e nfs.offset4
    /// -e nfs.count4 -e nfs.write.data_length > TRACE
    ///
    /// sar: sar -d -p 1 60 > TRACE; rates and a mean size only, all taken as sequential
    #[cfg(feature = "whole")]
    ProfileFrom(ProfileFromArgs),
    /// Measure on this machine for `meter run --agents` elsewhere.
    ///
    /// Waits for a controller with the same token, and runs what it asks for: `meter run` on a
    /// target inside of DIR, never anywhere else, never with --destroy. Both prove the token to
    /// each other (HMAC-SHA256) and authenticate every message with it; nothing is encrypted. One
    /// measurement at a time; it ends when its controller is gone. Stop the agent with Ctrl-C.
    Agent(AgentArgs),
    /// See the effect of one factor, other things being equal.
    #[cfg(feature = "whole")]
    #[command(subcommand)]
    Study(StudyCommand),
}

/// The target of a measurement and how it is used.
#[derive(clap::Args)]
#[command(next_help_heading = "Target options")]
pub(crate) struct TargetArgs {
    /// What is measured: a directory, a file, a bucket, a server.
    ///
    /// In a directory, or at s3://BUCKET/PREFIX, files are made, filled, used and removed
    /// afterwards. A file or a block device is only read, unless --destroy allows writing.
    /// http(s)://... is a title (HLS, DASH or MP4), or a server with all its titles, which `meter
    /// run` and `meter capacity` play as viewers would. sim:MODEL is a simulated disk, in virtual
    /// time; MODEL is a name or a file. null: is no storage at all, in real time: lateness there is
    /// the meter's or this machine's.
    #[arg(long, value_parser = text())]
    pub(crate) target: Option<String>,
    /// Size of the files that are made, together (4GiB).
    ///
    /// Larger than the caches on the way, or they are measured.
    #[arg(long)]
    pub(crate) size: Option<ByteCount>,
    /// Fill the file system to this percentage first.
    ///
    /// The space is reserved and given back afterwards; nothing is written to it.
    #[arg(long, value_name = "PERCENT", value_parser = whole::<u64>(1, 99))]
    pub(crate) fill_level: Option<u64>,
    /// Use the page cache.
    ///
    /// As programs usually read; what was read lately comes from memory.
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Empty the page cache of the files before each run.
    ///
    /// With --buffered, and where a file system cannot do without the page cache: reads then come
    /// from the storage.
    #[arg(long)]
    pub(crate) drop_caches: bool,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// The server of buckets: http[s]://HOST[:PORT].
    ///
    /// Instead of AWS_ENDPOINT_URL. The keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in
    /// the environment.
    #[arg(long, value_name = "URL", value_parser = text())]
    pub(crate) endpoint: Option<String>,
    /// The region of the bucket.
    ///
    /// Instead of AWS_REGION. Without either us-east-1.
    #[arg(long, value_parser = text())]
    pub(crate) region: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// Where the figures of a measurement go.
#[derive(clap::Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputArgs {
    /// Serve counts of the run here while it is on: ADDR:PORT.
    ///
    /// OpenMetrics text at http://ADDR:PORT/metrics, each explained in docs/reference/metrics.md.
    /// Port 0 takes any free port; a note on stderr names it.
    #[arg(long, value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// A new directory for the report and all figures.
    ///
    /// docs/guide/measure-storage.md says what is in it.
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
    /// Without it a file for each frame if the profile has that, else one file.
    #[arg(long, value_parser = words(layouts()))]
    pub(crate) layout: Option<Layout>,
    /// Frames that a client buffers (8).
    ///
    /// A frame is late when it comes this number of frames after its request was due.
    #[arg(long, value_parser = whole::<u32>(1, 10_000))]
    pub(crate) buffer_frames: Option<u32>,
    /// How a single file is read and written (best).
    ///
    /// One that the kernel refuses is replaced by threads; the report says so. Many files are
    /// always read and written by threads.
    #[arg(long, value_parser = words(methods()))]
    pub(crate) method: Option<Method>,
    /// Run the measuring thread before all other programs.
    ///
    /// On a busy machine frames are otherwise requested milliseconds late. Needs root or
    /// CAP_SYS_NICE. Not where the storage itself is a program on this machine: it would wait for
    /// the meter.
    #[arg(long)]
    pub(crate) realtime: bool,
    /// Watch the clock instead of sleeping until a frame is due.
    ///
    /// Frames are requested on time where sleeping threads are woken late, as on virtual machines.
    /// Takes up to a processor, more so the closer frames are due to each other; with too few
    /// processors it sleeps. Not with --realtime.
    #[arg(long)]
    pub(crate) busy_poll: bool,
}

fn layouts() -> impl Iterator<Item = (&'static str, &'static str, Layout)> {
    Layout::NAMES.into_iter().map(|(name, layout)| {
        let about = match layout {
            Layout::OneFile => "one file, of which each stream has a part",
            Layout::SharedFile => "one file that all read, from different places",
            Layout::FilePerStream => "a file for each stream",
            Layout::FilePerFrame => "a file for each frame, opened and closed each time",
        };
        (name, about, layout)
    })
}

fn methods() -> impl Iterator<Item = (&'static str, &'static str, Method)> {
    Method::NAMES.into_iter().map(|(name, method)| (name, method.description(), method))
}

/// `--threshold` and its options.
#[derive(clap::Args)]
#[command(next_help_heading = "Threshold options")]
pub(crate) struct ThresholdArgs {
    /// Report at once when the mean rate falls below this.
    ///
    /// The rate of all together (or with --threshold-each of any), in the mean of
    /// --threshold-window; reported again when it has recovered.
    #[arg(long)]
    pub(crate) threshold: Option<BitRate>,
    /// Compare each stream or client with --threshold.
    #[arg(long)]
    pub(crate) threshold_each: bool,
    /// The time over which the mean rate is taken.
    ///
    /// Without it the time that a client's buffer lasts; a second of transfers.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) threshold_window: Option<Duration>,
}

/// Options of searches for the largest number of streams.
#[derive(clap::Args)]
#[command(next_help_heading = "Search options")]
pub(crate) struct SearchArgs {
    /// What counts as held.
    #[arg(long, default_value = "strict", value_parser = words(rules()))]
    pub(crate) rule: HoldRule,
    /// Try no more streams than these.
    #[arg(long, default_value = "4096", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) max_streams: u32,
}

fn rules() -> impl Iterator<Item = (&'static str, &'static str, HoldRule)> {
    HoldRule::NAMES.into_iter().map(|(name, rule)| {
        let about = match rule {
            HoldRule::Strict => "no frame is late; players get no smaller piece than they could",
            HoldRule::OneLateRoundOf100 => {
                "frames of one number are a round; at most one in 100 has a late one"
            }
        };
        (name, about, rule)
    })
}

/// Arguments of `tenuto meter capacity`.
#[derive(clap::Args)]
pub(crate) struct CapacityArgs {
    /// Length of each run; the confirming one is three times as long.
    ///
    /// Longer runs give more certainty; the report says how much.
    #[arg(long, default_value = "20s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `tenuto meter bottleneck` and `tenuto meter methods`.
#[derive(clap::Args)]
pub(crate) struct VariantsArgs {
    /// Length of each run; a confirming one is three times as long.
    ///
    /// A search has 14 runs, and there are four searches at most of `bottleneck`, nine of
    /// `methods`: six to ten minutes, or three times that where results are not repeatable.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `tenuto meter run`.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// Number of streams.
    #[arg(long = "streams", default_value = "1", value_parser = whole::<u32>(1, 100_000))]
    pub(crate) count: u32,
    /// Length of the run.
    ///
    /// Longer runs give more certainty; the report says how much.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Prepare, print `ready`, and start at a line of standard input.
    ///
    /// For programs that start several runs at once, as agents do. The end of standard input stops
    /// the run.
    #[arg(long)]
    pub(crate) hold: bool,
    #[command(flatten)]
    pub(crate) switching: SwitchingArgs,
    #[command(flatten)]
    pub(crate) streams: StreamsArgs,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Options of a run on many machines.
#[derive(clap::Args)]
#[command(next_help_heading = "Agent options")]
pub(crate) struct FleetArgs {
    /// Run on these agents: ADDRESS,ADDRESS.
    ///
    /// Streams are shared out among them; --target is a directory on each. `tenuto meter agent`
    /// starts one. An agent that is lost makes the run invalid.
    #[arg(long)]
    pub(crate) agents: Option<CommaList<String>>,
    /// Run on these hosts, by ssh: HOST,HOST.
    ///
    /// Copies this program there, starts it as an agent, and removes it afterwards. ssh must ask
    /// nothing.
    #[arg(long)]
    pub(crate) hosts: Option<CommaList<String>>,
    /// The ssh of --hosts, with options of its own.
    ///
    /// Split at blanks. An OpenSSH from 8.0 on is asked for a quick key exchange and cipher
    /// (curve25519-sha256, aes128-gcm), so that many logins are made sooner; options here go before
    /// that.
    #[arg(long, default_value = "ssh", value_parser = text())]
    pub(crate) ssh: String,
    /// The program that --hosts get instead of this one.
    ///
    /// The program that `make agent` builds runs on any Linux of its architecture and is copied
    /// sooner. It must be of the same version as this one.
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    /// A file with the token of --agents.
    #[arg(long)]
    pub(crate) token_file: Option<PathBuf>,
    /// Processes on each agent.
    ///
    /// Streams are shared out among them. Each makes files of --size for itself.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 256))]
    pub(crate) workers: u32,
}

/// Arguments of `tenuto meter transfers`.
#[derive(clap::Args)]
pub(crate) struct TransfersArgs {
    /// What is transferred: a profile's name, or a TOML file.
    ///
    /// `tenuto meter profiles` lists the names.
    #[arg(long, value_parser = text())]
    pub(crate) profile: Option<String>,
    /// Number of clients that work at the same time.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 1000))]
    pub(crate) clients: u32,
    /// Length of the run: no transfer starts later.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Transfers of each client at most.
    #[arg(long, value_parser = whole::<u64>(1, 1_000_000_000))]
    pub(crate) transfers: Option<u64>,
    /// Each transfer is a whole file; one that is written is a new one.
    ///
    /// It is written beside the old one and takes its name when it is closed. In a directory, with
    /// room for one more file a client.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Number of files, in a directory; together they take --size.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 10_000))]
    pub(crate) files: u32,
    /// Each client has a file of its own.
    #[arg(long)]
    pub(crate) file_per_client: bool,
    /// Bytes of a transfer at most, instead of the profile's.
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
    /// Use no byte twice before all have been used.
    ///
    /// Against caches that cannot be switched off.
    #[arg(long)]
    pub(crate) no_repeat: bool,
    /// Seed of all random numbers.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(0, u32::MAX as u64))]
    pub(crate) seed: u32,
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
    /// A script that comes along, or a TOML file.
    #[arg(value_parser = text())]
    pub(crate) script: String,
    /// Time for each number of clients, instead of the script's.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) step: Option<Duration>,
    /// Seed of all random numbers.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(0, u32::MAX as u64))]
    pub(crate) seed: u32,
    /// Print the script, to change and use.
    #[arg(long)]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `tenuto meter report`.
#[derive(clap::Args)]
pub(crate) struct RecountArgs {
    /// A directory that --out made.
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
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
    /// Print the profile's file, to change and use.
    #[arg(long)]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
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
    /// Order of a round's blocks.
    #[arg(long, default_value = "scan", value_parser = words(orders()))]
    pub(crate) order: Order,
    /// Reads in flight at once.
    ///
    /// As many as there are streams leaves the order to the kernel and the disk.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(1, 4096))]
    pub(crate) iodepth: u32,
    /// How blocks are read.
    ///
    /// One that the kernel refuses is replaced by threads; the report says so.
    #[arg(long, default_value = "best", value_parser = words(methods()))]
    pub(crate) method: Method,
    /// Use the page cache.
    ///
    /// As programs usually read; what was read or written lately comes from memory. mmap always
    /// uses it.
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Start each round when the one before is over.
    ///
    /// At full speed: for the rate, and for how evenly streams share it.
    #[arg(long)]
    pub(crate) unpaced: bool,
    /// Read each of several targets by itself first, then all together.
    ///
    /// Shows what they cost each other: the bus, the processor, the memory they share.
    #[arg(long)]
    pub(crate) alone: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

fn orders() -> impl Iterator<Item = (&'static str, &'static str, Order)> {
    RoundsConfig::ORDERS.into_iter().map(|(name, order)| {
        let about = match order {
            Order::Scan => "by place on disk, every other round from the far end",
            Order::Arrival(_) => "at random, as requests arrive",
            Order::Streams => "by stream",
        };
        (name, about, order)
    })
}

/// Arguments of `tenuto meter compare`.
#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// The run to compare with.
    pub(crate) a: PathBuf,
    /// The run that may be better or worse.
    pub(crate) b: PathBuf,
    /// Confidence that no verdict is a false alarm, in per cent.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = whole::<u32>(50, 99))]
    pub(crate) confidence: u32,
    /// Seed of all random numbers.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(0, u32::MAX as u64))]
    pub(crate) seed: u32,
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
    pub(crate) report: ReportArgs,
}

/// Arguments of `tenuto meter agent`.
#[derive(clap::Args)]
pub(crate) struct AgentArgs {
    /// Directories that it may use.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Where controllers connect.
    ///
    /// 0.0.0.0:7070 opens it to the network; port 0 takes any free port.
    #[arg(long, default_value = "127.0.0.1:7070", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// A file with the token that controllers must have, too.
    ///
    /// 16 bytes or more: openssl rand -hex 32 > secret; chmod 600 secret
    #[arg(long)]
    pub(crate) token_file: Option<PathBuf>,
    /// Use standard input and output; the token is the first line.
    ///
    /// As `meter run --hosts` starts it through ssh.
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// A study with its options: one of storage, or the one of a network.
pub(crate) enum StudyCommand {
    Storage(&'static Study, StudyArgs),
    Network(NetworkArgs),
}

const NETWORK: &str = "network";

impl Subcommand for StudyCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        let storage = study::ALL.iter().map(|study| {
            let about = format!("{}.\n\n{}", study.about, study.long);
            let command = <StudyArgs as clap::Args>::augment_args(clap::Command::new(study.name));
            command.about(study.about).long_about(about)
        });
        let network = <NetworkArgs as clap::Args>::augment_args(clap::Command::new(NETWORK));
        let about = "See the effect of link speed, queue, TCP window and packet size";
        let network = network.about(about).long_about(format!("{about}.\n\n{NETWORK_LONG}"));
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
    /// In a directory files are made, filled, used and removed afterwards. A file or a block device
    /// is only read; studies that write, or make files in a way of their own, need a directory.
    /// sim:MODEL is a simulated disk, in virtual time; it has no page cache before it.
    #[arg(long, value_parser = text())]
    pub(crate) target: Option<String>,
    /// A directory on the second node, for `nodes` only.
    ///
    /// Needed there, unless --target is a simulated disk.
    #[arg(long)]
    pub(crate) second: Option<PathBuf>,
    /// Size of the files that are made for a setting, together.
    ///
    /// Larger than the caches on the way, or they are measured.
    #[arg(long, default_value = "1GiB")]
    pub(crate) size: ByteCount,
    /// Number of clients that work at the same time.
    #[arg(long, default_value = "4", value_parser = whole::<u32>(1, 1000))]
    pub(crate) clients: u32,
    /// Length of each run: no transfer starts later.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Runs of each setting, in shuffled order.
    ///
    /// From six on a difference can be told from chance with 95 %.
    #[arg(long, default_value = "6", value_parser = whole::<u32>(1, 100))]
    pub(crate) repeats: u32,
    /// Seed of all random numbers, and of the order of runs.
    #[arg(long, default_value = "1", value_parser = whole::<u32>(0, u32::MAX as u64))]
    pub(crate) seed: u32,
    /// A new directory for the report and all figures.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

const NETWORK_LONG: &str = "\
Between two network namespaces of this machine, which are made for it and removed afterwards: clients in \
one read blocks of 64 KiB from a server in the other, one after another, over a link of the speed that \
is given and of a tenth of it, with a long and a short queue, with a small window, with large packets. \
The counters of the sending side say what the limit was. Needs root, and `ip`, `tc` and `ss`.";

/// Arguments of `tenuto meter study network`.
#[derive(clap::Args)]
pub(crate) struct NetworkArgs {
    /// Speed of the fast link.
    ///
    /// No more than this machine can move between namespaces, or it is the limit.
    #[arg(long, default_value = "100Mbps")]
    pub(crate) link: BitRate,
    /// Number of clients that read at the same time.
    #[arg(long, default_value = "4", value_parser = whole::<u32>(1, 64))]
    pub(crate) clients: u32,
    /// Length of each of the six runs.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
