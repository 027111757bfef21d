//! Many files, or files that are opened and closed for each operation: blocking threads.
//!
//! A client that keeps a file open between operations has at most one operation in flight.

use super::layout::PAGE;
use super::queued::{SEED, largest, stamp};
use super::{Handle, IoCompletion, IoRequest, PoolWorker, Port, ThreadPool, Verifier};
use crate::log::OperationKind;
use device::{
    BlockDevice, Buffer, DeviceError, FileDevice, Links, OpenMode, OpenOptions, Pool, RawFile,
    no_links,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment, locked};

/// The files of a port and how they are used.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// The paths by file number, without symbolic links.
    pub paths: Vec<PathBuf>,
    /// Use direct I/O where the file system allows it.
    pub direct: bool,
    /// Whether any operation writes.
    pub write: bool,
    /// Whether files are opened before the run ([`Handle::Kept`]).
    pub keep: bool,
    /// The treatment of a file that is opened for writing.
    pub anew: Anew,
    /// Files may end within the last page of a read, which is then complete.
    pub ragged: bool,
    /// The largest number of operations in flight.
    pub at_once: u32,
    /// The largest operation in bytes.
    pub largest: ByteCount,
    /// Verifies what is read, if that is wanted.
    pub verifier: Option<Arc<Verifier>>,
}

/// The treatment of a file that is opened for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Anew {
    /// The file is overwritten in parts.
    #[default]
    No,
    /// The file is created again under its name, as cameras do.
    InPlace,
    /// A new file is written beside it and takes its name when it is complete and closed, as
    /// editors do: a reader sees the old file or the new one.
    Replaced,
}

struct SharedFiles {
    files: Use,
    direct: bool,
    kept: Vec<RawFile>,
    /// The file descriptors that clients keep for themselves.
    own: Mutex<BTreeMap<u32, RawFile>>,
    pool: Pool,
    grain: u64,
    origin: Instant,
}

/// A port to files. Opens the files that are kept open; there is at least one file. `origin` is the
/// zero of its clock.
pub(crate) fn files_port(files: Use, origin: Instant) -> Result<impl Port, DeviceError> {
    let options =
        OpenOptions { direct: files.direct, links: Links::Refused, ..OpenOptions::default() };
    let one = FileDevice::open(&files.paths[0], options)?;
    let direct = one.is_direct();
    let grain = if direct || files.verifier.is_some() {
        u64::from(one.geometry().block).max(PAGE)
    } else {
        1
    };
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

    /// The buffer of one thread, filled with incompressible bytes where the thread writes. A thread
    /// is started by an operation that waits for this buffer.
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
        let verifier = self.files.verifier.as_deref();
        let (from, len) = self.span(request);
        let checked = verifier.map(|verifier| match request.kind {
            OperationKind::Read => verifier.read(request.file, from, len),
            OperationKind::Write => verifier.write(request.file, from, &mut memory[..len]),
        });
        let mut moved = self.moved(request, memory, &mut arrived.open, &mut arrived.close);
        arrived.at = self.now();
        // Verifying takes the meter's time and not the storage's.
        if let Some((verifier, checked)) = verifier.zip(checked) {
            let path = || self.files.paths[units::index(request.file)].clone();
            let at = arrived.at.since(Moment::ZERO);
            moved = verifier.end(checked, &memory[..len], moved, at, path);
        }
        arrived.result = moved.map_err(Box::new);
        arrived
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn method(&self) -> String {
        let cache = if self.direct { "direct" } else { "through the page cache" };
        format!("threads, {cache}, {}", units::show::count(self.files.paths.len(), "file"))
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
        // Files that stay open are not timed: they were opened before the run.
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
            let kept = locked(&self.own).remove(&client);
            kept.expect("a client opens a file before it goes on with it")
        };
        if opens {
            *open = began.elapsed();
        }
        let moved = self.transfer(&file, request, memory);
        if closes {
            let began = Instant::now();
            drop(file);
            // A failed transfer must not replace the file that it was to renew.
            let replaced = self.put_in_place(request, client, moved.is_ok());
            *close = began.elapsed();
            return moved.and(replaced);
        }
        locked(&self.own).insert(client, file);
        moved
    }

    /// The file that the client writes or reads.
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
        no_links::rename(&new, path).map_err(|source| DeviceError::Io {
            action: "renaming",
            path: new,
            offset: 0,
            length: 0,
            source,
        })
    }

    /// The offset and the length of an operation in whole blocks.
    fn span(&self, request: &IoRequest) -> (u64, usize) {
        let from = units::align_down(request.offset, self.grain);
        let len = units::align_up(request.offset + request.len, self.grain) - from;
        (from, usize::try_from(len).expect("it is within the largest"))
    }

    fn transfer(
        &self,
        file: &RawFile,
        request: &IoRequest,
        memory: &mut Buffer,
    ) -> Result<(), DeviceError> {
        let (from, len) = self.span(request);
        let memory = &mut memory[..len];
        match request.kind {
            OperationKind::Read if self.files.ragged => {
                let least = usize::try_from(request.offset + request.len - from);
                file.read_at_least(from, memory, least.expect("it is within the largest"))
            }
            OperationKind::Read => file.read_at(from, memory),
            OperationKind::Write => {
                if self.files.verifier.is_none() {
                    stamp(memory, request.tag);
                }
                file.write_at(from, memory)
            }
        }
    }
}

/// The path of the new file that a client writes; [`TestFiles`](super::TestFiles) removes it too.
fn beside_of(path: &Path, client: u32) -> PathBuf {
    path.with_extension(format!("{BESIDE}{client}"))
}

/// The first characters of that file's extension.
pub(super) const BESIDE: &str = "new-";
