//! An agent: waits for a controller and runs workers for it.

use super::channel::{self, Token, WireError};
use super::messages::{About, AgentReply, AgentRequest, WorkerJob};
use super::worker::WorkerProcess;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use units::nanos;
use units::{Hinted, Reason};

/// An agent: accepts one controller at a time and runs workers for it.
pub(crate) struct Agent {
    token: Token,
    /// Absolute paths without symbolic links.
    allowed: Vec<PathBuf>,
    /// The command line that starts a worker.
    worker: Vec<OsString>,
    started: Instant,
    /// Whether workers of a controller are running.
    busy: AtomicBool,
}

/// A directory that cannot be allowed.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be allowed: {reason}", path.display())]
pub struct NotAllowed {
    path: PathBuf,
    reason: std::io::Error,
}

impl Hinted for NotAllowed {
    fn hint(&self) -> Option<String> {
        Some("name a directory that is there".to_owned())
    }
}

/// The largest number of workers of an agent.
const MOST_WORKERS: usize = 256;

/// The interval at which the controller hears from the agent.
const BEAT: Duration = Duration::from_secs(1);

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
    ) -> Result<Self, NotAllowed> {
        let full = |path: &PathBuf| {
            path.canonicalize().map_err(|reason| NotAllowed { path: path.clone(), reason })
        };
        // Resolved once at the start: a link that is changed later must not widen what is allowed.
        let allowed = allowed.iter().map(full).collect::<Result<_, _>>()?;
        let started = Instant::now();
        Ok(Self { token, allowed, worker, started, busy: AtomicBool::new(false) })
    }

    /// Serves one controller until the connection ends, and then stops its workers. `proven` is
    /// called once, when the peer has proven that it knows the token.
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
        W: Write,
    {
        let (mut receiver, mut sender) = channel::accept(from, to, &self.token, about())?;
        proven()?;
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
        loop {
            let reply = match incoming.recv_timeout(BEAT) {
                Ok(AgentEvent::Gone) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(AgentEvent::Said(reply)) => reply,
                Err(RecvTimeoutError::Timeout) => AgentReply::Alive,
                Ok(AgentEvent::Asked(AgentRequest::Clock)) => AgentReply::Clock(self.now()),
                Ok(AgentEvent::Asked(AgentRequest::Stop)) => {
                    group.end();
                    continue;
                }
                Ok(AgentEvent::Asked(AgentRequest::Prepare(job))) => {
                    match self.prepare(job, &mut group, &events) {
                        Ok(()) => continue,
                        Err(why) => AgentReply::Refused(why),
                    }
                }
                Ok(AgentEvent::Asked(AgentRequest::Begin(at))) => {
                    let wait = Duration::from_nanos(at.saturating_sub(self.now()));
                    // A controller with a wrong clock must not block the agent.
                    std::thread::sleep(wait.min(LONGEST_WAIT));
                    for worker in &mut group.workers {
                        let _ = worker.begin();
                    }
                    AgentReply::Begun(self.now().saturating_sub(at))
                }
            };
            if sender.send(&reply).is_err() {
                return Ok(());
            }
        }
    }

    fn now(&self) -> u64 {
        nanos(self.started.elapsed())
    }

    fn prepare<'a>(
        &'a self,
        mut job: WorkerJob,
        group: &mut WorkerGroup<'a>,
        events: &mpsc::Sender<AgentEvent>,
    ) -> Result<(), Reason> {
        if job.streams.is_empty() || job.streams.len() > MOST_WORKERS {
            let message = format!("{} workers", job.streams.len());
            return Err(Reason::new(message, format!("take 1 to {MOST_WORKERS}")));
        }
        // The resolved path is what the worker gets, so that the check and the use see the same
        // file.
        job.target = self.inside(&job.target)?;
        // Two runs at once would measure each other.
        if self.busy.swap(true, Ordering::Relaxed) {
            let message = "it is at work for a controller already";
            return Err(Reason::new(message, "wait until that is done"));
        }
        // From here on dropping the group makes the agent free again, on errors too.
        group.busy = Some(&self.busy);
        let failed = |error: io::Error| Reason::from(format!("cannot start workers: {error}"));
        for number in 0..job.streams.len() {
            let (replies, said) = mpsc::channel();
            let worker = WorkerProcess::start(number, &self.worker, &job.task(number), replies);
            group.workers.push(worker.map_err(failed)?);
            let events = events.clone();
            std::thread::spawn(move || {
                said.into_iter()
                    .try_for_each(|reply| events.send(AgentEvent::Said(reply)).map_err(drop))
            });
        }
        Ok(())
    }

    /// The target after resolving links, if it is in an allowed directory.
    fn inside(&self, target: &str) -> Result<String, Reason> {
        let full =
            Path::new(target).canonicalize().map_err(|error| error.reason().about(target))?;
        let inside = self.allowed.iter().any(|allowed| full.starts_with(allowed));
        let text = full.to_str().filter(|_| inside).map(str::to_owned);
        text.ok_or_else(|| {
            let allowed: Vec<String> =
                self.allowed.iter().map(|path| path.display().to_string()).collect();
            let allowed = allowed.join(", ");
            format!("{target} lies outside of what this agent may touch: {allowed}").into()
        })
    }
}

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The workers of one job.
struct WorkerGroup<'a> {
    workers: Vec<WorkerProcess>,
    /// The agent's flag, which is set as long as this job has workers.
    busy: Option<&'a AtomicBool>,
}

impl WorkerGroup<'_> {
    fn end(&mut self) {
        self.workers.clear();
    }
}

impl Drop for WorkerGroup<'_> {
    fn drop(&mut self) {
        self.end();
        if let Some(busy) = self.busy {
            busy.store(false, Ordering::Relaxed);
        }
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
