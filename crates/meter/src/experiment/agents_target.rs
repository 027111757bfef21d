//! A target on other machines: agents open it there, and run each step of an experiment together
//! (`--agents`, `--hosts`).
//!
//! ```text
//!   StreamRuns, transfers ── open ──▶ OpenTarget::Agents ── run(plan) ──▶ a step of each worker
//!                                                         ◀── outcomes, added up
//! ```
//!
//! Every experiment runs on agents as it does here, because only the two functions that run a plan
//! differ. The log of operations stays on the agents, and is not kept.

use super::agents_page::{self, AgentFigures};
use super::remote_deploy::RemoteDeploy;
use crate::error::MeterError;
use crate::fleet::{
    self, AgentConnection, AgentState, Fleet, HANDSHAKE_LIMIT, HandshakeStream, TargetFacts, Token,
    WorkerState, WorkerStep, WorkerTask,
};
use crate::live::Live;
use crate::observer::Observer;
use crate::progress::RunProgress;
use crate::report::{Block, Page, VerdictKind};
use crate::streams::StreamsPlan;
use crate::target::VerifyReport;
use crate::transfers::{TransfersOutcome, TransfersPlan};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::cell::{Ref, RefCell};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use units::show::count;
use units::{BitRate, Hinted};

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// The machines that measure instead of this one.
#[derive(Clone)]
pub struct AgentsConfig {
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
    /// Processes on each agent.
    pub workers: u32,
}

impl AgentsConfig {
    /// The agents and hosts by name.
    pub(super) fn names(&self) -> Vec<String> {
        [&self.agents[..], &self.hosts].concat()
    }

    /// Number of workers of all agents; one at least.
    pub(super) fn all_workers(&self) -> u32 {
        let agents = u32::try_from(self.names().len()).unwrap_or(u32::MAX);
        self.workers.saturating_mul(agents).max(1)
    }
}

/// A target that agents have prepared.
pub(super) struct AgentsTarget {
    fleet: RefCell<Fleet>,
    /// Number of workers of all agents.
    workers: u32,
    /// What the first worker of each task has prepared; the others of a task do the same.
    facts: Vec<TargetFacts>,
    /// The figures of each agent in the last step.
    last: RefCell<Vec<AgentFigures>>,
    connected: Duration,
    _helpers: Helpers,
}

/// The ssh processes, which end with their connections.
struct Helpers(Vec<Child>);

impl Drop for Helpers {
    fn drop(&mut self) {
        // Their exit status adds nothing.
        self.0.iter_mut().for_each(|helper| drop(helper.wait()));
    }
}

/// A part of a result: that of one worker. Parts of a step are added up.
pub(super) trait WorkerResult: DeserializeOwned {
    /// Adds what another worker has measured in the same step.
    fn add(&mut self, other: Self);
    /// States which agent measured this part, where it is not clear from the figures.
    fn name(&mut self, agent: &str);
    /// States that a part is missing.
    fn incomplete(&mut self);
    /// Adds this part to the figures of its agent.
    fn count(&self, figures: &mut AgentFigures);
}

impl AgentsTarget {
    /// Connects to the agents, and has workers of theirs prepare for each task.
    pub(super) fn open(
        config: &AgentsConfig,
        tasks: &[WorkerTask],
        observer: &dyn Observer,
    ) -> Result<Self, MeterError> {
        let began = Instant::now();
        observer.status("connecting");
        let mut targets: Vec<&str> = tasks.iter().map(|task| &*task.target).collect();
        targets.sort_unstable();
        targets.dedup();
        let (connections, helpers) = connect_all(config, targets, began)?;
        let connected = began.elapsed();
        let workers = usize::try_from(config.workers.max(1)).unwrap_or(1);
        let mut fleet = Fleet::new(connections, began);
        let mut watch = |agents: &[AgentState]| {
            observer.status(&view(agents));
            !observer.is_stopped()
        };
        fleet.prepare(tasks, workers, &mut watch)?;
        let first = fleet.agents.first().map_or(&[][..], |agent| &agent.workers);
        let firsts = first.chunks(workers).filter_map(|of_task| of_task.first()?.facts.clone());
        let facts: Vec<TargetFacts> = firsts.collect();
        if facts.is_empty() {
            return Err(MeterError::usage("no agent is named"));
        }
        Ok(Self {
            fleet: RefCell::new(fleet),
            workers: config.all_workers(),
            facts,
            last: RefCell::default(),
            connected,
            _helpers: Helpers(helpers),
        })
    }

    /// What the workers of the first task have prepared.
    pub(super) fn facts(&self) -> &TargetFacts {
        &self.facts[0]
    }

    /// What the workers of each task have prepared.
    pub(super) fn all_facts(&self) -> &[TargetFacts] {
        &self.facts
    }

    /// Number of workers of a task.
    pub(super) fn workers(&self) -> u32 {
        self.workers
    }

    /// The largest part of `count` streams or clients that a worker gets.
    pub(super) fn share(&self, count: u32) -> u32 {
        count.div_ceil(self.workers)
    }

