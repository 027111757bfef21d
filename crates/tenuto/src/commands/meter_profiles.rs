//! `meter profiles`: what streams of known formats ask for, or those of a user's file.

use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Table, facts};
use meter::profiles::{self, Profile};
use serde_json::{Value, json};
use units::ByteCount;

/// The profile that a person named: one that comes along, or a file.
pub(crate) fn named(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = profiles::named(name) {
        return Ok(profile);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let sentence = match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no profile '{name}', and no file of that name")
            }
            _ => format!("cannot read {name}: {error}"),
        };
        Failure::new(sentence).hint("`tenuto meter profiles` lists those that come along")
    })?;
    text.parse().map_err(|error| Failure::of(&format!("{name}: {error}")))
}

/// Its file, of either.
pub(crate) fn text_of(name: &str) -> Result<String, Failure> {
    if let Some(text) = profiles::text(name) {
        return Ok(text.to_owned());
    }
    named(name)?;
    std::fs::read_to_string(name)
        .map_err(|error| Failure::new(format!("cannot read {name}: {error}")))
}

pub(crate) fn profiles(args: &Args<'_>) -> Result<(), Failure> {
    let name: Option<String> = args.maybe("NAME");
    if args.has("toml") {
        return print_file(name.as_deref());
    }
    let chosen = match &name {
        Some(name) => vec![named(name)?],
        None => profiles::builtin(),
    };
    let wrong: Vec<(&Profile, String)> = if args.has("verify") {
        let of = |profile| Profile::disagreements(profile).into_iter().map(move |w| (profile, w));
        chosen.iter().flat_map(of).collect()
    } else {
        Vec::new()
    };
    if args.has("json") {
        out::print_json(&object(&chosen, args.has("verify")));
    } else if args.has("verify") {
        out::print(&verdict(chosen.len(), &wrong));
    } else if name.is_some() {
        out::print(&in_full(&chosen[0]));
    } else {
        out::print(&list(&chosen));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::reported(Code::Failed))
}

fn print_file(name: Option<&str>) -> Result<(), Failure> {
    let hint = "`tenuto meter profiles` lists those that come along";
    let Some(name) = name else {
        return Err(Failure::usage("--toml is for one profile, and none is named").hint(hint));
    };
    let Some(text) = profiles::text(name) else {
        return Err(Failure::new(format!("no profile '{name}' comes along")).hint(hint));
    };
    out::print(text);
    Ok(())
}

fn verdict(count: usize, wrong: &[(&Profile, String)]) -> String {
    let lines = wrong.iter().map(|(profile, what)| format!("{}: {what}\n", profile.name));
    let ones = if count == 1 { "profile" } else { "profiles" };
    format!("{}{count} {ones} computed again, {} wrong\n", lines.collect::<String>(), wrong.len())
}

fn list(all: &[Profile]) -> String {
    let mut table = Table::new(&["profile", ">a frame", ">fps", ">rate", "status", "what"]);
    for profile in all {
        table.row(vec![
            profile.name.clone(),
            ByteCount(profile.bytes).to_string(),
            profile.fps.map_or("-".to_owned(), |fps| fps.to_string()),
            rate(profile),
            profile.status.word().to_owned(),
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
        ("pattern", profile.pattern.word().to_owned()),
        ("source", profile.source.clone()),
        ("status", profile.status.word().to_owned()),
    ];
    if let Some(why) = profile.cannot_run() {
        lines.push(("not run", format!("{why}; it is here for reference")));
    }
    format!("{}: {}\n\n{}", profile.name, profile.title, facts(&lines))
}

fn object(all: &[Profile], verify: bool) -> Value {
    let one = |profile: &Profile| {
        let mut value = serde_json::to_value(profile).expect("a profile has text keys only");
        value["rate"] = json!(profile.rate().map(|rate| rate.0));
        value["cannot_run"] = json!(profile.cannot_run());
        if verify {
            value["wrong"] = json!(profile.disagreements());
        }
        value
    };
    json!({ "profiles": all.iter().map(one).collect::<Vec<_>>() })
}
