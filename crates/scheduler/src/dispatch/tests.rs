//! Reads in, order of issue out; and the rule written once more, slowly.

use super::*;
use disk::DiskModel;
use units::ByteCount;

const LEN: u32 = 100;

fn read(piece: u32, due: u64, sequential: bool) -> PieceDue {
    let due = SlotIndex(due);
    let followed_after = sequential.then_some(1);
    PieceDue { piece, due, release: due.next(), len: LEN, transfer: 7, followed_after }
}

/// Streams with their reads and places; a read is named by its stream and piece.
#[derive(Clone)]
struct Streams {
    reads: Vec<Vec<(PieceDue, u64)>>,
    next: Vec<usize>,
    room: u64,
}

impl Streams {
    /// For each stream: when its pieces are due and where they lie. Pieces that lie one behind the
    /// other are sequential.
    fn new(streams: &[&[(u64, u64)]], room: u64) -> Self {
        let pieces = |stream: &&[(u64, u64)]| {
            let followed = |i: usize| stream.get(i + 1).map(|next| next.1);
            let piece = |(i, (due, offset)): (usize, &(u64, u64))| {
                let sequential = followed(i) == Some(offset + u64::from(LEN));
                (read(u32::try_from(i).unwrap(), *due, sequential), *offset)
            };
            stream.iter().enumerate().map(piece).collect()
        };
        Self { reads: streams.iter().map(pieces).collect(), next: vec![0; streams.len()], room }
    }
}

impl ReadSource for Streams {
    type Stream = usize;
    type Read = String;

