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
mod ways;

pub use bench::{MB, MPEG1};
pub use error::EmulatedError;
pub use file_system::{FileSystem, Mounted};

use crate::report::Report;
use bench::Bench;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How it is made again.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// Holds the disk's bytes, 9.1 GB. Made and removed again if it is not there; overwritten if it
    /// is.
    pub backing: PathBuf,
    /// On what.
    pub systems: Vec<System>,
    /// Of each attempt; the paper has 100.
    pub rounds: u32,
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
pub struct Progress<'a> {
    /// What is on, or was found.
    pub what: &'a str,
    /// It was found: worth a line that stays.
    pub found: bool,
    /// Of all of it, from 0 to 1.
    pub done: f64,
}

/// Something that can be made again on an emulated disk.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// As typed: `alderman-table1`.
    pub name: &'static str,
    /// How many ways are tried with these options, each in a few attempts.
    ways: fn(&EmulatedOptions) -> u32,
    run: fn(&mut Bench<'_>) -> Result<Report, EmulatedError>,
}

/// All there are.
pub const ALL: [Reproduction; 2] = [
    Reproduction {
        name: "alderman-table1",
        ways: alderman_table1::ways,
        run: alderman_table1::run,
    },
    Reproduction {
        name: "alderman-rounds",
        ways: alderman_rounds::ways,
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
        let round = MB.time_at(MPEG1) / options.speed.max(1);
        let attempts = round * options.rounds.max(1) * ATTEMPTS / 10;
        let fills = FILL * u32::try_from(options.file_systems().count()).unwrap_or(1);
        attempts * (self.ways)(options) + fills
    }

    /// Makes it again, until done or told to stop.
    ///
    /// # Errors
    /// What is missing or failed; or told to stop before anything was found. Nothing is left
    /// behind.
    pub fn run(
        &self,
        options: &EmulatedOptions,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Result<Report, EmulatedError> {
        let mut bench = Bench::start(options, (self.ways)(options), progress, stop)?;
        (self.run)(&mut bench)
    }
}

/// Whole attempts that a search takes, in tenths: two that hold, and a few that are broken off.
const ATTEMPTS: u32 = 30;

/// Of a file system: 8.6 GB at some hundred megabytes a second.
const FILL: Duration = Duration::from_secs(40);
