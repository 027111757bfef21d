//! One thread for each disk: keeps the device's queue full in the order of the jobs, verifies the
//! checksums of what was read, and sends it to the core.
//!
//! ```text
//!   core ──ReadJob──▶ waiting ──submit──▶ device (at most `depth`)
//!   core ◀──ReadDone(SharedBuffer)── CRC-32C of each 64 KiB ◀── completion
//! ```
//!
//! Each read is reported with the time for which the device certainly had it. A thread that has to
//! wait for a processor sees the end of a read late, and gives the next one late to a device that
//! has nothing else to do; neither makes the disk slow. The time for which the thread waited is
//! counted by itself ([`DiskThread::waited`]).

use crate::clock::Clock;
use crate::damage::DamagedPlace;
use crate::library::OpenTitle;
use crate::log::Log;
use crate::messages::{CoreHandle, Event};
use crate::run_delay::RunDelay;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use device::{Buffer, Completion, DeviceError, Queue, SharedBuffer};
use engine::{DiskNumber, ReadId, ReadOutcome};
use media::CHECKSUM_SPAN;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::{Hinted, Moment, nanos};

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
    orders: Sender<DiskOrder>,
    // Nanoseconds for which the thread was ready to run and had no processor.
    waited: Arc<AtomicU64>,
}

/// What the core wants of a disk's thread.
enum DiskOrder {
    Read(ReadJob, Buffer),
    ReleaseReturned,
}

impl DiskThread {
    /// Queues a read into `buffer`, which has the job's length. Never waits.
    pub(crate) fn start(&self, job: ReadJob, buffer: Buffer) {
        self.send(DiskOrder::Read(job, buffer));
    }

    /// Unregisters memory that the pool has returned to the kernel, also if no read follows.
    pub(crate) fn release_returned(&self) {
        self.send(DiskOrder::ReleaseReturned);
    }

    /// The time for which the thread was ready to run and had no processor, since it began.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    fn send(&self, order: DiskOrder) {
        self.orders.send(order).expect("the thread ends only after this handle");
    }

    /// Starts the thread of a device's queue.
    pub(crate) fn spawn(
        disk: DiskNumber,
        queue: Box<dyn Queue>,
        depth: u32,
        core: CoreHandle,
        clock: Clock,
        (log, store): (Log, String),
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (orders, incoming) = unbounded();
        let waited = Arc::new(AtomicU64::new(0));
        let reader = Reader {
            disk,
            queue,
            depth,
            core,
            clock,
            waited: Arc::clone(&waited),
            looked_at: clock.now(),
            log,
            store,
            waiting: VecDeque::new(),
            fresh: Vec::new(),
            reading: HashMap::new(),
            done: Vec::new(),
        };
        let name = format!("disk-{}", disk.0);
        let thread = thread::Builder::new().name(name).spawn(move || reader.run(&incoming))?;
        Ok((Self { orders, waited }, thread))
    }
}

struct Reader {
    disk: DiskNumber,
    queue: Box<dyn Queue>,
    depth: u32,
    core: CoreHandle,
    clock: Clock,
    waited: Arc<AtomicU64>,
    // When completions were looked for last, at the earliest.
    looked_at: Moment,
    log: Log,
    // The path of the store, for the log.
    store: String,
    waiting: VecDeque<(ReadJob, Buffer)>,
    // Submitted reads that the next look for completions gives to the device.
    fresh: Vec<u64>,
    // With the time at which the device was given the read, at the earliest.
    reading: HashMap<u64, (ReadJob, Moment)>,
    done: Vec<Completion>,
}

impl Reader {
    fn run(mut self, incoming: &Receiver<DiskOrder>) {
        let run_delay = RunDelay::of_this_thread();
        let mut delay_before = run_delay.total();
        loop {
            if !self.fetch(incoming) {
                return;
            }
            self.submit();
            let full = self.queue.in_flight() >= self.depth;
            let wait = if full { WHILE_FULL } else { WHILE_ROOM };
            if self.queue.in_flight() == 0 {
                // There was only another order, or all submitted jobs failed at once and have been
                // reported.
                continue;
            }
            // Older reads may have ended while the thread waited for a processor before this look.
            let all_fresh = self.fresh.len() == self.reading.len();
            if all_fresh {
                delay_before = run_delay.total();
            }
            let mut called_at = self.clock.now();
            if !self.fresh.is_empty() {
                // Hands the reads over. That may take long, because memory is pinned for them, and
                // the device has nothing to do meanwhile.
                self.look(Duration::ZERO);
                if self.done.is_empty() {
                    if all_fresh {
                        delay_before = run_delay.total();
                    }
                    called_at = self.clock.now();
                }
                self.fresh_are_given(called_at);
            }
            if self.done.is_empty() {
                self.look(wait);
            }
            let seen_at = self.clock.now();
            let total = run_delay.total();
            self.waited.store(nanos(total), Ordering::Relaxed);
            let delayed = total.saturating_sub(delay_before);
            delay_before = total;
            let ended_at = may_have_ended_at(self.looked_at, called_at, seen_at, delayed);
            self.looked_at = ran_without(delayed, seen_at).max(called_at);
            for completion in std::mem::take(&mut self.done) {
                self.finish(completion, ended_at);
            }
        }
    }

    // Looks for completions, and waits for one at most so long.
    fn look(&mut self, at_most: Duration) {
        if let Err(error) = self.queue.wait(at_most, &mut self.done) {
            self.log.line(|| json!({ "event": "disk-wait-failed", "error": error.one_line() }));
            thread::sleep(WHILE_FULL);
        }
    }

