//! Repair of a store from other stores that have copies of its titles.
//!
//! ```text
//!   index or label damaged   written again from the copy's index, which has the same checksum
//!   spans damaged            written again in place, from spans of the copy that are verified
//!   title missing            copied whole
//! ```
//!
//! Only titles with equal content (see [`crate::Content`]) are copies of each other. What is
//! written in place is what was there before it was damaged, so a power cut leaves damage and no
//! loss.

use crate::byte_runs::{pieces, runs};
use crate::copying::copy;
use crate::format::label;
use crate::writer::BLOCK_SIZE;
use crate::{
    BorrowedReader, Finding, FindingKind, JobProgress, StoreAccess, StoreError, TitleRecord,
};
use media::CHECKSUM_SPAN;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Hinted;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Damage that is repaired.
    pub repaired: Vec<Finding>,
    /// Damage that no copy could repair.
    pub left: Vec<Finding>,
    /// The titles that were missing and are copied.
    pub copied: Vec<TitleRecord>,
    /// The titles that are still missing. The store itself is no worse than without the repair.
    pub not_copied: Vec<NotCopied>,
    /// Number of checked titles.
    pub titles: u64,
    /// Bytes of the store that were read.
    pub bytes_read: u64,
}

/// A title that the store does not have, and of which it gets no copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCopied {
    /// Name of the title.
    pub title: String,
    /// Why not, in words: its copy is damaged, or the store is full.
    pub text: String,
}

/// Reads all titles of a store, repairs those that are damaged, and copies those that only the
/// sources have. A source that has damage itself is used as far as it is whole.
///
/// # Errors
/// [`StoreError::Cancelled`], and failures of writing. What was repaired before stays.
pub fn repair(
    target: &dyn StoreAccess,
    sources: &[&dyn StoreAccess],
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<RepairReport, StoreError> {
    let titles = target.store().titles();
    let mut missing: Vec<(&dyn StoreAccess, TitleRecord)> = Vec::new();
    for source in sources {
        for title in source.store().titles() {
            let is_new = missing.iter().all(|(_, known)| known.name != title.name);
            if is_new && target.store().title(&title.name).is_none() {
                missing.push((*source, title));
            }
        }
    }
    let all = titles.iter().chain(missing.iter().map(|(_, title)| title));
    let total = all.map(|title| title.bytes).sum();
    let mut done = 0;
    let mut seen = |bytes: u64| {
        done += bytes;
        progress(JobProgress { stage: "repairing", done, total: Some(total) });
        if cancel.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
    };
    let mut report = RepairReport::default();
    for title in &titles {
        let copies = copies_of(title, sources);
        TitleRepair { target, title, copies, report: &mut report }.run(&mut seen)?;
        report.titles += 1;
    }
    for (source, title) in missing {
        match copy(target, &[source], &title, &mut seen) {
            Ok(copied) => report.copied.push(copied),
            Err(StoreError::Cancelled) => return Err(StoreError::Cancelled),
            Err(error) => {
                report.not_copied.push(NotCopied { title: title.name, text: error.one_line() });
            }
        }
    }
    Ok(report)
}

/// Readers of the copies of a title whose indexes can be read.
pub(crate) fn copies_of<'a>(
    title: &TitleRecord,
    sources: &[&'a dyn StoreAccess],
) -> Vec<BorrowedReader<'a>> {
    let copy = |source: &&'a dyn StoreAccess| {
        let record = source.store().title(&title.name)?;
        let is_copy = record.content() == title.content();
        let open = || source.store().reader(record.id, source.background_io()).ok();
        is_copy.then(open).flatten()
    };
    sources.iter().filter_map(copy).collect()
}

/// The repair of one title.
struct TitleRepair<'a> {
    target: &'a dyn StoreAccess,
    title: &'a TitleRecord,
    copies: Vec<BorrowedReader<'a>>,
    report: &'a mut RepairReport,
}

impl TitleRepair<'_> {
    fn run(
        &mut self,
        seen: &mut dyn FnMut(u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let store = self.target.store();
        if let Some(text) = self.index_damage() {
            let repaired = self.write_index()? && self.index_damage().is_none();
            self.tell(FindingKind::Index, text, repaired);
        }
        let reader = match store.reader(self.title.id, self.target.background_io()) {
            Ok(reader) => reader,
            // Nothing could repair the index, which has been told, or the title was removed.
            Err(_) => return seen(self.title.bytes),
        };
        for (number, track) in (0..).zip(&self.title.tracks) {
            for start in (0..track.bytes).step_by(SPAN) {
                let length = (track.bytes - start).min(CHECKSUM_SPAN);
                match reader.piece(number, start, SPAN) {
                    Ok(bytes) => debug_assert_eq!(bytes.len() as u64, length),
                    Err(StoreError::NoTitle { .. }) => return Ok(()),
                    Err(error) => {
                        let repaired = self.write_span(number, start, length)?;
                        self.tell(FindingKind::Data, error.one_line(), repaired);
                    }
                }
                self.report.bytes_read += length;
                seen(length)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, kind: FindingKind, text: String, repaired: bool) {
        let finding = Finding { kind, title: Some(self.title.name.clone()), text };
        let list = if repaired { &mut self.report.repaired } else { &mut self.report.left };
        list.push(finding);
    }

    /// The damage of the title's index region, if there is any.
    fn index_damage(&self) -> Option<String> {
        let store = self.target.store();
        match store.index(self.title.id) {
            Err(StoreError::NoTitle { .. }) => None,
            Err(error) => Some(error.one_line()),
            Ok(_) => store.label_damage(self.title, true, self.target.background_io()),
        }
    }

    /// Writes the index region of the title again. Returns whether its index could be had.
    fn write_index(&self) -> Result<bool, StoreError> {
        let store = self.target.store();
        // The label may be all that is damaged.
        let own = store.index(self.title.id).ok();
        let Some(index) = own.or_else(|| Some(self.copies.first()?.index().clone())) else {
            return Ok(false);
        };
        let mut region = label::encode(self.title, store.uuid());
        region.extend(index.encode());
        region.resize(region.len().next_multiple_of(BLOCK_SIZE), 0);
        store.write_pieces(&self.title.index, 0, &region, self.target.background_io())?;
        store.flush()?;
        Ok(true)
    }

    /// Writes a span of a track again. Returns whether a copy has it, and the disk keeps it.
    fn write_span(&self, track: u16, start: u64, length: u64) -> Result<bool, StoreError> {
        let store = self.target.store();
        let whole = self.copies.iter().find_map(|copy| copy.piece(track, start, SPAN).ok());
        let Some(bytes) = whole.filter(|bytes| bytes.len() as u64 == length) else {
            return Ok(false);
        };
        let mut blocks = bytes.to_vec();
        blocks.resize(blocks.len().next_multiple_of(BLOCK_SIZE), 0);
        let extents = &self.title.tracks[usize::from(track)].extents;
        store.write_pieces(extents, start, &blocks, self.target.background_io())?;
        store.flush()?;
        // Read alone: what is around it may still be damaged.
        let mut back = vec![0; blocks.len()];
        for (place, part) in pieces(&runs(extents, store.layout().chunk), start, blocks.len()) {
            if store.device().read_at(place, &mut back[part]).is_err() {
                return Ok(false);
            }
        }
        Ok(back == blocks)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
const SPAN: usize = CHECKSUM_SPAN as usize;
