//! The operations of a run that are due, in flight, or waiting for room.
//!
//! The frames with one number become due in the order of their streams' phases, and all of them
//! before any frame with the next number: finding the next due operation needs no search.

use super::StreamsPlan;
use super::plan::Ask;
use crate::target::{IoRequest, Port};
use device::DeviceError;
use std::collections::VecDeque;
use std::time::Duration;
use units::{Moment, index};

/// The operations of a run that are due, in flight, or waiting for room.
pub(super) struct Issuer<'a> {
    plan: &'a StreamsPlan,
    /// The group's number in the high half of every tag.
    lane: u64,
    origin: Moment,
    /// Streams in the order of their phases.
    order: Vec<u32>,
    /// The next frame to become due: an index into `order`, and the frame's number.
    next: usize,
    round: u64,
    /// The number of rounds.
    frames: u64,
    /// The intended start of this round's frames, without the phase.
    round_begins: Moment,
    streams: Vec<StreamState>,
    /// Streams with a frame that may be requested, and since when; one entry for each frame.
    ready: VecDeque<(u32, Moment)>,
    /// Operations in flight by tag.
    under_way: Vec<Option<IssuedRead>>,
    free: Vec<usize>,
    watch: ClockCache,
    /// The moment until which nothing could be submitted for reasons outside of the meter.
    pub(super) unable_until: Moment,
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
    /// The meter's own lateness, plus what its lateness with earlier frames left to this one.
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
    under_way: u32,
    /// The lateness that the meter itself causes this stream until it has caught up, in
    /// nanoseconds.
    inherited: u64,
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
        let mut order: Vec<u32> = (0..plan.streams).collect();
        // In the order of their phases: the next frame due is then found without a search.
        order.sort_by_key(|stream| plan.phase(*stream));
        Self {
            plan,
            lane: (lane as u64) << LANE,
            origin,
            order,
            next: 0,
            round: 0,
            frames: plan.most_frames(),
            round_begins: origin,
            streams: vec![StreamState::default(); index(plan.streams)],
            ready: VecDeque::new(),
            under_way: vec![None; index(plan.at_once)],
            // Reversed, so that the lowest tags are used first and a short queue stays in few cache
            // lines.
            free: (0..index(plan.at_once)).rev().collect(),
            watch: ClockCache { at: origin, good_for: 1, left: 1 },
            unable_until: Moment::ZERO,
        }
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

    pub(super) fn next_due(&self) -> Option<Moment> {
        (self.round < self.frames)
            .then(|| Moment(self.round_begins.0 + self.plan.phase(self.order[self.next])))
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
        while let Some(moment) = self.next_due()
            && moment <= now
        {
            let stream = self.order[self.next];
            self.streams[index(stream)].came_due += 1;
            self.next += 1;
            if self.next == self.order.len() {
                self.next = 0;
                self.round += 1;
                // From the origin each time: adding a rounded period would drift away from the
                // frame rate.
                self.round_begins = Moment(self.origin.0 + self.plan.begins(self.round));
            }
            self.make_ready(stream, moment);
        }
        // Frames for which there was no room go first, in the order in which they became due.
        while !self.free.is_empty()
            && let Some((stream, since)) = self.ready.pop_front()
        {
            self.ask_for(stream, since, port)?;
        }
        Ok(())
    }

    fn ask_for(
        &mut self,
        stream: u32,
        since: Moment,
        port: &mut dyn Port,
    ) -> Result<(), DeviceError> {
        let state = &mut self.streams[index(stream)];
        let frame = state.asked;
        let intended = self.plan.intended(self.origin, stream, frame);
        let ask = self.plan.ask(stream, frame);
        let slot = self.free.pop().expect("the caller checked that there is room");
        // The meter could not submit earlier, which is not its delay.
        let able = since.max(self.unable_until);
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
        let own = start.0.saturating_sub(able.0);
        // A late start delays the frames after it, until one can be submitted in time again.
        let caught_up = able <= intended;
        state.inherited = if caught_up { own } else { state.inherited + own };
        state.asked += 1;
        state.under_way += 1;
        let inherited = state.inherited;
        self.under_way[slot] =
            Some(IssuedRead { stream, frame, ask, intended, start, own, inherited });
        Ok(())
    }

    /// Makes one more frame of this stream ready, if its buffer has room for it.
    fn make_ready(&mut self, stream: u32, since: Moment) {
        let state = &mut self.streams[index(stream)];
        // Frames that wait for room in the queue hold their place in the client's buffer, too.
        let ahead = state.put_ready - state.asked + u64::from(state.under_way);
        if state.put_ready < state.came_due && ahead < u64::from(self.plan.buffer) {
            state.put_ready += 1;
            self.ready.push_back((stream, since));
        }
    }

    #[inline]
    pub(super) fn arrived(&mut self, tag: u64, at: Moment) -> IssuedRead {
        // Until now there was no room, so that the meter could not have submitted anything.
        if self.free.is_empty() {
            self.unable_until = self.unable_until.max(at);
        }
        let slot = usize::try_from(tag & !(u64::MAX << LANE)).expect("an index");
        let asked = self.under_way[slot].take().expect("an arrival belongs to a request");
        self.free.push(slot);
        self.streams[index(asked.stream)].under_way -= 1;
        // The buffer has room again: a frame that is due can be requested.
        self.make_ready(asked.stream, at);
        asked
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

/// The lowest bit of a tag's group number: a queue is far shorter.
const LANE: u32 = 32;

/// The largest error of a logged start time, always too early: it counts as the storage's time, not
/// the meter's, and is a hundredth of what the fastest storage takes.
const AT_ONCE: Duration = Duration::from_micros(1);

/// The largest number of operations per clock reading, which is then a small part of their cost.
const MOST_A_READING: u32 = 16;
