//! Reads a recording while it goes on.
//!
//! ```text
//!   index   ├── parts that were spilled ──┼── parts in the catalogue ──┤
//!           kept from one look to the next          appended at each look
//!   data    ├──────────── at its place ────────────┤ tail, in the catalogue only
//! ```
//!
//! What a look finds is durable and does not change any more, but for the duration of the last LDU
//! of each track, and for what is said of all of a track: where parameter sets change, its
//! description is another one from then on.

use crate::byte_runs::runs;
use crate::catalogue::RecordingLog;
use crate::format::record::{RecordingRegion, TrackProgress};
use crate::recording::damaged;
use crate::{Store, StoreError, TitleId};
use media::{CHECKSUM_SPAN, IndexPart, SettledSegments, TitleIndex};
use std::ops::Range;
use std::time::Duration;
use units::{Extent, align_up};

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
    /// Per track, its extents. They may reach beyond its data.
    pub(crate) extents: Vec<Vec<Extent>>,
    /// The bytes of a chunk.
    chunk: u64,
}

impl RecordingSnapshot {
    /// Per track, its extents as byte ranges of the device. They may reach beyond its data.
    pub fn runs(&self) -> Vec<Vec<Range<u64>>> {
        self.extents.iter().map(|extents| runs(extents, self.chunk)).collect()
    }

    /// The segments that are final whatever follows, and whose bytes can be read and verified in
    /// whole pieces of `pieces` bytes of each track: multiples of [`CHECKSUM_SPAN`]. The data of
    /// each track ends with a piece. `segments` has those of earlier looks; of tracks that may not
    /// begin none are added.
    pub fn settled(
        &self,
        segments: &mut SettledSegments,
        pieces: &[u32],
        may_begin: &[bool],
    ) -> TitleIndex {
        let tracks = self.index.tracks.iter().zip(&self.in_place).zip(pieces);
        let held: Vec<u64> = tracks
            .zip(may_begin)
            .map(|(((track, in_place), piece), may_begin)| {
                let known = (*in_place).min(track.checksums.len() as u64 * CHECKSUM_SPAN);
                if *may_begin { known - known % u64::from(*piece) } else { 0 }
            })
            .collect();
        segments.extend(&self.index, &held);
        let mut index = segments.index(&self.index);
        for ((track, all), piece) in index.tracks.iter_mut().zip(&self.index.tracks).zip(pieces) {
            track.data_len = align_up(track.ldus.data_len(), u64::from(*piece));
            let spans = usize::try_from(track.data_len / CHECKSUM_SPAN).unwrap_or(usize::MAX);
            track.checksums = all.checksums.prefix(spans);
        }
        index
    }
}

/// How long a look at a recording is new that took so long: at least a second, because players ask
/// about every segment; and all looks at it take a twentieth of a processor's time at most, however
/// long it is.
pub fn time_of_look(took: Duration) -> Duration {
    LOOK_TIME.max(took.saturating_mul(LOOK_SHARE)).min(LONGEST_LOOK)
}

/// How long a look is new at least.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// The looks at one recording take this part of a processor's time at most.
const LOOK_SHARE: u32 = 20;
/// How long a look is new at most.
const LONGEST_LOOK: Duration = Duration::from_secs(30);

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
        for (track, now) in index.tracks.iter_mut().zip(described(&log).tracks) {
            track.description = now.description;
        }
        append(&log, &mut index, &log.progress)?;
        let numbers = (0..).take(index.tracks.len());
        let last = |number: u16| log.progress.iter().rfind(|progress| progress.track == number);
        let in_place = numbers.clone().map(|it| last(it).map_or(0, |last| last.in_place)).collect();
        let extents = |number| log.extents.get(&RecordingRegion::Track(number));
        let chunk = store.layout().chunk;
        let extents = numbers.map(|it| extents(it).cloned().unwrap_or_default()).collect();
        Ok(Some(RecordingSnapshot {
            extents,
            chunk,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_look_takes_the_later_is_the_next() {
        // Milliseconds.
        for (took, next) in [(0, 1000), (50, 1000), (80, 1600), (1000, 20_000), (9000, 30_000)] {
            let time = time_of_look(Duration::from_millis(took));
            assert_eq!(time, Duration::from_millis(next), "after {took} ms");
        }
    }
}
