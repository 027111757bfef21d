//! The catalogue in memory: all titles, by id and by name. It changes only by applying records, so
//! that replaying the journal and normal operation are the same code.

use crate::format::bytes::Malformed;
use crate::format::layout::StoreLayout;
use crate::format::record::{
    Record, RecordingRegion, RecordingStart, SpilledParts, TrackProgress, encode_title_record,
    title_len,
};
use crate::format::{BLOCK, checkpoint, label};
use crate::free::FreeMap;
use crate::{
    MissedChange, RunningRecording, ScrubState, Sibling, TitleId, TitlePage, TitleRecord,
    TitleSelection,
};
use disk::Calibration;
use media::TitleIndex;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use units::{Encoder, Extent};
use uuid::Uuid;

/// The state that the journal and the checkpoints record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Catalogue {
    titles: BTreeMap<TitleId, TitleRecord>,
    names: BTreeMap<String, TitleId>,
    recordings: BTreeMap<TitleId, RecordingLog>,
    next_id: u64,
    calibration: Option<Calibration>,
    disk_history: Option<Vec<u8>>,
    scrub: Option<ScrubState>,
    siblings: Vec<Sibling>,
    /// The oldest first.
    missed: VecDeque<MissedChange>,
    /// The length of all records in a checkpoint, in bytes.
    encoded: u64,
}

/// A title that is being recorded, as far as it is durable: its records, without those that later
/// ones replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordingLog {
    pub(crate) start: RecordingStart,
    pub(crate) extents: BTreeMap<RecordingRegion, Vec<Extent>>,
    pub(crate) spilled: Vec<SpilledParts>,
    /// The progress in order. Only the last one of a track has its tail, and one whose part was
    /// spilled has no part.
    pub(crate) progress: Vec<TrackProgress>,
}

impl RecordingLog {
    /// The records from which the same log results.
    fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let id = self.start.id;
        let extents = self.extents.iter();
        let extents = extents.map(move |(of, all)| Record::RecordingExtents(id, *of, all.clone()));
        let spilled = self.spilled.iter().map(move |parts| Record::Spill(id, *parts));
        let progress = self.progress.iter().map(|progress| Record::Progress(progress.clone()));
        std::iter::once(Record::Recording(self.start.clone()))
            .chain(extents)
            .chain(spilled)
            .chain(progress)
    }

    fn encoded_len(&self) -> u64 {
        self.records().map(|record| record.encoded_len()).sum()
    }

    /// The index parts that are in the catalogue, in bytes.
    pub(crate) fn part_bytes(&self) -> usize {
        self.progress.iter().map(|progress| progress.part.len()).sum()
    }

    /// What is told of a recording that goes on.
    pub(crate) fn summary(&self) -> RunningRecording {
        // Only the last progress of a track has its tail, and it has all that is in place.
        let mut tracks = BTreeMap::new();
        for progress in &self.progress {
            tracks.insert(progress.track, progress.in_place + progress.tail.len() as u64);
        }
        RunningRecording {
            id: self.start.id,
            title: self.start.name.clone(),
            since: self.start.created,
            bytes: tracks.values().sum(),
            tracks: TitleIndex::decode(&self.start.index).map_or(0, |index| index.tracks.len()),
        }
    }

    fn add_progress(&mut self, progress: TrackProgress) {
        for earlier in &mut self.progress {
            if earlier.track == progress.track {
                earlier.tail.clear();
            }
        }
        // What it says of the place of the data is said anew.
        self.progress.retain(|it| it.track != progress.track || !it.part.is_empty());
        self.progress.push(progress);
    }

    fn spill(&mut self, parts: SpilledParts) {
        self.spilled.push(parts);
        let all = std::mem::take(&mut self.progress);
        for (i, progress) in all.iter().enumerate() {
            if !all[i + 1..].iter().any(|later| later.track == progress.track) {
                self.progress.push(TrackProgress { part: Vec::new(), ..progress.clone() });
            }
        }
    }
}

impl Catalogue {
    /// The titles that are being recorded.
    pub(crate) fn recordings(&self) -> impl Iterator<Item = &RecordingLog> {
        self.recordings.values()
    }

    /// The recording of the title with this identifier.
    pub(crate) fn recording(&self, id: TitleId) -> Option<&RecordingLog> {
        self.recordings.get(&id)
    }

    pub(crate) fn title(&self, name: &str) -> Option<&TitleRecord> {
        self.titles.get(self.names.get(name)?)
    }

    pub(crate) fn by_id(&self, id: TitleId) -> Option<&TitleRecord> {
        self.titles.get(&id)
    }

    /// All titles in the order of their names.
    pub(crate) fn titles(&self) -> impl Iterator<Item = &TitleRecord> {
        self.names.values().map(|id| &self.titles[id])
    }

