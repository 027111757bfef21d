//! What the meter itself costs: operations a second on one core against a target that is nothing,
//! with every operation in the log, the histograms of service and response time (and of the meter's own
//! lateness), and a deadline check for each.
//!
//! `cargo bench -p meter --bench null` prints, for streams asked for faster than they can be:
//!
//! - `ring`: records into a ring in memory, as they are put before anything is written;
//! - `parquet`: into the log as `meter run --out` has it, written behind by another thread into
//!   memory (`/dev/shm`), with what it lost named.
//!
//! The best of several runs: on a shared machine the others measure the neighbours. fio's own null
//! engine, without a log, beside it: `fio --name=n --thread --ioengine=null --size=8g --bs=4k
//! --rw=randread --norandommap --time_based --runtime=5`.

#![allow(clippy::print_stdout, reason = "it prints figures")]

use meter::log::{Keep, Record, Room, behind};
use meter::profiles::Profile;
use meter::streams::{Outcome, Plan, run};
use meter::target::{NullPort, Shape};
use std::time::{Duration, Instant};
use units::ByteCount;

/// Overwrites its oldest record.
struct Ring {
    records: Vec<Record>,
    next: usize,
}

impl Keep for Ring {
    fn keep(&mut self, record: Record) {
        self.records[self.next] = record;
        self.next = (self.next + 1) % self.records.len();
    }
}

fn main() {
    let plan = plan();
    let best = |what: &str, runs: Vec<(f64, String)>| {
        let best = runs.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("some runs");
        println!("{what:8} {:.2} M operations/s{}", best.0 / 1e6, best.1);
    };
    let ring = |_| {
        let mut ring = Ring { records: vec![Record::default(); RING], next: 0 };
        (rate(&ran(&plan, &mut ring)), String::new())
    };
    best("ring", (0..RUNS).map(ring).collect());
    let logged = |number| {
        let path = format!("/dev/shm/tenuto-null-{}-{number}.parquet", std::process::id());
        let (mut sink, behind) = behind(path.as_ref(), BLOCKS, Room::Count).expect("a new file");
        let outcome = ran(&plan, &mut sink);
        let written = behind.finish(sink, &[]).expect("room in memory");
        std::fs::remove_file(path).expect("it is there");
        (rate(&outcome), format!(", {} written, {} lost", written.records, written.lost))
    };
    best("parquet", (0..RUNS).map(logged).collect());
}

/// A thousand streams that ask for more than any machine does.
fn plan() -> Plan {
    let profile: Profile = PROFILE.parse().expect("a profile");
    let shape = Shape::one(ByteCount(4096 * 64 * u64::from(STREAMS)));
    Plan::new(&profile, STREAMS, 64, Duration::from_millis(500), shape).expect("it can be run")
}

fn ran(plan: &Plan, log: &mut dyn Keep) -> Outcome {
    let mut port = NullPort::new(Instant::now());
    run(plan, &mut port, log, &mut |_| true).expect("nothing can fail")
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(outcome: &Outcome) -> f64 {
    outcome.reads.operations as f64 / outcome.took.as_secs_f64()
}

const PROFILE: &str = "name = \"null\"\ntitle = \"Null\"\nbytes = 4096\nfps = \"40000\"\n\
    pattern = \"sequential\"\ndefinition = { kind = \"table\" }\nsource = \"none\"\n\
    status = \"house\"\n";

const STREAMS: u32 = 1000;

/// 24 MiB.
const RING: usize = 1 << 18;

const BLOCKS: usize = 512;

const RUNS: u32 = 7;
