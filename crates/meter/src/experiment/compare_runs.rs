//! The comparison of two runs from their directories, figure by figure (`meter compare`).

use super::record::ExperimentReport;
use crate::compare::{Comparison, Difference, DifferenceVerdict, FigureSeries, compare};
use crate::error::MeterError;
use crate::log;
use crate::observer::Observer;
use crate::report::TextTable;
use crate::streams::Second;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::show::{change, count};

/// A comparison of two runs.
#[derive(Clone, Debug)]
pub struct ComparisonConfig {
    /// The directory of the first run.
    pub a: PathBuf,
    /// The directory of the second run.
    pub b: PathBuf,
    /// Confidence of all intervals together, in percent.
    pub confidence_percent: u32,
    /// Seed of the bootstrap's draws.
    pub seed: u64,
}

/// The directory of a run.
struct RunDirectory {
    dir: PathBuf,
    summary: Value,
}

/// The result of a search for the largest number of streams.
struct FoundStreams {
    streams: u64,
    confirmed: bool,
}

/// Compares two runs, or the numbers of streams that two searches found.
pub fn compare_runs(
    config: &ComparisonConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let a = RunDirectory::read(&config.a, observer)?;
    let b = RunDirectory::read(&config.b, observer)?;
    let unlike = unlike(&a.summary["scenario"], &b.summary["scenario"]);
    match (a.found_streams(), b.found_streams()) {
        (None, None) => {}
        (Some(of_a), Some(of_b)) => return Ok(compare_counts(of_a, of_b, &unlike)),
        _ => {
            return Err(MeterError::new("one is of `meter capacity`, the other is not")
                .hint("compare two of a kind"));
        }
    }
    // The complement of the confidence, divided among the figures by `compare`.
    let false_alarm = f64::from(100 - config.confidence_percent) / 100.0;
    let comparison = compare(&a.figures()?, &b.figures()?, false_alarm, config.seed)?;
    let summary = json!({ "comparison": comparison, "scenarios_differ_in": unlike });
    Ok(ExperimentReport { summary, text: text(&comparison, &unlike), verdict: Ok(()) })
}

impl RunDirectory {
    fn read(dir: &Path, observer: &dyn Observer) -> Result<Self, MeterError> {
        let path = dir.join("summary.json");
        let hint = "name a directory that `meter run --out` made";
        let text = std::fs::read_to_string(&path)
            .map_err(|error| MeterError::cannot("read", &path)(error).hint(hint))?;
        let summary: Value = serde_json::from_str(&text).map_err(|error| {
            MeterError::new(format!("{} is no summary: {error}", path.display())).hint(hint)
        })?;
        if summary["valid"] == false {
            observer.note(&format!(
                "{} is of a run that was not valid: its misses are the meter's own",
                dir.display()
            ));
        }
        Ok(Self { dir: dir.to_owned(), summary })
    }

    /// The result of a search; `None` for the directory of a run.
    fn found_streams(&self) -> Option<FoundStreams> {
        // Only the summary of a search has a rule.
        self.summary.get("rule")?;
        let streams = self.summary["streams"].as_u64()?;
        Some(FoundStreams { streams, confirmed: self.summary["confirmed"].as_bool()? })
    }

    /// The figures from the log of operations, if there is one, else from the seconds in the
    /// summary.
    fn figures(&self) -> Result<Vec<FigureSeries>, MeterError> {
        // The log has every operation; the summary has one longest response for each second.
        if self.dir.join(log::FILE).exists() {
            let log = log::read(&self.dir)?;
            return Ok(FigureSeries::of_log(log)?);
        }
        let seconds = self.summary["seconds"]
            .as_array()
            .and_then(|seconds| seconds.iter().map(second).collect::<Option<Vec<Second>>>());
        let seconds = seconds.ok_or_else(|| {
            let path = self.dir.join("summary.json");
            let groups = self.summary["groups"].as_array();
            let error = MeterError::new(format!("{} has no seconds to compare", path.display()));
            match groups.and_then(|groups| groups.first()).and_then(|group| group["name"].as_str())
            {
                // A job has its seconds group by group.
                Some(group) => {
                    let group = self.dir.join("runs").join(format!("001-{group}"));
                    error.hint(format!("compare a group of the job: {}", group.display()))
                }
                None => error.hint("name a directory that `meter run --out` made"),
            }
        })?;
        Ok(FigureSeries::of_seconds(&seconds))
    }
}

