//! Memory and reads: every read is of the right place, is answered once and let go once; all
//! buffers together never exceed the budget; none is let go while a socket still reads from it.

use super::ViolationLog;
use server::engine::{Layout, ReadId, ReadOutcome, TitleKey, TrackNumber};
use std::collections::BTreeMap;
use units::align_up;

/// One read's worth of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) title: TitleKey,
    pub(crate) track: TrackNumber,
    pub(crate) piece: u32,
}

#[derive(Debug)]
struct Buffer {
    piece: Piece,
    len: u32,
    ready: bool,
    failed: bool,
    /// Deliveries that a socket has not taken.
    pins: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    budget: u64,
    used: u64,
    pub(crate) peak: u64,
    buffers: BTreeMap<ReadId, Buffer>,
    ready: BTreeMap<Piece, u32>,
    /// Reads in the devices.
    pub(crate) in_flight: u64,
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    /// Reads that failed, per piece.
    failures: BTreeMap<Piece, u32>,
}

impl Memory {
    pub(crate) fn new(budget: u64) -> Self {
        Self { budget, ..Self::default() }
    }

    pub(crate) fn read(
        &mut self,
        (read, piece, offset, len): (ReadId, Piece, u64, u32),
        layout: &Layout,
        violations: &mut ViolationLog,
    ) {
        let new = !self.buffers.contains_key(&read);
        violations.require(new, "a read's id is new", || format!("{read:?}"));
        let expected = place(layout, piece);
        violations.require(
            expected == Some((offset, len)),
            "a read is of its piece's place",
            || format!("{piece:?} at {offset}, {len} bytes; it is at {expected:?}"),
        );
        self.buffers.insert(read, Buffer { piece, len, ready: false, failed: false, pins: 0 });
        self.used += u64::from(len);
        self.peak = self.peak.max(self.used);
        self.in_flight += 1;
        (self.reads, self.bytes) = (self.reads + 1, self.bytes + u64::from(len));
        let (used, budget) = (self.used, self.budget);
        violations.require(used <= budget, "buffers stay within the budget", || {
            format!("{used} of {budget} bytes")
        });
    }

    pub(crate) fn done(&mut self, read: ReadId, outcome: ReadOutcome) {
        self.in_flight -= 1;
        let buffer = self.buffers.get_mut(&read).expect("the world answers what was asked");
        if outcome == ReadOutcome::Good {
            buffer.ready = true;
            *self.ready.entry(buffer.piece).or_default() += 1;
        } else {
            buffer.failed = true;
            *self.failures.entry(buffer.piece).or_default() += 1;
        }
    }

    /// A delivery takes a pin; says whose bytes they are.
    pub(crate) fn pin(
        &mut self,
        read: ReadId,
        violations: &mut ViolationLog,
    ) -> Option<(Piece, u32)> {
        let buffer = self.buffers.get_mut(&read).filter(|buffer| buffer.ready);
        let Some(buffer) = buffer else {
            violations.add("what is delivered is in memory", || format!("{read:?}"));
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

    /// The track of a buffer's bytes, and how many there are.
    pub(crate) fn holds_of(&self, read: ReadId) -> Option<(TrackNumber, u32)> {
        self.buffers.get(&read).map(|buffer| (buffer.piece.track, buffer.len))
    }

    pub(crate) fn forget(&mut self, read: ReadId, violations: &mut ViolationLog) {
        let Some(buffer) = self.buffers.remove(&read) else {
            violations.add("only what is there is forgotten", || format!("{read:?}"));
            return;
        };
        let over = buffer.ready || buffer.failed;
        violations.require(over && buffer.pins == 0, "no buffer in use is forgotten", || {
            format!("{read:?}: {buffer:?}")
        });
        self.used -= u64::from(buffer.len);
        if !buffer.ready {
            return;
        }
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

    /// Reads of `title` in the devices.
    pub(crate) fn being_read(&self, title: TitleKey) -> usize {
        let of_title =
            |buffer: &&Buffer| !buffer.ready && !buffer.failed && buffer.piece.title == title;
        self.buffers.values().filter(of_title).count()
    }
}

/// Where a piece lies and what is read of it.
fn place(layout: &Layout, piece: Piece) -> Option<(u64, u32)> {
    let track = layout.tracks.get(usize::from(piece.track))?;
    let shown = u64::from(piece.piece) * u64::from(track.piece);
    let left = track.bytes.checked_sub(shown)?.min(u64::from(track.piece));
    let stored = track.stored.get(usize::try_from(piece.piece).ok()?).copied();
    let mut at = u64::from(stored.unwrap_or(piece.piece)) * u64::from(track.piece);
    for run in &track.runs {
        let len = run.end - run.start;
        if at < len {
            return Some((run.start + at, u32::try_from(align_up(left, 4096)).ok()?));
        }
        at -= len;
    }
    None
}
