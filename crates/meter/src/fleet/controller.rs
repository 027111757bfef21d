//! The controller: connects to agents, prepares their workers once, and has them run one step after
//! another at the same moment.

use super::channel::{self, Receiver, Sender, Token, WireError};
use super::clock::{Offset, offset};
use super::messages::{
    About, AgentReply, AgentRequest, TargetFacts, WorkerReply, WorkerStep, WorkerTask,
};
use crate::progress::RunProgress;
use crate::target::VerifyReport;
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{Hinted, Reason};
use units::{locked, nanos};

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

/// An agent and its workers, as the controller knows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentState {
    /// The agent's name at the controller.
    pub name: String,
    /// The agent's machine.
    pub about: About,
    /// The offset of the agent's clock from the controller's.
    pub clock: Offset,
    /// The delay with which it started its workers, in nanoseconds; `None` if it never did.
    pub begun_late_ns: Option<u64>,
    /// The agent's workers in order.
    pub workers: Vec<WorkerState>,
    /// The reason why the agent was lost.
    pub lost: Option<Reason>,
}

/// A worker, as the controller knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerState {
    /// What it has prepared.
    pub facts: Option<TargetFacts>,
    /// Whether it is in a step.
    pub busy: bool,
    pub progress: RunProgress,
    /// The result of its last step.
    pub result: Option<Value>,
    /// What it has verified in all steps.
    pub verified: Option<VerifyReport>,
    /// Whether its process is gone.
    pub ended: bool,
}

/// Number of clock exchanges: of nine, one is likely to meet no queue on the path.
const EXCHANGES: usize = 9;
/// Time without a message after which an agent counts as lost; agents report every second.
const SILENCE: Duration = Duration::from_secs(10);
/// The interval at which agents hear from the controller.
const BEAT: Duration = Duration::from_secs(1);
/// Time from the order to start until the start itself: longer than any message takes.
const AHEAD: Duration = Duration::from_millis(1500);
/// Time for workers to end: for removing what they made.
const ENDING: Duration = Duration::from_secs(30);

