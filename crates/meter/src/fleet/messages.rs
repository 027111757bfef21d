//! Messages between controller, agents and workers.

use crate::blame::Stack;
use crate::profiles::Profile;
use crate::progress::RunProgress;
use crate::target::{FileSet, VerifyReport};
use crate::transfers::{TransferMix, TransfersPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use units::Reason;

/// The protocol's version, which must be the same on both sides.
pub(super) const VERSION: u32 = 6;

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
    No(Reason),
}

/// A machine on which an agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The agent's host name.
    pub host: String,
    /// The agent's number of processors.
    pub processors: usize,
    /// The version of its kernel.
    pub kernel: String,
}

/// What each worker of an agent prepares: a target, and the work that will be done there. No field
/// here destroys data, or writes outside the target's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerTask {
    /// A directory or file on the agent's machine; for a worker its full path.
    pub target: String,
    /// Bytes of the files that are made in a directory, together.
    pub size: u64,
    /// The percentage to which the file system is filled first.
    pub fill_level: Option<u64>,
    /// Whether the page cache is used.
    pub buffered: bool,
    /// Whether the page cache is emptied of the files before each step.
    pub drop_caches: bool,
    /// Whether recognisable data is written, and what is read is verified.
    pub verify: bool,
    /// The name of a [`Method`](device::Method).
    pub method: String,
    /// What is done there.
    pub work: WorkerWork,
}

/// The work for which a worker prepares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerWork {
    /// Paced streams.
    Streams(StreamsWork),
    /// Transfers of this mix, on files as many and as large as it says.
    Transfers(TransferMix),
}

/// The streams for which a worker prepares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamsWork {
    /// The demand of a stream.
    pub profile: Profile,
    /// Frames that a client buffers.
    pub buffer: u32,
    /// The name of a [`Layout`](crate::target::Layout).
    pub layout: String,
    /// Whether the worker watches the clock instead of sleeping until a frame is due.
    pub busy_poll: bool,
    /// The largest number of streams of any step.
    pub most: u32,
    /// The largest part of the target that is used, in bytes.
    pub within: Option<u64>,
    /// The part of a single file or device that is used, where other streams use the others.
    pub part: Option<FilePart>,
    /// No storage: only the meter is measured.
    pub null: bool,
    /// All of it is read once before the first step.
    pub warm: bool,
}

/// One of several equal parts of a file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilePart {
    /// The number of this part, from 0.
    pub number: u64,
    /// The number of parts.
    pub of: u64,
}

/// A run of a worker on what it has prepared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WorkerStep {
    /// Paced streams.
    Streams {
        streams: u32,
        /// Number of streams of the workers before it.
        first_stream: u32,
        length: Duration,
        /// The run goes on while its backlog grows.
        continues: bool,
    },
    /// Transfers.
    Transfers(Box<TransfersPlan>),
}

/// What a worker has prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TargetFacts {
    /// The files.
    pub shape: FileSet,
    /// The caches that may answer, in words.
    pub caches: String,
    /// What lies beneath the target.
    pub stack: Stack,
}

/// An order of an agent to its worker, in one line of its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerOrder {
    Begin(WorkerStep),
    /// Ends the step: what it has shown is enough.
    Enough,
}

/// A report of a worker to its agent, in one line of its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerReply {
    Ready(TargetFacts),
    Progress(RunProgress),
    /// The result of a step, and what was verified since the worker was ready.
    Done(Value, Option<VerifyReport>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentRequest {
    /// Asks for the agent's time; also sent as a sign of life.
    Clock,
    /// Starts this many workers for each task, in the order of the tasks and in place of those that
    /// there are.
    Prepare(Vec<WorkerTask>, usize),
    /// Starts a step of each worker that has one, at this moment of the agent's clock, in
    /// nanoseconds.
    Begin(u64, Vec<Option<WorkerStep>>),
    /// Ends the running step.
    Enough,
    /// Ends the workers.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum AgentReply {
    /// Nanoseconds since the agent was started.
    Clock(u64),
    /// The agent refuses the request, with its reason.
    Refused(Reason),
    /// All workers have begun, with the delay in nanoseconds.
    Begun(u64),
    /// What a worker reports.
    Worker(usize, WorkerReply),
    /// A worker has ended, with its notes and errors.
    Ended(usize, String),
    /// Sent when there is nothing else to report.
    Alive,
}
