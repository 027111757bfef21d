//! The largest number that is held: runs of streams or of viewers, one after another, until it is
//! known, and what is said of it then.

use super::meter_blame::Blame;
use super::meter_record::{self, Subject};
use super::meter_search_page;
use super::meter_streams::{late, time};
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Table, facts};
use crate::show;
use meter::blame::{First, Resource};
use meter::capacity::{Answer, Found, Purpose, Rule, Search, Step, Verdict};
use meter::streams::Outcome;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{BitRate, show_duration};

/// A run of a search.
pub(super) struct Probe {
    pub(super) step: Step,
    pub(super) answer: Answer,
    pub(super) outcome: Outcome,
    /// Of real storage.
    pub(super) blame: Option<Blame>,
}

impl Probe {
    /// So many streams' worth of bytes came, at this rate of each.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of rates")]
    pub(super) fn delivered(&self, each: BitRate) -> f64 {
        self.outcome.rate().0 as f64 / each.0.max(1) as f64
    }
}

/// As asked for.
pub(super) fn rule(args: &Args<'_>) -> Rule {
    match args.text("rule").as_str() {
        "strict" => Rule::Strict,
        _ => Rule::OneLateRoundOf100,
    }
}

/// What runs one after another gave.
pub(super) struct Climbed {
    pub(super) verdict: Verdict,
    pub(super) probes: Vec<Probe>,
    /// Why it ended before its time; what was found until then is kept.
    pub(super) trouble: Option<Failure>,
}

/// Makes the runs of a search. `run` makes one, or says why none is to be believed; with it, how
/// many of those asked for were delivered.
pub(super) fn climb(
    mut search: Search,
    stop: &AtomicBool,
    run: &mut dyn FnMut(Step) -> Result<(Probe, f64), Failure>,
) -> Climbed {
    let (mut probes, mut trouble) = (Vec::new(), None);
    let begun = Instant::now();
    let mut enough = MOST_TIME;
    while let Some(step) = search.step() {
        let made = run(step);
        if probes.is_empty() {
            enough = enough.max(begun.elapsed() * RUNS_IN_TIME);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (probe, delivered) = match made {
            Ok(made) => made,
            Err(failure) => {
                trouble = Some(failure);
                break;
            }
        };
        search.report(step, Found { answer: probe.answer, delivered });
        out::live(&format!(
            "{:>6} streams, {:7} {:8} {} frames at {}, 99 % within {}",
            step.streams,
            purpose(step.purpose),
            probe.answer.word(),
            late(&probe.outcome),
            probe.outcome.rate(),
            time(probe.outcome.response.quantile(0.99)),
        ));
        probes.push(probe);
        if begun.elapsed() > enough {
            search.finish();
            enough = Duration::MAX;
        }
    }
    Climbed { verdict: search.verdict(), probes, trouble }
}

/// Up to `most`; its report goes to `dir`. `run` is as [`climb`] has it.
pub(super) fn search(
    args: &Args<'_>,
    dir: Option<&Path>,
    subject: &Subject,
    (rule, most): (Rule, u32),
    stop: &AtomicBool,
    run: &mut dyn FnMut(Step) -> Result<(Probe, f64), Failure>,
) -> Result<(), Failure> {
    let Climbed { verdict, probes, trouble } = climb(Search::new(most, PROBES), stop, run);
    let confirming = confirming(&probes, verdict);
    let summary = meter_record::capacity(subject, rule, verdict, &probes, confirming);
    // What cannot be saved is told all the same.
    let saved = dir.map_or(Ok(()), |dir| {
        meter_search_page::write(dir, subject, rule, verdict, &probes, &summary)
    });
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&found(subject, rule, verdict, &probes, confirming));
    }
    saved?;
    if stop.load(Ordering::Relaxed) {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    if let Some(failure) = trouble {
        return Err(failure);
    }
    if verdict.confirmed {
        return Ok(());
    }
    if verdict.by_meter && verdict.streams == 0 {
        return Err(Failure::new("not valid: this machine was late itself with as few as one")
            .hint("let nothing else run here, or measure from another machine")
            .code(Code::Invalid));
    }
    Err(Failure::new(format!("no count held when asked again, in {} runs", verdict.probes))
        .hint("let nothing else use it, or take a longer --duration")
        .code(Code::Invalid))
}

/// What a run says, by the rule and by how late this machine was itself. Where the storage was late
/// ten times as often as that, it did not hold, whatever the meter added.
pub(super) fn answer(held: bool, outcome: &Outcome) -> Answer {
    let clear = !held && outcome.missed() >= 10 * outcome.late_by_meter;
    match held {
        _ if !clear && !outcome.valid() => Answer::Spoilt,
        true => Answer::Held,
        false => Answer::Failed,
    }
}

/// The run that the verdict stands on.
pub(super) fn confirming(probes: &[Probe], verdict: Verdict) -> Option<&Probe> {
    let of = |probe: &&Probe| {
        let Step { streams, purpose, .. } = probe.step;
        purpose == Purpose::Confirm && streams == verdict.streams && probe.answer == Answer::Held
    };
    probes.iter().rev().find(of).filter(|_| verdict.confirmed)
}

/// Runs of a search at most.
const PROBES: u32 = 40;

/// After that, or as long as [`RUNS_IN_TIME`] runs take if that is longer, two more are made: a quarter of an hour
/// in all with runs of 20 s.
const MOST_TIME: Duration = Duration::from_secs(12 * 60);

const RUNS_IN_TIME: u32 = 20;

