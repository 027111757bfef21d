//! One thread for each disk: keeps the device's queue full in the order of the jobs, verifies the
//! checksums of what was read, and sends it to the core.
//!
//! ```text
//!   core ──ReadJob──▶ waiting ──submit──▶ device (at most `depth`)
//!   core ◀──ReadDone(SharedBuffer)── CRC-32C of each 64 KiB ◀── completion
//! ```

use crate::engine::{ReadId, ReadOutcome};
use crate::library::OpenTitle;
use crate::log::Log;
use crate::messages::{CoreHandle, Event};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use device::{Buffer, Completion, DeviceError, Queue, SharedBuffer};
use media::CHECKSUM_SPAN;
use rustix::io::Errno;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Hinted;

/// A read to be made on a disk.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) read: ReadId,
    /// Offset on the device in bytes.
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) track: u16,
    /// Offset in the track's data, for the checksums.
    pub(crate) start: u64,
}

/// Sends jobs to a disk's thread, which ends, its reads finished, when this is dropped.
#[derive(Debug)]
pub(crate) struct DiskThread {
    // Unbounded: the engine bounds the reads under way.
    jobs: Sender<(ReadJob, Buffer)>,
}

impl DiskThread {
    /// Queues a read into `buffer`, which has the job's length. Never waits.
    pub(crate) fn start(&self, job: ReadJob, buffer: Buffer) {
        self.jobs.send((job, buffer)).expect("the thread ends only after this handle");
    }

    /// Starts the thread of a device's queue.
    pub(crate) fn spawn(
        name: String,
        queue: Box<dyn Queue>,
        depth: u32,
        core: CoreHandle,
        log: Log,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (jobs, incoming) = unbounded();
        let reader = Reader {
            queue,
            depth,
            core,
            log,
            waiting: VecDeque::new(),
            reading: HashMap::new(),
            done: Vec::new(),
        };
        let thread = thread::Builder::new().name(name).spawn(move || reader.run(&incoming))?;
        Ok((Self { jobs }, thread))
    }
}

struct Reader {
    queue: Box<dyn Queue>,
    depth: u32,
    core: CoreHandle,
    log: Log,
    waiting: VecDeque<(ReadJob, Buffer)>,
    reading: HashMap<u64, ReadJob>,
    done: Vec<Completion>,
}

impl Reader {
    fn run(mut self, incoming: &Receiver<(ReadJob, Buffer)>) {
        loop {
            if !self.fetch(incoming) {
                return;
            }
            self.submit();
            let full = self.queue.in_flight() >= self.depth;
            let wait = if full { WHILE_FULL } else { WHILE_ROOM };
            if self.queue.in_flight() == 0 {
                // All submitted jobs failed at once and have been reported.
                continue;
            }
            if let Err(error) = self.queue.wait(wait, &mut self.done) {
                self.log.line(|| json!({ "event": "disk-wait-failed", "error": error.one_line() }));
                thread::sleep(WHILE_FULL);
            }
            for completion in std::mem::take(&mut self.done) {
                self.finish(completion);
            }
        }
    }

    /// Takes new jobs from the channel; waits for one if no read is pending. False: the channel is
    /// closed and all jobs are finished.
    fn fetch(&mut self, incoming: &Receiver<(ReadJob, Buffer)>) -> bool {
        if self.waiting.is_empty() && self.reading.is_empty() {
            match incoming.recv_timeout(FOR_EVER) {
                Ok(job) => self.waiting.push_back(job),
                Err(RecvTimeoutError::Timeout) => return self.fetch(incoming),
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        loop {
            match incoming.try_recv() {
                Ok(job) => self.waiting.push_back(job),
                // After a disconnect, the remaining jobs are finished first.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn submit(&mut self) {
        while self.queue.in_flight() < self.depth {
            // In the order of the jobs: the engine has sorted them by their place on the disk.
            let Some((job, buffer)) = self.waiting.pop_front() else { return };
            let tag = job.read.0;
            match self.queue.submit(tag, job.offset, buffer) {
                Ok(()) => {
                    self.reading.insert(tag, job);
                }
                Err(error) => {
                    self.log_failure(&job, "read-failed", &error.one_line());
                    self.send_result(job.read, Err(outcome_of(&error)));
                }
            }
        }
    }

    fn finish(&mut self, completion: Completion) {
        let job = self.reading.remove(&completion.tag).expect("a completion of a submitted read");
        let result = match completion.result {
            Err(error) => {
                self.log_failure(&job, "read-failed", &error.one_line());
                Err(outcome_of(&error))
            }
            // Verified on the disk's own thread, because hashing would delay the core.
            Ok(()) => match first_damage(&job, &completion.buffer) {
                None => Ok(completion.buffer.freeze()),
                Some(place) => {
                    let what = format!("checksum wrong at byte {place} of the track; run `check`");
                    self.log_failure(&job, "damaged", &what);
                    Err(ReadOutcome::Damaged)
                }
            },
        };
        self.send_result(job.read, result);
    }

    fn send_result(&self, read: ReadId, result: Result<SharedBuffer, ReadOutcome>) {
        self.core.send(Event::ReadDone { read, result });
    }

    fn log_failure(&self, job: &ReadJob, event: &str, error: &str) {
        self.log.line(|| {
            json!({
                "event": event,
                "title_id": job.title.id.0,
                "track": job.track,
                "start": job.start,
                "device_offset": job.offset,
                "length": job.len,
                "error": error,
            })
        });
    }
}

/// Classifies an error: a device that was removed fails with certain error numbers, or reads end
/// before the device's end.
fn outcome_of(error: &DeviceError) -> ReadOutcome {
    let DeviceError::Io { source, .. } = error else { return ReadOutcome::Failed };
    let gone = [Errno::NODEV, Errno::NXIO, Errno::SHUTDOWN, Errno::NOMEDIUM];
    let removed = Errno::from_io_error(source).is_some_and(|errno| gone.contains(&errno));
    match removed || source.kind() == io::ErrorKind::UnexpectedEof {
        true => ReadOutcome::Gone,
        false => ReadOutcome::Failed,
    }
}

/// The first byte in the track of the first span whose checksum is wrong, if there is one. Bytes
/// behind the track's end are padding and not verified.
fn first_damage(job: &ReadJob, bytes: &[u8]) -> Option<u64> {
    let track = &job.title.whole.packaging.index().tracks[usize::from(job.track)];
    let start = job.start;
    let length = track.data_len.saturating_sub(start).min(bytes.len() as u64);
    let span = usize::try_from(CHECKSUM_SPAN).expect("small");
    let data = &bytes[..usize::try_from(length).expect("within the buffer")];
    let first = usize::try_from(start / CHECKSUM_SPAN).expect("as many as checksums");
    let wanted = track.checksums.iter().skip(first);
    // Data for which the index has no checksum counts as damaged.
    let mut spans = data.chunks(span).zip(wanted.map(Some).chain(std::iter::repeat(None)));
    let damaged = spans.position(|(bytes, sum)| sum != Some(&media::checksum(bytes)));
    damaged.map(|span| start + span as u64 * CHECKSUM_SPAN)
}

/// The longest wait for a completion while the device has room for more reads: the device and the
/// channel of jobs cannot be waited for together. Most jobs come in batches, a slot ahead.
const WHILE_ROOM: Duration = Duration::from_millis(1);
/// The longest wait for a completion while the device's queue is full.
const WHILE_FULL: Duration = Duration::from_millis(100);
const FOR_EVER: Duration = Duration::from_secs(3600);
