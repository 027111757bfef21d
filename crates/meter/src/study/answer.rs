//! The results of a study: medians, and which of the paper's findings they confirm.
//!
//! Intervals are those of the median by order statistics (David and Nagaraja, "Order Statistics",
//! section 7.1): from the k-th smallest to the k-th largest of n values the interval holds the
//! median with a probability of 1 - 2 P(B < k), B binomial (n, 1/2), whatever the distribution. A
//! confidence of 95 % takes at least six values; with fewer the interval is all of them, and
//! [`Median::sure`] is lower.

use super::{Claim, Done, Study, StudyFigure};
use serde::Serialize;

/// The median of some values, and the interval of the population's median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// The median of the values.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The probability that the median is in the interval: 0.95 or more with enough values.
    pub sure: f64,
}

/// Whether a finding is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// As in the paper, by more than chance.
    Yes,
    /// The opposite of the paper, by more than chance.
    Opposite,
    /// The runs show neither direction.
    NotShown,
    /// One of the settings was not tried, or its runs were too short for the figure.
    NotMeasured,
}

/// The result for a claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimResult {
    /// The paper's statement.
    pub claim: &'static Claim,
    /// The ratio of the figure at `to` to that at `from`, repetition by repetition.
    pub ratio: Option<Median>,
    /// The verdict.
    pub verdict: ClaimVerdict,
}

impl ClaimVerdict {
    /// The verdict in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Opposite => "the other way round",
            Self::NotShown => "no difference shown",
            Self::NotMeasured => "not measured",
        }
    }
}

/// The results for all findings of the study's paper.
pub fn answers(study: &'static Study, done: &Done) -> Vec<ClaimResult> {
    study.claims.iter().map(|claim| answer(claim, done)).collect()
}

fn answer(claim: &'static Claim, done: &Done) -> ClaimResult {
    let place = |name: &str| done.settings.iter().position(|setting| setting.name == name);
    let (Some(from), Some(to)) = (place(&claim.from), place(&claim.to)) else {
        return ClaimResult { claim, ratio: None, verdict: ClaimVerdict::NotMeasured };
    };
    let ratio = ratio(done, claim.figure, from, to);
    let verdict = match ratio {
        None => ClaimVerdict::NotMeasured,
        Some(ratio) if ratio.sure < SURE || (ratio.low <= 1.0 && ratio.high >= 1.0) => {
            ClaimVerdict::NotShown
        }
        Some(ratio) if (ratio.low > 1.0) == claim.more => ClaimVerdict::Yes,
        Some(_) => ClaimVerdict::Opposite,
    };
    ClaimResult { claim, ratio, verdict }
}

/// The median ratio of one setting's figure to another's, over repetitions that have both.
pub fn ratio(done: &Done, figure: StudyFigure, from: usize, to: usize) -> Option<Median> {
    let value = |setting: usize, repeat: u32| {
        let run = done.runs.iter().find(|run| (run.setting, run.repeat) == (setting, repeat))?;
        run.figure(figure)
    };
    let repeats = done.runs.iter().map(|run| run.repeat + 1).max().unwrap_or(0);
    let ratios = (0..repeats).filter_map(|repeat| {
        let (before, after) = (value(from, repeat)?, value(to, repeat)?);
        // A ratio to nothing says nothing.
        (before > 0.0).then_some(after / before)
    });
    median(ratios.collect())
}

/// The median of values, with an interval; `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<Median> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let (first, last) = (*values.first()?, *values.last()?);
    let median = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
    let mut found = Median { median, low: first, high: last, sure: covered(count, 1) };
    for kth in 2..=count / 2 {
        let sure = covered(count, kth);
        if sure < SURE {
            break;
        }
        found = Median { median, low: values[kth - 1], high: values[count - kth], sure };
    }
    Some(found)
}

/// The probability 1 - 2 P(B < k), B binomial (n, 1/2).
fn covered(count: usize, kth: usize) -> f64 {
    let mut term = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for number in 0..kth {
        below += term;
        term *= (count - number) as f64 / (number + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// The probability from which a difference counts as more than chance.
const SURE: f64 = 0.95;
