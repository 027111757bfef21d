//! io_uring: a registered file, registered buffers, one system call for many transfers.
//!
//! ```text
//!   hand over ──▶ entries in the ring; a call for each [`BATCH`] of them but the last
//!   collect   ──▶ one call: starts the last, waits for the first completion, returns it alone;
//!                 if there was no need to wait, returns a [`BATCH`]
//! ```
//!
//! The block layer passes all requests of one call to the driver together, when the last of them
//! has been prepared. A fast device would be idle meanwhile, so many requests are submitted in
//! batches. A thread that had to wait may find all of its transfers complete and the device idle:
//! so one completion is returned alone, and the request that replaces it is in flight before the
//! others are handled. (On a virtual disk with one queue, 32 reads of 4 KiB: 61,000 to 67,000 a
//! second, with one interrupt for 30 reads instead of for 18.)
//!
//! Making a ring proves little: a read tests whether it works. The ring is made disabled and
//! enabled by the thread that submits first, because a ring with a single issuer belongs to the
//! thread that enables it. The pool's memory is registered region by region, when a buffer of it is
//! first used: registering pins memory, and unused memory should stay untouched. A buffer that
//! cannot be registered (of another pool, or beyond the limit of locked memory) works too, with
//! more work for the kernel.
//!
//! A polled ring asks the disk repeatedly instead of waiting for an interrupt: for disks of
//! microseconds. The kernel makes such a ring for every disk; here only a disk with polled queues
//! (`queue/io_poll`) gets one, and only for direct transfers. Transfers submitted to it cannot be
//! cancelled.
#![expect(unsafe_code, reason = "the kernel uses buffers behind the compiler's back")]

use super::asynchronous::{AsyncInterface, AsyncQueue, RawCompletion, probe};
use super::in_flight::{InFlight, Remainder};
use super::{cached, probe_buffer};
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
use units::index;

/// An io_uring for the reads and writes of one file.
pub(super) struct Uring {
    pool: Pool,
    ring: IoUring,
    /// Whether the submitting thread has enabled the ring.
    started: bool,
    polled: bool,
    /// The pool's regions in order; empty if no memory is registered.
    regions: Vec<BufferRegion>,
    /// How often the pool had returned memory to the kernel when `regions` was last looked at.
    returns: u32,
}

/// A setup that worked in a test read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    /// Completions are processed by `wait`, not by interrupting the thread.
    deferred: bool,
    registered: bool,
    polled: bool,
}

/// Whether a region of the pool is registered with the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferRegion {
    /// Not yet, or no more because the pool has returned a part of its memory to the kernel.
    Not,
    /// The pool had returned its memory to the kernel so often.
    Registered(u32),
    Refused,
}

impl Uring {
    /// Fails with the kernel's reason if no read can be made by it.
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
        let registered = if setup.registered { pool.regions() } else { 0 };
        let ring = setup.ring(file, depth, registered)?;
        let regions = vec![BufferRegion::Not; index(registered)];
        let (pool, returns) = (pool.clone(), pool.returns());
        Ok(Self { pool, ring, started: false, polled: setup.polled, regions, returns })
    }

    fn start(&mut self) -> io::Result<()> {
        if !self.started {
            self.ring.submitter().register_enable_rings()?;
            self.started = true;
        }
        Ok(())
    }

    /// Whether a system call is needed to start or complete requests; looking for completions is
    /// free otherwise. In a polled ring each look needs a call.
    fn has_work(&mut self) -> bool {
        let polled = self.polled;
        let queued = self.ring.submission();
        polled || !queued.is_empty() || queued.taskrun() || queued.cq_overflow()
    }

    /// The ring's number of this buffer's region, if it is registered.
    fn registered(&mut self, buffer: &Buffer) -> Option<u16> {
        if self.regions.is_empty() {
            return None;
        }
        self.unregister_returned();
        let number = self.pool.region_of(buffer)?;
        let region = &mut self.regions[index(number)];
        // Before it is registered: what is returned from here on is seen as returned.
        let returns = self.pool.returns_of(number);
        // A refusal is remembered: asking the kernel again for each read would cost a call. A
        // region without all of its memory would get the rest by being registered.
        if *region == BufferRegion::Not && self.pool.region_is_whole(number) {
            *region = match register(&self.ring, &self.pool, number) {
                Ok(()) => BufferRegion::Registered(returns),
                Err(_) => BufferRegion::Refused,
            };
        }
        let known = matches!(region, BufferRegion::Registered(_));
        known.then(|| u16::try_from(number).expect("few regions"))
    }

    // Memory that the pool has returned stays in use as long as it is registered, and where it was
    // the region gets other memory.
    fn unregister_returned(&mut self) {
        let returns = self.pool.returns();
        if std::mem::replace(&mut self.returns, returns) == returns {
            return;
        }
        for (number, region) in (0..).zip(&mut self.regions) {
            if let BufferRegion::Registered(before) = *region
                && before != self.pool.returns_of(number)
            {
                // Where the kernel refuses that, the memory is not used as registered either.
                let _ = unregister(&self.ring, number);
                *region = BufferRegion::Not;
            }
        }
    }
}

