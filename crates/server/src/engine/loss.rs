//! A disk is lost: its reads fail, nothing is read from it any more. Its sessions go on with
//! another copy, if there is one and room for it.
//!
//! ```text
//!   Gone, or LOST_AFTER failures in a row, or no answer for long (`recovery`), or `fail_disk`
//!     │
//!     ├─ its share of the memory goes to the other disks, in equal parts
//!     ├─ each session on it, oldest first
//!     │     what it holds in memory stays; what was being read is unread again
//!     │     a copy, with the same deadlines ── fits (other streams may have to drop read-ahead)
//!     │                                                         ────▶ moved
//!     │     a copy, with later deadlines ───── fits ────────────────▶ moved, and due later
//!     │     no copy, or no room ────────────────────────────────────▶ ended; its summary says why
//!     ├─ reads that were chosen and not issued are forgotten
//!     └─ a disk whose new sessions hold more than its share gets memory from the others' parts
//! ```
//!
//! Memory in use moves with the session that holds it, so that no decision on another disk counts
//! on it. Shares are even again as soon as possible (`recovery`).
//!
//! A piece that is not there when it is due counts as a deadline miss: the player did nothing
//! wrong. With failover books (`failover`) all sessions with a copy fit on it if the loss is
//! noticed at once. A lost disk is used again when the driver has checked what it holds
//! (`recovery`): it may come back empty, or as another disk.

use super::disks::Disk;
use super::evaluate::{Approval, KEEP_SLOTS};
use super::failover::Placement;
use super::streams::{Stream, StreamId};
use super::{Action, DiskNumber, Engine, Layout, ReadOutcome, Resource, ScheduleChange, SessionId};
use scheduler::PlayoutClock;
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Moment, SlotIndex};

impl Engine {
    /// A read has ended on `disk`: is that the end of it? A server with one disk has nothing to go
    /// on with; there each read fails by itself.
    pub(super) fn watch_disk(&mut self, now: Moment, disk: usize, outcome: ReadOutcome) {
        let several = self.disks.len() > 1;
        let state = &mut self.disks[disk];
        state.failed_in_row = match outcome {
            ReadOutcome::Good | ReadOutcome::Damaged => 0,
            ReadOutcome::Failed => state.failed_in_row + 1,
            ReadOutcome::Gone => LOST_AFTER,
        };
        if several && state.failed_in_row >= LOST_AFTER {
            self.lose_disk_once(now, disk);
        }
    }

    pub(super) fn lose_disk_once(&mut self, now: Moment, lost: usize) {
        if self.disks[lost].lost {
            return;
        }
        self.disks[lost].lost = true;
        while self.grant(lost).is_some() {}
        let number = DiskNumber(u16::try_from(lost).expect("as many as disks"));
        let on_it = |id: &&SessionId| self.sessions[*id].layout.disk == number;
        let here: Vec<SessionId> = self.sessions.keys().filter(on_it).copied().collect();
        let spared = |id: &&SessionId| self.sessions[*id].replica == Some(lost);
        let spared: Vec<SessionId> = self.sessions.keys().filter(spared).copied().collect();
        spared.into_iter().for_each(|id| self.drop_replica(id));
        let parts = self.share_lost_memory(lost);
        let (mut moved, mut ended) = (0, 0);
        for id in here {
            if self.move_session(now, id, lost) {
                moved += 1;
            } else {
                ended += 1;
                self.sessions[&id].summary.lost = true;
                self.end_session(now, id, false);
            }
        }
        self.forget_chosen(lost);
        self.balance_memory(now, parts);
        self.counters.moved += moved;
        self.counters.ended_by_loss += ended;
        self.actions.push(Action::DiskLost { disk: number, moved, ended });
    }

    // The disk of a session's replica is lost: the session is read from its own disk alone.
    fn drop_replica(&mut self, id: SessionId) {
        let session = &self.sessions[&id];
        let (placement, reserve, streams) =
            (session.placement(), session.reserve, session.streams.clone());
        self.failover.unreserve(placement, reserve);
        for id in streams {
            let mut stream = self.remove_stream(id);
            stream.replica = None;
            self.insert_stream(id, stream);
        }
        self.sessions[&id].replica = None;
    }

