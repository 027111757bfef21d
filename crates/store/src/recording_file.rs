//! A recording as a file that grows, as mounts show it.
//!
//! ```text
//!   recording   ├──────────────── committed ────────────────┤ ..
//!   segments    │ 0 │ 1 │ 2 │ 3 │ 4 │    final, and in place in whole spans with checksums
//!   a look      ├──── file ────────┤     media::GrowingFile: fragmented MP4
//!   the next    ├──── file ────────────┤
//!   the end     ├──── file ──────────────────────────────────┤  read from the title
//! ```
//!
//! What was read of the file stays the same: a later look only has more. When the recording has
//! ended, one more look appends the rest, and the file is complete. It is not the file of the title
//! ([`TitleReader::file`]), whose header is in front of all.

use crate::{
    RecordingReader, StoreAccess, StoreError, TitleId, TitleReader, TitleRecord, TrackRecord,
    time_of_look,
};
use media::{
    Body, CHECKSUM_SPAN, GrowingFile, Growth, Packaging, PackagingOptions, SettledSegments,
    TitleIndex, TitleKind,
};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use units::{ByteCount, locked};

/// The file of a recording. Threads may share it: all of them see one newest look.
pub struct RecordingFile<A> {
    access: A,
    id: TitleId,
    state: Mutex<RecordingFileState<A>>,
}

struct RecordingFileState<A> {
    reader: RecordingReader,
    segments: SettledSegments,
    file: GrowingFile,
    latest: Option<Arc<RecordingLook<A>>>,
    /// When the latest look was made, and how long it took.
    at: Instant,
    took: Duration,
}

/// The file of a recording as it was at a look.
pub struct RecordingLook<A> {
    reader: TitleReader<A>,
    body: Body,
    duration: Duration,
    modified: SystemTime,
    has_ended: bool,
}

impl<A: StoreAccess + Clone> RecordingFile<A> {
    /// The file of the recording that becomes the title with this identifier.
    pub fn new(access: A, id: TitleId) -> Self {
        let (reader, file) = (RecordingReader::new(id), GrowingFile::default());
        let (at, took) = (Instant::now(), Duration::ZERO);
        let segments = SettledSegments::new(FRAGMENT);
        let state = RecordingFileState { reader, segments, file, latest: None, at, took };
        Self { access, id, state: Mutex::new(state) }
    }

    /// The identifier of the title that the recording becomes.
    pub fn id(&self) -> TitleId {
        self.id
    }

    /// The newest look. Looks again where it is time for that; a look takes time in proportion to
    /// what is new, and to the number of segments. The longer it takes, the later is the next
    /// ([`time_of_look`]).
    ///
    /// # Errors
    /// [`StoreError::NoTitle`] if there is no such recording, and no title of it;
    /// [`StoreError::Damaged`] if its index cannot be read; those of the device.
    pub fn look(&self) -> Result<Arc<RecordingLook<A>>, StoreError> {
        let mut state = locked(&self.state);
        if let Some(latest) = &state.latest {
            let is_recorded = self.access.store().is_recorded(self.id);
            let is_new = is_recorded && state.at.elapsed() < time_of_look(state.took);
            if latest.has_ended || is_new {
                return Ok(Arc::clone(latest));
            }
        }
        let begun = Instant::now();
        let look = match (self.look_again(&mut state), &state.latest) {
            // Its title was removed as soon as it was there.
            (Err(StoreError::NoTitle { .. }), Some(latest)) => return Ok(Arc::clone(latest)),
            (look, _) => Arc::new(look?),
        };
        (state.at, state.took) = (Instant::now(), begun.elapsed());
        state.latest = Some(Arc::clone(&look));
        Ok(look)
    }

