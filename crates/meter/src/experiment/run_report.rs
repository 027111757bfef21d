//! The report of one run of streams or players: its summary, its page and its files.

use super::attribution::Attribution;
use crate::error::MeterError;
use crate::report::{
    Block, Page, StreamDemand, VerdictKind, late, moved, renditions, round_spread, run_plots, time,
    times_json,
};
use crate::streams::{BacklogGrowth, StreamsOutcome, Times};
use serde_json::{Value, json};
use std::time::Duration;
use tenuto_client::PlayReport;
use units::float;
use units::show::count;

/// The subject of a measurement, with which every report on it begins.
pub(super) struct Subject {
    /// The plural after a number: `streams of xdcam422`, `viewers`.
    pub(super) what: String,
    /// The title of `what` in sentences.
    pub(super) title: String,
    pub(super) target: String,
    /// The demand of one stream; players have none.
    pub(super) each: Option<StreamDemand>,
    /// Length of each run.
    pub(super) duration: Duration,
    /// Length of a run that confirms the result of a search.
    pub(super) confirming: Duration,
    /// The caches that may have answered.
    pub(super) caches: String,
    /// The configuration as in `scenario.json`.
    pub(super) scenario: Value,
}

impl Subject {
    /// A number of them: `1 stream of xdcam422`, `2 viewers`.
    pub(super) fn counted(&self, number: u64) -> String {
        let (noun, rest) = self.what.split_at(self.what.find(' ').unwrap_or(self.what.len()));
        format!("{}{rest}", count(number, noun.strip_suffix('s').unwrap_or(noun)))
    }
}

/// One run: its subject and its results.
pub(super) struct RunFigures<'a> {
    pub(super) subject: &'a Subject,
    /// The demand of all streams of the run together.
    pub(super) demand: Option<StreamDemand>,
    pub(super) outcome: &'a StreamsOutcome,
    pub(super) attribution: Option<&'a Attribution>,
}

impl RunFigures<'_> {
    /// The content of `summary.json` of the run.
    pub(super) fn summary(&self) -> Value {
        let Self { subject, demand, outcome, attribution } = self;
        let streams = outcome.streams.iter().map(|stream| {
            json!({
                "frames": stream.frames,
                "late": stream.late,
                "longest_outage": stream.longest_outage.as_secs_f64(),
                "accumulated_drift": stream.accumulated_drift.as_secs_f64(),
                "consecutive_drift": stream.consecutive_drift.as_secs_f64(),
            })
        });
        let seconds = outcome.seconds.iter().map(|second| {
            json!({
                "frames": second.frames,
                "late": second.late,
                "late_by_meter": second.late_by_meter,
                "longest_own": second.longest_own.as_secs_f64(),
                "longest_response": second.longest_response.as_secs_f64(),
                "bytes_read": second.bytes_read.0,
                "bytes_written": second.bytes_written.0,
            })
        });
        let mut all = outcome_json(outcome);
        all["scenario"] = subject.scenario.clone();
        all["caches"] = json!(subject.caches);
        all["allowed"] = json!(demand.map(|demand| demand.allowed.as_secs_f64()));
        all["demand_bits_per_s"] = json!(demand.map(|demand| demand.rate.0));
        all["seconds"] = seconds.collect();
        all["each_stream"] = streams.collect();
        all["blame"] = json!(attribution.map(Attribution::json));
        all
    }

    /// The page of the run. `summary["play"]` is the players' report, if there were players.
    pub(super) fn page(&self, summary: &Value) -> Result<Page, MeterError> {
        let Self { subject, outcome, attribution, .. } = self;
        let (kind, verdict) = self.verdict();
        let mut blocks = vec![Block::Verdict(kind, verdict)];
        blocks.extend(self.blocks()?);
        // From the summary, so that the page and `summary.json` cannot differ.
        let played = serde_json::from_value::<PlayReport>(summary["play"].clone());
        let lines = played.map(|report| renditions(&report)).unwrap_or_default();
        if !lines.is_empty() {
            blocks.push(Block::facts(["what players got", "found"], lines));
        }
        if let Some(attribution) = attribution {
            blocks.extend(attribution.blocks()?);
        }
        Ok(Page {
            title: subject.counted(outcome.streams.len() as u64),
            summary: format!("{} on {}. Frames: {}.", subject.title, subject.target, late(outcome)),
            blocks,
        })
    }

    /// The result of the run in a sentence.
    fn verdict(&self) -> (VerdictKind, String) {
        let Self { subject, outcome, .. } = self;
        let StreamsOutcome { frames, late_by_meter, .. } = outcome;
        let missed = outcome.missed();
        let streams = subject.counted(outcome.streams.len() as u64);
        if !outcome.complete {
            let seen = format!("Interrupted: {missed} of {frames} frames until then missed.");
            return (VerdictKind::Unknown, seen);
        }
        if !outcome.valid() {
            let why = format!(
                "Not valid: this machine itself made {late_by_meter} of {frames} frames late, so \
                 that the run does not tell what the storage holds."
            );
            return (VerdictKind::Unknown, why);
        }
        if let (0, Some(growth)) = (missed, growth_in_words(outcome)) {
            return (VerdictKind::NotHeld, format!("Not held: {streams}; {growth}."));
        }
        if missed == 0 {
            return (VerdictKind::Held, format!("Held: {streams}, every frame in time."));
        }
        let share = 100.0 * float(missed) / float((*frames).max(1));
        let text =
            format!("Not held: of {streams}, {missed} of {frames} frames ({share:.2} %) missed.");
        (VerdictKind::NotHeld, text)
    }

    fn blocks(&self) -> Result<Vec<Block>, MeterError> {
        let Self { subject, demand, outcome, .. } = self;
        let row = |name: &str, times: &Times| {
            let shares = [0.5, 0.95, 0.99, 0.999, 1.0].map(|share| time(times.quantile(share)));
            std::iter::once(name.to_owned()).chain(shares).collect::<Vec<_>>()
        };
        let in_time = demand.map_or(String::new(), |demand| {
            let allowed = time(demand.allowed);
            format!(" In time is within {allowed} of when a frame was to be asked for.")
        });
        let first = outcome.first_failure.as_ref().map(|reason| format!(" ({})", reason.message));
        let mut blocks = vec![
            Block::Text(format!(
                "Done by {}; {}.{in_time} Longest outage: {}. Failed operations: {}{}. Frames that \
                 never came: {}. Caches: {}.",
                outcome.method,
                moved(outcome),
                time(outcome.longest_outage()),
                outcome.failed,
                first.unwrap_or_default(),
                outcome.never,
                subject.caches,
            )),
            Block::table(
                &["time", "half within", "95 %", "99 %", "99.9 %", "all"],
                vec![
                    row("service: from asking to having", &outcome.service()),
                    row("response: from when it was to be asked for", &outcome.response),
                    row("the meter's own lateness with asking", &outcome.issue),
                ],
            ),
        ];
        blocks.extend(run_plots(outcome, *demand)?);
        Ok(blocks)
    }
}

