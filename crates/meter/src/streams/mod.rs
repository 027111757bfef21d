//! Streams: paced reads and writes with deadlines, begun by the clock and not by the storage (open
//! loop).
//!
//! ```text
//!   frame k of stream i
//!     intended start   t0 + phase_i + k / fps          however late the frames before are
//!     start            when it was asked for           later if the client's buffer is full
//!     end              when it was there
//!     deadline         intended start + B / fps        B frames of buffer in the client
//!
//!   ├─ intended ─┬─ start ──────┬─ end ─────┤ deadline
//!   └────────────┴── service ───┘           late: end > deadline, or it could not be read
//!   └─────────── response ──────┘
//! ```
//!
//! [`StreamsPlan`] says what is read or written when; [`run`] does it through a [`Port`], in
//! virtual time or for real; [`StreamsOutcome`] is what came of it. What the meter itself does late
//! is kept apart: it is measured at every start and every wait, and a frame that was late by no
//! more than that is the meter's ([`StreamsOutcome::late_by_meter`]), not the storage's. A run with
//! more than one such in a thousand frames is not valid ([`StreamsOutcome::valid`]).
//!
//! What is late is judged while it runs, and each frame goes into the log that the caller gives:
//! those that came when they come, those that never came at the end.

mod heat;
mod in_order;
mod issuer;
mod outcome;
mod pacer;
mod plan;
mod seconds;
mod tally;
mod times;

pub use heat::{Heat, HeatCell};
pub use outcome::{Moved, Second, StreamStats, StreamsOutcome};
pub use plan::{Ask, PlanError, StreamsPlan};
pub use times::Times;

use crate::log::RecordSink;
use crate::target::Port;
use device::DeviceError;
use issuer::Issuer;
use pacer::Pacer;
use std::time::Duration;
use tally::StreamsTally;
use units::nanos;

/// The progress of a run, for the decision whether to continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamsProgress {
    /// Since its start.
    pub elapsed: Duration,
    /// Frames that are known to be late or not.
    pub judged: u64,
    /// Frames that were late, not counting those that the meter delayed.
    pub late: u64,
    /// Frame numbers of which some stream's frame is known to be so late.
    pub late_rounds: u64,
}

/// Reads and writes as planned. `go_on` is asked a few hundred times a second; if it says no, the
/// outcome ends there and is not complete. Every frame that is judged goes to `log`. An operation
/// that fails makes its frame late; what cannot even be asked for ends the run.
pub fn run(
    plan: &StreamsPlan,
    port: &mut dyn Port,
    log: &mut dyn RecordSink,
    go_on: &mut dyn FnMut(StreamsProgress) -> bool,
) -> Result<StreamsOutcome, DeviceError> {
    let origin = port.now();
    let mut desk = Issuer::new(plan, origin);
    let mut tally = StreamsTally::new(plan, origin, log);
    let mut pace = Pacer::new(plan.spin);
    let end = plan.end(origin);
    let mut done = Vec::new();
    let mut complete = true;
    let mut told = origin;
    loop {
        desk.ask(port)?;
        let now = port.now();
        if desk.is_done() || now >= end {
            break;
        }
        // Without room for it, what becomes due is no reason to wake.
        let due = if desk.has_room() { desk.next_due() } else { None };
        let wake = due.unwrap_or(end).min(end).min(now + HEARTBEAT);
        let until = pace.wait(port, (now, wake), due, &mut done)?;
        let back = port.now();
        tally.watched(back, pace.take_watched());
        // A blocking way of reading comes back when its read is done, which is not the meter's
        // doing. With nothing read it has only slept.
        let busy = plan.blocking && !done.is_empty();
        // A target without room blocks the issuing thread, which is not the meter's delay.
        let held = port.held_until();
        let overslept = if busy { 0 } else { back.0.saturating_sub(until.max(held).0) };
        desk.unable_until = desk.unable_until.max(held);
        if busy {
            desk.unable_until = back;
        }
        for arrival in done.drain(..) {
            let asked = desk.arrived(arrival.tag, arrival.at);
            tally.arrived(&asked, &arrival, overslept);
        }
        if back.since(told) >= TELLS {
            told = back;
            if !go_on(tally.progress(back)) {
                complete = false;
                break;
            }
        }
    }
    let now = port.now();
    Ok(tally.outcome(now, complete, port.method(), &desk))
}

/// Often enough that nothing arrives unseen for long, seldom enough to cost nothing.
const HEARTBEAT: Duration = Duration::from_millis(5);

/// More often is no use to people, and costs as much as a read.
const TELLS: Duration = Duration::from_millis(2);

fn index(number: u32) -> usize {
    usize::try_from(number).expect("a machine with 32 bits or more")
}

#[cfg(test)]
mod tests;
