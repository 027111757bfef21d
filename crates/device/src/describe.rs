//! The kernel's description of a file or block device, of the disk beneath it, and of its users.
//!
//! Nothing is opened and nothing is read from the disk, so that no permission for the device is
//! needed. A value that a kernel, a driver or a container does not publish is `None`. The disk's
//! speed is not published: `calibrate` measures it.

use crate::kind::kind_of;
use crate::mounts;
use crate::refusal::cannot_open;
use crate::sysfs::SysfsDisk;
use crate::{DeviceError, DeviceKind};
use rustix::fs::{major, minor};
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The description of a file or block device.
#[derive(Clone, Debug)]
pub struct Description {
    /// Whether it is a file or a block device.
    pub kind: DeviceKind,
    /// The length of the file or the size of the device.
    pub size: ByteCount,
    /// Bytes of a file that are allocated on disk; a file with less than `size` is sparse.
    pub allocated: Option<ByteCount>,
    /// The disk or partition that it is, or that contains it. `None` for network and layered file
    /// systems.
    pub disk: Option<DiskFacts>,
    /// The users of a block device, or of a partition of it. Empty for files.
    pub uses: Vec<DeviceUse>,
}

/// A disk or partition, as the kernel describes it.
#[derive(Clone, Debug)]
pub struct DiskFacts {
    /// The name in the kernel: `sda1`.
    pub name: String,
    /// The whole disk, `sda`, if this is a partition.
    pub partition_of: Option<String>,
    /// Maker and model as the disk gives them.
    pub model: Option<String>,
    /// The file beneath a loop device.
    pub backing_file: Option<String>,
    /// The logical block size, of which every transfer is a multiple.
    pub logical_block: Option<u32>,
    /// The physical block size; smaller writes are read, changed and written back.
    pub physical_block: Option<u32>,
    /// The smallest transfer in bytes without a penalty (of a RAID: its chunk).
    pub minimum_transfer: Option<u32>,
    /// The transfer in bytes that keeps all parts busy (of a RAID: its stripe). `None` if unknown.
    pub optimal_transfer: Option<u32>,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// `none`, `host-aware` or `host-managed`: whether zones must be written from start to end.
    pub zoned: Option<String>,
    /// The size of a zone.
    pub zone_size: Option<ByteCount>,
    /// The limits on requests to the disk.
    pub queue: QueueLimits,
}

/// The kernel's limits on requests to a disk.
#[derive(Clone, Debug, Default)]
pub struct QueueLimits {
    /// The largest request; larger reads are split.
    pub largest_request: Option<ByteCount>,
    /// The largest request that the hardware takes.
    pub largest_hardware_request: Option<ByteCount>,
    /// The largest number of memory segments in a request; a read to scattered memory is split
    /// there.
    pub segments: Option<u32>,
    /// The number of requests that may wait in the kernel.
    pub requests: Option<u32>,
    /// The kernel's read-ahead for buffered sequential reads.
    pub read_ahead: Option<ByteCount>,
    /// The active I/O scheduler: `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// `write back` (flushes are needed) or `write through`.
    pub write_cache: Option<String>,
    /// Whether completions can be polled for.
    pub polls: bool,
}

/// A user of a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// A file system on it is mounted here.
    Mounted(PathBuf),
    /// The kernel swaps to it.
    Swap,
    /// Another block device uses it: RAID, device mapper, ...
    Under(String),
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted(at) => write!(f, "mounted on {}", at.display()),
            Self::Swap => f.write_str("in use as swap"),
            Self::Under(name) => write!(f, "part of {name}"),
        }
    }
}

impl Description {
    /// Whether parts of the file are not allocated: a read of them does not reach the disk.
    pub fn is_sparse(&self) -> bool {
        self.allocated.is_some_and(|allocated| allocated < self.size)
    }
}

