//! Admission: new sessions begin here, if one of their offers fits at some placement (`placement`,
//! `evaluate`). Seeks (`seek`) pass through the same evaluation.
//!
//! ```text
//!   offers, best first ── one fits ──────────────▶ admitted, now
//!        │ none            a patient viewer: one fits later ──▶ admitted, booked for then
//!        └─────────────────────────────────────────────────────▶ refused: what is short, and when
//!   instead of a session (another part, another speed): that session's booking is off the books
//!   during the decision; it ends if the new one is admitted, and is resumed unchanged if not
//! ```

use super::evaluate::{Accepted, Candidate, FailoverShortfall, Shortfall};
use super::later::SEARCH_SLOTS;
use super::pieces::{curve, validate};
use super::placement::PlacementCandidate;
use super::sessions::Session;
use super::streams::{Stream, StreamId};
use super::{
    AdmissionDecision, AdmitRequest, Engine, Layout, Refusal, Resource, SessionId, SessionSummary,
    TrackLayout, TrackNumber,
};
use scheduler::{Shortage, sending_reserve};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Moment;

impl Engine {
    /// Decides on an admission request, and books it if it is accepted.
    pub(super) fn decide_admission(
        &mut self,
        now: Moment,
        request: AdmitRequest,
    ) -> AdmissionDecision {
        let decision = self.accept_or_refuse(now, request);
        if let AdmissionDecision::Refused(refusal) = &decision {
            self.count_refusal(refusal.resource);
        }
        decision
    }

    fn accept_or_refuse(&mut self, now: Moment, request: AdmitRequest) -> AdmissionDecision {
        if let Some(refusal) = self.precheck(&request) {
            return AdmissionDecision::Refused(refusal);
        }
        let old = request.replaces.filter(|id| self.sessions.contains_key(id));
        let suspended = old.map(|id| self.suspend(id));
        match self.choose_offer(now, &request) {
            Ok(Choice { offer, accepted, slots }) => {
                let session = SessionId(self.next_session);
                self.counters.downgraded += u64::from(offer > 0);
                self.begin_session(now, session, request.offers, accepted, slots);
                if let Some(suspended) = suspended {
                    self.end_suspended(now, suspended);
                }
                AdmissionDecision::Admitted { session, offer, wait: self.config.slot * slots }
            }
            Err(refusal) => {
                if let Some(suspended) = suspended {
                    self.resume(suspended);
                }
                AdmissionDecision::Refused(refusal)
            }
        }
    }

    // The first offer that fits now; if none does, the first that fits within the viewer's
    // max_wait.
    fn choose_offer(&mut self, now: Moment, request: &AdmitRequest) -> Result<Choice, Refusal> {
        let session = SessionId(self.next_session);
        let mut rejected = match self.choose_placement(now, request, session) {
            Ok(choice) => return Ok(choice),
            Err(Rejection::Unusable(reason)) => return Err(self.refusal_without_search(reason)),
            Err(Rejection::Short(rejected)) => rejected,
        };
        let max_wait = request.max_wait.as_nanos() / self.config.slot.as_nanos();
        let max_wait = u32::try_from(max_wait).unwrap_or(u32::MAX).min(MOST_PATIENCE_SLOTS);
        for at in 0..rejected.len() {
            let candidate = &mut rejected[at].candidate;
            if let Some((slots, approval)) = self.delay_until_it_fits(candidate, max_wait) {
                let Rejected { offer, candidate, .. } = rejected.swap_remove(at);
                return Ok(Choice { offer, accepted: candidate.accepted(approval), slots });
            }
        }
        let last = rejected.pop().expect("a shortage is one of a candidate");
        rejected.into_iter().for_each(|other| self.demands.put(other.candidate.demand));
        Err(self.refusal(now, last.candidate, last.shortfall))
    }

