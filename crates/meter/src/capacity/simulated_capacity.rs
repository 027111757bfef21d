//! A simulated storage of known capacity whose results are sometimes wrong: the search is judged by
//! it.

use super::{RunResult, RunVerdict, Search, SearchResult, SearchStep};

/// A simulated storage of known capacity whose runs are wrong with a given probability.
#[derive(Clone, Debug)]
pub(super) struct SimulatedCapacity {
    /// The true number of streams that the storage holds.
    pub(super) capacity: u32,
    /// The source of wrong results.
    pub(super) chance: fastrand::Rng,
    /// The probability of a wrong result. With 0.01, one run in a hundred that should hold fails
    /// because of a neighbour, one in a hundred that should fail holds if the overload is below 5
    /// %, and the delivered rate varies by 1 % in each direction.
    pub(super) noise: f64,
    /// The share of runs in which the measuring machine itself is late.
    pub(super) invalid: f64,
    /// The number of streams above which the measuring machine is always late.
    pub(super) measurable: u32,
}

impl SimulatedCapacity {
    /// A storage with a capacity from 1 to `most` drawn from `seed`, uniform in powers of two.
    pub(super) fn drawn(most: u32, noise: f64, seed: u64) -> Self {
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

    /// The result of a run. A long run counts as three short ones: it fails if any of them meets a
    /// neighbour, and holds by accident only if all three do.
    pub(super) fn answer(&mut self, SearchStep { streams, long, .. }: SearchStep) -> RunResult {
        let fits = streams <= self.capacity;
        let length = if long { 3 } else { 1 };
        let mut accidents = (0..length).map(|_| self.chance.f64() < self.noise);
        let lies = if fits { accidents.any(|is| is) } else { accidents.all(|is| is) };
        // A count far above the capacity never holds, whatever the chance.
        let slight = f64::from(streams) < f64::from(self.capacity) * 1.05 + 1.5;
        let held = if fits { !lies } else { lies && slight };
        let varied = 1.0 + self.noise * (self.chance.f64() * 2.0 - 1.0);
        let delivered = (f64::from(self.capacity) * varied).min(f64::from(streams));
        // Without a chance nothing is drawn: the sequence of a seed stays the same.
        let invalid = self.invalid > 0.0 && self.chance.f64() < self.invalid;
        let answer = match held {
            _ if invalid || streams > self.measurable => RunVerdict::Invalid,
            true => RunVerdict::Held,
            false => RunVerdict::Failed,
        };
        RunResult { answer, delivered }
    }

    /// The result of a search from 1 to `most` with at most `probes` runs, and the runs it made.
    pub(super) fn searched(&mut self, most: u32, probes: u32) -> (SearchResult, Vec<SearchStep>) {
        let mut search = Search::new(most, probes);
        let mut steps = Vec::new();
        while let Some(step) = search.step() {
            steps.push(step);
            search.report(step, self.answer(step));
        }
        (search.verdict(), steps)
    }
}