impl Drop for Uring {
    /// Releases the file. A ring that is closed with a registered file keeps it open until a worker
    /// of the kernel has taken the ring apart, some milliseconds later and also after the end of
    /// the process: an `umount` in this time fails with "target is busy".
    fn drop(&mut self) {
        // Fails in a thread other than the one that enabled the ring, without consequences but the
        // delay.
        let _ = self.ring.submitter().unregister_files();
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
                // The ring is full; the rest is handed over after completions have made room.
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
            // The cancel has a completion of its own, and no transfer waits for it.
            if completion.user_data() != CALLED_OFF {
                let slot = usize::try_from(completion.user_data()).expect("a slot");
                answers.push((slot, completion.result().into()));
            }
        }
        entered
    }

    /// Cancels transfers that wait for a worker in the kernel; those at the disk continue.
    fn cancel(&mut self, _file: &OpenFile) -> io::Result<()> {
        if self.polled {
            return Ok(());
        }
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        // SAFETY: points to nothing.
        let pushed = unsafe { self.ring.submission().push(&all.user_data(CALLED_OFF)) };
        // Without room in the ring they continue like those at the disk.
        if pushed.is_ok() {
            enter(&self.ring, false, Duration::ZERO)?;
        }
        Ok(())
    }

    fn release_returned(&mut self) {
        // A ring that is not enabled yet has no memory of the pool.
        if self.started {
            self.unregister_returned();
        }
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
        // From the cheapest setup for the processor to the one that every kernel has.
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
            // A refusal here would repeat later: read without registration then.
            let number = pool.region_of(&buffer).expect("taken from it above");
            register(&kernel.ring, &pool, number)?;
            kernel.regions[index(number)] = BufferRegion::Registered(pool.returns_of(number));
        }
        probe(file, kernel, buffer)
    }

    /// A disabled ring that knows the file as number 0 and has room for `regions` regions.
    fn ring(self, file: &OpenFile, depth: u32, regions: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        // A child process (FFmpeg) must not inherit the mapping of the ring.
        builder.dontfork().setup_r_disabled();
        if self.deferred {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        }
        if self.polled {
            builder.setup_iopoll();
        }
        let ring = builder.build(depth.next_power_of_two())?;
        // Before Linux 5.11 a wait cannot have a timeout.
        if !ring.params().is_feature_ext_arg() {
            return Err(Errno::NOSYS.into());
        }
        // A registered file spares the kernel a look-up and a reference count for each transfer.
        ring.submitter().register_files(&[file.file.as_raw_fd()])?;
        if regions > 0 {
            ring.submitter().register_buffers_sparse(regions)?;
        }
        Ok(ring)
    }
}

/// Whether the disk has polled queues; otherwise polling would only repeat calls until an
/// interrupt.
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

