//! Admission by disk time, by all policies that guarantee, beside runs on disks that take any time
//! up to what they are charged, and beside an oracle that tries every way of cutting a schedule
//! into windows.

use disk::{Costs, DiskModel};
use scheduler::admission::{EXACT_TESTS, earliest_shift};
use scheduler::{
    Demand, DiskBooks, DiskTimings, NextSweep, PieceDue, PolicyKind, Resource, Shortage, Slack,
    SlotLoad, Supply, Verdict, WindowPlan, WriteShare, WriteTokens,
};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex, nanos};

const SLOT: Duration = Duration::from_millis(500);

fn timings() -> DiskTimings {
    let model = DiskModel::preset("st39183w").expect("comes along");
    DiskTimings::of_model(&model, ByteCount::MIB, 1)
}

fn costs(timings: &DiskTimings) -> &Costs {
    timings.costs.as_ref().expect("made above")
}

type Key = (u32, u32);

/// A server with a disk that keeps its model, and nothing else.
struct Fixture {
    policy: PolicyKind,
    timings: DiskTimings,
    memory: u64,
    now: u64,
    books: DiskBooks,
    plan: WindowPlan,
    unread: BTreeMap<Key, PieceDue>,
    held: BTreeMap<Key, PieceDue>,
    /// The batch that is being read: what is not in the device yet, and the time left to it.
    batch: Vec<Key>,
    budget: u64,
    /// Every read takes all that it may.
    worst: bool,
    /// The read or write in the device: its end, and when it is certainly done.
    reading: Option<(u64, u64)>,
    /// The least slack of the decisions since each stream is in.
    promised: BTreeMap<u32, u64>,
    reads: u64,
    /// Reads of these that were sequential to the one before.
    follows: u64,
    /// Writes are made when their tokens are there, at any moment.
    tokens: WriteTokens,
    writes: u64,
}

impl Fixture {
    fn new(policy: PolicyKind, timings: &DiskTimings, memory: u64) -> Self {
        Self {
            policy,
            timings: timings.clone(),
            memory,
            now: 0,
            books: DiskBooks::default(),
            plan: WindowPlan::default(),
            unread: BTreeMap::new(),
            held: BTreeMap::new(),
            batch: Vec::new(),
            budget: 0,
            worst: false,
            reading: None,
            promised: BTreeMap::new(),
            reads: 0,
            follows: 0,
            tokens: WriteTokens::default(),
            writes: 0,
        }
    }

