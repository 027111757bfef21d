//! The search driver: makes the runs of a search one after another, within its time budget, and
//! names the resource that limits.
//!
//! [`Search`] and then [`Endurance`] decide which run is next, [`HoldRule`] whether a run held.

use super::attribution::Attribution;
use super::run_report::outcome_json;
use crate::blame::{First, Resource};
use crate::capacity::{
    Burst, DeliveredRun, Endurance, HoldRule, Purpose, RunResult, RunVerdict, Search, SearchResult,
    SearchStep, burst,
};
use crate::error::MeterError;
use crate::observer::Observer;
use crate::progress::RunProgress;
use crate::report::{LineShape, Series, StreamDemand, late, time};
use crate::streams::{Second, StreamsOutcome};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use units::show::plural;
use units::{BitRate, ByteCount, float};

/// A run of a search.
pub(super) struct Probe {
    pub(super) step: SearchStep,
    pub(super) answer: RunVerdict,
    pub(super) outcome: StreamsOutcome,
    /// What the machine did in this run; `None` for a simulated disk.
    pub(super) attribution: Option<Attribution>,
}

impl Probe {
    /// The delivered rate as a number of streams with the rate `each`.
    pub(super) fn delivered(&self, each: BitRate) -> f64 {
        float(delivered_rate(&self.outcome).0) / float(each.0.max(1))
    }

    /// The verdict in a word or two.
    pub(super) fn answer_word(&self) -> &'static str {
        let Self { answer, outcome, .. } = self;
        let growing = outcome.missed() == 0 && outcome.backlog_growth.is_some();
        match answer {
            RunVerdict::Failed if growing => "grows",
            _ => answer.word(),
        }
    }

    /// Shows the run in a line.
    fn note(&self, observer: &dyn Observer) {
        let Self { step, outcome, .. } = self;
        observer.run_done(&format!(
            "{:>6} {:8} {:7} {:8} frames: {} at {}, 99 % within {}",
            step.streams,
            plural(&step.streams, "stream") + ",",
            step.purpose.word(),
            self.answer_word(),
            late(outcome),
            outcome.rate(),
            time(outcome.response.quantile(0.99)),
        ));
    }

    /// The time until the first frame was late, or of the whole run.
    fn in_time(&self) -> Duration {
        let second = self.outcome.first_late();
        second.map_or(self.outcome.took, |second| Duration::from_secs(second as u64))
    }

    pub(super) fn json(&self) -> Value {
        let mut run = outcome_json(&self.outcome);
        run["why"] = json!(self.step.purpose.word());
        run["held"] = json!(self.answer == RunVerdict::Held);
        run["invalid"] = json!(self.answer == RunVerdict::Invalid);
        run["blame"] = json!(self.attribution.as_ref().map(Attribution::json));
        run
    }
}

/// The rate that a run shows the storage to deliver: the mean, or that from the first late frame on
/// if it is clearly lower, because the storage became slower in the run.
fn delivered_rate(outcome: &StreamsOutcome) -> BitRate {
    let mean = outcome.rate();
    // The last second is not a whole one.
    let whole = usize::try_from(outcome.took.as_secs()).unwrap_or(usize::MAX);
    let tail = outcome.first_late().and_then(|from| outcome.seconds.get(from..whole));
    let Some(tail) = tail.filter(|tail| !tail.is_empty()) else { return mean };
    let bytes = tail.iter().map(Second::bytes).sum();
    let last = BitRate::of(ByteCount(bytes), Duration::from_secs(tail.len() as u64));
    if last.0 * 10 < mean.0 * 9 { last } else { mean }
}

/// All runs of a search and its verdict.
pub(super) struct SearchRuns {
    pub(super) verdict: SearchResult,
    pub(super) probes: Vec<Probe>,
    /// The error that ended the search early; the runs until then are kept.
    pub(super) error: Option<MeterError>,
}

