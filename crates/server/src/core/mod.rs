//! The core: one thread that owns the engine, hears events from everybody and carries out what the
//! engine says. The only place where anything is decided about viewers and disks.
//!
//! ```text
//!   HTTP threads ──Admit, Want, Sent, Cancel──▶ ┌────────┐ ──Accepted, Deliver, ...──▶ HTTP threads
//!   disk threads ──ReadDone───────────────────▶ │  Core  │ ──Job────────────────────▶ disk threads
//!   ingest, opener ──AskTurn──────────────────▶ │ Engine │ ──grant──────────────────▶ ingest, opener
//!   control ──Withdraw, Stop──────────────────▶ └────────┘
//! ```

mod acts;
mod event;

pub(crate) use event::{Caller, Event, NotAdmitted, Notice, Undone, Visit};

use crate::clock::Clock;
use crate::disks::Disk;
use crate::engine::{
    Action, AdmitRequest, Answer, Engine, ReadId, ReadOutcome, RequestId, SessionId, SessionStatus,
    Ticket, TitleKey,
};
use crate::keeper::{self, Kept};
use crate::library::{OpenTitle, Place};
use crate::pace::AskId;
use crate::sessions::Session;
use crate::shared::Shared;
use crate::shelving;
use crate::wire::{self, Watched};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use device::sockets::Waker;
use device::{Pool, SharedBuffer};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// Where events go in.
#[derive(Clone, Debug)]
pub(crate) struct CoreHandle {
    // Not bounded here: what is on its way is bounded by connections, windows and queue depths.
    events: Sender<Event>,
}

impl CoreHandle {
    /// A handle and what it feeds.
    pub(crate) fn new() -> (Self, Receiver<Event>) {
        let (events, queue) = unbounded();
        (Self { events }, queue)
    }

    /// Tells the core. After the core has ended, nobody listens.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// A thread that speaks HTTP, as the core sees it.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) notices: Sender<Notice>,
    pub(crate) waker: Waker,
}

impl WorkerHandle {
    /// Tells the thread and wakes it.
    pub(crate) fn tell(&self, notice: Notice) {
        let _ = self.notices.send(notice);
        self.waker.wake();
    }
}

/// See the head of this file.
pub(crate) struct Core {
    engine: Engine,
    clock: Clock,
    slot: Duration,
    shared: Arc<Shared>,
    // Its own, for those who tell it later.
    handle: CoreHandle,
    events: Receiver<Event>,
    workers: Vec<WorkerHandle>,
    disks: Vec<Disk>,
    pool: Pool,
    sessions: HashMap<SessionId, Seat>,
    requests: HashMap<RequestId, Asked>,
    buffers: HashMap<ReadId, SharedBuffer>,
    titles: HashMap<TitleKey, Played>,
    // Let in for later, and when they are told.
    later: Vec<(Moment, Caller, Arc<Session>)>,
    withdrawn: HashSet<TitleKey>,
    // Hidden copies whose space is in use, and the titles in play that they are copies of.
    leaving: Vec<(Place, HashSet<TitleKey>)>,
    turns: HashMap<AskId, Ticket>,
    grants: HashMap<Ticket, Sender<()>>,
    actions: Vec<Action>,
    published: Option<SlotIndex>,
    keeper: Sender<Kept>,
    kept_at: Moment,
    stop_at: Option<Moment>,
}

/// A session and its open requests.
struct Seat {
    session: Arc<Session>,
    requests: HashSet<RequestId>,
}

struct Asked {
    caller: Caller,
    session: SessionId,
}

/// A title with sessions.
struct Played {
    title: Arc<OpenTitle>,
    // As its last viewer asked for it.
    name: String,
    sessions: u64,
}

impl Core {
    pub(crate) fn new(
        engine: Engine,
        slot: Duration,
        shared: Arc<Shared>,
        (handle, events): (CoreHandle, Receiver<Event>),
        workers: Vec<WorkerHandle>,
        (disks, keeper): (Vec<Disk>, Sender<Kept>),
        pool: Pool,
    ) -> Self {
        Self {
            engine,
            clock: shared.clock,
            slot,
            shared,
            handle,
            events,
            workers,
            disks,
            pool,
            sessions: HashMap::new(),
            requests: HashMap::new(),
            buffers: HashMap::new(),
            titles: HashMap::new(),
            later: Vec::new(),
            withdrawn: HashSet::new(),
            leaving: Vec::new(),
            turns: HashMap::new(),
            grants: HashMap::new(),
            actions: Vec::new(),
            published: None,
            keeper,
            kept_at: Moment::ZERO,
            stop_at: None,
        }
    }

