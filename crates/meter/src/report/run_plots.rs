//! The plots of one run, each with a caption on how to read it.

use super::{Block, LineShape, Plot, Series, heat_block};
use crate::streams::{Second, StreamsOutcome};
use std::time::Duration;
use units::{BitRate, Reason, float};

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
) -> Result<Vec<Block>, Reason> {
    let seconds = || (0u32..).map(f64::from).zip(&outcome.seconds);
    let longest = seconds().map(|(at, s)| (at, s.longest_response.as_secs_f64() * 1e3)).collect();
    let mut series = vec![Series::new("longest response", LineShape::Step, longest)];
    series.extend(demand.map(in_time));
    let response = Plot::by_second("The longest response of each second", "milliseconds", series);
    let count =
        |of: fn(&Second) -> u64| seconds().map(|(at, second)| (at, float(of(second)))).collect();
    let area = |name: &str, of| Series::new(name, LineShape::Area, count(of));
    let due = vec![area("due", |s| s.frames), area("late", |s| s.late)];
    let frames = Plot::by_second("Frames due in each second", "frames", due);
    let mut blocks = Vec::new();
    // Players have neither: a segment is requested when the buffer has room for it.
    if !outcome.round_times.is_empty() {
        blocks.push(rounds(outcome, demand).block(ROUNDS)?);
        let allowed = demand.map(|demand| demand.allowed);
        blocks.push(heat_block(&outcome.heat, "Responses over time", outcome.took, allowed)?);
    }
    blocks.extend([
        response.block("A peak is a moment when the storage, or this machine, stood still.")?,
        frames.block("Late frames are pictures that were not there when they were to be shown.")?,
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
        (float(number * together as u64), longest.as_secs_f64() * 1e3)
    };
    let points = (0..).zip(times.chunks(together)).map(point).collect();
    let mut series = vec![Series::new("longest response", LineShape::Step, points)];
    series.extend(demand.map(in_time));
    Plot::new("Round by round", "round: frame number", "milliseconds", series)
}

/// The number of columns of a plot.
const WIDE: usize = 600;

pub(crate) fn in_time(demand: StreamDemand) -> Series {
    let points = vec![(0.0, demand.allowed.as_secs_f64() * 1e3)];
    Series::new("in time", LineShape::Limit, points)
}
