//! What controller and agents say to each other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The protocol's version; both must have the same.
pub(super) const VERSION: u32 = 1;

/// Before anything else, in the clear.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The protocol's.
    pub(super) version: u32,
    /// The program's.
    pub(super) program: String,
    /// 32 bytes in hexadecimal, never the same twice.
    pub(super) nonce: String,
}

/// The controller's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prove {
    pub(super) version: u32,
    pub(super) program: String,
    pub(super) nonce: String,
    /// Over both nonces, under the token.
    pub(super) mac: String,
}

/// The agent's, which proves itself as well.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Welcome {
    /// The proof that the sender knows the token.
    Yes { mac: String, about: About },
    /// Why not.
    No(String),
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// As it calls itself.
    pub host: String,
    /// How many it has.
    pub processors: usize,
    /// Its system's.
    pub kernel: String,
}

/// What the workers of an agent measure: each runs streams on the same target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerJob {
    /// A directory or file on the agent's machine.
    pub target: String,
    /// The profile's file, as text.
    pub profile: String,
    /// Streams of each worker.
    pub streams: Vec<u32>,
    /// How all workers run their streams.
    pub options: WorkerOptions,
}

/// The part of a [`WorkerJob`] that one worker does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTask {
    /// A directory or file, by its full path.
    pub target: String,
    /// The profile's file, as text.
    pub profile: String,
    /// Number of streams.
    pub streams: u32,
    /// How the streams run.
    pub options: WorkerOptions,
}

/// All that a controller may choose about a worker's run. No option here destroys data, or writes
/// outside the target's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerOptions {
    /// Length of the run in nanoseconds.
    pub duration_ns: u64,
    /// Frames that a client buffers.
    pub buffer_frames: u32,
    /// Bytes of the files that are made in a directory, together.
    pub size: u64,
    /// The name of a [`Method`](device::Method).
    pub method: Option<String>,
    /// The name of a [`Layout`](crate::target::Layout).
    pub layout: Option<String>,
    /// The percentage to which the file system is filled first.
    pub fill_level: Option<u64>,
    /// Whether the page cache is used.
    pub buffered: bool,
    /// Whether the worker watches the clock instead of sleeping until a frame is due.
    pub busy_poll: bool,
}

impl WorkerJob {
    /// The task of the worker with this number.
    pub(super) fn task(&self, worker: usize) -> WorkerTask {
        WorkerTask {
            target: self.target.clone(),
            profile: self.profile.clone(),
            streams: self.streams[worker],
            options: self.options.clone(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentRequest {
    /// What time is it?
    Clock,
    /// Get ready.
    Prepare(WorkerJob),
    /// Begin at this moment of the agent's clock, in nanoseconds.
    Begin(u64),
    /// Ends the running job.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentReply {
    /// Nanoseconds since the agent was started.
    Clock(u64),
    /// It will not do that.
    Refused(String),
    /// This worker is prepared.
    Ready(usize),
    /// All workers have begun, with the delay in nanoseconds.
    Begun(u64),
    /// How far a worker has come.
    Progress { worker: usize, seconds: f64, frames: u64, late: u64 },
    /// A worker has ended.
    Done { worker: usize, code: Option<i32>, summary: Option<Value>, said: String },
    /// Nothing new.
    Alive,
}
