//! Recordings with a guaranteed rate: disk time is kept for their writes, beside the streams.
//!
//! ```text
//!   admit   the part of the disk that the writes take ─▶ are all streams still on time? ─▶ kept
//!   write   its tokens are there ─▶ granted, at any moment, also within a sweep
//!           they are not         ─▶ waits, and is granted sooner where time is left (`best_effort`)
//! ```
//!
//! `scheduler::WriteShare` has the argument why no stream is late for it.

use super::Streams;
use crate::bookings::Placement;
use crate::bookings::disk::Disk;
use crate::{Action, DiskNumber, PermitId, RecordingId};
use scheduler::{Resource, Shortage, WriteDemand, WriteJob, WriteShare};
use units::Moment;

impl Streams {
    /// Keeps time of a disk for a recording's writes, if all streams stay on time.
    pub(crate) fn admit_recording(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        demand: WriteDemand,
    ) -> Result<RecordingId, Shortage> {
        let number = self.bookings.disk_index(disk).filter(|disk| !self.bookings.disks[*disk].lost);
        let short =
            Shortage { resource: Resource::Disk, slot: self.bookings.slot().next(), missing: 1 };
        let disk = number.ok_or(short)?;
        let recording = RecordingId(self.next_recording);
        self.next_recording += 1;
        let state = &mut self.bookings.disks[disk];
        let tokens = state.tokens;
        state.recordings.insert(recording, demand);
        state.keep_for_recordings(now);
        // So that the first writes do not wait, nor those behind them.
        state.tokens.fill();
        match self.holds_beside_writes(disk) {
            Ok(()) => Ok(recording),
            Err(short) => {
                self.end_recording(now, recording);
                // The plan that is followed knows of these.
                self.bookings.disks[disk].tokens = tokens;
                Err(short)
            }
        }
    }

    // Whether the streams of a disk are on time beside the writes for which time is kept now. If
    // so, the disk reads by the plan for that.
    fn holds_beside_writes(&mut self, disk: usize) -> Result<(), Shortage> {
        if !self.bookings.refuses() {
            return Ok(());
        }
        let slot = self.bookings.slot().next();
        if self.bookings.disks[disk].timings.write_share.part > WriteShare::MOST {
            return Err(Shortage { resource: Resource::Disk, slot, missing: 1 });
        }
        let demand = self.bookings.empty_demand();
        let placement = Placement { disk, replica: None };
        let approval = self.evaluate_disks(placement, &demand, self.bookings.terms());
        self.bookings.put_demand(demand);
        approval.map(|approval| self.adopt(approval)).map_err(|short| short.shortage)
    }

    /// A recording ends: nothing is kept for it any more. Its writes that wait go on as best-effort
    /// work.
    pub(crate) fn end_recording(&mut self, now: Moment, recording: RecordingId) {
        for disk in &mut self.bookings.disks {
            if disk.recordings.remove(&recording).is_some() {
                disk.keep_for_recordings(now);
            }
        }
    }

    /// Queues a write of a recording on its disk; best-effort work where no time is kept for it.
    pub(crate) fn queue_write(
        &mut self,
        disk: DiskNumber,
        recording: Option<RecordingId>,
        job: WriteJob,
    ) -> PermitId {
        let live = self.bookings.disk_index(disk).filter(|disk| !self.bookings.disks[*disk].lost);
        let Some(number) = live else { return self.queue_best_effort(disk, job.bytes) };
        let permit = PermitId(self.next_permit);
        self.next_permit += 1;
        self.bookings.disks[number].queue_write(permit, recording, job);
        permit
    }

    /// Grants the writes of recordings whose tokens are there.
    pub(super) fn grant_writes(&mut self, now: Moment, disk: usize) {
        let state = &mut self.bookings.disks[disk];
        while let Some((_, charge)) = state.work.next_write()
            && state.tokens.take(now, charge)
        {
            state.write_begins(now, charge);
            // As best-effort work, it takes time that does not measure the disk, and the head.
            state.has_lacked = true;
            state.dispatcher.forget_head();
            self.actions.extend(state.work.begin_write().map(|permit| Action::Granted { permit }));
        }
    }

    /// When the next write of a recording, or the work that pauses for one, can begin, on any disk.
    pub(crate) fn next_work_at(&self) -> Option<Moment> {
        let now = self.bookings.now();
        let next = |disk: &Disk| [disk.next_write_at(now), disk.work.next_at(now)];
        self.bookings.disks.iter().flat_map(next).flatten().min()
    }
}
