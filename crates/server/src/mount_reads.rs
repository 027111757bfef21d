//! Reads of mounted titles by deadline: each reader has a session, as a player of the title's file
//! has.
//!
//! ```text
//!   setxattr, open ─ reserve ──Admit──▶ core ──Admitted──▶ thread ──▶ reader
//!   read ─ EngineReader ─────Request──▶ core ──Deliver───▶ thread ──▶ reader ── copy ──▶ kernel
//!                     ◀───────────────Sent, for each buffer ───────────┘
//! ```
//!
//! The kernel asks for several parts of a file at a time, and their order is lost on the way. A
//! reader has one position: parts a little ahead of it are fetched in order, and what comes before
//! them is kept until it is asked for.
//!
//! ```text
//!   file      ├──────── read ────────┤ kept ├ asked for ┤        a jump ├──
//!                                    ▲ position          ▲ then
//! ```
//!
//! Sessions of readers are not handed over to another server: the mount ends with this one.

use crate::clients::ClientAddress;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::{
    AdmissionError, Caller, CoreHandle, Event, PlayRequest, RequestError, WorkerMessage,
    next_request_id,
};
use crate::presentation::Presentation;
use crate::sessions::PlayerSession;
use crate::shared::{ReaderCounters, Shared};
use crate::telemetry::Protocol;
use crossbeam_channel::{Receiver, SendError, Sender, unbounded};
use device::SharedBuffer;
use device::sockets::ConnectionId;
use engine::{MaxWait, MediaRequest, Part, ReadId, Refusal, RequestId, SessionId};
use media::{Body, Slice};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use store::{ReserveError, ReservedRate, ReservedReadError, ReservedReader, StoreError};
use units::locked;

/// The readers of a server's mounts. To the core they are the connections of one HTTP thread.
#[derive(Debug)]
pub(crate) struct MountReaders {
    /// The number of the thread among those that the core sends to.
    number: usize,
    core: CoreHandle,
    // Weak: a mount that is in use must not keep a server that has ended.
    shared: Weak<Shared>,
    counters: Arc<ReaderCounters>,
    open: Mutex<ReaderQueues>,
}

#[derive(Debug, Default)]
struct ReaderQueues {
    queues: HashMap<ConnectionId, Sender<WorkerMessage>>,
    /// Readers so far.
    count: u64,
    /// The server ends.
    closed: bool,
}

/// What a reader is to read, and how.
pub(crate) struct ReaderRequest {
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) name: String,
    pub(crate) file: Arc<Body>,
    pub(crate) rate: ReservedRate,
    /// The session that ends if this one is admitted.
    pub(crate) replaces: Option<SessionId>,
}

/// The place of a reader among those that messages are passed to.
#[derive(Debug)]
struct ReaderPlace {
    readers: Arc<MountReaders>,
    connection: ConnectionId,
}

/// Reads one file by an engine session.
#[derive(Debug)]
struct EngineReader {
    session: Arc<PlayerSession>,
    rate: ReservedRate,
    file: Arc<Body>,
    place: ReaderPlace,
    over: AtomicBool,
    state: Mutex<ReaderState>,
}

#[derive(Debug)]
struct ReaderState {
    messages: Receiver<WorkerMessage>,
    /// Where the next byte of the file is fetched; `None` before the first and after a failure.
    next: Option<u64>,
    /// Bytes that were fetched because others behind them were asked for, by their place.
    kept: BTreeMap<u64, Vec<u8>>,
    /// After a jump that did not fit: when the next one is tried.
    rests_until: Option<Instant>,
}

/// A part of the file in a buffer of the engine.
struct DeliveredPart {
    read: ReadId,
    buffer: SharedBuffer,
    range: Range<usize>,
}

impl MountReaders {
    /// Starts the thread that passes on what the core sends to `number`.
    pub(crate) fn start(
        number: usize,
        messages: Receiver<WorkerMessage>,
        shared: &Arc<Shared>,
        core: CoreHandle,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let counters = Arc::clone(&shared.readers);
        let (shared, open) = (Arc::downgrade(shared), Mutex::default());
        let readers = Arc::new(Self { number, core, shared, counters, open });
        let passing = Arc::clone(&readers);
        let thread = thread::Builder::new().name("mount-reads".to_owned());
        let thread = thread.spawn(move || passing.pass_all(&messages))?;
        Ok((readers, thread))
    }

