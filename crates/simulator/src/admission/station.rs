//! One disk, its books and its viewers in virtual time: the scheduler's own policy decides who
//! comes in, the scheduler's own rule what is read next, and a disk model how long that takes.
//!
//! ```text
//!   viewer ─▶ Policy::verdict ──yes──▶ DiskBooks, Plan
//!                                          │ Plan::next (disk time) or minRead a slot (reads)
//!                                          ▼
//!            late? ◀── finish ◀── Head ◀── sweep: what is due first, in order of place
//! ```
//!
//! No server stands around it: no sessions, sockets or titles' indexes, so that one run takes
//! milliseconds and a table of thousands minutes. The engine that ships is simulated with
//! everything around it by [`crate::run`].

use super::chance::Chance;
use super::requests::{Read, Wanted};
use disk::{DiskModel, Head};
use scheduler::{
    Demand, DiskBooks, EdfQueue, Facts, Next, PieceDue, Plan, PolicyKind, Shortage, Summary,
    Supply, Verdict,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// How the disk is used.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The disk.
    pub model: DiskModel,
    /// What is known of it.
    pub facts: Arc<Facts>,
    /// The scheduling period.
    pub slot: Duration,
    /// From a viewer's arrival to its first picture, at least.
    pub startup: Duration,
    /// Who is let in; everybody if `None`.
    pub policy: Option<PolicyKind>,
    /// Reads that a policy takes the disk to complete in any slot. Without a plan, so many are
    /// read at a time.
    pub min_read: u32,
    /// Whether windows of disk time are read; otherwise `min_read` reads at a time.
    pub windows: bool,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers.
    pub memory: u64,
    /// How long the platter lets every read wait.
    pub turns: Turns,
    /// A clock, to say how long decisions take; without one they are taken to take none.
    pub clock: Option<fn() -> Duration>,
}

/// Rotational delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Evenly between none and a revolution.
    Random,
    /// A whole revolution, every time.
    Worst,
}

/// Who is in: a number that the station gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Viewer(usize);

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Viewers let in.
    pub admitted: u64,
    /// Viewers refused.
    pub refused: u64,
    /// Time that the decisions took.
    pub deciding: Duration,
    /// Reads made.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads that ended after their deadline.
    pub late: u64,
    /// The longest time after a deadline.
    pub latest: Duration,
    /// The most bytes of buffers held at once.
    pub buffers: u64,
    /// Time that the disk worked.
    pub busy: Duration,
    /// Of that, what the bytes alone took.
    pub transfer: Duration,
    /// The least of the mean bytes a slot since the start, looked at after each slot from the
    /// tenth second on, while the disk was never idle.
    pub least_mean: Option<f64>,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.deciding += other.deciding;
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.late += other.late;
        self.latest = self.latest.max(other.latest);
        self.buffers = self.buffers.max(other.buffers);
        self.busy += other.busy;
        self.transfer += other.transfer;
        self.least_mean = match (self.least_mean, other.least_mean) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// See the head of this file.
pub struct Station<'a> {
    rules: &'a Rules,
    now: Moment,
    head: Head,
    arm: u64,
    books: DiskBooks,
    plan: Plan,
    proposal: Plan,
    demand: Demand,
    viewers: Vec<Watching>,
    queue: EdfQueue<usize>,
    batch: VecDeque<(usize, usize)>,
    inward: bool,
    waits: bool,
    flight: Option<Flight>,
    held: BTreeMap<SlotIndex, Vec<(usize, usize)>>,
    chance: Chance,
    busy: Busy,
    tally: Tally,
}

#[derive(Debug)]
struct Watching {
    wanted: Arc<Wanted>,
    /// The slot in which its first frame is shown.
    first: SlotIndex,
    summary: Summary,
    state: Vec<State>,
    /// The first read that is neither begun nor in the batch.
    next: usize,
    /// Reads that are not shown yet.
    left: usize,
    gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unread,
    Chosen,
    Reading,
    /// Until the end of this slot.
    Held(SlotIndex),
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    viewer: usize,
    read: usize,
    begun: Moment,
    finish: Moment,
}

/// How long the disk has been busy without a pause since it began.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    began: Option<Moment>,
    paused: bool,
}

