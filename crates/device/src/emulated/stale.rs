//! What killed processes left of their emulated disks, and taking it away.
//!
//! Only what nobody can use any more: the mount of a disk that nobody answers for, and file systems
//! that are mounted from it, whose every read and write fails.

use super::{NAME, disk_files, mounts};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Takes down all of it, wherever it is. Says what, a sentence for each, and what is left to do.
pub fn remove_stale_disks() -> Vec<String> {
    clear(|_| true)
}

/// Takes down what is at `at`.
pub(super) fn clear_at(at: &Path) -> Option<String> {
    clear(|there| there == at).pop()
}

fn clear(chosen: impl Fn(&Path) -> bool) -> Vec<String> {
    let mounted = mounts::all().unwrap_or_default();
    let disks = mounted.iter().rev();
    let disks = disks.filter(|there| there.source == Path::new(NAME) && chosen(&there.at));
    disks.filter(|disk| is_dead(&disk.at)).map(|disk| take_down(&disk.at, &mounted)).collect()
}

fn take_down(at: &Path, mounted: &[mounts::MountEntry]) -> String {
    let mut note = format!("took down what a dead process had left at {}", at.display());
    let disk = at.join(disk_files::DISK);
    let on_it: Vec<_> = mounts::by_loop_on(&disk, mounted).collect();
    for mount in on_it.iter().rev() {
        let there = mount.at.display();
        note += &match mounts::take_down(&mount.at) {
            Ok(()) => format!(", and {there}, which was mounted from it"),
            Err(_) => format!(
                "; {there} is still mounted from it and in use: take it down with `umount {there}`"
            ),
        };
    }
    mounts::let_go(at);
    if at.extension().is_some_and(|ending| ending == super::FOLDER_ENDING) {
        // Not empty: then it is somebody else's.
        let _ = fs::remove_dir(at);
    }
    note
}

/// Whether the disk that is mounted there is one that nobody answers for. One that merely does not
/// answer now (its process is stopped) is not dead.
fn is_dead(at: &Path) -> bool {
    let (told, hear) = channel();
    let at = PathBuf::from(at);
    std::thread::spawn(move || {
        // Asked for its content: what is known of the folder itself the kernel says by heart.
        let dead = fs::read_dir(at).is_err_and(|error| {
            Errno::from_io_error(&error)
                .is_some_and(|e| e == Errno::NOTCONN || e == Errno::CONNABORTED)
        });
        // Nobody may wait any more.
        let _ = told.send(dead);
    });
    hear.recv_timeout(PATIENCE).unwrap_or(false)
}

/// For an answer that takes some tens of microseconds; of a dead one it comes at once.
const PATIENCE: Duration = Duration::from_secs(1);
