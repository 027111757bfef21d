//! The earliest start that fits: for a delayed admission, and for the `Retry-After` of a refusal.
//!
//! ```text
//!   booked shift     the smallest delay that fits if the candidate is booked now, so that its
//!                    reads may be made before its start. No smaller delay fits.
//!   from there on    the disk's books as `scheduler::Forecast` predicts them, slot after slot,
//!                    without further admissions or departures; until the candidate fits with none
//!                    of its reads made before
//! ```
//!
//! The result is an upper bound: a disk may be faster than guaranteed, and sessions may end. A
//! search covers a bounded part of the future, and each disk has one in a slot; further refusals
//! of that slot repeat its result, marked as an estimate.

use super::{Streams, least_reserve, reserve_for};
use crate::bookings::evaluate::{Approval, Candidate};
use crate::stream::Stream;
use crate::{Resource, RetryAfter};
use scheduler::admission::{Policy, earliest_shift};
use scheduler::{Demand, DiskBooks, Forecast, PieceDue, Supply, Verdict};
use std::time::Duration;
use units::{Moment, nanos};

impl Streams {
    /// Delays a candidate by the fewest slots, at least `first` and at most `limit`, with which it
    /// fits if it is booked now, and returns their number; not by fewer than the candidates before
    /// it in this slot. `None`: no such delay was found, and the candidate is unchanged.
    pub(crate) fn delay_until_it_fits(
        &mut self,
        candidate: &mut Candidate,
        first: u32,
        limit: u32,
    ) -> Option<(u32, Approval)> {
        if limit == 0 {
            return None;
        }
        let state = &mut self.bookings.disks[candidate.disk()];
        let mut tests = if state.may_search() { limit } else { TESTS_BEYOND };
        // The starts before the last one found were taken by others of a crowd, so that the search
        // goes on there: with one or two evaluations for each newcomer, however many come.
        let mut slots = state.starts.last_delay.max(first).clamp(1, limit);
        while slots <= limit && tests > 0 {
            tests -= 1;
            match self.evaluate_delayed(candidate, u64::from(slots)) {
                Ok(approval) => {
                    candidate.delay(slots);
                    self.bookings.disks[candidate.disk()].starts.last_delay = slots;
                    return Some((slots, approval));
                }
                Err(out) => {
                    // Skips the starts that are ruled out: each evaluation costs a decision.
                    slots = slots.saturating_add(u32::try_from(out).unwrap_or(u32::MAX).max(1));
                }
            }
        }
        None
    }

    /// Delays a candidate by the most slots, at most `limit`, with which it fits if it is booked
    /// now, and returns their number; not by more than the candidates before it in this slot.
    /// `None`: it fits with none of them, and is unchanged.
    pub(crate) fn delay_as_long_as_possible(
        &mut self,
        candidate: &mut Candidate,
        limit: u32,
    ) -> Option<(u32, Approval)> {
        let state = &mut self.bookings.disks[candidate.disk()];
        let mut tests = if state.may_search() { limit } else { TESTS_BEYOND };
        // The later starts were taken by others of the crowd, as in `delay_until_it_fits`.
        let mut slots = state.starts.last_latest.unwrap_or(limit).min(limit);
        while slots > 0 && tests > 0 {
            tests -= 1;
            if let Ok(approval) = self.evaluate_delayed(candidate, u64::from(slots)) {
                candidate.delay(slots);
                self.bookings.disks[candidate.disk()].starts.last_latest = Some(slots);
                return Some((slots, approval));
            }
            slots -= 1;
        }
        None
    }

    // Evaluates a candidate that is delayed by `slots`; if it does not fit, returns the number of
    // slots from there on for which it certainly does not fit.
    fn evaluate_delayed(&mut self, candidate: &mut Candidate, slots: u64) -> Result<Approval, u64> {
        candidate.demand.shift(slots);
        let result = self.evaluate(candidate).map_err(|shortfall| {
            let shortage = shortfall.shortage;
            match shortage.resource {
                // The policies do not know the network, so they rule out no start because of it.
                Resource::Network => 1,
                // The failover books are not followed into the future.
                _ if self.bookings.survives_loss() => 1,
                _ => self.ruled_out(candidate, shortage),
            }
        });
        candidate.demand.unshift(slots);
        result
    }

    /// The time from now after which a refused candidate fits if it is requested again then; `None`
    /// if the search found no start.
    pub(crate) fn earliest_start(&mut self, candidate: &mut Candidate) -> Option<RetryAfter> {
        let disk = candidate.disk();
        let state = &mut self.bookings.disks[disk];
        if let Some(found) = state.last_search {
            // That of another candidate, which was refused in the same slot.
            return found.map(RetryAfter::Estimated);
        }
        state.last_search = Some(None);
        // A lower bound first: without reads made early the candidate fits no sooner.
        let lower_bound = earliest_shift(u64::from(SEARCH_SLOTS), |slots| {
            self.evaluate_delayed(candidate, slots).map(|_| ())
        })?;
        // The failover books are not followed into the future.
        let found = match self.bookings.survives_loss() {
            false => self.fits_then(candidate, lower_bound),
            true => None,
        };
        let slots = u32::try_from(found.unwrap_or(lower_bound)).unwrap_or(SEARCH_SLOTS);
        let start = self.bookings.slot_length() * slots;
        self.bookings.disks[disk].last_search = Some(Some(start));
        Some(if found.is_some() { RetryAfter::Exact(start) } else { RetryAfter::Estimated(start) })
    }

