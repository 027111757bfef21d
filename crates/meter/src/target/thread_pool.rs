//! Blocking threads, one for each operation in flight.
//!
//! ```text
//!   begin ─▶ (jobs) ─▶ thread: Worker::perform ─▶ (over) ─▶ wait
//!                      started when it is first needed
//! ```
//!
//! Times are taken by the thread that does the work, so that they are those of the operation and
//! not of its reporting. Operations that have not begun when the pool is dropped are never made.

use super::{IoCompletion, IoRequest, Port};
use crossbeam_channel::{Receiver, Sender, unbounded};
use device::DeviceError;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use units::Moment;

/// The work of the threads.
pub(crate) trait PoolWorker: Send + Sync + 'static {
    /// The state of each thread.
    type Own;

    /// Makes the state of one more thread.
    fn own(&self) -> Self::Own;

    /// Makes one operation, however long it takes.
    fn perform(&self, request: &IoRequest, own: &mut Self::Own) -> IoCompletion;

    /// The time.
    fn now(&self) -> Moment;

    /// The read and write method, for reports.
    fn method(&self) -> String;
}

/// A pool of threads, each with one operation at a time.
pub(crate) struct ThreadPool<W> {
    worker: Arc<W>,
    jobs: Option<Sender<IoRequest>>,
    queue: Receiver<IoRequest>,
    over: Receiver<IoCompletion>,
    hand_over: Sender<IoCompletion>,
    threads: Vec<JoinHandle<()>>,
    at_once: u32,
    /// Operations that were started and not yet reported.
    under_way: u32,
}

impl<W: PoolWorker> ThreadPool<W> {
    /// A pool of at most `most` threads.
    pub(crate) fn new(worker: W, at_once: u32) -> Self {
        let (jobs, queue) = unbounded();
        let (hand_over, over) = unbounded();
        Self {
            worker: Arc::new(worker),
            jobs: Some(jobs),
            queue,
            over,
            hand_over,
            threads: Vec::new(),
            at_once,
            under_way: 0,
        }
    }

    /// Starts one more thread if all others may be busy and the limit allows it: an operation that
    /// waited for a thread would look like slow storage.
    fn add_thread(&mut self) {
        let threads = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        if threads > self.under_way || threads >= self.at_once {
            return;
        }
        let worker = Arc::clone(&self.worker);
        let (queue, over) = (self.queue.clone(), self.hand_over.clone());
        let work = move || work(&*worker, &queue, &over);
        // One thread fewer is slower but correct, as long as there is one.
        match std::thread::Builder::new().name(format!("meter-{threads}")).spawn(work) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => assert!(threads > 0, "not a single thread: {error}"),
        }
    }
}

impl<W: PoolWorker> Port for ThreadPool<W> {
    fn now(&self) -> Moment {
        self.worker.now()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.add_thread();
        self.under_way += 1;
        let jobs = self.jobs.as_ref().expect("there until it is dropped");
        jobs.send(request).expect("the pool holds the other end");
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        if self.under_way == 0 {
            if until != Moment::MAX {
                std::thread::sleep(until.since(self.worker.now()));
            }
            return Ok(());
        }
        let patience = until.since(self.worker.now()).min(PATIENCE);
        let before = done.len();
        // A timeout is no error: nothing has completed in that time.
        let Ok(arrived) = self.over.recv_timeout(patience) else { return Ok(()) };
        done.push(arrived);
        done.extend(self.over.try_iter());
        self.under_way -= u32::try_from(done.len() - before).unwrap_or(u32::MAX);
        Ok(())
    }

    fn settle(&mut self, at_most: Duration) -> u32 {
        self.jobs = None;
        let called_off = self.queue.try_iter().count();
        self.under_way -= u32::try_from(called_off).unwrap_or(u32::MAX);
        if self.under_way > 0 && self.over.recv_timeout(at_most).is_ok() {
            self.under_way -= 1;
        }
        while self.under_way > 0 && self.over.try_recv().is_ok() {
            self.under_way -= 1;
        }
        self.under_way
    }

    fn method(&self) -> String {
        self.worker.method()
    }
}

fn work<W: PoolWorker>(worker: &W, queue: &Receiver<IoRequest>, over: &Sender<IoCompletion>) {
    let mut own = worker.own();
    for request in queue {
        if over.send(worker.perform(&request, &mut own)).is_err() {
            return;
        }
    }
}

impl<W> Drop for ThreadPool<W> {
    fn drop(&mut self) {
        self.jobs = None;
        while self.queue.try_recv().is_ok() {}
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The longest wait, after which the caller can check whether the run continues.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// A worker whose operations all wait until a number of others are running.
    struct Together(Barrier);

    impl PoolWorker for Together {
        type Own = ();

        fn own(&self) {}

        fn perform(&self, request: &IoRequest, (): &mut ()) -> IoCompletion {
            self.0.wait();
            IoCompletion::new(request.tag, Moment::ZERO, Ok(()))
        }

        fn now(&self) -> Moment {
            Moment::ZERO
        }

        fn method(&self) -> String {
            String::new()
        }
    }

    /// Threads of the burst before may still wait for work when the next burst begins.
    #[test]
    fn no_operation_of_a_burst_waits_for_another() {
        const BURST: u64 = 7;
        let mut pool = ThreadPool::new(Together(Barrier::new(7)), 7);
        for _ in 0..50 {
            (0..BURST).for_each(|tag| pool.begin(IoRequest::read(tag, 0, 1)).unwrap());
            let mut done = Vec::new();
            while done.len() < 7 {
                pool.wait(Moment::MAX, &mut done).unwrap();
            }
        }
        assert_eq!(pool.settle(Duration::ZERO), 0);
    }
}
