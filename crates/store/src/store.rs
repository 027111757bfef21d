//! An open store: the catalogue for many readers, changes one at a time.
//!
//! ```text
//!   titles, title, runs, index ──read──▶ StoreState { catalogue, free map, hidden, pending }
//!                                          ▲ write: short, never across I/O
//!   seal, hide, rename, calibration ──▶ Log: journal entry, flush ─┘ applied when durable
//! ```
//!
//! The log's lock is held across a commit, the shared lock never across any I/O: who plays does not
//! wait for who writes. After a write or flush that failed nothing more is written, because what is
//! on the disk is then not known (what was acknowledged is safe).

use crate::byte_runs::{pieces, runs};
use crate::catalogue::Catalogue;
use crate::format::layout::StoreLayout;
use crate::format::record::{Record, check_calibration, check_disk_history, check_name};
use crate::format::{BLOCK, label};
use crate::free::FreeMap;
use crate::log::{LoadedLog, Log};
use crate::title_index::read_index;
use crate::{Finding, StoreError, StoreInfo, TitleId, TitleRecord};
use device::{BlockDevice, DeviceError};
use disk::Calibration;
use media::TitleIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use units::{ByteCount, Encoder, align_down, align_up};
use uuid::Uuid;

/// An open store. All methods take `&self`; share it as `Arc<Store>`.
#[derive(Debug)]
pub struct Store {
    device: Arc<dyn BlockDevice>,
    uuid: Uuid,
    label: String,
    layout: StoreLayout,
    sparse: bool,
    healed: Vec<Finding>,
    log: Mutex<Log>,
    state: RwLock<StoreState>,
    /// Why nothing more is written.
    stopped: OnceLock<String>,
}

/// What is known in memory.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) catalogue: Catalogue,
    /// What neither the catalogue, a hidden title nor a writer has.
    pub(crate) free: FreeMap,
    /// Out of the catalogue, still being read.
    pub(crate) hidden: BTreeMap<TitleId, TitleRecord>,
    /// Names of titles being written.
    pub(crate) pending: BTreeSet<String>,
    /// The id that the next writer gets.
    pub(crate) next_id: u64,
}

impl Store {
    /// What the store tells of itself.
    pub fn info(&self) -> StoreInfo {
        let state = self.state();
        StoreInfo {
            uuid: self.uuid,
            label: self.label.clone(),
            size: ByteCount(self.layout.size),
            chunk: ByteCount(self.layout.chunk),
            data_chunks: self.layout.data_chunks(),
            free_chunks: state.free.free(),
            largest_free: state.free.largest(),
            titles: state.catalogue.len() as u64,
            kind: self.device.geometry().kind,
            sparse: self.sparse,
        }
    }

    /// What it lies on.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// Bytes of the device that calibration may overwrite; empty on small stores.
    pub fn scratch(&self) -> Range<u64> {
        self.layout.scratch.clone()
    }

    /// All titles, by name.
    pub fn titles(&self) -> Vec<TitleRecord> {
        self.state().catalogue.titles().cloned().collect()
    }

    /// One title.
    pub fn title(&self, name: &str) -> Option<TitleRecord> {
        self.state().catalogue.title(name).cloned()
    }

    /// The index of a title, hidden or not: read whole and verified. Nothing is cached.
    pub fn index(&self, id: TitleId) -> Result<Arc<TitleIndex>, StoreError> {
        let record = self.record(id)?;
        read_index(self.device.as_ref(), self.layout.chunk, &record).map(Arc::new).map_err(
            // Removed meanwhile: its chunks may hold another title, and the damage is none.
            |error| if self.record(id).is_ok() { error } else { no_title(&record.name) },
        )
    }

    /// The track's extents as byte ranges of the device, in order. Also of a hidden title.
    pub fn runs(&self, id: TitleId, track: u16) -> Option<Vec<Range<u64>>> {
        let record = self.record(id).ok()?;
        Some(runs(&record.tracks.get(usize::from(track))?.extents, self.layout.chunk))
    }

