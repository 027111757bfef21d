//! Verified reads of a title's data, which never return damaged bytes.

use crate::byte_runs::{pieces, runs};
use crate::format::BLOCK;
use crate::{BackgroundIo, Store, StoreAccess, StoreError, TitleId, TitleRecord};
use media::{CHECKSUM_SPAN, TitleIndex, TrackIndex, checksum};
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{ByteCount, MediaTime, locked};

/// A reader of one title's tracks that verifies checksums. It keeps the last windows of each
/// track, so that reading several tracks side by side, each from its start, reads everything once.
/// Threads may share it: they load different windows at the same time, and each window once.
pub struct TitleReader<A> {
    access: A,
    record: TitleRecord,
    index: Arc<TitleIndex>,
    /// The windows, the latest last.
    windows: Mutex<VecDeque<CachedWindow>>,
}

/// A reader that borrows the store.
pub type BorrowedReader<'a> = TitleReader<(&'a Store, &'a dyn BackgroundIo)>;

/// A window that is loaded, or is being loaded.
struct CachedWindow {
    track: u16,
    start: u64,
    window: Arc<WindowCell>,
}

/// The place of a window in memory; `None` until it is loaded.
type WindowCell = Mutex<Option<Arc<ReadWindow>>>;

/// The result of one read of a track.
#[derive(Debug, Default)]
struct ReadWindow {
    start: u64,
    bytes: Vec<u8>,
    /// The offsets in the track of spans whose checksum does not match.
    damaged: Vec<u64>,
}

/// A part of a track's bytes, verified.
#[derive(Debug)]
pub struct VerifiedBytes {
    window: Arc<ReadWindow>,
    range: Range<usize>,
}

impl Deref for VerifiedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.window.bytes[self.range.clone()]
    }
}

impl Store {
    /// A reader of a title's data that verifies checksums and asks `io` before each read.
    pub fn reader<'a>(
        &'a self,
        id: TitleId,
        io: &'a dyn BackgroundIo,
    ) -> Result<BorrowedReader<'a>, StoreError> {
        TitleReader::open((self, io), id)
    }
}

impl<A: StoreAccess> TitleReader<A> {
    /// A reader of a title's data that verifies checksums. Reads the title's index.
    ///
    /// # Errors
    /// [`StoreError::NoTitle`] if there is no such title; [`StoreError::Damaged`] if its index is
    /// damaged; those of the device.
    pub fn open(access: A, id: TitleId) -> Result<Self, StoreError> {
        let (record, index) = (access.store().record(id)?, access.store().index(id)?);
        Ok(Self { access, record, index, windows: Mutex::default() })
    }

    /// A reader of a recording that goes on: of the data that `index` has, which is durable.
    pub(crate) fn of_recording(access: A, record: TitleRecord, index: Arc<TitleIndex>) -> Self {
        Self { access, record, index, windows: Mutex::default() }
    }

    /// Another reader of the same title, with windows of its own.
    pub fn another(&self) -> Self
    where
        A: Clone,
    {
        Self {
            access: self.access.clone(),
            record: self.record.clone(),
            index: Arc::clone(&self.index),
            windows: Mutex::default(),
        }
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
    pub fn piece(&self, track: u16, offset: u64, most: usize) -> Result<VerifiedBytes, StoreError> {
        let window = self.window(track, offset)?;
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
            None => Ok(VerifiedBytes { window, range: from..to }),
        }
    }

    /// Reads the window at `offset`, which is the start of one, into `memory`, past those that are
    /// kept. Returns its length and every damaged span.
    pub(crate) fn scrub(
        &self,
        track: u16,
        offset: u64,
        memory: &mut Vec<u8>,
    ) -> Result<(u64, Vec<StoreError>), StoreError> {
        let window = self.load(track, offset, std::mem::take(memory))?;
        let damaged = window.damaged.iter().map(|span| self.damage(track, *span)).collect();
        let length = window.bytes.len() as u64;
        *memory = window.bytes;
        Ok((length, damaged))
    }

    /// The track's window around `offset`, which is read unless it is kept.
    fn window(&self, track: u16, offset: u64) -> Result<Arc<ReadWindow>, StoreError> {
        let bytes = self.record.tracks[usize::from(track)].bytes;
        assert!(offset < bytes, "a read at {offset} of {bytes}");
        // Aligned windows begin with a checksum span, and a span never crosses into the next
        // window.
        let start = units::align_down(offset, WINDOW as u64);
        let (cell, memory) = self.cell(track, start);
        // Held while it is read: who wants the same window waits for it.
        let mut content = locked(&cell);
        if let Some(window) = &*content {
            return Ok(Arc::clone(window));
        }
        // After an error the cell stays empty, and the next call reads again.
        let window = Arc::new(self.load(track, start, memory)?);
        *content = Some(Arc::clone(&window));
        Ok(window)
    }