/// A backlog that grows, of streams or of players, in words.
pub(super) fn growth_in_words(outcome: &StreamsOutcome) -> Option<String> {
    let growth = outcome.backlog_growth?;
    // Only streams have rounds.
    if !outcome.round_times.is_empty() {
        return Some(format!("the backlog {}", grows(growth)));
    }
    let (before, end) = (time(growth.before), time(growth.end));
    Some(format!(
        "buffers become emptier: at the end of the run the emptiest always lacks {end} or more, and \
         lacked only {before} before"
    ))
}

/// A backlog that grows, in words.
pub(super) fn grows(BacklogGrowth { before, end }: BacklogGrowth) -> String {
    let (before, end) = (time(before), time(end));
    format!(
        "grows: every frame waits for {end} or more at the end of the run, where some \
         waited for only {before} before"
    )
}

/// The figures of one run, used by runs and searches alike.
pub(super) fn outcome_json(outcome: &StreamsOutcome) -> Value {
    json!({
        "streams": outcome.streams.len(),
        "complete": outcome.complete,
        "valid": outcome.valid(),
        "method": outcome.method,
        "took": outcome.took.as_secs_f64(),
        "frames": outcome.frames,
        "late": outcome.late,
        "late_by_storage": outcome.late_by_storage(),
        "late_by_meter": outcome.late_by_meter,
        "below_best": outcome.below_best,
        "failed": outcome.failed,
        "never_came": outcome.never,
        "stuck": outcome.stuck,
        "backlog_grows": outcome.grows(),
        "rounds": outcome.rounds,
        "late_rounds": outcome.late_rounds,
        "round_time": round_spread(outcome),
        "longest_outage": outcome.longest_outage().as_secs_f64(),
        "bytes": outcome.bytes().0,
        "bytes_read": outcome.reads.bytes.0,
        "bytes_written": outcome.writes.bytes.0,
        "bits_per_s": outcome.rate().0,
        "service": times_json(&outcome.service()),
        "read_service": times_json(&outcome.reads.service),
        "write_service": times_json(&outcome.writes.service),
        "response": times_json(&outcome.response),
        "meter_lateness": times_json(&outcome.issue),
        "meter_spun": outcome.spun().as_secs_f64(),
    })
}
