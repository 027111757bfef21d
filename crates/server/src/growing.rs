//! Titles that are being recorded, as players see them.
//!
//! ```text
//!   recording    ├─────────────────────────── in the catalogue ───────────────────────────┤
//!   segments     │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │   whole, final, in whole pieces at their place
//!   a look       ├── OpenTitle ──────────┤   ──▶ sessions begin on the newest one,
//!   the next     ├── OpenTitle ─────────────────┤    and go over to it (`engine::extension`)
//! ```
//!
//! All looks at a recording have the same pieces, of a size that is chosen at the first: large
//! enough for a disk, and no more than [`PIECE_TIME`] of media, because a segment is offered when
//! its last piece is there. When the recording has ended, its players go over to the whole title,
//! cut as before; newcomers play it as any other.

use crate::layout::{CopyLocation, LARGEST_PIECE, SMALLEST_PIECE, floor_power};
use crate::library::{IndexReads, Library, OpenError, OpenTitle, StoredCopy};
use crate::presentation::Presentation;
use media::{CHECKSUM_SPAN, Growth, Packaging, PackagingOptions, TitleIndex, settled};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{RecordingReader, RecordingSnapshot, TitleRecord};
use units::{BitRate, ByteCount, MediaTime, align_up, locked};

/// The recordings that players have asked for.
#[derive(Debug, Default)]
pub(crate) struct GrowingTitles {
    newest: Mutex<BTreeMap<StoredCopy, (Arc<OpenTitle>, Instant)>>,
    /// Locked during a look: there is one at a time.
    readers: Mutex<BTreeMap<StoredCopy, Growing>>,
}

/// What is kept from one look at a recording to the next.
#[derive(Debug)]
struct Growing {
    reader: RecordingReader,
    /// The bytes of a piece of each track.
    pieces: Vec<u32>,
    /// When the recording began, in Unix seconds.
    began: u64,
}

/// The state of a recording, or of the title that has become of it.
struct Look {
    index: TitleIndex,
    runs: Vec<Vec<Range<u64>>>,
    growth: Growth,
    record: Option<TitleRecord>,
}

impl GrowingTitles {
    /// The newest look, if it is new enough.
    fn fresh(&self, copy: StoredCopy) -> Option<Arc<OpenTitle>> {
        let newest = locked(&self.newest);
        let (title, at) = newest.get(&copy)?;
        let lasts = title.grows().is_none() || at.elapsed() < LOOK_TIME;
        lasts.then(|| Arc::clone(title))
    }
}

impl Library {
    /// The recording of this name, if one is running.
    pub(crate) fn recording(&self, name: &str) -> Option<StoredCopy> {
        let mut stores = self.stores.iter().enumerate();
        stores.find_map(|(store, opened)| {
            Some(StoredCopy { store, id: opened.store.recording(name)?.id })
        })
    }

    /// The newest look at a recording; `None` where it is time for another.
    pub(crate) fn newest(&self, copy: StoredCopy) -> Option<Arc<OpenTitle>> {
        self.growing.fresh(copy)
    }

    /// Looks at a recording. May wait for the disk, and takes time in proportion to the length of
    /// the recording.
    pub(crate) fn look(
        &self,
        copy: StoredCopy,
        name: &str,
        reads: &dyn IndexReads,
    ) -> Result<Arc<OpenTitle>, OpenError> {
        if self.is_encrypted(name) {
            return Err(OpenError::NotEncryptedYet);
        }
        let mut readers = locked(&self.growing.readers);
        // Another player's look may have been made while this one waited.
        if let Some(title) = self.newest(copy) {
            return Ok(title);
        }
        let before = locked(&self.growing.newest).get(&copy).map(|(title, _)| Arc::clone(title));
        let growing = readers.entry(copy).or_insert_with(|| Growing {
            reader: RecordingReader::new(copy.id),
            pieces: Vec::new(),
            began: 0,
        });
        let look = match self.look_at(copy, growing, reads) {
            // What is known goes on to be played.
            Err(OpenError::DiskBusy) if before.is_some() => None,
            look => Some(look?),
        };
        let title = match (look, before) {
            (Some(look), before) => match before.filter(|before| !is_more(before, &look)) {
                Some(same) => same,
                None => self.open_look(copy, name, &growing.pieces, look)?,
            },
            (None, before) => before.expect("looked at"),
        };
        let mut newest = locked(&self.growing.newest);
        newest.insert(copy, (Arc::clone(&title), Instant::now()));
        // Of an ended recording nothing is kept that nobody plays.
        newest.retain(|_, (title, _)| title.grows().is_some() || Arc::strong_count(title) > 1);
        readers.retain(|copy, _| newest.contains_key(copy));
        Ok(title)
    }

