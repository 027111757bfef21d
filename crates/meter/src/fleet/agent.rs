//! An agent: waits for a controller and runs workers for it.

use super::channel::{self, Token, WireError};
use super::messages::{About, AgentReply, AgentRequest, WorkerOrder, WorkerTask};
use super::reply_writer::ReplyWriter;
use super::worker::WorkerProcess;
use crate::allowed::AllowedDirectories;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use units::Reason;
use units::nanos;

/// An agent: accepts one controller at a time and runs workers for it.
pub(crate) struct Agent {
    token: Token,
    allowed: AllowedDirectories,
    /// The command line that starts a worker.
    worker: Vec<OsString>,
    started: Instant,
    /// [`CONTROLLER_SILENCE`], or less in a test.
    pub(super) silence: Duration,
    /// Whether workers of a controller are running.
    busy: AtomicBool,
}

/// The largest number of workers of an agent.
const MOST_WORKERS: usize = 256;

/// The interval at which the controller hears from the agent.
const BEAT: Duration = Duration::from_secs(1);

/// Time without a message after which a controller counts as gone, once it has workers: they must
/// not load a storage for nobody. Controllers send a sign of life every second.
const CONTROLLER_SILENCE: Duration = Duration::from_secs(4);

/// Time without a message after which a controller without workers counts as gone: it waits for
/// other agents, which may take long to copy.
const CONNECTED_SILENCE: Duration = Duration::from_secs(300);

/// An event that an agent waits for.
enum AgentEvent {
    Asked(AgentRequest),
    Said(AgentReply),
    Gone,
}

impl Agent {
    /// An agent whose workers may use these directories. `worker` is the command line that starts
    /// one, the program first.
    pub(crate) fn new(
        token: Token,
        allowed: &[PathBuf],
        worker: Vec<OsString>,
    ) -> Result<Self, Reason> {
        let allowed = AllowedDirectories::new(allowed)?;
        let started = Instant::now();
        let (busy, silence) = (AtomicBool::new(false), CONTROLLER_SILENCE);
        Ok(Self { token, allowed, worker, started, silence, busy })
    }

    /// Serves one controller until the connection ends or is silent, and then stops its workers.
    /// `proven` is called once, when the peer has proven that it knows the token.
    ///
    /// # Errors
    /// The peer did not prove that it knows the token, or has another version, or `proven` failed.
    /// A closed connection is no error.
    pub(crate) fn serve<R, W>(
        &self,
        from: R,
        to: W,
        proven: impl FnOnce() -> Result<(), WireError>,
    ) -> Result<(), WireError>
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let (mut receiver, sender) = channel::accept(from, to, &self.token, about())?;
        proven()?;
        let replies = ReplyWriter::start(sender);
        let (events, incoming) = mpsc::channel();
        let asked = events.clone();
        // The thread ends with the connection, or with the process.
        std::thread::spawn(move || {
            while let Ok(request) = receiver.receive() {
                if asked.send(AgentEvent::Asked(request)).is_err() {
                    return;
                }
            }
            let _ = asked.send(AgentEvent::Gone);
        });
        let mut group = WorkerGroup { workers: Vec::new(), busy: None };
        let mut heard = Instant::now();
        loop {
            let silence = if group.workers.is_empty() { CONNECTED_SILENCE } else { self.silence };
            let left = silence.saturating_sub(heard.elapsed().max(replies.blocked()));
            if left.is_zero() {
                return Ok(());
            }
            let reply = match incoming.recv_timeout(left.min(BEAT)) {
                Ok(AgentEvent::Gone) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(AgentEvent::Said(reply)) => Some(reply),
                Err(RecvTimeoutError::Timeout) => Some(AgentReply::Alive),
                Ok(AgentEvent::Asked(request)) => {
                    heard = Instant::now();
                    self.answer(request, &mut group, &events)
                }
            };
            if reply.is_some_and(|reply| !replies.send(reply)) {
                return Ok(());
            }
        }
    }

    fn answer<'a>(
        &'a self,
        request: AgentRequest,
        group: &mut WorkerGroup<'a>,
        events: &mpsc::Sender<AgentEvent>,
    ) -> Option<AgentReply> {
        match request {
            AgentRequest::Clock => Some(AgentReply::Clock(self.now())),
            AgentRequest::Prepare(tasks, workers) => {
                group.end();
                self.prepare(tasks, workers, group, events).err().map(AgentReply::Refused)
            }
            AgentRequest::Begin(at, steps) => {
                let wait = Duration::from_nanos(at.saturating_sub(self.now()));
                // A controller with a wrong clock must not block the agent, which would notice its
                // silence later.
                std::thread::sleep(wait.min(LONGEST_WAIT));
                for (worker, step) in group.workers.iter_mut().zip(steps) {
                    let _ = step.map(|step| worker.tell(&WorkerOrder::Begin(step)));
                }
                Some(AgentReply::Begun(self.now().saturating_sub(at)))
            }
            AgentRequest::Enough => {
                for worker in &mut group.workers {
                    let _ = worker.tell(&WorkerOrder::Enough);
                }
                None
            }
            AgentRequest::Stop => {
                group.end();
                None
            }
        }
    }

    fn now(&self) -> u64 {
        nanos(self.started.elapsed())
    }

    fn prepare<'a>(
        &'a self,
        mut tasks: Vec<WorkerTask>,
        workers: usize,
        group: &mut WorkerGroup<'a>,
        events: &mpsc::Sender<AgentEvent>,
    ) -> Result<(), Reason> {
        let all = workers.saturating_mul(tasks.len());
        if !(1..=MOST_WORKERS).contains(&all) {
            let message = format!("{all} workers");
            return Err(Reason::new(message, format!("take 1 to {MOST_WORKERS}")));
        }
        // The resolved path is what the worker gets, so that the check and the use see the same
        // file.
        for task in &mut tasks {
            task.target = self.allowed.inside(&task.target, "this agent")?;
        }
        // Two runs at once would measure each other.
        if self.busy.swap(true, Ordering::Relaxed) {
            let message = "it is at work for a controller already";
            return Err(Reason::new(message, "wait until that is done"));
        }
        // From here on the end of the group makes the agent free again, on errors too.
        group.busy = Some(&self.busy);
        let failed = |error: io::Error| Reason::from(format!("cannot start workers: {error}"));
        let each = tasks.iter().flat_map(|task| std::iter::repeat_n(task, workers));
        for (number, task) in each.enumerate() {
            let events = events.clone();
            let pass_on = move |reply| {
                // Nobody is told once the controller is gone.
                let _ = events.send(AgentEvent::Said(reply));
            };
            let worker = WorkerProcess::start(number, &self.worker, task, pass_on);
            group.workers.push(worker.map_err(failed)?);
        }
        Ok(())
    }
}

/// The longest time from an order to begin until the beginning: controllers order it 1.5 s ahead.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The workers of one job.
struct WorkerGroup<'a> {
    workers: Vec<WorkerProcess>,
    /// The agent's flag, which is set as long as there are workers.
    busy: Option<&'a AtomicBool>,
}

impl WorkerGroup<'_> {
    /// Stops the workers, waits for their end, and makes the agent free again.
    fn end(&mut self) {
        self.workers.clear();
        if let Some(busy) = self.busy.take() {
            busy.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for WorkerGroup<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn about() -> About {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    About {
        host: read("/proc/sys/kernel/hostname"),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        kernel: read("/proc/sys/kernel/osrelease"),
    }
}
