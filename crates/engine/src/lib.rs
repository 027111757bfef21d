//! The engine: events in, actions out. It knows every session, what each track is due and when,
//! what is in memory and what each disk guarantees; it decides admission, the order of reads and
//! which buffer to release.
//!
//! Sans-IO: it never touches a clock, a device, a socket or a thread. The server's shell and the
//! simulator drive the very same code.
//!
//! ```text
//!   admit, request, sent, cancel, close      ┌────────┐   AdmissionDecision, at once
//!   read_done, restore_disk              ───▶│ Engine │──▶
//!   request_best_effort, ..., tick           └────────┘   Action: Read, Deliver, Refused, ...
//!
//!   an admission request     admission ─▶ placement ─▶ evaluate ─▶ scheduler::admission
//!                            (refused: later, or in place of others: departure, preemption)
//!   a request for media      delivery ─▶ seek, where it is not contiguous ─▶ evaluate
//!   a read                   clock (a slot begins) ─▶ reading or sweeps ─▶ reading ─▶ delivery
//!   a lost disk              recovery or reading ─▶ loss ─▶ evaluate
//!   a disk that is too slow  clock (a slot begins) ─▶ overload
//! ```

mod admission;
mod api;
mod audit;
mod bookings;
mod buffers;
mod clock;
mod cut;
mod delivery;
mod departure;
mod drain;
mod extension;
mod handover;
mod headroom;
mod loss;
mod overload;
mod pieces;
mod preemption;
mod refusal;
mod seek;
mod sessions;
mod status;
mod stream;
mod streams;
mod switch;
mod table;

#[cfg(test)]
mod tests;

use scheduler::{DiskHistory, DiskTimings, Shortage, WriteDemand, WriteJob};
use sessions::{FillCounts, Requests, Session};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use stream::StreamId;
use streams::Streams;
use table::Table;
use units::{BitRate, ByteCount, Moment};

pub use api::*;
pub use cut::{LARGEST_PIECE, SMALLEST_PIECE, floor_power, lead_of, piece_size};
pub use headroom::Headroom;
pub use scheduler::Lead;
pub use status::{
    Counters, DiskStatus, PlayProgress, RefusalCounts, SessionStatus, SlotWork, Status,
    TrackProgress,
};