/// Whether pinning a pool leaves enough of the user's limit of locked memory: rings count against
/// it too, and each disk's ring pins the pool again.
fn may_pin(pool: ByteCount) -> bool {
    let privileged = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    let limit = getrlimit(Resource::Memlock).current;
    privileged || limit.is_none_or(|limit| limit / SHARES_OF_LOCKED >= pool.0)
}

fn register(ring: &IoUring, pool: &Pool, number: u32) -> io::Result<()> {
    let (start, len) = pool.region(number);
    let region = libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len };
    // SAFETY: the region is mapped as long as the pool lives; the queue holds the pool, and the
    // kernel holds the pages.
    unsafe { ring.submitter().register_buffers_update(number, &[region], None) }
}

fn unregister(ring: &IoUring, number: u32) -> io::Result<()> {
    let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    // SAFETY: names no memory.
    unsafe { ring.submitter().register_buffers_update(number, &[nothing], None) }
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

/// Submits queued entries and, if `waiting`, waits for a completion; returns whether the time
/// passed before. A signal, or a full completion queue, is no error: the caller collects
/// completions next.
fn enter(ring: &IoUring, waiting: bool, at_most: Duration) -> io::Result<bool> {
    let timeout = Timespec::from(at_most);
    // A timer has a cost, and the kernel supports no time this long.
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

/// Number of transfers that one call starts, and of completions taken together: 1, 2, 4 and 8 are
/// equally fast (4 KiB, depth 32, a virtual disk), 32 is a seventh slower; fewer calls take less
/// processor time.
const BATCH: usize = 4;

/// The inverse share of the process's lockable memory that one ring may pin.
const SHARES_OF_LOCKED: u64 = 4;

/// The identifier of cancel requests, which is no transfer's.
const CALLED_OFF: u64 = u64::MAX;

/// The largest number of entries: rings have at most 32,768, and no disk needs a tenth of that.
const MOST_IN_FLIGHT: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceKind, Geometry};
    use testkit::Need;

    const FRAME: usize = 64 << 10;

    /// Memory that the kernel has back is not pinned any more, although no read follows; where the
    /// pool uses all of it again, it is registered again.
    #[test]
    fn returned_memory_is_unregistered_without_a_read_and_registered_when_whole_again() {
        let pool = Pool::new(ByteCount(8 * FRAME as u64), ByteCount(FRAME as u64));
        let size = ByteCount::mib(1);
        let geometry = Geometry { size, block: 4096, rotational: false, kind: DeviceKind::File };
        let file = Arc::new(OpenFile {
            file: std::fs::File::open("/dev/zero").unwrap(),
            path: "/dev/zero".into(),
            geometry,
            direct: false,
            writable: false,
            number: 0,
            backing: None,
        });
        let setup = Setup { deferred: false, registered: true, polled: false };
        let mut ring = match Uring::new(setup, &file, 1, &pool) {
            Ok(ring) => ring,
            Err(error) => return testkit::skip(Need::IoUring, &error.to_string()),
        };
        ring.start().unwrap();
        let buffers = || [pool.take(FRAME).unwrap(), pool.take(FRAME).unwrap()];
        let both = buffers();
        assert_eq!(both.each_ref().map(|buffer| ring.registered(buffer)), [Some(0), Some(0)]);
        drop(both);
        assert!(pool.keep_at_most(ByteCount::ZERO), "two frames were free");
        assert!(!pool.keep_at_most(ByteCount::ZERO), "none is left");
        assert!(matches!(ring.regions[..], [BufferRegion::Registered(_)]));
        ring.release_returned();
        assert_eq!(ring.regions, [BufferRegion::Not]);
        let one = pool.take(FRAME).unwrap();
        assert_eq!(ring.registered(&one), None, "the kernel has the other frame");
        let other = pool.take(FRAME).unwrap();
        assert_eq!(ring.registered(&one), Some(0));
        assert_eq!(ring.registered(&other), Some(0));
    }
}