    // Shares out the memory of the lost disk; says which part each disk gets.
    fn share_lost_memory(&mut self, lost: usize) -> Vec<u64> {
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

    // Moved sessions took along the buffers that they hold, and sockets may hold buffers that were
    // read from the lost disk: a disk may hold more than its share. It gets the difference from the
    // `parts` of the others, which is enough, since all of it was memory of the lost disk. Each
    // disk that gave is decided on again, without a newcomer, for a plan that needs no more than is
    // left.
    fn balance_memory(&mut self, now: Moment, mut parts: Vec<u64>) {
        let mut poorer = BTreeSet::new();
        for disk in 0..self.disks.len() {
            loop {
                let lacks = self.disks[disk].lacks();
                // Only memory that is free can be given.
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
            let demand = self.demands.take(self.slot);
            let fits = self.evaluate_home(disk, &demand).ok();
            let fits = fits.or_else(|| {
                let fits = |engine: &mut Self| engine.evaluate_home(disk, &demand).ok();
                self.drop_readahead_until(now, disk, fits)
            });
            self.demands.put(demand);
            fits.into_iter().for_each(|approval| self.adopt(approval));
        }
    }

    // Moves a session to a copy on another disk; says whether it goes on.
    fn move_session(&mut self, now: Moment, id: SessionId, lost: usize) -> bool {
        let session = &self.sessions[&id];
        let (placement, reserve, ids) =
            (session.placement(), session.reserve, session.streams.clone());
        let mut places: Vec<Arc<Layout>> = session.copies.to_vec();
        places.retain(|layout| usize::from(layout.disk.0) != lost && self.is_live(layout));
        places.sort_by_key(|layout| placement.replica != Some(usize::from(layout.disk.0)));
        let mut streams: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.remove_stream(*id))).collect();
        for (_, stream) in &mut streams {
            self.unread_missing(now, stream);
        }
        let late: Vec<Vec<(u32, Moment)>> =
            streams.iter().map(|(_, stream)| stream.overdue(now)).collect();
        self.release_send_memory(placement, reserve);
        let found = places.iter().find_map(|layout| {
            let (slots, approval) = self.fit_on_copy(now, layout, reserve, &mut streams)?;
            Some((layout, slots, approval))
        });
        let Some((layout, slots, approval)) = found else {
            // As it was, to be ended.
            self.reserve_send_memory(placement, reserve);
            streams.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
            return false;
        };
        let to = usize::from(layout.disk.0);
        self.adopt(approval);
        self.reserve_send_memory(Placement { disk: to, replica: None }, reserve);
        let session = &mut self.sessions[&id];
        (session.layout, session.replica) = (Arc::clone(layout), None);
        for ((stream_id, mut stream), late) in streams.into_iter().zip(late) {
            if slots > 0 {
                for (piece, deadline) in late {
                    stream.account(piece);
                    self.count_unserved_by(lost, now, &stream, deadline);
                }
                let change = ScheduleChange::Delayed { track: stream.track, slots };
                self.actions.push(Action::Rescheduled { session: id, change });
            }
            stream.guaranteed_slack = None;
            self.insert_stream(stream_id, stream);
        }
        self.to_serve.push(id);
        true
    }

    // The network carries what it did, whichever disk that comes from.
    //
    // Puts streams that are off the books where this copy lies, at their deadlines or somewhat
    // later, if they fit; says by how many slots. Otherwise they are as they were.
    fn fit_on_copy(
        &mut self,
        now: Moment,
        layout: &Arc<Layout>,
        reserve: u64,
        streams: &mut [(StreamId, Stream)],
    ) -> Option<(u32, Approval)> {
        let disk = usize::from(layout.disk.0);
        layout.tracks.iter().for_each(|track| self.time_track(disk, track));
        let before: Vec<(Arc<Layout>, PlayoutClock, Option<usize>)> = streams
            .iter()
            .map(|(_, stream)| (Arc::clone(&stream.layout), stream.timing, stream.replica))
            .collect();
        for (_, stream) in streams.iter_mut() {
            stream.move_to(Arc::clone(layout));
            stream.set_early(0);
            stream.replica = None;
        }
        let mut slots = 0;
        for (step, keep) in TRIES {
            for (_, stream) in streams.iter_mut() {
                if let Some(keep) = keep {
                    self.unread_ahead(now, stream, self.slot + keep);
                }
                stream.delay(step);
            }
            slots += step;
            let demand = self.demand_of(streams.iter_mut().map(|(_, stream)| stream), reserve);
            let fits = match self.evaluate_home(disk, &demand) {
                Err(short) if short.shortage.resource == Resource::Memory => {
                    let fits = |engine: &mut Self| engine.evaluate_home(disk, &demand).ok();
                    self.drop_readahead_until(now, disk, fits)
                }
                answer => answer.ok(),
            };
            self.demands.put(demand);
            if let Some(approval) = fits {
                return Some((slots, approval));
            }
        }
        for ((_, stream), (layout, timing, replica)) in streams.iter_mut().zip(before) {
            stream.undo_delay(slots);
            stream.move_to(layout);
            stream.replica = replica;
            stream.set_early(timing.early);
        }
        None
    }

    // A stream that is off the books: from the first piece on that is still being read, nothing is
    // held. What of it is in memory is found there when its turn comes.
    fn unread_missing(&mut self, now: Moment, stream: &mut Stream) {
        let buffers = &self.buffers;
        let is_reading = |read| {
            buffers.get(read).is_some_and(|b| b.state == super::buffers::BufferState::Reading)
        };
        for back in stream.unread_from(now, is_reading) {
            self.uncount_piece(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }

    // The same with what need not be in memory before the end of slot `keep`: its new disk has less
    // memory for it than the old one had.
    fn unread_ahead(&mut self, now: Moment, stream: &mut Stream, keep: SlotIndex) {
        while stream.last_held().is_some_and(|(_, piece)| piece.due > keep) {
            let back = stream.unread_last(now).expect("held");
            self.uncount_piece(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }

    /// A piece that is unread again and had come `on_time` so far is counted when it comes again.
    pub(super) fn uncount_piece(&mut self, session: SessionId, on_time: bool) {
        let summary = &mut self.sessions[&session].summary;
        summary.on_time -= u64::from(on_time);
        self.counters.on_time -= u64::from(on_time);
    }
}

/// Failures in a row that make a disk a lost one: a bad spot fails a few reads, and others succeed
/// in between.
const LOST_AFTER: u32 = 16;

/// What is tried for a session, one after the other: so many slots later than before, giving back
/// what was read more than so many slots ahead for itself. In all 15 s of 500 ms slots, less than
/// what players hold in their buffers.
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
