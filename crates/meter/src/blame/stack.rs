//! The storage stack beneath a path: its file system and the block devices beneath that.
//!
//! ```text
//!   /mnt/films ─▶ mount /mnt/films ─▶ loop0 ─▶ (its file lies on) vda1 ─▶ vda
//!                                     dm-0  ─▶ (slaves) sda, sdb
//! ```

use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The file system beneath a path and the block devices beneath that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stack {
    /// Block devices by the kernel's names, from the top down, with a partition's disk in place of
    /// the partition. Empty for network file systems and file systems in memory.
    pub(crate) devices: Vec<String>,
    /// The mount point of the file system; `None` for a block device.
    pub(crate) mount: Option<String>,
    /// The file system's type: `ext4`, `nfs4`, `fuse.sshfs`.
    pub(crate) file_system: Option<String>,
}

impl Stack {
    /// Whether the storage is in this machine: devices are beneath it, or its memory.
    pub(crate) fn is_local(&self) -> bool {
        let memory = |kind: &String| ["tmpfs", "ramfs"].contains(&kind.as_str());
        !self.devices.is_empty() || self.file_system.as_ref().is_some_and(memory)
    }

    /// The number of operations of this size that fit into the uppermost device's queue; `None` if
    /// it is unknown. The kernel blocks a program that queues more, which delays all its other
    /// operations.
    pub(crate) fn takes(&self, operation: ByteCount) -> Option<u32> {
        let layered = |name: &&String| !Path::new("/sys/block").join(name).join("mq").exists();
        let read = |name: &String, file: &str| -> Option<u64> {
            let path = Path::new("/sys/block").join(name).join("queue").join(file);
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        let room = |name: &String| {
            // Buffers are scattered in memory: a segment certainly holds one page, and no more.
            let segments = read(name, "max_segments")?.saturating_mul(PAGE_KIB);
            Some((read(name, "nr_requests")?, read(name, "max_sectors_kb")?.min(segments)))
        };
        // A layer without a queue passes all requests on to the devices beneath it, in parallel.
        let own = self.devices.first().filter(|name| !layered(name));
        let beneath = self.devices.iter().filter(|name| !layered(name));
        let queues: Vec<(u64, u64)> = match own {
            Some(name) => vec![room(name)?],
            None => beneath.map(room).collect::<Option<_>>()?,
        };
        fits(&queues, operation)
    }
}

/// The number of operations that fit. `queues` has the requests that each queue takes and the
/// largest request in KiB.
fn fits(queues: &[(u64, u64)], operation: ByteCount) -> Option<u32> {
    if queues.is_empty() {
        return None;
    }
    let of = |(requests, kib): &(u64, u64)| {
        // An unaligned operation may touch one request more.
        let pieces = operation.0.div_ceil((kib << 10).max(1)) + u64::from(operation.0 > kib << 10);
        requests * USED_OF_4 / 4 / pieces.max(1)
    };
    let all: u64 = queues.iter().map(of).sum();
    Some(u32::try_from(all).unwrap_or(u32::MAX).max(1))
}

const PAGE_KIB: u64 = 4;

/// Share of a device's queue that the meter uses, in quarters: split files, and other programs,
/// need some of the rest.
const USED_OF_4: u64 = 3;

/// The stack beneath a file, a directory or a block device. Unknown layers are left out.
pub(crate) fn beneath(path: &Path) -> Stack {
    let mut stack = Stack::default();
    let Ok(about) = fs::metadata(path) else { return stack };
    let is_device = about.file_type().is_block_device();
    let device = if is_device { about.rdev() } else { about.dev() };
    let number = format!("{}:{}", major(device), minor(device));
    if !is_device {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some((mount, kind)) = mount_of(&table, &number, &path) {
            (stack.mount, stack.file_system) = (Some(mount), Some(kind));
        }
    }
    follow(&PathBuf::from("/sys/dev/block").join(number), DEEPEST, &mut stack.devices);
    stack
}

/// Adds the device that `link` leads to, and the devices beneath it.
fn follow(link: &Path, deeper: u32, devices: &mut Vec<String>) {
    let Ok(own) = fs::canonicalize(link) else { return };
    let partition = own.join("partition").exists();
    // Queues and counters belong to the disk; a partition has none of its own.
    let Some(whole) = (if partition { own.parent() } else { Some(own.as_path()) }) else { return };
    let Some(name) = whole.file_name().map(|name| name.to_string_lossy().into_owned()) else {
        return;
    };
    if devices.contains(&name) || deeper == 0 {
        return;
    }
    devices.push(name);
    if let Ok(file) = fs::read_to_string(whole.join("loop/backing_file")) {
        // A loop device works as fast as the file system that holds its file.
        let below = beneath(Path::new(file.trim_end())).devices;
        let new: Vec<String> = below.into_iter().filter(|name| !devices.contains(name)).collect();
        devices.extend(new);
    }
    for slave in fs::read_dir(whole.join("slaves")).into_iter().flatten().flatten() {
        follow(&slave.path(), deeper - 1, devices);
    }
}

/// The largest number of layers that is followed: device mapper on RAID on partitions has fewer.
const DEEPEST: u32 = 8;

/// The mount point and type of the file system with device number `number` that contains `path`:
/// the longest match.
fn mount_of(table: &str, number: &str, path: &Path) -> Option<(String, String)> {
    let mounts = table.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        let at = *fields.get(4)?;
        // Bind mounts have the same number, so that the path must match as well.
        let ours = *fields.get(2)? == number && path.starts_with(at.replace("\\040", " "));
        ours.then(|| (at.to_owned(), after.split(' ').next().unwrap_or_default().to_owned()))
    });
    mounts.max_by_key(|(at, _)| at.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_with_the_number_is_chosen() {
        let table = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
30 22 0:51 / /mnt/films rw shared:9 - nfs4 filer:/films rw,vers=4.2
31 22 0:51 /a /mnt/films/a rw - nfs4 filer:/films rw,vers=4.2
32 22 8:2 /b /mnt/films/b rw - ext4 /dev/sda2 rw
";
        let at = |number: &str, path: &str| mount_of(table, number, Path::new(path));
        let found = |at: &str, kind: &str| Some((at.to_owned(), kind.to_owned()));
        assert_eq!(at("0:51", "/mnt/films/x"), found("/mnt/films", "nfs4"));
        assert_eq!(at("0:51", "/mnt/films/a/x"), found("/mnt/films/a", "nfs4"));
        assert_eq!(at("8:2", "/srv/x"), found("/", "ext4"));
        assert_eq!(at("8:3", "/srv/x"), None);
    }

    #[test]
    fn a_queue_takes_fewer_operations_that_are_split() {
        let kib = |count: u64| ByteCount(count << 10);
        let cases: [(&[_], u64, Option<u32>); 6] = [
            (&[(256, 4096)], 250, Some(192)),
            (&[(256, 1280)], 2560, Some(64)),
            (&[(64, 512), (64, 512)], 256, Some(96)),
            (&[(2, 4)], 4096, Some(1)),
            (&[(256, 0)], 4, Some(1)),
            (&[], 4, None),
        ];
        for (queues, size, room) in cases {
            assert_eq!(fits(queues, kib(size)), room, "{queues:?} {size}");
        }
        assert_eq!(Stack::default().takes(kib(4)), None);
    }

    #[test]
    fn a_missing_path_has_an_empty_stack() {
        assert_eq!(beneath(Path::new("/nowhere/at/all")), Stack::default());
    }
}
