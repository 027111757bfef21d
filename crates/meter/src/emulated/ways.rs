//! The read methods that are compared, with the paper's counts for them.

use super::bench::SEED;
use crate::rounds::Order;
use device::Method;

/// How a round's blocks are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The name in tables.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) order: Order,
    /// The queue depth: [`ALL`], or a number that does not depend on the streams.
    pub(super) at_once: u32,
    /// Read-ahead of the file system in KiB; `None`: the kernel's default.
    pub(super) read_ahead_kib: Option<u32>,
}

/// The queue depth of a method that requests the blocks of all streams at once.
pub(super) const ALL: u32 = u32::MAX;

/// A read method, and the paper's number of streams by it on Solaris and FreeBSD.
pub(super) type WayRow = (Way, Option<u64>, Option<u64>);

const fn way(name: &'static str, method: Method, order: Order, at_once: u32) -> Way {
    Way { name, method, order, at_once, read_ahead_kib: None }
}

/// The paper's best method on the raw disk.
pub(super) const SCAN: Way = way(SCAN_NAME, Method::Pread, Order::Scan, 1);

/// The name of [`SCAN`] in tables.
pub(super) const SCAN_NAME: &str = "read, SCAN order";

/// The methods on the raw disk.
pub(super) const RAW: [WayRow; 6] = [
    (SCAN, Some(63), Some(63)),
    (way("read, random order", Method::Pread, Order::Arrival(SEED), 1), None, None),
    (way("aio", Method::Libaio, Order::Streams, ALL), Some(33), Some(33)),
    (way("aio by io_uring", Method::Uring, Order::Streams, ALL), None, None),
    (way("threads", Method::Threads, Order::Streams, ALL), Some(29), Some(49)),
    (way("SCAN, 4 at once (Tenuto)", Method::Uring, Order::Scan, 4), None, None),
];

/// Plain reads through a file system, which places its files itself.
pub(super) const READ: Way = way("read", Method::Pread, Order::Streams, 1);

/// The methods on files of a file system.
pub(super) const FILES: [WayRow; 6] = [
    (READ, Some(25), Some(53)),
    (
        Way {
            read_ahead_kib: Some(128),
            ..way("read, 128 KiB ahead", READ.method, READ.order, READ.at_once)
        },
        None,
        None,
    ),
    (way("aio", Method::PosixAio, Order::Streams, ALL), Some(23), Some(39)),
    (way("threads", Method::Threads, Order::Streams, ALL), Some(18), None),
    (way("mmap", Method::Mmap, Order::Streams, 1), Some(31), Some(51)),
    (way("mmap, all mapped first", Method::MmapAll, Order::Streams, ALL), None, None),
];
