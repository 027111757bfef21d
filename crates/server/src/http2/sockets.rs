//! The sockets of an HTTP thread, with the lanes of HTTP/2 among its connections.

use super::carrier::Carrier;
use crate::tls::{ClientSockets, SealedBuffers};
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// An event for an HTTP thread.
#[derive(Debug)]
pub(crate) enum HttpEvent {
    /// An event of a connection, or of a lane as if it were one.
    Socket(SocketEvent),
    /// A connection speaks HTTP/2. Of itself only its end is reported from now on.
    Carries {
        /// The connection.
        carrier: ConnectionId,
    },
    /// A request begins.
    Lane {
        /// The connection that it came over.
        carrier: ConnectionId,
        /// The identifier under which it is received and answered.
        lane: ConnectionId,
    },
    /// All that is to be sent over a connection is queued: its last lane has ended after
    /// [`HttpSockets::retire`], or its peer has broken the rules.
    Over {
        /// The connection.
        carrier: ConnectionId,
    },
}

/// A socket loop with the calls and events of [`ClientSockets`].
pub(crate) struct HttpSockets {
    sockets: ClientSockets,
    carriers: HashMap<ConnectionId, Carrier>,
    /// The carrier of each lane.
    lanes: HashMap<ConnectionId, ConnectionId>,
    lanes_named: u64,
    /// Carriers that something was done to.
    touched: Vec<ConnectionId>,
    buffers: SealedBuffers,
    // Of the loop, not handled yet.
    raw: Vec<SocketEvent>,
    // For the thread, not returned yet.
    ready: Vec<HttpEvent>,
}

impl HttpSockets {
    pub(crate) fn new(sockets: ClientSockets) -> Self {
        Self {
            sockets,
            carriers: HashMap::new(),
            lanes: HashMap::new(),
            lanes_named: 0,
            touched: Vec::new(),
            buffers: SealedBuffers::default(),
            raw: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Receives, as [`ClientSockets::recv`].
    pub(crate) fn recv(&mut self, id: ConnectionId, buffer: Vec<u8>) {
        match self.lanes.get(&id).copied() {
            None => self.sockets.recv(id, buffer),
            Some(carrier) => self.touch(carrier, |it| {
                if let Some(lane) = it.lane(id) {
                    lane.wanted = Some(buffer);
                }
            }),
        }
    }

    /// Queues slices, as [`ClientSockets::send`]. The first slices of a lane are a head.
    pub(crate) fn send(&mut self, id: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        match self.lanes.get(&id).copied() {
            None => self.sockets.send(id, slices, tag),
            Some(carrier) if self.carriers.get(&carrier).is_some_and(|it| it.is_broken) => {
                let error = io::ErrorKind::BrokenPipe.into();
                let event = SocketEvent::SendFailed { connection: id, error };
                self.ready.push(HttpEvent::Socket(event));
            }
            Some(carrier) => self.touch(carrier, |it| {
                if let Some(lane) = it.lane(id) {
                    lane.send(slices, tag);
                }
            }),
        }
    }

    /// Bytes that the kernel has taken, as [`ClientSockets::taken`]; of a lane those of bodies.
    pub(crate) fn taken(&self, id: ConnectionId) -> u64 {
        let Some(carrier) = self.lanes.get(&id) else { return self.sockets.taken(id) };
        let of_kernel = self.sockets.taken(*carrier);
        self.carriers.get(carrier).map_or(0, |it| it.taken(id, of_kernel))
    }

    /// Ends the sending direction, as [`ClientSockets::finish`].
    pub(crate) fn finish(&mut self, id: ConnectionId) {
        match self.lanes.get(&id).copied() {
            None => self.sockets.finish(id),
            Some(carrier) => self.touch(carrier, |it| {
                if let Some(lane) = it.lane(id) {
                    lane.finish();
                }
            }),
        }
    }

    /// Closes a connection or a lane now, as [`ClientSockets::close`].
    pub(crate) fn close(&mut self, id: ConnectionId) {
        if let Some(carrier) = self.lanes.remove(&id) {
            return self.touch(carrier, |it| it.close_lane(id));
        }
        if let Some(carrier) = self.carriers.remove(&id) {
            for lane in carrier.close(&mut self.ready) {
                self.lanes.remove(&lane);
            }
        }
        self.sockets.close(id);
    }

    /// Tells the peer of a carrier to begin no further request.
    pub(crate) fn retire(&mut self, carrier: ConnectionId) {
        self.touch(carrier, Carrier::retire);
    }

    /// Whether connections use TLS, in which the protocol above it is agreed on.
    pub(crate) fn is_secure(&self) -> bool {
        self.sockets.is_secure()
    }

    /// Accepts no connection any more, as [`ClientSockets::stop_accepting`].
    pub(crate) fn stop_accepting(&mut self) {
        self.sockets.stop_accepting();
    }

    /// Waits for events, as [`ClientSockets::wait`].
    pub(crate) fn wait(
        &mut self,
        at_most: Duration,
        events: &mut Vec<HttpEvent>,
    ) -> io::Result<()> {
        self.advance_touched();
        let at_most = if self.ready.is_empty() { at_most } else { Duration::ZERO };
        let mut raw = std::mem::take(&mut self.raw);
        let waited = self.sockets.wait(at_most, &mut raw);
        for event in raw.drain(..) {
            self.handle(event);
        }
        self.raw = raw;
        self.advance_touched();
        events.append(&mut self.ready);
        waited
    }

    fn touch(&mut self, id: ConnectionId, change: impl FnOnce(&mut Carrier)) {
        if let Some(carrier) = self.carriers.get_mut(&id) {
            change(carrier);
            if self.touched.last() != Some(&id) {
                self.touched.push(id);
            }
        }
    }

    fn handle(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Received { connection, buffer, outcome: Ok(count) } if count > 0 => {
                if self.sockets.speaks_http2(connection) {
                    return self.received(connection, &buffer);
                }
                let outcome = Ok(count);
                let event = SocketEvent::Received { connection, buffer, outcome };
                self.ready.push(HttpEvent::Socket(event));
            }
            SocketEvent::Sent { connection, .. } if self.carriers.contains_key(&connection) => {
                if let Some(carrier) = self.carriers.get_mut(&connection) {
                    carrier.chunk_taken(&mut self.buffers);
                }
                self.touch(connection, |_| ());
            }
            SocketEvent::Received { connection, .. }
            | SocketEvent::SendFailed { connection, .. }
                if let Some(carrier) = self.carriers.get_mut(&connection) =>
            {
                carrier.ended(event);
                self.touch(connection, |_| ());
            }
            event => self.ready.push(HttpEvent::Socket(event)),
        }
    }

    fn received(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Entry::Vacant(new) = self.carriers.entry(id) {
            new.insert(Carrier::new(id, Instant::now()));
            self.ready.push(HttpEvent::Carries { carrier: id });
        }
        self.touch(id, |carrier| {
            carrier.is_receiving = false;
            // What comes after the end is of no interest.
            if !carrier.is_over() {
                carrier.pipe.put(bytes);
            }
        });
    }

    fn advance_touched(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            self.advance(id);
        }
    }