    fn supply(&self) -> Supply<'_> {
        let busy = self.reading.map_or(0, |(_, bound)| bound - self.now);
        let ahead = busy + self.tokens.left(Moment(self.now));
        Supply {
            min_read: 1,
            read_size: 1 << 20,
            memory: self.memory,
            slot: SLOT,
            free_at: Moment(self.now + self.timings.beside_writes(ahead)),
            owed: 0,
            timings: &self.timings,
        }
    }

    fn admit(&mut self, stream: u32, pieces: &[PieceDue]) -> Verdict {
        let mut demand = Demand::default();
        demand.begin(self.books.current());
        demand.add_track(pieces.iter().copied());
        let verdict = self.decide(&demand);
        if let Verdict::Admit { slack, .. } = &verdict {
            if let Slack::Time(slack) = slack {
                self.promised.insert(stream, nanos(*slack));
            }
            self.books.book_demand(&demand);
            for piece in pieces {
                self.unread.insert((stream, piece.piece), *piece);
            }
        }
        verdict
    }

    fn decide(&mut self, demand: &Demand) -> Verdict {
        let verdict = self.policy.policy().verdict(&self.books, &self.supply(), demand);
        if let Verdict::Admit { slack, plan } = &verdict {
            if let Slack::Time(slack) = slack {
                let slack = nanos(*slack);
                self.promised.values_mut().for_each(|promised| *promised = slack.min(*promised));
            }
            self.plan.clone_from(plan);
            self.batch.clear();
        }
        verdict
    }

    /// Keeps another part of the disk for writes, if all who are in are still on time.
    fn keep_for_writes(&mut self, share: WriteShare) -> bool {
        let (timings, tokens) = (self.timings.clone(), self.tokens);
        self.tokens.set_share(Moment(self.now), share);
        self.timings.write_share = share;
        let mut demand = Demand::default();
        demand.begin(self.books.current());
        let fits = self.decide(&demand).is_admit();
        if !fits {
            (self.timings, self.tokens) = (timings, tokens);
        }
        fits
    }

    /// Begins a write, or not.
    fn write(&mut self, random: &mut fastrand::Rng) -> bool {
        let left = self.tokens.left(Moment(self.now));
        if left < SHORTEST_WRITE || (!self.worst && random.bool()) {
            return false;
        }
        let charge = random.u64(SHORTEST_WRITE..=left);
        assert!(self.tokens.take(Moment(self.now), charge));
        let took = if self.worst { charge } else { random.u64(0..=charge) };
        self.reading = Some((self.now + took, self.now + charge));
        self.writes += 1;
        true
    }

    fn leave(&mut self, stream: u32) {
        let mine = (stream, 0)..=(stream, u32::MAX);
        for (key, piece) in self.unread.clone().range(mine.clone()) {
            self.books.unbook(*piece);
            self.unread.remove(key);
        }
        for (key, piece) in self.held.clone().range(mine) {
            self.books.release(*piece);
            self.held.remove(key);
        }
        self.batch.retain(|key| key.0 != stream);
    }

    /// Lets time pass to the next read's end, or to `until` if that is sooner.
    fn pass(&mut self, until: u64, random: &mut fastrand::Rng) {
        let mut until = until;
        if self.reading.is_none() && !self.write(random) {
            self.begin(random);
            if self.reading.is_none() && self.timings.write_share.is_some() {
                // A write may come at any moment of a pause.
                until = until.min(self.now + random.u64(1..500_000_000));
            }
        }
        let slot_end = (self.books.current() + 1).start(SLOT).0;
        let next = self.reading.map_or(until, |(end, _)| end).min(until).min(slot_end);
        self.now = next.max(self.now);
        if self.reading.is_some_and(|(end, _)| end <= self.now) {
            self.reading = None;
        }
        let slot = SlotIndex::at(Moment(self.now), SLOT);
        if slot > self.books.current() {
            let late: Vec<_> = self.unread.iter().filter(|(_, piece)| piece.due < slot).collect();
            assert!(late.is_empty(), "late at {}: {late:?}, {:?}", self.now, self.plan);
            self.books.advance(slot);
            for (key, piece) in self.held.clone() {
                if piece.release < slot {
                    self.books.release(piece);
                    self.held.remove(&key);
                }
            }
        }
    }

    fn begin(&mut self, random: &mut fastrand::Rng) {
        if self.batch.is_empty() {
            let NextSweep::Batch { through } = self.plan.next(&self.books, &self.supply()) else {
                return;
            };
            let chosen = self.unread.iter().filter(|(_, piece)| piece.due <= through);
            let chosen: Vec<(Key, PieceDue)> = chosen.map(|(key, piece)| (*key, *piece)).collect();
            self.budget = takes(&self.timings, &chosen);
            self.follows += follows(&chosen);
            // Streams in any order, each stream's reads in theirs.
            let mut order: Vec<u32> = chosen.iter().map(|(key, _)| key.0).collect();
            random.shuffle(&mut order);
            let last = |key: &Key| order.iter().position(|stream| *stream == key.0);
            self.batch = chosen.iter().map(|(key, _)| *key).collect();
            self.batch.sort_by_key(|key| (last(key), std::cmp::Reverse(key.1)));
        }
        let Some(key) = self.batch.pop() else { return };
        let piece = self.unread.remove(&key).expect("chosen from it");
        assert!(self.books.held() + u64::from(piece.len) <= self.memory, "no room");
        self.books.start_read(piece);
        self.held.insert(key, piece);
        self.reads += 1;
        let single = costs(&self.timings).batch(1, u64::from(piece.transfer));
        let most = single.min(self.budget);
        let took = match random.u8(..3) {
            _ if self.worst => most,
            0 => most,
            1 => u64::from(piece.transfer).min(most),
            _ => random.u64(0..=most),
        };
        self.budget -= took;
        let end = self.now + took;
        let early = (piece.due + 1).start(SLOT).0.checked_sub(end);
        let promised = self.promised.get(&key.0).copied().unwrap_or(0);
        let on_time = early.is_some_and(|early| early >= promised);
        assert!(on_time, "{:?}: {early:?} of {promised}, {piece:?}", self.policy);
        self.reading = Some((end, self.now + single));
    }
}

