//! The page of a search: the result in a few figures, their meaning in plain words, every run, and
//! the runs near the limit. Its reader pays for the storage, so it explains its terms.

use super::capacity::CapacityResult;
use super::search::Probe;
use crate::capacity::{HoldRule, RunVerdict};
use crate::error::MeterError;
use crate::report::{
    Block, KeyFigure, LineShape, Page, Plot, Series, StreamDemand, in_time, late, late_and_lost,
    round_spread, run_plots, spread_spans, time,
};
use crate::rounds::Spread;
use std::time::Duration;
use units::{BitRate, float, show};

pub(super) fn page(found: &CapacityResult<'_>) -> Result<Page, MeterError> {
    let CapacityResult { subject, runs, .. } = found;
    let conclusion = found.conclusion();
    let holds = conclusion[0].1.clone();
    let mut blocks =
        vec![Block::KeyFigures(key_figures(found)), Block::Heading("What this means".into())];
    blocks.extend(meaning(found).into_iter().map(Block::Text));
    blocks.extend([
        Block::facts(["what", "found"], conclusion),
        Block::Heading("By number of streams".into()),
        rates(subject.each, &runs.probes).block(RATES)?,
        responses(subject.each, &runs.probes).block(RESPONSES)?,
        Block::Heading("Runs, in order".into()),
        Block::Text(purposes(subject.confirming)),
        all_runs(&runs.probes),
    ]);
    if let Some(edge) = runs.edge() {
        blocks.extend(rounds(&runs.probes, edge)?);
    }
    if let Some(probe) = runs.confirming() {
        blocks.push(Block::Heading("The confirming run".into()));
        blocks.extend(run_plots(&probe.outcome, subject.each)?);
    }
    if let Some(attribution) = runs.attribution() {
        blocks.extend(attribution.blocks()?);
    }
    Ok(Page {
        title: format!("How many {} {} holds", subject.what, subject.target),
        summary: format!("Holds {holds}."),
        blocks,
    })
}