impl<'a> Station<'a> {
    /// Nobody is in. `seed` is that of the platter's angle.
    pub fn new(rules: &'a Rules, seed: u64) -> Self {
        Self {
            rules,
            now: Moment::ZERO,
            head: rules.model.head(),
            arm: 0,
            books: DiskBooks::default(),
            plan: Plan::default(),
            proposal: Plan::default(),
            demand: Demand::default(),
            viewers: Vec::new(),
            queue: EdfQueue::default(),
            batch: VecDeque::new(),
            inward: false,
            waits: false,
            flight: None,
            held: BTreeMap::new(),
            chance: Chance::new(seed, TURNS),
            busy: Busy::default(),
            tally: Tally::default(),
        }
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// What time it is.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Whether nothing at all is on the books.
    pub fn is_empty(&self) -> bool {
        self.books.is_empty()
    }

    /// A viewer asks for this, now.
    pub fn arrive(&mut self, wanted: Arc<Wanted>) -> Result<Viewer, Shortage> {
        let (first, summary) = self.ask(&wanted);
        if let Err(shortage) = self.decide() {
            self.tally.refused += 1;
            return Err(shortage);
        }
        self.tally.admitted += 1;
        let state = vec![State::Unread; wanted.reads.len()];
        let number = self.viewers.len();
        self.books.book_demand(&self.demand);
        self.books.book_summary(summary);
        let left = state.len();
        let watching = Watching { wanted, first, summary, state, next: 0, left, gone: false };
        self.viewers.push(watching);
        self.enqueue(number);
        self.drop_batch();
        self.busy.began.get_or_insert(self.now);
        Ok(Viewer(number))
    }

    /// A viewer asks for something else instead. What it had stays booked until that is granted,
    /// and stays where it is not.
    pub fn seek(&mut self, viewer: Viewer, wanted: Arc<Wanted>) -> Result<Viewer, Shortage> {
        let instead = self.arrive(wanted)?;
        self.leave(viewer);
        Ok(instead)
    }

    /// A viewer goes. What it was to read is off the books, its buffers are free.
    pub fn leave(&mut self, viewer: Viewer) {
        let number = viewer.0;
        if self.viewers[number].gone {
            return;
        }
        self.dequeue(number);
        self.batch.retain(|(of, _)| *of != number);
        for read in 0..self.viewers[number].state.len() {
            let piece = self.piece(number, read);
            match self.viewers[number].state[read] {
                State::Unread | State::Chosen => self.books.unbook(piece),
                State::Held(release) => self.books.let_go(PieceDue { release, ..piece }),
                // Let go when it is done.
                State::Reading => continue,
                State::Done => {}
            }
            self.viewers[number].state[read] = State::Done;
        }
        let watching = &mut self.viewers[number];
        watching.gone = true;
        self.books.unbook_summary(watching.summary);
        self.waits = false;
    }

    /// Whether the viewer is still being served.
    pub fn watches(&self, viewer: Viewer) -> bool {
        !self.viewers[viewer.0].gone
    }

    /// Goes on until this moment.
    pub fn run_until(&mut self, end: Moment) {
        while self.now < end {
            if self.flight.is_none() {
                self.begin_next();
            }
            let slot_ends = SlotIndex::at(self.now, self.rules.slot).next().start(self.rules.slot);
            let mut until = end.min(slot_ends);
            if let Some(flight) = self.flight {
                until = until.min(flight.finish);
            } else {
                self.busy.paused = true;
            }
            self.now = until;
            if self.flight.is_some_and(|flight| flight.finish == until) {
                self.complete();
            }
            if until == slot_ends {
                self.tick();
            }
        }
    }

    /// Goes on until everything has been shown or everybody has left. Then the books must be empty.
    pub fn finish(&mut self) {
        while !self.queue.is_empty()
            || !self.batch.is_empty()
            || self.flight.is_some()
            || !self.held.is_empty()
        {
            let next = SlotIndex::at(self.now, self.rules.slot).next();
            self.run_until(next.start(self.rules.slot));
        }
    }

    /// Puts what `wanted` would take into `self.demand`.
    fn ask(&mut self, wanted: &Wanted) -> (SlotIndex, Summary) {
        let first = first_slot(self.now, self.rules);
        self.demand.begin(self.books.current());
        let facts = &self.rules.facts;
        let pieces = wanted.reads.iter().zip(0..).map(|(read, i)| piece_of(facts, read, i, first));
        let summary = self.demand.add_track(pieces);
        (first, summary)
    }

    fn decide(&mut self) -> Result<(), Shortage> {
        let Some(policy) = self.rules.policy else { return Ok(()) };
        let supply = self.supply();
        let clock = self.rules.clock.unwrap_or(|| Duration::ZERO);
        let began = clock();
        let verdict =
            policy.policy().verdict(&self.books, &supply, &self.demand, &mut self.proposal);
        self.tally.deciding += clock().saturating_sub(began);
        match verdict {
            Verdict::Refuse(shortage) => Err(shortage),
            Verdict::Admit { .. } => {
                std::mem::swap(&mut self.plan, &mut self.proposal);
                Ok(())
            }
        }
    }

    fn supply(&self) -> Supply<'a> {
        let free_at = self.flight.map_or(self.now, |flight| {
            let piece = self.piece(flight.viewer, flight.read);
            let most = self.rules.facts.costs.as_ref();
            let most = most.map_or(0, |costs| costs.batch(1, u64::from(piece.transfer)));
            self.now.max(flight.begun + Duration::from_nanos(most))
        });
        Supply {
            min_read: self.rules.min_read,
            read_size: self.rules.read_size,
            memory: self.rules.memory,
            slot: self.rules.slot,
            free_at,
            facts: &self.rules.facts,
        }
    }