/// The engine. One owner drives it, in one thread.
///
/// # Calling order
///
/// Methods are of four kinds: construction, input, output and queries. After each input the owner
/// takes the actions and carries them out in their order; it calls [`Engine::tick`] no later than
/// [`Engine::next_wakeup`]. Time is an argument of each input and never goes back.
///
/// A driver's loop, here with a disk that takes 10 ms for each read and a socket that takes all at
/// once:
///
/// ```
/// # use engine::*;
/// # use std::{collections::BTreeMap, sync::{Arc, OnceLock}, time::Duration};
/// # use units::{ByteCount, Moment};
/// # const PIECE: u32 = 4096;
/// # let disk = DiskGuarantee {
/// #     min_read: 4,
/// #     read_size: ByteCount(u64::from(PIECE)),
/// #     longest_read: Duration::from_millis(100),
/// #     queue_depth: 1,
/// # };
/// # let config = EngineConfig {
/// #     slot: Duration::from_millis(500),
/// #     policy: scheduler::PolicyKind::VbrSim,
/// #     startup: Duration::from_secs(2),
/// #     buffers: ByteCount(20 * u64::from(PIECE)),
/// #     network: None,
/// #     reservation_hold: Duration::from_secs(10),
/// #     idle_timeout: Duration::from_secs(30),
/// #     session_timeout: Duration::from_secs(60),
/// #     survive_loss: false,
/// #     fills: 0,
/// #     disks: vec![disk],
/// # };
/// # let track = TrackLayout {
/// #     bytes: 40 * u64::from(PIECE),
/// #     piece: PIECE,
/// #     lead: engine::Lead::default(),
/// #     runs: std::iter::once(0..40 * u64::from(PIECE)).collect(),
/// #     due: (0..40).map(|piece| piece * 500).collect(),
/// #     stored: Vec::new(),
/// #     key_frames_of: None,
/// #     times: OnceLock::new(),
/// # };
/// # let (title, disk) = (TitleKey(1), DiskNumber(0));
/// # let layout = Layout { title, disk, duration: Duration::from_secs(20), tracks: vec![track] };
/// # let wanted = AdmitRequest {
/// #     layout: Arc::new(layout),
/// #     copies: vec![],
/// #     offers: vec![vec![0]],
/// #     start: Duration::ZERO,
/// #     max_wait: MaxWait::default(),
/// #     replaces: None,
/// #     fill: None,
/// #     priority: Priority::default(),
/// # };
/// enum Event {
///     ReadDone(ReadId),
///     Sent(RequestId, ReadId),
/// }
///
/// let mut engine = Engine::new(config);
/// let mut now = Moment::ZERO;
/// let AdmissionDecision::Admitted { session, .. } = engine.admit(now, wanted) else {
///     panic!("an empty server has room for one viewer");
/// };
/// let whole = Part { track: 0, bytes: 0..40 * u64::from(PIECE) };
/// engine.request(now, MediaRequest { request: RequestId(1), session, parts: vec![whole] });
///
/// let mut events = BTreeMap::<Moment, Vec<Event>>::new();
/// let mut complete = false;
/// while !complete {
///     for action in engine.take_actions() {
///         match action {
///             Action::Read { read, .. } => {
///                 let done = now + Duration::from_millis(10);
///                 events.entry(done).or_default().push(Event::ReadDone(read));
///             }
///             Action::Deliver { request, read, .. } => {
///                 events.entry(now).or_default().push(Event::Sent(request, read));
///             }
///             Action::Complete { .. } => complete = true,
///             _ => {}
///         }
///     }
///     let wakeup = engine.next_wakeup();
///     match events.first_entry().filter(|due| *due.key() <= wakeup) {
///         Some(due) => {
///             now = *due.key();
///             for event in due.remove() {
///                 match event {
///                     Event::ReadDone(read) => engine.read_done(now, read, ReadOutcome::Good),
///                     Event::Sent(request, read) => engine.sent(now, request, read),
///                 }
///             }
///         }
///         None => {
///             now = wakeup;
///             engine.tick(now);
///         }
///     }
/// }
/// engine.close(now, session);
/// assert!(engine.is_empty(), "nothing is booked when all have left");
/// assert_eq!(engine.status(now).counters.deadline_misses, 0);
/// ```
///
/// # Answers that actions need
///
/// - [`Action::Read`]: one `read_done`. The buffer lives until [`Action::Forget`]; the buffer of a
///   failed read is forgotten at once.
/// - [`Action::Deliver`]: one `sent`, or `cancel` of its request, also where the request was
///   refused or failed half-way, and where its session ended. The buffer stays until then.
/// - [`Action::Granted`]: one `best_effort_done`.
#[derive(Clone, Debug)]
pub struct Engine {
    config: EngineConfig,
    /// What players have open, and which streams are delivered to each. Within a call a session's
    /// streams may be off the books: decisions on it are made without them.
    sessions: Table<SessionId, Session>,
    /// Each is in its session's list, or detached.
    requests: Requests,
    /// The admitted streams with all that is booked and held for them.
    streams: Streams,
    admitting: bool,
    next_session: u64,
    /// The sessions that are fills.
    fills: FillCounts,
    /// The session that was last tried to be moved from a disk that is drained.
    last_moved: Option<SessionId>,
}

/// Construction, and what is learned of the disks.
impl Engine {
    /// An engine without sessions. A slot is made at least a millisecond, `startup` at least two
    /// slots (three where the loss of a disk must be survived).
    pub fn new(mut config: EngineConfig) -> Self {
        // Times are divided by the slot, so it must not be zero.
        config.slot = config.slot.max(SHORTEST_SLOT);
        let early = if config.survive_loss { bookings::EARLY_SLOTS } else { 0 };
        // What is admitted within a slot is read in the next one and is there at its end.
        config.startup = config.startup.max(config.slot * (2 + early));
        Self {
            sessions: Table::default(),
            requests: Requests::default(),
            streams: Streams::new(&config),
            admitting: true,
            next_session: 1,
            fills: FillCounts::default(),
            last_moved: None,
            config,
        }
    }

    /// Replaces a disk's calibration. Sessions that were admitted stay; later decisions go by it.
    pub fn set_guarantee(&mut self, now: Moment, disk: DiskNumber, guarantee: DiskGuarantee) {
        self.input(now, |engine| {
            let bookings = &mut engine.streams.bookings;
            if let Some(disk) = bookings.disk_index(disk) {
                bookings.disks[disk].recalibrate(guarantee);
            }
        });
    }

