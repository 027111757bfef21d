//! Writing a title: reserve, write, seal; a dropped writer leaves nothing.
//!
//! ```text
//!   declare     │ audio │ video                        │  one extent if any hole is large enough
//!   write       │AAAA   │VVVVVVVVVVVVVVV...            │  1 MiB at a time, CRC-32C per 64 KiB
//!   grow        │       │                              │VV in place if the following chunks are
//! free
//!   seal        │AAAA│  │VVVVVVVVVVVVVVVVVVVVVVVVVVVVV│ │  trimmed; index region; flush; catalogue
//! ```
//!
//! A title enters the catalogue after all of its data is durable. Reservations that are not sealed
//! are in memory only: after a crash the space is free again. A title that takes the place of one
//! of its name is written beside that one, and the catalogue changes from the one to the other with
//! one journal entry.

mod recorder;

pub use recorder::TitleRecorder;

use crate::byte_runs::{pieces, runs};
use crate::format::record::{MAX_EXTENTS, MAX_TRACKS, Record, check_limits, check_new_name};
use crate::format::{BLOCK, label};
use crate::free::{AllocError, FreeMap};
use crate::open_store::StoreState;
use crate::space::{Growth, TrackSpace};
use crate::{BackgroundIo, Store, StoreError, TitleId, TitleRecord, TrackRecord, Unthrottled};
use device::{Buffer, Pool};
use media::{
    CHECKSUM_SPAN, LduIndex, Packaging, PackagingOptions, TextTrack, Thumbnails, TitleIndex,
    TitleKind, TrackDescription, TrackIndex, checksum,
};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::{ByteCount, Extent};

/// A title that is being written. Dropped before [`TitleWriter::seal`], it leaves nothing behind.
pub struct TitleWriter<'a> {
    store: &'a Store,
    io: &'a dyn BackgroundIo,
    id: TitleId,
    name: String,
    kind: TitleKind,
    tracks: Vec<TrackBuffer>,
    texts: Vec<TextTrack>,
    thumbnails: Option<Thumbnails>,
    index: Vec<Extent>,
    pool: Pool,
    /// Bytes of a buffer of the pool.
    buffer: usize,
    /// How much a track grows that outgrows its extents.
    growth: Growth,
    /// The Unix time in seconds for its record; `None`: that of the seal.
    created: Option<u64>,
    /// Whether it takes the place of the title that has its name.
    replaces: bool,
    /// Whether the chunks belong to a record of the catalogue.
    sealed: bool,
}

/// A track that is being written.
#[derive(Default)]
struct TrackBuffer {
    space: TrackSpace,
    /// The bytes on the device; a multiple of the buffer's size until the last write.
    written: u64,
    /// The bytes behind those that are counted as written.
    buffer: Option<Buffer>,
    filled: usize,
    /// The bytes of the buffer that were taken for a commit all the same; whole blocks.
    in_place: usize,
    /// Whole blocks and their places on the device that the next commit writes.
    waiting: Vec<(u64, Vec<u8>)>,
    /// The bytes of the buffer that are in `checksums`; whole spans.
    summed: usize,
    checksums: Vec<u32>,
}

impl Store {
    /// Begins a title. Its name is reserved from now on; dropping the writer frees name and space.
    pub fn begin(&self, name: &str, kind: TitleKind) -> Result<TitleWriter<'_>, StoreError> {
        self.begin_with(name, kind, StoreState::reserve)
    }

    /// Begins a title that takes the place of the one that has its name when it is sealed, if any
    /// has it then. Until then that one stays what it is.
    ///
    /// # Errors
    /// Those of [`Store::begin`], but for a title of this name.
    pub fn begin_beside(&self, name: &str, kind: TitleKind) -> Result<TitleWriter<'_>, StoreError> {
        let mut writer = self.begin_with(name, kind, StoreState::reserve_beside)?;
        writer.replaces = true;
        Ok(writer)
    }

    fn begin_with(
        &self,
        name: &str,
        kind: TitleKind,
        reserve: fn(&mut StoreState, &str) -> Result<(), StoreError>,
    ) -> Result<TitleWriter<'_>, StoreError> {
        check_new_name(name)?;
        self.refuse_if_stopped()?;
        let mut state = self.state_mut();
        reserve(&mut state, name)?;
        let id = TitleId(state.next_id);
        state.next_id += 1;
        Ok(TitleWriter::new(self, id, name, kind))
    }
}

