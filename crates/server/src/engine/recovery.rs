//! A disk that does not answer at all, and a lost disk that returns.
//!
//! ```text
//!   hung    reads are in the device, and none has ended for HANGS_FOR; if a session on the disk
//!           has a copy elsewhere, the disk counts as lost
//!   lost    until the driver has verified what the disk holds and all its earlier reads have ended
//!   back    new sessions may be read from it
//!
//!   memory  while a disk is lost, the other disks have its share in equal parts. A disk with more
//!           than its share returns memory once a slot, as much as its admitted streams can spare
//! ```
//!
//! Sessions that failed over stay on their new disk. Where no session has another copy, the engine
//! waits for the disk: ending the sessions would gain nothing.

use super::disks::Disk;
use super::failover::Placement;
use super::{Action, DiskNumber, Engine, SessionId};
use std::time::Duration;
use units::Moment;

impl Engine {
    /// A lost disk is used again, unless reads that it was given are still under way. Says whether
    /// it is in use.
    pub(super) fn bring_back(&mut self, disk: DiskNumber) -> bool {
        let Some(index) = self.disk_index(disk) else { return false };
        let state = &mut self.disks[index];
        if state.lost {
            if state.in_flight > 0 {
                return false;
            }
            (state.lost, state.failed_in_row, state.silent_slots) = (false, 0, 0);
            self.actions.push(Action::DiskBack { disk });
            self.rebalance_memory();
        }
        true
    }

    /// A slot has begun: who does not answer is lost, if anybody gains by that.
    pub(super) fn fail_hung_disks(&mut self, now: Moment) {
        for disk in 0..self.disks.len() {
            let state = &self.disks[disk];
            let patience = HANGS_FOR.max(state.guarantee.longest_read * HANGS_READS);
            let slots = patience.as_nanos().div_ceil(self.config.slot.as_nanos());
            let hangs = !state.lost && u128::from(state.silent_slots) >= slots;
            if hangs && self.sessions.keys().any(|id| self.can_leave(*id, disk)) {
                self.lose_disk_once(now, disk);
            }
        }
    }

    // Whether a session is read from `disk`, and has a copy elsewhere.
    fn can_leave(&self, id: SessionId, disk: usize) -> bool {
        let session = &self.sessions[&id];
        let elsewhere = |layout: &super::Layout| usize::from(layout.disk.0) != disk;
        !elsewhere(&session.layout)
            && session.copies.iter().any(|copy| elsewhere(copy) && self.is_live(copy))
    }

    /// Disks with more than their share of the memory give to those with less what they can spare.
    /// A lost disk's share is the others'.
    pub(super) fn rebalance_memory(&mut self) {
        let lost = self.disks.iter().filter(|disk| disk.lost);
        let (without, ownerless) =
            lost.fold((0, 0), |(disks, bytes), disk| (disks + 1, bytes + disk.fair_memory));
        let part = ownerless / (self.disks.len() as u64 - without).max(1);
        let share = |disk: &Disk| if disk.lost { 0 } else { disk.fair_memory + part };
        for poor in 0..self.disks.len() {
            for rich in 0..self.disks.len() {
                let state = &self.disks[poor];
                let wanted = share(state).saturating_sub(state.memory);
                if wanted == 0 {
                    break;
                }
                let state = &self.disks[rich];
                let most = wanted.min(state.memory.saturating_sub(share(state)));
                let parts = [most, most / 4, most / 16];
                let given =
                    parts.into_iter().find(|part| *part > 0 && self.take_memory_from(rich, *part));
                self.disks[poor].memory += given.unwrap_or(0);
            }
        }
    }

    // Takes so much memory from a disk, if everybody there is on time with the rest.
    fn take_memory_from(&mut self, disk: usize, bytes: u64) -> bool {
        if self.disks[disk].lost {
            // Nothing is read into it any more, but sockets may hold some of it.
            let can = self.disks[disk].room() >= bytes;
            self.disks[disk].memory -= if can { bytes } else { 0 };
            return can;
        }
        if self.disks[disk].room() < bytes {
            return false;
        }
        self.disks[disk].memory -= bytes;
        let demand = self.demands.take(self.slot);
        let placement = Placement { disk, replica: None };
        let approval = self.evaluate_disks(placement, &demand, self.terms()).ok();
        self.demands.put(demand);
        let fits = approval.is_some();
        match approval {
            Some(approval) => self.adopt(approval),
            None => self.disks[disk].memory += bytes,
        }
        fits
    }
}

/// Longer than a healthy disk is silent, shorter than players' buffers last. One that sleeps takes
/// longer to wake; it is back when it has.
const HANGS_FOR: Duration = Duration::from_secs(5);
/// A disk whose reads take long is given the time of so many.
const HANGS_READS: u32 = 20;
