//! Buckets that speak the S3 protocol: objects made for a run, read by range, and removed.
//!
//! ```text
//!   s3://BUCKET/PREFIX ─▶ TestObjects  PUT, or in parts; DELETE at the end
//!                             │
//!                         bucket_port  thread: GET with Range, or PUT a whole frame
//! ```
//!
//! `s3` makes the requests. Each thread has one connection, which is kept open. Only objects that
//! were made for the run are read or removed.
//!
//! The time of opening a connection, TLS included, is reported with the request that waited for it,
//! as the time of opening a file is. No request is repeated: the measurement must show what a
//! client library would hide by repeating. An object cannot be written in part, so that streams
//! that write need a layout with an object for each frame.

mod port;
mod test_objects;

pub(crate) use port::bucket_port;
pub(crate) use test_objects::TestObjects;

#[cfg(test)]
mod tests;