impl<'a> TitleWriter<'a> {
    fn new(store: &'a Store, id: TitleId, name: &str, kind: TitleKind) -> Self {
        Self {
            store,
            io: &Unthrottled,
            id,
            name: name.to_owned(),
            kind,
            tracks: Vec::new(),
            texts: Vec::new(),
            thumbnails: None,
            index: Vec::new(),
            pool: pool_of(WRITE),
            buffer: WRITE,
            growth: Growth::OF_ESTIMATED,
            created: None,
            replaces: false,
            sealed: false,
        }
    }

    /// Makes the writer ask `io` for a permit before each write.
    pub fn with_io(mut self, io: &'a dyn BackgroundIo) -> Self {
        self.io = io;
        let buffers = usize::try_from(io.buffer_size().0 / WRITE as u64).unwrap_or(1).max(1);
        if self.buffer != buffers * WRITE {
            self.buffer = buffers * WRITE;
            self.pool = pool_of(self.buffer);
        }
        self
    }

    /// Gives the title the time of another one, in Unix seconds.
    pub fn created(mut self, created: u64) -> Self {
        self.created = Some(created);
        self
    }

    /// Declares the tracks in the order of their numbers, once, and reserves their expected size
    /// (zero: unknown).
    pub fn declare(&mut self, expected: &[ByteCount]) -> Result<(), StoreError> {
        assert!(self.tracks.is_empty(), "tracks are declared once");
        if expected.is_empty() || expected.len() > MAX_TRACKS {
            let what = format!("{} tracks; 1 to {MAX_TRACKS} are possible", expected.len());
            return Err(StoreError::TooMuch { what });
        }
        let chunk = self.store.layout().chunk;
        let chunks: Vec<u64> = expected.iter().map(|bytes| bytes.0.div_ceil(chunk)).collect();
        let mut state = self.store.state_mut();
        let placed = TrackSpace::place(&mut state.free, &chunks);
        let spaces = placed.map_err(|error| full(error, &state.free, chunk))?;
        let track = |space| TrackBuffer { space, ..TrackBuffer::default() };
        self.tracks = spaces.into_iter().map(track).collect();
        Ok(())
    }

    /// Reserves the space of an index of this size, so that the title does not find the store full
    /// at its end. Without effect on an index that is larger.
    pub fn declare_index(&mut self, expected: ByteCount) -> Result<(), StoreError> {
        let bytes = expected.0.saturating_add(label::SIZE as u64);
        self.reserve_index(bytes.div_ceil(self.store.layout().chunk))
    }

    /// Reserves so many chunks for the index region, in the place of those that were reserved.
    fn reserve_index(&mut self, chunks: u64) -> Result<(), StoreError> {
        let chunk = self.store.layout().chunk;
        let mut state = self.store.state_mut();
        self.index.drain(..).for_each(|extent| state.free.give(extent));
        // Kept in `self.index` at once: from here on the drop gives the chunks back if anything
        // fails.
        let placed = state.free.allocate(chunks, MAX_EXTENTS);
        self.index = placed.map_err(|error| full(error, &state.free, chunk))?;
        Ok(())
    }

    /// Appends to a track's data.
    pub fn write(&mut self, track: u16, mut bytes: &[u8]) -> Result<(), StoreError> {
        let number = usize::from(track);
        // Only full buffers are written, so every device write but the last is aligned and large.
        while self.fill(number, &mut bytes) {
            self.write_out(number)?;
        }
        Ok(())
    }

    /// Moves bytes into a track's buffer; whether that is full.
    fn fill(&mut self, number: usize, bytes: &mut &[u8]) -> bool {
        let (pool, whole) = (&self.pool, self.buffer);
        let track = &mut self.tracks[number];
        let buffer = track.buffer.get_or_insert_with(|| {
            pool.take(whole).expect("the pool has a buffer for every track")
        });
        let now = bytes.len().min(whole - track.filled);
        buffer[track.filled..track.filled + now].copy_from_slice(&bytes[..now]);
        track.filled += now;
        *bytes = &bytes[now..];
        track.filled == whole
    }

