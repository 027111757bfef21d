//! The properties of a block device under `/sys/dev/block`. Values that a kernel does not publish
//! are `None`; nothing here opens the device.
//!
//! ```text
//!   /sys/dev/block/8:1 ─▶ .../block/sda/sda1     partition, start, size, holders/
//!                         .../block/sda          sda1/, queue/, device/model, holders/, loop/
//! ```

use rustix::fs::{Dev, major, minor};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A disk or a partition of one.
#[derive(Clone, Debug)]
pub(crate) struct SysfsDisk {
    /// The device's own directory: that of the partition, if it is one.
    own: PathBuf,
    /// The directory of the whole disk.
    whole: PathBuf,
}

impl SysfsDisk {
    /// The block device with this number; `None` if there is no single disk (a network or layered
    /// file system).
    pub(crate) fn of_number(number: Dev) -> Option<Self> {
        let (major, minor) = (major(number), minor(number));
        Self::at(Path::new(&format!("/sys/dev/block/{major}:{minor}")))
    }

    /// The block device with this directory.
    pub(crate) fn at(directory: &Path) -> Option<Self> {
        let own = fs::canonicalize(directory).ok()?;
        let whole =
            if own.join("partition").exists() { own.parent()?.to_owned() } else { own.clone() };
        Some(Self { own, whole })
    }

    /// The disks that a volume or an array is made of; a disk itself.
    pub(crate) fn lowest(&self) -> Vec<Self> {
        let parts = entries(&self.own.join("slaves"));
        if parts.is_empty() {
            return vec![self.clone()];
        }
        parts.iter().filter_map(|part| Self::at(part)).flat_map(|part| part.lowest()).collect()
    }

    /// The name in the kernel: `sda1`.
    pub(crate) fn name(&self) -> String {
        file_name(&self.own)
    }

    /// The disk of a partition: `sda`.
    pub(crate) fn partition_of(&self) -> Option<String> {
        (self.own != self.whole).then(|| file_name(&self.whole))
    }

    /// Whether seeks cost time; false if unknown.
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

    /// The size in units of 512 bytes.
    pub(crate) fn sectors(&self) -> Option<u64> {
        value(&self.own.join("size"))
    }

    /// A value of the whole disk, by its path below it.
    pub(crate) fn attribute<T: FromStr>(&self, path: &str) -> Option<T> {
        value(&self.whole.join(path))
    }

    /// The devices (device mapper, RAID and others) that use the disk: those of a partition itself,
    /// or those of a disk and its partitions.
    pub(crate) fn holders(&self) -> Vec<String> {
        let all = self.parts().into_iter().flat_map(|part| entries(&part.join("holders")));
        all.map(|holder| file_name(&holder)).collect()
    }

    /// The numbers of the device and, for a whole disk, of its partitions, in the kernel's
    /// notation: `8:1`.
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
