//! The same rounds by arithmetic and on the emulated disk: how many streams does each hold?
//!
//! As in Alderman and Diallo: N streams of 1.5 Mb/s, each somewhere in its own share of the disk,
//! read 1 MB (rounded down to 4,096 bytes) a round in the order of place; a round lasts as long as
//! that plays. N is held if at most one of 100 rounds ends late.

use crate::rounds::Reader;
use device::EmulatedDisk;
use disk::DiskModel;
use std::path::Path;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Moment};

const BLOCK: u64 = 1_000_000 / 4096 * 4096;
const ROUNDS: u32 = 100;
const STREAM: BitRate = BitRate(1_500_000);
/// How far beside the arithmetic's answer it is looked for.
const AROUND: u64 = 3;

pub(crate) fn compare(backing: &Path) {
    let model = DiskModel::preset(crate::MODEL).expect("it comes along");
    let held = (1..).take_while(|streams| by_arithmetic(&model, *streams).late <= 1).last();
    let held = held.expect("it holds one");
    println!("by arithmetic it holds {held}");
    println!("| streams | | late rounds | mean round s | sd | longest | deadline s | load |");
    println!("|---|---|---|---|---|---|---|---|");
    let disk = crate::start(backing);
    disk.set_fast(false);
    for streams in (held - AROUND..=held + AROUND).rev() {
        by_arithmetic(&model, streams).say(streams, "arithmetic");
        disk.reset_statistics();
        let outcome = on_the_disk(&disk, streams);
        outcome.say(streams, "emulated");
        if outcome.late <= 1 {
            let s = disk.statistics();
            println!("\nemulated it holds {streams}: {:+.1} %", percent(streams, held));
            println!("late p50 {:?}, p99 {:?}, max {:?}", s.late_p50, s.late_p99, s.late_max);
            break;
        }
    }
}

fn percent(one: u64, other: u64) -> f64 {
    (one as f64 / other as f64 - 1.0) * 100.0
}

/// How the rounds went, up to the second late one.
struct Outcome {
    late: u32,
    rounds: Vec<f64>,
}

impl Outcome {
    fn say(&self, streams: u64, how: &str) {
        let count = self.rounds.len() as f64;
        let mean = self.rounds.iter().sum::<f64>() / count;
        let sd = (self.rounds.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / count).sqrt();
        let longest = self.rounds.iter().copied().fold(0.0, f64::max);
        let late = format!("{} of {}", self.late, self.rounds.len());
        let due = length().as_secs_f64();
        let load = crate::load();
        println!(
            "| {streams} | {how} | {late} | {mean:.3} | {sd:.3} | {longest:.3} | {due:.3} | {load} |"
        );
    }
}

fn length() -> Duration {
    ByteCount(BLOCK).time_at(STREAM)
}

/// Where the streams begin: each somewhere in its own share.
fn places(model: &DiskModel, streams: u64) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(0);
    let share = model.capacity().0 / BLOCK / streams;
    let room = share.saturating_sub(ROUNDS.into());
    (0..streams).map(|i| (i * share + rng.u64(0..=room)) * BLOCK).collect()
}

fn by_arithmetic(model: &DiskModel, streams: u64) -> Outcome {
    let mut places = places(model, streams);
    let (mut head, mut now) = (model.head(), Moment::ZERO);
    let mut outcome = Outcome { late: 0, rounds: Vec::new() };
    for number in 1..=ROUNDS {
        let due = Moment::ZERO + length() * number;
        let start = now.max(Moment::ZERO + length() * (number - 1));
        now = start;
        for place in &mut places {
            now = head.serve(now, *place, BLOCK, false).finish;
            *place += BLOCK;
        }
        outcome.rounds.push(now.since(start).as_secs_f64());
        outcome.late += u32::from(now > due);
    }
    outcome
}

fn on_the_disk(disk: &EmulatedDisk, streams: u64) -> Outcome {
    let mut reader = Reader::new(disk, BLOCK, 2);
    let mut places = places(disk.model(), streams);
    let mut outcome = Outcome { late: 0, rounds: Vec::new() };
    let origin = Instant::now();
    for number in 1..=ROUNDS {
        let opens = length() * (number - 1);
        std::thread::sleep(opens.saturating_sub(origin.elapsed()));
        let start = origin.elapsed();
        reader.round(&places, |_| ());
        reader.end(|_| ());
        let end = origin.elapsed();
        places.iter_mut().for_each(|place| *place += BLOCK);
        outcome.rounds.push((end - start).as_secs_f64());
        outcome.late += u32::from(end > length() * number);
        if outcome.late > 1 {
            break;
        }
    }
    outcome
}
