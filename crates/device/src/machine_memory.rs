//! The memory that this process may use: the machine's, or less where a control group limits it.

use std::fs;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The memory that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// The memory of the machine.
    pub machine: ByteCount,
    /// The limit of the process's control group or one above it, if that is less.
    pub limit: Option<ByteCount>,
}

/// Where the limits of this process's memory are to be read again and again. A process that is
/// moved to another control group has other limits, which are not seen.
#[derive(Clone, Debug)]
pub struct MemoryLimits {
    machine: ByteCount,
    files: Vec<PathBuf>,
}

impl MemoryLimits {
    /// Asks the kernel; `None` where it does not tell.
    pub fn of_this_process() -> Option<Self> {
        let known = rustix::system::sysinfo();
        // A service whose `/proc` shows only processes has no `/proc/meminfo`.
        let machine = known.totalram.saturating_mul(known.mem_unit.into());
        (machine > 0).then(|| Self::found_by(ByteCount(machine), &read_file))
    }

    /// The memory at present.
    pub fn read(&self) -> MachineMemory {
        self.read_by(&read_file)
    }

    fn found_by(machine: ByteCount, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let files = groups.lines().flat_map(files_of);
        let files = files.filter(|path| read(path).is_some()).collect();
        Self { machine, files }
    }

    fn read_by(&self, read: &dyn Fn(&Path) -> Option<String>) -> MachineMemory {
        let texts = self.files.iter().filter_map(|path| read(path));
        // "max", and in version 1 a number near 2^63, mean that there is none.
        let limits = texts.filter_map(|text| text.trim().parse().ok().map(ByteCount));
        let limit = limits.filter(|limit| *limit < self.machine).min();
        MachineMemory { machine: self.machine, limit }
    }
}

fn read_file(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

impl MachineMemory {
    /// The smaller of the two.
    pub fn usable(self) -> ByteCount {
        self.limit.unwrap_or(self.machine)
    }
}

/// The files that may hold a limit of a group, given as a line of `/proc/self/cgroup`: its own and
/// those of the groups above it.
fn files_of(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (roots, files): (&[&str], &[&str]) = match controllers {
        // Above `high` the kernel slows a process down, above `max` it ends it.
        "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], &["memory.max", "memory.high"]),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (&["/sys/fs/cgroup/memory"], &["memory.limit_in_bytes"])
        }
        _ => return Vec::new(),
    };
    let group = Path::new(group.trim_start_matches('/'));
    let of_root = |root: &&str| {
        let root = PathBuf::from(root);
        let groups = group.ancestors().map(move |group| root.join(group));
        groups.flat_map(|group| files.iter().map(move |file| group.join(file))).collect::<Vec<_>>()
    };
    roots.iter().flat_map(of_root).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_machine_is_that_of_proc_meminfo() {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
        let kib: u64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
        let known = MemoryLimits::of_this_process().unwrap().read();
        assert_eq!(known.machine, ByteCount::kib(kib));
    }

    // Of a machine of 8 GiB with these files.
    fn memory(files: &[(&str, &str)]) -> MachineMemory {
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        MemoryLimits::found_by(ByteCount::mib(8192), &read).read_by(&read)
    }

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let gib = |count: u64| ByteCount::mib(1024 * count);
        let known = memory(&[]);
        assert_eq!((known.machine, known.limit, known.usable()), (gib(8), None, gib(8)));
        let version_2 = ("/proc/self/cgroup", "0::/system.slice/tenuto.service\n");
        let limited = memory(&[
            version_2,
            ("/sys/fs/cgroup/system.slice/tenuto.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "3221225472\n"),
            ("/sys/fs/cgroup/system.slice/memory.high", "2147483648\n"),
        ]);
        assert_eq!(limited.usable(), gib(2));
        let version_1 = ("/proc/self/cgroup", "7:blkio:/b\n5:cpuset,memory:/a/b\n");
        let limited = memory(&[
            version_1,
            ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(limited.limit, Some(gib(1)));
    }
}
