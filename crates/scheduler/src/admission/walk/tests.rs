//! The quick walks beside one that takes slot after slot.

use super::room::{Plenty, Room};
use super::*;
use crate::admission::PolicyKind;
use crate::demand::PieceDue;
use disk::DiskModel;
use units::{ByteCount, Moment};

const SLOT: Duration = Duration::from_millis(500);

/// A stream whose reads lie one behind the other, but for some.
fn stream(random: &mut fastrand::Rng, slots: u64, transfer: u32) -> Vec<PieceDue> {
    let (every, bursts) = (random.u64(1..9), random.bool());
    let mut due = random.u64(1..slots);
    let end = due + random.u64(1..slots);
    let mut pieces = Vec::new();
    while due < end && pieces.len() < 1000 {
        let next = due + if bursts { random.u64(0..3 * every) } else { every };
        pieces.push(PieceDue {
            piece: 0,
            due: SlotIndex(due),
            release: SlotIndex(due + 3),
            len: 1 << 20,
            transfer: transfer / random.u32(1..4),
            followed_after: random.bool().then(|| u8::try_from(next - due).expect("near")),
        });
        due = next;
    }
    if let Some(last) = pieces.last_mut() {
        last.followed_after = None;
    }
    pieces
}

/// The slow way: each slot by itself.
fn one_by_one(
    walk: &mut Walk,
    slots: &Merged<'_>,
    charge: &impl Charge,
    room: &mut impl Room,
    plan: &mut Plan,
) -> bool {
    (0..slots.count()).all(|ahead| {
        walk.end += walk.slot;
        let slot = slots.pair(ahead);
        let fits = walk.window.swept.bytes + slot.bytes() <= room.most();
        slot.reads() == 0 || (fits && walk.joins(charge, ahead, slot)) || {
            room.take(walk.window.swept.bytes);
            walk.close(plan);
            match room.begins(slots, ahead, walk.free, slot.bytes()) {
                Ok(begins) => walk.open(charge, ahead, slot, begins),
                Err(bytes) => walk.lacks(ahead, bytes),
            }
        }
    })
}

struct Charged<'a>(&'a Facts);

impl Charge for Charged<'_> {
    fn takes(&self, _: u64, swept: Swept) -> u64 {
        let costs = self.0.costs.as_ref().expect("of a model");
        self.0.charge_visits(costs, swept.reads, swept.follows, swept.transfer)
    }
}

/// Books, and somebody at the door.
fn crowd(random: &mut fastrand::Rng, transfer: u32) -> (DiskBooks, Demand) {
    // From few reads a slot to more than a window has.
    let most = [6, 60, 600][random.usize(..3)];
    let streams = random.u32(1..=most);
    let slots = random.u64(30..=if streams > 60 { 60 } else { 400 });
    let mut books = DiskBooks::default();
    for _ in 0..streams {
        stream(random, slots, transfer).into_iter().for_each(|piece| books.book(piece));
    }
    books.advance(SlotIndex(random.u64(0..2)));
    let mut demand = Demand::default();
    demand.begin(books.current());
    demand.add_track(stream(random, slots, transfer).into_iter());
    (books, demand)
}

/// As slow as the disk may be with somebody just let in, in some steps: that is where it matters.
#[test]
fn the_answer_is_that_of_a_walk_that_takes_slot_after_slot() {
    let (mut near, mut quick, mut short) = (0, 0, 0);
    for seed in 0..240 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = DiskModel::presets().swap_remove(random.usize(..DiskModel::presets().len()));
        let mut facts = Facts::of_model(&model, ByteCount::MIB, 4);
        let costs = facts.costs.clone().expect("of a model");
        let transfer = u32::try_from(costs.slowest_transfer(1 << 20)).expect("short");
        let (books, demand) = crowd(&mut random, transfer);
        let free_at = Moment(books.current().start(SLOT).0 + random.u64(0..400_000_000));
        let memory = [8 << 20, 64 << 20, 1 << 30, u64::MAX >> 1][random.usize(..4)];
        let (mut fits, mut too_slow) = (0, 1 << 16);
        while too_slow - fits > 1 {
            facts.behind = u64::midpoint(fits, too_slow);
            let supply = Supply {
                min_read: 1,
                read_size: 1 << 20,
                memory,
                slot: SLOT,
                free_at,
                facts: &facts,
            };
            let (mut plan, mut slow) = (Plan::default(), Plan::default());
            let policy = PolicyKind::TimeDomain.policy();
            let verdict = policy.verdict(&books, &supply, &demand, &mut plan);
            let mut walk = Walk::new(books.current(), 500_000_000, free_at.0);
            if books.overdue().reads > 0 {
                let all = Swept { follows: 0, ..Swept::of(&books.overdue(), Since::NOW) };
                walk.free += Charged(&facts).takes(0, all);
            }
            let (slots, charge) = (Merged::new(&books, &demand), Charged(&facts));
            let used = books.overdue().bytes;
            let expected = if used + books.unread() + demand.bytes() > memory {
                let ends = walk.end + walk.slot;
                let mut memory = Memory::new(memory, used, ends, walk.slot);
                one_by_one(&mut walk, &slots, &charge, &mut memory, &mut slow)
            } else {
                one_by_one(&mut walk, &slots, &charge, &mut Plenty, &mut slow)
            };
            let expected = if expected { walk.admit(&mut slow) } else { walk.refuse() };
            match (verdict, expected) {
                (Verdict::Admit { .. }, Verdict::Admit { .. }) => {
                    quick += u32::from(plan.windows() != slow.windows());
                    fits = facts.behind;
                }
                // The simplest plan of all may do where windows wait for memory.
                (Verdict::Admit { .. }, Verdict::Refuse(_)) if memory < u64::MAX >> 1 => {
                    fits = facts.behind;
                }
                (refused, expected) => {
                    assert_eq!(refused, expected, "seed {seed}, {}", facts.behind);
                    short += u32::from(matches!(
                        refused,
                        Verdict::Refuse(Shortage { resource: Resource::Memory, .. })
                    ));
                    too_slow = facts.behind;
                }
            }
        }
        near += u32::from(fits > 0);
    }
    assert!(near > 100 && quick > 300 && short > 100, "{near} {quick} {short}");
}
