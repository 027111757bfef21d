//! The same run of streams on many machines at once (`meter run --agents`, `--hosts`).

use super::fleet_page as page;
use super::metrics::MetricsServer;
use super::record::{self, ExperimentReport};
use super::remote_deploy::RemoteDeploy;
use crate::error::MeterError;
use crate::fleet::{
    self, AgentConnection, AgentProgress, HANDSHAKE_LIMIT, HandshakeStream, Token, WorkerJob,
    WorkerOptions,
};
use crate::observer::Observer;
use serde_json::json;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use units::show::count;

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// One run of streams on agents.
pub struct FleetConfig {
    /// Addresses of agents that run already.
    pub agents: Vec<String>,
    /// The token of these agents.
    pub token: Option<Token>,
    /// Hosts to which the agent is copied, and where it is started, by ssh.
    pub hosts: Vec<String>,
    /// The ssh command, split at blanks.
    pub ssh: String,
    /// The program that is copied to hosts; without it this one.
    pub program: Option<PathBuf>,
    /// A directory on each agent.
    pub target: String,
    /// The profile's text.
    pub profile: String,
    /// Streams of all agents together.
    pub streams: u32,
    /// Processes on each agent.
    pub workers: u32,
    /// How all workers run their streams.
    pub options: WorkerOptions,
    /// Address at which counts are served while the run is on.
    pub metrics: Option<SocketAddr>,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// Runs streams on all agents at the same time and reports them together.
pub fn run_fleet(
    config: &FleetConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let FleetConfig { target, profile, streams, workers, options, .. } = config;
    let metrics = MetricsServer::open(config.metrics, observer)?;
    record::prepare(config.out.as_deref())?;
    let began = Instant::now();
    observer.status("connecting");
    let (connections, helpers) = connect_all(config, began)?;
    let shares = shares(*streams, *workers, connections.len())?;
    let mut before = 0;
    let job = |streams: Vec<u32>| {
        let (target, profile, options) = (target.clone(), profile.clone(), options.clone());
        // Streams are numbered over all agents, so that no two begin at the same time.
        let first_stream = before;
        before += streams.iter().sum::<u32>();
        WorkerJob { target, profile, streams, first_stream, options }
    };
    let jobs = shares.into_iter().map(job).collect();
    // Taken before the workers prepare: the time of connections alone is what --hosts costs.
    let ready_ms = began.elapsed().as_millis();
    if let Some(live) = metrics.live() {
        live.begin(*streams);
    }
    let mut watch = |seen: &[AgentProgress]| {
        observer.status(&view(seen));
        if let Some(live) = metrics.live() {
            live.agents(seen);
        }
        !observer.is_stopped()
    };
    let result = fleet::run(connections, jobs, began, &mut watch);
    // The ssh processes end with their connections; their exit status adds nothing.
    for mut helper in helpers {
        let _ = helper.wait();
    }
    let outcome = result?;
    let why = page::why_invalid(&outcome, observer.is_stopped());
    let mut summary = page::summary(&outcome, &why);
    let named = [&config.agents[..], &config.hosts].concat();
    summary["scenario"] = json!({
        "agents": named,
        "target": target,
        "streams": streams,
        "workers": workers,
        "options": options,
        "connected_in_ms": ready_ms,
    });
    let report = || page::page(&outcome, &summary);
    let saved = record::save(config.out.as_deref(), &summary, report, observer);
    let text = page::text(&outcome, &summary);
    // The report is written even if it is not valid: it shows what the others measured.
    let verdict = saved.and_then(|()| match why.first() {
        None => match summary["late_by_storage"].as_u64() {
            None | Some(0) if summary["backlog_grows"] == true => {
                Err(MeterError::not_held("not held: the backlog grows"))
            }
            None | Some(0) => Ok(()),
            Some(late) => Err(MeterError::not_held(format!("not held: {late} frames were late"))),
        },
        Some(first) => Err(MeterError::new(format!("not valid: {first}"))
            .hint("what the others measured is above; run again when all agents are there")
            .invalid()),
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// Distributes the streams over the workers of each agent as evenly as possible.
fn shares(streams: u32, workers: u32, agents: usize) -> Result<Vec<Vec<u32>>, MeterError> {
    // Each worker needs a stream, or it would end at once and count as failed.
    let all = workers * u32::try_from(agents).unwrap_or(u32::MAX);
    if streams < all {
        let (streams, all) = (count(streams, "stream"), count(all, "worker"));
        let sentence = format!("too few streams: {streams} for {all}");
        return Err(MeterError::usage(sentence).hint("ask for --streams of all agents together"));
    }
    let one = |number: u32| streams / all + u32::from(number < streams % all);
    let each: Vec<u32> = (0..all).map(one).collect();
    Ok(each.chunks(usize::try_from(workers).unwrap_or(1)).map(<[u32]>::to_vec).collect())
}

type Connected = (Vec<AgentConnection>, Vec<Child>);

/// Connects to all agents in parallel: forty logins one after another would take long.
fn connect_all(config: &FleetConfig, began: Instant) -> Result<Connected, MeterError> {
    let FleetConfig { agents, hosts, ssh, token, program, target, .. } = config;
    let deploy = match hosts.is_empty() {
        true => None,
        false => Some(RemoteDeploy::new(ssh, program.as_deref(), target)?),
    };
    let dial = |agent: &String| Ok((dial(agent, token.as_ref(), began)?, None));
    let start = |(deploy, host): (&RemoteDeploy<'_>, &String)| {
        let (connection, child) = deploy.start(host, began)?;
        Ok((connection, Some(child)))
    };
    let deployed = deploy.iter().flat_map(|deploy| hosts.iter().map(move |host| (deploy, host)));
    let made: Vec<Result<(AgentConnection, Option<Child>), MeterError>> =
        std::thread::scope(|scope| {
            let dialled = agents.iter().map(|agent| scope.spawn(move || dial(agent)));
            let started = deployed.map(|pair| scope.spawn(move || start(pair)));
            // Collected before the first join: an iterator would start a thread only after the one
            // before has ended. All are joined before the first error is returned.
            let threads: Vec<_> = dialled.chain(started).collect();
            let gone = |_| Err(MeterError::new("a connection's thread is gone"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(gone)).collect()
        });
    let (mut connections, mut children) = (Vec::new(), Vec::new());
    for one in made {
        let (connection, child) = one?;
        connections.push(connection);
        children.extend(child);
    }
    Ok((connections, children))
}

fn dial(agent: &str, token: Option<&Token>, began: Instant) -> Result<AgentConnection, MeterError> {
    let token = token.ok_or_else(|| MeterError::usage("--token-file is missing"))?;
    let cannot = |error: std::io::Error| {
        MeterError::new(format!("agent {agent}: cannot connect: {error}"))
            .hint("is `tenuto meter agent` running there, with --listen for the network?")
    };
    let mut addresses = agent.to_socket_addrs().map_err(cannot)?;
    let none = || MeterError::usage(format!("{agent} is no address"));
    let address = addresses.next().ok_or_else(none)?;
    let stream = TcpStream::connect_timeout(&address, CONNECT).map_err(cannot)?;
    // The exchange that compares the clocks must not wait for a full packet.
    stream.set_nodelay(true).map_err(cannot)?;
    let stream = HandshakeStream::new(stream, HANDSHAKE_LIMIT);
    let (from, to) = (Box::new(stream.clone()), Box::new(stream.clone()));
    let connection = fleet::connect(agent, from, to, token, began)?;
    // From here on the run observes whether the agent is silent.
    stream.lift(None).map_err(cannot)?;
    Ok(connection)
}

/// The state of all agents, one line each.
fn view(seen: &[AgentProgress]) -> String {
    let line = |agent: &AgentProgress| {
        let state = match agent {
            AgentProgress { lost: true, .. } => "lost".to_owned(),
            AgentProgress { ready, workers, .. } if ready < workers => {
                format!("preparing, {ready} of {workers} ready")
            }
            AgentProgress { done, workers, .. } if done == workers => "done".to_owned(),
            _ => format!("{:.0} s", agent.seconds),
        };
        format!("{:20} {state:24} {:>10} frames {:>8} late", agent.name, agent.frames, agent.late)
    };
    // The first line follows the prefix of the status, so that only the others are indented.
    seen.iter().map(line).collect::<Vec<_>>().join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_distributed_evenly() {
        assert_eq!(shares(7, 2, 2).unwrap(), [vec![2, 2], vec![2, 1]]);
        assert_eq!(shares(3, 1, 3).unwrap(), [[1], [1], [1]]);
        assert!(shares(3, 2, 2).is_err());
    }
}
