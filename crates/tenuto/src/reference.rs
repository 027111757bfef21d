//! The reference of the command line as Markdown, from the parser: `docs/reference/cli.md`.
//!
//! Options that several commands share are described once, at the end, under the heading that their
//! struct gives them; a command's section names the headings. Subcommands with the same options
//! (the studies of `meter study`) are one section with a table.

use crate::args::{GROUPS, LONG, examples};
use crate::cli;
use clap::{Arg, Command};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole page.
pub(crate) fn markdown() -> String {
    let root = cli::command();
    let mut page = format!("{HEAD}{LONG}\n\n");
    for (title, names) in GROUPS {
        let _ = writeln!(page, "| {title} | |\n|---|---|");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let name = command.get_name();
            let about = cli::about(command);
            let _ = writeln!(page, "| [`{name}`](#tenuto-{name}) | {about} |");
        }
        page.push('\n');
    }
    // Filled by the sections: a group is complete when all commands that share it are written.
    let mut shared = SharedOptions::default();
    for command in GROUPS.iter().flat_map(|(_, names)| *names) {
        let command = root.find_subcommand(command).expect("a test compares the groups");
        section(&mut page, "", command, &mut shared);
    }
    page += &shared_sections(&shared);
    page.trim_end().to_owned() + "\n"
}

/// Groups of shared options by heading, each with its arguments in the order of the sections.
type SharedOptions = BTreeMap<String, Vec<Arg>>;

fn section(page: &mut String, before: &str, command: &Command, shared: &mut SharedOptions) {
    let name = format!("{before} {}", command.get_name()).trim_start().to_owned();
    let _ = writeln!(page, "## tenuto {name}\n\n{}\n", description(command));
    let inner: Vec<&Command> = command.get_subcommands().collect();
    // Two subcommands with equal options are still easier to read as two sections.
    let like_first = |other: &&Command| inner.first().is_some_and(|first| ids(other) == ids(first));
    let mut alike: Vec<&Command> = inner.iter().copied().filter(like_first).collect();
    if alike.len() <= 2 {
        alike.clear();
    }
    if let Some(first) = alike.first() {
        let _ = writeln!(page, "| {name} | |\n|---|---|");
        for one in &alike {
            let text = description(one).replace("\n\n", " ");
            let _ = writeln!(page, "| `{}` | {text} |", one.get_name());
        }
        let usage = format!("{name} NAME");
        let _ = writeln!(page);
        arguments(page, &usage, first, shared);
    } else if inner.is_empty() {
        arguments(page, &name, command, shared);
    }
    shown(page, &name);
    // A subcommand in the table has no section of its own.
    let listed = |one: &&Command| alike.iter().any(|other| other.get_name() == one.get_name());
    for inner in inner.iter().filter(|one| !listed(one)) {
        section(page, &name, inner, shared);
    }
}

fn description(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let text = about.map(ToString::to_string).unwrap_or_default();
    // The parser has wrapped the text for a terminal; Markdown has no line breaks in a paragraph.
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    if text.ends_with(['.', ')', ':']) || text.contains("\n\n") { text } else { text + "." }
}

fn ids(command: &Command) -> Vec<&str> {
    command.get_arguments().map(|arg| arg.get_id().as_str()).collect()
}

