//! A disk is lost: its reads fail, it will give nothing any more. Whoever is read from it goes on with
//! another copy, if there is one and room for it.
//!
//! ```text
//!   Gone, or LOST_AFTER failures in a row, or no answer for long (`recovery`), or the driver says so
//!     │
//!     ├─ its share of the memory goes to the others, in equal parts
//!     ├─ each session on it, oldest first
//!     │     what it holds in memory stays; what was being read is unread again
//!     │     a copy, with the same deadlines ── fits (others may have to give back what was read far
//!     │                                        ahead for them) ────▶ moved
//!     │     the same, somewhat later ───────── fits ──────────────▶ moved, promised later
//!     │     no copy, or no room ──────────────────────────────────▶ ended; its summary says why
//!     ├─ what was chosen and not in the device is forgotten
//!     └─ who holds more on its new disk than there is a share for has it from the others' parts
//! ```
//!
//! Memory that is in use moves with whoever uses it, so that nobody on the other disks is decided on with memory
//! that is not there. The parts are even again as soon as can be (`recovery`).
//!
//! What is not there when it is due is counted as late, as ever: the viewer did nothing wrong. With
//! standby booked (`standby`) all with a copy fit where they are, if the loss is known at once. A lost disk
//! is back when the driver has looked what it holds (`recovery`): it may have come back empty, or as another.

use super::decide::KEEP_SLOTS;
use super::disks::Disk;
use super::streams::{Stream, StreamId};
use super::{Action, Change, DiskNumber, Engine, Layout, ReadOutcome, Resource, SessionId};
use scheduler::Timing;
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Moment, SlotIndex};

impl Engine {
    /// The disk is no more. Harmless when it is lost already.
    pub fn lose_disk(&mut self, now: Moment, disk: DiskNumber) {
        self.advance(now);
        if let Some(disk) = self.disk_index(disk) {
            self.lose_if_there(now, disk);
        }
        self.use_leftovers(now);
    }

    /// A read has ended on `disk`: is that the end of it? A server with one disk has nothing to go on
    /// with; there each read fails by itself.
    pub(super) fn watch_disk(&mut self, now: Moment, disk: usize, outcome: ReadOutcome) {
        let several = self.disks.len() > 1;
        let state = &mut self.disks[disk];
        state.failed_in_row = match outcome {
            ReadOutcome::Good | ReadOutcome::Damaged => 0,
            ReadOutcome::Failed => state.failed_in_row + 1,
            ReadOutcome::Gone => LOST_AFTER,
        };
        if several && state.failed_in_row >= LOST_AFTER {
            self.lose_if_there(now, disk);
        }
    }

    pub(super) fn lose_if_there(&mut self, now: Moment, lost: usize) {
        if self.disks[lost].lost {
            return;
        }
        self.disks[lost].lost = true;
        while self.grant(lost).is_some() {}
        let number = DiskNumber(u16::try_from(lost).expect("as many as disks"));
        let on_it = |id: &&SessionId| self.sessions[*id].layout.disk == number;
        let here: Vec<SessionId> = self.sessions.keys().filter(on_it).copied().collect();
        let spared = |id: &&SessionId| self.sessions[*id].spare == Some(lost);
        let spared: Vec<SessionId> = self.sessions.keys().filter(spared).copied().collect();
        spared.into_iter().for_each(|id| self.have_no_spare(id));
        let parts = self.share_out_memory(lost);
        let (mut moved, mut ended) = (0, 0);
        for id in here {
            if self.move_session(now, id, lost) {
                moved += 1;
            } else {
                ended += 1;
                self.sessions.get_mut(&id).expect("live").summary.lost = true;
                self.end_session(now, id, false);
            }
        }
        self.forget_chosen(lost);
        self.take_memory_along(now, parts);
        self.counters.moved += moved;
        self.counters.ended_by_loss += ended;
        self.actions.push(Action::DiskLost { disk: number, moved, ended });
    }

