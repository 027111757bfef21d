//! One disk as the engine sees it: what it guarantees, what is booked on it, what is in it now.

use super::backlog::Backlog;
use super::best_effort::BestEffort;
use super::scan::ScanRun;
use super::starts::{Starts, WHOLE_DISK};
use crate::buffers::Location;
use crate::stream::{Stream, StreamId};
use crate::{DiskGuarantee, DiskStatus, MAX_PERMIT_READS, PermitId, ReadId, RecordingId, SlotWork};
use scheduler::admission::least_slack;
use scheduler::{
    BusySlots, ChosenRead, Demand, DiskBooks, DiskHistory, DiskTimings, Dispatcher, Guard,
    HistoryKey, ObservedCurve, PieceDue, Slack, Supply, WriteDemand, WriteJob, WriteTokens,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use units::{BitRate, Moment, SlotIndex, nanos};

/// A read that was chosen for a sweep or a batch and not yet given to the device.
pub(crate) type Chosen = ChosenRead<StreamId, ReadId>;

/// The state of one disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) guarantee: DiskGuarantee,
    pub(crate) guard: Guard,
    observed_curve: ObservedCurve,
    busy_slots: BusySlots,
    /// In this slot the disk was idle for want of reads, or did best-effort work: the slot's reads
    /// do not measure the disk.
    pub(crate) has_lacked: bool,
    /// What is booked on it, and what it reads next.
    pub(crate) dispatcher: Dispatcher<StreamId, ReadId>,
    /// The disk's share of the buffers, in bytes, without what is kept from its streams.
    pub(crate) memory: u64,
    /// What is kept of its share for beginnings of titles: see `streams::beginnings`.
    pub(crate) beginnings: KeptBeginnings,
    /// The disk's share of the buffers while no disk is lost, in bytes.
    pub(crate) fair_memory: u64,
    /// The disk's share of the buffers at the start.
    pub(crate) first_memory: u64,
    pub(crate) slot: Duration,
    pub(crate) timings: DiskTimings,
    /// Timings to be used once no stream is booked by the present ones.
    pub(crate) pending_timings: Option<DiskTimings>,
    /// The sweep under way, where its time is counted.
    pub(crate) scan: ScanRun,
    /// Reads in the device.
    pub(crate) in_flight: u32,
    /// Reads given to the device when this slot began and not complete yet.
    pub(crate) batch: BTreeSet<ReadId>,
    /// Number of reads given to the device when this slot began.
    pub(crate) batch_len: u32,
    /// Failed reads that are not repeated yet; see `loss`.
    pub(crate) doubtful: BTreeSet<ReadId>,
    pub(crate) work: BestEffort,
    /// The recordings with a guaranteed rate, and what is kept of the disk's time for them.
    pub(crate) recordings: BTreeMap<RecordingId, WriteDemand>,
    pub(crate) tokens: WriteTokens,
    /// Searches for a start that were made in this slot.
    searches: u32,
    /// Candidates of this slot that did not fit without read-ahead either.
    drops_in_vain: u32,
    /// Reads that were dropped in this slot, also those that were restored.
    dropped: u64,
    /// What this slot's search for the start of a refused candidate found, from then: nothing, if
    /// `None` within. One search in a slot, because it takes as long as many decisions.
    pub(crate) last_search: Option<Option<Duration>>,
    /// The next end of a reservation on the disk (false) or anywhere (true), where this slot needed
    /// it; `None` within: there is none.
    pub(crate) next_release: [Option<Option<Moment>>; 2],
    /// When its viewers start.
    pub(crate) starts: Starts,
    /// The sums over all streams on its books.
    pub(crate) playing: Playing,
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    pub(crate) failures: u64,
    pub(crate) failed_in_row: u32,
    /// The disk is lost: nothing is read from it any more.
    pub(crate) lost: bool,
    /// The disk is to be taken out: see `drain`.
    pub(crate) draining: bool,
    /// Consecutive slots with reads in the device of which none ended.
    pub(crate) silent_slots: u32,
    /// The reads that it is behind with.
    pub(crate) backlog: Backlog,
    /// What it has completed in this slot.
    pub(crate) slot_work: SlotWork,
    /// What it completed in the slot before.
    pub(crate) last_slot: SlotWork,
}

