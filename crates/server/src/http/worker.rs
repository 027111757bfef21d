//! A thread that speaks HTTP: its socket loop, its connections, and their patience.
//!
//! ```text
//!   Reading ──request──▶ answer ──┬─ reply ─▶ Replying ─┐
//!      ▲                 ▲        ├─ body ──▶ Sending ──┤ keep-alive
//!      │                 └ Waiting ◀─ ask               │
//!      └─────────────────────────────────────────────────┘   else ─▶ Lingering ─▶ closed
//! ```
//!
//! One request at a time on each connection; pipelined ones wait in the input. Everything that a
//! peer can hold (input, windows, time) is bounded.

mod notices;
mod patience;

use super::answer::{self, Answer};
use super::connection::{Asked, Connection, Doing, Exchange};
use super::request::{MAX_HEAD, Method, Parsed, Request, parse};
use super::response::{Head, Reply};
use super::transfer::Transfer;
use crate::core::{Caller, CoreHandle, Event, Notice, WorkerHandle};
use crate::engine::RequestId;
use crate::opener::{Opener, Task};
use crate::sessions::Session;
use crate::shared::Shared;
use crossbeam_channel::{Receiver, unbounded};
use device::sockets::{ConnectionId, SendSlice, SocketEvent, Sockets};
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What the threads are told at their start.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    pub(crate) send: Duration,
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    /// Of all threads together.
    pub(crate) max_connections: u64,
}

/// A thread that is ready to begin: it has its socket loop, and waits for the rest.
pub(crate) struct Prepared {
    pub(crate) handle: WorkerHandle,
    pub(crate) thread: JoinHandle<()>,
    /// How sockets are driven.
    pub(crate) method: String,
    begin: crossbeam_channel::Sender<Begin>,
}

struct Begin {
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    patience: Patience,
}

struct Worker {
    number: usize,
    sockets: Sockets,
    notices: Receiver<Notice>,
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    patience: Patience,
    connections: HashMap<ConnectionId, Connection>,
    // Closed, but the kernel may still hold buffers of these requests.
    leaving: HashMap<ConnectionId, Vec<RequestId>>,
    next_look: Instant,
}

