//! The largest number of streams or players that a target holds: the search, its summary and its
//! conclusion in words.

use super::capacity_page;
use super::record::{self, ExperimentReport};
use super::run_report::Subject;
use super::search::{Probe, SearchRuns, run_search};
use super::streams::{A_DAY, INTERRUPTED};
use super::target::OpenTarget;
use crate::capacity::{Burst, HoldRule, Search, SearchResult, SearchStep};
use crate::error::MeterError;
use crate::observer::Observer;
use crate::report::{TextTable, facts, late, late_rounds};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use units::show;

/// A search for the largest number of streams or players.
#[derive(Clone)]
pub struct SearchConfig {
    /// The rule by which a number counts as held.
    pub rule: HoldRule,
    /// The largest number that is tried.
    pub max_streams: u32,
    /// Length of a last run in which the result has to hold; `None` for a virtual day on a
    /// simulated disk, and for no such run elsewhere. Without effect where a confirming run is as
    /// long.
    pub confirm: Option<Duration>,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// Searches, and saves and reports the result. `run` has the meaning that it has in [`run_search`];
/// `endures` says whether a number has to hold once more for longer. Players have no `target`.
pub(super) fn find(
    config: &SearchConfig,
    subject: &Subject,
    run: &mut dyn FnMut(SearchStep) -> Result<(Probe, f64), MeterError>,
    endures: &dyn Fn(u32) -> bool,
    target: Option<&OpenTarget>,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let mut runs = run_search(Search::new(config.max_streams, MAX_RUNS), run, observer);
    if endures(runs.verdict.streams) && !observer.is_stopped() {
        runs.endure(run, observer);
    }
    let found = CapacityResult { subject, rule: config.rule, runs };
    let mut summary = found.summary();
    target.into_iter().for_each(|target| target.describe(&mut summary));
    let page = || {
        let page = capacity_page::page(&found)?;
        match target {
            Some(target) => target.extend(page),
            None => Ok(page),
        }
    };
    let saved = record::save(config.out.as_deref(), &summary, page, observer);
    let text = found.text();
    let verdict = saved.and_then(|()| found.check(observer));
    Ok(ExperimentReport { summary, text, verdict })
}

/// The largest number of runs in a search.
pub(super) const MAX_RUNS: u32 = 40;

/// The result of a search.
pub(super) struct CapacityResult<'a> {
    pub(super) subject: &'a Subject,
    pub(super) rule: HoldRule,
    pub(super) runs: SearchRuns,
}

/// A small share as a percentage, with one significant digit at least.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = (4..12).find(|digits| percent * 10f64.powi(*digits) >= 1.0).unwrap_or(12);
    format!("{percent:.*} %", usize::try_from(digits).unwrap_or_default())
}

