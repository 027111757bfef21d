//! Titles of record in a bucket of an S3-compatible store.
//!
//! ```text
//!   PREFIX/titles/NAME.json     one for each title, written last: its tracks, as lists of parts
//!   PREFIX/parts/SHA-256        up to 16 MiB of a track, or an index; named after its content
//!
//!   push   store ─▶ read, verified ─▶ hash ─▶ PUT the parts that are not there ─▶ PUT the manifest
//!   fill   manifest ─▶ parts of peers, or GET ─▶ hash, compared ─▶ write ─▶ seal: it is in the store
//! ```
//!
//! Nothing is written twice: a part's name is its content, so that equal parts are one object, an
//! interrupted push goes on where it was, and two pushes of one title write the same. A manifest is
//! written once; where the server keeps to conditions (`If-None-Match`), also between two clients
//! at the same time. Only GET, PUT, HEAD, LIST and DELETE are needed. A push that verifies writes
//! again what is damaged.
//!
//! # Foreign objects
//!
//! Below `titles/` and `parts/` may be objects that nobody pushed: `titles/a//b.json`, whose name
//! no title can have, or a copy of a manifest that somebody has made by hand. Such an object is no
//! title: it is neither listed nor filled, and holds up neither a push, a removal nor a director.
//! `check` names it, and nobody but its owner removes it.
//!
//! A part whose name occurs in a foreign object below `titles/` is not removed with its title, so
//! that a manifest which was copied or renamed can be put back. A foreign object that cannot be
//! read for good (its key is none for the server, or it is larger than any manifest) keeps no part:
//! nobody could fill a title from it. An object with the name of a manifest that is none counts as
//! a damaged title, because it may have been one, and `remove` takes it away.
//!
//! A title that was filled has the content of the one that was pushed ([`store::Content`]), so that
//! both are copies of each other.

#![warn(missing_docs)]

mod check;
mod error;
mod listing;
mod manifest;
mod objects;
mod remove;
mod transfer;

pub use check::{BucketCheck, BucketFinding};
pub use error::{BucketError, DamagedPlace};
pub use listing::{BucketListing, BucketTitle};
pub use manifest::{Manifest, Part};
pub use remove::Removed;
pub use transfer::{FillOptions, FilledTitle, PartPeers, PushOptions, Pushed, WantedPart};

use s3::{S3Access, S3Address, S3Client, S3Error, S3ErrorKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The titles of record under one address of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleBucket {
    access: S3Access,
    address: S3Address,
    connections: usize,
}

/// The address.
impl fmt::Display for TitleBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl TitleBucket {
    /// The titles at an address. Nothing is asked of the bucket yet.
    pub fn new(access: S3Access, address: S3Address) -> Self {
        Self { access, address, connections: CONNECTIONS }
    }

    /// Uses so many connections at a time for each title, each with a part of up to 16 MiB.
    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections: connections.max(1), ..self }
    }

    /// Whether requests could be made, as far as that is known without one.
    ///
    /// # Errors
    /// An endpoint that is none, and certificates that cannot be used.
    pub fn check_access(&self) -> Result<(), BucketError> {
        self.client().map(drop).map_err(BucketError::from)
    }

    /// The server that has the bucket.
    pub fn endpoint(&self) -> &str {
        &self.access.endpoint
    }

    /// The names of all titles, in order; of foreign objects none.
    ///
    /// # Errors
    /// Those of the bucket.
    pub fn titles(&self) -> Result<Vec<String>, BucketError> {
        let objects = self.title_objects(&self.client()?)?;
        Ok(objects.titles.into_iter().map(|title| title.name).collect())
    }

    /// What the bucket knows of a title.
    ///
    /// # Errors
    /// [`BucketError::NoTitle`], [`BucketError::Damaged`], and those of the bucket.
    pub fn manifest(&self, title: &str) -> Result<Manifest, BucketError> {
        self.read_manifest(&self.client()?, title)
    }

    fn read_manifest(&self, client: &S3Client, title: &str) -> Result<Manifest, BucketError> {
        check_name(title)?;
        let read = tried(|| client.get(&self.manifest_key(title), LARGEST_MANIFEST));
        let bytes = read.map_err(|error| match error.kind {
            S3ErrorKind::NoSuchKey => {
                BucketError::NoTitle { title: title.to_owned(), address: self.address.to_string() }
            }
            _ => error.into(),
        })?;
        Manifest::parse(title, &bytes).map_err(|what| BucketError::Damaged {
            title: title.to_owned(),
            what,
            place: DamagedPlace::Manifest,
        })
    }

    fn client(&self) -> Result<S3Client, S3Error> {
        S3Client::new(&self.access, &self.address.bucket, "tenuto")
    }

    fn manifest_key(&self, title: &str) -> String {
        self.key(TITLES, title) + MANIFEST
    }

    fn key(&self, folder: &str, name: &str) -> String {
        format!("{}{folder}{name}", self.address.prefix)
    }
}

/// Refuses a name that would be another key: URLs have no folders of these names.
fn check_name(title: &str) -> Result<(), BucketError> {
    let is_key = title.split('/').all(|folder| !matches!(folder, "" | "." | ".."));
    is_key.then_some(()).ok_or_else(|| BucketError::BadName { title: title.to_owned() })
}

/// Repeats a request that may succeed later, a few times and after longer and longer times.
fn tried<T>(mut request: impl FnMut() -> Result<T, S3Error>) -> Result<T, S3Error> {
    for wait in RETRIES {
        match request() {
            Err(error) if error.kind == S3ErrorKind::Unavailable => std::thread::sleep(wait),
            answer => return answer,
        }
    }
    request()
}

/// How long a request that failed is waited with before it is made again.
const RETRIES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)];

/// Connections that are used at the same time.
const CONNECTIONS: usize = 4;
const TITLES: &str = "titles/";
const PARTS: &str = "parts/";
const MANIFEST: &str = ".json";

/// Bytes of a manifest: of the largest title that a store can have, in parts of 16 MiB.
const LARGEST_MANIFEST: u64 = 64 << 20;
