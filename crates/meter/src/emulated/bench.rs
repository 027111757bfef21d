//! The disk, its clock, and rounds on it: raw, or through a file for each stream.

use super::{EmulatedError, EmulatedOptions, FileSystem, Mounted, Progress};
use crate::rounds::{
    Capacity, Faster, FileAStream, Order, Outcome, Pace, Plan, Round, most_streams_by_halves, run,
};
use crate::target::{Port, QueuedPort};
use device::{DiskStatistics, EmulateOptions, EmulatedDisk, FileDevice, Method, OpenOptions};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use units::{BitRate, ByteCount};

/// How a round's blocks are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// For tables.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) order: Order,
    pub(super) at_once: AtOnce,
    /// Of a file system; `None`: the kernel's own.
    pub(super) read_ahead_kib: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum AtOnce {
    Few(u32),
    All,
}

impl AtOnce {
    fn of(self, streams: u32) -> u32 {
        match self {
            Self::Few(few) => few.min(streams),
            Self::All => streams,
        }
    }
}

impl Way {
    /// So many at once, if that does not depend on the streams.
    pub(super) fn few(&self) -> Option<u32> {
        match self.at_once {
            AtOnce::Few(few) => Some(few),
            AtOnce::All => None,
        }
    }
}

/// A disk of its own, taken down when dropped.
pub(super) struct Bench<'a> {
    disk: EmulatedDisk,
    pub(super) model: DiskModel,
    pub(super) options: &'a EmulatedOptions,
    progress: &'a mut dyn FnMut(Progress<'_>),
    stop: &'a AtomicBool,
    done: u32,
    all: u32,
    /// To be removed in the end: it was made for this.
    backing: Option<PathBuf>,
}

/// Files on the disk, in the order of their streams.
pub(super) struct Filled {
    mounted: Mounted,
    files: Vec<PathBuf>,
}