/// Authenticates both sides, and measures the offset of the agent's clock. All times of the
/// controller count from `began`.
pub(crate) fn connect(
    name: &str,
    from: BoxedRead,
    to: BoxedWrite,
    token: &Token,
    began: Instant,
) -> Result<AgentConnection, Reason> {
    let failed = |error: WireError| error.reason().about(format!("agent {name}"));
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

type Senders = Vec<Sender<BoxedWrite>>;

/// Agents whose workers run the same steps together. Dropping it ends the workers.
pub(crate) struct Fleet {
    /// The agents in the order in which the user named them.
    pub(crate) agents: Vec<AgentState>,
    /// Shared with the thread that sends signs of life.
    senders: Arc<Mutex<Senders>>,
    events: mpsc::Receiver<FleetEvent>,
    heard: Vec<Instant>,
    began: Instant,
}

/// Receives the state of all agents about once a second and at every change, and decides whether
/// to go on.
pub(crate) type WatchFleet<'a> = dyn FnMut(&[AgentState]) -> bool + 'a;

impl Fleet {
    pub(crate) fn new(connections: Vec<AgentConnection>, began: Instant) -> Self {
        let (said, events) = mpsc::channel();
        let (mut agents, mut senders) = (Vec::new(), Vec::new());
        for (number, connection) in connections.into_iter().enumerate() {
            let AgentConnection { name, about, clock, mut receiver, sender } = connection;
            agents.push(AgentState { name, about, clock, ..AgentState::default() });
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
        let senders = Arc::new(Mutex::new(senders));
        let alive = Arc::downgrade(&senders);
        // A thread of its own: agents must hear from a controller that is drawing a report.
        std::thread::spawn(move || {
            while let Some(senders) = alive.upgrade() {
                for sender in &mut *locked(&senders) {
                    // A lost agent is noticed where its replies are received.
                    let _ = sender.send(&AgentRequest::Clock);
                }
                drop(senders);
                std::thread::sleep(BEAT);
            }
        });
        let heard = vec![Instant::now(); agents.len()];
        Self { agents, senders, events, heard, began }
    }

    /// Starts `workers` workers for each task on each agent, in the order of the tasks and in place
    /// of those before, and waits until all are ready.
    ///
    /// # Errors
    /// Fails when an agent refuses or is lost, or a worker ends.
    pub(crate) fn prepare(
        &mut self,
        tasks: &[WorkerTask],
        workers: usize,
        watch: &mut WatchFleet<'_>,
    ) -> Result<(), Reason> {
        for agent in 0..self.agents.len() {
            self.agents[agent].workers = vec![WorkerState::default(); tasks.len() * workers];
            self.tell(agent, &AgentRequest::Prepare(tasks.to_vec(), workers));
        }
        let unprepared = |worker: &WorkerState| worker.facts.is_none();
        while self.workers().any(unprepared) {
            let go_on = self.turn(watch);
            let lost = self.agents.iter().find_map(|agent| Some((agent, agent.lost.clone()?)));
            if let Some((agent, reason)) = lost {
                return Err(reason.about(format!("agent {}", agent.name)));
            }
            if !go_on {
                return Err("agent all: interrupted".into());
            }
        }
        Ok(())
    }

    /// Runs a step on all workers that have one, and waits until it is over. A lost agent, and a
    /// `watch` that returns false, end it early; each worker's result until then is kept.
    pub(crate) fn step(&mut self, steps: Vec<Option<WorkerStep>>, watch: &mut WatchFleet<'_>) {
        let at = nanos(self.began.elapsed()) + nanos(AHEAD);
        let mut steps = steps.into_iter();
        for agent in 0..self.agents.len() {
            let state = &mut self.agents[agent];
            let own: Vec<_> = steps.by_ref().take(state.workers.len()).collect();
            for (worker, step) in state.workers.iter_mut().zip(&own) {
                worker.busy = step.is_some();
                (worker.progress, worker.result) = (RunProgress::default(), None);
            }
            let theirs = state.clock.theirs(at);
            self.tell(agent, &AgentRequest::Begin(theirs, own));
        }
        let mut enough = false;
        while self.workers().any(|worker| worker.busy) {
            let go_on = self.turn(watch);
            if (!go_on || self.is_incomplete()) && !std::mem::replace(&mut enough, true) {
                self.tell_all(&AgentRequest::Enough);
            }
        }
    }

    /// Whether an agent is lost.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.agents.iter().any(|agent| agent.lost.is_some())
    }

    /// The workers of the agents that are there.
    fn workers(&self) -> impl Iterator<Item = &WorkerState> {
        let there = self.agents.iter().filter(|agent| agent.lost.is_none());
        there.flat_map(|agent| &agent.workers)
    }

    fn tell_all(&mut self, request: &AgentRequest) {
        (0..self.agents.len()).for_each(|agent| self.tell(agent, request));
    }

    fn tell(&mut self, agent: usize, request: &AgentRequest) {
        let told = locked(&self.senders)[agent].send(request);
        if let Err(error) = told {
            self.lose(agent, error.reason());
        }
    }

    fn lose(&mut self, agent: usize, why: Reason) {
        // The first reason is the cause; later ones follow from it.
        self.agents[agent].lost.get_or_insert(why);
    }

    /// Waits for the next event.
    fn turn(&mut self, watch: &mut WatchFleet<'_>) -> bool {
        match self.events.recv_timeout(Duration::from_millis(500)) {
            Ok((agent, Ok(reply))) => {
                self.heard[agent] = Instant::now();
                self.said(agent, reply);
            }
            Ok((agent, Err(error))) => self.lose(agent, error.reason()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                (0..self.agents.len()).for_each(|agent| self.lose(agent, "it is gone".into()));
            }
        }
        for agent in 0..self.agents.len() {
            if self.heard[agent].elapsed() > SILENCE {
                self.lose(agent, format!("nothing heard for {} s", SILENCE.as_secs()).into());
            }
        }
        watch(&self.agents)
    }

    fn said(&mut self, agent: usize, reply: AgentReply) {
        let state = &mut self.agents[agent];
        match reply {
            AgentReply::Clock(_) | AgentReply::Alive => {}
            AgentReply::Refused(why) => self.lose(agent, why),
            AgentReply::Begun(late) => state.begun_late_ns = Some(late),
            AgentReply::Worker(number, reply) => {
                let Some(worker) = state.workers.get_mut(number) else { return };
                match reply {
                    WorkerReply::Ready(facts) => worker.facts = Some(facts),
                    WorkerReply::Progress(progress) => worker.progress = progress,
                    WorkerReply::Done(result, verified) => {
                        (worker.busy, worker.result) = (false, Some(result));
                        worker.verified = verified;
                    }
                }
            }
            AgentReply::Ended(number, said) => {
                if let Some(worker) = state.workers.get_mut(number) {
                    worker.ended = true;
                }
                let why = match said.trim() {
                    "" => "ended without a word".to_owned(),
                    said => said.replace('\n', "; "),
                };
                self.lose(agent, format!("worker {}: {why}", number + 1).into());
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.tell_all(&AgentRequest::Stop);
        // Their files are removed before this program goes on, or ends.
        let until = Instant::now() + ENDING;
        let there = |agent: &AgentState| {
            agent.lost.is_none() && agent.workers.iter().any(|worker| !worker.ended)
        };
        while self.agents.iter().any(there) && Instant::now() < until {
            match self.events.recv_timeout(BEAT) {
                Ok((agent, Ok(AgentReply::Ended(number, _)))) => {
                    let worker = self.agents[agent].workers.get_mut(number);
                    worker.into_iter().for_each(|worker| worker.ended = true);
                }
                Ok((agent, Err(error))) => self.lose(agent, error.reason()),
                _ => {}
            }
        }
    }
}
