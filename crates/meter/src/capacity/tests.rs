//! The search on a storage whose capacity is known, with noise as on a machine with neighbours.

use super::*;

fn searched(known: &mut SimulatedCapacity) -> (SearchResult, Vec<SearchStep>) {
    known.searched(4096, 20)
}

fn known(capacity: u32, noise: f64, seed: u64) -> SimulatedCapacity {
    SimulatedCapacity { capacity, ..SimulatedCapacity::drawn(1, noise, seed) }
}

#[test]
fn without_noise_every_capacity_is_found_and_confirmed() {
    for capacity in (0..300).chain((300..4096).step_by(37)).chain([4095, 4096]) {
        let (verdict, steps) = searched(&mut known(capacity, 0.0, 1));
        assert_eq!((verdict.streams, verdict.confirmed), (capacity, true), "{steps:?}");
        assert_eq!(verdict.at_limit, capacity == 4096);
        assert!(verdict.probes <= 20, "{capacity}: {steps:?}");
    }
}

#[test]
fn with_noise_it_is_exact_nearly_always_and_hardly_ever_too_high() {
    let (mut exact, mut above, mut confirmed, mut probes) = (0, 0, 0, 0);
    for seed in 0..1000 {
        let mut storage = SimulatedCapacity::drawn(4096, 0.01, seed);
        let capacity = storage.capacity;
        let (verdict, _) = searched(&mut storage);
        exact += u32::from(verdict.streams == capacity);
        above += u32::from(verdict.streams > capacity);
        confirmed += u32::from(verdict.confirmed);
        probes = probes.max(verdict.probes);
    }
    let said = format!("exact {exact}, above {above}, confirmed {confirmed}, probes {probes}");
    assert!(exact >= 950 && above <= 1 && confirmed >= 950 && probes <= 20, "{said}");
}

#[test]
fn the_confirming_run_comes_from_above() {
    let (_, steps) = searched(&mut known(100, 0.0, 1));
    let last: Vec<(u32, Purpose)> =
        steps.iter().rev().take(2).map(|step| (step.streams, step.purpose)).collect();
    assert_eq!(last, [(100, Purpose::Confirm), (101, Purpose::Above)]);
}

#[test]
fn the_last_runs_confirm_the_result() {
    let mut search = Search::new(4096, 12);
    let mut storage = known(3000, 0.0, 1);
    while let Some(step) = search.step() {
        search.report(step, storage.answer(step));
    }
    let verdict = search.verdict();
    assert!(verdict.confirmed && verdict.probes == 12, "{verdict:?}");
    assert!(verdict.streams <= 3000 && verdict.too_many.is_some_and(|n| n > 3000), "{verdict:?}");
}

#[test]
fn two_runs_confirm_the_result_when_time_is_short() {
    let mut search = Search::new(4096, 40);
    let mut storage = known(3000, 0.0, 1);
    while let Some(step) = search.step() {
        search.report(step, storage.answer(step));
        if search.verdict().probes == 10 {
            search.finish();
        }
    }
    let verdict = search.verdict();
    assert!(verdict.confirmed && verdict.probes == 12, "{verdict:?}");
}

#[test]
fn a_result_that_cannot_be_confirmed_is_reported_as_such() {
    let mut search = Search::new(4096, 5);
    while let Some(step) = search.step() {
        search.report(
            step,
            RunResult { answer: RunVerdict::Held, delivered: f64::from(step.streams) },
        );
    }
    let verdict = search.verdict();
    assert_eq!((verdict.streams, verdict.confirmed, verdict.probes), (256, false, 5));
}

#[test]
fn a_count_that_held_only_for_a_short_time_is_reported_as_unconfirmed() {
    let mut search = Search::new(4096, 30);
    while let Some(step) = search.step() {
        let answer = match step {
            SearchStep { long: true, .. } => RunVerdict::Invalid,
            SearchStep { streams: 0..=160, .. } => RunVerdict::Held,
            _ => RunVerdict::Failed,
        };
        search.report(step, RunResult { answer, delivered: f64::from(step.streams.min(160)) });
    }
    let verdict = search.verdict();
    assert!(!verdict.confirmed && (1..=160).contains(&verdict.streams), "{verdict:?}");
}

#[test]
fn a_slow_overload_is_found_by_longer_runs() {
    for (short, long) in [(94, 88), (3, 2), (63, 62), (1, 0), (110, 108), (3001, 2881)] {
        let mut search = Search::new(4096, 30);
        while let Some(step) = search.step() {
            let held = step.streams <= if step.long { long } else { short };
            let answer = if held { RunVerdict::Held } else { RunVerdict::Failed };
            let delivered = f64::from(step.streams.min(long));
            search.report(step, RunResult { answer, delivered });
        }
        let verdict = search.verdict();
        assert_eq!((verdict.streams, verdict.confirmed), (long, true), "{short}: {verdict:?}");
    }
}

#[test]
fn one_invalid_run_in_five_changes_no_result() {
    let (mut exact, mut above, mut confirmed, mut probes, mut invalid) = (0, 0, 0, 0, 0);
    for seed in 0..1000 {
        let mut storage =
            SimulatedCapacity { invalid: 0.2, ..SimulatedCapacity::drawn(4096, 0.01, seed) };
        let (verdict, _) = searched(&mut storage);
        exact += u32::from(verdict.streams == storage.capacity);
        above += u32::from(verdict.streams > storage.capacity);
        confirmed += u32::from(verdict.confirmed);
        probes = probes.max(verdict.probes);
        invalid = invalid.max(verdict.invalid);
    }
    let said = format!("exact {exact}, above {above}, confirmed {confirmed}, {probes} + {invalid}");
    assert!(exact >= 900 && above <= 1 && confirmed >= 900 && probes <= 20, "{said}");
    assert!(invalid <= 20, "{said}");
}

#[test]
fn a_measuring_machine_that_limits_is_named_in_the_result() {
    for (capacity, measurable, found) in [(400, 60, 60), (4096, 1, 1), (60, 400, 60), (9, 9, 9)] {
        let mut storage = SimulatedCapacity { measurable, ..known(capacity, 0.0, 1) };
        let (verdict, steps) = searched(&mut storage);
        assert_eq!((verdict.streams, verdict.confirmed), (found, true), "{steps:?}");
        assert_eq!(verdict.by_meter, measurable < capacity + 1, "{steps:?}");
        assert_eq!(verdict.too_many, Some(found + 1));
    }
    let (verdict, steps) = searched(&mut SimulatedCapacity { measurable: 0, ..known(50, 0.0, 1) });
    assert_eq!((verdict.streams, verdict.confirmed, verdict.by_meter), (0, false, true));
    assert!(steps.len() <= 6, "{steps:?}");
}

/// As a disk that is shared: below one count every run holds, above another every run fails, and
/// between the two each run may go either way.
#[test]
fn storage_with_unrepeatable_results_gets_a_confirmed_number() {
    for seed in 0..200 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut accident = seed % 2 == 0;
        let mut search = Search::new(4096, 30);
        while let Some(step) = search.step() {
            let held = step.streams < 400 || step.streams <= 420 && chance.bool();
            // An accidental failure far below the capacity.
            let held = held && !(step.streams == 64 && std::mem::take(&mut accident));
            let answer = if held { RunVerdict::Held } else { RunVerdict::Failed };
            let delivered = f64::from(step.streams.min(410));
            search.report(step, RunResult { answer, delivered });
        }
        let verdict = search.verdict();
        assert!(verdict.confirmed && (385..=420).contains(&verdict.streams), "{seed}: {verdict:?}");
    }
}
