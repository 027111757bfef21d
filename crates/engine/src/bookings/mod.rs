//! Bookings: what the admitted streams hold of each resource, and the time to which that applies.
//!
//! ```text
//!   resource   booked in                       per
//!   ───────────────────────────────────────────────────────────────────────────────
//!   disk       Disk::dispatcher (DiskBooks)    disk: reads by slot
//!   memory     the same books                  disk: a share of all buffers
//!   network    NetworkBooks                    engine: bytes by slot
//!   disk loss  FailoverBooks                   pair of disks: reads that would move
//! ```
//!
//! A stream is on all of these books or on none: [`Bookings::insert`] and [`Bookings::remove`] are
//! the only way on and off. Whether more fits is decided in [`evaluate`], which changes nothing.
//!
//! Knows streams as lists of pieces with slots. Knows neither sessions nor buffers, and gives no
//! order to a device.

pub(super) mod backlog;
pub(super) mod best_effort;
pub(super) mod disk;
pub(super) mod evaluate;
mod failover;
pub(super) mod scan;
pub(super) mod starts;

use super::pieces::{times, validate};
use super::stream::{Stream, StreamId};
use super::{DiskNumber, EngineConfig, Layout, PieceTimes, TrackLayout};
use disk::Disk;
use evaluate::DemandPool;
use failover::FailoverBooks;
use scheduler::{Demand, NetworkBooks, PieceDue, PlayoutClock, PolicyKind, shares};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, Moment, SlotIndex};

pub(super) use failover::EARLY_SLOTS;

/// All books of an engine, and its disks.
#[derive(Clone, Debug)]
pub(super) struct Bookings {
    policy: PolicyKind,
    slot_length: Duration,
    startup: Duration,
    network_rate: Option<BitRate>,
    now: Moment,
    /// The slot that runs at `now`. All books have been advanced to it.
    slot: SlotIndex,
    pub(super) disks: Vec<Disk>,
    network: NetworkBooks,
    pub(super) failover: FailoverBooks,
    demands: DemandPool,
}

/// The disks that a session has a booking on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    /// The disk that it is read from.
    pub(super) disk: usize,
    /// The disk with the copy that takes over if the first disk is lost.
    pub(super) replica: Option<usize>,
}

/// Time and configuration.
impl Bookings {
    /// Empty books for the disks of a configuration.
    pub(super) fn new(config: &EngineConfig) -> Self {
        let rate =
            |disk: &super::DiskGuarantee| u64::from(disk.min_read).saturating_mul(disk.read_size.0);
        let weights: Vec<u64> = config.disks.iter().map(rate).collect();
        // A disk that reads more in a slot needs more buffers for these reads.
        let memory = whole_shares(config.buffers.0, &weights);
        let disks = config.disks.iter().zip(memory);
        Self {
            policy: config.policy,
            slot_length: config.slot,
            startup: config.startup,
            network_rate: config.network,
            now: Moment::ZERO,
            slot: SlotIndex(0),
            disks: disks
                .map(|(guarantee, memory)| Disk::new(*guarantee, memory, config.slot))
                .collect(),
            network: NetworkBooks::default(),
            failover: FailoverBooks::new(config.disks.len(), config.survive_loss),
            demands: DemandPool::default(),
        }
    }

    /// The network carries this rate from now on.
    pub(super) fn set_network(&mut self, rate: Option<BitRate>) {
        self.network_rate = rate;
    }

    pub(super) fn now(&self) -> Moment {
        self.now
    }

    /// The slot that runs now.
    pub(super) fn slot(&self) -> SlotIndex {
        self.slot
    }

    pub(super) fn slot_length(&self) -> Duration {
        self.slot_length
    }

    /// The end of the slot that runs now.
    pub(super) fn slot_end(&self) -> Moment {
        self.slot.next().start(self.slot_length)
    }

    pub(super) fn policy(&self) -> PolicyKind {
        self.policy
    }

    /// Whether the policy refuses any request at all.
    pub(super) fn refuses(&self) -> bool {
        self.policy != PolicyKind::None
    }

    /// Whether `disk` is read by plan: the policy counts time, and the disk's times are known.
    pub(super) fn plans(&self, disk: usize) -> bool {
        self.policy.plans(&self.disks[disk].timings)
    }

    /// Whether admitted streams must survive the loss of any one disk.
    pub(super) fn survives_loss(&self) -> bool {
        self.failover.books.is_some()
    }

