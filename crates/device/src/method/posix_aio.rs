//! Reads by the C library's `aio_read`, as the first paper's `aio`.
//!
//! glibc makes them with threads of its own and, of one file, one after another: it is here to be
//! measured, not to be used.
#![expect(unsafe_code, reason = "the C library's interface; its threads write to buffers")]

use super::cached;
use super::in_flight::InFlight;
use crate::file::OpenFile;
use crate::{Buffer, Completion, DeviceError, Queue};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the head of this file.
pub(super) struct PosixAioQueue {
    file: Arc<OpenFile>,
    reads: InFlight,
    /// With the C library, by slot. Each stays where it is until its read has ended.
    blocks: BTreeMap<usize, Block>,
}

/// A request, on the heap; given back by `free` once the C library has done with it.
struct Block(NonNull<libc::aiocb>);

// SAFETY: the only pointer to it beside the C library's, which does not care who asks.
unsafe impl Send for Block {}

impl Block {
    fn free(self) {
        // SAFETY: made by `Box::into_raw`, and given back once: `self` is consumed.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl PosixAioQueue {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32) -> Self {
        let reads = InFlight::new(file, depth);
        Self { file: Arc::clone(file), reads, blocks: BTreeMap::new() }
    }

    fn hand_over(&mut self) -> Result<(), DeviceError> {
        let fresh = self.reads.take_fresh();
        for (i, slot) in fresh.iter().enumerate() {
            let block = self.block(*slot);
            // SAFETY: the block lies on the heap and stays in `self.blocks`, and the buffer in
            // `self.reads`, until the C library says that the read has ended (`Drop` waits too).
            let taken = unsafe { libc::aio_read(block.0.as_ptr()) };
            if taken != 0 {
                let error = io::Error::last_os_error();
                block.free();
                self.reads.put_back(&fresh[i..]);
                if error.kind() == io::ErrorKind::WouldBlock && !self.blocks.is_empty() {
                    return Ok(());
                }
                let path = &self.file.path;
                return Err(DeviceError::io("handing over reads of", path, (0, 0), error));
            }
            self.blocks.insert(*slot, block);
        }
        Ok(())
    }

    /// The rest of a read as the C library wants it.
    fn block(&self, slot: usize) -> Block {
        let read = self.reads.read(slot);
        // SAFETY: all zeros is a block that asks for nothing.
        let mut block: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        block.aio_fildes = self.file.file.as_raw_fd();
        block.aio_lio_opcode = libc::LIO_READ;
        // SAFETY: `got` is below the buffer's length.
        block.aio_buf = unsafe { read.buffer.start().add(read.got) }.as_ptr().cast();
        block.aio_nbytes = read.buffer.len() - read.got;
        block.aio_offset = (read.offset + read.got as u64).cast_signed();
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Block(NonNull::from(Box::leak(block)))
    }

    /// Takes over what has ended.
    fn collect(&mut self, done: &mut Vec<Completion>) {
        let ended: Vec<(usize, i64)> = self
            .blocks
            .iter()
            .filter_map(|(slot, Block(block))| {
                // SAFETY: a block that the C library has.
                let said = unsafe { libc::aio_error(block.as_ptr()) };
                (said != libc::EINPROGRESS).then(|| {
                    // SAFETY: asked once, after the read has ended.
                    let bytes = unsafe { libc::aio_return(block.as_ptr()) };
                    (*slot, if said == 0 { bytes as i64 } else { -i64::from(said) })
                })
            })
            .collect();
        for (slot, answer) in ended {
            if let Some(block) = self.blocks.remove(&slot) {
                block.free();
            }
            self.reads.answered(slot, answer, done);
        }
    }

    fn suspend(&self, at_most: Duration) {
        let blocks: Vec<*const libc::aiocb> =
            self.blocks.values().map(|Block(block)| block.as_ptr().cast_const()).collect();
        let time = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let count = i32::try_from(blocks.len()).expect("bounded by the depth");
        // SAFETY: blocks that the C library has; the list lives until it returns. That time is up
        // or a signal came is seen by the caller from the blocks.
        unsafe { libc::aio_suspend(blocks.as_ptr(), count, &raw const time) };
    }
}

impl Queue for PosixAioQueue {
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.reads.submit(tag, offset, buffer);
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (start, before) = (Instant::now(), done.len());
        self.reads.drain(done);
        while self.reads.count() > 0 {
            self.hand_over()?;
            self.collect(done);
            let left = at_most.saturating_sub(start.elapsed());
            if done.len() > before || left.is_zero() {
                break;
            }
            if !self.blocks.is_empty() {
                self.suspend(left);
            }
        }
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.reads.cancel_fresh();
        for Block(block) in self.blocks.values() {
            // SAFETY: a block that the C library has. One that has begun goes on.
            unsafe { libc::aio_cancel(self.file.file.as_raw_fd(), block.as_ptr()) };
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.reads.count()
    }

    fn method(&self) -> String {
        format!("posix-aio, {}", cached(&self.file))
    }
}

impl Drop for PosixAioQueue {
    /// Waits for what is under way: the C library's threads write to the buffers.
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.reads.cancel_fresh();
        while self.reads.count() > 0 && self.wait(Duration::from_secs(1), &mut done).is_ok() {
            done.clear();
        }
        // Waiting failed: blocks (which are not freed) and buffers are the C library's for good.
        self.reads.abandon();
    }
}
