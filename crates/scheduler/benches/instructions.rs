//! How many instructions a decision takes: the same every time, however busy the machine is.
//!
//! ```sh
//! cargo bench -p scheduler --bench instructions -- --list
//! benches/instructions.sh                 # each case under valgrind's callgrind
//! ```
//!
//! Called with a case's name it does that once, in [`counted`], which is what callgrind is told to
//! count; valgrind is needed for nothing else.

#![allow(clippy::print_stdout, reason = "it reports")]

mod house;

use house::{ENOUGH, House, PLENTY};
use scheduler::{Demand, Plan, PolicyKind};
use std::hint::black_box;

const CASES: [&str; 11] = [
    "spare",
    "spare-memory",
    "last",
    "last-memory",
    "refused",
    "refused-memory",
    "vbrsim",
    "vbrsim-memory",
    "curve-memory",
    "demand",
    "later",
];

#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

fn main() {
    let Some(case) = std::env::args().skip(1).find(|word| CASES.contains(&word.as_str())) else {
        CASES.iter().for_each(|case| println!("{case}"));
        return;
    };
    let memory = if case.ends_with("-memory") { ENOUGH } else { PLENTY };
    let house = match case.split('-').next() {
        Some("last") => House::tight(memory, true),
        Some("refused" | "later") => House::tight(memory, false),
        _ => House::new(memory),
    };
    let (mut demand, mut plan) = (Demand::default(), Plan::default());
    house.ask(&house.candidate, 0, &mut demand);
    let kind = match case.split('-').next() {
        Some("vbrsim") => PolicyKind::VbrSim,
        Some("curve") => PolicyKind::ServiceCurve,
        _ => PolicyKind::TimeDomain,
    };
    // Once before, so that nothing has to grow.
    house.decide(kind, &demand, &mut plan);
    match case.as_str() {
        "demand" => {
            counted(|| house.ask(&house.candidate, 0, &mut demand));
            println!("{case}: {} reads", demand.reads());
        }
        "later" => {
            let starts = counted(|| house.later(&mut demand, &mut plan));
            println!("{case}: {starts:?}");
        }
        _ => {
            let verdict = counted(|| house.decide(kind, &demand, &mut plan));
            println!("{case}: {verdict:?}");
        }
    }
}
