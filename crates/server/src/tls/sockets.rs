//! The socket loop as HTTP and RTSP threads use it: in the clear, or with TLS between.

use super::sealed_buffers::SealedBuffers;
use super::stream::{StreamEnd, TlsStream};
use super::{HTTP2, ServerTls, TlsProtocol};
use device::sockets::{ConnectionId, SendSlice, SocketEvent, Sockets};
use rustls::{HandshakeKind, ServerConfig as TlsConfig};
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A socket loop with the calls and events of [`Sockets`]. Without TLS each call is the loop's own.
#[derive(Debug)]
pub(crate) struct ClientSockets {
    sockets: Sockets,
    tls: Option<Box<TlsLayer>>,
}

/// The TLS of one loop's connections.
#[derive(Debug)]
struct TlsLayer {
    shared: Arc<ServerTls>,
    config: Arc<TlsConfig>,
    streams: HashMap<ConnectionId, TlsStream>,
    buffers: SealedBuffers,
    // Of the loop, not handled yet.
    raw: Vec<SocketEvent>,
    // For the thread, not returned yet.
    ready: Vec<SocketEvent>,
}

/// The peer has begun with a request in the clear.
#[derive(Debug)]
struct ClearText;

impl fmt::Display for ClearText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer does not speak TLS")
    }
}

impl std::error::Error for ClearText {}

/// Whether a receive has ended because the peer does not speak TLS. What is sent to it from then on
/// goes in the clear.
pub(crate) fn is_clear_text(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<ClearText>)
}

impl ClientSockets {
    /// A loop whose connections speak this protocol, over TLS where the server has a certificate.
    pub(crate) fn new(
        sockets: Sockets,
        tls: Option<&Arc<ServerTls>>,
        protocol: TlsProtocol,
    ) -> Self {
        let tls = tls.map(|shared| {
            Box::new(TlsLayer {
                shared: Arc::clone(shared),
                config: shared.config(protocol),
                streams: HashMap::new(),
                buffers: SealedBuffers::default(),
                raw: Vec::new(),
                ready: Vec::new(),
            })
        });
        Self { sockets, tls }
    }

    /// Whether connections speak TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a connection, of which bytes have been received, has agreed on HTTP/2.
    pub(crate) fn speaks_http2(&self, id: ConnectionId) -> bool {
        let stream = self.tls.as_ref().and_then(|tls| tls.streams.get(&id));
        stream.and_then(TlsStream::protocol) == Some(HTTP2)
    }

    /// Receives plain bytes, as [`Sockets::recv`]; `buffer` may grow.
    pub(crate) fn recv(&mut self, id: ConnectionId, buffer: Vec<u8>) {
        let Some(tls) = &mut self.tls else { return self.sockets.recv(id, buffer) };
        if let Some(stream) = tls.streams.get_mut(&id) {
            stream.wanted = Some(buffer);
            tls.advance(&mut self.sockets, id);
        }
    }

    /// Queues slices, as [`Sockets::send`].
    pub(crate) fn send(&mut self, id: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        let Some(tls) = &mut self.tls else { return self.sockets.send(id, slices, tag) };
        assert!(slices.iter().any(|slice| !slice.is_empty()), "nothing to send");
        if let Some(stream) = tls.streams.get_mut(&id) {
            stream.push(slices, tag);
            tls.advance(&mut self.sockets, id);
        }
    }

    /// Bytes that the kernel has taken, as [`Sockets::taken`]: plain ones.
    pub(crate) fn taken(&self, id: ConnectionId) -> u64 {
        let taken = self.sockets.taken(id);
        let Some(tls) = &self.tls else { return taken };
        tls.streams.get(&id).map_or(0, |stream| stream.taken(taken))
    }

    /// Ends the sending direction, as [`Sockets::finish`].
    pub(crate) fn finish(&mut self, id: ConnectionId) {
        let Some(tls) = &mut self.tls else { return self.sockets.finish(id) };
        if let Some(stream) = tls.streams.get_mut(&id) {
            stream.finish();
            tls.advance(&mut self.sockets, id);
        }
    }

    /// Closes the connection now, as [`Sockets::close`].
    pub(crate) fn close(&mut self, id: ConnectionId) {
        if let Some(tls) = &mut self.tls {
            tls.streams.remove(&id);
        }
        self.sockets.close(id);
    }

