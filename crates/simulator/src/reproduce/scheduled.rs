//! Rounds as Tenuto reads them: the very batches of [`scheduler`], on a simulated disk.
//!
//! ```text
//!   streams by the deadline of their next block ─EDF─▶ Batch, as memory allows ─SCAN─▶ disk
//!        ▲                                                                             │
//!        └── buffers: one being sent, one to be sent next, the rest read ahead ◀───────┘
//! ```
//!
//! The slot is a round. When a batch is over the next one is made at once, from later deadlines if
//! there are no near ones: what a lucky round leaves over pays for an unlucky one. Only memory
//! stops it. Admission is left out: the caller says how many streams there are.

use device::SimulatedDisk;
use disk::DiskModel;
use meter::rounds::Plan;
use scheduler::{Batch, EdfQueue, Sweep};
use std::collections::VecDeque;
use units::{ByteCount, Moment, SlotIndex};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scheduled {
    /// Rounds of which some block came after its strict deadline.
    pub(super) late_rounds: usize,
    /// By round: from the beginning of its slot until its last block was in memory, in seconds;
    /// zero if all were there before.
    pub(super) ends: Vec<f64>,
}

/// Reads as planned, in the scheduler's order, with so many buffers of a block for each stream.
pub(super) fn scheduled(model: &DiskModel, plan: &Plan, buffers: u64) -> Scheduled {
    let (disk, slot, block) = (SimulatedDisk::new(model), plan.round(), plan.block.0);
    let mut places = plan.starts.clone();
    let mut queue = EdfQueue::default();
    for stream in 0..places.len() {
        queue.insert(SlotIndex(0), stream);
    }
    let mut room = places.len() as u64 * buffers * block;
    // Deadlines of what is in memory. The block of slot k is sent during slot k + 1.
    let mut held: VecDeque<SlotIndex> = VecDeque::new();
    let mut sweep = Sweep::default();
    let mut ended = vec![Moment::ZERO; plan.rounds as usize];
    while !queue.is_empty() {
        while held.front().is_some_and(|due| due.next().next().start(slot) <= disk.now()) {
            held.pop_front();
            room += block;
        }
        let mut batch = Batch::new(u32::try_from(places.len()).expect("few streams"));
        while let Some((due, stream)) = queue.first()
            && batch.fits(block, room)
        {
            queue.remove(due, stream);
            room -= block;
            batch.take(places[stream], (due, stream));
        }
        let mut reads = batch.in_order(sweep).peekable();
        sweep = sweep.turned();
        if reads.peek().is_none() {
            let first = held.front().expect("memory is full of something");
            disk.advance_to(first.next().next().start(slot));
        }
        for (due, stream) in reads {
            let done = disk.ask(places[stream], block).expect("the disk is well");
            disk.advance_to(done);
            places[stream] = plan.after(places[stream]);
            let number = usize::try_from(due.0).expect("few rounds");
            ended[number] = ended[number].max(done);
            let place = held.partition_point(|earlier| *earlier <= due);
            held.insert(place, due);
            if number + 1 < ended.len() {
                queue.insert(due.next(), stream);
            }
        }
    }
    let start = |number: usize| SlotIndex(number as u64).start(slot).as_secs_f64();
    let ends =
        ended.iter().enumerate().map(|(number, end)| (end.as_secs_f64() - start(number)).max(0.0));
    let ends: Vec<f64> = ends.collect();
    let late = |end: &&f64| **end > slot.as_secs_f64();
    Scheduled { late_rounds: ends.iter().filter(late).count(), ends }
}

/// The most streams of which no round in 1,000 is late, and the memory they take.
pub(super) fn most_scheduled(
    model: &DiskModel,
    about: u32,
    buffers: u64,
    plan: impl Fn(u32) -> Plan,
) -> (u32, ByteCount) {
    let holds = |streams: u32| {
        let plan = Plan { rounds: 1000, ..plan(streams) };
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