impl Prepared {
    /// Makes the thread and, on it, its socket loop.
    pub(crate) fn new(number: usize, listener: TcpListener) -> io::Result<Self> {
        let (notices, inbox) = unbounded();
        let (begin, started) = crossbeam_channel::bounded::<Begin>(1);
        let (ready, prepared) = crossbeam_channel::bounded(1);
        let thread = thread::Builder::new().name(format!("http-{number}")).spawn(move || {
            let sockets = match Sockets::new(Some(listener)) {
                Ok(sockets) => sockets,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let _ = ready.send(Ok((sockets.waker(), sockets.method().to_string())));
            let Ok(Begin { shared, core, opener, patience }) = started.recv() else { return };
            let worker = Worker {
                number,
                sockets,
                notices: inbox,
                shared,
                core,
                opener,
                patience,
                connections: HashMap::new(),
                leaving: HashMap::new(),
                next_look: Instant::now(),
            };
            worker.run();
        })?;
        let gone = |_| io::Error::other("the thread ended before it began");
        let (waker, method) = prepared.recv().map_err(gone)??;
        Ok(Self { handle: WorkerHandle { notices, waker }, thread, method, begin })
    }

    /// Lets it serve.
    pub(crate) fn begin(
        self,
        shared: Arc<Shared>,
        core: CoreHandle,
        opener: Opener,
        patience: Patience,
    ) -> JoinHandle<()> {
        let _ = self.begin.send(Begin { shared, core, opener, patience });
        self.thread
    }
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if let Err(error) = self.sockets.wait(LOOK, &mut events) {
                self.shared.log.line(|| json!({ "event": "sockets", "error": error.to_string() }));
                thread::sleep(LOOK);
            }
            for event in events.drain(..) {
                self.socket(event);
            }
            while let Ok(notice) = self.notices.try_recv() {
                if matches!(notice, Notice::Quit) {
                    return;
                }
                self.notice(notice);
            }
            if Instant::now() >= self.next_look {
                self.look_at_all();
                self.next_look = Instant::now() + LOOK;
            }
        }
    }

    fn socket(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { connection, peer } => self.accepted(connection, peer),
            SocketEvent::AcceptFailed { error } => {
                self.shared.log.line(|| json!({ "event": "accept", "error": error.to_string() }));
            }
            SocketEvent::Received { connection, buffer, outcome } => {
                self.received(connection, &buffer, outcome);
            }
            SocketEvent::Sent { connection, tag } => self.sent(connection, tag),
            SocketEvent::SendFailed { connection, error } => {
                self.abandon(connection, &error.to_string());
            }
            SocketEvent::Closed { connection } => {
                for request in self.leaving.remove(&connection).unwrap_or_default() {
                    self.core.tell(Event::Cancel { request });
                }
            }
            SocketEvent::Woken => {}
        }
    }

    fn accepted(&mut self, id: ConnectionId, peer: SocketAddr) {
        let open = self.shared.http.connections.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        self.connections.insert(id, Connection::new(peer, now + self.patience.head));
        if open >= self.patience.max_connections {
            let mut exchange = Exchange::of_nothing();
            exchange.keep_alive = false;
            let message = "this server has as many connections as it takes; try again";
            self.reply(id, exchange, Reply::busy("connections", message, FULL_RETRY));
            return;
        }
        self.receive(id);
    }

    /// Keeps a receive under way, so that a peer that goes is noticed, unless it has sent more
    /// than a request head beyond what is being answered.
    fn receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let lingering = matches!(connection.doing, Doing::Lingering);
        if connection.receiving || connection.ended {
            return;
        }
        if lingering || connection.input.len() < MAX_HEAD {
            connection.receiving = true;
            self.sockets.recv(id, Vec::with_capacity(RECEIVE));
        }
    }

    fn received(&mut self, id: ConnectionId, bytes: &[u8], outcome: io::Result<usize>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.receiving = false;
        match outcome {
            Err(error) => return self.abandon(id, &error.to_string()),
            Ok(0) => {
                connection.ended = true;
                if matches!(connection.doing, Doing::Reading | Doing::Lingering) {
                    self.close(id);
                }
                return;
            }
            Ok(_) => {}
        }
        if !matches!(connection.doing, Doing::Lingering) {
            let first = connection.input.is_empty();
            connection.input.extend_from_slice(bytes);
            if matches!(connection.doing, Doing::Reading) {
                if first {
                    connection.deadline = Instant::now() + self.patience.head;
                }
                self.read_request(id);
            }
        }
        self.receive(id);
    }

    /// Understands what has come in, if it is a whole request.
    fn read_request(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match parse(&connection.input) {
            Parsed::Partial => {
                if connection.ended {
                    self.close(id);
                }
            }
            Parsed::Rejected(rejection) => {
                connection.input.clear();
                self.reply(id, Exchange::of_nothing(), Reply::rejected(&rejection));
            }
            Parsed::Request(request, length) => {
                connection.input.drain(..length);
                self.answer(id, Exchange::new(&request), request, None);
            }
        }
    }

    fn answer(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        request: Request,
        opened: Option<Arc<crate::library::OpenTitle>>,
    ) {
        let caller = Caller { worker: self.number, connection: id };
        let task = match answer::answer(&self.shared, &request, opened) {
            Answer::Reply(reply) => return self.reply(id, exchange, reply),
            Answer::Body { head, body, range, session } => {
                return self.send_body(id, exchange, head, (body, range), &session);
            }
            Answer::Admit(visit) => {
                let asked = Asked::Core(visit.name.clone(), visit.shape);
                self.wait(id, exchange, request, asked);
                return self.core.tell(Event::Admit { caller, visit });
            }
            Answer::List => {
                self.wait(id, exchange, request, Asked::List);
                return self.core.tell(Event::List { caller });
            }
            Answer::Show(title, wanted) => Task::Show { caller, title, wanted },
            Answer::Open(name) => Task::Open { caller, name },
            Answer::Make(title, tracks) => Task::Make { caller, title, tracks },
        };
        if self.opener.ask(task) {
            self.wait(id, exchange, request, Asked::Opener);
        } else {
            let message = "too many viewers wait for titles to open; try again";
            self.reply(id, exchange, Reply::busy("busy", message, FULL_RETRY));
        }
    }

    fn wait(&mut self, id: ConnectionId, exchange: Exchange, request: Request, asked: Asked) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.doing = Doing::Waiting(exchange, request, asked);
        }
    }

    /// Sends a reply as a whole.
    fn reply(&mut self, id: ConnectionId, mut exchange: Exchange, reply: Reply) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        // What was no request leaves no way to find the next one.
        exchange.keep_alive &= !matches!(reply.head.status(), 400 | 405 | 408 | 414 | 431 | 505);
        exchange.status = reply.head.status();
        let mut slices: Vec<SendSlice> =
            vec![reply.head.finish(reply.length, exchange.keep_alive).into()];
        if exchange.method != Method::Head {
            slices.push(reply.body.into());
        }
        exchange.bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        self.shared.http.sent_bytes.fetch_add(exchange.bytes, Ordering::Relaxed);
        let number = connection.next_number;
        connection.next_number += 1;
        connection.taken.1 = Instant::now();
        connection.doing = Doing::Replying(exchange, number);
        self.sockets.send(id, slices, number);
    }

    fn send_body(
        &mut self,
        id: ConnectionId,
        mut exchange: Exchange,
        head: Head,
        (body, range): (Arc<media::Body>, std::ops::Range<u64>),
        session: &Session,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        exchange.status = head.status();
        let head = head.finish(range.end - range.start, exchange.keep_alive);
        let under_way = Arc::clone(&self.shared.http.under_way);
        let whose = (session.id, Arc::clone(session.showing.spans()));
        let number = connection.next_number;
        let transfer = Transfer::new(whose, head, body, range, number, under_way);
        connection.doing = Doing::Sending(exchange, Box::new(transfer));
        connection.taken.1 = Instant::now();
        self.pump(id);
    }

    /// Asks for what a transfer needs next and sends what is there.
    fn pump(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Doing::Sending(_, transfer) = &mut connection.doing else { return };
        let caller = Caller { worker: self.number, connection: id };
        while let Some(want) = transfer.next_want(next_request) {
            self.core.tell(Event::Want { caller, want });
        }
        let was_idle = !transfer.is_sending();
        let Ok(outgoing) = transfer.outgoing() else {
            return self.abandon(id, "the engine delivered out of order");
        };
        if was_idle && !outgoing.is_empty() {
            connection.taken.1 = Instant::now();
        }
        for out in outgoing {
            self.sockets.send(id, out.slices, out.number);
        }
        if transfer.is_done() {
            self.finished(id);
        }
    }

    fn sent(&mut self, id: ConnectionId, number: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.taken.1 = Instant::now();
        match &mut connection.doing {
            Doing::Replying(_, awaited) if *awaited == number => self.finished(id),
            Doing::Sending(exchange, transfer) => {
                let (bytes, piece) = transfer.sent(number);
                exchange.bytes += bytes;
                self.shared.http.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                if let Some((request, read)) = piece {
                    self.core.tell(Event::Sent { request, read });
                }
                if transfer.is_cut_off() {
                    return self.abandon(id, CUT_OFF);
                }
                self.pump(id);
            }
            _ => {}
        }
    }

    /// The answer is with the kernel: on to the next request, or to the end.
    fn finished(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let exchange = match std::mem::replace(&mut connection.doing, Doing::Reading) {
            Doing::Replying(exchange, _) => exchange,
            Doing::Sending(exchange, transfer) => {
                connection.next_number = transfer.next_number();
                exchange
            }
            doing => return connection.doing = doing,
        };
        let peer = connection.peer;
        let (keep_alive, now) = (exchange.keep_alive, Instant::now());
        if keep_alive {
            let started = !connection.input.is_empty();
            connection.deadline =
                now + if started { self.patience.head } else { self.patience.idle };
        } else {
            connection.doing = Doing::Lingering;
            connection.deadline = now + LINGER;
            connection.input = Vec::new();
        }
        self.note(peer, &exchange, None);
        if keep_alive {
            self.read_request(id);
        } else {
            self.sockets.finish(id);
            if self.connections.get(&id).is_some_and(|connection| connection.ended) {
                return self.close(id);
            }
        }
        self.receive(id);
    }

    /// Ends a connection in the middle of something.
    fn abandon(&mut self, id: ConnectionId, why: &str) {
        let Some(connection) = self.connections.get(&id) else { return };
        if let Doing::Sending(exchange, _)
        | Doing::Replying(exchange, _)
        | Doing::Waiting(exchange, ..) = &connection.doing
        {
            self.note(connection.peer, exchange, Some(why));
        }
        self.close(id);
    }

    fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.shared.http.connections.fetch_sub(1, Ordering::Relaxed);
        if let Doing::Sending(_, transfer) = connection.doing {
            // Told to the core when the kernel has let go of the buffers.
            self.leaving.insert(id, transfer.open_requests());
        }
        self.sockets.close(id);
    }

    /// Counts and logs a request that has been answered.
    fn note(&self, peer: SocketAddr, exchange: &Exchange, broken: Option<&str>) {
        let http = &self.shared.http;
        let class = usize::from(exchange.status / 100).clamp(1, 5) - 1;
        http.responses[class].fetch_add(1, Ordering::Relaxed);
        self.shared.log.line(|| {
            let mut line = json!({
                "peer": peer.to_string(),
                "method": exchange.method.name(),
                "target": exchange.target,
                "status": exchange.status,
                "bytes": exchange.bytes,
                "seconds": exchange.started.elapsed().as_secs_f64(),
            });
            if let Some(why) = broken {
                line["broken"] = why.into();
            }
            line
        });
    }
}

/// Requests are numbered across all threads.
fn next_request() -> RequestId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    RequestId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What the log says of a response that ends early.
const CUT_OFF: &str = "the rest of the bytes could not be had";
/// How often patience is looked at; time limits are late by at most this.
const LOOK: Duration = Duration::from_millis(250);
/// Bytes of one receive. Request heads are smaller.
const RECEIVE: usize = 4096;
/// How long a peer may take to read the last answer: closing with its bytes unread would destroy
/// it on the way.
const LINGER: Duration = Duration::from_secs(2);
const FULL_RETRY: Duration = Duration::from_secs(2);
