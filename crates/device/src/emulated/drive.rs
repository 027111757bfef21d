//! The modelled disk in real time: accepts requests, and answers each at the moment at which the
//! model completes it.
//!
//! ```text
//!   read, write ──▶ CommandQueue ──▶ bytes fetched ──▶ held until the model's moment ──▶ answered
//!   (any thread)    └────────────── one thread, woken by a timer or by a request ──────────────┘
//! ```
//!
//! No answer is early. A late answer (the thread was not run, or copying took time) is counted as
//! late, and the next service still starts at the model's moment, so that lateness does not
//! accumulate, also for a program that waits for each answer ([`Compensation`]). A write is in the
//! file on arrival, and is answered when the model has written it.

use super::backing::Backing;
use super::command_queue::{CommandQueue, DiskRequest};
use super::compensation::Compensation;
use super::statistics::{Counters, DiskStatistics};
use crate::Access;
use disk::{Head, Service};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use units::{Moment, locked};

/// A callback that receives the bytes that were read (none for a write), or the error.
pub(super) type Answer = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;

/// The modelled disk in real time.
pub(super) struct Drive {
    backing: Backing,
    origin: Instant,
    /// Nanoseconds of the model per nanosecond of the clock.
    speed: u32,
    /// Whether the disk has an arm and serves one request at a time.
    arm: bool,
    state: Mutex<DriveState>,
    wakeup: Condvar,
}

struct DriveState {
    line: CommandQueue<Pending>,
    compensation: Compensation,
    counters: Counters,
    /// The arrival and the answer of the request that was answered last.
    latest: Option<(Moment, Moment)>,
    fast: bool,
    closing: bool,
}

/// A waiting request's callback, and its time of arrival by the clock.
struct Pending {
    came: Moment,
    answer: Answer,
}

/// A request in service, with its bytes.
struct InService {
    request: DiskRequest,
    service: Service,
    waiting: Pending,
    bytes: io::Result<Vec<u8>>,
}

impl Drive {
    /// Makes a drive. For `depth` see [`CommandQueue::new`]; `speed` is the factor by which the
    /// model's clock is faster.
    pub(super) fn new(backing: Backing, head: Head, depth: u32, speed: u32, fast: bool) -> Self {
        let (speed, arm) = (speed.max(1), head.model().rotational());
        let state = DriveState {
            line: CommandQueue::new(head, depth),
            compensation: Compensation::new(speed),
            latest: None,
            counters: Counters::new(Moment::ZERO),
            fast,
            closing: false,
        };
        let (state, wakeup) = (Mutex::new(state), Condvar::new());
        Self { backing, origin: Instant::now(), speed, arm, state, wakeup }
    }

    /// Reads up to `len` bytes; fewer at the end of the disk.
    pub(super) fn read(&self, offset: u64, len: u64, answer: Answer) {
        let came = self.now();
        let len = len.min(self.backing.size.0.saturating_sub(offset));
        if len == 0 {
            return answer(Ok(&[]));
        }
        self.ask(offset, len, Access::Read, Pending { came, answer });
    }

    /// Writes all of `from`, or nothing.
    pub(super) fn write(&self, offset: u64, from: &[u8], answer: Answer) {
        let came = self.now();
        let len = from.len() as u64;
        if len == 0 {
            return answer(Ok(&[]));
        }
        if offset.checked_add(len).is_none_or(|end| end > self.backing.size.0) {
            return answer(Err(io::ErrorKind::StorageFull.into()));
        }
        // Written when it comes, so that a later read finds the bytes in whichever order they are
        // served.
        if let Err(error) = self.backing.write(offset, from) {
            locked(&self.state).counters.failed();
            return answer(Err(error));
        }
        self.ask(offset, len, Access::Write, Pending { came, answer });
    }

    /// Answers when all earlier writes have left the disk's cache.
    pub(super) fn flush(&self, answer: Answer) {
        self.ask(0, 0, Access::Flush, Pending { came: self.now(), answer });
    }

    /// Switches fast mode, in which requests take only the time of the file; waiting ones are
    /// answered.
    pub(super) fn set_fast(&self, on: bool) {
        let mut state = locked(&self.state);
        state.fast = on;
        // Times in fast mode are not the model's, so nothing is owed for them.
        state.compensation.forget();
        drop(state);
        self.wakeup.notify_all();
    }

    /// Sets the time of the round trip to the disk, which is not the disk's time.
    pub(super) fn set_round_trip(&self, round_trip: Duration) {
        locked(&self.state).compensation.set_round_trip(round_trip);
    }

    /// The round trip that was set; zero on a disk without an arm, which starts requests on
    /// arrival.
    pub(super) fn round_trip(&self) -> Duration {
        locked(&self.state).compensation.round_trip()
    }

    /// The arrival and the answer of the request that was answered last.
    pub(super) fn latest(&self) -> Option<(Moment, Moment)> {
        locked(&self.state).latest
    }

    pub(super) fn is_fast(&self) -> bool {
        locked(&self.state).fast
    }

