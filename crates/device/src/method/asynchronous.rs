//! A queue over an asynchronous interface: the common part of io_uring, libaio and POSIX aio. Each
//! of them is an [`AsyncInterface`]; this queue decides when it is called.
//!
//! ```text
//!   start ──▶ list (no system call)
//!   wait  ──▶ submit all of the list ──▶ wait for the first completion, collect the others
//! ```

use super::in_flight::{InFlight, refuses_method};
use crate::block::ByteSpan;
use crate::open_file::OpenFile;
use crate::{Buffer, Completion, DeviceError, Direction, Queue, Transfer};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The slot of a transfer, and the kernel's result: bytes transferred, or a negated error number.
pub(super) type RawCompletion = (usize, i64);

/// An asynchronous interface of the kernel (or the C library), open for one file.
pub(super) trait AsyncInterface: Send {
    /// Submits fresh transfers, oldest first; returns how many were taken. Fewer than all means
    /// that it is full for now. An error is about the first of them.
    ///
    /// The memory of a submitted transfer belongs to the kernel until its completion.
    fn hand_over(&mut self, file: &OpenFile, transfers: &InFlight) -> io::Result<usize>;

    /// Waits at most `at_most` for a completion, and appends it and perhaps others; the rest are
    /// for the next call. May return early with none. Returns whether the time has passed.
    fn collect(&mut self, at_most: Duration, answers: &mut Vec<RawCompletion>) -> io::Result<bool>;

    /// Cancels submitted transfers that have not begun; they complete with `ECANCELED`.
    fn cancel(&mut self, _file: &OpenFile) -> io::Result<()> {
        Ok(())
    }

    /// See [`Queue::release_returned`].
    fn release_returned(&mut self) {}

    /// The description for [`Queue::method`].
    fn method(&self, file: &OpenFile) -> String;
}

/// A queue over an asynchronous interface of the kernel or the C library.
pub(super) struct AsyncQueue<K: AsyncInterface> {
    file: Arc<OpenFile>,
    kernel: K,
    transfers: InFlight,
    /// The reusable memory of `wait`.
    answers: Vec<RawCompletion>,
}

impl<K: AsyncInterface> AsyncQueue<K> {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32, kernel: K) -> Self {
        let transfers = InFlight::new(file, depth);
        Self { file: Arc::clone(file), kernel, transfers, answers: Vec::new() }
    }

    /// Submits fresh transfers, as many as the kernel takes now.
    fn hand_over(&mut self) -> io::Result<()> {
        while !self.transfers.fresh().is_empty() {
            let taken = self.kernel.hand_over(&self.file, &self.transfers)?;
            self.transfers.taken(taken);
            if taken == 0 && self.transfers.in_kernel() > 0 {
                // The rest is submitted after a completion.
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

/// Makes one read by this interface as a test, because its setup alone proves little. Fails with
/// the kernel's reason if it refuses the interface; an error of the disk does not count.
pub(super) fn probe<K: AsyncInterface>(
    file: &Arc<OpenFile>,
    mut kernel: K,
    buffer: Buffer,
) -> io::Result<()> {
    let mut transfers = InFlight::new(file, 1);
    let (tag, direction, offset) = (0, Direction::Read, 0);
    // Unchecked, because the probe asks the kernel and not what the file can do.
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
            // The read may still be in flight.
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

    /// The clock is read only where the kernel returned early with nothing (after a signal, or a
    /// short transfer): on some virtual machines reading it costs a tenth of a read. The time then
    /// starts again, once.
    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (before, mut left, mut early) = (done.len(), at_most, None);
        self.transfers.drain(done);
        while self.transfers.count() > 0 {
            self.hand_over().map_err(|e| self.failed("handing over", e))?;
            // Results without the kernel are ready, so the wait only collects and hands over.
            let patience = if done.len() > before { Duration::ZERO } else { left };
            let collected = self.kernel.collect(patience, &mut self.answers);
            for (slot, answer) in self.answers.drain(..) {
                self.transfers.answered(slot, answer, done);
            }
            // After the answers, which are valid even if the wait itself failed.
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

    fn release_returned(&mut self) {
        self.kernel.release_returned();
    }

    fn in_flight(&self) -> u32 {
        self.transfers.count()
    }

    fn method(&self) -> String {
        self.kernel.method(&self.file)
    }
}

impl<K: AsyncInterface> Drop for AsyncQueue<K> {
    /// Waits for transfers in the kernel. Where that is impossible (another thread made the ring),
    /// their buffers are never used again, because the kernel may still use them.
    fn drop(&mut self) {
        let mut done = Vec::new();
        self.transfers.cancel_fresh();
        while self.transfers.count() > 0 && self.wait(Duration::from_secs(1), &mut done).is_ok() {
            done.clear();
        }
        self.transfers.abandon();
    }
}

/// The pause after the kernel was out of memory for requests.
const WHILE_FULL: Duration = Duration::from_millis(1);

/// The time limit of a test read: a sleeping disk takes seconds to spin up.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);
