//! Where streams read: a file made for it in a directory, or something that is there already.
//!
//! The file that is made has no name for longer than it takes to open it: whatever ends the
//! program, it is gone. It is filled with bytes that no storage can shorten, past the page cache
//! where the file system allows that, and nothing else is written anywhere.

use device::{BlockDevice, DeviceError, FileDevice, OpenOptions, describe, preallocate};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// See the head of this file.
#[derive(Debug)]
pub struct Place {
    /// For reading.
    pub device: FileDevice,
    /// Whether it was made for the run.
    pub made: bool,
}

/// There is no such place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// No file can be made there.
    #[error("cannot make a file in {}: {source}{hint}", dir.display())]
    Make {
        /// The directory.
        dir: PathBuf,
        /// What to do, starting with `; `, or empty.
        hint: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Reading it says nothing of the storage.
    #[error("parts of {} have no place on disk; fill the file first", .0.display())]
    Sparse(PathBuf),
    /// The caller did not want to go on.
    #[error("interrupted: the file that was being filled is gone")]
    Interrupted,
    /// A device says no.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Place {
    /// What is at `path`: in a directory a file of `size` bytes is made and filled; a file or a
    /// block device is only read. `go_on` is told how many bytes are written.
    pub fn at(
        path: &Path,
        size: ByteCount,
        direct: bool,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, PlaceError> {
        if path.is_dir() {
            let device = make(path, size, direct, go_on)?;
            return Ok(Self { device, made: true });
        }
        if describe(path)?.is_sparse() {
            return Err(PlaceError::Sparse(path.to_owned()));
        }
        let device = FileDevice::open(path, reading(direct))?;
        Ok(Self { device, made: false })
    }
}

fn reading(direct: bool) -> OpenOptions {
    OpenOptions { direct, write: false, exclusive: false }
}

fn make(
    dir: &Path,
    size: ByteCount,
    direct: bool,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<FileDevice, PlaceError> {
    let size = ByteCount(units::align_down(size.0, 4096));
    let path = dir.join(format!(".tenuto-meter-{}", std::process::id()));
    // Fails if it is there: nothing that somebody else made is ever opened.
    File::create_new(&path).map_err(|source| {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => "; name a directory that you may write to",
            io::ErrorKind::ReadOnlyFilesystem => {
                "; it is mounted read-only: name a large file in it instead"
            }
            io::ErrorKind::AlreadyExists => "; remove what an earlier run left there",
            _ => "",
        };
        PlaceError::Make { dir: dir.to_owned(), hint, source }
    })?;
    let opened = preallocate(&path, size).and_then(|()| {
        let writer =
            FileDevice::open(&path, OpenOptions { direct: true, write: true, exclusive: false })?;
        Ok((writer, FileDevice::open(&path, reading(direct))?))
    });
    // From here on it lives as long as it is open.
    let unnamed = std::fs::remove_file(&path);
    let (writer, reader) = opened?;
    unnamed.map_err(|source| PlaceError::Make { dir: dir.to_owned(), hint: "", source })?;
    fill(&writer, size, go_on)?;
    Ok(reader)
}

fn fill(
    device: &FileDevice,
    size: ByteCount,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), PlaceError> {
    let mut chance = fastrand::Rng::with_seed(SEED);
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < size.0 {
        if !go_on(at) {
            return Err(PlaceError::Interrupted);
        }
        let len = usize::try_from(size.0 - at).unwrap_or(usize::MAX).min(PIECE);
        chance.fill(&mut piece[..len]);
        device.write_at(at, &piece[..len])?;
        at += len as u64;
    }
    Ok(device.flush()?)
}

/// Of the bytes.
const SEED: u64 = 3362;

const PIECE: usize = 4 << 20;
