//! A stream: one track on its way to one viewer. What has been read and is held, what is still to
//! be read, and how far the player has come.
//!
//! ```text
//!   pieces   first ......... base ............. cursor ............... end
//!            delivered,      held: read or      on the books,
//!            or let go       being read         unread
//! ```
//!
//! It only keeps count; the books and the buffers are changed by the engine at the same time.

use super::buffers::{PieceKey, Place};
use super::{Layout, PieceTimes, ReadId, SessionId, TrackLayout, TrackNumber};
use disk::Costs;
use scheduler::{Curve, PieceDue, Summary, Timing};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex, align_up};

/// Names a stream; older streams have smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId(pub(super) u64);

/// What became of a piece that was read for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The stream holds the buffer; `counted` once it is known whether it came in time.
    ///
    /// `safe`: it is in memory, so that no loss of a disk takes it away.
    Held { read: ReadId, piece: PieceDue, deadline: Moment, counted: Option<Lateness>, safe: bool },
    /// Delivered whole, let go, or it could not be read.
    Gone,
}

/// Whether a piece came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lateness {
    OnTime,
    Late,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session: SessionId,
    pub(super) layout: Arc<Layout>,
    pub(super) track: TrackNumber,
    pub(super) timing: Timing,
    /// What was promised, where it is no longer what is read by.
    promise: Option<Timing>,
    /// Pieces before this have been counted, on time or late.
    pub(super) counted_to: u32,
    /// The next piece to be read.
    pub(super) cursor: u32,
    /// One past the last piece.
    pub(super) end: u32,
    /// The piece in which the player's next byte is expected.
    pub(super) position: u32,
    /// The piece with which this schedule begins.
    first: u32,
    /// Where what the player has asked for ends, oldest first: it goes on there.
    ends: VecDeque<u64>,
    /// Until then nothing is handed over, unless all that must be in memory by then is: see
    /// `start`.
    pub(super) opens: Option<Moment>,
    /// What the policies that look at nothing else have booked for it.
    pub(super) summary: Summary,
    /// The least slack of the decisions since it is in: see `certificate`.
    pub(super) promised: Option<Duration>,
    /// When the player last asked for, or took, something of this track.
    pub(super) last_sign: Moment,
    /// The disk with another copy, where there is standby: see `standby`.
    pub(super) spare: Option<usize>,
    holds: VecDeque<Hold>,
    base: u32,
}

/// The last piece taken up, unread again.
pub(super) struct PutBack {
    pub(super) read: ReadId,
    pub(super) piece: PieceDue,
    pub(super) counted: Option<Lateness>,
    pub(super) safe: bool,
}

impl Stream {
    pub(super) fn new(
        session: SessionId,
        layout: Arc<Layout>,
        track: TrackNumber,
        timing: Timing,
        first: u32,
    ) -> Self {
        let end = curve(&layout.tracks[usize::from(track)]).pieces();
        let first = first.min(end);
        Self {
            session,
            track,
            last_sign: timing.origin,
            timing,
            promise: None,
            counted_to: 0,
            cursor: first,
            end,
            position: first,
            first,
            ends: VecDeque::new(),
            opens: Some(timing.deadline(timing.from_ms)),
            summary: Summary::default(),
            promised: None,
            spare: None,
            holds: VecDeque::new(),
            base: first,
            layout,
        }
    }

