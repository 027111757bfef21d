//! File systems on a block device: made, mounted, filled with files, and mounted again with cold
//! caches.
//!
//! Uses the file systems' own programs (`mkfs.ext4`, `mount`). Needs root.

use crate::error::MeterError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A type of file system that can be made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// The nearest to the FFS of the papers: block maps, no journal.
    Ext2,
    /// Extents and a journal.
    Ext4,
    /// Allocation groups, extents, delayed allocation.
    Xfs,
    /// Copy on write, with checksums of everything.
    Btrfs,
}

impl FileSystem {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Ext2, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Ext2 | Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }

    fn maker(self) -> String {
        format!("mkfs.{}", self.name())
    }

    /// Checks that this machine has the programs to make it.
    ///
    /// # Errors
    /// An error names the missing program and the package that has it.
    pub fn available(self) -> Result<(), MeterError> {
        let program = self.maker();
        Command::new(&program).arg("-V").output().map(drop).map_err(|_| {
            let (package, system) = (self.package(), self.name());
            MeterError::new(format!("{program} is not there"))
                .hint(format!("install the package {package}, or leave {system} out"))
        })
    }

    /// Makes the file system on the first `range` bytes of a block device, overwriting them, and
    /// mounts it.
    ///
    /// # Errors
    /// An error has the text of the program that failed.
    pub fn make(self, device: &Path, range: u64) -> Result<Mounted, MeterError> {
        let (program, on) = (self.maker(), device.display().to_string());
        let (blocks, bytes) = ((range / BLOCK).to_string(), range.to_string());
        match self {
            Self::Ext2 | Self::Ext4 => {
                call(&program, &["-q", "-F", "-b", "4096", "-m", "0", &on, &blocks])?;
            }
            Self::Xfs => call(&program, &["-q", "-f", "-d", &format!("size={bytes}"), &on])?,
            Self::Btrfs => call(&program, &["-q", "-f", "-b", &bytes, &on])?,
        }
        let at = make_folder(device)?;
        let queue = queue_of(device);
        let own_kib = read_kib(&queue)?;
        let mut mounted = Mounted { kind: self, device: device.into(), at, own_kib, is: false };
        mounted.mount()?;
        Ok(mounted)
    }
}

/// A mounted file system, unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    kind: FileSystem,
    device: PathBuf,
    at: PathBuf,
    /// The kernel's default read-ahead for this device.
    own_kib: u32,
    is: bool,
}

impl Mounted {
    /// The file system's type.
    pub fn kind(&self) -> FileSystem {
        self.kind
    }

    /// The mount point.
    pub fn folder(&self) -> &Path {
        &self.at
    }

