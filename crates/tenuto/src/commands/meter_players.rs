//! `meter run` and `meter capacity` on the address of a title: players, counted as streams are.
//!
//! A title has its own rate, so there is no profile; a player has its own buffer, as `tenuto play`
//! has it. Who is refused counts as one for whom it did not hold, and so does who is left with a smaller
//! rendition than the best on offer.

use super::meter_blame::{self, Blame};
use super::meter_metrics::Metrics;
use super::meter_record::{self, Subject};
use super::meter_search::{self, LONG, Probe};
use super::meter_streams::{late, moved, quantiles, time};
use super::renditions;
use super::trust::{identity, trust};
use crate::access::on_interrupt;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::limits;
use crate::out::{self, Bar, facts};
use meter::capacity::{Rule, Step};
use meter::log::{Keep, Sink};
use meter::tls::{Identity, Trust};
use meter::viewer::{self, Arrivals, Counted, PlayOptions, Sample, Totals};
use player::Switching;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::show_duration;

/// Whether the target is an address.
pub(super) fn are_meant(args: &Args<'_>) -> bool {
    let target = args.maybe::<String>("target").unwrap_or_default();
    target.starts_with("http://") || target.starts_with("https://")
}

pub(super) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let viewers: u32 = args.count("streams");
    let (mut sink, behind) = meter_record::log(dir.as_deref(), false)?;
    let sampler = meter_blame::watch(Path::new(&asked.target))?;
    let mut show = |sample: &Sample| bar.say(&state(sample));
    let counted = asked.attempt(viewers, asked.duration, &stop, &mut sink, &mut show);
    let written = behind.map(|behind| meter_record::end_log(behind, sink)).transpose()?;
    let counted = counted?;
    let blame = Blame::of(&counted.outcome, sampler.end());
    drop(bar);
    let subject = asked.subject();
    let outcome = &counted.outcome;
    let mut summary = meter_record::summary(&subject, None, outcome, Some(&blame));
    summary["play"] = json!(counted.report);
    if let Some(written) = written {
        summary["log"] = json!({ "records": written.records, "lost": written.lost });
    }
    if let Some(dir) = &dir {
        meter_record::write_run(dir, &subject, None, outcome, Some(&blame), &summary)?;
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page(&subject, &counted, &blame));
    }
    if !outcome.complete {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    believable(&counted)?;
    meter_record::all_written(written)
}

pub(super) fn capacity(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let rule = meter_search::rule(args);
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let most: u32 = args.count("most");
    let mut run = |step: Step| {
        let bar = Bar::new();
        let (probe, counted) = asked.probe(rule, step, &stop, &bar)?;
        whole(&counted)?;
        Ok((probe, delivered(&counted)))
    };
    let subject = asked.subject();
    meter_search::search(args, dir.as_deref(), &subject, (rule, most), &stop, &mut run)
}

/// How many viewers' worth: of those who were let in, the share of time in which the picture moved, and
/// of what it would have been at its best.
fn delivered(counted: &Counted) -> f64 {
    let totals = &counted.report.totals;
    let share = totals.share_of_best.unwrap_or(1.0);
    f64::from(totals.admitted) * (1.0 - totals.stall_ratio) * share
}

struct Asked {
    target: String,
    duration: Duration,
    switching: Switching,
    trust: Trust,
    identity: Option<Identity>,
    metrics: Metrics,
}

impl Asked {
    fn new(args: &Args<'_>) -> Result<Self, Failure> {
        let target: String = args.maybe("target").expect("it was looked at before");
        if args.maybe::<String>("profile").is_some() {
            return Err(Failure::usage("a title has its own rate").hint("leave out --profile"));
        }
        if let Some(name) = OF_STORAGE.into_iter().find(|name| args.typed(name)) {
            return Err(Failure::usage(format!("--{name} is not for players"))
                .hint("leave it out: a title is fetched as `tenuto play` does it"));
        }
        limits::raise_open_files();
        Ok(Self {
            target,
            duration: args.get("duration"),
            switching: renditions::switching(args),
            trust: trust(args)?,
            identity: identity(args)?,
            metrics: Metrics::serve(args)?,
        })
    }

    fn subject(&self) -> Subject {
        let player = PlayOptions::default().player;
        Subject {
            what: "viewers".to_owned(),
            title: "Players".to_owned(),
            target: self.target.clone(),
            each: None,
            duration: self.duration,
            caches: "those of the server as they were; nobody here can say".to_owned(),
            scenario: json!({
                "target": self.target,
                "duration": self.duration.as_secs_f64(),
                "arrivals_within": arrivals(self.duration).as_secs_f64(),
                "player_start": player.start.as_secs_f64(),
                "player_buffer": player.buffer.as_secs_f64(),
                "switching": self.switching.word(),
            }),
        }
    }

