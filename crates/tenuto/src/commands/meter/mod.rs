//! The commands of `tenuto meter`: typed arguments in, one call of the meter, its report out.

mod console;
mod live;
mod options;
mod profiles;
mod runs;
mod streams;
mod terminal;
mod transfers;

use crate::args::meter::{MeterCommand, StudyCommand};
use crate::failure::Failure;
use meter::Variants;

/// Runs a command of `tenuto meter`.
pub(super) fn run(command: MeterCommand) -> Result<(), Failure> {
    match command {
        MeterCommand::Capacity(args) => streams::capacity(&args),
        MeterCommand::Bottleneck(args) => streams::compare(&args, Variants::Path),
        MeterCommand::Methods(args) => streams::compare(&args, Variants::Methods),
        MeterCommand::Run(args) => streams::run(&args),
        MeterCommand::Transfers(args) => transfers::transfers(&args),
        MeterCommand::Ramp(args) => transfers::ramp(&args),
        MeterCommand::Ebu(args) => transfers::ebu(&args),
        MeterCommand::Report(args) => runs::report(&args),
        MeterCommand::Profiles(args) => profiles::profiles(&args),
        MeterCommand::Rounds(args) => runs::rounds(&args),
        MeterCommand::Compare(args) => runs::compare(&args),
        MeterCommand::ProfileFrom(args) => runs::profile_from(&args),
        MeterCommand::Agent(args) => Ok(tenuto_agent::run(&args, &["meter", "agent"])?),
        MeterCommand::Console(args) => console::console(&args),
        MeterCommand::Study(StudyCommand::Storage(study, args)) => runs::study(study, &args),
        MeterCommand::Study(StudyCommand::Network(args)) => runs::network(&args),
    }
}
