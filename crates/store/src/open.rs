//! Making, opening and inspecting stores: paths, files, locks.

use crate::catalogue::Catalogue;
use crate::format::BLOCK;
use crate::format::journal::JournalPosition;
use crate::format::layout::{StoreLayout, superblock_places};
use crate::format::superblock::{CheckpointRef, SIZE, Superblock, fitting_label};
use crate::free::FreeMap;
use crate::log::{LoadedLog, Log, load, read_superblock};
use crate::{FindingKind, FormatOptions, Store, StoreError, StoreIdentity, StoreInfo};
use device::{BlockDevice, DeviceError, DeviceKind, FileDevice, OpenOptions, preallocate};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use units::{ByteCount, align_down};
use uuid::Uuid;

impl Store {
    /// Makes a store on a block device or in a file, which is created (and fully allocated) if it
    /// does not exist. Existing content is kept unless `options.destroy` is set.
    pub fn format(path: &Path, options: &FormatOptions) -> Result<StoreInfo, StoreError> {
        let size = options.size.map(|size| ByteCount(align_down(size.0, BLOCK)));
        let options = &FormatOptions { size, ..options.clone() };
        // An impossible layout fails before a file is made or changed.
        StoreLayout::plan(options.size.map_or(1 << 40, |size| size.0), options.chunk.0)?;
        let about = match std::fs::metadata(path) {
            Ok(about) => Some(about),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(StoreError::file("look at", path)(source)),
        };
        let Some(about) = about else {
            let size = options.size.ok_or(StoreError::SizeNeeded { path: path.to_owned() })?;
            preallocate(path, size)?;
            return format_path(path, options).inspect_err(|_| {
                // The file was made a moment ago and is empty.
                let _ = std::fs::remove_file(path);
            });
        };
        if about.is_file() {
            // The exclusive open refuses a store that another process has, before its file changes
            // length.
            let before = open_device(path, true)?;
            if !options.destroy {
                // A file shorter than a block is not blank either, although the device shows no
                // block of it.
                if (1..BLOCK).contains(&about.len()) {
                    let what = format!("what is in {}", path.display());
                    return Err(StoreError::WouldDestroy { what });
                }
                refuse_if_used(before.as_ref(), &path.display().to_string())?;
            }
            if let Some(size) = options.size {
                resize(path, size.0)?;
            } else if about.len() == 0 {
                return Err(StoreError::SizeNeeded { path: path.to_owned() });
            }
        }
        format_path(path, options)
    }

    /// Makes a store on an open device.
    pub fn format_on(
        device: Arc<dyn BlockDevice>,
        options: &FormatOptions,
    ) -> Result<StoreInfo, StoreError> {
        let given = device.geometry().size;
        let size = options.size.unwrap_or(given);
        let layout = StoreLayout::plan(size.0, options.chunk.0)?;
        if size > given {
            return Err(StoreError::Shrunk { formatted: size, found: given });
        }
        if !options.destroy {
            refuse_if_used(device.as_ref(), "the device")?;
        }
        // Without its superblocks an older store is invalid as a whole, and not in part.
        for place in superblock_places(layout.size).into_iter().chain(superblock_places(given.0)) {
            device.write_at(place, &[0; SIZE])?;
        }
        device.flush()?;
        // The new uuid below keeps entries of an older store in the same ring from being replayed.
        let start = JournalPosition { place: 0, sequence: 1, chain: 0 };
        let empty = |slot| CheckpointRef { slot, checksum: 0, bytes: 0, next: start };
        let superblock = Superblock {
            sequence: 1,
            parent: 0,
            uuid: Uuid::new_v4(),
            layout,
            checkpoints: [empty(0), empty(1)],
            label: fitting_label(&options.label).to_owned(),
            given: None,
        };
        Log::create(Arc::clone(&device), superblock, &Catalogue::default())?;
        // Opening reads superblocks, checkpoints and journal back before the format counts as done.
        Ok(Self::open_on(device)?.info())
    }

