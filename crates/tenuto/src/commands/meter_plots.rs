//! The plots of runs, each with what it shows.

use super::meter_record::Demand;
use super::meter_search::Probe;
use super::meter_streams::time;
use crate::failure::Failure;
use meter::capacity::Answer;
use meter::report::{Block, HeatMap, Plot, PlotError, Series, Shape, Square};
use meter::rounds::Spread;
use meter::streams::{Heat, Outcome, Warm};
use std::time::Duration;

/// Of one run.
pub(super) fn plots(outcome: &Outcome, demand: Option<Demand>) -> Result<Vec<Block>, Failure> {
    let seconds = || (0u32..).map(f64::from).zip(&outcome.seconds);
    let longest = seconds().map(|(at, s)| (at, s.longest_response.as_secs_f64() * 1e3)).collect();
    let mut series =
        vec![Series { name: "longest response".into(), shape: Shape::Step, points: longest }];
    series.extend(demand.map(in_time));
    let response = Plot {
        title: "The longest response of each second".into(),
        x_label: "seconds since the start".into(),
        y_label: "milliseconds".into(),
        series,
    };
    let count = |of: fn(&meter::streams::Second) -> u64| {
        seconds().map(|(at, second)| (at, number(of(second)))).collect()
    };
    let frames = Plot {
        title: "Frames due in each second".into(),
        x_label: "seconds since the start".into(),
        y_label: "frames".into(),
        series: vec![
            Series { name: "due".into(), shape: Shape::Area, points: count(|s| s.frames) },
            Series { name: "late".into(), shape: Shape::Area, points: count(|s| s.late) },
        ],
    };
    let mut blocks = Vec::new();
    // Players have neither: a piece of a title is asked for when there is room for it.
    if !outcome.round_times.is_empty() {
        blocks.push(plot(&rounds(outcome, demand), ROUNDS)?);
        let allowed = demand.map(|demand| demand.allowed);
        blocks.push(heat(&outcome.heat, "Responses over time", allowed)?);
    }
    blocks.extend([
        plot(&response, "A peak is a moment when the storage, or this machine, stood still.")?,
        plot(&frames, "Late frames are pictures that were not there when they were to be shown.")?,
    ]);
    Ok(blocks)
}

const ROUNDS: &str = "The frames of one number of all streams are a round; its last frame counts. Above \
    the dashed line it was late. Peaks that stand alone are accidents; a line that climbs is a storage \
    that does not keep up.";

/// The longest response of each round; of several together, where there are more than a picture is
/// wide.
fn rounds(outcome: &Outcome, demand: Option<Demand>) -> Plot {
    let times = &outcome.round_times;
    let together = times.len().div_ceil(WIDE).max(1);
    let point = |(number, times): (u64, &[Duration])| {
        let longest = times.iter().max().copied().unwrap_or_default();
        (number_of(number, together), longest.as_secs_f64() * 1e3)
    };
    let points = (0..).zip(times.chunks(together)).map(point).collect();
    let mut series = vec![Series { name: "longest response".into(), shape: Shape::Step, points }];
    series.extend(demand.map(in_time));
    Plot {
        title: "Round by round".into(),
        x_label: "round: frame number".into(),
        y_label: "milliseconds".into(),
        series,
    }
}

fn number_of(chunk: u64, together: usize) -> f64 {
    number(chunk) * number(together as u64)
}

/// Points across a picture.
const WIDE: usize = 600;

pub(super) fn in_time(demand: Demand) -> Series {
    let points = vec![(0.0, demand.allowed.as_secs_f64() * 1e3)];
    Series { name: "in time".into(), shape: Shape::Limit, points }
}

/// How often responses, or blocks, took how long, over time.
pub(super) fn heat(heat: &Heat, title: &str, limit: Option<Duration>) -> Result<Block, Failure> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let square = |warm: Warm| Square {
        x: (number(warm.from as u64), number(warm.until as u64)),
        y: (ms(warm.least), ms(warm.below)),
        weight: number(warm.count),
    };
    let map = HeatMap {
        title: title.to_owned(),
        x_label: "seconds since the start".into(),
        y_label: "milliseconds".into(),
        cells: heat.warm(COLUMNS).into_iter().map(square).collect(),
        limit: limit.map(ms),
    };
    let explanation = "The darker, the more often; heights are logarithmic. Bands side by side are \
        places that answer differently, such as a cache and the disk behind it; a column that reaches up is \
        a moment when all waited.";
    let svg = map.svg().map_err(|error| Failure::new(error.to_string()))?;
    let limit = if limit.is_some() { " Above the dashed line is late." } else { "" };
    Ok(Block::Plot { svg, explanation: format!("{explanation}{limit}") })
}

/// Of a heat map: enough to see, few enough for a page.
const COLUMNS: usize = 120;

pub(super) fn plot(plot: &Plot, explanation: &str) -> Result<Block, Failure> {
    let failed = |error: PlotError| Failure::new(error.to_string());
    Ok(Block::Plot { svg: plot.svg().map_err(failed)?, explanation: explanation.to_owned() })
}

#[expect(clippy::cast_precision_loss, reason = "for a plot")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// Rounds of the smallest number that did not hold, and of all others beside it.
pub(super) fn first_failing(
    probes: &[Probe],
    first: Option<&Probe>,
) -> Result<Vec<Block>, Failure> {
    let Some(first) = first else { return Ok(Vec::new()) };
    let counted = probes.iter().filter(|probe| probe.answer != Answer::Spoilt);
    let spreads: Vec<(f64, Spread)> = counted
        .map(|probe| (f64::from(probe.step.streams), round_spread(&probe.outcome)))
        .collect();
    let of = |of: fn(&Spread) -> f64| {
        spreads.iter().map(|(streams, spread)| (*streams, of(spread) * 1e3)).collect::<Vec<_>>()
    };
    let between = |low: fn(&Spread) -> f64, high: fn(&Spread) -> f64| {
        let ends = of(low).into_iter().zip(of(high));
        ends.flat_map(|(low, high)| [low, high]).collect::<Vec<_>>()
    };
    let series = |name: &str, shape, points| Series { name: name.to_owned(), shape, points };
    let by_count = Plot {
        title: "Rounds, by number of streams".into(),
        x_label: "streams".into(),
        y_label: "milliseconds".into(),
        series: vec![
            series("least to most", Shape::Spans, between(|of| of.min, |of| of.max)),
            series(
                "mean \u{b1} sd",
                Shape::Spans,
                between(|of| (of.mean - of.sd).max(0.0), |of| of.mean + of.sd),
            ),
            series("mean", Shape::Dots, of(|of| of.mean)),
        ],
    };
    let head = ["streams", "rounds", "mean", "sd", "least", "most"];
    let Spread { mean, sd, min, max } = round_spread(&first.outcome);
    let mut row = vec![first.step.streams.to_string(), first.outcome.rounds.to_string()];
    row.extend([mean, sd, min, max].map(|seconds| time(Duration::from_secs_f64(seconds))));
    Ok(vec![
        Block::Heading("The smallest number that did not hold".into()),
        Block::Text(
            "How long rounds took: from when a frame was to be asked for until the last stream had its \
             frame of that number."
                .to_owned(),
        ),
        Block::Table { head: head.map(str::to_owned).into(), rows: vec![row] },
        plot(
            &by_count,
            "Each line is a run, from its shortest round to its longest. As long as means stay level there \
             is room; where they leave the ground, rounds begin to wait for those before them.",
        )?,
    ])
}

/// In seconds.
pub(super) fn round_spread(outcome: &Outcome) -> Spread {
    Spread::of(outcome.round_times.iter().copied())
}
