//! `meter run --agents` and `--hosts`: the same run on many machines at once.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_metrics::Metrics;
use crate::commands::{
    meter_agent, meter_fleet_page as page, meter_lend, meter_profiles, meter_record,
};
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use meter::fleet::{self, Connection, FleetError, Job, Seen, Token};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// For a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Options of `meter run` that agents get as they were typed.
const PASSED: [&str; 6] = ["duration", "buffer", "size", "method", "layout", "fill-level"];

/// Those that say nothing to agents, and would be left out in silence.
const NOT_PASSED: [&str; 11] = [
    "threshold",
    "each",
    "window",
    "switching",
    "drop-caches",
    "endpoint",
    "region",
    "ca-file",
    "insecure",
    "cert-file",
    "key-file",
];

pub(super) fn is_wanted(args: &Args<'_>) -> bool {
    ["agents", "hosts"].iter().any(|name| args.maybe::<String>(name).is_some())
}

pub(super) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let (job, streams, workers) = job(args)?;
    let metrics = Metrics::serve(args)?;
    let dir = meter_record::prepare(args)?;
    let began = Instant::now();
    let bar = Bar::new();
    bar.say("connecting");
    let (connections, helpers) = connect_all(args, &job.target, began)?;
    let shares = shares(streams, workers, connections.len())?;
    let jobs = shares.into_iter().map(|streams| Job { streams, ..job.clone() }).collect();
    let ready_ms = began.elapsed().as_millis();
    let stop = on_interrupt()?;
    if let Some(live) = metrics.live() {
        live.begin(streams);
    }
    let mut watch = |seen: &[Seen]| {
        bar.say(&view(seen));
        if let Some(live) = metrics.live() {
            live.agents(seen);
        }
        !stop.load(Ordering::Relaxed)
    };
    let result = fleet::run(connections, jobs, began, &mut watch);
    drop(bar);
    for mut helper in helpers {
        let _ = helper.wait();
    }
    let outcome = result?;
    let why = page::why_invalid(&outcome, stop.load(Ordering::Relaxed));
    let mut summary = page::summary(&outcome, &why);
    summary["scenario"] = json!({
        "target": job.target,
        "streams": streams,
        "workers": workers,
        "options": job.options,
        "connected_in_ms": ready_ms,
    });
    if let Some(dir) = &dir {
        let page = page::report(&outcome, &summary)?;
        meter_record::save_all(dir, &summary["scenario"], &summary, &page)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page::text(&outcome, &summary));
    }
    match why.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(format!("not valid: {first}"))
            .hint("what the others measured is above; run again when all agents are there")
            .code(Code::Invalid)),
    }
}

fn job(args: &Args<'_>) -> Result<(Job, u32, u32), Failure> {
    let Some(profile) = args.maybe::<String>("profile") else {
        return Err(Failure::usage("--profile is missing")
            .hint("`tenuto meter profiles` lists what streams there are"));
    };
    let Some(target) = args.maybe::<String>("target") else {
        return Err(Failure::usage("--target is missing").hint("a directory on each agent"));
    };
    if args.maybe::<String>("destructive").is_some() || args.has("hold") {
        return Err(Failure::usage("--destructive and --hold are not for agents")
            .hint("agents measure in directories, and begin together"));
    }
    if args.has("realtime") {
        return Err(Failure::usage("--realtime is not for agents")
            .hint("start `tenuto meter agent` itself by chrt -f 20"));
    }
    if let Some(name) = NOT_PASSED.into_iter().find(|name| args.typed(name)) {
        return Err(Failure::usage(format!("--{name} is not for agents"))
            .hint("leave it out, or measure from this machine, without --agents and --hosts"));
    }
    let mut options: BTreeMap<String, Option<String>> = BTreeMap::new();
    for name in PASSED {
        let value = args.0.get_raw(name).into_iter().flatten().next();
        if let (true, Some(value)) = (args.typed(name), value.and_then(|value| value.to_str())) {
            options.insert(name.to_owned(), Some(value.to_owned()));
        }
    }
    if args.has("buffered") {
        options.insert("buffered".to_owned(), None);
    }
    if args.has("spin") {
        options.insert("spin".to_owned(), None);
    }
    let profile = meter_profiles::text_of(&profile)?;
    let job = Job { target, profile, streams: Vec::new(), options };
    Ok((job, args.count("streams"), args.count("workers")))
}

