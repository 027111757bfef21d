//! Writing a title while it is being recorded: what was committed survives a power cut.
//!
//! ```text
//!   write    into the buffers of the tracks
//!   commit   whole blocks in place ──▶ flush ──▶ journal: for each track its new LDUs, the bytes in
//!            place, and those behind the last whole block ──▶ flush
//!   finish   the title is made of these records (`recording`), as after a power cut
//! ```
//!
//! A block that was acknowledged is never written again, so that a torn write loses nothing. The
//! commits of several recordings share flushes and journal entries (`commit_group`).

use super::{BLOCK_SIZE, TitleWriter, WRITE, full, unix_now};
use crate::byte_runs::{pieces, runs};
use crate::commit_group::Commit;
use crate::format::label;
use crate::format::record::{
    MAX_EXTENTS, MAX_NAME, MAX_RECORD, Record, RecordingRegion, RecordingStart, SpilledParts, TAIL,
    TrackProgress,
};
use crate::recording::split;
use crate::space::Growth;
use crate::{RecordingLoad, StoreError, TitleId, TitleRecord};
use media::{
    Checksums, IndexPart, LduIndex, TitleIndex, TitleKind, TrackDescription, TrackIndex, checksum,
};
use std::fmt;
use units::{ByteCount, Encoder, Extent};

/// A title that is being recorded.
///
/// Dropped before [`TitleRecorder::finish`], it leaves what was committed: a title of that is made
/// when the store is opened the next time, and until then the name is in use.
pub struct TitleRecorder<'a> {
    writer: TitleWriter<'a>,
    /// The tracks as they were described first, and as they are described now.
    tracks: [Vec<TrackDescription>; 2],
    /// Whether the catalogue has another description than that of now.
    is_described_anew: bool,
    /// What the catalogue has of each track.
    committed: Vec<CommittedTrack>,
    parts: RecordingExtents,
    index: RecordingExtents,
    /// The bytes that are used of the region of the parts.
    spilled: u64,
    /// The bytes of all parts, in the region and in the catalogue.
    part_bytes: u64,
    /// The bytes that wait for a commit at most.
    most_waiting: ByteCount,
}

/// What the catalogue has of a track of a recording.
#[derive(Clone, Default)]
struct CommittedTrack {
    ldus: usize,
    checksums: usize,
    extents: Vec<Extent>,
}

/// A region of a recording beside its tracks.
struct RecordingExtents {
    region: RecordingRegion,
    extents: Vec<Extent>,
    /// Number of its chunks that the catalogue has.
    committed: u64,
}

impl<'a> TitleRecorder<'a> {
    /// Begins the recording of a title with these tracks, durably. `load` is what its disk keeps
    /// time for, if anything.
    pub fn start(
        mut writer: TitleWriter<'a>,
        tracks: &[TrackDescription],
        load: Option<RecordingLoad>,
    ) -> Result<Self, StoreError> {
        writer.growth = Growth::OF_RECORDED;
        writer.declare(&vec![ByteCount::ZERO; tracks.len()])?;
        let start = Record::Recording(RecordingStart {
            id: writer.id,
            name: writer.name.clone(),
            created: unix_now(),
            index: encoded(tracks),
        });
        let described = start.encoded_len();
        if described > MAX_RECORD as u64 {
            let what = format!("{described} bytes that describe the tracks of a recording");
            return Err(StoreError::TooMuch { what });
        }
        let of = |region| RecordingExtents { region, extents: Vec::new(), committed: 0 };
        let mut recorder = Self {
            writer,
            tracks: [tracks.to_vec(), tracks.to_vec()],
            is_described_anew: false,
            committed: vec![CommittedTrack::default(); tracks.len()],
            parts: of(RecordingRegion::Parts),
            index: of(RecordingRegion::Index),
            spilled: 0,
            part_bytes: described,
            most_waiting: load.map_or(MOST_WAITING, RecordingLoad::most_waiting),
        };
        // From now on the chunks of the regions are given back with those of the writer.
        let mut records = vec![start];
        recorder.reserve_index()?;
        recorder.writer.index.clone_from(&recorder.index.extents);
        records.extend(recorder.index.record(recorder.writer.id));
        recorder.writer.store.change_all(|_| Ok(records), |_| {})?;
        // They belong to the catalogue's recording now.
        recorder.writer.sealed = true;
        recorder.index.committed = chunks(&recorder.index.extents);
        Ok(recorder)
    }

