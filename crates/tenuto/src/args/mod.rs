//! The command line as types: an enum of commands, a struct of arguments for each.
//!
//! A declaration is all there is of an option: its field and type, its default, its parser, and its
//! help, which is the doc comment. The parser, `--help`, the man pages and completions, and
//! `docs/reference/cli.md` are made from it (`cli`, `reference`); examples and wrong command lines
//! are in [`examples`].
//!
//! No behaviour here: what a command does is in `commands`.

pub(crate) mod disks;
pub(crate) mod examples;
pub(crate) mod meter;
pub(crate) mod shared;
pub(crate) mod simulation;
pub(crate) mod stores;
pub(crate) mod values;
pub(crate) mod viewing;

use disks::{CalibrateArgs, DiskCommand, PlanArgs};
use meter::MeterCommand;
use simulation::{CompletionsArgs, ManArgs, ReproduceArgs, SimulateCommand};
use stores::{CheckArgs, ExportArgs, FormatArgs, InfoArgs, IngestArgs, LsArgs, RenameArgs, RmArgs};
use viewing::{PlayArgs, ServeArgs};

/// A parsed command line.
#[derive(clap::Parser)]
#[command(name = "tenuto", version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: RootCommand,
}

/// The commands of `tenuto`.
#[derive(clap::Subcommand)]
pub(crate) enum RootCommand {
    /// Make a store in a file or on a block device.
    ///
    /// Makes an empty store. A new file needs --size; an existing file or a block device is used as
    /// long as it is. What is there already is never overwritten without --destroy.
    #[cfg(feature = "whole")]
    Format(FormatArgs),
    /// Take files in, one title each.
    ///
    /// Copies films into the store without encoding them anew: FFmpeg's programs read any
    /// container, Tenuto keeps the video and audio tracks frame by frame. Nothing appears in the
    /// store until all of a title is safely on disk; an interrupted ingest leaves no trace.
    ///
    /// A file that cannot be taken in is named with the reason and does not stop the others.
    ///
    /// With --replica the same title goes into other stores, too, best on other disks: a server of
    /// all of them plays each title from the disk with the most room, and goes on with another copy
    /// when a disk is lost. Each copy is compared with the first. A store in which there is no
    /// room, or that fails, is named, and what went into the others stays there.
    #[cfg(feature = "whole")]
    Ingest(IngestArgs),
    /// List the titles of a store.
    ///
    /// Lists titles by name. Of several stores, titles that hold the same under the same name are
    /// copies of one, and listed once, with the stores that have them.
    #[cfg(feature = "whole")]
    Ls(LsArgs),
    /// Describe a store, or one of its titles.
    ///
    /// Without TITLE: how large the store is, what is free, and what calibration found. With TITLE:
    /// its tracks with their codecs, rates and places on disk.
    #[cfg(feature = "whole")]
    Info(InfoArgs),
    /// Give a title back as a file.
    ///
    /// Writes a media title as a playable MP4 (MOV where the codec needs it) whose frames and times
    /// are the source's, or a file title bit for bit. Checksums are verified; damaged data is never
    /// given out as good. With --destroy an existing file is replaced in one step, once the new one
    /// is complete.
    #[cfg(feature = "whole")]
    Export(ExportArgs),
    /// Remove a title.
    ///
    /// The title disappears at once for new viewers. Viewers who are watching it may watch to the
    /// end; its space is free after the last one.
    #[cfg(feature = "whole")]
    Rm(RmArgs),
    /// Give a title another name.
    ///
    /// Never takes a name that another title has. Running streams go on under the old one. Copies
    /// in other stores are copies only under the same name: rename all of them, with --replica.
    #[cfg(feature = "whole")]
    Rename(RenameArgs),
    /// Look for damage.
    ///
    /// Reads the superblock copies, the catalogue and every title's index and compares them with
    /// their checksums and with each other. Ends with exit code 4 when something is damaged.
    ///
    /// With --replica other stores are checked, too, and the copies of titles compared: titles of
    /// one name must hold the same tracks in the same sizes with the same checksums, and be in all
    /// of the stores. Ends with exit code 1 when they are not, and nothing is damaged.
    ///
    /// A store whose catalogue is lost (both checkpoints, or entries of the journal) does not open.
    /// With --rebuild its titles are found by the label in front of each, and listed with those
    /// that cannot be recovered; with --rebuild --destroy they are the store's new catalogue.
    /// Nothing else of the store is changed.
    #[cfg(feature = "whole")]
    Check(CheckArgs),
    /// Serve titles to players over HTTP.
    ///
    /// Serves every title as HLS (http://ADDRESS/t/TITLE/master.m3u8) and as one MP4 file
    /// (http://ADDRESS/t/TITLE.mp4), with a page to watch them at http://ADDRESS/console/. A viewer
    /// who would make others stall is refused with 503, Retry-After and the reason.
    ///
    /// Runs until SIGINT or SIGTERM; then admits no new viewers and ends when the last viewer has
    /// left, at the latest after --grace. A second signal ends it at once. While it runs, the other
    /// commands on the store reach it through its control socket.
    #[cfg(feature = "whole")]
    Serve(Box<ServeArgs>),
    /// Play titles as viewers would, and report what they saw.
    ///
    /// Fetches HLS, DASH or MP4 as a player does, keeps a play-out clock and a buffer for each
    /// viewer, discards the media (or saves the first viewer's), and reports start-up times,
    /// stalls, drift and refusals. Works with any HTTP server, with TLS or without.
    ///
    /// Ends with exit code 3 when no viewer was admitted. docs/reference/play.md explains every
    /// figure.
    #[cfg(feature = "whole")]
    Play(Box<PlayArgs>),
    /// Measure what a disk is guaranteed to read.
    ///
    /// Reads from the worst places. The number of reads that the disk completed in every slot is
    /// the base of admission; it is kept with the store. Also measured: the best queue depth, the
    /// rate of an endless read and the time before its first byte, the rate by place, and what a
    /// writer takes from the readers. Writes go to a part of the store that `format` has reserved
    /// for them (stores below 1 GiB have none), to nothing else.
    ///
    /// A store being served is measured by its server, between the viewers' reads. Figures that are
    /// measured while viewers play are lower than what the disk can do, so they are shown and not
    /// kept. A server calibrates a store that has never been calibrated by itself, briefly; a disk
    /// of your own deserves the longer run. Reading what was never written does not reach the disk:
    /// ingest something first.
    ///
    /// A device or file that is no store is measured, too: no other program may be using it, and
    /// nothing is written to it without --destroy, which overwrites 64 MiB in its middle to find
    /// out what writes cost. Stores refuse --destroy.
    #[cfg(feature = "whole")]
    Calibrate(CalibrateArgs),
    /// Compute how many streams a disk would hold, and with how much memory.
    ///
    /// By the bounds of the literature and by the server's own admission, for each size of read;
    /// reads nothing and starts nothing. The disk is a model or a calibration, the streams a rate
    /// or a title as it really varies. docs/guide/plan.md explains every number.
    #[cfg(feature = "whole")]
    Plan(Box<PlanArgs>),
    /// Describe disks and disk models, and emulate disks.
    #[cfg(feature = "whole")]
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Measure what disks, files, file systems and servers hold.
    #[command(subcommand)]
    Meter(MeterCommand),
    /// Try the scheduler on simulated disks.
    #[cfg(feature = "whole")]
    #[command(subcommand)]
    Simulate(SimulateCommand),
    /// Reproduce published results, ours beside theirs.
    ///
    /// Without a NAME: lists what can be reproduced. With one: does it on a simulated disk in
    /// virtual time, which takes seconds and gives the same result on every machine, and prints our
    /// figures beside the paper's.
    ///
    /// With --emulated: on a disk that is emulated in real time, by the kernel's own ways of
    /// reading, raw and through ext2, ext4, XFS and btrfs; alderman-table1 and alderman-rounds can
    /// be made so. That takes from minutes to hours, and a note says beforehand how long; it needs
    /// root, /dev/fuse and 9.1 GB of disk. docs/guide/reproduce.md explains each.
    #[cfg(feature = "whole")]
    Reproduce(ReproduceArgs),
    /// Print a shell's completions.
    ///
    /// For bash: tenuto completions bash > ~/.local/share/bash-completion/completions/tenuto
    #[cfg(feature = "whole")]
    Completions(CompletionsArgs),
    /// Print a page of the manual.
    ///
    /// For example: tenuto man serve | man -l -
    #[cfg(feature = "whole")]
    Man(ManArgs),
}

/// Commands that belong together, as `tenuto --help` shows them, in the order in which a newcomer
/// needs them.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Stores", &["format", "ingest", "ls", "info", "export", "rm", "rename", "check"]),
    ("Serving and watching", &["serve", "play"]),
    ("Disks", &["calibrate", "plan", "disk"]),
    ("Measuring", &["meter"]),
    ("Simulation", &["simulate", "reproduce"]),
    ("This program", &["completions", "man"]),
];

/// What Tenuto is, in one line.
pub(crate) const ABOUT: &str = "media storage that holds its rate";

/// What Tenuto does.
pub(crate) const LONG: &str = "\
Lays films out on a raw disk or in one big file, serves them to many viewers over HTTP, and admits only \
as many as the disk can hold, so that an admitted stream does not stall.";
