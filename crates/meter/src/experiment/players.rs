//! Players of a title's address: one run (`meter run`), and the largest number that a server holds
//! (`meter capacity`).
//!
//! A title has its own rate, so there is no profile; a player has its own buffer, as in `tenuto
//! play`. A viewer whose request is refused, or who gets a smaller rendition than the best, counts
//! as not held.

use super::attribution::{Attribution, watch};
use super::capacity::{self, SearchConfig};
use super::metrics::MetricsServer;
use super::record::{self, ExperimentReport, RunLog};
use super::run_report::{RunFigures, Subject, growth_in_words};
use super::search::{Probe, answer_of};
use super::streams::INTERRUPTED;
use crate::capacity::{HoldRule, Purpose, SearchStep};
use crate::error::MeterError;
use crate::log::{LogSink, RecordSink};
use crate::observer::Observer;
use crate::report::{facts, late, moved, quantiles, renditions, time};
use crate::streams::CONFIRMING;
use crate::viewers::{self, Counted};
use player::AbrRule;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenuto_client::tls::{Identity, Trust};
use tenuto_client::{Arrivals, PlayOptions, Totals, ViewerSample};
use units::show::count;
use units::show_duration;

/// The settings of players on a title's address that a run and a search share.
#[derive(Clone)]
pub struct PlayersConfig {
    /// `http://` or `https://` address of a title, or of a server with all its titles.
    pub address: String,
    /// Length of a run.
    pub duration: Duration,
    /// How players change between renditions.
    pub switching: AbrRule,
    /// The certificates of servers that are trusted.
    pub trust: Trust,
    /// The certificate of the players.
    pub identity: Option<Identity>,
    /// Address at which counters are served while runs are in progress.
    pub metrics: Option<SocketAddr>,
}