    fn look_at(
        &self,
        copy: StoredCopy,
        growing: &mut Growing,
        reads: &dyn IndexReads,
    ) -> Result<Look, OpenError> {
        let opened = &self.stores[copy.store];
        let permit = |bytes: u64| {
            let permit = (bytes > 0).then(|| reads.permit(opened, ByteCount(bytes), LOOK_TIMEOUT));
            permit.is_none_or(|permit| permit.is_some()).then_some(()).ok_or(OpenError::DiskBusy)
        };
        permit(growing.reader.to_read(&opened.store))?;
        let look = growing.reader.look(&opened.store).map_err(|error| OpenError::from(&error))?;
        let Some(snapshot) = look else {
            let gone = OpenError::NoTitle { nearest: None };
            let record = opened.store.record_of(copy.id).ok_or_else(|| gone.clone())?;
            permit(record.index_bytes)?;
            let index = opened.store.index(copy.id).map_err(|error| OpenError::from(&error))?;
            let numbers = (0..).take(record.tracks.len());
            let runs = numbers.map(|track| opened.store.runs(copy.id, track));
            let runs = runs.collect::<Option<_>>().ok_or(gone)?;
            let index = Arc::unwrap_or_clone(index);
            return Ok(Look { index, runs, growth: Growth::Grown, record: Some(record) });
        };
        if growing.pieces.is_empty() {
            let most = opened.read_size.0.min(opened.store.info().chunk.0);
            growing.pieces = snapshot.index.tracks.iter().map(|it| piece_size(it, most)).collect();
            growing.began = snapshot.created;
        }
        let index = self.settled(&snapshot, &growing.pieces);
        if index.tracks.iter().any(|track| track.ldus.is_empty()) {
            // The rates are those of a longer beginning then.
            growing.pieces.clear();
            return Err(OpenError::NotYet);
        }
        let growth = Growth::Growing { began: growing.began };
        Ok(Look { index, runs: snapshot.runs, growth, record: None })
    }

    /// The segments of a recording that are final, in whole pieces.
    fn settled(&self, snapshot: &RecordingSnapshot, pieces: &[u32]) -> TitleIndex {
        let tracks = snapshot.index.tracks.iter().zip(&snapshot.in_place).zip(pieces);
        let held: Vec<u64> = tracks
            .map(|((track, in_place), piece)| {
                let known = (*in_place).min(track.checksums.len() as u64 * CHECKSUM_SPAN);
                known - known % u64::from(*piece)
            })
            .collect();
        let mut index = settled(&snapshot.index, self.segment(), &held);
        for ((track, all), piece) in index.tracks.iter_mut().zip(&snapshot.index.tracks).zip(pieces)
        {
            track.data_len = align_up(track.ldus.data_len(), u64::from(*piece));
            let spans = usize::try_from(track.data_len / CHECKSUM_SPAN).unwrap_or(usize::MAX);
            track.checksums = all.checksums.iter().take(spans).copied().collect();
        }
        index
    }

    fn open_look(
        &self,
        copy: StoredCopy,
        name: &str,
        pieces: &[u32],
        look: Look,
    ) -> Result<Arc<OpenTitle>, OpenError> {
        let opened = &self.stores[copy.store];
        let Look { index, runs, growth, record } = look;
        // Names this look: playlists change from one to the next.
        let bytes: u64 = index.tracks.iter().map(|track| track.data_len).sum();
        let content = match record {
            Some(record) => record.content().to_string(),
            None => format!("{:x}-{bytes:x}", copy.id.0),
        };
        let options = PackagingOptions { segment: self.segment(), encryption: None, growth };
        let packaging =
            Packaging::new(Arc::new(index), &options).map_err(OpenError::NotPlayable)?;
        let location = CopyLocation {
            disk: opened.disk,
            read_size: opened.read_size,
            visit: opened.visit,
            runs,
        };
        let key = self.key_of(copy);
        let whole = Presentation::of_recording(Arc::new(packaging), key, &location, pieces);
        Ok(Arc::new(OpenTitle::of_recording(copy, name, content, self, whole)))
    }
}

/// Whether a look has more than a title that was opened before.
fn is_more(before: &OpenTitle, look: &Look) -> bool {
    let tracks = before.whole.packaging.index().tracks.iter().zip(&look.index.tracks);
    look.growth == Growth::Grown || tracks.into_iter().any(|(a, b)| a.data_len != b.data_len)
}

/// The bytes of a piece of a track that has these LDUs so far, at most `most`.
fn piece_size(track: &media::TrackIndex, most: u64) -> u32 {
    let ticks = i64::try_from(track.ldus.duration_ticks()).unwrap_or(i64::MAX);
    let lasts = MediaTime::from_ticks(ticks, track.description.timescale).since_start();
    let rate = BitRate::of(ByteCount(track.ldus.data_len()), lasts);
    let piece = floor_power(rate.bytes_in(PIECE_TIME).0.min(most)).min(LARGEST_PIECE);
    u32::try_from(piece.max(SMALLEST_PIECE)).expect("at most LARGEST_PIECE")
}

/// The most media in a piece. Sound of 128 kb/s has four seconds in the smallest.
const PIECE_TIME: Duration = Duration::from_secs(2);
/// How long a look is new: players look again about every segment.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// How long a look may wait for a busy disk.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
