//! A pool of threads that call `pread` and `pwrite`: it works everywhere and costs a thread for
//! each transfer in flight. Transfers that no thread has begun can be cancelled.

use super::cached;
use crate::open_file::OpenFile;
use crate::{Completion, DeviceError, Queue, Transfer};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A queue whose transfers are made by its own threads.
pub(super) struct ThreadsQueue {
    /// The channel to the threads; `None` only while being dropped.
    work: Option<Sender<Transfer>>,
    /// The threads' end of the channel, to take back transfers that none has begun.
    todo: Receiver<Transfer>,
    done: Receiver<Completion>,
    /// Cancelled transfers.
    called_off: Vec<Completion>,
    path: PathBuf,
    threads: Vec<JoinHandle<()>>,
    in_flight: u32,
    method: String,
}

impl ThreadsQueue {
    /// Starts the threads. `instead` says why another method is not used, for reports.
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32, instead: &str) -> io::Result<Self> {
        let (work, todo) = unbounded();
        let (finished, done) = unbounded();
        let count = depth.clamp(1, MOST_THREADS);
        let threads = units::show::count(count, "thread");
        let mut queue = Self {
            work: Some(work),
            todo: todo.clone(),
            done,
            called_off: Vec::new(),
            path: file.path.clone(),
            threads: Vec::new(),
            in_flight: 0,
            method: format!("{threads}, {}{instead}", cached(file)),
        };
        for _ in 0..count {
            let (file, todo, finished) = (Arc::clone(file), todo.clone(), finished.clone());
            let thread = std::thread::Builder::new()
                .name("disk-io".to_owned())
                .spawn(move || transfer_all(&file, &todo, &finished));
            queue.threads.push(thread?);
        }
        Ok(queue)
    }
}

impl Queue for ThreadsQueue {
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let work = self.work.as_ref().expect("the queue is not dropped");
        work.send(transfer).expect("the threads live as long as the queue");
        self.in_flight += 1;
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let before = done.len();
        // Before the channel: a queue whose transfers were all called off must not wait.
        done.append(&mut self.called_off);
        if done.len() == before {
            done.extend(self.done.recv_timeout(at_most).ok());
        }
        done.extend(self.done.try_iter());
        self.in_flight -= u32::try_from(done.len() - before).expect("no more than in flight");
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        for transfer in self.todo.try_iter() {
            let (direction, place) = (transfer.direction, transfer.place());
            let error = DeviceError::cancelled(direction, &self.path, place);
            self.called_off.push(transfer.ended(Err(error)));
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn method(&self) -> String {
        self.method.clone()
    }
}

impl Drop for ThreadsQueue {
    /// Waits for transfers in progress, because the threads use buffers of the pool.
    fn drop(&mut self) {
        // Otherwise the threads would make all waiting transfers before they end.
        self.todo.try_iter().for_each(drop);
        // Closing the channel ends the threads' loops.
        self.work = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn transfer_all(file: &OpenFile, todo: &Receiver<Transfer>, finished: &Sender<Completion>) {
    for mut transfer in todo {
        let checked = file.check(transfer.direction, transfer.place());
        let result = checked.and_then(|()| file.transfer(&mut transfer));
        if finished.send(transfer.ended(result)).is_err() {
            return;
        }
    }
}

/// The largest number of threads: a hard disk needs no more, and a solid-state disk should use
/// io_uring.
const MOST_THREADS: u32 = 64;
