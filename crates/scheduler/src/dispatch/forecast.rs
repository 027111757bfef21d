//! A disk's future by its books: what is read in each slot if the disk does what it is charged for
//! and nothing more, and nobody comes or leaves but those whom the caller admits.
//!
//! ```text
//!   each slot   end_slot    buffers whose time is up are released
//!               read_slot   by reads: minRead of them, while a buffer is free
//!                           by time: sweep after sweep as the plan says, each as long as it is
//!                           charged; a read is issued when the one before it is done
//!   admit       breaks the sweep off: what is not issued is chosen anew
//! ```

use super::Dispatcher;
use super::batch::{Batch, BatchLimit, NextRead, ReadSource};
use super::held::ReleaseQueue;
use crate::admission::Supply;
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::piece::PieceDue;
use crate::windows::WindowPlan;
use std::iter::Peekable;
use std::time::Duration;
use units::Moment;

type Pieces<'a> = Box<dyn Iterator<Item = PieceDue> + 'a>;

/// One disk's books while time passes: the dispatcher without a device.
pub struct Forecast<'a> {
    dispatcher: Dispatcher<usize, ()>,
    streams: Vec<Peekable<Pieces<'a>>>,
    held: ReleaseQueue<PieceDue>,
    free_at: Moment,
    // Whether the disk was idle before `free_at`.
    idle: bool,
    sweep: Option<Sweep>,
    /// Reads made so far.
    pub reads: u64,
    /// Reads that were done after the slot in which they were due.
    pub late: u64,
    /// The most bytes held and reserved at once.
    pub peak_memory: u64,
    /// Whether any stream has read its last piece.
    pub stream_ended: bool,
}

// The sweep under way: what of it has been read takes at most as long as a sweep of just that.
struct Sweep {
    begun: Moment,
    after_pause: bool,
    batch: Batch<usize, ()>,
}

impl<'a> Forecast<'a> {
    /// A disk with these books, which follows `plan` and is busy until `free_at`. Its streams and
    /// buffers are added by [`Forecast::add_stream`] and [`Forecast::hold`].
    pub fn new(books: DiskBooks, plan: WindowPlan, free_at: Moment) -> Self {
        Self {
            dispatcher: Dispatcher { books, plan, ..Dispatcher::default() },
            streams: Vec::new(),
            held: ReleaseQueue::default(),
            free_at,
            idle: true,
            sweep: None,
            reads: 0,
            late: 0,
            peak_memory: 0,
            stream_ended: false,
        }
    }

