//! Deadlines: what each session is guaranteed, piece by piece, from its admission to its end, and
//! which pieces were in memory in time.
//!
//! ```text
//!   grant     origin o = the time of the grant, from = the position in the title:
//!               after an admission, the time at which the player asked to start;
//!               after a seek, the end of the segment that holds the next byte
//!   due       o + startup                             pieces needed first
//!             o + max(startup, due - from - slot)     the rest
//!   in time   in memory at its deadline, or delivered to the session before
//!   ends      with a later grant or a release; `schedule` says when each is justified
//! ```
//!
//! Written from outside the engine. The input is what the driver of an engine sees: requests,
//! deliveries and the engine's answers. Deadlines are computed from the title and from the server's
//! contract: start-up and slot as configured, the segments of the player, the length of a read, and
//! room for [`SEND_WINDOW`] reads of each track in the sockets of a session.

use super::schedule::{Contract, GrantStart, TrackSchedule};
use super::seeks::{Contiguity, Segments, TrackRequest};
use super::{Memory, Piece};
use engine::{Disconnection, Layout, Part, RequestId, SessionId, SessionSummary, TrackNumber};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A scheduled check of the next deadline of one track. It names the grant, so that checks of a
/// replaced grant are recognised and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeadlineCheck {
    pub(crate) session: SessionId,
    /// Index into the session's tracks.
    index: usize,
    grant: u32,
}

/// A piece that was not in memory at its deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    pub(crate) session: SessionId,
    pub(crate) piece: Piece,
    pub(crate) deadline: Moment,
}

/// What an admitted session plays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission<'a> {
    pub(crate) layout: &'a Arc<Layout>,
    pub(crate) segments: &'a Arc<Segments>,
    pub(crate) tracks: &'a [TrackNumber],
    /// Media time of the start.
    pub(crate) from: Duration,
    /// The viewer has waited for its start.
    pub(crate) waited: bool,
    /// When it was admitted.
    pub(crate) at: Moment,
}

/// Where a track continues after a seek.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeekTarget {
    pub(crate) track: TrackNumber,
    /// The first byte that the request waits for.
    pub(crate) byte: u64,
    /// Media time at which the segment of that byte starts and ends.
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    /// Time by which the grant postpones the start.
    pub(crate) wait: Duration,
}

/// A delivery as the viewer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveredBytes {
    pub(crate) piece: Piece,
    /// The delivery includes the last byte of the piece.
    pub(crate) to_its_end: bool,
    /// Bytes of the delivery.
    pub(crate) len: u64,
    /// End of the delivery, in bytes of the track.
    pub(crate) end: u64,
    /// When the viewer could have taken the bytes, had they been in memory.
    pub(crate) takeable_from: Moment,
}

#[derive(Debug)]
struct SessionRecord {
    layout: Arc<Layout>,
    segments: Arc<Segments>,
    tracks: Vec<TrackSchedule>,
    missed: u64,
    /// What the session's sockets hold of each track of the title.
    sockets: Vec<SocketRoom>,
    /// When the viewer was admitted, and when it was to start.
    admitted: Moment,
    start: Moment,
    /// Bytes that were delivered to it.
    taken: u64,
    /// The viewer has asked for media.
    asked: bool,
    /// How its last connection ended; `None`: it has one.
    disconnected: Option<Disconnection>,
}

/// What the sockets of a session hold of one track.
#[derive(Clone, Debug, Default)]
struct SocketRoom {
    /// Bytes of buffers.
    unsent: u64,
    /// Since when they have certainly had room for one more buffer of the track.
    room_since: Moment,
}

impl SessionRecord {
    // Notes in which tracks the sockets certainly have room for another read: in those of which
    // they hold nothing, whatever they hold of others. After a seek and a change of tracks they may
    // still hold as much of what came before as they have memory for.
    fn note_room(&mut self, now: Moment) {
        let tracks = self.tracks.iter().map(|played| usize::from(played.track));
        let sizes: Vec<u64> =
            tracks.map(|track| u64::from(self.layout.tracks[track].piece)).collect();
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let unsent: u64 = self.sockets.iter().map(|room| room.unsent).sum();
        let has_moved = self.tracks.iter().any(|track| track.grant > 0);
        let fits = !has_moved || unsent + largest <= sizes.iter().sum::<u64>() * SEND_WINDOW;
        for room in &mut self.sockets {
            let has_room = fits && room.unsent == 0;
            room.room_since = if has_room { room.room_since.min(now) } else { Moment::MAX };
        }
    }

