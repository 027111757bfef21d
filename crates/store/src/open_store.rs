//! An open store: the catalogue for many readers, with one change at a time.
//!
//! ```text
//!   titles, title, runs, index ──read──▶ StoreState { catalogue, free map, hidden, pending }
//!                                          ▲ write: short, never across I/O
//!   seal, hide, rename, calibration ──▶ Log: journal entry, flush ─┘ applied when durable
//! ```
//!
//! The log's lock is held during a commit, the state's lock never during I/O: readers do not wait
//! for writers. After a failed write or flush nothing more is written, because the content of the
//! disk is then unknown (acknowledged changes are safe).

use crate::byte_runs::runs;
use crate::catalogue::{Catalogue, RecordingLog};
use crate::commit_group::CommitGroup;
use crate::format::journal::MAX_ENTRY;
use crate::format::label;
use crate::format::layout::StoreLayout;
use crate::format::record::{Record, check_calibration, check_disk_history, check_new_name};
use crate::free::FreeMap;
use crate::log::{LoadedLog, Log};
use crate::series::SeriesPart;
use crate::title_index::read_index;
use crate::{
    Finding, RunningRecording, StoreError, StoreInfo, TitleId, TitlePage, TitleRecord,
    TitleSelection,
};
use device::{BlockDevice, DeviceError};
use disk::Calibration;
use media::{TitleIndex, TitleKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use units::{ByteCount, Encoder, Hinted};
use uuid::Uuid;

/// An open store. All methods take `&self`; share it as `Arc<Store>`.
#[derive(Debug)]
pub struct Store {
    device: Arc<dyn BlockDevice>,
    /// The uuid of the format, which labels carry.
    uuid: Uuid,
    /// The uuid that tells this store from all others.
    identity: Uuid,
    label: String,
    layout: StoreLayout,
    sparse: AtomicBool,
    is_read_only: bool,
    healed: Vec<Finding>,
    /// Damage that is not repaired, because the store is open for reading only.
    unhealed: Vec<Finding>,
    log: Mutex<Log>,
    commits: CommitGroup,
    state: RwLock<StoreState>,
    /// Number of changes of the titles since the store was opened.
    changes: AtomicU64,
    /// The reason why nothing more is written.
    stopped: OnceLock<String>,
    /// Nothing is written for now: see [`Store::suspend_writes`].
    suspended: AtomicBool,
    /// The other open stores of its set; unset where this process does not have all that are there.
    pub(crate) beside: OnceLock<Vec<Weak<Store>>>,
}

/// The state in memory.
#[derive(Debug)]
pub(crate) struct StoreState {
    pub(crate) catalogue: Catalogue,
    /// The chunks that belong to no title, hidden title or writer.
    pub(crate) free: FreeMap,
    /// Titles that are out of the catalogue and still being read.
    pub(crate) hidden: BTreeMap<TitleId, TitleRecord>,
    /// Titles whose space is kept while they are read.
    kept: BTreeMap<TitleId, KeptTitle>,
    /// The names of titles that are being written, and names that titles are being given.
    pub(crate) pending: BTreeSet<String>,
    /// The identifier of the next title to be written.
    pub(crate) next_id: u64,
    /// The titles of the latest changes, the last one last.
    changed: VecDeque<TitleId>,
}

/// A title whose space is kept.
#[derive(Debug, Default)]
struct KeptTitle {
    readers: usize,
    /// The space is to be free after them.
    is_released: bool,
}

impl StoreState {
    /// Reserves a name. One lock covers the test and the insertion, so two titles cannot both get
    /// the name.
    pub(crate) fn reserve(&mut self, name: &str) -> Result<(), StoreError> {
        if self.catalogue.title(name).is_some() {
            return Err(StoreError::Exists { name: name.to_owned() });
        }
        self.reserve_beside(name)
    }

    /// Reserves a name that a title may have, for one that takes its place.
    pub(crate) fn reserve_beside(&mut self, name: &str) -> Result<(), StoreError> {
        if self.pending.insert(name.to_owned()) {
            return Ok(());
        }
        let is_of_it = |title: &str| {
            let rest = title.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_recorded = self.catalogue.recordings().any(|log| is_of_it(&log.start.name));
        let name = name.to_owned();
        Err(match is_recorded {
            true => StoreError::BeingRecorded { name },
            false => StoreError::BeingWritten { name },
        })
    }

    fn note_changed(&mut self, id: TitleId) {
        if self.changed.len() == CHANGES_KEPT {
            self.changed.pop_front();
        }
        self.changed.push_back(id);
    }

    /// Applies a durable change.
    fn apply(&mut self, record: Record) {
        // Readers of the title go on: its space is freed by `release`. A recording that is given up
        // has none.
        if let Record::Removal(id) = &record
            && let Some(title) = self.catalogue.by_id(*id).cloned()
        {
            // In the same step as the removal, so that a reader finds the title at every moment.
            self.hidden.insert(*id, title);
        }
        self.catalogue.apply(record).expect("`make` saw the same catalogue");
    }
}

impl Store {
    /// The uuid that tells the store from all others, as in [`StoreInfo`].
    pub fn identity(&self) -> Uuid {
        self.identity
    }

    /// The state of the store.
    pub fn info(&self) -> StoreInfo {
        let state = self.state();
        StoreInfo {
            uuid: self.identity,
            label: self.label.clone(),
            size: ByteCount(self.layout.size),
            chunk: ByteCount(self.layout.chunk),
            data_chunks: self.layout.data_chunks(),
            free_chunks: state.free.free(),
            largest_free: state.free.largest(),
            titles: state.catalogue.len() as u64,
            kind: self.device.geometry().kind,
            sparse: self.sparse.load(Ordering::Relaxed),
        }
    }

    /// The device beneath the store.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// The range of the device that calibration may overwrite; empty on small stores.
    pub fn scratch(&self) -> Range<u64> {
        self.layout.scratch.clone()
    }

    /// Number of changes of the titles, and of those that are being recorded, since the store was
    /// opened: who keeps something that is made of them makes it again when the number has grown.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The titles and recordings that have changed since [`Store::changes`] was this number: each
    /// may be there, have another name or be gone. `None`: that is too long ago, and any may have.
    pub fn changed_since(&self, changes: u64) -> Option<Vec<TitleId>> {
        let state = self.state();
        let new = usize::try_from(self.changes().checked_sub(changes)?).ok()?;
        let known = state.changed.len();
        (new <= known).then(|| state.changed.range(known - new..).copied().collect())
    }

    /// All titles, by name.
    pub fn titles(&self) -> Vec<TitleRecord> {
        self.state().catalogue.titles().cloned().collect()
    }

    /// A part of the list of titles, by name. Looks at no title beside those that it returns.
    pub fn page(&self, wanted: &TitleSelection) -> TitlePage {
        self.state().catalogue.page(wanted)
    }

    /// The titles that are being recorded, in the order in which they began. None is where nothing
    /// more is written: what was recorded becomes a title when the store is opened again.
    pub fn recordings(&self) -> Vec<RunningRecording> {
        if self.write_failure().is_some() {
            return Vec::new();
        }
        self.state().catalogue.recordings().map(RecordingLog::summary).collect()
    }

    /// The recording of a title with this name.
    pub fn recording(&self, name: &str) -> Option<RunningRecording> {
        if self.write_failure().is_some() {
            return None;
        }
        let state = self.state();
        let mut all = state.catalogue.recordings();
        all.find(|log| log.start.name == name).map(RecordingLog::summary)
    }

    /// Whether the title with this identifier is being recorded.
    pub(crate) fn is_recorded(&self, id: TitleId) -> bool {
        self.state().catalogue.recording(id).is_some()
    }

    /// The titles that are parts of this series, the first one first.
    pub(crate) fn parts_of(&self, series: &str) -> Vec<SeriesPart> {
        let state = self.state();
        let titles = state.catalogue.titles();
        let parts = titles.filter_map(|it| SeriesPart::of(series, &it.name, it.duration));
        let mut parts: Vec<SeriesPart> = parts.collect();
        parts.sort_by_key(|part| part.begins);
        parts
    }

    /// Whether a title has this name, or will have it when it is written.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        let state = self.state();
        state.catalogue.title(name).is_some() || state.pending.contains(name)
    }

    /// The title with this name.
    pub fn title(&self, name: &str) -> Option<TitleRecord> {
        self.state().catalogue.title(name).cloned()
    }

    /// The title with this identifier.
    pub fn record_of(&self, id: TitleId) -> Option<TitleRecord> {
        self.state().catalogue.by_id(id).cloned()
    }

    /// The names of media titles next to this one in the list, at most some thousands, among which
    /// [`nearest`](crate::nearest) finds the one that may be meant.
    pub fn media_around(&self, name: &str) -> Vec<String> {
        let state = self.state();
        let media = state.catalogue.around(name).filter(|title| title.kind == TitleKind::Media);
        media.map(|title| title.name.clone()).collect()
    }

    /// The title with this name; the error names the most similar one.
    pub fn find(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let state = self.state();
        state.catalogue.title(name).cloned().ok_or_else(|| no_title(&state, name))
    }

    /// The index of a title, hidden or not: read whole and verified. It is not cached.
    pub fn index(&self, id: TitleId) -> Result<Arc<TitleIndex>, StoreError> {
        let record = self.record(id)?;
        read_index(self.device.as_ref(), self.layout.chunk, &record).map(Arc::new).map_err(
            // A title removed meanwhile may have been overwritten by another, which is no damage.
            |error| if self.record(id).is_ok() { error } else { removed(&record.name) },
        )
    }

    /// The track's extents as byte ranges of the device, in order. Also works for a hidden title.
    pub fn runs(&self, id: TitleId, track: u16) -> Option<Vec<Range<u64>>> {
        let record = self.record(id).ok()?;
        Some(runs(&record.tracks.get(usize::from(track))?.extents, self.layout.chunk))
    }

    /// Takes a title out of the catalogue durably; its space is kept until [`Store::release`].
    /// Stores of its set that are away and may have the title are noted: their copies are to be
    /// removed when they are back.
    pub fn hide(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let missing = self.missing_for(name);
        self.hide_from(name, &missing)
    }

    /// Takes one copy of a title out of the catalogue as [`Store::hide`] does, where the title
    /// stays: copies in stores that are away stay, too.
    pub fn hide_copy(&self, name: &str) -> Result<TitleRecord, StoreError> {
        self.hide_from(name, &[])
    }

    fn hide_from(&self, name: &str, missing: &[Uuid]) -> Result<TitleRecord, StoreError> {
        let mut hidden = None;
        self.change_all(
            |state| {
                let title =
                    state.catalogue.title(name).ok_or_else(|| no_title(state, name))?.clone();
                // `change_all` decides under its lock, so the record that it removes is carried out
                // through `hidden`.
                let title = hidden.insert(title);
                let mut records = vec![Record::Removal(title.id)];
                records.extend(self.notes(state, missing, title, None));
                Ok(records)
            },
            |_| {},
        )?;
        Ok(hidden.expect("found above"))
    }

    /// Keeps the space of a title until [`Store::let_go`], also when it is removed and released
    /// meanwhile. Who keeps a title and then finds it in the catalogue can read all of it. Calls
    /// are counted.
    pub fn keep(&self, id: TitleId) {
        self.state_mut().kept.entry(id).or_default().readers += 1;
    }

    /// Takes one [`Store::keep`] back. The last one frees the space of a title that was released.
    pub fn let_go(&self, id: TitleId) {
        let mut state = self.state_mut();
        let Some(kept) = state.kept.get_mut(&id) else { return };
        kept.readers -= 1;
        if kept.readers > 0 || self.is_suspended() {
            return;
        }
        let is_released = state.kept.remove(&id).is_some_and(|kept| kept.is_released);
        drop(state);
        if is_released {
            self.release(id);
        }
    }

    /// Whether somebody keeps the space of a title ([`Store::keep`]).
    pub fn is_kept(&self, id: TitleId) -> bool {
        self.state().kept.get(&id).is_some_and(|kept| kept.readers > 0)
    }

    /// Writes nothing from now on, until [`Store::resume_writes`]: what is on the device now may be
    /// another store, or this one as it was long ago.
    pub fn suspend_writes(&self) {
        self.suspended.store(true, Ordering::Relaxed);
    }

    /// Writes again: the device was found to hold this store ([`Store::probe`]).
    pub fn resume_writes(&self) {
        self.suspended.store(false, Ordering::Relaxed);
        let mut released = Vec::new();
        self.state_mut().kept.retain(|id, kept| {
            released.extend((kept.readers == 0 && kept.is_released).then_some(*id));
            kept.readers > 0
        });
        released.into_iter().for_each(|id| self.release(id));
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    /// Frees the chunks of a hidden title after its last reader: at once, or when nobody keeps it
    /// any more, and writes are not suspended.
    pub fn release(&self, id: TitleId) {
        if self.is_suspended() {
            self.state_mut().kept.entry(id).or_default().is_released = true;
            return;
        }
        if let Some(kept) = self.state_mut().kept.get_mut(&id) {
            kept.is_released = true;
            return;
        }
        let Some(title) = self.state().hidden.get(&id).cloned() else { return };
        // A rebuilding scan must not find the title. Its chunks belong to no other title yet.
        if let (Some(first), None) = (title.index.first(), self.stopped.get()) {
            let zeros = [0; label::SIZE];
            let place = first.start.0 * self.layout.chunk;
            if let Err(error) = self.device.write_at(place, &zeros) {
                self.stop(&StoreError::from(error));
            }
        }
        // The chunks become free only now: a writer could otherwise lose its label to the zeros.
        let mut state = self.state_mut();
        // Tested again: another thread may have released the title during the write. Its chunks may
        // then belong to a new title already, and giving them back twice would share them.
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

    /// Renames a title. A rename to its own name does nothing.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), StoreError> {
        let missing = self.missing_for(old);
        self.rename_in(old, new, &missing)
    }

    /// Renames one copy of a title as [`Store::rename`] does, and notes it for no other store.
    pub(crate) fn rename_copy(&self, old: &str, new: &str) -> Result<(), StoreError> {
        self.rename_in(old, new, &[])
    }

    fn rename_in(&self, old: &str, new: &str, missing: &[Uuid]) -> Result<(), StoreError> {
        check_new_name(new)?;
        if self.find(old)?.name == new {
            // A record would be refused as a second title of this name.
            return Ok(());
        }
        // Reserved like the name of a title that is being written: `begin` does not wait for the
        // journal, and could take the name while the change is written.
        self.state_mut().reserve(new)?;
        let renaming = |state: &StoreState| {
            let title = state.catalogue.title(old).ok_or_else(|| no_title(state, old))?;
            let mut records = vec![Record::Renaming(title.id, new.to_owned())];
            records.extend(self.notes(state, missing, title, Some(new)));
            Ok(records)
        };
        let free = |state: &mut StoreState| {
            state.pending.remove(new);
        };
        self.change_all(renaming, free).inspect_err(|_| free(&mut self.state_mut()))
    }

    /// Renames a title to the name of another one, which is taken out of the catalogue with the
    /// same journal entry: a power cut leaves the one or the other under the name. The space of the
    /// other title is kept until [`Store::release`]; its record is returned.
    ///
    /// # Errors
    /// There is no title `old` or no other title `new`, or the store cannot be written.
    pub fn replace(&self, old: &str, new: &str) -> Result<TitleRecord, StoreError> {
        let mut gone = None;
        let (missing_new, missing_old) = (self.missing_for(new), self.missing_for(old));
        self.change_all(
            |state| {
                let title = state.catalogue.title(old).ok_or_else(|| no_title(state, old))?;
                let other = state.catalogue.title(new).filter(|other| other.id != title.id);
                let other = other.ok_or_else(|| no_title(state, new))?.clone();
                // Decided under the lock of the journal, so carried out from here.
                let other = gone.insert(other);
                let mut records =
                    vec![Record::Removal(other.id), Record::Renaming(title.id, new.to_owned())];
                records.extend(self.notes(state, &missing_new, other, None));
                records.extend(self.notes(state, &missing_old, title, Some(new)));
                Ok(records)
            },
            |_| {},
        )?;
        Ok(gone.expect("found above"))
    }

    /// The calibration that is kept with the store.
    pub fn calibration(&self) -> Option<Calibration> {
        self.state().catalogue.calibration().cloned()
    }

    /// Keeps a calibration with the store.
    pub fn set_calibration(&self, calibration: &Calibration) -> Result<(), StoreError> {
        check_calibration(calibration)?;
        self.change(|_| Ok(Record::Calibration(calibration.clone())), |_| {})
    }

    /// The disk's performance history, as [`Store::set_disk_history`] wrote it last.
    pub fn disk_history(&self) -> Option<Vec<u8>> {
        self.state().catalogue.disk_history().map(<[u8]>::to_vec)
    }

    /// Keeps the server's history of the disk's performance: at most 4,096 bytes, which the store
    /// does not interpret.
    pub fn set_disk_history(&self, bytes: &[u8]) -> Result<(), StoreError> {
        check_disk_history(bytes)?;
        self.change(|_| Ok(Record::DiskHistory(bytes.to_vec())), |_| {})
    }
}

/// Methods for the other modules of this crate.
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
            kept: BTreeMap::new(),
            // A recording that is sealed later keeps its name.
            pending: loaded.catalogue.recordings().map(|it| it.start.name.clone()).collect(),
            next_id: loaded.catalogue.next_id().0,
            changed: VecDeque::new(),
            catalogue: loaded.catalogue,
        };
        Self {
            uuid: superblock.uuid,
            identity: superblock.identity(),
            label: superblock.label.clone(),
            layout: superblock.layout.clone(),
            device,
            sparse: AtomicBool::new(sparse),
            is_read_only: false,
            healed: loaded.findings,
            unhealed: Vec::new(),
            log: Mutex::new(loaded.log),
            commits: CommitGroup::default(),
            state: RwLock::new(state),
            changes: AtomicU64::new(0),
            stopped: OnceLock::new(),
            suspended: AtomicBool::new(false),
            beside: OnceLock::new(),
        }
    }

    /// Notes that the file of the store has lost blocks.
    pub(crate) fn is_now_sparse(&self) {
        self.sparse.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.uuid
    }

    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    /// This store, open for reading only: what `new` took as repaired is still damaged.
    pub(crate) fn read_only(mut self) -> Self {
        self.is_read_only = true;
        self.unhealed = std::mem::take(&mut self.healed);
        let unsealed = self.unsealed_recordings();
        self.unhealed.extend(unsealed);
        self
    }

    /// This store, with titles of its interrupted recordings.
    pub(crate) fn with_recordings_sealed(mut self) -> Self {
        let (healed, unhealed) = self.seal_recordings();
        self.healed.extend(healed);
        self.unhealed.extend(unhealed);
        self
    }

    pub(crate) fn unhealed(&self) -> &[Finding] {
        &self.unhealed
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

    pub(crate) fn commits(&self) -> &CommitGroup {
        &self.commits
    }

    /// The record of a title in the catalogue or hidden.
    pub(crate) fn record(&self, id: TitleId) -> Result<TitleRecord, StoreError> {
        let state = self.state();
        // A stream that plays a removed title still needs its extents until it ends.
        let found = state.catalogue.by_id(id).or_else(|| state.hidden.get(&id));
        found.cloned().ok_or_else(|| removed(&format!("number {}", id.0)))
    }

    pub(crate) fn refuse_if_stopped(&self) -> Result<(), StoreError> {
        match self.stopped.get() {
            _ if self.is_suspended() => Err(StoreError::DiskLost),
            Some(why) => Err(StoreError::Stopped { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Writes data that no record refers to yet.
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

    /// Why nothing more is written to the store, after a write or flush that failed, until it is
    /// opened again; `None`: it is written to.
    pub fn write_failure(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    fn stop(&self, error: &StoreError) {
        // The first error is the reason; later ones follow from it.
        let _ = self.stopped.set(error.one_line());
    }

    /// Makes one change durable and applies it: `make` decides on the record, and `then` runs after
    /// the change was applied, under one lock.
    pub(crate) fn change(
        &self,
        make: impl FnOnce(&StoreState) -> Result<Record, StoreError>,
        then: impl FnOnce(&mut StoreState),
    ) -> Result<(), StoreError> {
        self.change_all(|state| Ok(vec![make(state)?]), then)
    }

    /// Makes several changes durable like [`Store::change`], with one journal entry for as many of
    /// them as it has room for. A power cut between two entries leaves the first changes.
    pub(crate) fn change_all(
        &self,
        make: impl FnOnce(&StoreState) -> Result<Vec<Record>, StoreError>,
        then: impl FnOnce(&mut StoreState),
    ) -> Result<(), StoreError> {
        // Held until the change is applied: entries reach the journal in the order of their
        // decisions.
        let mut log = self.log();
        self.refuse_if_stopped()?;
        // Readers are shut out only while deciding and applying, never during the writes between.
        let (records, whole) = {
            let state = self.state();
            let records = make(&state)?;
            (records, state.catalogue.checkpoint_bytes())
        };
        let slot = &self.layout.checkpoints[0];
        let added: u64 = records.iter().map(Record::encoded_len).sum();
        let (needed, holds) = (whole + added, slot.end - slot.start);
        // Removals are possible even when the catalogue is full: they are the way out.
        let is_removal = matches!(records[..], [Record::Removal(_), ..])
            && !records.iter().any(|record| matches!(record, Record::Title(_)));
        if needed > holds && !is_removal {
            let (needed, holds) = (ByteCount(needed), ByteCount(holds));
            return Err(StoreError::CatalogueFull { needed, holds });
        }
        let mut then = Some(then);
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let (mut entry, mut encoder) = (Vec::new(), Encoder::default());
            while let Some(record) = records.next_if(|next| {
                entry.is_empty() || encoder.len() as u64 + next.encoded_len() <= MAX_ENTRY as u64
            }) {
                record.encode(&mut encoder);
                entry.push(record);
            }
            let bytes = encoder.finish();
            let written = (|| {
                // The checkpoint holds the catalogue without this change; the entry behind it adds
                // the change.
                if log.needs_checkpoint(bytes.len()) {
                    let catalogue = self.state().catalogue.encode();
                    log.checkpoint(&catalogue)?;
                }
                log.append(&bytes)
            })();
            // The entry may or may not be on the disk, so the memory can no longer follow it.
            written.inspect_err(|error| self.stop(error))?;
            let mut state = self.state_mut();
            for id in entry.iter().filter_map(Record::changed_title) {
                state.note_changed(id);
                self.changes.fetch_add(1, Ordering::Release);
            }
            entry.into_iter().for_each(|record| state.apply(record));
            // Before the lock is released: no reader sees the title while its name is still
            // pending.
            if records.peek().is_none()
                && let Some(then) = then.take()
            {
                then(&mut state);
            }
        }
        Ok(())
    }
}

fn no_title(state: &StoreState, name: &str) -> StoreError {
    let around = state.catalogue.around(name).map(|title| title.name.clone());
    let nearest = crate::nearest(name, around);
    StoreError::NoTitle { name: name.to_owned(), nearest }
}

/// The error for a title that was removed while it was read.
fn removed(name: &str) -> StoreError {
    StoreError::NoTitle { name: name.to_owned(), nearest: None }
}

/// Changes that are known by their titles: more than a program can make while another one looks
/// away for a moment.
const CHANGES_KEPT: usize = 4096;
