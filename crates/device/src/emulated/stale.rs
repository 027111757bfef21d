//! The removal of emulated disks that killed processes left behind.
//!
//! Only disks that nobody can use any more are removed: the mount of a disk without a server, and
//! file systems that are mounted from it, whose every read and write fails.

use super::{NAME, disk_files};
use crate::mounts;
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Removes all of them, wherever they are. Returns a sentence for each, with what remains to be
/// done.
pub fn remove_stale_disks() -> Vec<String> {
    clear(|_| true)
}

/// Removes the remains at `at`.
pub(super) fn clear_at(at: &Path) -> Option<String> {
    clear(|there| there == at).pop()
}

fn clear(chosen: impl Fn(&Path) -> bool) -> Vec<String> {
    let mounted = mounts::all().unwrap_or_default();
    // The newest mount first: an older one may lie beneath it.
    let newest_first = mounted.iter().rev();
    let disks = newest_first.filter(|it| it.source == Path::new(NAME) && chosen(&it.at));
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
        // A directory that is not empty belongs to another program.
        let _ = fs::remove_dir(at);
    }
    note
}

/// Whether the disk that is mounted there has no server. A disk whose process is only stopped is
/// not dead.
fn is_dead(at: &Path) -> bool {
    let (sender, receiver) = channel();
    let at = PathBuf::from(at);
    std::thread::spawn(move || {
        // The content is asked for, because the kernel knows the directory itself without the
        // server.
        let dead = fs::read_dir(at).is_err_and(|error| {
            Errno::from_io_error(&error)
                .is_some_and(|e| e == Errno::NOTCONN || e == Errno::CONNABORTED)
        });
        // The receiver may have given up.
        let _ = sender.send(dead);
    });
    receiver.recv_timeout(PATIENCE).unwrap_or(false)
}

/// The time limit for an answer, which takes tens of microseconds; a dead disk fails immediately.
const PATIENCE: Duration = Duration::from_secs(1);
