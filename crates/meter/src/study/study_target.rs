//! The target of a study.

use super::{Cache, FileLayout, Setting, Study};
use crate::error::MeterError;
use device::BlockDevice;
use device::{FileDevice, OpenOptions, describe, space};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The target of a study.
#[derive(Clone, Debug)]
pub enum StudyTarget {
    /// Directories in which files are made and removed afterwards.
    Directories(Vec<PathBuf>),
    /// An existing file or block device, which is only read.
    One {
        /// The path of the file or device.
        path: PathBuf,
        /// Size of the whole device.
        size: ByteCount,
    },
    /// As many disks of this model as a setting needs.
    Simulated(Box<DiskModel>),
}

impl StudyTarget {
    /// The total size of the files that are made for a setting, unless another one is wanted.
    pub const USUAL_SIZE: ByteCount = ByteCount(1 << 30);

    /// The target at these paths: directories, or one file or device.
    pub fn at(paths: Vec<PathBuf>) -> Result<Self, MeterError> {
        // The files in it are opened without following links. What does not exist is named below.
        let paths = paths.into_iter().map(|path| path.canonicalize().unwrap_or(path));
        let paths: Vec<PathBuf> = paths.collect();
        if let [path] = paths.as_slice()
            && !path.is_dir()
        {
            let path = path.clone();
            // Holes are read without the disk.
            if describe(&path)?.is_sparse() {
                let message = format!("parts of {} have no place on disk", path.display());
                return Err(MeterError::usage(message).hint("fill the file first"));
            }
            let options = OpenOptions { direct: false, ..OpenOptions::default() };
            let size = FileDevice::open(&path, options)?.geometry().size;
            return Ok(Self::One { path, size });
        }
        if let [one, other] = paths.as_slice()
            // Two names of one directory would be measured as two nodes.
            && one == other
        {
            let hint = "name a directory on another one with --second";
            let message = format!("{} is one node", one.display());
            return Err(MeterError::usage(message).hint(hint));
        }
        match paths.iter().find(|path| !path.is_dir()) {
            None => Ok(Self::Directories(paths)),
            Some(path) => Err(MeterError::usage(format!("{} is no directory", path.display()))
                .hint("two nodes are two directories")),
        }
    }

    /// The total size of the files of a study: `wanted`, or the size of a target where nothing is
    /// made. Without `wanted`, a simulated disk is used as a whole where the study is about places
    /// on it, and else [`StudyTarget::USUAL_SIZE`].
    pub fn size(&self, study: &Study, wanted: Option<ByteCount>) -> ByteCount {
        match (self, wanted) {
            (Self::One { size, .. }, _) => *size,
            (_, Some(wanted)) => wanted,
            (Self::Simulated(model), None) if study.whole_disk => model.capacity(),
            (Self::Directories(_) | Self::Simulated(_), None) => Self::USUAL_SIZE,
        }
    }

    /// Checks that these settings are possible on this target.
    pub(super) fn fits(&self, settings: &[Setting]) -> Result<(), MeterError> {
        let any = |of: fn(&Setting) -> bool| settings.iter().any(of);
        let unfit = |why, hint| Err(MeterError::usage(why).hint(hint));
        match self {
            Self::Simulated(_) if any(|setting| setting.cache != Cache::Passed) => {
                unfit("a simulated disk has no page cache before it", "name a directory or a file")
            }
            Self::Simulated(model) => {
                let size = settings.iter().map(Setting::bytes).max().unwrap_or_default();
                if size > model.capacity().0 {
                    let message = format!("{} do not fit on {}", ByteCount(size), model.name());
                    return Err(MeterError::usage(message).hint("make --size smaller"));
                }
                Ok(())
            }
            Self::One { .. }
                if any(|setting| {
                    let mix = &setting.mix;
                    mix.writes() || mix.files > 1 || setting.layout != FileLayout::InOneGo
                }) =>
            {
                unfit("this study makes and writes files of its own", "name a directory")
            }
            Self::Directories(dirs) if any(|setting| setting.nodes > 1) && dirs.len() < 2 => {
                Err(MeterError::usage(
                    "two nodes are two directories: name the other one with --second",
                ))
            }
            Self::Directories(_) | Self::One { .. } => Ok(()),
        }
    }

    /// The fill level of its file system with `still` bytes more, in percent.
    pub(super) fn used_percent(&self, still: u64) -> Result<u64, MeterError> {
        let Self::Directories(dirs) = self else { return Ok(0) };
        let there = space(dirs.first().map_or(Path::new("."), PathBuf::as_path))?;
        let used = there.total.0.saturating_sub(there.free.0).saturating_add(still);
        Ok(used.saturating_mul(100) / there.total.0.max(1))
    }
}
