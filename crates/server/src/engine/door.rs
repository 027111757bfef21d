//! The door. New viewers are let in here, if what they want fits (`decide`) somewhere (`copies`); those
//! who jump (`jump`) pass through the same test.
//!
//! ```text
//!   offers, best first ── one fits ──────────────▶ let in, now
//!        │ none            a patient viewer: one fits later ──▶ let in, its place booked for then
//!        └─────────────────────────────────────────────────────▶ refused: what is short, and when
//!   who comes instead of a session (other part, other speed): that one's booking is off the books
//!   while this is decided, and ends if it is let in; otherwise it is put back as it was
//! ```

use super::copies::Seating;
use super::later::SEARCH_SLOTS;
use super::pieces::{curve, unsound};
use super::sessions::Session;
use super::streams::{Stream, StreamId};
use super::{
    AdmitRequest, Answer, Engine, Layout, Refusal, Resource, SessionId, SessionSummary,
    TrackLayout, TrackNumber,
};
use scheduler::{Shortage, sending_reserve};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Moment;

// What one offer comes to: the streams it would have.
pub(super) struct Booking {
    pub(super) layout: Arc<Layout>,
    pub(super) spare: Option<usize>,
    pub(super) copies: Arc<[Arc<Layout>]>,
    pub(super) streams: Vec<Stream>,
    pub(super) reserve: u64,
}

impl Booking {
    pub(super) fn disk(&self) -> usize {
        usize::from(self.layout.disk.0)
    }
}

impl Engine {
    /// A viewer is at the door; the answer holds from now on.
    pub fn admit(&mut self, now: Moment, request: AdmitRequest) -> Answer {
        self.advance(now);
        let answer = self.answer(now, request);
        if let Answer::Refused(refusal) = &answer {
            self.count_refusal(refusal.resource);
        }
        self.use_leftovers(now);
        answer
    }

    fn answer(&mut self, now: Moment, request: AdmitRequest) -> Answer {
        if let Some(refusal) = self.closed_to(&request) {
            return Answer::Refused(refusal);
        }
        let old = request.instead_of.filter(|id| self.sessions.contains_key(id));
        let aside = old.map(|id| self.set_aside(id));
        match self.choose_offer(now, &request) {
            Ok(Chosen { offer, booking, slots }) => {
                let session = SessionId(self.next_session);
                self.counters.smaller += u64::from(offer > 0);
                self.let_in(now, session, request.offers, booking, slots);
                if let Some(aside) = aside {
                    self.end_aside(now, aside);
                }
                Answer::Admitted { session, offer, wait: self.config.slot * slots }
            }
            Err(refusal) => {
                if let Some(aside) = aside {
                    self.put_back(aside);
                }
                Answer::Refused(refusal)
            }
        }
    }

    // The first offer that fits; if none does, the first that fits within the viewer's patience. What
    // was decided on is at hand.
    fn choose_offer(&mut self, now: Moment, request: &AdmitRequest) -> Result<Chosen, Refusal> {
        let session = SessionId(self.next_session);
        let misfits = match self.seat(now, request, session) {
            Ok(chosen) => return Ok(chosen),
            Err(misfits) => misfits?,
        };
        let patience = request.patience.as_nanos() / self.config.slot.as_nanos();
        let patience = u32::try_from(patience).unwrap_or(u32::MAX).min(MOST_PATIENCE_SLOTS);
        let mut last = None;
        for Misfit { offer, mut booking, shortage, without } in misfits {
            if let Some(slots) = self.decide_later(&mut booking, patience) {
                return Ok(Chosen { offer, booking, slots });
            }
            last = Some((booking, shortage, without));
        }
        let (mut booking, shortage, without) = last.expect("nobody is refused for nothing");
        self.without = without;
        Err(self.refusal(now, &mut booking, shortage))
    }

    // The booking as if the viewer came later; says by how much. It is at hand.
    fn decide_later(&mut self, booking: &mut Booking, limit: u32) -> Option<u32> {
        let disk = usize::from(booking.layout.disk.0);
        if limit == 0 {
            return None;
        }
        self.demand_of(booking);
        let slots = self.fits_later(disk, limit)?;
        self.demand.shift(u64::from(slots));
        booking.streams.iter_mut().for_each(|stream| stream.slide(slots));
        Some(slots)
    }

