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
//! The result is an upper bound: a disk may be faster than guaranteed, and sessions may end. The
//! search is cheap: it covers a bounded part of the future, and few searches are made in a slot;
//! further refusals repeat the last result, marked as a guess.

use super::Streams;
use crate::engine::Resource;
use crate::engine::bookings::evaluate::{Approval, Candidate};
use crate::engine::stream::Stream;
use scheduler::admission::earliest_shift;
use scheduler::{Demand, DiskBooks, DiskTimings, PieceDue, Supply, WindowPlan};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

impl Streams {
    /// Delays a candidate by the fewest slots, up to `limit`, with which it fits if it is booked
    /// now, and returns their number. `None`: it fits with no such delay and is unchanged.
    pub(in crate::engine) fn delay_until_it_fits(
        &mut self,
        candidate: &mut Candidate,
        limit: u32,
    ) -> Option<(u32, Approval)> {
        if limit == 0 || !self.bookings.disk_mut(candidate.disk()).may_search() {
            return None;
        }
        let mut slots = 1;
        while slots <= limit {
            match self.evaluate_delayed(candidate, u64::from(slots)) {
                Ok(approval) => {
                    candidate.delay(slots);
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

    // Evaluates a candidate that is delayed by `slots`; if it does not fit, returns the number of
    // slots from there on for which it certainly does not fit.
    fn evaluate_delayed(&mut self, candidate: &mut Candidate, slots: u64) -> Result<Approval, u64> {
        candidate.demand.shift(slots);
        let result = self.evaluate(candidate).map_err(|shortfall| {
            let shortage = shortfall.shortage;
            match shortage.resource {
                Resource::Network => 1,
                // The failover books are not followed into the future.
                _ if self.bookings.survives_loss() => 1,
                _ => self.ruled_out(candidate.disk(), &candidate.demand, shortage),
            }
        });
        candidate.demand.unshift(slots);
        result
    }

    /// The time from now after which a refused candidate fits if it is requested again then, and
    /// whether that is exact.
    pub(in crate::engine) fn earliest_start(
        &mut self,
        candidate: &mut Candidate,
    ) -> (Duration, bool) {
        let disk = candidate.disk();
        let state = self.bookings.disk_mut(disk);
        if !state.may_search() {
            return (state.last_search, false);
        }
        let booked = earliest_shift(u64::from(SEARCH_SLOTS), |slots| {
            self.evaluate_delayed(candidate, slots).map(|_| ())
        });
        // The failover books are not followed into the future.
        let follows = !self.bookings.survives_loss();
        let found = booked.filter(|_| follows);
        let found = found.and_then(|slots| self.fits_then(disk, &mut candidate.demand, slots));
        let slots = found.or(booked).unwrap_or(u64::from(SEARCH_SLOTS));
        let slots = u32::try_from(slots).unwrap_or(SEARCH_SLOTS);
        let start = self.bookings.slot_length() * slots;
        self.bookings.disk_mut(disk).last_search = start;
        (start, found.is_some())
    }

    // The fewest slots from now, at least `from`, after which the demand fits if it is requested
    // then, with nothing booked for it before.
    fn fits_then(&self, disk: usize, demand: &mut Demand, from: u64) -> Option<u64> {
        let state = self.bookings.disk(disk);
        let policy = self.bookings.policy().policy();
        let (mut forecast, mut plan) = (self.future(disk), WindowPlan::default());
        let supply = state.supply(self.bookings.now());
        for ahead in 1..from.saturating_add(STARTS_TRIED) {
            if forecast.reads >= MOST_READS {
                break;
            }
            forecast.pass_slot();
            // Before `from` it does not fit even if its reads may be made early.
            if ahead < from {
                continue;
            }
            demand.shift(ahead);
            let passed = self.bookings.slot_length() * u32::try_from(ahead).unwrap_or(u32::MAX);
            let now = Moment(self.bookings.now().0.saturating_add(nanos(passed)));
            let supply = Supply { free_at: now.max(forecast.free), ..supply };
            let books = &forecast.books;
            let fits = policy.verdict(books, &supply, demand, &mut plan).is_admit()
                && self.bookings.network_carries_from(demand, books.current());
            demand.unshift(ahead);
            if fits {
                return Some(ahead);
            }
        }
        None
    }

    // A disk's present state, and the reads that its streams will need.
    fn future(&self, disk: usize) -> Future<'_> {
        let state = self.bookings.disk(disk);
        let of_disk = |stream: &&Stream| usize::from(stream.layout.disk.0) == disk;
        let streams: Vec<&Stream> = self.streams.values().filter(of_disk).collect();
        let mut held = BTreeMap::<SlotIndex, Vec<PieceDue>>::new();
        for (_, piece) in streams.iter().flat_map(|stream| stream.held()) {
            held.entry(piece.release).or_default().push(piece);
        }
        let mut unread: Vec<_> = streams
            .iter()
            .map(|stream| (Box::new(stream.unread()) as Pieces<'_>).peekable())
            .collect();
        let first = |(number, pieces): (usize, &mut Peekable<Pieces<'_>>)| {
            pieces.peek().map(|piece| Reverse((piece.due, number)))
        };
        let queue = unread.iter_mut().enumerate().filter_map(|(n, pieces)| first((n, pieces)));
        let queue = queue.collect();
        Future {
            supply: state.supply(self.bookings.now()),
            counts_time: self.bookings.plans(disk),
            free: state.busy_until(self.bookings.now(), &[]),
            books: state.dispatcher.books.clone(),
            held,
            unread,
            queue,
            reads: 0,
        }
    }
}

type Pieces<'a> = Box<dyn Iterator<Item = PieceDue> + 'a>;

// One disk's predicted books, without further admissions or departures.
struct Future<'a> {
    supply: Supply<'a>,
    counts_time: bool,
    /// When the disk has done the reads made so far.
    free: Moment,
    books: DiskBooks,
    held: BTreeMap<SlotIndex, Vec<PieceDue>>,
    unread: Vec<Peekable<Pieces<'a>>>,
    queue: BinaryHeap<Reverse<(SlotIndex, usize)>>,
    reads: u64,
}

impl Future<'_> {
    /// Ends the current slot and makes the reads of the next one.
    fn pass_slot(&mut self) {
        let over = self.books.current();
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= over) {
            entry.remove().into_iter().for_each(|piece| self.books.release(piece));
        }
        self.books.advance(over.next());
        let slot = over.next().start(self.supply.slot);
        let end = over.next().next().start(self.supply.slot);
        self.free = self.free.max(slot);
        let (mut reads, mut transfer, mut free) = (0, 0, self.free);
        while let Some(piece) = self.next() {
            let used = self.books.held() + self.books.reserved() + u64::from(piece.len);
            if used > self.supply.memory {
                break;
            }
            reads += 1;
            transfer += u64::from(piece.transfer);
            match self.supply.timings {
                DiskTimings { costs: Some(costs), .. } if self.counts_time => {
                    let takes = self.supply.timings.charge(costs, reads, transfer);
                    let done = Moment(self.free.0.saturating_add(takes));
                    if done > end {
                        break;
                    }
                    free = done;
                }
                _ if reads > u64::from(self.supply.min_read) => break,
                _ => {}
            }
            self.take(piece);
        }
        self.free = free;
    }

    fn next(&mut self) -> Option<PieceDue> {
        let Reverse((_, number)) = *self.queue.peek()?;
        self.unread[number].peek().copied()
    }

    fn take(&mut self, piece: PieceDue) {
        let Some(Reverse((_, number))) = self.queue.pop() else { return };
        self.unread[number].next();
        if let Some(next) = self.unread[number].peek() {
            self.queue.push(Reverse((next.due, number)));
        }
        self.books.start_read(piece);
        self.held.entry(piece.release.max(self.books.current())).or_default().push(piece);
        self.reads += 1;
    }
}

/// How far ahead the earliest start is searched for: ten minutes of 500 ms slots.
pub(in crate::engine) const SEARCH_SLOTS: u32 = 1200;

/// Starts tried with nothing booked before them, from the first that fits if it is booked now.
const STARTS_TRIED: u64 = 64;

/// Future reads that one search follows: some milliseconds of processor time.
const MOST_READS: u64 = 20_000;
