//! A regular file or a block device, with direct I/O where the kernel allows it.
//!
//! Opening queries the properties (size, logical block, rotational or not) and tries one read,
//! because some file systems accept `O_DIRECT` and then refuse to read with it. On those the device
//! is read through the page cache and reports that ([`FileDevice::is_direct`], [`Queue::method`]).
//! Opening is in `opening.rs`, making and growing files in `preallocate.rs`, and the reads of a
//! queue in `method/`.

use crate::block::ByteSpan;
use crate::bounce::Bounce;
use crate::discard::discard;
use crate::kind::kind_of;
use crate::method::Method;
use crate::open_file::OpenFile;
use crate::opening::{
    OpenOptions, geometry, lock, lock_backing, open_file, reads_direct, through_the_cache,
};
use crate::refusal::cannot_open;
use crate::sysfs::SysfsDisk;
use crate::{
    BlockDevice, DeviceError, DeviceKind, Direction, FileIdentity, Geometry, KernelCounters, Pool,
    Queue,
};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A regular file or a block device, with direct I/O where that is possible.
#[derive(Debug)]
pub struct FileDevice {
    file: Arc<OpenFile>,
    bounce: Bounce,
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
        let backing = match options.exclusive && kind == DeviceKind::Block {
            true => lock_backing(path, number)?,
            false => None,
        };
        let mut file = OpenFile {
            geometry,
            file,
            path: path.to_owned(),
            direct,
            writable: options.write,
            number,
            backing,
        };
        if direct && !reads_direct(&file) {
            through_the_cache(&mut file)?;
        }
        Ok(Self { file: Arc::new(file), bounce: Bounce::default() })
    }

    /// Identity of the file or block device, whatever path it was opened by.
    pub fn identity(&self) -> Result<FileIdentity, DeviceError> {
        FileIdentity::of(&self.file.file).map_err(|error| cannot_open(&self.file.path, error))
    }

    /// Whether direct I/O is used.
    pub fn is_direct(&self) -> bool {
        self.file.direct
    }

    /// Writes back and drops the file's pages in the page cache: the next read comes from the
    /// device, or from caches outside of this machine.
    pub fn forget(&self) -> Result<(), DeviceError> {
        forget(&self.file.file).map_err(|error| cannot_open(&self.file.path, error))
    }

    /// The read methods, each with the kernel's error if it refuses the method for this file.
    pub fn methods(&self) -> Vec<(Method, std::io::Result<()>)> {
        let named = Method::NAMES.into_iter().map(|(_, method)| method);
        let kinds = named.filter(|method| *method != Method::Best);
        kinds.map(|method| (method, method.probe(&self.file))).collect()
    }

    /// Makes a queue like [`BlockDevice::queue`] with the given method, or with threads if the
    /// kernel refuses that one, as [`Queue::method`] then reports.
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
    // Dirty pages cannot be dropped, so they are written first.
    file.sync_data()?;
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

impl BlockDevice for FileDevice {
    fn geometry(&self) -> Geometry {
        self.file.geometry.clone()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.file.check(Direction::Read, ByteSpan::new(offset, into.len()))?;
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
        self.file.check(Direction::Write, ByteSpan::new(offset, from.len()))?;
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
        // Data and what is needed to find it; times of the file do not matter after a power cut.
        let done = self.file.file.sync_data();
        done.map_err(|e| DeviceError::io("flushing", &self.file.path, ByteSpan::NONE, e))
    }

    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        // A block device has no holes to ask for.
        if self.file.geometry.kind == DeviceKind::Block {
            return Ok(vec![area]);
        }
        written(&self.file.file, area.clone()).map_err(|e| {
            DeviceError::io("mapping", &self.file.path, ByteSpan::new(area.start, 0), e.into())
        })
    }

    fn kernel_counters(&self) -> KernelCounters {
        SysfsDisk::of_number(self.file.number).as_ref().map(KernelCounters::of).unwrap_or_default()
    }

    fn discard(&self, area: Range<u64>) -> Result<bool, DeviceError> {
        let length = usize::try_from(area.end - area.start).expect("an area of a device");
        let place = ByteSpan::new(area.start, length);
        self.file.check(Direction::Write, place)?;
        discard(&self.file, &area)
            .map_err(|e| DeviceError::io("discarding", &self.file.path, place, e))
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.queue_by(Method::from_environment(&self.file.path)?, depth, pool)
    }
}

fn written(file: &File, area: Range<u64>) -> Result<Vec<Range<u64>>, Errno> {
    let mut ranges = Vec::new();
    let mut at = area.start;
    while at < area.end && ranges.len() < MOST_RANGES {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No data behind this offset: the rest is a hole.
            Err(Errno::NXIO) => break,
            // A file system that does not report holes has none.
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

/// The largest number of written ranges that are reported: enough of a fragmented file for a
/// calibration.
const MOST_RANGES: usize = 65_536;