    /// Adds a stream whose unread pieces are on the books.
    pub fn add_stream(&mut self, pieces: impl Iterator<Item = PieceDue> + 'a) {
        let mut pieces = (Box::new(pieces) as Pieces<'a>).peekable();
        self.dispatcher.enqueue(self.streams.len(), pieces.peek().copied());
        self.stream_ended |= pieces.peek().is_none();
        self.streams.push(pieces);
    }

    /// Adds a buffer that a stream holds by the books.
    pub fn hold(&mut self, piece: PieceDue) {
        self.held.hold(piece.release, piece);
    }

    /// The books as they are now.
    pub fn books(&self) -> &DiskBooks {
        &self.dispatcher.books
    }

    /// When the disk has done what it was given.
    pub fn free_at(&self) -> Moment {
        self.free_at
    }

    /// An admission request was accepted: the sweep under way is broken off, `plan` is followed
    /// from now on, and `demand` is booked. Its streams are to be added.
    pub fn admit(&mut self, plan: WindowPlan, demand: &Demand, slot: Duration) {
        // The new plan covers everything that is unread now, the rest of this sweep included.
        self.end_sweep(slot);
        self.dispatcher.follow(plan);
        let books = &mut self.dispatcher.books;
        books.book_demand(demand);
        books.book_summary(demand.summary());
        books.reserve(demand.reserve);
    }

    /// Keeps `bytes` more beside the schedule.
    pub fn reserve(&mut self, bytes: u64) {
        self.dispatcher.books.reserve(bytes);
    }

    /// Keeps `bytes` fewer beside the schedule.
    pub fn unreserve(&mut self, bytes: u64) {
        self.dispatcher.books.unreserve(bytes);
    }

    /// The current slot ends: buffers whose time is up are released, the next slot is current.
    pub fn end_slot(&mut self) {
        let over = self.dispatcher.books.current();
        // Released at the end of this slot, so the next slot's reads find the memory free.
        for (_, piece) in self.held.expired(over) {
            self.dispatcher.books.release(piece);
        }
        self.dispatcher.advance(over.next());
    }

    /// The current slot's reads on a disk that is counted in reads.
    pub fn read_by_count(&mut self, supply: &Supply<'_>) {
        let mut batch = Batch::new(BatchLimit::Reads(supply.min_read.saturating_sub(supply.owed)));
        while batch.take_next(&mut self.source(supply.memory)) {}
        let current = self.dispatcher.books.current();
        let late = batch.reads().filter(|read| read.piece.due < current);
        self.late += late.count() as u64;
    }

    /// The current slot's reads on a disk whose time is counted: those that are issued before it
    /// ends. `supply.free_at` is not looked at.
    pub fn read_by_plan(&mut self, supply: &Supply<'_>) {
        let current = self.dispatcher.books.current();
        // Time in which the disk was idle cannot be used afterwards.
        let begins = current.start(supply.slot);
        self.idle |= self.free_at < begins;
        self.free_at = self.free_at.max(begins);
        while self.free_at < current.next().start(supply.slot) {
            let mut sweep = match self.sweep.take() {
                Some(sweep) => sweep,
                None => {
                    let supply = Supply { free_at: self.free_at, ..*supply };
                    let Some(limit) = self.dispatcher.next_sweep(&supply) else { return };
                    let after_pause = std::mem::take(&mut self.idle);
                    Sweep { begun: self.free_at, after_pause, batch: Batch::new(limit) }
                }
            };
            let taken = sweep.batch.take_next(&mut self.source(supply.memory));
            if taken {
                // Charged as one sweep of all reads so far: less than the sum of single reads'
                // charges.
                let charge = sweep.batch.charge();
                let takes = match sweep.after_pause {
                    true => charge.slowed_nanos(supply.timings),
                    false => charge.without_pause(supply.timings),
                };
                let takes = supply.timings.beside_writes(takes);
                self.free_at = sweep.begun + Duration::from_nanos(takes);
                self.sweep = Some(sweep);
            } else if sweep.batch.charge().reads == 0 {
                // No buffer is free before a slot ends.
                return;
            } else {
                self.sweep = Some(sweep);
                self.end_sweep(supply.slot);
            }
        }
    }

    fn end_sweep(&mut self, slot: Duration) {
        let Some(Sweep { batch, .. }) = self.sweep.take() else { return };
        let deadline = batch.first_due().map(|due| due.next().start(slot));
        if deadline.is_some_and(|deadline| self.free_at > deadline) {
            // The order of issue is not simulated, so all reads of a late sweep count as late.
            self.late += batch.charge().reads;
        }
    }

    fn source(&mut self, memory: u64) -> Source<'_, 'a> {
        Source { forecast: self, memory }
    }
}

struct Source<'f, 'a> {
    forecast: &'f mut Forecast<'a>,
    memory: u64,
}

impl ReadSource for Source<'_, '_> {
    type Stream = usize;
    type Read = ();

    fn most_urgent(&mut self) -> Option<NextRead<usize>> {
        let (_, stream) = self.forecast.dispatcher.queue.first()?;
        let piece = *self.forecast.streams[stream].peek()?;
        // The order of issue does not matter to what a sweep is charged.
        Some(NextRead { stream, piece, offset: 0 })
    }

    fn room(&self) -> u64 {
        self.forecast.dispatcher.room(self.memory)
    }

    fn start_read(&mut self, next: &NextRead<usize>) -> Option<()> {
        let Forecast { dispatcher, streams, .. } = &mut *self.forecast;
        let pieces = &mut streams[next.stream];
        pieces.next();
        let after = pieces.peek().copied();
        dispatcher.start_read(next.stream, next.piece, after);
        let current = dispatcher.books.current();
        let used = dispatcher.books.held() + dispatcher.books.reserved();
        let forecast = &mut *self.forecast;
        // An overdue piece may be past its release slot: its buffer is held to the end of this
        // slot.
        forecast.held.hold(next.piece.release.max(current), next.piece);
        forecast.peak_memory = forecast.peak_memory.max(used);
        forecast.stream_ended |= after.is_none();
        forecast.reads += 1;
        Some(())
    }
}
