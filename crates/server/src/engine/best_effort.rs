//! Work without deadlines (ingest, export, check): permits, one per piece of work, handed out in
//! what the streams leave.
//!
//! Two doors: the end of a slot whose batch is complete, in turn with read-ahead; and, when a
//! permit has waited for a whole slot because there is no such end, reads of the coming slot that
//! the booked schedule can spare (the simulation says how many).

use super::failover::Placement;
use super::{DiskNumber, Engine, PermitId};
use scheduler::PieceDue;
use scheduler::admission::spare_reads;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{ByteCount, Moment, SlotIndex};

#[derive(Debug, Default)]
pub(super) struct BestEffort {
    waiting: VecDeque<Waiting>,
    // What each permit in use counts for, in reads.
    granted: BTreeMap<PermitId, u32>,
    // Those granted as part of a slot's batch.
    in_batch: BTreeSet<PermitId>,
    /// Whose turn it is in a slot's remainder.
    pub(super) next_turn: bool,
}

#[derive(Debug)]
struct Waiting {
    permit: PermitId,
    reads: u32,
    since: SlotIndex,
}

impl BestEffort {
    pub(super) fn in_flight(&self) -> u32 {
        self.granted.values().sum()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next permit has waited for a whole slot.
    pub(super) fn has_waited(&self, slot: SlotIndex) -> bool {
        self.waiting.front().is_some_and(|waiting| waiting.since.next() < slot)
    }

    /// Whether permits granted with a batch are in use: they may take until the slot ends.
    pub(super) fn is_in_batch(&self) -> bool {
        !self.in_batch.is_empty()
    }

    /// What the next permit counts for, in reads.
    pub(super) fn first_reads(&self) -> u32 {
        self.waiting.front().map_or(0, |waiting| waiting.reads)
    }

    fn grant(&mut self) -> Option<PermitId> {
        let Waiting { permit, reads, .. } = self.waiting.pop_front()?;
        self.granted.insert(permit, reads);
        Some(permit)
    }

    fn finish(&mut self, permit: PermitId) -> bool {
        let waiting = self.waiting.len();
        self.waiting.retain(|other| other.permit != permit);
        self.in_batch.remove(&permit);
        self.granted.remove(&permit).is_some() || waiting != self.waiting.len()
    }
}

impl Engine {
    /// Queues work of `bytes` bytes on `disk`. Nothing protects a disk that is lost or does not
    /// exist: granted at once.
    pub(super) fn queue_best_effort(&mut self, disk: DiskNumber, bytes: ByteCount) -> PermitId {
        let permit = PermitId(self.next_permit);
        self.next_permit += 1;
        let slot = self.slot;
        match self.disks.get_mut(usize::from(disk.0)) {
            Some(disk) if !disk.lost => {
                let reads = bytes.0.div_ceil(disk.guarantee.read_size.0.max(1)).max(1);
                let reads = u32::try_from(reads).unwrap_or(u32::MAX).min(MAX_READS);
                disk.work.waiting.push_back(Waiting { permit, reads, since: slot });
            }
            _ => self.actions.push(super::Action::Granted { permit }),
        }
        permit
    }

    /// Work is done, or given up.
    pub(super) fn finish_best_effort(&mut self, now: Moment, permit: PermitId) {
        for disk in &mut self.disks {
            disk.note_overrun(now);
            if disk.work.finish(permit) {
                disk.work_ended(now);
                break;
            }
        }
    }

    /// Grants the next permit of `disk`, if one waits.
    pub(super) fn grant(&mut self, disk: usize) -> Option<PermitId> {
        let permit = self.disks[disk].work.grant()?;
        self.disks[disk].has_lacked = true;
        self.actions.push(super::Action::Granted { permit });
        Some(permit)
    }

    /// At a slot's start: grants what has waited for a whole slot and can be spared.
    pub(super) fn grant_spare(&mut self, disk: usize) {
        let state = &self.disks[disk];
        let patience = |waiting: &&Waiting| waiting.since.next() < self.slot;
        let waiting: u32 = state.work.waiting.iter().take_while(patience).map(|w| w.reads).sum();
        if waiting == 0 {
            return;
        }
        let share = (state.guard.min_read() / SHARE_PART).max(1);
        let wanted = waiting.min(share).saturating_sub(state.busy());
        let mut spare = spare_reads(&state.dispatcher.books, &state.supply(self.now), wanted);
        if self.failover.is_enabled() && !self.survives_work(disk, spare) {
            return;
        }
        while let Some(first) = self.disks[disk].work.waiting.front() {
            if first.reads > spare {
                break;
            }
            spare -= first.reads;
            let permit = self.grant(disk);
            self.disks[disk].work.in_batch.extend(permit);
        }
    }

    // Whether whoever must survive a loss would, with so many reads more in the next slot.
    fn survives_work(&mut self, disk: usize, reads: u32) -> bool {
        let mut demand = self.demands.take(self.slot);
        let due = self.slot.next();
        let read =
            PieceDue { piece: 0, due, release: due, len: 0, transfer: 0, followed_after: None };
        demand.add_track((0..reads).map(|_| read));
        let placement = Placement { disk, replica: None };
        let survives = self.evaluate_disks(placement, &demand, self.terms()).is_ok();
        self.demands.put(demand);
        survives
    }
}

/// Best-effort work takes at most an eighth of a slot that the streams could use for read-ahead.
const SHARE_PART: u32 = 8;

/// What one permit counts for at most: who asks for more than a few reads at once has not cut its
/// work into pieces.
const MAX_READS: u32 = 8;
