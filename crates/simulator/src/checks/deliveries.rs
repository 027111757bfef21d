//! Deliveries: a request is handed exactly the bytes that were asked for, in order, each from a
//! buffer that holds it, and is complete when all of them were handed over.

use super::{Piece, ViolationLog};
use server::engine::{Part, RequestId, TitleKey};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug)]
struct Expected {
    title: TitleKey,
    parts: Vec<Part>,
    part: usize,
    /// Bytes of the part that were handed over.
    taken: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    open: BTreeMap<RequestId, Expected>,
}

impl Deliveries {
    pub(crate) fn want(&mut self, request: RequestId, title: TitleKey, parts: Vec<Part>) {
        self.open.insert(request, Expected { title, parts, part: 0, taken: 0 });
    }

    /// `bytes` of the buffer of `piece` (whose pieces have `size` bytes) were handed over.
    pub(crate) fn deliver(
        &mut self,
        request: RequestId,
        (piece, size, len): (Piece, u32, u32),
        bytes: &Range<u32>,
        violations: &mut ViolationLog,
    ) {
        let Some(expected) = self.open.get_mut(&request) else {
            return violations
                .add("only open requests are delivered to", || format!("{request:?}"));
        };
        let start = u64::from(piece.piece) * u64::from(size);
        let given = start + u64::from(bytes.start)..start + u64::from(bytes.end);
        let next = expected
            .parts
            .get(expected.part)
            .map(|part| (part.track, part.bytes.start + expected.taken, part.bytes.end));
        let right = next.is_some_and(|(track, from, to)| {
            (expected.title, track) == (piece.title, piece.track)
                && given.start == from
                && given.end <= to
                && !given.is_empty()
                && bytes.end <= len
        });
        if !right {
            return violations.add("exactly what was asked is delivered, in order", || {
                format!(
                    "{request:?} got {given:?} of {piece:?}, is owed (track, from, to) {next:?}"
                )
            });
        }
        expected.taken += given.end - given.start;
        if next.is_some_and(|(_, _, to)| given.end == to) {
            (expected.part, expected.taken) = (expected.part + 1, 0);
        }
    }

    /// The engine says that it is done.
    pub(crate) fn complete(&mut self, request: RequestId, violations: &mut ViolationLog) {
        let open = self.open.remove(&request);
        let whole = open.is_some_and(|expected| expected.part == expected.parts.len());
        violations
            .require(whole, "what is complete was delivered whole", || format!("{request:?}"));
    }

    /// The next byte that is owed to a request.
    pub(crate) fn owed(&self, request: RequestId) -> Option<(TitleKey, u16, u64)> {
        let expected = self.open.get(&request)?;
        let part = expected.parts.get(expected.part)?;
        Some((expected.title, part.track, part.bytes.start + expected.taken))
    }

    /// Refused, failed, cancelled, or its session is over.
    pub(crate) fn over(&mut self, request: RequestId) -> bool {
        self.open.remove(&request).is_some()
    }
}
