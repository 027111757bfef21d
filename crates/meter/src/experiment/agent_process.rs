//! The agent (`meter agent`): waits for controllers, by TCP or on standard input and output; and
//! the worker, the process that an agent starts for a part of the streams.

use super::streams::{RunLength, StreamRuns, StreamsConfig};
use super::target::{OpenTarget, TargetPath, TargetSpec};
use super::transfers;
use crate::blame::beneath;
use crate::error::MeterError;
use crate::fleet::{
    Agent, ConnectionPlace, Connections, HANDSHAKE_LIMIT, HandshakeStream, StreamsWork,
    TargetFacts, Token, WireError, WorkerOrder, WorkerReply, WorkerStep, WorkerTask, WorkerWork,
};
use crate::log::LogSink;
use crate::observer::Observer;
use crate::progress::RunProgress;
use crate::transfers::TransferMix;
use serde::Serialize;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use units::{ByteCount, Hinted};

/// An agent that measures for controllers.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Directories in which controllers may measure.
    pub allowed: Vec<PathBuf>,
    /// The command line that starts a worker, the program first: a program that calls
    /// [`run_worker`].
    pub worker: Vec<OsString>,
}

/// Serves one controller on standard input and output; its first line is the token.
pub fn serve_agent_stdio(config: &AgentConfig) -> Result<(), MeterError> {
    let agent = Agent::new(first_line()?, &config.allowed, config.worker.clone())?;
    agent.serve(io::stdin(), io::stdout(), || Ok(())).map_err(|error| MeterError::of(&error))
}

