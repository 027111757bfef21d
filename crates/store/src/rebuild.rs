//! Finds titles by their labels: all of them for a store whose catalogue is lost, and those that a
//! readable catalogue does not have.
//!
//! ```text
//!   catalogue ─read?─▶ its titles, or none
//!   every free chunk ──read 16 KiB──▶ label? ──newest first──▶ chunks free, index whole? ──▶ added
//!                                                              otherwise: given up, with the reason
//! ```
//!
//! Each title's index region begins with a label that holds the title's complete record. A scan
//! over the chunks that the catalogue leaves free (all of them, if it is lost) finds the labels;
//! those whose index is valid and whose chunks belong to no other title become titles again. There
//! are two steps: [`Rebuild::scan`] only reads, [`Rebuild::write`] writes the catalogue. A readable
//! catalogue is kept as it is, and is added to: the last entries of the journal may have been lost,
//! which nothing but the labels shows.
//!
//! One superblock that is left of the four is enough for a scan. Opening a store does not trust it,
//! because it may be stale; what it leads to is verified here like everything else.
//!
//! Not restored of a lost catalogue are new names of renamed titles (a label keeps the first name),
//! the calibration, the disk history and the position of the scrub. A removed title may reappear:
//! its label is overwritten when its chunks are freed, but a power cut before that can leave the
//! label.

use crate::catalogue::{Catalogue, RecordingLog, check_extents};
use crate::format::journal::{self, JournalPosition};
use crate::format::layout::StoreLayout;
use crate::format::record::{MAX_NAME, Record, check_name};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK, label};
use crate::free::FreeMap;
use crate::log::{LoadedLog, Log, load_from, read_any_superblock, read_range, write_superblocks};
use crate::open::{free_map, heal, open_device};
use crate::title_index::read_index;
use crate::{JobProgress, Store, StoreError, TitleId, TitleRecord};
use device::BlockDevice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A catalogue with titles that were found by their labels. It has not been written yet.
#[derive(Debug)]
pub struct Rebuild {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    /// What the store has, if that can be read.
    readable: Option<LoadedLog>,
    catalogue: Catalogue,
    /// Titles whose labels have an id that is another title's.
    with_new_ids: Vec<TitleRecord>,
    report: RebuildReport,
}

/// The result of a scan for labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// The reason why the store does not open; `None` if it does.
    pub damage: Option<String>,
    /// Titles of the store's catalogue, which are kept; `None`: it cannot be read.
    pub kept: Option<u64>,
    /// Titles that the catalogue gets, by name.
    pub titles: Vec<TitleRecord>,
    /// Labels that do not become titles.
    pub given_up: Vec<GivenUp>,
}

/// A label that does not become a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// The title's first name.
    pub name: String,
    /// The reason why the title cannot be restored.
    pub reason: String,
}

