//! Files that are made and filled for a run, and removed afterwards.
//!
//! ```text
//!   DIR/.tenuto-meter-PID/00000000 00000001 00000002 ...      further sets: PID-1, PID-2 ...
//!
//!   in one go      │ 0 0 0 0 │ 1 1 1 1 │ 2 2 2 2 │       each is allocated before it is written
//!   in pieces      │ 2 │ 0 │ 1 │ 0 │ 2 │ 1 │ ...         as on an aged file system: space is
//!                                                       allocated in pieces in random order
//! ```
//!
//! The directory is new; no file of another program is ever opened. Files and directory are removed
//! when the value is dropped, which happens at the end of the run however it ends, except when the
//! program is killed: then the next run names what to remove.

use super::files::BESIDE;
use super::storage::{TargetError, fill};
use device::{FileDevice, Links, OpenOptions, fragments, no_links, preallocate_part};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use units::ByteCount;

/// Test files that are created and filled for a run, and removed afterwards.
#[derive(Debug)]
pub(crate) struct TestFiles {
    dir: PathBuf,
    files: u32,
    each: ByteCount,
}

impl TestFiles {
    /// Makes and fills `count` files in `dir`, a path in which symbolic links are refused. `which`
    /// numbers the sets that this program has in the directory at the same time, from 0. `go_on`
    /// receives the total of bytes written so far.
    pub(crate) fn make(
        dir: &Path,
        which: u32,
        files: u32,
        each: ByteCount,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, TargetError> {
        let mut made = Self::begin(dir, which, each)?;
        for number in 0..files {
            made.files = number + 1;
            no_links::preallocate(&made.path(number), each)?;
            made.fill(number, go_on)?;
        }
        Ok(made)
    }

    /// Makes files as [`TestFiles::make`] does, with space allocated piece by piece in random order
    /// among all files. The file system decides how many extents result: [`TestFiles::fragments`].
    pub(crate) fn make_in_pieces(
        dir: &Path,
        which: u32,
        files: u32,
        each: ByteCount,
        piece: ByteCount,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, TargetError> {
        let mut made = Self::begin(dir, which, each)?;
        for number in 0..files {
            made.files = number + 1;
            let path = made.path(number);
            no_links::create_file(&path).map_err(|source| TargetError::making(dir, source))?;
        }
        let count = each.0.div_ceil(piece.0);
        let mut pieces: Vec<(u32, u64)> =
            (0..files).flat_map(|file| (0..count).map(move |part| (file, part))).collect();
        fastrand::Rng::with_seed(ORDER).shuffle(&mut pieces);
        for (file, part) in pieces {
            let from = part * piece.0;
            let len = ByteCount(piece.0.min(each.0 - from));
            preallocate_part(&made.path(file), from, len)?;
        }
        for number in 0..files {
            made.fill(number, go_on)?;
        }
        Ok(made)
    }

    fn begin(dir: &Path, which: u32, each: ByteCount) -> Result<Self, TargetError> {
        let dir = dir.join(match which {
            0 => name(),
            more => format!("{}-{more}", name()),
        });
        no_links::create_dir(&dir).map_err(|source| TargetError::making(&dir, source))?;
        // From here on dropping the value removes the directory.
        Ok(Self { dir, files: 0, each })
    }

    fn fill(&self, number: u32, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), TargetError> {
        let write = OpenOptions { write: true, links: Links::Refused, ..OpenOptions::default() };
        let before = u64::from(number) * self.each.0;
        let device = FileDevice::open(&self.path(number), write)?;
        fill(&device, self.each, number, &mut |done| go_on(before + done))
    }

    /// The total number of extents; `None` where the file system does not report it.
    pub(crate) fn fragments(&self) -> Result<Option<u64>, TargetError> {
        let mut all = 0;
        for number in 0..self.files {
            let Some(count) = fragments(&self.path(number))? else { return Ok(None) };
            all += count;
        }
        Ok(Some(all))
    }

    /// The path of file `number`.
    pub(crate) fn path(&self, number: u32) -> PathBuf {
        path(&self.dir, number)
    }

    /// The number of files.
    pub(crate) fn files(&self) -> u32 {
        self.files
    }

    /// Bytes of each file.
    pub(crate) fn each(&self) -> ByteCount {
        self.each
    }
}

impl Drop for TestFiles {
    /// Removes the files. A file that cannot be removed stays, because drop cannot report it, and
    /// the next run names it. A storage that hangs is not waited for.
    fn drop(&mut self) {
        let (dir, files) = (self.dir.clone(), self.files);
        let (tell, gone) = mpsc::channel();
        let work = move || remove(&dir, files, &tell);
        if std::thread::Builder::new().name("meter-remove".to_owned()).spawn(work).is_ok() {
            // Until the thread is through, or no file was removed for the length of the patience.
            while gone.recv_timeout(PATIENCE).is_ok() {}
        }
    }
}

/// Removes all files, and sends a message for each.
fn remove(dir: &Path, files: u32, tell: &mpsc::Sender<()>) {
    let one = |path: PathBuf| {
        let _ = no_links::remove_file(&path);
        let _ = tell.send(());
    };
    (0..files).for_each(|number| one(path(dir, number)));
    // Files that were to replace one of them and did not get so far.
    let inside = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let beside = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extension.starts_with(BESIDE))
    };
    inside.map(|entry| entry.path()).filter(beside).for_each(one);
    let _ = no_links::remove_dir(dir);
}

fn path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}"))
}

/// The longest wait for the removal of one file: a large one takes seconds on some file systems.
const PATIENCE: Duration = Duration::from_secs(30);

/// The seed for the order of pieces.
const ORDER: u64 = 3362;

/// The name of the directory that the meter creates in a user's directory.
pub(super) fn name() -> String {
    format!(".tenuto-meter-{}", std::process::id())
}
