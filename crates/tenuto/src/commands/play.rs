//! `play`: viewers as told, and what they saw.

use super::renditions;
use super::trust::{identity, trust};
use crate::access::on_interrupt;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, facts};
use crate::{limits, show};
use meter::viewer::{
    self, Choice, Form, Outcome, PlayError, PlayOptions, PlayReport, Sample, Totals, View,
};
use player::{Behaviour, PlayerOptions, Switching};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{BitRate, ByteCount};

pub(crate) fn play(args: &Args<'_>) -> Result<(), Failure> {
    let options = options(args)?;
    let stop = on_interrupt()?;
    limits::raise_open_files();
    let bar = Bar::new();
    let report = viewer::play(&options, &stop, &mut |sample| bar.say(&state(sample)))?;
    drop(bar);
    if args.has("json") {
        out::print_json(&report);
    } else {
        tell(&report);
    }
    if !report.complete {
        return Err(Failure::reported(Code::Invalid));
    }
    match report.totals {
        Totals { admitted: 0, failed: 0, refused, .. } if refused > 0 => {
            Err(Failure::reported(Code::Refused))
        }
        Totals { failed, .. } if failed > 0 => Err(Failure::reported(Code::Failed)),
        _ => Ok(()),
    }
}

fn options(args: &Args<'_>) -> Result<PlayOptions, Failure> {
    let defaults = PlayOptions::default();
    let save: Option<PathBuf> = args.maybe("save");
    if let Some(path) = save.iter().flat_map(|path| saved_as(path)).find(|path| path.exists())
        && !args.has("destroy")
    {
        let sentence = format!("{} would be overwritten", path.display());
        return Err(Failure::new(sentence).hint("if that is meant, allow it with --destroy"));
    }
    if save.is_some() && args.text("switching") != Switching::Never.word() {
        return Err(Failure::usage("--save cannot put several renditions into one file")
            .hint("leave out --switching, or --save"));
    }
    Ok(PlayOptions {
        urls: args.all("URL"),
        viewers: args.count("viewers"),
        arrivals: args.get("arrivals"),
        choice: word::<Choice>(args, "choice"),
        form: word::<Form>(args, "form"),
        seed: args.count("seed"),
        duration: args.maybe("duration"),
        behaviour: behaviour(args.maybe("behaviour"))?,
        view: View {
            from: args.maybe("from"),
            to: args.maybe("to"),
            speed: args.maybe("speed"),
            skip: args.maybe::<u64>("skip").map(|skip| u32::try_from(skip).unwrap_or(u32::MAX)),
            wait: args.maybe("wait"),
        },
        player: PlayerOptions {
            start: args.get("start"),
            buffer: args.get("buffer"),
            ..defaults.player
        },
        switching: renditions::switching(args),
        save,
        retry: args.has("retry"),
        trust: trust(args)?,
        identity: identity(args)?,
        ..defaults
    })
}

/// What `--save` may write: the file itself, or for HLS one per track.
fn saved_as(path: &Path) -> [PathBuf; 3] {
    let track = |kind: &str| match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => path.with_extension(format!("{kind}.{extension}")),
        None => path.with_extension(kind),
    };
    [path.to_owned(), track("video"), track("audio")]
}

/// A word that the table offers is one that the meter knows.
fn word<T: FromStr>(args: &Args<'_>, name: &str) -> T {
    let word = args.text(name);
    T::from_str(&word).unwrap_or_else(|_| panic!("the table offers --{name} {word}"))
}

fn behaviour(file: Option<PathBuf>) -> Result<Behaviour, Failure> {
    let Some(file) = file else { return Ok(Behaviour::default()) };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
    text.parse().map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn state(sample: &Sample) -> String {
    format!(
        "{} playing, {} waiting, {} stalled, {} refused, {} gone",
        sample.playing, sample.waiting, sample.stalled, sample.refused, sample.gone
    )
}

fn tell(report: &PlayReport) {
    if !report.complete {
        out::note("interrupted: this is what had happened until then");
    }
    out::print(&page(report));
    for path in &report.saved {
        out::note(&format!("saved {}", path.display()));
    }
    let failed = report.viewers.iter().filter(|viewer| viewer.outcome == Outcome::Failed);
    for viewer in failed.take(ERRORS_SHOWN) {
        let why = viewer.error.as_deref().unwrap_or("no reason given");
        out::complain(&Failure::of(&format!("viewer {}: {why}", viewer.viewer)));
    }
}

/// More of the same help nobody; `--json` has them all.
const ERRORS_SHOWN: usize = 5;

fn page(report: &PlayReport) -> String {
    let totals = &report.totals;
    let mut lines = vec![
        (
            "viewers",
            format!("{} of {} in {}", totals.arrived, asked(report), show::length(report.seconds)),
        ),
        ("admitted", format!("{}, of whom {} saw the end", totals.admitted, totals.finished)),
        ("refused", refused(report)),
    ];
    if totals.failed + totals.unanswered > 0 {
        lines.push(("failed", format!("{}, unanswered {}", totals.failed, totals.unanswered)));
    }
    let startup = &report.startup_ms;
    if startup.count > 0 {
        let [p50, p95, max] = [startup.p50, startup.p95, startup.max].map(show::millis);
        lines.push(("start-up", format!("half within {p50}, 95 % within {p95}, all within {max}")));
    }
    lines.push(("glitches", glitches(totals)));
    let drift = &report.drift_ms;
    if drift.count > 0 {
        let [p50, p99, max] = [drift.p50, drift.p99, drift.max].map(show::millis);
        lines.push(("drift", format!("half within {p50}, 99 % within {p99}, all within {max}")));
    }
    lines.extend(renditions::lines(report));
    let rate = BitRate(rounded(totals.bits_per_s));
    lines.push(("received", format!("{} at {rate}", ByteCount(totals.bytes))));
    facts(&lines)
}

fn asked(report: &PlayReport) -> String {
    let asked = &report.parameters;
    let plural = if asked.titles == 1 { "" } else { "s" };
    format!(
        "{} asked for ({} title{plural}, arrivals {})",
        asked.viewers, asked.titles, asked.arrivals
    )
}

fn refused(report: &PlayReport) -> String {
    let by: Vec<String> =
        report.totals.refused_by.iter().map(|(resource, n)| format!("{resource} {n}")).collect();
    let first = report.viewers.iter().find_map(|viewer| viewer.refusal.as_ref());
    match first {
        Some(refusal) if report.totals.refused > 0 => {
            format!("{} ({}); the first: {}", report.totals.refused, by.join(", "), refusal.reason)
        }
        _ => report.totals.refused.to_string(),
    }
}

fn glitches(totals: &Totals) -> String {
    if totals.glitches == 0 {
        return "none".to_owned();
    }
    format!(
        "{} for {} viewers: stalled {:.1} % of the time",
        totals.glitches,
        totals.viewers_with_glitches,
        totals.stall_ratio * 100.0
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate for people")]
fn rounded(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

impl From<PlayError> for Failure {
    fn from(error: PlayError) -> Self {
        Self::of(&error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    /// The table says in words what the meter's and the player's defaults say in values.
    #[test]
    fn the_defaults_in_the_table_are_the_meters() {
        let matches = cli::command().get_matches_from(["tenuto", "play", "http://a/"]);
        let (_, inner) = matches.subcommand().unwrap();
        let given = options(&Args(inner)).unwrap();
        let wanted = PlayOptions { urls: given.urls.clone(), ..PlayOptions::default() };
        assert_eq!(format!("{given:?}"), format!("{wanted:?}"));
    }
}
