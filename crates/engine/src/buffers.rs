//! Buffers: pieces in memory or being read, shared between sessions; buffers without pins stay as a
//! cache until their memory is needed.
//!
//! ```text
//!   start ──▶ reading ──ready──▶ in memory ──last pin gone──▶ idle (cache) ──▶ forgotten
//!                │                    ▲                          │
//!                └──failed──▶ gone    └───────── pinned again ───┘
//! ```
//!
//! A pin is one stream's hold or one delivery that a socket has not taken yet. Buffers deliberately
//! know neither the owners of pins nor any deadline; they only list the waiters of each read.
//!
//! Idle beginnings of titles that more than one viewer has had stay longest, in up to a quarter of
//! the memory: viewers start there, and one who finds the beginning in memory needs the disk later
//! (`streams::resident`). What is idle of the rest has just been played, and is needed again only
//! by those who are close behind or go back. That a second use tells what is worth keeping is the
//! rule of 2Q (T. Johnson, D. Shasha, *2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm*, VLDB 1994).

use super::stream::StreamId;
use super::{DiskNumber, ReadId, RequestId, TitleKey, TrackNumber};
use std::collections::BTreeMap;
use units::SlotIndex;

/// Names a piece by its stored bytes, so that all presentations of a title share its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PieceKey {
    pub(super) title: TitleKey,
    pub(super) track: TrackNumber,
    /// First byte of the piece within the stored bytes of the track.
    pub(super) start: u64,
    pub(super) len: u32,
    /// The disk of the copy that it was read from.
    pub(super) disk: DiskNumber,
}

/// Where a piece lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) disk: DiskNumber,
    pub(super) offset: u64,
    pub(super) len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferState {
    Reading,
    Ready,
}

/// A stream or request that waits for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiter {
    Stream(StreamId),
    Request(RequestId),
}

/// One piece in memory, or being read.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) key: PieceKey,
    pub(super) place: Location,
    pub(super) state: BufferState,
    /// The slot in which the piece is due that it was first read for.
    pub(super) due: SlotIndex,
    /// This read repeats a failed one.
    pub(super) retried: bool,
    /// Notified when the read ends; may name streams and requests that no longer exist.
    pub(super) waiters: Vec<Waiter>,
    part: TitlePart,
    pins: u32,
    // Key in `Idle::by_age`; valid only while the buffer is ready and has no pins.
    idle_since: u64,
}

/// The part of a title that a piece is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TitlePart {
    /// What a viewer of the title needs first.
    Beginning,
    /// A beginning that more than one viewer has had.
    PopularBeginning,
    Rest,
}

impl Buffer {
    /// Whether it repeats a failed read that nobody needs any more. No books have its memory.
    pub(super) fn repeats_for_nobody(&self) -> bool {
        self.retried && self.pins == 0 && self.state == BufferState::Reading
    }

    fn is_popular(&self) -> bool {
        self.part == TitlePart::PopularBeginning
    }

    fn popular_len(&self) -> u64 {
        if self.is_popular() { u64::from(self.place.len) } else { 0 }
    }
}

/// All buffers of an engine.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    total: u64,
    // Sum of the lengths of all buffers; above `total` only between `set_total` and `make_room`.
    used: u64,
    by_read: BTreeMap<ReadId, Buffer>,
    by_piece: BTreeMap<PieceKey, ReadId>,
    // Ready buffers without pins: popular beginnings, and all others.
    popular: Idle,
    others: Idle,
    // Sum of the lengths of all popular beginnings, idle or not.
    popular_bytes: u64,
    next_read: u64,
    next_idle: u64,
}

/// Buffers whose memory may be taken back.
#[derive(Clone, Debug, Default)]
struct Idle {
    // Oldest first: the order in which memory is taken back.
    by_age: BTreeMap<u64, ReadId>,
    // Sum of their lengths; never above the memory in use.
    bytes: u64,
}

impl Buffers {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            used: 0,
            by_read: BTreeMap::new(),
            by_piece: BTreeMap::new(),
            popular: Idle::default(),
            others: Idle::default(),
            popular_bytes: 0,
            next_read: 0,
            next_idle: 0,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Changes the memory. Where it is less than before, [`Buffers::make_room`] must follow.
    pub(super) fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Bytes of beginnings that more than one viewer has had.
    pub(super) fn popular_bytes(&self) -> u64 {
        self.popular_bytes
    }

