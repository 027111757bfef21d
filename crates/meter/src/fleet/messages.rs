//! Messages between controller and agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Reason;

/// The protocol's version, which must be the same on both sides.
pub(super) const VERSION: u32 = 2;

/// The agent's first message, in the clear.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version of the protocol.
    pub(super) version: u32,
    /// The version of the program.
    pub(super) program: String,
    /// 32 bytes in hexadecimal, never used twice.
    pub(super) nonce: String,
}

/// The controller's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prove {
    pub(super) version: u32,
    pub(super) program: String,
    pub(super) nonce: String,
    /// The MAC over both nonces, under the token.
    pub(super) mac: String,
}

/// The agent's answer, which proves that the agent knows the token too.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Welcome {
    /// The proof that the sender knows the token.
    Yes { mac: String, about: About },
    /// The reason of the refusal.
    No(#[serde(with = "ReasonOnTheWire")] Reason),
}

/// The form of a [`Reason`] in messages.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reason")]
struct ReasonOnTheWire {
    message: String,
    hint: Option<String>,
}

/// A machine on which an agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// Its host name.
    pub host: String,
    /// Its number of processors.
    pub processors: usize,
    /// The version of its kernel.
    pub kernel: String,
}

/// What the workers of an agent measure: each runs streams on the same target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerJob<S = Vec<u32>> {
    /// A directory or file on the agent's machine; in a task its full path.
    pub target: String,
    /// The text of the profile's file.
    pub profile: String,
    /// Number of streams: of each worker, or of one.
    pub streams: S,
    /// Number of streams of the agents, or of the workers, before it.
    pub first_stream: u32,
    /// How all workers run their streams.
    pub options: WorkerOptions,
}

/// The part of a [`WorkerJob`] that one worker does.
pub(crate) type WorkerTask = WorkerJob<u32>;

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
            first_stream: self.first_stream + self.streams[..worker].iter().sum::<u32>(),
            options: self.options.clone(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentRequest {
    /// Asks for the agent's time.
    Clock,
    /// Starts and prepares the workers.
    Prepare(WorkerJob),
    /// Starts the run at this moment of the agent's clock, in nanoseconds.
    Begin(u64),
    /// Ends the running job.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentReply {
    /// Nanoseconds since the agent was started.
    Clock(u64),
    /// The agent refuses the request, with its reason.
    Refused(#[serde(with = "ReasonOnTheWire")] Reason),
    /// This worker is prepared.
    Ready(usize),
    /// All workers have begun, with the delay in nanoseconds.
    Begun(u64),
    /// The progress of a worker.
    Progress { worker: usize, seconds: f64, frames: u64, late: u64 },
    /// A worker has ended.
    Done { worker: usize, code: Option<i32>, summary: Option<Value>, said: String },
    /// Sent when there is nothing else to report.
    Alive,
}
