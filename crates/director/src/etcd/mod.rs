//! etcd over its JSON gateway: keys, leases and watches as HTTP requests.
//!
//! ```text
//!   client   POST /v3/kv/range, /v3/kv/txn, /v3/lease/..     one answer, from whichever member
//!   watch    POST /v3/watch                                  a line of JSON for each change
//!   format   the record that says of which form the others are
//! ```
//!
//! The gateway is part of every etcd since 3.4, and needs neither a gRPC library nor a runtime.

mod access;
mod address;
mod client;
mod format;
mod hints;
mod lease;
mod watch;
mod wire;

pub use access::EtcdAccess;
pub use address::{EtcdAddress, EtcdConfig};
pub(crate) use client::{EtcdClient, EtcdError, Stamp};
pub(crate) use format::{FORMAT_KEY, FormatFailure, check_format, hold_format};
pub(crate) use lease::{HeldLease, LeaseAge, LeaseKeeper};
pub(crate) use watch::{RecordChange, WatchNews};
pub(crate) use wire::{Condition, RecordWrite};
