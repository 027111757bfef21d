//! Makes a new catalogue from the titles' labels, for a store whose catalogue is lost.
//!
//! ```text
//!   every chunk ──read 16 KiB──▶ label? ──newest first──▶ chunks free, index whole? ──▶ catalogue
//!                                                          otherwise: given up, with the reason
//! ```
//!
//! Each title's index region begins with a label that holds the title's complete record. A scan
//! over all chunks finds the labels; those whose index is valid and whose chunks belong to no newer
//! title become titles again. There are two steps: [`Rebuild::scan`] only reads, [`Rebuild::write`]
//! replaces the catalogue.
//!
//! Not restored are new names of renamed titles (a label keeps the first name), the calibration,
//! the disk history and the position of the scrub. A removed title may reappear: its label is
//! overwritten when its chunks are freed, but a power cut at that moment can leave the label.

use crate::catalogue::{Catalogue, check_extents};
use crate::format::bytes::Malformed;
use crate::format::journal::{self, JournalPosition};
use crate::format::layout::StoreLayout;
use crate::format::record::{Record, check_name};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK, label};
use crate::free::FreeMap;
use crate::log::{Log, load, read_range, read_superblock};
use crate::open::open_device;
use crate::title_index::read_index;
use crate::{JobProgress, Store, StoreError, TitleId, TitleRecord};
use device::BlockDevice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A catalogue made from labels that has not been written yet.
#[derive(Debug)]
pub struct Rebuild {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    catalogue: Catalogue,
    report: RebuildReport,
}

/// The result of a scan for labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// The titles of the new catalogue, by name.
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
    /// The reason why the catalogue of the store at `path` cannot be used; `None` if it can, and a
    /// rebuild is unnecessary. Reads the store's metadata and writes nothing.
    pub fn needed(path: &Path) -> Result<Option<String>, StoreError> {
        Self::needed_on(open_device(path, true)?)
    }

    /// Checks an open device like [`Rebuild::needed`].
    pub fn needed_on(device: Arc<dyn BlockDevice>) -> Result<Option<String>, StoreError> {
        let superblock = read_superblock(device.as_ref(), &mut Vec::new())?;
        Ok(match load(device) {
            // A catalogue that decodes can still give one chunk to two titles.
            Ok(loaded) => loaded.catalogue.free_map(&superblock.layout).err().map(|error| error.0),
            Err(StoreError::Damaged { what }) => Some(what),
            Err(other) => return Err(other),
        })
    }

    /// Reads the labels of the store at `path` and decides which titles a new catalogue has. Writes
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::Owned`] while another process has the store; [`StoreError::Damaged`] when not
    /// even a superblock can be read; [`StoreError::Cancelled`] when `cancel` was set.
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
        let superblock = read_superblock(device.as_ref(), &mut Vec::new())?;
        let found = device.geometry().size;
        if found.0 < superblock.layout.size {
            let formatted = units::ByteCount(superblock.layout.size);
            return Err(StoreError::Shrunk { formatted, found });
        }
        let labels = labels_on(device.as_ref(), &superblock, progress, cancel)?;
        let mut report = RebuildReport::default();
        let catalogue = choose(device.as_ref(), labels, &superblock.layout, &mut report.given_up);
        report.titles = catalogue.titles().cloned().collect();
        Ok(Self { device, superblock, catalogue, report })
    }

    /// The titles of the new catalogue, and the labels that were given up.
    pub fn report(&self) -> &RebuildReport {
        &self.report
    }

    /// Replaces the store's catalogue by the new one: the old journal and checkpoints are
    /// discarded.
    pub fn write(self) -> Result<RebuildReport, StoreError> {
        write_new_log(Arc::clone(&self.device), self.superblock, &self.catalogue)?;
        // Opening the store verifies the written metadata.
        Store::open_on(self.device)?;
        Ok(self.report)
    }
}

/// The records of all labels on the device. A chunk that cannot be read counts as having no label.
fn labels_on(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<Vec<TitleRecord>, StoreError> {
    let layout = &superblock.layout;
    let mut bytes = vec![0; label::SIZE];
    let mut labels = Vec::new();
    let (mut done, total) = (0, Some(layout.data_chunks() * layout.chunk));
    for run in layout.data() {
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

/// The catalogue of the titles that are whole.
fn choose(
    device: &dyn BlockDevice,
    mut labels: Vec<TitleRecord>,
    layout: &StoreLayout,
    given_up: &mut Vec<GivenUp>,
) -> Catalogue {
    // The newest title goes first, so that an older one whose chunks were used again is given up.
    labels.sort_by_key(|title| std::cmp::Reverse(title.id));
    let mut free = FreeMap::new(&layout.data());
    let mut catalogue = Catalogue::default();
    // A title that is given up keeps its label on the disk: no new title may get its id.
    let next_id = labels.first().map_or(0, |newest| newest.id.0.saturating_add(1));
    catalogue.apply(Record::NextId(TitleId(next_id))).expect("an id contradicts nothing");
    for mut title in labels {
        let name = title.name.clone();
        if catalogue.title(&name).is_some() {
            // Two titles share a first name if one was renamed and its old name used again. Both
            // come back.
            title.name = format!("{name} (number {})", title.id.0);
        }
        // `check_extents` takes chunks until the first conflict, so a failure must undo the part it
        // took.
        let before = free.clone();
        let placed = check_extents(&title, layout, &mut free)
            // Tested again because the number behind the name may make it too long.
            .and_then(|()| check_name(&title.name).map_err(|error| Malformed(error.to_string())));
        if let Err(error) = placed {
            free = before;
            given_up.push(GivenUp { name, reason: error.to_string() });
            continue;
        }
        // A title with a damaged index keeps its chunks here: an older title that overlaps it was
        // overwritten by it.
        let entered = read_index(device, layout.chunk, &title)
            .map_err(|error| error.to_string())
            .and_then(|_| catalogue.apply(Record::Title(title)).map_err(|error| error.0));
        if let Err(reason) = entered {
            given_up.push(GivenUp { name, reason });
        }
    }
    catalogue
}

/// Writes checkpoints and superblocks as at format, at a journal place beyond all existing entries,
/// so that no old entry is replayed.
fn write_new_log(
    device: Arc<dyn BlockDevice>,
    mut superblock: Superblock,
    catalogue: &Catalogue,
) -> Result<(), StoreError> {
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
