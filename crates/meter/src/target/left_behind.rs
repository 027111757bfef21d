//! What measurements leave behind: test files that could not be removed at the end of a run, and
//! those of runs that were killed.
//!
//! ```text
//!   DIR/.tenuto-meter-PID[-N]      a directory of files         TestFiles
//!   DIR/.tenuto-meter-PID          one file, while it is made   TargetStorage
//!   DIR/.tenuto-meter-PID-fill     reserved space, likewise     FillLevel
//! ```
//!
//! Nothing is removed here: a process on another machine may use a directory that both see.

use super::test_files::PREFIX;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use units::show::shell_word;
use units::{ByteCount, locked};

/// Notes about test files and objects that could not be removed. Clones share one list: files are
/// removed when they are dropped, which is after the report of their run.
#[derive(Clone, Debug, Default)]
pub struct LeftBehind(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    new: Vec<String>,
    /// What was there before the first of several runs in one directory.
    found: BTreeSet<PathBuf>,
}

impl LeftBehind {
    /// Adds a note for the user.
    pub(crate) fn add(&self, note: String) {
        locked(&self.0).new.push(note);
    }

    /// Takes the notes added so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.0).new)
    }

    /// A note for each file or directory in `dir` that a meter made which has ended, unless this
    /// list has given it before; none if `dir` cannot be read. `shared`: machines other than this
    /// one see the directory, too.
    pub(crate) fn of_ended_meters(&self, dir: &Path, shared: bool) -> Vec<String> {
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let found: BTreeSet<PathBuf> =
            entries.flatten().filter(is_left_behind).map(|entry| entry.path()).collect();
        let unless = if shared { ", unless a meter on another machine uses it" } else { "" };
        let note = |path: &PathBuf| {
            let (size, command) = (size_of(path), removal(path));
            let path = path.display();
            format!(
                "{path} ({size}) was left by a meter that has ended; remove it{unless}: {command}"
            )
        };
        let known = &mut locked(&self.0).found;
        found
            .into_iter()
            .filter(|path| known.insert(path.clone()))
            .map(|path| note(&path))
            .collect()
    }
}

/// The command that removes what a meter made at `path`.
pub(crate) fn removal(path: &Path) -> String {
    format!("rm -r {}", shell_word(&path.display().to_string()))
}

fn is_left_behind(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).unwrap_or_default();
    let digits = rest.split('-').next().unwrap_or_default();
    digits.parse().is_ok_and(|process: u32| !is_meter(process))
}

/// Whether the process is alive and may be a meter. Only a process with another known name is not:
/// the number of an ended one is given to others.
fn is_meter(process: u32) -> bool {
    if process == std::process::id() {
        return true;
    }
    let proc = Path::new("/proc").join(process.to_string());
    match fs::read_to_string(proc.join("comm")) {
        Ok(name) => name.starts_with("tenuto"),
        Err(_) => proc.exists(),
    }
}

/// The space of a file, or of all files below a directory.
fn size_of(path: &Path) -> ByteCount {
    let Ok(about) = path.symlink_metadata() else { return ByteCount(0) };
    if !about.is_dir() {
        return ByteCount(about.len());
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    ByteCount(inside.map(|entry| size_of(&entry.path()).0).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_of_any_path_is_one_command() {
        for (path, command) in [
            ("/mnt/films/.tenuto-meter-7", "rm -r /mnt/films/.tenuto-meter-7"),
            ("/mnt/my films/a", "rm -r '/mnt/my films/a'"),
            ("/mnt/it's/a", r"rm -r '/mnt/it'\''s/a'"),
            ("/mnt/$(reboot)", "rm -r '/mnt/$(reboot)'"),
        ] {
            assert_eq!(removal(Path::new(path)), command);
        }
    }
}
