//! A completion-based socket loop, owned by one thread.
//!
//! ```text
//!   listener ──Accepted──▶ ┌───────────────┐ ◀──recv(buffer)── the thread
//!   kernel   ──Received──▶ │    Sockets    │ ◀──send(slices)──   that owns
//!            ──Sent──────▶ │ ring  or poll │ ◀──close()─────────   the loop
//!   Waker::wake ──Woken──▶ └───────────────┘ (other threads)
//! ```
//!
//! The bytes to send are lists of slices of shared memory; the loop keeps them alive until the
//! kernel has taken them, gathers queued slices into few calls, and continues after a short send.
//! There are two implementations with equal behaviour: [`Backend::Ring`] (io_uring) and
//! [`Backend::Poll`] (epoll, where io_uring is refused). The loop knows no protocol and sets no
//! time limits: its user watches [`Sockets::taken`].

mod outbox;
mod poll;
mod ring;
mod slot;
#[cfg(test)]
mod tests;
mod waker;

use crate::SharedBuffer;
use poll::Poll;
use ring::Ring;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::{SocketAddr, TcpListener};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;
pub use waker::Waker;

/// The implementation of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// io_uring.
    Ring,
    /// Readiness (epoll, through `mio`).
    Poll,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "io_uring",
            Self::Poll => "mio",
        })
    }
}

/// The identifier of a connection of one [`Sockets`]; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// An identifier for something that is no connection, and is answered as one is; of no loop's
    /// connections.
    pub fn named(number: u64) -> Self {
        Self(number)
    }

    fn new(index: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | index as u64)
    }

    fn index(self) -> usize {
        slot_index(self.0)
    }
}

/// The slot in the lower half of an identifier.
fn slot_index(number: u64) -> usize {
    usize::try_from(number & u64::from(u32::MAX)).expect("32 bits")
}

/// Bytes to be sent, not copied: a range of shared memory.
#[derive(Clone)]
pub enum SendSlice {
    /// Memory made for one send, or kept (headers, init segments).
    Bytes {
        /// The memory.
        bytes: Arc<[u8]>,
        /// The part to be sent.
        range: Range<usize>,
    },
    /// Memory that was read from a device.
    Buffer {
        /// The buffer, which returns to its pool with its last owner.
        buffer: SharedBuffer,
        /// The part to be sent.
        range: Range<usize>,
    },
}

impl From<Vec<u8>> for SendSlice {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes { range: 0..bytes.len(), bytes: bytes.into() }
    }
}

impl Deref for SendSlice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes { bytes, range } => &bytes[range.clone()],
            Self::Buffer { buffer, range } => &buffer[range.clone()],
        }
    }
}

impl fmt::Debug for SendSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, range) = match self {
            Self::Bytes { range, .. } => ("bytes", range),
            Self::Buffer { range, .. } => ("buffer", range),
        };
        write!(f, "{kind}[{}..{}]", range.start, range.end)
    }
}

/// An event of the loop.
#[derive(Debug)]
pub enum SocketEvent {
    /// A connection was accepted.
    Accepted {
        /// The identifier of the connection.
        connection: ConnectionId,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// A connection could not be accepted (usually for lack of file descriptors); the loop tries
    /// again soon.
    AcceptFailed {
        /// The kernel's error.
        error: io::Error,
    },
    /// A [`Sockets::recv`] has ended.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// The given buffer, extended by the received bytes.
        buffer: Vec<u8>,
        /// The number of received bytes; 0 if the peer sends no more.
        outcome: io::Result<usize>,
    },
    /// The kernel has all slices of the [`Sockets::send`] with this tag.
    Sent {
        /// The connection.
        connection: ConnectionId,
        /// The tag of the send.
        tag: u64,
    },
    /// The peer is gone, and nothing that is queued will be sent. Close the connection.
    SendFailed {
        /// The connection.
        connection: ConnectionId,
        /// The kernel's error.
        error: io::Error,
    },
    /// The connection has ended after [`Sockets::close`], and its memory is free.
    Closed {
        /// The connection.
        connection: ConnectionId,
    },
    /// A [`Waker`] was used since the last event of this kind.
    Woken,
}

