//! The quick walks beside one that takes slot after slot.

use super::memory::{MemoryModel, UnlimitedMemory};
use super::*;
use crate::admission::{EXACT_TESTS, PolicyKind, earliest_shift};
use crate::piece::PieceDue;
use disk::DiskModel;
use units::{ByteCount, Moment, SlotIndex};

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
    walk: &mut Schedule,
    slots: &Merged<'_>,
    charge: &impl Charge,
    memory: &mut impl MemoryModel,
    plan: &mut WindowPlan,
) -> bool {
    (0..slots.count()).all(|ahead| {
        walk.end += walk.slot;
        let slot = slots.pair(ahead);
        let fits = walk.window.swept.bytes + slot.bytes() <= memory.most();
        slot.reads() == 0 || (fits && walk.joins(charge, ahead, slot)) || {
            memory.take(walk.window.swept.bytes);
            walk.close(plan);
            match memory.begins(slots, ahead, walk.free, slot.bytes()) {
                Ok(begins) => walk.open(charge, ahead, slot, begins),
                Err(bytes) => walk.lacks(ahead, bytes),
            }
        }
    })
}

struct Charged<'a>(&'a DiskTimings);

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

fn windows(verdict: &Verdict) -> &[(SlotIndex, SlotIndex)] {
    match verdict {
        Verdict::Admit { plan, .. } => plan.windows(),
        Verdict::Refuse(_) => &[],
    }
}

/// As slow as the disk may be with somebody just let in, in some steps: that is where it matters.
#[test]
fn the_answer_is_that_of_a_walk_that_takes_slot_after_slot() {
    let (mut near, mut quick, mut short, mut simple, mut tight) = (0, 0, 0, 0, 0);
    for seed in 0..240 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = DiskModel::presets().swap_remove(random.usize(..DiskModel::presets().len()));
        let mut timings = DiskTimings::of_model(&model, ByteCount::MIB, 4);
        let costs = timings.costs.clone().expect("of a model");
        let transfer = u32::try_from(costs.slowest_transfer(1 << 20)).expect("short");
        let (books, demand) = crowd(&mut random, transfer);
        let free_at = Moment(books.current().start(SLOT).0 + random.u64(0..400_000_000));
        let memory = [8 << 20, 64 << 20, 1 << 30, u64::MAX >> 1][random.usize(..4)];
        let (mut fits, mut too_slow) = (0, 1 << 16);
        while too_slow - fits > 1 {
            timings.slowdown = u64::midpoint(fits, too_slow);
            let supply = Supply {
                min_read: 1,
                read_size: 1 << 20,
                memory,
                slot: SLOT,
                free_at,
                owed: 0,
                timings: &timings,
            };
            let mut slow = WindowPlan::default();
            let policy = PolicyKind::TimeDomain.policy();
            let verdict = policy.verdict(&books, &supply, &demand);
            let mut walk = Schedule::new(books.current(), 500_000_000, free_at.0);
            if books.overdue().reads > 0 {
                let all = Swept { follows: 0, ..Swept::of(&books.overdue(), Since::NOW) };
                walk.free += Charged(&timings).takes(0, all);
            }
            let (slots, charge) = (Merged::new(&books, &demand), Charged(&timings));
            let used = books.overdue().bytes;
            let binds = used + books.unread() + demand.bytes() > memory;
            let simplest =
                binds.then(|| each_slot_by_itself(&walk, &slots, &timings, used, memory));
            let expected = if let Some(slack) = simplest.flatten() {
                simple += 1;
                admit(WindowPlan::default(), slack)
            } else {
                let on_time = if binds {
                    let ends = walk.end + walk.slot;
                    let mut memory = LimitedMemory::new(memory, used, ends, walk.slot);
                    one_by_one(&mut walk, &slots, &charge, &mut memory, &mut slow)
                } else {
                    one_by_one(&mut walk, &slots, &charge, &mut UnlimitedMemory, &mut slow)
                };
                if on_time {
                    walk.close(&mut slow);
                    admit(slow, walk.slack)
                } else {
                    walk.refuse()
                }
            };
            // By the line, slots are windows of their own that the slow walk puts together.
            let by_line = verdict.is_admit() && windows(&verdict) != windows(&expected);
            if !by_line || simplest.flatten().is_some() {
                assert_eq!(verdict, expected, "seed {seed}, {}", timings.slowdown);
            }
            match verdict {
                Verdict::Admit { .. } => {
                    quick += u32::from(by_line);
                    tight += u32::from(binds && simplest.flatten().is_none());
                    fits = timings.slowdown;
                }
                Verdict::Refuse(Shortage { resource, .. }) => {
                    short += u32::from(resource == Resource::Memory);
                    too_slow = timings.slowdown;
                }
            }
        }
        near += u32::from(fits > 0);
    }
    assert!(near > 100 && quick > 300 && short > 100, "{near} {quick} {short}");
    assert!(simple > 100 && tight > 100, "memory short: {simple} {tight}");
}