    /// The state of the server, while it runs.
    pub(crate) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }

    /// Passes messages on until the server ends.
    fn pass_all(&self, messages: &Receiver<WorkerMessage>) {
        for message in messages {
            match message {
                WorkerMessage::Quit => break,
                WorkerMessage::HandOver => {
                    self.close();
                    self.core.send(Event::Answered);
                }
                message => self.pass(message),
            }
        }
        self.close();
    }

    /// Readers that wait get nothing any more, and there are no new ones.
    fn close(&self) {
        let mut open = locked(&self.open);
        open.closed = true;
        open.queues.clear();
    }

    fn pass(&self, message: WorkerMessage) {
        let (WorkerMessage::Admitted { connection, .. }
        | WorkerMessage::Accepted { connection, .. }
        | WorkerMessage::Deliver { connection, .. }
        | WorkerMessage::RequestFailed { connection, .. }) = &message
        else {
            return;
        };
        let queue = locked(&self.open).queues.get(connection).cloned();
        let unheard = match queue {
            Some(queue) => queue.send(message).err().map(SendError::into_inner),
            None => Some(message),
        };
        match unheard {
            Some(WorkerMessage::Admitted { result: Ok(session), .. }) => {
                self.core.send(Event::End { session: session.id });
            }
            Some(WorkerMessage::Deliver { request, .. }) => {
                self.core.send(Event::Cancel { request });
            }
            _ => {}
        }
    }

    /// Asks for a session that reads a file at a rate, from now on.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        request: ReaderRequest,
    ) -> Result<Arc<dyn ReservedReader>, ReserveError> {
        let reader = self.admit(request);
        if reader.is_err() {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Arc::new(reader?))
    }

    fn admit(self: &Arc<Self>, request: ReaderRequest) -> Result<EngineReader, ReserveError> {
        let ReaderRequest { title, name, file, rate, replaces } = request;
        let (place, messages) = self.enter().ok_or_else(stopping)?;
        let presentation = match rate {
            ReservedRate::Title => Arc::clone(&title.whole),
            ReservedRate::Constant(rate) => {
                Arc::new(Presentation::file_at_rate(&title.whole, &file, rate))
            }
        };
        // As the manifest of a player does.
        let time = self.shared.upgrade().map_or(Duration::ZERO, |shared| shared.settings().wait);
        let wait = MaxWait { time, ..MaxWait::default() };
        let format = DeliveryFormat::Progressive;
        let request = Box::new(PlayRequest {
            tracks: Some(tracks_of(&file)),
            replaces,
            in_mount: true,
            protocol: Protocol::Mount,
            ..PlayRequest::new(title, presentation, name, format, wait)
        });
        // The programs that use a mount are on this machine, as far as the server sees.
        let client = ClientAddress::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        self.core.send(Event::Admit { caller: place.caller(), client, request });
        let Ok(WorkerMessage::Admitted { result, .. }) = messages.recv() else {
            return Err(stopping());
        };
        let session = result.map_err(why_refused)?;
        self.core.send(Event::Connected { session: session.id });
        self.counters.active.fetch_add(1, Ordering::Relaxed);
        let state = ReaderState { messages, next: None, kept: BTreeMap::new(), rests_until: None };
        let (over, state) = (AtomicBool::new(false), Mutex::new(state));
        Ok(EngineReader { session, rate, file, place, over, state })
    }

    /// A place for a new reader, unless the server ends.
    fn enter(self: &Arc<Self>) -> Option<(ReaderPlace, Receiver<WorkerMessage>)> {
        // Unbounded: the engine delivers at most two buffers ahead of the reader.
        let (queue, messages) = unbounded();
        let mut open = locked(&self.open);
        if open.closed {
            return None;
        }
        open.count += 1;
        let connection = ConnectionId::named(open.count);
        open.queues.insert(connection, queue);
        Some((ReaderPlace { readers: Arc::clone(self), connection }, messages))
    }
}

impl ReaderPlace {
    fn caller(&self) -> Caller {
        Caller { worker: self.readers.number, connection: self.connection }
    }
}

impl Drop for ReaderPlace {
    fn drop(&mut self) {
        locked(&self.readers.open).queues.remove(&self.connection);
    }
}

impl EngineReader {
    fn core(&self) -> &CoreHandle {
        &self.place.readers.core
    }