    // Takes a session's booking off the books. What its sockets hold stays kept aside.
    fn set_aside(&mut self, id: SessionId) -> Aside {
        let session = self.sessions.get_mut(&id).expect("looked up");
        let seat = session.seat();
        let ids = std::mem::take(&mut session.streams);
        let spare = session.reserve.saturating_sub(session.unsent);
        session.reserve -= spare;
        self.give_aside(seat, spare);
        let streams = ids.into_iter().map(|id| (id, self.remove_stream(id))).collect();
        Aside { session: id, streams, spare }
    }

    fn put_back(&mut self, aside: Aside) {
        let session = self.sessions.get_mut(&aside.session).expect("nothing has ended it");
        let seat = session.seat();
        session.reserve += aside.spare;
        session.streams = aside.streams.iter().map(|(id, _)| *id).collect();
        self.keep_aside(seat, aside.spare);
        aside.streams.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
    }

    fn end_aside(&mut self, now: Moment, aside: Aside) {
        aside.streams.into_iter().for_each(|(_, stream)| self.settle(now, stream));
        self.end_session(now, aside.session, false);
    }

    // Reasons that have nothing to do with how much is booked.
    fn closed_to(&self, request: &AdmitRequest) -> Option<Refusal> {
        if !self.admitting {
            return Some(self.never("the server is stopping".to_owned()));
        }
        if self.titles.is_withdrawn(request.layout.title) {
            return Some(self.never("the title is being removed".to_owned()));
        }
        if self.disk_index(request.layout.disk).is_none() {
            return Some(self.never(format!("there is no disk {}", request.layout.disk.0)));
        }
        if !std::iter::once(&request.layout).chain(&request.copies).any(|l| self.is_live(l)) {
            let what = "no disk that it lies on is there any more: see to them, and start again";
            return Some(self.never(what.to_owned()));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let detail = format!("{MAX_SESSIONS} viewers are here");
            return Some(Refusal { resource: Resource::Memory, ..self.never(detail) });
        }
        None
    }

    pub(super) fn never(&self, detail: String) -> Refusal {
        let retry_after = self.config.slot * SEARCH_SLOTS;
        Refusal { resource: Resource::Disk, retry_after, exact: false, detail }
    }

    pub(super) fn count_refusal(&mut self, resource: Resource) {
        match resource {
            Resource::Disk => self.counters.refused_disk += 1,
            Resource::Memory => self.counters.refused_memory += 1,
            Resource::Network => self.counters.refused_network += 1,
        }
    }

    pub(super) fn booking(
        &self,
        now: Moment,
        session: SessionId,
        seating: &Seating,
        tracks: &[TrackNumber],
        from_ms: u32,
    ) -> Result<Booking, String> {
        let Seating { layout, spare, copies } = seating;
        let timing = self.timing(now, from_ms, *spare);
        let disk = usize::from(layout.disk.0);
        let read_size = self.disks[disk].guarantee.read_size.0;
        // All of them: a session may go on with another.
        for (number, track) in layout.tracks.iter().enumerate() {
            // A disk that is lost now may be another's spare later.
            match self.standby.is_wanted() {
                false => self.time_track(disk, track),
                true => self.time_copies(copies, number),
            }
        }
        let mut streams: Vec<Stream> = Vec::with_capacity(tracks.len());
        for number in tracks {
            let Some(track) = layout.tracks.get(usize::from(*number)) else {
                return Err(format!("there is no track {number}"));
            };
            if let Some(reason) = unsound(track, read_size) {
                return Err(format!("track {number} cannot be served: {reason}"));
            }
            if streams.iter().all(|stream| stream.track != *number) {
                let first = curve(track).first_needed(from_ms);
                let mut stream = Stream::new(session, layout.clone(), *number, timing, first);
                stream.spare = *spare;
                streams.push(stream);
            }
        }
        if streams.is_empty() {
            return Err("an offer without tracks".to_owned());
        }
        let (layout, copies) = (layout.clone(), Arc::clone(copies));
        let reserve = reserve_for(&layout, tracks);
        Ok(Booking { layout, spare: *spare, copies, streams, reserve })
    }

    /// Makes sure that the times of a sound track's pieces are known, if its disk's are. Once for
    /// all: what is booked by them must be taken off by the same.
    pub(super) fn time_track(&self, disk: usize, track: &TrackLayout) {
        if track.times.get().is_none()
            && let Some(times) = self.piece_times(disk, track)
        {
            track.times.get_or_init(|| times);
        }
    }

