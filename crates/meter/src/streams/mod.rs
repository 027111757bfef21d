//! Streams: paced reads and writes with deadlines, started by the clock and not by the storage
//! (open loop).
//!
//! ```text
//!   frame k of stream i
//!     intended start   t0 + phase_i + k / fps          however late the frames before are
//!     start            when it was requested           later if the client's buffer is full
//!     end              when it was complete
//!     deadline         intended start + B / fps        B frames of buffer in the client
//!
//!   ├─ intended ─┬─ start ──────┬─ end ─────┤ deadline
//!   └────────────┴── service ───┘           late: end > deadline, or it could not be read
//!   └─────────── response ──────┘
//! ```
//! [`StreamsPlan`] says what is read or written and when; [`run`] executes it through a [`Port`],
//! in virtual or real time; [`StreamsOutcome`] is the result. The meter's own lateness is kept
//! apart: it is measured at every start and every wait, and a frame that was late by no more than
//! that is counted as the meter's ([`StreamsOutcome::late_by_meter`]), not the storage's. A run
//! with more than one such frame in a thousand is not valid ([`StreamsOutcome::valid`]).
//!
//! Streams are held if no frame is late and the backlog does not grow: `backlog.rs` has the rule,
//! and what a held run of which length cannot hide.
//!
//! Frames are judged during the run, and each goes into the caller's log: a frame that arrives, on
//! its arrival; one that never does, at the end.

mod backlog;
mod heat;
mod in_order;
mod issuer;
mod outcome;
mod pacer;
mod plan;
mod tally;
mod times;

pub use backlog::BacklogGrowth;
pub(crate) use backlog::{CONFIRMING, growth, growth_of_lack, long_enough};
pub(crate) use heat::{Heat, HeatCell};
pub use outcome::StreamsOutcome;
pub(crate) use outcome::{CompletedOperation, FrameVerdict};
pub(crate) use outcome::{Second, StreamStats};
pub(crate) use plan::PlanError;
pub use plan::StreamsPlan;
pub(crate) use times::Times;

use crate::log::RecordSink;
use crate::progress::RunProgress;
use crate::target::Port;
use device::DeviceError;
use issuer::Issuer;
use pacer::Pacer;
use std::time::Duration;
use tally::StreamsTally;

/// Reads and writes as planned. `go_on` is called a few hundred times a second; if it returns
/// false, the outcome ends there and is not complete. Every judged frame goes to `log`. An
/// operation that fails makes its frame late; one that cannot even be submitted ends the run.
pub fn run(
    plan: &StreamsPlan,
    port: &mut dyn Port,
    log: &mut dyn RecordSink,
    go_on: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<StreamsOutcome, DeviceError> {
    let origin = port.now();
    let mut issuer = Issuer::new(plan, origin);
    let mut tally = StreamsTally::new(plan, origin, log);
    let mut pace = Pacer::new(plan.spin);
    let mut end = plan.end(origin, issuer.frames());
    let mut done = Vec::new();
    let mut complete = true;
    let mut told = origin;
    loop {
        // Submit first: time spent before would be lateness of the meter.
        issuer.ask(port)?;
        let now = port.now();
        // The end is the last deadline: what has not arrived by then is late, however long it is
        // waited for.
        if issuer.is_done() || now >= end {
            break;
        }
        // Without room for another operation a due frame is no reason to wake up.
        let due = if issuer.has_room() { issuer.next_due() } else { None };
        let wake = due.unwrap_or(end).min(end).min(now + HEARTBEAT);
        let until = pace.wait(port, now, wake, due, &mut done)?;
        let back = port.now();
        tally.watched(back, pace.take_watched());
        // A blocking read method returns when its read is complete, which is not the meter's delay.
        // Without a read it has only slept.
        let busy = plan.blocking && !done.is_empty();
        // A target without room blocks the issuing thread, which is not the meter's delay.
        let held = port.held_until();
        let overslept = if busy { 0 } else { back.0.saturating_sub(until.max(held).0) };
        issuer.unable_until = issuer.unable_until.max(held);
        if busy {
            issuer.unable_until = back;
        }
        for arrival in done.drain(..) {
            let asked = issuer.arrived(arrival.tag, arrival.at);
            tally.arrived(&asked, &arrival, overslept);
        }
        if plan.continues && tally.is_settled() {
            issuer.end_with_this_round();
            end = plan.end(origin, issuer.frames());
        }
        // The caller's decision takes time, so it is not asked after every completion.
        if back.since(told) >= TELLS {
            told = back;
            if !go_on(tally.progress(back)) {
                complete = false;
                break;
            }
        }
    }
    let now = port.now();
    Ok(tally.outcome(now, complete, port.method(), &issuer))
}

/// The longest wait: short enough to notice arrivals, long enough to cost nothing.
const HEARTBEAT: Duration = Duration::from_millis(5);

/// The interval of progress reports: more would not help a reader, and costs as much as a read.
const TELLS: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