/// Memory of a disk that no stream may read into.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeptBeginnings {
    pub(crate) bytes: u64,
    /// The first slot in which more may be kept.
    pub(crate) not_before: SlotIndex,
    /// Candidates of this slot that did not fit with all memory either.
    pub(crate) refused: u32,
}

impl KeptBeginnings {
    /// Whether it is kept on after a candidate that did not fit with all memory either; counts
    /// those.
    pub(crate) fn outlasts_refusal(&mut self) -> bool {
        self.refused += 1;
        self.refused <= MAX_SEARCHES
    }

    /// Whether it is tried in this slot to keep more.
    pub(crate) fn is_tried(self, slot: SlotIndex) -> bool {
        slot >= self.not_before
    }
}

impl Disk {
    pub(crate) fn new(guarantee: DiskGuarantee, memory: u64, slot: Duration) -> Self {
        Self {
            guarantee,
            guard: Guard::new(guarantee.min_read),
            observed_curve: ObservedCurve::default(),
            busy_slots: BusySlots::default(),
            // Nothing is read before the first slot begins, so that time does not measure the disk.
            has_lacked: true,
            dispatcher: Dispatcher::default(),
            memory,
            beginnings: KeptBeginnings::default(),
            fair_memory: memory,
            first_memory: memory,
            slot,
            timings: DiskTimings::default(),
            pending_timings: None,
            scan: ScanRun::default(),
            in_flight: 0,
            batch: BTreeSet::new(),
            batch_len: 0,
            doubtful: BTreeSet::new(),
            work: BestEffort::default(),
            recordings: BTreeMap::new(),
            tokens: WriteTokens::default(),
            searches: 0,
            drops_in_vain: 0,
            dropped: 0,
            last_search: None,
            next_release: [None; 2],
            starts: Starts::default(),
            playing: Playing::default(),
            reads: 0,
            bytes: 0,
            failures: 0,
            failed_in_row: 0,
            lost: false,
            draining: false,
            silent_slots: 0,
            backlog: Backlog::default(),
            slot_work: SlotWork::default(),
            last_slot: SlotWork::default(),
        }
    }

