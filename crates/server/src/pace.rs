//! Best-effort work on a served store (ingest, export, check, opening titles) takes its turns from
//! the engine, so that it only gets what viewers leave.

use crate::core::{CoreHandle, Event};
use crate::engine::DiskNumber;
use crossbeam_channel::{RecvTimeoutError, bounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{Pace, PaceGuard};
use units::ByteCount;

/// Turns at one disk.
#[derive(Debug)]
pub(crate) struct EnginePace {
    core: CoreHandle,
    disk: DiskNumber,
    read_size: ByteCount,
}

/// Names one asking for a turn; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AskId(u64);

/// A turn; over when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    core: CoreHandle,
    ask: AskId,
}

impl EnginePace {
    /// Turns of at most `read_size` each.
    pub(crate) fn new(core: CoreHandle, disk: DiskNumber, read_size: ByteCount) -> Self {
        Self { core, disk, read_size }
    }

    /// A turn for `bytes`; `None` if it does not come within `patience`. More than one read is
    /// waited for as so many turns one after another.
    pub(crate) fn turn(&self, bytes: ByteCount, patience: Duration) -> Option<Turn> {
        let mut left = bytes.0;
        while left > self.read_size.0 {
            drop(self.one_turn(self.read_size, patience)?);
            left -= self.read_size.0;
        }
        self.one_turn(ByteCount(left), patience)
    }

    fn one_turn(&self, bytes: ByteCount, patience: Duration) -> Option<Turn> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let ask = AskId(NEXT.fetch_add(1, Ordering::Relaxed));
        let (grant, granted) = bounded(1);
        let turn = Turn { core: self.core.clone(), ask };
        self.core.tell(Event::AskTurn { ask, disk: self.disk, bytes, grant });
        match granted.recv_timeout(patience) {
            // A core that has ended has no viewers to protect.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Some(turn),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

impl Pace for EnginePace {
    fn wait_turn(&self, bytes: ByteCount) -> PaceGuard {
        self.turn(bytes, FOR_EVER).map_or_else(PaceGuard::free, PaceGuard::holding)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.core.tell(Event::TurnDone { ask: self.ask });
    }
}

/// Ingest waits as long as it takes.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
