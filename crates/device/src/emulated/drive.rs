//! The modelled disk at work in real time: takes requests, and answers each at the moment at
//! which the model is done with it.
//!
//! ```text
//!   read, write ──▶ Line ──▶ bytes fetched at once ──▶ held until the model's moment ──▶ answered
//!   (any thread)    └────────────── one thread, woken by a timer or by a request ──────────────┘
//! ```
//!
//! Never early. An answer that comes late (the thread was not run, copying took its time) is counted
//! as late, and the next service still starts at the model's moment, so lateness does not add up;
//! not even for a program that asks only when it was answered ([`Debt`]).
//! A write is in the file when it comes and answered when the model has written it.

use super::backing::Backing;
use super::debt::Debt;
use super::line::{Line, Request, What};
use super::statistics::{Counters, DiskStatistics};
use disk::{Head, Service};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use units::Moment;

/// What is done when a request is: with the bytes read (none for a write), or the error.
pub(super) type Answer = Box<dyn FnOnce(io::Result<&[u8]>) + Send>;

/// See the head of this file.
pub(super) struct Drive {
    backing: Backing,
    origin: Instant,
    /// Nanoseconds of the model in one of the clock.
    speed: u32,
    /// Whether it has one, and so does one thing at a time.
    arm: bool,
    desk: Mutex<Desk>,
    bell: Condvar,
}

struct Desk {
    line: Line<Waiting>,
    debt: Debt,
    counters: Counters,
    /// Of what was answered last: when it came, and when it was.
    latest: Option<(Moment, Moment)>,
    fast: bool,
    closing: bool,
}

/// Who waits, since when by the clock.
struct Waiting {
    came: Moment,
    answer: Answer,
}

/// What the disk is at, its bytes already there.
struct Served {
    request: Request,
    service: Service,
    waiting: Waiting,
    bytes: io::Result<Vec<u8>>,
}

impl Drive {
    /// `depth`: see [`Line::new`]. `speed`: how many times as fast as the model's clock runs.
    pub(super) fn new(backing: Backing, head: Head, depth: u32, speed: u32, fast: bool) -> Self {
        let (speed, arm) = (speed.max(1), head.model().rotational());
        let desk = Desk {
            line: Line::new(head, depth),
            debt: Debt::new(speed),
            latest: None,
            counters: Counters::new(Moment::ZERO),
            fast,
            closing: false,
        };
        let (desk, bell) = (Mutex::new(desk), Condvar::new());
        Self { backing, origin: Instant::now(), speed, arm, desk, bell }
    }

    /// Reads, as far as the disk goes.
    pub(super) fn read(&self, offset: u64, len: u64, answer: Answer) {
        let came = self.now();
        let len = len.min(self.backing.size.0.saturating_sub(offset));
        if len == 0 {
            return answer(Ok(&[]));
        }
        self.ask(offset, len, What::Read, Waiting { came, answer });
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
        if let Err(error) = self.backing.write(offset, from) {
            self.lock().counters.failed();
            return answer(Err(error));
        }
        self.ask(offset, len, What::Write, Waiting { came, answer });
    }

    /// Answered when everything written before is out of the disk's memory.
    pub(super) fn flush(&self, answer: Answer) {
        self.ask(0, 0, What::Flush, Waiting { came: self.now(), answer });
    }

    /// While set, requests take the time that the file takes; those that wait are answered.
    pub(super) fn set_fast(&self, on: bool) {
        let mut desk = self.lock();
        desk.fast = on;
        desk.debt.forget();
        drop(desk);
        self.bell.notify_all();
    }

    /// What the way to the disk and back takes of itself, which is not the disk's time.
    pub(super) fn set_way(&self, way: Duration) {
        self.lock().debt.set_way(way);
    }

    /// What was set; zero on a disk without an arm, which is begun with at once.
    pub(super) fn way(&self) -> Duration {
        self.lock().debt.way()
    }

    /// When the request that was answered last had come, and when it was answered.
    pub(super) fn latest(&self) -> Option<(Moment, Moment)> {
        self.lock().latest
    }

    pub(super) fn is_fast(&self) -> bool {
        self.lock().fast
    }

    pub(super) fn statistics(&self) -> DiskStatistics {
        let desk = self.lock();
        desk.counters.statistics(self.now())
    }

