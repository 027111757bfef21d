//! Starting, stopping and wiring: which thread exists and who talks to whom.
//!
//! ```text
//!   http-0..n   viewers' sockets          ┐
//!   opener      opens titles              │  all talk to
//!   disk-0..m   one for each store        ├─▶ core (owns the engine)
//!   control     one for each store        │
//!   keeper      keeps what was seen       │
//!   log         writes lines              ┘
//! ```
//!
//! The core ends first and takes the others with it: threads that speak HTTP are told to quit,
//! the rest end when nobody can talk to them any more.

use crate::ServerConfig;
use crate::clock::Clock;
use crate::config::MAX_HTTP_THREADS;
use crate::control::{ControlServer, Served};
use crate::core::{Core, CoreHandle, Event};
use crate::disks::Disk;
use crate::engine::{DiskNumber, Engine, EngineConfig};
use crate::http::{Patience, Prepared};
use crate::keeper;
use crate::library::{Library, Shelf};
use crate::log::Log;
use crate::opener::{self, Opener};
use crate::sessions::Sessions;
use crate::shared::{About, Shared};
use crate::shelving::{self, Opened};
use device::Pool;
use scheduler::PolicyKind;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::{ByteCount, Moment};

/// Why a server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something the server needs from the machine.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The configuration asks for what cannot be.
    #[error("{0}")]
    Config(String),
    /// A store cannot be served.
    #[error("{} cannot be served: {reason}", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// Why, and what to do about it.
        reason: String,
    },
    /// A thread ended that should not have.
    #[error("the server broke: its {0} ended unexpectedly; start it again and report this")]
    Broken(String),
}

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    notes: Vec<String>,
    core: CoreHandle,
    control: Vec<ControlServer>,
    // The core's first; the log's last.
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the stores, listens and serves. Returns when viewers can come.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        check(&config)?;
        let listener = TcpListener::bind(config.listen)
            .map_err(|source| ServerError::Listen { address: config.listen, source })?;
        let address = listener.local_addr().map_err(|e| failed("ask for the address", e))?;
        let (log, log_thread) = Log::start(config.access_log.as_deref())
            .map_err(|e| failed("open the access log", e))?;
        let share = ByteCount(config.memory.0 / config.stores.len() as u64);
        let mut opened: Vec<Opened> = config
            .stores
            .iter()
            .map(|path| shelving::open(path, &config, share))
            .collect::<Result<_, _>>()?;
        let (core, events) = CoreHandle::new();
        let mut threads = Vec::new();

        let pool = pool(&config, &opened)?;
        let (disks, methods) = disks(&opened, &pool, &core, &log, &mut threads)?;
        let workers = workers(&config, &listener)?;
        let shared = shared(&config, &opened, methods, &workers, log)?;
        let handles: Vec<_> = workers.iter().map(|worker| worker.handle.clone()).collect();
        let (opener, tasks) = Opener::new();
        threads.push(
            opener::spawn(tasks, Arc::clone(&shared), core.clone(), handles.clone())
                .map_err(|e| failed("start a thread", e))?,
        );
        let control = control(&config, &shared, &core)?;
        let mut engine = Engine::new(engine_config(&config, &opened));
        for ((opened, path), number) in opened.iter_mut().zip(&config.stores).zip(0..) {
            let disk = DiskNumber(number);
            engine.set_facts(Moment::ZERO, disk, opened.facts.clone());
            let Some(remembered) = opened.remembered.take() else { continue };
            let of_these = engine.recall(Moment::ZERO, disk, remembered);
            let behind = engine.status(Moment::ZERO).disks[usize::from(number)].behind_part();
            opened.notes.extend(keeper::told_of(path, of_these, behind));
        }
        let notes = opened.iter().flat_map(|store| store.notes.clone()).collect();
        let (keeper, keeper_thread) = keeper::start(Arc::clone(&shared), core.clone())
            .map_err(|e| failed("start a thread", e))?;
        threads.push(keeper_thread);
        let the_core = Core::new(
            engine,
            config.slot,
            Arc::clone(&shared),
            (core.clone(), events),
            handles,
            (disks, keeper),
            pool,
        );
        shared.titles.open_first();
        for worker in workers {
            let (shared, core, opener) = (Arc::clone(&shared), core.clone(), opener.clone());
            threads.push(worker.begin(shared, core, opener, patience(&config)));
        }
        let core_thread = thread::Builder::new().name("core".to_owned());
        let core_thread =
            core_thread.spawn(move || the_core.run()).map_err(|e| failed("start a thread", e))?;
        threads.insert(0, core_thread);
        threads.extend(log_thread);
        Ok(Self { address, notes, core, control, threads })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person should know of this start: calibrations made, limits chosen. One line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Lets nobody new in and ends when nobody plays any more, at the latest after `grace`.
    /// Returns at once; may be called again with less patience.
    pub fn stop(&self, grace: Duration) {
        self.core.tell(Event::Stop { grace });
    }

    /// Whether it serves: false once it has stopped, by itself or because it was told to.
    pub fn is_running(&self) -> bool {
        self.threads.first().is_some_and(|core| !core.is_finished())
    }

    /// Waits until the server has stopped.
    pub fn wait(mut self) -> Result<(), ServerError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), ServerError> {
        let mut broken = None;
        let mut join = |thread: JoinHandle<()>| {
            let name = thread.thread().name().unwrap_or("thread").to_owned();
            if thread.join().is_err() {
                broken.get_or_insert(name);
            }
        };
        let mut threads = std::mem::take(&mut self.threads).into_iter();
        threads.next().into_iter().for_each(&mut join);
        // Commands work until the core is gone; those that still run are called off.
        self.control.clear();
        threads.for_each(join);
        broken.map_or(Ok(()), |name| Err(ServerError::Broken(name)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop(Duration::ZERO);
            // Whoever drops a server does not ask how it went.
            let _ = self.join();
        }
    }
}

