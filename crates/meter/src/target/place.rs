//! Where it is measured: files made for it in a directory, or something that is there already.
//!
//! A single file that is made has no name for longer than it takes to open it: whatever ends the
//! program, it is gone. Many files are [`MadeFiles`]. All are filled with bytes that no storage can
//! shorten, past the page cache where the file system allows that, and nothing else is written
//! anywhere.

use super::made::{MadeFiles, name};
use super::queued::SEED;
use super::{Layout, Shape};
use device::{
    BlockDevice, DeviceError, FileDevice, OpenOptions, Opening, PlainFile, describe, preallocate,
};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::ByteCount;

/// See the head of this file.
#[derive(Debug)]
pub enum Place {
    /// One file or block device.
    One {
        /// Open; for writing too, where the run writes.
        device: Arc<FileDevice>,
        /// Whether all go through all of it.
        layout: Layout,
        /// Whether it was made for the run.
        made: bool,
    },
    /// Many files, made for the run.
    Many {
        /// Gone with this value.
        files: Arc<MadeFiles>,
        /// How they are used.
        layout: Layout,
        /// Past the page cache.
        direct: bool,
    },
}

/// What is to be there.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Files and their size, if they are made.
    pub shape: Shape,
    /// Past the page cache where the file system can.
    pub direct: bool,
    /// Whether the run writes.
    pub writing: Writing,
}

/// Whether a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writing {
    /// It only reads.
    #[default]
    No,
    /// To what is made for it; refused on what is there already.
    OwnFiles,
    /// Over what is there already, as the user has said by name.
    Destructive,
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
    /// The run writes, and it was not made for it.
    #[error(
        "{path} would be written over; name a directory to work in, or say --destructive {path} if \
         nothing in it is needed", path = .0.display()
    )]
    WouldDestroy(PathBuf),
    /// It is one file.
    #[error(
        "{} is one file, and {layout} takes many; name a directory, or another --layout",
        path.display()
    )]
    OneFile {
        /// Which.
        path: PathBuf,
        /// What was wanted.
        layout: &'static str,
    },
    /// The caller did not want to go on.
    #[error("interrupted: the files that were being filled are gone")]
    Interrupted,
    /// A device says no.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Place {
    /// What is at `path`: in a directory files are made and filled; a file or a block device is
    /// used as it is. `go_on` is told how many bytes are written.
    pub fn at(
        path: &Path,
        wanted: &Wanted,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, PlaceError> {
        let Wanted { shape, direct, writing } = *wanted;
        let layout = shape.layout;
        if path.is_dir() {
            return Ok(if layout.is_single() {
                let device = Arc::new(make(path, wanted, go_on)?);
                Self::One { device, layout, made: true }
            } else {
                let files = Arc::new(MadeFiles::make(path, 0, shape.files, shape.each, go_on)?);
                Self::Many { files, layout, direct }
            });
        }
        if !layout.is_single() && path.exists() {
            return Err(PlaceError::OneFile { path: path.to_owned(), layout: layout.name() });
        }
        if writing == Writing::OwnFiles && path.exists() {
            return Err(PlaceError::WouldDestroy(path.to_owned()));
        }
        let write = writing == Writing::Destructive;
        if !write && describe(path)?.is_sparse() {
            return Err(PlaceError::Sparse(path.to_owned()));
        }
        // A block device that is mounted or otherwise in use is not written over.
        let options = OpenOptions { direct, write, exclusive: write };
        let device = Arc::new(FileDevice::open(path, options)?);
        Ok(Self::One { device, layout, made: false })
    }

    /// What there is.
    pub fn shape(&self) -> Shape {
        match self {
            Self::One { device, layout, .. } => {
                Shape { layout: *layout, files: 1, each: device.geometry().size }
            }
            Self::Many { files, layout, .. } => {
                Shape { layout: *layout, files: files.files(), each: files.each() }
            }
        }
    }

    /// Lets this machine forget what it keeps of it in memory.
    pub fn forget(&self) -> Result<(), DeviceError> {
        match self {
            Self::One { device, .. } => device.forget(),
            Self::Many { files, .. } => {
                let mut paths = (0..files.files()).map(|number| files.path(number));
                paths.try_for_each(|path| PlainFile::open(&path, Opening::Read, false)?.forget())
            }
        }
    }

    /// Whether reads and writes go past the page cache.
    pub fn is_direct(&self) -> bool {
        match self {
            Self::One { device, .. } => device.is_direct(),
            Self::Many { direct, .. } => *direct,
        }
    }
}

impl PlaceError {
    pub(super) fn making(dir: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => "; name a directory that you may write to",
            io::ErrorKind::ReadOnlyFilesystem => {
                "; it is mounted read-only: name a large file in it instead"
            }
            io::ErrorKind::AlreadyExists => "; remove what an earlier run left there",
            _ => "",
        };
        Self::Make { dir: dir.to_owned(), hint, source }
    }
}

fn make(
    dir: &Path,
    wanted: &Wanted,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<FileDevice, PlaceError> {
    let size = ByteCount(units::align_down(wanted.shape.each.0, 4096));
    let path = dir.join(name());
    // Fails if it is there: nothing that somebody else made is ever opened.
    File::create_new(&path).map_err(|source| PlaceError::making(dir, source))?;
    let opened = preallocate(&path, size).and_then(|()| {
        let open = |direct, write| {
            FileDevice::open(&path, OpenOptions { direct, write, exclusive: false })
        };
        Ok((open(true, true)?, open(wanted.direct, wanted.writing != Writing::No)?))
    });
    // From here on it lives as long as it is open.
    let unnamed = std::fs::remove_file(&path);
    let (writer, used) = opened?;
    unnamed.map_err(|source| PlaceError::making(dir, source))?;
    fill(&writer, size, 0, go_on)?;
    Ok(used)
}

/// Writes bytes that no storage can shorten, others in each file, and has them on disk.
pub(super) fn fill(
    device: &FileDevice,
    size: ByteCount,
    number: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), PlaceError> {
    let mut chance = fastrand::Rng::with_seed(SEED + u64::from(number));
    let mut piece = vec![0; usize::try_from(size.0).unwrap_or(PIECE).min(PIECE)];
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

const PIECE: usize = 4 << 20;