/// How many go on where another ends, in one sweep of all of them.
fn follows(chosen: &[(Key, PieceDue)]) -> u64 {
    let goes_on = |pair: &&[(Key, PieceDue)]| {
        let [(before, piece), (after, _)] = pair else { return false };
        piece.followed_after.is_some() && (before.0, before.1 + 1) == *after
    };
    chosen.windows(2).filter(goes_on).count() as u64
}

/// What one sweep of all of them takes at most.
fn takes(timings: &DiskTimings, chosen: &[(Key, PieceDue)]) -> u64 {
    let transfer = chosen.iter().map(|(_, piece)| u64::from(piece.transfer)).sum();
    costs(timings).sweep(chosen.len() as u64, follows(chosen), transfer)
}

fn piece(number: u32, due: u64, hold: u64, random: &mut fastrand::Rng) -> PieceDue {
    let mib = random.u32(1..=16);
    PieceDue {
        piece: number,
        due: SlotIndex(due),
        release: SlotIndex(due + hold),
        len: mib << 16,
        transfer: mib * random.u32(4_500_000..7_000_000),
        followed_after: None,
    }
}

/// Most pieces that are long enough lie one behind the other.
fn lie_together(pieces: &mut [PieceDue], random: &mut fastrand::Rng) {
    let timings = timings();
    let shortest = costs(&timings).shortest_following().expect("it reads ahead");
    for at in 1..pieces.len() {
        let (piece, next) = (pieces[at - 1], pieces[at]);
        let long = u64::from(piece.transfer.min(next.transfer)) >= shortest;
        if long && random.u8(..6) > 0 {
            pieces[at - 1].followed_after = u8::try_from(next.due.0 - piece.due.0).ok();
        }
    }
}

fn pieces(current: u64, most: usize, random: &mut fastrand::Rng) -> Vec<PieceDue> {
    let mut due = current + random.u64(1..4);
    let hold = random.u64(0..5);
    let mut pieces: Vec<PieceDue> = (0..u32::try_from(random.usize(1..=most)).expect("few"))
        .map(|number| {
            due += random.u64(0..3);
            piece(number, due, hold, random)
        })
        .collect();
    lie_together(&mut pieces, random);
    pieces
}

