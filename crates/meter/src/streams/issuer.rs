//! The operations of a run that are due, in flight, or waiting for room.
//!
//! The frames with one number become due in the order of their streams' phases, and all of them
//! before any frame with the next number: finding the next due operation needs no search.

use super::StreamsPlan;
use super::plan::Ask;
use super::punctual::PunctualRoom;
use crate::target::{IoRequest, Port};
use device::DeviceError;
use std::collections::VecDeque;
use std::time::Duration;
use units::{Moment, index, nanos};

/// The operations of a run that are due, in flight, or waiting for room.
pub(super) struct Issuer<'a> {
    plan: &'a StreamsPlan,
    /// The group's number in the high half of every tag.
    lane: u64,
    origin: Moment,
    /// Phases and streams in the order of the phases.
    order: Vec<(u64, u32)>,
    /// The next frame to become due: an index into `order`, and the frame's number.
    next: usize,
    round: u64,
    /// The number of rounds.
    frames: u64,
    /// The intended start of this round's frames, without the phase.
    round_begins: Moment,
    /// The intended start of the next frame; [`Moment::MAX`] after the last round.
    next_due: Moment,
    streams: Vec<StreamState>,
    /// Frames that may be requested.
    ready: VecDeque<ReadyFrame>,
    /// Operations in flight by tag.
    under_way: Vec<Option<IssuedRead>>,
    free: Vec<usize>,
    watch: ClockCache,
    /// When something could be submitted again that could not be for reasons outside of the meter.
    unable: Able,
    /// The last time until which nothing could be submitted for reasons outside of the meter.
    blocked_until: Moment,
    /// A delay of the meter, in nanoseconds, after which a stream is followed.
    notable: u64,
    /// Streams that are followed since a delay, and their number.
    followed: Vec<Option<Box<PunctualRoom>>>,
    following: usize,
    /// The delay from which an arrival is looked at: notable, or zero while streams are followed.
    looks_from: u64,
}

/// The time from which an operation could be submitted.
#[derive(Clone, Copy, Debug)]
struct Able {
    since: Moment,
    /// The part of that time that the meter's own lateness caused, in nanoseconds: the operation
    /// that had to complete before was itself late by as much.
    left: u64,
}

/// The next frame of a stream, which may be requested.
#[derive(Clone, Copy, Debug)]
struct ReadyFrame {
    stream: u32,
    able: Able,
}

/// A frame that was requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct IssuedRead {
    pub(super) stream: u32,
    pub(super) frame: u64,
    pub(super) ask: Ask,
    pub(super) intended: Moment,
    pub(super) start: Moment,
    /// The meter's own lateness with this frame, in nanoseconds.
    pub(super) own: u64,
    /// The meter's own lateness, plus what its lateness with the frame left to this one for which
    /// this one had to wait.
    pub(super) inherited: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct StreamState {
    /// Frames that became due.
    came_due: u64,
    /// Frames that became ready.
    put_ready: u64,
    /// Frames that were requested.
    asked: u64,
    /// Frames that have a place in the client's buffer and have not arrived: ready or in flight.
    ahead: u32,
}

/// The time during bursts of submissions. Where a submission only fills a list for the kernel,
/// reading the clock would be most of its cost: so one reading is used for up to [`MOST_A_READING`]
/// operations, as long as that many took less than [`AT_ONCE`] the last time.
struct ClockCache {
    at: Moment,
    /// Operations that a reading is used for, and how many of them remain.
    good_for: u32,
    left: u32,
}

impl<'a> Issuer<'a> {
    /// The operations of group number `lane` of a run that begins at `origin`.
    pub(super) fn new(plan: &'a StreamsPlan, lane: usize, origin: Moment) -> Self {
        let mut order: Vec<(u64, u32)> =
            (0..plan.streams).map(|stream| (plan.phase(stream), stream)).collect();
        // In the order of their phases: the next frame due is then found without a search.
        order.sort_unstable();
        // Where the queue may be full before a client's buffer is, the buffer alone does not tell
        // when there is room.
        let own_room = u64::from(plan.at_once) == u64::from(plan.streams) * u64::from(plan.buffer);
        let notable = if own_room { nanos(plan.allowed()) / NOTABLE } else { u64::MAX };
        let mut issuer = Self {
            plan,
            lane: (lane as u64) << LANE,
            origin,
            order,
            next: 0,
            round: 0,
            frames: plan.most_frames(),
            round_begins: origin,
            next_due: origin,
            streams: vec![StreamState::default(); index(plan.streams)],
            ready: VecDeque::new(),
            under_way: vec![None; index(plan.at_once)],
            // Reversed, so that the lowest tags are used first and a short queue stays in few cache
            // lines.
            free: (0..index(plan.at_once)).rev().collect(),
            watch: ClockCache { at: origin, good_for: 1, left: 1 },
            unable: Able { since: Moment::ZERO, left: 0 },
            blocked_until: Moment::ZERO,
            notable,
            looks_from: notable,
            followed: Vec::new(),
            following: 0,
        };
        issuer.find_next_due();
        issuer
    }

