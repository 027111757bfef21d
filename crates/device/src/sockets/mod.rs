//! A socket loop in the manner of completions, owned by one thread.
//!
//! ```text
//!   listener ──Accepted──▶ ┌───────────────┐ ◀──recv(buffer)── the thread
//!   kernel   ──Received──▶ │    Sockets    │ ◀──send(slices)──   that owns
//!            ──Sent──────▶ │ ring  or poll │ ◀──close()─────────   the loop
//!   Waker::wake ──Woken──▶ └───────────────┘ (other threads)
//! ```
//!
//! Bytes to send are lists of slices of shared memory; the loop keeps them alive until the kernel
//! has taken them, gathers what is queued into few calls and goes on by itself after a short send.
//! Two implementations with one behaviour: [`Backend::Ring`] (io_uring) and [`Backend::Poll`]
//! (epoll, where io_uring is refused). It knows no protocol, and sets no time limit: whoever uses
//! it watches [`Sockets::taken`].

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
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;
pub use waker::Waker;

/// How sockets are driven.
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

/// A connection of one [`Sockets`]; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    fn new(index: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | index as u64)
    }

    fn index(self) -> usize {
        slot_index(self.0)
    }
}

/// The lower half of a number that names a slot.
fn slot_index(number: u64) -> usize {
    usize::try_from(number & u64::from(u32::MAX)).expect("32 bits")
}

/// Bytes to be sent, not copied: a range of shared memory.
#[derive(Clone)]
pub enum SendSlice {
    /// Made for the occasion, or kept (headers, init segments).
    Bytes {
        /// The memory.
        bytes: Arc<[u8]>,
        /// Which part.
        range: Range<usize>,
    },
    /// Read from a device.
    Buffer {
        /// The memory; back to its pool when nobody holds it any more.
        buffer: SharedBuffer,
        /// Which part.
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

/// What happened.
#[derive(Debug)]
pub enum SocketEvent {
    /// Somebody connected.
    Accepted {
        /// Names the connection from here.
        connection: ConnectionId,
        /// Who.
        peer: SocketAddr,
    },
    /// Somebody could not be let in (no descriptors left, usually); the loop tries again soon.
    AcceptFailed {
        /// What the kernel said.
        error: io::Error,
    },
    /// A [`Sockets::recv`] is over.
    Received {
        /// Whose.
        connection: ConnectionId,
        /// As given, longer by what came.
        buffer: Vec<u8>,
        /// How much came; 0: the peer sends no more.
        outcome: io::Result<usize>,
    },
    /// The kernel has all slices of the [`Sockets::send`] with this tag.
    Sent {
        /// Whose.
        connection: ConnectionId,
        /// As given.
        tag: u64,
    },
    /// The peer is gone: nothing queued will be sent. Close the connection.
    SendFailed {
        /// Whose.
        connection: ConnectionId,
        /// What the kernel said.
        error: io::Error,
    },
    /// After [`Sockets::close`]: the connection is gone and its memory given back.
    Closed {
        /// Which.
        connection: ConnectionId,
    },
    /// A [`Waker`] was used since the last time.
    Woken,
}

/// The loop. Made, used and dropped by one thread.
///
/// Calls that name a connection that is closed, or being closed, do nothing.
pub struct Sockets {
    driver: Box<dyn Driver>,
    method: Backend,
    // A ring belongs to the thread that made it.
    _one_thread: PhantomData<*const ()>,
}

impl Sockets {
    /// A loop that accepts from `listener`, if there is one. Takes io_uring if the kernel lets us,
    /// unless the environment says `TENUTO_NET=mio`; `TENUTO_NET=io_uring` insists on it.
    pub fn new(listener: Option<TcpListener>) -> io::Result<Self> {
        match std::env::var("TENUTO_NET").as_deref() {
            Ok("mio") => return Self::with(Backend::Poll, listener),
            Ok("io_uring") => return Self::with(Backend::Ring, listener),
            _ => {}
        }
        let second = listener.as_ref().map(TcpListener::try_clone).transpose()?;
        Self::with(Backend::Ring, listener).or_else(|_| Self::with(Backend::Poll, second))
    }

    /// A loop of this kind.
    pub fn with(method: Backend, listener: Option<TcpListener>) -> io::Result<Self> {
        let driver: Box<dyn Driver> = match method {
            Backend::Ring => Box::new(Ring::new(listener)?),
            Backend::Poll => Box::new(Poll::new(listener)?),
        };
        Ok(Self { driver, method, _one_thread: PhantomData })
    }

    /// Which kind this is.
    pub fn method(&self) -> Backend {
        self.method
    }

    /// Something with which other threads end a [`Sockets::wait`].
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// Takes over a connection made elsewhere.
    pub fn add(&mut self, stream: TcpStream) -> io::Result<ConnectionId> {
        self.driver.add(stream)
    }

    /// Lets nobody new in; connections stay.
    pub fn stop_accepting(&mut self) {
        self.driver.stop_accepting();
    }

    /// Receives into the spare room of `buffer`, which must have some; one at a time for each
    /// connection.
    pub fn recv(&mut self, connection: ConnectionId, buffer: Vec<u8>) {
        assert!(buffer.capacity() > buffer.len(), "no room to receive into");
        self.driver.recv(connection, buffer);
    }

    /// Queues slices behind what is queued already; [`SocketEvent::Sent`] says when the kernel
    /// has them all. At least one slice is not empty.
    pub fn send(&mut self, connection: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        assert!(slices.iter().any(|slice| !slice.is_empty()), "nothing to send");
        self.driver.send(connection, slices, tag);
    }

    /// Bytes that the kernel has taken from this connection's queue since it began: who sees it
    /// stand still while something is queued knows that the peer does not read.
    pub fn taken(&self, connection: ConnectionId) -> u64 {
        self.driver.taken(connection)
    }

    /// Tells the peer that nothing more comes. For after the last `Sent`.
    pub fn finish(&mut self, connection: ConnectionId) {
        self.driver.finish(connection);
    }

    /// Ends the connection now, whatever is queued.
    pub fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    /// Waits until something has happened, at most this long, and appends it to `events`.
    pub fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()> {
        self.driver.wait(at_most, events)
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sockets({})", self.method)
    }
}

/// One implementation; the methods are those of [`Sockets`].
trait Driver {
    fn waker(&self) -> Waker;
    fn add(&mut self, stream: TcpStream) -> io::Result<ConnectionId>;
    fn stop_accepting(&mut self);
    fn recv(&mut self, connection: ConnectionId, buffer: Vec<u8>);
    fn send(&mut self, connection: ConnectionId, slices: Vec<SendSlice>, tag: u64);
    fn taken(&self, connection: ConnectionId) -> u64;
    fn finish(&mut self, connection: ConnectionId);
    fn close(&mut self, connection: ConnectionId);
    fn wait(&mut self, at_most: Duration, events: &mut Vec<SocketEvent>) -> io::Result<()>;
}

/// Slices given to the kernel in one call. 64 slices of 64 KiB are a whole send window of media;
/// the array costs 1 KiB for each connection.
const GATHER: usize = 64;

/// How long to wait before accepting again when the kernel had no descriptor left: connections
/// have to end first, and trying at once would only burn the core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
