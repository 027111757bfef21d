//! A regular file or a block device, past the page cache where the kernel allows it.
//!
//! Opening asks the kernel what the thing is (size, logical block, rotational or not) and tries one
//! read, because some file systems accept `O_DIRECT` and then refuse to read with it. Where they
//! do, the device is read through the page cache and says so ([`FileDevice::is_direct`],
//! [`Queue::method`]). Making and growing files is in `preallocate.rs`; how the reads of a queue
//! are made in `method/`.

use crate::bounce::Bounce;
use crate::method::Method;
use crate::refusal::{cannot_open, not_allowed};
use crate::sysfs::Disk;
use crate::{BlockDevice, DeviceError, DeviceKind, Direction, Geometry, Pool, Queue, Transfer};
use rustix::fs::{AtFlags, FileType, OFlags, SeekFrom, StatxFlags, ioctl_blksszget, statx};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// How to open a [`FileDevice`].
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Past the page cache where the file system can.
    pub direct: bool,
    /// For writing, too.
    pub write: bool,
    /// Alone: nobody else who asks for the same gets in while this one is open; a block device
    /// that is mounted or otherwise in use is refused.
    pub exclusive: bool,
}

/// For reading, past the page cache.
impl Default for OpenOptions {
    fn default() -> Self {
        Self { direct: true, write: false, exclusive: false }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub struct FileDevice {
    file: Arc<OpenFile>,
    bounce: Bounce,
}

/// What queues and device share; closed (and unlocked) when the last of them is gone.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) geometry: Geometry,
    pub(crate) direct: bool,
    /// Opened for writing, too.
    pub(crate) writable: bool,
    /// Of the disk that it is or lies on: major, minor.
    pub(crate) number: (u32, u32),
}

impl Drop for OpenFile {
    /// By name: a ring that was registered with this file keeps it open, and so locked, until the
    /// kernel finds time to take the ring down. Whoever opens it next would find it in use.
    fn drop(&mut self) {
        // Without a lock there is nothing to give back.
        let _ = self.file.unlock();
    }
}

impl FileDevice {
    /// Opens the file or block device at `path`.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self, DeviceError> {
        let about = std::fs::metadata(path).map_err(|e| cannot_open(path, e))?;
        let kind = kind_of(path, about.file_type())?;
        let (file, direct) = open_file(path, kind, options)?;
        if options.exclusive {
            lock(path, &file)?;
        }
        let (geometry, number) = geometry(path, &file, kind, direct)?;
        let mut file = OpenFile {
            geometry,
            file,
            path: path.to_owned(),
            direct,
            writable: options.write,
            number,
        };
        if direct && !reads_direct(&file) {
            through_the_cache(&mut file)?;
        }
        Ok(Self { file: Arc::new(file), bounce: Bounce::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether reads and writes go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.file.direct
    }

    /// Lets the kernel forget what it keeps of it in the page cache, once that is written: what is
    /// read next comes from the device, or from what caches there are beyond this machine.
    pub fn forget(&self) -> Result<(), DeviceError> {
        forget(&self.file.file).map_err(|error| cannot_open(&self.file.path, error))
    }

    /// The ways of reading, and why this kernel refuses those that it refuses for this file.
    pub fn methods(&self) -> Vec<(Method, std::io::Result<()>)> {
        let named = Method::NAMES.into_iter().map(|(_, method)| method);
        let kinds = named.filter(|method| *method != Method::Best);
        kinds.map(|method| (method, method.probe(&self.file))).collect()
    }

    /// As [`BlockDevice::queue`], by a method of the caller's choice; by threads if the kernel
    /// refuses that one, which [`Queue::method`] then says.
    pub fn queue_by(
        &self,
        method: Method,
        depth: u32,
        pool: &Pool,
    ) -> Result<Box<dyn Queue>, DeviceError> {
        method.queue(&self.file, depth, pool)
    }
}

pub(crate) fn forget(file: &File) -> std::io::Result<()> {
    file.sync_data()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

impl BlockDevice for FileDevice {
    fn geometry(&self) -> Geometry {
        self.file.geometry.clone()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.file.check(Direction::Read, (offset, into.len()))?;
        if !self.file.direct || is_aligned(into) {
            return self.file.read(offset, into);
        }
        self.bounce.pieces(into.len(), |piece, aligned| {
            let place = offset + piece.start as u64;
            self.file.read(place, aligned)?;
            into[piece].copy_from_slice(aligned);
            Ok(())
        })
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.file.check(Direction::Write, (offset, from.len()))?;
        if !self.file.direct || is_aligned(from) {
            return self.file.write(offset, from);
        }
        self.bounce.pieces(from.len(), |piece, aligned| {
            let place = offset + piece.start as u64;
            aligned.copy_from_slice(&from[piece]);
            self.file.write(place, aligned)
        })
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let done = self.file.file.sync_data();
        done.map_err(|e| DeviceError::io("flushing", &self.file.path, (0, 0), e))
    }

    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        if self.file.geometry.kind == DeviceKind::Block {
            return Ok(vec![area]);
        }
        written(&self.file.file, area.clone())
            .map_err(|e| DeviceError::io("mapping", &self.file.path, (area.start, 0), e.into()))
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.queue_by(Method::from_environment(&self.file.path)?, depth, pool)
    }
}

impl OpenFile {
    /// Whether a transfer is one that this file can do. Of a write it is asked whether the file is
    /// still as long as it was: a write beyond its end would make it longer, with a hole in it.
    pub(crate) fn check(
        &self,
        direction: Direction,
        place: (u64, usize),
    ) -> Result<(), DeviceError> {
        self.geometry.check(direction, &self.path, place)?;
        if direction == Direction::Read {
            return Ok(());
        }
        if !self.writable {
            let source =
                io::Error::new(io::ErrorKind::PermissionDenied, "it is open for reading only");
            return Err(DeviceError::io(direction.action(), &self.path, place, source));
        }
        self.check_end(direction, place)
    }

