//! From buffers to sockets: requests are served in order, piece by piece, as pieces come into
//! memory and as the player takes them.
//!
//! ```text
//!   the next bytes of a request are in a piece that is ...
//!     in memory          deliver it, if the start-up is over (`start`) and the socket has room
//!                        (SEND_WINDOW)
//!     being read         wait for it
//!     booked             wait until it is read
//!     none of these      it was released: the session must be readmitted (`seek`)
//! ```

use super::bookings::Placement;
use super::buffers::{BufferState, Waiter};
use super::pieces::key;
use super::seek::Unserved;
use super::sessions::{DetachedTransfer, NextBytes, RequestState, Session};
use super::stream::StreamId;
use super::{
    Action, DeclineReason, Engine, MediaRequest, Part, ReadId, ReadOutcome, Refusal, RequestId,
    ResponsePlace, SessionId, TitleKey, TrackNumber,
};
use scheduler::SEND_WINDOW;
use std::collections::BTreeSet;
use std::ops::Range;
use units::Moment;

// Where the next bytes of a request are.
enum PieceState {
    InMemory(ReadId),
    /// Booked: being read, or `None` while it is not read yet.
    Expected(Option<ReadId>),
    /// Neither in memory nor booked: the session must be admitted anew for it.
    Unavailable,
}

impl Engine {
    /// Registers a request, and serves as much of it as is in memory.
    pub(super) fn begin_request(&mut self, now: Moment, media: MediaRequest, place: ResponsePlace) {
        let MediaRequest { request, session, parts } = media;
        if self.requests.contains_key(&request) || !self.is_valid_request(session, &parts) {
            self.streams.actions.push(Action::Failed { request, outcome: ReadOutcome::Failed });
            return;
        }
        let state = &mut self.sessions[&session];
        if state.requests.len() >= MAX_REQUESTS {
            let why = DeclineReason::TooManyRequests { most: MAX_REQUESTS };
            self.streams.actions.push(Action::Declined { request, why });
            return;
        }
        // Also a refused request shows that a player is there, so the longer time limit applies.
        state.asked = true;
        // Before the seek, which counts this request among the open ones of its session.
        let number = self.requests.begin(request, session, parts, place);
        let is_younger = |other: &RequestId| self.requests[other].number > number;
        let at = state.requests.iter().position(is_younger).unwrap_or(state.requests.len());
        state.requests.insert(at, request);
        match self.readmit_where_not_contiguous(now, request) {
            Ok(()) => self.serve(now, request),
            Err(refusal) => {
                // Where its response has begun, that ends here. Else it ends before it has begun:
                // the player may still continue at every place at which it could before, also
                // where this request would have ended.
                let state = &self.requests[&request];
                let mut begun = state.unserved();
                begun.retain(|(track, _)| state.goes_on(*track));
                self.note_unserved(session, begun);
                self.requests[&request].over = true;
                self.refuse(request, refusal);
            }
        }
    }

