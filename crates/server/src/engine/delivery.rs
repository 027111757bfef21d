//! From buffers to sockets: requests are served in order, piece by piece, as pieces come into
//! memory and as the player takes them.
//!
//! ```text
//!   next bytes of a request are in a piece that is ...
//!     in memory          hand it over, if the start is not held back (`start`) and the socket has
//!                        room (SEND_WINDOW)
//!     being read         wait for it
//!     on the books       wait for its turn
//!     none of these      it was let go: ask at the door (`jump`)
//! ```

use super::buffers::{Interest, PieceKey, State};
use super::pieces::key;
use super::sessions::{Next, Orphan, Request};
use super::streams::StreamId;
use super::{
    Action, Declined, DiskNumber, Engine, Part, ReadId, ReadOutcome, Refusal, RequestId, SessionId,
    TitleKey, TrackNumber, Want,
};
use scheduler::SEND_WINDOW;
use std::collections::BTreeSet;
use units::Moment;

// Where the next bytes of a request are.
enum Found {
    Ready(ReadId),
    Coming(Option<ReadId>),
    Elsewhere,
}

impl Engine {
    /// A player asks for bytes. What becomes of it comes as actions that name the request:
    /// `Deliver`s and `Complete`, or `Refused`, or `Failed` (also for a session or range that does
    /// not exist).
    pub fn want(&mut self, now: Moment, want: Want) {
        let Want { request, session, parts } = want;
        self.hear_of(now, session, parts.iter().map(|part| part.track).collect());
        self.advance(now);
        if self.requests.contains_key(&request) || !self.is_sound(session, &parts) {
            self.actions.push(Action::Failed { request, outcome: ReadOutcome::Failed });
            return;
        }
        let state = self.sessions.get_mut(&session).expect("checked");
        if state.requests.len() >= MAX_REQUESTS {
            let why = Declined::TooMany { most: MAX_REQUESTS };
            self.actions.push(Action::Declined { request, why });
            return;
        }
        state.asked = true;
        state.requests.push(request);
        self.requests.insert(request, Request::new(session, self.next_number, parts));
        self.next_number += 1;
        match self.jump(now, request) {
            Ok(()) => self.serve(now, request),
            Err(refusal) => self.refuse(request, refusal),
        }
        self.use_leftovers(now);
    }