    /// Whether it still reaches to the end of this place.
    pub(crate) fn check_end(
        &self,
        direction: Direction,
        place: (u64, usize),
    ) -> Result<(), DeviceError> {
        let end = self.end().map_err(|e| self.failed(direction, place, e))?;
        let there = usize::try_from(end.saturating_sub(place.0)).unwrap_or(usize::MAX);
        if there < place.1 {
            return Err(DeviceError::ends_early(direction, &self.path, place, there));
        }
        Ok(())
    }

    /// Reads into or writes from the transfer's buffer, wholly or not at all.
    pub(crate) fn transfer(&self, transfer: &mut Transfer) -> Result<(), DeviceError> {
        match transfer.direction {
            Direction::Read => self.read(transfer.offset, &mut transfer.buffer),
            Direction::Write => self.write(transfer.offset, &transfer.buffer),
        }
    }

    /// Fills `into`, which is aligned if the file is direct.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        read_whole(&self.file, &self.path, offset, into)
    }

    /// Where it ends now; it may have been cut short since it was opened.
    fn end(&self) -> io::Result<u64> {
        end_of(&self.file, self.geometry.kind)
    }

    /// Writes `from`, which is aligned if the file is direct.
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let done = self.file.write_all_at(from, offset);
        done.map_err(|e| self.failed(Direction::Write, (offset, from.len()), e))
    }

    /// What the kernel said of a transfer.
    pub(crate) fn failed(
        &self,
        direction: Direction,
        place: (u64, usize),
        source: io::Error,
    ) -> DeviceError {
        DeviceError::io(direction.action(), &self.path, place, source)
    }
}

/// Fills `into` from `offset`, wholly or not at all.
pub(crate) fn read_whole(
    file: &File,
    path: &Path,
    offset: u64,
    into: &mut [u8],
) -> Result<(), DeviceError> {
    let place = (offset, into.len());
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], offset + got as u64) {
            Ok(0) => return Err(DeviceError::ends_early(Direction::Read, path, place, got)),
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(DeviceError::io(Direction::Read.action(), path, place, error));
            }
        }
    }
    Ok(())
}

pub(crate) fn kind_of(
    path: &Path,
    file_type: std::fs::FileType,
) -> Result<DeviceKind, DeviceError> {
    use std::os::unix::fs::FileTypeExt;
    if file_type.is_block_device() {
        Ok(DeviceKind::Block)
    } else if file_type.is_file() {
        Ok(DeviceKind::File)
    } else {
        let what = if file_type.is_dir() { "a directory" } else { "no file and no block device" };
        let reason = format!("it is {what}; name a regular file or a block device");
        Err(DeviceError::Unusable { path: path.to_owned(), reason })
    }
}

