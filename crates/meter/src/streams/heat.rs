//! A heat map in little memory: how often times of each length were seen in each second.
//!
//! ```text
//!   band 0: below 11.6 µs,  then two bands to an octave,  last: 97 s and more
//! ```

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A heat map: counts of times by length and second, in constant memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Vec<u32>>", into = "Vec<Vec<u32>>")]
pub struct Heat {
    seconds: Vec<[u32; BANDS]>,
}

/// The number of times of a range of lengths in a range of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeatCell {
    /// The first second, from the start.
    pub from: usize,
    /// The second after the last.
    pub until: usize,
    /// The shortest time.
    pub least: Duration,
    /// The limit below which the times are.
    pub below: Duration,
    /// The number of times.
    pub count: u64,
}

/// Number of bands: two to an octave, from 8 µs to 137 s.
const BANDS: usize = 48;

/// The end of the first band as a power of two of nanoseconds.
const FIRST: u32 = 13;

impl From<Heat> for Vec<Vec<u32>> {
    fn from(heat: Heat) -> Self {
        heat.seconds.into_iter().map(Vec::from).collect()
    }
}

impl From<Vec<Vec<u32>>> for Heat {
    fn from(seconds: Vec<Vec<u32>>) -> Self {
        // A second of another machine that has not these bands counts nothing.
        let second = |bands: Vec<u32>| bands.try_into().unwrap_or([0; BANDS]);
        Self { seconds: seconds.into_iter().map(second).collect() }
    }
}

impl Heat {
    /// Adds all counts of another map.
    pub(crate) fn add(&mut self, others: &Self) {
        let longest = self.seconds.len().max(others.seconds.len());
        self.seconds.resize(longest, [0; BANDS]);
        for (second, other) in self.seconds.iter_mut().zip(&others.seconds) {
            for (seen, more) in second.iter_mut().zip(other) {
                *seen = seen.saturating_add(*more);
            }
        }
    }

    /// Counts one time, in nanoseconds.
    #[inline]
    pub fn count(&mut self, second: u64, nanos: u64) {
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, [0; BANDS]);
        }
        let seen = &mut self.seconds[second][band(nanos)];
        // 32 bits keep the map small; a full cell is as hot as the scale can show.
        *seen = seen.saturating_add(1);
    }

    /// The counts of the last `seconds` seconds before and in second `now`, by band; seconds
    /// before the first are empty.
    pub(crate) fn last(&self, now: usize, seconds: usize) -> Vec<Vec<u32>> {
        let from = (now + 1).checked_sub(seconds);
        let empty = || vec![0; BANDS];
        let before = if from.is_none() { seconds - now - 1 } else { 0 };
        let ran = (from.unwrap_or(0)..=now)
            .map(|second| self.seconds.get(second).map_or_else(empty, |bands| bands.to_vec()));
        std::iter::repeat_with(empty).take(before).chain(ran).collect()
    }

    /// The cells with at least one time, in at most `columns` columns of whole seconds.
    pub fn warm(&self, columns: usize) -> Vec<HeatCell> {
        // Whole seconds to a column, so that no count has to be divided between two columns.
        let wide = self.seconds.len().div_ceil(columns.max(1)).max(1);
        let mut all = Vec::new();
        for (column, seconds) in self.seconds.chunks(wide).enumerate() {
            let from = column * wide;
            for band in 0..BANDS {
                let count: u64 = seconds.iter().map(|second| u64::from(second[band])).sum();
                if count > 0 {
                    let (least, below) = (begins(band), begins(band + 1));
                    let until = from + seconds.len();
                    all.push(HeatCell { from, until, least, below, count });
                }
            }
        }
        all
    }
}

/// The band of a time in the columns of [`Heat::last`].
pub fn heat_band(time: Duration) -> usize {
    band(units::nanos(time))
}

/// The shortest time in this band.
pub fn heat_band_begins(band: usize) -> Duration {
    begins(band)
}

fn band(nanos: u64) -> usize {
    // Zero has no logarithm, and belongs to the first band anyway.
    let power = nanos.max(1).ilog2();
    if power < FIRST {
        return 0;
    }
    // The bit after the highest one separates the upper half of an octave from the lower.
    let upper = usize::from(nanos >> (power - 1) & 1 == 1);
    (usize::try_from(power - FIRST).expect("below 64") * 2 + upper).min(BANDS - 1)
}

/// The shortest time in a band; zero for the first, which has all shorter times.
fn begins(band: usize) -> Duration {
    if band == 0 {
        return Duration::ZERO;
    }
    let octave = 1u64 << (FIRST + u32::try_from(band / 2).expect("fewer than 50"));
    Duration::from_nanos(if band.is_multiple_of(2) { octave } else { octave + octave / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_counted_in_its_band() {
        for nanos in [1, 8_191, 8_192, 12_287, 12_288, 1 << 20, 3 << 19, 40_000_000, 90_000_000_000]
        {
            let mut heat = Heat::default();
            let time = Duration::from_nanos(nanos);
            heat.count(3, nanos);
            let warm = heat.warm(100);
            assert_eq!(warm.len(), 1);
            let HeatCell { from, until, least, below, count } = warm[0];
            assert_eq!((from, until, count), (3, 4, 1));
            assert!(least <= time && time < below, "{least:?} <= {time:?} < {below:?}");
        }
    }

    #[test]
    fn the_last_seconds_are_columns_of_which_the_last_is_the_present() {
        let mut heat = Heat::default();
        [0, 2, 3].into_iter().for_each(|second| heat.count(second, 5_000_000));
        let columns = |now, seconds| {
            let all = heat.last(now, seconds).into_iter();
            all.map(|bands| bands.iter().sum::<u32>()).collect::<Vec<_>>()
        };
        assert_eq!(columns(3, 3), [0, 1, 1]);
        assert_eq!(columns(1, 4), [0, 0, 1, 0], "nothing before the first second");
        assert_eq!(columns(5, 3), [1, 0, 0]);
    }

    #[test]
    fn a_long_run_has_no_more_columns_than_requested() {
        let mut heat = Heat::default();
        (0..1000).for_each(|second| heat.count(second, 5_000_000));
        let warm = heat.warm(100);
        assert_eq!((warm.len(), warm[0].count, warm[99].until), (100, 10, 1000));
        assert!(Heat::default().warm(10).is_empty());
    }
}