    /// Writes a file of `len` bytes, 1 MB at a time, and flushes it to the disk. Its bytes are not
    /// zeros. `go_on` is called after each write.
    ///
    /// # Errors
    /// Fails if there is no room, or if `go_on` returns false (interrupted); the incomplete file
    /// remains.
    pub fn write(&self, path: &Path, len: u64, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        let mut noise = vec![0; MB];
        // Zeros could be stored as holes, or compressed.
        fastrand::Rng::with_seed(len).fill(&mut noise);
        let mut file = File::create(path)?;
        let mut left = len;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(MB).min(MB);
            file.write_all(&noise[..part])?;
            left -= part as u64;
            if !go_on() {
                return Err(ErrorKind::Interrupted.into());
            }
        }
        file.sync_all()
    }

    /// Mounts it again, so that none of it is in memory, with a read-ahead of `read_ahead_kib` or
    /// the kernel's default. Returns the read-ahead in effect.
    ///
    /// # Errors
    /// Fails if one of its files is open.
    pub fn mount_cold(&mut self, read_ahead_kib: Option<u32>) -> Result<u32, MeterError> {
        self.unmount()?;
        // The device's setting outlives the mount, and a new mount takes it over.
        let queue = queue_of(&self.device);
        let set = |path: &Path, kib: u32| {
            fs::write(path, kib.to_string()).map_err(MeterError::cannot("set", path))
        };
        set(&queue, read_ahead_kib.unwrap_or(self.own_kib))?;
        self.mount()?;
        // btrfs has its own read-ahead setting.
        let setting = if self.kind == FileSystem::Btrfs { self.btrfs_setting()? } else { queue };
        if let Some(kib) = read_ahead_kib {
            set(&setting, kib)?;
        }
        read_kib(&setting)
    }

    fn mount(&mut self) -> Result<(), MeterError> {
        // Without updates of access times, so that reads cause no writes.
        let on = self.device.display().to_string();
        call("mount", &["-o", "noatime", &on, &self.at.display().to_string()])?;
        self.is = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), MeterError> {
        if self.is {
            call("umount", &[&self.at.display().to_string()])?;
            self.is = false;
        }
        Ok(())
    }

    fn btrfs_setting(&self) -> Result<PathBuf, MeterError> {
        let all = Path::new("/sys/fs/btrfs");
        let name = self.device.file_name().unwrap_or_default();
        let entries = fs::read_dir(all).map_err(MeterError::cannot("read", all))?;
        let ours = entries.flatten().find(|entry| entry.path().join("devices").join(name).exists());
        let folder = ours.map_or_else(|| all.into(), |entry| entry.path());
        Ok(folder.join("bdi/read_ahead_kb"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.unmount().is_err() {
            // A lazy unmount: where another program has a file open, the mount ends with that
            // program.
            let _ = call("umount", &["-l", &self.at.display().to_string()]);
        }
        let _ = fs::remove_dir(&self.at);
    }
}

/// Makes the directory on which what is on a device is mounted.
pub(super) fn make_folder(device: &Path) -> Result<PathBuf, MeterError> {
    let on_what = device.file_name().unwrap_or_default().display();
    let at = std::env::temp_dir().join(format!("{FOLDER}{}-{on_what}", std::process::id()));
    fs::create_dir_all(&at).map_err(MeterError::cannot("make", &at))?;
    Ok(at)
}

fn queue_of(device: &Path) -> PathBuf {
    let name = device.file_name().unwrap_or_default();
    Path::new("/sys/block").join(name).join("queue/read_ahead_kb")
}

/// A read-ahead setting, in KiB.
fn read_kib(path: &Path) -> Result<u32, MeterError> {
    let said = fs::read_to_string(path).map_err(MeterError::cannot("read", path))?;
    Ok(said.trim().parse().unwrap_or_default())
}

/// Removes the mount points of killed runs, also of stores whose mount died with them. A directory
/// that is not empty stays.
pub(super) fn remove_stale_disks() {
    let all = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in all {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.split('-').next());
        let is_gone = |process: &str| !Path::new("/proc").join(process).exists();
        if process.is_some_and(is_gone) {
            let at = entry.path();
            // What a FUSE file system without its program answers.
            if fs::metadata(&at).is_err_and(|error| error.kind() == ErrorKind::NotConnected) {
                let _ = call("umount", &["-l", &at.display().to_string()]);
            }
            let _ = fs::remove_dir(at);
        }
    }
}

/// Runs a program in its own process group, so that Ctrl-C in a terminal reaches only this program,
/// which then ends in order.
fn call(program: &str, arguments: &[&str]) -> Result<(), MeterError> {
    let failed =
        |said: &str| MeterError::new(format!("{program} {} failed: {said}", arguments.join(" ")));
    let output = Command::new(program).args(arguments).process_group(0).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim()))
}

/// The prefix of mount points in the directory for temporary files; the process and the device
/// follow.
const FOLDER: &str = "tenuto-mounted-";

/// The block size that all four support.
const BLOCK: u64 = 4096;

/// Bytes of one write.
const MB: usize = 1_000_000;
