//! `tenuto-agent`: measures on this machine for `tenuto meter` on another one.
//!
//! The command of the library and nothing else, so that the program is small: `--hosts`
//! copies it to many hosts. `make agent` builds it for any Linux of this architecture.

use clap::Parser;
use meter::MeterErrorKind;
use std::process::ExitCode;
use tenuto_agent::AgentArgs;

/// Measure on this machine for `tenuto meter` with --agents on another one.
///
/// Waits for a controller with the same token, and runs what it asks for, on targets
/// inside DIR only. Nothing is overwritten. Both sides prove the token to each other and
/// authenticate every message with it; nothing is encrypted. Ctrl-C stops the agent.
#[derive(Parser)]
#[command(name = "tenuto-agent", version, after_help = EXAMPLE)]
struct CommandLine {
    #[command(flatten)]
    agent: AgentArgs,
}

const EXAMPLE: &str =
    "Example:\n  tenuto-agent /mnt/films --token-file secret --listen 0.0.0.0:7070";

fn main() -> ExitCode {
    let Err(error) = tenuto_agent::run(&CommandLine::parse().agent, &[]) else {
        return ExitCode::SUCCESS;
    };
    tenuto_agent::complain(&error);
    ExitCode::from(match error.kind {
        MeterErrorKind::Failed => 1,
        MeterErrorKind::Usage => 2,
        MeterErrorKind::NotHeld => 3,
        MeterErrorKind::Damaged => 4,
        MeterErrorKind::Invalid | MeterErrorKind::Interrupted => 5,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_parser_is_sound() {
        CommandLine::command().debug_assert();
    }
}
