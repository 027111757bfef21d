//! What a network does to storage behind it, between two network namespaces of this machine:
//! link speed 10 to 1, queue, TCP window and MTU, each with the counters that show why.
//!
//! ```text
//!   namespace near                         namespace far
//!   clients ── GET /65536 ──▶ veth ══════ veth ◀── server: bytes from memory
//!              window: tcp_rmem            │ rate and queue: tbf       counters: ss, tc
//!              └─ mtu ─────────────────────┘
//! ```
//!
//! After EBU TECH 3362, sections 6.5 to 6.7, 6.13 and 7.2, whose storage stood behind a switch. The
//! server reads nothing: what is slow is the network. Both namespaces are made for the study and
//! gone after it; nothing else of this machine's network is touched. It does not delay packets, so
//! that a window limits by the little time that this machine takes itself.

mod condition;
mod counters;
mod exchange;
mod pair;

pub(crate) use condition::{Condition, conditions};
pub(crate) use counters::TcpCounters;

use crate::streams::Times;
use exchange::{Server, load};
use pair::NamespacePair;
use std::io;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// What came under one condition.
#[derive(Clone, Debug)]
pub(crate) struct ConditionResult {
    /// Which.
    pub(crate) condition: Condition,
    /// Bytes of answers that came.
    pub(crate) bytes: ByteCount,
    /// In this time.
    pub(crate) took: Duration,
    /// From asking to the last byte, of each answer.
    pub(crate) response: Times,
    /// The counters of the sending side.
    pub(crate) counters: TcpCounters,
}

/// What kept it from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The link was as full as headers let it be.
    Link,
    /// The sender waited for the receiver's window.
    Window,
    /// The queue before the link dropped packets, which were sent again.
    Losses,
    /// None of these: this machine's processors.
    Machine,
}

/// There can be no study.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkError {
    /// Namespaces are for root only.
    #[error("making network namespaces needs root; run it with sudo, or in a virtual machine")]
    NotRoot,
    /// One of the tools.
    #[error("`{command}`: {reason}")]
    Tool {
        /// As it was called.
        command: String,
        /// What it said, and what to do about it.
        reason: String,
    },
    /// The kernel refused an operation.
    #[error("{what}: {source}")]
    System {
        /// What was done.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl ConditionResult {
    /// What came, in the mean.
    pub(crate) fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.took)
    }

    /// What the counters say.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn limit(&self) -> Limit {
        let share = self.rate().0 as f64 / self.condition.link.0.max(1) as f64;
        if self.counters.window_limited() >= HALF {
            Limit::Window
        } else if share >= FULL {
            Limit::Link
        } else if self.counters.dropped > 0 && self.counters.sent_again > 0 {
            Limit::Losses
        } else {
            Limit::Machine
        }
    }
}

impl Limit {
    /// In words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Window => "TCP window",
            Self::Losses => "lost packets",
            Self::Machine => "this machine",
        }
    }
}

/// Share of the sending time from which a limit counts as the cause.
const HALF: f64 = 0.5;

/// Headers take 3 to 6 % of small packets; the rest is what starting costs.
const FULL: f64 = 0.85;

/// Runs each condition for `length` with `clients` clients that request one block after another.
/// `go_on` is called with the next condition; the study ends when it returns false.
pub(crate) fn study(
    conditions: &[Condition],
    clients: u32,
    length: Duration,
    go_on: &mut dyn FnMut(&Condition) -> bool,
) -> Result<Vec<ConditionResult>, NetworkError> {
    if !rustix::process::geteuid().is_root() {
        return Err(NetworkError::NotRoot);
    }
    let pair = NamespacePair::make()?;
    let server = Server::start(&pair)?;
    let mut all = Vec::new();
    for condition in conditions {
        if !go_on(condition) {
            break;
        }
        pair.set(condition)?;
        let before = pair.dropped()?;
        let (came, sockets) = load(&pair, server.address, clients, length)?;
        let counters = TcpCounters { dropped: pair.dropped()?.saturating_sub(before), ..sockets };
        let (bytes, took, response) = (came.bytes, came.took, came.response);
        all.push(ConditionResult { condition: condition.clone(), bytes, took, response, counters });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
