//! The agent (`meter agent`): waits for controllers, by TCP or on standard input and output; and
//! the worker, the process that an agent starts for a part of the streams.

use super::rate_alarm::RateAlarmConfig;
use super::record::ExperimentReport;
use super::streams::{RunLength, StreamRunConfig, StreamsConfig, run_streams};
use super::target::TargetSpec;
use crate::error::MeterError;
use crate::fleet::{
    Agent, CONTROLLER_SILENCE, ConnectionPlace, Connections, HANDSHAKE_LIMIT, HandshakeStream,
    Token, WireError, WorkerTask,
};
use crate::observer::Observer;
use crate::profiles::ProfileError;
use crate::s3::Access;
use device::Method;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
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
    agent.serve(stream.clone(), stream.clone(), || {
        place.prove()?;
        // A controller that is cut off sends no end of the connection; without a limit its workers
        // would keep the agent busy for ever.
        Ok(stream.lift(Some(CONTROLLER_SILENCE))?)
    })
}

/// Reads the token in the file of `--token-file`, which only its owner may read.
pub fn read_token(path: Option<&Path>) -> Result<Token, MeterError> {
    let path = path.ok_or_else(|| {
        MeterError::usage("--token-file is missing")
            .hint("openssl rand -hex 32 > secret; chmod 600 secret")
    })?;
    let cannot = |error: io::Error| MeterError::cannot("read", path, &error);
    let mut file = File::open(path).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    // A pipe of the shell (`<(...)`) has a mode, too, but no one else can open it.
    if about.is_file() && about.mode() & READABLE_BY_OTHERS != 0 {
        let path = path.display();
        return Err(MeterError::new(format!("other users may read the token in {path}"))
            .hint(format!("chmod 600 {path}; make another token if it was not for them")));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(cannot)?;
    Token::new(&text).map_err(|error| MeterError::of(&error.reason().about(path.display())))
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Mode bits: the group and others may read.
const READABLE_BY_OTHERS: u32 = 0o044;

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

/// Runs a worker: reads its task from standard input, prepares, and begins at the next line. The
/// end of standard input stops it.
pub fn run_worker(observer: &dyn Observer) -> Result<ExperimentReport, MeterError> {
    let mut line = String::new();
    let read = io::stdin().lock().take(MAX_TASK).read_line(&mut line);
    read.map_err(|error| MeterError::new(format!("cannot read standard input: {error}")))?;
    let task: WorkerTask = serde_json::from_str(&line).map_err(|error| {
        MeterError::usage(format!("no task of an agent on standard input: {error}"))
            .hint("workers are started by agents; start an agent")
    })?;
    run_streams(&worker_config(task)?, observer)
}

/// Bytes of a task, most of which are its profile.
const MAX_TASK: u64 = 1 << 20;

/// Streams of a worker, and frames that a client buffers: the bounds of the options of `meter run`.
const MAX_STREAMS: u32 = 100_000;
const MAX_BUFFER_FRAMES: u32 = 10_000;

fn worker_config(task: WorkerTask) -> Result<StreamRunConfig, MeterError> {
    let WorkerTask { target, profile, streams, first_stream, options } = task;
    // The values come over the network and would otherwise be reserved as memory.
    let within = (1..=MAX_STREAMS).contains(&streams)
        && (1..=MAX_BUFFER_FRAMES).contains(&options.buffer_frames)
        && options.fill_level.is_none_or(|percent| (1..=99).contains(&percent));
    if !within {
        return Err(MeterError::usage("the task asks for more than a worker does")
            .hint("use the same version of tenuto for the controller and its agents"));
    }
    let method = options.method.map_or(Ok(Method::Best), |name| name.parse());
    let layout = options.layout.map(|name| name.parse()).transpose();
    Ok(StreamRunConfig {
        streams: StreamsConfig {
            profile: profile.parse().map_err(|error: ProfileError| MeterError::of(&error))?,
            target: TargetSpec {
                target,
                size: ByteCount(options.size),
                fill_level: options.fill_level,
                buffered: options.buffered,
                // A controller can never order an agent to overwrite what is there.
                destructive: false,
                method: method.map_err(|error| MeterError::of(&error).into_usage())?,
                drop_caches: false,
                access: Access::default(),
            },
            layout: layout.map_err(MeterError::usage)?,
            buffer: options.buffer_frames,
            duration: RunLength::Exactly(Duration::from_nanos(options.duration_ns)),
            realtime: false,
            spin: options.busy_poll,
            metrics: None,
            first_stream,
        },
        count: streams,
        alarm: RateAlarmConfig { rate: None, window: None, each: false },
        // The agent starts all its workers together, once each of them is ready.
        hold: true,
        out: None,
    })
}
