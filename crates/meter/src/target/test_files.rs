//! Files that are made and filled for a run, and removed afterwards.
//!
//! ```text
//!   DIR/.tenuto-meter-PID/00000000 00000001 00000002 ...      further sets: PID-1, PID-2 ...
//!
//!   DIR/.tenuto-meter-PID/A001C001/A001C001_0000000.dpx ...   with names as cameras write them
//!
//!   in one go      │ 0 0 0 0 │ 1 1 1 1 │ 2 2 2 2 │       each is allocated before it is written
//!   in pieces      │ 2 │ 0 │ 1 │ 0 │ 2 │ 1 │ ...         as on an aged file system: space is
//!                                                       allocated in pieces in random order
//! ```
//!
//! The directory is new; no file of another program is ever opened. Files and directory are removed
//! when the value is dropped, which happens at the end of the run however it ends, except when the
//! program is killed: then the next run names what to remove ([`LeftBehind`]).

use super::FrameNames;
use super::files::BESIDE;
use super::layout::PAGE;
use super::left_behind::{LeftBehind, removal};
use super::storage::{cannot_make, fill};
use crate::error::MeterError;
use device::{FileDevice, Links, OpenOptions, fragments, no_links, preallocate_part};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use units::ByteCount;
use units::show::count;

/// Test files that are created and filled for a run, and removed afterwards; or the frames of an
/// existing sequence, which stay.
#[derive(Debug)]
pub(crate) struct TestFiles {
    dir: PathBuf,
    files: u32,
    each: ByteCount,
    names: FileNames,
    left: LeftBehind,
}

/// The names of files by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) enum FileNames {
    /// Eight digits.
    #[default]
    Numbers,
    /// As cameras write them: so many frames in each clip.
    Frames {
        /// The pattern.
        names: FrameNames,
        /// The number of frames of a clip.
        per_clip: u32,
    },
    /// Existing files, in the order of their clips and frames.
    Existing(Vec<PathBuf>),
}

impl FileNames {
    fn path(&self, dir: &Path, number: u32) -> PathBuf {
        match self {
            Self::Numbers => dir.join(format!("{number:08}")),
            Self::Frames { names, per_clip } if names.has_clips() => {
                let clip = number / per_clip + 1;
                dir.join(names.path(clip, (number % per_clip).into()))
            }
            Self::Frames { names, .. } => dir.join(names.path(0, number.into())),
            Self::Existing(paths) => paths[units::index(number)].clone(),
        }
    }
}

