//! The guarantee at the limit: as many viewers as admission accepts, who play to the end, on disks
//! whose rotation is random or always the longest, beside best-effort work that is offered as often
//! as it is taken.
//!
//! ```text
//!   seed ─▶ disk, read size, slot, titles ─▶ arrivals until long after the first refusal
//!           Engine ─▶ reads, permits ─▶ disk::Head, one after another in the order of issue
//!           deadline of each read, from the title and the time of admission ─▶ late?
//!           end of its due slot less the end of the read ─▶ at least the guaranteed slack?
//! ```
//!
//! The driver is written from the documentation of the engine and of admission control. It uses
//! neither the worlds nor the checkers of this crate, nor code of the scheduler.
//!
//! `TENUTO_SEED=17 cargo test -p simulator --test brim` runs that seed only; `TENUTO_SEEDS=1000`
//! more seeds.

mod driver;
mod seeds;

use driver::{Brim, Outcome};
use std::io::Write;

#[test]
fn every_read_is_on_time_with_its_slack_at_the_limit() {
    let all = run_all(SEEDS, Brim::draw);
    if seeds::single().is_none() {
        assert!(all.reads > 100_000 && all.work > 50_000, "too little was read: {all:?}");
        assert!(all.admitted > 3_000 && all.refused > 3_000, "not at the limit: {all:?}");
    }
}

#[test]
fn seeds_that_once_had_late_reads_have_none() {
    for seed in ONCE_BROKEN {
        let outcome = Brim::draw(seed).run();
        assert!(outcome.is_kept(), "seed {seed}: {outcome:?}");
    }
}

#[test]
fn no_read_of_a_disk_that_works_in_bursts_is_late_at_the_limit() {
    let all = run_all(PACED_SEEDS, Brim::draw_paced);
    if seeds::single().is_none() {
        assert!(all.reads > 100_000 && all.work > 10_000, "too little was read: {all:?}");
        assert!(all.admitted > 1_000 && all.refused > 1_000, "not at the limit: {all:?}");
    }
}

/// Runs the seeds on all processors; panics with those in which the guarantee is broken.
fn run_all(seeds: u64, draw: impl Fn(u64) -> Brim + Sync) -> Outcome {
    let outcomes = seeds::run_each(seeds, |seed| draw(seed).run());
    let mut all = Outcome::default();
    outcomes.iter().for_each(|(_, outcome)| all.add(outcome));
    // For long runs with `--nocapture`.
    writeln!(std::io::stdout(), "{} seeds: {all:?}", outcomes.len()).expect("stdout is open");
    let broken: Vec<_> = outcomes.iter().filter(|(_, outcome)| !outcome.is_kept()).collect();
    if let Some((seed, outcome)) = broken.first() {
        let seeds: Vec<u64> = broken.iter().map(|(seed, _)| *seed).take(SHOWN_SEEDS).collect();
        panic!(
            "the guarantee is broken in {} of {} seeds, {seeds:?}: {all:?}\n\
             run the first again: TENUTO_SEED={seed} cargo test -p simulator --test brim\n{:?}\n\
             {outcome:?}",
            broken.len(),
            outcomes.len(),
            draw(*seed),
        );
    }
    all
}

/// Chosen so that the file takes less than fifteen seconds on two processors, unoptimised.
const SEEDS: u64 = 200;

/// As many disks that work in bursts.
const PACED_SEEDS: u64 = 100;

/// Seeds above the range that are always run. Each had late reads, or less slack than guaranteed:
/// what was left of a sweep was charged as one sweep, best-effort work was charged no way back, or
/// a sweep after it was taken to begin with the end nearer to the head.
const ONCE_BROKEN: [u64; 26] = [
    277, 320, 355, 379, 406, 427, 465, 473, 634, 748, 808, 838, 873, 911, 985, 1115, 1182, 1368,
    1396, 1609, 1629, 1697, 1753, 1842, 1872, 1955,
];

/// Seeds in the text of a failure.
const SHOWN_SEEDS: usize = 40;
