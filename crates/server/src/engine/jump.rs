//! Jumps: a player goes on where nothing is booked for it. It has sought, switched to another
//! track, left something out, or come back for what it no longer has.
//!
//! ```text
//!   request ─▶ every track of it goes on? ──yes──▶ served from the booking it has
//!                  │ no
//!                  ▼
//!   those that do not, at the door      ── fit ────────────────▶ a new booking, from now on
//!   (decided on the books without       ── fit a little later ─▶ the same, `wait` from now on
//!   their old booking)                  ── do not ─────────────▶ the old one kept; told when
//! ```
//!
//! All or nothing: no track of a request moves without the others.

use super::door::{Booking, reserve_for};
use super::pieces::{curve, unsound};
use super::sessions::Session;
use super::streams::{Stream, StreamId};
use super::{Action, Change, Engine, Layout, Refusal, RequestId, SessionId, TrackNumber};
use scheduler::{Shortage, Timing};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A track, and the bytes of it that a request has not been served.
pub(super) type Unserved = (TrackNumber, Range<u64>);

impl Engine {
    /// Lets a new request in anew for those of its tracks with which it does not go on.
    pub(super) fn jump(&mut self, now: Moment, request: RequestId) -> Result<(), Refusal> {
        let state = &self.requests[&request];
        let goes_on = |(track, bytes): &Unserved| {
            let stream = self.stream_of(state.session, *track);
            stream.is_some_and(|id| self.streams[&id].goes_on(bytes.start))
        };
        let (goes_on, jumps): (Vec<Unserved>, _) = state.unserved().into_iter().partition(goes_on);
        let session = state.session;
        if !jumps.is_empty() {
            self.rebook(now, request, &jumps)?;
        }
        for (track, bytes) in goes_on {
            let id = self.stream_of(session, track).expect("only jumps replace streams");
            self.streams.get_mut(&id).expect("live").asks(&bytes);
        }
        Ok(())
    }

    /// Whether what a request is to be served next was let go because a younger one of its session
    /// has jumped. Were both let in in turn, they would take it from each other for ever.
    pub(super) fn has_gone_on(&self, request: RequestId) -> bool {
        let state = &self.requests[&request];
        let jumps = &self.sessions[&state.session].jumps;
        let lost = self.lost_of(request);
        lost.iter().any(|(track, _)| jumps.get(track).is_some_and(|by| *by > state.number))
    }

    /// Lets a request in anew for those of its tracks whose next bytes are no longer to be had.
    pub(super) fn return_for(&mut self, now: Moment, request: RequestId) -> Result<(), Refusal> {
        let lost = self.lost_of(request);
        self.rebook(now, request, &lost)
    }

    fn lost_of(&self, request: RequestId) -> Vec<Unserved> {
        let state = &self.requests[&request];
        let mut lost = state.unserved();
        lost.retain(|(track, bytes)| self.is_lost(state.session, *track, bytes.start));
        lost
    }

    // All of `tracks` from their first bytes on, or everything as it was.
    //
    // The engine knows what is asked for, not what is shown: a viewer who seeks to the end of a
    // segment needs the following one at once. So it is asked as if the segment were over already;
    // its buffers are kept as if it were shown whole.
    fn rebook(
        &mut self,
        now: Moment,
        request: RequestId,
        tracks: &[Unserved],
    ) -> Result<(), Refusal> {
        let id = self.requests[&request].session;
        let session = &self.sessions[&id];
        let (layout, spare) = (session.layout.clone(), session.spare);
        let copies = Arc::clone(&session.copies);
        for (track, _) in tracks {
            if let Some(reason) = self.cannot_serve(&layout, *track) {
                return Err(self.never(reason));
            }
        }
        let streams = tracks.iter().map(|(track, bytes)| {
            let timing = self.timing(now, 0, spare);
            let mut stream = stream_from(id, &layout, *track, bytes.start, timing);
            stream.spare = spare;
            stream
        });
        let streams = streams.collect();
        let all = tracks.iter().fold(self.sessions[&id].tracks.clone(), |all, (track, _)| {
            tracks_after(&self.sessions[&id], &all, *track)
        });
        let reserve = reserve_for(&layout, &all);
        let booking = Booking { layout, spare, copies, streams, reserve };
        let wait = self.exchange(now, id, all, booking)?;
        let number = self.requests[&request].number;
        let session = self.sessions.get_mut(&id).expect("live");
        session.jumps.extend(tracks.iter().map(|(track, _)| (*track, number)));
        let tracks: Vec<TrackNumber> = tracks.iter().map(|(track, _)| *track).collect();
        self.expect_open_requests(id, number, &tracks);
        let change = Change::Anew { request, tracks, wait };
        self.actions.push(Action::Rescheduled { session: id, change });
        Ok(())
    }

    // New streams go on where this request and those asked for since end.
    fn expect_open_requests(&mut self, session: SessionId, number: u64, tracks: &[TrackNumber]) {
        let session = &self.sessions[&session];
        let requests = session.requests.iter().map(|request| &self.requests[request]);
        let open = requests.filter(|request| request.number >= number && !request.over);
        let asked: Vec<Unserved> = open.flat_map(super::sessions::Request::unserved).collect();
        for id in &session.streams {
            let stream = self.streams.get_mut(id).expect("live");
            let number = stream.track;
            if tracks.contains(&number) {
                let of_track = asked.iter().filter(|(track, _)| *track == number);
                of_track.for_each(|(_, bytes)| stream.asks(bytes));
            }
        }
    }

