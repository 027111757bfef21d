//! Seeks: a player continues where nothing is booked for it. It has sought, switched to another
//! track, skipped something, or requested bytes that were released.
//!
//! ```text
//!   request ─▶ contiguous and booked in every track? ──yes──▶ served from the present booking
//!                  │ no
//!                  ▼
//!   evaluate the tracks that are not,   ── fits now ──▶ a new booking, from now on
//!   with their old booking off the      ── fits soon ─▶ a new booking, `wait` from now on
//!   books                               ── smaller ───▶ the deadlines of the larger rendition that
//!                                                       is left (`switch`), or in place of lower
//!                                                       priorities (`preemption`)
//!                                       ── else ──────▶ the old booking stays; refused
//! ```
//!
//! All or nothing: all tracks of a request are readmitted, or none.
//!
//! Another track replaces the one that a player leaves for it. But a player that still has an open
//! request for that one has not left it: it goes on with both, where both fit, until it falls
//! silent in one. Where they do not fit, the older request is declined as superseded.
//!
//! A viewer who winds is no special case: its player goes on with a track of key frames alone, with
//! places and due times of its own, instead of the pictures.

use super::bookings::evaluate::{Accepted, Candidate};
use super::departure::GiveWay;
use super::pieces::{curve, validate};
use super::sessions::{RequestState, Session};
use super::stream::{Stream, StreamId};
use super::streams::{least_reserve, reserve_for};
use super::{
    Action, Engine, Layout, Priority, Refusal, RequestId, ScheduleChange, SessionId, TrackNumber,
};
use scheduler::PlayoutClock;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A track, and the bytes of it that a request has not been served.
pub(super) type Unserved = (TrackNumber, Range<u64>);

impl Engine {
    /// Readmits the session for the tracks in which a new request is not contiguous, and for those
    /// whose next bytes were released: together, so that it is for all of them or for none. Nothing
    /// happens where it continues in all.
    pub(super) fn readmit_where_not_contiguous(
        &mut self,
        now: Moment,
        request: RequestId,
    ) -> Result<(), Refusal> {
        let state = &self.requests[&request];
        let continues = |(track, bytes): &Unserved| {
            let stream = self.stream_of(state.session, *track);
            stream.is_some_and(|id| {
                state.goes_on(*track) || self.streams[&id].is_contiguous(bytes.start)
            }) && !self.is_unavailable(state.session, *track, bytes.start)
        };
        let (continued, seeks): (Vec<Unserved>, _) =
            state.unserved().into_iter().partition(continues);
        let (session, goes_on) = (state.session, |track| state.goes_on(track));
        // A response is noted to its end by its first request.
        let continued: Vec<Unserved> =
            continued.into_iter().filter(|(track, _)| !goes_on(*track)).collect();
        if !seeks.is_empty() {
            self.readmit(now, request, &seeks)?;
        }
        // Only once the other tracks are readmitted: a refused request must change no track.
        for (track, bytes) in continued {
            let id = self.stream_of(session, track).expect("only seeks replace streams");
            self.streams.note_request(id, &bytes);
        }
        Ok(())
    }

    /// Whether a younger request of the session has moved a track that this one still needs. Were
    /// each readmitted in turn, they would take the track from each other for ever.
    pub(super) fn is_superseded(&self, request: RequestId) -> bool {
        let state = &self.requests[&request];
        let seeks = &self.sessions[&state.session].seeks;
        let lost = self.unavailable_tracks(request);
        lost.iter().any(|(track, _)| seeks.get(track).is_some_and(|by| *by > state.number))
    }

    /// Readmits the session for a request's tracks whose next bytes were released.
    pub(super) fn readmit_released(
        &mut self,
        now: Moment,
        request: RequestId,
    ) -> Result<(), Refusal> {
        let lost = self.unavailable_tracks(request);
        self.readmit(now, request, &lost)
    }

    fn unavailable_tracks(&self, request: RequestId) -> Vec<Unserved> {
        let state = &self.requests[&request];
        let mut lost = state.unserved();
        lost.retain(|(track, bytes)| self.is_unavailable(state.session, *track, bytes.start));
        lost
    }

