//! An open store: the catalogue for many readers, changes one at a time.
//!
//! ```text
//!   titles, title, runs, index ──read──▶ Shared { catalogue, free map, hidden, pending }
//!                                          ▲ write: short, never across I/O
//!   seal, hide, rename, calibration ──▶ Log: journal entry, flush ─┘ applied when durable
//! ```
//!
//! The log's lock is held across a commit, the shared lock never across any I/O: who plays does not
//! wait for who writes. After a write or flush that failed nothing more is written, because what is
//! on the disk is then not known (what was acknowledged is safe).

use crate::catalogue::Catalogue;
use crate::check::{self, CheckOptions, CheckReport, Finding};
use crate::format::bytes::Encoder;
use crate::format::layout::Layout;
use crate::format::record::{Record, check_calibration, check_name, check_seen};
use crate::format::{BLOCK, label};
use crate::free::FreeMap;
use crate::log::{Loaded, Log};
use crate::runs::{pieces, runs};
use crate::{
    FreePace, Pace, Progress, StoreError, StoreInfo, TitleId, TitleReader, TitleRecord, TitleWriter,
};
use device::{BlockDevice, DeviceError};
use disk::Calibration;
use media::{TitleIndex, TitleKind, checksum};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use units::{ByteCount, align_down, align_up};
use uuid::Uuid;

/// An open store. All methods take `&self`; share it as `Arc<Store>`.
#[derive(Debug)]
pub struct Store {
    device: Arc<dyn BlockDevice>,
    uuid: Uuid,
    label: String,
    layout: Layout,
    sparse: bool,
    healed: Vec<Finding>,
    log: Mutex<Log>,
    shared: RwLock<Shared>,
    /// Why nothing more is written.
    stopped: OnceLock<String>,
}

/// What is known in memory.
#[derive(Debug)]
pub(crate) struct Shared {
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
        let shared = self.shared();
        StoreInfo {
            uuid: self.uuid,
            label: self.label.clone(),
            size: ByteCount(self.layout.size),
            chunk: ByteCount(self.layout.chunk),
            data_chunks: self.layout.data_chunks(),
            free_chunks: shared.free.free(),
            largest_free: shared.free.largest(),
            titles: shared.catalogue.len() as u64,
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
        self.shared().catalogue.titles().cloned().collect()
    }

    /// One title.
    pub fn title(&self, name: &str) -> Option<TitleRecord> {
        self.shared().catalogue.title(name).cloned()
    }

