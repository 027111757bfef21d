//! The plots of one run, each with a caption on how to read it.

use super::{Block, LineShape, Plot, PlotError, Series, heat_block, plot_block};
use crate::streams::{Second, StreamsOutcome};
use std::time::Duration;
use units::{BitRate, float};

/// The demand of one stream.
#[derive(Clone, Copy)]
pub(crate) struct StreamDemand {
    /// Time from the intended start of a frame's read to its deadline.
    pub(crate) allowed: Duration,
    /// The bytes of its frames over time.
    pub(crate) rate: BitRate,
}

/// The plots of one run, each with its explanation.
pub(crate) fn run_plots(
    outcome: &StreamsOutcome,
    demand: Option<StreamDemand>,
) -> Result<Vec<Block>, PlotError> {
    let seconds = || (0u32..).map(f64::from).zip(&outcome.seconds);
    let longest = seconds().map(|(at, s)| (at, s.longest_response.as_secs_f64() * 1e3)).collect();
    let mut series =
        vec![Series { name: "longest response".into(), shape: LineShape::Step, points: longest }];
    series.extend(demand.map(in_time));
    let response = Plot {
        title: "The longest response of each second".into(),
        x_label: "seconds since the start".into(),
        y_label: "milliseconds".into(),
        series,
    };
    let count =
        |of: fn(&Second) -> u64| seconds().map(|(at, second)| (at, float(of(second)))).collect();
    let frames = Plot {
        title: "Frames due in each second".into(),
        x_label: "seconds since the start".into(),
        y_label: "frames".into(),
        series: vec![
            Series { name: "due".into(), shape: LineShape::Area, points: count(|s| s.frames) },
            Series { name: "late".into(), shape: LineShape::Area, points: count(|s| s.late) },
        ],
    };
    let mut blocks = Vec::new();
    // Players have neither: a segment is requested when the buffer has room for it.
    if !outcome.round_times.is_empty() {
        blocks.push(plot_block(&rounds(outcome, demand), ROUNDS)?);
        let allowed = demand.map(|demand| demand.allowed);
        blocks.push(heat_block(&outcome.heat, "Responses over time", allowed)?);
    }
    blocks.extend([
        plot_block(
            &response,
            "A peak is a moment when the storage, or this machine, stood still.",
        )?,
        plot_block(
            &frames,
            "Late frames are pictures that were not there when they were to be shown.",
        )?,
    ]);
    Ok(blocks)
}

const ROUNDS: &str = "The frames of one number of all streams are a round; its last frame counts. Above \
    the dashed line it was late. Peaks that stand alone are accidents; a line that climbs is a storage \
    that does not keep up.";

/// The longest response of each round, or of groups of rounds where there are more rounds than
/// columns.
fn rounds(outcome: &StreamsOutcome, demand: Option<StreamDemand>) -> Plot {
    let times = &outcome.round_times;
    let together = times.len().div_ceil(WIDE).max(1);
    let point = |(number, times): (u64, &[Duration])| {
        let longest = times.iter().max().copied().unwrap_or_default();
        (number_of(number, together), longest.as_secs_f64() * 1e3)
    };
    let points = (0..).zip(times.chunks(together)).map(point).collect();
    let mut series =
        vec![Series { name: "longest response".into(), shape: LineShape::Step, points }];
    series.extend(demand.map(in_time));
    Plot {
        title: "Round by round".into(),
        x_label: "round: frame number".into(),
        y_label: "milliseconds".into(),
        series,
    }
}

fn number_of(chunk: u64, together: usize) -> f64 {
    float(chunk) * float(together as u64)
}

/// The number of columns of a plot.
const WIDE: usize = 600;

pub(crate) fn in_time(demand: StreamDemand) -> Series {
    let points = vec![(0.0, demand.allowed.as_secs_f64() * 1e3)];
    Series { name: "in time".into(), shape: LineShape::Limit, points }
}
