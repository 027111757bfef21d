//! Sessions and their requests: what a player asked for and how much of it has been handed over.
//! Nothing here decides; see `delivery` and `door`.

use super::buffers::PieceKey;
use super::standby::Seat;
use super::streams::StreamId;
use super::{Layout, Part, ReadId, RequestId, SessionId, SessionSummary, TitleKey, TrackNumber};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use units::Moment;

#[derive(Debug)]
pub(super) struct Session {
    /// As it lies on the disk that it is read from.
    pub(super) layout: Arc<Layout>,
    /// All copies, that one too.
    pub(super) copies: Arc<[Arc<Layout>]>,
    /// The disk that is ready to go on.
    pub(super) spare: Option<usize>,
    /// The sets of tracks it may be playing.
    pub(super) offers: Vec<Vec<TrackNumber>>,
    /// Those it has booked, or had when it gave its booking back.
    pub(super) tracks: Vec<TrackNumber>,
    pub(super) streams: Vec<StreamId>,
    pub(super) requests: Vec<RequestId>,
    /// Memory kept aside for its sockets.
    pub(super) reserve: u64,
    /// Bytes of buffers that its sockets have not taken yet.
    pub(super) unsent: u64,
    /// When the player last asked, took or hung up something.
    pub(super) last_sign: Moment,
    /// It has asked for media at least once.
    pub(super) asked: bool,
    /// Per track, the youngest request for which it was let in anew.
    pub(super) jumps: BTreeMap<TrackNumber, u64>,
    pub(super) summary: SessionSummary,
}

impl Session {
    /// Where it is read from, and its spare.
    pub(super) fn seat(&self) -> Seat {
        (usize::from(self.layout.disk.0), self.spare)
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) session: SessionId,
    /// Younger requests have larger ones.
    pub(super) number: u64,
    parts: Vec<Part>,
    at: usize,
    offset: u64,
    /// Handed over and not yet taken by the socket, oldest first.
    pub(super) unsent: VecDeque<ReadId>,
    /// Refused, failed, complete or its session ended: nothing more will be handed over.
    pub(super) over: bool,
    /// The piece that it waits for.
    pub(super) awaits: Option<PieceKey>,
    /// What it still takes, once its session has ended.
    pub(super) orphan: Option<Orphan>,
}

/// A request whose socket still holds buffers although its session has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    pub(super) disk: usize,
    pub(super) title: TitleKey,
    /// Memory kept aside for it.
    pub(super) reserve: u64,
}

/// The next bytes that a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) track: TrackNumber,
    /// From here in the track ...
    pub(super) offset: u64,
    /// ... to here, if that were one piece.
    pub(super) end: u64,
}

impl Request {
    pub(super) fn new(session: SessionId, number: u64, parts: Vec<Part>) -> Self {
        let offset = parts[0].bytes.start;
        let unsent = VecDeque::new();
        let (over, awaits, orphan) = (false, None, None);
        Self { session, number, parts, at: 0, offset, unsent, over, awaits, orphan }
    }

    /// What is to be handed over next; `None` when all has been.
    pub(super) fn next(&self) -> Option<Next> {
        let part = self.parts.get(self.at)?;
        Some(Next { track: part.track, offset: self.offset, end: part.bytes.end })
    }

    /// `bytes` of it have been handed over.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.offset += bytes;
        if self.offset >= self.parts[self.at].bytes.end {
            self.at += 1;
            self.offset = self.parts.get(self.at).map_or(0, |part| part.bytes.start);
        }
    }

    /// Per track, what has not been served: from its first byte to the end of its last part.
    pub(super) fn unserved(&self) -> Vec<(TrackNumber, Range<u64>)> {
        let mut unserved: Vec<(TrackNumber, Range<u64>)> = Vec::new();
        for (number, part) in self.parts.iter().enumerate().skip(self.at) {
            let from = if number == self.at { self.offset } else { part.bytes.start };
            match unserved.iter_mut().find(|(track, _)| *track == part.track) {
                Some((_, bytes)) => bytes.end = bytes.end.max(part.bytes.end),
                None => unserved.push((part.track, from..part.bytes.end)),
            }
        }
        unserved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_walks_through_its_parts() {
        let part = |track, bytes| Part { track, bytes };
        let mut request = Request::new(SessionId(1), 1, vec![part(0, 5..30), part(1, 0..10)]);
        let mut walk = Vec::new();
        while let Some(next) = request.next() {
            let bytes = (next.end - next.offset).min(20);
            walk.push((next.track, next.offset, bytes));
            request.advance(bytes);
        }
        assert_eq!(walk, [(0, 5, 20), (0, 25, 5), (1, 0, 10)]);
        assert_eq!(request.unserved(), []);
    }

    #[test]
    fn what_was_not_served_starts_where_serving_stopped() {
        let part = |track, bytes| Part { track, bytes };
        let parts = vec![part(0, 5..30), part(1, 0..10), part(0, 30..60)];
        let mut request = Request::new(SessionId(1), 1, parts);
        request.advance(20);
        assert_eq!(request.unserved(), [(0, 25..60), (1, 0..10)]);
        request.advance(5);
        assert_eq!(request.unserved(), [(1, 0..10), (0, 30..60)]);
    }
}
