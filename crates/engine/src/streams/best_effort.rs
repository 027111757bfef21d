//! Work without deadlines (ingest, export, check): permits, one per piece of work, are granted in
//! the time that the streams leave.
//!
//! ```text
//!   a slot whose batch is complete   in turn with read-ahead, if it ends before the next slot
//!   a permit waited a whole slot     reads of the coming slot that the schedule can spare
//!   a disk that is read by plan      between two sweeps, if the plan still holds (`sweeps`)
//! ```

use super::Streams;
use crate::bookings::Placement;
use crate::bookings::best_effort::Ends;
use crate::{Action, DiskNumber, MAX_PERMIT_READS, PermitId};
use scheduler::admission::spare_reads;
use scheduler::{PieceDue, Supply};
use units::{ByteCount, Moment};

impl Streams {
    /// Queues work of `bytes` bytes on `disk`. A disk that is lost or does not exist has no streams
    /// to protect: granted at once.
    pub(crate) fn queue_best_effort(&mut self, disk: DiskNumber, bytes: ByteCount) -> PermitId {
        let permit = PermitId(self.next_permit);
        self.next_permit += 1;
        let slot = self.bookings.slot();
        let live = self.bookings.disk_index(disk).filter(|disk| !self.bookings.disks[*disk].lost);
        match live {
            Some(disk) => {
                let disk = &mut self.bookings.disks[disk];
                let reads = bytes.0.div_ceil(disk.guarantee.read_size.0.max(1)).max(1);
                disk.work.queue(permit, reads.min(MAX_PERMIT_READS.into()), slot, None);
            }
            None => self.actions.push(Action::Granted { permit }),
        }
        permit
    }

    /// Work is done, or given up.
    pub(crate) fn finish_best_effort(&mut self, now: Moment, permit: PermitId) {
        for disk in &mut self.bookings.disks {
            // Before the work is taken off: it counts in the time that the device may take.
            disk.note_overrun(now);
            let was_granted = disk.work.is_granted(permit);
            let is_write = disk.work.is_write(permit);
            if disk.work.finish(now, permit, disk.timings.write_share) {
                // The end of work that was never begun is no activity of the device.
                if was_granted {
                    disk.slot_work.writes += u32::from(is_write);
                    disk.slot_work.best_effort += u32::from(!is_write);
                    disk.work_ended(now);
                }
                break;
            }
        }
    }

    /// Grants the next permit of `disk`, if one waits, whose work ends so.
    pub(super) fn grant(&mut self, disk: usize, ends: Ends) -> Option<PermitId> {
        let now = self.bookings.now();
        let disk = &mut self.bookings.disks[disk];
        let permit = disk.work.grant(now, ends)?;
        // The work takes time that the streams' reads do not get, so this slot does not measure the
        // disk.
        disk.has_lacked = true;
        disk.dispatcher.forget_head();
        self.actions.push(Action::Granted { permit });
        Some(permit)
    }

    /// Grants all that waits for a lost disk: no stream is read from it.
    pub(crate) fn grant_all(&mut self, lost: usize) {
        while self.grant(lost, Ends::Within).is_some() {}
    }

    /// At a slot's start: grants what has waited for a whole slot and can be spared.
    pub(super) fn grant_spare(&mut self, disk: usize) {
        let state = &self.bookings.disks[disk];
        let waiting = state.work.overdue_reads(self.bookings.slot());
        if waiting == 0 {
            self.bookings.disks[disk].work.spend(u32::MAX);
            return;
        }
        // One permit at a time, and a pause after each, where there are recordings.
        if !state.recordings.is_empty() && !state.work.has_paused(self.bookings.now()) {
            return;
        }
        // Nobody could be late, and a slot of the disk may have fewer reads than the permit. Who
        // comes while it is in use is read for after it.
        if state.dispatcher.books.is_empty() && state.busy() == 0 {
            self.grant(disk, Ends::Later);
            return;
        }
        // On a disk of few reads an eighth of a slot is no read, and the work would wait for ever.
        let share = (state.min_read() / SHARE_PART).max(1);
        // A permit of more reads than the share would wait for ever, too, and so would all behind
        // it: it gets the shares of several slots in one.
        let share = self.bookings.disks[disk].work.save(share);
        let state = &self.bookings.disks[disk];
        // What the device still has from the last slot takes time of this one.
        let supply = Supply { owed: state.busy(), ..state.supply(self.bookings.now()) };
        let mut spare = spare_reads(&state.dispatcher.books, &supply, waiting.min(share));
        if self.bookings.survives_loss() && !self.survives_work(disk, spare) {
            return;
        }
        while let Some(first) = self.bookings.disks[disk].work.first_reads() {
            // In order of time, so that a large permit does not wait behind ever more small ones.
            if first > spare {
                break;
            }
            spare -= first;
            self.bookings.disks[disk].work.spend(first);
            let permit = self.grant(disk, Ends::Within).expect("one waits");
            let state = &mut self.bookings.disks[disk];
            state.work.in_batch.insert(permit);
            if !state.recordings.is_empty() {
                break;
            }
        }
    }

    // Whether the streams would survive the loss of any disk with so many reads more in the next
    // slot.
    fn survives_work(&mut self, disk: usize, reads: u32) -> bool {
        let mut demand = self.bookings.empty_demand();
        let due = self.bookings.slot().next();
        // The work has memory of its own, so its reads take no buffers.
        let read =
            PieceDue { piece: 0, due, release: due, len: 0, transfer: 0, followed_after: None };
        demand.add_track((0..reads).map(|_| read));
        let placement = Placement { disk, replica: None };
        let survives = self.evaluate_disks(placement, &demand, self.bookings.terms()).is_ok();
        self.bookings.put_demand(demand);
        survives
    }
}

/// Best-effort work takes at most an eighth of the slots that the streams could use for read-ahead.
const SHARE_PART: u32 = 8;