    pub(super) fn curve(&self) -> Curve<'_> {
        curve(&self.layout.tracks[usize::from(self.track)])
    }

    pub(super) fn key(&self, piece: u32) -> PieceKey {
        key(&self.layout, self.track, piece)
    }

    pub(super) fn place(&self, piece: u32) -> Place {
        place(&self.layout, self.track, piece)
    }

    /// The next piece to be read, with its slots.
    pub(super) fn next_read(&self) -> Option<PieceDue> {
        (self.cursor < self.end).then(|| self.due(self.cursor))
    }

    pub(super) fn deadline(&self, piece: u32) -> Moment {
        self.promise.unwrap_or(self.timing).deadline(self.curve().due(piece))
    }

    /// When a viewer needs `piece` who starts as early in the title as it may.
    pub(super) fn latest_need(&self, piece: u32) -> Moment {
        let timing = Timing { from_ms: self.timing.kept_from_ms, ..self.timing };
        timing.deadline(self.curve().due(piece))
    }

    /// Gives up everything held and begins anew with piece `from`, as if it had been admitted
    /// `now`. Says what was held.
    pub(super) fn restart(&mut self, now: Moment, from: u32) -> Vec<ReadId> {
        let held = self.held().map(|(read, _)| read).collect();
        self.promise.get_or_insert(self.timing);
        let waits = |hold: &&Hold| matches!(hold, Hold::Held { deadline, counted: None, .. } if *deadline >= now);
        let counted = match self.holds.iter().find(waits) {
            Some(Hold::Held { piece, .. }) => piece.piece,
            _ => self.cursor,
        };
        self.counted_to = self.counted_to.max(counted);
        self.holds.clear();
        (self.cursor, self.base) = (from, from);
        let from_ms = self.curve().due(from);
        self.timing = Timing { origin: now, from_ms, kept_from_ms: from_ms, ..self.timing };
        held
    }

    /// Whether a request that begins at byte `start` goes on with what the player has asked for
    /// before, or begins where this schedule does. Otherwise it has jumped.
    pub(super) fn goes_on(&self, start: u64) -> bool {
        let piece = self.piece_at(start);
        if self.ends.is_empty() {
            // A segment begins within the piece before the first that is due with it.
            return (self.first..=self.first.saturating_add(1)).contains(&piece);
        }
        let whole = self.is_whole();
        let from = |end: u64| start <= end && piece == self.piece_at(end);
        self.ends.iter().any(|end| if whole { from(*end) } else { self.skips_to(*end, start) })
    }

    // Whether from `end` on less than a piece is left out to `start`, or nothing.
    fn skips_to(&self, end: u64, start: u64) -> bool {
        let last = self.piece_at(end);
        (last..=last.saturating_add(1)).contains(&self.piece_at(start))
    }

    /// Whether all that is stored of the track is played, in its order.
    fn is_whole(&self) -> bool {
        self.layout.tracks[usize::from(self.track)].stored.is_empty()
    }

    /// The player asks for these bytes.
    pub(super) fn asks(&mut self, bytes: &Range<u64>) {
        let mut ends = std::mem::take(&mut self.ends);
        let whole = self.is_whole();
        let next = |end: u64| end <= bytes.start && self.skips_to(end, bytes.start);
        ends.retain(|end| if whole { *end != bytes.start } else { !next(*end) });
        self.ends = ends;
        if self.ends.len() == PARALLEL_REQUESTS {
            self.ends.pop_front();
        }
        self.ends.push_back(bytes.end);
    }

    /// A request that was to end at `end` was hung up with nothing handed over from `from` on.
    pub(super) fn hung_up(&mut self, from: u64, end: u64) {
        for other in self.ends.iter_mut().filter(|other| **other == end) {
            *other = from;
        }
    }

    /// Moves everything `slots` slots later, held pieces too. Its place in the books must be
    /// changed at the same time.
    pub(super) fn slide(&mut self, slots: u32) {
        self.timing.origin = self.timing.origin + self.timing.slot * slots;
        self.opens = self.opens.map(|at| at + self.timing.slot * slots);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = piece.due + u64::from(slots);
                piece.release = piece.release + u64::from(slots);
            }
        }
    }

    /// Is read from another copy from now on. Its place in the books must be changed at the same
    /// time.
    pub(super) fn lies_at(&mut self, layout: Arc<Layout>) {
        self.layout = layout;
        let curve = curve(&self.layout.tracks[usize::from(self.track)]);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.transfer = curve.transfer(piece.piece);
                piece.followed_after = self.timing.followed_after(&curve, piece.piece);
            }
        }
    }

    /// Is read so many slots before it must be, from now on. Its place in the books must be changed
    /// at the same time.
    pub(super) fn be_early(&mut self, slots: u32) {
        let before = u64::from(std::mem::replace(&mut self.timing.early, slots));
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = SlotIndex(piece.due.0 + before - u64::from(slots));
            }
        }
    }

    /// Deadlines of what is unread, missed, and not counted as yet.
    pub(super) fn overdue(&mut self, now: Moment) -> Vec<Moment> {
        self.counted_to = self.counted_to.max(self.cursor);
        let deadlines = (self.counted_to..self.end).map(|piece| self.deadline(piece));
        deadlines.take_while(|deadline| *deadline < now).collect()
    }

    /// Takes [`Stream::slide`] back.
    pub(super) fn slide_back(&mut self, slots: u32) {
        self.timing.origin = self.timing.origin - self.timing.slot * slots;
        self.opens = self.opens.map(|at| at - self.timing.slot * slots);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = SlotIndex(piece.due.0 - u64::from(slots));
                piece.release = SlotIndex(piece.release.0 - u64::from(slots));
            }
        }
    }

    /// Everything unread, in order.
    pub(super) fn unread(&self) -> impl Iterator<Item = PieceDue> + '_ {
        self.timing.pieces(self.curve(), self.cursor)
    }

    /// Everything held.
    pub(super) fn held(&self) -> impl Iterator<Item = (ReadId, PieceDue)> + '_ {
        self.holds.iter().filter_map(|hold| match hold {
            Hold::Held { read, piece, .. } => Some((*read, *piece)),
            Hold::Gone => None,
        })
    }

    /// What is held, the last piece first, until one that is not.
    pub(super) fn held_from_end(&self) -> impl Iterator<Item = (ReadId, PieceDue)> + '_ {
        self.holds.iter().rev().map_while(|hold| match hold {
            Hold::Held { read, piece, .. } => Some((*read, *piece)),
            Hold::Gone => None,
        })
    }

    /// Deadlines of what is held and not known to have come.
    pub(super) fn uncounted(&self) -> impl Iterator<Item = Moment> + '_ {
        self.holds.iter().filter_map(|hold| match hold {
            Hold::Held { deadline, counted: None, .. } => Some(*deadline),
            _ => None,
        })
    }

    /// The piece that holds the byte at `offset` of the track.
    pub(super) fn piece_at(&self, offset: u64) -> u32 {
        u32::try_from(offset / u64::from(self.curve().piece)).expect("within a sound track")
    }

    /// Whether the booking is empty: nothing unread, nothing held.
    pub(super) fn is_done(&self) -> bool {
        self.cursor == self.end && self.held().next().is_none()
    }

    /// The next piece is being read into `read`, or found there.
    pub(super) fn take_up(&mut self, piece: PieceDue, read: ReadId) {
        let deadline = self.deadline(piece.piece);
        let before = (piece.piece < self.counted_to).then_some(Lateness::Late);
        self.holds.push_back(Hold::Held { read, piece, deadline, counted: before, safe: false });
        self.cursor += 1;
    }

    /// Lets go of `piece` if it is held; says, too, whether it was safe.
    pub(super) fn let_go(&mut self, piece: u32) -> Option<(ReadId, PieceDue, bool)> {
        let hold = self.hold_mut(piece)?;
        let Hold::Held { read, piece, safe, .. } = *hold else { return None };
        *hold = Hold::Gone;
        while self.holds.front() == Some(&Hold::Gone) {
            self.holds.pop_front();
            self.base += 1;
        }
        Some((read, piece, safe))
    }

    /// The first piece held, and its buffer.
    pub(super) fn first_held(&self) -> Option<(ReadId, PieceDue)> {
        self.held().next()
    }

    /// Unreads the last piece taken up, if it is held.
    pub(super) fn put_back_last(&mut self) -> Option<PutBack> {
        let Some(Hold::Held { read, piece, counted, safe, .. }) = self.holds.back().copied() else {
            return None;
        };
        self.holds.pop_back();
        self.cursor -= 1;
        self.counted_to = self.counted_to.min(self.cursor);
        Some(PutBack { read, piece, counted, safe })
    }

    /// Unreads everything from the first piece on that is still being read. Says what was held, and
    /// as what it was counted.
    pub(super) fn put_back_from(
        &mut self,
        is_reading: impl Fn(ReadId) -> bool,
    ) -> Vec<(ReadId, Option<Lateness>)> {
        let reading = |hold: &Hold| matches!(hold, Hold::Held { read, .. } if is_reading(*read));
        let Some(first) = self.holds.iter().position(reading) else { return Vec::new() };
        let back: Vec<Hold> = self.holds.drain(first..).collect();
        self.cursor -= u32::try_from(back.len()).expect("fewer than pieces");
        // What the viewer had already is read once more, and is not counted once more.
        let gone = back.iter().rposition(|hold| *hold == Hold::Gone).map_or(0, |last| last + 1);
        let gone = self.cursor + u32::try_from(gone).expect("fewer than pieces");
        self.counted_to = self.counted_to.min(gone).max(if gone > self.cursor { gone } else { 0 });
        let held = back.into_iter().filter_map(|hold| match hold {
            Hold::Held { read, counted, .. } => Some((read, counted)),
            Hold::Gone => None,
        });
        held.collect()
    }

    /// Everything held, and whether it is safe.
    pub(super) fn held_and_safe(&self) -> impl Iterator<Item = (PieceDue, bool)> + '_ {
        self.holds.iter().filter_map(|hold| match hold {
            Hold::Held { piece, safe, .. } => Some((self.due(piece.piece), *safe)),
            Hold::Gone => None,
        })
    }

    /// `piece` is in memory. True the first time that a held one is.
    pub(super) fn make_safe(&mut self, piece: u32) -> bool {
        match self.hold_mut(piece) {
            Some(Hold::Held { safe, .. }) => !std::mem::replace(safe, true),
            _ => false,
        }
    }

    /// The buffer in which `piece` is held.
    pub(super) fn read_of(&self, piece: u32) -> Option<ReadId> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        match self.holds.get(at)? {
            Hold::Held { read, .. } => Some(*read),
            Hold::Gone => None,
        }
    }

    /// The last piece taken up, if it is held.
    pub(super) fn last_held(&self) -> Option<(ReadId, PieceDue)> {
        match self.holds.back() {
            Some(Hold::Held { read, piece, .. }) => Some((*read, *piece)),
            _ => None,
        }
    }

    /// The pieces that it holds in buffer `read`: one, or two where it shows the same bytes twice.
    pub(super) fn holds_in(&self, read: ReadId) -> Vec<u32> {
        self.held().filter(|(held, _)| *held == read).map(|(_, piece)| piece.piece).collect()
    }

    /// `piece` is being read again, into another buffer.
    pub(super) fn now_reads(&mut self, piece: u32, again: ReadId) {
        if let Some(Hold::Held { read, .. }) = self.hold_mut(piece) {
            *read = again;
        }
    }

    /// The state of a piece between base and cursor.
    pub(super) fn hold_mut(&mut self, piece: u32) -> Option<&mut Hold> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        self.holds.get_mut(at)
    }

    /// The player has taken `piece`, to its end or not.
    pub(super) fn delivered(&mut self, piece: u32, whole: bool) {
        self.position = self.position.max(if whole { piece + 1 } else { piece });
    }

    pub(super) fn due(&self, piece: u32) -> PieceDue {
        let curve = self.curve();
        PieceDue {
            piece,
            due: self.timing.due_slot(curve.due(piece)),
            release: self.timing.release_slot(&curve, piece),
            len: curve.len(piece),
            transfer: curve.transfer(piece),
            followed_after: self.timing.followed_after(&curve, piece),
        }
    }
}

