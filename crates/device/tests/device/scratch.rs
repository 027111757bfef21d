//! A directory or a loop device for one test, gone afterwards.

#![expect(clippy::print_stderr, reason = "a test that cannot be made here says so")]

use std::path::{Path, PathBuf};

/// See the head of this file.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory named after the test, on the disk that the build is on.
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("{}-{}", test.replace(' ', "-"), std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loop device over a file; gone when dropped.
pub(crate) struct Loop {
    path: PathBuf,
    backing: PathBuf,
}

impl Loop {
    /// Over this file; `None`, and a line that says so, where that is not possible: it takes root
    /// and a kernel with loop devices.
    pub(crate) fn over(backing: &Path) -> Option<Self> {
        let made = losetup(&[
            "--find".as_ref(),
            "--show".as_ref(),
            "--direct-io=on".as_ref(),
            backing.as_os_str(),
        ]);
        match made {
            Ok(path) => Some(Self { path: path.trim().into(), backing: backing.to_owned() }),
            Err(why) => {
                eprintln!("SKIPPED on a block device: no loop device here ({why})");
                None
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts off what lies beneath it; from there on the device has bad sectors.
    pub(crate) fn cut_backing(&self, size: u64) {
        std::fs::File::options().write(true).open(&self.backing).unwrap().set_len(size).unwrap();
    }

    /// Takes over the size of what lies beneath it.
    pub(crate) fn resize(&self) {
        losetup(&["--set-capacity".as_ref(), self.path.as_os_str()]).unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = losetup(&["--detach".as_ref(), self.path.as_os_str()]);
    }
}

fn losetup<T: AsRef<std::ffi::OsStr>>(arguments: &[T]) -> Result<String, String> {
    let ran = std::process::Command::new("losetup").args(arguments).output();
    let output = ran.map_err(|error| format!("losetup: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
