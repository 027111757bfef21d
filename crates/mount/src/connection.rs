//! The connection of a mount to the kernel, which lives as long as any mount of it.
//!
//! ```text
//!   this namespace     DIR ──┐
//!                            ├──▶ file system ──▶ connection ◀── /dev/fuse ── fuser
//!   another namespace  DIR ──┘                        ▲
//!                                                     └── "1" into `abort` of FUSE's controls
//! ```
//!
//! A bind mount is a copy of a mount, and a new mount namespace (of a container, of a unit of
//! systemd) begins with a copy of every mount. After the first one is unmounted the file system is
//! still there, and so are its requests.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The connection of a mount that was made.
#[derive(Debug)]
pub(crate) struct FuseConnection {
    /// `/dev/fuse` as the threads that answer have it open.
    device: OwnedFd,
    /// The minor number of the file system, which another one may have when this one has ended.
    number: u32,
}

impl FuseConnection {
    pub(crate) fn new(device: OwnedFd, number: u32) -> Self {
        Self { device, number }
    }

    /// Whether requests can still come.
    pub(crate) fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(&self.device, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel reports an error of the device when the last mount has gone, or was aborted.
        poll(&mut polled, Some(&at_once)).is_err() || !polled[0].revents().contains(PollFlags::ERR)
    }

    /// Ends it: all requests that wait, and those to come, fail.
    ///
    /// # Errors
    /// That of the kernel: users other than root need `/sys/fs/fuse/connections`.
    pub(crate) fn abort(&self) -> io::Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        let control = control(&format!("{}/abort", self.number));
        // An open control belongs to one connection, so it is that of this one if it lives now.
        if self.is_alive() { control?.write_all(b"1") } else { Ok(()) }
    }
}

/// Opens a file of FUSE's controls. Where they are not mounted, as in many containers, or cannot be
/// written, as in a unit of systemd that protects `/sys`, root opens them all the same.
fn control(name: &str) -> io::Result<File> {
    let mounted = File::options().write(true).open(Path::new(CONTROLS).join(name));
    mounted.or_else(|why| unmounted_control(name).map_err(|_| why))
}

fn unmounted_control(name: &str) -> io::Result<File> {
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let controls = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let control = openat(&controls, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(control.into())
}

/// Where systemd mounts FUSE's controls.
const CONTROLS: &str = "/sys/fs/fuse/connections";
