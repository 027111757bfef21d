//! The engine's state at one moment, for metrics, the console and tests. Changes nothing.

use super::sessions::Session;
use super::stream::Stream;
use super::{
    DiskNumber, Engine, FillFor, Priority, Refusal, RefusalCause, Resource, SessionId,
    SessionSummary, TitleKey, TrackNumber,
};
use scheduler::{WriteShare, slowdown_part};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, Moment};

/// Sessions, counters and disks of an engine at one moment, for metrics, the console and tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Sessions admitted and not ended.
    pub sessions: u64,
    /// Sessions that hold a reservation now.
    pub active: u64,
    /// Sessions among them whose viewers have gone or never played, so that a newcomer may take
    /// their reservation.
    pub revocable: u64,
    /// Sessions among them that are fills of caches.
    pub fills: u64,
    /// Sessions admitted and not ended by their priority, the lowest first.
    pub by_priority: [u64; Priority::ALL.len()],
    /// Events counted since the start.
    pub counters: Counters,
    /// Sessions of which a track follows a viewer ahead.
    pub following: u64,
    /// Bytes of buffers that are kept for viewers who follow another.
    pub intervals: u64,
    /// Bytes of buffers in use.
    pub buffers_used: u64,
    /// Bytes of buffers there are.
    pub buffers_total: u64,
    /// Bytes of buffers that there are to be, by [`Engine::set_memory`]; less than there are while
    /// admitted sessions need more.
    pub buffers_limit: u64,
    /// Mean rates of all streams that hold a reservation which newcomers cannot take, also of those
    /// that need no disk: what the network carries for them.
    pub sent_rate: BitRate,
    /// The state of each disk.
    pub disks: Vec<DiskStatus>,
}

/// Events counted since the start of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions admitted since the start.
    pub admitted: u64,
    /// Sessions admitted since the start for an offer that was not their first.
    pub admitted_downgraded: u64,
    /// Requests refused since the start.
    pub refused: RefusalCounts,
    /// Requests refused since the start by their priority, the lowest first.
    pub refused_by_priority: [u64; Priority::ALL.len()],
    /// Pieces of admitted streams that were in memory after their deadline, since the start.
    pub deadline_misses: u64,
    /// The longest time since the start by which a piece missed its deadline.
    pub worst_lateness: Duration,
    /// Pieces in memory by their deadline since the start.
    pub deadlines_met: u64,
    /// Guarantee violations since the start, reads done after the slot that they were due in, by
    /// disks that took no longer than they were charged: the schedule was wrong.
    pub violations_by_scheduler: u64,
    /// Guarantee violations since the start by disks that took longer than they were charged.
    pub violations_by_disk: u64,
    /// Pieces found in memory when their viewer came, or their turn to be read.
    pub cache_hits: u64,
    /// Streams (one track of one session) admitted since the start that follow a viewer ahead.
    pub admitted_following: u64,
    /// Pieces that streams shared with another since the start, each counted once less than it was
    /// used: reads saved.
    pub shared_reads: u64,
    /// Sessions that went on with more of a title that is being recorded, since the start.
    pub extended: u64,
    /// Extensions of sessions that did not fit, since the start.
    pub extensions_refused: u64,
    /// Requests refused since the start that would fit if no disk could be lost.
    pub refused_for_loss: u64,
    /// Sessions that went on with another copy when their disk was lost, since the start.
    pub failed_over: u64,
    /// Sessions that ended because their disk was lost, since the start.
    pub ended_by_disk_loss: u64,
    /// Sessions that ended since the start because a viewer of a higher priority took their places.
    pub preempted_by_priority: u64,
    /// Sessions that ended since the start because their disk had long been too slow for all.
    pub preempted_by_overload: u64,
    /// Sessions that ended in either way, by their own priority, the lowest first.
    pub preempted_of_priority: [u64; Priority::ALL.len()],
    /// Reservations of viewers who had gone, or never played, that were given to others since the
    /// start.
    pub revoked: u64,
    /// Fills of caches admitted since the start, counted among all sessions as well.
    pub fills_admitted: u64,
    /// Fills of caches refused since the start, counted among all requests as well.
    pub fills_refused: u64,
    /// Bytes delivered to fills of caches that have ended, since the start.
    pub fill_bytes: u64,
    /// Fills for other nodes admitted since the start, counted among all sessions as well.
    pub node_fills_admitted: u64,
    /// Fills for other nodes refused since the start, counted among all requests as well.
    pub node_fills_refused: u64,
    /// Bytes delivered to fills for other nodes that have ended, since the start.
    pub node_fill_bytes: u64,
}

/// Refused requests by cause and by the resource that was short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts([[u64; RESOURCES.len()]; RefusalCause::ALL.len()]);

