//! Titles that are being recorded, as players see them.
//!
//! ```text
//!   recording    ├─────────────────────────── in the catalogue ───────────────────────────┤
//!   segments     │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │   whole, final, in whole pieces at their place
//!   a look       ├── OpenTitle ──────────┤   ──▶ sessions begin on the newest one,
//!   the next     ├── OpenTitle ─────────────────┤    and go over to it (`engine::extension`)
//! ```
//!
//! All looks at a recording have the same pieces, of a size that its beginning decides: large
//! enough for a disk, and no more than [`PIECE_TIME`] of media, because a segment is offered when
//! its last piece is there. When the recording has ended, its players go over to the whole title,
//! cut as before; newcomers play it as any other.

use crate::layout::CopyLocation;
use crate::library::{IndexReads, Library, OpenError, OpenStore, OpenTitle, StoredCopy};
use crate::presentation::Presentation;
use engine::{LARGEST_PIECE, SMALLEST_PIECE, floor_power};
use media::{
    Checksums, Growth, LATE_TRACK, LduIndex, Packaging, PackagingOptions, SettledSegments,
    TitleIndex, TrackIndex, TrackKind,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{RecordingReader, TitleRecord, time_of_look};
use units::{BitRate, ByteCount, MediaTime, locked};

/// The recordings that players have asked for.
#[derive(Debug, Default)]
pub(crate) struct GrowingTitles {
    newest: Mutex<BTreeMap<StoredCopy, LastLook>>,
    /// Locked during a look: there is one at a time.
    readers: Mutex<BTreeMap<StoredCopy, GrowingReader>>,
}

/// Looks at one recording.
#[derive(Debug)]
struct GrowingReader {
    reader: RecordingReader,
    segments: SettledSegments,
    /// The tracks that had nothing to play when others had [`LATE_TRACK`].
    late: BTreeSet<usize>,
}

/// The newest look at a recording.
#[derive(Debug)]
struct LastLook {
    result: LookResult,
    at: Instant,
    /// The time that it took.
    took: Duration,
}

/// A recording as it was at a look, or why there is nothing to play.
type LookResult = Result<Arc<OpenTitle>, OpenError>;

/// The state of a recording, or of the title that has become of it.
struct Look {
    index: TitleIndex,
    runs: Vec<Vec<Range<u64>>>,
    pieces: Vec<u32>,
    growth: Growth,
    record: Option<TitleRecord>,
}

impl Library {
    /// The recording of this name, if one is running and no store has a title of the name.
    pub(crate) fn recording(&self, name: &str) -> Option<StoredCopy> {
        if self.stores.iter().any(|opened| opened.store.title(name).is_some()) {
            return None;
        }
        let mut stores = self.stores.iter().enumerate();
        stores.find_map(|(store, opened)| {
            Some(StoredCopy { store, id: opened.store.recording(name)?.id })
        })
    }

    /// The result of the newest look at a recording; `None` where it is time for another.
    pub(crate) fn newest(&self, copy: StoredCopy) -> Option<LookResult> {
        let newest = locked(&self.growing.newest);
        let LastLook { result, at, took } = newest.get(&copy)?;
        let has_ended = result.as_ref().is_ok_and(|title| title.grows().is_none());
        (has_ended || at.elapsed() < time_of_look(*took)).then(|| result.clone())
    }

    /// Looks at a recording. May wait for the disk. It takes time in proportion to what is new, and
    /// to the number of segments: the longer it takes, the later is the next.
    pub(crate) fn look(&self, copy: StoredCopy, name: &str, reads: &dyn IndexReads) -> LookResult {
        let mut readers = locked(&self.growing.readers);
        // Another player's look may have been made while this one waited.
        match self.newest(copy) {
            Some(result) => result,
            None => self.look_anew(&mut readers, copy, name, reads),
        }
    }

    /// Looks at the whole of a recording that has just ended, if anybody has watched it grow: it
    /// may be removed before its players ask again, and they go on to its end.
    pub(crate) fn look_at_end(&self, copy: StoredCopy, name: &str, reads: &dyn IndexReads) {
        let mut readers = locked(&self.growing.readers);
        let grew = |last: &LastLook| last.result.as_ref().is_ok_and(|it| it.grows().is_some());
        if locked(&self.growing.newest).get(&copy).is_some_and(grew) {
            // An error is told to whoever asks.
            let _ = self.look_anew(&mut readers, copy, name, reads);
        }
    }

    fn look_anew(
        &self,
        readers: &mut BTreeMap<StoredCopy, GrowingReader>,
        copy: StoredCopy,
        name: &str,
        reads: &dyn IndexReads,
    ) -> LookResult {
        let last = |last: &LastLook| last.result.clone().ok();
        let before = locked(&self.growing.newest).get(&copy).and_then(last);
        let begun = Instant::now();
        let new = || GrowingReader {
            reader: RecordingReader::new(copy.id),
            segments: SettledSegments::new(self.segment()),
            late: BTreeSet::new(),
        };
        let reader = readers.entry(copy).or_insert_with(new);
        let look = match self.is_encrypted(name) {
            true => Err(OpenError::NotEncryptedYet),
            false => self.look_at(copy, reader, reads),
        };
        let result = match (look, before) {
            // What is known goes on to be played.
            (Err(OpenError::DiskBusy), Some(before)) => Ok(before),
            (Ok(look), Some(before)) if !is_more(&before, &look) => Ok(before),
            (look, _) => look.and_then(|look| self.open_look(copy, name, look, &reader.segments)),
        };
        let mut newest = locked(&self.growing.newest);
        newest.retain(|_, last| last.at.elapsed() < KEPT);
        let (at, took) = (Instant::now(), begun.elapsed());
        newest.insert(copy, LastLook { result: result.clone(), at, took });
        readers.retain(|copy, _| newest.contains_key(copy));
        result
    }

    fn look_at(
        &self,
        copy: StoredCopy,
        GrowingReader { reader, segments, late }: &mut GrowingReader,
        reads: &dyn IndexReads,
    ) -> Result<Look, OpenError> {
        let opened = &self.stores[copy.store];
        let permit =
            |bytes| reads.permit(opened, ByteCount(bytes), LOOK_TIMEOUT).ok_or(OpenError::DiskBusy);
        let failed = |error| OpenError::from(&error);
        let to_read = reader.to_read(&opened.store);
        let held = (to_read > 0).then(|| permit(to_read)).transpose()?;
        let snapshot = reader.look(&opened.store).map_err(failed)?;
        drop(held);
        let Some(snapshot) = snapshot else {
            let gone = OpenError::NoTitle { nearest: None };
            let record = opened.store.record_of(copy.id).ok_or_else(|| gone.clone())?;
            let _held = permit(record.index_bytes.max(1))?;
            let index = opened.store.index(copy.id).map_err(failed)?;
            let numbers = (0..).take(record.tracks.len());
            let runs = numbers.map(|track| opened.store.runs(copy.id, track));
            let runs = runs.collect::<Option<_>>().ok_or(gone)?;
            let pieces = self.pieces(opened, &index, late);
            let growth = Growth::Grown { began: record.created };
            let index = Arc::unwrap_or_clone(index);
            return Ok(Look { index, runs, pieces, growth, record: Some(record) });
        };
        let mut pieces = self.pieces(opened, &snapshot.index, late);
        let has_begun = |track: &TrackIndex| {
            let last = track.ldus.len().checked_sub(1).map(|last| track.ldus.get(last));
            last.is_some_and(|last| decoded_at(track, last.decode_time) >= self.beginning())
        };
        // A track is cut into its pieces only once their size is known.
        let known = snapshot.index.tracks.iter().enumerate();
        let can_begin = known.map(|(number, known)| late.contains(&number) || has_begun(known));
        let can_begin: Vec<bool> = can_begin.collect();
        let mut index = snapshot.settled(segments, &pieces, &can_begin);
        let all = index.tracks.iter().enumerate();
        let can_play = |(number, settled): &(usize, &TrackIndex)| {
            !settled.ldus.is_empty() && can_begin[*number]
        };
        let (ready, missing): (Vec<_>, Vec<_>) = all.partition(can_play);
        let ends =
            ready.iter().map(|(_, settled)| decoded_at(settled, settled.ldus.duration_ticks()));
        let is_far = ends.max().is_some_and(|end| end >= LATE_TRACK.since_start());
        let is_late = |settled: &TrackIndex| is_far && settled.description.kind == TrackKind::Audio;
        if !missing.iter().all(|(_, settled)| is_late(settled)) {
            return Err(OpenError::NotYet);
        }
        let missing: Vec<usize> = missing.into_iter().map(|(number, _)| number).collect();
        for number in missing {
            late.insert(number);
            // Nothing of it is told before it has a segment in pieces that stay.
            pieces[number] = smallest_piece();
            index.tracks[number] = TrackIndex {
                ldus: LduIndex::default(),
                data_len: 0,
                checksums: Checksums::default(),
                ..index.tracks[number].clone()
            };
        }
        let growth = Growth::Growing { began: snapshot.created };
        Ok(Look { index, runs: snapshot.runs(), pieces, growth, record: None })
    }

    /// The bytes of a piece of each track: the same for all looks, because they follow from the
    /// beginning of a recording, which has passed before anything is played. Of a late track it has
    /// not: its pieces are the smallest.
    fn pieces(&self, opened: &OpenStore, index: &TitleIndex, late: &BTreeSet<usize>) -> Vec<u32> {
        let most = opened.read_size.0.min(opened.store.info().chunk.0);
        let piece = |(number, track): (usize, &TrackIndex)| match late.contains(&number) {
            true => smallest_piece(),
            false => piece_size(track, self.beginning(), most),
        };
        index.tracks.iter().enumerate().map(piece).collect()
    }

    /// The part of a recording that tells the rates of its tracks.
    fn beginning(&self) -> Duration {
        self.segment() / 2
    }

    fn open_look(
        &self,
        copy: StoredCopy,
        name: &str,
        look: Look,
        segments: &SettledSegments,
    ) -> LookResult {
        let opened = &self.stores[copy.store];
        let Look { index, runs, pieces, growth, record } = look;
        // Names this look: playlists change from one to the next.
        let bytes: u64 = index.tracks.iter().map(|track| track.data_len).sum();
        let content = match record {
            Some(record) => record.content().to_string(),
            None => format!("{:x}-{bytes:x}", copy.id.0),
        };
        let index = Arc::new(index);
        let packaging = match growth {
            Growth::Growing { began } => segments.packaging(index, began),
            Growth::Complete | Growth::Grown { .. } => {
                let options =
                    PackagingOptions { segment: self.segment(), encryption: None, growth };
                Packaging::new(index, &options)
            }
        };
        let packaging = packaging.map_err(OpenError::NotPlayable)?;
        let location = CopyLocation {
            disk: opened.disk,
            read_size: opened.read_size,
            visit: opened.visit,
            runs,
        };
        let key = self.key_of(copy);
        let whole = Presentation::of_recording(Arc::new(packaging), key, &location, &pieces);
        Ok(Arc::new(OpenTitle::of_recording(copy, name, content, self, whole)))
    }
}

/// Whether a look has more than a title that was opened before.
fn is_more(before: &OpenTitle, look: &Look) -> bool {
    let tracks = before.whole.packaging.index().tracks.iter().zip(&look.index.tracks);
    matches!(look.growth, Growth::Grown { .. })
        || tracks.into_iter().any(|(a, b)| a.data_len != b.data_len)
}

/// The bytes of a piece of a track whose LDUs of the first `beginning` have its rate, at most
/// `most`.
fn piece_size(track: &TrackIndex, beginning: Duration, most: u64) -> u32 {
    let first = track.ldus.iter().take_while(|ldu| decoded_at(track, ldu.decode_time) < beginning);
    let rate = BitRate::of(ByteCount(first.map(|ldu| u64::from(ldu.size)).sum()), beginning);
    let piece = floor_power(rate.bytes_in(PIECE_TIME).0.min(most)).min(LARGEST_PIECE);
    u32::try_from(piece.max(SMALLEST_PIECE)).expect("at most LARGEST_PIECE")
}

fn smallest_piece() -> u32 {
    u32::try_from(SMALLEST_PIECE).expect("64 KiB")
}

/// A decode time in ticks as the time since the first.
fn decoded_at(track: &TrackIndex, ticks: u64) -> Duration {
    let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
    MediaTime::from_ticks(ticks, track.description.timescale).since_start()
}

/// The most media in a piece. Sound of 128 kb/s has four seconds in the smallest.
const PIECE_TIME: Duration = Duration::from_secs(2);
/// How long a look is kept for the next: longer than one is new.
const KEPT: Duration = Duration::from_secs(60);
/// How long a look may wait for a busy disk.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use media::TrackDescription;
    use units::Timescale;

    /// A track of 25 LDUs a second, of `size` bytes in the first two seconds and 100 after that.
    fn track(size: u32, ldus: u32) -> TrackIndex {
        let mut index = LduIndex::default();
        (0..ldus).for_each(|i| index.push(if i < 50 { size } else { 100 }, 1, 0, true, false));
        let description = TrackDescription::plain(TrackKind::Video, Timescale(25));
        let (data_len, checksums) = (index.data_len(), Checksums::default());
        TrackIndex { description, ldus: index, data_len, checksums }
    }

    #[test]
    fn pieces_follow_from_the_beginning_of_a_recording() {
        let (beginning, mib) = (Duration::from_secs(2), 1 << 20);
        // Bytes of an LDU, KiB of a piece: at most two seconds, at least 64 KiB, at most a read.
        for (size, piece) in [(300, 64), (4000, 128), (20_000, 512), (1_000_000, 1024)] {
            for ldus in [51, 100, 5000] {
                let given = piece_size(&track(size, ldus), beginning, mib);
                assert_eq!(given / 1024, piece, "{ldus} LDUs, the first of {size} bytes");
            }
        }
    }
}
