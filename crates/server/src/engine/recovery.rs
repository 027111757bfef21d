//! A disk that does not answer at all, and a lost disk that is back.
//!
//! ```text
//!   reads in the device, and for HANGS_FOR none ended ── a viewer on it has a copy elsewhere ──▶ lost
//!   lost ── the driver has read what it holds and found it whole, and nothing asked of it before is
//!           still under way ──▶ back: newcomers may be read from it
//!   its share of the memory is the others' meanwhile, in equal parts: who has more than its due, because
//!   it was in use there, or since the disk is back, gives it as what it has promised allows, once a slot
//!   as much as it can spare
//! ```
//!
//! Whoever was moved stays where it is. Where nobody has a copy a disk is waited for: its viewers would
//! gain nothing by being ended.

use super::disks::Disk;
use super::{Action, DiskNumber, Engine, SessionId};
use scheduler::{Demand, Survival};
use std::time::Duration;
use units::Moment;

impl Engine {
    /// A lost disk gives again what it holds: the driver has seen to that. Says whether it is back; not
    /// before all that was asked of it has ended.
    pub fn restore_disk(&mut self, now: Moment, disk: DiskNumber) -> bool {
        self.advance(now);
        let Some(index) = self.disk_index(disk) else { return false };
        let state = &mut self.disks[index];
        if state.lost {
            if state.in_flight > 0 {
                return false;
            }
            (state.lost, state.failed_in_row, state.silent_slots) = (false, 0, 0);
            self.actions.push(Action::DiskBack { disk });
            self.give_memory_back();
        }
        self.use_leftovers(now);
        true
    }

    /// A slot has begun: who does not answer is lost, if anybody gains by that.
    pub(super) fn lose_who_hang(&mut self, now: Moment) {
        for disk in 0..self.disks.len() {
            let state = &self.disks[disk];
            let patience = HANGS_FOR.max(state.guarantee.longest_read * HANGS_READS);
            let slots = patience.as_nanos().div_ceil(self.config.slot.as_nanos());
            let hangs = !state.lost && u128::from(state.silent_slots) >= slots;
            if hangs && self.sessions.keys().any(|id| self.can_leave(*id, disk)) {
                self.lose_if_there(now, disk);
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

    /// Disks with more than their share of the memory give to those with less what they can spare. A lost
    /// disk's share is the others'.
    pub(super) fn give_memory_back(&mut self) {
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
                let given = parts.into_iter().find(|part| *part > 0 && self.can_give(rich, *part));
                self.disks[poor].memory += given.unwrap_or(0);
            }
        }
    }

    // Takes so much memory from a disk, if everybody there is on time with the rest.
    fn can_give(&mut self, disk: usize, bytes: u64) -> bool {
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
        let mut demand = std::mem::take(&mut self.demand);
        demand.begin(self.slot);
        let fits = self.holds(disk, &demand);
        self.demand = demand;
        if fits {
            self.adopt_plan(disk);
        } else {
            self.disks[disk].memory += bytes;
        }
        fits
    }

    fn holds(&mut self, disk: usize, nothing: &Demand) -> bool {
        let policy = self.config.policy.policy();
        if self.standby.is_wanted() {
            self.spare = None;
            matches!(self.survival(disk, policy, nothing, 0), Survival::Admit { .. })
        } else {
            self.verdict_after(disk, policy, nothing, 0).is_admit()
        }
    }
}

/// Longer than a healthy disk is silent, shorter than players' buffers last. One that sleeps takes
/// longer to wake; it is back when it has.
const HANGS_FOR: Duration = Duration::from_secs(5);
/// A disk whose reads take long is given the time of so many.
const HANGS_READS: u32 = 20;
