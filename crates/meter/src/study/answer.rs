//! What a study says: medians, and what of the paper's findings is so here.
//!
//! Intervals are those of the median by order statistics (David and Nagaraja, "Order Statistics",
//! section 7.1): from the k-th smallest to the k-th largest of n values it holds the median with a
//! probability of 1 - 2 P(B < k), B binomial (n, 1/2), whatever the distribution. For 95 % it takes
//! six values at least; with fewer the interval is all of them and [`Median::sure`] says how little
//! that is.

use super::{Claim, Done, Figure, Study};

/// The middle of some values, and where the middle of all there could be lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// Of the values.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The probability that it lies between: 0.95 or more where there are enough values.
    pub sure: f64,
}

/// Whether something is so here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the paper has it, by more than chance.
    Yes,
    /// The other way round, by more than chance.
    Opposite,
    /// Neither can be told from these runs.
    NotShown,
    /// One of the settings was not tried, or its runs were too short for the figure.
    NotMeasured,
}

/// What is to be said of a claim.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// What the paper says.
    pub claim: &'static Claim,
    /// The figure there over that at `from`, repetition by repetition.
    pub ratio: Option<Median>,
    /// What follows.
    pub verdict: Verdict,
}

impl Verdict {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Opposite => "the other way round",
            Self::NotShown => "no difference shown",
            Self::NotMeasured => "not measured",
        }
    }
}

/// Of all that a study's paper says.
pub fn answers(study: &Study, done: &Done) -> Vec<Answer> {
    study.claims.iter().map(|claim| answer(claim, done)).collect()
}

fn answer(claim: &'static Claim, done: &Done) -> Answer {
    let place = |name| done.settings.iter().position(|setting| setting.name == name);
    let (Some(from), Some(to)) = (place(claim.from), place(claim.to)) else {
        return Answer { claim, ratio: None, verdict: Verdict::NotMeasured };
    };
    let ratio = ratio(done, claim.figure, from, to);
    let verdict = match ratio {
        None => Verdict::NotMeasured,
        Some(ratio) if ratio.sure < SURE || (ratio.low <= 1.0 && ratio.high >= 1.0) => {
            Verdict::NotShown
        }
        Some(ratio) if (ratio.low > 1.0) == claim.more => Verdict::Yes,
        Some(_) => Verdict::Opposite,
    };
    Answer { claim, ratio, verdict }
}

/// Of a setting's figure over another's, in repetitions that have both.
pub fn ratio(done: &Done, figure: Figure, from: usize, to: usize) -> Option<Median> {
    let value = |setting: usize, repeat: u32| {
        let run = done.runs.iter().find(|run| (run.setting, run.repeat) == (setting, repeat))?;
        run.figure(figure)
    };
    let repeats = done.runs.iter().map(|run| run.repeat + 1).max().unwrap_or(0);
    let ratios = (0..repeats).filter_map(|repeat| {
        let (before, after) = (value(from, repeat)?, value(to, repeat)?);
        (before > 0.0).then_some(after / before)
    });
    median(ratios.collect())
}

/// Of some values, none of which is more than another; `None` of none.
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

/// 1 - 2 P(B < k), B binomial (n, 1/2).
fn covered(count: usize, kth: usize) -> f64 {
    let mut term = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for number in 0..kth {
        below += term;
        term *= (count - number) as f64 / (number + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// What is called by more than chance.
const SURE: f64 = 0.95;
