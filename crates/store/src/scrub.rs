//! Reads all titles of a store and compares them with their checksums: for a check at once, and for
//! a server in small steps, over days and restarts.
//!
//! Titles are read in the order of their ids, which are never used twice: titles that are added,
//! removed or renamed meanwhile do not move the position. Superblocks and catalogue are no part of
//! it; opening a store reads them, and `check`.

use crate::format::record::Record;
use crate::{
    BackgroundIo, Finding, FindingKind, JobProgress, ScrubPosition, ScrubResult, ScrubState, Store,
    StoreError, TitleId, TitleRecord,
};
use std::sync::atomic::{AtomicBool, Ordering};
use units::ByteCount;

/// One read of a scrub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubStep {
    /// The position behind it.
    pub next: ScrubPosition,
    /// Bytes that were read.
    pub bytes: u64,
    /// Damage in them.
    pub findings: Vec<Finding>,
}

/// Receives each read of a scrub; an error ends the scrub.
pub(crate) type OnStep<'a> = dyn FnMut(ScrubStep) -> Result<(), StoreError> + 'a;

impl Store {
    /// The state of the regular reading of all titles, as it was kept last.
    pub fn scrub_state(&self) -> Option<ScrubState> {
        self.state().catalogue.scrub()
    }

    /// Changes the state of the regular reading of all titles in one step.
    pub fn change_scrub_state(
        &self,
        change: impl FnOnce(Option<ScrubState>) -> ScrubState,
    ) -> Result<(), StoreError> {
        self.change(|state| Ok(Record::Scrub(change(state.catalogue.scrub()))), |_| {})
    }

    /// Keeps the result of a complete reading of all titles beside the regular one, such as a
    /// check: what that one has found so far no longer counts. Does nothing in a store that is open
    /// for reading only.
    pub fn keep_scrub_result(&self, result: ScrubResult) -> Result<(), StoreError> {
        if self.is_read_only() {
            return Ok(());
        }
        let begins = ScrubState::beginning(result.finished);
        self.change_scrub_state(|state| ScrubState {
            found: 0,
            last: Some(result),
            ..state.unwrap_or(begins)
        })
    }

    /// Reads all titles from `from` on, asks `io` for a permit before each read, and calls
    /// `on_step` after each. A read that fails is damage, and the scrub goes on behind it.
    ///
    /// # Errors
    /// Those of `on_step`.
    pub fn scrub(
        &self,
        from: ScrubPosition,
        io: &dyn BackgroundIo,
        on_step: &mut dyn FnMut(ScrubStep) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut at = from;
        while let Some(title) = self.title_from(at.title) {
            let from = if title.id == at.title { at } else { ScrubPosition::before(title.id) };
            read_title(self, &title, Some(from), io, on_step)?;
            at = ScrubPosition::before(TitleId(title.id.0 + 1));
        }
        Ok(())
    }

    /// Reads a title whole, and compares it with its checksums.
    ///
    /// # Errors
    /// [`StoreError::NoTitle`]; [`StoreError::Damaged`] with the first damage, also where it cannot
    /// be read; [`StoreError::Cancelled`].
    pub fn verify(
        &self,
        name: &str,
        io: &dyn BackgroundIo,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<TitleRecord, StoreError> {
        let title = self.find(name)?;
        let (mut done, total) = (0, Some(all(&title)));
        read_title(self, &title, Some(ScrubPosition::before(title.id)), io, &mut |step| {
            if cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled);
            }
            if let Some(finding) = step.findings.into_iter().next() {
                return Err(StoreError::Damaged { what: finding.text });
            }
            done += step.bytes;
            progress(JobProgress { stage: "verifying", done, total });
            Ok(())
        })?;
        // Findings of a title that is removed meanwhile are not told.
        self.find(name)
    }

    /// Bytes that a scrub from `from` has to read.
    pub fn bytes_to_scrub(&self, from: ScrubPosition) -> u64 {
        let state = self.state();
        let titles = state.catalogue.titles_from(from.title);
        titles
            .map(|title| if title.id == from.title { left(title, from) } else { all(title) })
            .sum()
    }

    /// The title with the smallest id that is not below `id`.
    fn title_from(&self, id: TitleId) -> Option<TitleRecord> {
        self.state().catalogue.titles_from(id).next().cloned()
    }
}

fn all(title: &TitleRecord) -> u64 {
    title.index_bytes + title.bytes
}

fn left(title: &TitleRecord, from: ScrubPosition) -> u64 {
    if from == ScrubPosition::before(title.id) {
        return all(title);
    }
    let tracks = title.tracks.iter().skip(from.track.into());
    tracks.map(|track| track.bytes).sum::<u64>().saturating_sub(from.offset)
}

/// Reads a title's label, index and data from `from` on; `None`: its label and index only.
pub(crate) fn read_title(
    store: &Store,
    title: &TitleRecord,
    from: Option<ScrubPosition>,
    io: &dyn BackgroundIo,
    on_step: &mut OnStep<'_>,
) -> Result<(), StoreError> {
    let finding = |kind, text: String| Finding { kind, title: Some(title.name.clone()), text };
    let start = ScrubPosition::before(title.id);
    let from = from.unwrap_or(ScrubPosition { track: u16::MAX, ..start });
    let behind = ScrubPosition::before(TitleId(title.id.0 + 1));
    // A title removed meanwhile may have been overwritten by another, which is no damage.
    let mut tell = |next: ScrubPosition, bytes: u64, mut findings: Vec<Finding>| {
        if store.record(title.id).is_err() {
            findings.clear();
        }
        on_step(ScrubStep { next, bytes, findings })
    };
    let reader = {
        // The permit ends before the label's read asks for its own: two at once could wait for each
        // other.
        let _permit = io.acquire(ByteCount(title.index_bytes));
        store.reader(title.id, io)
    };
    let mut found = Vec::new();
    let is_resumed = from.track != u16::MAX && from != start;
    // Also for a title whose index is damaged: one check names all the damage.
    let label = match is_resumed {
        true => None,
        false => store.label_damage(title, reader.is_ok(), io),
    };
    found.extend(label.map(|text| finding(FindingKind::Index, text)));
    let reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            found.push(finding(FindingKind::Index, error.finding_text()));
            return tell(behind, 0, found);
        }
    };
    // Told with the first read of data: the position in front of that is the one in front of the
    // index.
    let mut index_bytes = if is_resumed { 0 } else { title.index_bytes };
    for (number, track) in (0..).zip(&title.tracks).filter(|(number, _)| *number >= from.track) {
        let mut at = ScrubPosition { track: number, ..start };
        if number == from.track {
            at.offset = from.offset.min(track.bytes);
        }
        let mut memory = Vec::new();
        while at.offset < track.bytes {
            let mut bytes = std::mem::take(&mut index_bytes);
            match reader.scrub(number, at.offset, &mut memory) {
                Ok((length, damage)) => {
                    at.offset += length;
                    bytes += length;
                    let texts = damage.iter().map(ToString::to_string);
                    found.extend(texts.map(|text| finding(FindingKind::Data, text)));
                }
                // A track that cannot be read is one finding: the scrub goes on with the others.
                Err(error) => {
                    at.offset = track.bytes;
                    found.push(finding(FindingKind::Data, error.finding_text()));
                }
            }
            tell(at, bytes, std::mem::take(&mut found))?;
        }
    }
    tell(behind, index_bytes, found)
}
