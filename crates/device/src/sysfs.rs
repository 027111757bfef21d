//! What the kernel publishes of a block device under `/sys/dev/block`. Values that a kernel does
//! not publish are `None`; nothing here opens the device.
//!
//! ```text
//!   /sys/dev/block/8:1 ─▶ .../block/sda/sda1     partition, start, size, holders/
//!                         .../block/sda          sda1/, queue/, device/model, holders/, loop/
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A disk or a partition of one.
#[derive(Clone, Debug)]
pub(crate) struct SysfsDisk {
    /// The device's own directory: a partition's, if it is one.
    own: PathBuf,
    /// The whole disk's directory.
    whole: PathBuf,
}

impl SysfsDisk {
    /// The block device with this number; `None` for what lies on no single disk (a network or
    /// layered file system).
    pub(crate) fn of_number((major, minor): (u32, u32)) -> Option<Self> {
        let own = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        let whole =
            if own.join("partition").exists() { own.parent()?.to_owned() } else { own.clone() };
        Some(Self { own, whole })
    }

    /// `sda1`.
    pub(crate) fn name(&self) -> String {
        file_name(&self.own)
    }

    /// `sda`, for a partition of it.
    pub(crate) fn partition_of(&self) -> Option<String> {
        (self.own != self.whole).then(|| file_name(&self.whole))
    }

    /// Whether seeks cost time. Unknown counts as not.
    pub(crate) fn rotational(&self) -> bool {
        self.queue("rotational") == Some(1)
    }

    /// Whether there are queues that can be polled for completions.
    pub(crate) fn polls(&self) -> bool {
        self.queue("io_poll") == Some(1)
    }

    /// A value of the whole disk's request queue.
    pub(crate) fn queue<T: FromStr>(&self, name: &str) -> Option<T> {
        value(&self.whole.join("queue").join(name))
    }

    /// Its size in units of 512 bytes.
    pub(crate) fn sectors(&self) -> Option<u64> {
        value(&self.own.join("size"))
    }

    /// A value of the whole disk, by its path below it.
    pub(crate) fn attribute<T: FromStr>(&self, path: &str) -> Option<T> {
        value(&self.whole.join(path))
    }

    /// Device mapper, RAID and the like that stand on the disk or on any part of it that is asked
    /// for: a partition only on itself, a disk on its partitions, too.
    pub(crate) fn holders(&self) -> Vec<String> {
        let all = self.parts().into_iter().flat_map(|part| entries(&part.join("holders")));
        all.map(|holder| file_name(&holder)).collect()
    }

    /// Its number and, of a whole disk, those of its partitions, as the kernel writes them: `8:1`.
    pub(crate) fn numbers(&self) -> Vec<String> {
        self.parts().iter().filter_map(|part| value(&part.join("dev"))).collect()
    }

    fn parts(&self) -> Vec<PathBuf> {
        let partitions = entries(&self.own).into_iter().filter(|at| at.join("partition").exists());
        std::iter::once(self.own.clone()).chain(partitions).collect()
    }
}

fn value<T: FromStr>(path: &Path) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    if text.is_empty() { None } else { text.parse().ok() }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
