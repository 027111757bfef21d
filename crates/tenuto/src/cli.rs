//! The parser, made from the table; and its complaints, put as one sentence and a hint.

use crate::table::{ABOUT, Command, GROUPS, LONG, Row, Shape, Value};
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction};
use meter::viewer::Arrivals;
use std::error::Error;
use std::fmt::{Debug, Display, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use units::{BitRate, ByteCount, parse_duration};

/// The parser for the whole program.
pub(crate) fn command() -> clap::Command {
    let root = clap::Command::new("tenuto")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .long_about(LONG)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .override_help(front_page());
    root.subcommands(GROUPS.iter().flat_map(|group| group.commands).map(build))
}

/// Reads in any terminal.
pub(crate) const WIDTH: usize = 80;
/// How far clap indents what an option is for.
const INDENT: usize = 10;

/// What `tenuto --help` prints: the commands by group, unlike clap's one long list.
fn front_page() -> String {
    let mut page =
        format!("Tenuto: {ABOUT}\n\n{}\n\nUsage: tenuto COMMAND ...\n", wrapped(LONG, WIDTH));
    for group in GROUPS {
        let _ = write!(page, "\n{}:\n", group.title);
        for command in group.commands {
            let _ = writeln!(page, "  {:<12} {}", command.name, command.about);
        }
    }
    page + OPTIONS + if crate::WHOLE { FIRST_STEPS } else { "" } + EXIT_CODES
}

const OPTIONS: &str = "
Options:
  -h, --help     This page; after a command, that command's
  -V, --version  The version
";

const FIRST_STEPS: &str = "
First steps:
  tenuto format film.store --size 10GiB
  tenuto ingest film.store film.mkv
  tenuto serve film.store        then open http://127.0.0.1:8080/console/
";

const EXIT_CODES: &str = "
Exit codes: 0 done, 1 failed, 2 usage, 3 refused by admission, 4 damage found, 5 run invalid.
";

/// `text` with each paragraph broken into lines of at most `width` characters. (clap would ask the
/// terminal for its width, with one more dependency.)
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    text.split("\n\n").map(|paragraph| broken(paragraph, width)).collect::<Vec<_>>().join("\n\n")
}

fn broken(paragraph: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        if column > 0 {
            let fits = column + 1 + word.len() <= width;
            lines.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        lines.push_str(word);
        column += word.len();
    }
    lines
}

fn build(command: &'static Command) -> clap::Command {
    let long = format!("{}\n\n{}", command.about, wrapped(command.long, WIDTH));
    clap::Command::new(command.name)
        .about(command.about)
        .long_about(long.trim_end().to_owned())
        .disable_help_subcommand(true)
        .subcommand_required(!command.inner.is_empty())
        .args(command.rows.iter().map(argument))
        .subcommands(command.inner.iter().map(build))
}

fn argument(row: &'static Row) -> Arg {
    let mut arg = Arg::new(row.name).help(row.about);
    if !row.long.is_empty() {
        arg = arg.long_help(format!("{}\n\n{}", row.about, wrapped(row.long, WIDTH - INDENT)));
    }
    arg = match row.shape {
        Shape::Needed => arg.required(true).value_name(row.name),
        Shape::Maybe => arg.value_name(row.name),
        Shape::Many => {
            arg.required(true).value_name(row.name).action(ArgAction::Append).num_args(1..)
        }
        Shape::Option => {
            let negative = matches!(row.value, Value::Speed);
            arg.long(row.name).value_name(value_name(row.value)).allow_negative_numbers(negative)
        }
        Shape::Options => {
            arg.long(row.name).value_name(value_name(row.value)).action(ArgAction::Append)
        }
        Shape::Switch => return arg.long(row.name).action(ArgAction::SetTrue),
    };
    if let Some(typed) = row.default {
        arg = arg.default_value(typed).hide_default_value(typed.is_empty());
    }
    arg.value_parser(parser(row))
}

