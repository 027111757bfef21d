//! The two ends of a carrier's bytes in memory, as `h2` reads and writes them.
//!
//! It wakes nobody: whoever puts bytes in or takes some out polls again. The end of the peer's
//! bytes is not passed on: what has come whole is still delivered, and nothing else follows.

use device::sockets::SendSlice;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A handle of the bytes of one carrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe(Rc<RefCell<PipeBytes>>);

#[derive(Debug, Default)]
struct PipeBytes {
    /// Bytes of the peer, of which so many have been read.
    input: Vec<u8>,
    read: usize,
    /// Memory to write into, where there may be written, and the bytes that are written.
    room: Option<Arc<[u8]>>,
    written: usize,
    /// Bytes that may be written into the memory.
    most: usize,
}

impl Pipe {
    /// Takes bytes of the peer.
    pub(super) fn put(&self, bytes: &[u8]) {
        let this = &mut *self.0.borrow_mut();
        if this.read == this.input.len() {
            this.input.clear();
            this.read = 0;
        }
        this.input.extend_from_slice(bytes);
    }

    /// Whether all bytes of the peer have been read.
    pub(super) fn is_read(&self) -> bool {
        let this = self.0.borrow();
        this.read == this.input.len()
    }

    /// Lets at most `most` bytes be written into this memory, which nobody else holds.
    pub(super) fn give_room(&self, memory: Arc<[u8]>, most: usize) {
        let this = &mut *self.0.borrow_mut();
        this.most = most.min(memory.len());
        (this.room, this.written) = (Some(memory), 0);
    }

    /// Takes the memory back, and what has been written into it.
    pub(super) fn take_room(&self) -> Option<(Arc<[u8]>, SendSlice)> {
        let this = &mut *self.0.borrow_mut();
        let bytes = this.room.take()?;
        let range = 0..std::mem::take(&mut this.written);
        Some((Arc::clone(&bytes), SendSlice::Bytes { bytes, range }))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self.0.borrow_mut();
        if this.read == this.input.len() {
            // An idle connection keeps no memory for them.
            (this.input, this.read) = (Vec::new(), 0);
            return Poll::Pending;
        }
        let bytes = &this.input[this.read..];
        let count = bytes.len().min(into.remaining());
        into.put_slice(&bytes[..count]);
        this.read += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self.0.borrow_mut();
        let Some(memory) = this.room.as_mut().and_then(Arc::get_mut) else { return Poll::Pending };
        let mut count = 0;
        for slice in slices {
            let room = &mut memory[this.written..this.most];
            let more = slice.len().min(room.len());
            room[..more].copy_from_slice(&slice[..more]);
            this.written += more;
            count += more;
        }
        if count == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
