//! `serve`: from words to a server's configuration, and its life until a signal.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::failure::Failure;
use crate::{limits, out};
use scheduler::PolicyKind;
use serde_json::json;
use server::{Server, ServerConfig, ServerError};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) fn serve(args: &Args<'_>) -> Result<(), Failure> {
    let config = config(args);
    // Before the start: a signal during it stops the server right after.
    let stop = on_interrupt()?;
    limits::raise_open_files();
    let server = Server::start(config.clone())?;
    tell(args, &config, &server);
    while !stop.load(Ordering::Relaxed) && server.is_running() {
        std::thread::sleep(LOOK_FOR_SIGNALS);
    }
    if stop.load(Ordering::Relaxed) {
        out::note("stopping: nobody new is let in; a second signal ends it at once");
    }
    server.stop(args.get("grace"));
    Ok(server.wait()?)
}

/// Nobody notices a tenth of a second when stopping, and ten looks a second cost nothing.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);

fn tell(args: &Args<'_>, config: &ServerConfig, server: &Server) {
    let url = format!("http://{}/", server.address());
    if args.has("json") {
        out::print_json(&json!({
            "address": server.address(),
            "url": url,
            "stores": config.stores,
            "notes": server.notes(),
        }));
        return;
    }
    server.notes().iter().for_each(|note| out::note(note));
    let stores: Vec<String> =
        config.stores.iter().map(|store| store.display().to_string()).collect();
    out::print(&format!("serving {} at {url}console/ (Ctrl-C stops)\n", stores.join(", ")));
}

fn config(args: &Args<'_>) -> ServerConfig {
    ServerConfig {
        stores: args.all("STORE"),
        listen: args.get("listen"),
        policy: policy(&args.text("admission")),
        survive_loss: args.has("survive-loss"),
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
    PolicyKind::named(word).unwrap_or_else(|| unreachable!("the table offers no policy {word}"))
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let failure = Self::of(&error.to_string());
        match error {
            ServerError::Listen { .. } => failure.hint("choose another address with --listen"),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    /// The table says in words what `ServerConfig::default` says in values.
    #[test]
    fn the_defaults_in_the_table_are_the_servers() {
        let matches = cli::command().get_matches_from(["tenuto", "serve", "a.store"]);
        let (_, inner) = matches.subcommand().unwrap();
        let given = config(&Args(inner));
        let wanted = ServerConfig { stores: given.stores.clone(), ..ServerConfig::default() };
        assert_eq!(format!("{given:?}"), format!("{wanted:?}"));
    }
}