    /// The refusal of a candidate: what is short, and when the candidate would fit.
    pub(super) fn refusal(
        &mut self,
        now: Moment,
        mut candidate: Candidate,
        shortfall: Shortfall,
    ) -> Refusal {
        let Shortage { resource, slot, missing } = shortfall.shortage;
        let when = slot.next().start(self.config.slot).since(now).as_secs_f64();
        let what = match resource {
            Resource::Disk => format!("{missing} reads too many for the disk"),
            Resource::Memory => format!("{missing} too many (reads or bytes) for the buffers"),
            Resource::Network => format!("{missing} bytes too many for the network"),
        };
        let detail = match shortfall.failover {
            None => format!("{what}, {when:.1} s from now"),
            Some(FailoverShortfall { lost, short }) => {
                self.counters.refused_for_loss += 1;
                format!("if disk {lost} were lost: {what}, disk {short}, {when:.1} s from now")
            }
        };
        let (retry_after, exact) = self.earliest_start(&mut candidate);
        self.demands.put(candidate.demand);
        Refusal { resource, retry_after, exact, detail }
    }

    // Takes a session's booking off the books. Memory for what its sockets hold stays reserved.
    fn suspend(&mut self, id: SessionId) -> SuspendedSession {
        let session = &mut self.sessions[&id];
        let placement = session.placement();
        let ids = std::mem::take(&mut session.streams);
        let reserve = session.reserve.saturating_sub(session.unsent);
        session.reserve -= reserve;
        self.release_send_memory(placement, reserve);
        let streams = ids.into_iter().map(|id| (id, self.remove_stream(id))).collect();
        SuspendedSession { session: id, streams, reserve }
    }

    fn resume(&mut self, suspended: SuspendedSession) {
        let session = &mut self.sessions[&suspended.session];
        let placement = session.placement();
        session.reserve += suspended.reserve;
        session.streams = suspended.streams.iter().map(|(id, _)| *id).collect();
        self.reserve_send_memory(placement, suspended.reserve);
        suspended.streams.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
    }

    fn end_suspended(&mut self, now: Moment, suspended: SuspendedSession) {
        suspended.streams.into_iter().for_each(|(_, stream)| self.settle_stream(now, stream));
        self.end_session(now, suspended.session, false);
    }

    // A refusal for reasons that have nothing to do with how much is booked.
    fn precheck(&self, request: &AdmitRequest) -> Option<Refusal> {
        if !self.admitting {
            return Some(self.refusal_without_search("the server is stopping".to_owned()));
        }
        if self.titles.is_withdrawn(request.layout.title) {
            return Some(self.refusal_without_search("the title is being removed".to_owned()));
        }
        if self.disk_index(request.layout.disk).is_none() {
            return Some(
                self.refusal_without_search(format!("there is no disk {}", request.layout.disk.0)),
            );
        }
        if !std::iter::once(&request.layout).chain(&request.copies).any(|l| self.is_live(l)) {
            let what = "no disk that it lies on is there any more: see to them, and start again";
            return Some(self.refusal_without_search(what.to_owned()));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let detail = format!("{MAX_SESSIONS} viewers are here");
            return Some(Refusal {
                resource: Resource::Memory,
                ..self.refusal_without_search(detail)
            });
        }
        None
    }

