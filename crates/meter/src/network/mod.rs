//! The effect of a network on the storage behind it, measured between two network namespaces of
//! this machine: link speed 10 to 1, queue, TCP window and MTU, each with the counters that show
//! the cause.
//!
//! ```text
//!   namespace near                         namespace far
//!   clients ── GET /65536 ──▶ veth ══════ veth ◀── server: bytes from memory
//!              window: tcp_rmem            │ rate and queue: tbf       counters: ss, tc
//!              └─ mtu ─────────────────────┘
//! ```
//!
//! The conditions follow EBU TECH 3362, sections 6.5 to 6.7, 6.13 and 7.2, whose storage was behind
//! a switch. The server reads no storage, so that only the network limits. Both namespaces are made
//! for the study and removed after it; nothing else of this machine's network is changed. Packets
//! are not delayed, so that a window limits only by the short delay of this machine itself.

mod condition;
mod counters;
mod exchange;
mod pair;

pub(crate) use condition::{Condition, conditions};
pub(crate) use counters::TcpCounters;

use crate::error::MeterError;
use crate::streams::Times;
use exchange::{FarServer, load};
use pair::NamespacePair;
use std::io;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The result under one condition.
#[derive(Clone, Debug)]
pub(crate) struct ConditionResult {
    /// The condition.
    pub(crate) condition: Condition,
    /// Bytes of answers received.
    pub(crate) bytes: ByteCount,
    /// The duration of the run.
    pub(crate) took: Duration,
    /// The time from request to last byte of each answer.
    pub(crate) response: Times,
    /// The counters of the sending side.
    pub(crate) counters: TcpCounters,
}

/// The reason why it was not faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The link was as full as headers let it be.
    Link,
    /// The sender waited for the receiver's window.
    Window,
    /// The queue before the link dropped packets, which must be sent again.
    Losses,
    /// None of these: this machine's processors limit.
    Machine,
}

/// The error of an operation that the kernel refused.
fn system(what: &'static str) -> impl Fn(io::Error) -> MeterError + Copy {
    move |source| MeterError::new(format!("{what}: {source}"))
}

impl ConditionResult {
    /// The mean rate received.
    pub(crate) fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.took)
    }

    /// The limit that the counters show.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn limit(&self) -> Limit {
        let share = self.rate().0 as f64 / self.condition.link.0.max(1) as f64;
        if self.counters.window_limited() >= HALF {
            Limit::Window
        } else if share >= FULL {
            Limit::Link
        } else if self.counters.dropped > 0 {
            Limit::Losses
        } else {
            Limit::Machine
        }
    }
}

impl Limit {
    /// The limit in words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Window => "TCP window",
            Self::Losses => "dropped packets",
            Self::Machine => "this machine",
        }
    }
}

/// Share of the sending time from which a limit counts as the cause.
const HALF: f64 = 0.5;

/// Share of the link's rate from which the link counts as full: headers take 3 to 6 % of small
/// packets, and starting takes the rest.
const FULL: f64 = 0.85;

/// Runs each condition for `length` with `clients` clients that request one block after another.
/// `go_on` is called with the next condition; the study ends when it returns false.
pub(crate) fn study(
    conditions: &[Condition],
    clients: u32,
    length: Duration,
    go_on: &mut dyn FnMut(&Condition) -> bool,
) -> Result<Vec<ConditionResult>, MeterError> {
    if !rustix::process::geteuid().is_root() {
        return Err(MeterError::new("making network namespaces needs root")
            .hint("run it with sudo, or in a virtual machine"));
    }
    let pair = NamespacePair::make()?;
    let server = FarServer::start(&pair)?;
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