/// The file, and whether it is direct.
fn open_file(
    path: &Path,
    kind: DeviceKind,
    options: OpenOptions,
) -> Result<(File, bool), DeviceError> {
    let mut flags = OFlags::empty();
    if options.exclusive && kind == DeviceKind::Block {
        // For block devices, without O_CREAT: fails if it is mounted, swap, part of a RAID, ...
        flags |= OFlags::EXCL;
    }
    let open = |flags: OFlags| {
        let bits = i32::try_from(flags.bits()).expect("open flags are an int");
        let open = || File::options().read(true).write(options.write).custom_flags(bits).open(path);
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

/// Takes the lock. Waits a moment for it, as for a device of one's own: the rings of a process keep
/// its files open until the kernel has taken them down, a little after the process is gone.
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
        Err(TryLockError::WouldBlock) => Err(DeviceError::InUse {
            path: path.to_owned(),
            by: "another process holds its lock; stop that one, or work through it",
        }),
        Err(TryLockError::Error(source)) => Err(DeviceError::Open {
            path: path.to_owned(),
            hint: "; it cannot be locked, so it cannot be used alone".to_owned(),
            source,
        }),
    }
}

/// Where it ends now.
fn end_of(file: &File, kind: DeviceKind) -> io::Result<u64> {
    match kind {
        DeviceKind::Block => Ok(rustix::fs::seek(file, SeekFrom::End(0))?),
        _ => Ok(file.metadata()?.len()),
    }
}

/// And the number (major, minor) of the disk that it is or lies on.
fn geometry(
    path: &Path,
    file: &File,
    kind: DeviceKind,
    direct: bool,
) -> Result<(Geometry, (u32, u32)), DeviceError> {
    let failed = |source: io::Error| {
        let hint = "; its size and block could not be asked for".to_owned();
        DeviceError::Open { path: path.to_owned(), hint, source }
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
        FileType::BlockDevice => (about.stx_rdev_major, about.stx_rdev_minor),
        _ => (about.stx_dev_major, about.stx_dev_minor),
    };
    let geometry = Geometry {
        size: ByteCount(units::align_down(size, block.into())),
        block,
        rotational: Disk::of_number(number).is_some_and(|disk| disk.rotational()),
        kind,
    };
    Ok((geometry, number))
}

/// Takes back `O_DIRECT`, keeping the file open and locked.
fn through_the_cache(file: &mut OpenFile) -> Result<(), DeviceError> {
    let cleared = rustix::fs::fcntl_getfl(&file.file)
        .and_then(|flags| rustix::fs::fcntl_setfl(&file.file, flags.difference(OFlags::DIRECT)));
    cleared.map_err(|e| cannot_open(&file.path, e.into()))?;
    file.direct = false;
    (file.geometry, _) = geometry(&file.path, &file.file, file.geometry.kind, false)?;
    Ok(())
}

/// Whether a direct read works. What fails for another reason will fail, and say why, later.
fn reads_direct(file: &OpenFile) -> bool {
    let length = usize::try_from(file.geometry.block).expect("blocks are small");
    if file.geometry.size.0 < length as u64 {
        return true;
    }
    let refused = |e: &DeviceError| matches!(e, DeviceError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidInput);
    Bounce::default()
        .pieces(length, |_, aligned| file.read(0, aligned))
        .err()
        .is_none_or(|e| !refused(&e))
}

fn written(file: &File, area: Range<u64>) -> Result<Vec<Range<u64>>, Errno> {
    let mut ranges = Vec::new();
    let mut at = area.start;
    while at < area.end && ranges.len() < MOST_RANGES {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            // A file system that does not know its holes has none.
            Err(Errno::INVAL) => return Ok(vec![area]),
            Err(error) => return Err(error),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))?.min(area.end);
        if start < end {
            ranges.push(start..end);
        }
        at = end.max(start);
    }
    Ok(ranges)
}

fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr().align_offset(Bounce::ALIGNMENT) == 0
}

/// Half a second in all: a ring was seen to take some tens of milliseconds; and who finds a store
/// in use by a living process should not wait long to hear it.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Where the file system does not say: right for every disk there is.
const SAFE_BLOCK: u32 = 4096;

/// Some file systems say 1; nothing here is that fine.
const SMALLEST_BLOCK: u32 = 512;

/// Of a fragmented file that many are enough to know it by.
const MOST_RANGES: usize = 65_536;
