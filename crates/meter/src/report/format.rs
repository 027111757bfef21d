//! The format of figures in all reports of the meter, for readers and for programs.

use super::{Block, HeatMap, Square};
use crate::rounds::Spread;
use crate::streams::{Heat, HeatCell, StreamsOutcome, Times};
use serde_json::{Value, json};
use std::time::Duration;
use units::{Reason, float, show};

/// A short time as text: `4.20 ms`, `420 ms`, `1.20 s`.
pub(crate) fn time(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { show::millis(ms) }
}

/// The median, the 99th percentile and the maximum of times, in words.
pub(crate) fn quantiles(times: &Times) -> String {
    let [half, p99] = [0.5, 0.99].map(|share| time(times.quantile(share)));
    format!("50 % up to {half}, 99 % up to {p99}, longest {}", time(times.max()))
}

/// Bytes read and written by a run, with their rate.
pub(crate) fn moved(outcome: &StreamsOutcome) -> String {
    let (read, written, rate) = (outcome.reads.bytes, outcome.writes.bytes, outcome.rate());
    match (read.0, written.0) {
        (_, 0) => format!("{read} read, at {rate}"),
        (0, _) => format!("{written} written, at {rate}"),
        _ => format!("{read} read and {written} written, at {rate}"),
    }
}

/// Frames of a run, and how many of them were late or of a smaller rendition than the best.
pub(crate) fn late(outcome: &StreamsOutcome) -> String {
    let frames = outcome.frames;
    let late = match (outcome.late_by_storage(), outcome.late_by_meter) {
        (0, 0) => format!("{frames}, none late"),
        (storage, 0) => format!("{frames}, {storage} late"),
        (storage, meter) => {
            format!("{frames}, {storage} late, {meter} more because of this machine")
        }
    };
    match outcome.below_best {
        0 => late,
        below => format!("{late}, {below} below the best rendition"),
    }
}

/// Rounds of a run, and how many of them were late or of a smaller rendition than the best.
pub(crate) fn late_rounds(outcome: &StreamsOutcome) -> String {
    match outcome.late_rounds {
        0 => format!("{}, none late", outcome.rounds),
        late => format!("{}, {late} late", outcome.rounds),
    }
}

/// Count and quantiles of times, in seconds.
pub(crate) fn times_json(times: &Times) -> Value {
    let at = |share| times.quantile(share).as_secs_f64();
    json!({
        "count": times.count(),
        "p50": at(0.5),
        "p95": at(0.95),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": at(1.0),
    })
}

/// The spread of a run's round times, in seconds.
pub(crate) fn round_spread(outcome: &StreamsOutcome) -> Spread {
    Spread::of(outcome.round_times.iter().copied())
}

/// The frames of a run as by [`late`], with those that failed and those that never came.
pub(crate) fn late_and_lost(outcome: &StreamsOutcome) -> String {
    let counts = [(outcome.failed, "failed"), (outcome.never, "never came")];
    let lost = counts.iter().filter(|(count, _)| *count > 0);
    lost.fold(late(outcome), |text, (count, what)| format!("{text}, {count} {what}"))
}

/// A heat map of response times over the time of a run, also where nothing came at its end; cells
/// above `limit` are late.
pub(crate) fn heat_block(
    heat: &Heat,
    title: &str,
    took: Duration,
    limit: Option<Duration>,
) -> Result<Block, Reason> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let square = |warm: HeatCell| Square {
        x: (float(warm.from as u64), float(warm.until as u64)),
        y: (ms(warm.least), ms(warm.below)),
        weight: float(warm.count),
    };
    let map = HeatMap {
        title: title.to_owned(),
        x_label: "seconds since the start".into(),
        y_label: "milliseconds".into(),
        cells: heat.warm(COLUMNS).into_iter().map(square).collect(),
        limit: limit.map(ms),
        end: took.as_secs_f64(),
    };
    let explanation = "The stronger the colour, the more often; heights are logarithmic. Bands side \
        by side are places that answer differently, such as a cache and the disk behind it; a \
        column that reaches up is a moment when all waited.";
    let limit = if limit.is_some() { " Above the dashed line is late." } else { "" };
    map.block(format!("{explanation}{limit}"))
}

/// Columns of a heat map: fine enough to show changes, few enough for a page.
const COLUMNS: usize = 120;
