//! Chance as a value: a sequence of numbers from one seed (SplitMix64).
//!
//! A caller draws one seed per request, from any source. The crate itself draws nothing.

/// A sequence of numbers; the same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of this seed.
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// A number below `count`, or 0 if `count` is 0.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        // The high half of a product is even enough for counts far below 2^64, without a division.
        let high = (u128::from(self.draw()) * count as u128) >> 64;
        usize::try_from(high).unwrap_or(0)
    }

    /// Evenly from 0 to 1, 1 excluded.
    #[inline]
    pub fn part(&mut self) -> f64 {
        units::float(self.draw() >> 11) / units::float(1 << 53)
    }
}

/// All bits of `value` changed by each of its bits.
#[inline]
pub(crate) const fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A text as a number (FNV-1a, mixed). It stays the same for ever: another one would move titles,
/// and is in records.
pub(crate) fn hash_of(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mixed(text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// 2^64 divided by the golden ratio: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_repeatable() {
        let mut chance = Chance::from_seed(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[chance.below(7)] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        let of = |seed| Chance::from_seed(seed).draw();
        assert_eq!([of(1) == of(1), of(1) == of(2)], [true, false]);
        assert_eq!(Chance::from_seed(3).below(0), 0);
        assert!((0.0..1.0).contains(&Chance::from_seed(5).part()));
    }
}
