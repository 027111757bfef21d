//! Plots of rounds: the time of each and their distribution, beside the deadline.

use super::{Figure, LineShape, Plot, Series};
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
    let round = Series { name: "round".to_owned(), shape: LineShape::Line, points };
    let plot = Plot {
        title,
        x_label: "round".to_owned(),
        y_label: "seconds".to_owned(),
        series: vec![round, line_of(deadline)],
    };
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
    let spans = |name: &str, ends: fn(&Spread) -> [f64; 2]| {
        let ends = |(x, spread): &(f64, Spread)| ends(spread).map(|y| (*x, y));
        let points = spreads.iter().flat_map(ends).collect();
        Series { name: name.to_owned(), shape: LineShape::Spans, points }
    };
    let plot = Plot {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "seconds".to_owned(),
        series: vec![
            spans("least to most", |s| [s.min, s.max]),
            spans("mean ± sd", |s| [s.mean - s.sd, s.mean + s.sd]),
            line_of(deadline),
        ],
    };
    Figure { name, plot, explanation: explanation.to_owned() }
}

fn line_of(deadline: Duration) -> Series {
    let points = vec![(0.0, deadline.as_secs_f64())];
    Series { name: "deadline".to_owned(), shape: LineShape::Limit, points }
}
