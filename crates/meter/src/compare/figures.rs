//! The figures that are compared, with their verdicts.

use super::Interval;
use super::blocks::{Point, total};
use super::interval::difference;
use crate::log::{LogReader, NONE};
use crate::streams::Second;
use serde::Serialize;
use std::time::Duration;
use units::Reason;
use units::float;
use units::grown;

/// A figure of a run: a series of seconds.
#[derive(Clone, Debug)]
pub struct FigureSeries {
    name: &'static str,
    about: &'static str,
    higher_is_better: bool,
    /// Whether its difference is relative to A's.
    relative: bool,
    series: Vec<Point>,
}

/// The verdict on the difference of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceVerdict {
    /// B is better by more than chance.
    Better,
    /// B is worse by more than chance.
    Worse,
    /// The difference is within what chance produces.
    NoDifferenceShown,
}

/// A figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// A short name.
    pub name: &'static str,
    /// A description with the unit.
    pub about: &'static str,
    /// The value in the first run.
    pub a: f64,
    /// The value in the second run.
    pub b: f64,
    /// The interval of the difference. Relative (0.05: B is 5 % more) unless `absolute`.
    pub difference: Interval,
    /// Whether the difference is in the figure's own unit.
    pub absolute: bool,
    /// The verdict on the difference.
    pub verdict: DifferenceVerdict,
}

/// The comparison of all figures of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The probability that any of the figures is called different without being so.
    pub false_alarm: f64,
    /// The number of seconds of each run that count.
    pub seconds: (usize, usize),
    /// Figure by figure.
    pub figures: Vec<Difference>,
}

/// The shortest run that can be compared: eight blocks of two seconds, and a margin.
const FEWEST: usize = 20;

/// Compares the figures that both runs have. `false_alarm` is the probability of any false alarm.
pub fn compare(
    a: &[FigureSeries],
    b: &[FigureSeries],
    false_alarm: f64,
    seed: u64,
) -> Result<Comparison, Reason> {
    let both: Vec<(&FigureSeries, &FigureSeries)> =
        a.iter().filter_map(|a| Some((a, b.iter().find(|b| b.name == a.name)?))).collect();
    let shortest = both.iter().map(|(a, b)| a.series.len().min(b.series.len())).min();
    let got = shortest.unwrap_or_default();
    if got < FEWEST {
        let message = format!("{got} seconds are too short to tell a change from chance");
        return Err(Reason::new(message, format!("make runs of more than {FEWEST} s")));
    }
    // Divided by the number of figures (Bonferroni), so that the level holds for all together.
    let count = f64::from(u32::try_from(both.len()).unwrap_or(u32::MAX));
    let figures = (seed..).zip(&both).map(|(seed, (a, b))| a.against(b, false_alarm / count, seed));
    let (first_a, first_b) = both[0];
    Ok(Comparison {
        false_alarm,
        seconds: (first_a.series.len(), first_b.series.len()),
        figures: figures.collect(),
    })
}

impl FigureSeries {
    fn against(&self, b: &Self, outside: f64, seed: u64) -> Difference {
        let ratio = |series: &[Point]| {
            let all = total(series);
            if all.of == 0.0 { 0.0 } else { all.sum / all.of }
        };
        let (of_a, of_b) = (ratio(&self.series), ratio(&b.series));
        // A relative difference from zero is undefined.
        let relative = self.relative && of_a > 0.0 && of_b > 0.0;
        let mut interval = difference(&self.series, &b.series, relative, outside, seed);
        if relative {
            let percent = |log: f64| log.exp_m1();
            interval = Interval {
                estimate: percent(interval.estimate),
                low: percent(interval.low),
                high: percent(interval.high),
            };
        }
        if !self.relative {
            // A share cannot fall by more than all of it.
            interval.low = interval.low.max(-1.0);
            interval.high = interval.high.min(1.0);
        }
        let verdict = if interval.low > 0.0 {
            if self.higher_is_better { DifferenceVerdict::Better } else { DifferenceVerdict::Worse }
        } else if interval.high < 0.0 {
            if self.higher_is_better { DifferenceVerdict::Worse } else { DifferenceVerdict::Better }
        } else {
            DifferenceVerdict::NoDifferenceShown
        };
        Difference {
            name: self.name,
            about: self.about,
            a: of_a,
            b: of_b,
            difference: interval,
            absolute: !relative,
            verdict,
        }
    }