    fn cannot_serve(&self, layout: &Layout, track: TrackNumber) -> Option<String> {
        let read_size = self.disks[usize::from(layout.disk.0)].guarantee.read_size.0;
        let reason = unsound(&layout.tracks[usize::from(track)], read_size)?;
        Some(format!("track {track} cannot be served: {reason}"))
    }

    // Old booking out, the new one in, or everything as it was. Says how much later than now the
    // new one begins.
    fn exchange(
        &mut self,
        now: Moment,
        id: SessionId,
        tracks: Vec<TrackNumber>,
        mut booking: Booking,
    ) -> Result<Duration, Refusal> {
        let disk = usize::from(booking.layout.disk.0);
        let session = &self.sessions[&id];
        let seat = session.seat();
        let gone = |stream: &StreamId| {
            let track = self.streams[stream].track;
            let replaced = booking.streams.iter().any(|new| new.track == track);
            replaced || !tracks.contains(&track)
        };
        let old: Vec<StreamId> = session.streams.iter().copied().filter(gone).collect();
        let (old_reserve, unsent) = (session.reserve, session.unsent);
        let aside: Vec<(StreamId, Stream)> =
            old.iter().map(|id| (*id, self.remove_stream(*id))).collect();
        self.give_aside(seat, old_reserve);
        // What its sockets hold stays kept aside, whatever tracks it goes on with.
        booking.reserve = booking.reserve.max(unsent);
        let slots = match self.decide_now_or_soon(now, disk, &mut booking) {
            Ok(slots) => slots,
            Err(shortage) => {
                let refusal = self.refusal(now, &mut booking, shortage);
                self.keep_aside(seat, old_reserve);
                aside.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
                return Err(refusal);
            }
        };
        self.keep_aside(seat, booking.reserve);
        for (_, stream) in aside {
            if booking.streams.iter().all(|new| new.track != stream.track) {
                let change = Change::GivenBack { track: stream.track };
                self.actions.push(Action::Rescheduled { session: id, change });
            }
            self.settle(now, stream);
        }
        let session = self.sessions.get_mut(&id).expect("live");
        (session.reserve, session.tracks) = (booking.reserve, tracks);
        session.streams.retain(|stream| !old.contains(stream));
        self.add_decided(booking.streams);
        // Its other requests may have waited for what is no longer on the books.
        self.to_serve.push(id);
        Ok(self.config.slot * slots)
    }

    // Decides; where there is no room now, but soon is, the streams and the demand begin then.
    fn decide_now_or_soon(
        &mut self,
        now: Moment,
        disk: usize,
        booking: &mut Booking,
    ) -> Result<u32, Shortage> {
        let Err(shortage) = self.decide(now, booking) else { return Ok(0) };
        let limit = self.config.startup.as_nanos() / self.config.slot.as_nanos();
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).min(MOST_STARTS_TRIED);
        let slots = self.fits_later(disk, limit).ok_or(shortage)?;
        self.demand.shift(u64::from(slots));
        booking.streams.iter_mut().for_each(|stream| stream.slide(slots));
        Ok(slots)
    }

    /// Counts what a stream that is off the books still owed, and lets go of its buffers.
    pub(super) fn settle(&mut self, now: Moment, stream: Stream) {
        for (_, deadline) in stream.overdue(now) {
            self.count_owed(now, &stream, deadline);
        }
        for (read, _) in stream.held() {
            self.buffers.unpin(read);
        }
    }
}

// A track's stream from byte `offset` on.
fn stream_from(
    session: SessionId,
    layout: &Arc<Layout>,
    track: TrackNumber,
    offset: u64,
    timing: Timing,
) -> Stream {
    let layout_track = &layout.tracks[usize::from(track)];
    let curve = curve(layout_track);
    let size = u64::from(layout_track.piece);
    let piece = u32::try_from(offset / size).unwrap_or(u32::MAX);
    // Only pieces' first bytes have times. In the middle of one, the time is not before its own
    // (buffers are kept as if it were that), and not after that of the next (deadlines are as if it
    // were that).
    let inside = !offset.is_multiple_of(size);
    let here = curve.due(if inside { piece.saturating_add(1) } else { piece });
    let after = curve.due.partition_point(|due| *due <= here);
    let after = curve.due.get(after).copied().unwrap_or(here);
    let timing = Timing { from_ms: after, kept_from_ms: curve.due(piece), ..timing };
    Stream::new(session, layout.clone(), track, timing, piece)
}

// The tracks of a session of `current` tracks that goes on with `track`: it replaces those it was
// never offered together with (another rendition of the picture), and joins the others.
fn tracks_after(
    session: &Session,
    current: &[TrackNumber],
    track: TrackNumber,
) -> Vec<TrackNumber> {
    if current.contains(&track) {
        return current.to_vec();
    }
    let together = |offer: &&Vec<TrackNumber>| current.iter().filter(|t| offer.contains(t)).count();
    let offers = session.offers.iter().filter(|offer| offer.contains(&track));
    match offers.max_by_key(together) {
        Some(offer) => {
            let stay = current.iter().copied().filter(|track| offer.contains(track));
            stay.chain([track]).collect()
        }
        None => current.iter().copied().chain([track]).collect(),
    }
}

/// Later starts tried for a jump: each is a decision.
const MOST_STARTS_TRIED: u32 = 8;