    // The disk with its other copy is lost: from now on it is read from its home alone.
    fn have_no_spare(&mut self, id: SessionId) {
        let session = &self.sessions[&id];
        let (seat, reserve, streams) = (session.seat(), session.reserve, session.streams.clone());
        self.standby.unreserve(seat, reserve);
        for id in streams {
            let mut stream = self.remove_stream(id);
            stream.spare = None;
            self.insert_stream(id, stream);
        }
        self.sessions.get_mut(&id).expect("live").spare = None;
    }

    // Nothing of the lost disk is read any more. Says which part of its memory each disk gets.
    fn share_out_memory(&mut self, lost: usize) -> Vec<u64> {
        let others = self.disks.iter().filter(|disk| !disk.lost).count() as u64;
        let part = self.disks[lost].memory / others.max(1);
        self.disks[lost].memory -= part * others;
        let part_of = |disk: &mut Disk| {
            let part = if disk.lost { 0 } else { part };
            disk.memory += part;
            part
        };
        self.disks.iter_mut().map(part_of).collect()
    }

    // Who was moved has taken along what it holds, and sockets may hold some of what was read from the
    // lost disk: perhaps more than there is memory for by the shares. What a disk lacks so, the others do
    // not have; they give it of what they got, which is enough, and whoever moved there is decided on anew.
    fn take_memory_along(&mut self, now: Moment, mut parts: Vec<u64>) {
        let mut poorer = BTreeSet::new();
        for disk in 0..self.disks.len() {
            loop {
                let lacks = self.disks[disk].lacks();
                let can = |other: &usize| parts[*other].min(self.disks[*other].room());
                let others = (0..self.disks.len()).filter(|other| *other != disk);
                let Some(other) = others.max_by_key(can) else { break };
                let given = can(&other).min(lacks);
                if given == 0 {
                    break;
                }
                parts[other] -= given;
                self.disks[other].memory -= given;
                self.disks[disk].memory += given;
                poorer.insert(other);
            }
        }
        for disk in poorer {
            self.demand.begin(self.slot);
            if self.fits_disk(disk).is_ok() || self.gives_way(now, disk, Self::fits_disk) {
                self.adopt_plan(disk);
            }
        }
    }

