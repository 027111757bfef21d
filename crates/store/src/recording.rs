//! Makes a title of a recording: at its end, or when a store is opened after a power cut.
//!
//! ```text
//!   records of the catalogue ─┬─▶ LDUs and checksums of each track
//!   spilled parts ────────────┘        │
//!   data in place, and the tail ───────┴─▶ extents trimmed │ index region │ flush │ title
//! ```
//!
//! A power cut during it leaves the recording, of which the title is made again.

use crate::byte_runs::{pieces, runs};
use crate::catalogue::RecordingLog;
use crate::format::label;
use crate::format::record::{
    MAX_EXTENTS, Record, RecordingRegion, SpilledParts, TrackProgress, check_limits,
};
use crate::recording_reader::{append, described};
use crate::writer::{BLOCK_SIZE, duration, full};
use crate::{
    BackgroundIo, Finding, FindingKind, Store, StoreError, TitleId, TitleRecord, TrackRecord,
    Unthrottled,
};
use media::{CHECKSUM_SPAN, TitleIndex, TrackIndex, checksum};
use std::sync::Arc;
use units::{Extent, Hinted, show};

impl Store {
    /// Makes titles of all recordings that were interrupted; returns what the user is told of it,
    /// and what could not be done.
    pub(crate) fn seal_recordings(&self) -> (Vec<Finding>, Vec<Finding>) {
        let all: Vec<_> = self.state().catalogue.recordings().map(|it| it.start.clone()).collect();
        let (mut healed, mut unhealed) = (Vec::new(), Vec::new());
        for start in all {
            let text = match self.seal_recording(start.id, &Unthrottled) {
                Ok(Some(title)) => {
                    let length = show::length(title.duration.as_secs_f64());
                    format!("the recording was interrupted; {length} of it are a title")
                }
                Ok(None) => "the recording was interrupted before it had anything".to_owned(),
                Err(error) => {
                    let text = format!("the recording was interrupted: {}", error.one_line());
                    unhealed.push(interrupted(&start.name, text));
                    continue;
                }
            };
            healed.push(interrupted(&start.name, text));
        }
        (healed, unhealed)
    }

    /// What is told of interrupted recordings in a store that is open for reading only.
    pub(crate) fn unsealed_recordings(&self) -> Vec<Finding> {
        let text =
            "the recording was interrupted; open the store for writing to make a title of it";
        let state = self.state();
        let all = state.catalogue.recordings();
        all.map(|it| interrupted(&it.start.name, text.to_owned())).collect()
    }

    /// Makes a title of a recording; `None` if it has no LDU: then nothing is left of it.
    pub(crate) fn seal_recording(
        &self,
        id: TitleId,
        io: &dyn BackgroundIo,
    ) -> Result<Option<TitleRecord>, StoreError> {
        let log = self.state().catalogue.recording(id).cloned();
        let Some(log) = log else {
            return Err(StoreError::NoTitle { name: format!("number {}", id.0), nearest: None });
        };
        let index = Arc::new(self.recorded_index(&log, io)?);
        if index.tracks.iter().all(|track| track.ldus.is_empty()) {
            self.give_up_recording(&log)?;
            return Ok(None);
        }
        let tracks = self.trim_recording(&log, &index)?;
        let bytes = index.encode();
        let chunk = self.layout().chunk;
        let chunks = ((label::SIZE + bytes.len()) as u64).div_ceil(chunk);
        let reserved = log.extents.get(&RecordingRegion::Index).map_or(&[][..], Vec::as_slice);
        let (mut region, surplus) = split(reserved, chunks);
        let missing = chunks - region.iter().map(|extent| extent.chunks).sum::<u64>();
        let mut added = Vec::new();
        if missing > 0 {
            let mut state = self.state_mut();
            let room = MAX_EXTENTS - region.len().min(MAX_EXTENTS);
            let placed = state.free.allocate(missing, room);
            added = placed.map_err(|error| full(error, &state.free, chunk))?;
            region.extend(&added);
        }
        let record = TitleRecord {
            id,
            name: log.start.name.clone(),
            kind: index.kind,
            created: log.start.created,
            bytes: tracks.iter().map(|track| track.bytes).sum(),
            duration: duration(&index),
            tracks,
            index: region,
            index_bytes: bytes.len() as u64,
            index_checksum: checksum(&bytes),
        };
        let sealed = (|| {
            check_limits(&record)?;
            let mut region = label::encode(&record, self.uuid());
            region.extend(&bytes);
            region.resize(region.len().next_multiple_of(BLOCK_SIZE), 0);
            self.write_pieces(&record.index, 0, &region, io)?;
            // Data and index must be durable before the catalogue refers to them.
            self.flush()?;
            let unused = log.extents.get(&RecordingRegion::Parts).into_iter().flatten();
            self.change(
                |_| Ok(Record::Title(record.clone())),
                |state| {
                    state.pending.remove(&record.name);
                    unused.chain(&surplus).for_each(|extent| state.free.give(*extent));
                },
            )
        })();
        if let Err(error) = sealed {
            // The recording stays as it was, without the chunks that it did not have before.
            added.iter().for_each(|extent| self.state_mut().free.give(*extent));
            return Err(error);
        }
        Ok(Some(record))
    }

