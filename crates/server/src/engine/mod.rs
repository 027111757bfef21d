//! The engine: events in, actions out. It knows every session, what each track is due and when,
//! what is in memory and what each disk guarantees; it decides admission, the order of reads and
//! which buffer to release.
//!
//! Sans-IO: it never touches a clock, a device, a socket or a thread. The server's shell and the
//! simulator drive the very same code.
//!
//! ```text
//!   admit, request, sent, cancel, close      ┌────────┐   AdmissionDecision, at once
//!   read_done, fail_disk, restore_disk   ───▶│ Engine │──▶
//!   request_best_effort, ..., tick           └────────┘   Action: Read, Deliver, Refused, ...
//!
//!   an admission request     admission ─▶ placement ─▶ evaluate ─▶ scheduler::admission
//!                            (refused: later)
//!   a request for media      delivery ─▶ seek, where it is not contiguous ─▶ evaluate
//!   a read                   clock (a slot begins) ─▶ reading or sweeps ─▶ reading ─▶ delivery
//!   a lost disk              recovery or reading ─▶ loss ─▶ evaluate
//! ```
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod admission;
mod api;
mod audit;
mod best_effort;
mod buffers;
mod clock;
mod delivery;
mod disks;
mod evaluate;
mod failover;
mod guarantee;
mod later;
mod loss;
mod pieces;
mod placement;
mod reading;
mod recovery;
mod seek;
mod sessions;
mod start;
mod status;
mod streams;
mod sweeps;
mod table;
mod titles;

#[cfg(test)]
mod tests;

use buffers::Buffers;
use disks::Disk;
use evaluate::DemandPool;
use failover::FailoverBooks;
use scheduler::{DiskHistory, DiskTimings, NetworkBooks, shares};
use sessions::{Requests, Session};
use std::time::Duration;
use streams::{Stream, StreamId};
use table::Table;
use titles::Titles;
use units::{ByteCount, Moment, SlotIndex};

pub use api::*;
pub use status::{DiskStatus, SessionStatus, Status};

/// The engine. One owner drives it, in one thread.
///
/// # Calling order
///
/// Methods are of four kinds: construction, input, output and queries. After each input the owner
/// takes the actions and carries them out in their order; it calls [`Engine::tick`] no later than
/// [`Engine::next_wakeup`]. Time is an argument of each input and never goes back. The loop, as the
/// test `a_driver_s_loop` runs it:
///
/// ```text
/// loop {
///     for action in engine.take_actions() { carry out, which may queue events }
///     match next event before engine.next_wakeup() {
///         Some(event) => engine.admit | request | sent | read_done | ... (now, event),
///         None => engine.tick(now),
///     }
/// }
/// ```
///
/// # Answers that actions need
///
/// - [`Action::Read`]: one `read_done`. The buffer lives until [`Action::Forget`]; the buffer of a
///   failed read is forgotten at once.
/// - [`Action::Deliver`]: one `sent`, or `cancel` of its request, also where the request was
///   refused or failed half-way, and where its session ended. The buffer stays until then.
/// - [`Action::Granted`]: one `best_effort_done`.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    /// The slot that runs at `now`. Everything that slots begin with has been done for it.
    slot: SlotIndex,
    now: Moment,
    disks: Vec<Disk>,
    network: NetworkBooks,
    /// Pinned once for each piece that a stream holds and each delivery that a socket has not
    /// taken.
    buffers: Buffers,
    sessions: Table<SessionId, Session>,
    /// Each is in its session's list, and booked on its disk, the network and the failover books.
    /// Within a call a stream may be off all of them: decisions are made without it.
    streams: Table<StreamId, Stream>,
    requests: Requests,
    titles: Titles,
    admitting: bool,
    counters: Counters,
    next_session: u64,
    next_stream: u64,
    next_permit: u64,
    /// Sessions whose next piece may have come into memory during this call. Empty between calls.
    to_serve: Vec<SessionId>,
    demands: DemandPool,
    failover: FailoverBooks,
    /// Not taken by the owner yet.
    actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    admitted: u64,
    downgraded: u64,
    refused_disk: u64,
    refused_memory: u64,
    refused_network: u64,
    deadline_misses: u64,
    violations_by_scheduler: u64,
    violations_by_disk: u64,
    on_time: u64,
    cache_hits: u64,
    delivered: u64,
    refused_for_loss: u64,
    moved: u64,
    ended_by_loss: u64,
}