    /// Bytes that new reads can use now, idle buffers included.
    pub(super) fn room(&self) -> u64 {
        // Used and not idle is what is pinned or being read: it cannot be taken back.
        self.total.saturating_sub(self.used - self.popular.bytes - self.others.bytes)
    }

    pub(super) fn get(&self, read: ReadId) -> Option<&Buffer> {
        self.by_read.get(&read)
    }

    /// The buffer of a piece, if it is in memory (from any copy) or being read from `place`. A read
    /// of another copy is not used: it follows the deadlines of another disk's schedule.
    pub(super) fn find(&self, key: PieceKey, place: Location) -> Option<(ReadId, BufferState)> {
        if let Some(read) = self.by_piece.get(&key) {
            let buffer = &self.by_read[read];
            // The key names bytes of a title, not their place: a piece that has moved is read anew.
            if buffer.place == place {
                return Some((*read, buffer.state));
            }
        }
        // The disk is the last field in the order of keys, so all copies of a piece are neighbours.
        let from = PieceKey { disk: DiskNumber(0), ..key };
        let to = PieceKey { disk: DiskNumber(u16::MAX), ..key };
        let mut copies = self.by_piece.range(from..=to).filter(|(copy, _)| copy.disk != key.disk);
        let ready = |read: &ReadId| self.by_read[read].state == BufferState::Ready;
        copies.find(|(_, read)| ready(read)).map(|(_, read)| (*read, BufferState::Ready))
    }

    /// Takes back idle buffers, in the order of [`Buffers::evict_oldest`], until `len` bytes are
    /// free. Says whether they are; what was taken back is added to `forgotten`.
    pub(super) fn make_room(&mut self, len: u64, forgotten: &mut Vec<ReadId>) -> bool {
        if len > self.room() {
            return false;
        }
        while self.used + len > self.total {
            forgotten.push(self.evict_oldest().expect("room is free or idle"));
        }
        true
    }

    /// Takes back the buffer that has been idle longest; of the popular beginnings only if they
    /// have more than a quarter of the memory, or if there are no others.
    pub(super) fn evict_oldest(&mut self) -> Option<ReadId> {
        let oldest = |idle: &Idle| idle.by_age.first_key_value().map(|(age, read)| (*age, *read));
        let (popular, other) = (oldest(&self.popular), oldest(&self.others));
        let (_, read) = match self.popular.bytes > self.total / POPULAR_PART {
            true => popular.into_iter().chain(other).min()?,
            false => other.or(popular)?,
        };
        self.remove(read);
        Some(read)
    }

    /// A new read of a piece that is due in the slot `due`, not pinned yet. There must be room.
    pub(super) fn start(
        &mut self,
        key: PieceKey,
        place: Location,
        due: SlotIndex,
        retried: bool,
        part: TitlePart,
    ) -> ReadId {
        let read = ReadId(self.next_read);
        self.next_read += 1;
        self.used += u64::from(place.len);
        assert!(self.used <= self.total, "a read is only started when there is room for it");
        let buffer = Buffer {
            key,
            place,
            state: BufferState::Reading,
            due,
            retried,
            waiters: Vec::new(),
            part,
            pins: 0,
            idle_since: 0,
        };
        self.popular_bytes += buffer.popular_len();
        self.by_read.insert(read, buffer);
        self.by_piece.insert(key, read);
        read
    }

    pub(super) fn pin(&mut self, read: ReadId) {
        let buffer = self.by_read.get_mut(&read).expect("only live buffers are pinned");
        // A read in flight is not idle: it becomes so when it ends without pins.
        if buffer.pins == 0 && buffer.state == BufferState::Ready {
            let idle = if buffer.is_popular() { &mut self.popular } else { &mut self.others };
            idle.remove(buffer);
        }
        buffer.pins += 1;
    }

    pub(super) fn unpin(&mut self, read: ReadId) {
        let buffer = self.by_read.get_mut(&read).expect("a pinned buffer is live");
        buffer.pins = buffer.pins.checked_sub(1).expect("unpinned as often as pinned");
        if buffer.pins == 0 && buffer.state == BufferState::Ready {
            self.make_idle(read);
        }
    }