    /// Takes new orders from the channel; waits for one if no read is pending. False: the channel
    /// is closed and all jobs are finished.
    fn fetch(&mut self, incoming: &Receiver<DiskOrder>) -> bool {
        if self.waiting.is_empty() && self.reading.is_empty() {
            match incoming.recv_timeout(FOR_EVER) {
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => return self.fetch(incoming),
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        loop {
            match incoming.try_recv() {
                Ok(order) => self.take(order),
                // After a disconnect, the remaining jobs are finished first.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn take(&mut self, order: DiskOrder) {
        match order {
            DiskOrder::Read(job, buffer) => self.waiting.push_back((job, buffer)),
            DiskOrder::ReleaseReturned => self.queue.release_returned(),
        }
    }

    fn submit(&mut self) {
        while self.queue.in_flight() < self.depth {
            // In the order of the jobs: the engine has sorted them by their place on the disk.
            let Some((job, buffer)) = self.waiting.pop_front() else { return };
            let (tag, now) = (job.read.0, self.clock.now());
            match self.queue.submit(tag, job.offset, buffer) {
                Ok(()) => {
                    self.reading.insert(tag, (job, now));
                    self.fresh.push(tag);
                }
                Err(error) => {
                    self.log_failure(&job, "read-failed", &error.one_line());
                    self.send_result(job.read, Err(outcome_of(&error)), now..now);
                }
            }
        }
    }

    // The device has the submitted reads from now on: a queue hands them over when it is asked for
    // completions.
    fn fresh_are_given(&mut self, now: Moment) {
        for tag in self.fresh.drain(..) {
            self.reading.get_mut(&tag).expect("submitted just now").1 = now;
        }
    }

    fn finish(&mut self, completion: Completion, ended_at: Moment) {
        let (job, begun_at) =
            self.reading.remove(&completion.tag).expect("a completion of a submitted read");
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
                    self.tell_damage(&job, place);
                    Err(ReadOutcome::Damaged)
                }
            },
        };
        self.send_result(job.read, result, begun_at..ended_at.max(begun_at));
    }

    fn send_result(
        &self,
        read: ReadId,
        result: Result<SharedBuffer, ReadOutcome>,
        device: Range<Moment>,
    ) {
        self.core.send(Event::ReadDone { read, result, device });
    }

    fn tell_damage(&self, job: &ReadJob, start: u64) {
        let track = job.title.whole.packaging.stored_track(job.track);
        let place = DamagedPlace { title: job.title.id, track, start };
        self.core.send(Event::Damaged { disk: self.disk, title: Arc::clone(&job.title), place });
    }

    fn log_failure(&self, job: &ReadJob, event: &str, error: &str) {
        self.log.line(|| {
            json!({
                "event": event,
                "store": self.store,
                "title": job.title.name(),
                "title_id": job.title.id.0,
                "track": job.title.whole.packaging.stored_track(job.track),
                "start": job.start,
                "device_offset": job.offset,
                "length": job.len,
                "error": error,
            })
        });
    }
}

// The earliest time at which reads may have ended that were seen to have at `seen_at`, by a call
// from `called_at` on. The thread had looked at `looked_at` before, and had no processor for
// `delayed` since.
fn may_have_ended_at(
    looked_at: Moment,
    called_at: Moment,
    seen_at: Moment,
    delayed: Duration,
) -> Moment {
    let woken_at = ran_without(delayed, seen_at);
    // A call that did not sleep has found reads that had ended before.
    if woken_at > called_at + SLEPT { woken_at } else { looked_at }
}

// The time at which a thread would have come to `at` if it had not waited for a processor.
fn ran_without(delayed: Duration, at: Moment) -> Moment {
    Moment(at.0.saturating_sub(nanos(delayed)))
}

fn outcome_of(error: &DeviceError) -> ReadOutcome {
    if error.is_of_gone_device() { ReadOutcome::Gone } else { ReadOutcome::Failed }
}

/// The first byte in the track of the first span whose checksum is wrong, if there is one. Bytes
/// behind the track's end are padding and not verified.
fn first_damage(job: &ReadJob, bytes: &[u8]) -> Option<u64> {
    let packaging = &job.title.whole.packaging;
    let track = &packaging.index().tracks[usize::from(packaging.stored_track(job.track))];
    let start = job.start;
    let length = track.data_len.saturating_sub(start).min(bytes.len() as u64);
    let span = usize::try_from(CHECKSUM_SPAN).expect("small");
    let data = &bytes[..usize::try_from(length).expect("within the buffer")];
    let first = usize::try_from(start / CHECKSUM_SPAN).expect("as many as checksums");
    let known = track.checksums.len();
    let wanted = track.checksums.range(first.min(known)..known);
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
/// A call that took longer than this has slept.
const SLEPT: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_processor_is_not_the_devices() {
        let at = |micros: u64| Moment::ZERO + Duration::from_micros(micros);
        let ended = |called, seen, delayed| {
            may_have_ended_at(at(1000), at(called), at(seen), Duration::from_micros(delayed))
        };
        assert_eq!(ended(1100, 9000, 0), at(9000), "it slept until the end of the read");
        assert_eq!(ended(1100, 9000, 3000), at(6000), "and was not run at once");
        assert_eq!(ended(1100, 9000, 7900), at(1000), "it was not run at all");
        assert_eq!(ended(5000, 5010, 0), at(1000), "the read had ended while it did other work");
        assert_eq!(ended(5000, 5200, 3900), at(1000), "or before it had a processor for the call");
    }
}
