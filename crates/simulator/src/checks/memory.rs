//! Memory and reads: every read has the position of its piece, completes once and is released once.
//! All buffers together never exceed the budget. No buffer is released while a socket sends from
//! it.
//!
//! Written from outside the engine: the position of a piece is computed from the title's layout.

use super::ViolationLog;
use engine::{Layout, ReadId, ReadOutcome, TitleKey, TrackNumber};
use std::collections::BTreeMap;
use units::align_up;

/// The part of a track that one read fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) title: TitleKey,
    pub(crate) track: TrackNumber,
    /// Number of the piece in play-out order.
    pub(crate) number: u32,
}

/// A read that the engine has issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssuedRead {
    pub(crate) id: ReadId,
    pub(crate) piece: Piece,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

#[derive(Debug)]
struct PieceBuffer {
    piece: Piece,
    len: u32,
    ready: bool,
    failed: bool,
    /// Deliveries from this buffer that a socket has not taken.
    pins: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// All buffers that the engine says there are.
    budget: u64,
    /// All buffers that there are to be. What streams were admitted with may be more.
    limit: u64,
    used: u64,
    pub(crate) peak: u64,
    buffers: BTreeMap<ReadId, PieceBuffer>,
    /// Number of ready buffers, per piece.
    ready: BTreeMap<Piece, u32>,
    /// Reads that have not completed.
    pub(crate) in_flight: u64,
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    /// Number of failed reads, per piece.
    failures: BTreeMap<Piece, u32>,
}

impl Memory {
    pub(crate) fn new(budget: u64) -> Self {
        Self { budget, limit: budget, ..Self::default() }
    }

    /// The memory is to be so much from now on.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.budget = self.budget.max(limit);
    }

    /// The engine says that there are `total` bytes of buffers, and are to be `limit`: never more
    /// than before, unless the limit is, and never less than the limit.
    pub(crate) fn has_limits(&mut self, total: u64, limit: u64, violations: &mut ViolationLog) {
        let (budget, known, used) = (self.budget, self.limit, self.used);
        let is_right = limit == known && (known..=budget).contains(&total) && used <= total;
        violations.require(is_right, "memory shrinks and grows with its limit", || {
            format!("{total} of {budget} bytes, {used} in use, limit {limit} and not {known}")
        });
        self.budget = total;
    }

    pub(crate) fn read_issued(
        &mut self,
        read: &IssuedRead,
        layout: &Layout,
        violations: &mut ViolationLog,
    ) {
        let &IssuedRead { id, piece, offset, len } = read;
        let new = !self.buffers.contains_key(&id);
        violations.require(new, "the id of a read is new", || format!("{id:?}"));
        let expected = position(layout, piece);
        violations.require(
            expected == Some((offset, len)),
            "a read has the position of its piece",
            || format!("{piece:?} read at {offset}, {len} bytes; its position is {expected:?}"),
        );
        self.buffers.insert(id, PieceBuffer { piece, len, ready: false, failed: false, pins: 0 });
        // The engine reserves the buffer when it issues the read, not when the data arrives.
        self.used += u64::from(len);
        self.peak = self.peak.max(self.used);
        self.in_flight += 1;
        (self.reads, self.bytes) = (self.reads + 1, self.bytes + u64::from(len));
        let (used, budget) = (self.used, self.budget);
        violations.require(used <= budget, "buffers stay within the budget", || {
            format!("{used} of {budget} bytes")
        });
    }

    pub(crate) fn read_done(&mut self, read: ReadId, outcome: ReadOutcome) {
        self.in_flight -= 1;
        let buffer = self.buffers.get_mut(&read).expect("the world completes issued reads only");
        if outcome == ReadOutcome::Good {
            buffer.ready = true;
            *self.ready.entry(buffer.piece).or_default() += 1;
        } else {
            buffer.failed = true;
            *self.failures.entry(buffer.piece).or_default() += 1;
        }
    }

    /// Pins the buffer of a delivery; returns its piece and its length.
    pub(crate) fn pin(
        &mut self,
        read: ReadId,
        violations: &mut ViolationLog,
    ) -> Option<(Piece, u32)> {
        let buffer = self.buffers.get_mut(&read).filter(|buffer| buffer.ready);
        let Some(buffer) = buffer else {
            violations.add("delivered bytes are in memory", || format!("{read:?}"));
            return None;
        };
        buffer.pins += 1;
        Some((buffer.piece, buffer.len))
    }

    pub(crate) fn unpin(&mut self, read: ReadId) {
        if let Some(buffer) = self.buffers.get_mut(&read) {
            buffer.pins -= 1;
        }
    }

    /// The track and the length of a buffer.
    pub(crate) fn track_and_len(&self, read: ReadId) -> Option<(TrackNumber, u32)> {
        self.buffers.get(&read).map(|buffer| (buffer.piece.track, buffer.len))
    }

    pub(crate) fn release(&mut self, read: ReadId, violations: &mut ViolationLog) {
        let Some(buffer) = self.buffers.remove(&read) else {
            violations.add("a buffer is released once", || format!("{read:?}"));
            return;
        };
        let completed = buffer.ready || buffer.failed;
        violations.require(completed && buffer.pins == 0, "no buffer in use is released", || {
            format!("{read:?}: {buffer:?}")
        });
        self.used -= u64::from(buffer.len);
        if !buffer.ready {
            return;
        }
        // A piece can be in memory twice, for example after a seek and after a failover.
        if let Some(count) = self.ready.get_mut(&buffer.piece) {
            *count -= 1;
            if *count == 0 {
                self.ready.remove(&buffer.piece);
            }
        }
    }

    pub(crate) fn holds(&self, piece: Piece) -> bool {
        self.ready.contains_key(&piece)
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn failures(&self, piece: Piece) -> u32 {
        self.failures.get(&piece).copied().unwrap_or(0)
    }

    /// Number of reads of `title` that have not completed.
    pub(crate) fn reads_in_flight(&self, title: TitleKey) -> usize {
        let of_title =
            |buffer: &&PieceBuffer| !buffer.ready && !buffer.failed && buffer.piece.title == title;
        self.buffers.values().filter(of_title).count()
    }
}

/// Device offset and length of the read of a piece.
fn position(layout: &Layout, piece: Piece) -> Option<(u64, u32)> {
    let track = layout.tracks.get(usize::from(piece.track))?;
    let start = track.start(piece.number);
    let len = track.bytes.min(track.start(piece.number + 1)).checked_sub(start)?;
    // Where only a part of a track is played, pieces are numbered in play-out order; their
    // position on the disk follows from the number in stored order.
    let stored = track.stored.get(usize::try_from(piece.number).ok()?).copied();
    let mut offset = stored.map_or(start, |stored| u64::from(stored) * u64::from(track.piece));
    for run in &track.runs {
        let run_len = run.end - run.start;
        if offset < run_len {
            return Some((run.start + offset, u32::try_from(align_up(len, 4096)).ok()?));
        }
        offset -= run_len;
    }
    None
}