    // Books all of `tracks` anew from their first bytes on, or leaves everything as it was.
    //
    // The engine knows what is requested, not what is shown: a viewer who seeks to the end of a
    // segment needs the following one at once. So deadlines are as if the segment were over
    // already, and its buffers are kept as if it were shown whole.
    fn readmit(
        &mut self,
        now: Moment,
        request: RequestId,
        tracks: &[Unserved],
    ) -> Result<(), Refusal> {
        let id = self.requests[&request].session;
        let session = &self.sessions[&id];
        for (track, _) in tracks {
            // Admission validated the tracks of its offer; a player may switch to any other.
            if let Some(reason) = self.cannot_serve(&session.layout, *track) {
                return Err(Self::refusal_of_unusable(reason));
            }
        }
        let before = session.tracks.clone();
        let all = tracks.iter().fold(before.clone(), |all, (track, _)| {
            tracks_after(&self.sessions[&id], &all, *track)
        });
        // A player that still waits for tracks that it would leave goes on with them too, if there
        // is room.
        let mut with_open = all.clone();
        with_open.extend(self.tracks_of_older_requests(request).filter(|t| !all.contains(t)));
        let with_open = (with_open.len() > all.len()).then_some(with_open);
        let beside = with_open.and_then(|with_open| {
            let candidate = self.seeker(now, id, tracks, &with_open);
            let accept =
                |engine: &mut Self, candidate, _: &[_]| engine.accept_now(candidate).ok_or(());
            let wait = self.replace_booking(now, id, &with_open, candidate, accept).ok()?;
            Some((wait, with_open))
        });
        let (wait, all) = match beside {
            Some(beside) => beside,
            None => {
                let candidate = self.seeker(now, id, tracks, &all);
                let reserve = self.sessions[&id].reserve;
                let wait =
                    self.replace_booking(now, id, &all, candidate, |engine, candidate, old| {
                        engine.accept_now_or_soon(now, id, candidate, old, reserve)
                    })?;
                (wait, all)
            }
        };
        let number = self.requests[&request].number;
        let session = &mut self.sessions[&id];
        let tracks: Vec<TrackNumber> = tracks.iter().map(|(track, _)| *track).collect();
        let left = before.iter().filter(|track| !all.contains(track));
        // By this number, older requests for the same tracks, and for those that they replace, find
        // that they are superseded.
        session.seeks.extend(tracks.iter().chain(left).map(|track| (*track, number)));
        self.note_open_requests(id, number, &tracks);
        let change = ScheduleChange::Readmitted { request, tracks, wait };
        self.streams.actions.push(Action::Rescheduled { session: id, change });
        Ok(())
    }

    // The tracks that are booked and that older requests of the same session have still to be
    // served from.
    fn tracks_of_older_requests(&self, request: RequestId) -> impl Iterator<Item = TrackNumber> {
        let state = &self.requests[&request];
        let session = &self.sessions[&state.session];
        let others = session.requests.iter().map(|other| &self.requests[other]);
        let older = others.filter(|other| other.number < state.number && !other.over);
        let waits: BTreeSet<TrackNumber> =
            older.flat_map(RequestState::unserved).map(|(track, _)| track).collect();
        let booked = session.streams.iter().map(|stream| self.streams[stream].track);
        booked.filter(move |track| waits.contains(track))
    }

    // A session that goes on with `all` tracks, of which these continue elsewhere.
    fn seeker(
        &mut self,
        now: Moment,
        id: SessionId,
        tracks: &[Unserved],
        all: &[TrackNumber],
    ) -> Candidate {
        let session = &self.sessions[&id];
        let (layout, replica) = (session.layout.clone(), session.replica);
        let copies = Arc::clone(&session.copies);
        // What its sockets hold stays reserved, whatever tracks it goes on with.
        let (wide, before) = (reserve_for(&layout, all), reserve_for(&layout, &session.tracks));
        // Where memory was short, its sockets are given one piece at a time (`admission`).
        let reserve = if session.reserve < before { least_reserve(wide) } else { wide };
        let reserve = reserve.max(session.unsent);
        let timing = self.streams.bookings.playout_clock(now, 0, replica);
        let stream = |(track, bytes): &Unserved| {
            let mut stream = stream_from(id, &layout, *track, bytes.start, timing);
            stream.replica = replica;
            stream
        };
        let mut streams: Vec<Stream> = tracks.iter().map(stream).collect();
        let demand = self.streams.bookings.demand_of(&mut streams, reserve);
        let (sent, is_new, gives_up) = (None, false, None);
        Candidate { layout, replica, copies, streams, demand, sent, is_new, gives_up }
    }

