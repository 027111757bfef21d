//! The writes of one copy: at a rate, within the times of day, and in disk time that is kept for
//! them where there is some.
//!
//! ```text
//!   write ─▶ its turn by the rate ─▶ window open ─▶ kept time? ─┬─ yes: as a recording's write
//!                                                               └─ no: in time that is left over
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
        ends: [&'a AtomicBool; 2],
        entry: &'a BoardEntry<'a>,
    ) -> Self {
        let now = Instant::now();
        let pace = Mutex::new(Pace { due: now, kept: None, ask_at: now });
        Self { io, source, rate, ends, entry, pace }
    }

    /// Waits until a write of so many bytes may be asked for.
    fn wait_for_turn(&self, bytes: ByteCount) {
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
        let due = {
            let mut pace = locked(&self.pace);
            let now = Instant::now();
            if pace.kept.is_none() && now >= pace.ask_at {
                pace.kept = self.keep();
                pace.ask_at = now + ASK_AGAIN;
            }
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
            match io.keep(GuaranteedWrites::Copy { rate, write: WRITE }) {
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

/// Bytes of one write of a title.
const WRITE: ByteCount = ByteCount::MIB;
/// Time between looks at the window and at whether the copy is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two questions for kept time, where there was none.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// A rate below which no time is kept.
const LEAST_KEPT: BitRate = BitRate(1_000_000);
/// Time by which writes may be behind and catch up.
const BURST: Duration = Duration::from_secs(1);