impl RefusalCounts {
    pub(super) fn count(&mut self, refusal: &Refusal) {
        let at = RESOURCES.iter().position(|resource| *resource == refusal.resource);
        self.0[refusal.cause as usize][at.expect("all resources are listed")] += 1;
    }

    /// Refusals with a cause.
    pub fn of_cause(&self, cause: RefusalCause) -> u64 {
        self.0[cause as usize].iter().sum()
    }

    /// Refusals in which this resource was short.
    pub fn of_resource(&self, resource: Resource) -> u64 {
        self.iter().filter(|(_, short, _)| *short == Some(resource)).map(|(.., count)| count).sum()
    }

    /// Each cause with each resource, `None` for none, and the number of refusals.
    pub fn iter(&self) -> impl Iterator<Item = (RefusalCause, Option<Resource>, u64)> + '_ {
        RefusalCause::ALL.iter().zip(&self.0).flat_map(|(cause, counts)| {
            RESOURCES.iter().zip(counts).map(|(resource, count)| (*cause, *resource, *count))
        })
    }
}

/// What can be short in a refusal.
const RESOURCES: [Option<Resource>; 4] =
    [Some(Resource::Disk), Some(Resource::Memory), Some(Resource::Network), None];

/// One disk's part of [`Status`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatus {
    /// Guaranteed reads per slot now.
    pub min_read: u32,
    /// Reads completed since the start.
    pub reads: u64,
    /// Bytes read since the start.
    pub bytes: u64,
    /// Reads failed or damaged since the start.
    pub failures: u64,
    /// What was completed in the last whole slot.
    pub last_slot: SlotWork,
    /// Reads in the device.
    pub in_flight: u32,
    /// Sessions that are read from it.
    pub sessions: u64,
    /// Mean rate of the streams that are read from it themselves and hold a reservation which
    /// newcomers cannot take.
    pub booked_rate: BitRate,
    /// Whether the disk is lost.
    pub lost: bool,
    /// Whether the disk is drained.
    pub draining: bool,
    /// Recordings for whose writes time is kept.
    pub recordings: usize,
    /// What is kept of the disk's time for them.
    pub write_share: WriteShare,
    /// The part by which the disk lately takes longer than its calibration says, in 1,024ths. By
    /// as much all reads are charged more, or fewer reads are guaranteed, until it recovers.
    pub slowdown: u64,
    /// The fewest reads that the disk completed in a slot lately; as guaranteed where it never did
    /// fewer. Only where admission counts reads.
    pub slowest_slot_reads: u32,
    /// The fewest reads in a slot in which the disk was never idle, in the last half hour of such
    /// slots; `None` before half a minute of them. Only where admission counts reads.
    pub observed_slot_reads: Option<u32>,
    /// The slack that the last decision left where the schedule is tightest; `None` where admission
    /// does not count disk time, or no session was admitted yet.
    pub guaranteed_slack: Option<Duration>,
    /// The smallest slack of the admitted schedule ahead, in reads (the least by which
    /// `min_read × slots` exceeds what is due).
    pub slack_reads: u64,
}

/// What a disk completed in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotWork {
    /// Reads for streams.
    pub reads: u32,
    /// The reads among them whose pieces were due in a later slot.
    pub ahead: u32,
    /// Permits of best-effort work, each for a read or a write.
    pub best_effort: u32,
    /// Writes of recordings in the time that is kept for them.
    pub writes: u32,
}

/// One session: its disk, its buffers and its account so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// The session.
    pub session: SessionId,
    /// The disk that it is read from.
    pub disk: DiskNumber,
    /// Length of what it plays.
    pub duration: Duration,
    /// Bytes read or being read for it that were not delivered yet.
    pub buffered: u64,
    /// The tracks that it holds a reservation for, or held until it was silent.
    pub tracks: Vec<TrackNumber>,
    /// Where its viewer is; `None` while it holds no reservation.
    pub progress: Option<PlayProgress>,
    /// The session's account so far.
    pub summary: SessionSummary,
}

/// Where the viewer of a session is, in the time of what is played: from the start of the part of
/// the title that was asked for, at the speed that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayProgress {
    /// The time that a player is at which has never paused, and never waited for bytes.
    pub clock: Duration,
    /// The tracks that the player has asked for; all that are reserved, before it has asked. Not
    /// empty.
    pub tracks: Vec<TrackProgress>,
}

/// How much of a track its player was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackProgress {
    /// The track.
    pub track: TrackNumber,
    /// The time up to which it was delivered, by whole pieces: not before the time of the last
    /// whole segment by more than a piece has.
    pub delivered_until: Duration,
    /// The end of the last byte that was delivered; zero before the first.
    pub delivered_to: u64,
}

impl DiskStatus {
    /// The part by which the disk lately takes longer than its calibration says; 0.5 is half again.
    pub fn slowdown_part(&self) -> f64 {
        slowdown_part(self.slowdown)
    }
}

