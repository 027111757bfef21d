//! Paced reads of objects by range, and writes of whole ones.

use super::client::Client;
use super::{MadeObjects, S3Error};
use crate::log::Kind;
use crate::target::{Arrived, Crew, Port, Request, Worker};
use device::DeviceError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// What the threads share.
struct Clerks {
    objects: Arc<MadeObjects>,
    largest: usize,
    origin: Instant,
}

/// The door to objects that were made for the run: a request's file is an object's number. At most
/// `at_once` requests of up to `largest` bytes. `origin` is moment zero.
pub fn bucket_port(
    objects: Arc<MadeObjects>,
    at_once: u32,
    largest: ByteCount,
    origin: Instant,
) -> impl Port {
    let largest = usize::try_from(largest.0).expect("a request fits in memory");
    Crew::new(Clerks { objects, largest, origin }, at_once)
}

/// A thread's connection and memory.
struct Clerk {
    client: Result<Client, S3Error>,
    memory: Vec<u8>,
}

impl Worker for Clerks {
    type Own = Clerk;

    fn own(&self) -> Clerk {
        let mut memory = vec![0; self.largest];
        fastrand::Rng::with_seed(SEED).fill(&mut memory);
        let MadeObjects { access, address, tls, .. } = &*self.objects;
        Clerk { client: Client::new(access, address, tls.clone()), memory }
    }

    fn perform(&self, request: &Request, clerk: &mut Clerk) -> Arrived {
        let Request { tag, kind, file, offset, len, .. } = *request;
        let key = self.objects.key(file);
        let memory = &mut clerk.memory[..usize::try_from(len).expect("within the largest")];
        let mut first = None;
        let result = match &clerk.client {
            Err(error) => Err(error.clone()),
            Ok(client) => match kind {
                Kind::Read => client.read(&key, offset, memory).map(|began| first = Some(began)),
                Kind::Write => {
                    crate::target::stamp(memory, tag);
                    client.put(&key, memory)
                }
            },
        };
        let result = result.map_err(|error| DeviceError::Io {
            action: if kind == Kind::Read { "reading" } else { "writing" },
            path: PathBuf::from(format!("s3://{}/{key}", self.objects.address.bucket)),
            offset,
            length: len,
            source: io::Error::other(error),
        });
        let first = first.map(|at: Instant| Moment::ZERO + at.duration_since(self.origin));
        let open = clerk.client.as_ref().map_or(Duration::ZERO, Client::spent);
        Arrived { first, open, ..Arrived::new(tag, self.now(), result) }
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

/// Of the bytes that are written.
const SEED: u64 = 3362;
