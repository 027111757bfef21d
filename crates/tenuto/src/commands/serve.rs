//! `serve`: runs a server until a signal stops it. SIGHUP lets it read its configuration again,
//! SIGUSR2 lets the program start anew in its place.

use crate::args::viewing::ServeArgs;
use crate::commands::mount::{
    MountPoints, MountedStop, ServedMounts, refuse_no_served_spool, refuse_unmountable,
};
use crate::failure::Failure;
use crate::successor::Successor;
use crate::{config_file, limits, out};
use serde_json::json;
use server::wire::{MissingStoreReport, ReloadReport};
use server::{
    AuthRequestTarget, ClusterConfig, CopySource, HANDOVER_VERSION, Handover, OtlpTarget, Server,
    ServerConfig, WebhookTarget,
};
use signal_hook::consts::{SIGHUP, SIGUSR2};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenuto_agent::stop_on_interrupts;
use units::show::count;
use units::{Hinted, Reason};

pub(crate) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    // Kept, because the report names the stores after the server has taken its own copy.
    let config = config(args);
    refuse_no_served_spool(args)?;
    if args.check_config {
        Server::check(&config)?.iter().for_each(|note| out::note(note));
        match args.report.json {
            true => out::print_json(&json!({
                "config": args.config, "stores": config.stores, "valid": true,
                "handover": HANDOVER_VERSION,
            })),
            false => {
                let file = args.config.as_ref().map(|file| format!("{}: ", file.display()));
                out::print(&format!("{}the configuration is valid\n", file.unwrap_or_default()));
            }
        }
        return Ok(());
    }
    // Before the start: a signal during it stops the server right after.
    let mounted = args.mount.as_ref().map(|_| MountedStop::on_signals()).transpose()?;
    let stop = mounted.as_ref().map_or_else(stop_on_interrupts, |stop| Ok(stop.flag()))?;
    let restart = noted(SIGUSR2)?;
    // A terminal that closes sends it, too: a server that was started there ends with it.
    let reload = match std::io::stdin().is_terminal() {
        true => Arc::default(),
        false => noted(SIGHUP)?,
    };
    let successor = Successor::of_this_process()?;
    limits::raise_open_files();
    let points = mounted.as_ref().map_or_else(MountPoints::default, MountedStop::points);
    let next = NextProgram { successor, points };
    let mut server = begin(args, &config, &next)?;
    let mut mounts = ServedMounts::start(&server, args, mounted.as_ref())?;
    while !stop.load(Ordering::Relaxed) && server.is_running() {
        if reload.swap(false, Ordering::Relaxed) {
            tell_reloaded(server.reload());
        }
        if restart.swap(false, Ordering::Relaxed)
            && let Err(why) = server.request_restart()
        {
            out::note(&format!("the server goes on as it is: {}", why.one_line()));
        }
        if server.missing_store_is_back() {
            match server.request_restart() {
                Ok(()) => out::note("a store that was missing can be opened again"),
                Err(why) => out::note(&format!(
                    "a store that was missing can be opened again, and is served after a restart: {}",
                    why.one_line()
                )),
            }
        }
        if server.is_to_restart() {
            mounts.end(BEFORE_A_RESTART);
            server = replace(server, &config, &next)?;
            mounts = ServedMounts::start(&server, args, mounted.as_ref())?;
        }
        mounts.tell_unmounted();
        server.take_notices().iter().for_each(|line| out::note(line));
        std::thread::sleep(LOOK_FOR_SIGNALS);
    }
    // A request may have ended the server since the last look.
    server.take_notices().iter().for_each(|line| out::note(line));
    if stop.load(Ordering::Relaxed) {
        out::note("stopping: no new viewer is admitted; a second signal ends the server at once");
    }
    // Also after the server has ended by itself: its other stores must be closed. One that has
    // failed keeps nobody, so that whoever watches it can start it again.
    server.stop(if server.is_running() { server.grace() } else { Duration::ZERO });
    mounts.end(server.grace());
    Ok(server.wait()?)
}

/// A flag that a signal sets from here on.
fn noted(signal: i32) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal, Arc::clone(&flag))
        .map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
    Ok(flag)
}

/// Starts the server, in the place of the one before it if there was one in this process.
fn begin(args: &ServeArgs, config: &ServerConfig, next: &NextProgram) -> Result<Server, Failure> {
    let Some(before) = Handover::inherited()? else {
        let server = prepared(Server::start(config.clone())?, next);
        tell(args, config, &server);
        return Ok(server);
    };
    let sessions = count(before.sessions() as u64, "session");
    let server = Server::take_over(before, config.clone())
        .map_err(|why| Failure::from(why.about(format!("the restart has ended {sessions}"))))?;
    server.notes().iter().for_each(|note| out::note(note));
    out::note(&format!("restarted with {sessions} at {}", server.address()));
    Ok(prepared(server, next))
}

/// A server that can read its configuration again, and be replaced.
fn prepared(server: Server, next: &NextProgram) -> Server {
    server.reads_again_from(|| Ok(config(&config_file::serve_again()?)));
    let next = next.clone();
    server.checks_successor_by(move || next.check());
    server
}

/// What a restart in place leads to.
#[derive(Clone)]
struct NextProgram {
    successor: Successor,
    /// Where the stores are mounted until then.
    points: MountPoints,
}

impl NextProgram {
    /// The reason for which this program must go on, if there is one.
    fn check(&self) -> Result<(), Reason> {
        self.successor.check()?;
        Ok(refuse_unmountable(&config_file::serve_again()?, &self.points)?)
    }
}