    // New streams continue where this request and the younger open requests end.
    fn note_open_requests(&mut self, session: SessionId, number: u64, tracks: &[TrackNumber]) {
        let session = &self.sessions[&session];
        let requests = session.requests.iter().map(|request| &self.requests[request]);
        let open = requests.filter(|request| request.number >= number && !request.over);
        let asked: Vec<Unserved> = open.flat_map(RequestState::unserved).collect();
        for id in &session.streams {
            let number = self.streams[id].track;
            if tracks.contains(&number) {
                let of_track = asked.iter().filter(|(track, _)| *track == number);
                of_track.for_each(|(_, bytes)| self.streams.note_request(*id, bytes));
            }
        }
    }

    fn cannot_serve(&self, layout: &Layout, track: TrackNumber) -> Option<String> {
        let read_size =
            self.streams.bookings.disks[usize::from(layout.disk.0)].guarantee.read_size.0;
        let error = validate(&layout.tracks[usize::from(track)], read_size).err()?;
        Some(format!("track {track} cannot be served: {error}"))
    }

    // The new booking in place of the old one of the same tracks, or everything as it was. Says how
    // much later than now the new one begins.
    fn replace_booking<E>(
        &mut self,
        now: Moment,
        id: SessionId,
        tracks: &[TrackNumber],
        candidate: Candidate,
        accept: impl FnOnce(&mut Self, Candidate, &[(StreamId, Stream)]) -> Result<(Accepted, u32), E>,
    ) -> Result<Duration, E> {
        let session = &self.sessions[&id];
        let placement = session.placement();
        let new: Vec<TrackNumber> = candidate.streams.iter().map(|stream| stream.track).collect();
        let gone = |stream: &StreamId| {
            let track = self.streams[stream].track;
            // Also a track that the session leaves for another rendition gives back its booking.
            new.contains(&track) || !tracks.contains(&track)
        };
        let old: Vec<StreamId> = session.streams.iter().copied().filter(gone).collect();
        let (old_reserve, reserve) = (session.reserve, candidate.demand.reserve);
        // Decided with the old booking off the books: what it holds is free for the new one.
        let suspended: Vec<(StreamId, Stream)> =
            old.iter().map(|id| (*id, self.streams.remove(*id))).collect();
        self.streams.bookings.release_send_memory(placement, old_reserve);
        let (accepted, slots) = match accept(self, candidate, &suspended) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.streams.bookings.reserve_send_memory(placement, old_reserve);
                suspended.into_iter().for_each(|(id, stream)| self.streams.insert(id, stream));
                return Err(error);
            }
        };
        self.streams.bookings.reserve_send_memory(placement, reserve);
        for (stream_id, stream) in suspended {
            if !new.contains(&stream.track) {
                let change = ScheduleChange::Released { track: stream.track };
                self.streams.actions.push(Action::Rescheduled { session: id, change });
            }
            self.streams.settle(now, stream_id, &stream);
        }
        let session = &mut self.sessions[&id];
        (session.reserve, session.tracks) = (reserve, tracks.to_vec());
        session.streams.retain(|stream| !old.contains(stream));
        session.streams.extend(self.streams.book(accepted));
        // Its other requests may have waited for what is no longer on the books.
        self.streams.to_serve.push(id);
        Ok(self.config.slot * slots)
    }

    // Accepts a candidate if it fits now, as it is.
    fn accept_now(&mut self, candidate: Candidate) -> Option<(Accepted, u32)> {
        let accepted = match self.streams.follow_if_better(&candidate) {
            Some(accepted) => Some(accepted),
            None => match self.streams.evaluate(&candidate) {
                Ok(approval) => return Some((candidate.accepted(approval), 0)),
                Err(_) => None,
            },
        };
        self.streams.bookings.put_demand(candidate.demand);
        accepted.map(|accepted| (accepted, 0))
    }

    // Accepts a candidate of a session now; at most a start-up time later if it fits only then; or
    // in place of a larger rendition, which is among the streams that it replaces, with their
    // reserve. Says how many slots later.
    fn accept_now_or_soon(
        &mut self,
        now: Moment,
        id: SessionId,
        mut candidate: Candidate,
        replaced: &[(StreamId, Stream)],
        reserve: u64,
    ) -> Result<(Accepted, u32), Refusal> {
        if let Some(accepted) = self.streams.follow_if_better(&candidate) {
            self.streams.bookings.put_demand(candidate.demand);
            return Ok((accepted, 0));
        }
        let fits = self
            .streams
            .evaluate(&candidate)
            .or_else(|short| self.streams.evaluate_with_less(now, &mut candidate, short));
        let shortfall = match fits {
            Ok(approval) => return Ok((candidate.accepted(approval), 0)),
            Err(shortfall) => shortfall,
        };
        let short = [(candidate.placement(), shortfall.shortage.resource)];
        let give_way = GiveWay::for_shortfalls(short).except(id);
        let in_place = self.fit_in_place_of_others(now, &give_way, |engine| {
            engine.streams.evaluate(&candidate).ok()
        });
        if let Some(approval) = in_place {
            return Ok((candidate.accepted(approval), 0));
        }
        // A player that seeks waits as it does at its start, and does not know of a longer delay.
        let startup_slots = self.config.startup.as_nanos() / self.config.slot.as_nanos();
        let limit = u32::try_from(startup_slots).unwrap_or(u32::MAX).min(MOST_STARTS_TRIED);
        if let Some((slots, approval)) = self.streams.delay_until_it_fits(&mut candidate, 1, limit)
        {
            return Ok((candidate.accepted(approval), slots));
        }
        if let Some(smaller) = self.take_over_deadlines(now, &candidate, replaced, reserve) {
            self.streams.bookings.put_demand(candidate.demand);
            return Ok(smaller);
        }
        let session = &self.sessions[&id];
        let priority = if session.fill.is_some() { Priority::Low } else { session.priority };
        let in_place = self.fit_in_place_of_lower(now, priority, &give_way, |engine| {
            engine.streams.evaluate(&candidate).ok()
        });
        match in_place {
            Some((approval, _)) => Ok((candidate.accepted(approval), 0)),
            None => Err(self.refusal(now, candidate, shortfall, self.config.startup, &[])),
        }
    }
}