impl TestFiles {
    /// Makes and fills `count` files in `dir`, a path in which symbolic links are refused. `which`
    /// numbers the sets that this program has in the directory at the same time, from 0. `left`
    /// receives what cannot be removed at the end, and `go_on` the total of bytes written so far.
    pub(crate) fn make(
        (dir, left): (&Path, &LeftBehind),
        which: u32,
        files: u32,
        each: ByteCount,
        names: FileNames,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, MeterError> {
        let mut made = Self::begin(dir, left, which, each)?;
        made.names = names;
        for number in 0..files {
            made.make_directories(number)?;
            made.files = number + 1;
            no_links::preallocate(&made.path(number), each)?;
            made.fill(number, go_on)?;
        }
        Ok(made)
    }

    /// Makes files as [`TestFiles::make`] does, with space allocated piece by piece in random order
    /// among all files. The file system decides how many extents result: [`TestFiles::fragments`].
    pub(crate) fn make_in_pieces(
        (dir, left): (&Path, &LeftBehind),
        which: u32,
        files: u32,
        each: ByteCount,
        piece: ByteCount,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, MeterError> {
        let mut made = Self::begin(dir, left, which, each)?;
        for number in 0..files {
            made.files = number + 1;
            let path = made.path(number);
            no_links::create_file(&path).map_err(|error| cannot_make(dir, &error))?;
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

    /// The frames of an existing sequence below `dir` with these names, each of at least `least`
    /// bytes.
    pub(crate) fn existing(
        dir: &Path,
        names: &FrameNames,
        least: ByteCount,
    ) -> Result<Self, MeterError> {
        let mut found = Vec::new();
        search(dir, "", names.depth(), names, &mut found).map_err(|error| {
            MeterError::cannot("read", dir)(error).hint("name a directory that you may read")
        })?;
        // In the order in which a player shows them, whatever the order of the directory.
        found.sort();
        let Some(shortest) = found.iter().map(|frame| frame.len).min() else {
            let path = dir.join(names.text());
            return Err(MeterError::usage(format!("no file is named {}", path.display()))
                .hint("write the names as they are: %07d is a number of seven digits"));
        };
        if let Some(FoundFrame { path, .. }) = found.iter().find(|frame| frame.sparse) {
            let path = path.display();
            return Err(MeterError::new(format!("parts of {path} have no place on disk"))
                .hint("fill the file first"));
        }
        if let Some(FoundFrame { len, path, .. }) = found.iter().find(|frame| frame.len < least.0) {
            let (path, has) = (path.display(), ByteCount(*len));
            return Err(MeterError::usage(format!(
                "{path} has {has}, and a frame of the profile {least}"
            ))
            .hint("choose the profile of these frames, or make one"));
        }
        let files = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let paths = found.into_iter().map(|frame| frame.path).collect();
        let (dir, each) = (dir.to_owned(), ByteCount(units::align_up(shortest, PAGE)));
        let (names, left) = (FileNames::Existing(paths), LeftBehind::default());
        Ok(Self { dir, files, each, names, left })
    }

    /// Makes the directories of file `number`, if no earlier file has made them.
    fn make_directories(&self, number: u32) -> Result<(), MeterError> {
        let FileNames::Frames { .. } = self.names else { return Ok(()) };
        let path = self.path(number);
        let below: Vec<&Path> =
            path.ancestors().skip(1).take_while(|above| *above != self.dir).collect();
        for dir in below.into_iter().rev().filter(|dir| !dir.exists()) {
            no_links::create_dir(dir).map_err(|error| cannot_make(dir, &error))?;
        }
        Ok(())
    }

    fn begin(
        dir: &Path,
        left: &LeftBehind,
        which: u32,
        each: ByteCount,
    ) -> Result<Self, MeterError> {
        let dir = dir.join(match which {
            0 => name(),
            more => format!("{}-{more}", name()),
        });
        no_links::create_dir(&dir).map_err(|error| cannot_make(&dir, &error))?;
        // From here on dropping the value removes the directory.
        Ok(Self { dir, files: 0, each, names: FileNames::Numbers, left: left.clone() })
    }

    fn fill(&self, number: u32, go_on: &mut dyn FnMut(u64) -> bool) -> Result<(), MeterError> {
        let write = OpenOptions { write: true, links: Links::Refused, ..OpenOptions::default() };
        let before = u64::from(number) * self.each.0;
        let device = FileDevice::open(&self.path(number), write)?;
        fill(&device, self.each, number, &mut |done| go_on(before + done))
    }

    /// The total number of extents; `None` where the file system does not report it.
    pub(crate) fn fragments(&self) -> Result<Option<u64>, MeterError> {
        let mut all = 0;
        for number in 0..self.files {
            let Some(count) = fragments(&self.path(number))? else { return Ok(None) };
            all += count;
        }
        Ok(Some(all))
    }

    /// The path of file `number`.
    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.names.path(&self.dir, number)
    }

    /// Whether the files were there before, and stay.
    pub(crate) fn stay(&self) -> bool {
        matches!(self.names, FileNames::Existing(_))
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
    /// Removes the files, and notes what cannot be removed. A storage that hangs is not waited for.
    fn drop(&mut self) {
        if self.stay() {
            return;
        }
        let (dir, files, names) = (self.dir.clone(), self.files, self.names.clone());
        let (tell, gone) = mpsc::channel();
        let work = move || remove(&dir, files, &names, &tell);
        if std::thread::Builder::new().name("meter-remove".to_owned()).spawn(work).is_ok() {
            // Until the thread is through, or no file was removed for the length of the patience.
            let (mut kept, mut first) = (0u64, None);
            let hangs = loop {
                match gone.recv_timeout(PATIENCE) {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => {
                        kept += 1;
                        first.get_or_insert(why);
                    }
                    Err(ended) => break ended == RecvTimeoutError::Timeout,
                }
            };
            let command = removal(&self.dir);
            let dir = self.dir.display();
            if hangs {
                self.left.add(format!("{dir} may be left: its storage hangs; later: {command}"));
            } else if let Some(why) = first {
                let files = count(kept, "file");
                self.left.add(format!("{files} of {dir} could not be removed: {why}; {command}"));
            } else if self.dir.exists() {
                self.left.add(format!("{dir} could not be removed; {command}"));
            }
        }
    }
}

/// Removes all files, and sends a message for each: whether it is gone, or why it is not.
fn remove(dir: &Path, files: u32, names: &FileNames, tell: &mpsc::Sender<Result<(), String>>) {
    let one = |path: PathBuf| {
        let removed = match no_links::remove_file(&path) {
            // A file that was never made, or one that somebody else has removed.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", path.display()))
            }
            _ => Ok(()),
        };
        let _ = tell.send(removed);
    };
    // The directories of clips, the innermost first.
    let mut clips = BTreeSet::new();
    for path in (0..files).map(|number| names.path(dir, number)) {
        let above = path.ancestors().skip(1).take_while(|above| *above != dir);
        clips.extend(above.map(Path::to_owned));
        one(path);
    }
    for clip in clips.iter().rev() {
        let _ = no_links::remove_dir(clip);
    }
    // Files that were to replace one of them and did not get so far.
    let inside = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let beside = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extension.starts_with(BESIDE))
    };
    inside.map(|entry| entry.path()).filter(beside).for_each(one);
    let _ = no_links::remove_dir(dir);
}

/// A frame that was found.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoundFrame {
    /// The numbers of its clip and of the frame, by which frames are ordered.
    numbers: (u64, u64),
    len: u64,
    /// Parts of the file have no place on disk.
    sparse: bool,
    path: PathBuf,
}

/// The unit in which the kernel counts allocated space.
const BLOCK: u64 = 512;

/// Collects the files with these names below `dir`, which is `below` below the target, and in its
/// directories down to `depth`. Symbolic links are no frames.
fn search(
    dir: &Path,
    below: &str,
    depth: usize,
    names: &FrameNames,
    found: &mut Vec<FoundFrame>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, kind) = (format!("{below}{name}"), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            search(&entry.path(), &format!("{path}/"), depth - 1, names, found)?;
        } else if let (true, Some(numbers)) = (kind.is_file(), names.numbers(&path)) {
            let about = entry.metadata()?;
            let sparse = about.blocks() * BLOCK < about.len();
            found.push(FoundFrame { numbers, len: about.len(), sparse, path: entry.path() });
        }
    }
    Ok(())
}

/// The longest wait for the removal of one file: a large one takes seconds on some file systems.
const PATIENCE: Duration = Duration::from_secs(30);

/// The seed for the order of pieces.
const ORDER: u64 = 3362;

/// The name of the directory that the meter creates in a user's directory.
pub(super) fn name() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// The first characters of that name; the number of the process follows.
pub(super) const PREFIX: &str = ".tenuto-meter-";
