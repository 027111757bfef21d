//! A storage whose capacity is known, and that lies sometimes: what the search is judged by.

use super::{Answer, Found, Search, Step, Verdict};

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Known {
    /// So many streams it holds.
    pub capacity: u32,
    /// What its lies come from.
    pub chance: fastrand::Rng,
    /// With 0.01: one run in a hundred that should hold meets a neighbour and fails, one in a
    /// hundred that should fail holds all the same if the overload is below 5 %, and what is
    /// delivered varies by 1 % to either side.
    pub noise: f64,
    /// The share of runs in which the machine that measures is late itself.
    pub spoilt: f64,
    /// With more streams than that it always is.
    pub measurable: u32,
}

impl Known {
    /// Of a seed, of a capacity from 1 to `most`: as many small ones as large ones, by powers of two.
    pub fn drawn(most: u32, noise: f64, seed: u64) -> Self {
        let mut draw = fastrand::Rng::with_seed(seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to most")]
        let capacity = (draw.f64() * f64::from(most).ln()).exp().round() as u32;
        Self {
            capacity,
            chance: fastrand::Rng::with_seed(seed),
            noise,
            spoilt: 0.0,
            measurable: u32::MAX,
        }
    }

    /// What comes of a run. A long one is three short ones: it meets a neighbour in any of them,
    /// and holds by accident only if all three do.
    pub fn answer(&mut self, Step { streams, long, .. }: Step) -> Found {
        let fits = streams <= self.capacity;
        let length = if long { 3 } else { 1 };
        let mut accidents = (0..length).map(|_| self.chance.f64() < self.noise);
        let lies = if fits { accidents.any(|is| is) } else { accidents.all(|is| is) };
        let slight = f64::from(streams) < f64::from(self.capacity) * 1.05 + 1.5;
        let held = if fits { !lies } else { lies && slight };
        let varied = 1.0 + self.noise * (self.chance.f64() * 2.0 - 1.0);
        let delivered = (f64::from(self.capacity) * varied).min(f64::from(streams));
        // No chance is drawn where there is none: the trials of a seed stay what they were.
        let spoilt = self.spoilt > 0.0 && self.chance.f64() < self.spoilt;
        let answer = match held {
            _ if spoilt || streams > self.measurable => Answer::Spoilt,
            true => Answer::Held,
            false => Answer::Failed,
        };
        Found { answer, delivered }
    }

    /// What a search among 1 to `most` with at most `probes` runs says, and the runs it made.
    pub fn searched(&mut self, most: u32, probes: u32) -> (Verdict, Vec<Step>) {
        let mut search = Search::new(most, probes);
        let mut steps = Vec::new();
        while let Some(step) = search.step() {
            steps.push(step);
            search.report(step, self.answer(step));
        }
        (search.verdict(), steps)
    }
}
