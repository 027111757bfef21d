//! Starts and stops a server: which threads exist, and which of them send to which.
//!
//! ```text
//!   http-0..n      players' connections       ┐
//!   rtsp           RTSP, if there is any      │
//!   opener         opens titles               │
//!   disk-0..m      one for each store         ├─▶ core (owns the engine)
//!   control        one for each store         │
//!   mount-reads    reads at reserved rates    │
//!   disk-history   writes observations        │
//!   log            writes lines               │
//!   webhook        sends events               │
//!   auth, auth-0.. ask about viewers          │
//!   otlp           sends spans and log lines  ┘
//! ```
//!
//! The core ends first. It sends [`WorkerMessage::Quit`](crate::messages::WorkerMessage) to the
//! HTTP threads, which send what the admin API still answers; the other threads end when the last
//! sender of their queue is dropped.

use crate::ServerConfig;
use crate::access::AccessControl;
use crate::admin::{self, AdminApi};
use crate::auth_request::AuthRequests;
use crate::buffer_memory::{BufferMemory, LEAST_READS, MemoryWatch, buffer_memory, usable_memory};
use crate::client_thread::{ClientListener, PreparedThread, ServiceParts};
use crate::clients::{CLIENT_UNPLAYED, ClientLimit};
use crate::clock::Clock;
use crate::config::MAX_HTTP_THREADS;
use crate::control::{ControlServer, ServedStore};
use crate::copies::{self, CopyThreads};
use crate::core::{Core, CoreParts};
use crate::damage::FoundDamage;
use crate::disk_history_writer;
use crate::disk_thread::DiskThread;
use crate::exposure;
use crate::handover::{Handover, KeptSocket};
use crate::http::{self, ConnectionLimits};
use crate::layout;
use crate::library::{Library, OpenStore};
use crate::log::Log;
use crate::membership::Membership;
use crate::messages::{CoreHandle, Event, StopBy, WorkerHandle, WorkerMessage};
use crate::missed_changes;
use crate::missing_stores::{self, MissingStore};
use crate::mount_log::MountLog;
use crate::mount_reads::MountReaders;
use crate::node_records;
use crate::opener::{self, Opener};
use crate::opening::{self, NotOpened, PreparedStore, disk_number};
use crate::recalibration::{self, Recalibration};
use crate::reload::Reloader;
use crate::rtsp::{self, RtspLimits};
use crate::running_writes::RunningWrites;
use crate::scrubbing::{self, Scrubbing};
use crate::sessions::SessionTable;
use crate::shared::{LiveSettings, Outlets, Security, ServerInfo, Shared};
use crate::store_search;
use crate::telemetry::{FLUSHED_WITHIN, Telemetry, TelemetrySender, TelemetryThread};
use crate::title_keys::{KeyProvider, TitleKeyFile};
use crate::title_owner::EngineTitleOwner;
use crate::tls::{ServerTls, TlsProtocol};
use crate::webhook::{Webhook, WebhookSender};
use crate::wire;
use crossbeam_channel::{Receiver, bounded, unbounded};
use device::{MemoryLimits, Pool};
use engine::{DiskNumber, Engine, EngineConfig};
use http_service::TlsFiles;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use store::{Store, TitleOwner};
use units::{ByteCount, Hinted, Moment, Reason};

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    rtsp_address: Option<SocketAddr>,
    notes: Vec<String>,
    core: CoreHandle,
    control: Vec<ControlServer>,
    // Empty after the end: the stores must be closed then.
    title_owners: Vec<(PathBuf, Arc<dyn TitleOwner>)>,
    // `None` after its end.
    api: Option<Arc<AdminApi>>,
    // `None` after the end: its log must end, too.
    reloader: Option<Arc<Reloader>>,
    recalibration: Option<Recalibration>,
    scrubbing: Option<Scrubbing>,
    copies: Option<CopyThreads>,
    clock: Clock,
    // Open until the end, so that connections wait while another server takes over.
    sockets: Vec<KeptSocket>,
    // The core's first; the log's last.
    threads: Vec<JoinHandle<()>>,
    membership: Option<Arc<Membership>>,
    // `None`: there is no collector.
    telemetry: Option<TelemetryThread>,
}

