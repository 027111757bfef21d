//! A storage whose capacity is known, and that lies sometimes: what the search is judged by.

use super::{RunResult, RunVerdict, Search, SearchResult, SearchStep};

/// A simulated storage of known capacity whose runs are wrong with a given probability.
#[derive(Clone, Debug)]
pub struct SimulatedCapacity {
    /// The true number of streams that the storage holds.
    pub capacity: u32,
    /// The source of wrong results.
    pub chance: fastrand::Rng,
    /// With 0.01: one run in a hundred that should hold meets a neighbour and fails, one in a
    /// hundred that should fail holds all the same if the overload is below 5 %, and what is
    /// delivered varies by 1 % to either side.
    pub noise: f64,
    /// The share of runs in which the machine that measures is late itself.
    pub invalid: f64,
    /// With more streams than that it always is.
    pub measurable: u32,
}

impl SimulatedCapacity {
    /// A storage with a capacity from 1 to `most` drawn from `seed`, uniform in powers of two.
    pub fn drawn(most: u32, noise: f64, seed: u64) -> Self {
        let mut draw = fastrand::Rng::with_seed(seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to most")]
        let capacity = (draw.f64() * f64::from(most).ln()).exp().round() as u32;
        Self {
            capacity,
            chance: fastrand::Rng::with_seed(seed),
            noise,
            invalid: 0.0,
            measurable: u32::MAX,
        }
    }

    /// What comes of a run. A long one is three short ones: it meets a neighbour in any of them,
    /// and holds by accident only if all three do.
    pub fn answer(&mut self, SearchStep { streams, long, .. }: SearchStep) -> RunResult {
        let fits = streams <= self.capacity;
        let length = if long { 3 } else { 1 };
        let mut accidents = (0..length).map(|_| self.chance.f64() < self.noise);
        let lies = if fits { accidents.any(|is| is) } else { accidents.all(|is| is) };
        let slight = f64::from(streams) < f64::from(self.capacity) * 1.05 + 1.5;
        let held = if fits { !lies } else { lies && slight };
        let varied = 1.0 + self.noise * (self.chance.f64() * 2.0 - 1.0);
        let delivered = (f64::from(self.capacity) * varied).min(f64::from(streams));
        // No chance is drawn where there is none: the trials of a seed stay what they were.
        let invalid = self.invalid > 0.0 && self.chance.f64() < self.invalid;
        let answer = match held {
            _ if invalid || streams > self.measurable => RunVerdict::Invalid,
            true => RunVerdict::Held,
            false => RunVerdict::Failed,
        };
        RunResult { answer, delivered }
    }

    /// The result of a search from 1 to `most` with at most `probes` runs, and the runs it made.
    pub fn searched(&mut self, most: u32, probes: u32) -> (SearchResult, Vec<SearchStep>) {
        let mut search = Search::new(most, probes);
        let mut steps = Vec::new();
        while let Some(step) = search.step() {
            steps.push(step);
            search.report(step, self.answer(step));
        }
        (search.verdict(), steps)
    }
}