    pub(super) fn refusal_without_search(&self, detail: String) -> Refusal {
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

    pub(super) fn candidate(
        &mut self,
        now: Moment,
        session: SessionId,
        place: &PlacementCandidate,
        tracks: &[TrackNumber],
        from_ms: u32,
    ) -> Result<Candidate, String> {
        let PlacementCandidate { layout, replica, copies } = place;
        let timing = self.timing(now, from_ms, *replica);
        let disk = usize::from(layout.disk.0);
        let read_size = self.disks[disk].guarantee.read_size.0;
        // Also the tracks that are not offered: a session may switch to any of them.
        for (number, track) in layout.tracks.iter().enumerate() {
            // Also copies on lost disks: a disk may come back, and be a replica then.
            match self.failover.is_enabled() {
                false => self.time_track(disk, track),
                true => self.time_copies(copies, number),
            }
        }
        let mut streams: Vec<Stream> = Vec::with_capacity(tracks.len());
        for number in tracks {
            let Some(track) = layout.tracks.get(usize::from(*number)) else {
                return Err(format!("there is no track {number}"));
            };
            validate(track, read_size)
                .map_err(|error| format!("track {number} cannot be served: {error}"))?;
            if streams.iter().all(|stream| stream.track != *number) {
                let first = curve(track).first_needed(from_ms);
                let mut stream = Stream::new(session, layout.clone(), *number, timing, first);
                stream.replica = *replica;
                streams.push(stream);
            }
        }
        if streams.is_empty() {
            return Err("an offer without tracks".to_owned());
        }
        let (layout, copies) = (layout.clone(), Arc::clone(copies));
        let demand = self.demand_of(&mut streams, reserve_for(&layout, tracks));
        Ok(Candidate { layout, replica: *replica, copies, streams, demand })
    }

    /// Times a track's pieces, if the times of its disk are known. Only once: what is booked by
    /// these times must be taken off the books by the same.
    pub(super) fn time_track(&self, disk: usize, track: &TrackLayout) {
        if track.times.get().is_none()
            && let Some(times) = self.piece_times(disk, track)
        {
            track.times.get_or_init(|| times);
        }
    }

    fn begin_session(
        &mut self,
        now: Moment,
        id: SessionId,
        offers: Vec<Vec<TrackNumber>>,
        accepted: Accepted,
        slots: u32,
    ) {
        let Candidate { layout, replica, copies, streams, demand } = &accepted.candidate;
        let (placement, reserve) = (accepted.candidate.placement(), demand.reserve);
        self.next_session += 1;
        self.counters.admitted += 1;
        self.titles.use_began(layout.title);
        self.reserve_send_memory(placement, reserve);
        let summary =
            SessionSummary { title: layout.title, admitted: now, ..SessionSummary::default() };
        let session = Session {
            tracks: streams.iter().map(|stream| stream.track).collect(),
            layout: Arc::clone(layout),
            copies: Arc::clone(copies),
            replica: *replica,
            offers,
            streams: Vec::new(),
            requests: Vec::new(),
            reserve,
            unsent: 0,
            last_activity: now + self.config.slot * slots,
            asked: false,
            seeks: BTreeMap::new(),
            summary,
        };
        self.sessions.insert(id, session);
        self.book(accepted);
    }

    /// Puts a stream back on the books, under its own id.
    pub(super) fn insert_stream(&mut self, id: StreamId, mut stream: Stream) {
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        // The plan may have been made while the stream was off the books, and leave less slack.
        let slack = stream.guaranteed_slack.zip(disk.scan.slack()).map(|(a, b)| a.min(b));
        stream.guaranteed_slack = slack.or(stream.guaranteed_slack);
        disk.book(&stream);
        self.failover.book(&stream);
        stream.unread().for_each(|piece| self.network.book(piece));
        stream.held().for_each(|(_, piece)| self.network.book(piece));
        disk.dispatcher.enqueue(id, stream.next_read());
        self.streams.insert(id, stream);
    }

    /// Takes a stream off all books. Its buffers stay pinned.
    pub(super) fn remove_stream(&mut self, id: StreamId) -> Stream {
        let stream = self.streams.take(&id);
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.unbook(&stream);
        self.failover.unbook(&stream);
        stream.unread().for_each(|piece| self.network.unbook(piece));
        stream.held().for_each(|(_, piece)| self.network.unbook(piece));
        disk.dispatcher.dequeue(id, stream.next_read());
        stream
    }
}

/// The offer that is accepted, with its session beginning `slots` later than now.
pub(super) struct Choice {
    pub(super) offer: usize,
    pub(super) accepted: Accepted,
    pub(super) slots: u32,
}

/// Why no offer fits at once.
pub(super) enum Rejection {
    /// No offer can be served whatever is booked, for this reason.
    Unusable(String),
    /// Each has too little of something. At least one.
    Short(Vec<Rejected>),
}

/// A candidate that does not fit, and the offer that it is of.
pub(super) struct Rejected {
    pub(super) offer: usize,
    pub(super) candidate: Candidate,
    pub(super) shortfall: Shortfall,
}

// A session whose booking is off the books while another is decided on instead of it.
struct SuspendedSession {
    session: SessionId,
    streams: Vec<(StreamId, Stream)>,
    // The part of its send memory that its sockets do not hold.
    reserve: u64,
}

pub(super) fn reserve_for(layout: &Layout, tracks: &[TrackNumber]) -> u64 {
    sending_reserve(tracks.iter().map(|track| layout.tracks[usize::from(*track)].piece))
}

/// The latest start that a patient viewer is given: five minutes of 500 ms slots, each tried.
const MOST_PATIENCE_SLOTS: u32 = 600;

/// Sessions of one engine. Each takes a few kilobytes beside its buffers.
const MAX_SESSIONS: usize = 100_000;