    /// Runs the streams of a plan for each task at the same time, divided among the workers as
    /// evenly as possible; `names` are those of the tasks, where there are several.
    pub(super) fn streams<P: WorkerResult>(
        &self,
        plans: &[&StreamsPlan],
        names: &[&str],
        live: Option<&Live>,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
        observer: &dyn Observer,
    ) -> Result<Vec<P>, MeterError> {
        let steps = plans.iter().map(|plan| self.streams_steps(plan)).collect();
        self.run(steps, names, live, go_on, observer)
    }

    /// The steps of all workers of a task.
    fn streams_steps(&self, plan: &StreamsPlan) -> Vec<Option<WorkerStep>> {
        let mut before = 0;
        let steps = self.shares(plan.streams).map(|streams| {
            // Streams are numbered over all workers, so that no two begin at the same time.
            let first_stream = before;
            before += streams;
            let (length, continues) = (plan.duration, plan.continues);
            Some(WorkerStep::Streams { streams, first_stream, length, continues })
                .filter(|_| streams > 0)
        });
        steps.collect()
    }

    /// Makes the transfers of a plan; the clients are divided among the workers.
    pub(super) fn transfers(
        &self,
        plan: &TransfersPlan,
        live: Option<&Live>,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
        observer: &dyn Observer,
    ) -> Result<TransfersOutcome, MeterError> {
        let steps = (0u64..).zip(self.shares(plan.clients)).map(|(worker, clients)| {
            // Otherwise all workers would draw the same transfers at the same time.
            let seed = plan.seed ^ worker << 48;
            let part = |rate: BitRate| {
                let bits = u128::from(rate.0) * u128::from(clients);
                BitRate(u64::try_from(bits / u128::from(plan.clients.max(1))).unwrap_or(u64::MAX))
            };
            let rate = plan.rate.map(part);
            let plan = TransfersPlan { clients, seed, rate, ..plan.clone() };
            Some(WorkerStep::Transfers(Box::new(plan))).filter(|_| clients > 0)
        });
        let mut all = self.run(vec![steps.collect()], &[], live, go_on, observer)?;
        Ok(all.pop().expect("a result of the one task"))
    }

    fn shares(&self, count: u32) -> impl Iterator<Item = u32> + use<> {
        let workers = self.workers;
        (0..workers).map(move |number| count / workers + u32::from(number < count % workers))
    }

    /// Runs a step of each task; `tasks` has the steps of its workers on all agents.
    fn run<P: WorkerResult>(
        &self,
        tasks: Vec<Vec<Option<WorkerStep>>>,
        names: &[&str],
        live: Option<&Live>,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
        observer: &dyn Observer,
    ) -> Result<Vec<P>, MeterError> {
        let mut fleet = self.fleet.borrow_mut();
        let each = fleet.agents.first().map_or(1, |agent| agent.workers.len() / tasks.len()).max(1);
        let mut all: Vec<Option<P>> = tasks.iter().map(|_| None).collect();
        // An agent has the workers of one task after those of another.
        let agents = 0..fleet.agents.len();
        let of_agent = |agent: usize| {
            let of_task = move |steps: &Vec<_>| steps[agent * each..(agent + 1) * each].to_vec();
            tasks.iter().flat_map(of_task)
        };
        let steps = agents.flat_map(of_agent).collect();
        let mut watch = |agents: &[AgentState]| {
            observer.status(&view(agents));
            live.into_iter().for_each(|live| live.agents(agents));
            let workers = agents.iter().flat_map(|agent| &agent.workers);
            go_on(together(workers)) && !observer.is_stopped()
        };
        fleet.step(steps, &mut watch);
        let mut last = Vec::new();
        for agent in &fleet.agents {
            let mut figures = AgentFigures::of(agent);
            let workers = agent.workers.iter().enumerate();
            let results = workers
                .filter_map(|(number, worker)| Some((number / each, worker.result.clone()?)));
            for (task, result) in results {
                let wrong = |error: serde_json::Error| {
                    MeterError::new(format!("agent {}: {error}", agent.name))
                        .hint("use the same version on both")
                };
                let mut part: P = serde_json::from_value(result).map_err(wrong)?;
                part.count(&mut figures);
                if let (Some(worker), Some(name)) = (figures.workers.last_mut(), names.get(task)) {
                    worker["group"] = json!(name);
                }
                part.name(&agent.name);
                match &mut all[task] {
                    None => all[task] = Some(part),
                    Some(sum) => sum.add(part),
                }
            }
            last.push(figures);
        }
        *self.last.borrow_mut() = last;
        // The results of the others are reported; they are not valid.
        let lost = fleet.is_incomplete();
        drop(fleet);
        let Some(mut all) = all.into_iter().collect::<Option<Vec<P>>>() else {
            return self.check().and(Err(MeterError::new("no agent has a result")));
        };
        if lost {
            all.iter_mut().for_each(WorkerResult::incomplete);
        }
        Ok(all)
    }

    /// What the agents have verified; `None` where nothing was to be verified.
    pub(super) fn verified(&self) -> Option<VerifyReport> {
        self.verified_of(|_| true)
    }

