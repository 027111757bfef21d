//! The viewers inside: which of their reads are made, and which comes next in each track.

use super::super::requests::{Read, ReadSchedule};
use super::SingleDiskServer;
use super::rules::piece_of;
use scheduler::{PieceDue, RateSummary};
use std::sync::Arc;
use units::SlotIndex;

/// Number of an admitted viewer of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewerNumber(pub(super) usize);

/// One track of a viewer's title: to the dispatcher a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId {
    pub(super) viewer: usize,
    pub(super) track: usize,
}

#[derive(Clone, Debug)]
pub(super) struct ActiveViewer {
    pub(super) schedule: Arc<ReadSchedule>,
    /// The slot in which its first frame is shown.
    first: SlotIndex,
    summary: RateSummary,
    states: Vec<ReadState>,
    /// For each track: no read before this one is unread.
    pub(super) next: Vec<usize>,
    /// Reads that are not shown yet.
    left: usize,
    pub(super) gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    Unread,
    Chosen,
    InFlight,
    /// In memory until the end of this slot.
    Held(SlotIndex),
    Done,
}

impl ActiveViewer {
    pub(super) fn new(schedule: Arc<ReadSchedule>, first: SlotIndex, summary: RateSummary) -> Self {
        let states = vec![ReadState::Unread; schedule.reads.len()];
        let next = schedule.tracks().map(|track| track.start).collect();
        let left = states.len();
        Self { schedule, first, summary, states, next, left, gone: false }
    }
}

impl SingleDiskServer<'_> {
    /// A viewer leaves. Its unread pieces are off the books, its buffers are free.
    pub fn leave(&mut self, viewer: ViewerNumber) {
        let number = viewer.0;
        if self.viewers[number].gone {
            return;
        }
        // First, while the next pieces are still unread: the queue finds a stream by its next
        // piece.
        for stream in self.streams_of(number) {
            let next = self.next_piece(stream);
            self.dispatcher.dequeue(stream, next);
        }
        self.dispatcher.withdraw(|chosen| chosen.stream.viewer == number);
        for read in 0..self.viewers[number].states.len() {
            let piece = self.piece(number, read);
            let books = &mut self.dispatcher.books;
            match self.viewers[number].states[read] {
                ReadState::Unread => books.unbook(piece),
                ReadState::Chosen => books.release(piece),
                ReadState::Held(release) => books.release(PieceDue { release, ..piece }),
                // Released when it is done.
                ReadState::InFlight => continue,
                ReadState::Done => {}
            }
            self.viewers[number].states[read] = ReadState::Done;
        }
        self.ended(number);
        self.waits = false;
    }

    /// Whether the viewer is still being served.
    pub fn watches(&self, viewer: ViewerNumber) -> bool {
        !self.viewers[viewer.0].gone
    }

    /// The buffer of a read that was shown by the end of `slot` is released.
    pub(super) fn shown(&mut self, slot: SlotIndex, number: usize, piece: PieceDue) {
        let state = self.state(number, piece);
        // The viewer may have left since, and its buffers were released at that time.
        if *state != ReadState::Held(slot) {
            return;
        }
        *state = ReadState::Done;
        self.dispatcher.books.release(PieceDue { release: slot, ..piece });
        self.waits = false;
        self.viewers[number].left -= 1;
        if self.viewers[number].left == 0 {
            self.ended(number);
        }
    }

    fn ended(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        viewer.gone = true;
        self.dispatcher.books.unbook_summary(viewer.summary);
    }

    pub(super) fn streams_of(&self, viewer: usize) -> impl Iterator<Item = StreamId> + use<> {
        let tracks = self.viewers[viewer].next.len();
        (0..tracks).map(move |track| StreamId { viewer, track })
    }

    /// The first unread piece of a stream. Skips what was read since the last call.
    pub(super) fn next_piece(&mut self, stream: StreamId) -> Option<PieceDue> {
        let viewer = &mut self.viewers[stream.viewer];
        let end = viewer.schedule.track(stream.track).end;
        let unread = |read: &usize| viewer.states[*read] == ReadState::Unread;
        let next = (viewer.next[stream.track]..end).find(unread).unwrap_or(end);
        viewer.next[stream.track] = next;
        (next < end).then(|| self.piece(stream.viewer, next))
    }

    pub(super) fn state(&mut self, viewer: usize, piece: PieceDue) -> &mut ReadState {
        &mut self.viewers[viewer].states[piece.piece as usize]
    }

    pub(super) fn read(&self, viewer: usize, piece: PieceDue) -> Read {
        self.viewers[viewer].schedule.reads[piece.piece as usize]
    }

    fn piece(&self, viewer: usize, read: usize) -> PieceDue {
        let number = u32::try_from(read).expect("few reads");
        let viewer = &self.viewers[viewer];
        piece_of(&viewer.schedule.reads[read], number, viewer.first)
    }
}
