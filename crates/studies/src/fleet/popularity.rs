//! Which title a viewer asks for: Zipf's law, drawn in constant time.
//!
//! The title of rank `k` has the probability `k^-s / sum`. The table is that of the alias method
//! (Walker; as built by Vose): each entry has a title, another one, and the part of the first.

use crate::admission::RandomSource;
use units::{float, index};

/// The popularity of titles, by rank.
#[derive(Clone, Debug)]
pub(super) struct Popularity {
    parts: Vec<f64>,
    /// Parts in single precision: the table of 50,000 titles stays in the cache.
    table: Vec<(f32, u32)>,
}

impl Popularity {
    /// The popularity of this number of titles, with this exponent of Zipf's law.
    pub(super) fn zipf(titles: u32, exponent: f64) -> Self {
        let mut parts: Vec<f64> =
            (1..=titles).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let sum: f64 = parts.iter().sum();
        parts.iter_mut().for_each(|part| *part /= sum);
        Self { table: alias(&parts), parts }
    }

    /// The probability of each title.
    pub(super) fn parts(&self) -> &[f64] {
        &self.parts
    }

    /// A title.
    #[inline]
    pub(super) fn draw(&self, random: &mut RandomSource) -> u32 {
        let entry = random.below(self.table.len());
        let (part, other) = self.table[entry];
        if random.part() < f64::from(part) {
            u32::try_from(entry).expect("titles have 32 bits")
        } else {
            other
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "to single precision")]
fn alias(parts: &[f64]) -> Vec<(f32, u32)> {
    let mut rest: Vec<f64> = parts.iter().map(|part| part * float(parts.len() as u64)).collect();
    let mut table: Vec<(f32, u32)> = (0..).take(parts.len()).map(|title| (1.0, title)).collect();
    let titles = 0..u32::try_from(parts.len()).expect("titles have 32 bits");
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        titles.partition(|title| rest[index(*title)] < 1.0);
    while let (Some(less), Some(more)) = (small.pop(), large.pop()) {
        table[index(less)] = (rest[index(less)] as f32, more);
        rest[index(more)] -= 1.0 - rest[index(less)];
        if rest[index(more)] < 1.0 { small.push(more) } else { large.push(more) }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_drawn_as_often_as_their_rank_says() {
        let popularity = Popularity::zipf(50, 1.0);
        let mut random = RandomSource::new(1, 1);
        let draws = 200_000;
        let mut counts = [0u32; 50];
        for _ in 0..draws {
            counts[index(popularity.draw(&mut random))] += 1;
        }
        // The sum of 1/k up to 50 is 4.4992.
        for (count, rank) in counts.iter().zip(1..) {
            let expected = f64::from(draws) / 4.4992 / f64::from(rank);
            let apart = (f64::from(*count) - expected).abs();
            assert!(apart < 5.0 * expected.sqrt(), "rank {rank}: {count} of {expected}");
        }
    }
}