    fn begin_next(&mut self) {
        if self.batch.is_empty() && !self.waits {
            if self.rules.windows { self.choose_window() } else { self.choose_reads() }
        }
        let Some((viewer, read)) = self.batch.pop_front() else { return };
        let piece = self.piece(viewer, read);
        self.books.take_up(piece);
        self.tally.buffers = self.tally.buffers.max(self.books.held());
        let turn = match self.rules.turns {
            Turns::Random => self.chance.part(),
            Turns::Worst => 1.0,
        };
        let Read { offset, len, .. } = self.viewers[viewer].wanted.reads[read];
        let service = self.head.serve_turned(self.now, offset, u64::from(len), turn);
        self.arm = offset + u64::from(len);
        self.viewers[viewer].state[read] = State::Reading;
        self.flight = Some(Flight { viewer, read, begun: self.now, finish: service.finish });
    }

    /// As the plan says.
    fn choose_window(&mut self) {
        match self.plan.next(&self.books, &self.supply()) {
            Next::Batch { through } => self.choose(|_, due, _| due <= through),
            // Asked again when a buffer is let go, which happens at the ends of slots.
            Next::Wait { .. } => self.waits = true,
            Next::Nothing => {}
        }
    }

    /// As many as a slot is sure to read, and what else is due with the last of them: a visit to
    /// a title is not cut in two.
    fn choose_reads(&mut self) {
        let most = usize::try_from(self.rules.min_read).unwrap_or(usize::MAX);
        self.choose(|taken, _, same_visit| taken < most || same_visit);
    }

    /// Takes reads, earliest due first, while `goes_on` (of their number, when the next is due,
    /// and whether it is due with the last one, for the same viewer) and while memory lasts; then
    /// puts them in order of place.
    fn choose(&mut self, goes_on: impl Fn(usize, SlotIndex, bool) -> bool) {
        let held = self.books.held() + self.books.reserved();
        let mut room = self.rules.memory.saturating_sub(held);
        let mut chosen: Vec<(u64, usize, usize)> = Vec::new();
        let mut last = None;
        while let Some((due, viewer)) = self.queue.first() {
            let read = self.viewers[viewer].next;
            let wanted = self.viewers[viewer].wanted.reads[read];
            if !goes_on(chosen.len(), due, last == Some((due, viewer))) {
                break;
            }
            last = Some((due, viewer));
            if u64::from(wanted.len) > room {
                self.waits = chosen.is_empty();
                break;
            }
            room -= u64::from(wanted.len);
            self.dequeue(viewer);
            self.viewers[viewer].state[read] = State::Chosen;
            chosen.push((wanted.offset, viewer, read));
            self.enqueue(viewer);
        }
        chosen.sort_unstable();
        self.inward =
            if self.rules.windows { self.far_end_is_nearer(&chosen) } else { !self.inward };
        if self.inward {
            chosen.reverse();
            if !self.rules.windows {
                self.turn_visits(&mut chosen);
            }
        }
        self.batch.extend(chosen.into_iter().map(|(_, viewer, read)| (viewer, read)));
    }

    /// Neighbouring blocks are read as they lie, whichever way the arm goes.
    fn turn_visits(&self, chosen: &mut [(u64, usize, usize)]) {
        let end = |&(offset, viewer, read): &(u64, usize, usize)| {
            offset + u64::from(self.viewers[viewer].wanted.reads[read].len)
        };
        for visit in chosen.chunk_by_mut(|later, earlier| end(earlier) == later.0) {
            visit.reverse();
        }
    }

    fn far_end_is_nearer(&self, chosen: &[(u64, usize, usize)]) -> bool {
        let Some(costs) = &self.rules.facts.costs else { return false };
        let (Some(near), Some(far)) = (chosen.first(), chosen.last()) else { return false };
        let arm = costs.place(self.arm);
        (costs.place(far.0) - arm).abs() < (costs.place(near.0) - arm).abs()
    }