/// A long run, as the confirming one, takes so many times as long.
pub(super) const LONG: u32 = 3;

fn found(
    subject: &Subject,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    confirming: Option<&Probe>,
) -> String {
    let mut head = vec![">streams", "why", "answer", ">took", ">frames", ">late", ">rate"];
    // Only of players who change renditions, or are offered smaller ones.
    let smaller = probes.iter().any(|probe| probe.outcome.below_best > 0);
    head.extend(smaller.then_some(">smaller"));
    let mut table = Table::new(&head);
    for Probe { step, answer, outcome, .. } in probes {
        let below = smaller.then(|| outcome.below_best.to_string());
        let mut row = vec![
            step.streams.to_string(),
            purpose(step.purpose).to_owned(),
            answer.word().to_owned(),
            show::length(outcome.took.as_secs_f64()),
            outcome.frames.to_string(),
            outcome.late_by_storage().to_string(),
            outcome.rate().to_string(),
        ];
        row.extend(below);
        table.row(row);
    }
    format!("{}\n{}", table.show(), facts(&conclusion(subject, rule, verdict, probes, confirming)))
}

/// What was found, in words.
pub(super) fn conclusion(
    subject: &Subject,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    confirming: Option<&Probe>,
) -> Vec<(&'static str, String)> {
    let count = verdict.streams;
    let what = &subject.what;
    let held = match verdict {
        Verdict { at_limit: true, .. } => {
            format!("at least {count} {what}; more were not tried")
        }
        Verdict { by_meter: true, confirmed: true, too_many: Some(more), .. } => format!(
            "at least {count} {what}; {more} cannot be measured from here: this machine was late \
             itself"
        ),
        Verdict { confirmed: true, too_many: Some(more), .. } if more > count + 1 => {
            format!("{count} {what}; {more} are too many, those between were not tried")
        }
        Verdict { confirmed: true, .. } => format!("{count} {what}"),
        Verdict { .. } => format!("about {count} {what}, not confirmed"),
    };
    let mut lines = vec![
        ("holds", held),
        ("rule", rule.word().to_owned()),
        ("runs", runs(verdict, show_duration(subject.duration))),
    ];
    if let Some(Probe { outcome, .. }) = confirming {
        let unit = if rule == Rule::Strict { "frames" } else { "rounds" };
        let share = rule.certainty(outcome) * 100.0;
        lines.push((
            "certainty",
            format!("95 %: no more than {share:.4} % of {unit} late, of {}", late(outcome)),
        ));
        lines.push(("read by", outcome.method.clone()));
    }
    lines.push(("caches", subject.caches.clone()));
    if let Some((_, sentence)) = limit(probes, verdict) {
        lines.push(("broke first", sentence));
    }
    lines
}

fn runs(verdict: Verdict, length: String) -> String {
    let Verdict { probes, spoilt, .. } = verdict;
    match spoilt {
        0 => format!("{probes} of {length}"),
        _ => format!("{probes} of {length}, and {spoilt} that this machine spoilt"),
    }
}

/// What was full in the run at the edge; what was nearest to it where nothing was too much.
pub(super) fn broke_first(probes: &[Probe], verdict: Verdict) -> Option<&First> {
    blame(probes, verdict).map(|blame| &blame.first)
}

/// What broke first in a word or two, and in a sentence. Where nothing was full, but as much came
/// however much was asked for, that is what there is to know of it.
pub(super) fn limit(probes: &[Probe], verdict: Verdict) -> Option<(String, String)> {
    let first = broke_first(probes, verdict)?;
    let level = level(probes).filter(|_| first.resource == Resource::Nothing);
    Some(match level.filter(|_| verdict.too_many.is_some()) {
        None => (first.short(), first.sentence.clone()),
        Some(rate) => (
            format!("a limit of {rate}"),
            format!("{}. However many streams asked, {rate} came: its limit", first.sentence),
        ),
    })
}

/// What came in runs that were too much, if it was the same in most of them.
fn level(probes: &[Probe]) -> Option<BitRate> {
    let failed = probes.iter().filter(|probe| probe.answer == Answer::Failed);
    let mut rates: Vec<u64> = failed.map(|probe| probe.outcome.rate().0).collect();
    rates.sort_unstable();
    let (low, high) = (*rates.get(rates.len() / 4)?, *rates.get(rates.len() * 3 / 4)?);
    let alike = rates.len() >= ENOUGH && (high - low) * 100 <= high * LEVEL_PERCENT;
    alike.then(|| BitRate(rates[rates.len() / 2]))
}

/// Runs that tell a level from chance.
const ENOUGH: usize = 3;

/// Between a quarter and three quarters of them.
const LEVEL_PERCENT: u64 = 3;

/// Of the run at the edge; of the last, if nothing was too much.
pub(super) fn blame(probes: &[Probe], verdict: Verdict) -> Option<&Blame> {
    edge(probes, verdict).or(probes.last()).and_then(|probe| probe.blame.as_ref())
}

/// The last run of the smallest number that was too much. Larger ones broke for reasons of their
/// own.
pub(super) fn edge(probes: &[Probe], verdict: Verdict) -> Option<&Probe> {
    let many = verdict.too_many?;
    let of = |answer| {
        let mut last = probes.iter().rev();
        last.find(|probe| probe.step.streams == many && probe.answer == answer)
    };
    of(Answer::Failed).or_else(|| of(Answer::Spoilt))
}

pub(super) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Up => "up",
        Purpose::Narrow => "narrow",
        Purpose::Above => "above",
        Purpose::Confirm => "confirm",
    }
}
