//! The ways of reading that are compared, with what the paper counted by them.

use super::bench::{AtOnce, SEED, Way};
use crate::rounds::Order;
use device::Method;

/// A way, and the paper's streams by it on Solaris and FreeBSD.
pub(super) type Row = (Way, Option<u64>, Option<u64>);

const fn way(name: &'static str, method: Method, order: Order, at_once: AtOnce) -> Way {
    Way { name, method, order, at_once, read_ahead_kib: None }
}

/// The paper's best on the raw disk.
pub(super) const SCAN: Way = way(SCAN_NAME, Method::Pread, Order::Scan, AtOnce::Few(1));

/// In tables.
pub(super) const SCAN_NAME: &str = "read, SCAN order";

/// On the raw disk.
pub(super) const RAW: [Row; 6] = [
    (SCAN, Some(63), Some(63)),
    (way("read, random order", Method::Pread, Order::Arrival(SEED), AtOnce::Few(1)), None, None),
    (way("aio", Method::Libaio, Order::Streams, AtOnce::All), Some(33), Some(33)),
    (way("aio by io_uring", Method::Uring, Order::Streams, AtOnce::All), None, None),
    (way("threads", Method::Threads, Order::Streams, AtOnce::All), Some(29), Some(49)),
    (way("SCAN, 4 at once (Tenuto)", Method::Uring, Order::Scan, AtOnce::Few(4)), None, None),
];

/// Through a file system, which alone knows where its files lie.
pub(super) const READ: Way = way("read", Method::Pread, Order::Streams, AtOnce::Few(1));

/// On files.
pub(super) const FILES: [Row; 6] = [
    (READ, Some(25), Some(53)),
    (
        Way {
            read_ahead_kib: Some(128),
            ..way("read, 128 KiB ahead", READ.method, READ.order, READ.at_once)
        },
        None,
        None,
    ),
    (way("aio", Method::PosixAio, Order::Streams, AtOnce::All), Some(23), Some(39)),
    (way("threads", Method::Threads, Order::Streams, AtOnce::All), Some(18), None),
    (way("mmap", Method::Mmap, Order::Streams, AtOnce::Few(1)), Some(31), Some(51)),
    (way("mmap, all mapped first", Method::MmapAll, Order::Streams, AtOnce::All), None, None),
];
