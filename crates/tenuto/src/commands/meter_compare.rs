//! `meter compare`: two runs' directories, figure by figure.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out::{self, Table};
use meter::compare::{Comparison, Difference, Figure, TooShort, Verdict, compare};
use meter::log;
use meter::streams::Second;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a run left.
struct Run {
    dir: PathBuf,
    summary: Value,
}

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let a = Run::read(args.path("A"))?;
    let b = Run::read(args.path("B"))?;
    let unlike = unlike(&a.summary["scenario"], &b.summary["scenario"]);
    match (a.found_streams(), b.found_streams()) {
        (None, None) => {}
        (Some(of_a), Some(of_b)) => {
            counts(args, of_a, of_b, &unlike);
            return Ok(());
        }
        _ => {
            return Err(Failure::new("one is of `meter capacity`, the other is not")
                .hint("compare two of a kind"));
        }
    }
    let false_alarm = f64::from(100 - args.count::<u32>("confidence")) / 100.0;
    let seed = args.count("seed");
    let comparison = compare(&a.figures()?, &b.figures()?, false_alarm, seed)?;
    if args.has("json") {
        out::print_json(&json!({
            "comparison": comparison,
            "scenarios_differ_in": unlike,
        }));
    } else {
        out::print(&page(&comparison, &unlike));
    }
    Ok(())
}

impl From<TooShort> for Failure {
    fn from(error: TooShort) -> Self {
        Self::of(&error.to_string())
    }
}

impl Run {
    fn read(dir: PathBuf) -> Result<Self, Failure> {
        let path = dir.join("summary.json");
        let hint = "name a directory that `meter run --out` made";
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::new(format!("cannot read {}: {error}", path.display())).hint(hint)
        })?;
        let summary: Value = serde_json::from_str(&text).map_err(|error| {
            Failure::new(format!("{} is no summary: {error}", path.display())).hint(hint)
        })?;
        if summary["valid"] == false {
            out::note(&format!(
                "{} is of a run that was not valid: its misses are the meter's own",
                dir.display()
            ));
        }
        Ok(Self { dir, summary })
    }

    /// Of a capacity search: what it found, and whether that was confirmed.
    fn found_streams(&self) -> Option<(u64, bool)> {
        self.summary.get("rule")?;
        Some((self.summary["streams"].as_u64()?, self.summary["confirmed"].as_bool()?))
    }

    /// From the log of operations, if there is one, else from the summary's seconds.
    fn figures(&self) -> Result<Vec<Figure>, Failure> {
        if self.dir.join(log::FILE).exists() {
            let log = log::read(&self.dir).map_err(|error| Failure::of(&error.to_string()))?;
            return Figure::of_log(log).map_err(|error| Failure::of(&error.to_string()));
        }
        let seconds = self.summary["seconds"]
            .as_array()
            .and_then(|seconds| seconds.iter().map(second).collect::<Option<Vec<Second>>>());
        let seconds = seconds.ok_or_else(|| {
            let path = Path::new(&self.dir).join("summary.json");
            Failure::new(format!("{} has no seconds to compare", path.display()))
                .hint("name a directory that `meter run --out` made")
        })?;
        Ok(Figure::of_seconds(&seconds))
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

/// The names of what was asked differently.
fn unlike(a: &Value, b: &Value) -> Vec<String> {
    let (Some(of_a), Some(of_b)) = (a.as_object(), b.as_object()) else { return Vec::new() };
    let names = of_a.keys().chain(of_b.keys().filter(|name| !of_a.contains_key(*name)));
    names.filter(|name| of_a.get(*name) != of_b.get(*name)).cloned().collect()
}

fn counts(args: &Args<'_>, a: (u64, bool), b: (u64, bool), unlike: &[String]) {
    let both = a.1 && b.1;
    if args.has("json") {
        out::print_json(&json!({
            "streams": [a.0, b.0],
            "confirmed": [a.1, b.1],
            "scenarios_differ_in": unlike,
        }));
        return;
    }
    let said = |(streams, confirmed): (u64, bool)| {
        format!("{streams} streams{}", if confirmed { "" } else { ", not confirmed" })
    };
    let mut text = format!("A holds {}, B holds {}.\n", said(a), said(b));
    text += if both && a.0 == b.0 {
        "No difference.\n"
    } else {
        "Each is one search: search again to tell a change from chance, or compare two `meter run`s \
         with the smaller number of streams.\n"
    };
    out::print(&(text + &differ(unlike)));
}

fn page(comparison: &Comparison, unlike: &[String]) -> String {
    let mut table = Table::new(&["figure", ">A", ">B", ">B against A", ">from", ">to", "verdict"]);
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
        true => format!("{:+.3} %", value * 100.0),
        false => format!("{:+.1} %", value * 100.0),
    };
    let own = |value: f64| match figure.name {
        "late" => format!("{:.3} %", value * 100.0),
        "rate" => format!("{:.1} MB/s", value / 1e6),
        _ => format!("{:.2} ms", value * 1e3),
    };
    let verdict = match figure.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::NoDifferenceShown => {
            let wide = (figure.difference.high - figure.difference.low) / 2.0;
            format!("no difference shown (of {} or more it would be)", show(wide).replace('+', ""))
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
    fn what_was_asked_differently_is_named() {
        let a = json!({ "profile": "x", "buffer": 8 });
        let b = json!({ "profile": "x", "buffer": 9, "seed": 1 });
        assert_eq!(unlike(&a, &b), ["buffer", "seed"]);
        assert_eq!(unlike(&a, &a), Vec::<String>::new());
        assert_eq!(unlike(&Value::Null, &a), Vec::<String>::new());
    }
}
