//! The commands: one file per family, typed arguments in, one call, rendering out.

mod bucket;
mod calibrate;
mod check;
mod cluster;
mod director;
mod disk_show;
mod emulation;
mod library;
mod meter;
mod models;
mod mount;
mod plan;
mod play;
mod rebuild;
mod reproduce;
mod serve;
mod shell;
mod simulate;
mod stores;
mod token;
mod transfer;

use crate::args::RootCommand;
use crate::args::disks::DiskCommand;
use crate::args::simulation::SimulateCommand;
use crate::failure::Failure;
use crate::out;

/// Runs a parsed command.
pub(crate) fn run(command: RootCommand) -> Result<(), Failure> {
    match command {
        RootCommand::Format(args) => stores::format(&args),
        RootCommand::Ingest(args) => transfer::ingest(&args),
        RootCommand::Record(args) => transfer::record(&args),
        RootCommand::Ls(args) => stores::ls(&args),
        RootCommand::Info(args) => stores::info(&args),
        RootCommand::Export(args) => transfer::export(&args),
        RootCommand::Mount(args) => mount::mount(&args),
        RootCommand::Rm(args) => stores::rm(&args),
        RootCommand::Rename(args) => stores::rename(&args),
        RootCommand::Library(args) => library::library(&args),
        RootCommand::Bucket(command) => bucket::run(&command),
        RootCommand::Relabel(args) => stores::relabel(&args),
        RootCommand::Resize(args) => stores::resize(&args),
        RootCommand::Trim(args) => stores::trim(&args),
        RootCommand::Check(args) => check::check(&args),
        RootCommand::Serve(args) => serve::serve(&args),
        RootCommand::Director(args) => director::director(&args),
        RootCommand::Cluster(command) => cluster::run(&command),
        RootCommand::Token(args) => token::token(&args),
        RootCommand::Play(args) => play::play(&args),
        RootCommand::Calibrate(args) => calibrate::calibrate(&args),
        RootCommand::Plan(args) => plan::plan(&args),
        RootCommand::Disk(DiskCommand::Models(args)) => models::models(&args),
        RootCommand::Disk(DiskCommand::Show(args)) => disk_show::show(&args),
        RootCommand::Disk(DiskCommand::Emulate(args)) => emulation::emulate(&args),
        RootCommand::Disk(DiskCommand::Stats(args)) => emulation::stats(&args),
        RootCommand::Meter(command) => meter::run(command),
        RootCommand::Simulate(SimulateCommand::Admission(args)) => simulate::admission(&args),
        RootCommand::Simulate(SimulateCommand::Ageing(args)) => simulate::ageing(&args),
        RootCommand::Simulate(SimulateCommand::Fleet(args)) => simulate::fleet(&args),
        RootCommand::Reproduce(args) => reproduce::reproduce(&args),
        RootCommand::Completions(args) => {
            shell::completions(&args);
            Ok(())
        }
        RootCommand::Man(args) => shell::man(&args),
        RootCommand::Version => {
            out::print(concat!("tenuto ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(())
        }
    }
}

/// Prints the file of a built-in model or profile: the file and not what was parsed from it,
/// because its comments name the sources.
fn print_builtin(
    kind: &str,
    name: Option<&str>,
    text: impl FnOnce(&str) -> Option<&'static str>,
    hint: &str,
) -> Result<(), Failure> {
    let Some(name) = name else {
        return Err(Failure::usage(format!("--toml needs the name of a {kind}")).hint(hint));
    };
    let missing = || Failure::usage(format!("there is no built-in {kind} '{name}'")).hint(hint);
    out::print(text(name).ok_or_else(missing)?);
    Ok(())
}
