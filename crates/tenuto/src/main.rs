//! `tenuto`: the command line.
//!
//! Glue only: the table says what can be typed (`table`), the parser is made from it (`cli`), a
//! command calls the rooms below (`commands`) and shows what they say (`out`). What a command
//! knows about media, disks or schedules is wrong here.

mod access;
mod cli;
mod commands;
mod failure;
mod limits;
mod out;
mod reference;
mod show;
mod stopping;
mod table;

use clap::error::ErrorKind;
use failure::{Code, Failure};
use std::process::ExitCode;

/// Whether this is all of the program, or what `make agent` builds of it: the part that is copied to
/// many hosts, `meter agent` and what it runs. What stands behind this being false is not compiled in.
const WHOLE: bool = cfg!(feature = "whole");

fn main() -> ExitCode {
    let matches = match cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return not_parsed(&error),
    };
    match commands::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out::complain(&failure);
            ExitCode::from(failure.code as u8)
        }
    }
}

/// Help and version are asked for with options that clap treats as errors.
fn not_parsed(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        out::print(&error.to_string());
        return ExitCode::SUCCESS;
    }
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let complaint = cli::complaint(error, &words);
    out::complain(&Failure::usage(complaint.sentence).hint(complaint.hint));
    ExitCode::from(Code::Usage as u8)
}