    /// Another viewer than the one that it was read for has a buffer. It is pinned.
    pub(super) fn used_again(&mut self, read: ReadId) {
        let buffer = self.by_read.get_mut(&read).expect("a pinned buffer is live");
        assert!(buffer.pins > 0, "an idle buffer is in the list of its kind");
        if buffer.part == TitlePart::Beginning {
            buffer.part = TitlePart::PopularBeginning;
            self.popular_bytes += u64::from(buffer.place.len);
        }
    }

    /// Adds a waiter that is notified when the read ends.
    pub(super) fn add_waiter(&mut self, read: ReadId, who: Waiter) {
        let buffer = self.by_read.get_mut(&read).expect("a read in flight is live");
        if !buffer.waiters.contains(&who) {
            buffer.waiters.push(who);
        }
    }

    /// Marks a read as complete, and returns its waiters.
    pub(super) fn ready(&mut self, read: ReadId) -> Vec<Waiter> {
        let buffer = self.by_read.get_mut(&read).expect("a read in flight is live");
        buffer.state = BufferState::Ready;
        let waiters = std::mem::take(&mut buffer.waiters);
        // All that wanted the piece have left in the meantime: its data serves as cache.
        if buffer.pins == 0 {
            self.make_idle(read);
        }
        waiters
    }

    /// Removes and returns a buffer, whatever its pins.
    pub(super) fn remove(&mut self, read: ReadId) -> Buffer {
        let buffer = self.by_read.remove(&read).expect("only live buffers are removed");
        // The piece may have moved, and a newer read of it may have taken this entry over.
        if self.by_piece.get(&buffer.key) == Some(&read) {
            self.by_piece.remove(&buffer.key);
        }
        self.used -= u64::from(buffer.place.len);
        if buffer.pins == 0 && buffer.state == BufferState::Ready {
            self.idle_of(buffer.is_popular()).remove(&buffer);
        }
        self.popular_bytes -= buffer.popular_len();
        buffer
    }

    /// Removes all idle buffers of a title.
    pub(super) fn purge(&mut self, title: TitleKey, forgotten: &mut Vec<ReadId>) {
        let from = PieceKey { title, track: 0, start: 0, len: 0, disk: DiskNumber(0) };
        let disk = DiskNumber(u16::MAX);
        let to = PieceKey { title, track: TrackNumber::MAX, start: u64::MAX, len: u32::MAX, disk };
        let reads: Vec<ReadId> = self.by_piece.range(from..=to).map(|(_, read)| *read).collect();
        for read in reads {
            if self.by_read[&read].pins == 0 && self.by_read[&read].state == BufferState::Ready {
                self.remove(read);
                forgotten.push(read);
            }
        }
    }

    /// Whether any stream holds a buffer, or any socket is sent from it.
    pub(super) fn is_pinned(&self, read: ReadId) -> bool {
        self.by_read.get(&read).is_some_and(|buffer| buffer.pins > 0)
    }

    /// Whether a failed read is being repeated that nobody needs any more.
    pub(super) fn repeats_for_nobody(&self) -> bool {
        self.by_read.values().any(Buffer::repeats_for_nobody)
    }

    /// Whether exactly one stream or socket pins a buffer.
    pub(super) fn has_one_pin(&self, read: ReadId) -> bool {
        self.by_read.get(&read).is_some_and(|buffer| buffer.pins == 1)
    }

    /// All pins of all buffers.
    pub(super) fn pins(&self) -> usize {
        self.by_read.values().map(|buffer| buffer.pins as usize).sum()
    }

    fn make_idle(&mut self, read: ReadId) {
        let buffer = self.by_read.get_mut(&read).expect("live");
        buffer.idle_since = self.next_idle;
        let (popular, len) = (buffer.is_popular(), u64::from(buffer.place.len));
        let since = self.next_idle;
        self.next_idle += 1;
        let idle = self.idle_of(popular);
        idle.by_age.insert(since, read);
        idle.bytes += len;
    }

    fn idle_of(&mut self, popular: bool) -> &mut Idle {
        if popular { &mut self.popular } else { &mut self.others }
    }
}

impl Idle {
    fn remove(&mut self, buffer: &Buffer) {
        self.by_age.remove(&buffer.idle_since);
        self.bytes -= u64::from(buffer.place.len);
    }
}