    /// Opens a store for this process alone; fails with [`StoreError::Owned`] if another process
    /// has it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let device = open_device(path, true)?;
        open_with(device, is_sparse(path)).map_err(|error| named(error, path))
    }

    /// Opens a store for reading, for users who may not write to it. Damage is found and not
    /// repaired. Fails with [`StoreError::Owned`] if another process has the store.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let device = open_device(path, false)?;
        let loaded = load(Arc::clone(&device)).map_err(|error| named(error, path))?;
        let free = free_map(&loaded)?;
        Ok(Self::new(loaded, free, device, is_sparse(path)).read_only())
    }

    /// Opens a store on an open device.
    pub fn open_on(device: Arc<dyn BlockDevice>) -> Result<Self, StoreError> {
        open_with(device, false)
    }

    /// Reads the superblock without locking the store, to find its owner by uuid.
    pub fn peek(path: &Path) -> Result<StoreIdentity, StoreError> {
        // Not exclusive: this must work while the owner has the store open, and what is read here
        // changes only while no server has it.
        let options = OpenOptions { direct: false, ..OpenOptions::default() };
        let device = FileDevice::open(path, options)?;
        let found = read_superblock(&device, &mut Vec::new()).map_err(|e| named(e, path))?;
        Ok(StoreIdentity {
            uuid: found.identity(),
            label: found.label,
            size: ByteCount(found.layout.size),
            chunk: ByteCount(found.layout.chunk),
            file: device.identity()?,
        })
    }

    /// Gives the store at `path` a new uuid, so that it can be told from the store of which it is a
    /// copy. Returns the new uuid. Nothing else of the store changes.
    ///
    /// # Errors
    /// [`StoreError::Owned`] while another process has the store.
    pub fn relabel(path: &Path) -> Result<Uuid, StoreError> {
        Self::relabel_on(open_device(path, true)?).map_err(|error| named(error, path))
    }

    /// Gives the store on an open device a new uuid like [`Store::relabel`].
    pub fn relabel_on(device: Arc<dyn BlockDevice>) -> Result<Uuid, StoreError> {
        // Opening repairs the superblock copies, so that all four are equal before the update.
        let store = Self::open_on(device)?;
        let uuid = Uuid::new_v4();
        store.log().relabel(uuid)?;
        Ok(uuid)
    }

    /// Makes the store at `path` larger: its file is lengthened to `size`, with all of its space.
    /// `None`: it takes what its device or file already has. Titles stay where they are. A power
    /// cut leaves the old or the new size.
    ///
    /// # Errors
    /// [`StoreError::Owned`] while another process has the store; [`StoreError::NotLarger`].
    pub fn resize(path: &Path, size: Option<ByteCount>) -> Result<StoreInfo, StoreError> {
        let mut device = open_device(path, true)?;
        let found = device.geometry();
        let store = Self::open_on(Arc::clone(&device)).map_err(|error| named(error, path))?;
        let size = size.map_or(found.size, |size| ByteCount(align_down(size.0, BLOCK)));
        // An impossible layout fails before the file changes.
        store.layout().grown(size.0)?;
        drop(store);
        if size > found.size && found.kind == DeviceKind::File {
            preallocate(path, size)?;
            // An open device keeps the length that it was opened with.
            drop(device);
            device = open_device(path, true)?;
        }
        let mut info = Self::resize_on(device, size)?;
        info.sparse = is_sparse(path);
        Ok(info)
    }

    /// Makes the store on an open device larger like [`Store::resize`].
    pub fn resize_on(
        device: Arc<dyn BlockDevice>,
        size: ByteCount,
    ) -> Result<StoreInfo, StoreError> {
        let found = device.geometry().size;
        if size > found {
            return Err(StoreError::NotThatLong { asked: size, found });
        }
        let store = Self::open_on(Arc::clone(&device))?;
        let layout = store.layout().grown(size.0)?;
        let catalogue = store.state().catalogue.encode();
        store.log().grow(layout, &catalogue)?;
        drop(store);
        // Opening reads everything back before the store counts as grown.
        Ok(Self::open_on(device)?.info())
    }
}

fn open_with(device: Arc<dyn BlockDevice>, sparse: bool) -> Result<Store, StoreError> {
    let mut loaded = load(Arc::clone(&device))?;
    // Before anything is healed: titles that overlap must not be written into new checkpoints.
    let free = free_map(&loaded)?;
    heal(&mut loaded)?;
    // A replayed entry may never have been flushed (if the process was killed). Its change becomes
    // visible now, so it must be durable now.
    device.flush()?;
    Ok(Store::new(loaded, free, device, sparse).with_recordings_sealed())
}