impl<'a> Bench<'a> {
    /// `all`: how many ways will be tried, for the progress.
    pub(super) fn start(
        options: &'a EmulatedOptions,
        all: u32,
        progress: &'a mut dyn FnMut(Progress<'_>),
        stop: &'a AtomicBool,
    ) -> Result<Self, EmulatedError> {
        options.file_systems().try_for_each(FileSystem::available)?;
        let model = DiskModel::preset(MODEL).expect("it comes along");
        let ours = !options.backing.exists();
        let emulate = EmulateOptions {
            size: Some(model.capacity()),
            attach: true,
            fast: true,
            speed: options.speed,
            ..EmulateOptions::new(&options.backing)
        };
        progress(Progress { what: "making the disk", found: false, done: 0.0 });
        let disk = EmulatedDisk::start(&model, &emulate)?;
        let backing = ours.then(|| options.backing.clone());
        Ok(Self { disk, model, options, progress, stop, done: 0, all, backing })
    }

    /// Why its timer is late on a busy machine, if it is.
    pub(super) fn not_in_real_time(&self) -> Option<&str> {
        self.disk.realtime().err()
    }

    /// How late it was so far, in the model's time.
    pub(super) fn statistics(&self) -> DiskStatistics {
        self.disk.statistics()
    }

    /// The most streams of `block` by a way, on the raw disk or on files.
    pub(super) fn most(
        &mut self,
        way: &Way,
        mut on: Option<&mut Filled>,
        about: u32,
        holds: fn(&Outcome) -> bool,
    ) -> Result<Capacity, EmulatedError> {
        let of = system_name(on.as_deref());
        let limit = on.as_ref().map_or(MOST_STREAMS, |filled| {
            u32::try_from(filled.files.len()).unwrap_or(MOST_STREAMS)
        });
        let found = most_streams_by_halves(about, limit, holds, |streams| {
            self.rounds(way, on.as_deref_mut(), streams, true)
        });
        self.done += 1;
        if let Ok(Capacity { most, .. }) = &found {
            self.tell(&format!("{of}, {}: {most} streams", way.name), true);
        }
        found
    }

    /// As many rounds as asked for; `hurried`: no more than say that too many are late.
    pub(super) fn rounds(
        &mut self,
        way: &Way,
        on: Option<&mut Filled>,
        streams: u32,
        hurried: bool,
    ) -> Result<Outcome, EmulatedError> {
        let what = format!("{}, {}, {streams} streams", system_name(on.as_deref()), way.name);
        let at_once = way.at_once.of(streams);
        let spread = Plan::spread(streams, self.model.capacity(), MB, MPEG1);
        let plan = Plan { rounds: self.options.rounds, order: way.order, at_once, ..spread };
        match on {
            None => {
                let device = FileDevice::open(self.device(), OpenOptions::default())?;
                let pool = QueuedPort::pool(at_once, MB);
                let queue = device.queue_by(way.method, at_once, &pool)?;
                self.timed(&plan, &what, hurried, |origin| {
                    Ok(Box::new(QueuedPort::new(&device, queue, pool, origin)))
                })
            }
            Some(filled) => {
                filled.mounted.mount_cold(way.read_ahead_kib)?;
                let starts = (0..u64::from(streams)).map(|file| file * FILE.0).collect();
                let plan = Plan { starts, size: ByteCount(FILE.0 * u64::from(streams)), ..plan };
                let open = |path: &PathBuf| FileDevice::open(path, BUFFERED);
                let count = usize::try_from(streams).expect("few streams");
                let files = filled.files.iter().take(count).map(open);
                let files = files.collect::<Result<Vec<_>, _>>()?;
                self.timed(&plan, &what, hurried, |origin| {
                    Ok(Box::new(FileAStream::new(&files, FILE, MB, way.method, origin)?))
                })
            }
        }
    }

    /// Seconds for 100 MB read one after another at a few places all over, by `pread`.
    pub(super) fn sequential(&mut self, on: Option<&mut Filled>) -> Result<f64, EmulatedError> {
        let what = format!("{}, one after another", system_name(on.as_deref()));
        let size = self.model.capacity();
        let (starts, size, files) = match on {
            None => (Plan::spread(PLACES, size, MB, MPEG1).starts, size, None),
            Some(filled) => {
                filled.mounted.mount_cold(None)?;
                let open = |path: &PathBuf| FileDevice::open(path, BUFFERED);
                let files = filled.files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
                let all = files.len() as u64;
                let starts = (0..u64::from(PLACES)).map(|i| all * i / u64::from(PLACES) * FILE.0);
                (starts.collect(), ByteCount(all * FILE.0), Some(files))
            }
        };
        let mut total = 0.0;
        for start in starts {
            let plan =
                Plan { starts: vec![start], pace: Pace::Free, ..Plan::spread(1, size, MB, MPEG1) };
            let outcome = if let Some(files) = &files {
                self.timed(&plan, &what, false, |origin| {
                    Ok(Box::new(FileAStream::new(files, FILE, MB, Method::Pread, origin)?))
                })?
            } else {
                let device = FileDevice::open(self.device(), OpenOptions::default())?;
                let pool = QueuedPort::pool(1, MB);
                let queue = device.queue_by(Method::Pread, 1, &pool)?;
                self.timed(&plan, &what, false, |origin| {
                    Ok(Box::new(QueuedPort::new(&device, queue, pool, origin)))
                })?
            };
            total += outcome.rounds.iter().map(|round| round.took.as_secs_f64()).sum::<f64>();
        }
        self.done += 1;
        Ok(total / f64::from(PLACES))
    }

    /// A new file system, filled with files as the paper fills it: one after another, 1 MB at a
    /// time, and used in another order.
    pub(super) fn fill(&mut self, kind: FileSystem) -> Result<Filled, EmulatedError> {
        self.disk.set_fast(true);
        let range = self.model.capacity().0 / (1 << 20) * (1 << 20);
        self.say(&format!("making {}", kind.name()));
        let mounted = kind.make(self.device(), range)?;
        let mut files = Vec::new();
        for number in 0..FILES {
            self.say(&format!("filling {}: {number} of {FILES} files", kind.name()));
            let path = mounted.folder().join(format!("film-{number:02}"));
            let stop = self.stop;
            match mounted.write(&path, FILE.0, &|| !stop.load(Ordering::Relaxed)) {
                Ok(()) => files.push(path),
                Err(EmulatedError::File { source, .. })
                    if source.kind() == std::io::ErrorKind::StorageFull && !files.is_empty() =>
                {
                    // It keeps more for itself than others do: that many files, then.
                    std::fs::remove_file(&path).map_err(EmulatedError::file("remove", &path))?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        fastrand::Rng::with_seed(SEED).shuffle(&mut files);
        Ok(Filled { mounted, files })
    }

    /// For people who wait.
    fn say(&mut self, what: &str) {
        self.tell(what, false);
    }

    fn tell(&mut self, what: &str, found: bool) {
        let done = f64::from(self.done) / f64::from(self.all.max(1));
        (self.progress)(Progress { what, found, done });
    }

    fn device(&self) -> &Path {
        self.disk.device().expect("attached")
    }

    fn still(&self) -> Result<(), EmulatedError> {
        if self.stop.load(Ordering::Relaxed) { Err(EmulatedError::Interrupted) } else { Ok(()) }
    }

    fn timed<'p>(
        &mut self,
        plan: &Plan,
        what: &str,
        hurried: bool,
        port: impl FnOnce(Instant) -> Result<Box<dyn Port + 'p>, EmulatedError> + Send,
    ) -> Result<Outcome, EmulatedError> {
        self.say(what);
        self.disk.set_fast(false);
        let (stop, speed) = (self.stop, self.options.speed);
        let mut go_on = |rounds: &[Round]| {
            let late = rounds.iter().filter(|round| round.late > 0).count();
            let decided = hurried && late > 1 && rounds.len() >= ENOUGH_ROUNDS;
            !decided && !stop.load(Ordering::Relaxed)
        };
        // A thread of its own: what it is late by should be the disk's doing, not that of whatever
        // else runs here. Where that is refused, it is as late as everybody.
        let outcome = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let _ = device::run_first();
                let mut port = Faster::new(port(Instant::now())?, speed);
                Ok(run(plan, &mut port, &mut go_on)?)
            });
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        self.disk.set_fast(true);
        self.still()?;
        outcome
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = self.disk.stop();
        if let Some(backing) = &self.backing {
            let _ = std::fs::remove_file(backing);
        }
    }
}

fn system_name(on: Option<&Filled>) -> &'static str {
    on.map_or("raw", |filled| filled.mounted.kind().name())
}

/// The paper's disk.
pub(super) const MODEL: &str = "st39183w";

/// What a stream reads in a round; the papers' own bounds need 10^6 bytes.
pub const MB: ByteCount = ByteCount(1_000_000);

/// What a stream plays.
pub const MPEG1: BitRate = BitRate(1_500_000);

/// The paper's files: 100 MB, in whole pages.
const FILE: ByteCount = ByteCount(units::align_up(100 * MB.0, 4096));

/// As many as fill the paper's disk.
const FILES: u32 = 86;

/// More than the disk could hold if it had no arm.
const MOST_STREAMS: u32 = 100;

/// Places of sequential reading, 100 MB each.
const PLACES: u32 = 8;

/// The distribution of rounds is told of runs that fail, too.
const ENOUGH_ROUNDS: usize = 12;

/// Of the order of files, and of random orders.
pub(super) const SEED: u64 = 1;

/// Through the page cache, as programs read files.
const BUFFERED: OpenOptions = OpenOptions { direct: false, write: false, exclusive: false };
