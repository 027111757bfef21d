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
mod live_sample;
mod outcome;
mod pacer;
mod plan;
mod punctual;
mod tally;

pub use backlog::BacklogGrowth;
pub(crate) use backlog::{CONFIRMING, growth, growth_of_lack, long_enough};
pub(crate) use heat::{Heat, HeatCell};
pub use heat::{heat_band, heat_band_begins};
pub(crate) use live_sample::LiveSample;
pub use live_sample::{LiveFigures, LiveKind};
pub use outcome::StreamsOutcome;
pub(crate) use outcome::{CompletedOperation, FrameVerdict};
pub(crate) use outcome::{Second, StreamStats};
pub(crate) use plan::PlanError;
pub use plan::StreamsPlan;
pub(crate) use units::Times;

use crate::log::RecordSink;
use crate::progress::RunProgress;
use crate::target::Port;
use device::DeviceError;
use issuer::Issuer;
use pacer::Pacer;
use std::time::Duration;
use tally::StreamsTally;
use units::Moment;

/// Reads and writes as planned. `go_on` is called a few hundred times a second; if it returns
/// false, the outcome ends there and is not complete. Every judged frame goes to `log`. An
/// operation that fails makes its frame late; one that cannot even be submitted ends the run.
pub fn run(
    plan: &StreamsPlan,
    port: &mut dyn Port,
    log: &mut dyn RecordSink,
    go_on: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<StreamsOutcome, DeviceError> {
    let (origin, sample) = (port.now(), None);
    let mut outcomes = run_groups(&mut [StreamGroup { plan, log, sample }], port, origin, go_on)?;
    Ok(outcomes.pop().expect("an outcome for the one group"))
}

/// A group of streams with one plan, in a run that other groups may share.
pub(crate) struct StreamGroup<'a> {
    /// What is read or written, and when.
    pub(crate) plan: &'a StreamsPlan,
    /// Receives every judged frame.
    pub(crate) log: &'a mut dyn RecordSink,
    /// Receives figures while the run is in progress.
    pub(crate) sample: Option<&'a LiveSample>,
}

/// Runs groups of streams together on one port, as [`run`] runs one. All begin at `origin`, which
/// may be in the future; a group ends at its own last deadline. Returns the outcomes in the order
/// of the groups. Polling and blocking are as in the first plan.
pub(crate) fn run_groups(
    groups: &mut [StreamGroup<'_>],
    port: &mut dyn Port,
    origin: Moment,
    go_on: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<Vec<StreamsOutcome>, DeviceError> {
    let first = groups.first().map(|group| group.plan);
    let (spin, blocking) = first.map_or((false, false), |plan| (plan.spin, plan.blocking));
    let numbered = groups.iter_mut().enumerate();
    let mut lanes: Vec<StreamLane<'_>> =
        numbered.map(|(number, group)| StreamLane::new(number, group, origin)).collect();
    let mut pace = Pacer::new(spin);
    let mut done = Vec::new();
    let mut complete = true;
    let mut told = origin;
    loop {
        // Submit first: time spent before would be lateness of the meter.
        for lane in lanes.iter_mut().filter(|lane| !lane.over) {
            lane.issuer.ask(port)?;
        }
        let now = port.now();
        let (due, end) = next_moments(&mut lanes, now);
        if end == Moment::MAX {
            break;
        }
        let wake = due.min(end).min(now + port.heartbeat());
        let due = (due != Moment::MAX).then_some(due);
        let until = pace.wait(port, now, wake, due, &mut done)?;
        let back = port.now();
        lanes[0].tally.watched(back, pace.take_watched());
        // A blocking read method returns when its read is complete, which is not the meter's delay.
        // Without a read it has only slept.
        let busy = blocking && !done.is_empty();
        // A target without room blocks the issuing thread, which is not the meter's delay.
        let held = port.held_until();
        let overslept = if busy { 0 } else { back.0.saturating_sub(until.max(held).0) };
        let unable = if busy { held.max(back) } else { held };
        lanes.iter_mut().for_each(|lane| lane.issuer.was_unable(unable));
        for arrival in done.drain(..) {
            let lane = &mut lanes[Issuer::lane_of(arrival.tag)];
            // After the end of its group it has been judged as a frame that never came.
            if !lane.over {
                let asked = lane.issuer.arrived(arrival.tag, arrival.at, overslept);
                lane.tally.arrived(&asked, &arrival, overslept);
            }
        }
        for lane in &mut lanes {
            if lane.plan.continues && lane.tally.is_settled() {
                lane.issuer.end_with_this_round();
                lane.end = lane.plan.end(origin, lane.issuer.frames());
            }
        }
        // The caller's decision takes time, so it is not asked after every completion.
        if back.since(told) >= TELLS {
            told = back;
            if !go_on(progress(&lanes, back)) {
                complete = false;
                break;
            }
        }
    }
    let now = port.now();
    let method = port.method();
    Ok(lanes.iter_mut().map(|lane| lane.outcome(now, complete, &method)).collect())
}

/// Ends the groups whose time is up. Returns when the next frame is due, and when the next of the
/// others ends.
#[inline]
fn next_moments(lanes: &mut [StreamLane<'_>], now: Moment) -> (Moment, Moment) {
    let (mut due, mut end) = (Moment::MAX, Moment::MAX);
    for lane in lanes.iter_mut().filter(|lane| !lane.over) {
        // The end is the last deadline: what has not arrived by then is late, however long it is
        // waited for.
        if lane.issuer.is_done() || now >= lane.end {
            (lane.over, lane.ended) = (true, now);
            continue;
        }
        end = end.min(lane.end);
        // Without room for another operation a due frame is no reason to wake up.
        if lane.issuer.has_room() {
            due = due.min(lane.issuer.next_due());
        }
    }
    (due, end)
}

/// The progress of all groups. Takes the samples that are due.
fn progress(lanes: &[StreamLane<'_>], now: Moment) -> RunProgress {
    lanes.iter().fold(RunProgress::default(), |sum, lane| {
        if let Some(sample) = lane.sample.filter(|sample| sample.is_due(now)) {
            sample.take(now, lane.tally.figures(now, &lane.issuer));
        }
        sum.and(lane.tally.progress(now))
    })
}

/// A group of streams in its run.
struct StreamLane<'a> {
    plan: &'a StreamsPlan,
    issuer: Issuer<'a>,
    tally: StreamsTally<'a>,
    sample: Option<&'a LiveSample>,
    /// The last deadline of the group.
    end: Moment,
    over: bool,
    /// The time at which the group was over.
    ended: Moment,
}

impl<'a> StreamLane<'a> {
    fn new(number: usize, group: &'a mut StreamGroup<'_>, origin: Moment) -> Self {
        let StreamGroup { plan, log, sample } = group;
        let issuer = Issuer::new(plan, number, origin);
        let end = plan.end(origin, issuer.frames());
        let tally = StreamsTally::new(plan, origin, *log);
        Self { plan, issuer, tally, sample: *sample, end, over: false, ended: origin }
    }

    fn outcome(&mut self, now: Moment, complete: bool, method: &str) -> StreamsOutcome {
        let (now, complete) = if self.over { (self.ended, true) } else { (now, complete) };
        self.tally.outcome(now, complete, method.to_owned(), &self.issuer)
    }
}

/// The interval of progress reports: more would not help a reader, and costs as much as a read.
const TELLS: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