    /// Time is `now`. True: a slot has begun since the last call, and the disks' accounts of the
    /// slots before are closed. [`Bookings::begin_slot`] must follow.
    pub(super) fn advance(&mut self, now: Moment) -> bool {
        self.now = self.now.max(now);
        let slot = SlotIndex::at(now, self.slot_length);
        if slot <= self.slot {
            return false;
        }
        self.slot = slot;
        for disk in 0..self.disks.len() {
            let plans = self.plans(disk);
            self.disks[disk].roll(slot, plans);
        }
        self.failover.advance(slot);
        self.network.advance(slot);
        true
    }

    /// Takes over the disks' pending timings. No stream may be booked.
    pub(super) fn learn_timings(&mut self) {
        let now = self.now;
        self.disks.iter_mut().for_each(|disk| disk.learn(now));
    }
}

/// Disks.
impl Bookings {
    /// The disk's index, if there is such a disk.
    pub(super) fn disk_index(&self, disk: DiskNumber) -> Option<usize> {
        let index = usize::from(disk.0);
        (index < self.disks.len()).then_some(index)
    }

    /// Whether the disk of a copy exists and is not lost.
    pub(super) fn is_live(&self, layout: &Layout) -> bool {
        self.disk_index(layout.disk).is_some_and(|disk| !self.disks[disk].lost)
    }

    /// Times a track's pieces, if the times of its disk are known. Only once: what is booked by
    /// these times must be taken off the books by the same.
    pub(super) fn time_track(&self, disk: usize, track: &TrackLayout) {
        if track.times.get().is_none()
            && let Some(times) = self.piece_times(disk, track)
        {
            track.times.get_or_init(|| times);
        }
    }

    /// Times a track's pieces in all copies, where the disks' times are known: each piece takes the
    /// longest of its copies' times, so that it is booked alike wherever it is read. Where the
    /// times of one disk are unknown, no piece counts as read in one visit with the next.
    pub(super) fn time_copies(&self, copies: &[Arc<Layout>], number: usize) {
        let tracks = || copies.iter().map(|layout| (layout, &layout.tracks[number]));
        // Reads may be booked by these times, and come off the books by the same (`time_track`).
        if tracks().any(|(_, track)| track.times.get().is_some()) {
            return;
        }
        let (mut longest, mut unknown) = (None::<PieceTimes>, false);
        for (layout, track) in tracks() {
            let Some(times) = self.piece_times(usize::from(layout.disk.0), track) else {
                unknown = true;
                continue;
            };
            longest = Some(match longest {
                None => times,
                Some(before) => before.longest(&times),
            });
        }
        let Some(mut longest) = longest else { return };
        if unknown {
            longest.followed.clear();
        }
        for (_, track) in tracks() {
            track.times.get_or_init(|| longest.clone());
        }
    }

    // What the pieces of a valid track take of `disk`, if that is known.
    fn piece_times(&self, disk: usize, track: &TrackLayout) -> Option<PieceTimes> {
        let state = self.disks.get(disk)?;
        let costs = state.timings.costs.as_ref()?;
        // Tracks that no offer names come here, too, and an invalid one has pieces without a place.
        if validate(track, state.guarantee.read_size.0).is_err() {
            return None;
        }
        Some(times(track, costs))
    }

    /// All memory is to be `bytes` from now on. The disks get at once what is more than before, and
    /// what is less they are to give back ([`Bookings::owed_by`]).
    pub(super) fn set_memory_limit(&mut self, bytes: u64) {
        let weights: Vec<u64> = self.disks.iter().map(|disk| disk.first_memory).collect();
        let fair = whole_shares(bytes, &weights);
        self.disks.iter_mut().zip(fair).for_each(|(disk, fair)| disk.fair_memory = fair);
        let mut more = bytes.saturating_sub(self.memory());
        for disk in 0..self.disks.len() {
            let lacks = self.share_of_memory(disk).saturating_sub(self.disks[disk].all_memory());
            let given = lacks.min(more);
            self.disks[disk].memory += given;
            more -= given;
        }
        // The rest of the division among the disks that are there.
        if let Some(disk) = self.disks.iter_mut().find(|disk| !disk.lost) {
            disk.memory += more;
        } else if let Some(disk) = self.disks.first_mut() {
            disk.memory += more;
        }
    }

    /// All memory that streams may have by what was set last.
    pub(super) fn memory_limit(&self) -> u64 {
        self.disks.iter().map(|disk| disk.fair_memory).sum()
    }

    /// All memory that the disks have: more than [`Bookings::memory_limit`] as long as admitted
    /// streams need it.
    pub(super) fn memory(&self) -> u64 {
        self.disks.iter().map(Disk::all_memory).sum()
    }

