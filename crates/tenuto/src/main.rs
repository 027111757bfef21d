//! `tenuto`: the command line.
//!
//! Typed arguments in (`args`, parsed by `cli`), one call of the crates below (`commands`),
//! rendering out (`out`). Knowledge about media, disks or schedules does not belong here.

mod access;
mod args;
mod cli;
mod commands;
mod config_file;
mod failure;
mod limits;
mod out;
mod reference;
mod spread;
mod stopping;
mod successor;

use clap::error::ErrorKind;
use config_file::ExpandedLine;
use failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Err(failure) = run(std::env::args_os().collect()) else { return ExitCode::SUCCESS };
    out::complain(&failure);
    ExitCode::from(failure.code as u8)
}

fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let without_any = words.len() <= 1;
    let line = ExpandedLine::new(words, std::env::vars_os())?;
    match cli::parse(line.words.clone()) {
        Ok(parsed) => commands::run(parsed.command),
        // clap treats what help and version print as errors.
        Err(error)
            if without_any
                || matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            out::print(&error.to_string());
            Ok(())
        }
        // The hint of a parse error names the command as far as the words do.
        Err(error) => {
            Err(line.located(cli::failure(&error, line.words.get(1..).unwrap_or_default())))
        }
    }
}
