//! The rule for what counts as held, and the confidence that a run without a late frame gives.

use crate::progress::RunProgress;
use crate::streams::StreamsOutcome;
use units::{float, name_of};

/// The rule by which streams count as held. Misses caused by the meter itself never count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldRule {
    /// No frame is late; no player is below the best rendition; the backlog does not grow.
    Strict,
    /// At most one round in a hundred has a late frame (Alderman and Diallo), and the backlog does
    /// not grow. Wald's sequential
    /// test ends a run as soon as it can distinguish one late round in 50 from one in 200, with an
    /// error probability of 1 %.
    OneLateRoundOf100,
}

impl HoldRule {
    /// All rules by name.
    pub const NAMES: [(&str, Self); 2] =
        [("strict", Self::Strict), ("one-late-round-of-100", Self::OneLateRoundOf100)];

    /// The rule's name.
    pub fn word(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }

    /// The verdict on a run in progress; `None` while the rest of the run can still change it.
    /// `streams` is the number of streams that have been running.
    pub fn decided(self, progress: &RunProgress, streams: u32) -> Option<bool> {
        match self {
            // Only a failure is final before the end: any later frame can still be late.
            Self::Strict => (progress.late > 0).then_some(false),
            Self::OneLateRoundOf100 => {
                // Frames of all streams, so that their number divided by the streams is the number
                // of rounds.
                sequential(progress.late_rounds, progress.judged / u64::from(streams.max(1)))
            }
        }
    }

    /// The verdict on a complete run.
    pub fn holds(self, outcome: &StreamsOutcome) -> bool {
        match self {
            Self::Strict => outcome.is_held(),
            // In whole numbers: one in exactly a hundred must count as held.
            Self::OneLateRoundOf100 => {
                outcome.late_rounds * 100 <= outcome.rounds && outcome.backlog_growth.is_none()
            }
        }
    }

    /// The upper limit, with 95 % confidence, of the long-run share of late frames or rounds.
    /// Frames are taken as independent of each other, which those of one freeze are not.
    pub fn certainty(self, outcome: &StreamsOutcome) -> f64 {
        match self {
            Self::Strict => at_most(outcome.missed().min(outcome.frames), outcome.frames),
            Self::OneLateRoundOf100 => at_most(outcome.late_rounds, outcome.rounds),
        }
    }
}

/// Wald's sequential probability ratio test: the ratio of likelihoods of `late` of `rounds` under
/// one late round in 50 and one in 200.
fn sequential(late: u64, rounds: u64) -> Option<bool> {
    const GOOD: f64 = 0.005;
    const BAD: f64 = 0.02;
    // A round is late as soon as one frame is, before all its frames are judged.
    let in_time = rounds.saturating_sub(late);
    let ratio =
        float(late) * (BAD / GOOD).ln() + float(in_time) * ((1.0 - BAD) / (1.0 - GOOD)).ln();
    // ln((1 - error) / error) with one error in a hundred.
    let bound = 99f64.ln();
    if ratio >= bound {
        Some(false)
    } else if ratio <= -bound {
        Some(true)
    } else {
        None
    }
}

/// The upper limit, with 95 % confidence, of the share of misses after `late` in `n`: the rule of
/// three (3 / n) for none, else Wilson's score.
pub(crate) fn at_most(late: u64, n: u64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    let (late, n) = (float(late), float(n));
    if late == 0.0 {
        return (3.0 / n).min(1.0);
    }
    // The one-sided 95 % quantile of the normal distribution.
    let z = 1.645f64;
    let share = late / n;
    let middle = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle + spread) / (1.0 + z * z / n)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(judged: u64, late: u64, late_rounds: u64) -> RunProgress {
        RunProgress { judged, late, late_rounds, ..RunProgress::default() }
    }

    #[test]
    fn a_rule_decides_as_soon_as_it_can_and_no_earlier() {
        let strict = |late| HoldRule::Strict.decided(&progress(1_000_000, late, late), 10);
        assert_eq!((strict(0), strict(1)), (None, Some(false)));
        let rounds = |rounds: u64, late: u64| {
            HoldRule::OneLateRoundOf100.decided(&progress(rounds * 10, late * 3, late), 10)
        };
        assert_eq!(rounds(10, 1), None);
        assert_eq!(rounds(10, 4), Some(false));
        assert_eq!(rounds(300, 0), None);
        assert_eq!(rounds(310, 0), Some(true));
        assert_eq!(rounds(310, 1), None, "one late round wants more of them");
    }

    #[test]
    fn the_limit_is_three_in_n_without_misses_and_more_with_them() {
        assert!((at_most(0, 3000) - 0.001).abs() < 1e-12);
        assert!((at_most(10, 1000) - 0.0166).abs() < 0.0005, "{}", at_most(10, 1000));
        assert!(at_most(5, 5) <= 1.0 && at_most(0, 0) >= 1.0);
    }
}
