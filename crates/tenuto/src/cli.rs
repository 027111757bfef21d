//! The parser, made from the types in `args`; and its errors, as one sentence and a hint.

use crate::args::examples::{self, Example};
use crate::args::{ABOUT, CommandLine, GROUPS, LONG};
use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches};
use std::any::TypeId;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::show::wrapped;
use units::{BitRate, ByteCount, Reason};

/// Parses a command line, the program's name first.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<CommandLine, clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    CommandLine::from_arg_matches(&matches)
}

/// The parser of the whole program, with examples in its help.
pub(crate) fn command() -> clap::Command {
    // clap lists the commands in one column; a newcomer looks for them by task.
    CommandLine::command()
        .override_help(front_page())
        .mut_subcommands(|inner| finished("", inner))
        .subcommand_required(true)
        // Without any word the page is the answer, not an error: most users begin so.
        .arg_required_else_help(true)
}

/// Terminal width that help pages are made for.
pub(crate) const WIDTH: usize = 80;
/// Columns by which clap indents the help of an option.
const INDENT: usize = 10;

/// Adds to a derived command what cannot be declared in its type: value names by type, examples,
/// and lines that fit a terminal.
fn finished(before: &str, command: clap::Command) -> clap::Command {
    let name = format!("{before} {}", command.get_name()).trim_start().to_owned();
    let long = command.get_long_about().map(|text| wrapped(&text.to_string(), WIDTH));
    let shown = examples::of(&name);
    // `help` of the root takes the words of every level, so that no command needs one of its own.
    let mut command = command.disable_help_subcommand(true).mut_args(finished_arg);
    if let Some(long) = long {
        command = command.long_about(long);
    }
    if !shown.is_empty() {
        command = command.after_long_help(examples_text(&shown));
    }
    command.mut_subcommands(|inner| finished(&name, inner))
}

fn finished_arg(arg: Arg) -> Arg {
    // clap wraps by the width of the terminal, if at all; with one width the pages are the same in
    // a pipe, in a manual page and in the documentation.
    let long = arg.get_long_help().map(|text| wrapped(&text.to_string(), WIDTH - INDENT));
    let arg = match long {
        Some(long) => arg.long_help(long),
        None => arg,
    };
    match value_name(&arg) {
        Some(name) if !arg.is_positional() => arg.value_name(name),
        _ => arg,
    }
}

/// The name of an option's value in help pages, where its type gives one.
fn value_name(arg: &Arg) -> Option<&'static str> {
    // The derive names a value after its field, which tells a user less than the type.
    let named_by_user = arg
        .get_value_names()
        .is_some_and(|names| names[0].as_str() != arg.get_id().as_str().to_ascii_uppercase());
    if named_by_user || !arg.get_action().takes_values() {
        return None;
    }
    let parsed = arg.get_value_parser().type_id();
    let names = [
        (TypeId::of::<ByteCount>(), "SIZE"),
        (TypeId::of::<BitRate>(), "RATE"),
        (TypeId::of::<Duration>(), "TIME"),
        (TypeId::of::<PathBuf>(), "PATH"),
        (TypeId::of::<SocketAddr>(), "ADDRESS"),
        (TypeId::of::<u32>(), "N"),
        (TypeId::of::<u64>(), "N"),
        (TypeId::of::<usize>(), "N"),
    ];
    names.into_iter().find(|(of, _)| parsed == *of).map(|(_, name)| name)
}

fn examples_text(shown: &[Example]) -> String {
    let mut text = String::from("Examples:");
    for example in shown {
        let _ = write!(text, "\n  tenuto {}\n      {}", example.line, example.shows);
    }
    text
}

/// What `tenuto --help` prints: the commands by group, unlike clap's one long list.
fn front_page() -> String {
    let root = CommandLine::command();
    let mut page =
        format!("Tenuto: {ABOUT}\n\n{}\n\nUsage: tenuto COMMAND ...\n", wrapped(LONG, WIDTH));
    for (title, names) in GROUPS {
        let _ = write!(page, "\n{title}:\n");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let _ = writeln!(page, "  {:<12} {}", command.get_name(), about(command));
        }
    }
    page + FRONT_PAGE_END
}

/// The line about a command.
pub(crate) fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

const FRONT_PAGE_END: &str = "
Options:
  -h, --help     This page; after a command, that command's, as `tenuto help COMMAND`
  -V, --version  The version, as `tenuto version`

First steps:
  tenuto format film.store --size 2GiB
  tenuto ingest film.store film.mkv
  tenuto serve film.store        then open http://127.0.0.1:8080/console/

Exit codes: 0 done, 1 failed, 2 usage, 3 refused by admission or not held, 4 damage found,
5 run invalid.
";

