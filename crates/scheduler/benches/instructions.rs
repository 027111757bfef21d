//! How many instructions a decision takes: the same every time, however busy the machine is; and how
//! long it takes.
//!
//! ```sh
//! benches/instructions.sh                 # each case under valgrind's callgrind, and by itself
//! ```
//!
//! Called with a case's name it does that once, in [`counted`], which is what callgrind is told to
//! count. With `--time` it does it [`TURNS`] times, and says the median and the 90th percentile.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, and reports")]

mod house;

use house::{ENOUGH, House, PLENTY};
use scheduler::{Demand, Plan, PolicyKind, ServiceCurve};
use std::hint::black_box;
use std::time::{Duration, Instant};

const CASES: [&str; 16] = [
    "spare",
    "spare-memory",
    "last",
    "last-memory",
    "refused",
    "refused-memory",
    "spare-arm",
    "last-arm",
    "refused-arm",
    "later-arm",
    "survive",
    "vbrsim",
    "vbrsim-memory",
    "curve-memory",
    "demand",
    "later",
];

#[inline(never)]
fn counted(work: impl FnOnce()) {
    work();
}

fn main() {
    let Some(case) = std::env::args().skip(1).find(|word| CASES.contains(&word.as_str())) else {
        CASES.iter().for_each(|case| println!("{case}"));
        return;
    };
    let memory = if case.ends_with("-memory") { ENOUGH } else { PLENTY };
    let house = if case.ends_with("-arm") { House::with_arm(memory) } else { House::new(memory) };
    let mut house = match case.split('-').next() {
        Some("last") => house.tight(true),
        Some("refused" | "later") => house.tight(false),
        _ => house,
    };
    if case.starts_with("curve") {
        house.facts.curve = ServiceCurve::of_slots([&[600, 640, 630, 650][..]]);
    }
    let (mut demand, mut plan) = (Demand::default(), Plan::default());
    house.ask(&house.candidate, 0, &mut demand);
    let kind = match case.split('-').next() {
        Some("vbrsim") => PolicyKind::VbrSim,
        Some("curve") => PolicyKind::ServiceCurve,
        _ => PolicyKind::TimeDomain,
    };
    // Once before, so that nothing has to grow.
    house.decide(kind, &demand, &mut plan);
    let mut standby = (case == "survive").then(|| house.standby());
    if let Some(standby) = &mut standby {
        house.survives(standby, &demand, &mut plan);
    }
    let turns = if std::env::args().any(|word| word == "--time") { TURNS } else { 1 };
    let mut took: Vec<Duration> = (0..turns)
        .map(|_| {
            let began = Instant::now();
            match case.split('-').next().unwrap_or_default() {
                "demand" => counted(|| house.ask(&house.candidate, 0, &mut demand)),
                "later" => counted(|| {
                    black_box(house.later(&mut demand, &mut plan));
                }),
                "survive" => counted(|| {
                    let standby = standby.as_mut().expect("made for it");
                    black_box(house.survives(standby, &demand, &mut plan));
                }),
                _ => counted(|| {
                    black_box(house.decide(kind, &demand, &mut plan));
                }),
            }
            began.elapsed()
        })
        .collect();
    took.sort_unstable();
    let micros = |part: usize| took[took.len() * part / 100].as_secs_f64() * 1e6;
    println!("{:9.1} {:9.1}", micros(50), micros(90));
}

const TURNS: u32 = 1000;
