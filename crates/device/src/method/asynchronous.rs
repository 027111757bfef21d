//! A queue over an asynchronous way of reading and writing: what io_uring, libaio and POSIX aio
//! have in common. Each of them is a [`AsyncInterface`]; here is when it is asked for what.
//!
//! ```text
//!   start ──▶ list (no system call)
//!   wait  ──▶ hand over all of the list ──▶ wait for the first answer, collect what there is
//! ```

use super::in_flight::{InFlight, refuses_method};
use crate::block::ByteSpan;
use crate::open_file::OpenFile;
use crate::{Buffer, Completion, DeviceError, Direction, Queue, Transfer};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A transfer's slot, and what the kernel says of it: bytes moved, or a negated error number.
pub(super) type RawCompletion = (usize, i64);

/// An asynchronous interface of the kernel (or the C library), open for one file.
pub(super) trait AsyncInterface: Send {
    /// Hands over what is fresh, oldest first; how many were taken. Fewer than all: it is full for
    /// now. An error is about the first of them.
    ///
    /// Memory of what was taken is the kernel's until it has answered.
    fn hand_over(&mut self, file: &OpenFile, transfers: &InFlight) -> io::Result<usize>;

    /// Waits at most so long for an answer, and appends it and perhaps others that there are; the
    /// rest are for the next call. May come back early with none; whether that time has passed.
    fn collect(&mut self, at_most: Duration, answers: &mut Vec<RawCompletion>) -> io::Result<bool>;

    /// Calls off what was taken and has not begun; it is answered with `ECANCELED`.
    fn cancel(&mut self, _file: &OpenFile) -> io::Result<()> {
        Ok(())
    }

    /// For [`Queue::method`].
    fn method(&self, file: &OpenFile) -> String;
}

/// A queue over an asynchronous interface of the kernel or the C library.
pub(super) struct AsyncQueue<K: AsyncInterface> {
    file: Arc<OpenFile>,
    kernel: K,
    transfers: InFlight,
    /// Scratch of `wait`.
    answers: Vec<RawCompletion>,
}

impl<K: AsyncInterface> AsyncQueue<K> {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32, kernel: K) -> Self {
        let transfers = InFlight::new(file, depth);
        Self { file: Arc::clone(file), kernel, transfers, answers: Vec::new() }
    }

    /// Hands over what is fresh, or as much of it as the kernel takes now.
    fn hand_over(&mut self) -> io::Result<()> {
        while !self.transfers.fresh().is_empty() {
            let taken = self.kernel.hand_over(&self.file, &self.transfers)?;
            self.transfers.taken(taken);
            if taken == 0 && self.transfers.in_kernel() > 0 {
                // The rest goes when something has come back.
                break;
            }
            if taken == 0 {
                std::thread::sleep(WHILE_FULL);
            }
        }
        Ok(())
    }

    fn failed(&self, action: &'static str, error: io::Error) -> DeviceError {
        DeviceError::io(action, &self.file.path, ByteSpan::NONE, error)
    }
}

/// Makes one read by this kernel, which answers for all: that a method can be set up says little.
/// Fails with the kernel's reason if it refuses. What the disk says is not for or against it.
pub(super) fn probe<K: AsyncInterface>(
    file: &Arc<OpenFile>,
    mut kernel: K,
    buffer: Buffer,
) -> io::Result<()> {
    let mut transfers = InFlight::new(file, 1);
    let (tag, direction, offset) = (0, Direction::Read, 0);
    transfers.submit_unchecked(Transfer { tag, direction, offset, buffer });
    let taken = kernel.hand_over(file, &transfers)?;
    transfers.taken(taken);
    let mut answers = Vec::new();
    let deadline = Instant::now() + PROBE_PATIENCE;
    while answers.is_empty() && taken > 0 {
        let left = deadline.saturating_duration_since(Instant::now());
        let collected = kernel.collect(left, &mut answers);
        let late = answers.is_empty() && left.is_zero();
        if let Err(error) = collected.and(if late { Err(Errno::TIMEDOUT.into()) } else { Ok(()) }) {
            // Perhaps it is still under way.
            transfers.abandon();
            return Err(error);
        }
    }
    let answer = answers.first().map_or(-i64::from(Errno::NOSYS.raw_os_error()), |(_, said)| *said);
    refuses_method(answer).map_or(Ok(()), |errno| Err(errno.into()))
}

impl<K: AsyncInterface> Queue for AsyncQueue<K> {
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        self.transfers.submit(transfer);
        Ok(())
    }

    /// The clock is asked only where the kernel came back early with nothing (a signal, or a
    /// transfer that came short): on some virtual machines asking costs a tenth of a read. The time
    /// begins anew then, once.
    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (before, mut left, mut early) = (done.len(), at_most, None);
        self.transfers.drain(done);
        while self.transfers.count() > 0 {
            self.hand_over().map_err(|e| self.failed("handing over", e))?;
            let patience = if done.len() > before { Duration::ZERO } else { left };
            let collected = self.kernel.collect(patience, &mut self.answers);
            for (slot, answer) in self.answers.drain(..) {
                self.transfers.answered(slot, answer, done);
            }
            let time_is_up = collected.map_err(|e| self.failed("waiting for", e))?;
            if done.len() > before || time_is_up || left.is_zero() {
                break;
            }
            left = at_most.saturating_sub(early.get_or_insert_with(Instant::now).elapsed());
        }
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.transfers.cancel_fresh();
        if self.transfers.in_kernel() == 0 {
            return Ok(());
        }
        self.kernel.cancel(&self.file).map_err(|e| self.failed("calling off", e))
    }

    fn in_flight(&self) -> u32 {
        self.transfers.count()
    }

    fn method(&self) -> String {
        self.kernel.method(&self.file)
    }
}

impl<K: AsyncInterface> Drop for AsyncQueue<K> {
    /// Waits for what is in the kernel. Where that is not possible (another thread made the ring),
    /// the buffers are never used again, because the kernel may still use them.
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.transfers.cancel_fresh();
        while self.transfers.count() > 0 && self.wait(Duration::from_secs(1), &mut done).is_ok() {
            done.clear();
        }
        self.transfers.abandon();
    }
}

/// The kernel is short of memory for requests; it will not be for long.
const WHILE_FULL: Duration = Duration::from_millis(1);

/// A disk that sleeps takes seconds to spin up.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);
