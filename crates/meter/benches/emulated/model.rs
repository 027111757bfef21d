//! The difference between an emulated disk and its model: the same rounds in real time and on the
//! simulated disk. The capacities of the two differ as their rounds do.

use crate::start;
use device::{FileDevice, Method, OpenOptions, SimulatedDisk};
use meter::emulated::{MB, MPEG1};
use meter::operations::{QueuedPort, SimulatedPort};
use meter::rounds::{Faster, RoundPace, RoundsOutcome, RoundsPlan, run};
use std::path::Path;
use std::time::{Duration, Instant};

/// Compares rounds of single reads in SCAN order, each round directly after the one before.
pub(crate) fn against_the_model(backing: &Path, speed: u32) {
    let disk = start(backing, speed);
    let model = disk.model();
    let spread = RoundsPlan::spread(STREAMS, model.capacity(), MB, MPEG1);
    let plan = RoundsPlan { rounds: ROUNDS, pace: RoundPace::Free, ..spread };
    let mut simulated = SimulatedPort::new(SimulatedDisk::new(model)).by_pages();
    let simulated =
        run(&plan, &mut simulated, &mut |_| true).expect("a simulated disk has no faults");
    disk.set_fast(false);
    disk.reset_statistics();
    let path = disk.device().expect("attached");
    let emulated = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let _ = device::enter_realtime();
            read(path, &plan, speed)
        });
        reading.join().expect("it reads")
    });
    let done = disk.statistics();
    println!("{STREAMS} streams, {speed} times as fast; a way of {:.3} ms", ms(disk.round_trip()));
    println!("| round | simulated s | emulated s | longer by |");
    println!("|---|---|---|---|");
    for (number, (ours, theirs)) in emulated.rounds.iter().zip(&simulated.rounds).enumerate() {
        line(&(number + 1).to_string(), ours.took.as_secs_f64(), theirs.took.as_secs_f64());
    }
    line("mean", emulated.round_times().mean, simulated.round_times().mean);
    println!(
        "made up {:.3} ms a read; late p50 {:.2}, p99 {:.2}, longest {:.2} ms; load {}\n",
        ms(done.compensated) / f64::from(STREAMS * ROUNDS),
        ms(done.late_p50),
        ms(done.late_p99),
        ms(done.late_max),
        crate::load(),
    );
}

fn read(path: &Path, plan: &RoundsPlan, speed: u32) -> RoundsOutcome {
    let device = FileDevice::open(path, OpenOptions::default()).expect("the disk opens");
    let pool = QueuedPort::pool(1, plan.block);
    let queue = device.queue_by(Method::Pread, 1, &pool).expect("the disk can be read");
    let port = QueuedPort::new(&device, queue, pool, Instant::now());
    run(plan, &mut Faster::new(Box::new(port), speed), &mut |_| true).expect("the disk is read")
}

fn line(what: &str, ours: f64, theirs: f64) {
    println!("| {what} | {theirs:.3} | {ours:.3} | {:+.2} % |", (ours / theirs - 1.0) * 100.0);
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The number of streams that the simulated disk holds.
const STREAMS: u32 = 62;

/// The number of rounds: half a minute at the disk's own speed.
const ROUNDS: u32 = 6;