    /// Sends, receives and reports what is possible now.
    fn advance(&mut self, id: ConnectionId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let was_over = carrier.is_over();
        let (lanes, named) = (&mut self.lanes, &mut self.lanes_named);
        let mut name = || {
            *named += 1;
            let lane = ConnectionId::named(LANES + *named);
            lanes.insert(lane, id);
            lane
        };
        loop {
            carrier.give_room(&mut self.buffers);
            carrier.advance(Instant::now(), &mut name, &mut self.ready);
            let Some((slice, more)) = carrier.chunk(&mut self.buffers) else { break };
            match carrier.is_broken {
                true => carrier.chunk_taken(&mut self.buffers),
                false => self.sockets.send(id, vec![slice], 0),
            }
            if !more {
                break;
            }
        }
        if carrier.is_over() && !was_over {
            self.sockets.finish(id);
        }
        if let Some(end) = carrier.take_end() {
            self.ready.push(HttpEvent::Socket(end));
        }
        if !carrier.is_receiving && (carrier.pipe.is_read() || carrier.is_over()) {
            carrier.is_receiving = true;
            self.sockets.recv(id, Vec::with_capacity(RECEIVE_BYTES));
        }
    }
}

impl fmt::Debug for HttpSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (carriers, lanes) = (self.carriers.len(), self.lanes.len());
        write!(f, "HttpSockets({:?}, {carriers} carriers, {lanes} lanes)", self.sockets)
    }
}

/// The first number of lanes: no socket loop has so many connections in its life.
const LANES: u64 = 1 << 63;
/// Bytes of one receive; most requests are smaller.
const RECEIVE_BYTES: usize = 4096;
