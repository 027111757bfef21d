//! Background work: best-effort requests, removal of titles, recalibration of a disk.

use super::{Event, PermitRequest, World};
use crate::disks::Work;
use engine::{DiskNumber, PermitId};
use units::{ByteCount, Moment, align_down};

impl World<'_> {
    pub(super) fn schedule_background_work(&mut self) {
        let background = &self.scenario.background;
        if !background.best_effort_every.is_zero() {
            self.schedule(Moment::ZERO + self.scenario.slot, Event::RequestBestEffort);
        }
        let viewers = &self.scenario.viewers;
        let arrivals = viewers.every * viewers.count;
        for _ in 0..background.removals {
            // While viewers arrive, so that some of the titles are in use.
            let at = Moment::ZERO + arrivals.mul_f64(self.rng.f64());
            self.schedule(at, Event::RemoveTitle);
        }
        if !background.memory_changes_every.is_zero() {
            self.schedule(Moment::ZERO + self.scenario.slot, Event::ChangeMemory);
        }
        if !background.calibrated_at.is_zero() {
            self.schedule(Moment::ZERO + background.calibrated_at, Event::Recalibrate);
        }
    }

    pub(super) fn request_best_effort(&mut self) {
        // Without this end the world would never come to rest.
        if self.present == 0 {
            return;
        }
        // Scheduled before the limit is checked: a full queue must not end the background work for
        // good.
        let pause = self.exponential(self.scenario.background.best_effort_every);
        self.schedule(self.now + pause, Event::RequestBestEffort);
        if self.permit_requests.len() >= MAX_PERMIT_REQUESTS {
            return;
        }
        let disk = self.rng.usize(..self.disks.len());
        let largest = self.disks[disk].guarantee.read_size.0;
        // Some of the work is several reads at a time, each of them somewhere else. Where none is,
        // nothing is drawn, so that other worlds keep their seed.
        let most = self.scenario.background.best_effort_reads;
        let (reads, bytes) = match most > 1 && self.rng.u8(..4) == 0 {
            true => (self.rng.u32(2..=most), largest),
            false => (1, align_down(self.rng.u64(4096..=largest), 4096)),
        };
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        let all = ByteCount(bytes * u64::from(reads));
        let permit = self.engine.request_best_effort(self.now, number, all);
        self.liveness.permit_requested(permit, &mut self.violations);
        self.note(
            "requests best effort: permit, disk",
            [permit.0, disk as u64, bytes, reads.into()],
        );
        let len = u32::try_from(bytes).expect("at most a read");
        self.permit_requests.insert(permit, PermitRequest { disk, len, reads });
        if self.rng.u8(..10) == 0 {
            let after = self.exponential(self.scenario.slot);
            self.schedule(self.now + after, Event::AbandonPermit(permit));
        }
    }

    pub(super) fn permit_granted(&mut self, permit: PermitId) {
        self.note("granted: permit", [permit.0, 0, 0, 0]);
        self.liveness.permit_granted(permit, &mut self.violations);
        if self.write_granted(permit) {
            return;
        }
        let Some(PermitRequest { disk, len, reads }) = self.permit_requests.remove(&permit) else {
            return;
        };
        self.permit_reads.insert(permit, reads);
        for _ in 0..reads {
            let end = self.disks[disk].capacity() - u64::from(len);
            let offset = align_down(self.rng.u64(..end), 4096);
            self.disks[disk].submit(Work::BestEffort(permit), offset, len);
        }
        self.feed(disk);
    }

    pub(super) fn best_effort_done(&mut self, permit: PermitId) {
        let left = self.permit_reads.get_mut(&permit).expect("it was granted");
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.permit_reads.remove(&permit);
        self.note("best effort done: permit", [permit.0, 0, 0, 0]);
        self.engine.best_effort_done(self.now, permit);
    }

    /// Withdraws the request for a permit, unless the permit was granted: then the work is done.
    pub(super) fn abandon_permit(&mut self, permit: PermitId) {
        if self.permit_requests.remove(&permit).is_some() {
            self.note("best effort abandoned: permit", [permit.0, 0, 0, 0]);
            self.liveness.permit_abandoned(permit);
            self.engine.best_effort_done(self.now, permit);
        }
    }

    pub(super) fn remove_title(&mut self) {
        let number = self.rng.usize(..self.titles.len());
        let title = &mut self.titles[number];
        // What is being recorded cannot be removed.
        if title.withdrawn || title.grows() {
            return;
        }
        self.withdraw(number);
    }

    /// Removes a title; returns whether it is being played.
    pub(super) fn withdraw(&mut self, number: usize) -> bool {
        let title = &mut self.titles[number];
        title.withdrawn = true;
        let key = title.layout.title;
        let in_use = self.engine.withdraw_title(self.now, key);
        self.liveness.title_withdrawn(key, in_use, &mut self.violations);
        self.note("withdrawn: title, in use", [key.0, in_use.into(), 0, 0]);
        in_use
    }

    pub(super) fn change_memory(&mut self) {
        // Without this end the world would never come to rest.
        if self.present == 0 {
            return;
        }
        let background = &self.scenario.background;
        let (every, least) = (background.memory_changes_every, background.least_memory);
        let pause = self.exponential(every);
        self.schedule(self.now + pause, Event::ChangeMemory);
        let all = self.scenario.memory.0;
        let bytes = match self.rng.u8(..3) {
            0 => all,
            _ => self.rng.u64(all / 100 * least.min(100)..=all),
        };
        // What is held is in use before it is taken away.
        self.audit();
        self.engine.set_memory(self.now, ByteCount(bytes));
        self.memory.set_limit(bytes);
        self.refusals.changed();
        self.outcome.memory_changes += 1;
        self.note("memory: bytes", [bytes, 0, 0, 0]);
        self.execute_actions();
        self.audit();
    }

    pub(super) fn recalibrate(&mut self) {
        let disk = &mut self.disks[0];
        disk.recalibrate(self.scenario.background.new_min_read);
        let guarantee = disk.guarantee;
        self.engine.set_guarantee(self.now, DiskNumber(0), guarantee);
        self.refusals.recalibrated();
        self.note("calibrated: reads per slot", [guarantee.min_read.into(), 0, 0, 0]);
    }
}

/// Open permit requests: those of an ingest and of a check, two each.
const MAX_PERMIT_REQUESTS: usize = 4;