impl Server {
    /// Checks what can be checked while another server has the stores and the port: options that
    /// exclude each other, the files that they name, and that each store is one. Changes nothing.
    /// Returns notes for people: a line for each store that a server would start without.
    pub fn check(config: &ServerConfig) -> Result<Vec<String>, Reason> {
        CheckedConfig::new(config)?;
        config.tls.as_ref().map(TlsFiles::read).transpose()?;
        config.webhook.as_ref().map_or(Ok(()), Webhook::check)?;
        config.auth_request.as_ref().map_or(Ok(()), AuthRequests::check)?;
        config.otlp.as_ref().map_or(Ok(()), Telemetry::check)?;
        config.access_log.as_deref().map_or(Ok(()), Log::check)?;
        config.uploads.as_deref().map_or(Ok(()), admin::check_uploads)?;
        let mut missing = Vec::new();
        let mut found = BTreeMap::new();
        for path in &config.stores {
            match Store::peek(path).map_err(|error| NotOpened::of(path, &error)) {
                Ok(store) => {
                    if let Some(other) = found.insert(store.uuid, path) {
                        let why = opening::copy_of(&other.display().to_string());
                        return Err(opening::not_served(path, why));
                    }
                }
                Err(NotOpened::Refused(reason)) => return Err(reason),
                Err(NotOpened::Lost(reason)) => missing.push(MissingStore::lost(path, reason)),
            }
        }
        missing_stores::refuse_all(config, &missing)?;
        Ok(missing.iter().map(MissingStore::note).collect())
    }

    /// Opens the stores, listens and serves. Returns when it accepts connections.
    pub fn start(config: ServerConfig) -> Result<Self, Reason> {
        Self::start_after(None, config)
    }

    /// As [`Server::start`], in the place of a server that has handed over: with its sessions and
    /// the connections that wait for it.
    pub fn take_over(before: Handover, config: ServerConfig) -> Result<Self, Reason> {
        Self::start_after(Some(before), config)
    }

