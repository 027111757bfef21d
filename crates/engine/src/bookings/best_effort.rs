//! Work on one disk that has no deadline of a stream: permits that wait, and permits in use. When a
//! permit is granted is decided in `streams::best_effort`, and for writes of recordings, for which
//! time is kept, in `streams::recordings`.

use crate::PermitId;
use scheduler::WriteShare;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{Moment, SlotIndex};

/// The best-effort permits of one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct BestEffort {
    waiting: VecDeque<Waiting>,
    granted: BTreeMap<PermitId, InUse>,
    /// What each write that was granted in kept time is charged, in nanoseconds.
    writes: BTreeMap<PermitId, u64>,
    /// The permits in use that were granted as part of a slot's batch.
    pub(crate) in_batch: BTreeSet<PermitId>,
    /// In the rest of a slot, best-effort work comes before the next read-ahead.
    pub(crate) next_turn: bool,
    /// The shares of past slots, in reads, that were kept for the next permit, because it counts
    /// for more reads than the share of one slot.
    saved: u32,
    /// Until then recordings have the device, for the time that the last work took: no permit is
    /// granted.
    pauses_until: Moment,
}

/// A permit in use.
#[derive(Clone, Copy, Debug)]
struct InUse {
    /// What it counts for: where reads are counted, the reads that may be left of it when the
    /// present slot begins, or when it was granted in it.
    reads: u32,
    ends: Ends,
    /// When it was granted.
    since: Moment,
}

/// What is known of the end of work in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The work ends in the slot in which it was granted.
    Within,
    /// Work that was granted in the present slot, and may go on after it.
    Later,
    /// Work that was granted in an earlier slot.
    Begun,
}

#[derive(Clone, Debug)]
struct Waiting {
    permit: PermitId,
    reads: u32,
    since: SlotIndex,
    /// The nanoseconds that a write is charged for which time is kept.
    charge: Option<u64>,
}

impl BestEffort {
    /// What the permits in use count for, in reads.
    pub(crate) fn in_flight(&self) -> u32 {
        self.granted.values().map(|work| work.reads).sum()
    }

    /// Reads of the permits in use that may be left at the next slot's start, if the device
    /// completes so many of those that were in it when this slot began.
    pub(crate) fn owed(&self, completed: u32) -> u32 {
        let sum = |ends| {
            let of_it = self.granted.values().filter(move |work| work.ends == ends);
            of_it.map(|work| work.reads).sum::<u32>()
        };
        sum(Ends::Later) + sum(Ends::Begun).saturating_sub(completed)
    }

    /// A slot has ended in which the device has completed so many reads of the work that was in it
    /// when the slot began, and after it, in `idle` slots without any other, so many more.
    pub(crate) fn slot_ended(&mut self, mut completed: u32, mut idle: u32) {
        for work in self.granted.values_mut() {
            // One at least is left of work that has not ended.
            let mut done = |can: &mut u32| {
                let some = (work.reads - 1).min(*can);
                work.reads -= some;
                *can -= some;
            };
            if work.ends == Ends::Begun {
                done(&mut completed);
            }
            done(&mut idle);
            work.ends = Ends::Begun;
        }
    }

    /// The number of writes in kept time that are in use.
    pub(crate) fn writes_in_flight(&self) -> u32 {
        u32::try_from(self.writes.len()).unwrap_or(u32::MAX)
    }

    /// Nanoseconds that the writes in kept time that are in use are charged.
    pub(crate) fn charged_writes(&self) -> u64 {
        self.writes.values().fold(0, |sum, charge| sum.saturating_add(*charge))
    }

    /// Whether a permit is in use.
    pub(crate) fn is_granted(&self, permit: PermitId) -> bool {
        self.granted.contains_key(&permit) || self.writes.contains_key(&permit)
    }

    /// Whether a permit in use is for a write in kept time.
    pub(crate) fn is_write(&self, permit: PermitId) -> bool {
        self.writes.contains_key(&permit)
    }

    /// The write of a recording that has waited longest, and its charge in nanoseconds.
    pub(crate) fn next_write(&self) -> Option<(PermitId, u64)> {
        self.waiting.iter().find_map(|waiting| Some((waiting.permit, waiting.charge?)))
    }

