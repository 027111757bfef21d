//! Which of the kernel's ways of reading a file a queue uses.
//!
//! io_uring where it works; containers (Docker's default profile) and hardened kernels refuse it,
//! and then threads that call `pread` do the same, at more CPU time a read.

use crate::file::OpenFile;
use crate::pread::PreadQueue;
use crate::uring::UringQueue;
use crate::{DeviceError, Pool, Queue};
use std::path::Path;
use std::sync::Arc;

/// How a file's queue reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// io_uring, or `pread` where the kernel refuses that.
    #[default]
    Best,
    /// io_uring or nothing.
    Uring,
    /// Threads that call `pread`.
    Pread,
}

impl Method {
    /// The methods by the names people type.
    pub const NAMES: [(&str, Self); 3] =
        [("best", Self::Best), ("io_uring", Self::Uring), ("pread", Self::Pread)];

    /// What `TENUTO_IO` says; the best if it says nothing.
    pub(crate) fn from_environment(path: &Path) -> Result<Self, DeviceError> {
        let Some(said) = std::env::var_os(VARIABLE) else { return Ok(Self::Best) };
        let named = Self::NAMES.iter().find(|(name, _)| said == *name);
        named.map(|(_, method)| *method).ok_or_else(|| DeviceError::Unusable {
            path: path.to_owned(),
            reason: format!(
                "{VARIABLE}={} is no way to read it; say best, io_uring or pread",
                said.display()
            ),
        })
    }

    pub(crate) fn queue(
        self,
        file: &Arc<OpenFile>,
        depth: u32,
        pool: &Pool,
    ) -> Result<Box<dyn Queue>, DeviceError> {
        if self == Self::Pread {
            return Ok(Box::new(PreadQueue::new(file, depth, None)?));
        }
        match UringQueue::new(file, depth, pool) {
            Ok(queue) => Ok(Box::new(queue)),
            Err(refused) if self == Self::Best => {
                Ok(Box::new(PreadQueue::new(file, depth, Some(&refused))?))
            }
            Err(source) => Err(DeviceError::Open {
                path: file.path.clone(),
                hint: format!("; the kernel refuses io_uring, unset {VARIABLE} to do without"),
                source,
            }),
        }
    }
}

/// The environment variable that overrides the choice.
const VARIABLE: &str = "TENUTO_IO";