/// A track as the scheduler sees it. The tail is read, and held, up to a whole block.
pub(super) fn curve(track: &TrackLayout) -> Curve<'_> {
    let times = track.times.get();
    Curve {
        due: &track.due,
        piece: track.piece,
        bytes: align_up(track.bytes, BLOCK),
        transfer: times.map_or(&[], |times| &times.transfer),
        followed: times.map_or(&[], |times| &times.followed),
    }
}

/// What a sound track's pieces take of a disk that costs so much.
pub(super) fn times(track: &TrackLayout, costs: &Costs) -> PieceTimes {
    let pieces = curve(track).pieces();
    let mut times = PieceTimes::default();
    let shortest = costs.shortest_following();
    let long = |transfer: u32| shortest.is_some_and(|shortest| u64::from(transfer) >= shortest);
    let mut before: Option<(u64, u32)> = None;
    for (offset, len) in (0..pieces).map(|piece| place_of(track, piece)) {
        let takes = costs.transfer(offset, u64::from(len));
        let takes = u32::try_from(takes).unwrap_or(u32::MAX);
        if let Some((end, transfer)) = before {
            times.followed.push(end == offset && long(transfer) && long(takes));
        }
        times.transfer.push(takes);
        before = Some((offset + u64::from(len), takes));
    }
    times
}

