//! Best-effort work on one disk (ingest, export, check): permits that wait, and permits in use.
//! When a permit is granted is decided in `streams::best_effort`.

use crate::engine::{MAX_PERMIT_READS, PermitId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::SlotIndex;

/// The best-effort permits of one disk.
#[derive(Debug, Default)]
pub(in crate::engine) struct BestEffort {
    waiting: VecDeque<Waiting>,
    /// What each permit in use counts for, in reads.
    granted: BTreeMap<PermitId, u32>,
    /// The permits in use that were granted as part of a slot's batch.
    pub(in crate::engine) in_batch: BTreeSet<PermitId>,
    /// In the rest of a slot, best-effort work comes before the next read-ahead.
    pub(in crate::engine) next_turn: bool,
}

#[derive(Debug)]
struct Waiting {
    permit: PermitId,
    reads: u32,
    since: SlotIndex,
}

impl BestEffort {
    /// What the permits in use count for, in reads.
    pub(in crate::engine) fn in_flight(&self) -> u32 {
        self.granted.values().sum()
    }

    /// Whether a permit is in use.
    pub(in crate::engine) fn is_granted(&self, permit: PermitId) -> bool {
        self.granted.contains_key(&permit)
    }

    pub(in crate::engine) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next permit has waited for a whole slot.
    pub(in crate::engine) fn has_waited(&self, slot: SlotIndex) -> bool {
        // The slot of the request had begun before it, so it is no whole slot of waiting.
        self.waiting.front().is_some_and(|waiting| waiting.since.next() < slot)
    }

    /// Reads of all permits that have waited for a whole slot.
    pub(in crate::engine) fn overdue_reads(&self, slot: SlotIndex) -> u32 {
        let overdue = |waiting: &&Waiting| waiting.since.next() < slot;
        // Permits wait in order of time, so the first recent one ends the search.
        self.waiting.iter().take_while(overdue).map(|waiting| waiting.reads).sum()
    }

    /// What the next permit counts for, in reads; `None` where none waits.
    pub(in crate::engine) fn first_reads(&self) -> Option<u32> {
        self.waiting.front().map(|waiting| waiting.reads)
    }

    /// Queues a permit that counts for `reads` reads.
    pub(in crate::engine) fn queue(&mut self, permit: PermitId, reads: u64, since: SlotIndex) {
        let reads = u32::try_from(reads).unwrap_or(u32::MAX).min(MAX_PERMIT_READS);
        self.waiting.push_back(Waiting { permit, reads, since });
    }

    /// Takes the permit that has waited longest into use.
    pub(in crate::engine) fn grant(&mut self) -> Option<PermitId> {
        let Waiting { permit, reads, .. } = self.waiting.pop_front()?;
        self.granted.insert(permit, reads);
        Some(permit)
    }

    /// The work is done, or given up. True: the permit was one of this disk.
    pub(in crate::engine) fn finish(&mut self, permit: PermitId) -> bool {
        let waiting = self.waiting.len();
        // Work may be given up while its permit still waits.
        self.waiting.retain(|other| other.permit != permit);
        self.in_batch.remove(&permit);
        self.granted.remove(&permit).is_some() || waiting != self.waiting.len()
    }
}
