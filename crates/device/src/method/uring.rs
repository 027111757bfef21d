//! io_uring: a registered file, registered buffers, one system call for many transfers.
//!
//! ```text
//!   hand over ──▶ entries in the ring; a call for each [`BATCH`] of them but the last
//!   collect   ──▶ one call: starts the last, waits for the first completion, takes it alone;
//!                 without having waited, takes a [`BATCH`]
//! ```
//!
//! What one call starts, the block layer gives to the driver together, when the last of them has
//! been made ready. A device of microseconds idles meanwhile, so many go in batches. Who had to
//! wait may find all of its transfers ended and the device idle: so one is taken alone, and what is
//! begun in its place is under way before the others are looked at. (A virtual disk of one queue,
//! 32 reads of 4 KiB: 61,000 to 67,000 a second, and one interrupt for 30 instead of for 18.)
//!
//! That a ring can be made says little: whether reads work is found out with one. The ring itself
//! is made switched off and switched on by the thread that submits first, because a ring with a
//! single issuer belongs to who switches it on. The pool's memory is registered region by region,
//! when a buffer of it first comes by: registering pins memory, and memory not used should stay
//! untouched. What cannot be registered (a foreign pool, a low limit of locked memory) is read all
//! the same, only with more work for the kernel.
//!
//! A polled ring asks the disk whether it is done instead of waiting to be told, for as long as the
//! disk takes: for disks of microseconds. The kernel makes such a ring over every disk; only one
//! with queues that are polled (`queue/io_poll`) gets one here, and only for direct transfers. What
//! was handed over is not called off in it.
#![expect(unsafe_code, reason = "the kernel uses buffers behind the compiler's back")]

use super::asynchronous::{AsyncInterface, AsyncQueue, RawCompletion, probe};
use super::in_flight::{InFlight, Remainder};
use super::{cached, probe_buffer};
use crate::frames::index;
use crate::open_file::OpenFile;
use crate::sysfs::SysfsDisk;
use crate::{Buffer, Direction, Pool};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// An io_uring for the reads and writes of one file.
pub(super) struct Uring {
    pool: Pool,
    ring: IoUring,
    /// Switched on, by the thread that submits.
    started: bool,
    polled: bool,
    /// The pool's regions in order; none if no memory is registered.
    regions: Vec<BufferRegion>,
}

/// What a probe found to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    /// Completions are worked off by `wait`, not by interrupting the thread.
    deferred: bool,
    registered: bool,
    polled: bool,
}

/// Whether a region of the pool is registered with the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferRegion {
    Unseen,
    Registered,
    Refused,
}

impl Uring {
    /// Fails with the kernel's reason if no read can be made this way.
    pub(super) fn queue(
        file: &Arc<OpenFile>,
        depth: u32,
        pool: &Pool,
        polled: bool,
    ) -> io::Result<AsyncQueue<Self>> {
        if polled {
            can_poll(file)?;
        }
        let setup = Setup::probe(file, pool, polled)?;
        let kernel = Self::new(setup, file, depth.clamp(1, MOST_IN_FLIGHT), pool)?;
        Ok(AsyncQueue::new(file, depth, kernel))
    }

    fn new(setup: Setup, file: &OpenFile, depth: u32, pool: &Pool) -> io::Result<Self> {
        let regions = if setup.registered { pool.regions() } else { 0 };
        let ring = setup.ring(file, depth, regions)?;
        let regions = vec![BufferRegion::Unseen; index(regions)];
        Ok(Self { pool: pool.clone(), ring, started: false, polled: setup.polled, regions })
    }

    fn start(&mut self) -> io::Result<()> {
        if !self.started {
            self.ring.submitter().register_enable_rings()?;
            self.started = true;
        }
        Ok(())
    }

    /// Whether the kernel has something to begin or to end that only a call makes it do: looking
    /// for completions is free otherwise. In a polled ring each look is the kernel's.
    fn has_work(&mut self) -> bool {
        let polled = self.polled;
        let queued = self.ring.submission();
        polled || !queued.is_empty() || queued.taskrun() || queued.cq_overflow()
    }

    /// Where the ring knows this buffer's memory, if it does.
    fn registered(&mut self, buffer: &Buffer) -> Option<u16> {
        if self.regions.is_empty() {
            return None;
        }
        let number = self.pool.region_of(buffer)?;
        let region = &mut self.regions[index(number)];
        if *region == BufferRegion::Unseen {
            *region = match register(&self.ring, number, self.pool.region(number)) {
                Ok(()) => BufferRegion::Registered,
                Err(_) => BufferRegion::Refused,
            };
        }
        (*region == BufferRegion::Registered).then(|| u16::try_from(number).expect("few regions"))
    }
}