    /// One run of so many viewers. They come one after another in its first part.
    fn attempt(
        &self,
        viewers: u32,
        duration: Duration,
        stop: &AtomicBool,
        log: &mut dyn Keep,
        show: &mut dyn FnMut(&Sample),
    ) -> Result<Counted, Failure> {
        let options = PlayOptions {
            urls: vec![self.target.clone()],
            viewers,
            arrivals: Arrivals::Every(arrivals(duration) / viewers),
            duration: Some(duration),
            switching: self.switching,
            trust: self.trust.clone(),
            identity: self.identity.clone(),
            ..PlayOptions::default()
        };
        let live = self.metrics.live();
        if let Some(live) = live {
            live.begin(viewers);
        }
        let mut show = |sample: &Sample| {
            if let Some(live) = live {
                live.viewers(sample);
            }
            show(sample);
        };
        Ok(viewer::count(&options, stop, log, &mut show)?)
    }

    fn probe(
        &self,
        rule: Rule,
        step: Step,
        stop: &AtomicBool,
        bar: &Bar,
    ) -> Result<(Probe, Counted), Failure> {
        let length = if step.long { self.duration * LONG } else { self.duration };
        let sampler = meter_blame::watch(Path::new(&self.target))?;
        let enough = AtomicBool::new(false);
        let mut stands = 0;
        let mut show = |sample: &Sample| {
            bar.say(&format!("{} viewers: {}", step.streams, state(sample)));
            // One look between two stalls is no stall; and a few looks tell how much is delivered.
            stands = if sample.stalled > 0 { stands + 1 } else { 0 };
            let lost = rule == Rule::Strict && (stands >= LOOKS || sample.refused > 0);
            if lost || stop.load(Ordering::Relaxed) {
                enough.store(true, Ordering::Relaxed);
            }
        };
        let counted = self.attempt(step.streams, length, &enough, &mut Sink::none(), &mut show)?;
        let blame = Some(Blame::of(&counted.outcome, sampler.end()));
        let outcome = counted.outcome.clone();
        let answer = meter_search::answer(rule.holds(&outcome), &outcome);
        Ok((Probe { step, answer, outcome, blame }, counted))
    }
}

/// All have come after a quarter of the run, and after the first segments of most titles.
fn arrivals(duration: Duration) -> Duration {
    (duration / 4).min(Duration::from_secs(4))
}

/// Of half a second each, in which somebody's picture stands, before a run is given up.
const LOOKS: u32 = 3;

fn believable(counted: &Counted) -> Result<(), Failure> {
    let outcome = &counted.outcome;
    if !outcome.valid() {
        let sentence = format!(
            "not valid: {} of {} pieces were late because of this machine, not of the server",
            outcome.late_by_meter, outcome.frames
        );
        return Err(Failure::new(sentence)
            .hint("play from another machine than the server's, or fewer viewers")
            .code(Code::Invalid));
    }
    whole(counted)
}

/// Whether all viewers got what they asked for, late or not.
fn whole(counted: &Counted) -> Result<(), Failure> {
    let mut errors = counted.report.viewers.iter().filter_map(|viewer| viewer.error.as_ref());
    if let Some(first) = errors.next() {
        let failed = counted.report.totals.failed;
        return Err(
            Failure::of(&format!("{failed} viewers got an error: {first}")).code(Code::Invalid)
        );
    }
    if counted.report.totals.admitted > 0 && counted.outcome.reads.operations == 0 {
        let sentence = "the server sends the whole file at once: nobody asked for a piece of it";
        return Err(Failure::new(sentence)
            .hint("it must serve byte ranges, or give an HLS playlist")
            .code(Code::Invalid));
    }
    Ok(())
}

fn state(sample: &Sample) -> String {
    format!(
        "{}, {} playing, {} stalled, {} refused",
        show_duration(Duration::from_secs_f64(sample.at_s.round())),
        sample.playing,
        sample.stalled,
        sample.refused
    )
}

fn page(subject: &Subject, counted: &Counted, blame: &Blame) -> String {
    let Counted { outcome, report } = counted;
    let Totals { admitted, refused, failed, glitches, stalled_s, .. } = report.totals;
    let standing = time(Duration::from_secs_f64(stalled_s));
    let mut lines = vec![
        ("viewers", format!("{admitted} let in, {refused} refused, {failed} failed")),
        ("done by", outcome.method.clone()),
        ("moved", moved(outcome)),
        ("pieces", late(outcome)),
        ("stood", format!("{glitches} times, {standing} together")),
    ];
    lines.extend(renditions::lines(report));
    lines.extend([
        ("longest outage", time(outcome.longest_outage())),
        ("response", quantiles(&outcome.response)),
        ("the meter", format!("wakes late by {}", quantiles(&outcome.issue))),
        ("caches", subject.caches.clone()),
        ("broke first", blame.first.sentence.clone()),
    ]);
    facts(&lines)
}

/// Options of targets that are read or written by the meter itself.
const OF_STORAGE: [&str; 16] = [
    "threshold",
    "window",
    "each",
    "hold",
    "layout",
    "buffer",
    "method",
    "realtime",
    "spin",
    "size",
    "fill-level",
    "buffered",
    "drop-caches",
    "endpoint",
    "region",
    "destructive",
];
