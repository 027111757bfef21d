//! `--ca-file` and `--insecure`: whom to believe behind an `https` address. `--cert-file` and
//! `--key-file`: who one is oneself.

use crate::cli::Args;
use crate::failure::Failure;
use meter::tls::{Identity, Trust};
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

pub(super) fn identity(args: &Args<'_>) -> Result<Option<Identity>, Failure> {
    match (args.maybe::<PathBuf>("cert-file"), args.maybe("key-file")) {
        (Some(certificates), key) => {
            let key = key.unwrap_or_else(|| certificates.clone());
            Ok(Some(Identity { certificates, key }))
        }
        (None, Some(_)) => Err(Failure::usage("--key-file says no certificate")
            .hint("name the certificate that it is the key of with --cert-file")),
        (None, None) => Ok(None),
    }
}