    fn let_in(
        &mut self,
        now: Moment,
        id: SessionId,
        offers: Vec<Vec<TrackNumber>>,
        booking: Booking,
        slots: u32,
    ) {
        let seat = (booking.disk(), booking.spare);
        let Booking { layout, spare, copies, streams, reserve } = booking;
        self.next_session += 1;
        self.counters.admitted += 1;
        self.titles.session_began(layout.title);
        self.keep_aside(seat, reserve);
        let summary =
            SessionSummary { title: layout.title, admitted: now, ..SessionSummary::default() };
        let session = Session {
            tracks: streams.iter().map(|stream| stream.track).collect(),
            layout,
            copies,
            spare,
            offers,
            streams: Vec::new(),
            requests: Vec::new(),
            reserve,
            unsent: 0,
            last_sign: now + self.config.slot * slots,
            asked: false,
            jumps: BTreeMap::new(),
            summary,
        };
        self.sessions.insert(id, session);
        self.add_decided(streams);
    }

    /// Books the demand that was just decided on, and queues the reads of its streams.
    pub(super) fn add_decided(&mut self, streams: Vec<Stream>) {
        let Some(first) = streams.first() else { return };
        let disk = usize::from(first.layout.disk.0);
        self.adopt_plan(disk);
        self.disks[disk].books.book_demand(&self.demand);
        self.network.book_demand(&self.demand);
        for mut stream in streams {
            let slack = self.disks[disk].sweeps.slack();
            stream.promised = slack.filter(|_| self.config.policy.guarantees());
            let id = StreamId(self.next_stream);
            self.next_stream += 1;
            self.disks[disk].books.book_summary(stream.summary);
            self.standby.book(&stream);
            if let Some(next) = stream.next_read() {
                self.disks[disk].queue.insert(next.due, id);
            }
            self.sessions.get_mut(&stream.session).expect("live").streams.push(id);
            self.streams.insert(id, stream);
        }
    }

    /// Puts a stream on the books, under its own id.
    pub(super) fn insert_stream(&mut self, id: StreamId, mut stream: Stream) {
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        // It may have been off the books when that was decided on.
        let slack = stream.promised.zip(disk.sweeps.slack()).map(|(a, b)| a.min(b));
        stream.promised = slack.or(stream.promised);
        disk.book(&stream);
        self.standby.book(&stream);
        stream.unread().for_each(|piece| self.network.book(piece));
        stream.held().for_each(|(_, piece)| self.network.book(piece));
        if let Some(next) = stream.next_read() {
            disk.queue.insert(next.due, id);
        }
        self.streams.insert(id, stream);
    }

    /// Takes a stream off the books. Its buffers stay pinned.
    pub(super) fn remove_stream(&mut self, id: StreamId) -> Stream {
        let stream = self.streams.remove(&id).expect("live");
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.unbook(&stream);
        self.standby.unbook(&stream);
        stream.unread().for_each(|piece| self.network.unbook(piece));
        stream.held().for_each(|(_, piece)| self.network.unbook(piece));
        if let Some(next) = stream.next_read() {
            disk.queue.remove(next.due, id);
        }
        stream
    }
}

// What is let in: an offer, its booking, and so many slots later than now.
pub(super) struct Chosen {
    pub(super) offer: usize,
    pub(super) booking: Booking,
    pub(super) slots: u32,
}

// An offer that does not fit in one place: what is short, and without which disk where.
pub(super) struct Misfit {
    pub(super) offer: usize,
    pub(super) booking: Booking,
    pub(super) shortage: Shortage,
    pub(super) without: Option<(usize, usize)>,
}

// A session off the books.
struct Aside {
    session: SessionId,
    streams: Vec<(StreamId, Stream)>,
    // Of its reserve, what its sockets do not hold.
    spare: u64,
}

pub(super) fn reserve_for(layout: &Layout, tracks: &[TrackNumber]) -> u64 {
    sending_reserve(tracks.iter().map(|track| layout.tracks[usize::from(*track)].piece))
}

/// The most patience: five minutes of 500 ms slots; a search tries each.
const MOST_PATIENCE_SLOTS: u32 = 600;

/// Viewers of one engine. Each costs a few kilobytes beside its buffers.
const MAX_SESSIONS: usize = 100_000;
