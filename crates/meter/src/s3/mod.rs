//! Buckets that speak the S3 protocol: objects made for a run, read by range, and removed.
//!
//! ```text
//!   s3://BUCKET/PREFIX ─▶ Address ─┬─ MadeObjects  PUT, or in parts; DELETE at the end
//!   endpoint, region, keys ─────────┘       │
//!                                       bucket_port  thread: GET with Range, or PUT a whole frame
//! ```
//!
//! Requests are signed in their address (AWS Signature Version 4, as `rusty-s3` makes it) and go
//! over a connection for each thread, kept open. Nothing is read or removed but what was made.
//!
//! What opening a connection takes, TLS included, is told of the request that had to wait for it as
//! the opening of a file is. It tries nothing twice: what a client library would hide by trying
//! again is what is to be measured. An object cannot be written in part, so that streams that write
//! need a layout of an object for each frame.

mod address;
mod client;
mod clocked;
mod port;
mod test_objects;

pub use address::{Access, Address};
pub use client::S3Error;
pub use port::bucket_port;
pub use test_objects::TestObjects;

#[cfg(test)]
mod tests;
