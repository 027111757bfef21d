//! The C library's `aio_read` and `aio_write`: the `aio` of the first paper.
//!
//! glibc implements them with its own threads and, for one file, one after another: they are here
//! for comparison only.
#![expect(unsafe_code, reason = "the C library's interface; its threads use buffers")]

use super::asynchronous::{AsyncInterface, AsyncQueue, RawCompletion};
use super::cached;
use super::in_flight::{InFlight, Remainder};
use crate::Direction;
use crate::open_file::OpenFile;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The C library's asynchronous I/O (`aio_read`, `aio_write`).
#[derive(Default)]
pub(super) struct PosixAio {
    /// The blocks of the C library by slot. Each stays at its address until its transfer has ended;
    /// blocks left when this is dropped are never freed.
    blocks: BTreeMap<usize, AioControlBlock>,
}

/// A request on the heap; `free` releases it after the C library has finished with it.
struct AioControlBlock(NonNull<libc::aiocb>);

// SAFETY: the only pointer to it beside the C library's, which does not care who asks.
unsafe impl Send for AioControlBlock {}

impl AioControlBlock {
    fn new(file: RawFd, rest: &Remainder) -> Self {
        // SAFETY: all zeros is a block that asks for nothing.
        let mut block: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        block.aio_fildes = file;
        block.aio_buf = rest.memory.as_ptr().cast();
        block.aio_nbytes = rest.len;
        block.aio_offset = rest.offset.cast_signed();
        // Completion is waited for with `aio_suspend`; a signal would reach the whole process.
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Self(NonNull::from(Box::leak(block)))
    }

    fn free(self) {
        // SAFETY: made by `Box::leak`, and given back once: `self` is consumed.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl PosixAio {
    pub(super) fn queue(file: &Arc<OpenFile>, depth: u32) -> AsyncQueue<Self> {
        AsyncQueue::new(file, depth, Self::default())
    }

    /// Collects the transfers that have ended.
    fn take_ended(&mut self, answers: &mut Vec<RawCompletion>) {
        let before = answers.len();
        for (slot, AioControlBlock(block)) in &self.blocks {
            // SAFETY: a block that the C library has.
            let said = unsafe { libc::aio_error(block.as_ptr()) };
            if said != libc::EINPROGRESS {
                // SAFETY: asked once, after the transfer has ended.
                let bytes = unsafe { libc::aio_return(block.as_ptr()) };
                answers.push((*slot, if said == 0 { bytes as i64 } else { -i64::from(said) }));
            }
        }
        // Not in the loop above, which borrows the blocks.
        for (slot, _) in &answers[before..] {
            if let Some(block) = self.blocks.remove(slot) {
                block.free();
            }
        }
    }

    /// Waits until one has ended; returns whether the time passed before.
    fn suspend(&self, at_most: Duration) -> bool {
        let blocks: Vec<*const libc::aiocb> = self
            .blocks
            .values()
            .map(|AioControlBlock(block)| block.as_ptr().cast_const())
            .collect();
        let time = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let count = i32::try_from(blocks.len()).expect("bounded by the depth");
        // SAFETY: blocks that the C library has; the list lives until it returns.
        let answer = unsafe { libc::aio_suspend(blocks.as_ptr(), count, &raw const time) };
        // Otherwise one has ended, or a signal arrived.
        answer != 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }
}

impl AsyncInterface for PosixAio {
    fn hand_over(&mut self, file: &OpenFile, transfers: &InFlight) -> io::Result<usize> {
        for (i, slot) in transfers.fresh().iter().enumerate() {
            let rest = transfers.rest(*slot);
            let block = AioControlBlock::new(file.file.as_raw_fd(), &rest);
            // SAFETY: the block lies on the heap and stays in `self.blocks`, and the buffer with
            // the queue, until the C library says that the transfer has ended.
            let answer = unsafe {
                match rest.direction {
                    Direction::Read => libc::aio_read(block.0.as_ptr()),
                    Direction::Write => libc::aio_write(block.0.as_ptr()),
                }
            };
            if answer != 0 {
                let error = io::Error::last_os_error();
                block.free();
                let full = error.kind() == io::ErrorKind::WouldBlock;
                // An error behind the first is asked for again and then belongs to the first.
                return if full || i > 0 { Ok(i) } else { Err(error) };
            }
            self.blocks.insert(*slot, block);
        }
        Ok(transfers.fresh().len())
    }

    fn collect(&mut self, at_most: Duration, answers: &mut Vec<RawCompletion>) -> io::Result<bool> {
        self.take_ended(answers);
        if !answers.is_empty() || self.blocks.is_empty() || at_most.is_zero() {
            return Ok(at_most.is_zero());
        }
        let time_is_up = self.suspend(at_most);
        self.take_ended(answers);
        Ok(time_is_up)
    }

    /// Cancels transfers; one that has begun continues.
    fn cancel(&mut self, file: &OpenFile) -> io::Result<()> {
        for AioControlBlock(block) in self.blocks.values() {
            // SAFETY: a block that the C library has.
            unsafe { libc::aio_cancel(file.file.as_raw_fd(), block.as_ptr()) };
        }
        Ok(())
    }

    fn method(&self, file: &OpenFile) -> String {
        format!("posix-aio, {}", cached(file))
    }
}