    /// A title's index, read whole and verified. Also of a hidden title. Caching is the caller's.
    pub fn index(&self, id: TitleId) -> Result<Arc<TitleIndex>, StoreError> {
        let record = self.record(id)?;
        // Removed meanwhile: its chunks may be another's, and then that is all there is to say.
        let damaged = |what: &str| match self.record(id) {
            Ok(_) => {
                StoreError::Damaged { what: format!("the index of title '{}' {what}", record.name) }
            }
            Err(_) => no_title(&record.name),
        };
        let length = usize::try_from(record.index_bytes).map_err(|_| damaged("is too long"))?;
        let mut bytes = vec![0; length.next_multiple_of(BLOCK_SIZE)];
        for (place, part) in
            pieces(&runs(&record.index, self.layout.chunk), label::SIZE as u64, bytes.len())
        {
            self.device.read_at(place, &mut bytes[part])?;
        }
        bytes.truncate(length);
        if checksum(&bytes) != record.index_checksum {
            return Err(damaged("does not match its checksum"));
        }
        let index = TitleIndex::decode(&bytes).map_err(|error| damaged(&error.to_string()))?;
        let fits = index.kind == record.kind
            && index.tracks.len() == record.tracks.len()
            && index.tracks.iter().zip(&record.tracks).all(|(index, track)| {
                index.data_len == track.bytes
                    && index.checksums.len() as u64 == track.bytes.div_ceil(media::CHECKSUM_SPAN)
            });
        if fits { Ok(Arc::new(index)) } else { Err(damaged("is another title's")) }
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

    /// A reader of a title's data that verifies checksums and asks `pace` before each read.
    pub fn reader<'a>(
        &'a self,
        id: TitleId,
        pace: &'a dyn Pace,
    ) -> Result<TitleReader<'a>, StoreError> {
        Ok(TitleReader::new(self, self.record(id)?, self.index(id)?, pace))
    }

    /// Begins a title. Its name is taken from now on; dropping the writer gives all back.
    pub fn begin(&self, name: &str, kind: TitleKind) -> Result<TitleWriter<'_>, StoreError> {
        check_name(name)?;
        self.refuse_if_stopped()?;
        let mut shared = self.shared_mut();
        if shared.catalogue.title(name).is_some() || !shared.pending.insert(name.to_owned()) {
            return Err(StoreError::Exists { name: name.to_owned() });
        }
        let id = TitleId(shared.next_id);
        shared.next_id += 1;
        Ok(TitleWriter::new(self, id, name, kind))
    }

    /// Takes a title out of the catalogue, durably; its space is kept until [`Store::release`].
    pub fn hide(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let mut hidden = None;
        self.change(
            |shared| {
                let title = shared.catalogue.title(name).ok_or_else(|| no_title(name))?.clone();
                Ok(Record::Removal(hidden.insert(title).id))
            },
            |_| {},
        )?;
        Ok(hidden.expect("found above"))
    }

    /// The last reader of a hidden title is gone: its chunks are free.
    pub fn release(&self, id: TitleId) {
        let Some(title) = self.shared().hidden.get(&id).cloned() else { return };
        // So that a rebuilding scan does not find it. Its chunks are still nobody else's.
        if let (Some(first), None) = (title.index.first(), self.stopped.get()) {
            let zeros = [0; label::SIZE];
            let place = first.start.0 * self.layout.chunk;
            if let Err(error) = self.device.write_at(place, &zeros) {
                self.stop(&StoreError::from(error));
            }
        }
        let mut shared = self.shared_mut();
        if shared.hidden.remove(&id).is_some() {
            for extent in title.extents() {
                shared.free.give(extent);
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
            |shared| {
                let title = shared.catalogue.title(old).ok_or_else(|| no_title(old))?;
                if shared.catalogue.title(new).is_some() || shared.pending.contains(new) {
                    return Err(StoreError::Exists { name: new.to_owned() });
                }
                Ok(Record::Renaming(title.id, new.to_owned()))
            },
            |_| {},
        )
    }

    /// Looks for damage, without waiting for anybody.
    pub fn check(
        &self,
        options: &CheckOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CheckReport, StoreError> {
        self.check_paced(options, &FreePace, progress, &AtomicBool::new(false))
    }

    /// Looks for damage, asking `pace` before each read of titles.
    pub fn check_paced(
        &self,
        options: &CheckOptions,
        pace: &dyn Pace,
        progress: &mut dyn FnMut(Progress),
        cancel: &AtomicBool,
    ) -> Result<CheckReport, StoreError> {
        check::check(self, options, pace, progress, cancel)
    }

    /// Whether the device still holds this store: what it is run by is as in memory, and some of each
    /// of the first titles matches its checksums. Reads little; says what is wrong.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for what is not as it was; others as reading gives them.
    pub fn probe(&self) -> Result<(), StoreError> {
        check::probe(self)
    }

    /// The calibration kept with the store.
    pub fn calibration(&self) -> Option<Calibration> {
        self.shared().catalogue.calibration().cloned()
    }

    /// Keeps a calibration with the store.
    pub fn set_calibration(&self, calibration: &Calibration) -> Result<(), StoreError> {
        check_calibration(calibration)?;
        self.change(|_| Ok(Record::Calibration(calibration.clone())), |_| {})
    }

    /// What the disk was seen to do in use, as whoever served it last kept that.
    pub fn seen(&self) -> Option<Vec<u8>> {
        self.shared().catalogue.seen().map(<[u8]>::to_vec)
    }

    /// Keeps that, at most 4,096 bytes; the store does not look into it.
    pub fn set_seen(&self, bytes: &[u8]) -> Result<(), StoreError> {
        check_seen(bytes)?;
        self.change(|_| Ok(Record::Seen(bytes.to_vec())), |_| {})
    }
}

/// For the rest of this crate.
impl Store {
    pub(crate) fn new(
        loaded: Loaded,
        free: FreeMap,
        device: Arc<dyn BlockDevice>,
        sparse: bool,
    ) -> Self {
        let superblock = &loaded.log.superblock;
        let shared = Shared {
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
            shared: RwLock::new(shared),
            stopped: OnceLock::new(),
        }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn healed(&self) -> &[Finding] {
        &self.healed
    }

    pub(crate) fn shared(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shared_mut(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A title in the catalogue or hidden.
    pub(crate) fn record(&self, id: TitleId) -> Result<TitleRecord, StoreError> {
        let shared = self.shared();
        let found = shared.catalogue.by_id(id).or_else(|| shared.hidden.get(&id));
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
        make: impl FnOnce(&Shared) -> Result<Record, StoreError>,
        then: impl FnOnce(&mut Shared),
    ) -> Result<(), StoreError> {
        let mut log = self.log();
        self.refuse_if_stopped()?;
        let (record, whole) = {
            let shared = self.shared();
            let record = make(&shared)?;
            (record, shared.catalogue.checkpoint_bytes())
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
                let catalogue = self.shared().catalogue.encode();
                log.checkpoint(&catalogue)?;
            }
            log.append(&bytes)
        })();
        written.inspect_err(|error| self.stop(error))?;
        let mut shared = self.shared_mut();
        if let Record::Removal(id) = &record {
            let title = shared.catalogue.by_id(*id).expect("just decided on").clone();
            shared.hidden.insert(*id, title);
        }
        shared.catalogue.apply(record).expect("decided on the same catalogue");
        then(&mut shared);
        Ok(())
    }
}

fn no_title(name: &str) -> StoreError {
    StoreError::NoTitle { name: name.to_owned() }
}

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
const BLOCK_SIZE: usize = BLOCK as usize;