/// Executes the program anew in this process. Where that fails, this one goes on with the
/// configuration that the other was to have.
fn replace(server: Server, config: &ServerConfig, next: &NextProgram) -> Result<Server, Failure> {
    out::note("restarting: connections wait until the program has begun anew");
    let handover = server.hand_over()?;
    let why = next.successor.execute(&handover);
    out::note(&format!("the program could not be started, and this one goes on: {why}"));
    let again = config_file::serve_again().map(|args| self::config(&args));
    let config = again.unwrap_or_else(|_| config.clone());
    Ok(prepared(Server::take_over(handover, config)?, next))
}

/// Time that programs which use a mount have before a restart.
const BEFORE_A_RESTART: Duration = Duration::from_secs(2);

/// Time between two looks at the stop flag.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);

fn tell(args: &ServeArgs, config: &ServerConfig, server: &Server) {
    let s = if config.tls.is_some() { "s" } else { "" };
    let url = format!("http{s}://{}/", server.address());
    let rtsp = server.rtsp_address().map(|address| format!("rtsp{s}://{address}/"));
    if args.report.json {
        out::print_json(&json!({
            "address": server.address(),
            "url": url,
            "rtsp": rtsp,
            "stores": config.stores,
            "notes": server.notes(),
        }));
        return;
    }
    server.notes().iter().for_each(|note| out::note(note));
    let stores: Vec<String> =
        config.stores.iter().map(|store| store.display().to_string()).collect();
    let rtsp = rtsp.map_or_else(String::new, |rtsp| format!(" and {rtsp}"));
    let stores = stores.join(", ");
    out::print(&format!("serving {stores} at {url}console/{rtsp} (Ctrl-C stops)\n"));
}

fn tell_reloaded(result: Result<ReloadReport, Reason>) {
    let list = |options: &[String]| match options {
        [] => "nothing".to_owned(),
        some => some.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", "),
    };
    match result {
        Ok(ReloadReport { changed, needs_restart, missing_stores }) => {
            out::note(&format!("configuration read again: {} changed", list(&changed)));
            if !needs_restart.is_empty() {
                out::note(&format!("until the next start as before: {}", list(&needs_restart)));
            }
            for MissingStoreReport { reason, .. } in missing_stores {
                out::note(&format!("the next start is without a store: {reason}"));
            }
        }
        Err(why) => out::note(&format!("nothing changed: {}", why.one_line())),
    }
}

fn config(args: &ServeArgs) -> ServerConfig {
    ServerConfig {
        stores: args.stores.clone(),
        listen: args.listen,
        rtsp: args.rtsp,
        policy: args.admission,
        survive_loss: args.survive_loss,
        memory: args.memory,
        network: args.network,
        slot: args.slot,
        startup: args.startup,
        wait: args.wait,
        read_size: args.read_size,
        recalibrate_after: Some(args.recalibrate_after).filter(|age| !age.is_zero()),
        scrub: Some(args.scrub).filter(|period| !period.is_zero()),
        segment: args.segment,
        throttle: args.throttle,
        as_disk: args.as_disk.clone(),
        buffered: args.buffered,
        tls: args.certificate.files(),
        http2: args.http2,
        insecure: args.insecure,
        fills: args.origin,
        tokens: args.tokens.clone(),
        uploads: args.uploads.clone(),
        ingest_from: args.ingest_from.clone(),
        mount: args.mount.clone(),
        mount_rate: args.mount_rate,
        mount_spool: args.mount_spool.clone(),
        webhook: args.webhook.clone().map(|url| {
            let secret = args.webhook_secret.clone();
            WebhookTarget { url, secret }
        }),
        auth_request: args.auth_request.clone().map(|url| AuthRequestTarget {
            url,
            timeout: args.auth_request_timeout,
            unanswered: args.auth_request_unanswered,
            secret: args.auth_request_secret.clone(),
        }),
        otlp: OtlpTarget::new(args.otlp.clone(), args.otlp_traced, |name| std::env::var(name).ok()),
        cluster: cluster(args),
        copies: args.bucket.titles().map(|bucket| CopySource {
            bucket,
            windows: args.fill.clone(),
            rate: args.fill_rate,
        }),
        title_keys: args.title_keys.clone(),
        access_log: args.access_log.clone(),
        max_connections: args.max_connections,
        max_client_connections: args.max_client_connections,
        max_client_unplayed: args.max_client_unplayed,
        grace: args.grace,
        ..ServerConfig::default()
    }
}

/// All of it, or nothing: the arguments require each other.
fn cluster(args: &ServeArgs) -> Option<ClusterConfig> {
    Some(ClusterConfig {
        etcd: Some(args.cluster.clone()).filter(|members| !members.is_empty())?,
        etcd_access: args.etcd.access(),
        name: args.cluster_name.clone()?,
        node: args.node.clone()?,
        address: args.node_address.clone()?,
        rtsp_address: args.node_rtsp_address.clone(),
        rack: args.rack.clone(),
        secret: args.cluster_secret.clone()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::RootCommand;
    use crate::cli;
    use std::ffi::OsString;

    /// Defaults are declared as text; `ServerConfig::default` has them as values.
    #[test]
    fn the_declared_defaults_are_the_servers() {
        let line = ["tenuto", "serve", "a.store"].map(OsString::from);
        let RootCommand::Serve(args) = cli::parse(line).unwrap().command else {
            panic!("the arguments of serve")
        };
        let given = config(&args);
        let wanted = ServerConfig { stores: given.stores.clone(), ..ServerConfig::default() };
        assert_eq!(format!("{given:?}"), format!("{wanted:?}"));
    }
}
