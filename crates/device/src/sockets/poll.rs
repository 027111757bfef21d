//! The loop on readiness (epoll through `mio`), for kernels and containers that refuse io_uring.
//!
//! It is edge-triggered: an operation is tried immediately unless the connection was last seen full
//! or empty; an edge of the kernel only clears that state.

use super::outbox::Outbox;
use super::{ACCEPT_PAUSE, ConnectionId, Driver, GATHER, SendSlice, SocketEvent, Waker};
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Token};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

pub(super) struct Poll {
    poll: mio::Poll,
    ready: Events,
    waker: Waker,
    listener: Option<TcpListener>,
    accept: Accept,
    slots: Vec<PollSlot>,
    free: Vec<usize>,
    // Connections to be handled before waiting.
    due: Vec<usize>,
    closed: Vec<ConnectionId>,
}

enum Accept {
    /// Wait for an edge of the kernel.
    Idle,
    /// Connections may be waiting to be accepted.
    Now,
    /// Out of file descriptors until this moment.
    At(Instant),
}

#[derive(Default)]
struct PollSlot {
    generation: u32,
    connection: Option<PollConnection>,
}

struct PollConnection {
    stream: TcpStream,
    receiving: Option<Vec<u8>>,
    outbox: Outbox,
    readable: bool,
    writable: bool,
    failed: bool,
}

impl Poll {
    pub(super) fn new(listener: Option<std::net::TcpListener>) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = Waker::new(true)?;
        let descriptor = waker.descriptor().as_raw_fd();
        poll.registry().register(&mut SourceFd(&descriptor), WAKE, Interest::READABLE)?;
        let mut accept = Accept::Idle;
        let mut own = None;
        if let Some(listener) = listener {
            listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(listener);
            poll.registry().register(&mut listener, LISTEN, Interest::READABLE)?;
            own = Some(listener);
            // Connections may have arrived before the registration, and no edge reports them.
            accept = Accept::Now;
        }
        Ok(Self {
            poll,
            ready: Events::with_capacity(1024),
            waker,
            listener: own,
            accept,
            slots: Vec::new(),
            free: Vec::new(),
            due: Vec::new(),
            closed: Vec::new(),
        })
    }

    fn insert(&mut self, mut stream: TcpStream) -> io::Result<ConnectionId> {
        let _ = stream.set_nodelay(true);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(PollSlot::default());
            self.slots.len() - 1
        });
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut stream, Token(index), interest) {
            self.free.push(index);
            return Err(error);
        }
        let slot = &mut self.slots[index];
        slot.connection = Some(PollConnection {
            stream,
            receiving: None,
            outbox: Outbox::default(),
            // Tried at once: the first edge may have passed before the registration.
            readable: true,
            writable: true,
            failed: false,
        });
        Ok(ConnectionId::new(index, slot.generation))
    }

    fn get(&mut self, id: ConnectionId) -> Option<&mut PollConnection> {
        let slot = self.slots.get_mut(id.index())?;
        if ConnectionId::new(id.index(), slot.generation) != id {
            return None;
        }
        slot.connection.as_mut()
    }

    fn accept(&mut self, events: &mut Vec<SocketEvent>) {
        // Until it would block: an edge comes once for any number of waiting connections.
        while let Some(listener) = &self.listener {
            let failed = match listener.accept() {
                Ok((stream, peer)) => match self.insert(stream) {
                    Ok(connection) => {
                        events.push(SocketEvent::Accepted { connection, peer });
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accept = Accept::Idle;
                    return;
                }
                Err(error) if is_peers_fault(&error) => continue,
                Err(error) => error,
            };
            events.push(SocketEvent::AcceptFailed { error: failed });
            self.accept = Accept::At(Instant::now() + ACCEPT_PAUSE);
            return;
        }
    }

    fn work(&mut self, events: &mut Vec<SocketEvent>) {
        for id in self.closed.drain(..) {
            events.push(SocketEvent::Closed { connection: id });
        }
        let time_to_accept = match self.accept {
            Accept::Idle => false,
            Accept::Now => true,
            Accept::At(moment) => moment <= Instant::now(),
        };
        if time_to_accept {
            self.accept(events);
        }
        // A connection can stand in the list twice or be closed by now; both find nothing to do.
        for index in std::mem::take(&mut self.due) {
            let id = ConnectionId::new(index, self.slots[index].generation);
            if let Some(connection) = &mut self.slots[index].connection {
                connection.receive(id, events);
                connection.transmit(id, events);
            }
        }
    }
}

