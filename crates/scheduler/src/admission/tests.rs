//! The policies beside a slow exhaustive oracle, on fixtures small enough to try every schedule.

use super::*;
use crate::piece::PieceDue;
use crate::{DiskTimings, WriteShare};
use std::collections::BTreeSet;
use units::Moment;

#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    min_read: u32,
    read_size: u64,
    memory: u64,
}

static NOTHING_KNOWN: DiskTimings = DiskTimings {
    costs: None,
    round: None,
    line: None,
    rates: None,
    curve: None,
    observed_min_read: None,
    observed_curve: None,
    slowdown: 0,
    writing: None,
    write_share: WriteShare::NONE,
};

impl Given {
    pub(super) fn supply(self) -> Supply<'static> {
        let Self { min_read, read_size, memory } = self;
        let slot = Duration::from_millis(500);
        let timings = &NOTHING_KNOWN;
        Supply { min_read, read_size, memory, slot, free_at: Moment::ZERO, owed: 0, timings }
    }
}

/// A small fixture: what is booked, what is held, and the candidate.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) supply: Given,
    held: Vec<PieceDue>,
    booked: Vec<PieceDue>,
    candidate: Vec<PieceDue>,
}

impl Fixture {
    pub(super) fn books(&self) -> DiskBooks {
        let mut books = DiskBooks::default();
        for piece in self.held.iter().chain(&self.booked) {
            books.book(*piece);
        }
        self.held.iter().for_each(|piece| books.start_read(*piece));
        books
    }

    pub(super) fn demand(&self) -> Demand {
        let mut demand = Demand::default();
        demand.add_track(self.candidate.iter().copied());
        demand
    }

    fn verdict(&self, kind: PolicyKind) -> Verdict {
        kind.policy().verdict(&self.books(), &self.supply.supply(), &self.demand())
    }

    fn unread(&self) -> Vec<PieceDue> {
        self.booked.iter().chain(&self.candidate).copied().collect()
    }

    fn held_until(&self, slot: u64) -> u64 {
        self.held.iter().filter(|p| p.release.0 >= slot).map(|p| u64::from(p.len)).sum()
    }
}

/// Whether *any* choice of reads, slot by slot, meets every deadline within the memory.
fn feasible(fixture: &Fixture) -> bool {
    let unread = fixture.unread();
    let end = unread.iter().map(|p| p.release.0).max().unwrap_or(0);
    let mut states = BTreeSet::from([0u32]); // bit i: piece i has been read
    for slot in 1..=end {
        let mut after = BTreeSet::new();
        for done in &states {
            for chosen in 0..1u32 << unread.len() {
                if chosen & done != 0 || chosen.count_ones() > fixture.supply.min_read {
                    continue;
                }
                let now = done | chosen;
                let used: u64 = (0..unread.len())
                    .filter(|i| now & 1 << i != 0 && unread[*i].release.0 >= slot)
                    .map(|i| u64::from(unread[i].len))
                    .sum();
                let on_time =
                    (0..unread.len()).all(|i| now & 1 << i != 0 || unread[i].due.0 > slot);
                if on_time
                    && (chosen == 0 || used + fixture.held_until(slot) <= fixture.supply.memory)
                {
                    after.insert(now);
                }
            }
        }
        states = after;
    }
    !states.is_empty()
}

/// What the engine does: earliest due first, `shuffle` among equals, stop at what does not fit.
fn run_meets_deadlines(fixture: &Fixture, shuffle: &mut fastrand::Rng) -> bool {
    let mut unread = fixture.unread();
    shuffle.shuffle(&mut unread);
    unread.sort_by_key(|p| p.due);
    let mut read: Vec<PieceDue> = Vec::new();
    let end = unread.iter().map(|p| p.due.0).max().unwrap_or(0);
    for slot in 1..=end {
        for _ in 0..fixture.supply.min_read {
            let used: u64 =
                read.iter().filter(|p| p.release.0 >= slot).map(|p| u64::from(p.len)).sum();
            let Some(next) = unread.first() else { break };
            let needed = used + fixture.held_until(slot) + u64::from(next.len);
            if next.len > 0 && needed > fixture.supply.memory {
                break;
            }
            read.push(unread.remove(0));
        }
        if unread.iter().any(|p| p.due.0 <= slot) {
            return false;
        }
    }
    true
}

