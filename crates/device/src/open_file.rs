//! An open file or block device: checks, reads and writes.
//!
//! It is shared by a [`FileDevice`](crate::FileDevice) and its queues. Opening is in `opening.rs`,
//! the reads of a queue in `method/`.

use crate::block::ByteSpan;
use crate::{DeviceError, DeviceKind, Direction, Geometry, Transfer};
use rustix::fs::SeekFrom;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file that queues and device share; closed (and unlocked) with the last of them.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) geometry: Geometry,
    pub(crate) direct: bool,
    /// Whether it was opened for writing, too.
    pub(crate) writable: bool,
    /// The device number of the disk that it is, or that contains it.
    pub(crate) number: rustix::fs::Dev,
    /// The file behind a loop device that was opened for this process alone, locked.
    pub(crate) backing: Option<File>,
}

impl Drop for OpenFile {
    /// Unlocks explicitly: a ring that was registered with this file keeps it open, and so locked,
    /// until the kernel removes the ring. The next user would find it in use.
    fn drop(&mut self) {
        // Without a lock there is nothing to release.
        let _ = self.file.unlock();
        let _ = self.backing.as_ref().map(File::unlock);
    }
}

impl OpenFile {
    /// Checks that this file can do a transfer. For a write it checks that the file has kept its
    /// length: a write beyond its end would extend it, with a hole.
    pub(crate) fn check(&self, direction: Direction, place: ByteSpan) -> Result<(), DeviceError> {
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

    /// Checks that the file still reaches to the end of this place.
    pub(crate) fn check_end(
        &self,
        direction: Direction,
        place: ByteSpan,
    ) -> Result<(), DeviceError> {
        let end = self.end().map_err(|e| self.failed(direction, place, e))?;
        let there = usize::try_from(end.saturating_sub(place.offset)).unwrap_or(usize::MAX);
        if there < place.len {
            return Err(DeviceError::ends_early(direction, &self.path, place, there));
        }
        Ok(())
    }

    /// Reads into or writes from the transfer's buffer, completely or not at all.
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

    /// The current end of the file, which may have been truncated since it was opened.
    fn end(&self) -> io::Result<u64> {
        end_of(&self.file, self.geometry.kind)
    }

    /// Writes `from`, which is aligned if the file is direct.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let done = self.file.write_all_at(from, offset);
        done.map_err(|e| self.failed(Direction::Write, ByteSpan::new(offset, from.len()), e))
    }

    /// The error of a transfer.
    pub(crate) fn failed(
        &self,
        direction: Direction,
        place: ByteSpan,
        source: io::Error,
    ) -> DeviceError {
        DeviceError::io(direction.action(), &self.path, place, source)
    }
}

/// Fills `into` from `offset`, completely or not at all.
pub(crate) fn read_whole(
    file: &File,
    path: &Path,
    offset: u64,
    into: &mut [u8],
) -> Result<(), DeviceError> {
    let least = into.len();
    read_at_least(file, path, offset, into, least)
}

/// Reads until `into` is full, or the file ends after at least `least` bytes.
pub(crate) fn read_at_least(
    file: &File,
    path: &Path,
    offset: u64,
    into: &mut [u8],
    least: usize,
) -> Result<(), DeviceError> {
    let place = ByteSpan::new(offset, into.len());
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], offset + got as u64) {
            // The length was checked when the file was opened; it was cut short since.
            Ok(0) if got >= least => return Ok(()),
            Ok(0) => return Err(DeviceError::ends_early(Direction::Read, path, place, got)),
            Ok(more) => got += more,
            // After the unaligned end of a file the kernel refuses the rest of a direct read.
            Err(_) if got >= least => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(DeviceError::io(Direction::Read.action(), path, place, error));
            }
        }
    }
    Ok(())
}

/// The current end of a file or device.
pub(crate) fn end_of(file: &File, kind: DeviceKind) -> io::Result<u64> {
    match kind {
        // The metadata of a block device says zero.
        DeviceKind::Block => Ok(rustix::fs::seek(file, SeekFrom::End(0))?),
        _ => Ok(file.metadata()?.len()),
    }
}