impl Engine {
    /// The sessions that have been open for longest, at most `most`.
    pub fn sessions(&self, now: Moment, most: usize) -> Vec<SessionStatus> {
        let listed = self.sessions.iter().take(most);
        listed.map(|(id, session)| self.status_of(*id, session, now)).collect()
    }

    /// The session with this number; `None` if it has ended.
    pub fn session(&self, now: Moment, id: SessionId) -> Option<SessionStatus> {
        self.sessions.get(&id).map(|session| self.status_of(id, session, now))
    }

    fn status_of(&self, id: SessionId, session: &Session, now: Moment) -> SessionStatus {
        let streams = session.streams.iter().map(|stream| &self.streams[stream]);
        let held = streams.flat_map(Stream::held).map(|(_, piece)| u64::from(piece.len));
        SessionStatus {
            session: id,
            disk: session.layout.disk,
            duration: session.layout.duration,
            buffered: held.sum(),
            tracks: session.tracks.clone(),
            progress: self.progress_of(session, now),
            summary: *self.streams.accounts.of(id),
        }
    }

    fn progress_of(&self, session: &Session, now: Moment) -> Option<PlayProgress> {
        let streams = || session.streams.iter().map(|stream| &self.streams[stream]);
        let clock = streams().map(|stream| stream.clock().media_time(now)).min()?;
        let is_begun = streams().any(Stream::is_asked_for);
        let tracks = streams().filter(|stream| stream.is_asked_for() == is_begun);
        let tracks = tracks.map(|stream| TrackProgress {
            track: stream.track,
            delivered_until: stream.delivered_until(),
            delivered_to: stream.delivered_to(),
        });
        Some(PlayProgress { clock, tracks: tracks.collect() })
    }

    /// Sessions, counters and disks at this moment.
    pub fn status(&self, now: Moment) -> Status {
        let holds =
            |session: &&Session| session.streams.iter().any(|id| !self.streams[id].is_done());
        let follows =
            |session: &&Session| session.streams.iter().any(|id| self.streams[id].fed.is_some());
        let revocable =
            |session: &&Session| holds(session) && self.revocable_since(session, now).is_some();
        let stays = |session: &&Session| self.revocable_since(session, now).is_none();
        let staying = self.sessions.values().filter(stays);
        let streams = staying.flat_map(|session| &session.streams);
        let sent = streams.map(|id| &self.streams[id]).filter(|stream| !stream.is_done());
        Status {
            sent_rate: BitRate(sent.map(|stream| stream.mean_rate().0).sum()),
            sessions: self.sessions.len() as u64,
            active: self.sessions.values().filter(holds).count() as u64,
            revocable: self.sessions.values().filter(revocable).count() as u64,
            fills: self.fills.of(FillFor::Cache).into(),
            by_priority: Priority::ALL.map(|priority| {
                let of = |session: &&Session| session.priority == priority;
                self.sessions.values().filter(of).count() as u64
            }),
            following: self.sessions.values().filter(follows).count() as u64,
            intervals: self.streams.interval_bytes_held(),
            counters: self.streams.accounts.counters,
            buffers_used: self.streams.buffers_used(),
            buffers_total: self.streams.buffers.total(),
            buffers_limit: self.streams.bookings.memory_limit(),
            disks: (0..self.streams.bookings.disks.len())
                .map(|disk| self.disk_status(now, disk))
                .collect(),
        }
    }

    /// The viewers of each title who are there: with a reservation that newcomers cannot take.
    /// Fills are none.
    pub fn viewers(&self, now: Moment) -> BTreeMap<TitleKey, u64> {
        let mut viewers = BTreeMap::new();
        for session in self.sessions.values().filter(|session| session.fill.is_none()) {
            if !session.streams.is_empty() && self.revocable_since(session, now).is_none() {
                *viewers.entry(session.layout.title).or_default() += 1;
            }
        }
        viewers
    }

    fn disk_status(&self, now: Moment, disk: usize) -> DiskStatus {
        let here = |session: &&Session| usize::from(session.layout.disk.0) == disk;
        let sessions = self.sessions.values().filter(here).count() as u64;
        let stays = |session: &&Session| self.revocable_since(session, now).is_none();
        let staying = self.sessions.values().filter(here).filter(stays);
        let streams = staying.flat_map(|session| &session.streams);
        let read = streams.map(|id| &self.streams[id]).filter(|stream| stream.is_read());
        let booked_rate = BitRate(read.map(|stream| stream.mean_rate().0).sum());
        let bookings = &self.streams.bookings;
        DiskStatus {
            sessions,
            booked_rate,
            ..bookings.disks[disk].status(now, bookings.plans(disk))
        }
    }
}
