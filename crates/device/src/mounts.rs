//! Mounts in the kernel's list, and unmounting.

use crate::DeviceError;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MountEntry {
    /// The device's numbers, as `8:17`.
    pub(crate) number: String,
    pub(crate) at: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: PathBuf,
}

/// All mounts, in the order in which they were made.
pub(crate) fn all() -> io::Result<Vec<MountEntry>> {
    let text = std::fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Unmounts the file system at `at` after writing its data.
pub(crate) fn take_down(at: &Path) -> Result<(), DeviceError> {
    match unmount(at, UnmountFlags::empty()) {
        // Nothing is mounted there: another program has unmounted it.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(Errno::BUSY) => {
            let by = "a program has a file or directory there open";
            Err(DeviceError::in_use(at, by, "end it, or leave that directory"))
        }
        Err(other) => Err(DeviceError::open(at, "it could not be unmounted", other.into())),
    }
}

/// Aborts the connection of the FUSE file system at `at` to its server, so that all waiting
/// requests fail. Unmounts it if no file of it is open.
pub(crate) fn abort(at: &Path) -> io::Result<()> {
    match unmount(at, UnmountFlags::FORCE) {
        // It is in use but aborted, or gone.
        Ok(()) | Err(Errno::BUSY | Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

/// Detaches it from the mount tree even if it is in use; it ends with its last user.
pub(crate) fn let_go(at: &Path) {
    // There is no further remedy for a failure here.
    let _ = unmount(at, UnmountFlags::DETACH);
}

/// The mounts in `mounted` from a loop device on `file`; does not access the file.
pub(crate) fn by_loop_on<'a>(
    file: &'a Path,
    mounted: &'a [MountEntry],
) -> impl Iterator<Item = &'a MountEntry> {
    let is_on_it = move |mounted: &&MountEntry| {
        let name = mounted.source.file_name().unwrap_or_default();
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        mounted.source.starts_with("/dev")
            && std::fs::read_to_string(backing).is_ok_and(|said| Path::new(said.trim_end()) == file)
    };
    mounted.iter().filter(is_on_it)
}

/// Parses a line of the list of mounts:
///
/// ```text
/// 36 35 98:0 /root /at rw,noatime shared:1 - kind source options
/// ```
fn parse(line: &[u8]) -> Option<MountEntry> {
    let text = |word| String::from_utf8_lossy(word).into_owned();
    let mut words = line.split(|byte| *byte == b' ');
    let (number, at) = (text(words.nth(2)?), path(words.nth(1)?));
    // Optional fields end with a lone hyphen.
    let mut last_words = words.skip_while(|word| *word != b"-").skip(1);
    let (kind, source) = (text(last_words.next()?), path(last_words.next()?));
    Some(MountEntry { number, at, kind, source })
}

/// Decodes blanks and backslashes, which are written as `\040`.
fn path(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let escape = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_parsed_from_the_kernels_list() {
        let line = br"36 35 0:27 / /mnt/old\040films rw shared:1 master:2 - btrfs /dev/loop3 rw";
        let (at, source) = ("/mnt/old films".into(), "/dev/loop3".into());
        let (number, kind) = ("0:27".to_owned(), "btrfs".to_owned());
        assert_eq!(parse(line), Some(MountEntry { number, at, kind, source }));
        let without_options = br"31 22 8:1 /sub /boot rw - ext4 /dev/sda1 rw";
        let boot = parse(without_options).unwrap();
        assert_eq!((&*boot.number, boot.at), ("8:1", PathBuf::from("/boot")));
        assert_eq!(parse(b""), None);
        // In a chroot the root may not be a mount, but the list itself is on one.
        assert!(all().unwrap().iter().any(|mounted| mounted.at == Path::new("/proc")));
    }
}