    /// The part of the memory that a disk is to have. That of lost disks is divided among the
    /// others.
    pub(super) fn share_of_memory(&self, disk: usize) -> u64 {
        let lost = self.disks.iter().filter(|disk| disk.lost);
        let (without, ownerless) =
            lost.fold((0, 0), |(disks, bytes), disk| (disks + 1, bytes + disk.fair_memory));
        let part = ownerless / (self.disks.len() as u64 - without).max(1);
        let disk = &self.disks[disk];
        if disk.lost { 0 } else { disk.fair_memory + part }
    }

    /// Whether the disks are to give back memory.
    pub(super) fn owes_memory(&self) -> bool {
        self.memory() > self.memory_limit()
    }

    /// The bytes of a disk's memory that it is to give back.
    pub(super) fn owed_by(&self, disk: usize) -> u64 {
        let owed = self.memory().saturating_sub(self.memory_limit());
        // All that is owed is more than somebody's share.
        owed.min(self.disks[disk].all_memory().saturating_sub(self.share_of_memory(disk)))
    }

    /// A disk's memory; `within_limit`: without what it is to give back.
    pub(super) fn memory_within(&self, disk: usize, within_limit: bool) -> u64 {
        let owed = if within_limit { self.owed_by(disk) } else { 0 };
        self.disks[disk].all_memory() - owed
    }

    /// [`Bookings::memory_within`] without what is kept for beginnings.
    pub(super) fn memory_beside_beginnings(&self, disk: usize, within_limit: bool) -> u64 {
        let kept = self.disks[disk].beginnings.bytes;
        self.memory_within(disk, within_limit).saturating_sub(kept)
    }

    /// Shares out the memory of the lost disk; returns the part that each disk gets.
    pub(super) fn share_lost_memory(&mut self, lost: usize) -> Vec<u64> {
        for disk in &mut self.disks {
            disk.give_back_beginnings(disk.beginnings.bytes);
        }
        let others = self.disks.iter().filter(|disk| !disk.lost).count() as u64;
        // Where no disk is left, all memory stays where it is.
        let part = self.disks[lost].memory / others.max(1);
        // The rest of the division stays with the lost disk, so that the sum of all shares is kept.
        self.disks[lost].memory -= part * others;
        let part_of = |disk: &mut Disk| {
            let part = if disk.lost { 0 } else { part };
            disk.memory += part;
            part
        };
        self.disks.iter_mut().map(part_of).collect()
    }

    /// Moves memory between disks.
    pub(super) fn move_memory(&mut self, from: usize, to: usize, bytes: u64) {
        self.disks[from].memory -= bytes;
        self.disks[to].memory += bytes;
    }
}

/// Streams on the books, and off them.
impl Bookings {
    /// The clock of a stream that is admitted at `origin` and starts at `from_ms` of media time.
    pub(super) fn playout_clock(
        &self,
        origin: Moment,
        from_ms: u32,
        replica: Option<usize>,
    ) -> PlayoutClock {
        let (startup, slot) = (self.startup, self.slot_length);
        // Only a stream with a replica has to outlast the slot in which a loss is noticed.
        let early = if replica.is_some() { EARLY_SLOTS } else { 0 };
        PlayoutClock {
            origin,
            startup,
            opens_after: Duration::ZERO,
            with_first_ms: 0,
            from_ms,
            kept_from_ms: from_ms,
            kept_longer: 0,
            slot,
            early,
        }
    }

    /// Books a new stream, whose part of its session's demand is on the books already
    /// ([`Bookings::book_demand`]).
    pub(super) fn insert_new(&mut self, id: StreamId, stream: &mut Stream) {
        stream.guaranteed_slack = self.slack_of_plan(stream);
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.book_sums(stream);
        self.failover.book(stream);
        disk.dispatcher.enqueue(id, stream.next_read());
    }

    /// The slack that the plan of a stream's disk leaves everywhere, where that is guaranteed.
    pub(super) fn slack_of_plan(&self, stream: &Stream) -> Option<Duration> {
        let disk = &self.disks[usize::from(stream.layout.disk.0)];
        disk.scan.slack().filter(|_| self.policy.guarantees())
    }

    /// Books the reads of new streams on their disk and on the network.
    pub(super) fn book_demand(&mut self, disk: usize, demand: &Demand) {
        self.disks[disk].dispatcher.books.book_demand(demand);
        self.network.book_demand(demand);
    }

