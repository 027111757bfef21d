//! Plots of rounds: the time of each and their distribution, beside the deadline.

use super::{Cell, Figure, LineShape, NamedCell, Plot, Series, cell};
use crate::rounds::Spread;
use std::time::Duration;

/// The `seconds` of each round in order, with a line at the deadline.
pub fn rounds_chart(
    name: &'static str,
    title: String,
    seconds: impl IntoIterator<Item = f64>,
    deadline: Duration,
    explanation: String,
) -> Figure {
    let points = (1..).map(f64::from).zip(seconds).collect();
    let round = Series::new("round", LineShape::Line, points);
    let plot = Plot::new(title, "round", "seconds", vec![round, line_of(deadline)]);
    Figure { name, plot, explanation }
}

/// A column for each x with the shortest, longest and mean round, and one standard deviation around
/// the mean.
pub fn spread_chart(
    name: &'static str,
    title: &str,
    x_label: &str,
    spreads: &[(f64, Spread)],
    deadline: Duration,
    explanation: &str,
) -> Figure {
    let mut series = spread_spans(spreads, 1.0);
    series.push(line_of(deadline));
    let plot = Plot::new(title, x_label, "seconds", series);
    Figure { name, plot, explanation: explanation.to_owned() }
}

/// Cells of the distribution of a run's rounds, in seconds.
pub fn spread_cells(Spread { mean, sd, min, max }: Spread) -> [NamedCell; 4] {
    let columns = [
        ("mean_s", ">mean", mean),
        ("sd_s", ">sd", sd),
        ("min_s", ">min", min),
        ("max_s", ">max", max),
    ];
    columns.map(|(name, heading, seconds)| cell(name, heading, Cell::Number(seconds, 2)))
}

/// The range and the standard deviation of each spread at its x, in seconds times `scale`.
pub(crate) fn spread_spans(spreads: &[(f64, Spread)], scale: f64) -> Vec<Series> {
    let spans = |name, ends: fn(&Spread) -> [f64; 2]| {
        let ends = |(x, spread): &(f64, Spread)| ends(spread).map(|y| (*x, y * scale));
        Series::new(name, LineShape::Spans, spreads.iter().flat_map(ends).collect())
    };
    vec![
        spans("least to most", |s| [s.min, s.max]),
        // The distribution is skewed, so that one deviation below the mean may be below zero.
        spans("mean \u{b1} sd", |s| [(s.mean - s.sd).max(0.0), s.mean + s.sd]),
    ]
}

fn line_of(deadline: Duration) -> Series {
    let points = vec![(0.0, deadline.as_secs_f64())];
    Series::new("deadline", LineShape::Limit, points)
}
