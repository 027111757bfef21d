//! Where a study is made.

use super::{Cache, FileLayout, Setting, StudyError};
use device::BlockDevice;
use device::{FileDevice, OpenOptions, describe, space};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// Where a study is made.
#[derive(Clone, Debug)]
pub enum StudyTarget {
    /// Files are made in these directories and gone afterwards.
    Directories(Vec<PathBuf>),
    /// A file or a block device that is there, and only read.
    One {
        /// Which.
        path: PathBuf,
        /// All of it.
        size: ByteCount,
    },
    /// As many disks of a model as it takes.
    Simulated(Box<DiskModel>),
}

impl StudyTarget {
    /// What is at these paths: directories, or one file or device.
    pub fn at(paths: Vec<PathBuf>) -> Result<Self, StudyError> {
        if let [path] = paths.as_slice()
            && !path.is_dir()
        {
            let path = path.clone();
            if describe(&path)?.is_sparse() {
                return Err(StudyError::Unfit(format!(
                    "parts of {} have no place on disk; fill the file first",
                    path.display()
                )));
            }
            let options = OpenOptions { direct: false, write: false, exclusive: false };
            let size = FileDevice::open(&path, options)?.geometry().size;
            return Ok(Self::One { path, size });
        }
        if let [one, other] = paths.as_slice()
            && one.canonicalize().ok() == other.canonicalize().ok()
        {
            return Err(StudyError::Unfit(format!(
                "{} is one node; name a directory on another one with --second",
                one.display()
            )));
        }
        match paths.iter().find(|path| !path.is_dir()) {
            None => Ok(Self::Directories(paths)),
            Some(path) => Err(StudyError::Unfit(format!(
                "{} is no directory; two nodes are two directories",
                path.display()
            ))),
        }
    }

    /// The size of files together: of what is there all, where nothing is made.
    pub fn size(&self, wanted: ByteCount) -> ByteCount {
        match self {
            Self::One { size, .. } => *size,
            Self::Directories(_) | Self::Simulated(_) => wanted,
        }
    }

    /// Whether these can be tried here.
    pub(super) fn fits(&self, settings: &[Setting]) -> Result<(), StudyError> {
        let any = |of: fn(&Setting) -> bool| settings.iter().any(of);
        let unfit = |why: &str| Err(StudyError::Unfit(why.to_owned()));
        match self {
            Self::Simulated(_) if any(|setting| setting.cache != Cache::Passed) => {
                unfit("a simulated disk has no page cache before it; name a directory or a file")
            }
            Self::Simulated(model) => {
                let size = settings.iter().map(Setting::bytes).max().unwrap_or_default();
                if size > model.capacity().0 {
                    return Err(StudyError::Unfit(format!(
                        "{} do not fit on {}; make --size smaller",
                        ByteCount(size),
                        model.name()
                    )));
                }
                Ok(())
            }
            Self::One { .. }
                if any(|setting| {
                    let mix = &setting.mix;
                    mix.writes() || mix.files > 1 || setting.lie != FileLayout::InOneGo
                }) =>
            {
                unfit("this study makes and writes files of its own; name a directory")
            }
            Self::Directories(dirs) if any(|setting| setting.nodes > 1) && dirs.len() < 2 => {
                unfit("two nodes are two directories: name the other one with --second")
            }
            Self::Directories(_) | Self::One { .. } => Ok(()),
        }
    }

    /// How full its file system is in any case, in per cent.
    pub(super) fn used_percent(&self, still: u64) -> Result<u64, StudyError> {
        let Self::Directories(dirs) = self else { return Ok(0) };
        let there = space(dirs.first().map_or(Path::new("."), PathBuf::as_path))?;
        let used = there.total.0.saturating_sub(there.free.0).saturating_add(still);
        Ok(used.saturating_mul(100) / there.total.0.max(1))
    }
}
