//! `--ca-file` and `--insecure`: whom to believe behind an `https` address.

use crate::cli::Args;
use crate::failure::Failure;
use meter::tls::Trust;
use std::path::PathBuf;

pub(super) fn trust(args: &Args<'_>) -> Result<Trust, Failure> {
    match (args.maybe::<PathBuf>("ca-file"), args.has("insecure")) {
        (Some(_), true) => Err(Failure::usage("--ca-file and --insecure contradict each other")
            .hint("leave out --insecure to believe whom the file names")),
        (Some(path), false) => Ok(Trust::File(path)),
        (None, true) => Ok(Trust::Anybody),
        (None, false) => Ok(Trust::System),
    }
}