    fn read_in_order(
        &self,
        state: &mut ReaderState,
        range: Range<u64>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), ReservedReadError> {
        let mut at = range.start;
        while at < range.end {
            if let Some(kept) = state.take_kept(at, range.end) {
                write(&kept).map_err(ReservedReadError::Write)?;
                at += kept.len() as u64;
                continue;
            }
            match state.next {
                Some(next) if next == at => {
                    // As far as nothing is kept behind it, which there is only after a jump.
                    self.fetch(state, at..range.end, write)?;
                    at = range.end;
                }
                Some(next) if next < at && at - next <= MOST_AHEAD => {
                    let mut before = Vec::new();
                    self.fetch(state, next..at, &mut |bytes| {
                        before.extend_from_slice(bytes);
                        Ok(())
                    })?;
                    state.keep(next, before);
                }
                _ => {
                    state.kept.clear();
                    state.next = Some(at);
                }
            }
        }
        Ok(())
    }

    /// Fetches a part of the file, from the position on, and moves the position behind it.
    fn fetch(
        &self,
        state: &mut ReaderState,
        range: Range<u64>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), ReservedReadError> {
        // Until all of it is there.
        state.next = None;
        let end = range.end;
        let wanted = self.file.range(range);
        let parts: Vec<Part> = wanted.slices().filter_map(part_of).collect();
        let request = next_request_id();
        if !parts.is_empty() {
            let (caller, session) = (self.place.caller(), self.session.id);
            let request = MediaRequest { request, session, parts };
            self.core().send(Event::Request { caller, place: <_>::default(), request });
        }
        for slice in wanted.slices() {
            let written = match slice {
                Slice::Generated { bytes, range } => {
                    write(&bytes[range.clone()]).map_err(ReservedReadError::Write)
                }
                stored => self.copy(state, request, stored.len(), write),
            };
            // The engine knows of no buffer then that is still used.
            written.inspect_err(|_| self.core().send(Event::Cancel { request }))?;
        }
        state.next = Some(end);
        Ok(())
    }

    /// Copies what the engine delivers for one slice of a request.
    fn copy(
        &self,
        state: &mut ReaderState,
        request: RequestId,
        mut left: u64,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), ReservedReadError> {
        while left > 0 {
            let DeliveredPart { read, buffer, range } = self.delivered(state, request)?;
            let bytes = &buffer[range];
            // An empty part would not advance it; a longer one would be of the next slice.
            if bytes.is_empty() || bytes.len() as u64 > left {
                return Err(ReservedReadError::NotServed);
            }
            left -= bytes.len() as u64;
            write(bytes).map_err(ReservedReadError::Write)?;
            self.core().send(Event::Sent { request, read });
        }
        Ok(())
    }

    /// The next part that the engine delivers for a request.
    fn delivered(
        &self,
        state: &mut ReaderState,
        wanted: RequestId,
    ) -> Result<DeliveredPart, ReservedReadError> {
        loop {
            match state.messages.recv() {
                Ok(WorkerMessage::Deliver { request, read, buffer, range, .. })
                    if request == wanted =>
                {
                    return Ok(DeliveredPart { read, buffer, range });
                }
                Ok(WorkerMessage::RequestFailed { request, why, .. }) if request == wanted => {
                    match why {
                        RequestError::SessionEnded | RequestError::CutShort(_) => {
                            self.over.store(true, Ordering::Relaxed);
                        }
                        RequestError::Refused(_) => {
                            state.rests_until = Some(Instant::now() + REST);
                        }
                        RequestError::Declined(_) | RequestError::ReadFailed(_) => {}
                    }
                    return Err(ReservedReadError::NotServed);
                }
                // Of a request that was cancelled, or the news that this one was accepted.
                Ok(_) => {}
                Err(_) => {
                    self.over.store(true, Ordering::Relaxed);
                    return Err(ReservedReadError::NotServed);
                }
            }
        }
    }
}

impl ReservedReader for EngineReader {
    fn read(
        &self,
        range: Range<u64>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), ReservedReadError> {
        let range = range.start..range.end.min(self.file.len());
        let length = range.end.saturating_sub(range.start);
        let read = {
            let mut state = locked(&self.state);
            let rests = state.rests_until.is_some_and(|until| Instant::now() < until);
            match rests || self.is_over() {
                true => Err(ReservedReadError::NotServed),
                false => self.read_in_order(&mut state, range, write),
            }
        };
        let counters = &self.place.readers.counters;
        let counter = if read.is_ok() { &counters.bytes } else { &counters.missed };
        counter.fetch_add(length, Ordering::Relaxed);
        read
    }

    fn rate(&self) -> ReservedRate {
        self.rate
    }

    fn is_over(&self) -> bool {
        let is_live = |shared: Arc<Shared>| shared.sessions.is_live(&self.session);
        self.over.load(Ordering::Relaxed) || !self.place.readers.shared().is_some_and(is_live)
    }

    fn give_back(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.core().send(Event::End { session: self.session.id });
        }
    }

    fn number(&self) -> u64 {
        self.session.id.0
    }
}

