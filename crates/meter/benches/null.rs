//! The cost of the meter itself: operations a second on one core against a target that does
//! nothing, with every operation in the log, the histograms of service and response time (and of
//! the meter's own lateness), and a deadline check for each.
//!
//! `cargo bench -p meter --bench null` prints figures for streams that demand more than the machine
//! can deliver:
//!
//! - `ring`: records go to a ring in memory;
//! - `parquet`: records go to the log of `meter run --out`, which another thread writes to memory
//!   (`/dev/shm`); lost records are counted;
//! - `whole`: as `parquet`, but the meter waits for the log, which then has every operation: the
//!   rate that can be logged without a time limit.
//!
//! The figures are operations a second of wall-clock time, and of processor time of the measuring
//! thread. On a shared machine the second figure describes the meter, the first also its
//! neighbours. The best of several runs is printed.
//! `null --count N` makes N operations in virtual time: the same instructions every time.
//! `benches/meter.sh` counts them. fio's own null engine, without a log, to compare with: `fio
//! --name=n --thread --ioengine=null --size=8g --bs=4k --rw=randread --norandommap --time_based
//! --runtime=5`.

#![allow(clippy::print_stdout, reason = "it prints figures")]

use meter::operations::{FileSet, NullPort, TickingPort};
use meter::operations::{Record, RecordSink, WhenFull, background_writer};
use meter::operations::{StreamsOutcome, StreamsPlan, run_streams};
use meter::profiles::Profile;
use std::hint::black_box;
use std::time::{Duration, Instant};
use units::ByteCount;

/// A ring of records that overwrites the oldest one.
struct Ring {
    records: Vec<Record>,
    next: usize,
}

impl RecordSink for Ring {
    fn keep(&mut self, record: &Record) {
        self.records[self.next] = *record;
        self.next = (self.next + 1) % self.records.len();
    }
}

impl Ring {
    fn new() -> Self {
        Self { records: vec![Record::default(); RING], next: 0 }
    }
}

/// A run, timed by the wall clock and by processor time.
struct Ran {
    outcome: StreamsOutcome,
    /// Processor time; zero where the run was too short to be counted.
    on_processor: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [word, count] if word == "--count" => count_of(count.parse().expect("a number")),
        _ => fastest(),
    }
}

fn fastest() {
    let plan = plan(Duration::from_millis(500));
    let best = |what: &str, runs: Vec<(Ran, String)>| {
        let most = |of: fn(&Ran) -> Duration| {
            let times =
                runs.iter().map(|(ran, _)| (ran, of(ran))).filter(|(_, took)| !took.is_zero());
            times.map(|(ran, took)| rate(&ran.outcome, took)).fold(0.0, f64::max) / 1e6
        };
        let wall = most(|ran| ran.outcome.took);
        let processor = most(|ran| ran.on_processor);
        let last = runs.last().map_or("", |(_, note)| note);
        println!(
            "{what:8} {wall:6.2} M operations/s, {processor:6.2} M in a second of processor{last}"
        );
    };
    let ring = |_| (ran(&plan, &mut Ring::new()), String::new());
    best("ring", (0..RUNS).map(ring).collect());
    let logged = |number, blocks, room| {
        let path = format!("/dev/shm/tenuto-null-{}-{number}.parquet", std::process::id());
        let (mut sink, writer) =
            background_writer(path.as_ref(), blocks, room).expect("a new file");
        let ran = ran(&plan, &mut sink);
        let written = writer.finish(sink, &[]).expect("room in memory");
        std::fs::remove_file(path).expect("it is there");
        (ran, format!("; the last run: {} written, {} lost", written.records, written.lost))
    };
    best("parquet", (0..RUNS).map(|number| logged(number, BLOCKS, WhenFull::Count)).collect());
    best("whole", (0..RUNS).map(|number| logged(number, FEW_BLOCKS, WhenFull::Wait)).collect());
}

/// Runs a number of operations with a clock that advances only when it is read.
fn count_of(operations: u32) {
    let mut ring = Ring::new();
    let mut port = TickingPort::new(TICK);
    let frames = operations / STREAMS;
    let plan = plan(Duration::from_nanos(1_000_000_000 * u64::from(frames) / FPS));
    let outcome =
        run_streams(&plan, &mut port, &mut ring, &mut |_| true).expect("nothing can fail");
    black_box(&ring.records);
    println!("{} operations, {} late", outcome.reads.operations, outcome.late);
}

/// A thousand streams that demand more than any machine delivers.
fn plan(duration: Duration) -> StreamsPlan {
    let profile: Profile = PROFILE.parse().expect("a profile");
    let shape = FileSet::one(ByteCount(4096 * 64 * u64::from(STREAMS)));
    StreamsPlan::new(&profile, STREAMS, 64, duration, shape).expect("it can be run")
}

/// Runs until the end of its time; operations still outstanding then are dropped.
fn ran(plan: &StreamsPlan, log: &mut dyn RecordSink) -> Ran {
    let mut port = NullPort::new(Instant::now());
    let began = processor_time();
    let mut on_processor = None;
    let enough = plan.duration;
    let outcome = run_streams(plan, &mut port, log, &mut |progress| {
        let go_on = progress.elapsed < enough;
        if !go_on {
            on_processor = Some(processor_time() - began);
        }
        go_on
    });
    // A run may end between two reports of its progress.
    let on_processor = on_processor.unwrap_or_else(|| processor_time() - began);
    Ran { outcome: outcome.expect("nothing can fail"), on_processor }
}

/// The processor time of this thread, accurate to a few milliseconds.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    let nanos = text.split_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.expect("nanoseconds come first"))
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(outcome: &StreamsOutcome, took: Duration) -> f64 {
    outcome.reads.operations as f64 / took.as_secs_f64()
}

const PROFILE: &str = "name = \"null\"\ntitle = \"Null\"\nbytes = 4096\nfps = \"40000\"\n\
    pattern = \"sequential\"\ndefinition = { kind = \"table\" }\nsource = \"none\"\n\
    status = \"house\"\n";

const STREAMS: u32 = 1000;

/// The number of records in the ring (24 MiB).
const RING: usize = 1 << 18;

const BLOCKS: usize = 512;

/// A small number of blocks, so that what is in memory at the end of a run is a small part of the
/// log.
const FEW_BLOCKS: usize = 4;

const RUNS: u32 = 7;

/// The frame rate of [`PROFILE`].
const FPS: u64 = 40_000;

/// A little more than one read of a real clock takes, so that the streams demand the maximum rate.
const TICK: Duration = Duration::from_nanos(100);