    fn start_after(mut before: Option<Handover>, config: ServerConfig) -> Result<Self, Reason> {
        let checked = CheckedConfig::new(&config)?;
        let CheckedConfig { limits, memory, mut notes, access, title_keys, membership } = checked;
        // First, so that an address in use is found before a disk is opened and perhaps measured.
        let listeners = Listeners::bind(&config, before.as_mut())?;
        let sockets = listeners.kept(&config)?;
        let (address, rtsp_address) = (listeners.address, listeners.rtsp_address);
        let (telemetry, exported) =
            Telemetry::new(config.otlp.as_ref(), &instance(&config, address))?;
        let (log, log_thread) = Log::start(config.access_log.as_deref(), telemetry.clone())?;
        let secured = |files| ServerTls::new(files, config.http2, &log);
        let tls = config.tls.as_ref().map(secured).transpose()?;
        notes.extend(tls.iter().flat_map(|tls| tls.notes(SystemTime::now())));
        let (mut opened, missing) = open_stores(&config, memory, before.is_some())?;
        notes.extend(missing.iter().map(MissingStore::note));
        missed_changes::catch_up_at_start(&mut opened, &missing, &log);
        let (core, events) = CoreHandle::new();
        for (number, store) in opened.iter().enumerate() {
            store.device.tell(core.clone(), disk_number(number));
        }
        let mut threads = Vec::new();
        let takes_over = before.is_some();

        let pool = pool(memory, &opened)?;
        let clock = before.as_ref().map_or_else(Clock::start, |before| before.clock);
        let (disks, methods) = disks(&opened, &pool, &core, clock, &log, &mut threads)?;
        let clients = ClientThreads::prepare(&config, listeners)?;
        let access = access.logged(log.clone());
        let handles = clients.handles();
        let auth = AuthRequests::new(handles.clone());
        auth.replace(auth.prepare(config.auth_request.as_ref())?);
        let tls = tls.map(Arc::new);
        let security = Security { access, auth, tls, membership: membership.clone() };
        let library = library(&config, title_keys, &opened, methods);
        let outlets = outlets(&config, log, telemetry)?;
        let info = info(&config, &opened, missing, &clients.http);
        let shared = shared(&config, info, library, security, clock, outlets)?;
        store_search::spawn_search(&shared).map_err(no_thread)?;
        let telemetry = exported.map(|it| start_telemetry(it, &shared)).transpose()?;
        let opener = start_opener(&shared, &core, &handles, &mut threads)?;
        let workers = handles.clone();
        let owners = OwnerParts::new(&config, &shared, &core);
        let control = owners.control()?;
        let readers = clients.readers.begin(&shared, &core, &mut threads)?;
        let title_owners = owners.title_owners(&readers);
        let engine = engine(&config, memory, &mut opened);
        notes.extend(opened.iter().flat_map(|store| store.notes.clone()));
        let (history_writer, history_thread) =
            disk_history_writer::start(Arc::clone(&shared), core.clone()).map_err(no_thread)?;
        threads.push(history_thread);
        let mut core_state = Core::new(CoreParts {
            engine,
            slot: config.slot,
            shared: Arc::clone(&shared),
            handle: core.clone(),
            events,
            workers: handles,
            disks,
            history_writer,
            pool,
            memory: MemoryWatch::new(limits, memory, largest_read(&opened)),
            unplayed_limit: ClientLimit::new(config.max_client_unplayed, CLIENT_UNPLAYED),
        });
        // Before the first session, so that index reads need no permits.
        match before {
            None => shared.content.open_first(),
            Some(before) => core_state.take_over(before.left),
        }
        // Whoever asks from now on is told what was taken over.
        core_state.publish();
        let api = owners.admin_api(workers)?;
        if let Some(membership) = &membership {
            if let Some(address) = rtsp_address {
                membership.set_rtsp(address.port(), config.tls.is_some());
            }
            node_records::join(membership, &config, &shared)?;
        }
        // Before the first request has its line.
        owners.tell_started(address, rtsp_address, takes_over);
        let parts = ServiceParts { shared, core: core.clone(), opener, api: Arc::clone(&api) };
        threads.extend(clients.begin(&config, rtsp_address, parts));
        let recalibration = owners.recalibration(&mut threads)?;
        let scrubbing = owners.scrubbing(&mut threads)?;
        let copies = owners.copies(membership.as_ref(), &mut threads)?;
        let core_thread = thread::Builder::new().name("core".to_owned());
        // `join` waits for the core first: the other threads end after it.
        threads.insert(0, core_thread.spawn(move || core_state.run()).map_err(no_thread)?);
        // Last, because it writes what the other threads log at their end.
        threads.extend(log_thread);
        let (api, reloader) = (Some(api), Some(owners.reloader));
        Ok(Self {
            address,
            rtsp_address,
            notes,
            core,
            control,
            title_owners,
            api,
            reloader,
            recalibration,
            scrubbing,
            copies,
            clock,
            sockets,
            threads,
            membership,
            telemetry,
        })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address on which it listens for RTSP; `None`: it does not.
    pub fn rtsp_address(&self) -> Option<SocketAddr> {
        self.rtsp_address
    }

    /// The stores by their paths, for work that reads and writes titles beside the sessions. A
    /// store is open as long as its owner is kept.
    pub fn title_owners(&self) -> &[(PathBuf, Arc<dyn TitleOwner>)] {
        &self.title_owners
    }

    /// The log for what the mounts of the stores have to tell.
    pub fn mount_log(&self) -> MountLog {
        MountLog::new(self.reloader().shared())
    }

    /// Notes on this start for people, one line each: calibrations made, guarantees chosen.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Admits no new session, and ends the server when no session is active, at the latest after
    /// `grace`. Returns at once; a further call may shorten the grace period.
    pub fn stop(&self, grace: Duration) {
        self.core.send(Event::Stop { grace, by: StopBy::Signal });
    }

    /// Where [`Server::reload`] reads a configuration from; the first call counts.
    pub fn reads_again_from(
        &self,
        source: impl Fn() -> Result<ServerConfig, Reason> + Send + Sync + 'static,
    ) {
        self.reloader().read_from(source);
    }

    /// Reads the configuration again, and uses what may change of it while sessions go on. If it
    /// cannot be used, nothing changes.
    pub fn reload(&self) -> Result<wire::ReloadReport, Reason> {
        self.reloader().reload()
    }

    /// How the program that may take this one's place is checked; the first call counts. Without
    /// it none may.
    pub fn checks_successor_by(
        &self,
        check: impl Fn() -> Result<(), Reason> + Send + Sync + 'static,
    ) {
        self.reloader().restart.check_by(check);
    }

    /// Lines for people since the last call: what has happened that an operator waits for.
    pub fn take_notices(&self) -> Vec<String> {
        self.reloader().take_notices()
    }

    /// Asks for another server in this one's place, or says why this one goes on as it is.
    pub fn request_restart(&self) -> Result<(), Reason> {
        self.reloader().restart()
    }

    /// Whether a store that was missing at the start can be opened again since the last call: its
    /// owner may request a restart, after which it is served.
    pub fn missing_store_is_back(&self) -> bool {
        self.reloader().shared().store_is_back.swap(false, Relaxed)
    }

    /// Whether another server is to take this one's place: its owner is to call
    /// [`Server::hand_over`].
    pub fn is_to_restart(&self) -> bool {
        self.reloader().restart.is_granted()
    }

    /// Accepts no connection any more, ends those that are open as soon as their requests are
    /// answered, at the latest after two seconds, and ends. What it returns has the sessions, and
    /// keeps connections waiting that come until another server takes over.
    pub fn hand_over(mut self) -> Result<Handover, Reason> {
        let (to, left) = bounded(1);
        self.core.send(Event::HandOver { within: HANDOVER_WITHIN, to });
        let left = left.recv();
        let (clock, sockets) = (self.clock, std::mem::take(&mut self.sockets));
        self.join(FLUSHED_BEFORE_HANDOVER, None)?;
        // A core that has ended by itself has said why.
        let left = left.unwrap_or_default();
        Ok(Handover { left, clock, sockets })
    }

    /// Time for which viewers may continue after a request to stop, as configured now.
    pub fn grace(&self) -> Duration {
        self.reloader().grace()
    }

    /// Whether the server is running; false once it has stopped or failed.
    pub fn is_running(&self) -> bool {
        let is_deciding = self.threads.first().is_some_and(|core| !core.is_finished());
        is_deciding && !self.reloader().shared().has_failed.load(Relaxed)
    }

    /// Waits until the server has stopped.
    pub fn wait(mut self) -> Result<(), Reason> {
        let log = self.reloader().shared().log.clone();
        self.join(FLUSHED_WITHIN, Some(log))
    }

    fn reloader(&self) -> &Reloader {
        self.reloader.as_ref().expect("kept until the server has ended")
    }

    /// `flush`: the longest time for what a collector has not got yet. `log`: where it is told that
    /// the server has stopped, unless another takes its place.
    fn join(&mut self, flush: Duration, log: Option<Log>) -> Result<(), Reason> {
        // Connections are not to wait for a server that does not come.
        self.sockets.clear();
        if let Some(membership) = self.membership.take() {
            membership.stop();
        }
        let mut failed = None;
        let mut threads = std::mem::take(&mut self.threads).into_iter();
        join_all(threads.next(), &mut failed);
        // Control commands work until the core has ended; those that still run are cancelled.
        self.control.clear();
        self.title_owners.clear();
        if let Some(api) = self.api.take() {
            api.close();
        }
        self.reloader = None;
        self.recalibration = None;
        self.scrubbing = None;
        self.copies = None;
        // The log's, if there is one, ends with the last handle to it.
        let last = threads.next_back();
        join_all(threads, &mut failed);
        if let Some(log) = log {
            log.line(|| json!({ "event": "stopped", "failed": failed }));
        }
        join_all(last, &mut failed);
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.wait(flush);
        }
        failed.map_or(Ok(()), |name| {
            let message = format!("the server failed: its thread {name} ended unexpectedly");
            Err(Reason::new(message, "start it again and report this"))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            // `wait` takes the threads: a server that was waited for has ended already.
            self.stop(Duration::ZERO);
            // `wait` reports failures; a dropped server has no one to report to.
            let log = self.reloader().shared().log.clone();
            let _ = self.join(FLUSHED_WITHIN, Some(log));
        }
    }
}

/// Waits for the ends of threads. `failed`: the name of the first that has panicked.
fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>, failed: &mut Option<String>) {
    for thread in threads {
        let name = thread.thread().name().unwrap_or("thread").to_owned();
        if thread.join().is_err() {
            failed.get_or_insert(name);
        }
    }
}

