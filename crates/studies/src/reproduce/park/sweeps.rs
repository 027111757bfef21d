//! Which title is read next, for streams that take all they can get: the scheduler's queue by
//! deadline and its batches in order of place, with a read's number as its deadline.
//!
//! ```text
//!   a stream has a free buffer ─▶ EdfQueue, by the number of its next read ─▶ Batch ─▶ one way
//!                                                                          over the disk
//! ```
//!
//! A stream is therefore at most one read ahead of another that has a free buffer. The head passes
//! over the disk in one direction only: if it turned, a stream at an end of its path would wait for
//! two passes.

use scheduler::{
    Batch, BatchLimit, ChosenRead, EdfQueue, NextRead, PieceDue, ReadSource, ScanDirection,
};
use std::collections::VecDeque;
use units::{ByteCount, SlotIndex};

/// A stream's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamTitle {
    /// Where its data begins on the device; it is in one piece.
    pub(super) begins: u64,
    pub(super) len: ByteCount,
}

/// A read to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamRead {
    pub(super) stream: usize,
    /// Offset within the title.
    pub(super) at: u64,
    /// Offset on the device.
    pub(super) place: u64,
    pub(super) len: u64,
}

/// The reads of all streams.
#[derive(Debug)]
pub(super) struct Sweeps {
    queue: EdfQueue<usize>,
    streams: Vec<StreamState>,
    sweep: VecDeque<ChosenRead<usize, ()>>,
}

#[derive(Debug)]
struct StreamState {
    title: StreamTitle,
    /// Number of its next read.
    next: u32,
    /// Buffers that are free for its reads.
    free: u32,
}

impl StreamState {
    fn next(&self) -> Option<PieceDue> {
        let at = u64::from(self.next) * READ.0;
        let left = self.title.len.0.checked_sub(at).filter(|left| *left > 0)?;
        let due = SlotIndex(self.next.into());
        let len = u32::try_from(left.min(READ.0)).expect("a read is short");
        // No transfer time: a batch is limited by its number of reads, not by disk time.
        let (piece, release) = (self.next, due.next());
        Some(PieceDue { piece, due, release, len, transfer: 0, followed_after: None })
    }
}

impl Sweeps {
    /// Streams without a buffer.
    pub(super) fn new(titles: impl IntoIterator<Item = StreamTitle>) -> Self {
        let state = |title| StreamState { title, next: 0, free: 0 };
        let streams = titles.into_iter().map(state).collect();
        Self { queue: EdfQueue::default(), streams, sweep: VecDeque::new() }
    }

    /// A stream has one more free buffer.
    pub(super) fn free(&mut self, stream: usize) {
        let state = &mut self.streams[stream];
        state.free += 1;
        if state.free == 1
            && let Some(next) = state.next()
        {
            self.queue.insert(next.due, stream);
        }
    }

    /// The next read, which takes a buffer; `None` until a stream has one.
    pub(super) fn next(&mut self) -> Option<StreamRead> {
        if self.sweep.is_empty() {
            let most = u32::try_from(self.streams.len()).expect("few streams");
            let batch = Batch::new(BatchLimit::Reads(most)).fill(self);
            self.sweep.extend(batch.in_order(ScanDirection::Outward));
        }
        let ChosenRead { stream, piece, offset, .. } = self.sweep.pop_front()?;
        let at = u64::from(piece.piece) * READ.0;
        Some(StreamRead { stream, at, place: offset, len: piece.len.into() })
    }
}

impl ReadSource for Sweeps {
    type Stream = usize;
    type Read = ();

    fn most_urgent(&mut self) -> Option<NextRead<usize>> {
        let (_, stream) = self.queue.first()?;
        let state = &self.streams[stream];
        let piece = state.next().expect("only streams with a read are queued");
        let offset = state.title.begins + u64::from(piece.piece) * READ.0;
        Some(NextRead { stream, piece, offset })
    }

    // Each stream has buffers of its own.
    fn room(&self) -> u64 {
        u64::MAX
    }

    fn start_read(&mut self, next: &NextRead<usize>) -> Option<()> {
        self.queue.remove(next.piece.due, next.stream);
        let state = &mut self.streams[next.stream];
        (state.next, state.free) = (state.next + 1, state.free - 1);
        if state.free > 0
            && let Some(after) = state.next()
        {
            self.queue.insert(after.due, next.stream);
        }
        Some(())
    }
}

/// Bytes of one read: the store verifies titles in windows of this size.
pub(super) const READ: ByteCount = ByteCount::MIB;

/// Buffers of a stream: it takes bytes out of one while another is filled.
pub(super) const BUFFERS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: usize, at_mib: u64, place_mib: u64) -> StreamRead {
        let [at, place] = [at_mib, place_mib].map(|mib| ByteCount::mib(mib).0);
        StreamRead { stream, at, place, len: READ.0 }
    }

    #[test]
    fn streams_are_read_side_by_side_and_in_order_of_place() {
        let title =
            |begins| StreamTitle { begins: ByteCount::mib(begins).0, len: ByteCount::mib(2) };
        let mut sweeps = Sweeps::new([title(20), title(0), title(10)]);
        assert_eq!(sweeps.next(), None, "no stream has a buffer");
        for stream in [0, 1, 2, 0] {
            sweeps.free(stream);
        }
        let all = std::iter::from_fn(|| sweeps.next()).collect::<Vec<_>>();
        // The second read of stream 0 waits for the first ones of the others.
        assert_eq!(all, [read(1, 0, 0), read(2, 0, 10), read(0, 0, 20), read(0, 1, 21)]);
        [2, 1].into_iter().for_each(|stream| sweeps.free(stream));
        let all = std::iter::from_fn(|| sweeps.next()).collect::<Vec<_>>();
        assert_eq!(all, [read(1, 1, 1), read(2, 1, 11)]);
        sweeps.free(0);
        assert_eq!(sweeps.next(), None, "the title is at its end");
    }

    #[test]
    fn the_last_read_is_as_long_as_what_is_left() {
        let mut sweeps = Sweeps::new([StreamTitle { begins: 0, len: ByteCount(READ.0 + 5) }]);
        [0, 0].into_iter().for_each(|stream| sweeps.free(stream));
        assert_eq!(sweeps.next(), Some(read(0, 0, 0)));
        assert_eq!(sweeps.next(), Some(StreamRead { len: 5, ..read(0, 1, 1) }));
        assert_eq!(sweeps.next(), None);
    }
}
