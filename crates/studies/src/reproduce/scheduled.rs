//! Rounds as Tenuto reads them: the dispatcher that the engine runs, on a simulated disk.
//!
//! ```text
//!   streams by the deadline of their next block ─EDF─▶ Batch, as memory allows ─SCAN─▶ disk
//!        ▲                                                                             │
//!        └── buffers: one being sent, one to be sent next, the rest read ahead ◀───────┘
//! ```
//!
//! The slot is a round. The next batch is made as soon as one has ended, from later deadlines if
//! there are no near ones, so that a short round makes up for a long one. Only memory limits the
//! read-ahead. There is no admission: the caller gives the number of streams.

use device::{Direction, SimulatedDisk};
use disk::DiskModel;
use meter::rounds::RoundsPlan;
use scheduler::{Batch, BatchLimit, Dispatcher, NextRead, PieceDue, ReadSource, ReleaseQueue};
use units::{ByteCount, Moment, SlotIndex};

/// The rounds of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Scheduled {
    /// Rounds of which some block came after its strict deadline.
    pub(super) late_rounds: usize,
    /// By round: from the beginning of its slot until its last block was in memory, in seconds;
    /// zero if all were there before.
    pub(super) ends: Vec<f64>,
}

/// Reads as planned, in the dispatcher's order, with so many buffers of a block for each stream.
pub(super) fn scheduled(model: &DiskModel, plan: &RoundsPlan, buffers: u64) -> Scheduled {
    let (disk, slot) = (SimulatedDisk::new(model), plan.round());
    let streams = u32::try_from(plan.starts.len()).expect("few streams");
    let mut rounds = Rounds::new(plan, buffers);
    let mut ended = vec![Moment::ZERO; plan.rounds as usize];
    while !rounds.dispatcher.queue().is_empty() {
        rounds.advance(SlotIndex::at(disk.now(), slot));
        // As many reads as a round has, so that a batch takes no longer than a round of their SCAN.
        let batch = Batch::new(BatchLimit::Reads(streams)).fill(&mut rounds);
        if batch.reads().len() == 0 {
            // Memory is full: nothing is read before the next block has been sent.
            let first = rounds.sent.first().expect("memory is full of something");
            disk.advance_to(first.next().start(slot));
        }
        rounds.dispatcher.choose(batch, None);
        while let Some(block) = rounds.dispatcher.issue() {
            let done =
                disk.ask(Direction::Read, block.read, plan.block.0).expect("the disk is well");
            disk.advance_to(done);
            let round = &mut ended[block.piece.piece as usize];
            *round = done.max(*round);
        }
    }
    let start = |number: usize| SlotIndex(number as u64).start(slot).as_secs_f64();
    // A round whose blocks were read before it began ends at zero.
    let ends =
        ended.iter().enumerate().map(|(number, end)| (end.as_secs_f64() - start(number)).max(0.0));
    let ends: Vec<f64> = ends.collect();
    let late = |end: &&f64| **end > slot.as_secs_f64();
    Scheduled { late_rounds: ends.iter().filter(late).count(), ends }
}

// Streams that read one block in each round; a read is named by its offset.
struct Rounds<'a> {
    plan: &'a RoundsPlan,
    dispatcher: Dispatcher<usize, u64>,
    // Of each stream, where its next block lies.
    places: Vec<u64>,
    memory: u64,
    // Blocks in memory, by the slot in which they are sent.
    sent: ReleaseQueue<PieceDue>,
}

impl<'a> Rounds<'a> {
    fn new(plan: &'a RoundsPlan, buffers: u64) -> Self {
        let mut rounds = Self {
            plan,
            dispatcher: Dispatcher::default(),
            places: plan.starts.clone(),
            memory: plan.starts.len() as u64 * buffers * plan.block.0,
            sent: ReleaseQueue::default(),
        };
        for stream in 0..plan.starts.len() {
            (0..plan.rounds).for_each(|round| rounds.dispatcher.books.book(rounds.block(round)));
            rounds.dispatcher.enqueue(stream, Some(rounds.block(0)));
        }
        rounds
    }

    // The block that a stream needs by the end of slot `round`, and sends in the next.
    fn block(&self, round: u32) -> PieceDue {
        let due = SlotIndex(round.into());
        let len = u32::try_from(self.plan.block.0).expect("a block is one read");
        // No transfer time: this batch is limited by its number of reads, not by disk time.
        PieceDue { piece: round, due, release: due.next(), len, transfer: 0, followed_after: None }
    }

    fn advance(&mut self, current: SlotIndex) {
        if let Some(over) = current.0.checked_sub(1) {
            for (_, block) in self.sent.expired(SlotIndex(over)) {
                self.dispatcher.books.release(block);
            }
        }
        self.dispatcher.advance(current);
    }
}

impl ReadSource for Rounds<'_> {
    type Stream = usize;
    type Read = u64;

    fn most_urgent(&mut self) -> Option<NextRead<usize>> {
        let (due, stream) = self.dispatcher.queue().first()?;
        let piece = self.block(u32::try_from(due.0).expect("few rounds"));
        Some(NextRead { stream, piece, offset: self.places[stream] })
    }

    fn room(&self) -> u64 {
        self.dispatcher.room(self.memory)
    }

    fn start_read(&mut self, next: &NextRead<usize>) -> Option<u64> {
        let round = next.piece.piece + 1;
        let after = (round < self.plan.rounds).then(|| self.block(round));
        self.dispatcher.start_read(next.stream, next.piece, after);
        self.sent.hold(next.piece.release, next.piece);
        self.places[next.stream] = self.plan.after(next.offset);
        Some(next.offset)
    }
}

/// The most streams of which no round in 1,000 is late, and the memory they take.
pub(super) fn most_scheduled(
    model: &DiskModel,
    about: u32,
    buffers: u64,
    plan: impl Fn(u32) -> RoundsPlan,
) -> (u32, ByteCount) {
    let holds = |streams: u32| {
        let plan = RoundsPlan { rounds: 1000, ..plan(streams) };
        scheduled(model, &plan, buffers).late_rounds == 0
    };
    let mut streams = about.max(1);
    while streams > 0 && !holds(streams) {
        streams -= 1;
    }
    while holds(streams + 1) {
        streams += 1;
    }
    (streams, ByteCount(plan(streams).block.0 * u64::from(streams) * buffers))
}