    /// Gives the title its text tracks.
    pub fn set_texts(&mut self, texts: Vec<TextTrack>) {
        self.texts = texts;
    }

    /// Gives the title thumbnails.
    pub fn set_thumbnails(&mut self, thumbnails: Thumbnails) {
        self.thumbnails = Some(thumbnails);
    }

    /// The length of a track's data so far.
    pub fn written(&self, track: u16) -> u64 {
        self.tracks.get(usize::from(track)).map_or(0, TrackBuffer::bytes)
    }

    /// Makes the title durable and enters it into the catalogue. `tracks` are in the order of their
    /// numbers; for media, the lengths in the indexes must match the written data.
    pub fn seal(
        self,
        tracks: Vec<(TrackDescription, LduIndex)>,
    ) -> Result<TitleRecord, StoreError> {
        self.seal_in_place(tracks).map(|(record, _)| record)
    }

    /// Seals the title like [`TitleWriter::seal`]; also returns the record of the title whose place
    /// it took. The space of that one is kept until [`Store::release`].
    pub fn seal_in_place(
        mut self,
        tracks: Vec<(TrackDescription, LduIndex)>,
    ) -> Result<(TitleRecord, Option<TitleRecord>), StoreError> {
        for number in 0..self.tracks.len() {
            self.write_out(number)?;
            // Only now is the length final; trimmed chunks must be free before the index region
            // needs room.
            self.trim(number);
        }
        let index = Arc::new(self.title_index(tracks)?);
        let bytes = index.encode();
        // The label holds the record, and the record names the index region: the region comes
        // first.
        let record = self.place_index(&index, &bytes)?;
        let mut region = label::encode(&record, self.store.uuid());
        region.extend(&bytes);
        self.write_region(region)?;
        // Data and index must be durable before the catalogue refers to them.
        self.store.flush()?;
        // If this fails after a write began, the entry may be on the disk although the chunks are
        // given back. The store is stopped then, so no other title can be written into them.
        let mut replaced = None;
        let missing = if self.replaces { self.store.missing_for(&record.name) } else { Vec::new() };
        self.store.change_all(
            |state| {
                let other = state.catalogue.title(&record.name).filter(|_| self.replaces);
                // Decided under the lock of the journal, so carried out from here.
                replaced = other.cloned();
                let removal = replaced.iter().map(|other| Record::Removal(other.id));
                let notes = replaced.iter();
                let notes = notes.flat_map(|it| self.store.notes(state, &missing, it, None));
                Ok(removal.chain([Record::Title(record.clone())]).chain(notes).collect())
            },
            |state| {
                state.pending.remove(&record.name);
            },
        )?;
        self.sealed = true;
        Ok((record, replaced))
    }

    /// Writes a track's buffer to the device.
    fn write_out(&mut self, number: usize) -> Result<(), StoreError> {
        let missing = self.missing(number);
        if missing > 0 {
            self.grow(number, missing)?;
        }
        let track = &mut self.tracks[number];
        let Some(buffer) = track.buffer.as_mut().filter(|_| track.filled > 0) else {
            return Ok(());
        };
        // Devices are written in whole blocks.
        let padded = track.filled.next_multiple_of(BLOCK_SIZE);
        buffer[track.filled..padded].fill(0);
        // A reader sees the data without its padding, so the padding is not part of the last
        // checksum.
        track.checksums.extend(buffer[track.summed..track.filled].chunks(SPAN).map(checksum));
        let rest = track.in_place..padded;
        let at = track.written + rest.start as u64;
        self.store.write_pieces(track.space.extents(), at, &buffer[rest], self.io)?;
        track.written += track.filled as u64;
        (track.filled, track.in_place, track.summed) = (0, 0, 0);
        // A part of a buffer is only written at the end of the track.
        if padded < self.buffer {
            track.buffer = None;
        }
        Ok(())
    }