    // A player asks, takes or hangs up something of these tracks. Noted before time passes: who comes
    // in the moment in which its place would be given back for its silence was not silent until then.
    fn hear_of(&mut self, now: Moment, session: SessionId, tracks: BTreeSet<TrackNumber>) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        state.last_sign = now;
        for id in &state.streams {
            let stream = self.streams.get_mut(id).expect("live");
            if tracks.contains(&stream.track) {
                stream.last_sign = now;
            }
        }
    }

    fn is_sound(&self, session: SessionId, parts: &[Part]) -> bool {
        let Some(session) = self.sessions.get(&session) else { return false };
        let tracks = &session.layout.tracks;
        let sound = |part: &Part| {
            let track = tracks.get(usize::from(part.track));
            !part.bytes.is_empty() && track.is_some_and(|track| part.bytes.end <= track.bytes)
        };
        !parts.is_empty() && parts.len() <= MAX_PARTS && parts.iter().all(sound)
    }

    /// The socket has taken everything that was delivered to `request` out of buffer `read`
    /// by the oldest [`Action::Deliver`] not yet answered.
    pub fn sent(&mut self, now: Moment, request: RequestId, read: ReadId) {
        let unsent = |state: &&Request| state.unsent.contains(&read);
        if let Some(session) = self.requests.get(&request).filter(unsent).map(|r| r.session) {
            self.hear_of(now, session, self.tracks_in([&read]));
        }
        self.advance(now);
        let Some(state) = self.requests.get_mut(&request) else { return };
        let Some(at) = state.unsent.iter().position(|other| *other == read) else { return };
        state.unsent.remove(at);
        let session = state.session;
        self.taken(session, read);
        self.end_if_over(request);
        self.serve_session(now, session);
        self.use_leftovers(now);
    }

    /// The player has hung up on `request`, or its connection failed: nothing of it is in use.
    pub fn cancel(&mut self, now: Moment, request: RequestId) {
        if let Some(state) = self.requests.get(&request) {
            let mut tracks = self.tracks_in(&state.unsent);
            tracks.extend(state.unserved().into_iter().map(|(track, _)| track));
            self.hear_of(now, state.session, tracks);
        }
        self.advance(now);
        let Some(state) = self.requests.get(&request) else { return };
        let session = state.session;
        self.drop_request(request);
        self.serve_session(now, session);
        self.use_leftovers(now);
    }

    // Of which tracks buffers are that sockets hold.
    fn tracks_in<'a>(&self, unsent: impl IntoIterator<Item = &'a ReadId>) -> BTreeSet<TrackNumber> {
        let track =
            |read: &ReadId| self.buffers.get(*read).expect("unsent buffers are pinned").key.track;
        unsent.into_iter().map(track).collect()
    }

    /// Forgets a request with everything its socket has not taken.
    pub(super) fn drop_request(&mut self, request: RequestId) {
        if !self.requests.contains_key(&request) {
            return;
        }
        self.over(request);
        let state = self.requests.get_mut(&request).expect("checked");
        let session = state.session;
        for read in std::mem::take(&mut state.unsent) {
            self.taken(session, read);
        }
        self.end_if_over(request);
    }

    // A socket no longer needs a buffer.
    fn taken(&mut self, session: SessionId, read: ReadId) {
        let len = self.buffers.get(read).expect("unsent buffers are pinned").place.len;
        self.buffers.unpin(read);
        if let Some(state) = self.sessions.get_mut(&session) {
            state.unsent -= u64::from(len);
        }
    }

    fn end_if_over(&mut self, request: RequestId) {
        let Some(state) = self.requests.get(&request) else { return };
        if !state.over || !state.unsent.is_empty() {
            return;
        }
        self.await_nothing(request);
        let state = self.requests.remove(&request).expect("looked up just now");
        match self.sessions.get_mut(&state.session) {
            Some(session) => session.requests.retain(|other| *other != request),
            None => self.orphan_ended(&state),
        }
    }

    /// The session of a request has ended; what its socket holds stays until it is done with it.
    pub(super) fn orphan(&mut self, request: RequestId, disk: usize, title: TitleKey) {
        self.await_nothing(request);
        let Some(state) = self.requests.get_mut(&request) else { return };
        state.over = true;
        let len = |read: &ReadId| u64::from(self.buffers.get(*read).expect("pinned").place.len);
        let reserve = state.unsent.iter().map(len).sum();
        state.orphan = Some(Orphan { disk, title, reserve });
        self.disks[disk].books.reserve(reserve);
        self.titles.began(title);
        self.end_if_over(request);
    }

    fn orphan_ended(&mut self, state: &Request) {
        let Orphan { disk, title, reserve } = state.orphan.expect("only orphans have no session");
        self.disks[disk].books.unreserve(reserve);
        self.title_use_ended(title);
    }

    /// Serves all requests of a session, oldest first.
    pub(super) fn serve_session(&mut self, now: Moment, session: SessionId) {
        let Some(state) = self.sessions.get(&session) else { return };
        for request in state.requests.clone() {
            self.serve(now, request);
        }
    }

    /// Hands over as much of a request as is in memory and its socket may hold.
    pub(super) fn serve(&mut self, now: Moment, request: RequestId) {
        self.await_nothing(request);
        while let Some(state) = self.requests.get(&request) {
            if state.over {
                return;
            }
            let (session, Some(next)) = (state.session, state.next()) else {
                self.complete(request);
                return;
            };
            if state.unsent.len() as u64 >= SEND_WINDOW {
                return;
            }
            match self.find(session, next) {
                Found::Ready(read) => {
                    let id = self.stream_of(session, next.track).expect("found through it");
                    if self.is_held_back(now, id) || !self.hand_over(now, request, next, read) {
                        return;
                    }
                }
                Found::Coming(read) => {
                    if let Some(read) = read {
                        self.buffers.tell(read, Interest::Request(request));
                    }
                    self.await_piece(request, next);
                    return;
                }
                Found::Elsewhere if self.has_gone_on(request) => {
                    self.over(request);
                    self.actions.push(Action::Declined { request, why: Declined::Elsewhere });
                    return self.end_if_over(request);
                }
                Found::Elsewhere => {
                    if let Err(refusal) = self.return_for(now, request) {
                        return self.refuse(request, refusal);
                    }
                }
            }
        }
    }

    fn find(&self, session: SessionId, next: Next) -> Found {
        let Some(id) = self.stream_of(session, next.track) else { return Found::Elsewhere };
        let stream = &self.streams[&id];
        let piece = stream.piece_at(next.offset);
        if let Some(read) = stream.read_of(piece) {
            return match self.buffers.get(read).expect("held").state {
                State::Ready => Found::Ready(read),
                State::Reading => Found::Coming(Some(read)),
            };
        }
        match self.buffers.find(stream.key(piece), stream.place(piece)) {
            Some((read, State::Ready)) => Found::Ready(read),
            Some((read, State::Reading)) => Found::Coming(Some(read)),
            None if piece >= stream.cursor => Found::Coming(None),
            None => Found::Elsewhere,
        }
    }

    /// Whether what a session is to be served next of a track is neither in memory nor to come.
    pub(super) fn is_lost(&self, session: SessionId, track: TrackNumber, offset: u64) -> bool {
        matches!(self.find(session, Next { track, offset, end: offset }), Found::Elsewhere)
    }

    fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        self.count_refusal(refusal.resource);
        self.over(request);
        self.actions.push(Action::Refused { request, refusal });
        self.end_if_over(request);
    }

    pub(super) fn stream_of(&self, session: SessionId, track: u16) -> Option<StreamId> {
        let streams = &self.sessions.get(&session)?.streams;
        streams.iter().copied().find(|id| self.streams[id].track == track)
    }

    // Says whether the session's sockets had room for it.
    fn hand_over(&mut self, now: Moment, request: RequestId, next: Next, read: ReadId) -> bool {
        let buffer = self.buffers.get(read).expect("found just now");
        let len = u64::from(buffer.place.len);
        let session_id = self.requests[&request].session;
        let id = self.stream_of(session_id, next.track).expect("found through it");
        let piece = self.streams[&id].piece_at(next.offset);
        let session = self.sessions.get_mut(&session_id).expect("live");
        if session.unsent + len > session.reserve {
            return false;
        }
        let stream = &self.streams[&id];
        let start = u64::from(piece) * u64::from(stream.curve().piece);
        let end = next.end.min(start + u64::from(stream.curve().piece));
        let whole = end == start + u64::from(stream.curve().piece)
            || end == stream.layout.tracks[usize::from(stream.track)].bytes;
        let within = |offset: u64| u32::try_from(offset - start).expect("within a piece");
        let bytes = within(next.offset)..within(end);
        session.unsent += len;
        session.summary.delivered += end - next.offset;
        self.counters.delivered += end - next.offset;
        self.buffers.pin(read);
        let state = self.requests.get_mut(&request).expect("live");
        state.unsent.push_back(read);
        state.advance(end - next.offset);
        self.actions.push(Action::Deliver { request, read, bytes });
        self.note_delivered(now, id, piece, whole, read);
        true
    }

    fn note_delivered(&mut self, now: Moment, id: StreamId, piece: u32, whole: bool, read: ReadId) {
        if whole && self.streams[&id].cursor == piece {
            // It was in memory for another viewer before its turn came. Delivered in part, it
            // must wait for its turn to be held: memory is given out strictly by deadline.
            self.share(now, id, read);
        }
        let stream = self.streams.get_mut(&id).expect("live");
        stream.last_sign = now;
        stream.delivered(piece, whole);
        if whole {
            // It may have come this moment, and this request been told first.
            self.count(now, id, piece);
            self.let_go(id, piece);
        }
    }

    /// A stream no longer needs a piece; whoever else does keeps it.
    pub(super) fn let_go(&mut self, id: StreamId, piece: u32) {
        let stream = self.streams.get_mut(&id).expect("live");
        let Some((read, due, safe)) = stream.let_go(piece) else { return };
        self.disks[usize::from(stream.layout.disk.0)].books.let_go(due);
        self.standby.let_go(stream, due.piece, safe);
        self.network.unbook(due);
        self.buffers.unpin(read);
    }

    fn complete(&mut self, request: RequestId) {
        self.over(request);
        self.actions.push(Action::Complete { request });
        self.end_if_over(request);
    }

    pub(super) fn fail(&mut self, request: RequestId, outcome: ReadOutcome) {
        self.over(request);
        self.actions.push(Action::Failed { request, outcome });
        self.end_if_over(request);
    }

    // Nothing more is handed over; the player goes on where that stopped.
    fn over(&mut self, request: RequestId) {
        self.await_nothing(request);
        let state = self.requests.get_mut(&request).expect("live");
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        let (session, unserved) = (state.session, state.unserved());
        for (track, bytes) in unserved {
            if let Some(id) = self.stream_of(session, track) {
                self.streams.get_mut(&id).expect("live").hung_up(bytes.start, bytes.end);
            }
        }
    }

    fn await_piece(&mut self, request: RequestId, next: Next) {
        let state = self.requests.get_mut(&request).expect("live");
        let layout = &self.sessions[&state.session].layout;
        let piece = next.offset / u64::from(layout.tracks[usize::from(next.track)].piece);
        let piece = u32::try_from(piece).expect("within a sound track");
        let key = key(layout, next.track, piece);
        state.awaits = Some(key);
        self.awaited.insert((key, request));
    }

    fn await_nothing(&mut self, request: RequestId) {
        let awaits = self.requests.get_mut(&request).and_then(|state| state.awaits.take());
        if let Some(key) = awaits {
            self.awaited.remove(&(key, request));
        }
    }

    /// Whether nothing brings a request what it waits for.
    pub(super) fn is_stuck(&self, request: RequestId) -> bool {
        let state = &self.requests[&request];
        state.next().is_some_and(|next| self.is_lost(state.session, next.track, next.offset))
    }

    /// Requests that wait for a piece, whoever reads it, from whichever copy.
    pub(super) fn waiting_for(&self, key: PieceKey) -> Vec<RequestId> {
        let first = PieceKey { disk: DiskNumber(0), ..key };
        let last = PieceKey { disk: DiskNumber(u16::MAX), ..key };
        let all = (first, RequestId(0))..=(last, RequestId(u64::MAX));
        self.awaited.range(all).map(|(_, request)| *request).collect()
    }
}

/// Requests of one session at once: a player has one or two per track.
const MAX_REQUESTS: usize = 16;

/// Parts of one request: a day of video and sound interleaved every second, several times over.
const MAX_PARTS: usize = 1 << 20;
