//! Files and directories by paths in which no symbolic link is followed.
//!
//! A path that was resolved and checked once can be led elsewhere afterwards: whoever may write to
//! one of its directories can put a link there. Here such a path fails, whichever component is a
//! link. The kernel checks it (`openat2`, Linux 5.6); on others the path is walked, directory by
//! directory.

use crate::DeviceError;
use crate::preallocate::allocate;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};
use units::ByteCount;

/// Whether symbolic links in a path are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// As the kernel does.
    #[default]
    Followed,
    /// A path with a link in any component is refused.
    Refused,
}

/// Opens a file with these flags; `mode` is for a file that they create.
pub(crate) fn open_file(path: &Path, flags: OFlags, links: Links) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let opened = match links {
        Links::Followed => openat(CWD, path, flags, NEW_FILE),
        Links::Refused => open(path, flags),
    };
    Ok(opened?.into())
}

/// Makes a directory that only this user may enter.
pub fn create_dir(path: &Path) -> io::Result<()> {
    let (parent, name) = parent(path)?;
    Ok(mkdirat(parent, name, Mode::RWXU)?)
}

/// Makes a file that does not exist yet, for reading and writing.
pub fn create_file(path: &Path) -> io::Result<File> {
    open_file(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, Links::Refused)
}

/// Allocates the space of a file like [`preallocate`](crate::preallocate).
pub fn preallocate(path: &Path, size: ByteCount) -> Result<(), DeviceError> {
    allocate(path, size, Links::Refused)
}

/// Gives a file another name in place of the file that has it.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((from, old), (to, new)) = (parent(from)?, parent(to)?);
    Ok(renameat(from, old, to, new)?)
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    remove(path, AtFlags::empty())
}

/// Removes an empty directory.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    remove(path, AtFlags::REMOVEDIR)
}

fn remove(path: &Path, flags: AtFlags) -> io::Result<()> {
    let (parent, name) = parent(path)?;
    Ok(unlinkat(parent, name, flags)?)
}

/// The directory of a path, open, and the name in it.
fn parent(path: &Path) -> Result<(OwnedFd, &OsStr), Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((open(dir, DIRECTORY | OFlags::CLOEXEC)?, name))
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // The kernel refuses a mode for a file that is not to be created.
    let mode = if flags.contains(OFlags::CREATE) { NEW_FILE } else { Mode::empty() };
    match openat2(CWD, path, flags, mode, resolve) {
        // An older kernel does not have it, and an older container forbids it.
        Err(Errno::NOSYS | Errno::PERM) => walk(path, flags),
        opened => opened,
    }
}

/// Opens the directories of a path one after another, and the file in the last.
fn walk(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = openat(CWD, ".", DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let last = components.peek().is_none();
        let flags = if last { flags } else { DIRECTORY | OFlags::CLOEXEC };
        at = step(&at, component, flags)?;
    }
    Ok(at)
}

fn step(at: &OwnedFd, component: Component<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let name = component.as_os_str();
    openat(at, name, flags | OFlags::NOFOLLOW, NEW_FILE).map_err(|error| match error {
        // The kernel's error for a link where a directory is wanted.
        Errno::NOTDIR if is_link(at, name) => Errno::LOOP,
        error => error,
    })
}

fn is_link(at: impl AsFd, name: &OsStr) -> bool {
    statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Symlink)
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// The mode of a new file, of which the user's mask is taken away.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileDevice, OpenMode, OpenOptions, RawFile};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// `inside/dir/film`, `outside/film`; `inside/link` leads to `outside`, and
    /// `inside/dir/link` to `outside/film`.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let dir = format!("tenuto-links-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().canonicalize().unwrap().join(dir);
            fs::create_dir_all(dir.join("inside/dir")).unwrap();
            fs::create_dir_all(dir.join("outside")).unwrap();
            for film in ["inside/dir/film", "outside/film"] {
                fs::write(dir.join(film), vec![1; 8192]).unwrap();
            }
            symlink(dir.join("outside"), dir.join("inside/link")).unwrap();
            symlink(dir.join("outside/film"), dir.join("inside/dir/link")).unwrap();
            Self(dir)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join("inside").join(name)
        }

        /// The names and contents outside.
        fn outside(&self) -> Vec<(PathBuf, Vec<u8>)> {
            let entries = fs::read_dir(self.0.join("outside")).unwrap();
            entries
                .map(|entry| entry.unwrap().path())
                .map(|p| (p.clone(), fs::read(p).unwrap()))
                .collect()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_link_in_the_last_or_a_middle_component_is_refused_by_kernel_and_walk() {
        let tree = Tree::new("open");
        for open in [open, walk] {
            let opened = |name: &str| open(&tree.path(name), OFlags::RDONLY).map(drop);
            assert_eq!(opened("dir/film"), Ok(()));
            assert_eq!(opened("dir/../dir/film"), Ok(()));
            assert_eq!(opened("dir/link"), Err(Errno::LOOP), "the last component");
            assert_eq!(opened("link/film"), Err(Errno::LOOP), "a middle component");
            assert_eq!(opened("dir/none"), Err(Errno::NOENT));
            assert_eq!(opened("dir/film/more"), Err(Errno::NOTDIR));
        }
    }

    #[test]
    fn nothing_outside_is_made_changed_renamed_or_removed() {
        let tree = Tree::new("change");
        let before = tree.outside();
        let refused = |done: io::Result<()>| {
            assert_eq!(done.unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        };
        refused(create_dir(&tree.path("link/new")));
        refused(create_file(&tree.path("link/new")).map(drop));
        refused(rename(&tree.path("link/film"), &tree.path("dir/taken")));
        refused(rename(&tree.path("dir/film"), &tree.path("link/film")));
        refused(remove_file(&tree.path("link/film")));
        refused(remove_dir(&tree.path("link/film")));
        assert!(create_file(&tree.path("dir/link")).is_err(), "it exists");
        for name in ["dir/link", "link/film", "link/new"] {
            let path = tree.path(name);
            let write =
                OpenOptions { write: true, links: Links::Refused, ..OpenOptions::default() };
            assert!(FileDevice::open(&path, write).is_err(), "{name}");
            for mode in [OpenMode::Read, OpenMode::Update, OpenMode::Create] {
                assert!(RawFile::open(&path, mode, false).is_err(), "{name} {mode:?}");
            }
            assert!(preallocate(&path, ByteCount(1 << 20)).is_err(), "{name}");
        }
        assert_eq!(tree.outside(), before);
    }

    #[test]
    fn what_is_inside_is_made_renamed_and_removed() {
        let tree = Tree::new("inside");
        create_dir(&tree.path("new")).unwrap();
        drop(create_file(&tree.path("new/film")).unwrap());
        rename(&tree.path("new/film"), &tree.path("new/other")).unwrap();
        preallocate(&tree.path("new/other"), ByteCount(4096)).unwrap();
        RawFile::open(&tree.path("new/more"), OpenMode::Create, false).unwrap();
        remove_file(&tree.path("new/more")).unwrap();
        remove_file(&tree.path("new/other")).unwrap();
        remove_dir(&tree.path("new")).unwrap();
        // A link itself can be removed: what it leads to stays.
        remove_file(&tree.path("dir/link")).unwrap();
        assert_eq!(tree.outside().len(), 1);
    }
}
