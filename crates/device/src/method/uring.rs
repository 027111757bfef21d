//! Reads by io_uring: a registered file, registered buffers, one system call for many reads.
//!
//! ```text
//!   submit ──▶ list (no system call)
//!   wait   ──▶ one call: hands over all of the list, waits for the first completion, collects all
//! ```
//!
//! That a ring can be made says little: whether reads work is found out with one. The ring itself
//! is made switched off and switched on by the thread that submits first, because a ring with a
//! single issuer belongs to who switches it on. The pool's memory is registered region by region,
//! when a buffer of it first comes by: registering pins memory, and memory not used should stay
//! untouched. What cannot be registered (a foreign pool, a low limit of locked memory) is read all
//! the same, only with more work for the kernel.
#![expect(unsafe_code, reason = "the kernel writes to buffers behind the compiler's back")]

use super::cached;
use super::in_flight::{InFlight, Read, refuses_method};
use crate::file::OpenFile;
use crate::frames::index;
use crate::{Buffer, Completion, DeviceError, Pool, Queue};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::ByteCount;

/// See the head of this file.
pub(super) struct UringQueue {
    file: Arc<OpenFile>,
    pool: Pool,
    setup: Setup,
    ring: IoUring,
    /// Switched on, by the thread that submits.
    started: bool,
    regions: Vec<Region>,
    reads: InFlight,
}

/// What a probe found to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    /// Completions are worked off by `wait`, not by interrupting the thread.
    deferred: bool,
    registered: bool,
}

/// Whether a region of the pool is registered with the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Unseen,
    Registered,
    Refused,
}

impl UringQueue {
    /// Fails with the kernel's reason if no read can be made this way.
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32, pool: &Pool) -> io::Result<Self> {
        let setup = Setup::probe(file, pool)?;
        let entries = depth.clamp(1, MOST_IN_FLIGHT);
        Ok(Self {
            ring: setup.ring(file, entries, setup.registered.then(|| pool.regions()))?,
            started: false,
            setup,
            file: Arc::clone(file),
            pool: pool.clone(),
            regions: vec![Region::Unseen; index(pool.regions())],
            reads: InFlight::new(file, depth),
        })
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        if !self.started {
            let switched_on = self.ring.submitter().register_enable_rings();
            switched_on.map_err(|e| self.failed("switching on a ring for", e))?;
            self.started = true;
        }
        Ok(())
    }

    /// Where the ring knows the memory of this slot's buffer, if it does.
    fn registered(&mut self, slot: usize) -> Option<u16> {
        if !self.setup.registered {
            return None;
        }
        let number = self.pool.region_of(&self.reads.read(slot).buffer)?;
        let region = &mut self.regions[index(number)];
        if *region == Region::Unseen {
            *region = match register(&self.ring, number, self.pool.region(number)) {
                Ok(()) => Region::Registered,
                Err(_) => Region::Refused,
            };
        }
        (*region == Region::Registered).then(|| u16::try_from(number).expect("few regions"))
    }

    /// Puts all fresh reads into the ring's queue, or as many as it has entries for.
    fn push(&mut self) {
        let fresh = self.reads.take_fresh();
        for (i, slot) in fresh.iter().enumerate() {
            let known = self.registered(*slot);
            let entry = entry(self.reads.read(*slot), known).user_data(*slot as u64);
            // SAFETY: the entry points into the buffer of this slot of `self.reads`, which stays
            // there until its completion has been seen (`Drop` waits too), and the buffer keeps its
            // pool alive.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.reads.put_back(&fresh[i..]);
                return;
            }
        }
    }

    /// Collects completions; what came short goes on.
    fn collect(&mut self, done: &mut Vec<Completion>) {
        for completion in self.ring.completion() {
            if completion.user_data() != CALLED_OFF {
                let slot = usize::try_from(completion.user_data()).expect("a slot");
                self.reads.answered(slot, completion.result().into(), done);
            }
        }
    }

    fn failed(&self, action: &'static str, error: io::Error) -> DeviceError {
        DeviceError::io(action, &self.file.path, (0, 0), error)
    }
}

