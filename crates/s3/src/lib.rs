//! Objects in buckets that speak the S3 protocol.
//!
//! ```text
//!   s3://BUCKET/PREFIX ─▶ S3Address ─┬─▶ S3Client ─▶ GET with Range, PUT (also in parts, or only
//!   endpoint, region, keys ─▶ S3Access ─┘                of a new key), HEAD, LIST, DELETE
//! ```
//!
//! Requests are signed in a header (AWS Signature Version 4), so that the access logs of proxies
//! contain no address that works for others. `rusty-s3` makes the addresses and reads the answers;
//! its own signatures are in the address. A client has one connection, which is kept open. No
//! request is repeated: the caller knows whether it may be.

#![warn(missing_docs)]

mod address;
mod client;
mod clocked;
mod error;
mod signature;

pub use address::{S3Access, S3Address};
pub use client::{ListedObject, S3Client};
pub use error::{S3Error, S3ErrorKind};
pub use signature::Signer;

#[cfg(test)]
mod tests;
