//! Paced reads of objects by range, and writes of whole ones.

use super::TestObjects;
use super::test_objects::client;
use crate::log::OperationKind;
use crate::target::{IoCompletion, IoRequest, PoolWorker, Port, ThreadPool};
use device::DeviceError;
use s3::{S3Client, S3Error};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// The data that all threads share.
struct S3Worker {
    objects: Arc<TestObjects>,
    largest: usize,
    origin: Instant,
}

/// A port for objects that were made for the run: the file of a request is the number of an object.
/// It has at most `at_once` requests of up to `largest` bytes in flight. `origin` is the zero of
/// its clock.
pub(crate) fn bucket_port(
    objects: Arc<TestObjects>,
    at_once: u32,
    largest: ByteCount,
    origin: Instant,
) -> impl Port {
    let largest = usize::try_from(largest.0).expect("a request fits in memory");
    ThreadPool::new(S3Worker { objects, largest, origin }, at_once)
}

/// The connection and the memory of a thread.
struct S3WorkerState {
    client: Result<S3Client, S3Error>,
    memory: Vec<u8>,
}

impl PoolWorker for S3Worker {
    type Own = S3WorkerState;

    fn own(&self) -> S3WorkerState {
        let mut memory = vec![0; self.largest];
        fastrand::Rng::with_seed(SEED).fill(&mut memory);
        let TestObjects { access, address, .. } = &*self.objects;
        S3WorkerState { client: client(access, address), memory }
    }

    fn perform(&self, request: &IoRequest, worker: &mut S3WorkerState) -> IoCompletion {
        let IoRequest { tag, kind, file, offset, len, .. } = *request;
        let key = self.objects.key(file);
        let memory = &mut worker.memory[..usize::try_from(len).expect("within the largest")];
        let mut first = None;
        let result = match &worker.client {
            Err(error) => Err(error.clone()),
            Ok(client) => match kind {
                OperationKind::Read => {
                    client.read(&key, offset, memory).map(|began| first = Some(began))
                }
                OperationKind::Write => {
                    // Equal content could be stored once only, which would measure that.
                    crate::target::stamp(memory, tag);
                    client.put(&key, memory)
                }
            },
        };
        let result = result.map_err(|error| DeviceError::Io {
            action: if kind == OperationKind::Read { "reading" } else { "writing" },
            path: PathBuf::from(format!("s3://{}/{key}", self.objects.address.bucket)),
            offset,
            length: len,
            source: io::Error::other(error.reason),
        });
        let first = first.map(|at: Instant| Moment::ZERO + at.duration_since(self.origin));
        let open = worker.client.as_ref().map_or(Duration::ZERO, S3Client::spent);
        IoCompletion { first, open, ..IoCompletion::new(tag, self.now(), result) }
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn method(&self) -> String {
        let objects = self.objects.objects();
        let tls =
            if self.objects.access.endpoint.starts_with("https://") { " and TLS" } else { "" };
        format!("S3 over HTTP/1.1{tls}, a connection for each request under way, {objects} objects")
    }
}

/// The seed of the content that is written.
const SEED: u64 = 3362;