    /// Serves until told to stop and nobody plays any more.
    pub(crate) fn run(mut self) {
        loop {
            let told = self.later.iter().map(|(at, ..)| *at).min().unwrap_or(Moment::MAX);
            let wake_up = self.engine.next_wakeup().min(self.next_slot()).min(told);
            let wait = wake_up.since(self.clock.now()).min(LONGEST_WAIT);
            match self.events.recv_timeout(wait) {
                Ok(event) => {
                    self.hear(event);
                    // A burst is heard whole before anything is carried out, but not for ever.
                    for _ in 0..BURST {
                        let Ok(event) = self.events.try_recv() else { break };
                        self.hear(event);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            if now >= self.engine.next_wakeup() {
                self.engine.tick(now);
            }
            self.act();
            self.tell_the_later(now);
            self.publish(now);
            if self.is_over(now) {
                self.keep(now);
                return;
            }
        }
    }

    fn hear(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Admit { caller, visit } => self.admit(caller, visit),
            Event::List { caller } => self.list(caller),
            Event::Close { session } => {
                self.engine.close(now, session);
                self.end(session, Undone::Ended);
            }
            Event::Want { caller, want } => {
                let request = want.request;
                let Some(seat) = self.sessions.get_mut(&want.session) else {
                    self.tell_undone(caller, request, Undone::Ended);
                    return;
                };
                seat.requests.insert(request);
                self.requests.insert(request, Asked { caller, session: want.session });
                self.engine.want(now, want);
                // What stands in the way at once is said at once, instead of `Accepted`.
                self.act();
                if self.requests.contains_key(&request) {
                    let connection = caller.connection;
                    self.tell(caller.worker, Notice::Accepted { connection, request });
                }
            }
            Event::Sent { request, read } => self.engine.sent(now, request, read),
            Event::Cancel { request } => {
                self.engine.cancel(now, request);
                self.forget_request(request);
            }
            Event::ReadDone { read, result } => {
                let outcome = match result {
                    Ok(buffer) => {
                        self.buffers.insert(read, buffer);
                        ReadOutcome::Good
                    }
                    Err(outcome) => outcome,
                };
                self.engine.read_done(now, read, outcome);
            }
            Event::AskTurn { ask, disk, bytes, grant } => {
                let ticket = self.engine.ask_best_effort(now, disk, bytes);
                self.turns.insert(ask, ticket);
                self.grants.insert(ticket, grant);
            }
            Event::TurnDone { ask } => {
                if let Some(ticket) = self.turns.remove(&ask) {
                    self.grants.remove(&ticket);
                    self.engine.best_effort_done(now, ticket);
                }
            }
            Event::Withdraw { copy, in_use } => self.withdraw(copy, &in_use),
            Event::Guarantee { disk, guarantee, facts } => {
                self.engine.set_guarantee(now, disk, guarantee);
                self.engine.set_facts(now, disk, *facts);
            }
            Event::Restore { disk, back } => {
                let _ = back.send(self.engine.restore_disk(now, disk));
            }
            Event::Stop { grace } => {
                self.engine.stop_admitting();
                self.shared.stopping.store(true, Ordering::Relaxed);
                self.stop_at = Some(self.stop_at.map_or(now + grace, |at| at.min(now + grace)));
            }
        }
        self.act();
    }

    fn admit(&mut self, caller: Caller, visit: Visit) {
        let result = match self.try_admit(visit) {
            Ok((session, wait)) if wait > Duration::ZERO => {
                return self.later.push((self.clock.now() + wait, caller, session));
            }
            Ok((session, _)) => Ok(session),
            Err(why) => Err(why),
        };
        self.tell(caller.worker, Notice::Admitted { connection: caller.connection, result });
    }

    /// Tells those whose start has come that they are in.
    fn tell_the_later(&mut self, now: Moment) {
        for (_, caller, session) in self.later.extract_if(.., |(at, ..)| *at <= now) {
            let (connection, result) = (caller.connection, Ok(session));
            self.workers[caller.worker].tell(Notice::Admitted { connection, result });
        }
    }

    fn try_admit(&mut self, visit: Visit) -> Result<(Arc<Session>, Duration), NotAdmitted> {
        let Visit { title, showing, name, shape, patience, instead_of } = visit;
        if self.withdrawn.contains(&title.key) {
            return Err(NotAdmitted::Gone);
        }
        if self.stop_at.is_some() {
            return Err(NotAdmitted::Stopping);
        }
        let token = self.shared.sessions.token();
        let token = token.map_err(|error| NotAdmitted::Failed(error.to_string()))?;
        let (layout, copies) = showing.layouts(shape).split_first().ok_or(NotAdmitted::NoShape)?;
        let (layout, copies) = (Arc::clone(layout), copies.to_vec());
        let (offers, from) = (showing.offers().to_vec(), Duration::ZERO);
        let request = AdmitRequest { layout, copies, offers, from, patience, instead_of };
        match self.engine.admit(self.clock.now(), request) {
            Answer::Refused(refusal) => Err(NotAdmitted::Refused(refusal)),
            Answer::Admitted { session: id, offer, wait } => {
                let played = Played { title: Arc::clone(&title), name: name.clone(), sessions: 0 };
                let played = self.titles.entry(title.key).or_insert(played);
                played.sessions += 1;
                played.name.clone_from(&name);
                let session = Session::new(id, token, (title, showing), name, offer);
                let session = Arc::new(session);
                self.shared.sessions.enter(Arc::clone(&session));
                let seat = Seat { session: Arc::clone(&session), requests: HashSet::new() };
                self.sessions.insert(id, seat);
                Ok((session, wait))
            }
        }
    }

    /// A hidden copy's space is freed when nobody plays a title that it was a copy of.
    fn withdraw(&mut self, copy: Place, in_use: &Sender<bool>) {
        let mut used = HashSet::new();
        for title in self.shared.titles.withdraw(copy) {
            self.withdrawn.insert(title);
            self.shared.titles.forget(title);
            if self.engine.withdraw_title(self.clock.now(), title) {
                used.insert(title);
            }
        }
        let _ = in_use.send(!used.is_empty());
        if used.is_empty() {
            self.release(copy);
        } else {
            self.leaving.push((copy, used));
        }
    }

    /// Nobody plays a withdrawn title any more.
    fn title_idle(&mut self, title: TitleKey) {
        for (_, used) in &mut self.leaving {
            used.remove(&title);
        }
        let gone: Vec<_> = self.leaving.extract_if(.., |(_, used)| used.is_empty()).collect();
        gone.into_iter().for_each(|(copy, _)| self.release(copy));
    }

    fn release(&self, copy: Place) {
        self.shared.titles.shelves[copy.shelf].store.release(copy.id);
    }

    fn next_slot(&self) -> Moment {
        self.published.map_or(Moment::ZERO, |slot| slot.next().start(self.slot))
    }

    /// Once a slot, lays the books open for metrics and the console.
    fn publish(&mut self, now: Moment) {
        let slot = SlotIndex::at(now, self.slot);
        if self.published == Some(slot) {
            return;
        }
        self.published = Some(slot);
        if now.since(self.kept_at) >= keeper::EVERY {
            self.keep(now);
        }
        let watched = self.titles.values();
        let watched = watched.map(|w| Watched { title: w.name.clone(), sessions: w.sessions });
        let watched = watched.collect();
        let status = self.engine.status(now);
        self.say_who_is_slow(&status);
        self.shared.publish(slot, status, watched);
    }

    /// Has what the disks were seen to do kept with their stores.
    fn keep(&mut self, now: Moment) {
        self.kept_at = now;
        for disk in (0..self.disks.len()).map(shelving::number) {
            if let Some(remembered) = self.engine.remembered(disk) {
                // A keeper that has no room, or is gone, is told the next time, or never.
                let _ = self.keeper.try_send(Kept { disk, remembered });
            }
        }
    }

    fn list(&self, caller: Caller) {
        let sessions = self.engine.sessions(SESSIONS_LISTED);
        let sessions = sessions.iter().filter_map(|session| self.listed(session)).collect();
        let list = wire::SessionList { total: self.sessions.len() as u64, sessions };
        let connection = caller.connection;
        self.tell(caller.worker, Notice::Listed { connection, list });
    }

    fn listed(&self, status: &SessionStatus) -> Option<wire::SessionStatus> {
        let SessionStatus { session, disk, buffered, summary } = status;
        let seat = &self.sessions.get(session)?.session;
        let store = &self.shared.titles.shelves[usize::from(disk.0)].path;
        Some(wire::SessionStatus {
            session: session.0,
            title: seat.name.clone(),
            store: store.display().to_string(),
            age: seat.admitted.elapsed().as_secs_f64(),
            buffered: *buffered,
            delivered: summary.delivered,
            promised_slack: summary.promised_slack.map(|slack| slack.as_secs_f64()),
            least_slack: summary.least_slack.map(|slack| slack.as_secs_f64()),
            broken_certificates: summary.broken,
            void_certificates: summary.void,
            on_time: summary.on_time,
            glitches: summary.glitches,
        })
    }

    fn say_who_is_slow(&self, status: &crate::engine::Status) {
        let before = self.shared.books();
        let disks = before.engine.disks.iter().zip(&status.disks);
        for ((before, disk), shelf) in disks.zip(&self.shared.titles.shelves) {
            if disk.observed.is_some() && before.observed != disk.observed {
                let (store, reads) = (shelf.path.display().to_string(), disk.observed);
                self.shared.log.line(
                    || json!({ "event": "disk-observed", "store": store, "slot_reads": reads }),
                );
            }
            let event = match (before.behind, disk.behind) {
                (0, 1..) => "disk-slow",
                (1.., 0) => "disk-as-calibrated",
                _ => continue,
            };
            let store = shelf.path.display().to_string();
            let behind = disk.behind_part();
            self.shared.log.line(|| json!({ "event": event, "store": store, "behind": behind }));
        }
    }

    fn is_over(&self, now: Moment) -> bool {
        let Some(at) = self.stop_at else { return false };
        // A body is asked for in parts: between two of them nothing is asked for.
        let idle = self.requests.is_empty() && !self.shared.http.is_sending();
        now >= at || idle && self.engine.status(now).active == 0
    }
}

/// Whatever the core ends by, everybody else must end too.
impl Drop for Core {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.tell(Notice::Quit);
        }
    }
}

/// Sessions that are listed one by one.
const SESSIONS_LISTED: usize = 1000;
/// Events heard before time is looked at again.
const BURST: usize = 256;
/// A clock that jumps must not stop the server for long.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
