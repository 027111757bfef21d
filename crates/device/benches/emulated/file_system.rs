//! A file system on the emulated disk: made, filled in one go, mounted cold, read by one thread for
//! each file.

use crate::spread::{Spread, Stream};
use std::fs::{File, read_link, read_to_string, write};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::time::Instant;

/// The kinds there are.
#[derive(Clone, Copy)]
pub(crate) enum FileSystem {
    Ext2,
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub(crate) const ALL: [Self; 4] = [Self::Ext2, Self::Ext4, Self::Xfs, Self::Btrfs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Made on the first `range` bytes of the device.
    pub(crate) fn make(self, device: &Path, range: u64) -> Mounted {
        let (device, blocks) = (device.to_str().expect("a plain path"), (range / 4096).to_string());
        match self {
            Self::Ext2 | Self::Ext4 => {
                let make = format!("mkfs.{}", self.name());
                run(&make, &["-q", "-F", "-b", "4096", "-m", "0", device, &blocks]);
            }
            Self::Xfs => run("mkfs.xfs", &["-q", "-f", "-d", &format!("size={range}"), device]),
            Self::Btrfs => run("mkfs.btrfs", &["-q", "-f", "-b", &range.to_string(), device]),
        }
        let name = format!("tenuto-bench-{}", std::process::id());
        let at = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&at).expect("a folder to mount on");
        let mounted = Mounted { device: device.to_owned(), at, btrfs: matches!(self, Self::Btrfs) };
        mounted.mount();
        mounted
    }
}

/// A mounted one; unmounted when dropped.
pub(crate) struct Mounted {
    device: String,
    at: PathBuf,
    btrfs: bool,
}

impl Mounted {
    /// Files of `len` bytes, one after the other.
    pub(crate) fn fill(&mut self, files: usize, len: u64) {
        let mut noise = vec![0; usize::try_from(len).expect("it fits in memory")];
        let mut rng = fastrand::Rng::with_seed(1);
        for number in 0..files {
            rng.fill(&mut noise);
            let mut file = File::create(self.file(number)).expect("a file");
            file.write_all(&noise).and_then(|()| file.sync_all()).expect("room for it");
        }
    }

    /// Mounts it again, nothing in memory; gives the read-ahead in KiB.
    pub(crate) fn mount_cold(&mut self, read_ahead: Option<u32>) -> String {
        run("umount", &[self.at.to_str().expect("a plain path")]);
        write("/proc/sys/vm/drop_caches", "3").expect("root may");
        let queue = self.device.replace("/dev/", "/sys/block/") + "/queue/read_ahead_kb";
        if let Some(kib) = read_ahead {
            write(&queue, kib.to_string()).expect("the kernel takes it");
        }
        self.mount();
        let own = self.btrfs.then(|| self.btrfs_read_ahead());
        let setting = own.unwrap_or_else(|| queue.into());
        if let Some(kib) = read_ahead {
            write(&setting, kib.to_string()).expect("the kernel takes it");
        }
        read_to_string(setting).expect("the kernel says").trim().to_owned()
    }

    /// One thread for each file, in pieces of 32 KiB; all begin at once.
    pub(crate) fn read_all(&mut self, files: usize) -> Spread {
        let barrier = Barrier::new(files + 1);
        let spread = std::thread::scope(|scope| {
            let read = |number: usize| {
                let (path, barrier) = (self.file(number), &barrier);
                scope.spawn(move || {
                    let mut file = File::open(path).expect("it was written");
                    let mut piece = vec![0; 32 << 10];
                    let mut stream = Stream::default();
                    barrier.wait();
                    let start = Instant::now();
                    while file.read(&mut piece).expect("it is read") > 0 {
                        stream.came(start.elapsed());
                    }
                    stream
                })
            };
            let threads: Vec<_> = (0..files).map(read).collect();
            barrier.wait();
            threads.into_iter().map(|thread| thread.join().expect("it reads")).collect()
        });
        Spread(spread)
    }

    fn mount(&self) {
        run("mount", &[&self.device, self.at.to_str().expect("a plain path")]);
    }

    fn file(&self, number: usize) -> PathBuf {
        self.at.join(format!("film-{number:02}"))
    }

    /// btrfs reads ahead by a setting of its own.
    fn btrfs_read_ahead(&self) -> PathBuf {
        let device = self.device.trim_start_matches("/dev/");
        let mut all = std::fs::read_dir("/sys/fs/btrfs").expect("btrfs is there").flatten();
        let ours = all.find(|entry| entry.path().join("devices").join(device).exists());
        let bdi = ours.expect("it is mounted").path().join("bdi");
        let target = read_link(&bdi).expect("a link");
        bdi.parent().expect("in a folder").join(target).join("read_ahead_kb")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.at.to_str().expect("a plain path")]);
        let _ = std::fs::remove_dir(&self.at);
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; install it"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}
