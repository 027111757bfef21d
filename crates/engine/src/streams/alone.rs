//! What fits if nothing else is booked: why a candidate was refused, and whether it ever fits.
//!
//! ```text
//!                   the disk's speed   memory   requested               read from
//!   cause           now, calibrated    all      now                     now on
//!   fits_ever       calibrated         all      at the end of a slot    the start of that slot
//! ```
//!
//! `Some(false)` of `fits_ever` holds for requests at any time, of viewers who wait for their start
//! no longer. A read's slot is a step function of the time of the request that never falls, so of
//! all requests within one slot the last has every read due latest, counted from that slot; and
//! none can begin to read before the slot begins. A policy that is monotone
//! ([`scheduler::PolicyKind::is_monotone`]) and refuses this case refuses all others. A viewer who
//! follows another shares its reads, which is not looked at. Without a replica no read has to be a
//! slot early, and only memory beyond a bound that has nothing to do with time is looked at: how
//! much is held at once is not monotone.

use super::{Streams, least_reserve, reserve_for};
use crate::bookings::evaluate::{Candidate, Speed};
use crate::stream::Stream;
use crate::{RefusalCause, Resource};
use scheduler::PlayoutClock;
use std::time::Duration;
use units::Moment;

impl Streams {
    /// Why a candidate that was short of `resource` does not fit.
    pub(crate) fn cause(&mut self, candidate: &Candidate, resource: Resource) -> RefusalCause {
        let bookings = &self.bookings;
        let disk = candidate.disk();
        let alone = |speed| match resource {
            Resource::Network => bookings.network_carries_alone(&candidate.demand),
            _ => bookings.fits_alone(disk, &candidate.demand, speed),
        };
        if alone(Speed::Now) {
            return self.cause_beside_it(candidate);
        }
        if alone(Speed::Calibrated) {
            RefusalCause::SlowDisk
        } else if resource == Resource::Memory && bookings.fitted_alone(disk, &candidate.demand) {
            RefusalCause::LessMemory
        } else {
            RefusalCause::Title
        }
    }

    // Alone it fits on its disk.
    fn cause_beside_it(&self, candidate: &Candidate) -> RefusalCause {
        if self.has_sessions() {
            return RefusalCause::Sessions;
        }
        if self.bookings.disks.iter().any(|disk| disk.busy() > 0) {
            return RefusalCause::Background;
        }
        // It is the loss of a disk, which it would have to survive, that it does not fit beside.
        let copies = || candidate.copies.iter().map(|copy| usize::from(copy.disk.0));
        if copies().any(|disk| self.bookings.disks[disk].lost) {
            RefusalCause::DiskLost
        } else if copies().any(|disk| self.bookings.disks[disk].timings.slowdown > 0) {
            RefusalCause::SlowDisk
        } else {
            RefusalCause::Title
        }
    }

    /// Whether anything is booked or held for sessions.
    pub(crate) fn has_sessions(&self) -> bool {
        self.booked().next().is_some() || self.bookings.holds_or_reserves()
    }

    /// Whether a candidate ever fits without other sessions, with the present options and
    /// calibration, if its viewer waits for its start for at most `max_wait`. `Some(false)`:
    /// certainly at no time, whatever is booked then; `None`: not known.
    pub(crate) fn fits_ever(&mut self, candidate: &Candidate, max_wait: Duration) -> Option<bool> {
        // A copy on a disk that comes back may fit.
        if candidate.copies.iter().any(|copy| !self.bookings.is_live(copy)) {
            return None;
        }
        let unread = candidate.streams.iter().flat_map(Stream::unread);
        let largest = unread.map(|piece| u64::from(piece.len)).max().unwrap_or(0);
        // What the sockets need at least: where memory is short a newcomer is given no more.
        let tracks: Vec<_> = candidate.streams.iter().map(|stream| stream.track).collect();
        let sockets = least_reserve(reserve_for(&candidate.layout, &tracks));
        let least = sockets + largest;
        if least > self.bookings.most_memory() {
            return Some(false);
        }
        // The longest wait has every read due latest.
        let latest = Moment(self.bookings.slot_end().0 - 1) + max_wait;
        let mut streams: Vec<Stream> = candidate
            .streams
            .iter()
            .map(|stream| {
                let timing = PlayoutClock {
                    origin: latest,
                    // Deadlines of a viewer who waits count from the end of its start-up.
                    opens_after: if max_wait.is_zero() { max_wait } else { stream.timing.startup },
                    with_first_ms: 0,
                    early: 0,
                    ..stream.timing
                };
                let layout = stream.layout.clone();
                Stream::new(stream.session, layout, stream.track, timing, stream.cursor)
            })
            .collect();
        let demand = self.bookings.demand_of(&mut streams, 0);
        let fits = self.bookings.fits_ever(candidate.disk(), &demand);
        self.bookings.put_demand(demand);
        fits
    }
}
