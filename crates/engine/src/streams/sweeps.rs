//! Reading where the disk's time is counted: sweeps of whole windows, chosen by the plan that
//! admission left, instead of a number of reads in each slot.
//!
//! ```text
//!   Dispatcher::next_sweep ──▶ chosen, in order of place ──▶ device (queue depth)
//!                                │                             │
//!                                └─ a session is admitted:     free at: its last activity
//!                                   unread again                + the charge of its reads
//! ```
//!
//! A sweep does not end with its slot. An admission request is evaluated as if chosen reads that
//! are not in the device yet were unread; only if it is accepted do they become unread, and the
//! next sweep is chosen by the new plan. Otherwise the sweep continues unchanged: a sweep that is
//! ended early and chosen again can cost more than it was charged.
//!
//! Best-effort work is done between two sweeps if the plan then still holds; after it has waited
//! for a slot, also within a sweep, which then ends early as for an accepted request: the work
//! begins only when nothing of a sweep is chosen. It is charged the way there and the way back, and
//! after it the place of the head is unknown.
//!
//! Writes of recordings, for which time is kept, begin at any moment (`recordings`).
//!
//! Adjacent reads of one stream stay in that order, in both directions of the arm, and are charged
//! as one visit.

use super::Streams;
use crate::ReadId;
use crate::bookings::Placement;
use crate::bookings::best_effort::Ends;
use crate::bookings::disk::Chosen;
use crate::bookings::evaluate::Terms;
use crate::stream::StreamId;
use scheduler::{Batch, PolicyKind};
use std::collections::{BTreeMap, BTreeSet};
use units::Moment;

impl Streams {
    /// Makes these chosen reads unread, as far as they can be.
    pub(super) fn unchoose_all(&mut self, disk: usize, reads: &BTreeSet<ReadId>) {
        if reads.is_empty() {
            return;
        }
        let mut unchosen = self.droppable(disk);
        unchosen.retain(|chosen| reads.contains(&chosen.read));
        let reads: BTreeSet<ReadId> = unchosen.iter().map(|chosen| chosen.read).collect();
        self.bookings.disks[disk].dispatcher.withdraw(|chosen| reads.contains(&chosen.read));
        unchosen.into_iter().for_each(|chosen| self.unchoose(disk, chosen));
    }

    // The chosen reads that can become unread, in a possible order: the last pieces of their
    // streams, as far as no other stream or socket uses their buffers.
    pub(super) fn droppable(&self, disk: usize) -> Vec<Chosen> {
        let mut of = BTreeMap::<StreamId, BTreeMap<ReadId, Chosen>>::new();
        for chosen in self.bookings.disks[disk].dispatcher.chosen() {
            of.entry(chosen.stream).or_default().insert(chosen.read, *chosen);
        }
        let mut droppable = Vec::new();
        for (id, mut reads) in of {
            let Some(stream) = self.get(id) else { continue };
            for (read, piece) in stream.held_from_end() {
                match reads.remove(&read) {
                    // In the slots of its stream, which may have moved since it was chosen.
                    Some(chosen) if self.buffers.has_one_pin(read) => {
                        droppable.push(Chosen { piece, ..chosen });
                    }
                    // Earlier pieces of the stream become unread only after this one, which cannot.
                    _ => break,
                }
            }
        }
        droppable
    }

    // A read that the device was not given becomes unread again.
    fn unchoose(&mut self, disk: usize, chosen: Chosen) {
        let now = self.bookings.now();
        let stream = match self.feeds.get_mut(&chosen.stream) {
            Some(feed) => &mut feed.stream,
            None => &mut self.streams[&chosen.stream],
        };
        let before = stream.next_read();
        let back = stream.unread_last(now).expect("found there");
        let (read, piece) = (back.read, back.piece);
        assert_eq!(read, chosen.read, "the last piece of its stream");
        self.bookings.failover.unread(stream, piece.piece, back.safe);
        self.bookings.disks[disk].dispatcher.undo_read(chosen.stream, piece, before);
        // A chosen read has its buffer already, in which there is nothing yet.
        self.forget_unissued(read);
    }