/// How a value is called in usage lines.
pub(crate) fn value_name(value: Value) -> &'static str {
    match value {
        Value::Nothing => "",
        Value::Text => "TEXT",
        Value::Path => "PATH",
        Value::Size => "SIZE",
        Value::Rate => "RATE",
        Value::Time => "TIME",
        Value::Count(..) => "N",
        Value::Speed => "SPEED",
        Value::Address => "ADDRESS",
        Value::Url => "URL",
        Value::Arrivals => "ARRIVALS",
        Value::Choice(_) => "WORD",
    }
}

fn parser(row: &Row) -> ValueParser {
    match row.value {
        // Only an option whose default is "nothing" may be given as nothing.
        Value::Text if row.default == Some("") => ValueParser::string(),
        Value::Nothing | Value::Text | Value::Url => NonEmptyStringValueParser::new().into(),
        Value::Path => clap::value_parser!(PathBuf),
        Value::Size => ValueParser::new(ByteCount::from_str),
        Value::Rate => ValueParser::new(BitRate::from_str),
        Value::Time => ValueParser::new(parse_duration),
        Value::Count(least, most) => ValueParser::new(move |text: &str| count(text, least, most)),
        Value::Speed => ValueParser::new(speed),
        Value::Address => ValueParser::new(address),
        Value::Arrivals => ValueParser::new(Arrivals::from_str),
        Value::Choice(words) => PossibleValuesParser::new(
            words.iter().map(|(word, about)| PossibleValue::new(*word).help(*about)),
        )
        .into(),
    }
}

fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a whole number from {least} to {most}"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (1.0 / 64.0..=64.0).contains(&speed.abs()));
    speed.ok_or_else(|| {
        format!("'{text}' is not a speed such as 2, 0.5 or -1 (backwards), at most 64")
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not an address such as 127.0.0.1:8080 or [::]:8080"))
}

/// A wrong command line in words: what is wrong, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) sentence: String,
    pub(crate) hint: String,
}

/// Puts clap's error about these words as one sentence and a hint.
pub(crate) fn complaint(error: &clap::Error, words: &[String]) -> Complaint {
    let text = |kind| error.get(kind).map(plain).unwrap_or_default();
    let arg = bare(&text(ContextKind::InvalidArg));
    let value = text(ContextKind::InvalidValue);
    let sentence = match error.kind() {
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{arg}: {why}")
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{arg} needs a value"),
        ErrorKind::InvalidValue => {
            format!("{arg}: '{value}' is not one of {}", text(ContextKind::ValidValue))
        }
        ErrorKind::UnknownArgument if arg.starts_with('-') => format!("unknown option '{arg}'"),
        ErrorKind::UnknownArgument => format!("unexpected argument '{arg}'"),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command '{}'", text(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing".to_owned()
        }
        ErrorKind::TooManyValues => format!("{arg} takes no value"),
        ErrorKind::ArgumentConflict => format!("{arg} is given twice"),
        _ => first_line(error),
    };
    Complaint { sentence, hint: hint(error, words) }
}

fn missing(error: &clap::Error) -> String {
    let names: Vec<String> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().map(|name| bare(name)).collect(),
        other => other.map(plain).into_iter().collect(),
    };
    match names.split_last() {
        Some((last, [])) => format!("{last} is missing"),
        Some((last, before)) => format!("{} and {last} are missing", before.join(", ")),
        None => "something is missing".to_owned(),
    }
}

fn hint(error: &clap::Error, words: &[String]) -> String {
    let suggested = [
        (ContextKind::SuggestedArg, ""),
        (ContextKind::SuggestedSubcommand, "tenuto "),
        (ContextKind::SuggestedValue, ""),
    ]
    .iter()
    .find_map(|(kind, before)| Some(format!("{before}{}", plain(error.get(*kind)?))));
    suggested.map_or_else(
        || format!("`{} --help` says how it is used", meant(words)),
        |word| format!("did you mean `{word}`?"),
    )
}