/// Construction, and what is learned of the disks.
impl Engine {
    /// An engine without sessions. A slot is made at least a millisecond, `startup` at least two
    /// slots (three where the loss of a disk must be survived).
    pub fn new(mut config: EngineConfig) -> Self {
        config.slot = config.slot.max(SHORTEST_SLOT);
        let early = if config.survive_loss { failover::EARLY_SLOTS } else { 0 };
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
            sessions: Table::default(),
            streams: Table::default(),
            requests: Requests::default(),
            titles: Titles::default(),
            admitting: true,
            counters: Counters::default(),
            next_session: 1,
            next_stream: 0,
            next_permit: 0,
            to_serve: Vec::new(),
            demands: DemandPool::default(),
            failover: FailoverBooks::new(config.disks.len(), config.survive_loss),
            actions: Vec::new(),
            config,
        }
    }

    /// Replaces a disk's calibration. Sessions that were admitted stay; later decisions go by it.
    pub fn set_guarantee(&mut self, now: Moment, disk: DiskNumber, guarantee: DiskGuarantee) {
        self.input(now, |engine| {
            if let Some(disk) = engine.disk_index(disk) {
                engine.disks[disk].recalibrate(guarantee);
            }
        });
    }

    /// Replaces the times of a disk, for policies that count them. While any session or request is
    /// open, whose booking stands on the old times, the new ones wait; until then the guard against
    /// slow disks is what protects decisions. A layout whose tracks were timed keeps those times.
    pub fn set_timings(&mut self, now: Moment, disk: DiskNumber, timings: DiskTimings) {
        self.input(now, |engine| {
            let Some(disk) = engine.disk_index(disk) else { return };
            engine.disks[disk].pending_timings = Some(timings);
            engine.apply_timings();
        });
    }

    /// Goes on with the history of a disk from an earlier run, after its guarantee and timings are
    /// set. False: the history is of other reads than these, and is not used.
    pub fn restore_history(&mut self, now: Moment, disk: DiskNumber, history: DiskHistory) -> bool {
        self.input(now, |engine| {
            let Some(disk) = engine.disk_index(disk) else { return false };
            let plans = engine.plans(disk);
            engine.disks[disk].recall(history, plans)
        })
    }
}

/// Input: each tells what has happened at `now`.
impl Engine {
    /// A viewer wants to be admitted. An acceptance holds from now on; a refusal changes nothing.
    pub fn admit(&mut self, now: Moment, request: AdmitRequest) -> AdmissionDecision {
        self.input(now, |engine| engine.decide_admission(now, request))
    }

    /// A player asks for bytes. The result comes as actions that name the request: `Deliver`s and
    /// `Complete`; or `Refused`, `Declined`, or `Failed` (also for a session or range that does not
    /// exist).
    pub fn request(&mut self, now: Moment, media: MediaRequest) {
        let tracks = media.parts.iter().map(|part| part.track).collect();
        self.note_activity(now, media.session, &tracks);
        self.input(now, |engine| engine.begin_request(now, media));
    }

    /// The socket has taken everything that was delivered to `request` out of buffer `read` by the
    /// oldest [`Action::Deliver`] not yet answered.
    pub fn sent(&mut self, now: Moment, request: RequestId, read: ReadId) {
        if let Some((session, tracks)) = self.activity_of_sent(request, read) {
            self.note_activity(now, session, &tracks);
        }
        self.input(now, |engine| engine.finish_sent(now, request, read));
    }

    /// The player has hung up on `request`, or its connection failed: nothing of it is in use.
    pub fn cancel(&mut self, now: Moment, request: RequestId) {
        if let Some((session, tracks)) = self.activity_of_cancelled(request) {
            self.note_activity(now, session, &tracks);
        }
        self.input(now, |engine| engine.cancel_request(now, request));
    }

    /// The viewer has left; the session's requests are cancelled with it.
    pub fn close(&mut self, now: Moment, session: SessionId) {
        self.input(now, |engine| {
            if engine.sessions.contains_key(&session) {
                engine.end_session(now, session, true);
            }
        });
    }

