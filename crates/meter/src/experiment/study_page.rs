//! The results of a study for readers: on the terminal and in the report.

use super::study::{StudyConfig, figure_of};
use crate::error::MeterError;
use crate::report::{Block, LineShape, Page, Plot, Series, TextTable};
use crate::study::{ClaimResult, ClaimVerdict, Done, Median, StudyFigure};
use std::fmt::Write as _;
use units::show::wrapped;

/// The width of a terminal in columns.
const WIDTH: usize = 80;

/// The report for a terminal.
pub(super) fn text(config: &StudyConfig, done: &Done, answers: &[ClaimResult]) -> String {
    let mut table = TextTable::new(&[
        "setting",
        ">all, MB/s",
        ">a client, MB/s",
        ">99 % of blocks, ms",
        "from to, MB/s",
    ]);
    for (number, setting) in done.settings.iter().enumerate() {
        let figure = |figure| figure_of(done, number, figure);
        let total = figure(StudyFigure::Total);
        table.row(vec![
            setting.name.clone(),
            middle(total),
            middle(figure(StudyFigure::Rate)),
            middle(figure(StudyFigure::Block)),
            total.map_or("-".to_owned(), |of| format!("{} to {}", short(of.low), short(of.high))),
        ]);
    }
    let mut text = table.show();
    for sentence in sentences(answers) {
        let _ = write!(text, "\n{}\n", wrapped(&sentence, WIDTH));
    }
    let _ = write!(text, "\n{}\n", wrapped(&verdict(config, done, answers), WIDTH));
    text
}

/// The result of the study in one sentence.
fn verdict(config: &StudyConfig, done: &Done, answers: &[ClaimResult]) -> String {
    let count = |verdict| answers.iter().filter(|answer| answer.verdict == verdict).count();
    let (yes, opposite) = (count(ClaimVerdict::Yes), count(ClaimVerdict::Opposite));
    // From the runs and not from the plan: an interrupted study has fewer.
    let repeats = done.runs.iter().map(|run| run.repeat + 1).max().unwrap_or(0);
    let few = if repeats < ENOUGH {
        format!(" {repeats} repetitions are too few to tell anything from chance; take {ENOUGH}.")
    } else {
        String::new()
    };
    format!(
        "{} on {}: of {} findings of EBU TECH 3362, {yes} here as there, {opposite} the other way \
         round, {} not shown.{few}",
        config.study.about,
        config.target,
        answers.len(),
        answers.len() - yes - opposite,
    )
}

/// One sentence for each claim.
fn sentences(answers: &[ClaimResult]) -> Vec<String> {
    let sentence = |answer: &ClaimResult| {
        let claim = answer.claim;
        let here = match answer.ratio {
            None => "it was not tried, or runs were too short to tell".to_owned(),
            Some(ratio) => format!(
                "{} at '{}' is {} times that at '{}' ({} to {}, {:.0} %)",
                claim.figure.names().1,
                claim.to,
                short(ratio.median),
                claim.from,
                short(ratio.low),
                short(ratio.high),
                ratio.sure * 100.0,
            ),
        };
        format!("\"{}\" ({}): {}. Here {here}.", claim.says, claim.place, answer.verdict.word())
    };
    answers.iter().map(sentence).collect()
}

/// The report as a page.
pub(super) fn page(
    config: &StudyConfig,
    done: &Done,
    answers: &[ClaimResult],
) -> Result<Page, MeterError> {
    let mut blocks: Vec<Block> = sentences(answers).into_iter().map(Block::Text).collect();
    for (figure, explanation) in [
        (StudyFigure::Total, "What all clients moved together, over the time of a run."),
        (StudyFigure::Block, "From asking for a block to having it: 99 % took no longer."),
        (
            StudyFigure::Latency,
            "Time of a transfer that is in none of its blocks: opening and closing its \
                           file, and the meter's own.",
        ),
    ] {
        let explanation = format!(
            "{explanation} Dots are medians of runs, bars where the median of \
                                   many more would lie with 95 %, if there were six runs or more."
        );
        blocks.push(drawn(config, done, figure).block(&explanation)?);
    }
    blocks.push(Block::Heading("Settings: medians of all runs".into()));
    let head =
        ["setting", "runs"].into_iter().chain(StudyFigure::ALL.map(|figure| figure.names().1));
    let head = head.chain(["pieces of the files", "done by"]).map(str::to_owned).collect();
    let rows = (0..done.settings.len()).map(|number| row(done, number)).collect();
    blocks.push(Block::Table { head, rows });
    blocks.push(Block::Text(config.study.long.clone()));
    let title = format!("{} on {}", config.study.about, config.target);
    Ok(Page { title, summary: verdict(config, done, answers), blocks })
}

fn row(done: &Done, number: usize) -> Vec<String> {
    let runs = || done.runs.iter().filter(|run| run.setting == number);
    let ends = [done.settings[number].name.clone(), runs().count().to_string()];
    let figures = StudyFigure::ALL.map(|figure| match figure_of(done, number, figure) {
        None => "-".to_owned(),
        Some(of) => format!("{} ({} to {})", short(of.median), short(of.low), short(of.high)),
    });
    let last = runs().next_back();
    let fragments = last.and_then(|run| run.measured.fragments);
    let pieces = fragments.map_or("-".to_owned(), |count| count.to_string());
    let method = last.map_or(String::new(), |run| run.measured.method.clone());
    ends.into_iter().chain(figures).chain([pieces, method]).collect()
}

/// The plot of a figure by the study's axis, or by setting number where it has none.
fn drawn(config: &StudyConfig, done: &Done, figure: StudyFigure) -> Plot {
    let named = done.settings.iter().all(|setting| setting.x.is_none());
    let mut lines: Vec<&'static str> = done.settings.iter().map(|setting| setting.line).collect();
    // Settings of one line are neighbours in the table of studies.
    lines.dedup();
    let mut series = Vec::new();
    for line in lines {
        let (mut middles, mut bars) = (Vec::new(), Vec::new());
        for (number, setting) in done.settings.iter().enumerate() {
            let at = u32::try_from(number).map_or(0.0, f64::from);
            let x = if named { Some(at + 1.0) } else { setting.x };
            let (Some(x), Some(of)) = (x, figure_of(done, number, figure)) else { continue };
            if setting.line == line {
                middles.push((x, of.median));
                bars.extend([(x, of.low), (x, of.high)]);
            }
        }
        let name = if line.is_empty() { "median" } else { line };
        let shape = if named { LineShape::Dots } else { LineShape::Line };
        series.push(Series::new(name, shape, middles));
        series.push(Series::new(format!("{name}: from, to"), LineShape::Spans, bars));
    }
    let order = done.settings.iter().map(|setting| setting.name.as_str());
    let x_label = match named {
        true => format!("{}: {}", config.study.varies, order.collect::<Vec<_>>().join(", ")),
        false => config.study.varies.clone(),
    };
    let label = figure.names().1;
    Plot::new(format!("{}: {label}", config.study.about), x_label, label, series)
}

fn middle(of: Option<Median>) -> String {
    of.map_or("-".to_owned(), |of| short(of.median))
}

/// The value with three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The number of repetitions that gives a confidence of 95 %.
const ENOUGH: u32 = 6;