impl AsyncInterface for Uring {
    fn hand_over(&mut self, _file: &OpenFile, transfers: &InFlight) -> io::Result<usize> {
        self.start()?;
        for (i, slot) in transfers.fresh().iter().enumerate() {
            if i > 0 && i % BATCH == 0 {
                enter(&self.ring, false, Duration::ZERO)?;
            }
            let known = self.registered(&transfers.transfer(*slot).buffer);
            let entry = entry(&transfers.rest(*slot), known).user_data(*slot as u64);
            // SAFETY: the entry points into a buffer that stays with the queue until its completion
            // has been seen, and the buffer keeps its pool alive.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                return Ok(i);
            }
        }
        Ok(transfers.fresh().len())
    }

    fn collect(&mut self, at_most: Duration, answers: &mut Vec<RawCompletion>) -> io::Result<bool> {
        let waiting = self.ring.completion().is_empty() && !at_most.is_zero();
        let entered = if waiting || self.has_work() {
            enter(&self.ring, waiting, at_most)
        } else {
            Ok(false)
        };
        let most = if waiting { 1 } else { BATCH };
        for completion in self.ring.completion().take(most) {
            if completion.user_data() != CALLED_OFF {
                let slot = usize::try_from(completion.user_data()).expect("a slot");
                answers.push((slot, completion.result().into()));
            }
        }
        entered
    }

    /// What waits for a worker in the kernel is called off; what the disk has is not.
    fn cancel(&mut self, _file: &OpenFile) -> io::Result<()> {
        if self.polled {
            return Ok(());
        }
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        // SAFETY: points to nothing.
        let pushed = unsafe { self.ring.submission().push(&all.user_data(CALLED_OFF)) };
        // Without room they go on, as those that the disk has.
        if pushed.is_ok() {
            enter(&self.ring, false, Duration::ZERO)?;
        }
        Ok(())
    }

    fn method(&self, file: &OpenFile) -> String {
        let buffers = match (self.regions.is_empty(), self.regions.contains(&BufferRegion::Refused))
        {
            (true, _) => "",
            (false, false) => ", registered buffers",
            (false, true) => ", some buffers registered (raise the limit of locked memory)",
        };
        let how = if self.polled { ", polling" } else { "" };
        format!("io_uring, {}{buffers}{how}", cached(file))
    }
}

impl Setup {
    /// The best setup that reads a block.
    fn probe(file: &Arc<OpenFile>, pool: &Pool, polled: bool) -> io::Result<Self> {
        let mut refused = io::Error::from(Errno::NOSYS);
        let pinning = may_pin(pool.size());
        for (deferred, registered) in [(true, true), (true, false), (false, true), (false, false)] {
            if registered && !pinning {
                continue;
            }
            let setup = Self { deferred, registered, polled };
            match setup.try_one_read(file, pool) {
                Ok(()) => return Ok(setup),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn try_one_read(self, file: &Arc<OpenFile>, pool: &Pool) -> io::Result<()> {
        let (pool, buffer) = probe_buffer(pool);
        let mut kernel = Uring::new(self, file, 1, &pool)?;
        if self.registered {
            // Refused here, it is refused later: then without.
            let number = pool.region_of(&buffer).expect("taken from it above");
            register(&kernel.ring, number, pool.region(number))?;
            kernel.regions[index(number)] = BufferRegion::Registered;
        }
        probe(file, kernel, buffer)
    }

    /// A ring, switched off, that knows the file as number 0 and has room for so many regions.
    fn ring(self, file: &OpenFile, depth: u32, regions: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_r_disabled();
        if self.deferred {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        }
        if self.polled {
            builder.setup_iopoll();
        }
        let ring = builder.build(depth.next_power_of_two())?;
        if !ring.params().is_feature_ext_arg() {
            return Err(Errno::NOSYS.into());
        }
        ring.submitter().register_files(&[file.file.as_raw_fd()])?;
        if regions > 0 {
            ring.submitter().register_buffers_sparse(regions)?;
        }
        Ok(ring)
    }
}

/// Whether polling this file is more than asking over and over for what comes by interrupt.
fn can_poll(file: &OpenFile) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::Unsupported, why));
    if !file.direct {
        return refused("only direct reads can be polled for");
    }
    if !SysfsDisk::of_number(file.number).is_some_and(|disk| disk.polls()) {
        return refused("the disk has no queues that are polled");
    }
    Ok(())
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

/// The rest of a transfer as the ring wants it.
fn entry(rest: &Remainder, known: Option<u16>) -> squeue::Entry {
    let (file, start, offset) = (Fixed(0), rest.memory.as_ptr(), rest.offset);
    let len = u32::try_from(rest.len).expect("transfers are below 4 GiB");
    match (rest.direction, known) {
        (Direction::Read, Some(region)) => {
            opcode::ReadFixed::new(file, start, len, region).offset(offset).build()
        }
        (Direction::Read, None) => opcode::Read::new(file, start, len).offset(offset).build(),
        (Direction::Write, Some(region)) => {
            opcode::WriteFixed::new(file, start, len, region).offset(offset).build()
        }
        (Direction::Write, None) => opcode::Write::new(file, start, len).offset(offset).build(),
    }
}

/// Hands over what is queued and, if `waiting`, waits for a completion; whether time was up before.
/// A signal, or a ring full of completions, is no error: the caller sees what it collects.
fn enter(ring: &IoUring, waiting: bool, at_most: Duration) -> io::Result<bool> {
    let timeout = Timespec::from(at_most);
    // A timer costs something, too, and the kernel knows no time that long.
    let for_ever = at_most == Duration::MAX;
    let args = if for_ever { SubmitArgs::new() } else { SubmitArgs::new().timespec(&timeout) };
    let Err(error) = ring.submitter().submit_with_args(usize::from(waiting), &args) else {
        return Ok(false);
    };
    match Errno::from_io_error(&error) {
        Some(Errno::TIME) => Ok(true),
        Some(Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(false),
        _ => Err(error),
    }
}

/// Transfers that one call starts, and completions taken at once: 1, 2, 4 and 8 are as fast (4 KiB,
/// 32 at a time, a virtual disk), 32 a seventh slower; the fewer calls, the less processor time.
const BATCH: usize = 4;

/// A ring may pin one part in this many of the memory that the process may lock.
const SHARES_OF_LOCKED: u64 = 4;

/// The name of what calls transfers off, which is no transfer's.
const CALLED_OFF: u64 = u64::MAX;

/// Rings have at most 32,768 entries; no disk wants a tenth of that.
const MOST_IN_FLIGHT: u32 = 4096;