/// Streams of each worker of each agent, as even as can be.
fn shares(streams: u32, workers: u32, agents: usize) -> Result<Vec<Vec<u32>>, Failure> {
    let all = workers * u32::try_from(agents).unwrap_or(u32::MAX);
    if streams < all {
        let sentence = format!("{streams} streams are too few for {all} workers");
        return Err(Failure::usage(sentence).hint("ask for --streams of all agents together"));
    }
    let one = |number: u32| streams / all + u32::from(number < streams % all);
    let each: Vec<u32> = (0..all).map(one).collect();
    Ok(each.chunks(usize::try_from(workers).unwrap_or(1)).map(<[u32]>::to_vec).collect())
}

type Connected = (Vec<Connection>, Vec<Child>);

/// All at the same time: forty logins one after another would take a while.
fn connect_all(args: &Args<'_>, target: &str, began: Instant) -> Result<Connected, Failure> {
    let names = |option: &str| -> Vec<String> {
        let list: String = args.maybe(option).unwrap_or_default();
        list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let (agents, hosts) = (names("agents"), names("hosts"));
    if agents.is_empty() && hosts.is_empty() {
        return Err(
            Failure::usage("no agent is named").hint("--agents 10.0.0.1:7070,10.0.0.2:7070")
        );
    }
    let ssh = if hosts.is_empty() { Vec::new() } else { meter_lend::ssh(args)? };
    let token = if agents.is_empty() { None } else { Some(meter_agent::token(args)?) };
    let program = match (hosts.is_empty(), args.maybe::<PathBuf>("program")) {
        (true, None) => Vec::new(),
        (true, Some(_)) => {
            return Err(Failure::usage("--program is for --hosts")
                .hint("agents that run already have theirs"));
        }
        (false, named) => meter_lend::program(named.as_deref())?,
    };
    let made: Vec<Result<(Connection, Option<Child>), Failure>> = std::thread::scope(|scope| {
        let dialled = agents.iter().map(|agent| {
            let token = token.as_ref().expect("read above");
            scope.spawn(move || Ok((dial(agent, token, began)?, None)))
        });
        let dialled: Vec<_> = dialled.collect();
        let (program, ssh) = (&program, &ssh);
        let lent = hosts.iter().map(|host| {
            scope.spawn(move || {
                let (connection, child) = meter_lend::lend(ssh, host, target, program, began)?;
                Ok((connection, Some(child)))
            })
        });
        let lent: Vec<_> = lent.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Failure::new("a connection's thread is gone")))
        };
        dialled.into_iter().chain(lent).map(join).collect()
    });
    let (mut connections, mut children) = (Vec::new(), Vec::new());
    for one in made {
        let (connection, child) = one?;
        connections.push(connection);
        children.extend(child);
    }
    Ok((connections, children))
}

fn dial(agent: &str, token: &Token, began: Instant) -> Result<Connection, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(format!("agent {agent}: cannot connect: {error}"))
            .hint("is `tenuto meter agent` running there, with --listen for the network?")
    };
    let address = agent.to_socket_addrs().map_err(cannot)?.next();
    let address = address.ok_or_else(|| Failure::usage(format!("{agent} is no address")))?;
    let stream = TcpStream::connect_timeout(&address, CONNECT).map_err(cannot)?;
    stream.set_nodelay(true).map_err(cannot)?;
    let from = Box::new(stream.try_clone().map_err(cannot)?);
    Ok(fleet::connect(agent, from, Box::new(stream), token, began)?)
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        Self::of(&error.to_string())
    }
}

/// What a person sees meanwhile, on a terminal.
fn view(seen: &[Seen]) -> String {
    let line = |agent: &Seen| {
        let state = match agent {
            Seen { lost: true, .. } => "lost".to_owned(),
            Seen { ready, workers, .. } if ready < workers => {
                format!("preparing, {ready} of {workers} ready")
            }
            Seen { done, workers, .. } if done == workers => "done".to_owned(),
            _ => format!("{:.0} s", agent.seconds),
        };
        format!("{:20} {state:24} {:>10} frames {:>8} late", agent.name, agent.frames, agent.late)
    };
    seen.iter().map(line).collect::<Vec<_>>().join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_shared_out_evenly() {
        assert_eq!(shares(7, 2, 2).unwrap(), [vec![2, 2], vec![2, 1]]);
        assert_eq!(shares(3, 1, 3).unwrap(), [[1], [1], [1]]);
        assert!(shares(3, 2, 2).is_err());
    }
}
