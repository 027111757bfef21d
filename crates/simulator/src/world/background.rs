//! What happens beside the viewers: best-effort work, titles removed, a disk calibrated anew.

use super::{Event, World};
use crate::disks::Work;
use server::engine::{DiskNumber, PermitId};
use units::{ByteCount, Moment, align_down};

impl World<'_> {
    pub(super) fn plan_background_work(&mut self) {
        let background = &self.scenario.background;
        if !background.best_effort_every.is_zero() {
            self.at(Moment::ZERO + self.scenario.slot, Event::RequestBestEffort);
        }
        let wanted = &self.scenario.viewers;
        let while_they_come = wanted.every * wanted.count;
        for _ in 0..background.removals {
            let at = Moment::ZERO + while_they_come.mul_f64(self.chance.f64());
            self.at(at, Event::RemoveTitle);
        }
        if !background.calibrated_at.is_zero() {
            self.at(Moment::ZERO + background.calibrated_at, Event::Recalibrate);
        }
    }

    pub(super) fn request_best_effort(&mut self) {
        if self.present == 0 {
            return;
        }
        let pause = self.exponential(self.scenario.background.best_effort_every);
        self.at(self.now + pause, Event::RequestBestEffort);
        if self.tickets.len() >= MOST_TICKETS {
            return;
        }
        let disk = self.chance.usize(..self.disks.len());
        let most = self.disks[disk].guarantee.read_size.0;
        let bytes = align_down(self.chance.u64(4096..=most), 4096);
        let number = DiskNumber(u16::try_from(disk).expect("few disks"));
        let ticket = self.engine.request_best_effort(self.now, number, ByteCount(bytes));
        self.liveness.asked(ticket, &mut self.violations);
        self.note("asks best effort: ticket, disk", [ticket.0, disk as u64, bytes, 0]);
        let len = u32::try_from(bytes).expect("at most a read");
        self.tickets.insert(ticket, (disk, len));
        if self.chance.u8(..10) == 0 {
            let patience = self.exponential(self.scenario.slot);
            self.at(self.now + patience, Event::AbandonPermit(ticket));
        }
    }

    pub(super) fn granted(&mut self, ticket: PermitId) {
        self.note("granted: ticket", [ticket.0, 0, 0, 0]);
        self.liveness.granted(ticket, &mut self.violations);
        let Some((disk, len)) = self.tickets.remove(&ticket) else { return };
        let room = self.disks[disk].capacity() - u64::from(len);
        let place = align_down(self.chance.u64(..room), 4096);
        self.disks[disk].offer(Work::BestEffort(ticket), place, len);
        self.feed(disk);
    }

    pub(super) fn best_effort_done(&mut self, ticket: PermitId) {
        self.note("best effort done: ticket", [ticket.0, 0, 0, 0]);
        self.engine.best_effort_done(self.now, ticket);
    }

    /// Before it was granted; afterwards it is done as any other.
    pub(super) fn give_up(&mut self, ticket: PermitId) {
        if self.tickets.remove(&ticket).is_some() {
            self.note("best effort given up: ticket", [ticket.0, 0, 0, 0]);
            self.liveness.given_up(ticket);
            self.engine.best_effort_done(self.now, ticket);
        }
    }

    pub(super) fn remove_a_title(&mut self) {
        let number = self.chance.usize(..self.titles.len());
        let title = &mut self.titles[number];
        if title.withdrawn {
            return;
        }
        title.withdrawn = true;
        let key = title.layout.title;
        let in_use = self.engine.withdraw_title(self.now, key);
        self.liveness.withdrawn(key, in_use, &mut self.violations);
        self.note("withdrawn: title, in use", [key.0, in_use.into(), 0, 0]);
    }

    pub(super) fn recalibrate(&mut self) {
        let disk = &mut self.disks[0];
        disk.recalibrate(self.scenario.background.new_min_read);
        let guarantee = disk.guarantee;
        self.engine.set_guarantee(self.now, DiskNumber(0), guarantee);
        self.note("calibrated: reads a slot", [guarantee.min_read.into(), 0, 0, 0]);
    }
}

/// Permits waited for at once: an ingest and a check, each with its next piece of work.
const MOST_TICKETS: usize = 4;
