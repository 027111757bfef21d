//! Sessions and their requests: what a player asked for and how much of it has been handed over.
//! Nothing here decides; see `delivery` and `admission`.

use super::bookings::Placement;
use super::stream::StreamId;
use super::table::Table;
use super::{
    FillFor, Layout, Part, Priority, ReadId, RequestId, ResponsePlace, SessionId, TitleKey,
    TrackNumber,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use units::Moment;

#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The copy that it is read from.
    pub(super) layout: Arc<Layout>,
    /// All copies of the title, `layout` among them.
    pub(super) copies: Arc<[Arc<Layout>]>,
    /// The disk with the copy that takes over if the session's disk is lost.
    pub(super) replica: Option<usize>,
    /// The sets of tracks it may be playing.
    pub(super) offers: Vec<Vec<TrackNumber>>,
    /// The tracks that are booked, or were when the booking was released for silence.
    pub(super) tracks: Vec<TrackNumber>,
    pub(super) streams: Vec<StreamId>,
    /// Oldest first.
    pub(super) requests: Vec<RequestId>,
    /// Bytes of memory reserved for its sockets; at least `unsent` while a stream is booked.
    pub(super) reserve: u64,
    /// Bytes of buffers that its sockets have not taken yet.
    pub(super) unsent: u64,
    /// When the player last asked, took or hung up something.
    pub(super) last_activity: Moment,
    /// The player has asked for media at least once.
    pub(super) asked: bool,
    /// Whether its player has a connection.
    pub(super) presence: Presence,
    /// For whom it is a fill.
    pub(super) fill: Option<FillFor>,
    /// Who goes first where there is not room for all.
    pub(super) priority: Priority,
    /// Per track, the number of the youngest request for which it was readmitted.
    pub(super) seeks: BTreeMap<TrackNumber, u64>,
}

/// Whether a player is there, as far as its connections show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The player has a connection, or nothing is known of its connections.
    Connected,
    /// The player has had no connection since then, which does not tell whether it comes back.
    Disconnected(Moment),
    /// The player left then.
    Left(Moment),
}

impl Session {
    /// The disk that it is read from, and the replica's.
    pub(super) fn placement(&self) -> Placement {
        Placement { disk: usize::from(self.layout.disk.0), replica: self.replica }
    }
}

/// All requests in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    live: Table<RequestId, RequestState>,
    next_number: u64,
}

impl Requests {
    /// Adds a request, which is as old as the one before it in its response, if that is still
    /// known; its number.
    pub(super) fn begin(
        &mut self,
        id: RequestId,
        session: SessionId,
        parts: Vec<Part>,
        place: ResponsePlace,
    ) -> u64 {
        let before = place.before.and_then(|before| self.live.get_mut(&before));
        let mut before = before.filter(|before| before.session == session);
        before.iter_mut().for_each(|before| before.is_continued = true);
        let before = before.map(|before| (before.number, before.reached.clone()));
        let (number, reached) = before.unwrap_or((self.next_number, Vec::new()));
        self.live.insert(id, RequestState::new(session, number, parts, (place.ends, reached)));
        self.next_number += 1;
        number
    }
}

impl Deref for Requests {
    type Target = Table<RequestId, RequestState>;

    fn deref(&self) -> &Self::Target {
        &self.live
    }
}

impl DerefMut for Requests {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.live
    }
}

/// A byte at which something ends in a track.
type TrackEnd = (TrackNumber, u64);

/// A request in progress.
#[derive(Clone, Debug)]
pub(super) struct RequestState {
    pub(super) session: SessionId,
    /// Younger requests have larger ones; those of one response have the same.
    pub(super) number: u64,
    /// Where its response ends in each track, if that is known.
    ends: Arc<[TrackEnd]>,
    /// Tracks of the requests before it in its response.
    begun: Vec<TrackNumber>,
    /// Where it ends, or they, in each track so far.
    reached: Vec<TrackEnd>,
    /// Another request continues the response.
    is_continued: bool,
    parts: Vec<Part>,
    at: usize,
    offset: u64,
    /// Handed over and not yet taken by the socket, oldest first.
    pub(super) unsent: VecDeque<ReadId>,
    /// Refused, failed, complete or its session ended: nothing more will be handed over.
    pub(super) over: bool,
    /// What it still takes, once its session has ended.
    pub(super) detached: Option<DetachedTransfer>,
}

/// A request whose socket still holds buffers although its session has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetachedTransfer {
    pub(super) disk: usize,
    pub(super) title: TitleKey,
    /// Bytes of memory reserved for it.
    pub(super) reserve: u64,
}

/// The next bytes that a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextBytes {
    pub(super) track: TrackNumber,
    /// From here in the track ...
    pub(super) offset: u64,
    /// ... to here, if that were one piece.
    pub(super) end: u64,
}

