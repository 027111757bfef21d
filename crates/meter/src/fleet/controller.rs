//! The controller: connects to agents, prepares them, starts them together, and collects results.

use super::channel::{self, Receiver, Sender, Token, WireError};
use super::clock::{Offset, offset};
use super::messages::{About, AgentReply, AgentRequest, WorkerJob};
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use units::nanos;
use units::{Hinted, Reason};

type BoxedRead = Box<dyn Read + Send>;
type BoxedWrite = Box<dyn Write + Send>;

/// An authenticated agent whose clock offset is known.
pub(crate) struct AgentConnection {
    name: String,
    about: About,
    clock: Offset,
    receiver: Receiver<BoxedRead>,
    sender: Sender<BoxedWrite>,
}

/// The outcome of a fleet's run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    /// The agents in the order in which the user named them.
    pub agents: Vec<AgentOutcome>,
}

/// The outcome of one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentOutcome {
    /// The agent's name at the controller.
    pub name: String,
    /// The agent's machine.
    pub about: About,
    /// The offset of the agent's clock from the controller's.
    pub clock: Offset,
    /// The delay with which it started its workers, in nanoseconds; `None` if it never did.
    pub begun_late_ns: Option<u64>,
    /// The outcomes of its workers in order; `None` where no result arrived.
    pub workers: Vec<Option<WorkerOutcome>>,
    /// The reason why the agent was lost.
    pub lost: Option<Reason>,
}

/// The outcome of one worker, which is a complete `meter run`.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOutcome {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its summary; `None` if the output is no JSON.
    pub summary: Option<Value>,
    /// Its notes and errors.
    pub said: String,
}

/// The failure of a fleet before its start. Nothing has been measured.
#[derive(Debug, thiserror::Error)]
#[error("agent {agent}: {reason}")]
pub struct FleetError {
    /// The agent that failed.
    pub agent: String,
    /// The reason and the remedy.
    pub reason: Reason,
}

impl Hinted for FleetError {
    fn hint(&self) -> Option<String> {
        self.reason.hint.clone()
    }
}

/// The progress of all agents, reported about once a second and at every change.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentProgress {
    /// The agent's name at the controller.
    pub name: String,
    /// The number of workers.
    pub workers: usize,
    /// Number of prepared workers.
    pub ready: usize,
    /// Number of workers that have ended.
    pub done: usize,
    /// The progress of the furthest worker, in seconds.
    pub seconds: f64,
    /// Judged frames of all workers.
    pub frames: u64,
    /// Frames that the storage delivered late.
    pub late: u64,
    /// Whether the agent is lost.
    pub lost: bool,
}

/// Number of clock exchanges: of nine, one is likely to meet no queue on the path.
const EXCHANGES: usize = 9;
/// Time without a message after which an agent counts as lost; agents report every second.
const SILENCE: Duration = Duration::from_secs(10);
/// The interval at which agents hear from the controller; see [`CONTROLLER_SILENCE`].
const BEAT: Duration = Duration::from_secs(5);
/// Time without a message after which an agent takes its controller for lost.
pub(crate) const CONTROLLER_SILENCE: Duration = Duration::from_secs(30);
/// Time from the order to start until the start itself: longer than any message takes.
const AHEAD: Duration = Duration::from_millis(1500);

/// Authenticates both sides, and measures the offset of the agent's clock. All times of the
/// controller count from `began`.
pub(crate) fn connect(
    name: &str,
    from: BoxedRead,
    to: BoxedWrite,
    token: &Token,
    began: Instant,
) -> Result<AgentConnection, FleetError> {
    let failed = |error: WireError| FleetError { agent: name.to_owned(), reason: error.reason() };
    let ((mut receiver, mut sender), about) = channel::greet(from, to, token).map_err(failed)?;
    let mut exchanges = Vec::new();
    while exchanges.len() < EXCHANGES {
        let sent = nanos(began.elapsed());
        sender.send(&AgentRequest::Clock).map_err(failed)?;
        let theirs = loop {
            // The agent sends signs of life in between.
            if let AgentReply::Clock(theirs) = receiver.receive().map_err(failed)? {
                break theirs;
            }
        };
        exchanges.push((sent, theirs, nanos(began.elapsed())));
    }
    let clock = offset(&exchanges).unwrap_or_default();
    Ok(AgentConnection { name: name.to_owned(), about, clock, receiver, sender })
}

/// An event of a fleet: the agent's index, and its message or error.
type FleetEvent = (usize, Result<AgentReply, WireError>);

/// Runs a job on each agent. `watch` receives progress and returns whether to continue.
///
/// # Errors
/// Fails when an agent refuses, or a worker ends, before any has begun.
pub(crate) fn run(
    connections: Vec<AgentConnection>,
    jobs: Vec<WorkerJob>,
    began: Instant,
    watch: &mut dyn FnMut(&[AgentProgress]) -> bool,
) -> Result<Fleet, FleetError> {
    let mut bridge = Bridge::new(connections, &jobs);
    for (agent, job) in jobs.into_iter().enumerate() {
        bridge.tell(agent, &AgentRequest::Prepare(job));
    }
    let result = bridge.prepare(watch).map(|()| {
        let at = nanos(began.elapsed()) + nanos(AHEAD);
        for agent in 0..bridge.outcome.agents.len() {
            let theirs = bridge.outcome.agents[agent].clock.theirs(at);
            bridge.tell(agent, &AgentRequest::Begin(theirs));
        }
        bridge.collect(watch);
    });
    bridge.stop();
    result.map(|()| bridge.outcome)
}

