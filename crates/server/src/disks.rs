//! One thread for each disk: keeps the device at its depth in the order given, verifies what comes
//! back, and hands it on.
//!
//! ```text
//!   core ──Job──▶ waiting ──submit──▶ device (at most `depth`)
//!   core ◀──ReadDone(SharedBuffer)── CRC-32C of each 64 KiB ◀── completion
//! ```

use crate::core::{CoreHandle, Event};
use crate::engine::{ReadId, ReadOutcome};
use crate::library::OpenTitle;
use crate::log::Log;
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

/// A read to be made.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) read: ReadId,
    /// On the device.
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) track: u16,
    /// At which byte of the track's data.
    pub(crate) start: u64,
}

/// The face of a disk thread. The thread ends, its reads finished, when this is dropped.
#[derive(Debug)]
pub(crate) struct Disk {
    // Not bounded here: the engine has at most a batch of reads out at once.
    jobs: Sender<(Job, Buffer)>,
}

impl Disk {
    /// Starts reading into `buffer`, which is as long as the job says. Never waits.
    pub(crate) fn start(&self, job: Job, buffer: Buffer) {
        self.jobs.send((job, buffer)).expect("the disk thread lives as long as its face");
    }

    /// A thread for a device's queue.
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
    waiting: VecDeque<(Job, Buffer)>,
    reading: HashMap<u64, Job>,
    done: Vec<Completion>,
}

impl Reader {
    fn run(mut self, incoming: &Receiver<(Job, Buffer)>) {
        loop {
            if !self.fetch(incoming) {
                return;
            }
            self.submit();
            let full = self.queue.in_flight() >= self.depth;
            let wait = if full { WHILE_FULL } else { WHILE_ROOM };
            if self.queue.in_flight() == 0 {
                // What was submitted last was refused.
                continue;
            }
            if let Err(error) = self.queue.wait(wait, &mut self.done) {
                self.log.line(|| json!({ "event": "disk-wait", "error": error.to_string() }));
                thread::sleep(WHILE_FULL);
            }
            for completion in std::mem::take(&mut self.done) {
                self.finish(completion);
            }
        }
    }

    /// Takes over new jobs; waits for one if there is nothing else to do. False: all is done.
    fn fetch(&mut self, incoming: &Receiver<(Job, Buffer)>) -> bool {
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
                // Disconnected: finish what is here first.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn submit(&mut self) {
        while self.queue.in_flight() < self.depth {
            let Some((job, buffer)) = self.waiting.pop_front() else { return };
            let tag = job.read.0;
            match self.queue.submit(tag, job.offset, buffer) {
                Ok(()) => {
                    self.reading.insert(tag, job);
                }
                Err(error) => {
                    self.complain(&job, "read-failed", &error.to_string());
                    self.tell(job.read, Err(outcome_of(&error)));
                }
            }
        }
    }

    fn finish(&mut self, completion: Completion) {
        let job = self.reading.remove(&completion.tag).expect("only what was submitted ends");
        let result = match completion.result {
            Err(error) => {
                self.complain(&job, "read-failed", &error.to_string());
                Err(outcome_of(&error))
            }
            Ok(()) => match first_damage(&job, &completion.buffer) {
                None => Ok(completion.buffer.freeze()),
                Some(place) => {
                    let what = format!("checksum wrong at byte {place} of the track; run `check`");
                    self.complain(&job, "damaged", &what);
                    Err(ReadOutcome::Damaged)
                }
            },
        };
        self.tell(job.read, result);
    }

    fn tell(&self, read: ReadId, result: Result<SharedBuffer, ReadOutcome>) {
        self.core.tell(Event::ReadDone { read, result });
    }

    fn complain(&self, job: &Job, event: &str, error: &str) {
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

/// A device that is no more says so, or ends before its end.
fn outcome_of(error: &DeviceError) -> ReadOutcome {
    let DeviceError::Io { source, .. } = error else { return ReadOutcome::Failed };
    let gone = [Errno::NODEV, Errno::NXIO, Errno::SHUTDOWN, Errno::NOMEDIUM];
    let said = Errno::from_io_error(source).is_some_and(|errno| gone.contains(&errno));
    match said || source.kind() == io::ErrorKind::UnexpectedEof {
        true => ReadOutcome::Gone,
        false => ReadOutcome::Failed,
    }
}

/// Where in the track the first wrong checksum is, if there is one. What lies behind the track's
/// end is padding.
fn first_damage(job: &Job, bytes: &[u8]) -> Option<u64> {
    let track = &job.title.whole.packaging.index().tracks[usize::from(job.track)];
    let start = job.start;
    let length = track.data_len.saturating_sub(start).min(bytes.len() as u64);
    let span = usize::try_from(CHECKSUM_SPAN).expect("small");
    let data = &bytes[..usize::try_from(length).expect("within the buffer")];
    let first = usize::try_from(start / CHECKSUM_SPAN).expect("as many as checksums");
    let wanted = track.checksums.iter().skip(first);
    let mut spans = data.chunks(span).zip(wanted.map(Some).chain(std::iter::repeat(None)));
    let damaged = spans.position(|(bytes, sum)| sum != Some(&media::checksum(bytes)));
    damaged.map(|span| start + span as u64 * CHECKSUM_SPAN)
}

/// While the device has room for more, new jobs are looked for this often: the queue cannot be
/// waited for together with the channel. Most jobs come in batches, a slot ahead.
const WHILE_ROOM: Duration = Duration::from_millis(1);
/// While the device is full, only a completion changes anything.
const WHILE_FULL: Duration = Duration::from_millis(100);
const FOR_EVER: Duration = Duration::from_secs(3600);