/// What a configuration names, as far as it is known before the stores are opened.
struct CheckedConfig {
    limits: Option<MemoryLimits>,
    memory: ByteCount,
    notes: Vec<String>,
    access: AccessControl,
    title_keys: Option<TitleKeyFile>,
    membership: Option<Arc<Membership>>,
}

impl CheckedConfig {
    fn new(config: &ServerConfig) -> Result<Self, Reason> {
        let limits = MemoryLimits::of_this_process();
        let known = limits.as_ref().map(MemoryLimits::read);
        let BufferMemory { size: memory, note } = buffer_memory(config.memory, known)?;
        config.check(memory)?;
        exposure::check(config)?;
        let access = AccessControl::new(config.tokens.as_deref())?;
        let title_keys = config.title_keys.as_deref().map(TitleKeyFile::read).transpose()?;
        let has_source = config.copies.is_some();
        if let Some(source) = &config.copies {
            source.bucket.check_access().map_err(|error| error.reason().about("--bucket"))?;
        }
        let membership = config.cluster.clone().map(|it| Membership::new(it, has_source));
        let membership = membership.transpose()?.map(Arc::new);
        let mut notes = Vec::from_iter(note);
        if access.opens_nothing() {
            let why = "there is no key in the file of --tokens: nothing is opened to anybody";
            notes.push(why.to_owned());
        }
        Ok(Self { limits, memory, notes, access, title_keys, membership })
    }
}

/// One pool of buffers for all disks, in units of the largest read.
fn pool(memory: ByteCount, opened: &[PreparedStore]) -> Result<Pool, Reason> {
    let largest = largest_read(opened);
    if memory.0 < LEAST_READS * largest.0 {
        let why = format!("the memory must be at least 8 reads of {largest}");
        return Err(Reason::new(why, "raise --memory"));
    }
    Ok(Pool::new(memory, largest))
}

fn largest_read(opened: &[PreparedStore]) -> ByteCount {
    opened.iter().map(|store| store.guarantee.read_size).max().unwrap_or(ByteCount::MIB)
}

