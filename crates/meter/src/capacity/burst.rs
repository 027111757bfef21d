//! Storage that is faster at first: a burst credit, or a cache that fills.
//!
//! ```text
//!   rate │▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔│           beyond the sustained rate: the credit
//!        │ 64 held  64 held │ 64 failed
//!        │──────────────────┴────────── sustained: held by the confirming run
//!        └──────────────────────────── all runs of a search, one after another
//! ```
//!
//! A number of streams that is too much for a storage of one speed misses its deadlines as soon as
//! the clients' buffers are empty. One that was delivered for much longer than that, and later was
//! not, used something that was used up.

use std::time::Duration;
use units::ByteCount;

/// A storage that was faster at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The largest number of streams that it delivered at first.
    pub(crate) streams: u32,
    /// Bytes that it delivered at first beyond the sustained rate.
    pub(crate) bytes: ByteCount,
    /// The time in which it delivered them.
    pub(crate) lasted: Duration,
}

/// A valid run of a search, as far as a burst shows in it.
#[derive(Clone, Debug)]
pub(crate) struct DeliveredRun {
    pub(crate) streams: u32,
    pub(crate) held: bool,
    /// The time until the first frame was late, or of the whole run.
    pub(crate) in_time: Duration,
    /// Bytes moved in each second.
    pub(crate) seconds: Vec<u64>,
}

/// The burst that these runs show, in their order. `held` streams of `each` bytes per second are
/// what the storage sustains; clients buffer for `allowed`.
pub(crate) fn burst(
    runs: &[DeliveredRun],
    held: u32,
    each: u64,
    allowed: Duration,
) -> Option<Burst> {
    let fast = runs.iter().enumerate().filter(|(number, run)| {
        let above = run.streams.saturating_sub(held);
        // Within 5 % the search may be wrong rather than the storage fast.
        let clear = above > (held / 20).max(1);
        // Twice what the buffers bridge at this overload.
        let bridged = allowed * 2 * held.max(1) / above.max(1) + Duration::from_secs(1);
        let later = runs[number + usize::from(run.held)..].iter();
        let failed_later = later.clone().any(|later| !later.held && later.streams <= run.streams);
        clear && run.in_time > bridged && failed_later
    });
    let streams = fast.map(|(_, run)| run.streams).max()?;
    let sustained = i128::from(each) * i128::from(held);
    let seconds: Vec<u64> = runs.iter().flat_map(|run| &run.seconds).copied().collect();
    // The stretch with the largest sum beyond the sustained rate (Kadane's algorithm).
    let (mut best, mut sum, mut begun) = ((0, 0), 0, 0);
    for (second, bytes) in (1_u64..).zip(&seconds) {
        sum += i128::from(*bytes) - sustained;
        if sum <= 0 {
            (sum, begun) = (0, second);
        }
        // The first such stretch: what follows at the sustained rate does not belong to it.
        if sum > best.0 {
            best = (sum, second - begun);
        }
    }
    let bytes = ByteCount(u64::try_from(best.0).unwrap_or(u64::MAX));
    Some(Burst { streams, bytes, lasted: Duration::from_secs(best.1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(streams: u32, held: bool, in_time: u64, seconds: &[u64]) -> DeliveredRun {
        let in_time = Duration::from_secs(in_time);
        DeliveredRun { streams, held, in_time, seconds: seconds.to_vec() }
    }

    #[test]
    fn a_credit_is_found_with_its_size_where_it_was_used_up() {
        let allowed = Duration::from_millis(320);
        let fast = run(64, true, 20, &[64; 20]);
        let used_up = run(64, false, 10, &[[64; 10], [40; 10]].concat());
        let slow = run(40, true, 60, &[40; 60]);
        let found = burst(&[fast.clone(), used_up.clone(), slow.clone()], 40, 1, allowed);
        let lasted = Duration::from_secs(30);
        assert_eq!(found, Some(Burst { streams: 64, bytes: ByteCount(24 * 30), lasted }));
        assert!(burst(&[used_up, slow.clone()], 40, 1, allowed).is_some(), "within one run");
        // Never used up: the storage holds it.
        assert_eq!(burst(&[fast], 40, 1, allowed), None);
        // An overload that the buffers bridge for a time.
        let overload = run(44, false, 6, &[40; 10]);
        assert_eq!(burst(&[overload, slow], 40, 1, allowed), None);
    }
}