    /// What the workers of one task have verified.
    pub(super) fn verified_of_task(&self, task: usize) -> Option<VerifyReport> {
        let tasks = self.facts.len();
        self.verified_of(|(number, all)| number / (all / tasks).max(1) == task)
    }

    /// What those workers have verified whose number, of all of their agent, `which` selects.
    fn verified_of(&self, which: impl Fn((usize, usize)) -> bool) -> Option<VerifyReport> {
        let mut all: Option<VerifyReport> = None;
        for agent in &self.fleet.borrow().agents {
            let workers = agent.workers.iter().enumerate();
            let chosen = workers.filter(|(number, _)| which((*number, agent.workers.len())));
            for verified in chosen.filter_map(|(_, worker)| worker.verified.clone()) {
                all.get_or_insert_default().add(verified.by(&agent.name));
            }
        }
        all
    }

    /// The reasons why the results are not those that were asked for.
    pub(super) fn why_not(&self) -> Vec<String> {
        let fleet = self.fleet.borrow();
        let lost = fleet.agents.iter().filter_map(|agent| {
            let why = agent.lost.as_ref()?;
            Some(format!("agent {} was lost: {}", agent.name, why.one_line()))
        });
        lost.collect()
    }

    /// Refuses the results of a fleet that has lost an agent.
    pub(super) fn check(&self) -> Result<(), MeterError> {
        self.why_not().first().map_or(Ok(()), |first| {
            Err(MeterError::new(format!("not valid: {first}"))
                .hint("what the others measured is reported; run again when all agents are there")
                .invalid())
        })
    }

    /// Adds to a page what each agent measured.
    pub(super) fn extend(&self, mut page: Page) -> Result<Page, MeterError> {
        page.blocks.extend(agents_page::blocks(&self.last())?);
        page.title = format!("{} on {}", page.title, count(self.last().len(), "agent"));
        // First, because nothing below can be relied on then.
        let verdicts = self
            .why_not()
            .into_iter()
            .map(|why| Block::Verdict(VerdictKind::Unknown, format!("Not valid: {why}.")));
        page.blocks.splice(0..0, verdicts);
        Ok(page)
    }

    /// Adds to a summary which agents measured what.
    pub(super) fn describe(&self, summary: &mut Value) {
        let why_not = self.why_not();
        if !why_not.is_empty() {
            summary["valid"] = json!(false);
            summary["complete"] = json!(false);
        }
        summary["why_not"] = json!(why_not);
        summary["agents"] = self.last().iter().map(AgentFigures::json).collect();
        summary["scenario"]["connected_in_ms"] = json!(self.connected.as_millis());
    }

    /// The figures of each agent in the last step.
    pub(super) fn last(&self) -> Ref<'_, [AgentFigures]> {
        Ref::map(self.last.borrow(), Vec::as_slice)
    }
}

/// The progress of all workers.
fn together<'a>(workers: impl Iterator<Item = &'a WorkerState>) -> RunProgress {
    workers.map(|worker| worker.progress).fold(RunProgress::default(), RunProgress::and)
}

type Connected = (Vec<AgentConnection>, Vec<Child>);

/// Connects to all agents in parallel: forty logins one after another would take long.
fn connect_all(
    config: &AgentsConfig,
    targets: Vec<&str>,
    began: Instant,
) -> Result<Connected, MeterError> {
    let AgentsConfig { agents, hosts, ssh, token, program, .. } = config;
    let deploy = match hosts.is_empty() {
        true => None,
        false => Some(RemoteDeploy::new(ssh, program.as_deref(), targets)?),
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
    let socket = TcpStream::connect_timeout(&address, CONNECT).map_err(cannot)?;
    // The exchange that compares the clocks must not wait for a full packet.
    socket.set_nodelay(true).map_err(cannot)?;
    let stream = HandshakeStream::new(socket, HANDSHAKE_LIMIT);
    let (from, to) = (Box::new(stream.clone()), Box::new(stream.clone()));
    let connection = fleet::connect(agent, from, to, token, began)?;
    // From here on the run observes whether the agent is silent.
    stream.lift(None).map_err(cannot)?;
    Ok(connection)
}

/// The state of all agents, one line each.
fn view(agents: &[AgentState]) -> String {
    let line = |agent: &AgentState| {
        let workers = &agent.workers;
        let ready = workers.iter().filter(|worker| worker.facts.is_some()).count();
        let RunProgress { elapsed, judged, late, .. } = together(workers.iter());
        let state = match agent {
            AgentState { lost: Some(_), .. } => "lost".to_owned(),
            _ if ready < workers.len() => format!("preparing, {ready} of {} ready", workers.len()),
            _ if workers.iter().all(|worker| !worker.busy) => "done".to_owned(),
            _ => format!("{:.0} s", elapsed.as_secs_f64()),
        };
        format!("{:20} {state:24} {judged:>10} done {late:>8} late", agent.name)
    };
    // The first line follows the prefix of the status, so that only the others are indented.
    agents.iter().map(line).collect::<Vec<_>>().join("\n  ")
}
