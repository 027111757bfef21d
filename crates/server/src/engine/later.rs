//! "When, then?": the earliest start that a viewer can be told, who will come back for it.
//!
//! ```text
//!   booked shift     the smallest shift that fits if its place were booked now: its reads may be
//!                    made before it comes. No one fits earlier.
//!   from there on    the books as they will be, slot after slot, if nobody comes or leaves: what is
//!                    due first is read, as much as the disk guarantees and memory holds; until the
//!                    viewer fits who comes then, with nothing read for it
//! ```
//!
//! The disk may be faster than that, and viewers may leave: then there would have been room sooner.
//! Answers are cheap: a bounded part of the future is looked at, and few answers are worked out in a
//! slot; others are told the last one, and that it is a guess.

use super::door::Booking;
use super::streams::Stream;
use super::{Engine, Resource};
use scheduler::admission::earliest_shift;
use scheduler::{DiskBooks, Facts, PieceDue, Plan, Supply};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;
use std::time::Duration;
use units::{Moment, SlotIndex};

impl Engine {
    /// The fewest slots, up to `limit`, by which the demand at hand must begin later to fit, its
    /// place being booked from now on.
    pub(super) fn fits_later(&mut self, disk: usize, limit: u32) -> Option<u32> {
        if self.disks[disk].searches >= MAX_SEARCHES {
            return None;
        }
        self.disks[disk].searches += 1;
        let mut slots = 1;
        while slots <= limit {
            match self.fits_after(disk, u64::from(slots)) {
                Ok(()) => return Some(slots),
                Err(out) => {
                    slots = slots.saturating_add(u32::try_from(out).unwrap_or(u32::MAX).max(1));
                }
            }
        }
        None
    }

    // Whether the demand at hand fits so many slots later; if not, for how many slots it does not.
    fn fits_after(&mut self, disk: usize, slots: u64) -> Result<(), u64> {
        self.demand.shift(slots);
        let fits = self.fits(disk);
        let fits = fits.map(|_| ()).map_err(|shortage| match shortage.resource {
            Resource::Network => 1,
            // What would be standby then is not followed.
            _ if self.standby.is_wanted() => 1,
            _ => self.ruled_out(disk, shortage),
        });
        self.demand.unshift(slots);
        fits
    }

    /// When a booking would fit that is made then, and whether that is certain.
    pub(super) fn earliest_start(&mut self, booking: &mut Booking) -> (Duration, bool) {
        let disk = usize::from(booking.layout.disk.0);
        if self.disks[disk].searches >= MAX_SEARCHES {
            return (self.disks[disk].last_search, false);
        }
        self.disks[disk].searches += 1;
        self.demand_of(booking);
        let booked = earliest_shift(u64::from(SEARCH_SLOTS), |slots| self.fits_after(disk, slots));
        // What would be standby then is not followed.
        let follows = !self.standby.is_wanted();
        let found = booked.filter(|_| follows).and_then(|slots| self.fits_then(disk, slots));
        let slots = found.or(booked).unwrap_or(u64::from(SEARCH_SLOTS));
        let slots = u32::try_from(slots).unwrap_or(SEARCH_SLOTS);
        self.disks[disk].last_search = self.config.slot * slots;
        (self.disks[disk].last_search, found.is_some())
    }

    // The fewest slots from now, not below `from`, after which the demand at hand fits if it comes
    // then.
    fn fits_then(&mut self, disk: usize, from: u64) -> Option<u64> {
        let mut demand = std::mem::take(&mut self.demand);
        let state = &self.disks[disk];
        let policy = self.config.policy.policy();
        let (mut future, mut plan) = (self.future(disk), Plan::default());
        let mut found = None;
        for ahead in 1..from.saturating_add(STARTS_TRIED) {
            if future.reads >= MOST_READS {
                break;
            }
            future.pass_slot();
            if ahead < from {
                continue;
            }
            demand.shift(ahead);
            let now = Moment(self.now.0.saturating_add(nanos(self.config.slot * whole(ahead))));
            let free_at = now.max(future.free);
            let supply = Supply { free_at, ..state.supply(free_at) };
            let fits = policy.verdict(&future.books, &supply, &demand, &mut plan).is_admit();
            let carried = || {
                let Some(rate) = self.config.network else { return true };
                let mut network = self.network.clone();
                network.advance(future.books.current());
                network.verdict(&demand, rate.bytes_in(self.config.slot).0).is_ok()
            };
            let fits = fits && carried();
            demand.unshift(ahead);
            if fits {
                found = Some(ahead);
                break;
            }
        }
        drop(future);
        self.demand = demand;
        found
    }

    // A disk as it is now, and what its streams will want of it.
    fn future(&self, disk: usize) -> Future<'_> {
        let state = &self.disks[disk];
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
            supply: state.supply(self.now),
            counts_time: self.plans(disk),
            free: state.free_at(self.now, &[]),
            books: state.books.clone(),
            held,
            unread,
            queue,
            reads: 0,
        }
    }
}

type Pieces<'a> = Box<dyn Iterator<Item = PieceDue> + 'a>;

// One disk's books while time goes on and nobody comes or leaves.
struct Future<'a> {
    supply: Supply<'a>,
    counts_time: bool,
    /// When the disk has done what it was given.
    free: Moment,
    books: DiskBooks,
    held: BTreeMap<SlotIndex, Vec<PieceDue>>,
    unread: Vec<Peekable<Pieces<'a>>>,
    queue: BinaryHeap<Reverse<(SlotIndex, usize)>>,
    reads: u64,
}

impl Future<'_> {
    /// The slot that is running ends, and the next one's reads are made.
    fn pass_slot(&mut self) {
        let over = self.books.current();
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= over) {
            entry.remove().into_iter().for_each(|piece| self.books.let_go(piece));
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
            match self.supply.facts {
                Facts { costs: Some(costs), .. } if self.counts_time => {
                    let takes = self.supply.facts.charge(costs, reads, transfer);
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
        self.books.take_up(piece);
        self.held.entry(piece.release.max(self.books.current())).or_default().push(piece);
        self.reads += 1;
    }
}

fn whole(slots: u64) -> u32 {
    u32::try_from(slots).unwrap_or(u32::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How far ahead the earliest start is looked for: ten minutes of 500 ms slots.
pub(super) const SEARCH_SLOTS: u32 = 1200;

/// Starts tried for a viewer who comes back, after the first that would fit if it were booked.
const STARTS_TRIED: u64 = 64;

/// Reads of the future that are followed: some milliseconds.
const MOST_READS: u64 = 20_000;

/// Searches per slot and disk: each tries up to seventy starts, some 10 µs each, and follows as many
/// reads as above.
pub(super) const MAX_SEARCHES: u32 = 8;