    /// The index of what a recording has; writes the bytes of its tails to their place.
    fn recorded_index(
        &self,
        log: &RecordingLog,
        io: &dyn BackgroundIo,
    ) -> Result<TitleIndex, StoreError> {
        let mut index = described(log);
        for parts in &log.spilled {
            append(log, &mut index, &self.spilled_progress(log, parts)?)?;
        }
        append(log, &mut index, &log.progress)?;
        for (number, track) in (0..).zip(&mut index.tracks) {
            track.ldus.end();
            track.data_len = track.ldus.data_len();
            let last = log.progress.iter().rfind(|progress| progress.track == number);
            let extents = log.extents.get(&RecordingRegion::Track(number));
            let (in_place, tail) = last.map_or((0, &[][..]), |it| (it.in_place, &it.tail));
            if track.data_len > in_place + tail.len() as u64 {
                return Err(damaged(log, "has less data than its index says"));
            }
            let extents = extents.map_or(&[][..], Vec::as_slice);
            if track.data_len > in_place {
                let mut block = tail.to_vec();
                block.resize(BLOCK_SIZE, 0);
                self.write_pieces(extents, in_place, &block, io)?;
            }
            self.complete_checksums(log, track, extents)?;
        }
        Ok(index)
    }

    /// Parts that are no longer in the catalogue.
    pub(crate) fn spilled_progress(
        &self,
        log: &RecordingLog,
        parts: &SpilledParts,
    ) -> Result<Vec<TrackProgress>, StoreError> {
        let damaged = || damaged(log, "has index parts that cannot be read");
        let extents = log.extents.get(&RecordingRegion::Parts).map_or(&[][..], Vec::as_slice);
        let places = runs(extents, self.layout().chunk);
        let length = usize::try_from(parts.bytes).map_err(|_| damaged())?;
        let mut bytes = vec![0; length.next_multiple_of(BLOCK_SIZE)];
        for (place, part) in pieces(&places, parts.offset, bytes.len()) {
            self.device().read_at(place, &mut bytes[part])?;
        }
        bytes.truncate(length);
        if checksum(&bytes) != parts.checksum {
            return Err(damaged());
        }
        let mut all = Vec::new();
        let read = Record::decode_all(&bytes, |record| match record {
            Record::Progress(progress) => {
                all.push(progress);
                Ok(())
            }
            _ => Err("a record that is no progress".into()),
        });
        read.map(|()| all).map_err(|_| damaged())
    }

