//! Background I/O on a served store (ingest, export, check, opening titles): the engine grants each
//! read and write, so that it uses only disk time that no session has reserved.

use crate::engine::{DiskNumber, MAX_PERMIT_READS};
use crate::library::{IndexReads, OpenStore};
use crate::messages::{CoreHandle, Event, PermitRequestId};
use crossbeam_channel::{RecvTimeoutError, bounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{BackgroundIo, Permit};
use units::ByteCount;

/// Requests permits for background I/O on one disk from the engine.
#[derive(Debug)]
pub(crate) struct EngineBackgroundIo {
    core: CoreHandle,
    disk: DiskNumber,
    read_size: ByteCount,
}

/// Permission for one read or write; dropping it releases the disk time.
#[derive(Debug)]
pub(crate) struct HeldPermit {
    core: CoreHandle,
    id: PermitRequestId,
}

impl EngineBackgroundIo {
    /// Background I/O on a store's disk, in reads of at most the store's read size.
    pub(crate) fn new(core: CoreHandle, opened: &OpenStore) -> Self {
        Self { core, disk: opened.disk, read_size: opened.read_size }
    }

    /// A permit for `bytes`; `None` if the engine grants none within `timeout`. For more bytes than
    /// one read, permits for all reads but the last are acquired and released one after another.
    pub(crate) fn permit_within(&self, bytes: ByteCount, timeout: Duration) -> Option<HeldPermit> {
        let mut left = bytes.0;
        while left > self.read_size.0 {
            drop(self.permit_for_read(self.read_size, timeout)?);
            left -= self.read_size.0;
        }
        self.permit_for_read(ByteCount(left), timeout)
    }

    /// A permit for reads of `bytes` in all, at most [`EngineBackgroundIo::most_at_once`], that are
    /// made at the same time.
    pub(crate) fn permit_for_all(&self, bytes: ByteCount) -> Option<HeldPermit> {
        self.permit_for_read(bytes, UNLIMITED)
    }

    /// Bytes that one permit counts for at most.
    pub(crate) fn most_at_once(&self) -> ByteCount {
        ByteCount(self.read_size.0 * u64::from(MAX_PERMIT_READS))
    }

    fn permit_for_read(&self, bytes: ByteCount, timeout: Duration) -> Option<HeldPermit> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = PermitRequestId(NEXT.fetch_add(1, Ordering::Relaxed));
        let (grant, granted) = bounded(1);
        // Made before the request is sent: on a timeout its drop withdraws the request.
        let permit = HeldPermit { core: self.core.clone(), id };
        self.core.send(Event::RequestPermit { id, disk: self.disk, bytes, grant });
        match granted.recv_timeout(timeout) {
            // A core that has ended has no sessions to protect.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Some(permit),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

impl BackgroundIo for EngineBackgroundIo {
    fn acquire(&self, bytes: ByteCount) -> Permit {
        self.permit_within(bytes, UNLIMITED).map_or_else(Permit::unlimited, Permit::holding)
    }
}

impl Drop for HeldPermit {
    fn drop(&mut self) {
        self.core.send(Event::ReleasePermit { id: self.id });
    }
}

/// Index reads of a served library take permits from the engine.
impl IndexReads for CoreHandle {
    fn permit(&self, store: &OpenStore, bytes: ByteCount, timeout: Duration) -> Option<Permit> {
        let io = EngineBackgroundIo::new(self.clone(), store);
        io.permit_within(bytes, timeout).map(Permit::holding)
    }
}

/// Ingest, export and check wait as long as the disk has no free time.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3600);