    pub(super) fn reset_statistics(&self) {
        let mut desk = self.lock();
        desk.counters = Counters::new(self.now());
    }

    /// Lets [`Drive::run`] return.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.bell.notify_all();
    }

    /// The file with the bytes.
    pub(super) fn backing(&self) -> BorrowedFd<'_> {
        self.backing.as_fd()
    }

    /// The disk's own thread. What waits when it is closed is failed; the file is free for others when
    /// this returns.
    pub(super) fn run(&self) {
        let mut at_work: VecDeque<Served> = VecDeque::new();
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let mut desk = self.lock();
        while !desk.closing {
            let now = self.now();
            let due = at_work.front().map(|served| served.service.finish);
            if due.is_some_and(|due| due <= now || desk.fast) {
                let fast = desk.fast;
                let served = at_work.pop_front().expect("it is there");
                if self.arm {
                    desk.debt.answers(served.service.finish, served.waiting.came);
                }
                drop(desk);
                let counted = self.answer(served, &mut spare);
                desk = self.lock();
                counted.book(&mut desk, fast);
            } else if desk.fast {
                let waiting: Vec<_> = desk.line.drain().collect();
                if waiting.is_empty() {
                    desk = self.wait(desk, None);
                    continue;
                }
                drop(desk);
                waiting.into_iter().for_each(|(request, who)| self.pass(request, who.answer));
                desk = self.lock();
            } else if let Some((request, waiting, service)) = desk.line.next(now) {
                drop(desk);
                let bytes = self.fetch(request, spare.pop().unwrap_or_default());
                at_work.push_back(Served { request, service, waiting, bytes });
                desk = self.lock();
            } else {
                desk = self.wait(desk, due.map(|due| due.since(now) / self.speed));
            }
        }
        // Here, where the files are open that answers go through.
        desk.line.drain().for_each(drop);
        self.backing.unlock();
    }

    fn ask(&self, offset: u64, len: u64, what: What, waiting: Waiting) {
        let mut desk = self.lock();
        // Under the lock, so that moments come in order.
        let request = Request { arrival: desk.debt.asked(waiting.came), offset, len, what };
        if desk.fast {
            drop(desk);
            return self.pass(request, waiting.answer);
        }
        desk.line.arrive(request, waiting);
        drop(desk);
        self.bell.notify_one();
    }

    /// At the file's own speed.
    fn pass(&self, request: Request, answer: Answer) {
        self.lock().counters.passed_fast();
        let bytes = self.fetch(request, Vec::new());
        if bytes.is_err() {
            self.lock().counters.failed();
        }
        answer(bytes.as_deref().map_err(same));
    }

    fn fetch(&self, request: Request, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if request.what != What::Read {
            bytes.clear();
        } else {
            bytes.resize(usize::try_from(request.len).unwrap_or(usize::MAX), 0);
            self.backing.read(request.offset, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn answer(&self, served: Served, spare: &mut Vec<Vec<u8>>) -> Counted {
        let Served { request, service, waiting: Waiting { came, answer }, bytes } = served;
        answer(bytes.as_deref().map_err(same));
        let (answered, failed) = (self.now(), bytes.is_err());
        let counted = Counted { request, service, came, answered, failed };
        if let Ok(bytes) = bytes
            && spare.len() < MOST_SPARE
        {
            spare.push(bytes);
        }
        counted
    }

    fn wait<'a>(
        &self,
        desk: MutexGuard<'a, Desk>,
        at_most: Option<Duration>,
    ) -> MutexGuard<'a, Desk> {
        match at_most {
            Some(time) => {
                self.bell.wait_timeout(desk, time).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.bell.wait(desk).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By the model's clock.
    pub(super) fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed() * self.speed
    }
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drive({:?})", self.backing)
    }
}

/// What there is to book of a request that was answered.
struct Counted {
    request: Request,
    service: Service,
    came: Moment,
    answered: Moment,
    failed: bool,
}

impl Counted {
    fn book(self, desk: &mut Desk, fast: bool) {
        desk.debt.answered(self.answered);
        desk.latest = Some((self.came, self.answered));
        if self.failed {
            desk.counters.failed();
        }
        if fast {
            desk.counters.passed_fast();
        } else {
            desk.counters.served(&self.request, &self.service, self.came, self.answered);
        }
    }
}

fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Buffers kept for the next request: as many as a fast disk has requests in service.
const MOST_SPARE: usize = 64;