    /// Reads a track's data at any alignment, unverified; verified: [`Store::reader`]. Panics
    /// beyond the track's end, like a slice.
    pub fn read(
        &self,
        id: TitleId,
        track: u16,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), StoreError> {
        let record = self.record(id)?;
        let track = &record.tracks[usize::from(track)];
        let end = offset + into.len() as u64;
        assert!(end <= track.bytes, "a read up to {end} of {}", track.bytes);
        let start = align_down(offset, BLOCK);
        let skip = usize::try_from(offset - start).expect("less than a block");
        let length = usize::try_from(align_up(end, BLOCK) - start).expect("as much as asked for");
        let mut bytes = vec![0; length];
        for (place, part) in pieces(&runs(&track.extents, self.layout.chunk), start, length) {
            self.device.read_at(place, &mut bytes[part])?;
        }
        into.copy_from_slice(&bytes[skip..skip + into.len()]);
        Ok(())
    }

    /// Takes a title out of the catalogue, durably; its space is kept until [`Store::release`].
    pub fn hide(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let mut hidden = None;
        self.change(
            |state| {
                let title = state.catalogue.title(name).ok_or_else(|| no_title(name))?.clone();
                Ok(Record::Removal(hidden.insert(title).id))
            },
            |_| {},
        )?;
        Ok(hidden.expect("found above"))
    }

    /// The last reader of a hidden title is gone: its chunks are free.
    pub fn release(&self, id: TitleId) {
        let Some(title) = self.state().hidden.get(&id).cloned() else { return };
        // So that a rebuilding scan does not find it. Its chunks are still nobody else's.
        if let (Some(first), None) = (title.index.first(), self.stopped.get()) {
            let zeros = [0; label::SIZE];
            let place = first.start.0 * self.layout.chunk;
            if let Err(error) = self.device.write_at(place, &zeros) {
                self.stop(&StoreError::from(error));
            }
        }
        let mut state = self.state_mut();
        if state.hidden.remove(&id).is_some() {
            for extent in title.extents() {
                state.free.give(extent);
            }
        }
    }

    /// Takes a title out of the catalogue and frees its chunks.
    pub fn remove(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let title = self.hide(name)?;
        self.release(title.id);
        Ok(title)
    }

    /// Gives a title another name. To its own name: nothing happens.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), StoreError> {
        check_name(new)?;
        if old == new {
            return self.title(old).map(|_| ()).ok_or_else(|| no_title(old));
        }
        self.change(
            |state| {
                let title = state.catalogue.title(old).ok_or_else(|| no_title(old))?;
                if state.catalogue.title(new).is_some() || state.pending.contains(new) {
                    return Err(StoreError::Exists { name: new.to_owned() });
                }
                Ok(Record::Renaming(title.id, new.to_owned()))
            },
            |_| {},
        )
    }

    /// The calibration kept with the store.
    pub fn calibration(&self) -> Option<Calibration> {
        self.state().catalogue.calibration().cloned()
    }

    /// Keeps a calibration with the store.
    pub fn set_calibration(&self, calibration: &Calibration) -> Result<(), StoreError> {
        check_calibration(calibration)?;
        self.change(|_| Ok(Record::Calibration(calibration.clone())), |_| {})
    }

    /// How the disk performed in use, as [`Store::set_disk_history`] kept it last.
    pub fn disk_history(&self) -> Option<Vec<u8>> {
        self.state().catalogue.disk_history().map(<[u8]>::to_vec)
    }

    /// Keeps the server's record of how the disk performed: at most 4,096 bytes, which the store
    /// does not interpret.
    pub fn set_disk_history(&self, bytes: &[u8]) -> Result<(), StoreError> {
        check_disk_history(bytes)?;
        self.change(|_| Ok(Record::DiskHistory(bytes.to_vec())), |_| {})
    }
}