/// Makes the runs of a search. `run` makes one; beside its figures it returns the delivered rate as
/// a number of streams.
pub(super) fn run_search(
    mut search: Search,
    run: &mut dyn FnMut(SearchStep) -> Result<(Probe, f64), MeterError>,
    observer: &dyn Observer,
) -> SearchRuns {
    let mut runs = SearchRuns { verdict: search.verdict(), probes: Vec::new(), error: None };
    let begun = Instant::now();
    let mut budget = TIME_BUDGET;
    while let Some(step) = search.step() {
        let Some(result) = runs.make(step, run, observer) else { break };
        if runs.probes.len() == 1 {
            // The first run shows how long one lasts on this target.
            budget = budget.max(begun.elapsed() * RUNS_IN_BUDGET);
        }
        search.report(step, result);
        if begun.elapsed() > budget {
            // The time is up, but a result without a confirmation would be worth little.
            search.finish();
            budget = Duration::MAX;
        }
    }
    runs.verdict = search.verdict();
    runs
}

/// The time after which a search makes its last two runs, or the time of [`RUNS_IN_BUDGET`] runs if
/// that is longer: with runs of 20 s a search takes a quarter of an hour.
const TIME_BUDGET: Duration = Duration::from_secs(12 * 60);

const RUNS_IN_BUDGET: u32 = 20;

/// Makes one run of a search with `execute`, and judges it by `rule`. Clients buffer for `allowed`.
/// `watch` is asked whether the run goes on.
pub(super) fn judge_run<E>(
    rule: HoldRule,
    step: SearchStep,
    allowed: Duration,
    watch: &mut dyn FnMut(&RunProgress) -> bool,
    execute: impl FnOnce(&mut dyn FnMut(RunProgress) -> bool) -> Result<StreamsOutcome, E>,
) -> Result<(RunVerdict, StreamsOutcome), E> {
    // A failing run goes on until its buffers could have been emptied once more: the rate in that
    // time is what the storage delivers.
    let more = allowed.max(Duration::from_secs(1));
    let (mut decided, mut failed_at) = (None, Duration::MAX);
    let outcome = execute(&mut |progress| {
        decided = rule.decided(&progress, step.streams);
        let over = match decided {
            Some(true) => !step.long,
            Some(false) => {
                failed_at = failed_at.min(progress.elapsed);
                progress.elapsed >= failed_at + more
            }
            None => false,
        };
        watch(&progress) && !over
    })?;
    // A run that was ended early has too few frames for the rule on complete runs.
    let held = match decided {
        Some(held) if !outcome.complete => held,
        _ => rule.holds(&outcome),
    };
    Ok((answer_of(held, &outcome), outcome))
}

/// The verdict of a run, from the rule's verdict and the meter's own lateness. Where the storage
/// was late ten times as often as the meter, the run failed whatever the meter added.
pub(super) fn answer_of(held: bool, outcome: &StreamsOutcome) -> RunVerdict {
    // For players, below the best rendition counts as late does.
    let clear = !held && outcome.missed() >= 10 * outcome.late_by_meter;
    match held {
        _ if !clear && !outcome.valid() => RunVerdict::Invalid,
        true => RunVerdict::Held,
        false => RunVerdict::Failed,
    }
}

impl SearchRuns {
    /// Makes the runs of the last stage, in which the number that was found has to hold for longer.
    /// They may take longer than the whole search before, so that its time budget does not count.
    pub(super) fn endure(
        &mut self,
        run: &mut dyn FnMut(SearchStep) -> Result<(Probe, f64), MeterError>,
        observer: &dyn Observer,
    ) {
        let mut stage = Endurance::new(self.verdict);
        while let Some(step) = stage.step().filter(|_| self.error.is_none()) {
            let Some(result) = self.make(step, run, observer) else { break };
            stage.report(step, result);
        }
        self.verdict = stage.verdict();
    }

    /// Makes one run and keeps it; `None` if it failed. One that was interrupted is a part of a
    /// run, so it does not count, either.
    fn make(
        &mut self,
        step: SearchStep,
        run: &mut dyn FnMut(SearchStep) -> Result<(Probe, f64), MeterError>,
        observer: &dyn Observer,
    ) -> Option<RunResult> {
        let made = run(step);
        if observer.is_stopped() {
            return None;
        }
        let (probe, delivered) = made.map_err(|failed| self.error = Some(failed)).ok()?;
        let answer = probe.answer;
        probe.note(observer);
        self.probes.push(probe);
        Some(RunResult { answer, delivered })
    }