/// The command that is meant, as far as the words name one: `tenuto disk show`.
fn meant(words: &[String]) -> String {
    let mut name = "tenuto".to_owned();
    let mut at = command();
    for word in words {
        let Some(inner) = at.find_subcommand(word) else { break };
        name = format!("{name} {word}");
        at = inner.clone();
    }
    name
}

fn plain(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        ContextValue::StyledStr(text) => text.to_string(),
        ContextValue::StyledStrs(texts) => {
            texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// `--size <SIZE>` as `--size`, `<STORE>...` as `STORE`.
fn bare(arg: &str) -> String {
    let word = arg.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned()
}

fn first_line(error: &impl Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The values of a parsed command line, by the names in the table.
pub(crate) struct Args<'a>(pub(crate) &'a clap::ArgMatches);

impl Args<'_> {
    /// A value that the table says is there: needed, or with a default.
    pub(crate) fn get<T: Clone + Send + Sync + Debug + 'static>(&self, name: &str) -> T {
        self.maybe(name).unwrap_or_else(|| panic!("the table promises a value for {name}"))
    }

    /// A value that may be there.
    pub(crate) fn maybe<T: Clone + Send + Sync + Debug + 'static>(&self, name: &str) -> Option<T> {
        self.0.get_one::<T>(name).cloned()
    }

    /// All values of what may come more than once.
    pub(crate) fn all<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Vec<T> {
        self.0.get_many::<T>(name).into_iter().flatten().cloned().collect()
    }

    /// Whether a switch is given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }

    /// Whether the command has this option and it is given, not left to its default.
    pub(crate) fn typed(&self, name: &str) -> bool {
        self.0.try_contains_id(name).is_ok()
            && self.0.value_source(name) == Some(ValueSource::CommandLine)
    }

    /// A positional path.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.get(name)
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name)
    }

    /// A whole number; the table's bounds make it fit.
    pub(crate) fn count<T: TryFrom<u64>>(&self, name: &str) -> T {
        let number: u64 = self.get(name);
        T::try_from(number).unwrap_or_else(|_| panic!("the table bounds {name} too widely"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(line: &str, expected: &Expect) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let all = std::iter::once("tenuto".to_owned()).chain(words.clone());
        let error = command().try_get_matches_from(all).expect_err("a wrong command line");
        let Complaint { sentence, hint } = complaint(&error, &words);
        expected.assert_eq(&format!("error: {sentence}\nhint: {hint}\n"));
    }

    #[test]
    fn complaints_say_what_to_do() {
        check(
            "",
            &expect![[r#"
            error: a command is missing
            hint: `tenuto --help` says how it is used
        "#]],
        );
        check(
            "injest film.store a.mkv",
            &expect![[r#"
            error: there is no command 'injest'
            hint: did you mean `tenuto ingest`?
        "#]],
        );
        check(
            "disk",
            &expect![[r#"
            error: a command is missing
            hint: `tenuto disk --help` says how it is used
        "#]],
        );
        check(
            "format a --destory",
            &expect![[r#"
            error: unknown option '--destory'
            hint: did you mean `--destroy`?
        "#]],
        );
        check(
            "serve a --admission vbrsym",
            &expect![[r#"
            error: --admission: 'vbrsym' is not one of time-domain, service-curve, vbrsim, rates, scan, grouped-sweeps, full-stroke, service-cycle, simple-maximum, instantaneous-maximum, time-domain-by-chance, chernoff, normal, overflow, observed, average, none
            hint: did you mean `vbrsim`?
        "#]],
        );
        check(
            "serve a --slot 1s --slot 2s",
            &expect![[r#"
            error: --slot is given twice
            hint: `tenuto serve --help` says how it is used
        "#]],
        );
        check(
            "disk show",
            &expect![[r#"
            error: DEVICE is missing
            hint: `tenuto disk show --help` says how it is used
        "#]],
        );
    }

    #[test]
    fn the_parser_is_sound() {
        command().debug_assert();
    }
}