    /// Moves the whole blocks of a track's buffer to those that wait for the next commit; they
    /// count as written from now on. With a buffer for which the track has no room, moves what it
    /// has room for, and fails.
    fn take_whole_blocks(&mut self, number: usize) -> Result<(), StoreError> {
        let missing = self.missing(number);
        let grown = if missing > 0 { self.grow(number, missing) } else { Ok(()) };
        let chunk = self.store.layout().chunk;
        let track = &mut self.tracks[number];
        let Some(buffer) = &track.buffer else { return grown };
        let filled = track.filled_within(chunk);
        let blocks = track.in_place..filled - filled % BLOCK_SIZE;
        let at = track.written + blocks.start as u64;
        let new = &buffer[blocks.clone()];
        for (place, part) in pieces(&runs(track.space.extents(), chunk), at, new.len()) {
            match track.waiting.last_mut() {
                Some((start, bytes)) if *start + bytes.len() as u64 == place => {
                    bytes.extend_from_slice(&new[part]);
                }
                _ => track.waiting.push((place, new[part].to_vec())),
            }
        }
        track.in_place = blocks.end;
        let spans = track.summed..filled - filled % SPAN;
        track.checksums.extend(buffer[spans.clone()].chunks(SPAN).map(checksum));
        track.summed = spans.end;
        if track.in_place == self.buffer {
            track.written += self.buffer as u64;
            (track.filled, track.in_place, track.summed) = (0, 0, 0);
        }
        grown
    }

    /// The bytes of a track's data for which it has no room yet.
    fn missing(&self, number: usize) -> u64 {
        let track = &self.tracks[number];
        track.bytes().saturating_sub(track.capacity(self.store.layout().chunk))
    }

    /// Finds room for at least `missing` more bytes: in place if the following chunks are free,
    /// else elsewhere.
    fn grow(&mut self, number: usize, missing: u64) -> Result<(), StoreError> {
        let chunk = self.store.layout().chunk;
        let space = &mut self.tracks[number].space;
        let mut state = self.store.state_mut();
        let step = self.growth.step(space.chunks(), ByteCount(chunk), state.free.free());
        let grown = space.grow(&mut state.free, missing.div_ceil(chunk), step);
        grown.map_err(|error| full(error, &state.free, chunk))
    }

    /// Frees the chunks behind the end of a track's data.
    fn trim(&mut self, number: usize) {
        let track = &mut self.tracks[number];
        let used = track.written.div_ceil(self.store.layout().chunk);
        track.space.trim(&mut self.store.state_mut().free, used);
    }

    fn title_index(
        &mut self,
        tracks: Vec<(TrackDescription, LduIndex)>,
    ) -> Result<TitleIndex, StoreError> {
        let counts = (tracks.len(), self.tracks.len());
        if counts.0 != counts.1 {
            let what = format!("{} tracks were written and {} described", counts.1, counts.0);
            return Err(StoreError::Mismatch { what });
        }
        let mut described = Vec::new();
        for (i, (description, ldus)) in tracks.into_iter().enumerate() {
            let (written, said) = (self.tracks[i].written, ldus.data_len());
            // A file has no LDUs, so its index says nothing about the length.
            if self.kind == TitleKind::Media && written != said {
                let what = format!("track {i} has {written} bytes and an index of {said}");
                return Err(StoreError::Mismatch { what });
            }
            let checksums = std::mem::take(&mut self.tracks[i].checksums).into();
            described.push(TrackIndex { description, ldus, data_len: written, checksums });
        }
        let texts = std::mem::take(&mut self.texts);
        let thumbnails = self.thumbnails.take();
        Ok(TitleIndex { kind: self.kind, tracks: described, texts, thumbnails })
    }

    /// Reserves the index region and makes the title's record.
    fn place_index(
        &mut self,
        index: &Arc<TitleIndex>,
        bytes: &[u8],
    ) -> Result<TitleRecord, StoreError> {
        // The label comes first in the region, because a rebuild looks only at the start of each
        // chunk.
        let chunks = ((label::SIZE + bytes.len()) as u64).div_ceil(self.store.layout().chunk);
        if self.index.iter().map(|extent| extent.chunks).sum::<u64>() != chunks {
            self.reserve_index(chunks)?;
        }
        let tracks: Vec<TrackRecord> = self
            .tracks
            .iter()
            .map(|track| TrackRecord {
                bytes: track.written,
                extents: track.space.extents().to_vec(),
            })
            .collect();
        let record = TitleRecord {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            created: self.created.unwrap_or_else(unix_now),
            bytes: tracks.iter().map(|track| track.bytes).sum(),
            duration: duration(index),
            tracks,
            index: self.index.clone(),
            index_bytes: bytes.len() as u64,
            index_checksum: checksum(bytes),
        };
        // The format bounds all extents of a title together, the allocator only those of each
        // track.
        check_limits(&record)?;
        Ok(record)
    }

