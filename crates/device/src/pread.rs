//! Reads by threads that call `pread`: works everywhere, costs a thread per read in flight.

use crate::file::OpenFile;
use crate::{Buffer, Completion, DeviceError, Queue};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// See the head of this file.
pub(crate) struct PreadQueue {
    /// `None` only while dropped.
    work: Option<Sender<Read>>,
    done: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
    in_flight: u32,
    method: String,
}

struct Read {
    tag: u64,
    offset: u64,
    buffer: Buffer,
}

impl PreadQueue {
    /// `refused`: why it is not the better method, for reports.
    pub(crate) fn new(
        file: &Arc<OpenFile>,
        depth: u32,
        refused: Option<&io::Error>,
    ) -> Result<Self, DeviceError> {
        let (work, todo) = unbounded();
        let (finished, done) = unbounded();
        let count = depth.clamp(1, MOST_THREADS);
        let how = if file.direct { "direct" } else { "buffered" };
        let why = refused.map_or(String::new(), |e| format!(" (no io_uring: {e})"));
        let mut queue = Self {
            work: Some(work),
            done,
            threads: Vec::new(),
            in_flight: 0,
            method: format!("pread on {count} threads, {how}{why}"),
        };
        for _ in 0..count {
            let (reader, todo, finished) = (Arc::clone(file), todo.clone(), finished.clone());
            let thread = std::thread::Builder::new()
                .name("disk-read".to_owned())
                .spawn(move || read_all(&reader, &todo, &finished));
            let thread = thread.map_err(|source| DeviceError::Open {
                path: file.path.clone(),
                hint: "; no more threads for its reads".to_owned(),
                source,
            })?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }
}

impl Queue for PreadQueue {
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        let work = self.work.as_ref().expect("the queue is not dropped");
        work.send(Read { tag, offset, buffer }).expect("the threads live as long as the queue");
        self.in_flight += 1;
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let before = done.len();
        done.extend(self.done.recv_timeout(at_most).ok());
        done.extend(self.done.try_iter());
        self.in_flight -= u32::try_from(done.len() - before).expect("no more than in flight");
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn method(&self) -> String {
        self.method.clone()
    }
}

impl Drop for PreadQueue {
    /// Waits for what is in flight: the threads read into buffers of the pool.
    fn drop(&mut self) {
        self.work = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn read_all(file: &OpenFile, todo: &Receiver<Read>, finished: &Sender<Completion>) {
    for Read { tag, offset, mut buffer } in todo {
        let checked = file.geometry.check("reading", &file.path, (offset, buffer.len()));
        let result = checked.and_then(|()| file.read(offset, &mut buffer));
        if finished.send(Completion { tag, buffer, result }).is_err() {
            return;
        }
    }
}

/// A disk has no use for more at once; a solid-state disk has, but then io_uring is the way.
const MOST_THREADS: u32 = 64;
