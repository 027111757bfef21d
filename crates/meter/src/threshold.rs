//! A threshold for the mean rate within a buffer's time, reported as soon as it is crossed (EBU
//! TECH 3362, section 9.2).
//!
//! ```text
//!   bytes over  ▁▃▅▅▅▅▁▁▁▁▅▅▅▅      mean of the last `window` against `rate`
//!               └window┘                  ▲ below: report   ▲ above again: report
//! ```
//!
//! It receives completions with their times, and is called whenever time has passed, because a
//! storage that hangs completes nothing. Before the first full window it reports nothing. It has no
//! clock of its own.

use std::collections::VecDeque;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The condition that is watched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threshold {
    /// The lowest rate that is sufficient.
    pub(crate) rate: BitRate,
    /// The time over which the mean is taken, as long as a player's buffer. More than zero.
    pub(crate) window: Duration,
}

/// An event: the mean fell below the threshold, or rose above it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// Time since the start of the run.
    pub(crate) at: Duration,
    /// Whether the mean is below the threshold now.
    pub(crate) below: bool,
    /// The mean at that time.
    pub(crate) mean: BitRate,
}

/// The watch of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThresholdWatch {
    threshold: Threshold,
    /// Completions within the window, in order of time.
    recent: VecDeque<(Duration, u64)>,
    sum: u64,
    below: bool,
    crossings: Vec<Crossing>,
    least: Option<BitRate>,
}

impl ThresholdWatch {
    /// A watch that begins at time zero.
    pub(crate) fn new(threshold: Threshold) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// Adds bytes that were transferred at a time. Times may be slightly out of order.
    pub(crate) fn moved(&mut self, at: Duration, bytes: ByteCount) {
        // From the end: completions arrive nearly in order, so that few entries are passed.
        let place = self.recent.iter().rev().take_while(|(later, _)| *later > at).count();
        self.recent.insert(self.recent.len() - place, (at, bytes.0));
        self.sum += bytes.0;
    }

    /// Advances to `now`; returns a crossing, if there is one.
    pub(crate) fn look(&mut self, now: Duration) -> Option<Crossing> {
        let from = now.checked_sub(self.threshold.window)?;
        while let Some((at, bytes)) = self.recent.front().copied()
            && at < from
        {
            self.recent.pop_front();
            self.sum -= bytes;
        }
        let mean = BitRate::of(ByteCount(self.sum), self.threshold.window);
        self.least = Some(self.least.map_or(mean, |least| least.min(mean)));
        let below = mean < self.threshold.rate;
        if below == self.below {
            return None;
        }
        self.below = below;
        let crossing = Crossing { at: now, below, mean };
        self.crossings.push(crossing);
        Some(crossing)
    }

    /// All crossings so far.
    pub(crate) fn crossings(&self) -> &[Crossing] {
        &self.crossings
    }

    /// The smallest mean of any window; `None` before the first.
    pub(crate) fn least(&self) -> Option<BitRate> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB every 100 ms except for a pause: 80 Mb/s, watched at 40 Mb/s within a second.
    #[test]
    fn a_pause_is_reported_when_the_buffer_is_half_empty_and_its_end_when_half_full() {
        let (rate, window) = (BitRate(40_000_000), Duration::from_secs(1));
        let mut watch = ThresholdWatch::new(Threshold { rate, window });
        let mut told = Vec::new();
        for tick in 0..100u32 {
            let now = Duration::from_millis(100) * tick;
            if !(30..50).contains(&tick) {
                watch.moved(now, ByteCount(1_000_000));
            }
            told.extend(watch.look(now).map(|crossing| (crossing.below, tick)));
        }
        // At 3.6 s four megabytes of the last second remain; at 5.4 s five have arrived.
        assert_eq!(told, [(true, 36), (false, 54)]);
        assert_eq!(watch.crossings().len(), 2);
        assert_eq!(watch.least(), Some(BitRate(0)));
    }

    #[test]
    fn nothing_is_reported_before_the_first_full_window() {
        let (rate, window) = (BitRate(1), Duration::from_secs(10));
        let mut watch = ThresholdWatch::new(Threshold { rate, window });
        assert_eq!(watch.look(Duration::from_millis(9_999)), None);
        assert!(watch.look(Duration::from_secs(10)).unwrap().below);
        watch.moved(Duration::from_millis(9_000), ByteCount(2));
        watch.moved(Duration::from_millis(8_000), ByteCount(2));
        assert_eq!(watch.look(Duration::from_secs(11)).map(|crossing| crossing.below), Some(false));
    }
}
