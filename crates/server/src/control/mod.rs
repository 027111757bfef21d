//! Control requests for a store: what they are, how a server that owns the store receives them (a
//! Unix socket for each store, one JSON object in a line), and how they are executed.
//!
//! ```text
//!   client ──▶ {"ingest":{"files":["/films/a.mkv"],...}}
//!   client ◀── {"progress":{"stage":"copying","done":1048576,"total":73400320}}   (any number)
//!   client ◀── {"reply":{"ingest":{...}}}   or   {"failed":{"code":"full","message":"..."}}
//! ```
//!
//! The socket is named after the store's uuid, in a directory that only its user can write to; a
//! lock beside it keeps it with one living server. Only root and the server's user are served, and
//! a client asks first which file or device the server has: a copy of a store has the uuid of the
//! original. A client that disconnects during an ingest, export or check cancels it.

mod client;
mod execute;
mod paths;
mod served;
mod server;
mod socket;

pub use client::{Client, ControlError};
pub use execute::{StoreOwner, execute};
use paths::is_safe;
pub use paths::{socket_directory, socket_path};
pub(crate) use served::ServedStore;
pub(crate) use server::ControlServer;

use crate::wire;
use bucket::TitleBucket;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::{PictureRate, RecordingInput, SubtitleFile, TitleSelection};

/// A request. Paths are absolute, because the server has its own working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// List titles of the store.
    Ls(TitleSelection),
    /// Describe the store, or one title.
    Info {
        /// The title's name; `None` for the store.
        title: Option<String>,
    },
    /// Return a title's index, for planning with it.
    Index {
        /// The title's name.
        title: String,
    },
    /// Ingest files.
    Ingest {
        /// Absolute paths, readable by the server.
        files: Vec<PathBuf>,
        /// Whether they are ingested as opaque files rather than as media.
        as_file: bool,
        /// The title's name; `None` for the file's name.
        title: Option<String>,
        /// Whether the readable part of a damaged file is ingested.
        allow_damaged: bool,
        /// Whether all files are the renditions of one title.
        renditions: bool,
        /// The programme to take from a file with several.
        program: Option<u32>,
        /// Files of subtitles for the title; absolute paths.
        subtitles: Vec<SubtitleFile>,
        /// Seconds from one thumbnail to the next; `None` for no thumbnails.
        thumbnails: Option<u32>,
        /// How many of numbered pictures are shown in a second; `None` for files that are media.
        fps: Option<PictureRate>,
    },
    /// Record an input until it ends, the client disconnects, or the server ends.
    Record {
        /// What is recorded; not the standard input, which is the server's.
        input: RecordingInput,
        /// The title's name.
        title: String,
        /// Seconds after which the recording ends; `None`: when the input ends.
        seconds: Option<f64>,
        /// The programme to record of an input with several.
        program: Option<u32>,
        /// Seconds without a byte after which the input counts as lost.
        silence: f64,
        /// Bits a second that the disk is to hold for it; `None`: what others leave.
        rate: Option<u64>,
        /// How it is recorded as a folder of parts; `None`: as one title.
        series: Option<RecordingSeries>,
    },
    /// Remove a title: it is hidden at once, and its space is freed when its last session has
    /// ended.
    Rm {
        /// The title's name.
        title: String,
        /// Whether it is a copy of a title that stays elsewhere: copies in stores that are away
        /// stay, too.
        #[serde(default)]
        copy_only: bool,
    },
    /// Rename a title.
    Rename {
        /// The present name.
        old: String,
        /// The new name.
        new: String,
    },
    /// Export a title to a file.
    Export {
        /// The title's name.
        title: String,
        /// Absolute path, writable by the server.
        out: PathBuf,
    },
    /// Check the store for damage.
    Check {
        /// Whether all data is read and verified.
        scrub: bool,
    },
    /// Discard the free space of the store.
    Trim,
    /// Repair the store from other stores that have copies of its titles, and copy the titles that
    /// only they have.
    Repair {
        /// Absolute paths of the other stores: served by the same server, or by none.
        from: Vec<PathBuf>,
    },
    /// Copy a title into the store from others that have it.
    Copy {
        /// The title's name.
        title: String,
        /// Absolute paths of the other stores: served by the same server, or by none.
        from: Vec<PathBuf>,
    },
    /// Read a title whole, and compare it with its checksums.
    Verify {
        /// The title's name.
        title: String,
    },
    /// Write a title of the store into a bucket.
    Push {
        /// The title's name.
        title: String,
        /// The bucket.
        bucket: TitleBucket,
        /// Whether objects that are there are read, and written again where they are damaged. The
        /// reply of a server that knows this field says whether it was so.
        #[serde(default)]
        verify: bool,
    },
    /// Copy a title of a bucket into the store.
    Fill {
        /// The title's name.
        title: String,
        /// The bucket.
        bucket: TitleBucket,
    },
    /// Measure the device again. On a served store a measurement during active sessions is returned
    /// and not stored.
    Calibrate {
        /// Approximate duration of the measurement in seconds.
        seconds: f64,
    },
    /// Report the server's status.
    Status,
    /// List the server's sessions, or describe one.
    Sessions {
        /// The session's number; `None` for all.
        session: Option<u64>,
        /// Only the sessions that tokens of this subject began; `None`: those of all.
        #[serde(default)]
        subject: Option<String>,
    },
    /// End a session of the server.
    EndSession {
        /// The session's number.
        session: u64,
    },
    /// End the sessions of the server that tokens of this subject began.
    EndSessions {
        /// The subject.
        subject: String,
    },
    /// End a recording into the store, as its user would: what had arrived becomes a title.
    EndRecording {
        /// The title's name, or that of the folder of parts.
        title: String,
    },
    /// List the server's latest decisions on viewers.
    Decisions,
    /// Read the server's configuration again.
    Reload,
    /// Drain the store's disk, end that, or report how far it is.
    Drain {
        /// Whether it is drained from now on; `None`: as it was.
        drain: Option<bool>,
    },
    /// Let the program start anew in the place of the server, which hands its sessions over.
    Restart,
    /// Admit no new session; end the server when no session is active.
    Stop {
        /// Seconds after which it ends at the latest.
        seconds: f64,
    },
    /// Report which file or device the server has the store on.
    ServedFile,
}

