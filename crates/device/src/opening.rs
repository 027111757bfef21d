//! Opening a file or a block device: the flags, exclusive access, and the properties that the
//! kernel reports. Its use is in `file.rs`.

use crate::bounce::Bounce;
use crate::no_links::{self, Links};
use crate::open_file::{OpenFile, end_of};
use crate::refusal::{cannot_open, not_allowed};
use crate::sysfs::SysfsDisk;
use crate::{DeviceError, DeviceKind, Geometry};
use rustix::fs::{AtFlags, Dev, FileType, OFlags, StatxFlags, ioctl_blksszget, makedev, statx};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{ByteCount, Reason};

/// The options for opening a [`FileDevice`].
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Use direct I/O where the file system allows it.
    pub direct: bool,
    /// Open for writing, too.
    pub write: bool,
    /// Exclusive: no other process that asks for the same can open it meanwhile; a block device
    /// that is mounted or otherwise in use is refused.
    pub exclusive: bool,
    /// Whether symbolic links in the path are followed.
    pub links: Links,
}

/// Direct I/O, for reading only.
impl Default for OpenOptions {
    fn default() -> Self {
        Self { direct: true, write: false, exclusive: false, links: Links::Followed }
    }
}

/// Opens the file; returns also whether it is direct.
pub(crate) fn open_file(
    path: &Path,
    kind: DeviceKind,
    options: OpenOptions,
) -> Result<(File, bool), DeviceError> {
    let mut flags = OFlags::empty();
    if options.exclusive && kind == DeviceKind::Block {
        // For block devices O_EXCL without O_CREAT fails if they are mounted, swap, part of a RAID,
        // ...
        flags |= OFlags::EXCL;
    }
    let open = |flags: OFlags| {
        let access = if options.write { OFlags::RDWR } else { OFlags::RDONLY };
        let open = || no_links::open_file(path, access | flags, options.links);
        let mut opened = open();
        for _ in 0..LOCK_TRIES {
            let busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
            if !flags.contains(OFlags::EXCL) || !opened.as_ref().is_err_and(busy) {
                break;
            }
            std::thread::sleep(LOCK_PAUSE);
            opened = open();
        }
        opened
    };
    let opened = if options.direct {
        match open(flags | OFlags::DIRECT) {
            // Some file systems refuse O_DIRECT at open, with this error.
            Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                open(flags).map(|file| (file, false))
            }
            opened => opened.map(|file| (file, true)),
        }
    } else {
        open(flags).map(|file| (file, false))
    };
    opened.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => not_allowed(path, options.write, source),
        _ => cannot_open(path, source),
    })
}

/// Takes the lock. It waits for a moment, also for a file of an ended process: the kernel removes
/// the rings of a process, which keep its files open, a little after its end.
pub(crate) fn lock(path: &Path, file: &File) -> Result<(), DeviceError> {
    let mut result = file.try_lock();
    for _ in 0..LOCK_TRIES {
        if !matches!(result, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        result = file.try_lock();
    }
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let hint = "stop that one, or work through it";
            Err(DeviceError::in_use(path, "another process holds its lock", hint))
        }
        Err(TryLockError::Error(source)) => {
            let hint = "it cannot be locked, so it cannot be used alone";
            Err(DeviceError::open(path, hint, source))
        }
    }
}

/// Locks the file behind a loop device, so that nobody uses the same bytes by that name. `None` for
/// another device, and where the file cannot be opened.
pub(crate) fn lock_backing(path: &Path, number: Dev) -> Result<Option<File>, DeviceError> {
    let disk = SysfsDisk::of_number(number);
    let backing = disk.and_then(|disk| disk.attribute::<PathBuf>("loop/backing_file"));
    let Some((backing, file)) = backing.and_then(|at| File::open(&at).ok().map(|file| (at, file)))
    else {
        return Ok(None);
    };
    lock(&backing, &file).map_err(|error| match error {
        DeviceError::InUse { path: file, by } => {
            let message = format!("of its file {}, {}", file.display(), by.message);
            DeviceError::InUse { path: path.to_owned(), by: Reason { message, ..by } }
        }
        other => other,
    })?;
    Ok(Some(file))
}

/// The geometry, and the device number of the disk that it is, or that contains it.
pub(crate) fn geometry(
    path: &Path,
    file: &File,
    kind: DeviceKind,
    direct: bool,
) -> Result<(Geometry, Dev), DeviceError> {
    let failed = |source: io::Error| {
        DeviceError::open(path, "its size and block could not be asked for", source)
    };
    let size = end_of(file, kind).map_err(failed)?;
    let asked = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
    let about = statx(file, c"", AtFlags::EMPTY_PATH, asked).map_err(|e| failed(e.into()))?;
    let block = match kind {
        DeviceKind::Block => ioctl_blksszget(file).map_err(|e| failed(e.into()))?,
        _ if !direct || about.stx_dio_offset_align == 0 => SAFE_BLOCK,
        _ => about.stx_dio_offset_align.max(SMALLEST_BLOCK),
    };
    let number = match FileType::from_raw_mode(about.stx_mode.into()) {
        FileType::BlockDevice => makedev(about.stx_rdev_major, about.stx_rdev_minor),
        _ => makedev(about.stx_dev_major, about.stx_dev_minor),
    };
    let geometry = Geometry {
        // A part of a block at the end cannot be transferred directly.
        size: ByteCount(units::align_down(size, block.into())),
        block,
        rotational: SysfsDisk::of_number(number).is_some_and(|disk| disk.rotational()),
        kind,
    };
    Ok((geometry, number))
}

/// Switches off `O_DIRECT` while the file stays open and locked.
pub(crate) fn through_the_cache(file: &mut OpenFile) -> Result<(), DeviceError> {
    let cleared = rustix::fs::fcntl_getfl(&file.file)
        .and_then(|flags| rustix::fs::fcntl_setfl(&file.file, flags.difference(OFlags::DIRECT)));
    cleared.map_err(|e| cannot_open(&file.path, e.into()))?;
    file.direct = false;
    (file.geometry, _) = geometry(&file.path, &file.file, file.geometry.kind, false)?;
    Ok(())
}

/// Whether a direct read works. An error for another reason will show later.
pub(crate) fn reads_direct(file: &OpenFile) -> bool {
    let length = usize::try_from(file.geometry.block).expect("blocks are small");
    // Nothing to read yet: a file that is about to be made larger.
    if file.geometry.size.0 < length as u64 {
        return true;
    }
    let refused = |e: &DeviceError| matches!(e, DeviceError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput);
    Bounce::default()
        .pieces(length, |_, aligned| file.read(0, aligned))
        .err()
        .is_none_or(|e| !refused(&e))
}

/// The number of attempts, half a second in all: removing a ring takes some tens of milliseconds,
/// and a user of a store that is in use should not wait long for the error.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The block size if the file system does not report it: suitable for every disk.
const SAFE_BLOCK: u32 = 4096;

/// The smallest block size in use; some file systems report 1.
const SMALLEST_BLOCK: u32 = 512;