    pub(super) fn statistics(&self) -> DiskStatistics {
        let state = locked(&self.state);
        state.counters.statistics(self.now())
    }

    pub(super) fn reset_statistics(&self) {
        let mut state = locked(&self.state);
        state.counters = Counters::new(self.now());
    }

    /// Makes [`Drive::run`] return.
    pub(super) fn close(&self) {
        locked(&self.state).closing = true;
        self.wakeup.notify_all();
    }

    /// The backing file.
    pub(super) fn backing(&self) -> BorrowedFd<'_> {
        self.backing.as_fd()
    }

    /// The loop of the disk's own thread. Requests that wait when it is closed fail; the file is
    /// unlocked when this returns.
    pub(super) fn run(&self) {
        let mut at_work: VecDeque<InService> = VecDeque::new();
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let mut state = locked(&self.state);
        while !state.closing {
            let now = self.now();
            let due = at_work.front().map(|served| served.service.finish);
            if due.is_some_and(|due| due <= now || state.fast) {
                let fast = state.fast;
                let served = at_work.pop_front().expect("the front was just looked at");
                if self.arm {
                    // Before the answer is sent: the program may ask again before this thread has
                    // the lock.
                    state.compensation.answers(served.service.finish, served.waiting.came);
                }
                drop(state);
                let counted = self.answer(served, &mut spare);
                state = locked(&self.state);
                counted.book(&mut state, fast);
            } else if state.fast {
                let waiting: Vec<_> = state.line.drain().collect();
                if waiting.is_empty() {
                    state = self.wait(state, None);
                    continue;
                }
                drop(state);
                waiting.into_iter().for_each(|(request, who)| self.pass(request, who.answer));
                state = locked(&self.state);
            } else if let Some((request, waiting, service)) = state.line.next(now) {
                drop(state);
                // The bytes are ready before the model's moment, so that only the answer remains to
                // be sent then.
                let bytes = self.fetch(request, spare.pop().unwrap_or_default());
                at_work.push_back(InService { request, service, waiting, bytes });
                state = locked(&self.state);
            } else {
                // The model's time divided by the speed is time of the real clock.
                state = self.wait(state, due.map(|due| due.since(now) / self.speed));
            }
        }
        // The waiting requests are dropped on this thread, whose file table has the files for their
        // answers.
        state.line.drain().for_each(drop);
        self.backing.unlock();
    }

    fn ask(&self, offset: u64, len: u64, what: Access, waiting: Pending) {
        let mut state = locked(&self.state);
        // The time is taken under the lock, so that arrivals are in order.
        let request =
            DiskRequest { arrival: state.compensation.asked(waiting.came), offset, len, what };
        if state.fast {
            drop(state);
            return self.pass(request, waiting.answer);
        }
        state.line.arrive(request, waiting);
        drop(state);
        self.wakeup.notify_one();
    }

    /// Serves a request at the speed of the file.
    fn pass(&self, request: DiskRequest, answer: Answer) {
        locked(&self.state).counters.passed_fast();
        let bytes = self.fetch(request, Vec::new());
        if bytes.is_err() {
            locked(&self.state).counters.failed();
        }
        answer(bytes.as_deref().map_err(same));
    }

    fn fetch(&self, request: DiskRequest, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if request.what != Access::Read {
            bytes.clear();
        } else {
            bytes.resize(usize::try_from(request.len).unwrap_or(usize::MAX), 0);
            self.backing.read(request.offset, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn answer(&self, served: InService, spare: &mut Vec<Vec<u8>>) -> CompletedRequest {
        let InService { request, service, waiting: Pending { came, answer }, bytes } = served;
        answer(bytes.as_deref().map_err(same));
        let (answered, failed) = (self.now(), bytes.is_err());
        let counted = CompletedRequest { request, service, came, answered, failed };
        if let Ok(bytes) = bytes
            && spare.len() < MOST_SPARE
        {
            spare.push(bytes);
        }
        counted
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, DriveState>,
        at_most: Option<Duration>,
    ) -> MutexGuard<'a, DriveState> {
        match at_most {
            Some(time) => {
                self.wakeup.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.wakeup.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The time on the model's clock.
    pub(super) fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed() * self.speed
    }
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drive({:?})", self.backing)
    }
}

/// The statistics of a request that was answered.
struct CompletedRequest {
    request: DiskRequest,
    service: Service,
    came: Moment,
    answered: Moment,
    failed: bool,
}

impl CompletedRequest {
    fn book(self, state: &mut DriveState, fast: bool) {
        state.compensation.answered(self.answered);
        state.latest = Some((self.came, self.answered));
        if self.failed {
            state.counters.failed();
        }
        if fast {
            state.counters.passed_fast();
        } else {
            state.counters.served(&self.request, &self.service, self.came, self.answered);
        }
    }
}

fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The number of buffers kept for reuse: as many as a fast disk has requests in service.
const MOST_SPARE: usize = 64;