/// The usage of a command, a table of its own arguments, and the names of the groups that it
/// shares.
fn arguments(page: &mut String, name: &str, command: &Command, shared: &mut SharedOptions) {
    let _ = writeln!(page, "```text\n{}\n```\n", usage(name, command));
    let (own, common): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .partition(|arg| group(arg).is_none());
    let mut groups: Vec<&str> = Vec::new();
    for arg in common {
        let Some(group) = group(arg) else { continue };
        let known = shared.entry(group.to_owned()).or_default();
        // A command may have only some options of a group; the section at the end has all of them.
        if known.iter().all(|other| other.get_id() != arg.get_id()) {
            known.push(arg.clone());
        }
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    if !own.is_empty() {
        let _ = writeln!(page, "| argument | default | meaning |\n|---|---|---|");
        for arg in own {
            let _ = writeln!(page, "{}", row(arg));
        }
        let _ = writeln!(page);
    }
    let link =
        |group: &&str| format!("[{}](#{})", lowered(group), group.to_lowercase().replace(' ', "-"));
    let links: Vec<String> = groups.iter().map(link).collect();
    if !links.is_empty() {
        let _ = writeln!(page, "And {}.\n", links.join(", "));
    }
}

/// The heading under which an option is described once for all commands.
fn group(arg: &Arg) -> Option<&str> {
    let common = ["json", "destroy", "replica", "seed", "switching"];
    match arg.get_help_heading() {
        Some(heading) => Some(heading),
        None if common.contains(&arg.get_id().as_str()) => Some(COMMON),
        None => None,
    }
}

const COMMON: &str = "Common options";

/// A heading within a sentence: acronyms stay.
fn lowered(heading: &str) -> String {
    let acronym = heading.chars().nth(1).is_some_and(char::is_uppercase);
    if acronym { heading.to_owned() } else { heading.to_lowercase() }
}

fn shared_sections(shared: &SharedOptions) -> String {
    let mut text = String::new();
    for (group, args) in shared {
        let _ = writeln!(text, "## {group}\n\n| option | default | meaning |\n|---|---|---|");
        for arg in args {
            let _ = writeln!(text, "{}", row(arg));
        }
        text.push('\n');
    }
    text
}

fn usage(name: &str, command: &Command) -> String {
    let mut words = vec![format!("tenuto {name}")];
    for arg in command.get_positionals() {
        words.push(named(arg));
    }
    if command.get_opts().next().is_some() {
        // After the command and before its arguments, as clap prints it.
        words.insert(1, "[OPTIONS]".to_owned());
    }
    words.join(" ")
}

/// An argument as usage lines show it.
fn named(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.first().map(ToString::to_string).unwrap_or_default();
    let many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
    let may_lack = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    match arg.get_long() {
        Some(long) if arg.get_action().takes_values() && may_lack => format!("--{long}[={value}]"),
        Some(long) if arg.get_action().takes_values() => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None if many => format!("{value}..."),
        None if arg.is_required_set() => value,
        None => format!("[{value}]"),
    }
}

fn row(arg: &Arg) -> String {
    let given = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults: Vec<_> = given.filter(|value| !value.is_empty()).collect();
    // To clap a flag has a default and possible values, those of a boolean, which nobody types.
    let takes = arg.get_action().takes_values();
    let default = match takes && !defaults.is_empty() {
        true => format!("`{}`", defaults.join(" ")),
        false => String::new(),
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = help.replace("\n\n", " ").replace('\n', " ");
    // Help lines have no full stop, as is usual in a terminal; in the table they are sentences.
    if !text.ends_with(['.', ')']) {
        text.push('.');
    }
    let possible = if takes { arg.get_possible_values() } else { Vec::new() };
    for value in possible.iter().filter(|value| !value.is_hide_set()) {
        let _ = write!(text, "<br>`{}`", value.get_name());
        if let Some(help) = value.get_help() {
            let _ = write!(text, ": {help}");
        }
    }
    format!("| `{}` | {default} | {text} |", named(arg))
}

fn shown(page: &mut String, name: &str) {
    let shown = examples::of(name);
    if shown.is_empty() {
        return;
    }
    page.push_str("```sh\n");
    for example in shown {
        let _ = writeln!(page, "# {}\ntenuto {}", example.shows, example.line);
    }
    page.push_str("```\n\n");
}

const HEAD: &str = "\
<!-- Written by `cargo xtask docs` from crates/tenuto/src/args/. Change it there. -->
# The command line

Sizes are written `64KiB`, `40GiB` or `2TB`, rates `800kbps` or `8.5Mbps`, times `500ms`, `2s` or
`1h`. Reports go to standard output, notes, errors and progress to standard error. With `--json` the
report is one object; [json.md](json.md) explains it. [exit-codes.md](exit-codes.md) explains how a
command can end. `tenuto help COMMAND` prints what is here in the terminal, `tenuto man COMMAND` as a
manual page. Options that several commands share are at the end.

";

#[cfg(test)]
mod tests {
    /// `make docs` writes the page anew.
    #[test]
    fn the_written_reference_is_current() {
        expect_test::expect_file!["../../../docs/reference/cli.md"].assert_eq(&super::markdown());
    }
}