    /// The run that confirmed the verdict: the longest one.
    pub(super) fn confirming(&self) -> Option<&Probe> {
        let verdict = &self.verdict;
        let confirms = |probe: &&Probe| {
            let SearchStep { streams, purpose, .. } = probe.step;
            let held = probe.answer == RunVerdict::Held;
            let confirms = matches!(purpose, Purpose::Confirm | Purpose::Endure);
            confirms && streams == verdict.streams && held
        };
        // The last one: a count can be confirmed in vain before.
        self.probes.iter().rev().find(confirms).filter(|_| verdict.confirmed)
    }

    /// The last run of the smallest number of streams that failed. Larger numbers may have failed
    /// for other reasons.
    pub(super) fn edge(&self) -> Option<&Probe> {
        let streams = self.verdict.too_many?;
        let last = |answer| {
            let mut probes = self.probes.iter().rev();
            probes.find(|probe| probe.step.streams == streams && probe.answer == answer)
        };
        // A failed run says more about the storage than one in which the meter was late.
        last(RunVerdict::Failed).or_else(|| last(RunVerdict::Invalid))
    }

    /// The attribution of the run at the limit; of the last run, if no run failed.
    pub(super) fn attribution(&self) -> Option<&Attribution> {
        // At the edge the scarce resource is just full; far above it everything is.
        self.edge().or(self.probes.last()).and_then(|probe| probe.attribution.as_ref())
    }

    /// The resource that was full at the limit.
    pub(super) fn broke_first(&self) -> Option<&First> {
        self.attribution().map(|attribution| &attribution.first)
    }

    /// The resource that limits the number of streams, in a few words and in a sentence. Where no
    /// resource was full but all failing runs delivered the same rate, that rate is the limit.
    pub(super) fn limit(&self) -> Option<(String, String)> {
        let first = self.broke_first()?;
        let unknown = first.resource == Resource::Nothing && self.verdict.too_many.is_some();
        Some(match self.steady_rate().filter(|_| unknown) {
            None => (first.short(), first.sentence.clone()),
            Some(rate) => (
                format!("a limit of {rate}"),
                format!("{}. However many streams asked, {rate} came: its limit", first.sentence),
            ),
        })
    }

    /// The delivered rate of the failing runs, if most of them delivered the same.
    fn steady_rate(&self) -> Option<BitRate> {
        let failed = self.probes.iter().filter(|probe| probe.answer == RunVerdict::Failed);
        let mut rates: Vec<u64> = failed.map(|probe| probe.outcome.rate().0).collect();
        rates.sort_unstable();
        // Quartiles, so that one disturbed run does not hide a steady rate.
        let (low, high) = (*rates.get(rates.len() / 4)?, *rates.get(rates.len() * 3 / 4)?);
        let steady = rates.len() >= ENOUGH && (high - low) * 100 <= high * STEADY_PERCENT;
        steady.then(|| BitRate(rates[rates.len() / 2]))
    }

    /// What the storage delivered at first and not later, with streams that need `each`.
    pub(super) fn burst(&self, each: StreamDemand) -> Option<Burst> {
        let valid = self.probes.iter().filter(|probe| probe.answer != RunVerdict::Invalid);
        let delivered = valid.map(|probe| DeliveredRun {
            streams: probe.step.streams,
            held: probe.answer == RunVerdict::Held,
            in_time: probe.in_time(),
            seconds: probe.outcome.seconds.iter().map(Second::bytes).collect(),
        });
        let held = self.verdict.streams;
        burst(&delivered.collect::<Vec<_>>(), held, each.rate.0 / 8, each.allowed)
    }

    /// The delivered rates of all runs, in Mb/s, over their numbers of streams.
    pub(super) fn rate_series(&self, name: &str) -> Series {
        let point =
            |probe: &Probe| (f64::from(probe.step.streams), float(probe.outcome.rate().0) / 1e6);
        Series::new(name, LineShape::Dots, self.probes.iter().map(point).collect())
    }
}

/// Number of runs that distinguish a steady rate from chance.
const ENOUGH: usize = 3;

/// Difference between the quartiles of a steady rate, in percent.
const STEADY_PERCENT: u64 = 3;
