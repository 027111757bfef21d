//! The writes of one copy: at a rate, within the times of day, and in disk time that is kept for
//! them where there is some.
//!
//! ```text
//!   write ─▶ window open ─▶ kept time? ─┬─ yes: a large one ──────────┬─▶ its turn by the rate ─▶ disk
//!                                       └─ no: in time that is left ──┘
//! ```

use crate::background_io::{EngineBackgroundIo, GuaranteedWrites, RecordingIo};
use crate::copy_board::BoardEntry;
use crate::copy_source::CopySource;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use store::{BackgroundIo, Permit};
use units::{BitRate, ByteCount, locked};

/// Schedules the writes of one copy.
pub(super) struct PacedIo<'a> {
    io: &'a EngineBackgroundIo,
    source: &'a CopySource,
    rate: BitRate,
    /// Bytes of a write in kept time.
    write: ByteCount,
    /// Set when the copy is not wanted any more, and when the server ends; writes do not wait then.
    ends: [&'a AtomicBool; 2],
    entry: &'a BoardEntry<'a>,
    pace: Mutex<Pace<'a>>,
}

struct Pace<'a> {
    /// When the next write may begin.
    due: Instant,
    /// The time of the disk that is kept, and its rate.
    kept: Option<(RecordingIo<'a>, BitRate)>,
    /// When time is asked for again.
    ask_at: Instant,
}

impl<'a> PacedIo<'a> {
    pub(super) fn new(
        io: &'a EngineBackgroundIo,
        source: &'a CopySource,
        rate: BitRate,
        visit: ByteCount,
        ends: [&'a AtomicBool; 2],
        entry: &'a BoardEntry<'a>,
    ) -> Self {
        let now = Instant::now();
        let pace = Mutex::new(Pace { due: now, kept: None, ask_at: now });
        Self { io, source, rate, write: write_size(visit), ends, entry, pace }
    }

    /// Waits until copies may be written, and asks for time of the disk where none is kept.
    fn wait_for_window(&self) {
        let mut is_open = self.source.is_open_now();
        if !is_open {
            // Viewers have the disk time until the window opens again.
            locked(&self.pace).kept = None;
            while !is_open && !self.is_cancelled() {
                thread::sleep(LOOK);
                is_open = self.source.is_open_now();
            }
            locked(&self.pace).ask_at = Instant::now();
        }
        let mut pace = locked(&self.pace);
        let now = Instant::now();
        if pace.kept.is_none() && now >= pace.ask_at {
            pace.kept = self.keep();
            pace.ask_at = now + ASK_AGAIN;
        }
    }

    /// Waits until a write of so many bytes may be asked for, by the rate.
    fn wait_for_turn(&self, bytes: ByteCount) {
        let due = {
            let mut pace = locked(&self.pace);
            let now = Instant::now();
            // What was not used of a second is not used later.
            let due = pace.due.max(now.checked_sub(BURST).unwrap_or(now));
            pace.due = due + bytes.time_at(self.rate);
            due
        };
        while let Some(left) = due.checked_duration_since(Instant::now())
            && !self.is_cancelled()
        {
            thread::sleep(left.min(LOOK));
        }
    }

    /// Keeps time of the disk for the rate, or for as much of it as fits.
    fn keep(&self) -> Option<(RecordingIo<'a>, BitRate)> {
        let mut rate = self.rate;
        for _ in 0..2 {
            let io = RecordingIo::new(self.io);
            match io.keep(GuaranteedWrites::Copy { rate, write: self.write }) {
                Ok(()) => return Some((io, rate)),
                Err(refusal) => rate = refusal.holds.filter(|holds| *holds >= LEAST_KEPT)?,
            }
        }
        None
    }

    fn is_cancelled(&self) -> bool {
        self.ends.iter().any(|ends| ends.load(Ordering::Relaxed))
    }
}

impl BackgroundIo for PacedIo<'_> {
    fn buffer_size(&self) -> ByteCount {
        self.write
    }

    fn most_at_once(&self) -> ByteCount {
        self.wait_for_window();
        // In time that is left over a large write would take that of several reads at once.
        if locked(&self.pace).kept.is_some() { self.write } else { ByteCount::MIB }
    }

    fn acquire(&self, bytes: ByteCount) -> Permit {
        self.wait_for_turn(bytes);
        let pace = locked(&self.pace);
        self.entry.writes(bytes, pace.kept.as_ref().map(|(_, rate)| *rate));
        match &pace.kept {
            Some((io, _)) => io.acquire_writes(1, bytes),
            None => {
                drop(pace);
                self.io.acquire(bytes)
            }
        }
    }
}

/// The bytes of a write, whose transfer takes at least twice as long as the positioning. `visit`:
/// bytes that the disk transfers in the time of a positioning.
fn write_size(visit: ByteCount) -> ByteCount {
    let sizes = (0..=LARGEST_SHIFT).map(|shift| ByteCount(ByteCount::MIB.0 << shift));
    let mut enough = sizes.skip_while(|size| size.0 < 2 * visit.0);
    enough.next().unwrap_or(ByteCount(ByteCount::MIB.0 << LARGEST_SHIFT))
}

/// The largest write, as a power of two of mebibytes: 64 ms of a disk of today.
const LARGEST_SHIFT: u32 = 3;
/// Time between looks at the window and at whether the copy is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two questions for kept time, where there was none.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// A rate below which no time is kept.
const LEAST_KEPT: BitRate = BitRate(1_000_000);
/// Time by which writes may be behind and catch up.
const BURST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_large_where_positioning_takes_long() {
        // Bytes transferred in the time of a positioning; mebibytes of a write.
        let rows = [(0, 1), (400_000, 1), (1_400_000, 4), (3_000_000, 8), (1 << 30, 8)];
        for (visit, mebibytes) in rows {
            assert_eq!(write_size(ByteCount(visit)).0, mebibytes << 20, "{visit}");
        }
    }
}
