//! Published results made again on a disk that is emulated in real time, with the kernel's own ways
//! of reading and its own file systems: what a simulation has not.
//!
//! ```text
//!   backing file ─ EmulatedDisk ─ loop device ─┬─ raw: QueuedPort ────────────────┐
//!     (as fast as needed to fill it)           └─ ext2, ext4, XFS, btrfs ─ files: FileAStream ─ rounds
//! ```
//!
//! The disk, and the clock by which rounds are counted, run so many times as fast as the model
//! ([`EmulatedOptions::speed`]); all that is said is in the model's time. What the machine is late
//! by counts as many times, and is said with the results. Needs root, /dev/fuse and the file
//! systems' programs. It writes to nothing but its own backing file and what is mounted from it.

mod alderman_rounds;
mod alderman_table1;
mod bench;
mod error;
mod file_system;
mod filled;
mod ways;

pub use bench::{MB, MPEG1};
pub use error::EmulatedError;
pub use file_system::{FileSystem, Mounted};

use crate::report::{Cell, Report};
use bench::Bench;
use device::{DiskStatistics, DiskStop};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use units::ByteCount;

/// How it is made again.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// Holds the disk's bytes. Overwritten if it is there; if not, one is made that has no name
    /// once it is in use, so that the kernel removes it when its users end, however they end.
    pub backing: PathBuf,
    /// How large the disk is; by default as the model, 9.1 GB. On a smaller one the arm moves as
    /// far from its first to its last byte, and files are as much smaller.
    pub size: Option<ByteCount>,
    /// On what.
    pub systems: Vec<System>,
    /// Number of rounds in one attempt (100 in the paper).
    pub rounds: u32,
    /// What a stream reads in a round; the paper has 1 MB and 512 KB.
    pub block: ByteCount,
    /// How many times as fast as the model.
    pub speed: u32,
}

impl EmulatedOptions {
    fn has_raw(&self) -> bool {
        self.systems.contains(&System::Raw)
    }

    fn file_systems(&self) -> impl Iterator<Item = FileSystem> + '_ {
        self.systems.iter().filter_map(|system| match system {
            System::Raw => None,
            System::On(kind) => Some(*kind),
        })
    }
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The disk itself.
    Raw,
    /// Files on it.
    On(FileSystem),
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Raw,
        Self::On(FileSystem::Ext2),
        Self::On(FileSystem::Ext4),
        Self::On(FileSystem::Xfs),
        Self::On(FileSystem::Btrfs),
    ];

    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::On(kind) => kind.name(),
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

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedProgress<'a> {
    /// What is on, or was found.
    pub what: &'a str,
    /// It was found: worth a line that stays.
    pub found: bool,
    /// Progress of the whole run, from 0 to 1.
    pub done: f64,
}

/// Something that can be made again on an emulated disk.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// As typed: `alderman-table1`.
    pub name: &'static str,
    cost: fn(&EmulatedOptions) -> Cost,
    run: fn(&mut Bench<'_>) -> Result<EmulatedResult, EmulatedError>,
}

/// What it takes.
struct Cost {
    /// Ways that are tried.
    ways: u32,
    /// Rounds of all of their attempts, about.
    rounds: u32,
    /// Systems that are read one megabyte after another.
    sequential: u32,
}

/// What came out.
#[derive(Debug)]
pub struct EmulatedResult {
    /// The complete results, or those until the run ended.
    pub report: Report,
    /// Why it ended early, if it did.
    pub ended: Option<EmulatedError>,
}

impl EmulatedResult {
    /// What was found is told even if something failed then; if nothing was, that is all there is.
    fn of(
        bench: &Bench<'_>,
        report: Report,
        done: Result<(), EmulatedError>,
    ) -> Result<Self, EmulatedError> {
        // In haste, that is how whatever it was at failed.
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

/// All there are.
pub const ALL: [Reproduction; 2] = [
    Reproduction {
        name: "alderman-table1",
        cost: alderman_table1::cost,
        run: alderman_table1::run,
    },
    Reproduction {
        name: "alderman-rounds",
        cost: alderman_rounds::cost,
        run: alderman_rounds::run,
    },
];

impl Reproduction {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|one| one.name == name)
    }

    /// About how long it will take.
    pub fn takes(&self, options: &EmulatedOptions) -> Duration {
        let Cost { rounds, sequential, .. } = (self.cost)(options);
        let rounds = options.block.time_at(MPEG1) * rounds;
        let fills = FILL * u32::try_from(options.file_systems().count()).unwrap_or(1);
        (rounds + SEQUENTIAL * sequential) / options.speed.max(1) + fills
    }

    /// Repeats the experiment until it is complete or stopped.
    ///
    /// # Errors
    /// What is missing or failed, or told to stop, before anything was found. Nothing is left
    /// behind.
    pub fn run(
        &self,
        options: &EmulatedOptions,
        progress: &mut dyn FnMut(EmulatedProgress<'_>),
        stop: &DiskStop,
    ) -> Result<EmulatedResult, EmulatedError> {
        let file = filled::file_of(options.size.unwrap_or(THEIR_DISK));
        let (block, rounds) = (options.block, options.rounds);
        if block == ByteCount::ZERO || block.0.saturating_mul(rounds.into()) > file.0 {
            return Err(EmulatedError::TooMuch { block, rounds, file });
        }
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

/// The paper's numbers are for its block only.
fn papers(options: &EmulatedOptions, numbers: [Option<u64>; 2]) -> [Cell; 2] {
    numbers.map(|number| number.filter(|_| options.block == MB).into())
}

/// The paper's sizes are round numbers of ten.
fn decimal(size: ByteCount) -> String {
    if size.0.is_multiple_of(MB.0) {
        format!("{} MB", size.0 / MB.0)
    } else {
        format!("{} KB", size.0 / 1000)
    }
}

/// As large as the model.
const THEIR_DISK: ByteCount = ByteCount(9_105_018_880);

/// Estimated time to fill a file system: 8.6 GB at some hundred megabytes per second.
const FILL: Duration = Duration::from_secs(40);

/// 800 MB at the disk's mean rate.
const SEQUENTIAL: Duration = Duration::from_secs(63);