    /// Whether eight times the media that was delivered, and the time after which a silent viewer
    /// loses its reservation, have passed since the admission.
    fn outlasts(&self, now: Moment, idle_after: Duration) -> bool {
        let track = |played: &TrackSchedule| self.layout.tracks[usize::from(played.track)].bytes;
        let bytes = self.tracks.iter().map(track).sum::<u64>().max(1);
        let media = self.layout.duration.as_nanos() * u128::from(self.taken) / u128::from(bytes);
        let lasted = now.since(self.admitted);
        lasted >= idle_after && lasted.as_nanos() >= 8 * media
    }

    fn track(&mut self, track: TrackNumber) -> Option<&mut TrackSchedule> {
        self.tracks.iter_mut().find(|schedule| schedule.track == track)
    }
}

/// A request that may still receive bytes.
#[derive(Debug)]
struct OpenRequest {
    session: SessionId,
    tracks: Vec<TrackRequest>,
    /// The request was not refused at once.
    accepted: bool,
}

#[derive(Debug)]
pub(crate) struct Deadlines {
    contract: Contract,
    sessions: BTreeMap<SessionId, SessionRecord>,
    open: BTreeMap<RequestId, OpenRequest>,
    pub(crate) on_time: u64,
    pub(crate) missed: u64,
}

impl Deadlines {
    pub(crate) fn new(contract: Contract) -> Self {
        let (sessions, open) = (BTreeMap::new(), BTreeMap::new());
        Self { contract, sessions, open, on_time: 0, missed: 0 }
    }

    /// Notes an admission with effect from `start`; returns the first check of each track.
    pub(crate) fn admitted(
        &mut self,
        start: Moment,
        session: SessionId,
        admission: &Admission<'_>,
    ) -> Vec<(Moment, DeadlineCheck)> {
        let &Admission { layout, segments, tracks, from, waited, at } = admission;
        let schedule = |track: &TrackNumber| {
            let byte = segments.byte_at(*track, from);
            let grant = GrantStart { track: *track, byte, from_ms: millis(from), waited };
            TrackSchedule::admitted(start, layout, segments, &grant, &self.contract)
        };
        let record = SessionRecord {
            tracks: tracks.iter().map(schedule).collect(),
            layout: Arc::clone(layout),
            segments: Arc::clone(segments),
            missed: 0,
            sockets: vec![SocketRoom::default(); layout.tracks.len()],
            admitted: at,
            start,
            taken: 0,
            asked: false,
            disconnected: None,
        };
        self.sessions.insert(session, record);
        (0..tracks.len()).filter_map(|index| self.next_check(session, index)).collect()
    }

    /// Notes that a session goes on with more of its title, and that its schedule moves `later`.
    /// What is guaranteed moves so far as well, but by no more than it takes until all that is new
    /// is due a slot after the start-up. Returns the next check of each track of which all had been
    /// checked.
    pub(crate) fn extended(
        &mut self,
        now: Moment,
        session: SessionId,
        layout: &Arc<Layout>,
        later: Duration,
    ) -> Vec<(Moment, DeadlineCheck)> {
        let Some(record) = self.sessions.get_mut(&session) else { return Vec::new() };
        let before = std::mem::replace(&mut record.layout, Arc::clone(layout));
        let Contract { slot, startup, .. } = self.contract;
        let earliest = now + startup + slot;
        let new = record.tracks.iter().filter_map(|track| track.first_new(&before, layout));
        let too_early = new.map(|deadline| earliest.since(deadline)).max().unwrap_or_default();
        let slots = too_early.as_nanos().div_ceil(slot.as_nanos());
        let later = later.min(slot * u32::try_from(slots).unwrap_or(u32::MAX));
        let tracks = record.tracks.iter_mut().enumerate();
        let at_end = tracks.filter_map(|(index, track)| {
            track.extended(now, &before, layout, later).then_some(index)
        });
        let at_end: Vec<usize> = at_end.collect();
        let checks = at_end.into_iter().filter_map(|index| self.next_check(session, index));
        checks.collect()
    }