/// Come and go, at any moment; disks that take any time up to what they are charged. Beside
/// recordings: so do writes, and the part of the disk that is kept for them changes.
fn crowd(policy: PolicyKind, seeds: u64, recordings: bool) -> Crowd {
    let timings = timings();
    let mut crowd = Crowd::default();
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let memory = [3 << 20, 8 << 20, 24 << 20, 1 << 40, 1 << 40][random.usize(..5)];
        let mut fixture = Fixture::new(policy, &timings, memory);
        fixture.worst = random.u8(..3) == 0;
        for stream in 0..40 {
            let pieces = pieces(fixture.books.current().0, 40, &mut random);
            match fixture.admit(stream, &pieces) {
                Verdict::Admit { .. } => crowd.admitted += 1,
                Verdict::Refuse(Shortage { resource, .. }) => {
                    *crowd.refused.entry(resource).or_insert(0) += 1;
                }
            }
            if recordings && random.u8(..4) == 0 {
                let part = random.u64(0..WriteShare::WHOLE / 2);
                let burst = random.u64(SHORTEST_WRITE..300_000_000);
                match fixture.keep_for_writes(WriteShare { part, burst }) {
                    true => crowd.shares += 1,
                    false => crowd.shares_refused += 1,
                }
            }
            if random.u8(..4) == 0 {
                fixture.leave(random.u32(0..=stream));
            }
            let until = fixture.now + random.u64(0..1_500_000_000);
            while fixture.now < until {
                fixture.pass(until, &mut random);
            }
        }
        while !fixture.unread.is_empty() || !fixture.held.is_empty() {
            fixture.pass(u64::MAX, &mut random);
        }
        assert_eq!(fixture.books.total(), SlotLoad::default(), "{policy:?}, seed {seed}");
        assert!(fixture.books.is_empty(), "{policy:?}, seed {seed}");
        crowd.follows += fixture.follows;
        crowd.writes += fixture.writes;
    }
    crowd
}

#[derive(Debug, Default)]
struct Crowd {
    admitted: u32,
    refused: BTreeMap<Resource, u32>,
    follows: u64,
    shares: u32,
    shares_refused: u32,
    writes: u64,
}

const SHORTEST_WRITE: u64 = 1_000_000;

#[test]
fn nobody_who_was_let_in_is_late_whatever_happens() {
    for (policy, seeds) in [
        (PolicyKind::TimeDomain, 400),
        (PolicyKind::Rates, 200),
        (PolicyKind::Scan, 200),
        (PolicyKind::GroupedSweeps, 200),
    ] {
        assert!(policy.guarantees() && policy.plans(&timings()));
        let seen = crowd(policy, seeds, false);
        let (disk, memory) = (seen.refused[&Resource::Disk], seen.refused[&Resource::Memory]);
        let enough = u32::try_from(seeds).unwrap();
        let all = seen.admitted > 5 * enough && disk > 2 * enough && memory > enough;
        assert!(all && seen.follows > seeds, "all of it: {policy:?}, {seen:?}");
    }
}

#[test]
fn nobody_is_late_beside_writes_that_come_whenever_their_tokens_are_there() {
    for (policy, seeds) in [
        (PolicyKind::TimeDomain, 400),
        (PolicyKind::Rates, 200),
        (PolicyKind::Scan, 200),
        (PolicyKind::GroupedSweeps, 200),
    ] {
        let seen = crowd(policy, seeds, true);
        let enough = u32::try_from(seeds).unwrap();
        let all = seen.admitted > 3 * enough && seen.writes > 50 * seeds;
        let shares = seen.shares > enough && seen.shares_refused > enough / 4;
        assert!(all && shares, "all of it: {policy:?}, {seen:?}");
    }
}

/// Whether some way of cutting what is due into windows is on time, if each takes all it may.
fn any_cut_does(timings: &DiskTimings, memory: u64, pieces: &[PieceDue]) -> bool {
    let mut slots = BTreeMap::<u64, Vec<PieceDue>>::new();
    pieces.iter().for_each(|p| slots.entry(p.due.0).or_default().push(*p));
    let slots: Vec<(u64, Vec<PieceDue>)> = slots.into_iter().collect();
    let bytes = |pieces: &mut dyn Iterator<Item = &PieceDue>| -> u64 {
        pieces.map(|p| u64::from(p.len)).sum()
    };
    (0..1u32 << (slots.len() - 1)).any(|cuts| {
        let (mut free, mut from) = (0, 0);
        (0..slots.len()).all(|last| {
            if last + 1 < slots.len() && cuts & 1 << last == 0 {
                return true;
            }
            let window: Vec<PieceDue> =
                slots[from..=last].iter().flat_map(|s| s.1.clone()).collect();
            let before: Vec<PieceDue> = slots[..from].iter().flat_map(|s| s.1.clone()).collect();
            let deadline = (slots[from].0 + 1) * 500_000_000;
            from = last + 1;
            let fits = |at: u64| {
                let ended = at / 500_000_000;
                let held = bytes(&mut before.iter().filter(|p| p.release.0 >= ended));
                held + bytes(&mut window.iter()) <= memory
            };
            while !fits(free) {
                free = (free / 500_000_000 + 1) * 500_000_000;
                if free > deadline {
                    return false;
                }
            }
            let mut window: Vec<(Key, PieceDue)> =
                window.iter().map(|p| ((0, p.piece), *p)).collect();
            window.sort_by_key(|(key, _)| *key);
            free += takes(timings, &window);
            free <= deadline
        })
    })
}

