//! The reference of the command line as Markdown, from the table: `docs/reference/cli.md`.

use crate::cli::value_name;
use crate::table::{Command, GROUPS, LONG, Row, Shape, Value};
use std::fmt::Write;

/// The whole page.
pub(crate) fn markdown() -> String {
    let mut page = String::from(HEAD);
    let _ = writeln!(page, "{LONG}\n");
    for group in GROUPS {
        let _ = writeln!(page, "| {} | |\n|---|---|", group.title);
        for command in group.commands {
            let anchor = format!("tenuto-{}", command.name);
            let _ = writeln!(page, "| [`{}`](#{anchor}) | {} |", command.name, command.about);
        }
        page.push('\n');
    }
    for command in GROUPS.iter().flat_map(|group| group.commands) {
        section(&mut page, "tenuto", command);
    }
    page.trim_end().to_owned() + "\n"
}

fn section(page: &mut String, before: &str, command: &Command) {
    let name = format!("{before} {}", command.name);
    let _ = writeln!(page, "## {name}\n\n{}.", command.about);
    if !command.long.is_empty() {
        let _ = writeln!(page, "\n{}", command.long);
    }
    if command.inner.is_empty() {
        let _ = writeln!(page, "\n```\n{}\n```", usage(&name, command));
    }
    let _ = writeln!(page);
    if !command.rows.is_empty() {
        let _ = writeln!(page, "| argument | default | what |\n|---|---|---|");
        for row in command.rows {
            let _ = writeln!(page, "{}", table_row(command.name, row));
        }
        let _ = writeln!(page);
    }
    for inner in command.inner {
        section(page, &name, inner);
    }
}

fn usage(name: &str, command: &Command) -> String {
    let mut words = vec![name.to_owned()];
    for row in command.rows {
        words.push(match row.shape {
            Shape::Needed => row.name.to_owned(),
            Shape::Maybe => format!("[{}]", row.name),
            Shape::Many => format!("{}...", row.name),
            Shape::Option => format!("[--{} {}]", row.name, value_name(row.value)),
            Shape::Options => format!("[--{} {}]...", row.name, value_name(row.value)),
            Shape::Switch => format!("[--{}]", row.name),
        });
    }
    words.join(" ")
}

fn table_row(command: &str, row: &Row) -> String {
    let name = match row.shape {
        Shape::Needed | Shape::Maybe | Shape::Many => row.name.to_owned(),
        Shape::Option | Shape::Options => format!("--{} {}", row.name, value_name(row.value)),
        Shape::Switch => format!("--{}", row.name),
    };
    let default = match row.default {
        Some(typed) if !typed.is_empty() => format!("`{typed}`"),
        _ => String::new(),
    };
    let mut what = format!("{}.", row.about);
    if !row.long.is_empty() {
        let _ = write!(what, " {}", row.long);
    }
    if let Value::Choice(words) = row.value {
        for (word, about) in words {
            let _ = write!(what, "<br>`{word}`");
            if !about.is_empty() {
                let _ = write!(what, ": {about}");
            }
        }
    }
    format!("| `{name}` | {default} | {what} Example: `tenuto {}` |", row.example_of(command))
}

const HEAD: &str = "\
<!-- Written by `cargo xtask docs` from crates/tenuto/src/table/. Change it there. -->
# The command line

Sizes are written `64KiB`, `40GiB` or `2TB`, rates `800kbps` or `8.5Mbps`, times `500ms`, `2s` or
`1h`. Reports go to standard output, notes, errors and progress to standard error. With `--json` the
report is one object; [json.md](json.md) explains it. [exit-codes.md](exit-codes.md) explains how a
command can end.

";

#[cfg(test)]
mod tests {
    #[test]
    fn the_written_reference_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == super::markdown(),
            "docs/reference/cli.md is not what the table says; write it anew with: make docs"
        );
    }
}