impl Queue for UringQueue {
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.reads.submit(tag, offset, buffer);
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (start, before) = (Instant::now(), done.len());
        self.reads.drain(done);
        while self.reads.count() > 0 {
            self.start()?;
            self.push();
            let left = at_most.saturating_sub(start.elapsed());
            let ring = &mut self.ring;
            let waiting = done.len() == before && ring.completion().is_empty() && !left.is_zero();
            match enter(ring, waiting, left) {
                Err(e) if !is_passing(&e) => return Err(self.failed("waiting for reads of", e)),
                _ => self.collect(done),
            }
            if done.len() > before || left.is_zero() {
                break;
            }
        }
        Ok(())
    }

    /// What waits for a worker in the kernel is called off, too; what the disk has is not.
    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.reads.cancel_fresh();
        if self.reads.in_kernel() > 0 {
            let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
            // SAFETY: points to nothing.
            let pushed = unsafe { self.ring.submission().push(&all.user_data(CALLED_OFF)) };
            // Without room they go on, as those that the disk has.
            if pushed.is_ok() {
                match enter(&self.ring, false, Duration::ZERO) {
                    Err(e) if !is_passing(&e) => return Err(self.failed("calling off reads of", e)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.reads.count()
    }

    fn method(&self) -> String {
        let refused = self.regions.contains(&Region::Refused);
        let buffers = match (self.setup.registered, refused) {
            (true, false) => ", registered buffers",
            (true, true) => ", some buffers registered (raise the limit of locked memory)",
            (false, _) => "",
        };
        format!("io_uring, {}{buffers}", cached(&self.file))
    }
}

impl Drop for UringQueue {
    /// Waits for what is in flight. Where that is not possible (another thread made the ring), the
    /// buffers are never used again, because the kernel may still write to them.
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.reads.cancel_fresh();
        while self.reads.count() > 0 && self.wait(Duration::from_secs(1), &mut done).is_ok() {
            done.clear();
        }
        self.reads.abandon();
    }
}

impl Setup {
    /// The best setup that reads a block.
    fn probe(file: &OpenFile, pool: &Pool) -> io::Result<Self> {
        let mut refused = io::Error::from(Errno::NOSYS);
        let pinning = may_pin(pool.size());
        for (deferred, registered) in [(true, true), (true, false), (false, true), (false, false)] {
            if registered && !pinning {
                continue;
            }
            let setup = Self { deferred, registered };
            match setup.try_one_read(file, pool) {
                Ok(()) => return Ok(setup),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn try_one_read(self, file: &OpenFile, pool: &Pool) -> io::Result<()> {
        let spare = Pool::new(ByteCount(PROBE), ByteCount(PROBE));
        let (pool, buffer) = match pool.take(4096) {
            Some(buffer) => (pool, buffer),
            None => (&spare, spare.take(4096).expect("a pool of its own")),
        };
        let ring = self.ring(file, 1, self.registered.then(|| pool.regions()))?;
        ring.submitter().register_enable_rings()?;
        let mut known = None;
        if self.registered {
            let number = pool.region_of(&buffer).expect("taken from it above");
            register(&ring, number, pool.region(number))?;
            known = Some(u16::try_from(number).expect("few regions"));
        }
        let read = Read { tag: 0, offset: 0, buffer, got: 0 };
        let result = read_once(ring, &entry(&read, known));
        match result {
            Ok(result) => refuses_method(result.into()).map_or(Ok(()), |e| Err(e.into())),
            Err(error) => {
                // Perhaps it is still under way.
                std::mem::forget(read.buffer);
                Err(error)
            }
        }
    }

    /// A ring, switched off, that knows the file as number 0 and has room for as many regions.
    fn ring(self, file: &OpenFile, depth: u32, regions: Option<u32>) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_r_disabled();
        if self.deferred {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        }
        let ring = builder.build(depth.next_power_of_two())?;
        if !ring.params().is_feature_ext_arg() {
            return Err(Errno::NOSYS.into());
        }
        ring.submitter().register_files(&[file.file.as_raw_fd()])?;
        if let Some(regions) = regions {
            ring.submitter().register_buffers_sparse(regions.max(1))?;
        }
        Ok(ring)
    }
}

/// Whether pinning a pool leaves enough of what the user may lock for everybody else: rings, too,
/// count against it, and each disk's ring pins the pool again.
fn may_pin(pool: ByteCount) -> bool {
    let privileged = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    let limit = getrlimit(Resource::Memlock).current;
    privileged || limit.is_none_or(|limit| limit / SHARES_OF_LOCKED >= pool.0)
}

fn register(
    ring: &IoUring,
    number: u32,
    (start, len): (std::ptr::NonNull<u8>, usize),
) -> io::Result<()> {
    let region = libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len };
    // SAFETY: the region is mapped as long as the pool lives; the queue holds the pool, and the
    // kernel holds the pages.
    unsafe { ring.submitter().register_buffers_update(number, &[region], None) }
}

/// The rest of a read as the ring wants it.
fn entry(read: &Read, known: Option<u16>) -> squeue::Entry {
    // SAFETY: `got` is below the buffer's length.
    let start = unsafe { read.buffer.start().add(read.got) }.as_ptr();
    let rest = u32::try_from(read.buffer.len() - read.got).expect("reads are below 4 GiB");
    let offset = read.offset + read.got as u64;
    match known {
        Some(number) => {
            opcode::ReadFixed::new(Fixed(0), start, rest, number).offset(offset).build()
        }
        None => opcode::Read::new(Fixed(0), start, rest).offset(offset).build(),
    }
}

/// Makes one read and gives its result.
fn read_once(mut ring: IoUring, entry: &squeue::Entry) -> io::Result<i32> {
    // SAFETY: the caller keeps the buffer until this returns, for ever if it fails.
    unsafe { ring.submission().push(entry) }.map_err(|_| io::Error::from(Errno::NOSYS))?;
    let deadline = Instant::now() + PROBE_PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match enter(&ring, true, left) {
            Err(e) if !is_passing(&e) => return Err(e),
            _ => {}
        }
        if let Some(completion) = ring.completion().next() {
            return Ok(completion.result());
        }
        if left.is_zero() {
            return Err(Errno::TIMEDOUT.into());
        }
    }
}

/// Hands over what is queued and, if `waiting`, waits for a completion.
fn enter(ring: &IoUring, waiting: bool, at_most: Duration) -> io::Result<()> {
    let timeout = Timespec::from(at_most);
    let args = SubmitArgs::new().timespec(&timeout);
    ring.submitter().submit_with_args(usize::from(waiting), &args).map(drop)
}

/// Time was up, or a signal came, or the ring is full of completions: collect and try again.
fn is_passing(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN))
}

/// Of the memory that may be locked, the part that a ring may pin is one in so many.
const SHARES_OF_LOCKED: u64 = 4;

/// The name of what calls reads off, which is no read's.
const CALLED_OFF: u64 = u64::MAX;

/// Rings have at most 32,768 entries; no disk wants a tenth of that.
const MOST_IN_FLIGHT: u32 = 4096;

/// Memory of a probe when the pool has none: a huge page, the smallest region.
const PROBE: u64 = 2 << 20;

/// A disk that sleeps takes seconds to spin up.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);