    /// Appends to a track's data. What waits for a commit is bounded: blocks that are more than
    /// that are written at once.
    pub fn write(&mut self, track: u16, mut bytes: &[u8]) -> Result<(), StoreError> {
        self.write_from(track, &mut bytes)
    }

    /// [`TitleRecorder::write`] that takes what it has written from `bytes`, so that a caller who
    /// has made room can go on with the rest.
    pub(crate) fn write_from(&mut self, track: u16, bytes: &mut &[u8]) -> Result<(), StoreError> {
        let number = usize::from(track);
        while self.writer.fill(number, bytes) {
            self.writer.take_whole_blocks(number)?;
            let waiting = self.writer.tracks.iter().flat_map(|track| &track.waiting);
            if waiting.map(|(_, bytes)| bytes.len() as u64).sum::<u64>() >= self.most_waiting.0 {
                let commit = Commit { blocks: self.waiting_blocks(), records: Vec::new() };
                self.writer.store.commit_recording(commit, self.writer.io)?;
            }
        }
        Ok(())
    }

    /// Describes the tracks anew: `complete` is given the description with which the recording
    /// began of each track, and changes it. The next commit makes it durable, so that a title of
    /// what is committed then says what is in it. A description that is too long for the catalogue
    /// leaves the one before.
    pub fn describe(&mut self, complete: &mut dyn FnMut(usize, &mut TrackDescription)) {
        let [first, now] = &mut self.tracks;
        let mut tracks = first.clone();
        tracks.iter_mut().enumerate().for_each(|(number, track)| complete(number, track));
        let others = MAX_RECORD - MAX_NAME - 32;
        if tracks != *now && encoded(&tracks).len() <= others {
            *now = tracks;
            self.is_described_anew = true;
        }
    }

