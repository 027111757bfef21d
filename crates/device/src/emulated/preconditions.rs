//! Checks before a disk is emulated. They change nothing.

use crate::DeviceError;
use crate::mounts;
use rustix::thread::CapabilitySet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use units::Reason;

/// The facilities of this machine that emulation needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prerequisites {
    fuse: bool,
    root: bool,
    helper: bool,
}

impl Prerequisites {
    pub(super) fn here() -> Self {
        let helpers = ["/usr/bin/fusermount3", "/bin/fusermount3", "/usr/bin/fusermount"];
        Self {
            fuse: Path::new(FUSE).exists(),
            root: may_mount(),
            helper: helpers.iter().any(|helper| Path::new(helper).exists()),
        }
    }

    /// Checks that they suffice. `attach`: also for a block device.
    pub(super) fn suffice(self, attach: bool) -> Result<(), DeviceError> {
        let unusable = |message, hint| Err(DeviceError::unusable(FUSE, Reason::new(message, hint)));
        if !self.fuse {
            return unusable(
                "it is not there",
                "load the kernel's module fuse (in a container: pass the device in)",
            );
        }
        if attach && !self.root {
            return unusable(
                "a block device needs root (CAP_SYS_ADMIN)",
                "run it with sudo, or leave --attach out",
            );
        }
        if !self.root && !self.helper {
            return unusable(
                "mounting needs root (CAP_SYS_ADMIN) or the helper fusermount3",
                "run it with sudo, or install fuse3",
            );
        }
        Ok(())
    }
}

/// Whether this process may mount: root, unless in a container without that right.
pub(super) fn may_mount() -> bool {
    let rights = rustix::thread::capabilities(None);
    rights.is_ok_and(|rights| rights.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// The path as in the kernel's list of mounts. The directory itself may be missing, or its mount
/// dead.
pub(super) fn canonical(at: &Path) -> Result<PathBuf, DeviceError> {
    let absolute = std::path::absolute(at).map_err(|e| DeviceError::open(at, None, e))?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => {
            let hint = "the folder that it is to be in must be there";
            Ok(parent.canonicalize().map_err(|e| DeviceError::open(at, hint, e))?.join(name))
        }
        _ => Ok(absolute),
    }
}

/// Refuses a directory that is a mount point.
pub(super) fn nothing_is_mounted(at: &Path) -> Result<(), DeviceError> {
    if mounts::all().unwrap_or_default().iter().all(|mounted| mounted.at != at) {
        return Ok(());
    }
    let hint = "if it is an emulated disk that still runs, stop that one";
    Err(DeviceError::in_use(at, "something is mounted there", hint))
}

/// Whether the directory exists; an error if it cannot be a mount point.
pub(super) fn folder_is_free(at: &Path) -> Result<bool, DeviceError> {
    match fs::read_dir(at) {
        Ok(mut entries) => {
            if entries.next().is_none() {
                return Ok(true);
            }
            Err(DeviceError::unusable(at, Reason::new("it is not empty", ANOTHER_FOLDER)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DeviceError::open(at, ANOTHER_FOLDER, error)),
    }
}

const FUSE: &str = "/dev/fuse";
const ANOTHER_FOLDER: &str = "name another folder with --at";

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    #[test]
    fn a_missing_facility_is_named_with_the_remedy() {
        let (nothing, root, helper) = (
            Prerequisites { fuse: false, root: true, helper: true },
            Prerequisites { fuse: true, root: true, helper: false },
            Prerequisites { fuse: true, root: false, helper: true },
        );
        let nobody = Prerequisites { helper: false, ..helper };
        for (means, attach, said) in [
            (nothing, false, Some("/dev/fuse: it is not there; load the kernel's module fuse")),
            (nothing, true, Some("in a container: pass the device in")),
            (root, true, None),
            (root, false, None),
            (helper, false, None),
            (helper, true, Some("needs root (CAP_SYS_ADMIN); run it with sudo, or leave --attach")),
            (nobody, false, Some("the helper fusermount3; run it with sudo, or install fuse3")),
        ] {
            let refused = means.suffice(attach).map_err(|error| error.one_line());
            match said {
                None => assert_eq!(refused, Ok(()), "{means:?} {attach}"),
                Some(words) => {
                    let refused = refused.unwrap_err();
                    assert!(refused.contains(words), "{means:?} {attach}: {refused}");
                }
            }
        }
    }
}
