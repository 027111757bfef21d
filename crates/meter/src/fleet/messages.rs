//! Messages between controller and agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The protocol's version, which must be the same on both sides.
pub(super) const VERSION: u32 = 1;

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
    No(String),
}

/// A machine on which an agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its host name.
    pub host: String,
    /// Its number of processors.
    pub processors: usize,
    /// The version of its kernel.
    pub kernel: String,
}

/// The job of an agent's workers: `meter run` with these options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerJob {
    /// The target on the agent's machine.
    pub target: String,
    /// The text of the profile's file.
    pub profile: String,
    /// Number of streams of each worker.
    pub streams: Vec<u32>,
    /// Other options by name; switches have no value.
    pub options: BTreeMap<String, Option<String>>,
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
    Refused(String),
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