/// How an input is recorded as a folder of parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingSeries {
    /// Seconds for which a part stays after its end; `None`: for ever.
    pub keep: Option<f64>,
    /// Seconds of play-out time after which the next key frame begins a part.
    pub part: f64,
    /// Whether a lost input is opened again.
    pub reconnect: bool,
}

impl Request {
    /// Whether it is work that takes long, and is lost if the server ends. A recording is not lost:
    /// it becomes a title of what had arrived.
    pub(crate) fn takes_long(&self) -> bool {
        let is_recording = matches!(self, Self::Record { .. });
        self.copies() && !is_recording
            || matches!(
                self,
                Self::Check { .. } | Self::Repair { .. } | Self::Calibrate { .. } | Self::Trim
            )
    }

    /// Whether it makes a title, a file or an object, of which nothing is left when it is
    /// interrupted.
    pub fn copies(&self) -> bool {
        use Request::{Copy, Export, Fill, Ingest, Push, Record};
        matches!(self, Ingest { .. } | Record { .. } | Export { .. } | Copy { .. })
            || matches!(self, Push { .. } | Fill { .. })
    }
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Reply to `Ls`.
    Titles(wire::TitleList),
    /// Reply to `Info` of the store.
    Store(wire::StoreInfo),
    /// Reply to `Info` of a title.
    Title(wire::TitleDetail),
    /// Reply to `Index`: the index as stored, each byte as two hexadecimal digits.
    Index(String),
    /// Reply to `Ingest`.
    Ingest(wire::IngestReport),
    /// Reply to `Record`.
    Recorded(Box<wire::RecordingReport>),
    /// Reply to `Record` with a series.
    RecordedSeries(Box<wire::SeriesReport>),
    /// Reply to `Rm`.
    Removed(wire::RemovedTitle),
    /// Reply to `Rename`.
    Renamed,
    /// Reply to `Export`.
    Export(wire::ExportReport),
    /// Reply to `Check`.
    Check(wire::CheckReport),
    /// Reply to `Trim`.
    Trimmed(wire::TrimReport),
    /// Reply to `Repair`.
    Repaired(wire::RepairReport),
    /// Reply to `Copy`.
    Copied(wire::ListedTitle),
    /// The title that was verified.
    Verified(wire::ListedTitle),
    /// Reply to `Push`.
    Pushed(wire::PushedTitle),
    /// Reply to `Fill`.
    Filled(wire::ListedTitle),
    /// Reply to `Calibrate`.
    Calibration(Box<wire::Calibration>),
    /// Reply to `Status`.
    Status(Box<wire::ServerStatus>),
    /// Reply to `Sessions` without a number.
    Sessions(wire::SessionList),
    /// Reply to `Sessions` with a number.
    Session(Box<wire::SessionReport>),
    /// Reply to `Decisions`.
    Decisions(wire::DecisionList),
    /// Reply to `EndSession`.
    SessionEnded,
    /// Reply to `EndSessions`.
    SessionsEnded(wire::EndedSessions),
    /// Reply to `EndRecording`.
    RecordingEnding,
    /// Reply to `Reload`.
    Reloaded(wire::ReloadReport),
    /// Reply to `Drain`.
    Drain(wire::DrainReport),
    /// Reply to `Restart`.
    Restarting,
    /// Reply to `Stop`.
    Stopping,
    /// Reply to `ServedFile`.
    ServedFile(wire::ServedFile),
}

/// One line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Progress(wire::Progress),
    Reply(Box<Reply>),
    Failed(wire::Failure),
}
