//! A measured service curve: the fewest reads that a disk completed in any so many slots one after
//! another in which it was never without work.
//!
//! ```text
//!   reads seen, slot by slot     41  46  39  47  44  45        fewest in 1 slot   39
//!                              └─ 87 ─┘                                 2 slots  85
//!                                  └─ 85 ─┘  ...                         3 slots 126
//! ```
//!
//! One slow slot is soon made good: the longer, the nearer to the mean. Beyond the longest that was
//! measured the curve repeats itself: a long time holds at least what its parts do.
//!
//! Known in network calculus as a *strict service curve* (J.-Y. Le Boudec, P. Thiran, "Network
//! Calculus", section 1.3). It is as good as what was watched: a promise only while the disk does
//! not do worse than it ever did.

/// The fewest reads that a disk completes in any number of consecutive slots in which it is never
/// idle: a strict service curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    // least[h - 1]: of h slots. Not empty.
    least: Vec<u64>,
}

impl ServiceCurve {
    /// The curve of a disk that is known to complete `min_read` in any slot, and no more.
    pub fn of_guarantee(min_read: u32) -> Self {
        Self { least: vec![u64::from(min_read)] }
    }

    /// The curve of which some points are known, as (slots, fewest reads), shortest first and one
    /// slot among them. Between them it holds what its parts hold.
    pub fn of_fewest(known: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut least: Vec<u64> = Vec::new();
        for (slots, fewest) in known {
            let slots = usize::try_from(slots).unwrap_or(usize::MAX).min(LONGEST);
            while least.len() < slots {
                let whole = least.len();
                let parts = (0..whole).map(|part| least[part] + least[whole - 1 - part]);
                least.push(parts.max().unwrap_or(0));
            }
            least[slots - 1] = least[slots - 1].max(fewest);
        }
        if least.is_empty() {
            least.push(0);
        }
        Self { least }
    }

    /// The curve of what was seen: stretches of slots in which the disk was never idle, the reads
    /// completed in each. `None` if no slot was seen.
    pub fn of_slots<'a>(stretches: impl IntoIterator<Item = &'a [u32]>) -> Option<Self> {
        let mut least = [u64::MAX; LONGEST];
        for stretch in stretches {
            for slots in 1..=stretch.len().min(LONGEST) {
                let sum = |window: &[u32]| window.iter().map(|reads| u64::from(*reads)).sum();
                let fewest = stretch.windows(slots).map(sum).min().unwrap_or(u64::MAX);
                least[slots - 1] = least[slots - 1].min(fewest);
            }
        }
        Self::of_least(least)
    }

    /// The curve of the fewest reads of one slot, of two, and so on; `u64::MAX` where so many were
    /// not looked at together. `None` if not even one was.
    pub(crate) fn of_least(least: [u64; LONGEST]) -> Option<Self> {
        let seen = least.iter().take_while(|reads| **reads < u64::MAX).count();
        let mut least = least[..seen].to_vec();
        // What parts hold, the whole holds; short stretches may have been the slow ones.
        for slots in 1..least.len() {
            let parts = (0..slots).map(|part| least[part] + least[slots - 1 - part]);
            least[slots] = least[slots].max(parts.max().unwrap_or(0));
        }
        (seen > 0).then_some(Self { least })
    }

    /// The fewest reads in any `slots` slots one after another.
    pub fn least(&self, slots: u64) -> u64 {
        let longest = self.longest();
        // A longer stretch consists of measured ones, and the fewest reads of its parts add up to a
        // lower bound for the whole.
        let (whole, rest) = (slots / longest, slots % longest);
        let of = |slots: u64| match usize::try_from(slots) {
            Ok(at) if (1..=self.least.len()).contains(&at) => self.least[at - 1],
            _ => 0,
        };
        whole.saturating_mul(of(longest)).saturating_add(of(rest))
    }

    /// The most slots that were looked at together; at least one.
    pub fn longest(&self) -> u64 {
        self.least.len() as u64
    }
}

/// Slots that are looked at together at most: 32 s of 500 ms slots. By then a disk is within a few
/// percent of its mean.
pub(crate) const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_in_any_so_many() {
        let seen: &[u32] = &[41, 46, 39, 47, 44, 45];
        let curve = ServiceCurve::of_slots([seen]).unwrap();
        let least: Vec<u64> = (0..=6).map(|slots| curve.least(slots)).collect();
        assert_eq!(least, [0, 39, 85, 126, 173, 217, 262]);
        assert_eq!(curve.least(13), 262 * 2 + 39, "it repeats itself");
        assert_eq!(ServiceCurve::of_slots([&[][..]]), None);
        assert_eq!(ServiceCurve::of_guarantee(7).least(1_000_000), 7_000_000);
        assert_eq!(ServiceCurve::of_guarantee(0).least(u64::MAX), 0);
    }

    #[test]
    fn between_known_points_it_holds_what_its_parts_hold() {
        let curve = ServiceCurve::of_fewest([(1, 150), (2, 350), (4, 750)]);
        let least: Vec<u64> = (1..=8).map(|slots| curve.least(slots)).collect();
        assert_eq!(least, [150, 350, 500, 750, 900, 1100, 1250, 1500]);
        assert_eq!(ServiceCurve::of_fewest([(1, 7)]), ServiceCurve::of_guarantee(7));
        assert_eq!(ServiceCurve::of_fewest([]).least(9), 0);
    }

    #[test]
    fn two_stretches_hold_what_each_holds() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let stretches: Vec<Vec<u32>> = (0..random.usize(1..4))
                .map(|_| (0..random.usize(1..70)).map(|_| random.u32(0..50)).collect())
                .collect();
            let curve = ServiceCurve::of_slots(stretches.iter().map(Vec::as_slice)).unwrap();
            let longest = curve.longest();
            for (a, b) in (0..=longest).flat_map(|a| (0..=longest - a).map(move |b| (a, b))) {
                assert!(curve.least(a + b) >= curve.least(a) + curve.least(b), "{seed}: {a} {b}");
            }
            for stretch in &stretches {
                for slots in 1..=stretch.len() {
                    for window in stretch.windows(slots) {
                        let sum: u64 = window.iter().map(|reads| u64::from(*reads)).sum();
                        assert!(curve.least(slots as u64) <= sum, "{seed}: {window:?}");
                    }
                }
            }
        }
    }
}