    /// Notes that a player requests, receives or cancels data of these tracks. Called before time
    /// advances: a request that arrives in the tick in which its idle stream would be released
    /// keeps the stream.
    pub(super) fn note_activity(
        &mut self,
        now: Moment,
        session: SessionId,
        tracks: &BTreeSet<TrackNumber>,
    ) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        state.last_activity = now;
        for id in &state.streams {
            if tracks.contains(&self.streams[id].track) {
                self.streams.note_activity(now, *id);
            }
        }
    }

    /// The session of a request, and the tracks of which its socket holds `read`.
    pub(super) fn activity_of_sent(
        &self,
        request: RequestId,
        read: ReadId,
    ) -> Option<(SessionId, BTreeSet<TrackNumber>)> {
        let state = self.requests.get(&request).filter(|state| state.unsent.contains(&read))?;
        Some((state.session, self.tracks_in([&read])))
    }

    /// The session of a request, and the tracks that it was to deliver or whose buffers its socket
    /// holds.
    pub(super) fn activity_of_cancelled(
        &self,
        request: RequestId,
    ) -> Option<(SessionId, BTreeSet<TrackNumber>)> {
        let state = self.requests.get(&request)?;
        let mut tracks = self.tracks_in(&state.unsent);
        tracks.extend(state.unserved().into_iter().map(|(track, _)| track));
        Some((state.session, tracks))
    }

    fn is_valid_request(&self, session: SessionId, parts: &[Part]) -> bool {
        let Some(session) = self.sessions.get(&session) else { return false };
        let tracks = &session.layout.tracks;
        let sound = |part: &Part| {
            let track = tracks.get(usize::from(part.track));
            !part.bytes.is_empty() && track.is_some_and(|track| part.bytes.end <= track.bytes)
        };
        !parts.is_empty() && parts.len() <= MAX_PARTS && parts.iter().all(sound)
    }

    /// A socket has taken the oldest delivery of `request` out of buffer `read`.
    pub(super) fn finish_sent(&mut self, now: Moment, request: RequestId, read: ReadId) {
        let Some(state) = self.requests.get_mut(&request) else { return };
        let Some(at) = state.unsent.iter().position(|other| *other == read) else { return };
        state.unsent.remove(at);
        let session = state.session;
        self.taken(session, read);
        self.end_if_over(request);
        // Other requests of the session may use the memory that the socket has given back.
        self.serve_session(now, session);
    }

    /// A request was cancelled: none of its buffers are in use. Other requests of the session stay.
    pub(super) fn cancel_request(&mut self, now: Moment, request: RequestId) {
        let Some(state) = self.requests.get(&request) else { return };
        let session = state.session;
        self.drop_request(request);
        self.serve_session(now, session);
    }

    // The tracks that these buffers, which sockets hold, are of.
    fn tracks_in<'a>(&self, unsent: impl IntoIterator<Item = &'a ReadId>) -> BTreeSet<TrackNumber> {
        let track = |read: &ReadId| {
            self.streams.buffers.get(*read).expect("unsent buffers are pinned").key.track
        };
        unsent.into_iter().map(track).collect()
    }

    /// A read has ended; one that was never issued is ignored. Streams and requests that waited for
    /// it are served.
    pub(super) fn finish_read(
        &mut self,
        now: Moment,
        read: ReadId,
        outcome: ReadOutcome,
        device: &Range<Moment>,
    ) {
        let Some(ended) = self.streams.end_read(now, read, outcome, device) else { return };
        self.notify_waiters(now, read, &ended.waiters);
        // If this failure makes the disk a lost one, its sessions leave it, and the failed read has
        // no holders left for which it would be repeated.
        self.watch_disk(now, usize::from(ended.place.disk.0), outcome);
        match outcome {
            ReadOutcome::Good => self.streams.title_use_ended(ended.key.title),
            ReadOutcome::Failed if self.may_wait(read) => {
                let disk = usize::from(ended.place.disk.0);
                self.streams.bookings.disks[disk].doubtful.insert(read);
            }
            _ => self.failed_read(now, read, outcome),
        }
    }

    /// A piece is in memory: it is counted for the streams that hold it, and waiters are served.
    pub(super) fn notify_waiters(&mut self, now: Moment, read: ReadId, waiters: &[Waiter]) {
        for waiter in waiters {
            match waiter {
                Waiter::Stream(id) => {
                    if let Some(session) = self.streams.arrived(now, *id, read) {
                        self.serve_session(now, session);
                    }
                }
                Waiter::Request(request) => self.serve(now, *request),
            }
        }
    }

    /// Forgets a request with everything its socket has not taken.
    pub(super) fn drop_request(&mut self, request: RequestId) {
        if !self.requests.contains_key(&request) {
            return;
        }
        let state = &self.requests[&request];
        // The player may request the rest of the response again.
        if state.over && state.is_latest_and_served() {
            self.note_unserved(state.session, state.unserved());
        }
        self.over(request);
        let state = &mut self.requests[&request];
        let session = state.session;
        for read in std::mem::take(&mut state.unsent) {
            self.taken(session, read);
        }
        self.end_if_over(request);
    }

    // A socket no longer needs a buffer.
    fn taken(&mut self, session: SessionId, read: ReadId) {
        let len = self.streams.buffers.get(read).expect("unsent buffers are pinned").place.len;
        self.streams.buffers.unpin(read);
        if let Some(state) = self.sessions.get_mut(&session) {
            state.unsent -= u64::from(len);
        }
    }

    fn end_if_over(&mut self, request: RequestId) {
        let Some(state) = self.requests.get(&request) else { return };
        // A request is known for as long as a socket holds its buffers: `sent` names it.
        if !state.over || !state.unsent.is_empty() {
            return;
        }
        self.streams.awaited.stop(request);
        let state = self.requests.remove(&request).expect("looked up just now");
        match self.sessions.get_mut(&state.session) {
            Some(session) => session.requests.retain(|other| *other != request),
            None => self.end_detached(&state),
        }
    }

    /// The session of a request has ended; buffers that its socket holds stay until they are sent.
    pub(super) fn detach(&mut self, request: RequestId, disk: usize, title: TitleKey) {
        self.streams.awaited.stop(request);
        let Some(state) = self.requests.get_mut(&request) else { return };
        // The session's streams are gone, so none of them needs to know what was not delivered.
        state.over = true;
        let len =
            |read: &ReadId| u64::from(self.streams.buffers.get(*read).expect("pinned").place.len);
        let reserve = state.unsent.iter().map(len).sum();
        state.detached = Some(DetachedTransfer { disk, title, reserve });
        self.streams.bookings.reserve_send_memory(no_replica(disk), reserve);
        // The session's use of the title ends with it, and the socket still reads the title's
        // bytes.
        self.streams.titles.use_began(title);
        self.end_if_over(request);
    }

    fn end_detached(&mut self, state: &RequestState) {
        let DetachedTransfer { disk, title, reserve } =
            state.detached.expect("only detached transfers have no session");
        self.streams.bookings.release_send_memory(no_replica(disk), reserve);
        self.streams.title_use_ended(title);
    }

    /// Serves all requests of a session, oldest first.
    pub(super) fn serve_session(&mut self, now: Moment, session: SessionId) {
        let Some(state) = self.sessions.get(&session) else { return };
        for request in state.requests.clone() {
            self.serve(now, request);
        }
    }

    /// Delivers as much of a request as is in memory and its socket may hold.
    pub(super) fn serve(&mut self, now: Moment, request: RequestId) {
        self.streams.awaited.stop(request);
        while let Some(state) = self.requests.get(&request) {
            if state.over {
                return;
            }
            let (session, Some(next)) = (state.session, state.next()) else {
                self.complete(request);
                return;
            };
            // Admission reserves memory for SEND_WINDOW buffers of each request's socket.
            if state.unsent.len() as u64 >= SEND_WINDOW {
                return;
            }
            match self.find(session, next) {
                PieceState::InMemory(read) => {
                    let id = self.stream_of(session, next.track).expect("found through it");
                    // The request is served again when the start-up is over or a socket has taken
                    // something.
                    if self.streams.is_held_back(now, id)
                        || !self.hand_over(now, request, next, read)
                    {
                        return;
                    }
                }
                PieceState::Expected(read) => {
                    if let Some(read) = read {
                        self.streams.buffers.add_waiter(read, Waiter::Request(request));
                    }
                    self.await_piece(request, next);
                    return;
                }
                PieceState::Unavailable if self.is_superseded(request) => {
                    self.over(request);
                    self.streams
                        .actions
                        .push(Action::Declined { request, why: DeclineReason::Superseded });
                    return self.end_if_over(request);
                }
                PieceState::Unavailable => {
                    // Once readmitted, the piece is booked: the next turn of the loop waits for it.
                    if let Err(refusal) = self.readmit_released(now, request) {
                        return self.refuse(request, refusal);
                    }
                }
            }
        }
    }

    fn find(&self, session: SessionId, next: NextBytes) -> PieceState {
        let Some(id) = self.stream_of(session, next.track) else { return PieceState::Unavailable };
        let stream = &self.streams[&id];
        let piece = stream.piece_at(next.offset);
        // The stream's own hold first: after a failed read it may be of another copy, which a
        // search by this copy's key does not find while it is being read.
        if let Some(read) = stream.read_of(piece) {
            return match self.streams.buffers.get(read).expect("held").state {
                BufferState::Ready => PieceState::InMemory(read),
                BufferState::Reading => PieceState::Expected(Some(read)),
            };
        }
        match self.streams.buffers.find(stream.key(piece), stream.place(piece)) {
            Some((read, BufferState::Ready)) => PieceState::InMemory(read),
            Some((read, BufferState::Reading)) => PieceState::Expected(Some(read)),
            // All pieces from the cursor on are booked.
            None if piece >= stream.cursor => PieceState::Expected(None),
            None => PieceState::Unavailable,
        }
    }

    /// Whether the piece at `offset` of a track is neither in memory nor booked for the session.
    pub(super) fn is_unavailable(
        &self,
        session: SessionId,
        track: TrackNumber,
        offset: u64,
    ) -> bool {
        matches!(
            self.find(session, NextBytes { track, offset, end: offset }),
            PieceState::Unavailable
        )
    }

    fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        let session = self.requests[&request].session;
        self.count_refusal(self.sessions[&session].priority, &refusal);
        self.over(request);
        self.streams.actions.push(Action::Refused { request, refusal });
        self.end_if_over(request);
    }

    pub(super) fn stream_of(&self, session: SessionId, track: u16) -> Option<StreamId> {
        let streams = &self.sessions.get(&session)?.streams;
        streams.iter().copied().find(|id| self.streams[id].track == track)
    }

    // Delivers from a buffer. False: the session's send memory has no room for it.
    fn hand_over(
        &mut self,
        now: Moment,
        request: RequestId,
        next: NextBytes,
        read: ReadId,
    ) -> bool {
        let buffer = self.streams.buffers.get(read).expect("found just now");
        let len = u64::from(buffer.place.len);
        let session_id = self.requests[&request].session;
        let id = self.stream_of(session_id, next.track).expect("found through it");
        let piece = self.streams[&id].piece_at(next.offset);
        if !self.has_send_memory(request, next.track, len) {
            return false;
        }
        let session = &mut self.sessions[&session_id];
        let stream = &self.streams[&id];
        let curve = stream.curve();
        let (start, piece_end) = (curve.start(piece), curve.start(piece + 1));
        let end = next.end.min(piece_end);
        // The last piece of a track may be shorter than the others.
        let whole =
            end == piece_end || end == stream.layout.tracks[usize::from(stream.track)].bytes;
        let within = |offset: u64| u32::try_from(offset - start).expect("within a piece");
        let bytes = within(next.offset)..within(end);
        session.unsent += len;
        self.streams.accounts.count_delivered(session_id, end - next.offset);
        // The socket's own pin: the stream releases its hold as soon as the piece is delivered
        // whole.
        self.streams.buffers.pin(read);
        let state = &mut self.requests[&request];
        state.unsent.push_back(read);
        state.advance(end - next.offset);
        self.streams.actions.push(Action::Deliver { request, read, bytes });
        self.streams.note_delivered(now, id, (piece, end, whole), read);
        true
    }

    // Whether the sockets of a request's session may hold a buffer of so many bytes more. The whole
    // buffer counts, however little of it is sent: all of it stays pinned.
    //
    // A further piece of a track leaves room for one of each other track. A player whom the server
    // paces holds a piece of sound for as long as many pieces of pictures, and must get those
    // meanwhile. And it leaves room for one of the response that the player reads first: a player
    // that asks for the next segments before it has read these takes nothing of those till then,
    // of any track.
    fn has_send_memory(&self, request: RequestId, track: TrackNumber, len: u64) -> bool {
        let state = &self.requests[&request];
        let session = &self.sessions[&state.session];
        let kept = match self.read_first(session, track) {
            (number, 0) if number == Some(state.number) => 0,
            _ => self.kept_for_first_pieces(session, Some((state.number, track))),
        };
        session.unsent + kept + len <= session.reserve
    }

    /// The least memory that the sockets of a session get along with: what they hold, and room for
    /// one piece of each track.
    pub(super) fn least_send_memory(&self, session: &Session) -> u64 {
        session.unsent + self.kept_for_first_pieces(session, None)
    }

    // Memory beside what the sockets of a session hold, so that they can hold a piece of each track
    // of the response that is read first there; but not of this response and track.
    fn kept_for_first_pieces(&self, session: &Session, but: Option<(u64, TrackNumber)>) -> u64 {
        let lacks = |track: &TrackNumber| {
            let piece = u64::from(session.layout.tracks[usize::from(*track)].piece);
            let (number, held) = self.read_first(session, *track);
            let is_excluded = but.is_some_and(|but| Some(but) == number.map(|it| (it, *track)));
            if is_excluded { 0 } else { piece.saturating_sub(held) }
        };
        session.tracks.iter().map(lacks).sum()
    }

    // The number of the response of which the player reads a track first, if there is one, and the
    // bytes of the track's buffers that its socket holds.
    fn read_first(&self, session: &Session, track: TrackNumber) -> (Option<u64>, u64) {
        let (mut first, mut held) = (None, 0);
        // In the order of their numbers.
        for state in session.requests.iter().map(|request| &self.requests[request]) {
            if first.is_some_and(|number| number != state.number) {
                break;
            }
            let buffer = |read: &ReadId| self.streams.buffers.get(*read).expect("pinned");
            let of_track = state.unsent.iter().map(buffer).filter(|it| it.key.track == track);
            let of_request: u64 = of_track.map(|buffer| u64::from(buffer.place.len)).sum();
            if of_request > 0 || state.waits_for(track) {
                first = Some(state.number);
            }
            held += of_request;
        }
        (first, held)
    }

    fn complete(&mut self, request: RequestId) {
        self.over(request);
        self.streams.actions.push(Action::Complete { request });
        self.end_if_over(request);
    }

    pub(super) fn fail(&mut self, request: RequestId, outcome: ReadOutcome) {
        self.over(request);
        self.streams.actions.push(Action::Failed { request, outcome });
        self.end_if_over(request);
    }

    // Ends delivery of a request; a contiguous request may continue where it stopped.
    fn over(&mut self, request: RequestId) {
        self.streams.awaited.stop(request);
        let state = &mut self.requests[&request];
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        // Its others may use the room that was kept for this one.
        self.streams.to_serve.push(state.session);
        // The rest of a response is requested when this part of it was served.
        if state.next().is_some() {
            let (session, unserved) = (state.session, state.unserved());
            self.note_unserved(session, unserved);
        }
    }

    // The player may request again what it does not get of a response, and that is no seek.
    fn note_unserved(&mut self, session: SessionId, unserved: Vec<Unserved>) {
        for (track, bytes) in unserved {
            if let Some(id) = self.stream_of(session, track) {
                self.streams.note_cancelled(id, &bytes);
            }
        }
    }

    fn await_piece(&mut self, request: RequestId, next: NextBytes) {
        let layout = &self.sessions[&self.requests[&request].session].layout;
        let piece = layout.tracks[usize::from(next.track)].piece_at(next.offset);
        let key = key(layout, next.track, piece);
        self.streams.awaited.wait(request, key);
    }

    /// Whether the piece that a request waits for is neither in memory nor booked.
    pub(super) fn is_stuck(&self, request: RequestId) -> bool {
        let state = &self.requests[&request];
        state.next().is_some_and(|next| self.is_unavailable(state.session, next.track, next.offset))
    }
}

/// Requests of one session at once: a player has one or two per track.
const MAX_REQUESTS: usize = 16;

/// Parts of one request: a day of video and sound interleaved every second, several times over.
const MAX_PARTS: usize = 1 << 20;

/// A disk alone: memory of a detached transfer is reserved only where it was read.
fn no_replica(disk: usize) -> Placement {
    Placement { disk, replica: None }
}