/// A parse error as a failure: what is wrong in one sentence, and a hint. `words` are those of the
/// command line after the program's name.
pub(crate) fn failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let arg = bare(&text(ContextKind::InvalidArg));
    let value = text(ContextKind::InvalidValue);
    let sentence = match error.kind() {
        ErrorKind::ValueValidation => {
            let source = error.source();
            let why = source.map(ToString::to_string).unwrap_or_default();
            let reason = source.and_then(|source| source.downcast_ref::<Reason>());
            let of_value = reason.and_then(|reason| reason.hint.clone());
            let hint = of_value.unwrap_or_else(|| hint(error, words));
            return Failure::usage(format!("{arg}: {why}")).hint(hint);
        }
        // clap reports a missing value as an empty one that is not valid.
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
        // To clap an option that is given twice conflicts with itself.
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg);
            let other = other.split(", ").next().map(bare).unwrap_or_default();
            match other.is_empty() || other == arg {
                true => format!("{arg} is given twice"),
                false => format!("{arg} and {other} exclude each other"),
            }
        }
        // clap does not say which argument it is; some options take any bytes.
        ErrorKind::InvalidUtf8 => {
            let wrong = words.iter().filter(|word| word.to_str().is_none());
            let wrong: Vec<String> = wrong.map(|word| format!("'{}'", word.display())).collect();
            let hint = "it has bytes that are no letters: rename it, or give another name for it";
            return Failure::usage(format!("not UTF-8: {}", wrong.join(", "))).hint(hint);
        }
        _ => first_line(error),
    };
    Failure::usage(sentence).hint(hint(error, words))
}

fn missing(error: &clap::Error) -> String {
    let names: Vec<String> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().map(|name| bare(name)).collect(),
        other => other.map(ToString::to_string).into_iter().collect(),
    };
    match names.split_last() {
        Some((last, [])) => format!("{last} is missing"),
        Some((last, before)) => format!("{} and {last} are missing", before.join(", ")),
        None => "something is missing".to_owned(),
    }
}

fn hint(error: &clap::Error, words: &[OsString]) -> String {
    if error.kind() == ErrorKind::InvalidSubcommand {
        let word = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
        return command_hint(&meant(words), &word.unwrap_or_default());
    }
    if error.kind() == ErrorKind::MissingSubcommand
        || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        return format!("`{} --help` lists its commands", meant(words));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(hint) = value_hint(error, words)
    {
        return hint;
    }
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    suggested.iter().find_map(|kind| error.get(*kind)).map_or_else(
        || format!("`{} --help` shows its arguments", meant(words)),
        |word| format!("did you mean `{word}`?"),
    )
}

/// How a value that begins with `-` is given to the option in front of it.
fn value_hint(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let arg = error.get(ContextKind::InvalidArg)?.to_string();
    let at = words.iter().position(|word| word.to_str().is_some_and(|it| it.starts_with(&arg)))?;
    let (option, value) = (words.get(at.checked_sub(1)?)?.to_str()?, words[at].to_str()?);
    let long = option.strip_prefix("--")?;
    let mut command = command();
    for name in meant(words).split(' ').skip(1) {
        command = command.find_subcommand(name)?.clone();
    }
    let found = command.get_arguments().find(|it| it.get_long() == Some(long))?;
    let takes = found.get_action().takes_values();
    takes.then(|| format!("a value that begins with '-' is given as `{option}={value}`"))
}

/// What to do about `word`, which is no command of `parent`: the command that is meant, if one is,
/// and how to list all.
fn command_hint(parent: &str, word: &str) -> String {
    let mut at = command();
    for name in parent.split(' ').skip(1) {
        at = at.find_subcommand(name).expect("it was found before").clone();
    }
    let list = if parent == "tenuto" {
        "`tenuto help` lists all commands".to_owned()
    } else {
        format!("`{parent} --help` lists its commands")
    };
    let other = OTHER_WORDS.iter().find(|(words, _)| words.split(' ').any(|other| other == word));
    let found = match other {
        Some((_, name)) if parent == "tenuto" => Some((*name).to_owned()),
        // clap suggests names with few letters in common, such as `format` for `frobnicate`.
        _ => store::nearest(word, at.get_subcommands().map(|inner| inner.get_name().to_owned())),
    };
    found.map_or(list.clone(), |name| format!("did you mean `{parent} {name}`? {list}"))
}

/// Words of other programs for a command.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("create init mkfs new", "format"),
    ("add import put upload", "ingest"),
    ("capture dvr", "record"),
    ("list dir titles", "ls"),
    ("show stat status", "info"),
    ("get extract download", "export"),
    ("delete del remove", "rm"),
    ("mv move", "rename"),
    ("rebalance balance replicate mirror drain", "library"),
    ("s3 push fill archive", "bucket"),
    ("fsck verify scrub repair", "check"),
    ("run server start", "serve"),
    ("redirect steer balancer", "director"),
    ("nodes fleet placement", "cluster"),
    ("view watch", "play"),
    ("bench benchmark measure", "meter"),
];

/// The command that is meant, as far as the words name one: `tenuto disk show`.
fn meant(words: &[OsString]) -> String {
    let mut name = "tenuto".to_owned();
    let mut at = command();
    for word in words {
        // The first word that is no command is an argument, and words after it name nothing.
        let Some(inner) = at.find_subcommand(word) else { break };
        name = format!("{name} {}", word.display());
        at = inner.clone();
    }
    name
}