/// Plays with `viewers` players in parallel and reports which segments were late.
pub fn run_players(
    config: &PlayersConfig,
    viewers: u32,
    out: Option<PathBuf>,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let dir = out.as_deref();
    let runs = PlayerRuns { config, metrics: MetricsServer::open(config.metrics, observer)? };
    record::prepare(dir)?;
    let mut log = RunLog::open(dir, false)?;
    let sampler = watch(Path::new(&config.address))?;
    let mut show = |sample: &ViewerSample| observer.status(&state(sample));
    let counted = runs.attempt(viewers, config.duration, observer.stop(), log.sink(), &mut show);
    // The log is ended even if the run failed, so that what was measured is kept.
    let written = log.finish();
    let counted = counted?;
    let Counted { outcome, report } = &counted;
    let attribution = Attribution::of(outcome, sampler.end());

    let subject = runs.subject();
    let figures =
        RunFigures { subject: &subject, demand: None, outcome, attribution: Some(&attribution) };
    let mut summary = figures.summary();
    summary["play"] = json!(report);
    record::add_log(&mut summary, &written);
    let saved = record::save(dir, &summary, || figures.page(&summary), observer)
        .and_then(|()| record::write_seconds(dir, outcome));
    let text = text(&subject, &counted, &attribution);
    let verdict = written.and_then(|written| {
        saved?;
        // Before the figures are judged: those of an interrupted run cover a part of it.
        if !outcome.complete {
            return Err(MeterError::interrupted(INTERRUPTED));
        }
        check_valid(&counted)?;
        record::check_log(written.as_ref())?;
        record::check_held(outcome)
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// Searches the largest number of players that the server holds.
pub fn search_players(
    config: &PlayersConfig,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let runs = PlayerRuns { config, metrics: MetricsServer::open(config.metrics, observer)? };
    record::prepare(search.out.as_deref())?;
    let mut run = |step: SearchStep| {
        let enduring = search.confirm.filter(|_| step.purpose == Purpose::Endure);
        let confirming = if step.long { runs.confirming() } else { config.duration };
        let length = enduring.unwrap_or(confirming);
        let (probe, counted) = runs.probe(search.rule, step, length, observer)?;
        check_complete(&counted)?;
        Ok((probe, delivered(&counted)))
    };
    let endures = |_| search.confirm.is_some_and(|length| length > runs.confirming());
    capacity::find(search, &runs.subject(), &mut run, &endures, None, observer)
}

/// The delivered rate as a number of viewers: the admitted ones, multiplied by the share of time
/// without a stall and by the share of the best rendition's rate.
fn delivered(counted: &Counted) -> f64 {
    let totals = &counted.report.totals;
    let share = totals.share_of_best.unwrap_or(1.0);
    f64::from(totals.admitted) * (1.0 - totals.stall_ratio) * share
}

/// The runs of an experiment with players.
struct PlayerRuns<'a> {
    config: &'a PlayersConfig,
    metrics: MetricsServer,
}

impl PlayerRuns<'_> {
    /// Length of a confirming run.
    fn confirming(&self) -> Duration {
        self.config.duration * CONFIRMING
    }

    fn subject(&self) -> Subject {
        let player = PlayOptions::default().player;
        let PlayersConfig { address, duration, switching, .. } = self.config;
        Subject {
            what: "viewers".to_owned(),
            title: "Players".to_owned(),
            target: address.clone(),
            each: None,
            duration: *duration,
            confirming: self.confirming(),
            caches: "those of the server as they were; nobody here can say".to_owned(),
            scenario: json!({
                "target": address,
                "duration": duration.as_secs_f64(),
                "arrivals_within": arrivals(*duration).as_secs_f64(),
                "player_start": player.start.as_secs_f64(),
                "player_buffer": player.buffer.as_secs_f64(),
                "switching": switching.name(),
            }),
        }
    }

    /// Makes one run. The viewers arrive one after another in its first part.
    fn attempt(
        &self,
        viewers: u32,
        duration: Duration,
        stop: &AtomicBool,
        log: &mut dyn RecordSink,
        show: &mut dyn FnMut(&ViewerSample),
    ) -> Result<Counted, MeterError> {
        let options = PlayOptions {
            urls: vec![self.config.address.clone()],
            viewers,
            // All at once would measure the start of a crowd and not the steady state.
            arrivals: Arrivals::Every(arrivals(duration) / viewers),
            duration: Some(duration),
            switching: self.config.switching,
            trust: self.config.trust.clone(),
            identity: self.config.identity.clone(),
            ..PlayOptions::default()
        };
        let live = self.metrics.live();
        // Before the first sample, which is a difference from zero.
        live.into_iter().for_each(|live| live.begin(viewers));
        let mut show = |sample: &ViewerSample| {
            live.into_iter().for_each(|live| live.viewers(sample));
            show(sample);
        };
        viewers::count(&options, stop, log, &mut show)
    }

    fn probe(
        &self,
        rule: HoldRule,
        step: SearchStep,
        length: Duration,
        observer: &dyn Observer,
    ) -> Result<(Probe, Counted), MeterError> {
        let sampler = watch(Path::new(&self.config.address))?;
        // A flag of its own: the flag of the user would end the search with this run.
        let enough = AtomicBool::new(false);
        let mut stalled = 0;
        let mut show = |sample: &ViewerSample| {
            observer.status(&format!("{}: {}", count(step.streams, "viewer"), state(sample)));
            // One sample may fall between two stalls; several show how much is delivered.
            stalled = if sample.stalled > 0 { stalled + 1 } else { 0 };
            let lost =
                // The other rule allows some late segments, so only its full run decides.
                rule == HoldRule::Strict && (stalled >= STALLED_SAMPLES || sample.refused > 0);
            if lost || observer.is_stopped() {
                enough.store(true, Ordering::Relaxed);
            }
        };
        let counted =
            self.attempt(step.streams, length, &enough, &mut LogSink::none(), &mut show)?;
        let attribution = Some(Attribution::of(&counted.outcome, sampler.end()));
        let outcome = counted.outcome.clone();
        let answer = answer_of(rule.holds(&outcome), &outcome);
        Ok((Probe { step, answer, outcome, attribution }, counted))
    }
}

/// The time within which all viewers arrive: a quarter of the run, and at most the length of the
/// first segments of most titles.
fn arrivals(duration: Duration) -> Duration {
    (duration / 4).min(Duration::from_secs(4))
}

/// Consecutive samples, half a second apart, with a stalled picture before a run is ended.
const STALLED_SAMPLES: u32 = 3;

/// Refuses a run whose results cannot be relied on.
fn check_valid(counted: &Counted) -> Result<(), MeterError> {
    let outcome = &counted.outcome;
    if !outcome.valid() {
        let message = format!(
            "not valid: {} of {} late because of this machine, not of the server",
            outcome.late_by_meter,
            count(outcome.frames, "piece")
        );
        return Err(MeterError::new(message)
            .hint("play from another machine than the server's, or fewer viewers")
            .invalid());
    }
    check_complete(counted)
}

/// Refuses a run in which a viewer got an error, or a server that ignores byte ranges.
fn check_complete(counted: &Counted) -> Result<(), MeterError> {
    let mut failures = counted.report.viewers.iter().filter(|viewer| viewer.error.is_some());
    if let Some(first) = failures.next() {
        let failed = counted.report.totals.failed;
        let why = first.error.as_deref().unwrap_or_default();
        let message = format!("{} failed: {why}", count(failed, "viewer"));
        return Err(MeterError { hint: first.hint.clone(), ..MeterError::new(message) }.invalid());
    }
    // Without byte ranges the file is one response, in which no segment can be late.
    if counted.report.totals.admitted > 0 && counted.outcome.reads.operations == 0 {
        let message = "the server sends the whole file at once: nobody asked for a piece of it";
        return Err(MeterError::new(message)
            .hint("it must serve byte ranges, or give an HLS playlist")
            .invalid());
    }
    Ok(())
}

fn state(sample: &ViewerSample) -> String {
    format!(
        "{}, {} playing, {} stalled, {} refused",
        show_duration(Duration::from_secs_f64(sample.at_s.round())),
        sample.playing,
        sample.stalled,
        sample.refused
    )
}

/// The report of a run for a terminal.
fn text(subject: &Subject, counted: &Counted, attribution: &Attribution) -> String {
    let Counted { outcome, report } = counted;
    let Totals { admitted, refused, failed, stalls, stalled_s, .. } = report.totals;
    let stalled = time(Duration::from_secs_f64(stalled_s));
    let mut lines = vec![
        ("viewers", format!("{admitted} let in, {refused} refused, {failed} failed")),
        ("done by", outcome.method.clone()),
        ("moved", moved(outcome)),
        ("pieces", late(outcome)),
        ("stalls", format!("{stalls}, {stalled} together")),
    ];
    lines.extend(renditions(report));
    lines.extend(growth_in_words(outcome).map(|growth| ("backlog", growth)));
    lines.extend([
        ("longest outage", time(outcome.longest_outage())),
        ("response", quantiles(&outcome.response)),
        ("the meter", format!("wakes late by {}", quantiles(&outcome.issue))),
        ("caches", subject.caches.clone()),
        ("broke first", attribution.first.sentence.clone()),
    ]);
    facts(&lines)
}