impl RequestState {
    /// A request for `parts` in a response that ends at `ends` in its tracks, and was requested to
    /// `reached` before.
    pub(super) fn new(
        session: SessionId,
        number: u64,
        parts: Vec<Part>,
        (ends, mut reached): (Arc<[TrackEnd]>, Vec<TrackEnd>),
    ) -> Self {
        let begun = reached.iter().map(|(track, _)| *track).collect();
        for part in &parts {
            match reached.iter_mut().find(|(track, _)| *track == part.track) {
                Some((_, end)) => *end = part.bytes.end.max(*end),
                None => reached.push((part.track, part.bytes.end)),
            }
        }
        Self {
            session,
            number,
            ends,
            begun,
            reached,
            is_continued: false,
            offset: parts[0].bytes.start,
            parts,
            at: 0,
            unsent: VecDeque::new(),
            over: false,
            detached: None,
        }
    }

    /// What is to be handed over next; `None` when all has been.
    pub(super) fn next(&self) -> Option<NextBytes> {
        let part = self.parts.get(self.at)?;
        Some(NextBytes { track: part.track, offset: self.offset, end: part.bytes.end })
    }

    /// `bytes` of it have been handed over.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.offset += bytes;
        if self.offset >= self.parts[self.at].bytes.end {
            self.at += 1;
            self.offset = self.parts.get(self.at).map_or(0, |part| part.bytes.start);
        }
    }

    /// Whether it goes on in a track with what an earlier request of its response has begun.
    pub(super) fn goes_on(&self, track: TrackNumber) -> bool {
        self.begun.contains(&track)
    }

    /// Whether its response still brings data of a track.
    pub(super) fn waits_for(&self, track: TrackNumber) -> bool {
        let mut rest = self.parts.iter().skip(self.at);
        let mut is_requested = || rest.any(|part| part.track == track);
        let end = self.ends.iter().find(|(of, _)| *of == track).map_or(0, |(_, end)| *end);
        !self.over && (self.reached(track).unwrap_or(0) < end || is_requested())
    }

    /// Whether it was served whole and is the last request so far of its response.
    pub(super) fn is_latest_and_served(&self) -> bool {
        self.next().is_none() && !self.is_continued
    }

    /// Where what was requested of its response ends in a track.
    fn reached(&self, track: TrackNumber) -> Option<u64> {
        self.reached.iter().find(|(of, _)| *of == track).map(|(_, end)| *end)
    }

    /// Per track of its parts, what has not been served: from its first byte to the end of its last
    /// part, or of the response.
    pub(super) fn unserved(&self) -> Vec<(TrackNumber, Range<u64>)> {
        let mut unserved: Vec<(TrackNumber, Range<u64>)> = Vec::new();
        for (number, part) in self.parts.iter().enumerate().skip(self.at) {
            let from = if number == self.at { self.offset } else { part.bytes.start };
            match unserved.iter_mut().find(|(track, _)| *track == part.track) {
                Some((_, bytes)) => bytes.end = bytes.end.max(part.bytes.end),
                None => unserved.push((part.track, from..part.bytes.end)),
            }
        }
        for &(track, end) in &*self.ends {
            match unserved.iter_mut().find(|(of, _)| *of == track) {
                Some((_, bytes)) => bytes.end = bytes.end.max(end),
                None => {
                    let rest = self.reached(track).map(|reached| reached..end);
                    unserved.extend(rest.filter(|rest| !rest.is_empty()).map(|rest| (track, rest)));
                }
            }
        }
        unserved
    }
}

/// The fills that are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct FillCounts {
    caches: u32,
    nodes: u32,
}

impl FillCounts {
    pub(super) fn of(&self, fill: FillFor) -> u32 {
        match fill {
            FillFor::Cache => self.caches,
            FillFor::Node => self.nodes,
        }
    }

    /// A session has begun, which may be a fill.
    pub(super) fn began(&mut self, fill: Option<FillFor>) {
        if let Some(fill) = fill {
            *self.count(fill) += 1;
        }
    }

    /// A session has ended, which may have been a fill.
    pub(super) fn ended(&mut self, fill: Option<FillFor>) {
        if let Some(fill) = fill {
            *self.count(fill) -= 1;
        }
    }

    fn count(&mut self, fill: FillFor) -> &mut u32 {
        match fill {
            FillFor::Cache => &mut self.caches,
            FillFor::Node => &mut self.nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_walks_through_its_parts() {
        let part = |track, bytes| Part { track, bytes };
        let mut request = RequestState::new(
            SessionId(1),
            1,
            vec![part(0, 5..30), part(1, 0..10)],
            Default::default(),
        );
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
        let mut request = RequestState::new(SessionId(1), 1, parts, Default::default());
        request.advance(20);
        assert_eq!(request.unserved(), [(0, 25..60), (1, 0..10)]);
        request.advance(5);
        assert_eq!(request.unserved(), [(1, 0..10), (0, 30..60)]);
    }
}
