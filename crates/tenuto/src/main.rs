//! `tenuto`: the command line.
//!
//! Typed arguments in (`args`, parsed by `cli`), one call of the crates below (`commands`),
//! rendering out (`out`). Knowledge about media, disks or schedules does not belong here.

mod access;
mod args;
mod cli;
mod commands;
mod failure;
mod limits;
mod out;
mod reference;
mod stopping;

use clap::error::ErrorKind;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Kept beside the parser: the hint of a parse error names the command as far as the words do.
    let words: Vec<OsString> = std::env::args_os().collect();
    let failure = match cli::parse(words.clone()) {
        Ok(line) => commands::run(line.command).err(),
        // clap treats what help and version print as errors.
        Err(error)
            if words.len() <= 1
                || matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            out::print(&error.to_string());
            None
        }
        Err(error) => Some(cli::failure(&error, words.get(1..).unwrap_or_default())),
    };
    let Some(failure) = failure else { return ExitCode::SUCCESS };
    out::complain(&failure);
    ExitCode::from(failure.code as u8)
}
