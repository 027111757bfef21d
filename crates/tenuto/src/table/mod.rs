//! The one table of commands and options.
//!
//! Everything that speaks of the command line is made from it: the parser (`cli`), `--help`, the
//! man pages and completions (`commands::shell`) and `docs/reference/cli.md` (`reference`). Each
//! row carries a command line that must parse and one that must not, with the error it must give;
//! the tests below run them all.
//!
//! No behaviour here: what a command does is in `commands`.

mod analysis;
mod disks;
mod emulation;
mod measured;
mod metering;
mod on_target;
mod published;
mod shell;
mod simulate;
mod stores;
mod studies;
mod transferred;
mod viewing;

/// Commands that belong together, as `tenuto --help` shows them.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) commands: &'static [Command],
}

/// All commands, in the order in which a newcomer needs them.
pub(crate) const GROUPS: &[Group] = if crate::WHOLE { ALL } else { LENT };

/// Of what is copied to hosts.
const LENT: &[Group] = &[Group { title: "Measuring", commands: metering::LENT }];

const ALL: &[Group] = &[
    Group { title: "Stores", commands: stores::COMMANDS },
    Group { title: "Serving and watching", commands: viewing::COMMANDS },
    Group { title: "Disks", commands: disks::COMMANDS },
    Group { title: "Measuring", commands: metering::COMMANDS },
    Group { title: "Simulation", commands: published::COMMANDS },
    Group { title: "This program", commands: shell::COMMANDS },
];

/// What Tenuto is, in one line.
pub(crate) const ABOUT: &str = "media storage that holds its rate";

/// What it goes on with.
pub(crate) const LONG: &str = "\
Lays films out on a raw disk or in one big file, serves them to many viewers over HTTP, and lets \
in only as many as the disk can hold, so that an admitted stream does not stall.";

/// A command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// One line, for lists.
    pub(crate) about: &'static str,
    /// Paragraphs, for its own help.
    pub(crate) long: &'static str,
    pub(crate) rows: &'static [Row],
    /// Commands under it; it then has no rows of its own.
    pub(crate) inner: &'static [Self],
}

/// An argument of a command.
pub(crate) struct Row {
    /// A long option's name without its dashes, or a positional's name in capitals.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) value: Value,
    /// As it would be typed.
    pub(crate) default: Option<&'static str>,
    /// One line.
    pub(crate) about: &'static str,
    /// What more there is to know; empty if nothing.
    pub(crate) long: &'static str,
    /// A command line after `tenuto` that uses it. Of a row that several commands share, `{}` is the
    /// name of the one that is spoken of.
    pub(crate) example: &'static str,
    /// A command line that misuses it, `{}` as in `example`, and the error.
    pub(crate) bad: (&'static str, &'static str),
}

/// Where an argument stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A positional that must be there.
    Needed,
    /// A positional that may be there.
    Maybe,
    /// One or more of the rest.
    Many,
    /// `--name VALUE`.
    Option,
    /// `--name VALUE`, as often as wanted.
    Options,
    /// `--name`.
    Switch,
}

/// What an argument's value is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// None: a switch.
    Nothing,
    /// Any text.
    Text,
    /// A file or device.
    Path,
    /// `40GiB`.
    Size,
    /// `8.5Mbps`.
    Rate,
    /// `500ms`.
    Time,
    /// `2`, `0.5` or `-1`: how fast something is shown.
    Speed,
    /// A whole number within these bounds.
    Count(u64, u64),
    /// `127.0.0.1:8080`.
    Address,
    /// `http://...`.
    Url,
    /// `poisson:500ms`.
    Arrivals,
    /// One of these words: (word, what it means).
    Choice(&'static [(&'static str, &'static str)]),
}

impl Row {
    const fn new(name: &'static str, shape: Shape, value: Value, about: &'static str) -> Self {
        Self { name, shape, value, default: None, about, long: "", example: "", bad: ("", "") }
    }

    const fn needed(name: &'static str, value: Value, about: &'static str) -> Self {
        Self::new(name, Shape::Needed, value, about)
    }

    const fn maybe(name: &'static str, value: Value, about: &'static str) -> Self {
        Self::new(name, Shape::Maybe, value, about)
    }

    const fn many(name: &'static str, value: Value, about: &'static str) -> Self {
        Self::new(name, Shape::Many, value, about)
    }

    const fn option(name: &'static str, value: Value, about: &'static str) -> Self {
        Self::new(name, Shape::Option, value, about)
    }

    const fn options(name: &'static str, value: Value, about: &'static str) -> Self {
        Self::new(name, Shape::Options, value, about)
    }

    const fn switch(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Shape::Switch, Value::Nothing, about)
    }

    const fn default(mut self, typed: &'static str) -> Self {
        self.default = Some(typed);
        self
    }

    const fn long(mut self, text: &'static str) -> Self {
        self.long = text;
        self
    }

    const fn example(mut self, line: &'static str) -> Self {
        self.example = line;
        self
    }

    const fn bad(mut self, line: &'static str, error: &'static str) -> Self {
        self.bad = (line, error);
        self
    }

    /// The example for one of the commands that have this row.
    pub(crate) fn example_of(&self, command: &str) -> String {
        self.example.replace("{}", command)
    }
}