// A track's stream from byte `offset` on.
fn stream_from(
    session: SessionId,
    layout: &Arc<Layout>,
    track: TrackNumber,
    offset: u64,
    timing: PlayoutClock,
) -> Stream {
    let layout_track = &layout.tracks[usize::from(track)];
    let curve = curve(layout_track);
    // An offset out of range becomes the end of the track, where nothing is left to read.
    let piece = curve.piece_at(offset);
    // Only pieces' first bytes have times. In the middle of one, the time is not before its own
    // (buffers are kept as if it were that), and not after that of the next (deadlines are as if it
    // were that).
    let inside = offset != curve.start(piece);
    let here = curve.due(if inside { piece.saturating_add(1) } else { piece });
    // Pieces of one segment are due together: the first later due time is the next segment's. The
    // last one of a title that is being recorded is followed by more, where the title ends now.
    let next_segment = curve.due.partition_point(|due| *due <= here);
    let end = u32::try_from(layout.duration.as_millis()).unwrap_or(u32::MAX).max(here);
    let after = curve.due.get(next_segment).copied().unwrap_or(end);
    let timing = PlayoutClock { from_ms: after, kept_from_ms: curve.due(piece), ..timing };
    Stream::new(session, layout.clone(), track, timing, piece)
}

// The tracks of a session of `current` tracks that goes on with `track`: it replaces those it was
// never offered together with (another rendition of the picture), and joins the others. Key frames
// stand for the track that they are of.
fn tracks_after(
    session: &Session,
    current: &[TrackNumber],
    track: TrackNumber,
) -> Vec<TrackNumber> {
    if current.contains(&track) {
        return current.to_vec();
    }
    let whole = |track: TrackNumber| {
        session.layout.tracks[usize::from(track)].key_frames_of.unwrap_or(track)
    };
    let is_offered = |offer: &[TrackNumber], track: TrackNumber| offer.contains(&whole(track));
    let together =
        |offer: &&Vec<TrackNumber>| current.iter().filter(|t| is_offered(offer, **t)).count();
    let offers = session.offers.iter().filter(|offer| is_offered(offer, track));
    let offer = offers.max_by_key(together);
    let stays = |other: &TrackNumber| {
        whole(*other) != whole(track) && offer.is_none_or(|offer| is_offered(offer, *other))
    };
    current.iter().copied().filter(stays).chain([track]).collect()
}

/// Later starts tried for a seek: each is an evaluation.
const MOST_STARTS_TRIED: u32 = 8;