    /// The share of late frames, and the mean of the longest response of each second, from the
    /// seconds of a run of streams.
    pub fn of_seconds(seconds: &[Second]) -> Vec<Self> {
        // Frames of the last second may not have been judged when a run was stopped.
        let whole = &seconds[..seconds.len().saturating_sub(1)];
        let series = |point: fn(&Second) -> Point| whole.iter().map(point).collect();
        vec![
            Self::late(series(|s| Point { sum: float(s.late), of: float(s.frames) })),
            Self::slowest(series(|s| Point {
                sum: s.longest_response.as_secs_f64(),
                of: f64::from(u8::from(s.frames > 0)),
            })),
        ]
    }

    /// All figures of a run's log: those of [`FigureSeries::of_seconds`], the mean response and the
    /// rate.
    pub fn of_log(log: LogReader) -> Result<Vec<Self>, Reason> {
        let mut seconds: Vec<Logged> = Vec::new();
        for group in log {
            for record in group? {
                let came = record.errno == 0 && record.end != NONE;
                // What failed or never came counts in the second of its deadline.
                let when = if came { record.end } else { record.deadline };
                if when == NONE {
                    continue;
                }
                let at = usize::try_from(when / SECOND).unwrap_or(usize::MAX);
                // A damaged time must not reserve all memory.
                if at >= MOST_SECONDS {
                    continue;
                }
                let second = grown(&mut seconds, at);
                second.frames += u64::from(record.deadline != NONE);
                second.late += u64::from(record.is_late());
                if came {
                    let response = Duration::from_nanos(record.end.saturating_sub(record.intended));
                    second.came += 1;
                    second.bytes += u64::from(record.bytes);
                    second.response += response.as_secs_f64();
                    second.slowest = second.slowest.max(response.as_secs_f64());
                }
            }
        }
        // The last second is incomplete.
        seconds.pop();
        let series = |point: fn(&Logged) -> Point| seconds.iter().map(point).collect();
        let rate = series(|s| Point { sum: float(s.bytes), of: 1.0 });
        let mut all = vec![
            Self::slowest(series(|s| Point {
                sum: s.slowest,
                of: f64::from(u8::from(s.came > 0)),
            })),
            Self::new(
                "response",
                "from when a read or write was to be asked for, in the mean, seconds",
                series(|s| Point { sum: s.response, of: float(s.came) }),
            ),
            Self {
                higher_is_better: true,
                ..Self::new("rate", "bytes that came in a second", rate)
            },
        ];
        if seconds.iter().any(|second| second.frames > 0) {
            let late = series(|s| Point { sum: float(s.late), of: float(s.frames) });
            all.insert(0, Self::late(late));
        }
        Ok(all)
    }

    fn late(series: Vec<Point>) -> Self {
        Self { relative: false, ..Self::new("late", "share of frames that were late", series) }
    }

    fn slowest(series: Vec<Point>) -> Self {
        Self::new("slowest", "the longest response of each second, in the mean, seconds", series)
    }

    /// A figure that is better if it is lower, and compared as a ratio.
    fn new(name: &'static str, about: &'static str, series: Vec<Point>) -> Self {
        Self { name, about, higher_is_better: false, relative: true, series }
    }

    /// A figure for simulations: its value in each second.
    pub(super) fn of_values(values: &[f64]) -> Self {
        Self::slowest(values.iter().map(|value| Point { sum: *value, of: 1.0 }).collect())
    }
}

#[derive(Clone, Copy, Default)]
struct Logged {
    frames: u64,
    late: u64,
    came: u64,
    bytes: u64,
    response: f64,
    slowest: f64,
}

const SECOND: u64 = 1_000_000_000;

/// The longest log, a week: a damaged log must not claim all of memory.
const MOST_SECONDS: usize = 7 * 86_400;
