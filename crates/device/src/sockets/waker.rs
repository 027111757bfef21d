//! Ends a wait from another thread: an eventfd, written at most once for each wake-up.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a [`super::Sockets::wait`] from any thread. Clones wake the same loop.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<WakerShared>,
}

#[derive(Debug)]
struct WakerShared {
    eventfd: OwnedFd,
    // Set from the first `wake` until the loop has seen it: later calls need no system call.
    raised: AtomicBool,
}

impl Waker {
    /// Makes the loop report [`super::SocketEvent::Woken`] soon, once for any number of calls.
    pub fn wake(&self) {
        if !self.shared.raised.swap(true, Ordering::AcqRel) {
            // Fails only when the counter is full, and then the loop is awake anyway.
            let _ = rustix::io::write(&self.shared.eventfd, &1u64.to_ne_bytes());
        }
    }

    /// Makes a waker. A ring waits in the kernel and needs a blocking one, a poller must not block.
    pub(super) fn new(nonblocking: bool) -> io::Result<Self> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        let shared = WakerShared { eventfd: eventfd(0, flags)?, raised: AtomicBool::new(false) };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.eventfd.as_fd()
    }

    /// Clears the flag. The loop looks for the reason of the wake-up after this, so that none is
    /// missed.
    pub(super) fn lower(&self) {
        self.shared.raised.store(false, Ordering::Release);
    }
}
