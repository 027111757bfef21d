//! `meter profiles`: what streams of known formats ask for, or those of a user's file.

use super::terminal::show_saved;
use crate::args::meter::ProfilesArgs;
use crate::commands::print_builtin;
use crate::failure::{Code, Failure};
use crate::out::{Table, facts};
use meter::profiles::{self, Profile};
use meter::{ExperimentReport, load_profile};
use serde_json::{Value, json};
use units::Hinted;
use units::show::thousands;

pub(super) fn profiles(args: &ProfilesArgs) -> Result<(), Failure> {
    if args.toml {
        if args.saved.out.is_some() {
            return Err(Failure::usage("--out is not for --toml")
                .hint("write `> FILE` for the profile's file"));
        }
        let hint = "`tenuto meter profiles` lists the built-in profiles";
        return print_builtin("profile", args.name.as_deref(), profiles::text, hint);
    }
    let chosen = match &args.name {
        Some(name) => vec![load_profile(name)?],
        None => profiles::builtin(),
    };
    let wrong: Vec<(&Profile, String)> = if args.verify {
        let of = |profile| Profile::disagreements(profile).into_iter().map(move |w| (profile, w));
        chosen.iter().flat_map(of).collect()
    } else {
        Vec::new()
    };
    let text = match (args.verify, &args.name) {
        (true, _) => verdict(chosen.len(), &wrong),
        (false, Some(_)) => in_full(&chosen[0]),
        (false, None) => list(&chosen),
    };
    let summary = object(&chosen, args.verify);
    show_saved(&args.saved, |_| Ok(ExperimentReport { summary, text, verdict: Ok(()) }))?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::reported(Code::Failed))
}

fn verdict(count: usize, wrong: &[(&Profile, String)]) -> String {
    let lines = wrong.iter().map(|(profile, what)| format!("{}: {what}\n", profile.name));
    let profiles = units::show::count(count, "profile");
    format!("{}{profiles} computed again, {} wrong\n", lines.collect::<String>(), wrong.len())
}

fn list(all: &[Profile]) -> String {
    let mut table = Table::new(&["profile", ">bytes a frame", ">fps", ">Mb/s", "status", "what"]);
    for profile in all {
        table.row(vec![
            profile.name.clone(),
            thousands(profile.bytes),
            profile.fps.map_or("-".to_owned(), |fps| fps.to_string()),
            profile.rate().map_or("-".to_owned(), |rate| format!("{:.2}", rate.0 as f64 / 1e6)),
            profile.status.to_string(),
            profile.title.clone(),
        ]);
    }
    table.show()
}

fn rate(profile: &Profile) -> String {
    profile.rate().map_or("-".to_owned(), |rate| rate.to_string())
}

fn in_full(profile: &Profile) -> String {
    let mut lines = vec![
        (
            "bytes",
            format!(
                "{} a {}",
                profile.bytes,
                if profile.fps.is_some() { "frame" } else { "block" }
            ),
        ),
        ("frames", profile.fps.map_or("not paced".to_owned(), |fps| format!("{fps} a second"))),
        ("rate", rate(profile)),
        ("reads", format!("{} %", profile.read_percent)),
        ("at random", format!("{} %", profile.random_percent)),
        ("pattern", profile.pattern.to_string()),
        ("source", profile.source.clone()),
        ("status", profile.status.to_string()),
    ];
    if let Some(why) = profile.cannot_run() {
        lines.push(("not run", format!("{}; listed for reference", why.one_line())));
    }
    format!("{}: {}\n\n{}", profile.name, profile.title, facts(&lines))
}

fn object(all: &[Profile], verify: bool) -> Value {
    let one = |profile: &Profile| {
        let mut value = serde_json::to_value(profile).expect("a profile has text keys only");
        // Computed figures are not fields of a profile, whose file must not contradict them.
        value["rate"] = json!(profile.rate().map(|rate| rate.0));
        value["cannot_run"] = json!(profile.cannot_run().map(|why| why.one_line()));
        if verify {
            value["wrong"] = json!(profile.disagreements());
        }
        value
    };
    json!({ "profiles": all.iter().map(one).collect::<Vec<_>>() })
}
