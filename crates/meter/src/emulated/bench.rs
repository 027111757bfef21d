//! The disk, its clock, and rounds on it: raw, or with one file for each stream.

use super::filled::Filled;
use super::ways::Way;
use super::{EmulatedOptions, EmulatedProgress, FileSystem, file_system};
use crate::error::MeterError;
use crate::rounds::{
    Capacity, Faster, FileAStream, Round, RoundPace, RoundsOutcome, RoundsPlan,
    most_streams_by_halves, run,
};
use crate::target::{Port, QueuedPort};
use device::{DiskStatistics, DiskStop, EmulateOptions, EmulatedDisk, FileDevice, OpenOptions};
use disk::DiskModel;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// The rule for when a number of streams counts as held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundRule {
    /// At most one round ends after its strict deadline.
    OneLate,
    /// The mean round is in time.
    Mean,
}

impl RoundRule {
    fn holds(self, outcome: &RoundsOutcome) -> bool {
        match self {
            Self::OneLate => outcome.holds(),
            Self::Mean => outcome.holds_in_the_mean(),
        }
    }

    /// Whether the attempt fails whatever the remaining rounds are like.
    fn is_lost(self, rounds: &[Round], plan: &RoundsPlan) -> bool {
        match self {
            Self::OneLate => rounds.iter().filter(|round| round.late > 0).count() > 1,
            Self::Mean => {
                let took: Duration = rounds.iter().map(|round| round.took).sum();
                took >= plan.round() * plan.rounds
            }
        }
    }
}

/// The largest number of streams by one read method.
pub(super) struct MostStreams {
    pub(super) capacity: Capacity,
    /// The disk's statistics over the attempts.
    pub(super) disk: DiskStatistics,
}

/// The times of a stream that was read to its end, in the model's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamTimes {
    pub(super) took: Duration,
    /// The longest time from one unit to the next.
    pub(super) longest_gap: Duration,
    pub(super) bytes: ByteCount,
}

impl StreamTimes {
    fn of(
        reader: &mut dyn Read,
        memory: &mut [u8],
        speed: u32,
        stop: &DiskStop,
    ) -> io::Result<Self> {
        let (began, mut last, mut longest) = (Instant::now(), Duration::ZERO, Duration::ZERO);
        let (mut bytes, mut filled) = (0, 0);
        while !stop.is_asked() {
            let got = reader.read(&mut memory[filled..])?;
            (bytes, filled) = (bytes + got as u64, filled + got);
            if got == 0 || filled == memory.len() {
                let now = began.elapsed();
                (longest, last, filled) = (longest.max(now - last), now, 0);
            }
            if got == 0 {
                break;
            }
        }
        let bytes = ByteCount(bytes);
        Ok(Self { took: last * speed, longest_gap: longest * speed, bytes })
    }
}

/// An emulated disk that is removed when dropped.
pub(super) struct Bench<'a> {
    pub(super) disk: EmulatedDisk,
    pub(super) model: DiskModel,
    pub(super) options: &'a EmulatedOptions,
    progress: &'a mut dyn FnMut(EmulatedProgress<'_>),
    pub(super) stop: &'a DiskStop,
    pub(super) done: u32,
    all: u32,
    /// The longest lateness of the disk so far, in the model's time.
    longest: Duration,
    /// Notes of the start, and the remains of killed runs that were removed.
    pub(super) cleared: Vec<String>,
}

/// One attempt at rounds of a number of streams.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    /// The bytes that a stream reads in a round.
    pub(super) block: ByteCount,
    /// The rate at which a stream plays.
    pub(super) rate: BitRate,
    pub(super) rounds: u32,
    pub(super) pace: RoundPace,
    /// The rule by which the attempt is ended early; `None` to run all rounds.
    pub(super) rule: Option<RoundRule>,
}

