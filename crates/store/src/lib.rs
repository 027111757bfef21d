//! Media on a raw disk or in one preallocated file: format, allocation, catalogue, ingest, export,
//! check.
//!
//! Devices only through `device::BlockDevice`. It schedules nothing: whoever serves computes from
//! [`Store::runs`] where to read, and writers ask a [`Pace`] before each piece of disk work.

#![warn(missing_docs)]
