//! "When, then?": the earliest later start that fits.
//!
//! ```text
//!   start   1    2  3  4  5  6    7    8  9    10
//!           ✗ ┄┄ ruled out ┄┄┄┄   ✗ ┄┄┄┄┄┄┄    ✓          ✗ tested and refused
//! ```
//!
//! Whether a start fits is not monotonic in its time, so each is tried, but for those that are
//! ruled out by the refusal before: where everything due by some slot takes too long even in one
//! sweep, the newcomer must be so much later that enough of it is due after that slot
//! ([`Policy::ruled_out`](super::Policy::ruled_out)). So the answer is exact for as many tests as
//! are allowed for that; then steps grow, the last gap is halved, and an earlier start within it
//! may be missed. The start that is named is always tested itself.

/// The smallest shift found, of 1 to `limit` slots, that fits; exact if it took no more than
/// [`EXACT_TESTS`]. `test` says of a shift that does not fit how many slots from it on, itself
/// included, do not fit for certain. About [`EXACT_TESTS`] + 50 tests at most.
pub fn earliest_shift(limit: u64, mut test: impl FnMut(u64) -> Result<(), u64>) -> Option<u64> {
    let (mut misfit, mut shift, mut tests) = (0, 1, 0);
    while shift <= limit {
        match test(shift) {
            Ok(()) => return Some(narrow(misfit, shift, test)),
            Err(out) => misfit = shift.saturating_add(out.max(1) - 1),
        }
        tests += 1;
        let wide = if tests < EXACT_TESTS { 0 } else { shift.div_ceil(WIDEN_PART) };
        shift = misfit.saturating_add(1).max(shift + wide);
    }
    None
}

fn narrow(mut misfit: u64, mut fit: u64, mut test: impl FnMut(u64) -> Result<(), u64>) -> u64 {
    while fit - misfit > 1 {
        let middle = misfit + (fit - misfit) / 2;
        match test(middle) {
            Ok(()) => fit = middle,
            // Never beyond `fit`, which was tested, so that the gap stays positive.
            Err(out) => misfit = middle.saturating_add(out.max(1) - 1).min(fit - 1),
        }
    }
    fit
}

/// Starts that are tried without leaving any out: a fraction of a millisecond.
pub const EXACT_TESTS: u32 = 16;

/// Beyond, steps grow by a quarter: "in about two minutes" need not be exact.
const WIDEN_PART: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_start_is_found_with_few_tests() {
        for answer in 1..=1200 {
            let mut tests = 0;
            let found = earliest_shift(1200, |shift| {
                tests += 1;
                if shift >= answer { Ok(()) } else { Err(1) }
            });
            assert!(
                found == Some(answer) || (answer > 1000 && found.is_none()),
                "{answer}: {found:?}"
            );
            assert!(tests <= EXACT_TESTS + 50, "{answer}: {tests} tests");
        }
        assert_eq!(earliest_shift(1200, |_| Err(1)), None);
        assert_eq!(earliest_shift(1200, |_| Err(u64::MAX)), None);
        assert_eq!(earliest_shift(0, |_| Ok(())), None);
    }

    #[test]
    fn what_is_ruled_out_is_not_tried_and_nothing_else_is_missed() {
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let fits: Vec<bool> = (0..60).map(|_| random.u8(..20) == 0).collect();
            let mut tests = 0;
            let found = earliest_shift(60, |shift| {
                tests += 1;
                let at = usize::try_from(shift - 1).unwrap();
                let misfits = fits[at..].iter().take_while(|fits| !**fits).count();
                // Some of them are known of.
                if fits[at] { Ok(()) } else { Err(random.u64(1..=misfits as u64)) }
            });
            if tests <= EXACT_TESTS {
                let first = fits.iter().position(|fits| *fits);
                assert_eq!(found, first.map(|at| at as u64 + 1), "seed {seed}");
            }
        }
    }
}
