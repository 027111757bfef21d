//! A regular file or a block device, past the page cache where the kernel allows it.
//!
//! Opening asks the kernel what the thing is (size, logical block, rotational or not) and tries one
//! read, because some file systems accept `O_DIRECT` and then refuse to read with it. Where they
//! do, the device is read through the page cache and says so ([`FileDevice::is_direct`],
//! [`Queue::method`]). How it is opened is in `opening.rs`, making and growing files in
//! `preallocate.rs`; how the reads of a queue are made in `method/`.

use crate::bounce::Bounce;
use crate::method::Method;
use crate::opening::{geometry, kind_of, lock, open_file, reads_direct, through_the_cache};
use crate::refusal::cannot_open;
use crate::{BlockDevice, DeviceError, DeviceKind, Direction, Geometry, Pool, Queue, Transfer};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
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

/// Where it ends now.
pub(crate) fn end_of(file: &File, kind: DeviceKind) -> io::Result<u64> {
    match kind {
        DeviceKind::Block => Ok(rustix::fs::seek(file, SeekFrom::End(0))?),
        _ => Ok(file.metadata()?.len()),
    }
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

/// Of a fragmented file that many are enough to know it by.
const MOST_RANGES: usize = 65_536;