struct Bridge {
    outcome: Fleet,
    seen: Vec<AgentProgress>,
    /// Frames and late frames by worker, for each agent.
    counts: Vec<Vec<(u64, u64)>>,
    senders: Vec<Sender<BoxedWrite>>,
    events: mpsc::Receiver<FleetEvent>,
    heard: Vec<Instant>,
    stopped: bool,
    /// When agents last heard from the controller.
    beat: Instant,
}

impl Bridge {
    fn new(connections: Vec<AgentConnection>, jobs: &[WorkerJob]) -> Self {
        let (said, events) = mpsc::channel();
        let (mut agents, mut seen, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let mut senders = Vec::new();
        for (number, (connection, job)) in connections.into_iter().zip(jobs).enumerate() {
            let AgentConnection { name, about, clock, mut receiver, sender } = connection;
            let workers = job.streams.len();
            seen.push(AgentProgress { name: name.clone(), workers, ..AgentProgress::default() });
            counts.push(vec![(0, 0); workers]);
            let none = vec![None; workers];
            agents.push(AgentOutcome { name, about, clock, workers: none, ..Default::default() });
            senders.push(sender);
            let said = said.clone();
            // A thread per agent, because a receiver blocks; they end with their connections.
            std::thread::spawn(move || {
                loop {
                    let reply = receiver.receive();
                    let over = reply.is_err();
                    if said.send((number, reply)).is_err() || over {
                        return;
                    }
                }
            });
        }
        let heard = vec![Instant::now(); agents.len()];
        Self {
            outcome: Fleet { agents },
            seen,
            counts,
            senders,
            events,
            heard,
            stopped: false,
            beat: Instant::now(),
        }
    }

    /// Waits until all workers are ready.
    fn prepare(
        &mut self,
        watch: &mut dyn FnMut(&[AgentProgress]) -> bool,
    ) -> Result<(), FleetError> {
        while self.seen.iter().any(|agent| agent.ready < agent.workers) {
            if !self.turn(watch) {
                return Err(FleetError { agent: "all".to_owned(), reason: "interrupted".into() });
            }
            for agent in &self.outcome.agents {
                let failed = |reason| FleetError { agent: agent.name.clone(), reason };
                if let Some(why) = &agent.lost {
                    return Err(failed(why.clone()));
                }
                // A worker that ended before the start has failed.
                if let Some(worker) = agent.workers.iter().flatten().next() {
                    return Err(failed(worker.said.trim().into()));
                }
            }
        }
        Ok(())
    }

    /// Waits until all workers have ended, or an agent is lost: then the other agents are stopped,
    /// and their results until then are collected.
    fn collect(&mut self, watch: &mut dyn FnMut(&[AgentProgress]) -> bool) {
        let over = |agent: &AgentProgress| agent.lost || agent.done == agent.workers;
        while !self.seen.iter().all(over) {
            let go_on = self.turn(watch);
            if !go_on || self.seen.iter().any(|agent| agent.lost) {
                self.stop();
            }
        }
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            for agent in 0..self.senders.len() {
                self.tell(agent, &AgentRequest::Stop);
            }
        }
    }

    fn tell(&mut self, agent: usize, request: &AgentRequest) {
        if let Err(error) = self.senders[agent].send(request) {
            self.lose(agent, error.reason());
        }
    }

    fn lose(&mut self, agent: usize, why: Reason) {
        // The first reason is the cause; later ones follow from it.
        self.outcome.agents[agent].lost.get_or_insert(why);
        self.seen[agent].lost = true;
    }

    /// Waits for the next event.
    fn turn(&mut self, watch: &mut dyn FnMut(&[AgentProgress]) -> bool) -> bool {
        if self.beat.elapsed() > BEAT {
            self.beat = Instant::now();
            for agent in 0..self.senders.len() {
                if !self.over(agent) && !self.seen[agent].lost {
                    self.tell(agent, &AgentRequest::Clock);
                }
            }
        }
        match self.events.recv_timeout(Duration::from_millis(500)) {
            Ok((agent, Ok(reply))) => {
                self.heard[agent] = Instant::now();
                self.said(agent, reply);
            }
            Ok((agent, Err(error))) => {
                // An agent that has delivered all results may close its connection.
                if self.seen[agent].done < self.seen[agent].workers {
                    self.lose(agent, error.reason());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                (0..self.seen.len()).for_each(|agent| self.lose(agent, "it is gone".into()));
            }
        }
        for agent in 0..self.seen.len() {
            if self.heard[agent].elapsed() > SILENCE && !self.over(agent) {
                self.lose(agent, format!("nothing heard for {} s", SILENCE.as_secs()).into());
            }
        }
        watch(&self.seen)
    }

    fn over(&self, agent: usize) -> bool {
        self.seen[agent].done == self.seen[agent].workers
    }

    fn said(&mut self, agent: usize, reply: AgentReply) {
        let (seen, outcome) = (&mut self.seen[agent], &mut self.outcome.agents[agent]);
        match reply {
            AgentReply::Clock(_) | AgentReply::Alive => {}
            AgentReply::Refused(why) => {
                self.lose(agent, why);
            }
            AgentReply::Ready(_) => seen.ready += 1,
            AgentReply::Begun(late) => outcome.begun_late_ns = Some(late),
            AgentReply::Progress { worker, seconds, frames, late } => {
                if let Some(count) = self.counts[agent].get_mut(worker) {
                    *count = (frames, late);
                }
                seen.seconds = seen.seconds.max(seconds);
                seen.frames = self.counts[agent].iter().map(|(frames, _)| frames).sum();
                seen.late = self.counts[agent].iter().map(|(_, late)| late).sum();
            }
            AgentReply::Done { worker, code, summary, said } => {
                if let Some(place) = outcome.workers.get_mut(worker).filter(|place| place.is_none())
                {
                    *place = Some(WorkerOutcome { code, summary, said });
                    seen.done += 1;
                }
            }
        }
    }
}
