//! Published results reproduced on a disk that is emulated in real time, with the kernel's own
//! interfaces for reading and its own file systems, which a simulation does not have.
//!
//! ```text
//!   backing file ─ EmulatedDisk ─ loop device ─┬─ raw: QueuedPort ────────────────┐
//!     (as fast as needed to fill it)           ├─ ext2, ext4, XFS, btrfs ─ files: FileAStream ─ rounds
//!                                              └─ a store's titles: TitlesOnDisk ─ streams
//! ```
//!
//! The disk, and the clock by which rounds are counted, run faster than the model by a factor
//! ([`EmulatedOptions::speed`]); all results are in the model's time. Lateness of the machine is
//! multiplied by the same factor and reported with the results. Needs root, /dev/fuse and the file
//! systems' programs. It writes to nothing but its own backing file and what is mounted from it.

mod alderman_rounds;
mod alderman_table1;
mod bench;
mod file_system;
mod filled;
mod lee_drift;
mod lee_streams;
mod park_figures;
mod programs;
mod titles_on_disk;
mod ways;

pub use bench::{MB, MPEG1};
pub use file_system::{FileSystem, Mounted};
pub use lee_drift::{MJPEG, MJPEG_FRAME, fewest_frames};
pub use park_figures::{ParkOptions, ReadTimes, park_file};
pub use titles_on_disk::{MakeTitles, TitlesOnDisk, TitlesPlan};

use crate::error::MeterError;
use crate::report::{Cell, Report};
use bench::Bench;
use device::{DiskStatistics, DiskStop};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use units::ByteCount;

/// The settings of a reproduction on an emulated disk.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// The file that holds the disk's bytes. An existing file is overwritten; a new one loses its
    /// name once it is in use, so that the kernel removes it when its users end, however they end.
    pub backing: PathBuf,
    /// The size of the disk; by default that of the model, 9.1 GB. On a smaller disk the seek
    /// distance from the first to the last byte is the same, and files are smaller in proportion.
    pub size: Option<ByteCount>,
    /// The systems to measure.
    pub systems: Vec<System>,
    /// Number of rounds in one attempt (100 in the paper).
    pub rounds: u32,
    /// The bytes that a stream reads in a round; the paper has 1 MB and 512 KB.
    pub block: ByteCount,
    /// The factor by which the disk is faster than the model.
    pub speed: u32,
    /// What `park-figures` reads.
    pub park: ParkOptions,
    /// Makes the store that is measured; `None` where no store can be made.
    pub titles: Option<MakeTitles>,
    /// The program whose server and players are measured; `None` where there is none.
    pub program: Option<PathBuf>,
}

impl EmulatedOptions {
    fn has_raw(&self) -> bool {
        self.systems.contains(&System::Raw)
    }

    fn file_systems(&self) -> impl Iterator<Item = FileSystem> + '_ {
        self.systems.iter().filter_map(|system| match system {
            System::Raw | System::Store | System::StoreMount => None,
            System::On(kind) => Some(*kind),
        })
    }
}

/// A system that is measured: the raw disk, or a file system on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The raw disk.
    Raw,
    /// Files on a file system.
    On(FileSystem),
    /// Titles of a store, read by its library.
    Store,
    /// Titles of a store as files of its mount.
    StoreMount,
}

impl System {
    /// All systems.
    pub const ALL: [Self; 7] = [
        Self::Raw,
        Self::On(FileSystem::Ext2),
        Self::On(FileSystem::Ext4),
        Self::On(FileSystem::Xfs),
        Self::On(FileSystem::Btrfs),
        Self::Store,
        Self::StoreMount,
    ];

    const RAW_AND_FILES: &'static [Self] = Self::ALL.split_at(5).0;
    const FILES_AND_STORE: &'static [Self] = Self::ALL.split_at(1).1;
    const RAW_AND_EXT2: &'static [Self] = Self::ALL.split_at(2).0;

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::On(kind) => kind.name(),
            Self::Store => "store",
            Self::StoreMount => "mount",
        }
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|system| system.name() == text);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("'{text}' is none of {}", names()))
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedProgress<'a> {
    /// The current step, or a result.
    pub what: &'a str,
    /// Whether it is a result, which deserves a line that stays.
    pub found: bool,
    /// Progress of the whole run, from 0 to 1.
    pub done: f64,
}

/// A published result that can be reproduced on an emulated disk.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// The name that users type: `alderman-table1`.
    pub name: &'static str,
    /// The systems that it can measure.
    pub systems: &'static [System],
    /// The size of a disk that programs use in real time; `None`: the options decide.
    real_time: Option<ByteCount>,
    cost: fn(&EmulatedOptions) -> Cost,
    run: fn(&mut Bench<'_>) -> Result<EmulatedResult, MeterError>,
}

/// An estimate of the work of a reproduction.
struct Cost {
    /// Number of read methods to be tried.
    ways: u32,
    /// Approximate number of rounds of all attempts.
    rounds: u32,
    /// Number of systems with a sequential read.
    sequential: u32,
}

/// The outcome of a reproduction.
#[derive(Debug)]
pub struct EmulatedResult {
    /// The complete results, or those until the run ended.
    pub report: Report,
    /// Why it ended early, if it did.
    pub ended: Option<MeterError>,
}

