//! "When, then?": the earliest later start that fits.
//!
//! Whether a start fits is not monotonic in its time, but nearly: a search that steps exactly at
//! first and wider later, then halves the last gap, finds a start that fits with a bounded number
//! of tests. The start it names is tested itself; an earlier one inside a wide gap may be missed.

/// The smallest shift found, of 1 to `limit` slots, that `fits`. At most about 50 tests.
pub fn earliest_shift(limit: u64, mut fits: impl FnMut(u64) -> bool) -> Option<u64> {
    let (mut misfit, mut shift) = (0, 1);
    while shift <= limit {
        if fits(shift) {
            return Some(narrow(misfit, shift, fits));
        }
        misfit = shift;
        shift = if shift < EXACT { shift + 1 } else { shift + shift.div_ceil(WIDEN_PART) };
    }
    None
}

fn narrow(mut misfit: u64, mut fit: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    while fit - misfit > 1 {
        let middle = misfit + (fit - misfit) / 2;
        if fits(middle) {
            fit = middle;
        } else {
            misfit = middle;
        }
    }
    fit
}

/// Up to here every slot is tried: 4 s of 500 ms slots, as long as a person waits gladly.
const EXACT: u64 = 8;

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
                shift >= answer
            });
            assert!(
                found == Some(answer) || (answer > 1000 && found.is_none()),
                "{answer}: {found:?}"
            );
            assert!(tests <= 50, "{answer}: {tests} tests");
        }
        assert_eq!(earliest_shift(1200, |_| false), None);
        assert_eq!(earliest_shift(0, |_| true), None);
    }
}