    /// The titles of a selection in the order of their names. Looks at no other title, but for
    /// those that a search passes over.
    pub(crate) fn page(&self, wanted: &TitleSelection) -> TitlePage {
        let inside = wanted.inside();
        let from = match &wanted.after {
            Some(after) if *after >= inside => Bound::Excluded(after.as_str()),
            _ => Bound::Included(inside.as_str()),
        };
        let names = self.names.range::<str, _>((from, Bound::Unbounded));
        let mut names = names.take_while(|(name, _)| name.starts_with(&inside)).peekable();
        let limit = wanted.limit.and_then(|limit| usize::try_from(limit.get()).ok());
        let most = limit.unwrap_or(usize::MAX);
        let is_bounded = limit.is_some() && wanted.search.is_some();
        let most_looks = if is_bounded { TitleSelection::SEARCHED } else { usize::MAX };
        let is_wanted = wanted.searched();
        let (mut titles, mut last, mut looks) = (Vec::new(), None, 0);
        while titles.len() < most
            && looks < most_looks
            && let Some((name, id)) = names.next()
        {
            looks += 1;
            last = Some(name);
            if is_wanted(name) {
                titles.push(self.titles[id].clone());
            }
        }
        let next = names.peek().and(last).cloned();
        TitlePage { titles, next }
    }

    /// The titles whose names are next to this one in the list, for one that no title has.
    pub(crate) fn around(&self, name: &str) -> impl Iterator<Item = &TitleRecord> {
        let before = self
            .names
            .range::<str, _>((Bound::Unbounded, Bound::Excluded(name)))
            .rev()
            .take(COMPARED);
        let behind =
            self.names.range::<str, _>((Bound::Included(name), Bound::Unbounded)).take(COMPARED);
        before.chain(behind).map(|(_, id)| &self.titles[id])
    }

    pub(crate) fn len(&self) -> usize {
        self.titles.len()
    }

    pub(crate) fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    pub(crate) fn disk_history(&self) -> Option<&[u8]> {
        self.disk_history.as_deref()
    }

    pub(crate) fn scrub(&self) -> Option<ScrubState> {
        self.scrub
    }

    /// The other stores of the set.
    pub(crate) fn siblings(&self) -> &[Sibling] {
        &self.siblings
    }

    /// The changes that siblings missed, the oldest first.
    pub(crate) fn missed(&self) -> &VecDeque<MissedChange> {
        &self.missed
    }

    /// The titles whose ids are not below `id`, in the order of their ids.
    pub(crate) fn titles_from(&self, id: TitleId) -> impl Iterator<Item = &TitleRecord> {
        self.titles.range(id..).map(|(_, title)| title)
    }

    /// The id that the next title gets.
    pub(crate) fn next_id(&self) -> TitleId {
        TitleId(self.next_id)
    }