impl Rebuild {
    /// Reads the catalogue and the labels of the store at `path` and decides which titles the
    /// catalogue gets. Writes nothing.
    ///
    /// # Errors
    /// [`StoreError::Owned`] while another process has the store; [`StoreError::Damaged`] when not
    /// even one superblock can be read; [`StoreError::Cancelled`] when `cancel` was set.
    pub fn scan(
        path: &Path,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<Self, StoreError> {
        Self::scan_on(open_device(path, true)?, progress, cancel)
    }

    /// Scans an open device like [`Rebuild::scan`].
    pub fn scan_on(
        device: Arc<dyn BlockDevice>,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<Self, StoreError> {
        let mut findings = Vec::new();
        let (superblock, mut damage) = read_any_superblock(device.as_ref(), &mut findings)?;
        let loaded = load_from(Arc::clone(&device), superblock.clone(), findings).and_then(|it| {
            // A catalogue that decodes can still give one chunk to two titles.
            let free = free_map(&it)?;
            Ok((it, free))
        });
        let (readable, free) = match loaded {
            Ok((loaded, free)) => (Some(loaded), free),
            Err(StoreError::Damaged { what }) => {
                damage.get_or_insert(what);
                (None, FreeMap::of(&superblock.layout))
            }
            Err(other) => return Err(other),
        };
        let labels = labels_on(device.as_ref(), &superblock, &free, progress, cancel)?;
        let mut builder = CatalogueBuilder {
            catalogue: readable.as_ref().map_or_else(Catalogue::default, |it| it.catalogue.clone()),
            free,
            with_new_ids: Vec::new(),
            report: RebuildReport {
                damage,
                kept: readable.as_ref().map(|it| it.catalogue.len() as u64),
                ..RebuildReport::default()
            },
        };
        builder.add(device.as_ref(), labels, &superblock.layout);
        let CatalogueBuilder { catalogue, with_new_ids, report, .. } = builder;
        Ok(Self { device, superblock, readable, catalogue, with_new_ids, report })
    }

    /// The titles that the catalogue gets, and the labels that were given up.
    pub fn report(&self) -> &RebuildReport {
        &self.report
    }

    /// Writes the catalogue. If the store's own is lost, the old journal and checkpoints are
    /// discarded.
    pub fn write(self) -> Result<RebuildReport, StoreError> {
        // Before the catalogue refers to them.
        for title in &self.with_new_ids {
            let bytes = label::encode(title, self.superblock.uuid);
            let at = title.index.first().map_or(0, |first| first.start.0);
            self.device.write_at(at * self.superblock.layout.chunk, &bytes)?;
        }
        self.device.flush()?;
        match self.readable {
            None => write_new_log(Arc::clone(&self.device), self.superblock, &self.catalogue)?,
            Some(mut loaded) => {
                heal(&mut loaded)?;
                if !self.report.titles.is_empty() {
                    let catalogue = self.catalogue.encode();
                    // Two checkpoints: no entry of the journal leads from the older one to these.
                    loaded.log.checkpoint(&catalogue)?;
                    loaded.log.checkpoint(&catalogue)?;
                }
            }
        }
        // Opening the store verifies the written metadata.
        Store::open_on(self.device)?;
        Ok(self.report)
    }
}

/// The records of all labels in free chunks. A chunk that cannot be read counts as having no label.
fn labels_on(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    free: &FreeMap,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<Vec<TitleRecord>, StoreError> {
    let layout = &superblock.layout;
    let mut bytes = vec![0; label::SIZE];
    let mut labels = Vec::new();
    let (mut done, total) = (0, Some(free.free() * layout.chunk));
    for run in free.runs() {
        for chunk in run.start.0..run.end().0 {
            if cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled);
            }
            // A read error is expected on a disk that lost its catalogue; the scan goes on with the
            // next chunk.
            let read = device.read_at(chunk * layout.chunk, &mut bytes);
            let title = read.ok().and_then(|()| label::decode(&bytes, superblock.uuid));
            // An ingested file may contain a copy of this store, whose labels refer to other chunks
            // than the one that they are in.
            let in_place = |title: &TitleRecord| {
                title.index.first().is_some_and(|first| first.start.0 == chunk)
            };
            labels.extend(title.filter(in_place));
            done += layout.chunk;
            progress(JobProgress { stage: "scanning", done, total });
        }
    }
    Ok(labels)
}

/// A catalogue to which titles are added.
struct CatalogueBuilder {
    catalogue: Catalogue,
    free: FreeMap,
    with_new_ids: Vec<TitleRecord>,
    report: RebuildReport,
}

impl CatalogueBuilder {
    /// Adds the titles that are whole.
    fn add(
        &mut self,
        device: &dyn BlockDevice,
        mut labels: Vec<TitleRecord>,
        layout: &StoreLayout,
    ) {
        // The newest title goes first, so that an older one whose chunks were used again is given
        // up.
        labels.sort_by_key(|title| std::cmp::Reverse(title.id));
        // A title that is given up keeps its label on the disk: no new title may get its id.
        let beyond = labels.first().map_or(0, |newest| newest.id.0.saturating_add(1));
        let beyond = Record::NextId(TitleId(beyond));
        self.catalogue.apply(beyond).expect("an id contradicts nothing");
        for label in labels {
            let name = label.name.clone();
            match self.enter(device, label, layout) {
                Ok(title) => self.report.titles.push(title),
                Err(reason) => self.report.given_up.push(GivenUp { name, reason }),
            }
        }
        self.report.titles.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// The name of a title, with its number, and perhaps more, where another one has the name.
    fn free_name(&self, title: &TitleRecord) -> String {
        let is_free = |name: &String| {
            let is_recorded = |log: &RecordingLog| log.start.name == *name;
            self.catalogue.title(name).is_none() && !self.catalogue.recordings().any(is_recorded)
        };
        let named = |turn: u32| {
            let number = title.id.0;
            let ending = match turn {
                0 => String::new(),
                1 => format!(" (number {number})"),
                _ => format!(" (number {number}, {turn})"),
            };
            let fits = |name: &&str| name.len() + ending.len() <= MAX_NAME;
            let shorter = title.name.char_indices().map(|(end, _)| &title.name[..end]).rev();
            let begins = std::iter::once(title.name.as_str()).chain(shorter).find(fits);
            format!("{}{ending}", begins.unwrap_or_default().trim_end())
        };
        (0..).map(named).find(is_free).expect("some name is free")
    }

    /// Makes a title of what a label says, or says why it cannot be one.
    fn enter(
        &mut self,
        device: &dyn BlockDevice,
        label: TitleRecord,
        layout: &StoreLayout,
    ) -> Result<TitleRecord, String> {
        // `check_extents` takes chunks until the first conflict, so a failure must undo the part it
        // took.
        let before = self.free.clone();
        if let Err(error) = check_extents(&label, layout, &mut self.free) {
            self.free = before;
            return Err(error.to_string());
        }
        // A title with a damaged index keeps its chunks here: an older title that overlaps it was
        // overwritten by it.
        read_index(device, layout.chunk, &label).map_err(|error| error.to_string())?;
        let mut title = label;
        // The journal may have lost the title, and its id has been used again since.
        let has_id = self.catalogue.by_id(title.id).is_some()
            || self.catalogue.recording(title.id).is_some();
        if has_id {
            title.id = self.catalogue.next_id();
        }
        // Two titles share a first name if one was renamed and its old name used again. Both come
        // back.
        title.name = self.free_name(&title);
        check_name(&title.name).map_err(|error| error.to_string())?;
        self.catalogue.apply(Record::Title(title.clone())).map_err(|error| error.0)?;
        if has_id {
            self.with_new_ids.push(title.clone());
        }
        Ok(title)
    }
}

/// Writes checkpoints and superblocks as at format, at a journal place beyond all existing entries,
/// so that no old entry is replayed.
fn write_new_log(
    device: Arc<dyn BlockDevice>,
    mut superblock: Superblock,
    catalogue: &Catalogue,
) -> Result<(), StoreError> {
    // If one copy is left, a power cut must find others while that one is replaced.
    write_superblocks(device.as_ref(), &superblock)?;
    let ring = read_range(device.as_ref(), &superblock.layout.journal)?;
    let newest = journal::newest_beyond(&ring, 0, superblock.uuid).unwrap_or(0);
    let before = superblock.checkpoints.map(|checkpoint| checkpoint.next);
    let sequence = before.iter().map(|next| next.sequence).fold(newest, u64::max) + 1;
    let place = before.iter().map(|next| next.place).fold(0, u64::max) + ring.len() as u64;
    let start = JournalPosition { place: units::align_up(place, BLOCK), sequence, chain: 0 };
    superblock.parent = superblock.checksum();
    superblock.sequence += 1;
    for checkpoint in &mut superblock.checkpoints {
        checkpoint.next = start;
    }
    Log::create(device, superblock, catalogue).map(|_| ())
}