/// `--size <SIZE>` as `--size`, `--thumbnails[=<INTERVAL>]` as `--thumbnails`, `<STORE>...` as
/// `STORE`.
fn bare(arg: &str) -> String {
    let word = arg.split_whitespace().next().unwrap_or_default();
    let word = word.split_once("[=").map_or(word, |(option, _)| option);
    word.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned()
}

fn first_line(error: &impl Display) -> String {
    let text = error.to_string();
    // The other lines are clap's usage and tip, which the hint replaces.
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::os::unix::ffi::OsStringExt;

    fn check(line: &str, expected: &Expect) {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let all = std::iter::once("tenuto".into()).chain(words.clone());
        let error = parse(all).err().expect("a wrong command line");
        let Failure { sentence, hint, .. } = failure(&error, &words);
        let hint = hint.unwrap_or_default();
        expected.assert_eq(&format!("error: {sentence}\nhint: {hint}\n"));
    }

    #[test]
    fn the_argument_that_is_not_utf_8_is_named() {
        let words: Vec<OsString> = ["meter", "run", "--target"].map(OsString::from).into();
        let words = [words, vec![OsString::from_vec(b"fi\xfflms".to_vec())]].concat();
        let all = std::iter::once("tenuto".into()).chain(words.clone());
        let error = parse(all).err().expect("a wrong command line");
        assert_eq!(failure(&error, &words).sentence, "not UTF-8: 'fi\u{fffd}lms'");
    }

    #[test]
    fn errors_say_what_to_do() {
        check(
            "injest film.store a.mkv",
            &expect![[r#"
            error: there is no command 'injest'
            hint: did you mean `tenuto ingest`? `tenuto help` lists all commands
        "#]],
        );
        check(
            "disk",
            &expect![[r#"
            error: a command is missing
            hint: `tenuto disk --help` lists its commands
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
            error: --admission: 'vbrsym' is not one of time-domain, service-curve, vbrsim, observed, none
            hint: did you mean `vbrsim`?
        "#]],
        );
        check(
            "token keys.json --max-height 720 --origin",
            &expect![[r#"
            error: --max-height and --origin exclude each other
            hint: `tenuto token --help` shows its arguments
        "#]],
        );
        check(
            "serve a --slot 1s --slot 2s",
            &expect![[r#"
            error: --slot is given twice
            hint: `tenuto serve --help` shows its arguments
        "#]],
        );
        check(
            "disk show",
            &expect![[r#"
            error: DEVICE is missing
            hint: `tenuto disk show --help` shows its arguments
        "#]],
        );
    }

    #[test]
    fn a_command_that_does_not_exist_is_corrected_only_if_one_is_meant() {
        for (parent, word, meant) in [
            ("tenuto", "serv", Some("serve")),
            ("tenuto", "fromat", Some("format")),
            ("tenuto", "calibrat", Some("calibrate")),
            ("tenuto", "list", Some("ls")),
            ("tenuto", "delete", Some("rm")),
            ("tenuto", "frobnicate", None),
            ("tenuto", "x", None),
            ("tenuto meter", "ruun", Some("run")),
            ("tenuto meter", "list", None),
        ] {
            let hint = command_hint(parent, word);
            let expected = meant.map(|name| format!("did you mean `{parent} {name}`? "));
            assert!(hint.starts_with(expected.as_deref().unwrap_or("`tenuto ")), "{word}: {hint}");
            assert!(hint.contains(" lists "), "{word}: {hint}");
        }
    }

    #[test]
    fn other_words_are_no_commands_and_lead_to_one() {
        let root = command();
        for (words, name) in OTHER_WORDS {
            assert!(root.find_subcommand(name).is_some(), "{name}");
            for word in words.split(' ') {
                assert!(root.find_subcommand(word).is_none(), "{word}");
            }
        }
    }

    #[test]
    fn the_parser_is_sound() {
        command().debug_assert();
    }

    /// Every argument with the words of its command.
    fn all_args(before: &str, command: &clap::Command, all: &mut Vec<(String, Arg)>) {
        for inner in command.get_subcommands() {
            let name = format!("{before} {}", inner.get_name());
            all.extend(inner.get_arguments().map(|arg| (name.clone(), arg.clone())));
            all_args(&name, inner, all);
        }
    }

    #[test]
    fn help_is_short_and_one_word_allows_overwriting() {
        let mut all = Vec::new();
        all_args("tenuto", &command(), &mut all);
        for (name, arg) in all {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let id = arg.get_id();
            assert!(!help.is_empty() && help.len() <= 72, "{name} {id}: {} columns", help.len());
            assert!(!help.ends_with('.'), "{name} {id}: no full stop");
            let other = ["force", "overwrite", "yes", "clobber"].contains(&id.as_str());
            assert!(!other, "{name}: --destroy is the one word that allows overwriting");
        }
    }

    #[test]
    fn every_command_is_in_a_group() {
        let root = command();
        let mut named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut known: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