    /// An upper bound of the length of a checkpoint of this catalogue: renamed titles count with
    /// the longest name.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        checkpoint::HEADER + NEXT_ID_BYTES + self.encoded
    }

    /// Applies one change; changes nothing if it contradicts the current state.
    pub(crate) fn apply(&mut self, record: Record) -> Result<(), Malformed> {
        let grows = record.encoded_len();
        match record {
            Record::Title(title) => {
                let next = title.id.0.checked_add(1).ok_or("an id beyond all bounds")?;
                // Each is looked for once: opening a store takes in all of its titles.
                let (name, id) =
                    (self.names.entry(title.name.clone()), self.titles.entry(title.id));
                let (Entry::Vacant(name), Entry::Vacant(id)) = (name, id) else {
                    return Err(Malformed(format!("title '{}' twice", title.name)));
                };
                // An identifier is never used again, even after its title was removed.
                self.next_id = self.next_id.max(next);
                self.encoded += grows;
                name.insert(title.id);
                let title = id.insert(title).id;
                self.end_recording(title);
            }
            Record::Removal(id) if self.recordings.contains_key(&id) => self.end_recording(id),
            Record::Removal(id) => {
                let title = self.titles.remove(&id).ok_or("a removal of no title")?;
                self.names.remove(&title.name);
                self.encoded -= title_len(&title);
            }
            Record::Renaming(id, name) => self.rename(id, name)?,
            Record::Calibration(calibration) => {
                let old = self.calibration.replace(calibration);
                let shrinks = old.map_or(0, |old| Record::Calibration(old).encoded_len());
                self.encoded = self.encoded + grows - shrinks;
            }
            Record::DiskHistory(bytes) => {
                let old = self.disk_history.replace(bytes);
                let shrinks = old.map_or(0, |old| Record::DiskHistory(old).encoded_len());
                self.encoded = self.encoded + grows - shrinks;
            }
            Record::Scrub(state) => {
                // Always of one length.
                let shrinks = self.scrub.replace(state).map_or(0, |_| grows);
                self.encoded = self.encoded + grows - shrinks;
            }
            Record::NextId(id) => self.next_id = self.next_id.max(id.0),
            Record::Recording(start) if self.recordings.contains_key(&start.id) => {
                self.describe_recording(start)?;
            }
            Record::Recording(start) => {
                let id = start.id;
                let next = id.0.checked_add(1).ok_or("an id beyond all bounds")?;
                if self.names.contains_key(&start.name) || self.titles.contains_key(&id) {
                    return Err(Malformed(format!("a recording of '{}' twice", start.name)));
                }
                self.next_id = self.next_id.max(next);
                let (extents, spilled, progress) = Default::default();
                let log = RecordingLog { start, extents, spilled, progress };
                self.encoded += grows;
                self.recordings.insert(id, log);
            }
            Record::RecordingExtents(id, region, extents) => {
                self.change_recording(id, |log| drop(log.extents.insert(region, extents)))?;
            }
            Record::Progress(progress) => {
                self.change_recording(progress.id, |log| log.add_progress(progress))?;
            }
            Record::Spill(id, parts) => self.change_recording(id, |log| log.spill(parts))?,
            Record::Siblings(siblings) => {
                let old = std::mem::replace(&mut self.siblings, siblings);
                let shrinks = Record::Siblings(old).encoded_len();
                self.encoded = (self.encoded + grows).saturating_sub(shrinks);
            }
            Record::Missed(change) => {
                self.encoded += grows;
                self.missed.push_back(change);
            }
            Record::CaughtUp(store, count) => self.forget_missed(store, count.into()),
        }
        Ok(())
    }

    fn forget_missed(&mut self, store: Uuid, mut count: usize) {
        let encoded = &mut self.encoded;
        self.missed.retain(|change| {
            let goes = change.store == store && count > 0;
            if goes {
                count -= 1;
                *encoded -= Record::Missed(change.clone()).encoded_len();
            }
            !goes
        });
    }

    /// Takes another description of the tracks of a recording that goes on.
    fn describe_recording(&mut self, start: RecordingStart) -> Result<(), Malformed> {
        let before = &self.recordings[&start.id].start;
        let count =
            |start: &RecordingStart| Some(TitleIndex::decode(&start.index).ok()?.tracks.len());
        if start.name != before.name || count(&start) != count(before) {
            return Err(Malformed(format!("a recording of '{}' twice", start.name)));
        }
        self.change_recording(start.id, |log| log.start = start)
    }

    fn change_recording(
        &mut self,
        id: TitleId,
        change: impl FnOnce(&mut RecordingLog),
    ) -> Result<(), Malformed> {
        let log = self.recordings.get_mut(&id).ok_or("progress of no recording")?;
        self.encoded -= log.encoded_len();
        change(log);
        self.encoded += log.encoded_len();
        Ok(())
    }

    fn end_recording(&mut self, id: TitleId) {
        if let Some(log) = self.recordings.remove(&id) {
            self.encoded -= log.encoded_len();
        }
    }

    fn rename(&mut self, id: TitleId, name: String) -> Result<(), Malformed> {
        if self.names.contains_key(&name) {
            return Err(Malformed(format!("title '{name}' twice")));
        }
        let title = self.titles.get_mut(&id).ok_or("a renaming of no title")?;
        self.names.remove(&title.name);
        // A checkpoint has the title under its new name and no record of the renaming. The addition
        // comes first, so the sum does not go below zero.
        self.encoded = self.encoded + name.len() as u64 - title.name.len() as u64;
        self.names.insert(name.clone(), id);
        title.name = name;
        Ok(())
    }

    /// The records of a checkpoint.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        // The titles alone would not tell the identifiers of those removed.
        Record::NextId(self.next_id()).encode(&mut out);
        if let Some(calibration) = &self.calibration {
            Record::Calibration(calibration.clone()).encode(&mut out);
        }
        if let Some(bytes) = &self.disk_history {
            Record::DiskHistory(bytes.clone()).encode(&mut out);
        }
        if let Some(state) = self.scrub {
            Record::Scrub(state).encode(&mut out);
        }
        if !self.siblings.is_empty() {
            Record::Siblings(self.siblings.clone()).encode(&mut out);
        }
        for change in &self.missed {
            Record::Missed(change.clone()).encode(&mut out);
        }
        for title in self.titles.values() {
            encode_title_record(title, &mut out);
        }
        for log in self.recordings.values() {
            log.records().for_each(|record| record.encode(&mut out));
        }
        out.finish()
    }

    /// The chunks that its titles leave free; an error names the first title whose extents are
    /// invalid.
    pub(crate) fn free_map(&self, layout: &StoreLayout) -> Result<FreeMap, Malformed> {
        let all = self.titles.values().flat_map(TitleRecord::extents).collect();
        let mut free = match FreeMap::of(layout).without(all) {
            Some(free) => {
                for title in self.titles.values() {
                    check_room(title, layout)?;
                }
                free
            }
            // One title after the other, to name the first one that is wrong.
            None => {
                let mut free = FreeMap::of(layout);
                for title in self.titles.values() {
                    check_extents(title, layout, &mut free)?;
                }
                free
            }
        };
        for log in self.recordings.values() {
            check_recording(log, layout, &mut free)?;
        }
        Ok(free)
    }
}

