//! The project's own chores: `cargo xtask check | docs`.
//!
//! Small on purpose: it calls ordinary tools and looks at text, so that it compiles in seconds.
//! What a user of Tenuto needs is not here but in `tenuto`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for developers")]

mod checks;
mod circles;
mod crate_table;
mod generate;
mod item_docs;
mod names;
mod source;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK, where TASK is one of
  check   repository checks: crate table, import circles, headers, item docs, unsafe, leaks
  docs    write docs/reference/cli.md anew from the table of commands
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some("check") => checks::run(&root()),
        Some("docs") => generate::run(&root()),
        Some("help" | "--help" | "-h") | None => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprint!("error: there is no task '{other}'\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: this package lies one below. Cargo says at run time where: with a shared
/// target folder the program may have been built in another checkout.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let mut root = package.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    root.pop();
    root
}
