//! Records go to memory at once, and another thread writes them to the file.
//!
//! ```text
//!   Sink::keep ─▶ [block being filled] ─full─▶ (channel, bounded) ─▶ writer thread
//!                        ▲                                              │
//!                        └──────────────── empty blocks ◀───────────────┘
//! ```
//!
//! Nothing is allocated after all blocks have been used once. If all blocks wait for the writer,
//! [`WhenFull::Wait`] waits for it (where there is no real clock to be late by) and
//! [`WhenFull::Count`] counts the records that find no room: the measurement continues, and
//! [`Written::lost`] reports the loss.

use super::{LogWriter, Record, RecordSink};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use units::Reason;

/// The treatment of a record that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Wait for room: nothing is lost, and the run takes longer.
    Wait,
    /// Count it as lost: nothing waits.
    Count,
}

/// Takes records on the measuring thread. A sink without a file drops them.
pub struct LogSink {
    block: Vec<Record>,
    ways: Option<BlockChannels>,
    room: WhenFull,
    lost: u64,
    first_lost: Option<u64>,
}

struct BlockChannels {
    full: SyncSender<Vec<Record>>,
    empty: Receiver<Vec<Record>>,
}

/// The thread that writes the log.
pub struct BackgroundWriter(JoinHandle<Result<LogWriter, Reason>>);

/// The state of a finished log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records in the file.
    pub records: u64,
    /// Records that found no room and are missing in the file.
    pub lost: u64,
    /// The intended start of the first lost record, in nanoseconds.
    pub first_lost: Option<u64>,
}

/// Starts a log in a new file with memory for `blocks` blocks of [`BLOCK`] records.
pub fn background_writer(
    path: &Path,
    blocks: usize,
    room: WhenFull,
) -> Result<(LogSink, BackgroundWriter), Reason> {
    let mut writer = LogWriter::create(path)?;
    // One block is filled while the other is written.
    let blocks = blocks.max(2);
    let (full, to_write) = sync_channel::<Vec<Record>>(blocks);
    let (give_back, empty) = sync_channel(blocks);
    // All memory is allocated before the run: an allocation could delay a frame.
    for _ in 0..blocks - 1 {
        let _ = give_back.send(Vec::with_capacity(BLOCK));
    }
    let write = move || {
        for mut block in to_write {
            writer.put(&block)?;
            block.clear();
            // The measuring thread may have ended already.
            let _ = give_back.send(block);
        }
        Ok(writer)
    };
    let spawned = std::thread::Builder::new().name("meter-log".to_owned()).spawn(write);
    let no_thread = |error| Reason::from(format!("no thread for the log: {error}"));
    let thread = spawned.map_err(|error| no_thread(error).about(path.display()))?;
    let ways = Some(BlockChannels { full, empty });
    let block = Vec::with_capacity(BLOCK);
    Ok((LogSink { block, ways, room, lost: 0, first_lost: None }, BackgroundWriter(thread)))
}

impl LogSink {
    /// A sink that drops all records.
    pub fn none() -> Self {
        Self { block: Vec::new(), ways: None, room: WhenFull::Count, lost: 0, first_lost: None }
    }

    /// Hands a full block to the writer and takes an empty one. False if there is no room for this
    /// record.
    #[cold]
    fn turn(&mut self, record: &Record) -> bool {
        let Some(ways) = &self.ways else { return false };
        if !self.block.is_empty() {
            // The channel has room for all blocks that exist. Where the writer has failed, `finish`
            // returns its error.
            let _ = ways.full.try_send(std::mem::take(&mut self.block));
        }
        // A measurement in real time never waits for the disk of its log.
        let empty = match self.room {
            WhenFull::Wait => ways.empty.recv().ok(),
            WhenFull::Count => ways.empty.try_recv().ok(),
        };
        let Some(block) = empty else {
            self.lost += 1;
            self.first_lost.get_or_insert(record.intended);
            return false;
        };
        self.block = block;
        true
    }
}

impl RecordSink for LogSink {
    fn keep(&mut self, record: &Record) {
        if self.block.len() == self.block.capacity() && !self.turn(record) {
            return;
        }
        self.block.push(*record);
    }
}

impl BackgroundWriter {
    /// Waits until all records are written. `about` has key and value pairs for the file's
    /// metadata.
    pub fn finish(self, mut sink: LogSink, about: &[(&str, String)]) -> Result<Written, Reason> {
        if let Some(ways) = sink.ways.take() {
            let _ = ways.full.send(std::mem::take(&mut sink.block));
        }
        // The sender is dropped by now, which ends the thread's loop after the last block.
        let writer = self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let records = writer.records();
        let lost = format!("{}", sink.lost);
        let about: Vec<(&str, String)> = about.iter().cloned().chain([("lost", lost)]).collect();
        writer.finish(&about)?;
        Ok(Written { records, lost: sink.lost, first_lost: sink.first_lost })
    }
}

/// Records of a block, which becomes a row group: 1.5 MiB.
pub(super) const BLOCK: usize = 16 << 10;
