//! What the commands do: one file per family, glue only.

mod shell;

use crate::cli::Args;
use crate::failure::Failure;

/// Runs the command of a parsed command line.
pub(crate) fn run(matches: &clap::ArgMatches) -> Result<(), Failure> {
    let (name, inner) = matches.subcommand().expect("the parser wants a command");
    let args = Args(inner);
    match name {
        "completions" => shell::completions(&args),
        "man" => shell::man(&args),
        other => unreachable!("the table has no command {other}"),
    }
}