    /// Replaces the times of a disk, for policies that count them. While any session or request is
    /// open, whose booking stands on the old times, the new ones wait; until then the guard against
    /// slow disks is what protects decisions. A layout whose tracks were timed keeps those times.
    pub fn set_timings(&mut self, now: Moment, disk: DiskNumber, timings: DiskTimings) {
        self.input(now, |engine| {
            let bookings = &mut engine.streams.bookings;
            let Some(disk) = bookings.disk_index(disk) else { return };
            bookings.disks[disk].pending_timings = Some(timings);
            engine.apply_timings();
        });
    }

    /// Goes on with the history of a disk from an earlier run, after its guarantee and timings are
    /// set. False: the history is of other reads than these, and is not used.
    pub fn restore_history(&mut self, now: Moment, disk: DiskNumber, history: DiskHistory) -> bool {
        self.input(now, |engine| {
            let bookings = &mut engine.streams.bookings;
            let Some(disk) = bookings.disk_index(disk) else { return false };
            let plans = bookings.plans(disk);
            bookings.disks[disk].recall(history, plans)
        })
    }
}

/// Input: each tells what has happened at `now`.
impl Engine {
    /// A viewer wants to be admitted. An acceptance holds from now on; a refusal changes nothing.
    pub fn admit(&mut self, now: Moment, request: AdmitRequest) -> AdmissionDecision {
        self.input(now, |engine| engine.decide_admission(now, request))
    }

    /// The title of a session, which is still being recorded, has become longer: `layout` has the
    /// pieces of the session's layout, at the same places, and more of them. What is new is booked,
    /// due by the session's clock, and for a player that has come to the end of what it had no
    /// sooner than for a newcomer: returns the time by which its schedule moves later. Where it
    /// does not fit, says what is short, and the session goes on with what it has.
    pub fn extend(
        &mut self,
        now: Moment,
        session: SessionId,
        layout: Arc<Layout>,
    ) -> Result<Duration, Shortage> {
        self.input(now, |engine| engine.extend_session(now, session, layout))
    }

    /// Goes on with a session of an engine before this one, whose clock this one has. `request` has
    /// the title as it is now: its copies, the offers of the session, and the longest time by which
    /// its deadlines may move. The session is there from now on, with a reservation or without.
    pub fn take_over(
        &mut self,
        now: Moment,
        state: HandedSession,
        request: AdmitRequest,
    ) -> TakenOver {
        self.input(now, |engine| engine.go_on_with(now, state, request))
    }

    /// A player asks for bytes. The result comes as actions that name the request: `Deliver`s and
    /// `Complete`; or `Refused`, `Declined`, or `Failed` (also for a session or range that does not
    /// exist).
    pub fn request(&mut self, now: Moment, media: MediaRequest) {
        self.request_for(now, ResponsePlace::default(), media);
    }

    /// As [`Engine::request`], for one of several requests of one response. It is as old as the one
    /// before it, if that is still known: of two responses the one that began earlier goes first,
    /// however many requests they are made of.
    pub fn request_for(&mut self, now: Moment, place: ResponsePlace, media: MediaRequest) {
        // Before time advances: a stream that expires in this very tick is kept by its request.
        let tracks = media.parts.iter().map(|part| part.track).collect();
        self.note_activity(now, media.session, &tracks);
        self.input(now, |engine| engine.begin_request(now, media, place));
    }

