//! The commands: one file per family, typed arguments in, one call, rendering out.

mod calibrate;
mod check;
mod disk_show;
mod emulation;
mod meter;
mod models;
mod plan;
mod play;
mod rebuild;
mod reproduce;
mod serve;
mod shell;
mod simulate;
mod simulate_titles;
mod stores;
mod transfer;

use crate::args::RootCommand;
use crate::args::disks::DiskCommand;
use crate::args::simulation::SimulateCommand;
use crate::failure::Failure;

/// Runs a parsed command.
pub(crate) fn run(command: RootCommand) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "whole")]
        RootCommand::Format(args) => stores::format(&args),
        #[cfg(feature = "whole")]
        RootCommand::Ingest(args) => transfer::ingest(&args),
        #[cfg(feature = "whole")]
        RootCommand::Ls(args) => stores::ls(&args),
        #[cfg(feature = "whole")]
        RootCommand::Info(args) => stores::info(&args),
        #[cfg(feature = "whole")]
        RootCommand::Export(args) => transfer::export(&args),
        #[cfg(feature = "whole")]
        RootCommand::Rm(args) => stores::rm(&args),
        #[cfg(feature = "whole")]
        RootCommand::Rename(args) => stores::rename(&args),
        #[cfg(feature = "whole")]
        RootCommand::Check(args) => check::check(&args),
        #[cfg(feature = "whole")]
        RootCommand::Serve(args) => serve::serve(&args),
        #[cfg(feature = "whole")]
        RootCommand::Play(args) => play::play(&args),
        #[cfg(feature = "whole")]
        RootCommand::Calibrate(args) => calibrate::calibrate(&args),
        #[cfg(feature = "whole")]
        RootCommand::Plan(args) => plan::plan(&args),
        #[cfg(feature = "whole")]
        RootCommand::Disk(DiskCommand::Models(args)) => models::models(&args),
        #[cfg(feature = "whole")]
        RootCommand::Disk(DiskCommand::Show(args)) => disk_show::show(&args),
        #[cfg(feature = "whole")]
        RootCommand::Disk(DiskCommand::Emulate(args)) => emulation::emulate(&args),
        #[cfg(feature = "whole")]
        RootCommand::Disk(DiskCommand::Stats(args)) => emulation::stats(&args),
        RootCommand::Meter(command) => meter::run(command),
        #[cfg(feature = "whole")]
        RootCommand::Simulate(SimulateCommand::Admission(args)) => simulate::admission(&args),
        #[cfg(feature = "whole")]
        RootCommand::Reproduce(args) => reproduce::reproduce(&args),
        #[cfg(feature = "whole")]
        RootCommand::Completions(args) => {
            shell::completions(&args);
            Ok(())
        }
        #[cfg(feature = "whole")]
        RootCommand::Man(args) => shell::man(&args),
    }
}