    /// Takes the write of a recording that has waited longest into use, in kept time.
    pub(crate) fn begin_write(&mut self) -> Option<PermitId> {
        let at = self.waiting.iter().position(|waiting| waiting.charge.is_some())?;
        let Waiting { permit, charge, .. } = self.waiting.remove(at)?;
        self.writes.insert(permit, charge?);
        Some(permit)
    }

    /// Whether the next permit may be granted: one at a time, none in front of a write in kept
    /// time, and not before the recordings have had their part of the time that the last one took.
    pub(crate) fn may_begin(&self, now: Moment) -> bool {
        self.writes.is_empty() && self.has_paused(now)
    }

    /// Whether the device has no work, and the recordings have had their part since the last one.
    pub(crate) fn has_paused(&self, now: Moment) -> bool {
        self.granted.is_empty() && now >= self.pauses_until
    }

    /// When the next permit may be granted for which it is too early only because the recordings
    /// have not had their part of the time.
    pub(crate) fn next_at(&self, now: Moment) -> Option<Moment> {
        let waits = self.is_waiting() && self.granted.is_empty() && self.writes.is_empty();
        (waits && now < self.pauses_until).then_some(self.pauses_until)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next permit has waited for a whole slot.
    pub(crate) fn has_waited(&self, slot: SlotIndex) -> bool {
        // The slot of the request had begun before it, so it is no whole slot of waiting.
        self.waiting.front().is_some_and(|waiting| waiting.since.next() < slot)
    }

    /// Reads of all permits that have waited for a whole slot.
    pub(crate) fn overdue_reads(&self, slot: SlotIndex) -> u32 {
        let overdue = |waiting: &&Waiting| waiting.since.next() < slot;
        // Permits wait in order of time, so the first recent one ends the search.
        self.waiting.iter().take_while(overdue).map(|waiting| waiting.reads).sum()
    }

    /// What the next permit counts for, in reads; `None` where none waits.
    pub(crate) fn first_reads(&self) -> Option<u32> {
        self.waiting.front().map(|waiting| waiting.reads)
    }

    /// The reads of the coming slot that permits may take, of which the schedule must be able to
    /// spare them: a slot's share, and what was saved of earlier shares.
    pub(crate) fn save(&mut self, share: u32) -> u32 {
        let most = self.first_reads().unwrap_or(0).max(share);
        self.saved = self.saved.saturating_add(share).min(most);
        self.saved
    }

    /// Forgets saved shares: permits have taken so many reads, or none has waited long enough.
    pub(crate) fn spend(&mut self, reads: u32) {
        self.saved = self.saved.saturating_sub(reads);
    }

    /// Queues a permit that counts for `reads` reads; of a write for which time is kept with the
    /// nanoseconds that it is charged.
    pub(crate) fn queue(
        &mut self,
        permit: PermitId,
        reads: u64,
        since: SlotIndex,
        charge: Option<u64>,
    ) {
        let reads = u32::try_from(reads).unwrap_or(u32::MAX);
        self.waiting.push_back(Waiting { permit, reads, since, charge });
    }

    /// Takes the permit that has waited longest into use.
    pub(crate) fn grant(&mut self, now: Moment, ends: Ends) -> Option<PermitId> {
        let Waiting { permit, reads, .. } = self.waiting.pop_front()?;
        self.granted.insert(permit, InUse { reads: reads.max(1), ends, since: now });
        Some(permit)
    }

    /// The work is done, or given up. True: the permit was one of this disk.
    ///
    /// A recording asks for its next write when the last one is done. Were other work begun as soon
    /// as the device has none, each write could come to lie behind a permit of many reads, and the
    /// recording would get less than its rate. So such work pauses until writes have had their
    /// part, by `share`, of the time from its grant on.
    pub(crate) fn finish(&mut self, now: Moment, permit: PermitId, share: WriteShare) -> bool {
        let waiting = self.waiting.len();
        if let Some(work) = self.granted.get(&permit) {
            self.pauses_until = now + share.pause_after(now.since(work.since));
        }
        // Work may be given up while its permit still waits.
        self.waiting.retain(|other| other.permit != permit);
        self.in_batch.remove(&permit);
        self.granted.remove(&permit).is_some()
            || self.writes.remove(&permit).is_some()
            || waiting != self.waiting.len()
    }
}