/// Where a piece lies: no piece crosses the end of a run.
pub(super) fn place(layout: &Layout, track: TrackNumber, piece: u32) -> Place {
    let (offset, len) = place_of(&layout.tracks[usize::from(track)], piece);
    Place { disk: layout.disk, offset, len }
}

/// What a piece of a title is called in memory.
pub(super) fn key(layout: &Layout, number: TrackNumber, piece: u32) -> PieceKey {
    let track = &layout.tracks[usize::from(number)];
    let (start, len) = (stored_at(track, piece), curve(track).len(piece));
    PieceKey { title: layout.title, track: number, start, len, disk: layout.disk }
}

// At which byte of what is stored of a track a piece begins.
fn stored_at(track: &TrackLayout, piece: u32) -> u64 {
    let i = usize::try_from(piece).unwrap_or(usize::MAX);
    let stored = track.stored.get(i).copied().unwrap_or(piece);
    u64::from(stored) * u64::from(track.piece)
}

/// The same on the track's disk: offset and length.
pub(super) fn place_of(track: &TrackLayout, piece: u32) -> (u64, u32) {
    let mut at = stored_at(track, piece);
    for run in &track.runs {
        let run_len = run.end - run.start;
        if at < run_len {
            return (run.start + at, curve(track).len(piece));
        }
        at -= run_len;
    }
    unreachable!("a sound layout has a place for each of its pieces")
}