fn engine_config(
    config: &ServerConfig,
    memory: ByteCount,
    opened: &[PreparedStore],
) -> EngineConfig {
    EngineConfig {
        slot: config.slot,
        policy: config.policy,
        startup: config.startup.max(config.slot * 2),
        buffers: usable_memory(memory, largest_read(opened)),
        network: config.network,
        reservation_hold: config.reservation_hold,
        idle_timeout: config.idle_after,
        session_timeout: config.session_timeout,
        survive_loss: survives_loss(config, opened),
        fills: config.fills.unwrap_or(0),
        disks: opened.iter().map(|store| store.guarantee).collect(),
    }
}

/// The sockets that clients connect to, with the ports that they got.
struct Listeners {
    http: TcpListener,
    address: SocketAddr,
    rtsp: Option<TcpListener>,
    rtsp_address: Option<SocketAddr>,
}

impl Listeners {
    /// Listens, with the sockets of the server before where it had the same addresses.
    fn bind(config: &ServerConfig, mut before: Option<&mut Handover>) -> Result<Self, Reason> {
        let mut had = |address| before.as_mut().and_then(|before| before.socket(address));
        let (http, rtsp) = (had(config.listen), config.rtsp.and_then(&mut had));
        // Another address of one of its ports is free only then.
        before.into_iter().for_each(|before| before.sockets.clear());
        let (http, address) = listen(http, config.listen, "--listen")?;
        let rtsp = config.rtsp.map(|address| listen(rtsp, address, "--rtsp")).transpose()?;
        let (rtsp, rtsp_address) = rtsp.unzip();
        Ok(Self { http, address, rtsp, rtsp_address })
    }

    /// The sockets once more, for the next server.
    fn kept(&self, config: &ServerConfig) -> Result<Vec<KeptSocket>, Reason> {
        let all = [(Some(config.listen), Some(&self.http)), (config.rtsp, self.rtsp.as_ref())];
        let kept = all.into_iter().filter_map(|(configured, socket)| {
            let (configured, socket) = (configured?, socket?.try_clone());
            Some(socket.map(|socket| KeptSocket { configured, socket }))
        });
        kept.collect::<io::Result<_>>().map_err(|e| failed("keep a listening socket", e))
    }
}

/// Listens on an address, which this option gave, unless there is a socket that does; returns the
/// address with the port that it got.
fn listen(
    socket: Option<TcpListener>,
    address: SocketAddr,
    option: &str,
) -> Result<(TcpListener, SocketAddr), Reason> {
    let bound = socket.map_or_else(|| TcpListener::bind(address), Ok);
    let listener = bound.map_err(|error| {
        let message = format!("cannot listen on {address}: {error}");
        Reason::new(message, format!("choose another address with {option}"))
    })?;
    let address = listener.local_addr().map_err(|e| failed("ask for the address", e))?;
    Ok((listener, address))
}

/// The stores that can be opened, and those that cannot. `sessions_wait`: those of a server before
/// this one are to go on.
fn open_stores(
    config: &ServerConfig,
    memory: ByteCount,
    sessions_wait: bool,
) -> Result<(Vec<PreparedStore>, Vec<MissingStore>), Reason> {
    // Equal parts for the choice of read sizes: the engine shares by the disks' rates, which
    // follow from this choice.
    let share = ByteCount(memory.0 / config.stores.len() as u64);
    let (mut opened, mut missing) = (Vec::new(), Vec::new());
    for path in &config.stores {
        let prepared = opening::open(path, config, share, sessions_wait);
        let one_of_many = |store| match opening::refuse_copy(&store, &opened) {
            Ok(()) => Ok(store),
            Err(reason) => Err(NotOpened::Refused(reason)),
        };
        match prepared.and_then(one_of_many) {
            Ok(store) => opened.push(store),
            Err(NotOpened::Lost(reason)) => missing.push(MissingStore::lost(path, reason)),
            // The sessions of the other stores go on.
            Err(NotOpened::Refused(reason)) if sessions_wait => {
                missing.push(MissingStore::refused(path, reason));
            }
            Err(NotOpened::Refused(reason)) => return Err(reason),
        }
    }
    missing_stores::refuse_all(config, &missing)?;
    Ok((opened, missing))
}

/// The engine, with what is known of the disks; adds notes on their histories.
fn engine(config: &ServerConfig, memory: ByteCount, opened: &mut [PreparedStore]) -> Engine {
    let mut engine = Engine::new(engine_config(config, memory, opened));
    for (opened, number) in opened.iter_mut().zip(0..) {
        let disk = DiskNumber(number);
        engine.set_timings(Moment::ZERO, disk, opened.timings.clone());
        let Some(history) = opened.history.take() else { continue };
        // After the timings: a history applies only if it was observed under the same charges.
        let applies = engine.restore_history(Moment::ZERO, disk, history);
        let slowdown = engine.status(Moment::ZERO).disks[usize::from(number)].slowdown_part();
        opened.notes.extend(disk_history_writer::start_note(&opened.path, applies, slowdown));
    }
    engine
}