/// Describes the file or block device at `path`.
///
/// # Errors
/// Fails if there is nothing, or neither a regular file nor a block device.
pub fn describe(path: &Path) -> Result<Description, DeviceError> {
    let about = fs::metadata(path).map_err(|e| cannot_open(path, e))?;
    let kind = kind_of(path, about.file_type())?;
    let number = match kind {
        DeviceKind::Block => about.rdev(),
        _ => about.dev(),
    };
    let disk = SysfsDisk::of_number(number);
    let uses = match (&disk, kind) {
        (Some(disk), DeviceKind::Block) => uses(disk),
        _ => Vec::new(),
    };
    Ok(Description {
        kind,
        size: size(kind, &about, disk.as_ref()),
        allocated: (kind == DeviceKind::File).then(|| ByteCount(about.blocks() * STAT_BLOCK)),
        disk: disk.as_ref().map(facts),
        uses,
    })
}

fn size(kind: DeviceKind, about: &Metadata, disk: Option<&SysfsDisk>) -> ByteCount {
    match kind {
        DeviceKind::Block => {
            ByteCount(disk.and_then(SysfsDisk::sectors).unwrap_or_default() * STAT_BLOCK)
        }
        _ => ByteCount(about.len()),
    }
}

fn facts(disk: &SysfsDisk) -> DiskFacts {
    let zoned: Option<String> = disk.queue("zoned");
    let sectors = disk.queue::<u64>("chunk_sectors");
    // For a RAID without zones the value has another meaning.
    let zone_size = sectors.filter(|_| zoned.as_ref().is_some_and(|zoned| zoned != "none"));
    let kib = |name: &str| disk.queue::<u64>(name).map(ByteCount::kib);
    let maker: Option<String> = disk.attribute("device/vendor");
    let model: Option<String> = disk.attribute("device/model");
    DiskFacts {
        name: disk.name(),
        partition_of: disk.partition_of(),
        model: match (maker, model) {
            // Behind a SATA bridge the maker is the name of the bus.
            (Some(maker), Some(model)) if maker != "ATA" => Some(format!("{maker} {model}")),
            (_, model) => model,
        },
        backing_file: disk.attribute("loop/backing_file"),
        logical_block: disk.queue("logical_block_size"),
        physical_block: disk.queue("physical_block_size"),
        minimum_transfer: disk.queue("minimum_io_size"),
        optimal_transfer: disk.queue("optimal_io_size").filter(|size| *size > 0),
        rotational: disk.rotational(),
        zoned,
        zone_size: zone_size.map(|sectors| ByteCount(sectors * STAT_BLOCK)),
        queue: QueueLimits {
            largest_request: kib("max_sectors_kb"),
            largest_hardware_request: kib("max_hw_sectors_kb"),
            segments: disk.queue("max_segments"),
            requests: disk.queue("nr_requests"),
            read_ahead: kib("read_ahead_kb"),
            scheduler: disk.queue::<String>("scheduler").map(|all| in_force(&all)),
            write_cache: disk.queue("write_cache"),
            polls: disk.polls(),
        },
    }
}

/// The name in brackets: `mq-deadline` in `none [mq-deadline] kyber`.
fn in_force(all: &str) -> String {
    let marked = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(all, |(name, _)| name).to_owned()
}

fn uses(disk: &SysfsDisk) -> Vec<DeviceUse> {
    let numbers = disk.numbers();
    let mounted = mounts::all().unwrap_or_default().into_iter();
    let here = mounted.filter(|mount| numbers.contains(&mount.number)).map(|mount| mount.at);
    let mut uses: Vec<DeviceUse> = here.map(DeviceUse::Mounted).collect();
    uses.dedup();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let ours = |path: &str| {
        let number = fs::metadata(path).map(|about| about.rdev());
        number.is_ok_and(|number| numbers.contains(&format!("{}:{}", major(number), minor(number))))
    };
    let is_swap = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(ours);
    uses.extend(is_swap.then_some(DeviceUse::Swap));
    uses.extend(disk.holders().into_iter().map(DeviceUse::Under));
    uses
}

/// The unit of `stat` and sysfs, whatever the disk's block size.
pub(crate) const STAT_BLOCK: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_scheduler_is_the_one_in_brackets() {
        assert_eq!(in_force("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(in_force("none"), "none");
    }
}