    /// The socket has taken everything that was delivered to `request` out of buffer `read` by the
    /// oldest [`Action::Deliver`] not yet answered.
    pub fn sent(&mut self, now: Moment, request: RequestId, read: ReadId) {
        // An answer for a buffer that was not delivered shows no activity of a player.
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
            // The session may have ended by itself while this event was under way.
            if engine.sessions.contains_key(&session) {
                engine.end_session(now, session, true);
            }
        });
    }

    /// The viewer has ended its session. What its sockets hold is still answered for by `sent` or
    /// `cancel`.
    pub fn end(&mut self, now: Moment, session: SessionId) {
        self.input(now, |engine| {
            if engine.sessions.contains_key(&session) {
                engine.end_session(now, session, false);
            }
        });
    }

    /// The player of a session has a connection. So it counts before the first such call, too.
    /// Time does not advance, because nothing follows from it: a request over that connection comes
    /// at the same moment, and what expires at that moment is kept by the request.
    pub fn connected(&mut self, session: SessionId) {
        self.note_connected(session);
    }

    /// The player of a session has closed its last connection, or its half of it. From when on the
    /// reservation may be given to a newcomer who does not fit otherwise is decided from that, from
    /// the player's clock and from what it has asked for; until it is given away, or
    /// [`Engine::connected`] is called, nothing changes for the session.
    pub fn disconnected(&mut self, now: Moment, session: SessionId, how: Disconnection) {
        self.input(now, |engine| engine.note_disconnected(now, session, how));
    }

    /// A read has ended. Each [`Action::Read`] is answered once; a read that was never issued is
    /// ignored.
    pub fn read_done(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        self.read_done_within(now, read, outcome, Moment::ZERO..now);
    }

    /// [`Engine::read_done`] where it is known when the device had the read: not before the start
    /// of `device`, and it may have ended it at the end of `device`. What has passed from then on
    /// (threads that were not run) is no slowness of the disk.
    pub fn read_done_within(
        &mut self,
        now: Moment,
        read: ReadId,
        outcome: ReadOutcome,
        device: Range<Moment>,
    ) {
        self.input(now, |engine| engine.finish_read(now, read, outcome, &device));
    }

    /// Asks to do `bytes` (at most a read) of work without a deadline on `disk`;
    /// [`Action::Granted`] follows.
    pub fn request_best_effort(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        bytes: ByteCount,
    ) -> PermitId {
        self.input(now, |engine| engine.streams.queue_best_effort(disk, bytes))
    }

    /// Keeps time of a disk for writes that come again and again, if all sessions stay on time. Not
    /// more than this is kept, whatever is written. Otherwise says what is short.
    pub fn admit_recording(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        demand: WriteDemand,
    ) -> Result<RecordingId, Shortage> {
        self.input(now, |engine| engine.streams.admit_recording(now, disk, demand))
    }

    /// A recording has ended: what was kept for its writes is free.
    pub fn end_recording(&mut self, now: Moment, recording: RecordingId) {
        self.input(now, |engine| engine.streams.end_recording(now, recording));
    }

    /// Asks to make a write of a recording on its disk, in the time that is kept for it if it was
    /// admitted; [`Action::Granted`] follows, and
    /// [`Engine::best_effort_done`] answers it.
    pub fn request_write(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        recording: Option<RecordingId>,
        job: WriteJob,
    ) -> PermitId {
        self.input(now, |engine| engine.streams.queue_write(disk, recording, job))
    }

    /// Best-effort work, or a write, is done or given up (before or after it was granted).
    pub fn best_effort_done(&mut self, now: Moment, permit: PermitId) {
        self.input(now, |engine| engine.streams.finish_best_effort(now, permit));
    }

    /// The device of a disk is gone, as a read or a write has found that is for no session: the
    /// disk is lost, as after such a read for one.
    pub fn device_gone(&mut self, now: Moment, disk: DiskNumber) {
        self.input(now, |engine| {
            engine.watch_disk(now, usize::from(disk.0), ReadOutcome::Gone);
        });
    }

    /// A lost disk is there again, and the driver has checked what it holds. Says whether it is in
    /// use; it is not before all reads that it was given have ended.
    pub fn restore_disk(&mut self, now: Moment, disk: DiskNumber) -> bool {
        self.input(now, |engine| engine.bring_back(disk))
    }

    /// A disk is to be taken out, or is not after all. While it is drained, sessions leave it for
    /// copies on other disks as soon as they fit there at their deadlines, and new ones are read
    /// from it only where there is no other copy. False: there is no such disk.
    pub fn drain_disk(&mut self, now: Moment, disk: DiskNumber, drains: bool) -> bool {
        self.input(now, |engine| engine.set_draining(disk, drains))
    }

    /// A title is to be removed: no session is admitted to it any more. True: it is in use, and
    /// [`Action::TitleIdle`] follows.
    pub fn withdraw_title(&mut self, now: Moment, title: TitleKey) -> bool {
        self.input(now, |engine| engine.streams.withdraw(title))
    }

    /// Memory for pieces is `buffers` from now on, less than before or more. Admitted sessions keep
    /// what they have reserved: where that is more, it is given back as they need it no longer, and
    /// until then no session is admitted that would need it, and no more of it is reserved but for
    /// seeks. Pieces that nobody holds, and reads far ahead, are given up at once.
    pub fn set_memory(&mut self, now: Moment, buffers: ByteCount) {
        self.input(now, |engine| engine.streams.set_memory(now, buffers.0));
    }

    /// Sessions may reserve this rate of the network together from now on, and there may be so many
    /// fills. What is admitted goes on, also where it is more.
    pub fn set_limits(&mut self, now: Moment, network: Option<BitRate>, fills: u32) {
        self.config.network = network;
        self.config.fills = fills;
        self.input(now, |engine| engine.streams.bookings.set_network(network));
    }

    /// The server is stopping: no session is admitted any more. Running sessions go on.
    pub fn stop_admitting(&mut self) {
        self.admitting = false;
    }

    /// Time has passed. Harmless when called early or often.
    pub fn tick(&mut self, now: Moment) {
        self.input(now, |_| ());
    }

    // One input: time first, then what happened, then everything that follows from both.
    fn input<T>(&mut self, now: Moment, handle: impl FnOnce(&mut Self) -> T) -> T {
        // First, so that the event is decided on the books of its own slot.
        self.advance(now);
        let answer = handle(self);
        self.dispatch_and_serve(now);
        debug_assert!(self.streams.to_serve.is_empty(), "sessions are served before a call ends");
        answer
    }

    // Uses what is left of the slot, on every disk, and serves the sessions whose next piece is in
    // memory; what they take may free memory for further reads.
    fn dispatch_and_serve(&mut self, now: Moment) {
        loop {
            self.streams.leave_feeds(now);
            self.streams.dispatch(now);
            if self.streams.to_serve.is_empty() {
                return;
            }
            while let Some(session) = self.streams.to_serve.pop() {
                self.serve_session(now, session);
            }
        }
    }
}

