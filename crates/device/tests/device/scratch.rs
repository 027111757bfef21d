//! A directory, a loop device or a small file system for one test, removed afterwards.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::Need;

/// A directory for one test, removed at its end.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// An empty directory named after the test, on the disk that the build is on.
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("{}-{}", test.replace(' ', "-"), std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loop device over a file, detached when dropped.
pub(crate) struct LoopDevice {
    path: PathBuf,
    backing: PathBuf,
    /// The memory beneath it, if it belongs to this device alone.
    memory: Option<SealedMemory>,
}

impl LoopDevice {
    /// Attaches this file; `None`, and a recorded skip, where that is impossible: it needs root and
    /// a kernel with loop devices.
    pub(crate) fn over(backing: &Path) -> Option<Self> {
        let made = losetup(&[
            "--find".as_ref(),
            "--show".as_ref(),
            "--direct-io=on".as_ref(),
            backing.as_os_str(),
        ]);
        match made {
            Ok(path) => {
                Some(Self { path: path.trim().into(), backing: backing.to_owned(), memory: None })
            }
            Err(why) => {
                testkit::skip(Need::Loop, &why);
                None
            }
        }
    }

    /// Keeps the memory beneath it as long as the device.
    pub(crate) fn keeping(mut self, memory: SealedMemory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The path of the device.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Truncates the backing file; the device has bad sectors from there on.
    pub(crate) fn cut_backing(&self, size: u64) {
        std::fs::File::options().write(true).open(&self.backing).unwrap().set_len(size).unwrap();
    }

    /// Updates the device to the size of the backing file.
    pub(crate) fn resize(&self) {
        losetup(&["--set-capacity".as_ref(), self.path.as_os_str()]).unwrap();
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = losetup(&["--detach".as_ref(), self.path.as_os_str()]);
    }
}

/// Memory as a file that may become shorter and never longer: a write behind its end is an I/O
/// error of the device on top.
pub(crate) struct SealedMemory {
    _file: OwnedFd,
    path: PathBuf,
}

pub(crate) fn sealed_memory(size: u64) -> SealedMemory {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let file = memfd_create("tenuto-test", flags).unwrap();
    ftruncate(&file, size).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
    SealedMemory { _file: file, path }
}

impl SealedMemory {
    /// The path of the memory, valid for all processes of the test.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A file system in a file, mounted; unmounted when dropped.
pub(crate) struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts ext4 in this file or block device; `None`, and a recorded skip, where that is
    /// impossible: it needs root and `mkfs.ext4`.
    pub(crate) fn ext4(disk: &Path, at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let quietly = ["-q", "-F"].map(std::ffi::OsStr::new);
        let make = || output("mkfs.ext4", &[quietly[0], quietly[1], disk.as_os_str()]);
        let mut made = make();
        // A program that another test starts has all open files for a moment, this disk among them.
        for _ in 0..50 {
            if !made.as_ref().is_err_and(|why| why.contains("in use")) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            made = make();
        }
        let made = made.and_then(|_| output("mount", &[disk, at]));
        match made {
            Ok(_) => Some(Self { at: at.to_owned() }),
            Err(why) => {
                testkit::skip(Need::Mount, &why);
                None
            }
        }
    }

    /// The root directory of the file system.
    pub(crate) fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A ring may keep a file open for a moment; the file system is unmounted after that.
        if output("umount", &[&self.at]).is_err() {
            let _ = output("umount", &["--lazy".as_ref(), self.at.as_os_str()]);
        }
    }
}

fn losetup<T: AsRef<std::ffi::OsStr>>(arguments: &[T]) -> Result<String, String> {
    output("losetup", arguments)
}

fn output<T: AsRef<std::ffi::OsStr>>(program: &str, arguments: &[T]) -> Result<String, String> {
    let ran = std::process::Command::new(program).args(arguments).output();
    let output = ran.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