fn second(of: &Value) -> Option<Second> {
    let longest = Duration::try_from_secs_f64(of["longest_response"].as_f64()?).ok()?;
    Some(Second {
        frames: of["frames"].as_u64()?,
        late: of["late"].as_u64()?,
        longest_response: longest,
        ..Second::default()
    })
}

/// The names of the settings in which two scenarios differ.
fn unlike(a: &Value, b: &Value) -> Vec<String> {
    let (Some(of_a), Some(of_b)) = (a.as_object(), b.as_object()) else { return Vec::new() };
    // A setting that only one of the two has is a difference too.
    let names = of_a.keys().chain(of_b.keys().filter(|name| !of_a.contains_key(*name)));
    names.filter(|name| of_a.get(*name) != of_b.get(*name)).cloned().collect()
}

/// Compares two numbers of streams that searches found.
fn compare_counts(a: FoundStreams, b: FoundStreams, unlike: &[String]) -> ExperimentReport {
    let summary = json!({
        "streams": [a.streams, b.streams],
        "confirmed": [a.confirmed, b.confirmed],
        "scenarios_differ_in": unlike,
    });
    let said = |found: &FoundStreams| {
        let sure = if found.confirmed { "" } else { ", not confirmed" };
        count(found.streams, "stream") + sure
    };
    let mut text = format!("A holds {}, B holds {}.\n", said(&a), said(&b));
    text += if a.confirmed && b.confirmed && a.streams == b.streams {
        "No difference.\n"
    } else {
        "Each is one search: search again to tell a change from chance, or compare two `meter run`s \
         with the smaller number of streams.\n"
    };
    ExperimentReport { summary, text: text + &differ(unlike), verdict: Ok(()) }
}

fn text(comparison: &Comparison, unlike: &[String]) -> String {
    let mut table =
        TextTable::new(&["figure", ">A", ">B", ">B against A", ">from", ">to", "verdict"]);
    for figure in &comparison.figures {
        table.row(row(figure));
    }
    let mut text = table.show();
    for figure in &comparison.figures {
        text += &format!("\n{}: {}", figure.name, figure.about);
    }
    let (a, b) = comparison.seconds;
    let sure = (1.0 - comparison.false_alarm) * 100.0;
    text += &format!(
        "\n\n{a} and {b} seconds, drawn in blocks. With {sure:.0} % confidence all of these \
         differences lie between from and to; one that has 0 between them may be chance.\n"
    );
    text + &differ(unlike)
}

fn differ(unlike: &[String]) -> String {
    if unlike.is_empty() {
        return String::new();
    }
    format!("The two were not asked the same: {} differ.\n", unlike.join(", "))
}

fn row(figure: &Difference) -> Vec<String> {
    let show = |value: f64| match figure.absolute {
        _ if !value.is_finite() => "?".to_owned(),
        true => change(value, 3),
        false => change(value, 1),
    };
    let own = |value: f64| match figure.name {
        "late" => format!("{:.3} %", value * 100.0),
        "rate" => format!("{:.1} MB/s", value / 1e6),
        _ => format!("{:.2} ms", value * 1e3),
    };
    let verdict = match figure.verdict {
        DifferenceVerdict::Better => "better".to_owned(),
        DifferenceVerdict::Worse => "worse".to_owned(),
        DifferenceVerdict::NoDifferenceShown => {
            // Half of the interval is the smallest difference that these two runs could have shown.
            let wide = (figure.difference.high - figure.difference.low) / 2.0;
            let least = show(wide).replace('+', "");
            format!("no difference shown (less than {least} is not detected)")
        }
    };
    let interval = &figure.difference;
    vec![
        figure.name.to_owned(),
        own(figure.a),
        own(figure.b),
        show(interval.estimate),
        show(interval.low),
        show(interval.high),
        verdict,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named() {
        let a = json!({ "profile": "x", "buffer": 8 });
        let b = json!({ "profile": "x", "buffer": 9, "seed": 1 });
        assert_eq!(unlike(&a, &b), ["buffer", "seed"]);
        assert_eq!(unlike(&a, &a), Vec::<String>::new());
        assert_eq!(unlike(&Value::Null, &a), Vec::<String>::new());
    }
}