/// The simplest plan, the slow way: the least time to spare, if it does.
fn each_slot_by_itself(
    walk: &Schedule,
    slots: &Merged<'_>,
    timings: &DiskTimings,
    mut used: u64,
    memory: u64,
) -> Option<u64> {
    let costs = timings.costs.as_ref().expect("of a model");
    let (mut free, mut slack) = (walk.free, u64::MAX);
    for ahead in 0..slots.len() {
        let load = slots.at(ahead);
        let begins = walk.end + ahead * walk.slot;
        used += load.bytes;
        if load.reads > 0 {
            let takes = costs.positioning_of_sweeps(1, load.reads.into()) + load.transfer;
            free = free.max(begins) + takes + ((takes * timings.slowdown) >> 10);
            let ends = begins + walk.slot;
            if free > ends || used > memory {
                return None;
            }
            slack = slack.min(ends - free);
        }
        used = used.saturating_sub(load.freed);
    }
    Some(slack)
}

/// On disks that are full but for a little, with a newcomer that wants more than there is.
#[test]
fn no_start_that_is_ruled_out_would_have_fitted() {
    let (mut refused, mut out, mut crowded, mut told) = (0, 0, 0, 0);
    for seed in 0..540 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = DiskModel::presets().swap_remove(random.usize(..DiskModel::presets().len()));
        let mut timings = DiskTimings::of_model(&model, ByteCount::MIB, 4);
        let costs = timings.costs.clone().expect("of a model");
        let transfer = u32::try_from(costs.slowest_transfer(1 << 20)).expect("short");
        let (mut books, mut demand) = crowd(&mut random, transfer);
        // Some slots are so full that no two of them fit into a window; often all from some slot
        // on.
        let full = random.u64(0..20)..random.u64(20..80);
        let now = books.current();
        for slot in full.map(|slot| now + slot) {
            for _ in 0..random.u32(100..240) {
                books.book(PieceDue {
                    piece: 0,
                    due: slot,
                    release: slot,
                    len: 1 << 20,
                    transfer: transfer / random.u32(1..4),
                    followed_after: None,
                });
            }
        }
        let kind = [PolicyKind::TimeDomain, PolicyKind::Rates][random.usize(..2)];
        let policy = kind.policy();
        let decide = |timings: &DiskTimings, demand: &Demand| {
            let supply = Supply {
                min_read: 1,
                read_size: 1 << 20,
                memory: u64::MAX >> 1,
                slot: SLOT,
                free_at: books.current().start(SLOT),
                owed: 0,
                timings,
            };
            match policy.verdict(&books, &supply, demand) {
                Verdict::Admit { .. } => Ok(()),
                Verdict::Refuse(short) => Err(policy.ruled_out(&books, &supply, demand, short)),
            }
        };
        let (mut fits, mut too_slow) = (0, 1 << 16);
        while too_slow - fits > 1 {
            timings.slowdown = u64::midpoint(fits, too_slow);
            let in_time = decide(&timings, &demand).is_ok();
            *(if in_time { &mut fits } else { &mut too_slow }) = timings.slowdown;
        }
        for slowdown in [too_slow, too_slow + too_slow / 50 + 1, too_slow + too_slow / 5 + 2] {
            timings.slowdown = slowdown;
            let Err(slots) = decide(&timings, &demand) else { continue };
            refused += 1;
            out += slots.min(60) - 1;
            let most = books.ahead_of_now().iter().map(|load| load.reads).max().unwrap_or(0);
            let crowd = u64::from(most) > crate::windows::MOST_READS / 2;
            crowded += u32::from(crowd && slots > 1);
            let mut after = |later| {
                demand.shift(later);
                let answer = decide(&timings, &demand);
                demand.unshift(later);
                answer
            };
            let first = (1..=60).find(|later| after(*later).is_ok());
            assert!(first.is_none_or(|first| first >= slots), "seed {seed}: {slots} {first:?}");
            let mut tests = 0;
            let found = earliest_shift(60, |later| {
                tests += 1;
                after(later)
            });
            if tests <= EXACT_TESTS {
                assert_eq!(found, first, "seed {seed}");
                told += u32::from(crowd);
            }
        }
    }
    assert!(refused > 300 && out > 500 && crowded > 20, "{refused} {out} {crowded}");
    assert!(told > 60, "{told}");
}