/// For the rest of this crate.
impl Store {
    pub(crate) fn new(
        loaded: LoadedLog,
        free: FreeMap,
        device: Arc<dyn BlockDevice>,
        sparse: bool,
    ) -> Self {
        let superblock = &loaded.log.superblock;
        let state = StoreState {
            free,
            hidden: BTreeMap::new(),
            pending: BTreeSet::new(),
            next_id: loaded.catalogue.next_id().0,
            catalogue: loaded.catalogue,
        };
        Self {
            uuid: superblock.uuid,
            label: superblock.label.clone(),
            layout: superblock.layout.clone(),
            device,
            sparse,
            healed: loaded.findings,
            log: Mutex::new(loaded.log),
            state: RwLock::new(state),
            stopped: OnceLock::new(),
        }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    pub(crate) fn healed(&self) -> &[Finding] {
        &self.healed
    }

    pub(crate) fn state(&self) -> RwLockReadGuard<'_, StoreState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state_mut(&self) -> RwLockWriteGuard<'_, StoreState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A title in the catalogue or hidden.
    pub(crate) fn record(&self, id: TitleId) -> Result<TitleRecord, StoreError> {
        let state = self.state();
        let found = state.catalogue.by_id(id).or_else(|| state.hidden.get(&id));
        found.cloned().ok_or_else(|| no_title(&format!("number {}", id.0)))
    }

    pub(crate) fn refuse_if_stopped(&self) -> Result<(), StoreError> {
        match self.stopped.get() {
            Some(why) => Err(StoreError::Stopped { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Writes data that no record speaks of yet.
    pub(crate) fn write_data(&self, place: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.refuse_if_stopped()?;
        self.stop_on(self.device.write_at(place, bytes))
    }

    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.refuse_if_stopped()?;
        self.stop_on(self.device.flush())
    }

    fn stop_on(&self, result: Result<(), DeviceError>) -> Result<(), StoreError> {
        result.map_err(StoreError::from).inspect_err(|error| self.stop(error))
    }

    fn stop(&self, error: &StoreError) {
        // Only the first reason is kept: the others follow from it.
        let _ = self.stopped.set(error.to_string());
    }

    /// Makes one change durable and applies it: `make` decides on the record, `then` runs with the
    /// change applied, in the same breath.
    pub(crate) fn change(
        &self,
        make: impl FnOnce(&StoreState) -> Result<Record, StoreError>,
        then: impl FnOnce(&mut StoreState),
    ) -> Result<(), StoreError> {
        let mut log = self.log();
        self.refuse_if_stopped()?;
        let (record, whole) = {
            let state = self.state();
            let record = make(&state)?;
            (record, state.catalogue.checkpoint_bytes())
        };
        let mut bytes = Encoder::default();
        record.encode(&mut bytes);
        let bytes = bytes.finish();
        let slot = &self.layout.checkpoints[0];
        let (needed, holds) = (whole + bytes.len() as u64, slot.end - slot.start);
        if needed > holds && !matches!(record, Record::Removal(_)) {
            let (needed, holds) = (ByteCount(needed), ByteCount(holds));
            return Err(StoreError::CatalogueFull { needed, holds });
        }
        let written = (|| {
            if log.needs_checkpoint(bytes.len()) {
                let catalogue = self.state().catalogue.encode();
                log.checkpoint(&catalogue)?;
            }
            log.append(&bytes)
        })();
        written.inspect_err(|error| self.stop(error))?;
        let mut state = self.state_mut();
        if let Record::Removal(id) = &record {
            let title = state.catalogue.by_id(*id).expect("just decided on").clone();
            state.hidden.insert(*id, title);
        }
        state.catalogue.apply(record).expect("decided on the same catalogue");
        then(&mut state);
        Ok(())
    }
}

fn no_title(name: &str) -> StoreError {
    StoreError::NoTitle { name: name.to_owned() }
}
