//! The kernel's older asynchronous interface (`io_setup`, `io_submit`, `io_getevents`), called
//! directly, so that no C library is needed.
//!
//! It is asynchronous for direct files only: a buffered transfer is made within `io_submit`, which
//! then waits for the disk. Submitted transfers cannot be cancelled.
#![expect(unsafe_code, reason = "system calls that no crate wraps; the kernel uses buffers")]

use super::asynchronous::{AsyncInterface, AsyncQueue, RawCompletion, probe};
use super::in_flight::{InFlight, Remainder};
use super::{cached, probe_buffer};
use crate::open_file::OpenFile;
use crate::{Direction, Pool};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;
use units::index;

/// The kernel's older asynchronous interface, open for one file.
pub(super) struct Libaio {
    context: AioContext,
    events: Vec<IoEvent>,
}

impl Libaio {
    /// Fails with the kernel's reason if no read can be made by it.
    pub(super) fn queue(
        file: &Arc<OpenFile>,
        depth: u32,
        pool: &Pool,
    ) -> io::Result<AsyncQueue<Self>> {
        probe(file, Self::new(1)?, probe_buffer(pool).1)?;
        Ok(AsyncQueue::new(file, depth, Self::new(depth.clamp(1, MOST_IN_FLIGHT))?))
    }

    fn new(in_kernel: u32) -> io::Result<Self> {
        let events = vec![IoEvent::default(); index(in_kernel)];
        Ok(Self { context: AioContext::new(in_kernel)?, events })
    }
}

impl AsyncInterface for Libaio {
    fn hand_over(&mut self, file: &OpenFile, transfers: &InFlight) -> io::Result<usize> {
        let fd = file.file.as_raw_fd();
        let control = |slot: &usize| ControlBlock::new(fd, *slot, &transfers.rest(*slot));
        let mut blocks: Vec<ControlBlock> = transfers.fresh().iter().map(control).collect();
        let mut taken = 0;
        while taken < blocks.len() {
            match self.context.submit(&mut blocks[taken..]) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                // The context is full; completions make room.
                Err(Errno::AGAIN) => break,
                // The next call returns the error for the first of them.
                Err(_) if taken > 0 => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(taken)
    }

    fn collect(&mut self, at_most: Duration, answers: &mut Vec<RawCompletion>) -> io::Result<bool> {
        let count = match self.context.collect(&mut self.events, at_most) {
            Ok(count) => count,
            // A signal is not the end of the time: the caller computes what is left and calls
            // again.
            Err(Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        let answer = |event: &IoEvent| (usize::try_from(event.data).expect("a slot"), event.result);
        answers.extend(self.events[..count].iter().map(answer));
        Ok(count == 0)
    }

    fn method(&self, file: &OpenFile) -> String {
        format!("libaio, {}", cached(file))
    }
}

/// The kernel's context of transfers; destroying it waits for those in it.
struct AioContext(u64);

impl AioContext {
    fn new(depth: u32) -> io::Result<Self> {
        let mut context: u64 = 0;
        // SAFETY: writes the context's number, which is as wide as a pointer.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        answered(made)?;
        Ok(Self(context))
    }

    /// Submits control blocks; returns how many the kernel has taken.
    fn submit(&self, blocks: &mut [ControlBlock]) -> Result<usize, Errno> {
        let pointers: Vec<*mut ControlBlock> = blocks.iter_mut().map(std::ptr::from_mut).collect();
        // SAFETY: the kernel copies the control blocks before it returns; the buffers they speak of
        // stay with the queue until their completion has been seen.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_submit, self.0, pointers.len(), pointers.as_ptr())
        };
        answered(taken)
    }

    /// Writes completions to `events`; waits for the first and returns their number.
    fn collect(&self, events: &mut [IoEvent], at_most: Duration) -> Result<usize, Errno> {
        let mut time = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        // Zero would return at once even with a timeout; with one the kernel waits for the first.
        let least = i64::from(!at_most.is_zero());
        let (most, into) = (events.len(), events.as_mut_ptr());
        // SAFETY: writes at most `most` events, and reads the time.
        let count = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.0, least, most, into, &raw mut time)
        };
        answered(count)
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours and not used again.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn answered(answer: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(answer)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// `struct iocb` of `<linux/aio_abi.h>`, little-endian as on all supported machines.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    operation_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

impl ControlBlock {
    fn new(file: RawFd, slot: usize, rest: &Remainder) -> Self {
        Self {
            data: slot as u64,
            opcode: match rest.direction {
                Direction::Read => PREAD,
                Direction::Write => PWRITE,
            },
            file: file.cast_unsigned(),
            buffer: rest.memory.addr().get() as u64,
            bytes: rest.len as u64,
            offset: rest.offset.cast_signed(),
            ..Self::default()
        }
    }
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    control: u64,
    result: i64,
    result2: i64,
}

/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;

/// `IOCB_CMD_PWRITE`.
const PWRITE: u16 = 1;

/// The largest number of requests in the kernel: a small part of the system's `aio-max-nr`, usually
/// 65,536.
const MOST_IN_FLIGHT: u32 = 4096;