pub(super) fn fixture(random: &mut fastrand::Rng, uniform: bool) -> Fixture {
    let pieces = |random: &mut fastrand::Rng, most: usize| {
        let mut due = 1;
        (0..random.usize(0..=most))
            .map(|_| {
                due += random.u64(0..2);
                let hold = if uniform { 1 } else { random.u64(0..4) };
                let len = if uniform { 4 } else { random.u32(1..=4) };
                PieceDue {
                    piece: 0,
                    due: SlotIndex(due),
                    release: SlotIndex(due + hold),
                    len,
                    transfer: 0,
                    followed_after: None,
                }
            })
            .collect::<Vec<_>>()
    };
    Fixture {
        supply: Given { min_read: random.u32(1..4), read_size: 4, memory: random.u64(4..28) },
        held: pieces(random, 2),
        booked: pieces(random, 4),
        candidate: pieces(random, 4),
    }
}

#[test]
fn vbr_sim_admits_only_what_the_run_then_does_on_time() {
    let (mut admitted, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fixture = fixture(&mut random, false);
        if fixture.verdict(PolicyKind::VbrSim).is_admit() {
            admitted += 1;
            assert!(run_meets_deadlines(&fixture, &mut random), "seed {seed}: {fixture:#?}");
        } else {
            refused += 1;
        }
    }
    assert!(admitted > 2000 && refused > 2000, "both happen: {admitted}, {refused}");
}

#[test]
fn vbr_sim_refuses_only_what_nobody_could_do() {
    let (mut memory, mut disk) = (0, 0);
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fixture = fixture(&mut random, true);
        let feasible = feasible(&fixture);
        match fixture.verdict(PolicyKind::VbrSim) {
            Verdict::Admit { .. } => assert!(feasible, "seed {seed}: {fixture:#?}"),
            Verdict::Refuse(shortage) => {
                assert!(!feasible, "seed {seed}: {shortage:?} {fixture:#?}");
                match shortage.resource {
                    Resource::Memory => memory += 1,
                    _ => disk += 1,
                }
            }
        }
    }
    assert!(memory > 50 && disk > 50, "both run out: {memory}, {disk}");
}

#[test]
fn the_maxima_are_safe_and_accept_less() {
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut fixture = fixture(&mut random, true);
        fixture.held.clear();
        fixture.candidate.append(&mut fixture.booked);
        fixture.candidate.truncate(6);
        fixture.candidate.sort_by_key(|piece| piece.due);
        for kind in [PolicyKind::SimpleMaximum, PolicyKind::InstantaneousMaximum] {
            if fixture.verdict(kind).is_admit() {
                assert!(feasible(&fixture), "seed {seed}: {kind:?} {fixture:#?}");
                assert!(fixture.verdict(PolicyKind::VbrSim).is_admit(), "seed {seed}: {kind:?}");
            }
        }
    }
}

fn piece(due: u64, len: u32) -> PieceDue {
    PieceDue {
        piece: 0,
        due: SlotIndex(due),
        release: SlotIndex(due + 1),
        len,
        transfer: 0,
        followed_after: None,
    }
}

fn alone(pieces: &[PieceDue], supply: Given) -> Fixture {
    Fixture { supply, held: Vec::new(), booked: Vec::new(), candidate: pieces.to_vec() }
}

const PLENTY: Given = Given { min_read: 2, read_size: 4, memory: 1 << 30 };

#[test]
fn the_same_peaks_through_the_eyes_of_each_policy() {
    // Three reads due at once, with time before them to read ahead.
    let peak = [piece(4, 4), piece(4, 4), piece(4, 4)];
    let short = |kind: PolicyKind| match alone(&peak, PLENTY).verdict(kind) {
        Verdict::Admit { slack, .. } => Ok(slack),
        Verdict::Refuse(shortage) => Err((shortage.resource, shortage.slot.0, shortage.missing)),
    };
    assert_eq!(short(PolicyKind::VbrSim), Ok(Slack::Reads(5)), "four slots of two, less three");
    assert_eq!(short(PolicyKind::SimpleMaximum), Err((Resource::Disk, 4, 1)));
    assert_eq!(short(PolicyKind::InstantaneousMaximum), Err((Resource::Disk, 4, 1)));
    assert_eq!(short(PolicyKind::Average), Ok(Slack::Unknown));
    assert_eq!(short(PolicyKind::None), Ok(Slack::Unknown));
}

#[test]
fn absurd_supplies_give_defined_answers() {
    let one = [piece(3, 4)];
    let verdict = |supply| alone(&one, supply).verdict(PolicyKind::VbrSim);
    let short = |supply| match verdict(supply) {
        Verdict::Refuse(shortage) => Some(shortage.resource),
        Verdict::Admit { .. } => None,
    };
    assert_eq!(short(Given { min_read: 0, ..PLENTY }), Some(Resource::Disk));
    assert_eq!(short(Given { memory: 3, ..PLENTY }), Some(Resource::Memory), "less than a read");
    assert_eq!(short(Given { memory: 0, read_size: 0, ..PLENTY }), Some(Resource::Memory));
    let nothing = alone(&[], Given { min_read: 0, read_size: 0, memory: 0 });
    for kind in [PolicyKind::VbrSim, PolicyKind::SimpleMaximum, PolicyKind::Average] {
        assert!(nothing.verdict(kind).is_admit(), "{kind:?}: nothing asked, nothing short");
    }
}