    fn most_urgent(&mut self) -> Option<NextRead<usize>> {
        let next = |stream: usize| self.reads[stream].get(self.next[stream]).copied();
        let reads = (0..self.reads.len()).filter_map(|stream| Some((stream, next(stream)?)));
        let (stream, (piece, offset)) = reads.min_by_key(|(stream, read)| (read.0.due, *stream))?;
        Some(NextRead { stream, piece, offset })
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn start_read(&mut self, next: &NextRead<usize>) -> Option<String> {
        self.room -= u64::from(next.piece.len);
        self.next[next.stream] += 1;
        Some(format!("{}.{}", next.stream, next.piece.piece))
    }
}

fn issued(batch: Batch<usize, String>, direction: ScanDirection) -> String {
    batch.in_order(direction).map(|chosen| chosen.read).collect::<Vec<_>>().join(" ")
}

#[test]
fn chosen_by_deadline_issued_by_place() {
    let streams = Streams::new(&[&[(7, 500)], &[(9, 0)], &[(3, 900), (4, 1000)], &[(8, 200)]], 900);
    let batch = |limit| Batch::new(limit).fill(&mut streams.clone());
    let four = batch(BatchLimit::Reads(4));
    assert_eq!(issued(four.clone(), ScanDirection::Outward), "3.0 0.0 2.0 2.1", "1.0 is due later");
    assert_eq!(issued(four, ScanDirection::Inward), "2.1 2.0 0.0 3.0", "each by itself");
    let through = batch(BatchLimit::Through(SlotIndex(7)));
    assert_eq!(issued(through, ScanDirection::Inward), "2.0 2.1 0.0", "a visit stays in order");
    let whole = batch(BatchLimit::WholeVisits(1));
    assert_eq!(issued(whole, ScanDirection::Inward), "2.0", "2.1 is due in another slot");
}

#[test]
fn small_blocks_that_are_neighbours_are_read_in_one_visit() {
    let mut streams = Streams::new(&[&[(1, 300), (1, 200)], &[(1, 400)], &[(1, 0)]], 900);
    let batch = Batch::new(BatchLimit::WholeVisits(4)).fill(&mut streams);
    assert_eq!(issued(batch.clone(), ScanDirection::Outward), "2.0 0.1 0.0 1.0");
    assert_eq!(issued(batch, ScanDirection::Inward), "0.1 0.0 1.0 2.0");
}

#[test]
fn the_first_read_that_does_not_fit_closes_a_batch() {
    let mut streams = Streams::new(&[&[(1, 0)], &[(2, 500)], &[(3, 900)]], 150);
    let mut batch = Batch::new(BatchLimit::Through(SlotIndex(9)));
    assert!(batch.take_next(&mut streams) && !batch.take_next(&mut streams));
    streams.room = 1000;
    assert!(!batch.take_next(&mut streams), "it stays closed");
    assert_eq!(batch.reads().len(), 1);
    let none = Batch::new(BatchLimit::Reads(0)).fill(&mut streams);
    assert_eq!((none.charge(), none.span()), (SweepCharge::default(), None));
}

#[test]
fn reads_that_go_on_where_one_ends_are_charged_no_positioning() {
    let mut streams = Streams::new(&[&[(1, 0), (1, 100), (2, 300), (2, 400)], &[(1, 200)]], 10_000);
    let batch = Batch::new(BatchLimit::Through(SlotIndex(2))).fill(&mut streams);
    let charge = SweepCharge { reads: 5, sequential: 2, transfer: 35 };
    assert_eq!((batch.charge(), batch.span()), (charge, Some((0, 300))));
    assert_eq!(issued(batch, ScanDirection::Inward), "0.2 0.3 1.0 0.0 0.1");
    // A piece between that was found in memory ends the run.
    let mut gap = Streams::new(&[&[(1, 0), (1, 100), (1, 200)]], 10_000);
    let mut batch = Batch::new(BatchLimit::Through(SlotIndex(2)));
    assert!(batch.take_next(&mut gap));
    gap.next[0] = 2;
    assert_eq!(batch.fill(&mut gap).charge().sequential, 0);
}

#[test]
fn a_pass_begins_with_the_end_that_is_nearer_to_the_head() {
    let model = DiskModel::preset("st39183w").unwrap();
    let costs = Costs::of_model(&model, ByteCount(1 << 20), 1);
    let end = model.capacity().0;
    let from = |head| ScanDirection::from_nearer_end(&costs, head, end / 10, end / 2);
    assert_eq!((from(0), from(end)), (ScanDirection::Outward, ScanDirection::Inward));
    let mut dispatcher = Dispatcher::<usize, String>::default();
    dispatcher.head_moves_to(end);
    let mut streams = Streams::new(&[&[(1, end / 10)], &[(2, end / 2)]], 1000);
    let batch = Batch::new(BatchLimit::Through(SlotIndex(2))).fill(&mut streams);
    dispatcher.choose(batch, Some(&costs));
    let order: Vec<String> = std::iter::from_fn(|| dispatcher.issue()).map(|c| c.read).collect();
    assert_eq!(order, ["1.0", "0.0"]);
}

/// By the rule of the module's header, without any of its structures.
#[test]
fn a_batch_is_what_the_rule_says() {
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let stream = |_| {
            let mut offset = random.u64(0..50) * 100;
            let mut due = random.u64(0..4);
            let pieces = random.usize(0..6);
            let mut piece = || {
                offset = if random.bool() { offset + 100 } else { random.u64(0..50) * 100 };
                due += random.u64(0..3);
                (due, offset)
            };
            (0..pieces).map(|_| piece()).collect::<Vec<_>>()
        };
        let drawn: Vec<Vec<(u64, u64)>> = (0..5).map(stream).collect();
        let drawn: Vec<&[(u64, u64)]> = drawn.iter().map(Vec::as_slice).collect();
        let streams = Streams::new(&drawn, random.u64(0..20) * 100);
        let through = random.u64(0..8);
        let batch = Batch::new(BatchLimit::Through(SlotIndex(through))).fill(&mut streams.clone());

        let mut all: Vec<(u64, usize, u32, u64)> = Vec::new();
        for (number, stream) in drawn.iter().enumerate() {
            let reads = stream.iter().zip(0..).map(|((due, at), piece)| (*due, number, piece, *at));
            all.extend(reads.filter(|read| read.0 <= through));
        }
        all.sort_unstable();
        all.truncate(usize::try_from(streams.room / 100).unwrap());
        let mut visits: Vec<Vec<(u64, usize, u32, u64)>> = Vec::new();
        for read in all {
            let goes_on = |visit: &&mut Vec<_>| {
                let last: &(u64, usize, u32, u64) = visit.last().unwrap();
                last.1 == read.1 && last.2 + 1 == read.2 && last.3 + 100 == read.3
            };
            match visits.iter_mut().find(goes_on) {
                Some(visit) => visit.push(read),
                None => visits.push(vec![read]),
            }
        }
        let reads: usize = visits.iter().map(Vec::len).sum();
        let sequential = (reads - visits.len()) as u64;
        assert_eq!(batch.charge().sequential, sequential, "seed {seed}: {drawn:?}");
        visits.sort_by_key(|visit| visit[0].3);
        let text = |visits: &[Vec<(u64, usize, u32, u64)>]| {
            let reads = visits.iter().flatten().map(|read| format!("{}.{}", read.1, read.2));
            reads.collect::<Vec<_>>().join(" ")
        };
        let outward = issued(batch.clone(), ScanDirection::Outward);
        assert_eq!(outward, text(&visits), "seed {seed}: {drawn:?}");
        visits.reverse();
        assert_eq!(issued(batch, ScanDirection::Inward), text(&visits), "seed {seed}: {drawn:?}");
    }
}

#[test]
fn a_read_holds_its_buffer_until_it_is_undone_or_released() {
    let pieces: Vec<PieceDue> = (0..3).map(|piece| read(piece, piece.into(), false)).collect();
    let mut dispatcher = Dispatcher::<usize, u32>::default();
    pieces.iter().for_each(|piece| dispatcher.books.book(*piece));
    dispatcher.enqueue(0, Some(pieces[0]));
    dispatcher.start_read(0, pieces[0], Some(pieces[1]));
    dispatcher.start_read(0, pieces[1], Some(pieces[2]));
    assert_eq!((dispatcher.room(1000), dispatcher.queue().first()), (800, Some((SlotIndex(2), 0))));
    dispatcher.undo_read(0, pieces[1], Some(pieces[2]));
    assert_eq!((dispatcher.room(1000), dispatcher.queue().first()), (900, Some((SlotIndex(1), 0))));

    let mut held = ReleaseQueue::default();
    for (slot, name) in [(3, 'c'), (1, 'a'), (2, 'b')] {
        held.hold(SlotIndex(slot), name);
    }
    let expired: Vec<_> = held.expired(SlotIndex(2)).collect();
    assert_eq!(expired, [(SlotIndex(1), 'a'), (SlotIndex(2), 'b')]);
    assert_eq!((held.first(), held.is_empty()), (Some(SlotIndex(3)), false));
}
