//! What is left of a sweep with the next one behind it, beside the head of a disk that makes the
//! reads in the order of issue.

use disk::{Costs, DiskModel};
use scheduler::{
    Batch, BatchLimit, Dispatcher, NextRead, PathCharge, PieceDue, ReadSource, SlotLoad,
};
use units::{ByteCount, Moment, SlotIndex, nanos};

const LEN: u32 = 1 << 20;

/// One stream for each read: any number of them is due in one slot.
struct Reads<'a> {
    costs: &'a Costs,
    offsets: &'a [u64],
    next: usize,
}

impl Reads<'_> {
    fn piece(&self, number: usize) -> PieceDue {
        let due = SlotIndex(1);
        let transfer = self.costs.transfer(self.offsets[number], LEN.into());
        let transfer = u32::try_from(transfer).expect("a short read");
        PieceDue { piece: 0, due, release: due, len: LEN, transfer, followed_after: None }
    }
}

impl ReadSource for Reads<'_> {
    type Stream = usize;
    type Read = ();

    fn most_urgent(&mut self) -> Option<NextRead<usize>> {
        let offset = *self.offsets.get(self.next)?;
        Some(NextRead { stream: self.next, piece: self.piece(self.next), offset })
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    fn start_read(&mut self, _: &NextRead<usize>) -> Option<()> {
        self.next += 1;
        Some(())
    }
}

fn choose(dispatcher: &mut Dispatcher<usize, ()>, costs: &Costs, offsets: &[u64]) {
    let mut reads = Reads { costs, offsets, next: 0 };
    let batch = Batch::new(BatchLimit::Through(SlotIndex(1))).fill(&mut reads);
    dispatcher.choose(batch, Some(costs));
}

/// The offsets of all chosen reads, in order of issue.
fn issue_all(dispatcher: &mut Dispatcher<usize, ()>) -> Vec<u64> {
    let issued: Vec<u64> = std::iter::from_fn(|| dispatcher.issue()).map(|c| c.offset).collect();
    if let Some(last) = issued.last() {
        dispatcher.head_moves_to(last + u64::from(LEN));
    }
    issued
}

/// At each read of two sweeps, all that is left is done by its charge, and the charge of what is
/// left falls by at least the time that the read took.
#[test]
fn what_is_left_of_two_sweeps_takes_no_longer_than_its_path() {
    let (mut beyond_one_sweep, mut rests) = (0, 0);
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let disks = ["atlas-iv", "st39183w", "st318406lw", "hdd-20tb"];
        let model = DiskModel::preset(disks[random.usize(..disks.len())]).expect("comes along");
        let costs = Costs::of_model(&model, ByteCount(LEN.into()), 4);
        let places = (model.capacity().0 - u64::from(LEN)) / 4096;
        let mut draw = |most: usize| -> Vec<u64> {
            (0..random.usize(1..=most)).map(|_| random.u64(..=places) * 4096).collect()
        };
        let (one, two) = (draw(6), draw(6));
        let mut dispatcher = Dispatcher::<usize, ()>::default();
        choose(&mut dispatcher, &costs, &one);
        let mut order = issue_all(&mut dispatcher);
        choose(&mut dispatcher, &costs, &two);
        let charge = dispatcher.path_of_chosen(&costs, true, |_| false);
        assert_eq!(charge.reads(), two.len() as u64);
        order.extend(issue_all(&mut dispatcher));
        let (mut head, mut now) = (model.head(), Moment(7_654_321));
        let mut ends = Vec::new();
        for offset in &order {
            now = head.serve_turned(now, *offset, LEN.into(), 1.0).finish;
            ends.push(now);
        }
        for left in 1..order.len() {
            let (mut at, mut rest) =
                (Some(order[left - 1] + u64::from(LEN)), PathCharge::default());
            let mut transfer = 0;
            for offset in &order[left..] {
                let takes = costs.transfer(*offset, LEN.into());
                rest += PathCharge::of_read(&costs, at, at, *offset, takes);
                at = Some(offset + u64::from(LEN));
                transfer += takes;
            }
            let took = nanos(now.since(ends[left - 1]));
            let charged = rest.nanos(&costs);
            assert!(took <= charged, "seed {seed}: {left} of {order:?}");
            rests += 1;
            beyond_one_sweep += u32::from(took > costs.batch(rest.reads(), transfer));
        }
    }
    // The bound of one sweep is none for what is left of two.
    assert!(beyond_one_sweep > 50, "{beyond_one_sweep} of {rests} rests");
}

/// The reads of the next sweep are charged from where the last read ends, or from anywhere.
#[test]
fn after_other_work_the_first_read_is_charged_from_anywhere() {
    let model = DiskModel::preset("st39183w").expect("comes along");
    let costs = Costs::of_model(&model, ByteCount(LEN.into()), 1);
    let middle = model.capacity().0 / 2 / 4096 * 4096;
    let mut dispatcher = Dispatcher::<usize, ()>::default();
    dispatcher.head_moves_to(middle);
    choose(&mut dispatcher, &costs, &[middle + 4096]);
    let charge = |dispatcher: &Dispatcher<usize, ()>| {
        dispatcher.path_of_chosen(&costs, false, |_| false).nanos(&costs)
    };
    let near = charge(&dispatcher);
    dispatcher.forget_head();
    assert_eq!(dispatcher.head(), None);
    let transfer = costs.transfer(middle + 4096, LEN.into());
    assert_eq!(charge(&dispatcher), costs.batch(1, transfer), "a read from anywhere");
    assert!(near + costs.unknown_start() < costs.batch(1, transfer), "{near}");
    let left_out = dispatcher.path_of_chosen(&costs, false, |_| true);
    assert_eq!(left_out.nanos(&costs), SlotLoad::default().transfer);
}
