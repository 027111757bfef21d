//! Decisions: does what a booking comes to fit beside what is booked? If not, what is short, and when
//! would it fit?
//!
//! Where memory stands in the way, what was read far ahead is given back first: it stays in the
//! cache, and on the books as reads to come.

use super::door::Booking;
use super::later::MAX_SEARCHES;
use super::standby::EARLY;
use super::{Engine, Refusal, Resource};
use scheduler::{Shortage, Slack, Survival, Timing, Verdict};
use units::Moment;

impl Engine {
    pub(super) fn timing(&self, origin: Moment, from_ms: u32, spare: Option<usize>) -> Timing {
        let (startup, slot) = (self.config.startup, self.config.slot);
        let early = if spare.is_some() { EARLY } else { 0 };
        Timing { origin, startup, from_ms, kept_from_ms: from_ms, slot, early }
    }

    /// Fits? Fills in what the simpler policies want to know of each stream.
    pub(super) fn decide(&mut self, now: Moment, booking: &mut Booking) -> Result<(), Shortage> {
        self.demand_of(booking);
        match self.fits(booking.disk()) {
            Ok(_) => Ok(()),
            Err(shortage) => self.make_fit(now, booking, shortage),
        }
    }

    /// Makes a booking's demand the one at hand.
    pub(super) fn demand_of(&mut self, booking: &mut Booking) {
        self.demand.begin(self.slot);
        self.demand.reserve = booking.reserve;
        self.spare = booking.spare;
        for stream in &mut booking.streams {
            stream.summary = self.demand.add_track(stream.unread());
        }
    }

    /// What did not fit does perhaps if others give back what was read far ahead for them.
    pub(super) fn make_fit(
        &mut self,
        now: Moment,
        booking: &mut Booking,
        shortage: Shortage,
    ) -> Result<(), Shortage> {
        let disk = booking.disk();
        if shortage.resource != Resource::Memory || self.disks[disk].searches >= MAX_SEARCHES {
            return Err(shortage);
        }
        self.demand_of(booking);
        self.disks[disk].searches += 1;
        if self.gives_way(now, disk, Self::fits) { Ok(()) } else { Err(shortage) }
    }

    /// Whether what is at hand fits once others have given back what was read far ahead for them. If
    /// not, they keep it.
    pub(super) fn gives_way(
        &mut self,
        now: Moment,
        disk: usize,
        fits: impl Fn(&mut Self, usize) -> Result<Slack, Shortage>,
    ) -> bool {
        for keep in [KEEP_SLOTS, 1] {
            let given = self.give_back_ahead(disk, self.slot + keep);
            if given.is_empty() {
                continue;
            }
            if fits(self, disk).is_ok() {
                return true;
            }
            self.take_back(now, &given);
        }
        false
    }

    /// Whether the demand at hand fits on `disk` and the network, and with how much to spare. Where
    /// losses must be survived, whichever other disk may be lost, and `disk` too, if there is a spare.
    pub(super) fn fits(&mut self, disk: usize) -> Result<Slack, Shortage> {
        self.without = None;
        if !self.refuses() || !self.standby.is_wanted() {
            let slack = self.fits_disk(disk)?;
            return self.fits_network().map(|()| slack);
        }
        let demand = std::mem::take(&mut self.demand);
        let answer = self.survival(disk, self.config.policy.policy(), &demand, 0);
        self.demand = demand;
        match answer {
            Survival::Admit { slack } => self.fits_network().map(|()| slack),
            Survival::Refuse { lost, at, shortage } => {
                self.without = lost.map(|lost| (lost, at));
                Err(shortage)
            }
        }
    }

    /// Whether the demand at hand fits on `disk` as long as no disk is lost.
    pub(super) fn fits_disk(&mut self, disk: usize) -> Result<Slack, Shortage> {
        if !self.refuses() {
            return Ok(Slack::Unknown);
        }
        match self.verdict(disk) {
            Verdict::Admit { slack } => Ok(slack),
            Verdict::Refuse(shortage) => Err(shortage),
        }
    }

    fn fits_network(&self) -> Result<(), Shortage> {
        let Some(rate) = self.config.network.filter(|_| self.refuses()) else { return Ok(()) };
        let per_slot = rate.bytes_in(self.config.slot).0;
        self.network
            .verdict(&self.demand, per_slot)
            .map(|_| ())
            .map_err(|(slot, missing)| Shortage { resource: Resource::Network, slot, missing })
    }

    /// Says what is short and finds out when it would not be.
    pub(super) fn refusal(
        &mut self,
        now: Moment,
        booking: &mut Booking,
        shortage: Shortage,
    ) -> Refusal {
        let slot = self.config.slot;
        let when = shortage.slot.next().start(slot).since(now).as_secs_f64();
        let Shortage { resource, missing, .. } = shortage;
        let what = match resource {
            Resource::Disk => format!("{missing} reads too many for the disk"),
            Resource::Memory => format!("{missing} too many (reads or bytes) for the buffers"),
            Resource::Network => format!("{missing} bytes too many for the network"),
        };
        let detail = match self.without {
            None => format!("{what}, {when:.1} s from now"),
            Some((lost, at)) => {
                self.counters.refused_for_loss += 1;
                format!("if disk {lost} were lost: {what}, disk {at}, {when:.1} s from now")
            }
        };
        let (retry_after, exact) = self.earliest_start(booking);
        Refusal { resource, retry_after, exact, detail }
    }
}

/// Read-ahead that is kept first when memory is short: what is due within 4 s of 500 ms slots.
pub(super) const KEEP_SLOTS: u64 = 8;