    /// Notes a request; returns for each of its tracks whether the request continues there.
    pub(crate) fn requested(
        &mut self,
        now: Moment,
        session: SessionId,
        id: RequestId,
        parts: &[Part],
    ) -> Vec<(TrackNumber, Contiguity)> {
        let tracks = TrackRequest::split(parts);
        let Some(record) = self.sessions.get_mut(&session) else { return Vec::new() };
        record.asked = true;
        let mut judged = Vec::new();
        for request in &tracks {
            let schedule =
                record.tracks.iter_mut().find(|schedule| schedule.track == request.track);
            let contiguity = schedule.map_or(Contiguity::Seeks, |schedule| {
                schedule.last_activity = now;
                let layout = &record.layout.tracks[usize::from(request.track)];
                let contiguity = schedule.seeks.judge(&record.segments, layout, request);
                // A request of kind `Either` may seek: until the server has decided, nothing is
                // guaranteed to it.
                if contiguity != Contiguity::Continues {
                    schedule.seeking = Some(id);
                }
                contiguity
            });
            judged.push((request.track, contiguity));
        }
        self.open.insert(id, OpenRequest { session, tracks, accepted: false });
        judged
    }

    /// Notes that a request was not refused at once. Tracks in `granted` were readmitted; the
    /// server lets the request continue on all others.
    pub(crate) fn accepted(&mut self, id: RequestId, granted: &[TrackNumber]) {
        let Some(open) = self.open.get_mut(&id) else { return };
        open.accepted = true;
        let Some(record) = self.sessions.get_mut(&open.session) else { return };
        for request in open.tracks.iter().filter(|request| !granted.contains(&request.track)) {
            let schedule =
                record.tracks.iter_mut().find(|schedule| schedule.track == request.track);
            if let Some(schedule) = schedule {
                schedule.seeking = schedule.seeking.filter(|seeking| *seeking != id);
                schedule.seeks.note_request(&record.segments, request);
            }
        }
    }

    /// Notes that nothing more is delivered for a request. `cancelled`: by the viewer.
    pub(crate) fn closed(&mut self, now: Moment, id: RequestId, cancelled: bool) {
        let Some(open) = self.open.remove(&id) else { return };
        let Some(record) = self.sessions.get_mut(&open.session) else { return };
        for schedule in &mut record.tracks {
            if schedule.seeking == Some(id) {
                schedule.seeking = None;
            }
            let undelivered = open
                .tracks
                .iter()
                .filter(|rest| rest.track == schedule.track && !rest.bytes.is_empty());
            for rest in undelivered {
                // A refusal or a failure is the server's act and not a sign of the viewer.
                schedule.last_activity = if cancelled { now } else { schedule.last_activity };
                // A request that was refused at once changes nothing. Its end may be a place at
                // which the player can continue for another reason: an earlier request ended
                // there, or the grant begins there.
                if open.accepted {
                    schedule.seeks.note_stopped(&record.segments, rest);
                }
            }
        }
    }

