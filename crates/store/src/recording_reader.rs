//! Reads a recording while it goes on.
//!
//! ```text
//!   index   ├── parts that were spilled ──┼── parts in the catalogue ──┤
//!           kept from one look to the next          appended at each look
//!   data    ├──────────── at its place ────────────┤ tail, in the catalogue only
//! ```
//!
//! What a look finds is durable and does not change any more, but for the duration of the last LDU
//! of each track.

use crate::byte_runs::runs;
use crate::catalogue::RecordingLog;
use crate::format::record::{RecordingRegion, TrackProgress};
use crate::recording::damaged;
use crate::{Store, StoreError, TitleId};
use media::{IndexPart, TitleIndex};
use std::ops::Range;

/// Looks at a recording, again and again while it goes on.
#[derive(Debug)]
pub struct RecordingReader {
    id: TitleId,
    /// The index of what was spilled at the last look; `None` before the first.
    spilled: Option<TitleIndex>,
    /// The number of spilled parts in it.
    parts: usize,
}

/// A recording as far as it was durable at one moment.
#[derive(Clone, Debug)]
pub struct RecordingSnapshot {
    /// The name of the title that it becomes.
    pub name: String,
    /// The Unix time in seconds at which it began.
    pub created: u64,
    /// The index. Of each track the last LDU may still get another duration, and the checksums are
    /// those of whole spans.
    pub index: TitleIndex,
    /// Per track, the bytes from its start on that can be read from the device: whole blocks.
    pub in_place: Vec<u64>,
    /// Per track, its extents as byte ranges of the device. They may reach beyond its data.
    pub runs: Vec<Vec<Range<u64>>>,
}

impl RecordingReader {
    /// A reader of the recording that becomes the title with this identifier.
    pub fn new(id: TitleId) -> Self {
        Self { id, spilled: None, parts: 0 }
    }

    /// The bytes that the next look reads from the device.
    pub fn to_read(&self, store: &Store) -> u64 {
        let state = store.state();
        let log = state.catalogue.recording(self.id);
        let new = log.and_then(|log| log.spilled.get(self.parts..)).unwrap_or_default();
        new.iter().map(|parts| u64::from(parts.bytes)).sum()
    }

    /// Looks at the recording; `None` if it has ended. Reads from the device what was spilled since
    /// the last look, some 32 KiB a minute.
    pub fn look(&mut self, store: &Store) -> Result<Option<RecordingSnapshot>, StoreError> {
        let Some(log) = store.state().catalogue.recording(self.id).cloned() else {
            return Ok(None);
        };
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(described(&log)),
        };
        for parts in &log.spilled[self.parts..] {
            append(&log, spilled, &store.spilled_progress(&log, parts)?)?;
            self.parts += 1;
        }
        let mut index = spilled.clone();
        append(&log, &mut index, &log.progress)?;
        let numbers = (0..).take(index.tracks.len());
        let last = |number: u16| log.progress.iter().rfind(|progress| progress.track == number);
        let in_place = numbers.clone().map(|it| last(it).map_or(0, |last| last.in_place)).collect();
        let extents = |number| log.extents.get(&RecordingRegion::Track(number));
        let chunk = store.layout().chunk;
        let runs = numbers.map(|it| extents(it).map_or_else(Vec::new, |it| runs(it, chunk)));
        Ok(Some(RecordingSnapshot {
            runs: runs.collect(),
            name: log.start.name,
            created: log.start.created,
            index,
            in_place,
        }))
    }
}

/// The index of a recording that has nothing yet.
pub(crate) fn described(log: &RecordingLog) -> TitleIndex {
    TitleIndex::decode(&log.start.index).expect("it was decoded before")
}

/// Appends what was recorded to the index of what was recorded before.
pub(crate) fn append(
    log: &RecordingLog,
    index: &mut TitleIndex,
    progress: &[TrackProgress],
) -> Result<(), StoreError> {
    for progress in progress {
        let damaged = || damaged(log, "has parts that do not follow one another");
        let track = index.tracks.get_mut(usize::from(progress.track)).ok_or_else(damaged)?;
        if progress.part.is_empty() {
            continue;
        }
        let part = IndexPart::decode(&progress.part).map_err(|_| damaged())?;
        part.append_to_track(track).map_err(|_| damaged())?;
    }
    Ok(())
}