    /// Computes the checksum of the last span, which no part has.
    fn complete_checksums(
        &self,
        log: &RecordingLog,
        track: &mut TrackIndex,
        extents: &[Extent],
    ) -> Result<(), StoreError> {
        let whole = usize::try_from(track.data_len / CHECKSUM_SPAN).unwrap_or(usize::MAX);
        if track.checksums.len() < whole {
            return Err(damaged(log, "has fewer checksums than data"));
        }
        track.checksums = track.checksums.prefix(whole);
        let start = whole as u64 * CHECKSUM_SPAN;
        if let Ok(length @ 1..) = usize::try_from(track.data_len - start) {
            let mut bytes = vec![0; length.next_multiple_of(BLOCK_SIZE)];
            for (place, part) in pieces(&runs(extents, self.layout().chunk), start, bytes.len()) {
                self.device().read_at(place, &mut bytes[part])?;
            }
            track.checksums.push(checksum(&bytes[..length]));
        }
        Ok(())
    }

    /// Frees the chunks behind the data of each track, durably: another title may get them before
    /// this one is sealed.
    fn trim_recording(
        &self,
        log: &RecordingLog,
        index: &TitleIndex,
    ) -> Result<Vec<TrackRecord>, StoreError> {
        let (mut tracks, mut records, mut unused) = (Vec::new(), Vec::new(), Vec::new());
        for (number, track) in (0..).zip(&index.tracks) {
            let region = RecordingRegion::Track(number);
            let extents = log.extents.get(&region).map_or(&[][..], Vec::as_slice);
            let (used, surplus) = split(extents, track.data_len.div_ceil(self.layout().chunk));
            if !surplus.is_empty() {
                // First, and perhaps in an entry of its own: data in place must be in the extents.
                records.push(Record::Progress(TrackProgress {
                    id: log.start.id,
                    track: number,
                    part: Vec::new(),
                    in_place: track.data_len.next_multiple_of(BLOCK_SIZE as u64),
                    tail: Vec::new(),
                }));
                records.push(Record::RecordingExtents(log.start.id, region, used.clone()));
                unused.extend(surplus);
            }
            tracks.push(TrackRecord { bytes: track.data_len, extents: used });
        }
        if !records.is_empty() {
            // The tails that were written to their place must be there before they are forgotten.
            self.flush()?;
            self.change_all(
                |_| Ok(records),
                |state| unused.iter().for_each(|extent| state.free.give(*extent)),
            )?;
        }
        Ok(tracks)
    }

    /// Removes a recording that has nothing.
    fn give_up_recording(&self, log: &RecordingLog) -> Result<(), StoreError> {
        self.change(
            |_| Ok(Record::Removal(log.start.id)),
            |state| {
                state.pending.remove(&log.start.name);
                log.extents.values().flatten().for_each(|extent| state.free.give(*extent));
            },
        )
    }
}

fn interrupted(name: &str, text: String) -> Finding {
    Finding { kind: FindingKind::Recording, title: Some(name.to_owned()), text }
}

pub(crate) fn damaged(log: &RecordingLog, what: &str) -> StoreError {
    StoreError::Damaged { what: format!("the recording '{}' {what}", log.start.name) }
}

/// The extents of the first `chunks` chunks, and those of the rest.
pub(crate) fn split(extents: &[Extent], chunks: u64) -> (Vec<Extent>, Vec<Extent>) {
    let (mut front, mut back, mut left) = (Vec::new(), Vec::new(), chunks);
    for extent in extents {
        let here = extent.chunks.min(left);
        left -= here;
        if here > 0 {
            front.push(Extent { start: extent.start, chunks: here });
        }
        if here < extent.chunks {
            let start = units::ChunkIndex(extent.start.0 + here);
            back.push(Extent { start, chunks: extent.chunks - here });
        }
    }
    (front, back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ChunkIndex;

    #[test]
    fn extents_are_split_by_chunks() {
        let extent = |start, chunks| Extent { start: ChunkIndex(start), chunks };
        let all = [extent(10, 4), extent(20, 2), extent(30, 1)];
        assert_eq!(split(&all, 0), (vec![], all.to_vec()));
        assert_eq!(split(&all, 4), (vec![all[0]], all[1..].to_vec()));
        let within = (vec![all[0], extent(20, 1)], vec![extent(21, 1), all[2]]);
        assert_eq!(split(&all, 5), within);
        assert_eq!(split(&all, 9), (all.to_vec(), vec![]));
    }
}