/// The socket loop. Made, used and dropped by one thread.
///
/// Calls with a connection that is closed, or being closed, do nothing.
pub struct Sockets {
    driver: Box<dyn Driver>,
    method: Backend,
    // A ring belongs to the thread that made it.
    _one_thread: PhantomData<*const ()>,
}

impl Sockets {
    /// A loop that accepts from `listener`, if there is one. Uses io_uring if the kernel allows it,
    /// unless the environment has `TENUTO_NET=mio`; `TENUTO_NET=io_uring` requires it.
    pub fn new(listener: Option<TcpListener>) -> io::Result<Self> {
        match std::env::var("TENUTO_NET").as_deref() {
            Ok("mio") => return Self::with(Backend::Poll, listener),
            Ok("io_uring") => return Self::with(Backend::Ring, listener),
            _ => {}
        }
        // A clone, because a ring that fails to start has already taken the first one.
        let second = listener.as_ref().map(TcpListener::try_clone).transpose()?;
        Self::with(Backend::Ring, listener).or_else(|_| Self::with(Backend::Poll, second))
    }

    /// A loop with this implementation.
    pub fn with(method: Backend, listener: Option<TcpListener>) -> io::Result<Self> {
        let driver: Box<dyn Driver> = match method {
            Backend::Ring => Box::new(Ring::new(listener)?),
            Backend::Poll => Box::new(Poll::new(listener)?),
        };
        Ok(Self { driver, method, _one_thread: PhantomData })
    }

    /// The implementation of this loop.
    pub fn method(&self) -> Backend {
        self.method
    }

    /// A handle by which other threads end a [`Sockets::wait`].
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// Receives into the spare capacity of `buffer`, which must have some; one receive at a time
    /// for each connection.
    pub fn recv(&mut self, connection: ConnectionId, buffer: Vec<u8>) {
        assert!(buffer.capacity() > buffer.len(), "no room to receive into");
        self.driver.recv(connection, buffer);
    }

    /// Queues slices; [`SocketEvent::Sent`] reports when the kernel has all of them. At least one
    /// slice is not empty.
    pub fn send(&mut self, connection: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        assert!(slices.iter().any(|slice| !slice.is_empty()), "nothing to send");
        self.driver.send(connection, slices, tag);
    }

    /// The number of bytes that the kernel has taken from this connection's queue since its
    /// beginning: if it stops while something is queued, the peer does not read.
    pub fn taken(&self, connection: ConnectionId) -> u64 {
        self.driver.taken(connection)
    }

    /// Ends the sending direction. To be called after the last `Sent`.
    pub fn finish(&mut self, connection: ConnectionId) {
        self.driver.finish(connection);
    }

    /// Closes the connection now, whatever is queued.
    pub fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    /// Accepts no connection any more: those that come wait in the kernel, as long as another
    /// descriptor of the listener is open. One that the kernel has accepted already may still be
    /// reported.
    pub fn stop_accepting(&mut self) {
        self.driver.stop_accepting();
    }

    /// Waits for events, at most this long, and appends them to `events`.
    pub fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()> {
        self.driver.wait(at_most, events)
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sockets({})", self.method)
    }
}

/// An implementation; its methods are those of [`Sockets`].
trait Driver {
    fn waker(&self) -> Waker;
    fn recv(&mut self, connection: ConnectionId, buffer: Vec<u8>);
    fn send(&mut self, connection: ConnectionId, slices: Vec<SendSlice>, tag: u64);
    fn taken(&self, connection: ConnectionId) -> u64;
    fn finish(&mut self, connection: ConnectionId);
    fn close(&mut self, connection: ConnectionId);
    fn stop_accepting(&mut self);
    fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()>;
}

/// The largest number of slices in one call. 64 slices of 64 KiB are a whole send window of media;
/// the array costs 1 KiB for each connection.
const GATHER: usize = 64;

/// The pause before accepting again when the kernel has no file descriptors left: connections have
/// to end first, and immediate attempts would only use the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
