//! The commands of `tenuto meter`: typed arguments in, one call of the meter, its report out.

mod agent;
mod logs;
mod options;
mod profile_from;
mod profiles;
mod rounds;
mod streams;
mod study;
mod terminal;
mod transfers;

use crate::args::meter::{MeterCommand, StudyCommand};
use crate::failure::Failure;
use meter::Variants;

/// Runs a command of `tenuto meter`.
pub(super) fn run(command: MeterCommand) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "whole")]
        MeterCommand::Capacity(args) => streams::capacity(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Bottleneck(args) => streams::compare(&args, Variants::Path),
        #[cfg(feature = "whole")]
        MeterCommand::Methods(args) => streams::compare(&args, Variants::Methods),
        MeterCommand::Run(args) => streams::run(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Transfers(args) => transfers::transfers(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Ramp(args) => transfers::ramp(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Report(args) => logs::report(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Profiles(args) => profiles::profiles(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Rounds(args) => rounds::rounds(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Compare(args) => logs::compare(&args),
        #[cfg(feature = "whole")]
        MeterCommand::ProfileFrom(args) => profile_from::run(&args),
        MeterCommand::Agent(args) => agent::agent(&args),
        #[cfg(feature = "whole")]
        MeterCommand::Study(StudyCommand::Storage(study, args)) => study::study(study, &args),
        #[cfg(feature = "whole")]
        MeterCommand::Study(StudyCommand::Network(args)) => study::network(&args),
    }
}