impl PollConnection {
    fn receive(&mut self, id: ConnectionId, events: &mut Vec<SocketEvent>) {
        while self.readable {
            // Without a buffer the bytes stay in the kernel, and the peer is slowed down by its
            // window.
            let Some(mut buffer) = self.receiving.take() else { return };
            let before = buffer.len();
            buffer.resize(buffer.capacity(), 0);
            let outcome = self.stream.read(&mut buffer[before..]);
            // The caller sees received bytes only, never the zeros that made room for them.
            buffer.truncate(before + *outcome.as_ref().unwrap_or(&0));
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.receiving = Some(buffer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    self.receiving = Some(buffer);
                }
                outcome => events.push(SocketEvent::Received { connection: id, buffer, outcome }),
            }
        }
    }

    fn transmit(&mut self, id: ConnectionId, events: &mut Vec<SocketEvent>) {
        while self.writable && !self.failed {
            // Before the empty test: the last send of a queue ends when its outbox is empty.
            while let Some(tag) = self.outbox.finished() {
                events.push(SocketEvent::Sent { connection: id, tag });
            }
            if self.outbox.is_empty() {
                return;
            }
            let slices: Vec<IoSlice<'_>> = self.outbox.gather(GATHER).map(IoSlice::new).collect();
            match self.stream.write_vectored(&slices) {
                Ok(count) => self.outbox.advance(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) => {
                    self.failed = true;
                    self.outbox.clear();
                    events.push(SocketEvent::SendFailed { connection: id, error });
                }
            }
        }
    }
}

impl Driver for Poll {
    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn recv(&mut self, id: ConnectionId, buffer: Vec<u8>) {
        if let Some(connection) = self.get(id) {
            assert!(connection.receiving.is_none(), "one receive at a time");
            connection.receiving = Some(buffer);
            self.due.push(id.index());
        }
    }

    fn send(&mut self, id: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        if let Some(connection) = self.get(id).filter(|connection| !connection.failed) {
            connection.outbox.push(slices, tag);
            self.due.push(id.index());
        }
    }

    fn taken(&self, id: ConnectionId) -> u64 {
        let slot = self.slots.get(id.index());
        let slot = slot.filter(|slot| ConnectionId::new(id.index(), slot.generation) == id);
        slot.and_then(|slot| slot.connection.as_ref()).map_or(0, |c| c.outbox.taken())
    }

    fn finish(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            // If the peer is gone already, the next receive reports it.
            let _ = connection.stream.shutdown(Shutdown::Write);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        if self.get(id).is_none() {
            return;
        }
        let slot = &mut self.slots[id.index()];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index());
        self.closed.push(id);
    }

    fn stop_accepting(&mut self) {
        if let Some(mut listener) = self.listener.take() {
            // It fails only for a listener that is not registered, which reports nothing either.
            let _ = self.poll.registry().deregister(&mut listener);
        }
        self.accept = Accept::Idle;
    }

    fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()> {
        let before = events.len();
        self.work(events);
        // Events are ready for the caller already; the poll then only collects new edges.
        let mut timeout = if events.len() > before { Duration::ZERO } else { at_most };
        if let Accept::At(moment) = self.accept {
            timeout = timeout.min(moment.saturating_duration_since(Instant::now()));
        }
        match self.poll.poll(&mut self.ready, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            outcome => outcome?,
        }
        for event in &self.ready {
            match event.token() {
                WAKE => {
                    // Emptied before `lower`: otherwise this read could take the count of a newer
                    // wake, whose flag would then hold back all later ones.
                    let _ = rustix::io::read(self.waker.descriptor(), &mut [0u8; 8][..]);
                    self.waker.lower();
                    events.push(SocketEvent::Woken);
                }
                LISTEN => self.accept = Accept::Now,
                Token(index) => {
                    let slot = self.slots.get_mut(index).and_then(|s| s.connection.as_mut());
                    // Closed after the kernel noted the event.
                    let Some(connection) = slot else { continue };
                    connection.readable |= event.is_readable() || event.is_read_closed();
                    connection.writable |= event.is_writable() || event.is_write_closed();
                    self.due.push(index);
                }
            }
        }
        self.work(events);
        Ok(())
    }
}

/// Whether an accepted connection failed because its peer is gone; the next one may be fine.
pub(super) fn is_peers_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}

// Far above any number of connections.
const WAKE: Token = Token(usize::MAX - 1);
const LISTEN: Token = Token(usize::MAX - 2);
