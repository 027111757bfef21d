//! The send queue of one connection: slices in order, and the sends to be reported.
//!
//! It is pure bookkeeping, shared by both drivers, and the only place that handles short sends.

use super::SendSlice;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    slices: VecDeque<SendSlice>,
    // Bytes of the first slice that the kernel already has.
    head: usize,
    // The tag and the end position of each send in the stream of bytes, in order.
    marks: VecDeque<(u64, u64)>,
    queued: u64,
    taken: u64,
}

impl Outbox {
    /// Queues slices; empty ones are left out.
    pub(super) fn push(&mut self, slices: Vec<SendSlice>, tag: u64) {
        for slice in slices {
            if !slice.is_empty() {
                self.queued += slice.len() as u64;
                self.slices.push_back(slice);
            }
        }
        // As a place in the stream and not as a number of slices: short sends split slices
        // anywhere.
        self.marks.push_back((tag, self.queued));
    }

    /// Whether the kernel has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The number of bytes that the kernel has taken since the connection began.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The next slices for the kernel, at most `count`.
    pub(super) fn gather(&self, count: usize) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.head;
        // Only the first slice is partly sent; `take` makes the skip zero for all others.
        self.slices.iter().take(count).map(move |slice| &slice[std::mem::take(&mut skip)..])
    }

    /// Notes that the kernel took `count` bytes, and drops the slices that it has completely.
    pub(super) fn advance(&mut self, count: usize) {
        self.taken += count as u64;
        self.head += count;
        while let Some(first) = self.slices.front() {
            if self.head < first.len() {
                return;
            }
            self.head -= first.len();
            self.slices.pop_front();
        }
        assert_eq!(self.head, 0, "the kernel took more than it was given");
    }

    /// The next tag whose send is complete.
    pub(super) fn finished(&mut self) -> Option<u64> {
        let (tag, end) = *self.marks.front()?;
        if end > self.taken {
            return None;
        }
        self.marks.pop_front();
        Some(tag)
    }

    /// Drops everything that is queued. Only valid when the kernel holds no pointer into it.
    pub(super) fn clear(&mut self) {
        self.slices.clear();
        self.marks.clear();
        self.head = 0;
        // Later marks compare with `taken`, which must not fall behind what is queued anew.
        self.queued = self.taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sends_at_every_position_send_each_byte_once_and_report_in_order() {
        for step in 1..=12 {
            let mut outbox = Outbox::default();
            outbox.push(vec![b"ab".to_vec().into(), Vec::new().into(), b"cde".to_vec().into()], 1);
            outbox.push(vec![], 2);
            outbox.push(vec![b"fghij".to_vec().into()], 3);
            let (mut sent, mut tags) = (Vec::new(), Vec::new());
            while !outbox.is_empty() {
                let bytes = outbox.gather(2).collect::<Vec<_>>().concat();
                let taken = bytes.len().min(step);
                sent.extend_from_slice(&bytes[..taken]);
                outbox.advance(taken);
                while let Some(tag) = outbox.finished() {
                    let ends = [(1, 5), (2, 5), (3, 10)];
                    assert!(ends.contains(&(tag, 5)) && sent.len() >= 5 || sent.len() == 10);
                    tags.push(tag);
                }
            }
            assert_eq!((sent.as_slice(), tags.as_slice()), (&b"abcdefghij"[..], &[1, 2, 3][..]));
            assert_eq!(outbox.taken(), 10);
        }
    }
}