#[test]
fn best_effort_gets_only_reads_that_nobody_will_miss() {
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut fixture = fixture(&mut random, true);
        fixture.candidate.clear();
        if !fixture.verdict(PolicyKind::VbrSim).is_admit() {
            continue;
        }
        // Time passes: the slot that was tested as the next one begins.
        let mut books = fixture.books();
        books.advance(SlotIndex(1));
        let spare = spare_reads(&books, &fixture.supply.supply(), fixture.supply.min_read);
        for _ in 0..spare {
            // Best-effort work is a read due in this slot that holds no buffer.
            fixture.booked.push(PieceDue {
                piece: 0,
                due: SlotIndex(1),
                release: SlotIndex(1),
                len: 0,
                transfer: 0,
                followed_after: None,
            });
        }
        assert!(run_meets_deadlines(&fixture, &mut random), "seed {seed}: {spare} {fixture:#?}");
    }
}

/// Reads of a disk that keeps a curve, slot by slot, as few as it can or more.
fn service(curve: &crate::ServiceCurve, slots: usize, random: &mut fastrand::Rng) -> Vec<u64> {
    let mut done: Vec<u64> = Vec::new();
    for at in 0..slots {
        // Since the beginning of each slot before, it has done at least what the curve says.
        let owed = (0..=at).map(|from| {
            let since: u64 = done[from..].iter().sum();
            curve.least((at + 1 - from) as u64).saturating_sub(since)
        });
        let more = if random.u8(..3) == 0 { random.u64(..3) } else { 0 };
        done.push(owed.max().unwrap_or(0) + more);
    }
    done
}

/// What the engine does when a disk that is busy keeps its curve, and forgets all when it is not.
fn curve_meets_deadlines(
    fixture: &Fixture,
    curve: &crate::ServiceCurve,
    random: &mut fastrand::Rng,
) -> bool {
    let mut unread = fixture.unread();
    random.shuffle(&mut unread);
    unread.sort_by_key(|p| p.due);
    let mut read: Vec<PieceDue> = Vec::new();
    let end = unread.iter().map(|p| p.due.0).max().unwrap_or(0);
    let mut busy = service(curve, 64, random).into_iter();
    for slot in 1..=end {
        let mut left = busy.next().expect("longer than the fixture");
        while left > 0 {
            let used: u64 =
                read.iter().filter(|p| p.release.0 >= slot).map(|p| u64::from(p.len)).sum();
            let Some(next) = unread.first() else { break };
            if used + fixture.held_until(slot) + u64::from(next.len) > fixture.supply.memory {
                break;
            }
            read.push(unread.remove(0));
            left -= 1;
        }
        if left > 0 {
            busy = service(curve, 64, random).into_iter();
        }
        if unread.iter().any(|p| p.due.0 <= slot) {
            return false;
        }
    }
    true
}

fn curve_verdict(fixture: &Fixture, curve: &crate::ServiceCurve) -> Verdict {
    verdict_by(fixture, DiskTimings { curve: Some(curve.clone()), ..DiskTimings::default() })
}

fn verdict_by(fixture: &Fixture, timings: DiskTimings) -> Verdict {
    let supply = Supply { timings: &timings, ..fixture.supply.supply() };
    let policy = PolicyKind::ServiceCurve.policy();
    policy.verdict(&fixture.books(), &supply, &fixture.demand())
}

#[test]
fn a_disk_that_keeps_its_curve_keeps_what_was_admitted_by_it() {
    let (mut admitted, mut refused, mut more) = (0, 0, 0);
    for seed in 0..20_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let uniform = random.bool();
        let fixture = fixture(&mut random, uniform);
        let seen: Vec<u32> = (0..6).map(|_| random.u32(0..5)).collect();
        let curve = crate::ServiceCurve::of_slots([&seen[..]]).unwrap();
        if curve_verdict(&fixture, &curve).is_admit() {
            admitted += 1;
            for _ in 0..4 {
                assert!(
                    curve_meets_deadlines(&fixture, &curve, &mut random),
                    "seed {seed}: {curve:?} {fixture:#?}"
                );
            }
            let least = crate::ServiceCurve::of_guarantee(u32::try_from(curve.least(1)).unwrap());
            more += u32::from(!curve_verdict(&fixture, &least).is_admit());
        } else {
            refused += 1;
        }
    }
    assert!(admitted > 2000 && refused > 2000, "both happen: {admitted}, {refused}");
    assert!(more > 500, "it lets in more than its first number: {more}");
}