/// Output: what the owner must do.
impl Engine {
    /// What is to be done now, in this order; each action is returned once.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.streams.actions)
    }

    /// Appends the actions of [`Engine::take_actions`] to the caller's own list.
    pub fn drain_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.streams.actions);
    }

    /// When [`Engine::tick`] must be called next, at the latest.
    pub fn next_wakeup(&self) -> Moment {
        // Without sessions and reads a slot changes nothing, so an idle server sleeps.
        if self.is_quiet() {
            Moment::MAX
        } else {
            let slot_end = self.streams.bookings.slot_end();
            let next_work = self.streams.next_work_at().unwrap_or(Moment::MAX);
            self.streams.next_opening().min(slot_end).min(next_work)
        }
    }

    /// Forgets the piece that has been unused for longest, at once and without an action, for a
    /// driver whose memory has room but not in one piece. `None`: all pieces in memory are in use.
    pub fn evict_oldest(&mut self) -> Option<ReadId> {
        self.streams.buffers.evict_oldest()
    }
}

/// Queries: they change nothing.
impl Engine {
    /// What use has shown of a disk, to be kept for [`Engine::restore_history`]; `None` for a disk
    /// that is lost or does not exist.
    pub fn disk_history(&self, disk: DiskNumber) -> Option<DiskHistory> {
        let bookings = &self.streams.bookings;
        let disk = &bookings.disks[bookings.disk_index(disk)?];
        (!disk.lost).then(|| disk.remembered())
    }

    /// All sessions but fills as another engine can go on with them, in the order in which it is to
    /// be given them.
    pub fn handed_sessions(&self) -> Vec<HandedSession> {
        self.states()
    }

    /// Whether one more fill may be asked for: there are fewer of its kind than there may be.
    pub fn has_room_for_fill(&self, fill: FillFor) -> bool {
        let most = match fill {
            FillFor::Cache => self.config.fills,
            FillFor::Node => MOST_NODE_FILLS,
        };
        self.fills.of(fill) < most
    }

    /// Whether nothing is booked anywhere.
    pub fn is_empty(&self) -> bool {
        self.streams.bookings.is_empty()
    }
}

/// A shorter slot would be spent on deciding what to do in it.
const SHORTEST_SLOT: Duration = Duration::from_millis(1);
