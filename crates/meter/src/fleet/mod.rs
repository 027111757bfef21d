//! A fleet: agents that measure on many machines, and the controller that starts them together.
//!
//! ```text
//!   controller                                    agent (one for each machine)
//!     connect ──────────────── TCP or ssh ──────▶ Hello: version, nonce
//!     Prove: version, nonce, HMAC ──────────────▶
//!     ◀───────────────────────────────── Welcome: HMAC, about the machine
//!     Clock ◀──────── nine times ─────────▶ Clock      offset, by the shortest way there and back
//!     Prepare(job) ─────────────────────────────▶ starts its workers, which fill their files
//!     ◀─────────────────────────────────────── Ready, of each worker
//!     Begin(at, on the agent's clock) ──────────▶ all workers begin
//!     ◀──────────────────────── Progress, Alive ──
//!     ◀────────────────────────────────────── Done: each worker's whole summary
//! ```
//!
//! Frames are a length (4 bytes, highest first), an HMAC-SHA256 (32 bytes) and JSON. Both sides
//! prove that they know the token before anything is said, and every frame carries an HMAC over its
//! direction, its number and its body under a key of this connection: nothing can be forged,
//! repeated or left out. It is not encrypted: an eavesdropper can read what is measured.
//!
//! A worker is a process of its own, `meter run --hold`, with a verdict of its own by its machine's
//! clock: no verdict depends on clocks being alike, and they are measured only to begin together
//! and to say how well that went. An agent starts nothing but that, on nothing but the directories
//! that it was told, and never with `--destroy`. When the controller is gone its workers end.
//! When an agent is gone, the controller ends the others and calls the run invalid: it never
//! reports a smaller fleet as if it had been asked for.

mod agent;
mod channel;
mod clock;
mod controller;
mod messages;
mod worker;

pub use agent::{Agent, NotAllowed};
pub use channel::{Token, TokenError, WireError};
pub use clock::Offset;
pub use controller::{
    AgentConnection, AgentOutcome, CONTROLLER_SILENCE, Fleet, FleetError, Seen, WorkerOutcome,
    connect, run,
};
pub use messages::{About, WorkerJob};
pub use worker::{PROGRESS, READY};

#[cfg(test)]
mod tests;