/// Part of the memory that idle popular beginnings may keep from others.
pub(super) const POPULAR_PART: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(piece: u32) -> (PieceKey, Location) {
        let offset = u64::from(piece) * 10;
        let disk = DiskNumber(0);
        let key = PieceKey { title: TitleKey(1), track: 0, start: offset, len: 10, disk };
        (key, Location { disk, offset, len: 10 })
    }

    #[test]
    fn the_longest_unused_goes_first_and_the_pinned_never() {
        let mut buffers = Buffers::new(30);
        let reads: Vec<ReadId> = (0..3)
            .map(|n| {
                let (key, place) = piece(n);
                let read = buffers.start(key, place, SlotIndex(0), false, TitlePart::Rest);
                buffers.pin(read);
                buffers.ready(read);
                read
            })
            .collect();
        let mut forgotten = Vec::new();
        assert!(!buffers.make_room(10, &mut forgotten), "all pinned");
        buffers.unpin(reads[2]);
        buffers.unpin(reads[0]);
        assert!(!buffers.make_room(21, &mut forgotten), "one is pinned");
        assert!(buffers.make_room(10, &mut forgotten));
        assert_eq!(forgotten, [reads[2]], "idle the longest");
        assert_eq!(buffers.find(piece(0).0, piece(0).1), Some((reads[0], BufferState::Ready)));
        buffers.pin(reads[0]);
        assert_eq!((buffers.room(), buffers.used()), (10, 20));
    }

    #[test]
    fn popular_beginnings_of_titles_stay_longest_in_a_quarter_of_the_memory() {
        use TitlePart::{Beginning, Rest};
        let mut buffers = Buffers::new(80);
        let parts = [(Beginning, 2), (Rest, 2), (Beginning, 2), (Beginning, 1), (Beginning, 2)];
        let mut numbers = 0..;
        let reads = parts.map(|(part, viewers)| {
            let (key, place) = piece(numbers.next().expect("endless"));
            let read = buffers.start(key, place, SlotIndex(0), false, part);
            buffers.ready(read);
            for viewer in 0..viewers {
                buffers.pin(read);
                if viewer > 0 {
                    buffers.used_again(read);
                }
                buffers.unpin(read);
            }
            read
        });
        let order: Vec<_> = std::iter::from_fn(|| buffers.evict_oldest()).collect();
        // The oldest of all while three have more than a quarter; then what is not popular or no
        // beginning.
        assert_eq!(order, [0, 1, 3, 2, 4].map(|number: usize| reads[number]));
        assert_eq!((buffers.room(), buffers.used()), (80, 0));
    }

    #[test]
    fn another_copy_will_do_once_it_is_in_memory() {
        let mut buffers = Buffers::new(30);
        let (key, place) = piece(0);
        let read = buffers.start(key, place, SlotIndex(0), false, TitlePart::Rest);
        let (here, there) = (DiskNumber(1), Location { disk: DiskNumber(1), offset: 70, len: 10 });
        let key = PieceKey { disk: here, ..key };
        assert_eq!(buffers.find(key, there), None, "read on another disk's schedule");
        buffers.ready(read);
        assert_eq!(buffers.find(key, there), Some((read, BufferState::Ready)));
        let own = buffers.start(key, there, SlotIndex(0), false, TitlePart::Rest);
        assert_eq!(buffers.find(key, there), Some((own, BufferState::Reading)));
    }

    #[test]
    fn a_repeated_read_is_for_nobody_once_its_last_pin_is_gone() {
        let mut buffers = Buffers::new(20);
        for (number, repeats) in [(0, false), (1, true)] {
            let (key, place) = piece(number);
            let read = buffers.start(key, place, SlotIndex(0), repeats, TitlePart::Rest);
            buffers.pin(read);
            assert!(!buffers.repeats_for_nobody());
            buffers.unpin(read);
            assert_eq!(buffers.repeats_for_nobody(), repeats);
            assert_eq!(buffers.room(), 10, "its memory is free when it has ended");
            buffers.ready(read);
            assert!(!buffers.repeats_for_nobody());
        }
    }

    #[test]
    fn a_piece_that_moved_is_not_found_in_its_old_place() {
        let mut buffers = Buffers::new(30);
        let (key, place) = piece(0);
        buffers.start(key, place, SlotIndex(0), false, TitlePart::Rest);
        assert_eq!(buffers.find(key, Location { offset: 7, ..place }), None);
    }
}