impl Drop for EngineReader {
    fn drop(&mut self) {
        self.place.readers.counters.active.fetch_sub(1, Ordering::Relaxed);
        // Of a session that has ended, the core knows nothing any more.
        self.core().send(Event::End { session: self.session.id });
    }
}

impl ReaderState {
    /// Kept bytes from `at` on, up to `end`: they are not kept any more.
    fn take_kept(&mut self, at: u64, end: u64) -> Option<Vec<u8>> {
        let (start, bytes) = self.kept.range(..=at).next_back()?;
        let (start, length) = (*start, bytes.len() as u64);
        if at >= start + length {
            return None;
        }
        let mut bytes = self.kept.remove(&start)?;
        let within = |place: u64| usize::try_from(place - start).expect("within kept bytes");
        let rest = bytes.split_off(within(end.min(start + length)));
        if !rest.is_empty() {
            self.kept.insert(end, rest);
        }
        let taken = bytes.split_off(within(at));
        if !bytes.is_empty() {
            self.kept.insert(start, bytes);
        }
        Some(taken)
    }

    /// Keeps bytes until they are asked for, or too many others are kept.
    fn keep(&mut self, at: u64, bytes: Vec<u8>) {
        self.kept.insert(at, bytes);
        while self.kept.values().map(|kept| kept.len() as u64).sum::<u64>() > MOST_AHEAD {
            self.kept.pop_first();
        }
    }
}

/// The stored bytes that a slice of a title's file is.
fn part_of(slice: &Slice) -> Option<Part> {
    match slice {
        Slice::Stored { track, bytes } => Some(Part { track: *track, bytes: bytes.clone() }),
        _ => None,
    }
}

/// The tracks that a file has bytes of.
fn tracks_of(file: &Body) -> Vec<u16> {
    let mut tracks: Vec<u16> = Vec::new();
    for part in file.slices().filter_map(part_of) {
        if !tracks.contains(&part.track) {
            tracks.push(part.track);
        }
    }
    tracks.sort_unstable();
    tracks
}

fn stopping() -> ReserveError {
    ReserveError::Refused("the server is stopping".to_owned())
}

fn why_refused(why: AdmissionError) -> ReserveError {
    let words = match why {
        AdmissionError::Refused(Refusal { cause, resource, retry, .. }) => {
            let short = resource.map_or("the server", |resource| resource.word());
            let after = retry.after().map_or_else(String::new, |after| {
                format!("; it would fit in {} s", after.as_secs() + 1)
            });
            format!("{short} is short ({}){after}", cause.word())
        }
        AdmissionError::TitleRemoved => "the title is being removed".to_owned(),
        AdmissionError::TooManyUnplayed { most, .. } => {
            format!("{most} reservations of this machine have delivered nothing yet")
        }
        AdmissionError::FormatUnavailable | AdmissionError::NotPermitted(_) => {
            return ReserveError::NotPossible("the title is not served as a file".to_owned());
        }
        AdmissionError::Failed(why) => why,
        AdmissionError::Stopping | AdmissionError::Ended(_) => return stopping(),
    };
    ReserveError::Refused(words)
}

/// Bytes ahead of a reader's position that are no jump, and that are kept at most: the kernel reads
/// ahead by 4 MiB, and asks for the next as many while the program reads these.
const MOST_AHEAD: u64 = 8 << 20;

/// The time after a jump that did not fit until the next one is tried: an evaluation takes time of
/// all sessions.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_until_they_are_asked_for() {
        let (_, messages) = unbounded();
        let mut state =
            ReaderState { messages, next: Some(20), kept: BTreeMap::new(), rests_until: None };
        state.keep(10, (10..20).collect());
        let mut taken = |at, end| state.take_kept(at, end);
        assert_eq!(taken(9, 12), None);
        assert_eq!(taken(12, 14), Some(vec![12, 13]));
        assert_eq!(taken(12, 14), None, "once");
        assert_eq!(taken(16, 30), Some(vec![16, 17, 18, 19]));
        assert_eq!(taken(10, 30), Some(vec![10, 11]));
        assert_eq!(taken(14, 15), Some(vec![14]));
        assert_eq!(state.kept, BTreeMap::from([(15, vec![15])]));
        let half = usize::try_from(MOST_AHEAD / 2).unwrap();
        state.keep(100, vec![0; half]);
        state.keep(1 << 30, vec![0; half]);
        assert_eq!(state.kept.keys().collect::<Vec<_>>(), [&100, &(1 << 30)], "the last ones");
    }
}
