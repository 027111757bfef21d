//! A loop device: a file as a block device on which file systems can be mounted.
//!
//! It is direct, so that the kernel has no second cache of the file. It detaches when nobody has it
//! open any more: this process keeps it open, so that a process that dies leaves no loop device
//! behind (except that a mounted one remains until it is unmounted).
#![expect(unsafe_code, reason = "loop devices are set up by ioctl")]

use crate::DeviceError;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::Reason;

/// An attached loop device.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: PathBuf,
    name: String,
    held: Option<File>,
}

impl LoopDevice {
    /// Attaches `file` to the first free loop device; the kernel is told whether seeks cost time.
    pub(super) fn attach(file: &Path, rotational: bool) -> Result<Self, DeviceError> {
        let control = open(Path::new(CONTROL), 0)?;
        let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("an int");
        let opened = open(file, direct)?;
        for _ in 0..ATTEMPTS {
            // SAFETY: takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            if number < 0 {
                return Err(failed(Path::new(CONTROL), "no loop device is free"));
            }
            let name = format!("loop{number}");
            let path = Path::new("/dev").join(&name);
            let held = open(&path, 0)?;
            let config = LoopConfig::direct(&opened, file);
            // SAFETY: the structure is the kernel's `loop_config` and lives across the call.
            let refused =
                unsafe { libc::ioctl(held.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
            if refused == 0 {
                let device = Self { path, name, held: Some(held) };
                device.set_up(rotational)?;
                return Ok(device);
            }
            // Another program was faster and took this device.
            if io::Error::last_os_error().kind() != io::ErrorKind::ResourceBusy {
                return Err(failed(&path, "it could not be attached"));
            }
        }
        Err(failed(Path::new(CONTROL), "others keep taking the free loop devices, try again"))
    }

    /// The path of the device.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches it. False if another program has it open; it then detaches when that one closes it.
    pub(super) fn detach(&mut self) -> bool {
        self.held = None;
        for _ in 0..LOOKS {
            if !self.is_attached() {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }

    fn is_attached(&self) -> bool {
        self.about("loop/backing_file").exists()
    }

    fn set_up(&self, rotational: bool) -> Result<(), DeviceError> {
        let direct = std::fs::read_to_string(self.about("loop/dio")).unwrap_or_default();
        if direct.trim() != "1" {
            let message = "this kernel does not read the file behind it directly, so that its \
                           cache would hide the disk";
            let reason = Reason::new(message, "leave --attach out and use the file");
            return Err(DeviceError::unusable(&self.path, reason));
        }
        // Discards would only make holes in the file.
        for (setting, value) in [("rotational", u8::from(rotational)), ("discard_max_bytes", 0)] {
            let place = self.about(&format!("queue/{setting}"));
            std::fs::write(&place, value.to_string()).map_err(|source| {
                DeviceError::open(&place, "the kernel does not take it", source)
            })?;
        }
        Ok(())
    }

    fn about(&self, what: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join(what)
    }
}

fn open(path: &Path, flags: i32) -> Result<File, DeviceError> {
    let opened = File::options().read(true).write(true).custom_flags(flags).open(path);
    opened.map_err(|source| {
        let hint = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Some("loop devices need root, or leave --attach out")
            }
            io::ErrorKind::NotFound => Some("this kernel has no loop devices, leave --attach out"),
            _ => None,
        };
        DeviceError::open(path, hint, source)
    })
}

fn failed(path: &Path, hint: &str) -> DeviceError {
    DeviceError::open(path, hint, io::Error::last_os_error())
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo {
    /// The numbers of the file, where its part begins, how long that is.
    place: [u64; 5],
    /// The number of the loop device, and how it encrypts.
    kind: [u32; 3],
    flags: u32,
    file_name: [u8; 64],
    /// The name and the key of the encryption, and what the old interface began with.
    crypt: [u64; 14],
}

impl LoopConfig {
    fn direct(file: &File, path: &Path) -> Self {
        let mut file_name = [0; 64];
        // `losetup` shows this name: cut to the field, with a zero at its end.
        let bytes = path.as_os_str().as_encoded_bytes();
        let shown = bytes.len().min(file_name.len() - 1);
        file_name[..shown].copy_from_slice(&bytes[..shown]);
        let info = LoopInfo {
            place: [0; 5],
            kind: [0; 3],
            // Autoclear frees the device when this process dies; direct keeps the kernel from a
            // second cache.
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            file_name,
            crypt: [0; 14],
        };
        let fd = u32::try_from(file.as_raw_fd()).expect("an open file");
        Self { fd, block_size: 512, info, reserved: [0; 8] }
    }
}

const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

const CONTROL: &str = "/dev/loop-control";
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Attempts to get a free device: another program may take it between the two calls.
const ATTEMPTS: u32 = 20;
/// Number of checks whether it has detached, five seconds in all: udev opens a device that closes,
/// and the rings of a program that read it are removed with a delay.
const LOOKS: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);