/// Why a layout cannot be served, if it cannot.
pub(super) fn unsound(track: &TrackLayout, read_size: u64) -> Option<&'static str> {
    let padded = align_up(track.bytes.min(u64::MAX - BLOCK), BLOCK);
    let piece = u64::from(track.piece);
    let runs = track.runs.iter().map(|run| run.end.saturating_sub(run.start));
    let stored = runs.clone().fold(0u64, u64::saturating_add);
    let cut = track.runs.len().saturating_sub(1);
    let listed = track.stored.len() as u64;
    let needed = if listed == 0 || piece == 0 {
        padded
    } else {
        let places = track.stored.iter().zip(0..);
        let ends = places.map(|(_, i)| stored_at(track, i) + u64::from(curve(track).len(i)));
        ends.max().unwrap_or(0)
    };
    if piece == 0 || piece % BLOCK != 0 {
        Some("its pieces are not whole blocks")
    } else if piece > read_size {
        Some("its pieces are larger than the reads that the disk was calibrated for")
    } else if padded.div_ceil(piece) >= u64::from(u32::MAX) {
        Some("it has more pieces than can be counted")
    } else if !curve(track).is_sound() {
        Some("its due times go back")
    } else if listed > 0 && listed != padded.div_ceil(piece) {
        Some("its list of pieces is not as long as it")
    } else if stored < needed {
        Some("part of it has no place on the disk")
    } else if track.runs.iter().any(|run| run.start % BLOCK != 0)
        || runs.clone().take(cut).any(|run| run % piece != 0)
    {
        Some("its extents do not hold whole pieces")
    } else {
        None
    }
}

/// Direct reads are whole blocks of this many bytes.
const BLOCK: u64 = 4096;

/// Responses of one track that a player may take at the same time and still go on with each.
const PARALLEL_REQUESTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DiskNumber, TitleKey};
    use std::sync::OnceLock;
    use std::time::Duration;

    #[test]
    fn pieces_of_one_extent_are_one_visit_if_they_are_long() {
        const MIB: u64 = 1 << 20;
        let track = |runs: Vec<Range<u64>>, stored: Vec<u32>, piece: u32| TrackLayout {
            bytes: 5 * MIB,
            piece,
            runs,
            due: vec![0; 5],
            stored,
            times: OnceLock::new(),
        };
        // Two that lie side by side are as good as one.
        let whole = || vec![8 * MIB..10 * MIB, 10 * MIB..13 * MIB];
        let slow = disk::DiskModel::preset("st39183w").unwrap();
        let quick = disk::DiskModel::preset("ssd-nvme").unwrap();
        let followed = |model: &disk::DiskModel, track: &TrackLayout| {
            let costs = Costs::of_model(model, units::ByteCount(MIB), 4);
            let times = times(track, &costs);
            let pieces = usize::try_from(curve(track).pieces()).unwrap();
            assert_eq!((times.transfer.len(), times.followed.len()), (pieces, pieces - 1));
            times.followed
        };
        let mib = 1 << 20;
        assert_eq!(followed(&slow, &track(whole(), vec![], mib)), [true; 4]);
        let broken = vec![8 * MIB..11 * MIB, 20 * MIB..22 * MIB];
        assert_eq!(followed(&slow, &track(broken, vec![], mib)), [true, true, false, true]);
        let skipping = track(whole(), vec![0, 1, 4, 3, 2], mib);
        assert_eq!(followed(&slow, &skipping), [true, false, false, false]);
        // A quarter of a mebibyte is read in less time than the arm takes to come.
        assert_eq!(followed(&slow, &track(whole(), vec![], mib / 4)), [false; 19]);
        assert_eq!(followed(&quick, &track(whole(), vec![], mib)), [false; 4], "no arm");
    }

    #[test]
    fn a_piece_is_found_in_its_run() {
        let layout = Layout {
            title: TitleKey(1),
            disk: DiskNumber(0),
            duration: Duration::from_secs(9),
            tracks: vec![TrackLayout {
                bytes: 3 * 8192 + 100,
                piece: 8192,
                runs: vec![40_960..57_344, 8192..24_576],
                due: vec![0; 4],
                stored: Vec::new(),
                times: OnceLock::new(),
            }],
        };
        let places: Vec<_> =
            (0..4).map(|n| place(&layout, 0, n)).map(|p| (p.offset, p.len)).collect();
        assert_eq!(places, [(40_960, 8192), (49_152, 8192), (8192, 8192), (16_384, 4096)]);
        assert_eq!(unsound(&layout.tracks[0], 8192), None);
        assert!(unsound(&layout.tracks[0], 4096).unwrap().contains("calibrated"));
    }
}