    /// A read has ended. Each [`Action::Read`] is answered once; a read that was never issued is
    /// ignored.
    pub fn read_done(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        self.input(now, |engine| engine.end_read(now, read, outcome));
    }

    /// Asks to do `bytes` (at most a read) of work without a deadline on `disk`;
    /// [`Action::Granted`] follows.
    pub fn request_best_effort(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        bytes: ByteCount,
    ) -> PermitId {
        self.input(now, |engine| engine.queue_best_effort(disk, bytes))
    }

    /// Best-effort work is done, or given up (before or after it was granted).
    pub fn best_effort_done(&mut self, now: Moment, permit: PermitId) {
        self.input(now, |engine| engine.finish_best_effort(now, permit));
    }

    /// A disk is no more. Harmless when it is lost already.
    pub fn fail_disk(&mut self, now: Moment, disk: DiskNumber) {
        self.input(now, |engine| {
            if let Some(disk) = engine.disk_index(disk) {
                engine.lose_disk_once(now, disk);
            }
        });
    }

    /// A lost disk is there again, and the driver has checked what it holds. Says whether it is in
    /// use; it is not before all reads that it was given have ended.
    pub fn restore_disk(&mut self, now: Moment, disk: DiskNumber) -> bool {
        self.input(now, |engine| engine.bring_back(disk))
    }

    /// A title is to be removed: nobody is admitted to it any more. True: it is still in use, and
    /// [`Action::TitleIdle`] follows.
    pub fn withdraw_title(&mut self, now: Moment, title: TitleKey) -> bool {
        self.input(now, |engine| engine.withdraw(title))
    }

    /// The server is stopping: nobody is admitted any more. Running sessions go on.
    pub fn stop_admitting(&mut self) {
        self.admitting = false;
    }

    /// Time has passed. Harmless when called early or often.
    pub fn tick(&mut self, now: Moment) {
        self.input(now, |_| ());
    }

    // One input: time first, then what happened, then everything that follows from both.
    fn input<T>(&mut self, now: Moment, handle: impl FnOnce(&mut Self) -> T) -> T {
        self.advance(now);
        let answer = handle(self);
        self.dispatch_and_serve(now);
        debug_assert!(self.to_serve.is_empty(), "everyone was served");
        answer
    }
}

/// Output: what the owner must do.
impl Engine {
    /// What is to be done now, in this order; each action is returned once.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Appends the actions of [`Engine::take_actions`] to the caller's own list.
    pub fn drain_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// When [`Engine::tick`] must be called next, at the latest.
    pub fn next_wakeup(&self) -> Moment {
        if self.is_quiet() { Moment::MAX } else { self.slot.next().start(self.config.slot) }
    }

    /// Forgets the piece that has been unused for longest, at once and without an action, for a
    /// driver whose memory has room but not in one piece. `None`: all pieces in memory are in use.
    pub fn evict_oldest(&mut self) -> Option<ReadId> {
        self.buffers.evict_oldest()
    }
}

/// Queries: they change nothing.
impl Engine {
    /// Sessions, counters and disks at this moment.
    pub fn status(&self, now: Moment) -> Status {
        self.overall_status(now)
    }

    /// The sessions that have been open for longest, at most `most`.
    pub fn sessions(&self, most: usize) -> Vec<SessionStatus> {
        self.session_status(most)
    }

    /// What use has shown of a disk, to be kept for [`Engine::restore_history`]; `None` for a disk
    /// that is lost or does not exist.
    pub fn disk_history(&self, disk: DiskNumber) -> Option<DiskHistory> {
        let disk = &self.disks[self.disk_index(disk)?];
        (!disk.lost).then(|| disk.remembered())
    }

    /// Whether nothing is booked anywhere.
    pub fn is_empty(&self) -> bool {
        self.nothing_is_booked()
    }

    /// Checks that books, buffers and queues agree with the sessions; says what does not. Slow.
    pub fn audit(&mut self) -> Result<(), String> {
        self.audit_books()
    }

    /// The disk's index, if there is such a disk.
    fn disk_index(&self, disk: DiskNumber) -> Option<usize> {
        let index = usize::from(disk.0);
        (index < self.disks.len()).then_some(index)
    }
}

/// A shorter slot would be spent on deciding what to do in it.
const SHORTEST_SLOT: Duration = Duration::from_millis(1);