    /// Puts a stream back on all books.
    pub(super) fn insert(&mut self, id: StreamId, stream: &mut Stream) {
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        // The plan may have been made while the stream was off the books, and leave less slack.
        let slack = stream.guaranteed_slack.zip(disk.scan.slack()).map(|(a, b)| a.min(b));
        stream.guaranteed_slack = slack.or(stream.guaranteed_slack);
        disk.book(stream);
        self.failover.book(stream);
        stream.to_be_sent().for_each(|piece| self.network.book(piece));
        disk.dispatcher.enqueue(id, stream.next_read());
    }

    /// Takes a stream off all books.
    pub(super) fn remove(&mut self, id: StreamId, stream: &Stream) {
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.unbook(stream);
        self.failover.unbook(stream);
        stream.to_be_sent().for_each(|piece| self.network.unbook(piece));
        disk.dispatcher.dequeue(id, stream.next_read());
    }

    /// A stream does not need a piece any more that it held. `safe`: the piece was in memory.
    pub(super) fn release(&mut self, stream: &Stream, piece: PieceDue, safe: bool) {
        // What a feed keeps is on the books for the feed.
        if !stream.is_fed(piece.piece) {
            self.disks[usize::from(stream.layout.disk.0)].release(stream, piece);
            self.failover.release(stream, piece.piece, safe);
        }
        if !stream.is_feed {
            self.network.unbook(piece);
        }
    }

    /// Reserves memory for a session's sockets, on its disk and for the loss of that disk.
    pub(super) fn reserve_send_memory(&mut self, placement: Placement, bytes: u64) {
        self.disks[placement.disk].dispatcher.books.reserve(bytes);
        self.failover.reserve(placement, bytes);
    }

    /// Releases memory that was reserved for a session's sockets.
    pub(super) fn release_send_memory(&mut self, placement: Placement, bytes: u64) {
        self.disks[placement.disk].dispatcher.books.unreserve(bytes);
        self.failover.unreserve(placement, bytes);
    }
}

/// Checks.
impl Bookings {
    /// Whether nothing is booked anywhere.
    pub(super) fn is_empty(&self) -> bool {
        let disks = self.disks.iter().all(|disk| disk.dispatcher.books.is_empty());
        disks && self.network.total() == 0 && self.failover.is_empty()
    }

    /// Compares all books with books made anew from these streams and reserves; says where they
    /// differ. `detached` is memory that sockets hold beyond their sessions' end.
    pub(super) fn audit<'a>(
        &mut self,
        streams: impl Iterator<Item = (StreamId, &'a Stream)> + Clone,
        reserves: impl Iterator<Item = (Placement, u64)> + Clone,
        detached: impl Iterator<Item = (usize, u64)> + Clone,
    ) -> Result<(), String> {
        let mut network = NetworkBooks::default();
        network.advance(self.slot);
        let mut failover = FailoverBooks::new(self.disks.len(), self.survives_loss());
        failover.advance(self.slot);
        // New books stand at slot 0, and those to compare with at the present slot.
        let fresh = |disk: &Disk| {
            let mut fresh = Disk::new(disk.guarantee, disk.memory, disk.slot);
            fresh.dispatcher.advance(self.slot);
            fresh
        };
        let mut disks: Vec<Disk> = self.disks.iter().map(fresh).collect();
        for (id, stream) in streams {
            let disk = &mut disks[usize::from(stream.layout.disk.0)];
            disk.book(stream);
            disk.dispatcher.enqueue(id, stream.next_read());
            stream.to_be_sent().for_each(|piece| network.book(piece));
            failover.book(stream);
        }
        for (placement, reserve) in reserves {
            disks[placement.disk].dispatcher.books.reserve(reserve);
            failover.reserve(placement, reserve);
        }
        for (disk, reserve) in detached {
            disks[disk].dispatcher.books.reserve(reserve);
        }
        for (number, (disk, fresh)) in self.disks.iter().zip(&disks).enumerate() {
            disk.differs(fresh).map_or(Ok(()), |what| Err(format!("disk {number}: {what}")))?;
        }
        if self.network.ahead_of_now() != network.ahead_of_now() {
            return Err(format!("network: booked {:?}, due {network:?}", self.network));
        }
        self.failover.differs(&mut failover, self.disks.len()).map_or(Ok(()), Err)
    }
}

// Shares of which the first has the rest of the division.
fn whole_shares(total: u64, weights: &[u64]) -> Vec<u64> {
    let mut parts = shares(total, weights);
    let rest = total - parts.iter().sum::<u64>();
    parts.iter_mut().take(1).for_each(|first| *first += rest);
    parts
}
