//! Reads by the kernel's older asynchronous interface (`io_setup`, `io_submit`, `io_getevents`),
//! called directly: no C library has to be there.
//!
//! ```text
//!   submit ──▶ list (no system call)
//!   wait   ──▶ io_submit: all of the list   ──▶ io_getevents: the first completion and more
//! ```
//!
//! Asynchronous for direct files only: a buffered read is made within `io_submit`, which then waits
//! for the disk. Reads in the kernel cannot be called off.
#![expect(unsafe_code, reason = "system calls that no crate wraps; the kernel writes to buffers")]

use super::cached;
use super::in_flight::{InFlight, Read, refuses_method};
use crate::file::OpenFile;
use crate::frames::index;
use crate::{Buffer, Completion, DeviceError, Pool, Queue};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::ByteCount;

/// See the head of this file.
pub(super) struct LibaioQueue {
    file: Arc<OpenFile>,
    context: Context,
    reads: InFlight,
    events: Vec<Event>,
}

impl LibaioQueue {
    /// Fails with the kernel's reason if no read can be made this way.
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32, pool: &Pool) -> io::Result<Self> {
        let in_kernel = depth.clamp(1, MOST_IN_FLIGHT);
        probe(file, pool)?;
        Ok(Self {
            file: Arc::clone(file),
            context: Context::new(in_kernel)?,
            reads: InFlight::new(file, depth),
            events: vec![Event::default(); index(in_kernel)],
        })
    }

    /// Hands over all fresh reads, or as many as the kernel takes now.
    fn hand_over(&mut self) -> Result<(), DeviceError> {
        let fresh = self.reads.take_fresh();
        let fd = self.file.file.as_raw_fd();
        let mut blocks: Vec<Control> =
            fresh.iter().map(|slot| Control::read(fd, *slot, self.reads.read(*slot))).collect();
        let mut taken = 0;
        while taken < blocks.len() {
            match self.context.submit(&mut blocks[taken..]) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                // Full: the rest goes when something has come back.
                Err(Errno::AGAIN) if self.reads.in_kernel() > fresh.len() - taken => break,
                Err(Errno::AGAIN) => std::thread::sleep(WHILE_FULL),
                Err(errno) => {
                    self.reads.put_back(&fresh[taken..]);
                    return Err(self.failed("handing over reads of", errno));
                }
            }
        }
        self.reads.put_back(&fresh[taken..]);
        Ok(())
    }

    fn failed(&self, action: &'static str, errno: Errno) -> DeviceError {
        DeviceError::io(action, &self.file.path, (0, 0), errno.into())
    }
}

impl Queue for LibaioQueue {
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.reads.submit(tag, offset, buffer);
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (start, before) = (Instant::now(), done.len());
        self.reads.drain(done);
        while self.reads.count() > 0 {
            self.hand_over()?;
            let left = at_most.saturating_sub(start.elapsed());
            let wait = if done.len() > before { Duration::ZERO } else { left };
            match self.context.collect(&mut self.events, wait) {
                Ok(count) => {
                    for event in &self.events[..count] {
                        let slot = usize::try_from(event.data).expect("a slot");
                        self.reads.answered(slot, event.result, done);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed("waiting for reads of", errno)),
            }
            if done.len() > before || left.is_zero() {
                break;
            }
        }
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.reads.cancel_fresh();
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.reads.count()
    }

    fn method(&self) -> String {
        format!("libaio, {}", cached(&self.file))
    }
}

impl Drop for LibaioQueue {
    /// Waits for what is in the kernel; `io_destroy` would, too, but may be interrupted.
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.reads.cancel_fresh();
        while self.reads.count() > 0 && self.wait(Duration::from_secs(1), &mut done).is_ok() {
            done.clear();
        }
        self.reads.abandon();
    }
}

fn probe(file: &Arc<OpenFile>, pool: &Pool) -> io::Result<()> {
    let spare = Pool::new(ByteCount::mib(2), ByteCount::mib(2));
    let buffer = pool.take(4096).or_else(|| spare.take(4096)).expect("a pool of its own");
    let (context, read) = (Context::new(1)?, Read { tag: 0, offset: 0, buffer, got: 0 });
    context.submit(&mut [Control::read(file.file.as_raw_fd(), 0, &read)])?;
    let mut event = [Event::default()];
    let deadline = Instant::now() + PROBE_PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match context.collect(&mut event, left) {
            Ok(1) => return refuses_method(event[0].result).map_or(Ok(()), |e| Err(e.into())),
            Err(errno) if errno != Errno::INTR => {
                std::mem::forget(read.buffer);
                return Err(errno.into());
            }
            _ if left.is_zero() => {
                // Perhaps it is still under way.
                std::mem::forget(read.buffer);
                return Err(Errno::TIMEDOUT.into());
            }
            _ => {}
        }
    }
}

/// The kernel's context of reads; destroyed with it, which waits for what is in it.
struct Context(u64);

impl Context {
    fn new(depth: u32) -> io::Result<Self> {
        let mut context: u64 = 0;
        // SAFETY: writes the context's number, which is as wide as a pointer.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        answered(made)?;
        Ok(Self(context))
    }

    /// How many of these the kernel has taken.
    fn submit(&self, blocks: &mut [Control]) -> Result<usize, Errno> {
        let pointers: Vec<*mut Control> = blocks.iter_mut().map(std::ptr::from_mut).collect();
        // SAFETY: the kernel copies the control blocks before it returns; the buffers they speak of
        // stay with the queue until their completion has been seen.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_submit, self.0, pointers.len(), pointers.as_ptr())
        };
        answered(taken)
    }

    /// How many completions have been written to `events`; waits for the first.
    fn collect(&self, events: &mut [Event], at_most: Duration) -> Result<usize, Errno> {
        let mut time = libc::timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let least = i64::from(!at_most.is_zero());
        let (most, into) = (events.len(), events.as_mut_ptr());
        // SAFETY: writes at most `most` events, and reads the time.
        let count = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.0, least, most, into, &raw mut time)
        };
        answered(count)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours and not used again.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn answered(answer: libc::c_long) -> Result<usize, Errno> {
    usize::try_from(answer)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// `struct iocb` of `<linux/aio_abi.h>`, little-endian as all machines we run on.
#[repr(C)]
struct Control {
    data: u64,
    key: u32,
    flags_of_read: u32,
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

impl Control {
    /// The rest of a read.
    fn read(file: RawFd, slot: usize, read: &Read) -> Self {
        Self {
            data: slot as u64,
            key: 0,
            flags_of_read: 0,
            opcode: PREAD,
            priority: 0,
            file: file.cast_unsigned(),
            buffer: read.buffer.start().addr().get() as u64 + read.got as u64,
            bytes: (read.buffer.len() - read.got) as u64,
            offset: (read.offset + read.got as u64).cast_signed(),
            reserved: 0,
            flags: 0,
            event_file: 0,
        }
    }
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    result2: i64,
}

/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;

/// Of the system's `aio-max-nr`, usually 65,536.
const MOST_IN_FLIGHT: u32 = 4096;

/// The kernel is short of memory for requests; it will not be for long.
const WHILE_FULL: Duration = Duration::from_millis(1);

/// A disk that sleeps takes seconds to spin up.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);