    /// Makes the whole LDUs so far durable. `part` returns what a track has had since one of its
    /// LDUs: the LDUs that are among the first bytes of its data, whose number is the last argument
    /// (see [`media::FragmentReader::part`]).
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::TooManyPieces`] after all that there is room for was
    /// committed.
    pub fn commit(
        &mut self,
        part: &mut dyn FnMut(usize, usize, u64) -> IndexPart,
    ) -> Result<(), StoreError> {
        let (mut records, mut progress) = (Vec::new(), Vec::new());
        let (mut committed, mut full) = (self.committed.clone(), None);
        records.extend(self.description());
        for (number, known) in committed.iter_mut().enumerate() {
            full = self.writer.take_whole_blocks(number).err().or(full);
            let track = &self.writer.tracks[number];
            let filled = track.filled_within(self.writer.store.layout().chunk);
            let mut part = part(number, known.ldus, track.written + filled as u64);
            part.checksums = track.checksums[known.checksums..].to_vec();
            if part.ldus.is_empty() && part.checksums.is_empty() {
                continue;
            }
            if known.extents != track.space.extents() {
                known.extents = track.space.extents().to_vec();
                let region = RecordingRegion::Track(number_of(number));
                records.push(Record::RecordingExtents(
                    self.writer.id,
                    region,
                    track.space.extents().to_vec(),
                ));
            }
            known.ldus += part.ldus.len();
            known.checksums += part.checksums.len();
            let tail = track.buffer.as_ref().map_or(&[][..], |it| &it[track.in_place..filled]);
            let in_place = track.written + track.in_place as u64;
            for part in fitting(part)? {
                self.part_bytes += part.len() as u64;
                progress.push(Record::Progress(TrackProgress {
                    id: self.writer.id,
                    track: number_of(number),
                    part,
                    in_place,
                    tail: tail.to_vec(),
                }));
            }
        }
        if progress.is_empty() {
            let commit = Commit { blocks: self.waiting_blocks(), records };
            self.writer.store.commit_recording(commit, self.writer.io)?;
            self.is_described_anew = false;
            return full.map_or(Ok(()), Err);
        }
        // The parts that are in the catalogue leave it before new ones come.
        let mut blocks = self.spill(&mut records)?;
        self.reserve_index()?;
        records.extend(self.index.record(self.writer.id));
        records.extend(progress);
        blocks.extend(self.waiting_blocks());
        let commit = Commit { blocks, records };
        self.writer.store.commit_recording(commit, self.writer.io)?;
        self.is_described_anew = false;
        self.committed = committed;
        self.parts.committed = chunks(&self.parts.extents);
        self.index.committed = chunks(&self.index.extents);
        full.map_or(Ok(()), Err)
    }

    /// The record of the tracks as they are described now, if the catalogue does not have it.
    fn description(&mut self) -> Option<Record> {
        if !self.is_described_anew {
            return None;
        }
        let store = self.writer.store;
        let state = store.state();
        let log = state.catalogue.recording(self.writer.id).expect("it is being recorded");
        let (before, index) = (&log.start, encoded(&self.tracks[1]));
        self.part_bytes += (index.len() as u64).saturating_sub(before.index.len() as u64);
        Some(Record::Recording(RecordingStart { index, ..before.clone() }))
    }

    fn waiting_blocks(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.writer.tracks.iter_mut().flat_map(|track| std::mem::take(&mut track.waiting)).collect()
    }

    /// The bytes of data so far.
    pub fn bytes(&self) -> u64 {
        (0..self.committed.len()).map(|track| self.writer.written(number_of(track))).sum()
    }

    /// The identifier that the title will have.
    pub(crate) fn id(&self) -> TitleId {
        self.writer.id
    }

    /// Makes a title of what was committed; `None` if that is nothing.
    pub fn finish(self) -> Result<Option<TitleRecord>, StoreError> {
        {
            // Chunks for data that could not be committed, because the store is full.
            let mut state = self.writer.store.state_mut();
            let tracks = self.writer.tracks.iter().zip(&self.committed);
            let tracks =
                tracks.map(|(track, known)| (track.space.extents(), chunks(&known.extents)));
            let regions =
                [&self.parts, &self.index].map(|it| (it.extents.as_slice(), it.committed));
            for (extents, known) in tracks.chain(regions) {
                split(extents, known).1.iter().for_each(|extent| state.free.give(*extent));
            }
        }
        self.writer.store.seal_recording(self.writer.id, self.writer.io)
    }

    /// Moves the parts that the catalogue has into the region for them, if they are many: the
    /// blocks to be written, and their places.
    fn spill(&mut self, records: &mut Vec<Record>) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let (store, id) = (self.writer.store, self.writer.id);
        let slot = &store.layout().checkpoints[0];
        let slot = slot.end - slot.start;
        let mut out = Encoder::default();
        {
            let state = store.state();
            let running = state.catalogue.recordings().count() as u64;
            let of_all = slot / SLOT_PART_OF_ALL / running.max(1);
            let most = MOST_PARTS.min(slot / SLOT_PART).min(of_all);
            let log = state.catalogue.recording(id).expect("it is being recorded");
            if (log.part_bytes() as u64) < most {
                return Ok(Vec::new());
            }
            for progress in log.progress.iter().filter(|progress| !progress.part.is_empty()) {
                let without_tail = TrackProgress { tail: Vec::new(), ..progress.clone() };
                Record::Progress(without_tail).encode(&mut out);
            }
        }
        let mut bytes = out.finish();
        let parts = SpilledParts {
            offset: self.spilled,
            bytes: u32::try_from(bytes.len()).expect("they are bounded"),
            checksum: checksum(&bytes),
        };
        bytes.resize(bytes.len().next_multiple_of(BLOCK_SIZE), 0);
        let end = self.spilled + bytes.len() as u64;
        self.parts.grow_to(&self.writer, end)?;
        let places = runs(&self.parts.extents, store.layout().chunk);
        let places = pieces(&places, self.spilled, bytes.len()).into_iter();
        let blocks = places.map(|(place, part)| (place, bytes[part].to_vec())).collect();
        self.spilled = end;
        records.extend(self.parts.record(id));
        records.push(Record::Spill(id, parts));
        Ok(blocks)
    }

    /// Keeps room for the index region of the title, so that also a full store has it.
    fn reserve_index(&mut self) -> Result<(), StoreError> {
        let needed = label::SIZE as u64 + self.part_bytes + 2 * MOST_PARTS;
        self.index.grow_to(&self.writer, needed)
    }
}

impl RecordingExtents {
    /// Allocates chunks until the region has `bytes`.
    fn grow_to(&mut self, writer: &TitleWriter<'_>, bytes: u64) -> Result<(), StoreError> {
        let chunk = writer.store.layout().chunk;
        let have = chunks(&self.extents);
        let missing = bytes.div_ceil(chunk).saturating_sub(have);
        if missing == 0 {
            return Ok(());
        }
        // By a part of its size, so that the extents stay few.
        let step = missing.max(have / GROWTH_PART);
        let mut state = writer.store.state_mut();
        let free = &mut state.free;
        let mut got = 0;
        if let Some(last) = self.extents.last_mut() {
            got = free.extend(last.end(), step);
            last.chunks += got;
        }
        if got < missing {
            let room = MAX_EXTENTS - self.extents.len().min(MAX_EXTENTS);
            let more = free.allocate(missing - got, room);
            self.extents.extend(more.map_err(|error| full(error, free, chunk))?);
        }
        Ok(())
    }

    /// The record of the extents, if the catalogue does not have them.
    fn record(&self, id: TitleId) -> Option<Record> {
        let record = || Record::RecordingExtents(id, self.region, self.extents.clone());
        (chunks(&self.extents) > self.committed).then(record)
    }
}

impl fmt::Debug for TitleRecorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TitleRecorder({:?})", self.writer)
    }
}

/// The index of a recording with these tracks that has nothing yet.
fn encoded(tracks: &[TrackDescription]) -> Vec<u8> {
    let empty = |description: &TrackDescription| TrackIndex {
        description: description.clone(),
        ldus: LduIndex::default(),
        data_len: 0,
        checksums: Checksums::default(),
    };
    let tracks = tracks.iter().map(empty).collect();
    let index = TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None };
    index.encode()
}

/// The encoded part, in as many pieces as records need.
fn fitting(part: IndexPart) -> Result<Vec<Vec<u8>>, StoreError> {
    let bytes = part.encode();
    if bytes.len() <= MOST_PART {
        return Ok(vec![bytes]);
    }
    let Some((front, back)) = part.halves() else {
        let what = format!("{} bytes that describe one LDU", bytes.len());
        return Err(StoreError::TooMuch { what });
    };
    let mut pieces = fitting(front)?;
    pieces.extend(fitting(back)?);
    Ok(pieces)
}

fn chunks(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.chunks).sum()
}

fn number_of(track: usize) -> u16 {
    u16::try_from(track).expect("tracks are few")
}

/// The longest encoded part in a record.
const MOST_PART: usize = MAX_RECORD - TAIL - 64;

/// The regions of a recording beside its tracks grow by a quarter of their size.
const GROWTH_PART: u64 = 4;

/// The bytes that wait for a commit where no rate is guaranteed: an input may come as fast as it is
/// read.
const MOST_WAITING: ByteCount = ByteCount(4 << 20);

/// The bytes of parts of a recording in the catalogue from which on they are spilled; on a small
/// store this part of a checkpoint.
const MOST_PARTS: u64 = 32 << 10;
const SLOT_PART: u64 = 16;

/// The part of a checkpoint that the parts of all recordings together have at most: the rest is for
/// their descriptions and the bytes behind their last whole blocks, and for titles.
const SLOT_PART_OF_ALL: u64 = 4;

// A part is not longer than the buffer of a track.
const _: () = assert!(MOST_PARTS < WRITE as u64);