fn check(config: &ServerConfig) -> Result<(), ServerError> {
    let refuse = |why: &str| Err(ServerError::Config(why.to_owned()));
    if config.stores.is_empty() {
        return refuse("there is no store to serve");
    }
    if config.stores.len() > MAX_STORES {
        return refuse("more stores than one server can serve (256)");
    }
    if config.survive_loss && config.stores.len() < 2 {
        return refuse(
            "to survive the loss of a disk takes a second store; name one on another disk",
        );
    }
    if config.survive_loss && config.policy == PolicyKind::None {
        return refuse("who lets everybody in promises nothing, with or without a disk more");
    }
    if config.slot < SHORTEST_SLOT || config.slot > LONGEST_SLOT {
        return refuse("a slot must be from 10 ms to 1 min");
    }
    let read = config.read_size.unwrap_or(ByteCount::MIB).0;
    if !read.is_power_of_two() || !(media::CHECKSUM_SPAN..=LARGEST_READ.0).contains(&read) {
        return refuse("a read size must be a power of two from 64 KiB to 16 MiB");
    }
    if config.memory.0 / (config.stores.len() as u64) < 8 * read {
        return refuse("the memory must be at least 8 reads for each store; give it more");
    }
    shelving::model(config).map(|_| ())
}

/// One pool for all disks: a buffer of the largest read fits any.
fn pool(config: &ServerConfig, opened: &[Opened]) -> Result<Pool, ServerError> {
    let largest = largest_read(opened);
    if config.memory.0 < 8 * largest.0 {
        let why = format!("the memory must be at least 8 reads of {largest}; give it more");
        return Err(ServerError::Config(why));
    }
    Ok(Pool::new(config.memory, largest))
}

fn largest_read(opened: &[Opened]) -> ByteCount {
    opened.iter().map(|store| store.guarantee.read_size).max().unwrap_or(ByteCount::MIB)
}

