//! Work without deadlines (ingest, export, check): permits, one per piece of work, handed out in
//! what the streams leave.
//!
//! Two doors: the end of a slot whose batch is complete, in turn with read-ahead; and, when a
//! permit has waited for a whole slot because there is no such end, reads of the coming slot that
//! the booked schedule can spare (the simulation says how many).

use super::{DiskNumber, Engine, Ticket};
use scheduler::admission::spare_reads;
use scheduler::{PieceDue, Survival};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{ByteCount, Moment, SlotIndex};

#[derive(Debug, Default)]
pub(super) struct BestEffort {
    waiting: VecDeque<Waiting>,
    // What each permit in use counts for, in reads.
    granted: BTreeMap<Ticket, u32>,
    // Those granted as part of a slot's batch.
    in_batch: BTreeSet<Ticket>,
    /// Whose turn it is in a slot's remainder.
    pub(super) next_turn: bool,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
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

    fn grant(&mut self) -> Option<Ticket> {
        let Waiting { ticket, reads, .. } = self.waiting.pop_front()?;
        self.granted.insert(ticket, reads);
        Some(ticket)
    }

    fn finish(&mut self, ticket: Ticket) -> bool {
        let waiting = self.waiting.len();
        self.waiting.retain(|other| other.ticket != ticket);
        self.in_batch.remove(&ticket);
        self.granted.remove(&ticket).is_some() || waiting != self.waiting.len()
    }
}

impl Engine {
    /// Asks to do `bytes` (at most a read) of work that has no deadline on `disk`;
    /// [`Action::Granted`](super::Action::Granted) follows. Nothing protects a disk that does not
    /// exist: granted at once.
    pub fn ask_best_effort(&mut self, now: Moment, disk: DiskNumber, bytes: ByteCount) -> Ticket {
        self.advance(now);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let slot = self.slot;
        match self.disks.get_mut(usize::from(disk.0)) {
            Some(disk) if !disk.lost => {
                let reads = bytes.0.div_ceil(disk.guarantee.read_size.0.max(1)).max(1);
                let reads = u32::try_from(reads).unwrap_or(u32::MAX).min(MAX_READS);
                disk.work.waiting.push_back(Waiting { ticket, reads, since: slot });
            }
            _ => self.actions.push(super::Action::Granted { ticket }),
        }
        self.use_leftovers(now);
        ticket
    }

    /// The work is done, or given up (before or after it was granted).
    pub fn best_effort_done(&mut self, now: Moment, ticket: Ticket) {
        self.advance(now);
        for disk in &mut self.disks {
            disk.note_overrun(now);
            if disk.work.finish(ticket) {
                disk.work_ended(now);
                break;
            }
        }
        self.use_leftovers(now);
    }

    /// Grants the next permit of `disk`, if one waits.
    pub(super) fn grant(&mut self, disk: usize) -> Option<Ticket> {
        let ticket = self.disks[disk].work.grant()?;
        self.disks[disk].has_lacked = true;
        self.actions.push(super::Action::Granted { ticket });
        Some(ticket)
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
        let mut spare = spare_reads(&state.books, &state.supply(self.now), wanted);
        if self.standby.is_wanted() && !self.survives_work(disk, spare) {
            return;
        }
        while let Some(first) = self.disks[disk].work.waiting.front() {
            if first.reads > spare {
                break;
            }
            spare -= first.reads;
            let ticket = self.grant(disk);
            self.disks[disk].work.in_batch.extend(ticket);
        }
    }

    // Whether whoever must survive a loss would, with so many reads more in the next slot.
    fn survives_work(&mut self, disk: usize, reads: u32) -> bool {
        let mut demand = std::mem::take(&mut self.demand);
        demand.begin(self.slot);
        let due = self.slot.next();
        let read =
            PieceDue { piece: 0, due, release: due, len: 0, transfer: 0, followed_after: None };
        demand.add_track((0..reads).map(|_| read));
        self.spare = None;
        let answer = self.survival(disk, self.config.policy.policy(), &demand, 0);
        self.demand = demand;
        matches!(answer, Survival::Admit { .. })
    }
}

/// Best-effort work takes at most an eighth of a slot that the streams could use for read-ahead.
const SHARE_PART: u32 = 8;

/// What one permit counts for at most: who asks for more than a few reads at once has not cut its
/// work into pieces.
const MAX_READS: u32 = 8;