    /// The place of a window in memory; with a new one, the memory of one that has to go.
    fn cell(&self, track: u16, start: u64) -> (Arc<WindowCell>, Vec<u8>) {
        let mut windows = locked(&self.windows);
        let is_it = |kept: &CachedWindow| (kept.track, kept.start) == (track, start);
        if let Some(kept) = windows.iter().find(|kept| is_it(kept)) {
            return (Arc::clone(&kept.window), Vec::new());
        }
        let of_track = |kept: &CachedWindow| kept.track == track;
        let mut memory = Vec::new();
        if windows.iter().filter(|kept| of_track(kept)).count() == WINDOWS_OF_TRACK {
            let oldest = windows.iter().position(of_track).expect("there are some");
            let gone = windows.remove(oldest).expect("it was found there");
            let gone = Arc::try_unwrap(gone.window).ok().and_then(|it| it.into_inner().ok());
            let gone = gone.flatten().and_then(|window| Arc::try_unwrap(window).ok());
            memory = gone.map(|window| window.bytes).unwrap_or_default();
        }
        let window = Arc::default();
        windows.push_back(CachedWindow { track, start, window: Arc::clone(&window) });
        (window, memory)
    }

    /// Reads a window into `bytes`.
    fn load(&self, track: u16, start: u64, mut bytes: Vec<u8>) -> Result<ReadWindow, StoreError> {
        let of_track = &self.record.tracks[usize::from(track)];
        let length = (of_track.bytes - start).min(WINDOW as u64);
        let length = usize::try_from(length).expect("a window");
        // O_DIRECT reads whole blocks; the padding is cut off before the checksums are compared.
        let padded = length.next_multiple_of(BLOCK_SIZE);
        if bytes.capacity() < padded {
            // New memory comes as zeros and need not be filled.
            bytes = vec![0; padded];
        } else {
            bytes.resize(padded, 0);
        }
        let runs = runs(&of_track.extents, self.access.store().layout().chunk);
        for (place, part) in pieces(&runs, start, bytes.len()) {
            // One permit for each read, so that a stream's read waits for one piece at most.
            let _permit = self.access.background_io().acquire(ByteCount(part.len() as u64));
            self.access.store().device().read_at(place, &mut bytes[part])?;
        }
        bytes.truncate(length);
        // Kept instead of returned: the caller may not want the damaged part at all.
        let damaged = damaged_spans(&self.index.tracks[usize::from(track)], start, &bytes);
        Ok(ReadWindow { start, bytes, damaged })
    }

    fn damage(&self, track: u16, span: u64) -> StoreError {
        // A title removed meanwhile may have been overwritten by another, which is no damage.
        let (store, id) = (self.access.store(), self.record.id);
        if store.record(id).is_err() && !store.is_recorded(id) {
            return StoreError::NoTitle { name: self.record.name.clone(), nearest: None };
        }
        let index = &self.index.tracks[usize::from(track)];
        StoreError::of_damaged_data(&self.record.name, track, index, span)
    }
}

impl StoreError {
    /// The damage of a span of a track's data, which begins at `offset` and has a checksum.
    pub fn of_damaged_data(title: &str, track: u16, index: &TrackIndex, offset: u64) -> Self {
        Self::DataDamaged {
            title: title.to_owned(),
            track,
            offset,
            length: CHECKSUM_SPAN.min(index.data_len.saturating_sub(offset)),
            time: time_at(index, offset),
        }
    }
}

impl<A> fmt::Debug for TitleReader<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<(u16, u64)> =
            locked(&self.windows).iter().map(|kept| (kept.track, kept.start)).collect();
        write!(f, "TitleReader({:?}, windows {places:?})", self.record.name)
    }
}

fn damaged_spans(index: &TrackIndex, start: u64, bytes: &[u8]) -> Vec<u64> {
    let first = start / CHECKSUM_SPAN;
    let first = usize::try_from(first).expect("checksums are in memory");
    let expected = index.checksums.range(first..index.checksums.len());
    let spans = bytes.chunks(SPAN).zip(expected).enumerate();
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

/// The windows of a track that are kept, at most: as many as a kernel reads ahead of a file that is
/// read through a mount, and some that it still asks for.
const WINDOWS_OF_TRACK: usize = 8;

/// Bytes of one read: best-effort work must use the disk for a short time only.
const WINDOW: usize = 1 << 20;

#[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
const SPAN: usize = CHECKSUM_SPAN as usize;

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
const BLOCK_SIZE: usize = BLOCK as usize;