    /// What admission may count with. From `free_at` on the device is certainly free.
    pub(crate) fn supply(&self, free_at: Moment) -> Supply<'_> {
        Supply {
            min_read: self.min_read(),
            read_size: self.guarantee.read_size.0,
            memory: self.memory,
            slot: self.slot,
            free_at,
            owed: self.owed(),
            timings: &self.timings,
        }
    }

    /// Reads of best-effort work that may be left in the device when the next slot begins.
    fn owed(&self) -> u32 {
        // Where time is counted, all that is in the device is in its times.
        self.work.owed(self.min_read().saturating_sub(self.batch_len))
    }

    /// Reads that it completes in any slot beside the writes of recordings.
    pub(crate) fn min_read(&self) -> u32 {
        let reads = self.guard.min_read();
        let left = self.timings.reads_beside_writes(reads.into(), 1, nanos(self.slot));
        u32::try_from(left).expect("not above what it was")
    }

    /// Nanoseconds of disk time that a write of a recording takes at most. Where reads are counted
    /// it is as long as the reads that it displaces, the way back included, and each as long as the
    /// longest: how many the disk completes in a slot is known only of a slot that is full of them.
    fn write_charge(&self, job: WriteJob) -> u64 {
        job.charge(&self.timings).unwrap_or_else(|| {
            let reads = job.bytes.0.div_ceil(self.guarantee.read_size.0.max(1));
            let mean = nanos(self.slot).div_ceil(u64::from(self.guarantee.min_read.max(1)));
            let each = mean.max(nanos(self.guarantee.longest_read));
            each.saturating_mul(reads.saturating_add(u64::from(job.places) + 1))
        })
    }

    /// Queues a write of a recording; in kept time if the disk keeps any for it.
    pub(crate) fn queue_write(
        &mut self,
        permit: PermitId,
        recording: Option<RecordingId>,
        job: WriteJob,
    ) {
        let charge = self.write_charge(job);
        let size = self.guarantee.read_size.0;
        // As best-effort work it counts for as many reads as take as long.
        let reads = match &self.timings.costs {
            Some(costs) => charge.div_ceil(costs.batch(1, costs.slowest_transfer(size)).max(1)),
            None => u64::from(job.places.min(MAX_PERMIT_READS)),
        };
        let is_kept = recording.is_some_and(|id| self.recordings.contains_key(&id));
        let slot = self.dispatcher.books.current();
        self.work.queue(permit, reads.max(1), slot, is_kept.then_some(charge));
    }

    /// Keeps as much time as the recordings need from now on.
    pub(crate) fn keep_for_recordings(&mut self, now: Moment) {
        let charge = |job| self.write_charge(job);
        let share = WriteDemand::share_of(self.recordings.values(), charge);
        self.tokens.set_share(now, share.given());
        self.timings.write_share = share;
    }

    /// When the next write of a recording can begin in kept time.
    pub(crate) fn next_write_at(&self, now: Moment) -> Option<Moment> {
        self.tokens.ready_at(now, self.work.next_write()?.1)
    }

    /// Bytes of the disk's share of memory that are neither held nor reserved.
    pub(crate) fn room(&self) -> u64 {
        self.dispatcher.room(self.memory)
    }

    /// Bytes of the disk's share of memory, with what is kept for beginnings.
    pub(crate) fn all_memory(&self) -> u64 {
        self.memory + self.beginnings.bytes
    }

    /// Keeps memory that no stream holds from streams, for beginnings.
    pub(crate) fn keep_beginnings(&mut self, bytes: u64) {
        self.memory -= bytes;
        self.beginnings.bytes += bytes;
    }

    /// So much of what is kept for beginnings is for streams again.
    pub(crate) fn give_back_beginnings(&mut self, bytes: u64) {
        self.beginnings.bytes -= bytes;
        self.memory += bytes;
    }

    /// Bytes that are held or reserved beyond the disk's share of memory.
    pub(crate) fn lacks(&self) -> u64 {
        let books = &self.dispatcher.books;
        (books.held() + books.reserved()).saturating_sub(self.memory)
    }

    /// Whether one more search for a start may be made in this slot; counts it.
    pub(crate) fn may_search(&mut self) -> bool {
        let may = self.searches < MAX_SEARCHES;
        self.searches += u32::from(may);
        may
    }

    /// Whether it is tried once more in this slot to win memory from read-ahead. Each viewer of a
    /// crowd may need what others have read ahead into, so it is what they cost that ends it.
    pub(crate) fn may_drop_readahead(&self) -> bool {
        self.drops_in_vain < MAX_SEARCHES && self.dropped < MAX_DROPPED
    }

    /// Takes note that it was tried for a candidate to win memory from read-ahead.
    pub(crate) fn searched_memory(&mut self, was_won: bool) {
        self.drops_in_vain += u32::from(!was_won);
    }

    /// Takes note of reads that were dropped.
    pub(crate) fn has_dropped(&mut self, reads: u64) {
        self.dropped += reads;
    }

    /// The share of the disk that a newcomer takes on average, in parts of [`WHOLE_DISK`].
    pub(crate) fn share_of(&self, demand: &Demand) -> u64 {
        let (reads, slots) = (demand.reads(), demand.slots().len() as u64);
        let (takes, whole) = match &self.timings.costs {
            Some(costs) => {
                let transfer = demand.slots().iter().map(|load| load.transfer).sum();
                (costs.batch(reads, transfer), slots.saturating_mul(nanos(self.slot)))
            }
            None => (reads, slots.saturating_mul(self.min_read().into())),
        };
        let share = u128::from(takes) * u128::from(WHOLE_DISK) / u128::from(whole.max(1));
        u64::try_from(share).unwrap_or(WHOLE_DISK)
    }

    /// Everything in the device: reads, best-effort work, and writes of recordings.
    pub(crate) fn busy(&self) -> u32 {
        self.in_flight + self.work.in_flight() + self.work.writes_in_flight()
    }

    /// The device was given a read.
    pub(crate) fn read_issued(&mut self, now: Moment, offset: u64, len: u32) {
        self.device_takes(now, offset, len);
        self.in_flight += 1;
    }

    /// A read in the device has ended. `due`: the slot in which its piece is due.
    pub(crate) fn read_ended(
        &mut self,
        now: Moment,
        read: ReadId,
        due: SlotIndex,
        place: Location,
        good: bool,
        device: &Range<Moment>,
    ) {
        self.in_flight -= 1;
        self.device_ended(now, place, device);
        self.batch.remove(&read);
        self.reads += 1;
        self.slot_work.reads += 1;
        // The books are at the slot that runs.
        self.slot_work.ahead += u32::from(due > self.dispatcher.books.current());
        if good {
            self.bytes += u64::from(place.len);
        } else {
            self.failures += 1;
            // No charge covers a failed read: the drive may have tried again for any time.
            self.note_unplanned_io(now);
        }
    }

    /// A slot has ended and `slot` begins.
    pub(crate) fn roll(&mut self, slot: SlotIndex, plans: bool) {
        // What is left of the batch when its slot ends is late.
        let late = u32::try_from(self.batch.len()).expect("bounded by the batch");
        self.guard.slot_ended(self.batch_len, self.batch_len - late);
        self.ease_while_idle(slot, plans);
        if plans {
            // Where time is counted, sweeps are measured, and they do not end with slots.
            self.watch_sweep(slot.start(self.slot));
        } else {
            self.remember(slot, late > 0);
        }
        self.batch.clear();
        self.batch_len = 0;
        (self.searches, self.last_search) = (0, None);
        (self.drops_in_vain, self.dropped) = (0, 0);
        self.beginnings.refused = 0;
        self.next_release = [None; 2];
        self.starts.slot_begins(slot);
        // A disk that has nothing to read is idle, not silent.
        let silent = self.in_flight > 0 && self.slot_work.reads == 0;
        self.silent_slots = if silent { self.silent_slots + 1 } else { 0 };
        self.last_slot = std::mem::take(&mut self.slot_work);
        self.dispatcher.advance(slot);
        // A sweep that takes too long holds reads that are late, and are on no books any more.
        let is_late = |chosen: &&Chosen| chosen.piece.due < slot;
        let late = self.dispatcher.chosen().filter(is_late).count();
        let late = u32::try_from(late).unwrap_or(u32::MAX);
        let overdue = self.dispatcher.books.overdue().reads.saturating_add(late);
        self.backlog.slot_begins(overdue, self.last_slot.reads, silent);
    }

    /// Reads that are past their slots, or due in the next `slots`.
    pub(crate) fn due_within(&self, slots: usize) -> u64 {
        let books = &self.dispatcher.books;
        let ahead = books.ahead_of_now().iter().take(slots);
        let ahead: u64 = ahead.map(|load| u64::from(load.reads)).sum();
        ahead + u64::from(books.overdue().reads)
    }

    // The guards ease while nothing is booked and the device has nothing to do. No slot begins
    // while the engine is quiet, so there may be many of them.
    fn ease_while_idle(&mut self, slot: SlotIndex, plans: bool) {
        if self.busy() > 0 || !self.dispatcher.books.is_empty() {
            return;
        }
        let slots = slot.0.saturating_sub(self.dispatcher.books.current().0);
        // `slot_ended` has counted the first.
        self.guard.idle(slots.saturating_sub(1));
        self.scan.time_has_passed(slot.start(self.slot));
        if plans {
            self.timings.slowdown = self.scan.guard.slowdown();
        }
    }

    // Accounts for the slots since the last call: the slot that reads were given to, and idle ones.
    fn remember(&mut self, slot: SlotIndex, late: bool) {
        let slots = slot.0.saturating_sub(self.dispatcher.books.current().0);
        let others = self.min_read().saturating_sub(self.batch_len);
        let idle = u64::from(self.min_read()).saturating_mul(slots.saturating_sub(1));
        self.work.slot_ended(others, u32::try_from(idle).unwrap_or(u32::MAX));
        // A slot in which nothing was late shows no less than the calibration.
        let calibrated = self.guarantee.min_read;
        self.observed_curve
            .slot_ended(if late { self.guard.min_read() } else { calibrated }, calibrated);
        // No slot begins while the engine is quiet: those slots count as good ones, up to the
        // number after which older observations do not matter.
        for _ in 1..slots.min(LONGEST_MEMORY) {
            self.observed_curve.slot_ended(calibrated, calibrated);
        }
        // Only a slot that was busy from start to end shows how many reads the disk completes.
        if slots == 1 && !self.has_lacked {
            self.busy_slots.slot_ended(self.slot_work.reads);
        }
        // Best-effort work that is still in the device takes time of the new slot.
        self.has_lacked = self.work.in_flight() + self.work.writes_in_flight() > 0;
        self.update_timings();
    }

    // Hands what was observed to admission, where reads are counted.
    fn update_timings(&mut self) {
        (self.timings.slowdown, self.timings.observed_curve) =
            (self.guard.slowdown(), self.observed_curve.curve());
        self.timings.observed_min_read = self.busy_slots.fewest();
    }

    /// Takes a new calibration; observations made with the old one are dropped.
    pub(crate) fn recalibrate(&mut self, guarantee: DiskGuarantee) {
        self.guarantee = guarantee;
        self.guard.recalibrate(guarantee.min_read);
        (self.observed_curve, self.busy_slots) = (ObservedCurve::default(), BusySlots::default());
        (self.timings.observed_curve, self.timings.observed_min_read) = (None, None);
    }

    /// Observations of the disk, to be kept over a restart.
    pub(crate) fn remembered(&self) -> DiskHistory {
        DiskHistory {
            key: self.history_key(),
            guard: self.guard,
            time_guard: self.scan.guard,
            observed_curve: self.observed_curve.clone(),
            busy_slots: self.busy_slots.clone(),
        }
    }

    /// Takes over observations from an earlier run, if they are of reads of this kind; returns
    /// whether they are.
    pub(crate) fn recall(&mut self, remembered: DiskHistory, plans: bool) -> bool {
        let DiskHistory { key, guard, time_guard, mut observed_curve, busy_slots } = remembered;
        if key != self.history_key() {
            return false;
        }
        observed_curve.is_of_earlier_run();
        (self.guard, self.observed_curve, self.busy_slots) = (guard, observed_curve, busy_slots);
        self.scan.guard = time_guard;
        if plans {
            self.timings.slowdown = time_guard.slowdown();
        } else {
            self.update_timings();
        }
        true
    }

    fn history_key(&self) -> HistoryKey {
        let DiskGuarantee { min_read, read_size, .. } = self.guarantee;
        // The charge of one read stands for all times: another calibration has another one.
        let charged = self
            .timings
            .costs
            .as_ref()
            .map_or(0, |costs| costs.batch(1, costs.slowest_transfer(read_size.0)));
        HistoryKey { slot: self.slot, read_size: read_size.0, min_read, charged }
    }

    /// Books everything that `stream` has unread or holds, except what a feed reads and keeps.
    pub(crate) fn book(&mut self, stream: &Stream) {
        stream.booked_unread().for_each(|piece| self.dispatcher.books.book(piece));
        for piece in stream.booked_held() {
            self.dispatcher.books.book(piece);
            // A held piece takes memory and no disk time, which is how a piece is booked once it is
            // read.
            self.dispatcher.books.start_read(piece);
            if stream.was_read_elsewhere(piece.piece) {
                self.dispatcher.books.not_planned(piece);
            }
        }
        self.book_sums(stream);
    }

    /// Adds a stream to the sums, where its reads are on the books already.
    pub(crate) fn book_sums(&mut self, stream: &Stream) {
        self.dispatcher.books.book_summary(stream.summary);
        let Playing { rate, intervals } = Playing::of(stream);
        self.playing.rate += rate;
        self.playing.intervals += intervals;
    }

    /// Takes off the books what [`Disk::book`] put on them.
    pub(crate) fn unbook(&mut self, stream: &Stream) {
        stream.booked_unread().for_each(|piece| self.dispatcher.books.unbook(piece));
        stream.booked_held().for_each(|piece| self.release(stream, piece));
        self.dispatcher.books.unbook_summary(stream.summary);
        let Playing { rate, intervals } = Playing::of(stream);
        self.playing.rate -= rate;
        self.playing.intervals -= intervals;
    }

    /// Takes a piece off the books that `stream` holds.
    pub(crate) fn release(&mut self, stream: &Stream, piece: PieceDue) {
        let books = &mut self.dispatcher.books;
        if stream.was_read_elsewhere(piece.piece) {
            books.planned_again(piece);
        }
        books.release(piece);
    }

    /// Compares its books and its queue with those of a disk that was booked anew; says where they
    /// differ.
    pub(crate) fn differs(&self, fresh: &Self) -> Option<String> {
        let (books, due) = (&self.dispatcher.books, &fresh.dispatcher.books);
        let sums = |books: &DiskBooks| {
            let ahead = books.ahead_of_now().to_vec();
            (ahead, books.overdue(), books.held(), books.reserved(), books.summary())
        };
        if sums(books) != sums(due) {
            return Some(format!("booked {books:?}, due {due:?}"));
        }
        if self.playing != fresh.playing {
            return Some(format!("playing {:?}, due {:?}", self.playing, fresh.playing));
        }
        let (queue, due) = (self.dispatcher.queue(), fresh.dispatcher.queue());
        (queue.len() != due.len()).then(|| format!("queued {queue:?}, due {due:?}"))
    }

    pub(crate) fn status(&self, now: Moment, plans: bool) -> DiskStatus {
        let slack = if plans {
            self.least_spare(now).unwrap_or(u64::MAX)
        } else {
            least_slack(&self.dispatcher.books, &self.supply(now))
        };
        DiskStatus {
            min_read: self.guard.min_read(),
            recordings: self.recordings.len(),
            write_share: self.timings.write_share,
            reads: self.reads,
            bytes: self.bytes,
            failures: self.failures,
            last_slot: self.last_slot,
            in_flight: self.busy(),
            sessions: 0,
            booked_rate: BitRate(0),
            lost: self.lost,
            draining: self.draining,
            slowdown: self.timings.slowdown,
            slowest_slot_reads: self
                .timings
                .observed_curve
                .as_ref()
                .map_or(self.guarantee.min_read, |seen| {
                    u32::try_from(seen.least(1)).expect("not more than guaranteed")
                }),
            observed_slot_reads: self.timings.observed_min_read,
            guaranteed_slack: self.scan.slack().filter(|slack| *slack < Slack::NOTHING_DUE),
            // With nothing due all of the next slot is slack.
            slack_reads: match slack {
                u64::MAX if plans => self.guard.min_read().into(),
                u64::MAX => self.min_read().into(),
                slack => slack,
            },
        }
    }
}

/// What the streams play that a disk reads for: streams without a feed, and feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Playing {
    /// Bytes in a second.
    pub(crate) rate: u64,
    /// Bytes that feeds keep longer than their first follower needs.
    pub(crate) intervals: u64,
}

impl Playing {
    /// The part of one stream.
    pub(crate) fn of(stream: &Stream) -> Self {
        if stream.fed.is_some() {
            return Self::default();
        }
        let longer = stream.release_clock().keeps_longer_by(&stream.timing);
        let rate = stream.bytes_in(Duration::from_secs(1));
        Self { rate, intervals: stream.bytes_in(longer) }
    }
}

/// Idle slots after which no observation from before counts.
const LONGEST_MEMORY: u64 = 1000;

/// Searches for a delayed start, and vain ones for memory, per slot and disk: each is some
/// evaluations.
const MAX_SEARCHES: u32 = 8;

/// Reads of a disk that are dropped for newcomers of one slot, at most about: to drop one and hold
/// it again takes a microsecond.
const MAX_DROPPED: u64 = 1 << 16;
