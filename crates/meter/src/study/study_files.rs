//! The files of a study: made when they are first needed, and kept until the study ends.
//!
//! ```text
//!   node 0: file 0, file 2, file 4 ...      node 1: file 1, file 3, file 5 ...
//! ```

use super::{Cache, FileLayout, Setting, StudyTarget};
use crate::error::MeterError;
use crate::target::{
    Anew, FILL_PATIENCE, FileNames, FillLevel, Filling, LeftBehind, Port, SimulatedPort, TestFiles,
    Use, files_port, fill_aside,
};
use device::{DeviceError, OpenMode, Pool, RawFile, SimulatedDisk};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::ByteCount;

/// The files of a study.
pub(super) struct StudyFiles<'a> {
    target: &'a StudyTarget,
    clients: u32,
    left: LeftBehind,
    made: Vec<LayoutFiles>,
}

struct LayoutFiles {
    key: Key,
    /// The files of each node.
    nodes: Vec<TestFiles>,
    /// The space that is reserved as long as the files exist.
    #[expect(dead_code, reason = "kept, and nothing else")]
    ballast: Option<FillLevel>,
}

/// The properties that settings share when they share files.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    files: u32,
    each: u64,
    layout: FileLayout,
    nodes: u32,
}

impl<'a> StudyFiles<'a> {
    /// No files yet; `left` receives what cannot be removed at the end.
    pub(super) fn new(target: &'a StudyTarget, clients: u32, left: &LeftBehind) -> Self {
        Self { target, clients, left: left.clone(), made: Vec::new() }
    }

    /// A port to a setting's files, with the state of the page cache that the setting requires.
    /// `hear` receives the state of files that are made; they are not if it returns false.
    pub(super) fn port(
        &mut self,
        setting: &Setting,
        hear: &mut dyn FnMut(Filling) -> bool,
    ) -> Result<Box<dyn Port>, MeterError> {
        let target = self.target;
        if let StudyTarget::Simulated(model) = target {
            return Ok(Box::new(simulated(model, setting)));
        }
        let paths = match target {
            StudyTarget::One { path, .. } => vec![path.clone()],
            _ => self.paths(setting, hear)?,
        };
        match setting.cache {
            Cache::Passed => {}
            Cache::Emptied => paths
                .iter()
                .try_for_each(|path| RawFile::open(path, OpenMode::Read, false)?.forget())?,
            Cache::Filled => paths.iter().try_for_each(|path| read_all(path, setting.bytes()))?,
        }
        let how = Use {
            paths,
            direct: setting.cache == Cache::Passed,
            write: setting.mix.writes(),
            keep: false,
            anew: Anew::No,
            ragged: false,
            at_once: self.clients,
            largest: ByteCount(setting.mix.largest_block().into()),
            verifier: None,
        };
        Ok(Box::new(files_port(how, Instant::now())?))
    }

    /// The number of extents of a setting's files; `None` if they do not exist or the file system
    /// does not report it.
    pub(super) fn fragments(&self, setting: &Setting) -> Option<u64> {
        let made = self.made.iter().find(|made| made.key == Key::of(setting))?;
        let counts = made.nodes.iter().map(|files| files.fragments().ok().flatten());
        counts.sum()
    }

    fn paths(
        &mut self,
        setting: &Setting,
        hear: &mut dyn FnMut(Filling) -> bool,
    ) -> Result<Vec<PathBuf>, MeterError> {
        let key = Key::of(setting);
        if let FileLayout::FilledTo(_) = key.layout {
            // Files of other settings would count toward the fill level.
            self.made.clear();
        }
        if !self.made.iter().any(|made| made.key == key) {
            let StudyTarget::Directories(dirs) = self.target else {
                unreachable!("files are made in directories only")
            };
            let which = u32::try_from(self.made.len()).expect("a few");
            let (dirs, left) = (dirs.clone(), self.left.clone());
            let make = move |go_on: &mut dyn FnMut(u64) -> bool| {
                LayoutFiles::make(key, which, &dirs, &left, go_on)
            };
            let made = fill_aside(FILL_PATIENCE, make, hear)?;
            self.made.push(made);
        }
        let made = self.made.iter().find(|made| made.key == key).expect("just made");
        let path = |number: u32| {
            let node = usize::try_from(number % key.nodes).expect("one of two");
            made.nodes[node].path(number / key.nodes)
        };
        Ok((0..key.files).map(path).collect())
    }
}

impl LayoutFiles {
    /// Makes and fills the files. `which` numbers the sets in the directories; `left` receives what
    /// cannot be removed at the end, and `go_on` the bytes written so far.
    fn make(
        key: Key,
        which: u32,
        dirs: &[PathBuf],
        left: &LeftBehind,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, MeterError> {
        let (each, count) = (ByteCount(key.each), key.files / key.nodes);
        // Before the files, so that they get what a full file system has left.
        let ballast = match key.layout {
            FileLayout::FilledTo(percent) if percent > 0 => {
                FillLevel::make(&dirs[0], percent.into(), ByteCount(each.0 * u64::from(key.files)))?
            }
            _ => None,
        };
        let mut nodes = Vec::new();
        for (before, dir) in (0..key.nodes).zip(dirs) {
            let before = u64::from(before * count) * each.0;
            let mut show = |done| go_on(before + done);
            let place = (dir.as_path(), left);
            nodes.push(match key.layout {
                FileLayout::InPieces(piece) => TestFiles::make_in_pieces(
                    place,
                    which,
                    count,
                    each,
                    ByteCount(piece),
                    &mut show,
                )?,
                FileLayout::InOneGo | FileLayout::FilledTo(_) => {
                    TestFiles::make(place, which, count, each, FileNames::Numbers, &mut show)?
                }
            });
        }
        Ok(Self { key, nodes, ballast })
    }
}

impl Key {
    fn of(setting: &Setting) -> Self {
        let Setting { mix, layout, nodes, .. } = setting;
        // Settings that read different parts of a file share the file.
        Self { files: mix.files, each: setting.whole, layout: *layout, nodes: *nodes }
    }
}

fn simulated(model: &DiskModel, setting: &Setting) -> SimulatedPort {
    let disk = || SimulatedDisk::new(model);
    let more = (1..setting.nodes).map(|_| disk());
    let port = SimulatedPort::with_files(disk(), ByteCount(setting.whole)).and(more);
    match setting.layout {
        FileLayout::InOneGo => port,
        FileLayout::InPieces(piece) => port.in_pieces(setting.mix.files, ByteCount(piece), ORDER),
        FileLayout::FilledTo(percent) => {
            let room = model.capacity().0 - setting.bytes();
            let from = (model.capacity().0 / 100 * u64::from(percent)).min(room);
            port.from(ByteCount(units::align_down(from, 4096)))
        }
    }
}

/// The seed for the order of pieces in simulated files.
const ORDER: u64 = 3362;

fn read_all(path: &Path, bytes: u64) -> Result<(), DeviceError> {
    let file = RawFile::open(path, OpenMode::Read, false)?;
    let pool = Pool::new(ByteCount(PIECE), ByteCount(PIECE));
    let whole = usize::try_from(PIECE).expect("a small piece");
    let mut memory = pool.take(whole).expect("the only one");
    let mut at = 0;
    while at < bytes {
        let len = usize::try_from(bytes - at).unwrap_or(whole).min(whole);
        file.read_at(at, &mut memory[..len])?;
        at += len as u64;
    }
    Ok(())
}

const PIECE: u64 = 1 << 20;
