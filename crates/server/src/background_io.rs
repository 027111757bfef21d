//! Background I/O on a served store (ingest, export, check, opening titles): the engine grants each
//! read and write, so that it uses only disk time that no session has reserved. For a recording
//! with a guaranteed rate it keeps time, as for a session.

use crate::library::{IndexReads, OpenStore};
use crate::messages::{CoreHandle, Event, PermitRequestId, RateRefusal};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use engine::{DiskNumber, MAX_PERMIT_READS, RecordingId, Resource};
use scheduler::{WriteDemand, WriteJob};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{BackgroundIo, Permit, RecordingLoad};
use units::{BitRate, ByteCount, Reason, locked, nanos};

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
        let disk = self.disk;
        self.permit(timeout, |id, grant| Event::RequestPermit { id, disk, bytes, grant })
    }

    fn permit_for_writes(&self, recording: Option<RecordingId>, job: WriteJob) -> Permit {
        let disk = self.disk;
        let permit = self.permit(UNLIMITED, |id, grant| Event::RequestWrite {
            id,
            disk,
            recording,
            job,
            grant,
        });
        permit.map_or_else(Permit::unlimited, Permit::holding)
    }

    fn permit(
        &self,
        timeout: Duration,
        request: impl FnOnce(PermitRequestId, Sender<()>) -> Event,
    ) -> Option<HeldPermit> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = PermitRequestId(NEXT.fetch_add(1, Ordering::Relaxed));
        let (grant, granted) = bounded(1);
        // Made before the request is sent: on a timeout its drop withdraws the request.
        let permit = HeldPermit { core: self.core.clone(), id };
        self.core.send(request(id, grant));
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

    fn acquire_writes(&self, places: u32, bytes: ByteCount) -> Permit {
        self.permit_for_writes(None, WriteJob { places, bytes })
    }

    fn most_places(&self) -> u32 {
        MAX_PERMIT_READS
    }
}

/// Writes at a guaranteed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuaranteedWrites {
    /// A recording writes and commits again and again.
    Recording(RecordingLoad),
    /// A copy makes writes of this size, one after the other, and commits at its end.
    Copy { rate: BitRate, write: ByteCount },
}

impl GuaranteedWrites {
    pub(crate) fn rate(self) -> BitRate {
        match self {
            Self::Recording(RecordingLoad { rate, .. }) | Self::Copy { rate, .. } => rate,
        }
    }

    /// As many writes as another rate needs.
    pub(crate) fn at_rate(self, rate: BitRate) -> Self {
        match self {
            Self::Recording(load) => Self::Recording(RecordingLoad { rate, ..load }),
            Self::Copy { write, .. } => Self::Copy { rate, write },
        }
    }

    /// What they ask of their disk, as the engine wants to know it.
    pub(crate) fn demand(self) -> WriteDemand {
        let job = |(places, bytes)| WriteJob { places, bytes };
        match self {
            Self::Recording(load) => WriteDemand {
                period: nanos(RecordingLoad::PERIOD),
                write: job(load.blocks()),
                joins: true,
                shared: Some(job(RecordingLoad::COMMIT)),
            },
            Self::Copy { rate, write } => {
                // Some writes are shorter: the last of an extent, of a part, of an index.
                let period = nanos(write.time_at(rate)) / SHORT_WRITES * (SHORT_WRITES - 1);
                let shared = None;
                WriteDemand { period: period.max(1), write: job((1, write)), joins: false, shared }
            }
        }
    }
}

/// The I/O of one recording on a served store: best effort, until time is kept for it.
#[derive(Debug)]
pub(crate) struct RecordingIo<'a> {
    io: &'a EngineBackgroundIo,
    kept: Mutex<Option<RecordingId>>,
}

impl<'a> RecordingIo<'a> {
    /// The I/O of a recording by the engine's permits.
    pub(crate) fn new(io: &'a EngineBackgroundIo) -> Self {
        Self { io, kept: Mutex::default() }
    }

    /// Keeps time of the disk for the writes, in place of what was kept before.
    pub(crate) fn keep(&self, writes: GuaranteedWrites) -> Result<(), RateRefusal> {
        let mut kept = locked(&self.kept);
        if let Some(recording) = kept.take() {
            self.io.core.send(Event::EndRecording { recording });
        }
        let (answer, decision) = bounded(1);
        self.io.core.send(Event::AdmitRecording { disk: self.io.disk, writes, answer });
        // A core that has ended has no sessions to protect.
        let Ok(decision) = decision.recv() else { return Ok(()) };
        *kept = Some(decision?);
        Ok(())
    }

    fn kept(&self) -> Option<RecordingId> {
        *locked(&self.kept)
    }
}

impl BackgroundIo for RecordingIo<'_> {
    fn acquire(&self, bytes: ByteCount) -> Permit {
        match self.kept() {
            Some(_) => self.acquire_writes(1, bytes),
            None => self.io.acquire(bytes),
        }
    }

    fn acquire_writes(&self, places: u32, bytes: ByteCount) -> Permit {
        self.io.permit_for_writes(self.kept(), WriteJob { places, bytes })
    }

    fn most_places(&self) -> u32 {
        // What time is kept for is charged for one sweep of the disk, however many take part.
        self.kept().map_or(MAX_PERMIT_READS, |_| u32::MAX)
    }

    fn keep_time(&self, load: RecordingLoad) -> Result<(), Reason> {
        let writes = GuaranteedWrites::Recording(load);
        self.keep(writes).map_err(|RateRefusal { resource, holds }| {
            let message = match (resource, holds) {
                (Resource::Memory, _) => "memory is short".to_owned(),
                (_, Some(rate)) => format!("it would hold {rate}"),
                (_, None) => "it is full, or by its calibration too slow at times".to_owned(),
            };
            let hint = "wait until viewers or recordings have ended, ask for a lower --rate, or \
                        record without it in the time that is left; if nobody plays or records, \
                        run `tenuto calibrate`";
            Reason::new(message, hint)
        })
    }
}

impl Drop for RecordingIo<'_> {
    fn drop(&mut self) {
        if let Some(recording) = self.kept() {
            self.io.core.send(Event::EndRecording { recording });
        }
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

/// One write of a copy in so many is not counted on to be whole.
const SHORT_WRITES: u64 = 16;
/// Ingest, export and check wait as long as the disk has no free time.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests;