#[test]
fn a_curve_is_held_to_what_was_seen_lately() {
    let mut refused = 0;
    for seed in 0..5_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fixture = fixture(&mut random, true);
        let curve = crate::ServiceCurve::of_guarantee(5);
        let mut lately = crate::ObservedCurve::default();
        let slots: Vec<u32> = (0..40).map(|_| random.u32(3..=5)).collect();
        slots.iter().for_each(|reads| lately.slot_ended(*reads, 5));
        let Some(seen) = lately.curve() else { continue };
        let tightened = DiskTimings {
            curve: Some(curve.clone()),
            observed_curve: Some(seen),
            ..DiskTimings::default()
        };
        if verdict_by(&fixture, tightened).is_admit() {
            let done = crate::ServiceCurve::of_slots([&slots[..]]).unwrap();
            assert!(
                curve_meets_deadlines(&fixture, &done, &mut random),
                "seed {seed}: {fixture:#?}"
            );
        } else {
            refused += u32::from(curve_verdict(&fixture, &curve).is_admit());
        }
    }
    assert!(refused > 50, "what was seen refuses some: {refused}");
}

#[test]
fn a_curve_of_one_number_is_vbr_sim() {
    let mut differ = 0;
    for seed in 0..20_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fixture = fixture(&mut random, true);
        let line = crate::ServiceCurve::of_guarantee(fixture.supply.min_read);
        let (by_curve, by_count) = (
            curve_verdict(&fixture, &line).is_admit(),
            fixture.verdict(PolicyKind::VbrSim).is_admit(),
        );
        differ += u32::from(by_curve != by_count);
        let nothing = fixture.verdict(PolicyKind::ServiceCurve);
        assert_eq!(nothing, fixture.verdict(PolicyKind::VbrSim), "without a curve: seed {seed}");
    }
    assert_eq!(differ, 0);
}

/// What is due in the running slot and was not read yet needs its buffer before anything is freed:
/// a newcomer's reserve must leave it.
#[test]
fn rounds_leave_memory_for_what_is_due_in_the_running_slot() {
    let piece = |due, release, len| PieceDue {
        piece: 0,
        due: SlotIndex(due),
        release: SlotIndex(release),
        len,
        transfer: len,
        followed_after: None,
    };
    for (reserve, admits) in [(4, true), (5, false)] {
        for kind in [PolicyKind::Average, PolicyKind::InstantaneousMaximum, PolicyKind::Scan] {
            let supply = Given { min_read: 9, read_size: 4, memory: 12 };
            let now = vec![piece(0, 2, 4)];
            let fixture =
                Fixture { supply, held: vec![piece(0, 0, 4)], booked: now, candidate: Vec::new() };
            let mut demand = fixture.demand();
            demand.reserve = reserve;
            let verdict = kind.policy().verdict(&fixture.books(), &supply.supply(), &demand);
            assert_eq!(verdict.is_admit(), admits, "{kind:?}, {reserve}");
        }
    }
}

#[test]
fn a_demand_within_another_fits_wherever_that_fits() {
    let model = disk::DiskModel::preset("st39183w").unwrap();
    let timings = DiskTimings::of_model(&model, units::ByteCount(1 << 20), 1);
    let (mut fitted, mut refused) = (0, 0);
    for seed in 0..40_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (there, other) = (fixture(&mut random, false), fixture(&mut random, false));
        let (larger, smaller) = (there.demand(), other.demand());
        if smaller.reads() == 0 || !smaller.is_within(&larger) {
            continue;
        }
        for (kind, timings, millis) in
            [(PolicyKind::VbrSim, &NOTHING_KNOWN, 500), (PolicyKind::TimeDomain, &timings, 30)]
        {
            let slot = Duration::from_millis(millis);
            let supply = Supply { timings, slot, ..there.supply.supply() };
            let fits = |demand| {
                let verdict = kind.policy().verdict(&there.books(), &supply, demand);
                matches!(verdict, Verdict::Admit { .. })
            };
            match fits(&larger) {
                true => {
                    fitted += 1;
                    assert!(fits(&smaller), "{kind:?}, seed {seed}: {there:?}, {other:?}");
                }
                false => refused += 1,
            }
        }
    }
    assert!(fitted > 500 && refused > 100, "{fitted} fitted, {refused} refused");
}