impl EmulatedResult {
    /// The result of a run. Results until an error are kept; without any result, the error is
    /// returned.
    fn of(
        bench: &Bench<'_>,
        report: Report,
        done: Result<(), MeterError>,
    ) -> Result<Self, MeterError> {
        // After a stop by the user every operation fails; the stop is the reason, not that failure.
        let ended = done.err().map(|error| bench.still().err().unwrap_or(error));
        if report.tables.iter().all(|table| table.rows.is_empty())
            && let Some(error) = ended
        {
            return Err(error);
        }
        let mut report = report;
        if ended.is_some() {
            report.notes.insert(0, "It ended early: these are the rows until then.".to_owned());
        }
        Ok(Self { report, ended })
    }
}

/// All reproductions.
pub const ALL: [Reproduction; 5] = [
    Reproduction {
        name: "alderman-table1",
        systems: System::RAW_AND_FILES,
        real_time: None,
        cost: alderman_table1::cost,
        run: alderman_table1::run,
    },
    Reproduction {
        name: "alderman-rounds",
        systems: System::RAW_AND_FILES,
        real_time: None,
        cost: alderman_rounds::cost,
        run: alderman_rounds::run,
    },
    Reproduction {
        name: "lee-streams",
        systems: System::RAW_AND_EXT2,
        real_time: Some(lee_streams::DISK),
        cost: lee_streams::cost,
        run: lee_streams::run,
    },
    Reproduction {
        name: "lee-drift",
        systems: System::RAW_AND_FILES,
        real_time: None,
        cost: lee_drift::cost,
        run: lee_drift::run,
    },
    Reproduction {
        name: "park-figures",
        systems: System::FILES_AND_STORE,
        real_time: None,
        cost: park_figures::cost,
        run: park_figures::run,
    },
];

impl Reproduction {
    /// The reproduction with this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|one| one.name == name)
    }

    /// The options in effect.
    fn adjusted(&self, options: &EmulatedOptions) -> EmulatedOptions {
        let mut adjusted = options.clone();
        if let Some(size) = self.real_time {
            (adjusted.size, adjusted.speed) = (Some(size), 1);
        }
        adjusted
    }

    /// The estimated duration.
    pub fn takes(&self, options: &EmulatedOptions) -> Duration {
        let options = &self.adjusted(options);
        let Cost { rounds, sequential, .. } = (self.cost)(options);
        let rounds = options.block.time_at(MPEG1) * rounds;
        let fills = FILL * u32::try_from(options.file_systems().count()).unwrap_or(1);
        (rounds + SEQUENTIAL * sequential) / options.speed.max(1) + fills
    }

    /// Repeats the experiment until it is complete or stopped.
    ///
    /// # Errors
    /// Fails if something is missing or failed, or the user stopped it, before there was any
    /// result. Nothing is left behind.
    pub fn run(
        &self,
        options: &EmulatedOptions,
        progress: &mut dyn FnMut(EmulatedProgress<'_>),
        stop: &DiskStop,
    ) -> Result<EmulatedResult, MeterError> {
        if let Some(other) = options.systems.iter().find(|one| !self.systems.contains(one)) {
            let (name, other) = (self.name, other.name());
            let can: Vec<_> = self.systems.iter().map(|one| one.name()).collect();
            return Err(MeterError::usage(format!("{name} does not measure '{other}'"))
                .hint(format!("name some of {}", can.join(", "))));
        }
        options.park.check()?;
        let file = filled::file_of(options.size.unwrap_or(THEIR_DISK));
        let (block, rounds) = (options.block, options.rounds);
        if block == ByteCount::ZERO || block.0.saturating_mul(rounds.into()) > file.0 {
            let message = format!(
                "{rounds} rounds of {block} are not from 1 byte to the {file} of a stream's file"
            );
            return Err(MeterError::new(message).hint("ask for fewer or smaller ones"));
        }
        let options = &self.adjusted(options);
        let ways = (self.cost)(options).ways;
        let mut bench = Bench::start(options, ways, progress, stop)?;
        (self.run)(&mut bench)
    }
}

/// Facts about the emulation that are needed to judge the results.
fn lateness(bench: &Bench<'_>) -> Vec<String> {
    let mut notes = bench.cleared.clone();
    notes.push(format!(
        "'late' is how much later than the model says the emulation itself answered, in the disk's \
         time; the longest of all was {:.1} ms. A read of 1 MB takes the disk some 80 ms.",
        bench.longest_late().as_secs_f64() * 1e3,
    ));
    if let Some(why) = bench.not_in_real_time() {
        notes.push(format!(
            "Its timer was not run before other programs ({why}), so that what is late above \
             depends on what else the machine did."
        ));
    }
    notes
}

fn p99_ms(disk: &DiskStatistics) -> Cell {
    Cell::Number(disk.late_p99.as_secs_f64() * 1e3, 1)
}

/// The paper's numbers, which hold for its block size only.
fn papers(options: &EmulatedOptions, numbers: [Option<u64>; 2]) -> [Cell; 2] {
    numbers.map(|number| number.filter(|_| options.block == MB).into())
}

/// A size in decimal units, as the paper's sizes are multiples of ten.
fn decimal(size: ByteCount) -> String {
    if size.0.is_multiple_of(MB.0) {
        format!("{} MB", size.0 / MB.0)
    } else {
        format!("{} KB", size.0 / 1000)
    }
}

/// The size of the model's disk.
const THEIR_DISK: ByteCount = ByteCount(9_105_018_880);

/// Estimated time to fill a file system: 8.6 GB at some hundred megabytes per second.
const FILL: Duration = Duration::from_secs(40);

/// Time for 800 MB at the disk's mean rate.
const SEQUENTIAL: Duration = Duration::from_secs(63);
