//! The store.

use crate::{CheckOptions, CheckReport, Progress};
use crate::{
    FormatOptions, StoreError, StoreIdentity, StoreInfo, TitleId, TitleRecord, TitleWriter,
};
use device::BlockDevice;
use disk::Calibration;
use media::{TitleIndex, TitleKind};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An open store. All methods take `&self`; share it as `Arc<Store>`.
#[derive(Debug)]
pub struct Store {
    device: Arc<dyn BlockDevice>,
}

impl Store {
    /// Makes a store on a device or file.
    pub fn format(path: &Path, options: &FormatOptions) -> Result<StoreInfo, StoreError> {
        let _ = (path, options);
        todo!()
    }
    /// Makes a store on an open device.
    pub fn format_on(
        device: Arc<dyn BlockDevice>,
        options: &FormatOptions,
    ) -> Result<StoreInfo, StoreError> {
        let _ = (device, options);
        todo!()
    }
    /// Opens a store for this process alone; [`StoreError::Owned`] when another process has it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let _ = path;
        todo!()
    }
    /// Opens a store on an open device.
    pub fn open_on(device: Arc<dyn BlockDevice>) -> Result<Self, StoreError> {
        Ok(Self { device })
    }
    /// Reads the superblock only, without taking the store: to find the owner by uuid.
    pub fn peek(path: &Path) -> Result<StoreIdentity, StoreError> {
        let _ = path;
        todo!()
    }
    /// What the store tells of itself.
    pub fn info(&self) -> StoreInfo {
        todo!()
    }
    /// What it lies on.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }
    /// Bytes of the device that calibration may overwrite; empty on small stores.
    pub fn scratch(&self) -> Range<u64> {
        todo!()
    }
    /// All titles, by name.
    pub fn titles(&self) -> Vec<TitleRecord> {
        todo!()
    }
    /// One title.
    pub fn title(&self, name: &str) -> Option<TitleRecord> {
        let _ = name;
        todo!()
    }
    /// A title's index, read whole and verified. Caching is the caller's.
    pub fn index(&self, id: TitleId) -> Result<Arc<TitleIndex>, StoreError> {
        let _ = id;
        todo!()
    }
    /// The track's extents as byte ranges of the device, in order. Also of a hidden title.
    pub fn runs(&self, id: TitleId, track: u16) -> Option<Vec<Range<u64>>> {
        let _ = (id, track);
        todo!()
    }
    /// Reads a track's data at any alignment, unverified; verified reading is the export's.
    pub fn read(
        &self,
        id: TitleId,
        track: u16,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), StoreError> {
        let _ = (id, track, offset, into);
        todo!()
    }
    /// Begins a title. Its name is taken from now on; dropping the writer gives all back.
    pub fn begin(&self, name: &str, kind: TitleKind) -> Result<TitleWriter<'_>, StoreError> {
        let _ = (name, kind);
        todo!()
    }
    /// Takes a title out of the catalogue, durably; its space is kept until [`Store::release`].
    pub fn hide(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let _ = name;
        todo!()
    }
    /// The last reader of a hidden title is gone: its chunks are free.
    pub fn release(&self, id: TitleId) {
        let _ = id;
        todo!()
    }
    /// Takes a title out of the catalogue and frees its chunks.
    pub fn remove(&self, name: &str) -> Result<TitleRecord, StoreError> {
        let _ = name;
        todo!()
    }
    /// Gives a title another name.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), StoreError> {
        let _ = (old, new);
        todo!()
    }
    /// Looks for damage.
    pub fn check(
        &self,
        options: &CheckOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CheckReport, StoreError> {
        let _ = (options, progress);
        todo!()
    }
    /// The calibration kept with the store.
    pub fn calibration(&self) -> Option<Calibration> {
        todo!()
    }
    /// Keeps a calibration with the store.
    pub fn set_calibration(&self, calibration: &Calibration) -> Result<(), StoreError> {
        let _ = calibration;
        todo!()
    }
}
