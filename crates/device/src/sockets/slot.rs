//! The memory of a connection in a ring: everything that the kernel points at during a receive or a
//! send.
#![expect(unsafe_code, reason = "the kernel's message header has no safe constructor")]

use super::GATHER;
use super::outbox::Outbox;
use std::net::TcpStream;

#[derive(Default)]
pub(super) struct RingSlot {
    pub(super) generation: u32,
    pub(super) connection: Option<RingConnection>,
}

pub(super) struct RingConnection {
    pub(super) stream: TcpStream,
    pub(super) receiving: Option<Vec<u8>>,
    pub(super) outbox: Outbox,
    pub(super) message: Box<SendMessage>,
    pub(super) sending: bool,
    pub(super) closing: bool,
    pub(super) failed: bool,
}

/// The message of a gathered send. Boxed, so that it does not move.
pub(super) struct SendMessage {
    pub(super) header: libc::msghdr,
    slices: [libc::iovec; GATHER],
}

impl RingConnection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            receiving: None,
            outbox: Outbox::default(),
            message: Box::new(SendMessage::empty()),
            sending: false,
            closing: false,
            failed: false,
        }
    }

    /// Whether it is closing and the kernel points at nothing of it.
    pub(super) fn is_over(&self) -> bool {
        self.closing && !self.sending && self.receiving.is_none()
    }
}

impl SendMessage {
    fn empty() -> Self {
        let slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; GATHER];
        // SAFETY: `msghdr` is plain data; all zeroes is the empty message.
        Self { header: unsafe { std::mem::zeroed() }, slices }
    }

    pub(super) fn fill(&mut self, outbox: &Outbox) {
        let mut count = 0;
        for (slice, bytes) in self.slices.iter_mut().zip(outbox.gather(GATHER)) {
            // `sendmsg` only reads; the pointer is mutable because `readv` shares the type.
            slice.iov_base = bytes.as_ptr().cast_mut().cast();
            slice.iov_len = bytes.len();
            count += 1;
        }
        self.header.msg_iov = self.slices.as_mut_ptr();
        self.header.msg_iovlen = count;
    }
}