    // Says whether it goes on.
    fn move_session(&mut self, now: Moment, id: SessionId, lost: usize) -> bool {
        let session = &self.sessions[&id];
        let (seat, reserve, ids) = (session.seat(), session.reserve, session.streams.clone());
        let mut places: Vec<Arc<Layout>> = session.copies.to_vec();
        places.retain(|layout| usize::from(layout.disk.0) != lost && self.is_live(layout));
        places.sort_by_key(|layout| seat.1 != Some(usize::from(layout.disk.0)));
        let mut streams: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.remove_stream(*id))).collect();
        for (_, stream) in &mut streams {
            self.unread_what_is_not_here(now, stream);
        }
        let late: Vec<Vec<(u32, Moment)>> =
            streams.iter().map(|(_, stream)| stream.overdue(now)).collect();
        self.give_aside(seat, reserve);
        let found = places.iter().find_map(|layout| {
            let slots = self.fits_there(now, layout, reserve, &mut streams)?;
            Some((layout, slots))
        });
        let Some((layout, slots)) = found else {
            // As it was, to be ended.
            self.keep_aside(seat, reserve);
            streams.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
            return false;
        };
        let to = usize::from(layout.disk.0);
        self.adopt_plan(to);
        self.keep_aside((to, None), reserve);
        let session = self.sessions.get_mut(&id).expect("live");
        (session.layout, session.spare) = (Arc::clone(layout), None);
        for ((stream_id, mut stream), late) in streams.into_iter().zip(late) {
            if slots > 0 {
                for (piece, deadline) in late {
                    stream.account(piece);
                    self.count_owed_by(lost, now, &stream, deadline);
                }
                let change = Change::Later { track: stream.track, slots };
                self.actions.push(Action::Rescheduled { session: id, change });
            }
            stream.promised = None;
            self.insert_stream(stream_id, stream);
        }
        self.to_serve.push(id);
        true
    }

    // The network carries what it did, whichever disk that comes from.
    //
    // Puts streams that are off the books where this copy lies, at their deadlines or somewhat later,
    // if they fit; says by how many slots. Otherwise they are as they were.
    fn fits_there(
        &mut self,
        now: Moment,
        layout: &Arc<Layout>,
        reserve: u64,
        streams: &mut [(StreamId, Stream)],
    ) -> Option<u32> {
        let disk = usize::from(layout.disk.0);
        layout.tracks.iter().for_each(|track| self.time_track(disk, track));
        let before: Vec<(Arc<Layout>, Timing, Option<usize>)> = streams
            .iter()
            .map(|(_, stream)| (Arc::clone(&stream.layout), stream.timing, stream.spare))
            .collect();
        for (_, stream) in streams.iter_mut() {
            stream.lies_at(Arc::clone(layout));
            stream.be_early(0);
            stream.spare = None;
        }
        let mut slots = 0;
        for (step, keep) in TRIES {
            for (_, stream) in streams.iter_mut() {
                if let Some(keep) = keep {
                    self.unread_ahead(now, stream, self.slot + keep);
                }
                stream.slide(step);
            }
            slots += step;
            self.demand.begin(self.slot);
            self.demand.reserve = reserve;
            for (_, stream) in streams.iter_mut() {
                stream.summary = self.demand.add_track(stream.unread());
                stream.held().for_each(|(_, piece)| self.demand.add_held(piece));
            }
            let fits = match self.fits_disk(disk) {
                Err(short) if short.resource == Resource::Memory => {
                    self.gives_way(now, disk, Self::fits_disk)
                }
                answer => answer.is_ok(),
            };
            if fits {
                return Some(slots);
            }
        }
        for ((_, stream), (layout, timing, spare)) in streams.iter_mut().zip(before) {
            stream.slide_back(slots);
            stream.lies_at(layout);
            stream.spare = spare;
            stream.be_early(timing.early);
        }
        None
    }

    // A stream that is off the books: from the first piece on that is still being read, nothing is
    // held. What of it is in memory is found there when its turn comes.
    fn unread_what_is_not_here(&mut self, now: Moment, stream: &mut Stream) {
        let buffers = &self.buffers;
        let is_reading =
            |read| buffers.get(read).is_some_and(|b| b.state == super::buffers::State::Reading);
        for back in stream.put_back_from(now, is_reading) {
            self.uncount(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }

    // The same with what need not be in memory before the end of slot `keep`: its new disk has less
    // memory for it than the old one had.
    fn unread_ahead(&mut self, now: Moment, stream: &mut Stream, keep: SlotIndex) {
        while stream.last_held().is_some_and(|(_, piece)| piece.due > keep) {
            let back = stream.put_back_last(now).expect("held");
            self.uncount(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }

    /// A piece that is unread again and had come `on_time` so far is counted when it comes again.
    pub(super) fn uncount(&mut self, session: SessionId, on_time: bool) {
        let summary = &mut self.sessions.get_mut(&session).expect("live").summary;
        summary.on_time -= u64::from(on_time);
        self.counters.on_time -= u64::from(on_time);
    }
}

/// Failures in a row that make a disk a lost one: a bad spot fails a few reads, and others succeed in
/// between.
const LOST_AFTER: u32 = 16;

/// What is tried for a session, one after the other: so many slots later than before, giving back what
/// was read more than so many slots ahead for itself. In all 15 s of 500 ms slots, less than what players
/// hold in their buffers.
const TRIES: [(u32, Option<u64>); 9] = [
    (0, None),
    (0, Some(KEEP_SLOTS)),
    (0, Some(1)),
    (1, None),
    (1, None),
    (2, None),
    (4, None),
    (8, None),
    (14, None),
];