    /// The number of the group whose operation has this tag.
    pub(super) fn lane_of(tag: u64) -> usize {
        usize::try_from(tag >> LANE).expect("the number of a group")
    }

    pub(super) fn is_done(&self) -> bool {
        // All three: a frame may be not yet due, waiting for room, or in flight.
        self.round >= self.frames
            && self.ready.is_empty()
            && self.free.len() == self.under_way.len()
    }

    /// The intended start of the next frame; [`Moment::MAX`] after the last round.
    pub(super) fn next_due(&self) -> Moment {
        self.next_due
    }

    fn find_next_due(&mut self) {
        let phase = self.order.get(self.next).map(|(phase, _)| phase);
        let due = phase.filter(|_| self.round < self.frames);
        self.next_due = due.map_or(Moment::MAX, |phase| Moment(self.round_begins.0 + phase));
    }

    /// Nothing could be submitted until `until`, for reasons outside of the meter.
    pub(super) fn was_unable(&mut self, until: Moment) {
        self.blocked_until = self.blocked_until.max(until);
        self.unable_since(until, 0);
    }

    fn unable_since(&mut self, since: Moment, left: u64) {
        if since > self.unable.since {
            self.unable = Able { since, left };
        }
    }

    /// Whether one more operation may be in flight.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// The number of frames of each stream that the run has.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Ends the run with the round that is becoming due.
    pub(super) fn end_with_this_round(&mut self) {
        // A round that has begun is completed, so that all streams have as many frames.
        self.frames = self.frames.min(self.round + u64::from(self.next > 0));
        self.find_next_due();
    }

    /// The numbers of operations in flight and of frames that wait for room.
    pub(super) fn queue(&self) -> (usize, usize) {
        (self.under_way.len() - self.free.len(), self.ready.len())
    }

    /// The frames that were requested and have not arrived.
    pub(super) fn waiting_for(&self) -> impl Iterator<Item = &IssuedRead> {
        self.under_way.iter().flatten()
    }

    /// Submits all operations that are due and have room.
    #[inline]
    pub(super) fn ask(&mut self, port: &mut dyn Port) -> Result<(), DeviceError> {
        let now = self.watch.look(port);
        while self.next_due <= now {
            let (_, stream) = self.order[self.next];
            let due = self.next_due;
            self.next += 1;
            if self.next == self.order.len() {
                self.next = 0;
                self.round += 1;
                // From the origin each time: adding a rounded period would drift away from the
                // frame rate.
                self.round_begins = Moment(self.origin.0 + self.plan.begins(self.round));
            }
            self.find_next_due();
            let state = &mut self.streams[index(stream)];
            state.came_due += 1;
            // Frames that wait for room in the queue hold their place in the client's buffer, too.
            if state.ahead < self.plan.buffer {
                state.ahead += 1;
                state.put_ready += 1;
                self.ready.push_back(ReadyFrame { stream, able: Able { since: due, left: 0 } });
            }
        }
        // Frames for which there was no room go first, in the order in which they became due.
        while !self.free.is_empty()
            && let Some(frame) = self.ready.pop_front()
        {
            self.ask_for(frame, port)?;
        }
        Ok(())
    }

    #[inline]
    fn ask_for(&mut self, ready: ReadyFrame, port: &mut dyn Port) -> Result<(), DeviceError> {
        let ReadyFrame { stream, able } = ready;
        let state = &mut self.streams[index(stream)];
        let frame = state.asked;
        let intended = self.plan.intended(self.origin, stream, frame);
        let ask = self.plan.ask(stream, frame);
        let slot = self.free.pop().expect("the caller checked that there is room");
        // The meter could not submit earlier, which is not its delay.
        let able = if self.unable.since > able.since { self.unable } else { able };
        // Before the submission: what the submission itself takes is the storage's time.
        let start = self.watch.time(port);
        port.begin(IoRequest {
            tag: self.lane | slot as u64,
            kind: ask.kind,
            file: ask.file,
            offset: ask.offset,
            len: self.plan.frame.0,
            handle: self.plan.handle(stream),
        })?;
        state.asked += 1;
        let own = start.0.saturating_sub(able.since.max(intended).0);
        // Without the meter's lateness it would have been submitted earlier, but not before it was
        // due.
        let inherited = (own + able.left).min(start.0.saturating_sub(intended.0));
        self.under_way[slot] =
            Some(IssuedRead { stream, frame, ask, intended, start, own, inherited });
        if self.following > 0 {
            self.follow_issued(stream, frame, inherited);
        }
        Ok(())
    }

