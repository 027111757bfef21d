//! The report of a search: what was found in a few figures, what they mean in plain words, every run,
//! and what the runs at the edge looked like. It is what is handed to whoever pays for the storage, so
//! that it explains its own words.

use super::meter_plots::{first_failing, number, plot, plots};
use super::meter_record::{Demand, Subject, save_all};
use super::meter_search::{self, LONG, Probe, confirming, purpose};
use super::meter_streams::{late, time};
use crate::failure::Failure;
use crate::out;
use crate::show;
use meter::capacity::{Answer, Rule, Verdict};
use meter::report::{Block, Finding, Page, Plot, Series, Shape};
use serde_json::Value;
use std::path::Path;
use units::{BitRate, show_duration};

/// Writes all that a search leaves.
pub(super) fn write(
    dir: &Path,
    subject: &Subject,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    summary: &Value,
) -> Result<(), Failure> {
    let page = page(subject, rule, verdict, probes)?;
    save_all(dir, &summary["scenario"], summary, &page)?;
    out::note(&format!("wrote {}", dir.join("report.html").display()));
    Ok(())
}

fn page(
    subject: &Subject,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
) -> Result<Page, Failure> {
    let confirming = confirming(probes, verdict);
    let said = meter_search::conclusion(subject, rule, verdict, probes, confirming);
    let mut blocks = vec![
        Block::Findings(findings(subject, rule, verdict, probes)),
        Block::Heading("What this means".into()),
    ];
    blocks.extend(meaning(subject, rule, verdict).into_iter().map(Block::Text));
    let rows = said.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]);
    blocks.extend([
        Block::Table { head: vec!["what".into(), "found".into()], rows: rows.collect() },
        Block::Heading("By number of streams".into()),
        plot(&rates(subject.each, probes), RATES)?,
        plot(&responses(subject.each, probes), RESPONSES)?,
        Block::Heading("Runs, in order".into()),
        Block::Text(runs_text(subject)),
        runs(probes),
    ]);
    blocks.extend(first_failing(probes, meter_search::edge(probes, verdict))?);
    if let Some(probe) = confirming {
        blocks.push(Block::Heading("The confirming run".into()));
        blocks.extend(plots(&probe.outcome, subject.each)?);
    }
    if let Some(blame) = meter_search::blame(probes, verdict) {
        blocks.extend(blame.blocks()?);
    }
    Ok(Page {
        title: format!("How many {} {} holds", subject.what, subject.target),
        summary: format!("Holds {}.", said[0].1),
        blocks,
    })
}

/// The few figures that a reader takes away.
fn findings(subject: &Subject, rule: Rule, verdict: Verdict, probes: &[Probe]) -> Vec<Finding> {
    let finding = |name: &str, value: String, meaning: String| Finding {
        name: name.to_owned(),
        value,
        meaning,
    };
    let count = verdict.streams;
    let least = if verdict.at_limit || verdict.by_meter { "at least " } else { "" };
    let together = subject.each.map(|each| BitRate(each.rate.0.saturating_mul(count.into())));
    let mut all = vec![finding(
        "Holds",
        match verdict.confirmed {
            true => format!("{least}{count}"),
            false => format!("about {count}"),
        },
        match together {
            Some(rate) => format!("{}, {rate} together", subject.what),
            None => subject.what.clone(),
        },
    )];
    all.push(match confirming(probes, verdict) {
        Some(Probe { outcome, .. }) => finding(
            "How sure",
            format!("1 in {}", one_in(rule.certainty(outcome))),
            format!(
                "At most one {} in so many is late in the long run, with 95 % confidence. The last run: \
                 {}, frames: {}.",
                unit(rule),
                show::length(outcome.took.as_secs_f64()),
                late(outcome),
            ),
        ),
        None => finding(
            "How sure",
            "not confirmed".to_owned(),
            "No number held when it was asked again. Do not rely on it.".to_owned(),
        ),
    });
    if let Some(more) = verdict.too_many {
        let edge = meter_search::edge(probes, verdict);
        let by_meter =
            if verdict.by_meter { " Not the storage's limit: this machine's." } else { "" };
        let how = edge.map_or_else(String::new, |Probe { outcome, .. }| {
            let (frames, late) = (outcome.frames, outcome.late_by_storage());
            let smaller = match outcome.below_best {
                0 => String::new(),
                below => {
                    format!(" {below} pieces were of a smaller rendition than they had to be.")
                }
            };
            format!("Of {frames} frames {late} were late because of the storage.{smaller}")
        });
        all.push(finding("Too many", more.to_string(), format!("{how}{by_meter}")));
    }
    if let Some((word, sentence)) = meter_search::limit(probes, verdict) {
        all.push(finding("What broke first", word, format!("{sentence}.")));
    }
    all
}

fn unit(rule: Rule) -> &'static str {
    match rule {
        Rule::Strict => "frame",
        Rule::OneLateRoundOf100 => "round",
    }
}

/// Of a share, the number of which one is.
fn one_in(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero")]
    let of = (1.0 / share.clamp(1e-15, 1.0)).floor() as u64;
    show::thousands(of)
}

