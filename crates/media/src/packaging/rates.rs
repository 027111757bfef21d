//! The bit rates of a track's segments by RFC 8216, 4.1, headers included.

use units::Timescale;

/// Bit rates in bits per second, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    /// The largest rate of any contiguous set of segments that lasts between half and one and a
    /// half target durations; at least the average.
    pub(super) peak: u64,
    /// The rate of all segments together.
    pub(super) average: u64,
    /// Microseconds for which a player that receives `peak` must wait before it plays, wherever it
    /// begins: each segment is then complete when it is shown.
    pub(super) buffer: u64,
}

impl Rates {
    /// The rates of segments with these sizes in bytes, lengths in microseconds as a playlist
    /// states them, and exact boundaries in ticks of `scale`.
    pub(super) fn of_sizes(
        sizes: &[u64],
        lengths: &[u64],
        boundaries: &[u64],
        scale: Timescale,
        target_duration: u64,
    ) -> Self {
        let scale = u128::from(scale.0.max(1));
        let micros = |ticks: u64| u64::try_from(u128::from(ticks) * 1_000_000 / scale);
        let exact = boundaries.windows(2).map(|pair| {
            let [start, end] = [pair[0], pair[1]].map(|at| micros(at).unwrap_or(u64::MAX));
            end - start
        });
        let rates = Self::of_segments(sizes, lengths, target_duration);
        Self { buffer: buffer(sizes, exact, rates.peak), ..rates }
    }

    /// The rates of segments with these sizes in bytes and lengths in microseconds.
    pub(super) fn of_segments(sizes: &[u64], lengths: &[u64], target_duration: u64) -> Self {
        let average = rate(sizes.iter().sum(), lengths.iter().sum());
        let (shortest, longest) = (target_duration * 500_000, target_duration * 1_500_000);
        let mut peak = average;
        for first in 0..sizes.len() {
            let (mut bytes, mut length) = (0, 0);
            for (more_bytes, more) in sizes[first..].iter().zip(&lengths[first..]) {
                bytes += more_bytes;
                length += more;
                if length > longest {
                    break;
                }
                if length >= shortest {
                    peak = peak.max(rate(bytes, length));
                }
            }
        }
        Self { peak, average, buffer: 0 }
    }
}

/// The longest time in microseconds, over all first segments, by which segments at this rate arrive
/// later than they are shown.
fn buffer(sizes: &[u64], lengths: impl Iterator<Item = u64>, rate: u64) -> u64 {
    // Of all first segments, the one from which this segment arrives latest.
    let (mut latest, mut most) = (0, 0);
    for (bytes, length) in sizes.iter().zip(lengths) {
        let bits = u128::from(*bytes) * 8 * 1_000_000;
        let arrives = u64::try_from(bits.div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX);
        latest = arrives.saturating_add(latest);
        most = most.max(latest);
        latest = latest.saturating_sub(length);
    }
    most
}

/// Bits per second, rounded up; zero for no time.
fn rate(bytes: u64, micros: u64) -> u64 {
    if micros == 0 {
        return 0;
    }
    let bits = (u128::from(bytes) * 8 * 1_000_000).div_ceil(u128::from(micros));
    u64::try_from(bits).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_the_densest_set_near_the_target_duration() {
        const S: u64 = 1_000_000;
        // (sizes, lengths, target duration in seconds, peak, average)
        type Row<'a> = (&'a [u64], &'a [u64], u64, u64, u64);
        let table: &[Row<'_>] = &[
            (&[1000, 2000, 1000], &[4 * S, 4 * S, 4 * S], 4, 4000, 2667),
            // A short dense segment counts together with its neighbours only.
            (&[1000, 1000, 1000], &[4 * S, S, 4 * S], 4, 3200, 2667),
            (&[100, 300, 300, 100], &[S, S, S, S], 2, 2400, 1600),
            // No set is long enough: the average.
            (&[1000], &[S], 4, 8000, 8000),
            // A rest that fits into no set still counts in the average.
            (&[100, 10_000], &[5 * S + S / 2, S], 4, 12_431, 12_431),
            (&[], &[], 1, 0, 0),
            (&[5], &[0], 1, 0, 0),
        ];
        for (sizes, lengths, target, peak, average) in table {
            let rates = Rates::of_segments(sizes, lengths, *target);
            assert_eq!((rates.peak, rates.average), (*peak, *average), "{sizes:?}");
        }
    }

    #[test]
    fn a_player_that_waits_for_its_buffer_never_runs_dry() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let count = random.usize(1..12);
            let sizes: Vec<u64> = (0..count).map(|_| random.u64(1..100_000)).collect();
            let lengths: Vec<u64> = (0..count).map(|_| random.u64(100_000..6_000_000)).collect();
            let rate = Rates::of_segments(&sizes, &lengths, 4).peak;
            let buffer = buffer(&sizes, lengths.iter().copied(), rate);
            let mut needed = 0.0;
            for first in 0..count {
                for last in first..count {
                    let bits = sizes[first..=last].iter().sum::<u64>() * 8;
                    let arrived = bits as f64 * 1e6 / rate as f64;
                    let shown = lengths[first..last].iter().sum::<u64>() as f64;
                    needed = f64::max(needed, arrived - shown);
                }
            }
            // Each segment's time is rounded up.
            let more = buffer as f64 - needed;
            assert!((-1e-3..=count as f64).contains(&more), "seed {seed}: {more} us");
        }
    }
}
