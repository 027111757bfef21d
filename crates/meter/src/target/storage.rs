//! The storage of a target: files made for the run in a directory, or an existing file or device.
//!
//! A single file that is made has a name only while it is being opened: it disappears however the
//! program ends. Many files are [`TestFiles`]. All are filled with incompressible bytes, by direct
//! I/O where the file system allows it, and nothing else is written anywhere.

use super::test_files::{TestFiles, name};
use super::verify;
use super::{FileNames, FileSet, FrameNames, Layout};
use device::{
    BlockDevice, DeviceError, FileDevice, Links, OpenMode, OpenOptions, RawFile, describe, no_links,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{ByteCount, Hinted};

/// The storage of a target.
#[derive(Debug)]
pub(crate) enum TargetStorage {
    /// One file or block device.
    One {
        /// The open file or device; writable where the run writes.
        device: Arc<FileDevice>,
        /// How streams use it.
        layout: Layout,
        /// Whether it was made for the run.
        made: bool,
    },
    /// Many files, made for the run.
    Many {
        /// The files, removed with this value.
        files: Arc<TestFiles>,
        /// How streams use them.
        layout: Layout,
        /// Whether direct I/O is used.
        direct: bool,
    },
}

/// A sequence of frames with names of its own.
#[derive(Clone, Debug)]
pub(crate) struct NamedFiles {
    /// The names.
    pub names: FrameNames,
    /// The largest number of clips that is used.
    pub clips: u32,
    /// The size of each existing frame, at least; `None` to make the frames.
    pub existing: Option<ByteCount>,
}

/// The requirements of a run on its target.
#[derive(Clone, Debug)]
pub(crate) struct TargetNeeds {
    /// The files and their size, if they are made.
    pub shape: FileSet,
    /// The number of the set of files, of those that this program makes in one directory.
    pub set: u32,
    /// The names of files; `None` for numbers.
    pub named: Option<NamedFiles>,
    /// Use direct I/O where the file system allows it.
    pub direct: bool,
    /// Whether the run writes.
    pub writing: WriteAccess,
}

/// Whether a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WriteAccess {
    /// The run only reads.
    #[default]
    No,
    /// The meter writes only files that it created.
    OwnFiles,
    /// The meter may overwrite the target, as the user allowed.
    Destructive,
}

/// An error in opening or making a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A file cannot be made in a directory.
    #[error("cannot make a file in {}: {source}", dir.display())]
    Make {
        /// The directory.
        dir: PathBuf,
        /// The remedy, where one is known.
        hint: Option<&'static str>,
        /// The kernel's error.
        source: io::Error,
    },
    /// Reading a sparse file does not measure the storage.
    #[error("parts of {} have no place on disk", .0.display())]
    Sparse(PathBuf),
    /// The run would overwrite something that was not made for it.
    #[error("{} would be overwritten", .0.display())]
    WouldDestroy(PathBuf),
    /// The layout needs many files, and the target is one.
    #[error("{} is one file, and {layout} takes many", path.display())]
    OneFile {
        /// The path of the target.
        path: PathBuf,
        /// The name of the layout.
        layout: &'static str,
    },
    /// No frame of an existing sequence has the names that were given.
    #[error("no file is named {}", .0.display())]
    NoFrames(PathBuf),
    /// A frame of an existing sequence is shorter than those of the profile.
    #[error("{} has {has}, and a frame of the profile {least}", path.display())]
    ShortFrame {
        /// The path of the frame.
        path: PathBuf,
        /// The file's size.
        has: ByteCount,
        /// The size of the profile's frames.
        least: ByteCount,
    },
    /// A directory cannot be read.
    #[error("cannot read {}: {source}", dir.display())]
    Search {
        /// The directory.
        dir: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The caller stopped it.
    #[error("interrupted: the files that were being filled are gone")]
    Interrupted,
    /// The device reported an error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Hinted for TargetError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Make { hint, .. } => (*hint)?,
            Self::Sparse(_) => "fill the file first",
            Self::WouldDestroy(_) => "name a directory to work in, or allow it with --destroy",
            Self::OneFile { .. } => "name a directory, or another --layout",
            Self::NoFrames(_) => "write the names as they are: %07d is a number of seven digits",
            Self::ShortFrame { .. } => "choose the profile of these frames, or make one",
            Self::Search { .. } => "name a directory that you may read",
            Self::Interrupted => return None,
            Self::Device(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}

impl TargetStorage {
    /// Opens the target at `path`, in which symbolic links are refused: in a directory files are
    /// made and filled; a file or a block device is used as it is. `go_on` receives the bytes
    /// written so far.
    pub(crate) fn at(
        path: &Path,
        wanted: &TargetNeeds,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, TargetError> {
        let TargetNeeds { shape, set, direct, writing, .. } = *wanted;
        let layout = shape.layout;
        if let Some(NamedFiles { names, existing: Some(least), .. }) = &wanted.named {
            let files = Arc::new(TestFiles::existing(path, names, *least)?);
            return Ok(Self::Many { files, layout, direct });
        }
        if path.is_dir() {
            return Ok(if layout.is_single() {
                let device = Arc::new(make(path, wanted, go_on)?);
                Self::One { device, layout, made: true }
            } else {
                let names = match &wanted.named {
                    None => FileNames::Numbers,
                    Some(NamedFiles { names, clips, .. }) => {
                        let per_clip = (shape.files / clips.max(&1)).max(1);
                        FileNames::Frames { names: names.clone(), per_clip }
                    }
                };
                let (count, each) = (shape.files, shape.each);
                let files = Arc::new(TestFiles::make(path, set, count, each, names, go_on)?);
                Self::Many { files, layout, direct }
            });
        }
        if !layout.is_single() && path.exists() {
            return Err(TargetError::OneFile { path: path.to_owned(), layout: layout.name() });
        }
        if writing == WriteAccess::OwnFiles && path.exists() {
            return Err(TargetError::WouldDestroy(path.to_owned()));
        }
        let write = writing == WriteAccess::Destructive;
        if !write && describe(path)?.is_sparse() {
            return Err(TargetError::Sparse(path.to_owned()));
        }
        // The kernel refuses exclusive access to a block device that is mounted or otherwise in
        // use.
        let options = OpenOptions { direct, write, exclusive: write, links: Links::Refused };
        let device = Arc::new(FileDevice::open(path, options)?);
        Ok(Self::One { device, layout, made: false })
    }

    /// The files that exist.
    pub(crate) fn shape(&self) -> FileSet {
        match self {
            Self::One { device, layout, .. } => {
                FileSet { layout: *layout, files: 1, each: device.geometry().size }
            }
            Self::Many { files, layout, .. } => {
                FileSet { layout: *layout, files: files.files(), each: files.each() }
            }
        }
    }

    /// Drops the target from this machine's page cache.
    pub(crate) fn forget(&self) -> Result<(), DeviceError> {
        match self {
            Self::One { device, .. } => device.forget(),
            Self::Many { files, .. } => {
                let mut paths = (0..files.files()).map(|number| files.path(number));
                paths.try_for_each(|path| RawFile::open(&path, OpenMode::Read, false)?.forget())
            }
        }
    }

    /// Whether reads and writes go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        match self {
            Self::One { device, .. } => device.is_direct(),
            Self::Many { direct, .. } => *direct,
        }
    }
}

