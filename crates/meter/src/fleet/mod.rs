//! A fleet: agents that measure on many machines, and the controller that starts them together.
//!
//! ```text
//!   controller                                    agent (one for each machine)
//!     connect ──────────────── TCP or ssh ──────▶ Hello: version, nonce
//!     Prove: version, nonce, HMAC ──────────────▶
//!     ◀───────────────────────────────── Welcome: HMAC, about the machine
//!     Clock ◀──────── nine times ─────────▶ Clock      offset, by the shortest way there and back
//!     Prepare(tasks) ───────────────────────────▶ starts its workers, which fill their files
//!     ◀─────────────────────────────────────── Ready, of each worker
//!     Begin(at, on the agent's clock, steps) ───▶ all workers begin a step ...
//!     ◀──────────────────────── Progress, Alive ──
//!     ◀────────────────────────────────────── Done: the outcome of each worker's step
//!                                                 ... and another, until Stop
//! ```
//!
//! Frames are a length (4 bytes, big-endian), an HMAC-SHA256 (32 bytes) and JSON. Both sides prove
//! that they know the token before anything else is sent, and every frame carries an HMAC over its
//! direction, number and body under a key of this connection: nothing can be forged, repeated or
//! left out. Frames are not encrypted: an eavesdropper can read what is measured. By TCP, the time
//! of a handshake and the number of connections in it are limited (`handshake`).
//!
//! A worker is a process of its own that runs its part of the streams or transfers and judges
//! them by its own machine's clock. No verdict depends on equal clocks: clocks are compared so
//! that all workers begin together, and so that the report can say how well that went. An agent
//! starts only workers, and only on targets inside the directories that its user has named. Its
//! workers end when its controller is gone, or silent for some seconds. When an agent is gone,
//! the controller ends the others and reports the run as invalid: a smaller fleet is never
//! reported as the one that was asked for.

mod agent;
mod channel;
mod clock;
mod controller;
mod handshake;
mod messages;
mod reply_writer;
mod worker;

pub(crate) use agent::Agent;
pub(crate) use channel::{Token, WireError};
pub(crate) use controller::{AgentConnection, AgentState, Fleet, WorkerState, connect};
pub(crate) use handshake::{ConnectionPlace, Connections, HANDSHAKE_LIMIT, HandshakeStream};
pub(crate) use messages::{
    FilePart, StreamsWork, TargetFacts, WorkerOrder, WorkerReply, WorkerStep, WorkerTask,
    WorkerWork,
};

#[cfg(test)]
mod tests;
