//! Rebuilding a lost catalogue from the titles themselves.
//!
//! Each title's index region begins with a label that holds the title's whole record. A scan over
//! all chunks finds the labels; those whose index still decodes and whose chunks no newer title has
//! are titles. What cannot be had back: names given by renaming (the label has the first name), the
//! calibration, and the certainty that nothing removed returns: a label is overwritten when its
//! title's chunks are freed, but a power cut at that moment may leave it.

use crate::catalogue::{Catalogue, check_extents};
use crate::format::bytes::Malformed;
use crate::format::journal::{self, Position};
use crate::format::record::{Record, check_name};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK, label};
use crate::free::FreeMap;
use crate::log::{Log, read_range, read_superblock};
use crate::open::open_device;
use crate::{Progress, Store, StoreError, TitleRecord};
use device::BlockDevice;
use std::path::Path;
use std::sync::Arc;

/// What a rebuilding brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Titles in the new catalogue, by name.
    pub titles: Vec<TitleRecord>,
    /// Labels that are no titles any more, and why, for people.
    pub given_up: Vec<String>,
}

impl Store {
    /// Makes a new catalogue for a store that does not open any more, from what lies on it. The
    /// superblock must be readable; the catalogue that was there is given up.
    pub fn rebuild(
        path: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RebuildReport, StoreError> {
        Self::rebuild_on(open_device(path, true)?, progress)
    }

    /// As [`Store::rebuild`], on an open device.
    pub fn rebuild_on(
        device: Arc<dyn BlockDevice>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RebuildReport, StoreError> {
        let superblock = read_superblock(device.as_ref(), &mut Vec::new())?;
        let found = device.geometry().size;
        if found.0 < superblock.layout.size {
            let formatted = units::ByteCount(superblock.layout.size);
            return Err(StoreError::Shrunk { formatted, found });
        }
        let labels = scan(device.as_ref(), &superblock, progress);
        let mut report = RebuildReport::default();
        let catalogue = choose(labels, &superblock, &mut report);
        write_anew(Arc::clone(&device), superblock, &catalogue)?;
        let store = Self::open_on(device)?;
        // A label says where the index is; only the index says whether it is still whole.
        for title in store.titles() {
            if let Err(error) = store.index(title.id) {
                report.given_up.push(format!("'{}': {error}", title.name));
                store.remove(&title.name)?;
            }
        }
        report.titles = store.titles();
        Ok(report)
    }
}

/// All labels on the device. What cannot be read has none.
fn scan(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    progress: &mut dyn FnMut(Progress),
) -> Vec<TitleRecord> {
    let layout = &superblock.layout;
    let mut bytes = vec![0; label::SIZE];
    let mut labels = Vec::new();
    let (mut done, total) = (0, Some(layout.data_chunks() * layout.chunk));
    for run in layout.data() {
        for chunk in run.start.0..run.end().0 {
            let read = device.read_at(chunk * layout.chunk, &mut bytes);
            let title = read.ok().and_then(|()| label::decode(&bytes, superblock.uuid));
            labels.extend(
                title.filter(|title| {
                    title.index.first().is_some_and(|first| first.start.0 == chunk)
                }),
            );
            done += layout.chunk;
            progress(Progress { stage: "scanning", done, total });
        }
    }
    labels
}

/// The newest first, so that a title whose chunks were used again loses to the one that has them.
fn choose(
    mut labels: Vec<TitleRecord>,
    superblock: &Superblock,
    report: &mut RebuildReport,
) -> Catalogue {
    labels.sort_by_key(|title| std::cmp::Reverse(title.id));
    let mut free = FreeMap::new(&superblock.layout.data());
    let mut catalogue = Catalogue::default();
    for mut title in labels {
        let name = title.name.clone();
        if catalogue.title(&name).is_some() {
            title.name = format!("{name} (number {})", title.id.0);
        }
        let kept = free.clone();
        let result = check_extents(&title, &superblock.layout, &mut free)
            .and_then(|()| check_name(&title.name).map_err(|error| Malformed(error.to_string())))
            .and_then(|()| catalogue.apply(Record::Title(title)));
        if let Err(error) = result {
            free = kept;
            report.given_up.push(format!("'{name}': {error}"));
        }
    }
    catalogue
}

/// Writes checkpoints and superblocks as at format, at a place in the journal beyond all that is
/// there.
fn write_anew(
    device: Arc<dyn BlockDevice>,
    mut superblock: Superblock,
    catalogue: &Catalogue,
) -> Result<(), StoreError> {
    let ring = read_range(device.as_ref(), &superblock.layout.journal)?;
    let newest = journal::newest_beyond(&ring, 0, superblock.uuid).unwrap_or(0);
    let before = superblock.checkpoints.map(|checkpoint| checkpoint.next);
    let sequence = before.iter().map(|next| next.sequence).fold(newest, u64::max) + 1;
    let place = before.iter().map(|next| next.place).fold(0, u64::max) + ring.len() as u64;
    let start = Position { place: units::align_up(place, BLOCK), sequence, chain: 0 };
    superblock.parent = superblock.checksum();
    superblock.sequence += 1;
    for checkpoint in &mut superblock.checkpoints {
        checkpoint.next = start;
    }
    Log::create(device, superblock, catalogue).map(|_| ())
}