/// Checks the extents of a recording like those of a title, and takes them.
fn check_recording(
    log: &RecordingLog,
    layout: &StoreLayout,
    free: &mut FreeMap,
) -> Result<(), Malformed> {
    let of = |what: &str| Malformed(format!("recording '{}' {what}", log.start.name));
    for extent in log.extents.values().flatten() {
        if !free.take(*extent) {
            return Err(of("has chunks that are not data or another's"));
        }
    }
    let room = |region| {
        let extents = log.extents.get(&region).map_or(&[][..], Vec::as_slice);
        u128::from(extents.iter().map(|e| e.chunks).sum::<u64>()) * u128::from(layout.chunk)
    };
    let data = |it: &TrackProgress| u128::from(it.in_place) + it.tail.len() as u128;
    if log.progress.iter().any(|it| data(it) > room(RecordingRegion::Track(it.track))) {
        return Err(of("says to have more data than its extents hold"));
    }
    let end = |parts: &SpilledParts| u128::from(parts.offset) + u128::from(parts.bytes);
    let is_outside = |parts: &SpilledParts| end(parts) > room(RecordingRegion::Parts);
    if log.spilled.iter().any(|it| !it.offset.is_multiple_of(BLOCK) || is_outside(it)) {
        return Err(of("says to have a longer index than its extents hold"));
    }
    Ok(())
}

/// Checks that a title's extents are in the data area, overlap no other title, and hold as many
/// bytes as the record says; takes them.
pub(crate) fn check_extents(
    title: &TitleRecord,
    layout: &StoreLayout,
    free: &mut FreeMap,
) -> Result<(), Malformed> {
    for extent in title.extents() {
        if !free.take(extent) {
            let text = format!(
                "title '{}' has chunks {} to {}, which are not data or another's",
                title.name,
                extent.start.0,
                extent.end().0
            );
            return Err(Malformed(text));
        }
    }
    check_room(title, layout)
}

/// Checks that a title's extents, which are in the data area, hold as many bytes as the record
/// says.
fn check_room(title: &TitleRecord, layout: &StoreLayout) -> Result<(), Malformed> {
    let of = |what: &str| Malformed(format!("title '{}' {what}", title.name));
    let room = |extents: &[units::Extent]| {
        // The sum fits: the chunks are different ones of one device. The index's length comes from
        // the disk and may be anything, so the comparison is wider.
        u128::from(extents.iter().map(|e| e.chunks).sum::<u64>()) * u128::from(layout.chunk)
    };
    if title.tracks.iter().any(|track| u128::from(track.bytes) > room(&track.extents)) {
        return Err(of("says to have more data than its extents hold"));
    }
    if u128::from(title.index_bytes) + label::SIZE as u128 > room(&title.index) {
        return Err(of("says to have a longer index than its extents hold"));
    }
    Ok(())
}

/// Names before and behind one that no title has with which it is compared: all of most stores, and
/// not a million for each wrong address.
const COMPARED: usize = 1000;

/// The length of a next-id record in bytes.
const NEXT_ID_BYTES: u64 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use media::TitleKind;
    use std::num::NonZeroU32;
    use std::time::Duration;

    #[test]
    fn a_page_of_a_search_looks_at_a_bounded_number_of_names() {
        let mut catalogue = Catalogue::default();
        let most = TitleSelection::SEARCHED;
        for number in 0..=most {
            let record = TitleRecord {
                id: TitleId(number as u64),
                name: format!("{number:05}"),
                kind: TitleKind::File,
                created: 0,
                bytes: 0,
                duration: Duration::ZERO,
                tracks: Vec::new(),
                index: Vec::new(),
                index_bytes: 0,
                index_checksum: 0,
            };
            catalogue.apply(Record::Title(record)).unwrap();
        }
        let page = |after: Option<String>, limit| {
            let (search, limit) = (Some(most.to_string()), NonZeroU32::new(limit));
            let page = catalogue.page(&TitleSelection { search, limit, after, folder: None });
            (page.titles.len(), page.next)
        };
        let next = format!("{:05}", most - 1);
        assert_eq!(page(None, 5), (0, Some(next.clone())));
        assert_eq!(page(Some(next), 5), (1, None));
        assert_eq!(page(None, 0), (1, None), "without a limit all names are looked at");
    }
}