/// What is counted and what follows, for who has not read the manual.
fn meaning(subject: &Subject, rule: Rule, verdict: Verdict) -> Vec<String> {
    let counted = match subject.each {
        Some(Demand { allowed, rate }) => format!(
            "Each stream ({}, {rate}) asks for its frames by the clock, as a player does, whether the \
             storage keeps up or not. A frame is late if it is not there {} after it was to be asked for: \
             so long a client's buffer lasts.",
            subject.title,
            time(allowed),
        ),
        None => "Each viewer plays by the clock. A piece of the title is late if the picture stood for it. \
                 Whoever is left with a smaller rendition than the best on offer, once there was time to \
                 find out how wide the way is, is not held either, however smoothly it plays."
            .to_owned(),
    };
    let rule = match rule {
        Rule::Strict => {
            "A number of streams is held if not one frame of any of them is late because of the storage."
        }
        Rule::OneLateRoundOf100 => {
            "A number of streams is held if at most one round of a hundred is late; the frames of one \
             number of all streams are a round."
        }
    };
    let mut all = vec![format!("{counted} {rule}")];
    if verdict.confirmed {
        all.push(format!(
            "The confidence is the rule of three: with no late frame among n, fewer than 3/n are late in \
             the long run. It takes frames for independent of each other, which those of one disturbance \
             are not, and says nothing of what was not there while it was measured: other users, a full \
             or an aged file system, a failed disk. A longer run proves more ({} here, and {LONG} times \
             that for the last).",
            show_duration(subject.duration),
        ));
    }
    if verdict.by_meter {
        all.push(
            "More could not be measured from this machine, which was late itself: the storage may hold \
             more. Measure from several machines at once (--hosts), or a larger one."
                .to_owned(),
        );
    }
    all
}

fn rates(each: Option<Demand>, probes: &[Probe]) -> Plot {
    let mut series = by_answer(probes, |probe| number(probe.outcome.rate().0) / 1e6);
    if let Some(Demand { rate, .. }) = each {
        let most = probes.iter().map(|probe| probe.step.streams).max().unwrap_or(0);
        let mut asked = vec![(0.0, 0.0)];
        asked.push((f64::from(most), f64::from(most) * number(rate.0) / 1e6));
        series.push(Series { name: "asked for".into(), shape: Shape::Line, points: asked });
    }
    Plot {
        title: "What came, by number of streams".into(),
        x_label: "streams".into(),
        y_label: "Mb/s".into(),
        series,
    }
}

const RATES: &str = "Each dot is a run; the line is what so many streams ask for. Where dots leave the \
    line, the storage gives less than is asked for; where they no longer rise, it is at its end.";

fn responses(each: Option<Demand>, probes: &[Probe]) -> Plot {
    let mut series =
        by_answer(probes, |probe| probe.outcome.response.quantile(0.99).as_secs_f64() * 1e3);
    series.extend(each.map(super::meter_plots::in_time));
    Plot {
        title: "How long 99 of 100 frames took at most, by number of streams".into(),
        x_label: "streams".into(),
        y_label: "milliseconds".into(),
        series,
    }
}

const RESPONSES: &str = "From when a frame was to be asked for until it was there. Level: there is room. \
    Rising: frames begin to wait for each other. Above the dashed line more than one in a hundred is late.";

/// Runs that held, that did not, and that say nothing.
fn by_answer(probes: &[Probe], of: fn(&Probe) -> f64) -> Vec<Series> {
    let series = [Answer::Held, Answer::Failed, Answer::Spoilt].map(|answer| {
        let chosen = probes.iter().filter(|probe| probe.answer == answer);
        let points = chosen.map(|probe| (f64::from(probe.step.streams), of(probe))).collect();
        Series { name: answer.word().to_owned(), shape: Shape::Dots, points }
    });
    series.into_iter().filter(|series| !series.points.is_empty()).collect()
}

fn runs_text(subject: &Subject) -> String {
    format!(
        "up: four times as many as before, until some frame is late. narrow: a number between what held \
         and what did not. above: one more than the largest held, which must fail once more. confirm: \
         right after that, still overloaded, the largest held must hold for {}, because storage remembers \
         what was asked of it before. spoilt: this machine was late itself, so that the run says nothing \
         of the storage and is made again. A run that cannot change its answer any more ends early.",
        show_duration(subject.duration * LONG),
    )
}

fn runs(probes: &[Probe]) -> Block {
    let head = ["streams", "why", "answer", "frames", "rate", "99 % within", "longest", "took"];
    let row = |Probe { step, answer, outcome, .. }: &Probe| {
        vec![
            step.streams.to_string(),
            purpose(step.purpose).to_owned(),
            answer.word().to_owned(),
            late(outcome),
            outcome.rate().to_string(),
            time(outcome.response.quantile(0.99)),
            time(outcome.response.max()),
            show::length(outcome.took.as_secs_f64()),
        ]
    };
    Block::Table { head: head.map(str::to_owned).into(), rows: probes.iter().map(row).collect() }
}
