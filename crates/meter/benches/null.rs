//! What the meter itself costs: operations a second on one core against a target that is nothing,
//! with every operation in the log, the histograms of service and response time (and of the meter's
//! own lateness), and a deadline check for each.
//!
//! `cargo bench -p meter --bench null` prints, for streams asked for faster than they can be:
//!
//! - `ring`: records into a ring in memory, as they are put before anything is written;
//! - `parquet`: into the log as `meter run --out` has it, written behind by another thread into
//!   memory (`/dev/shm`), with what it lost named;
//! - `whole`: the same where the meter waits for the log, which then has every operation: what can
//!   be logged for as long as one likes.
//!
//! Operations a second by the clock on the wall, and for a second of processor time of the
//! measuring thread: on a machine that others use the second is the meter, the first the
//! neighbours. The best of several runs.
//!
//! `null --count N` makes N operations in virtual time: the same instructions every time.
//! `benches/meter.sh` counts them. fio's own null engine, without a log, to compare with: `fio
//! --name=n --thread --ioengine=null --size=8g --bs=4k --rw=randread --norandommap --time_based
//! --runtime=5`.

#![allow(clippy::print_stdout, reason = "it prints figures")]

use meter::log::{Record, RecordSink, WhenFull, background_writer};
use meter::profiles::Profile;
use meter::streams::{StreamsOutcome, StreamsPlan, run};
use meter::target::{FileSet, NullPort, TickingPort};
use std::hint::black_box;
use std::time::{Duration, Instant};
use units::ByteCount;

/// Overwrites its oldest record.
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

/// A run, by both clocks.
struct Ran {
    outcome: StreamsOutcome,
    /// Zero where the run was over before anybody looked.
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
    let outcome = run(&plan, &mut port, &mut ring, &mut |_| true).expect("nothing can fail");
    black_box(&ring.records);
    println!("{} operations, {} late", outcome.reads.operations, outcome.late);
}

/// A thousand streams that ask for more than any machine does.
fn plan(duration: Duration) -> StreamsPlan {
    let profile: Profile = PROFILE.parse().expect("a profile");
    let shape = FileSet::one(ByteCount(4096 * 64 * u64::from(STREAMS)));
    StreamsPlan::new(&profile, STREAMS, 64, duration, shape).expect("it can be run")
}

/// Stops at the end of its time: what never came is not worth the waiting.
fn ran(plan: &StreamsPlan, log: &mut dyn RecordSink) -> Ran {
    let mut port = NullPort::new(Instant::now());
    let began = processor_time();
    let mut on_processor = Duration::ZERO;
    let enough = plan.duration;
    let outcome = run(plan, &mut port, log, &mut |progress| {
        let go_on = progress.elapsed < enough;
        if !go_on {
            on_processor = processor_time() - began;
        }
        go_on
    });
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

/// 24 MiB.
const RING: usize = 1 << 18;

const BLOCKS: usize = 512;

/// So few that what is in memory at the end of a run is a small part of it.
const FEW_BLOCKS: usize = 4;

const RUNS: u32 = 7;

/// The frame rate of [`PROFILE`].
const FPS: u64 = 40_000;

/// A bit longer than a look at a real clock takes: the streams then ask for as much as there is.
const TICK: Duration = Duration::from_nanos(100);