impl CapacityResult<'_> {
    fn summary(&self) -> Value {
        let Self { subject, rule, runs } = self;
        let SearchResult { streams, confirmed, at_limit, too_many, by_meter, invalid, .. } =
            runs.verdict;
        let certainty = runs.confirming().map(|probe| rule.certainty(&probe.outcome));
        json!({
            "scenario": subject.scenario,
            "caches": subject.caches,
            "rule": rule.word(),
            "streams": streams,
            "confirmed": confirmed,
            "at_limit": at_limit,
            "too_many": too_many,
            "by_meter": by_meter,
            "invalid": invalid,
            "broke_first": runs.broke_first(),
            "late_share_at_most": certainty,
            "burst": self.burst().map(|burst| json!({
                "streams": burst.streams,
                "bytes": burst.bytes.0,
                "seconds": burst.lasted.as_secs(),
            })),
            "runs": runs.probes.iter().map(Probe::json).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let probes = &self.runs.probes;
        let mut head = vec![">streams", "why", "answer", ">took", ">frames", ">late", ">rate"];
        // Only players have renditions.
        let smaller = probes.iter().any(|probe| probe.outcome.below_best > 0);
        head.extend(smaller.then_some(">smaller"));
        let mut table = TextTable::new(&head);
        for probe in probes {
            let Probe { step, outcome, .. } = probe;
            let below = smaller.then(|| outcome.below_best.to_string());
            let mut row = vec![
                step.streams.to_string(),
                step.purpose.word().to_owned(),
                probe.answer_word().to_owned(),
                show::length(outcome.took.as_secs_f64()),
                outcome.frames.to_string(),
                outcome.late_by_storage().to_string(),
                outcome.rate().to_string(),
            ];
            row.extend(below);
            table.row(row);
        }
        format!("{}\n{}", table.show(), facts(&self.conclusion()))
    }

    /// The result in words; the first line is the number that is held.
    pub(super) fn conclusion(&self) -> Vec<(&'static str, String)> {
        let Self { subject, rule, runs } = self;
        let SearchResult { probes, invalid, .. } = runs.verdict;
        let length = show::length(subject.duration.as_secs_f64());
        let made = match invalid {
            0 => format!("{probes} of {length}"),
            _ => format!("{probes} of {length}, and {invalid} that this machine made invalid"),
        };
        let mut lines =
            vec![("holds", self.holds()), ("rule", rule.word().to_owned()), ("runs", made)];
        if let Some(Probe { outcome, .. }) = runs.confirming() {
            let took = show::length(outcome.took.as_secs_f64());
            // Virtual time is cheap, so that the reader can have the day.
            let short = subject.target.starts_with("sim:") && outcome.took < A_DAY;
            let more = if short { "; a day may show more: --confirm 24h" } else { "" };
            lines.push(("confirmed", format!("in a run of {took}{more}")));
            // The rule decides what is counted, and the bound is a share of that.
            let share = percent(rule.certainty(outcome));
            let seen = match rule {
                HoldRule::Strict => format!("frames late, of {}", late(outcome)),
                HoldRule::OneLateRoundOf100 => format!("rounds late, of {}", late_rounds(outcome)),
            };
            lines.push(("certainty", format!("95 %: no more than {share} of {seen}")));
            lines.push(("read by", outcome.method.clone()));
        }
        lines.extend(self.burst_text().map(|text| ("burst", text)));
        lines.push(("caches", subject.caches.clone()));
        if let Some((_, sentence)) = runs.limit() {
            lines.push(("broke first", sentence));
        }
        lines
    }

    /// What the storage delivered at first and not later. Players do not show it.
    fn burst(&self) -> Option<Burst> {
        self.subject.each.and_then(|each| self.runs.burst(each))
    }

    fn burst_text(&self) -> Option<String> {
        let confirming = self.runs.confirming().filter(|_| self.subject.each.is_some());
        if let Some(Burst { streams, bytes, lasted }) = self.burst() {
            let streams = self.subject.counted(streams.into());
            return Some(format!(
                "{streams} at first, and not later: {bytes} beyond the sustained rate within \
                 {}, by a credit or a cache, or before others used the storage",
                show::length(lasted.as_secs_f64())
            ));
        }
        let outcome = &confirming?.outcome;
        Some(format!(
            "none seen; one that lasts for more than {} and {} at this rate would not show: take a \
             longer --confirm",
            show::length(outcome.took.as_secs_f64()),
            outcome.bytes()
        ))
    }

    fn holds(&self) -> String {
        let verdict = self.runs.verdict;
        let (count, held) = (verdict.streams, self.subject.counted(verdict.streams.into()));
        match verdict {
            // Before the confirmed cases: nothing failed, so that the number is a lower bound only.
            SearchResult { at_limit: true, .. } => {
                format!("at least {held}; more were not tried")
            }
            SearchResult { by_meter: true, confirmed: true, too_many: Some(more), .. } => format!(
                "at least {held}; {more} cannot be measured from here: this machine was \
                 late itself"
            ),
            SearchResult { confirmed: true, too_many: Some(more), .. } if more > count + 1 => {
                format!("{held}; {more} are too many, those between were not tried")
            }
            SearchResult { confirmed: true, .. } => held,
            SearchResult { .. } => format!("about {held}, not confirmed"),
        }
    }

    /// Refuses a search that was interrupted, failed, found no number that held again, or found
    /// that not one is held.
    fn check(&self, observer: &dyn Observer) -> Result<(), MeterError> {
        let verdict = self.runs.verdict;
        // Before anything is judged: what an interrupted search lacks is no fault of the storage.
        if observer.is_stopped() {
            return Err(MeterError::interrupted(INTERRUPTED));
        }
        if let Some(error) = &self.runs.error {
            return Err(error.clone());
        }
        if verdict.confirmed && (verdict.streams > 0 || verdict.at_limit) {
            return Ok(());
        }
        if verdict.confirmed && !verdict.by_meter {
            return Err(MeterError::not_held(format!(
                "not held: not one of {}",
                self.subject.what
            )));
        }
        if verdict.by_meter && verdict.streams == 0 {
            let message = "not valid: this machine was late itself with as few as one";
            return Err(MeterError::new(message)
                .hint("let nothing else run here, or measure from another machine")
                .invalid());
        }
        let message = format!("no count held when asked again, in {} runs", verdict.probes);
        Err(MeterError::new(message)
            .hint("let nothing else use it, or take a longer --duration")
            .invalid())
    }
}