pub(crate) fn free_map(loaded: &LoadedLog) -> Result<FreeMap, StoreError> {
    let damaged = |error: crate::format::bytes::Malformed| StoreError::Damaged { what: error.0 };
    loaded.catalogue.free_map(&loaded.log.superblock.layout).map_err(damaged)
}

/// Rewrites damaged metadata from the good copies.
pub(crate) fn heal(loaded: &mut LoadedLog) -> Result<(), StoreError> {
    let found = |kind| loaded.findings.iter().any(|finding| finding.kind == kind);
    if found(FindingKind::Superblock) {
        // The decision fell on two equal copies; after this all four are equal again.
        loaded.log.write_superblocks()?;
    }
    if found(FindingKind::Checkpoint) || found(FindingKind::Journal) {
        let catalogue = loaded.catalogue.encode();
        if loaded.newest_is_bad {
            // The next checkpoint overwrites the second named: the good one must not be that.
            loaded.log.superblock.checkpoints.swap(0, 1);
        }
        // Two checkpoints, so that the damaged journal before them is no longer needed.
        loaded.log.checkpoint(&catalogue)?;
        loaded.log.checkpoint(&catalogue)?;
    }
    Ok(())
}

fn format_path(path: &Path, options: &FormatOptions) -> Result<StoreInfo, StoreError> {
    let device = open_device(path, true)?;
    let is_file = device.geometry().kind == DeviceKind::File;
    if !is_file && !options.destroy {
        refuse_if_used(device.as_ref(), &path.display().to_string())?;
    }
    // The file's content was checked before it was resized.
    let options = FormatOptions { destroy: true, ..options.clone() };
    let mut info = Store::format_on(device, &options)?;
    info.sparse = is_file && is_sparse(path);
    Ok(info)
}

pub(crate) fn open_device(path: &Path, write: bool) -> Result<Arc<dyn BlockDevice>, StoreError> {
    let options = OpenOptions { write, exclusive: true, ..OpenOptions::default() };
    match FileDevice::open(path, options) {
        Ok(device) => Ok(Arc::new(device)),
        Err(DeviceError::InUse { path, .. }) => Err(StoreError::Owned { path }),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a device that is not blank.
fn refuse_if_used(device: &dyn BlockDevice, name: &str) -> Result<(), StoreError> {
    let what = match read_superblock(device, &mut Vec::new()) {
        Ok(store) if store.label.is_empty() => format!("the store on {name}"),
        Ok(store) => format!("the store '{}' on {name}", store.label),
        Err(StoreError::NotAStore { .. }) if is_blank(device)? => return Ok(()),
        Err(StoreError::NotAStore { .. }) => format!("what is on {name}"),
        // Some copy has a store's magic, so somebody may still want what is there.
        Err(_) => format!("the store (of another version, or damaged) on {name}"),
    };
    Err(StoreError::WouldDestroy { what })
}

/// Whether a file has never been written, or both ends of a device are zeros (partition tables,
/// file systems and RAID members use at least one of them).
fn is_blank(device: &dyn BlockDevice) -> Result<bool, StoreError> {
    let geometry = device.geometry();
    let size = geometry.size.0;
    if device.written(0..size)?.is_empty() {
        return Ok(true);
    }
    if geometry.kind == DeviceKind::File {
        return Ok(false);
    }
    let length = size.min(1 << 20);
    let mut bytes = vec![0; usize::try_from(length).expect("at most 1 MiB")];
    for place in [0, size - length] {
        device.read_at(place, &mut bytes)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn resize(path: &Path, size: u64) -> Result<(), StoreError> {
    let file = File::options().write(true).open(path);
    let file = file.map_err(StoreError::file("open", path))?;
    // Only shortens; `preallocate` lengthens, with blocks instead of a hole.
    if file.metadata().is_ok_and(|about| about.len() > size) {
        file.set_len(size).map_err(StoreError::file("shorten", path))?;
    }
    Ok(preallocate(path, ByteCount(size))?)
}

/// Whether a regular file has fewer allocated blocks than its length.
fn is_sparse(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.blocks() * 512 < about.len())
}

fn named(error: StoreError, path: &Path) -> StoreError {
    match error {
        StoreError::NotAStore { .. } => StoreError::NotAStore { what: path.display().to_string() },
        error => error,
    }
}