    fn look_again(
        &self,
        state: &mut RecordingFileState<A>,
    ) -> Result<RecordingLook<A>, StoreError> {
        let store = self.access.store();
        let permit =
            |bytes: u64| (bytes > 0).then(|| self.access.background_io().acquire(ByteCount(bytes)));
        let held = permit(state.reader.to_read(store));
        let snapshot = state.reader.look(store)?;
        drop(held);
        let (reader, index, growth) = match snapshot {
            Some(snapshot) => {
                // Spans have checksums: what is between two is read later.
                let piece = u32::try_from(CHECKSUM_SPAN).expect("64 KiB");
                let count = snapshot.index.tracks.len();
                let (pieces, all) = (vec![piece; count], vec![true; count]);
                let index = Arc::new(snapshot.settled(&mut state.segments, &pieces, &all));
                let tracks = index.tracks.iter().zip(snapshot.extents);
                let tracks =
                    tracks.map(|(track, extents)| TrackRecord { bytes: track.data_len, extents });
                let record = recorded(self.id, snapshot.name, snapshot.created, tracks.collect());
                let access = self.access.clone();
                let reader = TitleReader::of_recording(access, record, Arc::clone(&index));
                (reader, index, Growth::Growing { began: snapshot.created })
            }
            None => {
                let record = store.record(self.id)?;
                let _held = permit(record.index_bytes);
                let reader = TitleReader::open(self.access.clone(), self.id)?;
                let index = Arc::clone(reader.index());
                (reader, index, Growth::Grown { began: record.created })
            }
        };
        let has_ended = matches!(growth, Growth::Grown { .. });
        let before = state.file.body().len();
        let packaging = match growth {
            Growth::Growing { began } => state.segments.packaging(index, began),
            _ => {
                let options = PackagingOptions { segment: FRAGMENT, encryption: None, growth };
                Packaging::new(index, &options)
            }
        };
        // A recording of which nothing is settled yet is no error.
        if let Ok(packaging) = packaging {
            state.file.extend(&packaging);
        }
        let duration = state.file.duration();
        let modified = match &state.latest {
            Some(latest) if state.file.body().len() == before => latest.modified,
            // An input that is not live may come faster than its time.
            _ => {
                let end = Duration::from_secs(reader.record().created) + duration;
                (UNIX_EPOCH + end).min(SystemTime::now())
            }
        };
        let body = state.file.body().clone();
        Ok(RecordingLook { reader, body, duration, modified, has_ended })
    }
}

/// The record of a recording, as that of the title that it would be now.
fn recorded(id: TitleId, name: String, created: u64, tracks: Vec<TrackRecord>) -> TitleRecord {
    TitleRecord {
        id,
        name,
        kind: TitleKind::Media,
        created,
        bytes: tracks.iter().map(|track| track.bytes).sum(),
        duration: Duration::ZERO,
        tracks,
        index: Vec::new(),
        index_bytes: 0,
        index_checksum: 0,
    }
}

impl<A: StoreAccess> RecordingLook<A> {
    /// The file; empty before each track has its first segment.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The play-out time of what is in the file.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// When the end of the file was recorded.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// The tracks of the recording.
    pub fn index(&self) -> &TitleIndex {
        self.reader.index()
    }

    /// The name of the title that the recording becomes.
    pub fn name(&self) -> &str {
        &self.reader.record().name
    }

    /// Whether the recording has ended: the file is complete.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Up to `most` bytes of the file from `at` on; fewer at its end. Stored bytes are verified.
    ///
    /// # Errors
    /// Those of [`TitleReader::copy`].
    pub fn read(&self, at: u64, most: usize) -> Result<Vec<u8>, StoreError> {
        let end = at.saturating_add(most as u64).min(self.body.len());
        let mut bytes = Vec::with_capacity(usize::try_from(end.saturating_sub(at)).unwrap_or(most));
        self.reader.copy(&self.body, at.min(end)..end, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }
}

impl<A> fmt::Debug for RecordingFile<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingFile({:?})", self.id)
    }
}

impl<A> fmt::Debug for RecordingLook<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingLook({:?}, {} bytes)", self.reader, self.body.len())
    }
}

/// The length of a fragment, as far as key frames allow it: a reader at the end of the file is so
/// far behind, and half as much.
const FRAGMENT: Duration = Duration::from_secs(2);
