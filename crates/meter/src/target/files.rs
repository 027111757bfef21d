//! Many files, or files that are opened and closed each time: threads that block.
//!
//! ```text
//!   begin ─▶ (jobs) ─▶ thread: open? ─ read or write ─ close? ─▶ (over) ─▶ wait
//!                      one for each operation under way, made when it is first needed
//! ```
//!
//! Times are taken by the thread that does the work: what the operation took, not when somebody
//! looked. A client that keeps a file between operations has one under way at most.

use super::layout::PAGE;
use super::queued::{SEED, largest, stamp};
use super::{Arrived, Handle, Port, Request};
use crate::log::Kind;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use device::{BlockDevice, Buffer, DeviceError, FileDevice, OpenOptions, Opening, PlainFile, Pool};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// See the head of this file.
pub struct FilesPort {
    shared: Arc<Shared>,
    jobs: Option<Sender<Request>>,
    queue: Receiver<Request>,
    over: Receiver<Arrived>,
    hand_over: Sender<Arrived>,
    threads: Vec<JoinHandle<()>>,
    at_once: u32,
    under_way: u32,
}

/// How files are used.
#[derive(Clone, Debug)]
pub struct Use {
    /// Which, by their numbers.
    pub paths: Vec<PathBuf>,
    /// Past the page cache where the file system can.
    pub direct: bool,
    /// Whether any operation writes.
    pub write: bool,
    /// Whether they are opened before the run ([`Handle::Kept`]).
    pub keep: bool,
    /// Whether an operation that opens a file to write makes it anew, as a camera does.
    pub anew: bool,
    /// Operations under way at most.
    pub at_once: u32,
    /// Bytes of an operation at most.
    pub largest: ByteCount,
}

struct Shared {
    files: Use,
    direct: bool,
    kept: Vec<PlainFile>,
    /// Of clients that keep one for themselves.
    own: Mutex<BTreeMap<u32, PlainFile>>,
    pool: Pool,
    grain: u64,
    origin: Instant,
    /// Threads that wait for a job.
    idle: AtomicU32,
}

impl FilesPort {
    /// Opens what is to be kept open. There is at least one file. `origin` is moment zero.
    pub fn new(files: Use, origin: Instant) -> Result<Self, DeviceError> {
        let options = OpenOptions { direct: files.direct, write: false, exclusive: false };
        let one = FileDevice::open(&files.paths[0], options)?;
        let direct = one.is_direct();
        let grain = if direct { u64::from(one.geometry().block).max(PAGE) } else { 1 };
        let opening = if files.write { Opening::Update } else { Opening::Read };
        let keep = if files.keep { files.paths.as_slice() } else { &[] };
        let open = |path: &PathBuf| PlainFile::open(path, opening, direct);
        let kept = keep.iter().map(open).collect::<Result<_, _>>()?;
        let room = largest(files.largest);
        let limit = ByteCount(room.saturating_mul(files.at_once.into()));
        let at_once = files.at_once;
        let shared = Shared {
            files,
            direct,
            kept,
            own: Mutex::default(),
            pool: Pool::new(limit, ByteCount(room)),
            grain,
            origin,
            idle: AtomicU32::new(0),
        };
        let (jobs, queue) = unbounded();
        let (hand_over, over) = unbounded();
        let (shared, jobs, threads) = (Arc::new(shared), Some(jobs), Vec::new());
        Ok(Self { shared, jobs, queue, over, hand_over, threads, at_once, under_way: 0 })
    }

    /// One more thread, if none waits for work and there may be more.
    fn man(&mut self) {
        let threads = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        if self.shared.idle.load(Ordering::Acquire) > 0 || threads >= self.at_once {
            return;
        }
        let (shared, queue, over) =
            (Arc::clone(&self.shared), self.queue.clone(), self.hand_over.clone());
        let work = move || shared.work(&queue, &over);
        // One thread fewer is slower and not wrong, as long as there is one.
        match std::thread::Builder::new().name(format!("meter-{threads}")).spawn(work) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => assert!(threads > 0, "not a single thread: {error}"),
        }
    }
}

