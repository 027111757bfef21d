//! Streams: paced reads with deadlines, begun by the clock and not by the storage (open loop).
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
//! [`Plan`] says what is read when; [`run`] reads it through a [`Port`], in virtual time or for
//! real; [`Outcome`] is what came of it. What the meter itself does late is kept apart: it is
//! measured at every start and every wait, and a frame that was late by no more than that is the
//! meter's ([`Outcome::late_by_meter`]), not the storage's. A run with more than one such in a
//! thousand frames is not valid ([`Outcome::valid`]).
//!
//! It only reads. [`Place`] makes, fills and removes the file that is read in a directory, and
//! touches no file that it did not make.

mod outcome;
mod place;
mod plan;
mod tally;

pub use outcome::{Operation, Outcome, Second, Stream, Times};
pub use place::{Place, PlaceError};
pub use plan::{Plan, PlanError};

use crate::rounds::Port;
use device::DeviceError;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;
use tally::Tally;
use units::Moment;

/// How far a run has come, for whoever decides whether it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Frames that are known to be late or not.
    pub judged: u64,
    /// Of these, late, and not by the meter.
    pub late: u64,
    /// Frame numbers of which some stream's frame is known to be so late.
    pub late_rounds: u64,
}

/// Reads as planned. `go_on` is asked a few hundred times a second; if it says no, the outcome ends
/// there and is not complete. With `log` each read is kept. A read that fails makes its frame late; what cannot even be
/// asked for ends the run.
pub fn run(
    plan: &Plan,
    port: &mut dyn Port,
    log: bool,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, DeviceError> {
    let origin = port.now();
    let mut desk = Desk::new(plan, origin);
    let mut tally = Tally::new(plan, origin, log);
    let end = plan.end(origin);
    let mut done = Vec::new();
    let mut complete = true;
    loop {
        desk.ask(port)?;
        let now = port.now();
        if desk.is_done() || now >= end {
            break;
        }
        let until = desk.next_due().unwrap_or(end).min(end).min(now + HEARTBEAT);
        port.wait(until, &mut done)?;
        let back = port.now();
        // A blocking way of reading comes back when its read is done, which is not the meter's
        // doing. With nothing read it has only slept.
        let busy = plan.blocking && !done.is_empty();
        let overslept = if busy { Duration::ZERO } else { back.since(until) };
        if busy {
            desk.unable_until = back;
        }
        for arrival in done.drain(..) {
            let asked = desk.arrived(arrival.tag, arrival.at);
            tally.arrived(&asked, arrival.at, arrival.result.is_ok(), overslept);
        }
        if !go_on(tally.progress(back)) {
            complete = false;
            break;
        }
    }
    let now = port.now();
    Ok(tally.outcome(now, complete, port.method()))
}

/// Often enough that nothing arrives unseen for long, seldom enough to cost nothing.
const HEARTBEAT: Duration = Duration::from_millis(5);

/// A frame that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    stream: u32,
    frame: u64,
    intended: Moment,
    start: Moment,
    /// How late the meter itself was with it.
    own: Duration,
    /// That, and what the meter's lateness with frames before left this one.
    inherited: Duration,
}

/// What is due, what is under way, and what waits for room.
struct Desk<'a> {
    plan: &'a Plan,
    origin: Moment,
    /// The next frame of each stream to become due.
    due: BinaryHeap<Reverse<(Moment, u32)>>,
    streams: Vec<State>,
    /// Streams that may ask, and since when; one entry a frame.
    ready: VecDeque<(u32, Moment)>,
    under_way: BTreeMap<u64, Asked>,
    tags: u64,
    /// Before this moment nothing could be asked for, for no fault of the meter.
    unable_until: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Frames that became due.
    came_due: u64,
    /// Frames that were put among the ready ones.
    put_ready: u64,
    /// Frames that were asked for.
    asked: u64,
    under_way: u32,
    /// What the meter's own lateness costs this stream until it has caught up.
    inherited: Duration,
}

impl<'a> Desk<'a> {
    fn new(plan: &'a Plan, origin: Moment) -> Self {
        let due = (0..plan.streams).map(|i| Reverse((plan.intended(origin, i, 0), i))).collect();
        Self {
            plan,
            origin,
            due,
            streams: vec![State::default(); usize::try_from(plan.streams).expect("bounded")],
            ready: VecDeque::new(),
            under_way: BTreeMap::new(),
            tags: 0,
            unable_until: Moment::ZERO,
        }
    }

    fn is_done(&self) -> bool {
        self.due.is_empty() && self.ready.is_empty() && self.under_way.is_empty()
    }

    fn next_due(&self) -> Option<Moment> {
        self.due.peek().map(|Reverse((moment, _))| *moment)
    }

    /// Asks for all that is due and has room.
    fn ask(&mut self, port: &mut dyn Port) -> Result<(), DeviceError> {
        let now = port.now();
        while let Some(Reverse((moment, stream))) = self.due.peek().copied()
            && moment <= now
        {
            self.due.pop();
            let state = &mut self.streams[index(stream)];
            state.came_due += 1;
            if state.came_due < self.plan.frames() {
                let next = self.plan.intended(self.origin, stream, state.came_due);
                self.due.push(Reverse((next, stream)));
            }
            self.make_ready(stream, moment);
        }
        while self.under_way.len() < index(self.plan.at_once)
            && let Some((stream, since)) = self.ready.pop_front()
        {
            let state = &mut self.streams[index(stream)];
            let frame = state.asked;
            let intended = self.plan.intended(self.origin, stream, frame);
            let able = since.max(self.unable_until);
            let start = port.now();
            port.begin(self.tags, self.plan.offset(stream, frame), self.plan.frame.0)?;
            let own = start.since(able);
            let caught_up = able <= intended;
            state.inherited = if caught_up { own } else { state.inherited + own };
            state.asked += 1;
            state.under_way += 1;
            let inherited = state.inherited;
            let asked = Asked { stream, frame, intended, start, own, inherited };
            self.under_way.insert(self.tags, asked);
            self.tags += 1;
        }
        Ok(())
    }

    /// One more frame of this stream may be asked for, if its buffer has room for it.
    fn make_ready(&mut self, stream: u32, since: Moment) {
        let state = &mut self.streams[index(stream)];
        let ahead = state.put_ready - state.asked + u64::from(state.under_way);
        if state.put_ready < state.came_due && ahead < u64::from(self.plan.buffer) {
            state.put_ready += 1;
            self.ready.push_back((stream, since));
        }
    }

    fn arrived(&mut self, tag: u64, at: Moment) -> Asked {
        if self.under_way.len() == index(self.plan.at_once) {
            self.unable_until = self.unable_until.max(at);
        }
        let asked = self.under_way.remove(&tag).expect("what arrives was asked for");
        self.streams[index(asked.stream)].under_way -= 1;
        self.make_ready(asked.stream, at);
        asked
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("a machine with 32 bits or more")
}

#[cfg(test)]
mod tests;
