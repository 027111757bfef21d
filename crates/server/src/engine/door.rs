//! The door: does this demand fit beside what is booked? If not: what is short, and when would it
//! fit? New viewers are let in here; those who jump (`jump`) pass through the same test.
//!
//! Where memory stands in the way, what was read far ahead is given back first: it stays in the
//! cache, and on the books as reads to come.

use super::disks::Disk;
use super::sessions::Session;
use super::streams::{Stream, StreamId, unsound};
use super::{
    AdmitRequest, Answer, Engine, Layout, Refusal, Resource, SessionId, SessionSummary,
    TrackLayout, TrackNumber,
};
use scheduler::admission::earliest_shift;
use scheduler::{PolicyKind, Shortage, Timing, Verdict, sending_reserve};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

// What one offer comes to: the streams it would have.
pub(super) struct Booking {
    pub(super) layout: Arc<Layout>,
    pub(super) streams: Vec<Stream>,
    pub(super) reserve: u64,
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
        let session = SessionId(self.next_session);
        let from_ms = u32::try_from(request.from.as_millis()).unwrap_or(u32::MAX);
        let mut refused = None;
        for (offer, tracks) in request.offers.iter().enumerate() {
            let mut booking = match self.booking(now, session, &request.layout, tracks, from_ms) {
                Ok(booking) => booking,
                Err(detail) => {
                    refused = Some((None, detail));
                    continue;
                }
            };
            match self.decide(now, &mut booking) {
                Ok(()) => {
                    self.let_in(now, session, request.offers, booking);
                    return Answer::Admitted { session, offer };
                }
                Err(shortage) => refused = Some((Some((booking, shortage)), String::new())),
            }
        }
        match refused {
            Some((Some((booking, shortage)), _)) => {
                Answer::Refused(self.refusal(now, &booking, shortage))
            }
            Some((None, detail)) => Answer::Refused(self.never(detail)),
            None => Answer::Refused(self.never("nothing was offered".to_owned())),
        }
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
        if self.sessions.len() >= MAX_SESSIONS {
            let detail = format!("{MAX_SESSIONS} viewers are here");
            return Some(Refusal { resource: Resource::Memory, ..self.never(detail) });
        }
        None
    }

    pub(super) fn never(&self, detail: String) -> Refusal {
        let retry_after = self.config.slot * SEARCH_SLOTS;
        Refusal { resource: Resource::Disk, retry_after, detail }
    }

    pub(super) fn count_refusal(&mut self, resource: Resource) {
        match resource {
            Resource::Disk => self.counters.refused_disk += 1,
            Resource::Memory => self.counters.refused_memory += 1,
            Resource::Network => self.counters.refused_network += 1,
        }
    }

    fn booking(
        &self,
        now: Moment,
        session: SessionId,
        layout: &Arc<Layout>,
        tracks: &[TrackNumber],
        from_ms: u32,
    ) -> Result<Booking, String> {
        let timing = self.timing(now, from_ms);
        let disk = usize::from(layout.disk.0);
        let read_size = self.disks[disk].guarantee.read_size.0;
        // All of them: a session may go on with another.
        layout.tracks.iter().for_each(|track| self.time_track(disk, track));
        let mut streams: Vec<Stream> = Vec::with_capacity(tracks.len());
        for number in tracks {
            let Some(track) = layout.tracks.get(usize::from(*number)) else {
                return Err(format!("there is no track {number}"));
            };
            if let Some(reason) = unsound(track, read_size) {
                return Err(format!("track {number} cannot be served: {reason}"));
            }
            if streams.iter().all(|stream| stream.track != *number) {
                let first = super::streams::curve(track).first_needed(from_ms);
                streams.push(Stream::new(session, layout.clone(), *number, timing, first));
            }
        }
        if streams.is_empty() {
            return Err("an offer without tracks".to_owned());
        }
        let reserve = reserve_for(layout, tracks);
        Ok(Booking { layout: layout.clone(), streams, reserve })
    }

    /// Makes sure that the times of a sound track's pieces are known, if its disk's are. Once for
    /// all: what is booked by them must be taken off by the same.
    fn time_track(&self, disk: usize, track: &TrackLayout) {
        let Disk { facts, guarantee, .. } = &self.disks[disk];
        let Some(costs) = &facts.costs else { return };
        if track.transfer.get().is_some() || unsound(track, guarantee.read_size.0).is_some() {
            return;
        }
        track.transfer.get_or_init(|| {
            let pieces = super::streams::curve(track).pieces();
            let place = |piece| super::streams::place_of(track, piece);
            let time = |(offset, len)| costs.transfer(offset, u64::from(len));
            (0..pieces).map(|piece| u32::try_from(time(place(piece))).unwrap_or(u32::MAX)).collect()
        });
    }

    pub(super) fn timing(&self, origin: Moment, from_ms: u32) -> Timing {
        let (startup, slot) = (self.config.startup, self.config.slot);
        Timing { origin, startup, from_ms, kept_from_ms: from_ms, slot }
    }

    // Fits? Fills in what the simpler policies want to know of each stream.
    pub(super) fn decide(&mut self, now: Moment, booking: &mut Booking) -> Result<(), Shortage> {
        let disk = usize::from(booking.layout.disk.0);
        self.demand.begin(self.slot);
        self.demand.reserve = booking.reserve;
        for stream in &mut booking.streams {
            stream.summary = self.demand.add_track(stream.unread());
        }
        self.fits_with_giving_back(now, disk)
    }

    fn fits_with_giving_back(&mut self, now: Moment, disk: usize) -> Result<(), Shortage> {
        let shortage = match self.fits(disk) {
            Err(shortage) if shortage.resource == Resource::Memory => shortage,
            answer => return answer,
        };
        if self.disks[disk].searches >= MAX_SEARCHES {
            return Err(shortage);
        }
        self.disks[disk].searches += 1;
        for keep in [KEEP_SLOTS, 1] {
            let given = self.give_back_ahead(disk, self.slot + keep);
            if given.is_empty() {
                continue;
            }
            if self.fits(disk).is_ok() {
                return Ok(());
            }
            self.take_back(now, &given);
        }
        Err(shortage)
    }

    /// Whether the demand at hand fits on `disk` and the network.
    pub(super) fn fits(&mut self, disk: usize) -> Result<(), Shortage> {
        if self.config.policy == PolicyKind::None {
            return Ok(());
        }
        if let Verdict::Refuse(shortage) = self.verdict(disk) {
            return Err(shortage);
        }
        let Some(rate) = self.config.network else { return Ok(()) };
        let per_slot = rate.bytes_in(self.config.slot).0;
        self.network
            .verdict(&self.demand, per_slot)
            .map(|_| ())
            .map_err(|(slot, missing)| Shortage { resource: Resource::Network, slot, missing })
    }

    /// The fewest slots, up to `limit`, by which the demand at hand must begin later to fit.
    pub(super) fn fits_later(&mut self, disk: usize, limit: u32) -> Option<u32> {
        if self.disks[disk].searches >= MAX_SEARCHES {
            return None;
        }
        self.disks[disk].searches += 1;
        (1..=limit).find(|slots| {
            self.demand.shift(u64::from(*slots));
            let fits = self.fits(disk).is_ok();
            self.demand.unshift(u64::from(*slots));
            fits
        })
    }

    fn let_in(
        &mut self,
        now: Moment,
        id: SessionId,
        offers: Vec<Vec<TrackNumber>>,
        booking: Booking,
    ) {
        let Booking { layout, streams, reserve } = booking;
        self.next_session += 1;
        self.counters.admitted += 1;
        self.titles.session_began(layout.title);
        self.disks[usize::from(layout.disk.0)].books.reserve(reserve);
        let summary =
            SessionSummary { title: layout.title, admitted: now, ..SessionSummary::default() };
        let session = Session {
            tracks: streams.iter().map(|stream| stream.track).collect(),
            layout,
            offers,
            streams: Vec::new(),
            requests: Vec::new(),
            reserve,
            unsent: 0,
            last_sign: now,
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
        for stream in streams {
            let id = StreamId(self.next_stream);
            self.next_stream += 1;
            self.disks[disk].books.book_summary(stream.summary);
            if let Some(next) = stream.next_read() {
                self.disks[disk].queue.insert(next.due, id);
            }
            self.sessions.get_mut(&stream.session).expect("live").streams.push(id);
            self.streams.insert(id, stream);
        }
    }

    /// Puts a stream on the books, under its own id.
    pub(super) fn insert_stream(&mut self, id: StreamId, stream: Stream) {
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.book(&stream);
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
        stream.unread().for_each(|piece| self.network.unbook(piece));
        stream.held().for_each(|(_, piece)| self.network.unbook(piece));
        if let Some(next) = stream.next_read() {
            disk.queue.remove(next.due, id);
        }
        stream
    }

    // Says what is short and finds out when it would not be.
    pub(super) fn refusal(
        &mut self,
        now: Moment,
        booking: &Booking,
        shortage: Shortage,
    ) -> Refusal {
        let slot = self.config.slot;
        let when = shortage.slot.next().start(slot).since(now).as_secs_f64();
        let Shortage { resource, missing, .. } = shortage;
        let what = match resource {
            Resource::Disk => format!("{missing} reads too many for the disk"),
            Resource::Memory => format!("{missing} too many (reads or bytes) for the buffers"),
            Resource::Network => format!("{missing} bytes too many for the network"),
        };
        let detail = format!("{what}, {when:.1} s from now");
        let retry_after = self.earliest_start(booking);
        Refusal { resource, retry_after, detail }
    }

    // The demand at hand, later. Refusals are cheap: only so many searches per slot and disk,
    // others get the last answer.
    fn earliest_start(&mut self, booking: &Booking) -> Duration {
        let disk = usize::from(booking.layout.disk.0);
        if self.disks[disk].searches >= MAX_SEARCHES {
            return self.disks[disk].last_search;
        }
        self.disks[disk].searches += 1;
        let mut demand = std::mem::take(&mut self.demand);
        demand.begin(self.slot);
        demand.reserve = booking.reserve;
        for stream in &booking.streams {
            demand.add_track(stream.unread());
        }
        self.demand = demand;
        let found = earliest_shift(u64::from(SEARCH_SLOTS), |slots| {
            self.demand.shift(slots);
            let fits = self.fits(disk).is_ok();
            self.demand.unshift(slots);
            fits
        });
        let slots =
            found.map_or(SEARCH_SLOTS, |slots| u32::try_from(slots).unwrap_or(SEARCH_SLOTS));
        self.disks[disk].last_search = self.config.slot * slots;
        self.disks[disk].last_search
    }
}

pub(super) fn reserve_for(layout: &Layout, tracks: &[TrackNumber]) -> u64 {
    sending_reserve(tracks.iter().map(|track| layout.tracks[usize::from(*track)].piece))
}

/// How far ahead the earliest start is looked for: ten minutes of 500 ms slots.
const SEARCH_SLOTS: u32 = 1200;

/// Searches per slot and disk: each tries about forty starts, some 10 µs each.
const MAX_SEARCHES: u32 = 8;

/// Read-ahead that is kept first when memory is short: what is due within 4 s of 500 ms slots.
const KEEP_SLOTS: u64 = 8;

/// Viewers of one engine. Each costs a few kilobytes beside its buffers.
const MAX_SESSIONS: usize = 100_000;