    fn complete(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        let piece = self.piece(flight.viewer, flight.read);
        let deadline = piece.due.next().start(self.rules.slot);
        let watching = &mut self.viewers[flight.viewer];
        self.tally.reads += 1;
        self.tally.bytes += u64::from(piece.len);
        self.tally.busy += flight.finish.since(flight.begun);
        self.tally.transfer += Duration::from_nanos(piece.transfer.into());
        if watching.gone {
            self.books.let_go(piece);
            watching.state[flight.read] = State::Done;
            self.waits = false;
            return;
        }
        if self.now > deadline {
            self.tally.late += 1;
            self.tally.latest = self.tally.latest.max(self.now.since(deadline));
        }
        let until = piece.release.max(self.books.current());
        watching.state[flight.read] = State::Held(until);
        self.books.keep_until(piece, until);
        self.held.entry(until).or_default().push((flight.viewer, flight.read));
    }

    /// A slot begins.
    fn tick(&mut self) {
        let current = SlotIndex::at(self.now, self.rules.slot);
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() >= current {
                break;
            }
            let slot = *entry.key();
            for (viewer, read) in entry.remove() {
                if self.viewers[viewer].state[read] == State::Held(slot) {
                    self.let_go(viewer, read, slot);
                }
            }
        }
        self.books.advance(current);
        self.note_mean();
    }

    fn let_go(&mut self, viewer: usize, read: usize, release: SlotIndex) {
        let piece = PieceDue { release, ..self.piece(viewer, read) };
        self.books.let_go(piece);
        self.waits = false;
        let watching = &mut self.viewers[viewer];
        watching.state[read] = State::Done;
        watching.left -= 1;
        if watching.left == 0 {
            watching.gone = true;
            self.books.unbook_summary(watching.summary);
        }
    }

    fn note_mean(&mut self) {
        let Some(began) = self.busy.began else { return };
        let ran = self.now.since(began);
        if self.busy.paused || ran < STABLE {
            return;
        }
        let slots = ran.as_secs_f64() / self.rules.slot.as_secs_f64();
        let mean = self.tally.bytes as f64 / slots;
        self.tally.least_mean = Some(self.tally.least_mean.map_or(mean, |least| least.min(mean)));
    }

    /// What is chosen and not begun is chosen anew.
    fn drop_batch(&mut self) {
        for (viewer, read) in std::mem::take(&mut self.batch) {
            self.dequeue(viewer);
            let watching = &mut self.viewers[viewer];
            watching.state[read] = State::Unread;
            watching.next = watching.next.min(read);
            self.enqueue(viewer);
        }
        self.waits = false;
    }

    fn enqueue(&mut self, viewer: usize) {
        let watching = &mut self.viewers[viewer];
        while watching.state.get(watching.next).is_some_and(|state| *state != State::Unread) {
            watching.next += 1;
        }
        if let Some(due) = self.next_due(viewer) {
            self.queue.insert(due, viewer);
        }
    }

    fn dequeue(&mut self, viewer: usize) {
        if let Some(due) = self.next_due(viewer) {
            self.queue.remove(due, viewer);
        }
    }

    fn next_due(&self, viewer: usize) -> Option<SlotIndex> {
        let watching = &self.viewers[viewer];
        let read = watching.wanted.reads.get(watching.next)?;
        Some(due_slot(read, watching.first))
    }

    fn piece(&self, viewer: usize, read: usize) -> PieceDue {
        let watching = &self.viewers[viewer];
        let number = u32::try_from(read).unwrap_or(u32::MAX);
        piece_of(&self.rules.facts, &watching.wanted.reads[read], number, watching.first)
    }
}

/// The slot in which a viewer who came at `now` sees the first frame.
pub(crate) fn first_slot(now: Moment, rules: &Rules) -> SlotIndex {
    let ready = now + rules.startup;
    let at = SlotIndex::at(ready, rules.slot);
    let first = if at.start(rules.slot) < ready { at.next() } else { at };
    // It must be in memory when that slot begins, and be read in a slot to come.
    first.max(SlotIndex::at(now, rules.slot) + 2)
}

/// Everything that is shown in a slot is in memory by the end of the one before.
pub(crate) fn due_slot(read: &Read, first: SlotIndex) -> SlotIndex {
    SlotIndex((first + u64::from(read.shown)).0 - 1)
}

fn piece_of(facts: &Facts, read: &Read, number: u32, first: SlotIndex) -> PieceDue {
    let transfer = facts.costs.as_ref().map_or(0, |c| c.transfer(read.offset, read.len.into()));
    PieceDue {
        piece: number,
        due: due_slot(read, first),
        release: first + u64::from(read.until),
        len: read.len,
        transfer: u32::try_from(transfer).unwrap_or(u32::MAX),
    }
}

/// Means before are those of the first requests' quiet.
const STABLE: Duration = Duration::from_secs(10);

// The name of a source of chance.
const TURNS: u64 = 3;