    /// Accepts no connection any more, as [`Sockets::stop_accepting`].
    pub(crate) fn stop_accepting(&mut self) {
        self.sockets.stop_accepting();
    }

    /// Waits for events, as [`Sockets::wait`].
    pub(crate) fn wait(
        &mut self,
        at_most: Duration,
        events: &mut Vec<SocketEvent>,
    ) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.sockets.wait(at_most, events) };
        // Bytes that came with the end of a handshake have no event of the loop to wait for.
        let at_most = if tls.ready.is_empty() { at_most } else { Duration::ZERO };
        let mut raw = std::mem::take(&mut tls.raw);
        let waited = self.sockets.wait(at_most, &mut raw);
        for event in raw.drain(..) {
            tls.handle(&mut self.sockets, event);
        }
        tls.raw = raw;
        events.append(&mut tls.ready);
        waited
    }
}

impl TlsLayer {
    fn handle(&mut self, sockets: &mut Sockets, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { connection, peer } => {
                self.streams.insert(connection, TlsStream::new(peer));
                self.ready.push(event);
                // The handshake goes on also where the thread wants no bytes, but only answers.
                self.advance(sockets, connection);
            }
            SocketEvent::Received { connection, buffer, outcome } => {
                let Some(stream) = self.streams.get_mut(&connection) else { return };
                stream.receiving = false;
                match outcome {
                    Ok(0) => stream.closed(),
                    Ok(_) => stream.take_in(&self.config, &buffer),
                    Err(error) => stream.fail(error),
                }
                self.count(connection);
                self.advance(sockets, connection);
            }
            SocketEvent::Sent { connection, .. } => {
                let Some(stream) = self.streams.get_mut(&connection) else { return };
                let tags = stream.sent(&mut self.buffers);
                self.ready
                    .extend(tags.into_iter().map(|tag| SocketEvent::Sent { connection, tag }));
                self.advance(sockets, connection);
            }
            SocketEvent::AcceptFailed { .. }
            | SocketEvent::SendFailed { .. }
            | SocketEvent::Closed { .. }
            | SocketEvent::Woken => self.ready.push(event),
        }
    }

    /// Sends, receives and reports what is possible now.
    fn advance(&mut self, sockets: &mut Sockets, id: ConnectionId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        while let Some(slices) = stream.seal(&mut self.buffers) {
            sockets.send(id, slices, 0);
        }
        if stream.is_finished() {
            sockets.finish(id);
        }
        let received =
            |buffer: Vec<u8>, outcome| SocketEvent::Received { connection: id, buffer, outcome };
        if let Some((buffer, count)) = stream.delivery() {
            self.ready.push(received(buffer, Ok(count)));
        }
        let event = match stream.reportable_end() {
            None => None,
            Some(StreamEnd::Closed) => stream.wanted.take().map(|buffer| received(buffer, Ok(0))),
            Some(StreamEnd::Clear) => stream
                .wanted
                .take()
                .map(|buffer| received(buffer, Err(io::Error::other(ClearText)))),
            Some(StreamEnd::Failed(error)) => Some(match stream.wanted.take() {
                Some(buffer) => received(buffer, Err(error)),
                None => SocketEvent::SendFailed { connection: id, error },
            }),
        };
        self.ready.extend(event);
        if stream.needs_bytes() {
            stream.receiving = true;
            sockets.recv(id, Vec::with_capacity(RECEIVE_BYTES));
        }
    }

    /// Counts a handshake that has ended, and logs one that has failed.
    fn count(&mut self, id: ConnectionId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let counters = &self.shared.counters;
        match stream.just_opened() {
            None => {}
            Some(HandshakeKind::Resumed) => drop(counters.resumed.fetch_add(1, Ordering::Relaxed)),
            Some(_) => drop(counters.full.fetch_add(1, Ordering::Relaxed)),
        }
        if let Some(error) = stream.failed_handshake() {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            self.shared.log.line(|| handshake_failed(stream.peer, error));
        }
    }
}

fn handshake_failed(peer: SocketAddr, error: &io::Error) -> serde_json::Value {
    json!({
        "event": "tls-handshake-failed",
        "peer": peer.to_string(),
        "error": error.to_string(),
    })
}

/// Bytes of one receive; a client hello has some hundred, or two thousand with a post-quantum key.
const RECEIVE_BYTES: usize = 4096;
