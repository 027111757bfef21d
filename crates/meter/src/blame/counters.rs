//! The kernel's counters at one moment.

use super::proc::{
    DiskCounters, Interface, NfsMount, Tcp, Ticks, Waiting, diskstats, mountstats, net_dev,
    schedstat, stat, tcp,
};
use super::stack::Stack;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime};

/// The counters, read one after another, which takes less than a millisecond.
#[derive(Clone, Debug)]
pub(crate) struct SystemCounters {
    pub(super) at: Instant,
    /// The wall clock, which may be set while a run is on.
    pub(super) wall: SystemTime,
    pub(super) processors: Vec<Ticks>,
    /// Counters of the block devices that were requested, in that order.
    pub(super) disks: Vec<DiskCounters>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) tcp: Option<Tcp>,
    pub(super) nfs: Option<NfsMount>,
    /// Processor waiting time by thread of this process.
    pub(super) threads: BTreeMap<u32, Waiting>,
}

impl SystemCounters {
    /// Reads the counters of the machine and of the devices and the mount of `stack`.
    pub(crate) fn now(stack: &Stack) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        // Side by side, because a step of the wall clock is the difference of their differences.
        let (wall, at) = (SystemTime::now(), Instant::now());
        let disks = if stack.devices.is_empty() {
            Vec::new()
        } else {
            let all = diskstats(&read("/proc/diskstats"));
            let of = |name: &String| all.iter().find(|disk| disk.name == *name).cloned();
            stack.devices.iter().filter_map(of).collect()
        };
        // The file lists every mount of the machine, so it is read only where it has what is
        // wanted.
        let nfs = stack.mount.as_deref().filter(|_| is_nfs(stack));
        Self {
            at,
            wall,
            processors: stat(&read("/proc/stat")),
            disks,
            interfaces: net_dev(&read("/proc/net/dev")),
            tcp: tcp(&read("/proc/net/snmp"), &read("/proc/net/netstat")),
            nfs: nfs.and_then(|mount| mountstats(&read("/proc/self/mountstats"), mount)),
            threads: threads(),
        }
    }

    /// The step by which the wall clock has been set since `before`, in either direction.
    pub(super) fn clock_set(&self, before: &Self) -> Duration {
        let ran = self.at.duration_since(before.at);
        match self.wall.duration_since(before.wall) {
            Ok(wall) => wall.abs_diff(ran),
            // Set back before the reading before: both parts of the step add up.
            Err(back) => back.duration() + ran,
        }
    }
}

fn is_nfs(stack: &Stack) -> bool {
    stack.file_system.as_deref().is_some_and(|kind| kind.starts_with("nfs"))
}

fn threads() -> BTreeMap<u32, Waiting> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let one = |task: fs::DirEntry| {
        let number = task.file_name().to_str()?.parse().ok()?;
        Some((number, schedstat(&fs::read_to_string(task.path().join("schedstat")).ok()?)?))
    };
    tasks.filter_map(one).collect()
}