/// `--json`, which every reporting command has.
const fn json(example: &'static str, bad: &'static str) -> Row {
    Row::switch("json", "Report as one JSON object on standard output")
        .long("The names in it are stable; docs/reference/json.md explains each.")
        .example(example)
        .bad(bad, "--json takes no value")
}

/// `--ca-file`, which every command has that speaks with servers.
const fn ca_file(example: &'static str, bad: &'static str) -> Row {
    Row::option("ca-file", Value::Path, "Trust only these authorities' certificates, in PEM")
        .long("Of https:// addresses. Without it those that this machine trusts.")
        .example(example)
        .bad(bad, "--ca-file needs a value")
}

/// `--insecure`, its opposite.
const fn insecure(example: &'static str, bad: &'static str) -> Row {
    Row::switch("insecure", "Believe whoever answers at an https:// address")
        .long("Encrypted all the same, but nobody knows for whom.")
        .example(example)
        .bad(bad, "--insecure takes no value")
}

/// `--cert-file`, which every command has that speaks with servers.
const fn cert_file(example: &'static str, bad: &'static str) -> Row {
    Row::option("cert-file", Value::Path, "One's own certificate, in PEM, for a server that asks")
        .long(
            "Of https:// addresses. Behind it those that lead to an authority which the server trusts. All \
             viewers show the same.",
        )
        .example(example)
        .bad(bad, "--cert-file needs a value")
}

/// `--key-file`, which goes with it.
const fn key_file(example: &'static str, bad: &'static str) -> Row {
    Row::option("key-file", Value::Path, "The key to --cert-file, in PEM, not locked")
        .long("Without it in that file, too.")
        .example(example)
        .bad(bad, "--key-file needs a value")
}

/// `--switching`, which every command has that plays titles.
const fn switching(example: &'static str, bad: &'static str) -> Row {
    Row::option("switching", Value::Choice(SWITCHING), "How players change between renditions")
        .default("never")
        .long(
            "docs/reference/play.md says what the rule is, and which pieces count as smaller than they \
             had to be.",
        )
        .example(example)
        .bad(bad, "--switching: 'bola' is not one of never, hls.js")
}

/// A test compares these with `player::Switching`.
const SWITCHING: &[(&str, &str)] = &[
    ("never", "each stays with the one it was offered first (DASH: the largest)"),
    ("hls.js", "by the rate at which pieces came and what is buffered, as hls.js does"),
];

/// All rows, each with the words of its command.
#[cfg(test)]
pub(crate) fn all_rows() -> Vec<(Vec<&'static str>, &'static Row)> {
    fn add(
        path: &[&'static str],
        command: &'static Command,
        rows: &mut Vec<(Vec<&'static str>, &'static Row)>,
    ) {
        let path: Vec<&'static str> = path.iter().copied().chain([command.name]).collect();
        rows.extend(command.rows.iter().map(|row| (path.clone(), row)));
        for inner in command.inner {
            add(&path, inner, rows);
        }
    }
    let mut rows = Vec::new();
    for command in GROUPS.iter().flat_map(|group| group.commands) {
        add(&[], command, &mut rows);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use clap::parser::ValueSource;

    fn parse(line: &str) -> Result<clap::ArgMatches, clap::Error> {
        cli::command()
            .try_get_matches_from(std::iter::once("tenuto").chain(line.split_whitespace()))
    }

    #[test]
    fn every_example_parses_and_uses_its_option() {
        for (path, row) in all_rows() {
            let example = row.example_of(path.last().expect("the command's own name"));
            let mut matches = match parse(&example) {
                Ok(matches) => matches,
                Err(error) => panic!("{path:?} {}: `{example}`: {error}", row.name),
            };
            for word in &path {
                let (name, inner) = matches.remove_subcommand().expect("a command");
                assert_eq!(name, *word, "`{example}` is an example of another command");
                matches = inner;
            }
            let source = matches.value_source(row.name);
            assert_eq!(source, Some(ValueSource::CommandLine), "{} in `{example}`", row.name);
        }
    }

    #[test]
    fn every_misuse_gives_its_error() {
        for (path, row) in all_rows() {
            let (line, wanted) = row.bad;
            let line = line.replace("{}", path.last().expect("the command's own name"));
            let Err(error) = parse(&line) else {
                panic!("{path:?} {}: `{line}` parses", row.name);
            };
            let given = cli::complaint(&error, &[]).sentence;
            assert_eq!(given, wanted, "{path:?} {}: `{line}`", row.name);
        }
    }

    #[test]
    fn all_ways_of_switching_are_offered() {
        let known = player::Switching::NAMES.map(|(name, _)| name);
        assert_eq!(SWITCHING.iter().map(|(name, _)| *name).collect::<Vec<_>>(), known);
    }

    #[test]
    fn one_word_allows_overwriting() {
        for (path, row) in all_rows() {
            let suspicious = ["force", "overwrite", "yes", "clobber"].contains(&row.name);
            assert!(!suspicious, "{path:?}: --destroy is the one word that allows overwriting");
        }
    }

    #[test]
    fn help_reads_in_a_narrow_terminal() {
        for (path, row) in all_rows() {
            assert!(!row.about.is_empty() && row.about.len() <= 64, "{path:?} {}", row.name);
            assert!(!row.about.ends_with('.'), "{path:?} {}: no full stop", row.name);
        }
    }
}
