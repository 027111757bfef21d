//! Random whole numbers: uniform ones, and those of msMeter.
//!
//! msMeter 2.0.1 takes as many bytes of `rand()` as the limit has (`rand() & 0xff`), and the
//! remainder of that number divided by the limit. With one byte and a limit of 100 the numbers 0 to
//! 55 occur three times in 256 and the others twice: a setting of 50 % gives 58.6 %, and 10 % gives
//! 11.7 %. `rand()` is the C library's additive feedback generator.

use std::collections::VecDeque;

/// The source of random numbers: Tenuto's own, or one that repeats msMeter's.
#[derive(Clone, Debug)]
pub enum Dice {
    /// Uniform numbers.
    Honest(fastrand::Rng),
    /// The numbers of msMeter.
    MsMeter(Glibc),
}

/// The C library's `rand()` (glibc, `TYPE_3`: r\[i\] = r\[i-3\] + r\[i-31\]).
#[derive(Clone, Debug)]
pub struct Glibc(VecDeque<u32>);

impl Dice {
    /// A uniform generator.
    pub fn honest(seed: u64) -> Self {
        Self::Honest(fastrand::Rng::with_seed(seed))
    }

    /// The generator of msMeter.
    pub fn ms_meter(seed: u64) -> Self {
        // srand takes 32 bits, and replaces zero by one.
        let seed = u32::try_from(seed % 0xffff_fffe).unwrap_or(0) + 1;
        Self::MsMeter(Glibc::new(seed))
    }

    /// A number below the limit; zero where that is zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        match self {
            _ if limit == 0 => 0,
            Self::Honest(chance) => chance.u64(..limit),
            Self::MsMeter(rand) => {
                let bytes = (1..8).take_while(|bytes| limit > (1 << (8 * bytes)) - 1).count() + 1;
                let number =
                    (0..bytes).fold(0u64, |number, _| number << 8 | u64::from(rand.roll() & 0xff));
                number % limit
            }
        }
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }
}

impl Glibc {
    /// The state after `srand(seed)`; the seed is not zero.
    pub fn new(seed: u32) -> Self {
        let mut first = vec![i64::from(seed.cast_signed())];
        for i in 1..31 {
            let next = 16_807 * first[i - 1] % 2_147_483_647;
            first.push(if next < 0 { next + 2_147_483_647 } else { next });
        }
        let low = |number: &i64| u32::try_from(number & 0xffff_ffff).expect("32 bits");
        let mut last: VecDeque<u32> = first.iter().map(low).collect();
        for i in 0..3 {
            let again = last[i];
            last.push_back(again);
        }
        while last.len() > 31 {
            last.pop_front();
        }
        let mut rand = Self(last);
        // As `srandom` does: the first numbers would still show the linear seed.
        for _ in 0..310 {
            rand.roll();
        }
        rand
    }

    /// The next number, of 31 bits.
    pub fn roll(&mut self) -> u32 {
        let sum = self.0[28].wrapping_add(self.0[0]);
        self.0.pop_front();
        self.0.push_back(sum);
        sum >> 1
    }
}