#[test]
fn few_are_refused_whom_some_windows_would_have_served() {
    let timings = timings();
    let (mut both, mut neither, mut missed) = (0, 0, 0);
    for seed in 0..6000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let memory = [2 << 20, 6 << 20, 1 << 40][random.usize(..3)];
        let mut pieces = pieces(0, 14, &mut random);
        // Some that lie anywhere.
        pieces.extend((0..random.u32(0..6)).map(|n| {
            let (due, hold) = (random.u64(1..5), random.u64(0..4));
            piece(100 + n, due, hold, &mut random)
        }));
        pieces.sort_by_key(|p| p.due);
        let admitted =
            Fixture::new(PolicyKind::TimeDomain, &timings, memory).admit(0, &pieces).is_admit();
        match (admitted, any_cut_does(&timings, memory, &pieces)) {
            (true, true) => both += 1,
            (false, false) => neither += 1,
            (false, true) => missed += 1,
            (true, false) => panic!("seed {seed}: admitted what no windows can do: {pieces:?}"),
        }
    }
    assert!(both > 1000 && neither > 1000 && missed * 100 < both, "{both} {neither} {missed}");
}

/// Whoever is refused is told the earliest start there is: no start between is left out for
/// nothing.
#[test]
fn the_earliest_later_start_is_the_earliest() {
    let timings = timings();
    let (mut told, mut ruled_out) = (0, 0);
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let memory = [8 << 20, 24 << 20, 1 << 40][random.usize(..3)];
        let mut fixture = Fixture::new(PolicyKind::TimeDomain, &timings, memory);
        let mut refused = None;
        for stream in 0..40 {
            let pieces = pieces(0, 60, &mut random);
            if !fixture.admit(stream, &pieces).is_admit() {
                refused = Some(pieces);
                break;
            }
        }
        let Some(mut wanted) = refused else { continue };
        // Some want far too much.
        for _ in 0..seed % 4 {
            wanted.extend(pieces(0, 60, &mut random));
        }
        wanted.sort_by_key(|piece| piece.due);
        let policy = PolicyKind::TimeDomain.policy();
        let mut demand = Demand::default();
        demand.begin(SlotIndex(0));
        demand.add_track(wanted.into_iter());
        let mut after = |slots: u64| {
            demand.shift(slots);
            let supply = fixture.supply();
            let answer = match policy.verdict(&fixture.books, &supply, &demand) {
                Verdict::Admit { .. } => Ok(()),
                Verdict::Refuse(shortage) => {
                    Err(policy.ruled_out(&fixture.books, &supply, &demand, shortage))
                }
            };
            demand.unshift(slots);
            answer
        };
        let first = (1..=60).find(|slots| after(*slots).is_ok());
        let mut tests = 0;
        let found = earliest_shift(60, |slots| {
            tests += 1;
            let answer = after(slots);
            ruled_out += answer.err().map_or(0, |out| out.min(60) - 1);
            answer
        });
        if tests <= EXACT_TESTS {
            assert_eq!(found, first, "seed {seed}");
            told += 1;
        }
    }
    assert!(told > 600 && ruled_out > 25, "{told} told, {ruled_out} ruled out");
}
