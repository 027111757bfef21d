//! The kernel's counters of the disks beneath a device, from `/sys/block`: errors and timeouts of
//! commands, which a retry hides from the reader, and the time for which the disk had work.
//!
//! ```text
//!   /sys/block/dm-0/slaves/sda1 ─▶ sda   device/ioerr_cnt   0x2       SCSI, SATA, SAS only
//!                  /slaves/sdb  ─▶ sdb   device/iotmo_cnt   0x0
//!   /sys/block/dm-0/stat                 field 10: milliseconds
//! ```

use crate::sysfs::SysfsDisk;
use std::time::Duration;

/// The kernel's counters of the disks beneath a device, since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Commands that ended with an error, also those that the disk does not know; `None` where no
    /// disk counts them.
    pub errors: Option<u64>,
    /// Commands that the disk did not answer in time; `None` where no disk counts them.
    pub timeouts: Option<u64>,
    /// Time for which the device had at least one request.
    pub busy: Option<Duration>,
}

impl KernelCounters {
    pub(crate) fn of(device: &SysfsDisk) -> Self {
        let disks = device.lowest();
        let sum = |name: &str| {
            let counted = disks.iter().filter_map(|disk| counter(&disk.attribute::<String>(name)?));
            counted.fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0) + count))
        };
        Self {
            errors: sum("device/ioerr_cnt"),
            timeouts: sum("device/iotmo_cnt"),
            busy: device.attribute::<String>("stat").and_then(|stat| busy(&stat)),
        }
    }
}

/// A number as the SCSI layer writes it: `0x1f`.
fn counter(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The time of a line of `stat`.
fn busy(stat: &str) -> Option<Duration> {
    let milliseconds = stat.split_whitespace().nth(BUSY)?.parse().ok()?;
    Some(Duration::from_millis(milliseconds))
}

/// Index of the time with at least one request (`io_ticks`) in `stat`.
const BUSY: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// Two disks, one of them without counters, and a volume over them.
    fn sysfs() -> PathBuf {
        let root = std::env::temp_dir().join(format!("tenuto-counters-{}", std::process::id()));
        let files = [
            ("sda/device/ioerr_cnt", "0x1f\n"),
            ("sda/device/iotmo_cnt", "0x2\n"),
            ("sda/sda1/partition", "1\n"),
            ("sdb/device/ioerr_cnt", "0x1\n"),
            ("dm-0/stat", "  9  1  2  3  4  5  6  7  8  4264052  10 11 12 13 14 15 16\n"),
            ("nvme0n1/stat", "broken\n"),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.join("dm-0/slaves")).unwrap();
        for (name, to) in [("sda1", "sda/sda1"), ("sdb", "sdb")] {
            let link = root.join("dm-0/slaves").join(name);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(root.join(to), link).unwrap();
        }
        root
    }

    #[test]
    fn counters_are_those_of_all_disks_beneath_and_missing_where_there_are_none() {
        let root = sysfs();
        let of = |name: &str| {
            let KernelCounters { errors, timeouts, busy } =
                KernelCounters::of(&SysfsDisk::at(&root.join(name)).unwrap());
            (errors, timeouts, busy.map(|busy| busy.as_millis()))
        };
        assert_eq!(of("sda"), (Some(31), Some(2), None));
        assert_eq!(of("sda/sda1"), (Some(31), Some(2), None), "those of the disk");
        assert_eq!(of("dm-0"), (Some(32), Some(2), Some(4_264_052)));
        assert_eq!(of("nvme0n1"), (None, None, None));
        fs::remove_dir_all(root).unwrap();
    }
}
