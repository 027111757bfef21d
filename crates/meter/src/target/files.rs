//! Many files, or files that are opened and closed each time: threads that block.
//!
//! A client that keeps a file between operations has one under way at most.

use super::layout::PAGE;
use super::queued::{SEED, largest, stamp};
use super::{Handle, IoCompletion, IoRequest, PoolWorker, Port, ThreadPool};
use crate::log::OperationKind;
use device::{BlockDevice, Buffer, DeviceError, FileDevice, OpenMode, OpenOptions, Pool, RawFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// How files are used.
#[derive(Clone, Debug)]
pub struct Use {
    /// Which, by their numbers.
    pub paths: Vec<PathBuf>,
    /// Past the page cache where the file system can.
    pub direct: bool,
    /// Whether any operation writes.
    pub write: bool,
    /// Whether they are opened before the run ([`Handle::Kept`]).
    pub keep: bool,
    /// What an operation that opens a file to write makes of it.
    pub anew: Anew,
    /// Operations under way at most.
    pub at_once: u32,
    /// Bytes of an operation at most.
    pub largest: ByteCount,
}

/// What becomes of a file that is opened to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anew {
    /// It is written over in places.
    #[default]
    No,
    /// It is made anew under its name, as a camera does.
    InPlace,
    /// A new one is written beside it, and takes its name when it is whole and closed, as an
    /// editor does: who reads sees the old one or the new one.
    Replaced,
}

struct SharedFiles {
    files: Use,
    direct: bool,
    kept: Vec<RawFile>,
    /// File descriptors of clients that keep one of their own.
    own: Mutex<BTreeMap<u32, RawFile>>,
    pool: Pool,
    grain: u64,
    origin: Instant,
}

/// The door to files. Opens what is to be kept open; there is at least one file. `origin` is moment
/// zero.
pub fn files_port(files: Use, origin: Instant) -> Result<impl Port, DeviceError> {
    let options = OpenOptions { direct: files.direct, write: false, exclusive: false };
    let one = FileDevice::open(&files.paths[0], options)?;
    let direct = one.is_direct();
    let grain = if direct { u64::from(one.geometry().block).max(PAGE) } else { 1 };
    let opening = if files.write { OpenMode::Update } else { OpenMode::Read };
    let keep = if files.keep { files.paths.as_slice() } else { &[] };
    let open = |path: &PathBuf| RawFile::open(path, opening, direct);
    let kept = keep.iter().map(open).collect::<Result<_, _>>()?;
    let room = largest(files.largest);
    let limit = ByteCount(room.saturating_mul(files.at_once.into()));
    let at_once = files.at_once;
    let shared = SharedFiles {
        files,
        direct,
        kept,
        own: Mutex::default(),
        pool: Pool::new(limit, ByteCount(room)),
        grain,
        origin,
    };
    Ok(ThreadPool::new(shared, at_once))
}

impl PoolWorker for SharedFiles {
    type Own = Buffer;

    /// For one thread; where it writes full of bytes that no storage can shorten. A thread is made
    /// when an operation needs it, which waits for this.
    fn own(&self) -> Buffer {
        let len =
            usize::try_from(largest(self.files.largest)).expect("an operation fits in memory");
        let mut buffer = self.pool.take(len).expect("a buffer for each thread");
        if self.files.write {
            fastrand::Rng::with_seed(SEED).fill(&mut buffer);
        }
        buffer
    }

    fn perform(&self, request: &IoRequest, memory: &mut Buffer) -> IoCompletion {
        let mut arrived = IoCompletion::new(request.tag, Moment::ZERO, Ok(()));
        let moved = self.moved(request, memory, &mut arrived.open, &mut arrived.close);
        arrived.result = moved.map_err(Box::new);
        arrived.at = self.now();
        arrived
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn method(&self) -> String {
        let cache = if self.direct { "direct" } else { "through the page cache" };
        format!("threads, {cache}, {} files", self.files.paths.len())
    }
}

impl SharedFiles {
    fn moved(
        &self,
        request: &IoRequest,
        memory: &mut Buffer,
        open: &mut Duration,
        close: &mut Duration,
    ) -> Result<(), DeviceError> {
        let number = usize::try_from(request.file).expect("32 bits fit");
        let Handle::Own { client, open: opens, close: closes } = request.handle else {
            return self.transfer(&self.kept[number], request, memory);
        };
        let began = Instant::now();
        let file = if opens {
            let opening = match request.kind {
                OperationKind::Read => OpenMode::Read,
                OperationKind::Write if self.files.anew != Anew::No => OpenMode::Create,
                OperationKind::Write => OpenMode::Update,
            };
            RawFile::open(&self.written(request, client), opening, self.direct)?
        } else {
            let kept = self.clients().remove(&client);
            kept.expect("a client opens a file before it goes on with it")
        };
        if opens {
            *open = began.elapsed();
        }
        let moved = self.transfer(&file, request, memory);
        if closes {
            let began = Instant::now();
            drop(file);
            let replaced = self.put_in_place(request, client, moved.is_ok());
            *close = began.elapsed();
            return moved.and(replaced);
        }
        self.clients().insert(client, file);
        moved
    }

    /// The file that the client writes, or reads.
    fn written(&self, request: &IoRequest, client: u32) -> PathBuf {
        let path = &self.files.paths[usize::try_from(request.file).expect("32 bits fit")];
        let beside = request.kind == OperationKind::Write && self.files.anew == Anew::Replaced;
        if beside { beside_of(path, client) } else { path.clone() }
    }

    /// Renames a complete new file to the old one's name.
    fn put_in_place(
        &self,
        request: &IoRequest,
        client: u32,
        whole: bool,
    ) -> Result<(), DeviceError> {
        let path = &self.files.paths[usize::try_from(request.file).expect("32 bits fit")];
        let new = self.written(request, client);
        if !whole || new == *path {
            return Ok(());
        }
        std::fs::rename(&new, path).map_err(|source| DeviceError::Io {
            action: "renaming",
            path: new,
            offset: 0,
            length: 0,
            source,
        })
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, RawFile>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transfer(
        &self,
        file: &RawFile,
        request: &IoRequest,
        memory: &mut Buffer,
    ) -> Result<(), DeviceError> {
        let from = units::align_down(request.offset, self.grain);
        let len = units::align_up(request.offset + request.len, self.grain) - from;
        let memory = &mut memory[..usize::try_from(len).expect("it is within the largest")];
        match request.kind {
            OperationKind::Read => file.read_at(from, memory),
            OperationKind::Write => {
                stamp(memory, request.tag);
                file.write_at(from, memory)
            }
        }
    }
}

/// The new file that a client writes. [`MadeFiles`](super::TestFiles) removes it, too.
fn beside_of(path: &Path, client: u32) -> PathBuf {
    path.with_extension(format!("{BESIDE}{client}"))
}

/// What the extension of such a file begins with.
pub(super) const BESIDE: &str = "new-";
