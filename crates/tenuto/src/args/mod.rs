//! The command line as types: an enum of commands, a struct of arguments for each.
//!
//! A declaration is all there is of an option: its field and type, its default, its parser, and its
//! help, which is the doc comment. The parser, `--help`, the man pages and completions, and
//! `docs/reference/cli.md` are made from it (`cli`, `reference`); examples and wrong command lines
//! are in [`examples`].
//!
//! No behaviour here: what a command does is in `commands`.

#[cfg(test)]
mod chart;
pub(crate) mod director;
pub(crate) mod disks;
pub(crate) mod examples;
pub(crate) mod meter;
pub(crate) mod shared;
pub(crate) mod simulation;
pub(crate) mod stores;
pub(crate) mod values;
pub(crate) mod viewing;

use director::{ClusterCommand, DirectorArgs};
use disks::{CalibrateArgs, DiskCommand, PlanArgs};
use meter::MeterCommand;
use simulation::{CompletionsArgs, ManArgs, ReproduceArgs, SimulateCommand};
use stores::{
    BucketCommand, CheckArgs, ExportArgs, FormatArgs, InfoArgs, IngestArgs, LibraryArgs, LsArgs,
    MountArgs, RecordArgs, RelabelArgs, RenameArgs, ResizeArgs, RmArgs, TrimArgs,
};
use viewing::{PlayArgs, ServeArgs, TokenArgs};

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
    /// Makes an empty store. A new file needs --size; an existing file or a block device is used at
    /// its full length. Existing data is never overwritten without --destroy.
    Format(FormatArgs),
    /// Ingest files, one title each.
    ///
    /// Copies files into the store without re-encoding: FFmpeg's programs read any container, and
    /// Tenuto stores the video and audio tracks frame by frame, and text subtitles as WebVTT. A
    /// title appears in the store after all of it is on disk; an interrupted ingest leaves nothing
    /// behind.
    ///
    /// A file that cannot be ingested is reported with the reason; the others are ingested.
    ///
    /// With --replica the same titles are ingested into other stores, too, preferably on other
    /// disks. A server of all these stores plays each title from the disk with the most free
    /// capacity, and continues with another copy when a disk is lost. Each copy is compared with
    /// the first. A store that is full or fails is reported; copies in the others remain.
    Ingest(IngestArgs),
    /// Record a live input as a title.
    ///
    /// Reads INPUT with FFmpeg and stores its video and audio without re-encoding. The recording
    /// ends with its input, after --duration, or by SIGINT or SIGTERM; then it is a title like any
    /// other. A full store or a lost input ends it, too, and what has been recorded stays. What
    /// arrived more than a second before a power cut survives it: the title is made when the store
    /// is opened the next time.
    ///
    /// A store being served is written by its server, in disk time that no viewer has reserved. A
    /// slow disk is bridged by 64 MiB of memory; after that the input has to wait, and FFmpeg loses
    /// what an input that cannot wait has sent.
    Record(RecordArgs),
    /// List the titles of a store.
    ///
    /// Lists titles by name. In several stores, titles with the same name and the same content are
    /// copies, and are listed once, with the stores that have them.
    Ls(LsArgs),
    /// Describe a store, or one of its titles.
    ///
    /// Without TITLE: the size of the store, its free space, and its calibration. With TITLE: the
    /// tracks with their codecs, rates and places on disk.
    Info(InfoArgs),
    /// Export a title to a file.
    ///
    /// Writes a media title as a playable MP4 (MOV where the codec needs it) with the frames and
    /// times of its source, or a file title bit for bit. Text tracks are written as WebVTT files
    /// beside it (`out.0.eng.vtt`). Checksums are verified; damaged data makes the export fail.
    /// With --destroy an existing file is replaced in one step, after the new one is complete.
    Export(ExportArgs),
    /// Mount a store as a file system.
    ///
    /// Shows every title as an ordinary file: media as NAME.mp4, a file title as it is; slashes in
    /// names are folders. A file that is copied in becomes a file title when it is closed; in the
    /// folder `.ingest` it becomes a media title, as by `tenuto ingest`. Beside each media file
    /// NAME.mp4.index can be opened: a table with the place of every frame in the file.
    ///
    /// Runs until SIGINT or SIGTERM, or until another program unmounts the directory. While a
    /// program uses a file of it, or while a bind mount or a container has a copy of the mount, the
    /// command waits; a second signal unmounts at once. A store that is to be served at the same
    /// time is mounted by its server (`serve --mount`).
    /// docs/guide/mount.md explains what does not apply: links, owners, rights and times.
    Mount(MountArgs),
    /// Remove a title.
    ///
    /// New viewers cannot open the title from then on. Present viewers may watch it to its end; its
    /// space is free after the last one has left. With --replica it is removed from each store that
    /// has it; it is an error only if none has.
    ///
    /// Copies in other stores of the same server that are away now are removed when they are back,
    /// unless one that is there still has the title.
    Rm(RmArgs),
    /// Rename a title.
    ///
    /// Fails if another title has the new name. Running streams continue under the old name. Titles
    /// in other stores are copies only under the same name: rename all of them, with --replica. A
    /// store without the title is passed over; it is an error only if none has it.
    Rename(RenameArgs),
    /// Keep every title in as many of several stores as wanted.
    ///
    /// Compares the titles of the stores and shows which copies are missing, and which titles are
    /// to leave a store: nothing is changed without --apply. The exit code is 0 when nothing is to
    /// be done, and 1 otherwise, so that one command tells whether everything is there twice.
    ///
    /// With --apply titles are copied, each part from a store that has it undamaged, and only then
    /// removed where they are not wanted. A served store is read and written by its server, in disk
    /// time that no viewer has reserved. An interrupted command leaves whole titles, and goes on
    /// where it was when it is run again. A dead store is left out: an empty one takes its place.
    ///
    /// What was removed or renamed while a store was away is shown, and with --apply done there,
    /// too.
    ///
    /// All stores belong to one server, or to none. Titles of one name with different content are
    /// reported, and nothing is done to them.
    Library(LibraryArgs),
    /// Titles of record in an S3-compatible bucket.
    ///
    /// Keeps titles as objects in any store that speaks the S3 protocol, and brings them back into
    /// stores, where they are served. Objects are named after their content, and are written once.
    #[command(subcommand)]
    Bucket(BucketCommand),
    /// Give a copied store an identity of its own.
    ///
    /// A copy of a store (cp, dd, a snapshot) has the identity of the original, and only one of the
    /// two can be served at a time, because commands find the server of a store by its identity.
    /// With --new-identity the store gets another one; its titles and its calibration stay as they
    /// are. The store must not be in use.
    Relabel(RelabelArgs),
    /// Make a store larger.
    ///
    /// Lengthens the store's file to SIZE, or takes the space of a block device that has become
    /// larger. Titles stay where they are, and nothing is copied. A power cut leaves the old or the
    /// new size; the command can be repeated.
    ///
    /// The store must not be in use: stop its server first, and start it again afterwards. A
    /// calibration stays with the store; `tenuto calibrate` measures the added space, too. A store
    /// cannot be made smaller: `tenuto check NEW --replica OLD --repair` copies its titles into a
    /// smaller one.
    Resize(ResizeArgs),
    /// Discard the free space of a store.
    ///
    /// Tells a solid-state disk or a thin volume that the space of removed titles is not needed
    /// (BLKDISCARD), as fstrim does for a file system. Of a store in a file the space is given back
    /// to the file system: then the file has holes, and a later ingest fails when others have
    /// filled the file system. Titles are not touched.
    ///
    /// A store being served is trimmed by its server, in disk time that no viewer has reserved. A
    /// disk without discard is an error, and nothing is changed. Once a week is enough.
    Trim(TrimArgs),
    /// Find damage in stores.
    ///
    /// Reads the superblock copies, the catalogue and every title's index and compares them with
    /// their checksums and with each other. Ends with exit code 4 when something is damaged.
    ///
    /// With --replica other stores are checked, too, and the copies of titles are compared: each
    /// title must be in all stores, with the same tracks, sizes and checksums. Ends with exit code
    /// 1 when copies differ or are missing and nothing is damaged.
    ///
    /// With --repair the copies repair each other: damage in one store is written again from
    /// another, and titles that are missing are copied.
    ///
    /// A store whose catalogue is lost (both checkpoints, or entries of the journal) does not open,
    /// and neither does one with a single superblock copy. --rebuild finds titles by the label in
    /// front of each: all of them, or those that a readable catalogue lacks, because the last
    /// entries of its journal were lost. It lists them with those that cannot be recovered;
    /// --rebuild --destroy also writes them into the catalogue. The rest of the store is not
    /// changed. Ends with exit code 4 when something is damaged, missing, or not recovered.
    Check(CheckArgs),
    /// Serve titles to players over HTTP.
    ///
    /// Serves every title as HLS (http://ADDRESS/t/TITLE/master.m3u8), as DASH
    /// (http://ADDRESS/t/TITLE/manifest.mpd) and as one MP4 file (http://ADDRESS/t/TITLE.mp4), with
    /// a page to watch them at http://ADDRESS/console/. A viewer for whom there is no capacity is
    /// refused with 503, Retry-After and the reason.
    ///
    /// Runs until SIGINT or SIGTERM; then admits no new viewers and ends when the last viewer has
    /// left, at the latest after --grace. A second signal ends it at once. While it runs, the other
    /// commands on the store reach it through its control socket.
    Serve(Box<ServeArgs>),
    /// Send viewers to the nodes of a cluster.
    ///
    /// Knows the nodes and their titles from etcd, where every `tenuto serve --cluster` registers.
    /// A viewer asks the director for a title as a node; the director asks the nodes with a copy
    /// and redirects to the first that has reserved. When all are full, the viewer is refused with
    /// 503, Retry-After and the reason. Nothing is kept per viewer, so that any number of directors
    /// run beside each other.
    ///
    /// Runs until SIGINT or SIGTERM. Without etcd it goes on with what it knows. /status shows the
    /// nodes, /titles the titles, /metrics the numbers, and /healthz whether it is ready.
    Director(DirectorArgs),
    /// List, drain and forget the nodes of a cluster.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Make a token that admits a viewer or an operator.
    ///
    /// Prints a JSON Web Token, signed with the first secret of KEYS, for a server that was started
    /// with `serve --tokens KEYS`: `?token=...` after the address of a manifest or file, or an
    /// `Authorization: Bearer` field. A web site can make the same tokens with any library; the
    /// claims are in docs/guide/serve.md.
    ///
    /// With --new makes KEYS, with a new secret, for its owner alone; an existing file is an error.
    Token(TokenArgs),
    /// Play titles as many viewers would, and report start-up times and stalls.
    ///
    /// Fetches HLS, DASH or MP4 as a player does, keeps a play-out clock and a buffer for each
    /// viewer, discards the media (or saves that of the first viewer), and reports start-up times,
    /// stalls, drift and refusals. Works with any HTTP server, with TLS or without.
    ///
    /// Ends with exit code 3 when no viewer was admitted; with --strict, when any viewer stalls or
    /// is refused. docs/reference/play.md explains every figure.
    Play(Box<PlayArgs>),
    /// Measure how many reads a disk completes in every slot.
    ///
    /// Reads from the worst places. The number of reads that the disk completed in every slot is
    /// the guarantee on which admission is based; it is stored with the store. Also measured: the
    /// best queue depth, the rate of an endless read and the time before its first byte, the rate
    /// by place, and the cost of a concurrent writer. Writes go only to a part of the store that
    /// `format` has reserved for them (stores below 1 GiB have none).
    ///
    /// A store being served is measured by its server, between the viewers' reads. Figures measured
    /// while viewers play are lower than the disk's, so they are shown and not stored, unless the
    /// calibration before was provisional. A server calibrates a store without a calibration
    /// briefly; this command measures longer. Space that was never written is not read from the
    /// disk: ingest titles first.
    ///
    /// A device or file that is not a store can be measured, too, while no other program uses it.
    /// Nothing is written to it without --destroy, which overwrites 64 MiB in its middle to measure
    /// the cost of writes. Stores refuse --destroy.
    Calibrate(CalibrateArgs),
    /// Compute how many streams a disk would hold, and with how much memory.
    ///
    /// By the bounds of the literature and by the server's own admission, for each size of read. No
    /// disk is read. The disk is a model or a calibration; the streams are a constant rate or the
    /// varying rate of a title. docs/guide/plan.md explains every number.
    Plan(Box<PlanArgs>),
    /// Describe disks and disk models, and emulate disks.
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Measure what disks, files, file systems and servers hold.
    #[command(subcommand)]
    Meter(MeterCommand),
    /// Try the scheduler on simulated disks.
    #[command(subcommand)]
    Simulate(SimulateCommand),
    /// Reproduce published results, and print our figures beside the paper's.
    ///
    /// Without a NAME: lists what can be reproduced. With a NAME: reproduces that result on a
    /// simulated disk in virtual time, which takes seconds and gives the same figures on every
    /// machine.
    ///
    /// With --emulated: on a disk that is emulated in real time, with the kernel's read interfaces,
    /// raw and through ext2, ext4, XFS and btrfs. Only alderman-table1, alderman-rounds,
    /// lee-streams, lee-drift and park-figures can be reproduced so. That takes from minutes to
    /// hours, which a note states at the start, and needs root, /dev/fuse and 9.1 GB of disk.
    /// docs/guide/reproduce.md explains each.
    Reproduce(ReproduceArgs),
    /// Print a shell's completions.
    ///
    /// For bash: tenuto completions bash > ~/.local/share/bash-completion/completions/tenuto
    Completions(CompletionsArgs),
    /// Print a page of the manual.
    ///
    /// For example: tenuto man serve | man -l -
    Man(ManArgs),
    /// Print the version of this program.
    Version,
}

/// Commands that belong together, as `tenuto --help` shows them, in the order in which a newcomer
/// needs them.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Stores",
        &[
            "format", "ingest", "record", "ls", "info", "export", "mount", "rm", "rename",
            "library", "bucket", "relabel", "resize", "trim", "check",
        ],
    ),
    ("Serving and watching", &["serve", "director", "cluster", "token", "play"]),
    ("Disks", &["calibrate", "plan", "disk"]),
    ("Measuring", &["meter"]),
    ("Simulation", &["simulate", "reproduce"]),
    ("This program", &["completions", "man", "version"]),
];

/// What Tenuto is, in one line.
pub(crate) const ABOUT: &str = "media storage that holds its rate";

/// What Tenuto does.
pub(crate) const LONG: &str = "\
Stores titles on a raw disk or in one large file, serves them to many viewers over HTTP, and admits only \
as many as the disk can hold, so that an admitted stream does not stall.";