    fn write_region(&self, mut region: Vec<u8>) -> Result<(), StoreError> {
        region.resize(region.len().next_multiple_of(BLOCK_SIZE), 0);
        for (start, piece) in region.chunks(WRITE).enumerate() {
            self.store.write_pieces(&self.index, (start * WRITE) as u64, piece, self.io)?;
        }
        Ok(())
    }
}

impl Store {
    /// Writes whole blocks at an offset in these extents.
    pub(crate) fn write_pieces(
        &self,
        extents: &[Extent],
        offset: u64,
        bytes: &[u8],
        io: &dyn BackgroundIo,
    ) -> Result<(), StoreError> {
        for (mut place, part) in pieces(&runs(extents, self.layout().chunk), offset, bytes.len()) {
            let mut rest = &bytes[part];
            while !rest.is_empty() {
                let most = usize::try_from(io.most_at_once().0).unwrap_or(usize::MAX);
                let (now, later) = rest.split_at(rest.len().min(most));
                let _permit = io.acquire(ByteCount(now.len() as u64));
                self.write_data(place, now)?;
                (place, rest) = (place + now.len() as u64, later);
            }
        }
        Ok(())
    }
}

impl TrackBuffer {
    fn bytes(&self) -> u64 {
        self.written + self.filled as u64
    }

    /// The bytes that its extents hold.
    fn capacity(&self, chunk: u64) -> u64 {
        self.space.chunks() * chunk
    }

    /// The bytes of the buffer for which there is room.
    fn filled_within(&self, chunk: u64) -> usize {
        let room = usize::try_from(self.capacity(chunk) - self.written).unwrap_or(usize::MAX);
        self.filled.min(room)
    }
}

impl Drop for TitleWriter<'_> {
    fn drop(&mut self) {
        if self.sealed {
            return;
        }
        let mut state = self.store.state_mut();
        state.pending.remove(&self.name);
        for extent in self.tracks.iter().flat_map(|track| track.space.extents()).chain(&self.index)
        {
            state.free.give(*extent);
        }
    }
}

impl fmt::Debug for TitleWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u64> = self.tracks.iter().map(TrackBuffer::bytes).collect();
        write!(f, "TitleWriter({:?}, tracks of {bytes:?} bytes)", self.name)
    }
}

/// The time in Unix seconds; zero if the clock is not set.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

pub(crate) fn full(error: AllocError, free: &FreeMap, chunk: u64) -> StoreError {
    match error {
        AllocError::Missing(chunks) => StoreError::Full {
            missing: ByteCount(chunks.saturating_mul(chunk)),
            free: ByteCount(free.free() * chunk),
        },
        AllocError::Pieces => StoreError::TooManyPieces { limit: MAX_EXTENTS },
    }
}

/// The play-out time that players see; zero for files.
pub(crate) fn duration(index: &Arc<TitleIndex>) -> Duration {
    Packaging::new(Arc::clone(index), &PackagingOptions::default())
        .map_or(Duration::ZERO, |packaging| packaging.duration())
}

/// Buffers of this size, one for each possible track: a writer never waits for memory.
fn pool_of(buffer: usize) -> Pool {
    Pool::new(ByteCount((MAX_TRACKS * buffer) as u64), ByteCount(buffer as u64))
}

/// Bytes of one write, unless the I/O wants larger ones: a disk writes at nearly its full rate with
/// it, and it bounds the memory of a track.
const WRITE: usize = 1 << 20;

// No write but the last ends in the middle of a checksum's span.
const _: () = assert!(WRITE.is_multiple_of(SPAN));

#[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
const SPAN: usize = CHECKSUM_SPAN as usize;

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
pub(crate) const BLOCK_SIZE: usize = BLOCK as usize;