/// The main figures of the page.
fn key_figures(found: &CapacityResult<'_>) -> Vec<KeyFigure> {
    let CapacityResult { subject, rule, runs } = found;
    let verdict = runs.verdict;
    let finding = |name: &str, value: String, meaning: String| KeyFigure {
        name: name.to_owned(),
        value,
        meaning,
    };
    let count = verdict.streams;
    // In both cases the search ended for a reason other than the storage.
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
    all.push(match runs.confirming() {
        Some(Probe { outcome, .. }) => finding(
            "How sure",
            format!("1 in {}", one_in(rule.certainty(outcome))),
            format!(
                "At most one {} in so many is late in the long run, with 95 % confidence. The last run: \
                 {}, frames: {}.",
                unit(*rule),
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
        let edge = runs.edge();
        let by_meter =
            if verdict.by_meter { " Not the storage's limit: this machine's." } else { "" };
        let how = edge.map_or_else(String::new, |Probe { outcome, .. }| {
            let (frames, late) = (outcome.frames, outcome.late_by_storage());
            let smaller = match outcome.below_best {
                0 => String::new(),
                below => {
                    format!(" Pieces below the best rendition: {below}.")
                }
            };
            let lost = match (outcome.failed, outcome.never) {
                (0, 0) => String::new(),
                (failed, never) => format!(" Of these {failed} failed and {never} never came."),
            };
            format!(
                "Of {} {late} late because of the storage.{lost}{smaller}",
                show::count(frames, "frame")
            )
        });
        all.push(finding("Too many", more.to_string(), format!("{how}{by_meter}")));
    }
    if let Some((word, sentence)) = runs.limit() {
        all.push(finding("What broke first", word, format!("{sentence}.")));
    }
    all
}

fn unit(rule: HoldRule) -> &'static str {
    match rule {
        HoldRule::Strict => "frame",
        HoldRule::OneLateRoundOf100 => "round",
    }
}

/// The reciprocal of a share: one in how many.
fn one_in(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero")]
    // Rounded down: one in fewer is the safe side of the statement.
    let of = (1.0 / share.clamp(1e-15, 1.0)).floor() as u64;
    show::thousands(of)
}

/// What is counted and what follows from it, for readers who have not read the manual.
fn meaning(found: &CapacityResult<'_>) -> Vec<String> {
    let CapacityResult { subject, rule, runs } = found;
    let verdict = runs.verdict;
    // Streams on storage are counted in frames, viewers of a server in pieces and renditions.
    let counted = match subject.each {
        Some(StreamDemand { allowed, rate }) => format!(
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
        HoldRule::Strict => {
            "A number of streams is held if not one frame of any of them is late because of the storage, and \
             if the backlog does not grow: frames wait no longer at the end of the run than before."
        }
        HoldRule::OneLateRoundOf100 => {
            "A number of streams is held if at most one round of a hundred is late; the frames of one \
             number of all streams are a round. The backlog must not grow, either."
        }
    };
    let mut all = vec![format!("{counted} {rule}")];
    if let Some(Probe { outcome, .. }) = runs.confirming() {
        all.push(format!(
            "The confidence is the rule of three: with no late frame among n, fewer than 3/n are late in \
             the long run. It takes frames for independent of each other, which those of one disturbance \
             are not, and says nothing of what was not there while it was measured: other users, a full \
             or an aged file system, a failed disk. A longer run proves more ({} here, and {} \
             for the last).",
            show::length(subject.duration.as_secs_f64()),
            show::length(outcome.took.as_secs_f64()),
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

fn rates(each: Option<StreamDemand>, probes: &[Probe]) -> Plot {
    let mut series = by_answer(probes, |probe| float(probe.outcome.rate().0) / 1e6);
    if let Some(StreamDemand { rate, .. }) = each {
        let most = probes.iter().map(|probe| probe.step.streams).max().unwrap_or(0);
        let mut asked = vec![(0.0, 0.0)];
        asked.push((f64::from(most), f64::from(most) * float(rate.0) / 1e6));
        series.push(Series::new("asked for", LineShape::Line, asked));
    }
    Plot::new("What came, by number of streams", "streams", "Mb/s", series)
}

const RATES: &str = "Each dot is a run; the line is what so many streams ask for. Where dots leave the \
    line, the storage gives less than is asked for; where they no longer rise, it is at its end.";

fn responses(each: Option<StreamDemand>, probes: &[Probe]) -> Plot {
    let mut series =
        by_answer(probes, |probe| probe.outcome.response.quantile(0.99).as_secs_f64() * 1e3);
    series.extend(each.map(in_time));
    Plot::new(
        "How long 99 of 100 frames took at most, by number of streams",
        "streams",
        "milliseconds",
        series,
    )
}

const RESPONSES: &str = "From when a frame was to be asked for until it was there. Level: there is room. \
    Rising: frames begin to wait for each other. Above the dashed line more than one in a hundred is late.";

/// One series for each verdict: held, failed, invalid.
fn by_answer(probes: &[Probe], of: fn(&Probe) -> f64) -> Vec<Series> {
    let series = [RunVerdict::Held, RunVerdict::Failed, RunVerdict::Invalid].map(|answer| {
        let chosen = probes.iter().filter(|probe| probe.answer == answer);
        let points = chosen.map(|probe| (f64::from(probe.step.streams), of(probe))).collect();
        Series::new(answer.word(), LineShape::Dots, points)
    });
    // A legend that names verdicts which did not occur would be read as if they had.
    series.into_iter().filter(|series| !series.points.is_empty()).collect()
}

/// The purposes of the runs of a search, whose confirming runs last `long`.
fn purposes(long: Duration) -> String {
    format!(
        "up: four times as many as before, until some frame is late. narrow: a number between what held \
         and what did not. above: one more than the largest held, which must fail once more. confirm: \
         right after that, still overloaded, the largest held must hold for {}, because storage remembers \
         what was asked of it before. endure: the result must hold for as long as was asked for, or on a \
         simulated disk for up to a day, and is lowered until it does. invalid: this machine was late itself, so that the run says nothing \
         of the storage and is made again. grows: no frame is late, and frames wait longer and longer. A run that cannot change its answer any more ends early.",
        show::length(long.as_secs_f64()),
    )
}

fn all_runs(probes: &[Probe]) -> Block {
    let head = ["streams", "why", "answer", "frames", "rate", "99 % within", "longest", "took"];
    let row = |probe: &Probe| {
        let Probe { step, outcome, .. } = probe;
        vec![
            step.streams.to_string(),
            step.purpose.word().to_owned(),
            probe.answer_word().to_owned(),
            late_and_lost(outcome),
            outcome.rate().to_string(),
            time(outcome.response.quantile(0.99)),
            time(outcome.response.max()),
            show::length(outcome.took.as_secs_f64()),
        ]
    };
    Block::table(&head, probes.iter().map(row).collect())
}

/// The rounds of the smallest number that failed, beside those of all other runs.
fn rounds(probes: &[Probe], first: &Probe) -> Result<Vec<Block>, MeterError> {
    // An invalid run shows the rounds of this machine and not of the storage.
    let counted = probes.iter().filter(|probe| probe.answer != RunVerdict::Invalid);
    let spreads: Vec<(f64, Spread)> = counted
        .map(|probe| (f64::from(probe.step.streams), round_spread(&probe.outcome)))
        .collect();
    let means = spreads.iter().map(|(streams, spread)| (*streams, spread.mean * 1e3)).collect();
    let mut series = spread_spans(&spreads, 1e3);
    series.push(Series::new("mean", LineShape::Dots, means));
    let by_count = Plot::new("Rounds, by number of streams", "streams", "milliseconds", series);
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
        Block::table(&head, vec![row]),
        by_count.block("Each line is a run, from its shortest round to its longest. As long as means stay level there \
             is room; where they leave the ground, rounds begin to wait for those before them.")?,
    ])
}