    // The fewest slots from now, at least `from`, after which the demand fits if it is requested
    // then, with nothing booked for it before.
    fn fits_then(&self, candidate: &mut Candidate, from: u64) -> Option<u64> {
        let disk = candidate.disk();
        // A newcomer is evaluated with less for its sockets only where memory is short.
        let reserves = match candidate.is_new {
            true => {
                let tracks: Vec<_> = candidate.streams.iter().map(|s| s.track).collect();
                let wide = reserve_for(&candidate.layout, &tracks);
                [wide, least_reserve(wide)]
            }
            false => [candidate.demand.reserve; 2],
        };
        let demand = &mut candidate.demand;
        let state = &self.bookings.disks[disk];
        let (policy, counts_time) = (self.bookings.policy().policy(), self.bookings.plans(disk));
        let mut forecast = self.forecast(disk);
        // At that time the memory that the disk is to give back may be gone.
        let memory = self.bookings.memory_within(disk, true);
        let mut supply = Supply { memory, ..state.supply(self.bookings.now()) };
        for ahead in 1..from.saturating_add(STARTS_TRIED) {
            if forecast.reads >= MOST_READS {
                break;
            }
            forecast.end_slot();
            match counts_time {
                true => forecast.read_by_plan(&supply),
                false => forecast.read_by_count(&supply),
            }
            // What best-effort work takes of the slots from the next one on.
            supply.owed = supply.owed.saturating_sub(supply.min_read);
            // Before `from` it does not fit even if its reads may be made early.
            if ahead < from {
                continue;
            }
            demand.shift(ahead);
            let passed = self.bookings.slot_length() * u32::try_from(ahead).unwrap_or(u32::MAX);
            let now = Moment(self.bookings.now().0.saturating_add(nanos(passed)));
            let books = forecast.books();
            // The request is decided at `now` of that slot, even if the disk has been idle before.
            // A disk that is faster than it is charged for has reads of later slots by then.
            let is_fed = counts_time && books.unread() > 0;
            let in_device = if counts_time { state.most_in_device(is_fed) } else { Duration::ZERO };
            let supply = Supply { free_at: forecast.free_at().max(now + in_device), ..supply };
            let fits = fits_with_any(policy, books, &supply, demand, reserves)
                && self.bookings.network_carries_from(demand, books.current());
            demand.unshift(ahead);
            if fits {
                return Some(ahead);
            }
        }
        None
    }

    // A disk's present state, and the reads that its streams will need.
    fn forecast(&self, disk: usize) -> Forecast<'_> {
        let state = &self.bookings.disks[disk];
        let free_at = state.busy_until(self.bookings.now(), &[], 0);
        let dispatcher = &state.dispatcher;
        let of_disk = |stream: &&Stream| usize::from(stream.layout.disk.0) == disk;
        let streams = || self.booked().map(|(_, stream)| stream).filter(of_disk);
        let mut books = dispatcher.books.clone();
        // The forecast releases all pieces alike, so it counts those read elsewhere as planned: for
        // a while after a loss it finds a start somewhat too late.
        for stream in streams() {
            let elsewhere = |piece: &PieceDue| stream.was_read_elsewhere(piece.piece);
            stream.booked_held().filter(elsewhere).for_each(|piece| books.planned_again(piece));
        }
        let mut forecast = Forecast::new(books, dispatcher.plan().clone(), free_at);
        for stream in streams() {
            forecast.add_stream(stream.booked_unread());
            stream.booked_held().for_each(|piece| forecast.hold(piece));
        }
        forecast
    }
}

// Whether a demand fits with the first of these reserves, or with the second if memory is short for
// the first.
fn fits_with_any(
    policy: &dyn Policy,
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &mut Demand,
    reserves: [u64; 2],
) -> bool {
    for reserve in reserves {
        demand.reserve = reserve;
        match policy.verdict(books, supply, demand) {
            Verdict::Admit { .. } => return true,
            Verdict::Refuse(shortage) if shortage.resource == Resource::Memory => {}
            Verdict::Refuse(_) => return false,
        }
    }
    false
}

/// How far ahead the earliest start is searched for: ten minutes of 500 ms slots.
const SEARCH_SLOTS: u32 = 1200;

/// Delays that are tried for a candidate when this slot's searches are used up.
const TESTS_BEYOND: u32 = 4;

/// Starts tried with nothing booked before them, from the first that fits if it is booked now.
const STARTS_TRIED: u64 = 64;

/// Future reads that one search follows: some milliseconds of processor time.
const MOST_READS: u64 = 20_000;
