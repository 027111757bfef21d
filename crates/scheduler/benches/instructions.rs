//! How many instructions a decision takes: the same every time, however busy the machine is; and
//! how long it takes.
//!
//! ```sh
//! benches/instructions.sh                 # each case under valgrind's callgrind, and by itself
//! ```
//!
//! Called with a case's name it does that once, in [`counted`], which is what callgrind is told to
//! count. With `--time` it does it [`TURNS`] times, and says what the kernel says of it.

#![allow(clippy::print_stdout, reason = "it reports")]
#![expect(clippy::cast_precision_loss, reason = "microseconds")]

mod fixture;

use fixture::{ENOUGH, Fixture, PLENTY};
use scheduler::{Demand, PolicyKind, ServiceCurve};
use std::hint::black_box;

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
    let fixture =
        if case.ends_with("-arm") { Fixture::with_actuator(memory) } else { Fixture::new(memory) };
    let mut fixture = match case.split('-').next() {
        Some("last") => fixture.tight(true),
        Some("refused" | "later") => fixture.tight(false),
        _ => fixture,
    };
    if case.starts_with("curve") {
        fixture.timings.curve = ServiceCurve::of_slots([&[600, 640, 630, 650][..]]);
    }
    let mut demand = Demand::default();
    fixture.ask(&fixture.candidate, 0, &mut demand);
    let kind = match case.split('-').next() {
        Some("vbrsim") => PolicyKind::VbrSim,
        Some("curve") => PolicyKind::ServiceCurve,
        _ => PolicyKind::TimeDomain,
    };
    // Once before, so that nothing has to grow.
    black_box(fixture.decide(kind, &demand));
    let mut standby = (case == "survive").then(|| fixture.standby());
    if let Some(standby) = &mut standby {
        black_box(fixture.survives(standby, &demand));
    }
    let turns = if std::env::args().any(|word| word == "--time") { TURNS } else { 1 };
    let began = processor_nanos();
    for _ in 0..turns {
        match case.split('-').next().unwrap_or_default() {
            "demand" => counted(|| fixture.ask(&fixture.candidate, 0, &mut demand)),
            "later" => counted(|| {
                black_box(fixture.later(&mut demand));
            }),
            "survive" => counted(|| {
                let standby = standby.as_mut().expect("made for it");
                black_box(fixture.survives(standby, &demand));
            }),
            _ => counted(|| {
                black_box(fixture.decide(kind, &demand));
            }),
        }
    }
    let each = processor_nanos().saturating_sub(began) / u64::from(turns);
    println!("{:.1}", each as f64 / 1e3);
}

/// Processor time of this thread so far; zero where the kernel does not say.
fn processor_nanos() -> u64 {
    let said = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    said.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

/// Enough for the kernel's grain, some milliseconds.
const TURNS: u32 = 2000;
