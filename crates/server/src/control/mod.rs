//! Reaching a store that a server owns: a Unix socket for each store, one JSON object a line.
//!
//! ```text
//!   client ──▶ {"ingest":{"files":["/films/a.mkv"],...}}
//!   client ◀── {"progress":{"stage":"copying","done":1048576,"total":73400320}}   (any number)
//!   client ◀── {"reply":{"ingest":{...}}}   or   {"failed":{"code":"full","message":"..."}}
//! ```
//!
//! The socket lies in a directory that only its user can enter. A client that hangs up in the
//! middle of an ingest, export or check calls it off.

mod client;
mod place;
mod serve;
mod work;

pub use client::{Client, ControlError};
use place::is_ours;
pub use place::{socket_directory, socket_path};
pub(crate) use serve::{ControlServer, Served};

use crate::wire;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What can be asked. Paths are absolute: the server has its own working directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// All titles of the store.
    Ls,
    /// The store, or one title.
    Info {
        /// `None`: the store.
        title: Option<String>,
    },
    /// A title's index, for who plans with it.
    Index {
        /// Its name.
        title: String,
    },
    /// Take files in.
    Ingest {
        /// Absolute paths, readable by the server.
        files: Vec<PathBuf>,
        /// As bytes rather than as media.
        as_file: bool,
        /// `None`: the file's name.
        title: Option<String>,
        /// Take what can be read of a damaged file.
        allow_damaged: bool,
        /// All of them as the renditions of one title.
        #[serde(default)]
        renditions: bool,
    },
    /// Remove a title: hidden at once, freed when its last viewer has gone.
    Rm {
        /// Its name.
        title: String,
    },
    /// Give a title another name.
    Rename {
        /// As it is.
        old: String,
        /// As it shall be.
        new: String,
    },
    /// Give a title back as a file.
    Export {
        /// Its name.
        title: String,
        /// Absolute path, writable by the server.
        out: PathBuf,
    },
    /// Look for damage.
    Check {
        /// Read all data.
        scrub: bool,
    },
    /// Measure the device anew, as best effort. What was measured while somebody played is answered
    /// and not adopted.
    Calibrate {
        /// About how long it may take, in seconds.
        seconds: f64,
    },
    /// The server at this moment.
    Status,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To `Ls`.
    Titles(Vec<wire::Title>),
    /// To `Info` of the store.
    Store(wire::StoreInfo),
    /// To `Info` of a title.
    Title(wire::TitleDetail),
    /// To `Index`: as it is stored, each byte as two hexadecimal digits.
    Index(String),
    /// To `Ingest`.
    Ingest(wire::IngestReport),
    /// To `Rm`: whether viewers keep its space for now.
    Removed {
        /// The title as it was.
        title: wire::Title,
        /// Freed when the last of them has gone.
        in_use: bool,
    },
    /// To `Rename`.
    Renamed,
    /// To `Export`.
    Export(wire::ExportReport),
    /// To `Check`.
    Check(wire::CheckReport),
    /// To `Calibrate`.
    Calibration(Box<wire::Calibration>),
    /// To `Status`.
    Status(Box<wire::Status>),
}

/// One line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Progress(wire::Progress),
    Reply(Box<Reply>),
    Failed(wire::Failure),
}
