//! The engine: events in, actions out. It knows every session, what each track owes and when, what
//! is in memory and what each disk guarantees; it decides admission, the order of reads and which
//! buffer to let go.
//!
//! Sans-IO: it never touches a clock, a device, a socket or a thread. The server's shell and the
//! simulator drive the very same code.
//!
//! ```text
//!   lose_disk,
//!   admit, want, sent, cancel, close        Answer (at once)
//!   read_done, tick                ┌────────┐
//!   ──────────────────────────────▶│ Engine │──▶ Action: Read, Deliver, Forget, Refused, Failed,
//!                                  └────────┘            Ended, Granted
//! ```
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod api;
mod audit;
mod best_effort;
mod buffers;
mod certificate;
mod clock;
mod copies;
mod decide;
mod delivery;
mod disks;
mod door;
mod jump;
mod later;
mod loss;
mod pieces;
mod reading;
mod recovery;
mod sessions;
mod standby;
mod start;
mod status;
mod streams;
mod survival;
mod sweeps;
mod titles;

#[cfg(test)]
mod tests;

use buffers::{Buffers, PieceKey};
use disks::Disk;
use scheduler::{Demand, Facts, NetworkBooks, Remembered, shares};
use sessions::{Request, Session};
use standby::Standby;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use streams::{Stream, StreamId};
use titles::Titles;
use units::{Moment, SlotIndex};

pub use api::*;
pub use status::{DiskStatus, SessionStatus, Status};

/// The engine. One owner drives it: call a method, then carry out [`Engine::take_actions`], and
/// call [`Engine::tick`] no later than [`Engine::next_wakeup`].
///
/// What the driver owes: each [`Action::Read`] is answered by one `read_done`; its buffer lives
/// until [`Action::Forget`] (a failed read is forgotten at once). Each [`Action::Deliver`] is
/// answered by `sent`, or by `cancel` of its request, also when the request was refused or failed
/// half-way and when its session ended: until then the buffer stays. Each [`Action::Granted`] is
/// answered by `best_effort_done`.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    slot: SlotIndex,
    now: Moment,
    disks: Vec<Disk>,
    network: NetworkBooks,
    buffers: Buffers,
    sessions: BTreeMap<SessionId, Session>,
    streams: BTreeMap<StreamId, Stream>,
    requests: BTreeMap<RequestId, Request>,
    // Pieces that requests wait for.
    awaited: BTreeSet<(PieceKey, RequestId)>,
    titles: Titles,
    admitting: bool,
    counters: Counters,
    next_session: u64,
    next_stream: u64,
    next_ticket: u64,
    next_number: u64,
    // Sessions whose next piece may have come into memory just now.
    to_serve: Vec<SessionId>,
    // What is being decided on; kept for its memory.
    demand: Demand,
    // The spare of whom is being decided on, and what came of that: the loss, and the disk short then.
    spare: Option<usize>,
    without: Option<(usize, usize)>,
    standby: Standby,
    actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    admitted: u64,
    smaller: u64,
    refused_disk: u64,
    refused_memory: u64,
    refused_network: u64,
    glitches: u64,
    broken: u64,
    void: u64,
    on_time: u64,
    cache_hits: u64,
    delivered: u64,
    refused_for_loss: u64,
    moved: u64,
    ended_by_loss: u64,
}

