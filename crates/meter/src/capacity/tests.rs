//! The search on a storage whose capacity is known, with noise as on a machine with neighbours.

use super::*;

/// A storage that holds so many streams, and lies sometimes.
struct Known {
    capacity: u32,
    chance: fastrand::Rng,
    noise: f64,
}

impl Known {
    /// With `noise` 0.01: one run in a hundred that should hold meets a neighbour and fails, one in
    /// a hundred that should fail holds all the same if the overload is below 5 %, and what is
    /// delivered varies by 1 % to either side. A long run is three short ones: it meets a
    /// neighbour in any of them, and holds by accident only if all three do.
    fn answer(&mut self, Step { streams, long, .. }: Step) -> Found {
        let fits = streams <= self.capacity;
        let length = if long { 3 } else { 1 };
        let mut accidents = (0..length).map(|_| self.chance.f64() < self.noise);
        let lies = if fits { accidents.any(|is| is) } else { accidents.all(|is| is) };
        let slight = f64::from(streams) < f64::from(self.capacity) * 1.05 + 1.5;
        let held = if fits { !lies } else { lies && slight };
        let varied = 1.0 + self.noise * (self.chance.f64() * 2.0 - 1.0);
        let delivered = (f64::from(self.capacity) * varied).min(f64::from(streams));
        Found { held, delivered }
    }
}

fn searched(known: &mut Known) -> (Verdict, Vec<Step>) {
    let mut search = Search::new(4096, 20);
    let mut steps = Vec::new();
    while let Some(step) = search.step() {
        steps.push(step);
        search.report(step, known.answer(step));
    }
    (search.verdict(), steps)
}

fn known(capacity: u32, noise: f64, seed: u64) -> Known {
    Known { capacity, noise, chance: fastrand::Rng::with_seed(seed) }
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
        // As many small capacities as large ones, by powers of two.
        let mut chance = fastrand::Rng::with_seed(seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 4096")]
        let capacity = (chance.f64() * 4096f64.ln()).exp().round() as u32;
        let (verdict, _) = searched(&mut known(capacity, 0.01, seed));
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
fn the_last_runs_make_sure_of_what_was_found() {
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
fn what_cannot_be_confirmed_says_so() {
    let mut search = Search::new(4096, 5);
    while let Some(step) = search.step() {
        search.report(step, Found { held: true, delivered: f64::from(step.streams) });
    }
    let verdict = search.verdict();
    assert_eq!((verdict.streams, verdict.confirmed, verdict.probes), (256, false, 5));
}

#[test]
fn an_overload_that_takes_its_time_is_found_by_longer_runs() {
    for (short, long) in [(94, 88), (3, 2), (63, 62), (1, 0), (110, 108), (3001, 2881)] {
        let mut search = Search::new(4096, 30);
        while let Some(step) = search.step() {
            let held = step.streams <= if step.long { long } else { short };
            let delivered = f64::from(step.streams.min(long));
            search.report(step, Found { held, delivered });
        }
        let verdict = search.verdict();
        assert_eq!((verdict.streams, verdict.confirmed), (long, true), "{short}: {verdict:?}");
    }
}