/// Starts a thread for each store's device; returns the threads and their read methods.
fn disks(
    opened: &[PreparedStore],
    pool: &Pool,
    core: &CoreHandle,
    clock: Clock,
    log: &Log,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(Vec<DiskThread>, Vec<String>), Reason> {
    let (mut disks, mut methods) = (Vec::new(), Vec::new());
    for (number, store) in opened.iter().enumerate() {
        let depth = store.guarantee.queue_depth.max(1);
        let queue = store
            .store
            .device()
            .queue(depth, pool)
            .map_err(|e| e.reason().about("cannot queue reads"))?;
        methods.push(queue.method());
        let number = disk_number(number);
        let core = core.clone();
        let log = (log.clone(), store.path.display().to_string());
        let (disk, thread) =
            DiskThread::spawn(number, queue, depth, core, clock, log).map_err(no_thread)?;
        disks.push(disk);
        threads.push(thread);
    }
    Ok((disks, methods))
}

/// Starts the thread that opens titles.
fn start_opener(
    shared: &Arc<Shared>,
    core: &CoreHandle,
    handles: &[WorkerHandle],
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<Opener, Reason> {
    let (opener, tasks) = Opener::new();
    let thread = opener::spawn(tasks, Arc::clone(shared), core.clone(), handles.to_vec());
    threads.push(thread.map_err(no_thread)?);
    Ok(opener)
}

type HttpThread = PreparedThread<ConnectionLimits>;

/// The threads that serve clients, before they do.
struct ClientThreads {
    http: Vec<HttpThread>,
    rtsp: Option<PreparedThread<RtspLimits>>,
    readers: PreparedReaders,
    channels: PreparedThread<Duration>,
}

/// What the thread for reads of mounts is started with. It has no sockets.
struct PreparedReaders {
    number: usize,
    handle: WorkerHandle,
    messages: Receiver<WorkerMessage>,
}

impl PreparedReaders {
    fn new(number: usize) -> Self {
        let (messages, received) = unbounded();
        Self { number, handle: WorkerHandle { messages, waker: None }, messages: received }
    }

    /// Starts the thread.
    fn begin(
        &self,
        shared: &Arc<Shared>,
        core: &CoreHandle,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<Arc<MountReaders>, Reason> {
        let messages = self.messages.clone();
        let started = MountReaders::start(self.number, messages, shared, core.clone());
        let (readers, thread) = started.map_err(no_thread)?;
        threads.push(thread);
        Ok(readers)
    }
}

impl ClientThreads {
    /// Prepares the threads. Those for HTTP share one listener: an idle thread accepts the next
    /// connection. (A listener for each, with `SO_REUSEPORT`, would let two servers share a port
    /// unnoticed.)
    fn prepare(config: &ServerConfig, listeners: Listeners) -> Result<Self, Reason> {
        let count = match config.http_threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        let numbers = 0..count.min(MAX_HTTP_THREADS);
        let prepared = numbers.map(|number| {
            let socket = listeners.http.try_clone()?;
            let listener = ClientListener { socket, protocol: TlsProtocol::Http };
            PreparedThread::new(format!("http-{number}"), number, Some(listener), http::serve)
        });
        let prepared: io::Result<Vec<HttpThread>> = prepared.collect();
        let http = prepared.map_err(|e| failed("start an HTTP thread", e))?;
        // To the core it is one more HTTP thread, with the number behind theirs.
        let rtsp = listeners.rtsp.map(|socket| {
            let listener = ClientListener { socket, protocol: TlsProtocol::Rtsp };
            PreparedThread::new("rtsp".to_owned(), http.len(), Some(listener), rtsp::serve)
        });
        let rtsp = rtsp.transpose().map_err(|e| failed("start the RTSP thread", e))?;
        let readers = PreparedReaders::new(http.len() + usize::from(rtsp.is_some()));
        let name = "channels".to_owned();
        let channels = PreparedThread::new(name, readers.number + 1, None, rtsp::serve_channels)
            .map_err(|e| failed("start the thread of channels", e))?;
        Ok(Self { http, rtsp, readers, channels })
    }

    /// How the core reaches the threads, by their numbers.
    fn handles(&self) -> Vec<WorkerHandle> {
        let http = self.http.iter().map(|thread| &thread.handle);
        let others = self.rtsp.as_ref().map(|rtsp| &rtsp.handle).into_iter();
        // Whoever begins a channel finds its thread at the end.
        http.chain(others).chain([&self.readers.handle, &self.channels.handle]).cloned().collect()
    }

    /// Lets all of them serve.
    fn begin(
        self,
        config: &ServerConfig,
        rtsp_address: Option<SocketAddr>,
        parts: ServiceParts,
    ) -> Vec<JoinHandle<()>> {
        let http = self.http.into_iter();
        let http = http.map(|thread| thread.begin(parts.clone(), connection_limits(config)));
        let rtsp = self.rtsp;
        let rtsp = rtsp.map(|rtsp| rtsp.begin(parts.clone(), rtsp_limits(config, rtsp_address)));
        let channels = self.channels.begin(parts.clone(), push_startup(config));
        http.chain(rtsp).chain([channels]).collect()
    }
}

fn library(
    config: &ServerConfig,
    title_keys: Option<TitleKeyFile>,
    opened: &[PreparedStore],
    methods: Vec<String>,
) -> Library {
    let parts = opened.iter().zip(methods).enumerate();
    let stores = parts.map(|(number, (opened, method))| OpenStore {
        path: opened.path.clone(),
        store: Arc::clone(&opened.store),
        file: opened.file,
        disk: disk_number(number),
        read_size: opened.guarantee.read_size,
        visit: layout::visit(&opened.timings, opened.guarantee.read_size),
        method,
        provisional: AtomicBool::new(opened.provisional),
        told_write_failure: AtomicBool::new(false),
        damage: FoundDamage::default(),
        writes: Arc::new(RunningWrites::new(&opened.path, opened.store.info().uuid)),
    });
    let title_keys = title_keys.map(|keys| Box::new(keys) as Box<dyn KeyProvider>);
    Library::new(stores.collect(), config.segment, config.title_memory, title_keys)
}

/// Whether sessions are admitted so that they survive the loss of a disk: of one that is there, as
/// long as there is another.
fn survives_loss(config: &ServerConfig, opened: &[PreparedStore]) -> bool {
    config.survive_loss && opened.len() > 1
}

fn info(
    config: &ServerConfig,
    opened: &[PreparedStore],
    missing: Vec<MissingStore>,
    workers: &[HttpThread],
) -> ServerInfo {
    ServerInfo {
        policy: config.policy.name(),
        survive_loss: survives_loss(config, opened),
        slot: config.slot,
        scrub: config.scrub,
        started: crate::membership::unix_now(),
        socket_method: workers.first().map(|worker| worker.method.clone()).unwrap_or_default(),
        missing,
    }
}

fn shared(
    config: &ServerConfig,
    info: ServerInfo,
    library: Library,
    security: Security,
    clock: Clock,
    (outlets, webhook): (Outlets, Option<WebhookSender>),
) -> Result<Arc<Shared>, Reason> {
    let sessions = SessionTable::new().map_err(|e| failed("open /dev/urandom", e))?;
    let settings = LiveSettings::of(config);
    let shared = Arc::new(Shared::new(clock, library, sessions, security, outlets, info, settings));
    webhook.map_or(Ok(()), |sender| sender.start(&shared)).map_err(no_thread)?;
    Ok(shared)
}

/// Where the server tells what happens, and what sends events before its thread runs.
fn outlets(
    config: &ServerConfig,
    log: Log,
    telemetry: Telemetry,
) -> Result<(Outlets, Option<WebhookSender>), Reason> {
    let (webhook, sender) = Webhook::new(config.webhook.as_ref())?;
    Ok((Outlets { log, webhook, telemetry }, sender))
}

/// What tells a collector this server from others: the node, or the address.
fn instance(config: &ServerConfig, address: SocketAddr) -> String {
    config.cluster.as_ref().map_or_else(|| address.to_string(), |it| it.node.to_string())
}

/// Starts the thread that sends to a collector. It does not keep the server's state.
fn start_telemetry(
    sender: TelemetrySender,
    shared: &Arc<Shared>,
) -> Result<TelemetryThread, Reason> {
    let server = Arc::downgrade(shared);
    let log = move |line: Value| {
        if let Some(server) = server.upgrade() {
            server.log.line(|| line);
        }
    };
    sender.start(log).map_err(no_thread)
}

/// What the owners of stores need: those of the control sockets, of the admin API and of the
/// thread that measures disks.
struct OwnerParts {
    config: Arc<ServerConfig>,
    shared: Arc<Shared>,
    core: CoreHandle,
    reloader: Arc<Reloader>,
}

impl OwnerParts {
    fn new(config: &ServerConfig, shared: &Arc<Shared>, core: &CoreHandle) -> Self {
        let reloader = Reloader::new(config.clone(), Arc::clone(shared), core.clone());
        Self {
            config: Arc::new(config.clone()),
            shared: Arc::clone(shared),
            core: core.clone(),
            reloader: Arc::new(reloader),
        }
    }

    /// Logs that the server is about to accept connections.
    fn tell_started(&self, http: SocketAddr, rtsp: Option<SocketAddr>, takes_over: bool) {
        let shared = &self.shared;
        shared.log.line(|| {
            let stores = shared.content.stores.iter().map(|opened| opened.path.display());
            let missing = shared.info.missing.iter().map(|store| store.path.display());
            json!({
                "event": "started",
                "version": env!("CARGO_PKG_VERSION"),
                "address": http.to_string(),
                "rtsp_address": rtsp.map(|address| address.to_string()),
                "tls": shared.tls.is_some(),
                "stores": stores.map(|path| path.to_string()).collect::<Vec<_>>(),
                "missing_stores": missing.map(|path| path.to_string()).collect::<Vec<_>>(),
                "in_place": takes_over,
            })
        });
    }

    fn stores(&self) -> Vec<ServedStore> {
        let numbers = 0..self.shared.content.stores.len();
        let served = numbers.map(|number| {
            let (shared, config) = (Arc::clone(&self.shared), Arc::clone(&self.config));
            ServedStore::new(number, shared, self.core.clone(), config, Arc::clone(&self.reloader))
        });
        served.collect()
    }

    fn title_owners(&self, readers: &Arc<MountReaders>) -> Vec<(PathBuf, Arc<dyn TitleOwner>)> {
        let owner = |(number, opened): (usize, &OpenStore)| {
            let (core, readers) = (self.core.clone(), Some(Arc::clone(readers)));
            let owner = EngineTitleOwner::new(number, opened, core, readers);
            (opened.path.clone(), Arc::new(owner) as Arc<dyn TitleOwner>)
        };
        self.shared.content.stores.iter().enumerate().map(owner).collect()
    }

    fn control(&self) -> Result<Vec<ControlServer>, Reason> {
        self.stores().into_iter().map(ControlServer::start).collect()
    }

    fn admin_api(&self, workers: Vec<WorkerHandle>) -> Result<Arc<AdminApi>, Reason> {
        let (shared, config) = (Arc::clone(&self.shared), Arc::clone(&self.config));
        let core = self.core.clone();
        Ok(Arc::new(AdminApi::new(shared, core, self.stores(), workers, config)?))
    }

    /// Starts the thread that measures disks again at quiet times, where that is configured.
    fn recalibration(
        &self,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<Option<Recalibration>, Reason> {
        if self.config.recalibrate_after.is_none() {
            return Ok(None);
        }
        let shared = Arc::clone(&self.shared);
        let (running, thread) = recalibration::start(self.stores(), shared).map_err(no_thread)?;
        threads.push(thread);
        Ok(Some(running))
    }

    /// Starts the threads that read all titles once in a period, where that is configured.
    fn scrubbing(&self, threads: &mut Vec<JoinHandle<()>>) -> Result<Option<Scrubbing>, Reason> {
        let start = |period| scrubbing::start(period, &self.shared, &self.core, threads);
        self.config.scrub.map(start).transpose().map_err(no_thread)
    }

    /// Starts the threads that carry out orders for copies of titles, where there is a bucket.
    fn copies(
        &self,
        membership: Option<&Arc<Membership>>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<Option<CopyThreads>, Reason> {
        let Some((source, membership)) = self.config.copies.as_ref().zip(membership) else {
            return Ok(None);
        };
        let (stores, shared) = (self.stores(), &self.shared);
        copies::start(source, membership, stores, shared, &self.core, threads)
            .map(Some)
            .map_err(no_thread)
    }
}

fn connection_limits(config: &ServerConfig) -> ConnectionLimits {
    ConnectionLimits {
        send_timeout: config.send_timeout,
        head_timeout: config.head_timeout,
        idle_timeout: config.idle_timeout,
    }
}

/// The time from admission until the first media of a stream that the server paces.
fn push_startup(config: &ServerConfig) -> Duration {
    // As the engine: two slots at least, three where the loss of a disk is survived.
    config.startup.max(config.slot * if config.survive_loss { 3 } else { 2 })
}

fn rtsp_limits(config: &ServerConfig, address: Option<SocketAddr>) -> RtspLimits {
    RtspLimits {
        startup: push_startup(config),
        local: address.unwrap_or(config.listen).ip(),
        send_timeout: config.send_timeout,
        head_timeout: config.head_timeout,
        session_timeout: config.rtsp_timeout,
    }
}

fn no_thread(error: io::Error) -> Reason {
    failed("start a thread", error)
}

fn failed(what: &str, error: io::Error) -> Reason {
    error.reason().about(format!("cannot {what}"))
}

/// Time for the responses that are being sent when a server hands over: a segment on most lines.
/// Viewers of the others fetch it once more.
const HANDOVER_WITHIN: Duration = Duration::from_secs(2);
/// Time in which a collector gets the last records when a server hands over: viewers wait for it.
const FLUSHED_BEFORE_HANDOVER: Duration = Duration::from_millis(250);