impl Engine {
    /// An engine without sessions. A slot is at least a millisecond, `startup` at least two slots.
    pub fn new(mut config: EngineConfig) -> Self {
        config.slot = config.slot.max(SHORTEST_SLOT);
        let early = if config.survive_loss { standby::EARLY } else { 0 };
        config.startup = config.startup.max(config.slot * (2 + early));
        let rate = |disk: &DiskGuarantee| u64::from(disk.min_read).saturating_mul(disk.read_size.0);
        let weights: Vec<u64> = config.disks.iter().map(rate).collect();
        let memory = shares(config.buffers.0, &weights);
        let disks = config.disks.iter().zip(memory);
        Self {
            disks: disks
                .map(|(guarantee, memory)| Disk::new(*guarantee, memory, config.slot))
                .collect(),
            slot: SlotIndex(0),
            now: Moment::ZERO,
            network: NetworkBooks::default(),
            buffers: Buffers::new(config.buffers.0),
            sessions: BTreeMap::new(),
            streams: BTreeMap::new(),
            requests: BTreeMap::new(),
            awaited: BTreeSet::new(),
            titles: Titles::default(),
            admitting: true,
            counters: Counters::default(),
            next_session: 1,
            next_stream: 0,
            next_ticket: 0,
            next_number: 0,
            to_serve: Vec::new(),
            demand: Demand::default(),
            spare: None,
            without: None,
            standby: Standby::new(config.disks.len(), config.survive_loss),
            actions: Vec::new(),
            config,
        }
    }

    /// A new calibration. What was admitted stays; what is admitted from now on goes by this.
    pub fn set_guarantee(&mut self, now: Moment, disk: DiskNumber, guarantee: DiskGuarantee) {
        self.advance(now);
        let Some(disk) = self.disk_index(disk) else { return };
        self.disks[disk].recalibrate(guarantee);
        self.use_leftovers(now);
    }

    /// What is known of a disk's times: from now on whoever counts them goes by this. While anybody
    /// is here, whose booking stands on what was known when it was made, it waits for the house to be
    /// empty; until then the second guard sees to it that a disk that became slower is not believed.
    /// A layout whose tracks were timed before keeps those times.
    pub fn set_facts(&mut self, now: Moment, disk: DiskNumber, facts: Facts) {
        self.advance(now);
        let Some(disk) = self.disk_index(disk) else { return };
        self.disks[disk].new_facts = Some(facts);
        self.learn_facts();
    }

    /// What is known of a disk from using it, to be kept until it is used again; `None` for one that
    /// is lost, or is not there.
    pub fn remembered(&self, disk: DiskNumber) -> Option<Remembered> {
        let disk = &self.disks[self.disk_index(disk)?];
        (!disk.lost).then(|| disk.remembered())
    }

    /// Goes by what was kept of a disk, once its guarantee and facts are told. Says whether it does:
    /// not by what was seen of reads of another kind.
    pub fn recall(&mut self, now: Moment, disk: DiskNumber, remembered: Remembered) -> bool {
        self.advance(now);
        let Some(disk) = self.disk_index(disk) else { return false };
        let plans = self.plans(disk);
        self.disks[disk].recall(remembered, plans)
    }

    // Takes over what is known of the disks, if nobody is here.
    fn learn_facts(&mut self) {
        if self.sessions.is_empty() && self.requests.is_empty() {
            for disk in &mut self.disks {
                disk.learn();
            }
        }
    }

    /// Forgets the piece that nobody has needed for longest, at once and without an action, for a
    /// driver whose memory has room but not in one piece. `None`: all that is there is needed.
    pub fn give_up_oldest(&mut self) -> Option<ReadId> {
        self.buffers.give_up_oldest()
    }

    /// From now on nobody is let in; running sessions go on.
    pub fn stop_admitting(&mut self) {
        self.admitting = false;
    }

    /// What is to be done now, in this order; taken once.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Like [`Engine::take_actions`], appended to the caller's own list.
    pub fn drain_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// The layout that a session plays; `None` for a session that has ended or never was.
    pub fn session_layout(&self, session: SessionId) -> Option<&Arc<Layout>> {
        self.sessions.get(&session).map(|session| &session.layout)
    }

    /// The tracks that a session holds or last held a reservation for.
    pub fn session_tracks(&self, session: SessionId) -> Option<&[TrackNumber]> {
        self.sessions.get(&session).map(|session| session.tracks.as_slice())
    }

    /// Sessions of a title that have not ended.
    pub fn title_sessions(&self, title: TitleKey) -> usize {
        self.titles.sessions(title)
    }
}

/// A shorter slot would be spent on deciding what to do in it.
const SHORTEST_SLOT: Duration = Duration::from_millis(1);