impl<'a> Bench<'a> {
    /// Starts the disk. `all` is the number of read methods to be tried, for the progress.
    pub(super) fn start(
        options: &'a EmulatedOptions,
        all: u32,
        progress: &'a mut dyn FnMut(EmulatedProgress<'_>),
        stop: &'a DiskStop,
    ) -> Result<Self, MeterError> {
        options.file_systems().try_for_each(FileSystem::available)?;
        let model = DiskModel::preset(MODEL).expect("a built-in model");
        // Asked before the disk creates the file.
        let ours = !options.backing.exists();
        let emulate = EmulateOptions {
            size: Some(options.size.unwrap_or(model.capacity())),
            attach: true,
            fast: true,
            speed: options.speed,
            ..EmulateOptions::new(&options.backing)
        };
        progress(EmulatedProgress { what: "making the disk", found: false, done: 0.0 });
        let disk = EmulatedDisk::start(&model, &emulate);
        if ours {
            // The disk has the file open. If the disk did not start, the file may not exist.
            let _ = std::fs::remove_file(&options.backing);
        }
        let disk = disk?;
        disk.obey(stop);
        let mut cleared = disk.notes().to_vec();
        cleared.extend(device::remove_stale_disks());
        file_system::remove_stale_disks();
        let (model, longest) = (disk.model().clone(), Duration::ZERO);
        Ok(Self { disk, model, options, progress, stop, done: 0, all, longest, cleared })
    }

    /// The reason why its timer is late on a busy machine, if there is one.
    pub(super) fn not_in_real_time(&self) -> Option<&str> {
        self.disk.realtime().err()
    }

    /// Sets the statistics of the disk back to zero; the longest lateness is kept.
    pub(super) fn reset_statistics(&mut self) {
        self.longest = self.longest_late();
        self.disk.reset_statistics();
    }

    /// The longest lateness of the disk, in the model's time.
    pub(super) fn longest_late(&self) -> Duration {
        self.longest.max(self.disk.statistics().late_max)
    }

    /// Finds the largest number of streams by a read method, on the raw disk or on files. A short
    /// attempt shows where to begin, attempts that fail end early, and the first count that fails
    /// is run for long enough to show how its rounds vary.
    pub(super) fn most(
        &mut self,
        way: &Way,
        mut on: Option<&mut Filled>,
        rule: RoundRule,
    ) -> Result<MostStreams, MeterError> {
        // The lateness in a table's row is that of its own attempts.
        self.reset_statistics();
        let of = system_name(on.as_deref());
        let limit = on.as_deref().map_or(MOST_STREAMS, Filled::count);
        let whole = self.options.rounds;
        // A short attempt at full speed gives an estimate from which the search begins.
        let (block, pace) = (self.options.block, RoundPace::Rounds);
        let whole = Attempt { block, rate: MPEG1, rounds: whole, pace, rule: Some(rule) };
        let glance = Attempt { rounds: GLANCE, pace: RoundPace::Free, rule: None, ..whole };
        let glanced = self.rounds(way, on.as_deref_mut(), limit.min(ABOUT), glance)?;
        let about = glanced.streams_by_the_mean();
        let mut capacity = most_streams_by_halves(
            about,
            limit,
            |outcome| rule.holds(outcome),
            |streams| self.rounds(way, on.as_deref_mut(), streams, whole),
        )?;
        let failing = &mut capacity.failing;
        // The search ends a failing attempt early: its rounds are too few to show how they vary.
        let telling = TELLING.min(whole.rounds);
        if failing.rounds.len() < telling as usize {
            let streams = u32::try_from(failing.streams.len()).expect("few streams");
            let told = Attempt { rounds: telling, rule: None, ..whole };
            *failing = self.rounds(way, on, streams, told)?;
        }
        self.done += 1;
        self.tell(&format!("{of}, {}: {} streams", way.name, capacity.most), true);
        Ok(MostStreams { capacity, disk: self.disk.statistics() })
    }

    /// Runs one attempt, on the raw disk or on files.
    pub(super) fn rounds(
        &mut self,
        way: &Way,
        on: Option<&mut Filled>,
        streams: u32,
        attempt: Attempt,
    ) -> Result<RoundsOutcome, MeterError> {
        let what = format!("{}, {}, {streams} streams", system_name(on.as_deref()), way.name);
        let at_once = way.at_once.min(streams);
        let Attempt { block, rate, rounds, pace, rule } = attempt;
        // On the raw disk the streams are spread over all of it, as files would be.
        let spread = RoundsPlan::spread(streams, self.model.capacity(), block, rate);
        let plan = RoundsPlan { rounds, pace, order: way.order, at_once, ..spread };
        match on {
            None => {
                let device = FileDevice::open(self.device(), OpenOptions::default())?;
                let pool = QueuedPort::pool(at_once, block);
                let queue = device.queue_by(way.method, at_once, &pool)?;
                self.timed(&plan, &what, rule, |origin| {
                    Ok(Box::new(QueuedPort::new(&device, queue, pool, origin)))
                })
            }
            Some(filled) => {
                // A new mount has an empty page cache, so that all reads reach the disk.
                filled.mounted.mount_cold(way.read_ahead_kib)?;
                let len = filled.len;
                let starts = (0..u64::from(streams)).map(|file| file * len.0).collect();
                let plan =
                    RoundsPlan { starts, size: ByteCount(len.0 * u64::from(streams)), ..plan };
                let files = filled.open(streams)?;
                self.timed(&plan, &what, rule, |origin| {
                    Ok(Box::new(FileAStream::new(&files, len, block, way.method, origin)?))
                })
            }
        }
    }

    /// Lets each reader read to its end in units of `unit`, in a thread of its own and as fast as
    /// it can.
    pub(super) fn streams(
        &mut self,
        readers: Vec<Box<dyn Read + Send>>,
        unit: ByteCount,
        what: &str,
    ) -> Result<Vec<StreamTimes>, MeterError> {
        let unit = usize::try_from(unit.0).expect("a unit fits into memory");
        let (stop, speed, at_end) = (self.stop, self.options.speed, AtomicUsize::new(0));
        let (all, start) = (readers.len(), Barrier::new(readers.len()));
        self.disk.set_fast(false);
        let read = |mut reader: Box<dyn Read + Send>| {
            let _ = device::enter_realtime();
            let mut memory = vec![0; unit];
            start.wait();
            let times = StreamTimes::of(reader.as_mut(), &mut memory, speed, stop);
            at_end.fetch_add(1, Ordering::Relaxed);
            times
        };
        let read = &read;
        let outcome = std::thread::scope(|scope| {
            let streams: Vec<_> =
                readers.into_iter().map(|reader| scope.spawn(move || read(reader))).collect();
            while !streams.iter().all(ScopedJoinHandle::is_finished) {
                let at_end = at_end.load(Ordering::Relaxed);
                self.say(&format!("{what}: {at_end} of {all} at their end"));
                std::thread::sleep(LOOK_AGAIN);
            }
            let join = |stream: ScopedJoinHandle<'_, io::Result<StreamTimes>>| {
                stream.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            // All are joined before the first error is returned.
            let times: Vec<_> = streams.into_iter().map(join).collect();
            times.into_iter().collect::<io::Result<Vec<_>>>()
        });
        self.disk.set_fast(true);
        self.still()?;
        outcome.map_err(|error| MeterError::new(format!("cannot read ({what}): {error}")))
    }

    /// Reports progress to the user.
    pub(super) fn say(&mut self, what: &str) {
        self.tell(what, false);
    }

    /// Reports a step, or a result, to the user.
    pub(super) fn tell(&mut self, what: &str, found: bool) {
        let done = f64::from(self.done) / f64::from(self.all.max(1));
        (self.progress)(EmulatedProgress { what, found, done });
    }

    pub(super) fn device(&self) -> &Path {
        self.disk.device().expect("attached")
    }

    /// An error if the user asked to stop.
    pub(super) fn still(&self) -> Result<(), MeterError> {
        if self.stop.is_asked() { Err(MeterError::interrupted("interrupted")) } else { Ok(()) }
    }

    pub(super) fn timed<'p>(
        &mut self,
        plan: &RoundsPlan,
        what: &str,
        rule: Option<RoundRule>,
        port: impl FnOnce(Instant) -> Result<Box<dyn Port + 'p>, MeterError> + Send,
    ) -> Result<RoundsOutcome, MeterError> {
        self.disk.set_fast(false);
        let (stop, speed, over) = (self.stop, self.options.speed, AtomicUsize::new(0));
        let mut go_on = |rounds: &[Round]| {
            over.store(rounds.len(), Ordering::Relaxed);
            let lost = rule.is_some_and(|rule| rule.is_lost(rounds, plan));
            !lost && !stop.is_asked()
        };
        // A real-time thread, so that the measured lateness is the disk's and not that of other
        // programs here. Where the kernel refuses it, the thread has the usual lateness.
        let outcome = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let _ = device::enter_realtime();
                let mut port = Faster::new(port(Instant::now())?, speed);
                Ok(run(plan, &mut port, &mut go_on)?)
            });
            while !reading.is_finished() {
                let over = over.load(Ordering::Relaxed);
                self.say(&format!("{what}: {over} of {} rounds", plan.rounds));
                std::thread::sleep(LOOK_AGAIN);
            }
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
    }
}

pub(super) fn system_name(on: Option<&Filled>) -> &'static str {
    on.map_or("raw", |filled| filled.mounted.kind().name())
}

/// The model of the paper's disk.
pub(super) const MODEL: &str = "st39183w";

/// The read size of a stream in a round of the paper; its own bounds need 10^6 bytes.
pub const MB: ByteCount = ByteCount(1_000_000);

/// The bit rate of a stream.
pub const MPEG1: BitRate = BitRate(1_500_000);

/// More streams than the disk could hold without seeks.
const MOST_STREAMS: u32 = 100;

/// The number of streams of a first short attempt: more than any read method holds.
const ABOUT: u32 = 64;

/// Rounds of a first short attempt, one directly after the other.
const GLANCE: u32 = 4;

/// Rounds of the failing attempt that show how rounds vary.
const TELLING: u32 = 12;

/// The interval of progress reports.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Seed for the order of files and for random orders.
pub(super) const SEED: u64 = 1;