    /// Notes that the session's sockets were given a buffer of `len` bytes of a track.
    pub(crate) fn buffer_queued(
        &mut self,
        now: Moment,
        session: SessionId,
        track: TrackNumber,
        len: u32,
    ) {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.sockets[usize::from(track)].unsent += u64::from(len);
            record.note_room(now);
        }
    }

    /// Notes that the session's sockets no longer hold a buffer of `len` bytes of a track.
    pub(crate) fn buffer_sent(
        &mut self,
        now: Moment,
        session: SessionId,
        track: TrackNumber,
        len: u32,
    ) {
        let Some(record) = self.sessions.get_mut(&session) else { return };
        record.sockets[usize::from(track)].unsent -= u64::from(len);
        record.note_room(now);
        if let Some(schedule) = record.track(track) {
            schedule.last_activity = now;
        }
    }

    /// Since when the session's sockets have had room for one more buffer of a track; the end of
    /// time while they have none.
    pub(crate) fn room_since(&self, session: SessionId, track: TrackNumber) -> Moment {
        let record = self.sessions.get(&session);
        record.map_or(Moment::ZERO, |record| record.sockets[usize::from(track)].room_since)
    }

    /// The next byte of a track that a request has not received.
    pub(crate) fn next_byte(&self, id: RequestId, track: TrackNumber) -> Option<u64> {
        let open = self.open.get(&id)?;
        open.tracks.iter().find(|request| request.track == track).map(|request| request.bytes.start)
    }

    /// Whether an earlier grant guarantees the next byte of a track to a request.
    pub(crate) fn is_guaranteed(&self, now: Moment, id: RequestId, track: TrackNumber) -> bool {
        let Some(open) = self.open.get(&id) else { return false };
        let Some(record) = self.sessions.get(&open.session) else { return false };
        let schedule = record.tracks.iter().find(|schedule| schedule.track == track);
        let (Some(schedule), Some(byte)) = (schedule, self.next_byte(id, track)) else {
            return false;
        };
        schedule.seeking != Some(id) && schedule.guarantees(&record.layout, now, byte)
    }

    /// Whether a request does not seek and is guaranteed all tracks that it waits for, so that it
    /// must not be refused.
    pub(crate) fn is_all_guaranteed(&self, now: Moment, id: RequestId) -> bool {
        let Some(open) = self.open.get(&id) else { return false };
        let Some(record) = self.sessions.get(&open.session) else { return false };
        let seeks = record.tracks.iter().any(|schedule| schedule.seeking == Some(id));
        let mut undelivered = open.tracks.iter().filter(|request| !request.bytes.is_empty());
        !seeks && undelivered.all(|request| self.is_guaranteed(now, id, request.track))
    }

    /// Notes that a track of a request was readmitted. Returns the next check, and whether the new
    /// grant is justified: it must not replace a guarantee that still holds.
    pub(crate) fn readmitted(
        &mut self,
        now: Moment,
        id: RequestId,
        target: &SeekTarget,
    ) -> (Option<(Moment, DeadlineCheck)>, bool) {
        let justified = !self.is_guaranteed(now, id, target.track);
        let Some(open) = self.open.get(&id) else { return (None, justified) };
        let session = open.session;
        let Some(record) = self.sessions.get_mut(&session) else { return (None, justified) };
        let Some(index) = record.tracks.iter().position(|track| track.track == target.track) else {
            return (None, justified);
        };
        let schedule = &mut record.tracks[index];
        schedule.readmitted(now, &record.layout, &record.segments, target);
        // The player may continue after this request and after those that it made since.
        let later = self.open.range((Bound::Excluded(id), Bound::Unbounded));
        let of_session = later.filter(|(_, later)| later.session == session);
        let later_tracks = of_session.flat_map(|(_, later)| &later.tracks);
        for request in open.tracks.iter().chain(later_tracks) {
            if request.track == target.track && !request.bytes.is_empty() {
                schedule.seeks.note_request(&record.segments, request);
            }
        }
        (self.next_check(session, index), justified)
    }

    /// Notes that the rest of a track is due `slots` later. Returns whether that is justified.
    pub(crate) fn delayed(
        &mut self,
        now: Moment,
        session: SessionId,
        track: TrackNumber,
        slots: u32,
    ) -> bool {
        let awaited = self.first_awaited(session, track);
        let Some(record) = self.sessions.get_mut(&session) else { return false };
        let layout = Arc::clone(&record.layout);
        let Some(schedule) = record.track(track) else { return false };
        schedule.delayed(now, &layout, awaited, slots)
    }

    /// Notes that the viewer has no connection any more.
    pub(crate) fn disconnected(&mut self, session: SessionId, how: Disconnection) {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.disconnected = Some(how);
        }
    }

    /// Notes that the viewer has a connection.
    pub(crate) fn connected(&mut self, session: SessionId) {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.disconnected = None;
        }
    }

    // Whether the viewer's reservation may be given to another: it has left; or it has no
    // connection and no request, and should have fetched again; or it has not begun to play in the
    // time in which it could; or it takes next to nothing.
    fn is_revocable(&self, now: Moment, session: SessionId) -> bool {
        let Some(record) = self.sessions.get(&session) else { return false };
        let Contract { slot, startup, .. } = self.contract;
        let has_requests = || self.open.values().any(|open| open.session == session);
        if record.asked && record.outlasts(now, self.contract.idle_after) {
            return true;
        }
        match record.disconnected {
            Some(Disconnection::Left) => true,
            _ if !record.asked => now >= record.start + startup,
            Some(Disconnection::Unclear) => {
                // A read is due a slot before it is shown, and its player has a slot to fetch it.
                let due = |track: &TrackSchedule| track.next_fetch(&record.layout) + slot * 2;
                // Nothing is due for a track whose reservation has ended.
                let mut reserved = record.tracks.iter().filter(|track| track.is_guaranteed);
                !has_requests() && reserved.all(|track| now >= due(track))
            }
            None => false,
        }
    }

    /// Notes that the guarantee of a track has ended. Returns whether that is justified.
    pub(crate) fn released(&mut self, now: Moment, session: SessionId, track: TrackNumber) -> bool {
        let idle_after = self.contract.idle_after;
        let is_revocable = self.is_revocable(now, session);
        let Some(record) = self.sessions.get_mut(&session) else { return false };
        let layout = Arc::clone(&record.layout);
        let Some(schedule) = record.track(track) else { return false };
        schedule.released(now, &layout, idle_after) || is_revocable
    }

    /// Notes a delivery. Returns its deadline, if one was guaranteed.
    pub(crate) fn delivered(&mut self, id: RequestId, bytes: &DeliveredBytes) -> Option<Moment> {
        let &DeliveredBytes { piece, to_its_end, len, end, takeable_from } = bytes;
        let open = self.open.get_mut(&id)?;
        for request in open.tracks.iter_mut().filter(|request| request.track == piece.track) {
            request.bytes.start = end.min(request.bytes.end);
        }
        let record = self.sessions.get_mut(&open.session)?;
        record.taken += len;
        let schedule = record.tracks.iter_mut().find(|schedule| schedule.track == piece.track)?;
        schedule.received(&record.layout, piece.number, to_its_end, takeable_from)
    }

    /// Checks all deadlines of a track that have come, and returns the next check.
    pub(crate) fn check(
        &mut self,
        now: Moment,
        check: DeadlineCheck,
        memory: &Memory,
        misses: &mut Vec<Miss>,
    ) -> Option<(Moment, DeadlineCheck)> {
        let session = check.session;
        let record = self.sessions.get_mut(&session)?;
        let layout = &record.layout;
        let schedule = &mut record.tracks[check.index];
        // A newer grant has a chain of checks of its own; this one belongs to the old grant.
        if schedule.grant != check.grant || !schedule.is_guaranteed {
            return None;
        }
        while let Some(deadline) = schedule.next_deadline(layout) {
            // A delay may have moved the deadline since this check was scheduled.
            if deadline > now {
                return Some((deadline, check));
            }
            let piece = Piece { title: layout.title, track: schedule.track, number: schedule.next };
            if schedule.finish_check() || memory.holds(piece) {
                self.on_time += 1;
            } else {
                record.missed += 1;
                self.missed += 1;
                misses.push(Miss { session, piece, deadline });
            }
        }
        None
    }

    /// Notes the end of a session. The engine must not have counted fewer misses; it may count more
    /// where a piece was in memory for another viewer only. Otherwise returns both counts.
    pub(crate) fn ended(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
    ) -> Option<(u64, u64)> {
        let record = self.sessions.remove(&session)?;
        self.open.retain(|_, open| open.session != session);
        let fewer = summary.deadline_misses < record.missed;
        fewer.then_some((record.missed, summary.deadline_misses))
    }

    /// The first byte of a track that an open request of the session waits for.
    fn first_awaited(&self, session: SessionId, track: TrackNumber) -> Option<u64> {
        let of_session = self.open.values().filter(|open| open.session == session);
        let undelivered = of_session
            .flat_map(|open| &open.tracks)
            .filter(|request| request.track == track && !request.bytes.is_empty());
        undelivered.map(|request| request.bytes.start).min()
    }

    fn next_check(&self, session: SessionId, index: usize) -> Option<(Moment, DeadlineCheck)> {
        let record = &self.sessions[&session];
        let schedule = &record.tracks[index];
        let deadline = schedule.next_deadline(&record.layout)?;
        Some((deadline, DeadlineCheck { session, index, grant: schedule.grant }))
    }
}

/// Reads of each track that a session's sockets may hold for certain: one of a viewer who follows
/// another, two of all others.
const SEND_WINDOW: u64 = 1;

pub(super) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
