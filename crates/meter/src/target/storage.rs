//! The storage of a target: files made for the run in a directory, or an existing file or device.
//!
//! A single file that is made has a name only while it is being opened: it disappears however the
//! program ends. Many files are [`TestFiles`]. All are filled with incompressible bytes, by direct
//! I/O where the file system allows it, and nothing else is written anywhere.

use super::test_files::{TestFiles, name};
use super::verify;
use super::{FileNames, FileSet, FrameNames, Layout, LeftBehind};
use crate::error::MeterError;
use device::{
    BlockDevice, DeviceError, FileDevice, Links, OpenMode, OpenOptions, RawFile, describe, no_links,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use units::ByteCount;

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
    /// Receives what cannot be removed at the end.
    pub left: LeftBehind,
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

impl TargetStorage {
    /// Opens the target at `path`, in which symbolic links are refused: in a directory files are
    /// made and filled; a file or a block device is used as it is. `go_on` receives the bytes
    /// written so far.
    pub(crate) fn at(
        path: &Path,
        wanted: &TargetNeeds,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, MeterError> {
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
                let files = Arc::new(TestFiles::make(
                    (path, &wanted.left),
                    set,
                    count,
                    each,
                    names,
                    go_on,
                )?);
                Self::Many { files, layout, direct }
            });
        }
        if !layout.is_single() && path.exists() {
            let (path, layout) = (path.display(), layout.name());
            return Err(MeterError::usage(format!("{path} is one file, and {layout} takes many"))
                .hint("name a directory, or another --layout"));
        }
        if writing == WriteAccess::OwnFiles && path.exists() {
            return Err(MeterError::usage(format!("{} would be overwritten", path.display()))
                .hint("name a directory to work in, or allow it with --destroy"));
        }
        let write = writing == WriteAccess::Destructive;
        if !write && describe(path)?.is_sparse() {
            let path = path.display();
            return Err(MeterError::new(format!("parts of {path} have no place on disk"))
                .hint("fill the file first"));
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

/// An error in making a file or a directory in `dir`.
pub(super) fn cannot_make(dir: &Path, error: &io::Error) -> MeterError {
    let failed = MeterError::cannot("make a file in", dir)(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied => failed.hint("name a directory that you may write to"),
        io::ErrorKind::ReadOnlyFilesystem => {
            failed.hint("it is mounted read-only: name a large file in it instead")
        }
        io::ErrorKind::AlreadyExists => failed.hint("remove what an earlier run left there"),
        _ => failed,
    }
}

fn make(
    dir: &Path,
    wanted: &TargetNeeds,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<FileDevice, MeterError> {
    let size = ByteCount(units::align_down(wanted.shape.each.0, 4096));
    let path = dir.join(name());
    // Fails if the file exists: a file of another program is never opened.
    no_links::create_file(&path).map_err(|error| cannot_make(dir, &error))?;
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
    unnamed.map_err(|error| cannot_make(dir, &error))?;
    fill(&writer, size, 0, go_on)?;
    Ok(used)
}

/// Writes incompressible bytes, different in each file, and flushes them to the disk.
pub(super) fn fill(
    device: &FileDevice,
    size: ByteCount,
    number: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), MeterError> {
    let mut piece = vec![0; usize::try_from(size.0).unwrap_or(PIECE).min(PIECE)];
    let mut at = 0;
    while at < size.0 {
        if !go_on(at) {
            return Err(MeterError::new("interrupted: the files that were being filled are gone"));
        }
        let len = usize::try_from(size.0 - at).unwrap_or(usize::MAX).min(PIECE);
        verify::fill(&mut piece[..len], number, at, 0);
        device.write_at(at, &piece[..len])?;
        at += len as u64;
    }
    Ok(device.flush()?)
}

const PIECE: usize = 4 << 20;
