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
//! the clients' buffers are empty. One for which clearly more came than the sustained rate, by more
//! than all buffers hold, and for which later that did not come, used something that was used up.
//! What counts is what was delivered: no frame is late before a client has waited for the time of
//! its buffer.

use std::ops::Range;
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
    // Within 5 % the search may be wrong rather than the storage fast.
    let clearly_above = held + (held / 20).max(1);
    let (each, sustained) = (i128::from(each), i128::from(each) * i128::from(held));
    let clear = each * i128::from(clearly_above);
    let fast = runs.iter().enumerate().filter(|(number, run)| {
        let later = runs[number + usize::from(run.held)..].iter();
        let failed_later = later.clone().any(|later| !later.held && later.streams <= run.streams);
        if run.streams <= clearly_above || !failed_later {
            return false;
        }
        let in_time = usize::try_from(run.in_time.as_secs()).unwrap_or(usize::MAX);
        let (_, beyond) = most_beyond(&run.seconds[..in_time.min(run.seconds.len())], clear);
        // A second more than the buffers hold, because what comes is counted by the second.
        let held_back = (allowed + Duration::from_secs(1)).as_millis();
        let buffers = each
            * i128::from(run.streams)
            * i128::try_from(held_back).unwrap_or(i128::MAX / each.max(1));
        beyond * 1000 > buffers
    });
    let streams = fast.map(|(_, run)| run.streams).max()?;
    let seconds: Vec<u64> = runs.iter().flat_map(|run| &run.seconds).copied().collect();
    let (stretch, _) = most_beyond(&seconds, clear);
    let lasted = Duration::from_secs(stretch.len() as u64);
    let bytes: i128 = seconds[stretch].iter().map(|bytes| i128::from(*bytes) - sustained).sum();
    Some(Burst { streams, bytes: ByteCount(u64::try_from(bytes).ok()?), lasted })
}

/// The first stretch of seconds with the largest sum of bytes beyond `rate` per second, and that
/// sum (Kadane's algorithm).
fn most_beyond(seconds: &[u64], rate: i128) -> (Range<usize>, i128) {
    let (mut best, mut most, mut sum, mut begun) = (0..0, 0, 0, 0);
    for (second, bytes) in seconds.iter().enumerate() {
        sum += i128::from(*bytes) - rate;
        if sum <= 0 {
            (sum, begun) = (0, second + 1);
        }
        // What follows at the same sum does not belong to it.
        if sum > most {
            (best, most) = (begun..second + 1, sum);
        }
    }
    (best, most)
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

    /// Segments of 6 s and buffers of 48 s: no frame of 64 streams can be late before 48 s,
    /// although a disk that sustains 18 delivers no more for them.
    #[test]
    fn what_still_waits_in_long_buffers_is_no_burst() {
        let allowed = Duration::from_secs(48);
        let overload = run(64, false, 48, &[18; 60]);
        let confirmed = run(18, true, 3600, &[18; 3600]);
        assert_eq!(burst(&[overload.clone(), confirmed.clone()], 18, 1, allowed), None);
        // What is left between a whole number of streams and the next adds up in hours.
        let nearly = run(19, false, 3000, &[1999; 3600]);
        let confirmed = run(19, true, 3600, &[1950; 3600]);
        assert_eq!(burst(&[nearly, confirmed], 19, 100, allowed), None);
    }
}
