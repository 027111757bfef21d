//! A queue that has been dropped keeps nothing open.

use crate::methods::{all, new_file, pool, said};
use crate::scratch::TempDir;
use device::{FileDevice, Method, OpenOptions};
use std::path::Path;
use std::process::Command;

#[test]
fn a_file_system_can_be_unmounted_as_soon_as_its_queue_is_gone() {
    testkit::needs!(Root, Program("mount"), Program("umount"));
    let scratch = TempDir::new("released");
    for (name, method) in Method::NAMES {
        let refused: Vec<String> = (0..ROUNDS)
            .filter_map(|_| {
                let mounted = Mounted::new(scratch.path());
                let path = new_file(scratch.path(), "film");
                let device = FileDevice::open(&path, OpenOptions::default()).unwrap();
                let pool = pool();
                let mut queue = device.queue_by(method, 4, &pool).unwrap();
                queue.submit(0, 0, pool.take(4096).unwrap()).unwrap();
                assert_eq!(said(&all(&mut *queue)), ["good"], "{name}");
                drop((queue, device));
                mounted.unmount().err()
            })
            .collect();
        assert!(refused.len() <= DISTURBED, "{name}: {refused:?}");
    }
}

/// A file system in memory; unmounted when dropped, also while it is in use.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(at: &'a Path) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m", "film"]).arg(at);
        assert!(mount.status().expect("mount").success());
        Self(at)
    }

    /// As a user would; the words of `umount` if it fails.
    fn unmount(&self) -> Result<(), String> {
        let output = Command::new("umount").arg(self.0).output().expect("umount");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Fails without a word where it has been unmounted.
        let _ = Command::new("umount").arg("--lazy").arg(self.0).output();
    }
}

const ROUNDS: usize = 20;

/// How many rounds may find the file system in use, because a program that another test starts has
/// a copy of the file until it begins, or another program looks at it. A file that a worker of the
/// kernel releases some milliseconds later is in use in nearly every round.
const DISTURBED: usize = 4;
