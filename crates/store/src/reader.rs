//! Verified reads of a title's data, which never return damaged bytes.

use crate::byte_runs::{pieces, runs};
use crate::format::BLOCK;
use crate::{BackgroundIo, Store, StoreError, TitleId, TitleRecord};
use media::{CHECKSUM_SPAN, TitleIndex, TrackIndex, checksum};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::{ByteCount, MediaTime};

/// A reader of one title's tracks that verifies checksums, with a window for each track: made for
/// export and scrubbing, which read each track from its start.
pub struct TitleReader<'a> {
    store: &'a Store,
    record: TitleRecord,
    index: Arc<TitleIndex>,
    io: &'a dyn BackgroundIo,
    windows: Vec<ReadWindow>,
}

/// The last read of a track.
#[derive(Debug, Default)]
struct ReadWindow {
    start: u64,
    bytes: Vec<u8>,
    /// The offsets in the track of spans whose checksum does not match.
    damaged: Vec<u64>,
}

impl Store {
    /// A reader of a title's data that verifies checksums and asks `io` before each read.
    pub fn reader<'a>(
        &'a self,
        id: TitleId,
        io: &'a dyn BackgroundIo,
    ) -> Result<TitleReader<'a>, StoreError> {
        Ok(TitleReader::new(self, self.record(id)?, self.index(id)?, io))
    }
}

impl<'a> TitleReader<'a> {
    fn new(
        store: &'a Store,
        record: TitleRecord,
        index: Arc<TitleIndex>,
        io: &'a dyn BackgroundIo,
    ) -> Self {
        let windows = record.tracks.iter().map(|_| ReadWindow::default()).collect();
        Self { store, record, index, io, windows }
    }

    /// The title's record.
    pub fn record(&self) -> &TitleRecord {
        &self.record
    }

    /// The title's index.
    pub fn index(&self) -> &Arc<TitleIndex> {
        &self.index
    }

    /// A part of the bytes from `offset`, at least one and at most `most`.
    pub fn piece(&mut self, track: u16, offset: u64, most: usize) -> Result<&[u8], StoreError> {
        self.load(track, offset)?;
        let window = &self.windows[usize::from(track)];
        let from = usize::try_from(offset - window.start).expect("within the window");
        let to = window.bytes.len().min(from + most);
        let reached = window.start..window.start + to as u64;
        // Only spans that overlap the wanted bytes count: undamaged parts of the window can still
        // be used.
        let hit = window
            .damaged
            .iter()
            .find(|span| **span < reached.end && **span + CHECKSUM_SPAN > offset);
        match hit {
            Some(span) => Err(self.damage(track, *span)),
            None => Ok(&window.bytes[from..to]),
        }
    }

    /// Reads a whole track and returns every damaged span; `seen` receives the length of each
    /// piece.
    pub(crate) fn scrub(
        &mut self,
        track: u16,
        seen: &mut dyn FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<Vec<StoreError>, StoreError> {
        let bytes = self.record.tracks[usize::from(track)].bytes;
        let mut found = Vec::new();
        for start in (0..bytes).step_by(WINDOW) {
            self.load(track, start)?;
            let window = &self.windows[usize::from(track)];
            found.extend(window.damaged.iter().map(|span| self.damage(track, *span)));
            seen(window.bytes.len() as u64)?;
        }
        Ok(found)
    }

    /// Loads the track's window around `offset`.
    fn load(&mut self, track: u16, offset: u64) -> Result<(), StoreError> {
        let number = usize::from(track);
        let bytes = self.record.tracks[number].bytes;
        assert!(offset < bytes, "a read at {offset} of {bytes}");
        // Aligned windows begin with a checksum span, and a span never crosses into the next
        // window.
        let start = units::align_down(offset, WINDOW as u64);
        let window = &mut self.windows[number];
        if window.start == start && !window.bytes.is_empty() {
            return Ok(());
        }
        let length = usize::try_from((bytes - start).min(WINDOW as u64)).expect("a window");
        window.bytes.clear();
        // O_DIRECT reads whole blocks; the padding is cut off before the checksums are compared.
        window.bytes.resize(length.next_multiple_of(BLOCK_SIZE), 0);
        let runs = runs(&self.record.tracks[number].extents, self.store.layout().chunk);
        for (place, part) in pieces(&runs, start, window.bytes.len()) {
            // One permit for each read, so that a stream's read waits for one piece at most.
            let _permit = self.io.acquire(ByteCount(part.len() as u64));
            let read = self.store.device().read_at(place, &mut window.bytes[part]);
            // An empty window is not taken for a loaded one by the next call.
            if let Err(error) = read {
                window.bytes.clear();
                return Err(error.into());
            }
        }
        window.bytes.truncate(length);
        window.start = start;
        // Kept instead of returned: the caller may not want the damaged part at all.
        window.damaged = damaged_spans(&self.index.tracks[number], start, &window.bytes);
        Ok(())
    }

    fn damage(&self, track: u16, span: u64) -> StoreError {
        // A title removed meanwhile may have been overwritten by another, which is no damage.
        if self.store.record(self.record.id).is_err() {
            return StoreError::NoTitle { name: self.record.name.clone(), nearest: None };
        }
        let index = &self.index.tracks[usize::from(track)];
        StoreError::DataDamaged {
            title: self.record.name.clone(),
            track,
            offset: span,
            length: CHECKSUM_SPAN.min(index.data_len - span),
            time: time_at(index, span),
        }
    }
}

impl fmt::Debug for TitleReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<Range<u64>> =
            self.windows.iter().map(|w| w.start..w.start + w.bytes.len() as u64).collect();
        write!(f, "TitleReader({:?}, windows {places:?})", self.record.name)
    }
}

fn damaged_spans(index: &TrackIndex, start: u64, bytes: &[u8]) -> Vec<u64> {
    let first = start / CHECKSUM_SPAN;
    let first = usize::try_from(first).expect("checksums are in memory");
    let spans = bytes.chunks(SPAN).zip(&index.checksums[first..]).enumerate();
    spans
        .filter(|(_, (span, expected))| checksum(span) != **expected)
        .map(|(i, _)| start + i as u64 * CHECKSUM_SPAN)
        .collect()
}

/// The decoding time of the LDU at `offset`, from the track's start.
fn time_at(index: &TrackIndex, offset: u64) -> Option<Duration> {
    let (mut low, mut high) = (0, index.ldus.len());
    if high == 0 {
        return None;
    }
    while low + 1 < high {
        let middle = (low + high) / 2;
        if index.ldus.get(middle).offset <= offset { low = middle } else { high = middle }
    }
    let ticks = i64::try_from(index.ldus.get(low).decode_time).unwrap_or(i64::MAX);
    Some(MediaTime::from_ticks(ticks, index.description.timescale).since_start())
}

/// Bytes of one read: best-effort work must use the disk for a short time only.
const WINDOW: usize = 1 << 20;

#[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
const SPAN: usize = CHECKSUM_SPAN as usize;

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
const BLOCK_SIZE: usize = BLOCK as usize;