impl TargetError {
    pub(super) fn searching(dir: &Path, source: io::Error) -> Self {
        Self::Search { dir: dir.to_owned(), source }
    }

    pub(super) fn making(dir: &Path, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => Some("name a directory that you may write to"),
            io::ErrorKind::ReadOnlyFilesystem => {
                Some("it is mounted read-only: name a large file in it instead")
            }
            io::ErrorKind::AlreadyExists => Some("remove what an earlier run left there"),
            _ => None,
        };
        Self::Make { dir: dir.to_owned(), hint, source }
    }
}

fn make(
    dir: &Path,
    wanted: &TargetNeeds,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<FileDevice, TargetError> {
    let size = ByteCount(units::align_down(wanted.shape.each.0, 4096));
    let path = dir.join(name());
    // Fails if the file exists: a file of another program is never opened.
    no_links::create_file(&path).map_err(|source| TargetError::making(dir, source))?;
    let opened = no_links::preallocate(&path, size).and_then(|()| {
        let open = |direct, write| {
            let (exclusive, links) = (false, Links::Refused);
            FileDevice::open(&path, OpenOptions { direct, write, exclusive, links })
        };
        Ok((open(true, true)?, open(wanted.direct, wanted.writing != WriteAccess::No)?))
    });
    // From here on the file exists as long as it is open.
    let unnamed = no_links::remove_file(&path);
    let (writer, used) = opened?;
    unnamed.map_err(|source| TargetError::making(dir, source))?;
    fill(&writer, size, 0, go_on)?;
    Ok(used)
}

/// Writes incompressible bytes, different in each file, and flushes them to the disk.
pub(super) fn fill(
    device: &FileDevice,
    size: ByteCount,
    number: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), TargetError> {
    let mut piece = vec![0; usize::try_from(size.0).unwrap_or(PIECE).min(PIECE)];
    let mut at = 0;
    while at < size.0 {
        if !go_on(at) {
            return Err(TargetError::Interrupted);
        }
        let len = usize::try_from(size.0 - at).unwrap_or(usize::MAX).min(PIECE);
        verify::fill(&mut piece[..len], number, at, 0);
        device.write_at(at, &piece[..len])?;
        at += len as u64;
    }
    Ok(device.flush()?)
}

const PIECE: usize = 4 << 20;
