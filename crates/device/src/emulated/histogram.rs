//! Lateness counted in classes of time, in constant memory.
//!
//!
//! Classes grow with the time, sixteen to each doubling, so that a percentile is precise to a
//! sixteenth. The histogram keeps neither order nor moments.

use std::time::Duration;

/// A histogram of lateness in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct LatenessHistogram {
    classes: Vec<u64>,
    count: u64,
    max: u64,
}

impl LatenessHistogram {
    pub(super) fn new() -> Self {
        Self { classes: vec![0; CLASSES], count: 0, max: 0 }
    }

    pub(super) fn add(&mut self, late: Duration) {
        let nanos = units::nanos(late);
        self.classes[class(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(nanos);
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The lateness that `per_mille` of a thousand did not exceed; zero without entries.
    pub(super) fn percentile(&self, per_mille: u64) -> Duration {
        let rank = (self.count * per_mille).div_ceil(1000);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= rank {
                return Duration::from_nanos(end_of(class).min(self.max));
            }
        }
        Duration::ZERO
    }
}

/// The class of a time. Below 2 × 16 each number is its own class; above, its first five bits
/// determine the class.
fn class(nanos: u64) -> usize {
    let doublings = nanos.max(1).ilog2().saturating_sub(BITS);
    let within = usize::try_from(nanos >> doublings).expect("at most six bits");
    (usize::try_from(doublings).expect("at most 64") << BITS) + within
}

/// The largest number of a class.
fn end_of(class: usize) -> u64 {
    let doublings = (class >> BITS).saturating_sub(1);
    let within = class - (doublings << BITS);
    ((within as u128 + 1) << doublings).saturating_sub(1).try_into().unwrap_or(u64::MAX)
}

const BITS: u32 = 4;
const CLASSES: usize = (64 - BITS as usize + 1) << BITS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_gaps() {
        assert_eq!(class(u64::MAX), CLASSES - 1);
        for number in (0..5000).chain((0..64).map(|bit| 1 << bit)) {
            assert!(number <= end_of(class(number)), "{number}");
            assert!(number == 0 || class(number) == 0 || number > end_of(class(number) - 1));
            assert!(end_of(class(number)) - number <= number / 16, "{number} to a sixteenth");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut some = || {
            let bits = rng.u32(1..30);
            rng.u64(0..1 << bits)
        };
        let mut list: Vec<u64> = (0..5000).map(|_| some()).collect();
        let mut late = LatenessHistogram::new();
        assert_eq!(late.percentile(500), Duration::ZERO);
        list.iter().for_each(|nanos| late.add(Duration::from_nanos(*nanos)));
        list.sort_unstable();
        for per_mille in [1, 500, 900, 990, 1000] {
            let exact = list[(per_mille * list.len()).div_ceil(1000) - 1];
            let (least, most) = [exact, exact + exact / 16].map(Duration::from_nanos).into();
            let said = late.percentile(per_mille as u64);
            assert!((least..=most).contains(&said), "{per_mille}: {said:?} {least:?}");
        }
        assert_eq!(late.max(), late.percentile(1000));
    }
}