/// Serves controllers by TCP until the process ends. `listening` is called once with the bound
/// address.
pub fn serve_agent(
    config: &AgentConfig,
    token: Token,
    listen: SocketAddr,
    listening: &dyn Fn(SocketAddr),
    note: fn(&str),
) -> Result<(), MeterError> {
    let agent = Arc::new(Agent::new(token, &config.allowed, config.worker.clone())?);
    let cannot = |error: io::Error| {
        MeterError::new(format!("cannot listen on {listen}: {error}"))
            .hint("choose another --listen")
    };
    let listener = TcpListener::bind(listen).map_err(cannot)?;
    listening(listener.local_addr().map_err(cannot)?);
    let connections = Arc::new(Connections::default());
    loop {
        // A failed accept concerns one connection, not the agent.
        let Ok((stream, peer)) = listener.accept() else {
            // Out of descriptors, for example: the next attempt would fail at once, too.
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        // The exchange that compares the clocks must not wait for a full packet.
        let _ = stream.set_nodelay(true);
        let stream = HandshakeStream::new(stream, HANDSHAKE_LIMIT);
        let place = connections.enter(peer.ip(), &stream);
        let agent = Arc::clone(&agent);
        std::thread::spawn(move || {
            if let Err(error) = serve(&agent, &stream, place) {
                note(&format!("{peer}: {}", error.one_line()));
            }
        });
    }
}

fn serve(
    agent: &Agent,
    stream: &HandshakeStream,
    mut place: ConnectionPlace,
) -> Result<(), WireError> {
    let served = agent.serve(stream.clone(), stream.clone(), || {
        place.prove()?;
        // From here on the agent observes whether the controller is silent.
        Ok(stream.lift(None)?)
    });
    // Ends the threads that read and write: a controller that hangs would keep them.
    stream.end();
    served
}

/// Reads the token in the file of `--token-file`, which only its owner may read.
pub fn read_token(path: Option<&Path>) -> Result<Token, MeterError> {
    let path = path.ok_or_else(|| {
        MeterError::usage("--token-file is missing")
            .hint("openssl rand -hex 32 > secret; chmod 600 secret")
    })?;
    let cannot = MeterError::cannot("read", path);
    let mut file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    // A pipe of the shell (`<(...)`) has a mode, too, but no one else can open it.
    let others = about.mode() & OPEN_TO_OTHERS;
    if about.is_file() && others != 0 {
        let path = path.display();
        // A token that somebody else has put there is one that somebody else knows.
        let may = if others & READABLE_BY_OTHERS != 0 { "read" } else { "change" };
        return Err(MeterError::new(format!("other users may {may} the token in {path}"))
            .hint(format!("chmod 600 {path}; make another token if it was not for them")));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(cannot)?;
    Token::new(&text).map_err(|error| MeterError::of(&error.reason().about(path.display())))
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Mode bits: the group and others may read, or read or write.
const READABLE_BY_OTHERS: u32 = 0o044;
const OPEN_TO_OTHERS: u32 = 0o066;

/// Reads the token on the first line of standard input byte by byte: the rest is for the agent.
fn first_line() -> Result<Token, MeterError> {
    let mut line = Vec::new();
    let mut byte = [0];
    // A line without an end must not fill memory: whoever sends it is not authenticated yet.
    while line.len() < 4096 && io::stdin().lock().read(&mut byte).is_ok_and(|read| read == 1) {
        if byte[0] == b'\n' {
            break;
        }
        line.push(byte[0]);
    }
    Ok(Token::new(&line)?)
}

/// Runs a worker: reads its task from standard input, prepares, and runs a step at each order. The
/// end of standard input stops it.
pub fn run_worker(observer: &dyn Observer) -> Result<(), MeterError> {
    let mut line = String::new();
    let read = io::stdin().lock().take(MAX_TASK).read_line(&mut line);
    read.map_err(|error| MeterError::new(format!("cannot read standard input: {error}")))?;
    let WorkerTask { target, size, fill_level, buffered, drop_caches, verify, method, work } =
        serde_json::from_str(&line).map_err(|error| {
            MeterError::usage(format!("no task of an agent on standard input: {error}"))
                .hint("workers are started by agents; start an agent")
        })?;
    let spec = TargetSpec {
        target,
        path: TargetPath::Resolved,
        size: ByteCount(size),
        fill_level: fill_level.map(|percent| percent.clamp(1, 99)),
        buffered,
        // A controller can never order an agent to overwrite what is there.
        destructive: false,
        method: method.parse()?,
        drop_caches,
        verify,
        ..TargetSpec::default()
    };
    // From here on the end of standard input stops also the preparation.
    let worker = Worker { orders: Orders::read(observer), observer };
    match work {
        WorkerWork::Streams(work) => worker.streams(spec, work),
        WorkerWork::Transfers(mix) => worker.transfers(&spec, &mix),
    }
}

/// Bytes of a task, most of which are its profile.
const MAX_TASK: u64 = 1 << 20;

/// Streams, clients, and frames that a client buffers: the bounds of the options of the commands.
/// The values come over the network and would otherwise be reserved as memory.
const MAX_STREAMS: u32 = 100_000;
const MAX_CLIENTS: u32 = 1000;
const MAX_BUFFER_FRAMES: u32 = 10_000;

struct Worker<'a> {
    orders: Orders,
    observer: &'a dyn Observer,
}

impl Worker<'_> {
    fn streams(&self, spec: TargetSpec, work: StreamsWork) -> Result<(), MeterError> {
        let StreamsWork { profile, buffer, layout, busy_poll, most, within, part, null, warm } =
            work;
        profile.check().map_err(|error| MeterError::of(&error))?;
        within_bounds(buffer, MAX_BUFFER_FRAMES)?;
        let path = spec.target.clone();
        let config = StreamsConfig {
            profile,
            target: spec,
            layout: Some(layout.parse().map_err(MeterError::usage)?),
            buffer,
            // Each step has its own length.
            duration: RunLength::Exactly(Duration::ZERO),
            realtime: false,
            spin: busy_poll,
            metrics: None,
        };
        let mut runs = StreamRuns::new(&config, self.observer)?;
        (runs.within, runs.null, runs.warm) = (within.map(ByteCount), null, warm);
        // A plan of the shortest run shows that the files have room for streams.
        runs.length = config
            .profile
            .fps
            .map_or(Duration::ZERO, |fps| config.profile.reads_per_second(fps).moment(1));
        let target = runs.open(1..=within_bounds(most, MAX_STREAMS)?, self.observer)?;
        // Files that are made are for one worker only.
        let part = part.filter(|_| runs.config.target.is_one());
        let base = part.map(|part| match part.number < part.of {
            true => Ok(runs.use_part(target.shape(), part)),
            false => Err(other_version()),
        });
        let base = base.transpose()?.unwrap_or(0);
        self.ready(&target, &path);
        while let Some(step) = self.orders.next() {
            let WorkerStep::Streams { streams, first_stream, length, continues } = step else {
                return Err(other_version());
            };
            within_bounds(streams, MAX_STREAMS)?;
            let first_stream = first_stream.min(MAX_STREAMS);
            let mut plan = runs.plan(streams, length, &target)?.after(first_stream).from(base);
            plan.continues = continues;
            let mut go_on = |progress| self.go_on(progress);
            let log = &mut LogSink::none();
            self.done(&target, &runs.attempt(&target, &plan, log, &mut go_on, self.observer)?);
        }
        Ok(())
    }

    fn transfers(&self, spec: &TargetSpec, mix: &TransferMix) -> Result<(), MeterError> {
        spec.check()?;
        within_bounds(mix.files, MAX_STREAMS)?;
        let target = transfers::open(spec, mix, self.observer)?;
        self.ready(&target, &spec.target);
        while let Some(step) = self.orders.next() {
            let WorkerStep::Transfers(plan) = step else { return Err(other_version()) };
            within_bounds(plan.clients, MAX_CLIENTS)?;
            let plan = transfers::fit(&target, &plan)?;
            let mut go_on = |progress| self.go_on(progress);
            let log = &mut LogSink::none();
            self.done(
                &target,
                &transfers::attempt(&target, &plan, log, None, &mut go_on, self.observer)?,
            );
        }
        Ok(())
    }

    fn ready(&self, target: &OpenTarget, path: &str) {
        self.report(&WorkerReply::Ready(TargetFacts {
            shape: target.shape(),
            caches: target.caches().to_owned(),
            stack: beneath(Path::new(path)),
        }));
    }

    fn done(&self, target: &OpenTarget, result: &impl Serialize) {
        let result = serde_json::to_value(result).expect("results have text keys only");
        self.report(&WorkerReply::Done(result, target.verified()));
    }

    fn report(&self, reply: &WorkerReply) {
        let line = serde_json::to_string(reply).expect("reports have text keys only");
        self.observer.signal(&line);
    }

    /// Reports the progress once a second; returns whether the step goes on.
    fn go_on(&self, progress: RunProgress) -> bool {
        let orders = &self.orders;
        if orders.told.get().elapsed() >= Duration::from_secs(1) {
            orders.told.set(Instant::now());
            self.report(&WorkerReply::Progress(progress));
        }
        !self.observer.is_stopped() && !orders.enough.load(Ordering::Relaxed)
    }
}

fn within_bounds(value: u32, most: u32) -> Result<u32, MeterError> {
    if (1..=most).contains(&value) { Ok(value) } else { Err(other_version()) }
}

fn other_version() -> MeterError {
    MeterError::usage("the task asks for more than a worker does")
        .hint("use the same version of tenuto for the controller and its agents")
}

/// The orders of the agent, read from standard input by a thread that ends with the process.
struct Orders {
    steps: mpsc::Receiver<WorkerStep>,
    /// The running step is to end.
    enough: Arc<AtomicBool>,
    /// When progress was reported last.
    told: Cell<Instant>,
}

impl Orders {
    fn read(observer: &dyn Observer) -> Self {
        let (sender, steps) = mpsc::channel();
        let enough = Arc::<AtomicBool>::default();
        let (ends, stop) = (Arc::clone(&enough), Arc::clone(observer.stop()));
        std::thread::spawn(move || {
            let orders = io::stdin().lock().lines().map_while(Result::ok);
            for order in orders.map_while(|line| serde_json::from_str(&line).ok()) {
                match order {
                    WorkerOrder::Begin(step) => {
                        // An order that came after the end of the step before is not for this one.
                        ends.store(false, Ordering::Relaxed);
                        let _ = sender.send(step);
                    }
                    WorkerOrder::Enough => ends.store(true, Ordering::Relaxed),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        Self { steps, enough, told: Cell::new(Instant::now()) }
    }

    /// Waits for the next step; `None` when there are no more.
    fn next(&self) -> Option<WorkerStep> {
        let step = self.steps.recv().ok();
        self.told.set(Instant::now());
        step
    }
}