fn engine_config(config: &ServerConfig, opened: &[Opened]) -> EngineConfig {
    // Small pieces are cut from frames of the largest read; some frames are never wholly used.
    let cut = (config.memory.0 / 16).max(2 * largest_read(opened).0);
    EngineConfig {
        slot: config.slot,
        policy: config.policy,
        startup: config.startup.max(config.slot * 2),
        buffers: config.memory.saturating_sub(ByteCount(cut)),
        network: config.network,
        reservation_hold: config.reservation_hold,
        idle_after: config.idle_after,
        ended_after: config.ended_after,
        survive_loss: config.survive_loss,
        disks: opened.iter().map(|store| store.guarantee).collect(),
    }
}

/// A thread and a queue for each store's device; and how they read.
fn disks(
    opened: &[Opened],
    pool: &Pool,
    core: &CoreHandle,
    log: &Log,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(Vec<Disk>, Vec<String>), ServerError> {
    let (mut disks, mut methods) = (Vec::new(), Vec::new());
    for (number, store) in opened.iter().enumerate() {
        let depth = store.guarantee.queue_depth.max(1);
        let queue = store.store.device().queue(depth, pool);
        let queue = queue.map_err(|e| failed("queue reads", io::Error::other(e.to_string())))?;
        methods.push(queue.method());
        let name = format!("disk-{number}");
        let (disk, thread) = Disk::spawn(name, queue, depth, core.clone(), log.clone())
            .map_err(|e| failed("start a thread", e))?;
        disks.push(disk);
        threads.push(thread);
    }
    Ok((disks, methods))
}

/// The threads that speak HTTP share one listener: whichever is idle takes the next viewer. (A
/// listener for each, with `SO_REUSEPORT`, would let two servers share a port unnoticed.)
fn workers(config: &ServerConfig, listener: &TcpListener) -> Result<Vec<Prepared>, ServerError> {
    let count = match config.http_threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let numbers = 0..count.min(MAX_HTTP_THREADS);
    let prepared = numbers.map(|number| Prepared::new(number, listener.try_clone()?));
    prepared.collect::<io::Result<_>>().map_err(|e| failed("start a thread that speaks HTTP", e))
}

fn shared(
    config: &ServerConfig,
    opened: &[Opened],
    methods: Vec<String>,
    workers: &[Prepared],
    log: Log,
) -> Result<Arc<Shared>, ServerError> {
    let shelves = config.stores.iter().zip(opened).zip(methods).enumerate();
    let shelves = shelves.map(|(number, ((path, opened), method))| Shelf {
        path: path.clone(),
        store: Arc::clone(&opened.store),
        disk: shelving::number(number),
        read_size: opened.guarantee.read_size,
        method,
    });
    let library = Library::new(shelves.collect(), config.segment, config.title_memory);
    let sessions = Sessions::new().map_err(|e| failed("open /dev/urandom", e))?;
    let about = About {
        policy: config.policy.name(),
        survive_loss: config.survive_loss,
        slot: config.slot,
        network: workers.first().map(|worker| worker.method.clone()).unwrap_or_default(),
    };
    Ok(Arc::new(Shared::new(Clock::start(), library, sessions, log, about)))
}

fn control(
    config: &ServerConfig,
    shared: &Arc<Shared>,
    core: &CoreHandle,
) -> Result<Vec<ControlServer>, ServerError> {
    let config = Arc::new(config.clone());
    let shelves = 0..shared.titles.shelves.len();
    let served = shelves.map(|shelf| Served {
        shelf,
        shared: Arc::clone(shared),
        core: core.clone(),
        config: Arc::clone(&config),
    });
    served
        .map(ControlServer::start)
        .collect::<io::Result<_>>()
        .map_err(|e| failed("listen for control commands", e))
}

fn patience(config: &ServerConfig) -> Patience {
    Patience {
        send: config.send_timeout,
        head: config.head_timeout,
        idle: config.idle_timeout,
        max_connections: config.max_connections as u64,
    }
}

fn failed(what: &str, source: io::Error) -> ServerError {
    ServerError::Io { what: what.to_owned(), source }
}

/// A title's key has 16 bits for the store; nobody has so many disks in one machine.
const MAX_STORES: usize = 256;
const SHORTEST_SLOT: Duration = Duration::from_millis(10);
const LONGEST_SLOT: Duration = Duration::from_secs(60);
const LARGEST_READ: ByteCount = ByteCount::mib(16);
