//! A file system on the bench's disk with files, as many as fill it or as are read; and sequential
//! reads of one of them, or of the raw disk.

use super::bench::{Bench, MB, MPEG1, SEED, system_name};
use super::{FileSystem, Mounted, THEIR_DISK};
use crate::error::MeterError;
use crate::rounds::{FileAStream, RoundPace, RoundsPlan};
use crate::target::QueuedPort;
use device::{FileDevice, Method, OpenOptions};
use std::io::ErrorKind;
use std::path::PathBuf;
use units::ByteCount;

/// The files on the disk, in the order of their streams.
pub(super) struct Filled {
    pub(super) mounted: Mounted,
    files: Vec<PathBuf>,
    /// The length of each file, in whole pages.
    pub(super) len: ByteCount,
}

impl Filled {
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.files.len()).expect("few files")
    }

    /// Opens the first `count` files for reading through the page cache, as programs do.
    pub(super) fn open(&self, count: u32) -> Result<Vec<FileDevice>, MeterError> {
        let buffered = OpenOptions { direct: false, ..OpenOptions::default() };
        let count = usize::try_from(count).expect("few files");
        let open = |path: &PathBuf| FileDevice::open(path, buffered);
        Ok(self.files.iter().take(count).map(open).collect::<Result<Vec<_>, _>>()?)
    }

    /// The files, in the order of their streams.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl Bench<'_> {
    /// Makes a new file system and fills it with files.
    pub(super) fn fill(&mut self, kind: FileSystem) -> Result<Filled, MeterError> {
        self.fill_with(kind, FILES, file_of(self.model.capacity()))
    }

    /// Makes a new file system with up to `count` files, written one after another, 1 MB at a time.
    /// Streams use them in another order than they were written in.
    pub(super) fn fill_with(
        &mut self,
        kind: FileSystem,
        count: u32,
        len: ByteCount,
    ) -> Result<Filled, MeterError> {
        self.disk.set_fast(true);
        let size = self.model.capacity();
        self.say(&format!("making {}", kind.name()));
        let mounted = kind.make(self.device(), units::align_down(size.0, 1 << 20))?;
        let mut files = Vec::new();
        for number in 0..count {
            self.say(&format!("filling {}: {number} of {count} files", kind.name()));
            let path = mounted.folder().join(format!("film-{number:02}"));
            let stop = self.stop;
            match mounted.write(&path, len.0, &|| !stop.is_asked()) {
                Ok(()) => files.push(path),
                Err(error) if error.kind() == ErrorKind::StorageFull && !files.is_empty() => {
                    // The file system reserves more space than others: fewer files fit.
                    std::fs::remove_file(&path).map_err(MeterError::cannot("remove", &path))?;
                    break;
                }
                Err(error) => {
                    self.still()?;
                    return Err(MeterError::cannot("write", &path)(error));
                }
            }
        }
        // Streams of neighbouring files would profit from the order on the disk.
        fastrand::Rng::with_seed(SEED).shuffle(&mut files);
        Ok(Filled { mounted, files, len })
    }

    /// Seconds for 100 MB read in steps of 1 MB by `pread`, the mean over places all over the disk.
    pub(super) fn sequential(&mut self, on: Option<&mut Filled>) -> Result<f64, MeterError> {
        let what = format!("{}, one after another", system_name(on.as_deref()));
        let disk = self.model.capacity();
        let len = file_of(disk);
        let blocks = u32::try_from(len.0 / MB.0).expect("a hundred").max(1);
        let (starts, size, files) = match on {
            None => (RoundsPlan::spread(PLACES, disk, MB, MPEG1).starts, disk, None),
            Some(filled) => {
                // A new mount has an empty page cache.
                filled.mounted.mount_cold(None)?;
                let files = filled.open(filled.count())?;
                let all = files.len() as u64;
                let starts = (0..u64::from(PLACES)).map(|i| all * i / u64::from(PLACES) * len.0);
                (starts.collect(), ByteCount(all * len.0), Some(files))
            }
        };
        let mut total = 0.0;
        for start in starts {
            let one = RoundsPlan::spread(1, size, MB, MPEG1);
            let plan =
                RoundsPlan { starts: vec![start], pace: RoundPace::Free, rounds: blocks, ..one };
            let outcome = if let Some(files) = &files {
                self.timed(&plan, &what, None, |origin| {
                    Ok(Box::new(FileAStream::new(files, len, MB, Method::Pread, origin)?))
                })?
            } else {
                let device = FileDevice::open(self.device(), OpenOptions::default())?;
                let pool = QueuedPort::pool(1, MB);
                let queue = device.queue_by(Method::Pread, 1, &pool)?;
                self.timed(&plan, &what, None, |origin| {
                    Ok(Box::new(QueuedPort::new(&device, queue, pool, origin)))
                })?
            };
            total += outcome.rounds.iter().map(|round| round.took.as_secs_f64()).sum::<f64>();
        }
        self.done += 1;
        Ok(total / f64::from(PLACES * blocks) * 100.0)
    }
}

/// The length of a file: 100 MB on the paper's disk, in proportion on a smaller one.
pub(super) fn file_of(disk: ByteCount) -> ByteCount {
    let theirs = 100 * MB.0;
    let part = u128::from(theirs) * u128::from(disk.0) / u128::from(THEIR_DISK.0);
    ByteCount(units::align_up(u64::try_from(part).expect("no longer than the disk"), PAGE))
}

/// The number of files that fill the disk.
const FILES: u32 = 86;

const PAGE: u64 = 4096;

/// Number of places of the sequential reads, each a file's length.
const PLACES: u32 = 8;
