//! Deliveries: a request receives exactly the bytes that it asked for, in order, each from a buffer
//! that holds them, and is complete when it has received all of them.
//!
//! Written from outside the engine: the input is the byte ranges of requests and deliveries.

use super::{Piece, ViolationLog};
use engine::{Part, RequestId, TitleKey};
use std::collections::BTreeMap;
use std::ops::Range;

/// What an open request must still receive.
#[derive(Debug)]
struct Expected {
    title: TitleKey,
    parts: Vec<Part>,
    /// Index of the part that is being delivered.
    part: usize,
    /// Bytes of this part delivered so far.
    delivered: u64,
}

/// One delivery: a range of a buffer, handed over for a request.
#[derive(Debug)]
pub(crate) struct Delivery<'a> {
    pub(crate) request: RequestId,
    /// The piece that the buffer holds.
    pub(crate) piece: Piece,
    /// Size of the pieces of its track.
    /// The first byte of the piece.
    pub(crate) begin: u64,
    pub(crate) buffer_len: u32,
    /// The range within the buffer.
    pub(crate) bytes: &'a Range<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    open: BTreeMap<RequestId, Expected>,
}

impl Deliveries {
    pub(crate) fn expect(&mut self, request: RequestId, title: TitleKey, parts: Vec<Part>) {
        self.open.insert(request, Expected { title, parts, part: 0, delivered: 0 });
    }

    pub(crate) fn deliver(&mut self, delivery: &Delivery<'_>, violations: &mut ViolationLog) {
        let &Delivery { request, piece, begin, buffer_len, bytes } = delivery;
        let Some(expected) = self.open.get_mut(&request) else {
            return violations
                .add("only open requests receive deliveries", || format!("{request:?}"));
        };
        // Deliveries name a range of a buffer; requests name a range of the track.
        let start = begin;
        let given = start + u64::from(bytes.start)..start + u64::from(bytes.end);
        let next = expected
            .parts
            .get(expected.part)
            .map(|part| (part.track, part.bytes.start + expected.delivered, part.bytes.end));
        // The length of the buffer is compared too, because the last buffer of a track may be
        // shorter than a piece.
        let correct = next.is_some_and(|(track, from, to)| {
            (expected.title, track) == (piece.title, piece.track)
                && given.start == from
                && given.end <= to
                && !given.is_empty()
                && bytes.end <= buffer_len
        });
        if !correct {
            return violations.add("exactly the requested bytes are delivered, in order", || {
                format!(
                    "{request:?} got {given:?} of {piece:?}, expected (track, from, to) {next:?}"
                )
            });
        }
        expected.delivered += given.end - given.start;
        if next.is_some_and(|(_, _, to)| given.end == to) {
            (expected.part, expected.delivered) = (expected.part + 1, 0);
        }
    }

    /// The engine reports that the request is complete.
    pub(crate) fn complete(&mut self, request: RequestId, violations: &mut ViolationLog) {
        let open = self.open.remove(&request);
        let whole = open.is_some_and(|expected| expected.part == expected.parts.len());
        violations
            .require(whole, "a complete request has received all bytes", || format!("{request:?}"));
    }

    /// Title, track and offset of the next byte that the request expects.
    pub(crate) fn next_expected(&self, request: RequestId) -> Option<(TitleKey, u16, u64)> {
        let expected = self.open.get(&request)?;
        let part = expected.parts.get(expected.part)?;
        Some((expected.title, part.track, part.bytes.start + expected.delivered))
    }

    /// The request was refused, has failed or was cancelled, or its session has ended.
    pub(crate) fn close(&mut self, request: RequestId) {
        self.open.remove(&request);
    }
}
