//! Objects that are made and filled for a run, and removed after it.
//!
//! ```text
//!   PREFIX/tenuto-meter-RANDOM/00000000 00000001 00000002 ...
//! ```
//!
//! The prefix is unique. The objects are removed when the value is dropped, which happens at the
//! end of the run however it ends, except when the program is killed.

use crate::error::MeterError;
use crate::target::LeftBehind;
use s3::{S3Access, S3Address, S3Client, S3Error};
use std::hash::{BuildHasher, Hasher, RandomState};
use units::ByteCount;
use units::show::count;

/// Objects that are created and filled for a run, and removed afterwards.
pub(crate) struct TestObjects {
    pub(super) access: S3Access,
    pub(super) address: S3Address,
    folder: String,
    client: S3Client,
    /// Number of objects that were made or begun.
    objects: u32,
    each: ByteCount,
    left: LeftBehind,
}

impl TestObjects {
    /// Creates and fills `objects` objects. `left` receives what cannot be removed at the end, and
    /// `go_on` the bytes written so far.
    pub(crate) fn make(
        access: S3Access,
        address: S3Address,
        objects: u32,
        each: ByteCount,
        left: LeftBehind,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, MeterError> {
        let client = client(&access, &address)?;
        let folder = format!("{}tenuto-meter-{:016x}", address.prefix, any_number());
        let mut made = Self { access, address, folder, client, objects: 0, each, left };
        let mut chance = fastrand::Rng::with_seed(SEED);
        for number in 0..objects {
            // Before the object is complete, so that dropping also removes one that was begun.
            made.objects = number + 1;
            let before = u64::from(number) * each.0;
            made.fill(number, &mut chance, &mut |done| go_on(before + done))?;
        }
        Ok(made)
    }

    /// The key of object `number`.
    pub(crate) fn key(&self, number: u32) -> String {
        format!("{}/{number:08}", self.folder)
    }

    /// The number of objects.
    pub(crate) fn objects(&self) -> u32 {
        self.objects
    }

    fn fill(
        &self,
        number: u32,
        chance: &mut fastrand::Rng,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), MeterError> {
        let (key, part) = (self.key(number), part(self.each.0));
        let mut done = 0;
        let mut next = || {
            if !go_on(done) {
                return Err(MeterError::new(
                    "interrupted: the objects that were being made are removed",
                ));
            }
            let len = usize::try_from((self.each.0 - done).min(part)).expect("a part fits");
            done += len as u64;
            let mut bytes = vec![0; len];
            chance.fill(&mut bytes);
            Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
        };
        if self.each.0 <= part {
            let bytes = next()?.unwrap_or_default();
            if number == 0 {
                // A server that refuses a large object closes the connection, and its reason is
                // lost; the reason of an empty one arrives.
                self.client.put(&key, &[])?;
            }
            return Ok(self.client.put(&key, &bytes)?);
        }
        self.client.put_in_parts(&key, &mut next)
    }
}

impl Drop for TestObjects {
    fn drop(&mut self) {
        let remove = |number| self.client.delete(&self.key(number)).err();
        let failed: Vec<S3Error> = (0..self.objects).filter_map(remove).collect();
        let Some(first) = failed.first() else { return };
        let (objects, S3Address { bucket, .. }) = (count(failed.len(), "object"), &self.address);
        self.left.add(format!(
            "{objects} could not be removed: {first}; remove what is under s3://{bucket}/{}/",
            self.folder
        ));
    }
}

/// A client of the bucket, with a connection of its own.
pub(super) fn client(access: &S3Access, address: &S3Address) -> Result<S3Client, S3Error> {
    S3Client::new(access, &address.bucket, "tenuto-meter")
}

/// A random number for a unique prefix: the standard library's hash keys are random.
fn any_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The size of a part: 16 MiB, or more for an object that would need more than ten thousand parts.
fn part(size: u64) -> u64 {
    size.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(16 << 20)
}

/// The largest number of parts in the protocol:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>
const MOST_PARTS: u64 = 10_000;

/// The seed of the objects' contents.
const SEED: u64 = 3362;