impl Port for FilesPort {
    fn now(&self) -> Moment {
        self.shared.now()
    }

    fn begin(&mut self, request: Request) -> Result<(), DeviceError> {
        self.man();
        self.under_way += 1;
        let jobs = self.jobs.as_ref().expect("there until it is dropped");
        jobs.send(request).expect("this port holds the other end");
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        if self.under_way == 0 {
            if until != Moment::MAX {
                std::thread::sleep(until.since(self.now()));
            }
            return Ok(());
        }
        let patience = until.since(self.now()).min(PATIENCE);
        let before = done.len();
        match self.over.recv_timeout(patience) {
            Ok(arrived) => done.push(arrived),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
        done.extend(self.over.try_iter());
        self.under_way -= u32::try_from(done.len() - before).unwrap_or(u32::MAX);
        Ok(())
    }

    fn method(&self) -> String {
        let cache = if self.shared.direct { "direct" } else { "through the page cache" };
        format!("threads, {cache}, {} files", self.shared.files.paths.len())
    }
}

impl Drop for FilesPort {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn work(&self, queue: &Receiver<Request>, over: &Sender<Arrived>) {
        let mut memory = self.memory();
        loop {
            self.idle.fetch_add(1, Ordering::AcqRel);
            let job = queue.recv();
            self.idle.fetch_sub(1, Ordering::AcqRel);
            let Ok(request) = job else { return };
            let arrived = self.perform(&request, &mut memory);
            if over.send(arrived).is_err() {
                return;
            }
        }
    }

    /// For one thread, full of bytes that no storage can shorten.
    fn memory(&self) -> Buffer {
        let len =
            usize::try_from(largest(self.files.largest)).expect("an operation fits in memory");
        let mut buffer = self.pool.take(len).expect("a buffer for each thread");
        fastrand::Rng::with_seed(SEED).fill(&mut buffer);
        buffer
    }

    fn perform(&self, request: &Request, memory: &mut Buffer) -> Arrived {
        let mut arrived = Arrived::new(request.tag, Moment::ZERO, Ok(()));
        arrived.result = self.moved(request, memory, &mut arrived.open, &mut arrived.close);
        arrived.at = self.now();
        arrived
    }

    fn moved(
        &self,
        request: &Request,
        memory: &mut Buffer,
        open: &mut Duration,
        close: &mut Duration,
    ) -> Result<(), DeviceError> {
        let number = usize::try_from(request.file).expect("32 bits fit");
        let Handle::Own { client, open: opens, close: closes } = request.handle else {
            return self.transfer(&self.kept[number], request, memory);
        };
        let began = Instant::now();
        let file = if opens {
            let opening = match request.kind {
                Kind::Read => Opening::Read,
                Kind::Write if self.files.anew => Opening::Create,
                Kind::Write => Opening::Update,
            };
            PlainFile::open(&self.files.paths[number], opening, self.direct)?
        } else {
            let kept = self.own().remove(&client);
            kept.expect("a client opens a file before it goes on with it")
        };
        if opens {
            *open = began.elapsed();
        }
        let moved = self.transfer(&file, request, memory);
        if closes {
            let began = Instant::now();
            drop(file);
            *close = began.elapsed();
        } else {
            self.own().insert(client, file);
        }
        moved
    }

    fn own(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, PlainFile>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transfer(
        &self,
        file: &PlainFile,
        request: &Request,
        memory: &mut Buffer,
    ) -> Result<(), DeviceError> {
        let from = units::align_down(request.offset, self.grain);
        let len = units::align_up(request.offset + request.len, self.grain) - from;
        let memory = &mut memory[..usize::try_from(len).expect("it is within the largest")];
        match request.kind {
            Kind::Read => file.read_at(from, memory),
            Kind::Write => {
                stamp(memory, request.tag);
                file.write_at(from, memory)
            }
        }
    }
}

/// Often enough to look whether the run goes on.
const PATIENCE: Duration = Duration::from_secs(60);
