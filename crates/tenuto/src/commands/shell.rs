//! `completions` and `man`: shell completions, manual pages and the reference.

use crate::args::simulation::{CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::{cli, config_file, out, reference};
use std::path::Path;
use std::{fs, io};

pub(crate) fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "tenuto", &mut script);
    out::print(&String::from_utf8_lossy(&script));
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.out {
        return write_pages(directory);
    }
    let page = match args {
        ManArgs { markdown: true, .. } => reference::markdown(),
        ManArgs { config_schema: true, .. } => config_file::schema(),
        ManArgs { openapi: true, .. } => format!("{:#}\n", server::openapi()),
        ManArgs { command, .. } => manual(command)?,
    };
    out::print(&page);
    Ok(())
}

/// The manual page of a command named by its words; without any that of the program.
fn manual(words: &[String]) -> Result<String, Failure> {
    // `help` is no page of its own: its subcommands are those of the program.
    let mut command = cli::command().disable_help_subcommand(true);
    let mut name = command.get_name().to_owned();
    for word in words {
        command = command.find_subcommand(word).cloned().ok_or_else(|| {
            Failure::usage(format!("there is no command '{word}'"))
                .hint(format!("`{name} --help` lists the commands"))
        })?;
        name = format!("{name} {word}");
    }
    Ok(page(command, name))
}

/// The manual page of a command with all its words, such as `tenuto meter run`.
fn page(command: clap::Command, name: String) -> String {
    // `tenuto help` prints these pages; it has none of its own.
    let without_help = command.disable_help_subcommand(true);
    // Manual pages of subcommands are named with hyphens (`man tenuto-disk-show`); the synopsis
    // keeps the words as they are typed.
    let named = without_help.name(name.replace(' ', "-")).bin_name(name);
    let mut page = Vec::new();
    clap_mangen::Man::new(named)
        .date("")
        .render(&mut page)
        .expect("writing to memory does not fail");
    String::from_utf8_lossy(&page).into_owned()
}

/// Writes the manual pages of the program and of every command and subcommand.
fn write_pages(directory: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(format!("cannot write {}: {error}", path.display()))
            .hint("name a directory in which you may write")
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let mut waiting = vec![("tenuto".to_owned(), cli::command())];
    while let Some((name, command)) = waiting.pop() {
        let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        waiting.extend(inner.map(|inner| (format!("{name} {}", inner.get_name()), inner.clone())));
        let path = directory.join(format!("{}.1", name.replace(' ', "-")));
        fs::write(&path, page(command, name)).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The pages of a command and of its subcommands, by name, such as `tenuto-disk-show`.
    fn pages(command: &clap::Command, words: &[String], all: &mut BTreeMap<String, String>) {
        let page = manual(words).unwrap_or_else(|error| panic!("man {words:?}: {error:?}"));
        let name = std::iter::once("tenuto").chain(words.iter().map(String::as_str));
        all.insert(name.collect::<Vec<_>>().join("-"), page.replace("\\-", "-"));
        for inner in command.get_subcommands() {
            pages(inner, &[words, &[inner.get_name().to_owned()]].concat(), all);
        }
    }

    #[test]
    fn every_page_that_a_page_names_is_there() {
        let mut all = BTreeMap::new();
        pages(&cli::command(), &[], &mut all);
        let named = |page: &String| -> Vec<String> {
            page.split_whitespace()
                .filter_map(|word| word.strip_suffix("(1)"))
                .map(str::to_owned)
                .collect()
        };
        assert!(all.values().flat_map(named).count() > 40, "pages name their subcommands");
        for (name, page) in &all {
            for other in named(page) {
                assert!(all.contains_key(&other), "{name} names {other}");
            }
        }
    }
}