    // Forgets a read that is not in the device and is no longer needed.
    fn forget_unissued(&mut self, read: ReadId) {
        let buffer = self.buffers.remove(read);
        self.title_use_ended(buffer.key.title);
    }

    /// Keeps the device busy: goes on with the sweep, chooses the next one.
    pub(super) fn sweep_on(&mut self, now: Moment, disk: usize) {
        loop {
            self.grant_writes(now, disk);
            let state = &self.bookings.disks[disk];
            if state.busy() >= state.guarantee.queue_depth.max(1) {
                return;
            }
            // Best-effort work goes between two sweeps; after a slot of waiting, also into one.
            let between = state.dispatcher.chosen().len() == 0;
            let waits = state.work.may_begin(now) && state.work.is_waiting();
            if waits && (between || self.asks_within(disk)) && self.has_spare(disk) {
                self.bookings.disks[disk].work_begins(now);
                self.grant(disk, Ends::Within);
                continue;
            }
            if between {
                self.choose_sweep(now, disk);
            }
            let Some(next) = self.bookings.disks[disk].dispatcher.issue() else { return };
            let key = self.buffers.get(next.read).expect("chosen").key;
            // Its viewers may have left since it was chosen, and no one else needs it.
            let wanted = self.buffers.is_pinned(next.read) || !self.awaited.of(key).is_empty();
            if !wanted {
                self.forget_unissued(next.read);
                self.sweep_lost(disk);
                continue;
            }
            self.push_read(now, next.read);
        }
    }

    // Whether best-effort work is evaluated within a sweep now: at most once a slot, because a
    // sweep of a fast disk has thousands of reads and each evaluation is an admission decision.
    fn asks_within(&mut self, disk: usize) -> bool {
        let slot = self.bookings.slot();
        let state = &mut self.bookings.disks[disk];
        if !state.work.has_waited(slot) || !state.scan.may_ask_for_work(slot) {
            return false;
        }
        // Work between chosen reads that cannot become unread would cut their sweep in two, which
        // no plan has counted.
        self.droppable(disk).len() == self.bookings.disks[disk].dispatcher.chosen().len()
    }

    // Whether one piece of best-effort work can be done now without making a stream late. If so,
    // chosen reads that are not in the device become unread, as for an accepted request.
    fn has_spare(&mut self, disk: usize) -> bool {
        let state = &self.bookings.disks[disk];
        if state.timings.costs.is_none() {
            return false;
        }
        let work = state.work_delay(u64::from(state.work.first_reads().unwrap_or(0)));
        let demand = self.bookings.empty_demand();
        let terms =
            Terms { policy: PolicyKind::TimeDomain.policy(), work, ..self.bookings.terms() };
        let placement = Placement { disk, replica: None };
        let approval = self.evaluate_beside_beginnings(placement, &demand, terms).ok();
        self.bookings.put_demand(demand);
        let admits = approval.is_some();
        approval.into_iter().for_each(|approval| self.adopt(approval));
        admits
    }

    /// Forgets the chosen reads of a lost disk that are not in its device.
    pub(crate) fn forget_chosen(&mut self, disk: usize) {
        while let Some(chosen) = self.bookings.disks[disk].dispatcher.issue() {
            self.forget_unissued(chosen.read);
        }
        self.bookings.disks[disk].break_off_sweep();
    }

    // Chooses the next sweep by the plan.
    fn choose_sweep(&mut self, now: Moment, disk: usize) {
        let state = &self.bookings.disks[disk];
        let (free_at, begins) = state.sweep_begins(now);
        let Some(limit) = state.dispatcher.next_sweep(&state.supply(free_at)) else { return };
        let batch = Batch::new(limit).fill(&mut self.reads_of(now, disk));
        let charge = batch.charge();
        let state = &mut self.bookings.disks[disk];
        state.dispatcher.choose(batch, state.timings.costs.as_ref());
        state.begin_sweep(now, begins, charge);
    }

    // A chosen read of the sweep under way is not made.
    fn sweep_lost(&mut self, disk: usize) {
        self.bookings.disks[disk].scan.read_is_not_made();
    }
}