    /// Takes an operation that completed at `at`, which was noticed up to `overslept` nanoseconds
    /// later than a punctual meter would have noticed it.
    #[inline]
    pub(super) fn arrived(&mut self, tag: u64, at: Moment, overslept: u64) -> IssuedRead {
        let slot = usize::try_from(tag & !(u64::MAX << LANE)).expect("an index");
        let mut asked = self.under_way[slot].take().expect("an arrival belongs to a request");
        let mut left = asked.inherited + overslept;
        if left >= self.looks_from {
            asked = self.follow_arrived(asked, at, overslept);
            left = asked.inherited + overslept;
        }
        // Until now there was no room, so that the meter could not have submitted anything.
        if self.free.is_empty() {
            self.unable_since(at, left);
        }
        self.free.push(slot);
        // The buffer has room again: a frame that is due can be requested.
        let state = &mut self.streams[index(asked.stream)];
        if state.put_ready < state.came_due {
            state.put_ready += 1;
            let able = Able { since: at, left };
            self.ready.push_back(ReadyFrame { stream: asked.stream, able });
        } else {
            state.ahead -= 1;
        }
        asked
    }

    /// Takes a request of a stream that may be followed.
    #[cold]
    fn follow_issued(&mut self, stream: u32, frame: u64, inherited: u64) {
        if let Some(room) = &mut self.followed[index(stream)] {
            room.issued(frame, inherited);
        }
    }

    /// An operation with the meter's part of its start, where the meter was late not long ago. By
    /// value, so that it stays in registers where the meter was not.
    #[cold]
    fn follow_arrived(&mut self, asked: IssuedRead, at: Moment, overslept: u64) -> IssuedRead {
        let notable = asked.inherited + overslept >= self.notable;
        let stream = asked.stream;
        // Allocated with the first delay.
        self.followed.resize_with(self.streams.len(), || None);
        let room = match &mut self.followed[index(stream)] {
            Some(room) => room,
            None if !notable => return asked,
            none => {
                let all = self.under_way.iter().flatten().filter(|other| other.stream == stream);
                let in_flight = all.map(|other| (other.frame, other.inherited));
                self.following += 1;
                none.insert(Box::new(PunctualRoom::new(self.plan.buffer, in_flight)))
            }
        };
        let inherited = room.arrived(&asked, at, overslept);
        if room.is_over(notable) {
            self.followed[index(stream)] = None;
            self.following -= 1;
        }
        self.looks_from = if self.following > 0 { 0 } else { self.notable };
        // The storage kept the frame from being requested, which a client's room does not show.
        match self.blocked_until > asked.intended {
            true => asked,
            false => IssuedRead { inherited, ..asked },
        }
    }
}

impl ClockCache {
    /// Reads the clock.
    fn look(&mut self, port: &dyn Port) -> Moment {
        (self.at, self.left) = (port.now(), self.good_for);
        self.at
    }

    /// The time for one more operation.
    fn time(&mut self, port: &dyn Port) -> Moment {
        if self.left == 0 {
            let before = self.at;
            // A clock reading costs as much as submitting to a fast device, so several operations
            // share one.
            let quick = self.look(port).since(before) < AT_ONCE;
            // Doubled step by step: a target that suddenly blocks is noticed after one reading.
            self.good_for = if quick { (self.good_for * 2).min(MOST_A_READING) } else { 1 };
            self.left = self.good_for;
        }
        self.left -= 1;
        self.at
    }
}

/// The part of the buffer's time, one in this number, from which a delay is notable.
const NOTABLE: u64 = 32;

/// The lowest bit of a tag's group number: a queue is far shorter.
const LANE: u32 = 32;

/// The largest error of a logged start time, always too early: it counts as the storage's time, not
/// the meter's, and is a hundredth of what the fastest storage takes.
const AT_ONCE: Duration = Duration::from_micros(1);

/// The largest number of operations per clock reading, which is then a small part of their cost.
const MOST_A_READING: u32 = 16;
