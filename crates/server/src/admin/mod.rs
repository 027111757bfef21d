//! The admin API: sessions, titles and disks over HTTP, below `/api/v1/`.
//!
//! ```text
//!   HTTP thread ──request──▶ operations (a table) ──▶ body ──▶ thread `api`: control::execute
//!        ▲                        │                                     │
//!        │                        └──▶ openapi (the same table)         │
//!        └───────────── Answered: JSON, or problem details ◀────────────┘
//! ```
//!
//! An operation is another form of a control request, so that a command and the API do the same.
//! Nothing is decided here about titles, sessions and disks. Operations may wait for a disk, so
//! each runs in a thread of its own, of which there are few.
//!
//! Changes need an operator's token. Reading needs one where the server has tokens, as `/status`
//! does. No response may be read by pages of other origins.

mod access;
mod bodies;
mod call;
mod capacity;
mod channel;
mod download;
mod ingests;
mod openapi;
mod operations;
mod planning;
mod problem;
mod upload;

pub(crate) use access::denied;
pub(crate) use call::{ApiCall, NoOperation, find};
pub use openapi::document;
pub(crate) use operations::RequestBody;
pub(crate) use problem::Problem;
pub(crate) use upload::{BodyPieces, check_uploads};

use crate::ServerConfig;
use crate::control::{Reply, Request, ServedStore};
use crate::http::{Response, escape};
use crate::messages::{Caller, CoreHandle, WorkerHandle, WorkerMessage};
use crate::running_writes::{WriteGuard, WriteKind};
use crate::shared::Shared;
use crate::wire;
use bodies::DownloadedTitle;
use download::DownloadRules;
use ingests::{ApiIngests, IngestState, ListedIngest};
use operations::ApiAction;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use store::StoreAccess;
use units::Reason;
use upload::{UploadDirectory, UploadedFile};

/// The admin API of a running server.
#[derive(Debug)]
pub(crate) struct AdminApi {
    shared: Arc<Shared>,
    core: CoreHandle,
    stores: Vec<ServedStore>,
    /// The thread that sends channels is the last one.
    workers: Vec<WorkerHandle>,
    /// `None`: titles are not taken from uploads.
    uploads: Option<UploadDirectory>,
    config: Arc<ServerConfig>,
    ingests: ApiIngests,
    // Set when the server ends.
    closed: AtomicBool,
    /// Held while viewers are counted: on a copy of the engine, or for a plan.
    counting: Mutex<()>,
    jobs: Mutex<Vec<JoinHandle<()>>>,
}

impl AdminApi {
    /// The API of a server with these stores. `workers`: the HTTP threads, which get the answers,
    /// and as the last one the thread that sends channels.
    pub(crate) fn new(
        shared: Arc<Shared>,
        core: CoreHandle,
        stores: Vec<ServedStore>,
        workers: Vec<WorkerHandle>,
        config: Arc<ServerConfig>,
    ) -> Result<Self, Reason> {
        let uploads = config.uploads.as_deref().map(UploadDirectory::open).transpose()?;
        let ingests = ApiIngests::default();
        let (closed, counting, jobs) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Ok(Self { shared, core, stores, workers, uploads, config, ingests, closed, counting, jobs })
    }

    /// Whether a body of this length may follow, for an operation that takes a file. `None`: the
    /// request states no length.
    pub(crate) fn check_upload(&self, call: &ApiCall, length: Option<u64>) -> Result<(), Problem> {
        if self.uploads.is_none() {
            let message = "this server takes no uploads";
            return Err(Problem::new(403, "uploads-disabled", message, "start it with --uploads"));
        }
        let Some(length) = length else {
            let hint = "send the file as the body, with its length in Content-Length";
            return Err(Problem::new(411, "length-required", "the request has no body", hint));
        };
        let free = self.room_for(call)?;
        // Last, so that a client can ask without a body whether a file would be taken.
        if length == 0 {
            return Err(Problem::new(422, "empty", "the file is empty", "send a file with bytes"));
        }
        if length > free {
            let message = format!("the file has {length} bytes, and the disk has {free} free");
            return Err(Problem::new(413, "too-large", message, "remove titles first"));
        }
        Ok(())
    }

    /// Free bytes of the disk of an ingest; a problem where there is a title of its name.
    fn room_for(&self, call: &ApiCall) -> Result<u64, Problem> {
        store::check_name(call.name(1))?;
        let store = self.store(call.name(0))?;
        store.writes().check(WriteKind::Ingest)?;
        let store = store.store();
        let info = store.info();
        match store.find(call.name(1)) {
            Ok(record) => Err(Problem::from(store::StoreError::Exists { name: record.name })),
            Err(_) => Ok(info.free_chunks * info.chunk.0),
        }
    }

    /// How the HTTP thread with this number is reached.
    pub(crate) fn worker(&self, number: usize) -> WorkerHandle {
        self.workers[number].clone()
    }

    /// Performs an operation in a thread of its own, which sends [`WorkerMessage::Answered`].
    /// `body`: the pieces of the file that it takes.
    pub(crate) fn start(
        self: &Arc<Self>,
        call: ApiCall,
        body: Option<BodyPieces>,
        caller: Caller,
    ) -> Result<(), Problem> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|job| !job.is_finished());
        if jobs.len() >= MOST_JOBS || self.closed.load(Ordering::Relaxed) {
            return Err(Problem::busy("too many requests to the API run at the moment"));
        }
        let api = Arc::clone(self);
        let job = thread::Builder::new().name("api".to_owned()).spawn(move || {
            let response = api.perform(&call, body).unwrap_or_else(Problem::into_response);
            let (connection, response) = (caller.connection, Box::new(response));
            api.workers[caller.worker].send(WorkerMessage::Answered { connection, response });
        });
        jobs.push(job.map_err(|error: io::Error| Problem::busy(&error.to_string()))?);
        Ok(())
    }

    /// Cancels what runs, because the server ends, and begins nothing any more.
    pub(crate) fn cancel(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.ingests.end();
    }

    /// [`AdminApi::cancel`], and waits for the end of what runs.
    pub(crate) fn close(&self) {
        self.cancel();
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        for job in jobs {
            let _ = job.join();
        }
    }

    fn perform(&self, call: &ApiCall, body: Option<BodyPieces>) -> Result<Response, Problem> {
        let request = match call.action() {
            ApiAction::Disks => return self.disks(),
            ApiAction::Upload => return self.upload(call, body),
            ApiAction::Download => return self.download(call),
            ApiAction::Recordings => {
                let recordings = self.store(call.name(0))?.recordings();
                return Ok(json(200, &wire::RecordingList { recordings }));
            }
            ApiAction::Ingests => return Ok(json(200, &self.ingests.report())),
            ApiAction::Ingest => {
                return Ok(json(200, &self.ingests.detail(call.ingest_number(0)?)?));
            }
            ApiAction::CancelIngest => {
                self.ingests.cancel(call.ingest_number(0)?)?;
                return Ok(Response::api_done());
            }
            ApiAction::Send => return self.send(call),
            ApiAction::Headroom => return self.headroom(call),
            ApiAction::Demand => return self.demand(call),
            ApiAction::Planning => return Ok(planning::choices()),
            ApiAction::Plan => return self.plan(call),
            // The HTTP thread sends them itself.
            ApiAction::Events => unreachable!("events are no answer in one piece"),
            ApiAction::Sessions => Request::Sessions { session: None, subject: call.subject() },
            ApiAction::Session => {
                Request::Sessions { session: Some(call.number(0)?), subject: None }
            }
            ApiAction::EndSession => Request::EndSession { session: call.number(0)? },
            ApiAction::EndSessions => Request::EndSessions { subject: call.subject_to_end()? },
            ApiAction::Decisions => Request::Decisions,
            ApiAction::Disk => Request::Info { title: None },
            ApiAction::Calibrate => Request::Calibrate { seconds: call.seconds()? },
            ApiAction::DrainReport => Request::Drain { drain: None },
            ApiAction::Drain => Request::Drain { drain: Some(true) },
            ApiAction::EndDrain => Request::Drain { drain: Some(false) },
            ApiAction::EndRecording => Request::EndRecording { title: call.name(1).to_owned() },
            ApiAction::Titles => Request::Ls(call.selection()?),
            ApiAction::Title => Request::Info { title: Some(call.name(1).to_owned()) },
            ApiAction::Rename => {
                Request::Rename { old: call.name(1).to_owned(), new: call.new_name()? }
            }
            ApiAction::Remove => Request::Rm { title: call.name(1).to_owned(), copy_only: false },
            ApiAction::Reload => Request::Reload,
            ApiAction::Restart => Request::Restart,
            ApiAction::Stop => Request::Stop { seconds: call.stop_seconds()? },
            ApiAction::Document => return Ok(json(200, &document())),
        };
        let store = match call.action() {
            // Of the whole server: any store's owner answers.
            ApiAction::Sessions
            | ApiAction::Session
            | ApiAction::EndSession
            | ApiAction::EndSessions
            | ApiAction::Decisions
            | ApiAction::Reload
            | ApiAction::Restart
            | ApiAction::Stop => &self.stores[0],
            _ => self.store(call.name(0))?,
        };
        Ok(match self.ask(store, &request)? {
            Reply::Sessions(list) => json(200, &list),
            Reply::SessionsEnded(ended) => json(200, &ended),
            Reply::Decisions(list) => json(200, &list),
            Reply::Session(report) => json(200, &report),
            Reply::Store(info) => json(200, &self.served_disk(store, info)),
            Reply::Titles(titles) => json(200, &titles),
            Reply::Title(title) => json(200, &title),
            Reply::Removed(removed) => json(200, &removed),
            Reply::Drain(report) => json(200, &report),
            Reply::Calibration(calibration) => json(200, &calibration),
            Reply::Reloaded(report) => json(200, &report),
            Reply::Renamed
            | Reply::SessionEnded
            | Reply::RecordingEnding
            | Reply::Restarting
            | Reply::Stopping => Response::api_done(),
            _ => unreachable!("each request has one kind of reply"),
        })
    }

    /// Executes a control request, and cancels it when the server ends.
    fn ask(&self, store: &ServedStore, request: &Request) -> Result<Reply, Problem> {
        let cancel = AtomicBool::new(false);
        let mut look = |_| cancel.store(self.closed.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(store.execute(request, &cancel, &mut look)?)
    }

    fn disks(&self) -> Result<Response, Problem> {
        let mut disks = Vec::new();
        for store in &self.stores {
            let Reply::Store(info) = self.ask(store, &Request::Info { title: None })? else {
                unreachable!("each request has one kind of reply")
            };
            disks.push(self.served_disk(store, info));
        }
        Ok(json(200, &wire::DiskList { disks }))
    }

    fn served_disk(&self, store: &ServedStore, info: wire::StoreInfo) -> wire::ServedDisk {
        let (path, number) = (store.path().display().to_string(), store.number());
        let snapshot = self.shared.snapshot();
        let disk = snapshot.engine.disks.get(number);
        wire::ServedDisk {
            store: path,
            lost: disk.is_some_and(|disk| disk.lost),
            draining: disk.is_some_and(|disk| disk.draining),
            sessions: disk.map_or(0, |disk| disk.sessions),
            // Those also that wait for their input.
            info: wire::StoreInfo { recordings: store.recordings(), ..info },
        }
    }

    /// Takes a file piece by piece, and ingests it when all of it is there. The webhook is told of
    /// the failure of an ingest that has begun, because the client may have gone meanwhile; not of
    /// a request that is refused before.
    fn upload(&self, call: &ApiCall, body: Option<BodyPieces>) -> Result<Response, Problem> {
        let (Some(uploads), Some(body)) = (&self.uploads, body) else {
            unreachable!("checked before the body")
        };
        let store = self.store(call.name(0))?;
        let writes = vec![store.writes().begin(WriteKind::Ingest, call.name(1))?];
        let _working = Arc::clone(&self.shared.work);
        let file = uploads.reserve(body.length)?;
        let ingest = self.ingests.begin(call.name(0), call.name(1), None, Some(body.length));
        let file = UploadDirectory::receive(file, &body, ingest.state());
        self.end_ingest(call, store, file, ingest, writes)
    }

    /// Downloads the file of an address, and ingests it when all of it is there. The webhook is
    /// told of a failure, as of an upload's.
    fn download(&self, call: &ApiCall) -> Result<Response, Problem> {
        let Some(uploads) = &self.uploads else {
            let message = "this server ingests no addresses";
            let hint = "start it with --uploads and --ingest-from";
            return Err(Problem::new(403, "addresses-disabled", message, hint));
        };
        let DownloadedTitle { url } = call.json()?;
        let prefixes = &*self.config.ingest_from;
        let address = download::permitted(prefixes, &url)?;
        let (store, most) = (self.store(call.name(0))?, self.room_for(call)?);
        let writes = vec![store.writes().begin(WriteKind::Ingest, call.name(1))?];
        let _working = Arc::clone(&self.shared.work);
        let shown = Some(download::shown(&url));
        let ingest = self.ingests.begin(call.name(0), call.name(1), shown, None);
        if self.closed.load(Ordering::Relaxed) {
            return Err(Problem::busy("the server ends"));
        }
        let rules = DownloadRules { prefixes, patience: self.config.send_timeout, most };
        let file = download::download(address, &rules, uploads, ingest.state());
        self.end_ingest(call, store, file, ingest, writes)
    }

    /// Ingests what has come of a file, and keeps the answer for those who ask for it later.
    fn end_ingest(
        &self,
        call: &ApiCall,
        store: &ServedStore,
        file: Result<UploadedFile<'_>, Problem>,
        ingest: ListedIngest<'_>,
        writes: Vec<WriteGuard>,
    ) -> Result<Response, Problem> {
        let file = file.inspect_err(|why| store.tell_not_ingested(call.name(1), why.failure()));
        let answer =
            file.and_then(|file| self.ingest(call, store, &file, (ingest.state(), writes)));
        ingest.end(&answer);
        answer
    }

    /// Ingests a file that is there.
    fn ingest(
        &self,
        call: &ApiCall,
        store: &ServedStore,
        file: &UploadedFile<'_>,
        (state, writes): (&IngestState, Vec<WriteGuard>),
    ) -> Result<Response, Problem> {
        let request = call.ingest(file.path())?;
        let (cancel, mut progress) = (state.cancel_flag(), |now| state.set(now));
        let reply = store.execute_begun(&request, writes, cancel, &mut progress);
        let reply = reply.inspect_err(|why| store.tell_not_ingested(call.name(1), why))?;
        let Reply::Ingest(mut report) = reply else {
            unreachable!("each request has one kind of reply")
        };
        let Some(outcome) = report.files.pop() else { unreachable!("one file is ingested") };
        let Some(title) = outcome.title else {
            state.check()?;
            let failure = outcome.error.unwrap_or_else(|| {
                wire::Failure::new("cancelled", "the ingest was cancelled", "try again")
            });
            return Err(Problem::from(file.unnamed(failure)));
        };
        let (left_out, mut notes) = (outcome.left_out, outcome.notes);
        notes.extend(self.shared.content.shadowed(&title.name));
        let location = format!("/api/v1/disks/{}/titles/{}", call.name(0), escape(&title.name));
        let mut response = json(201, &wire::UploadedTitle { title, left_out, notes });
        response.head.add("Location", location);
        Ok(response)
    }

    fn store(&self, uuid: &str) -> Result<&ServedStore, Problem> {
        let found = self.stores.iter().find(|store| store.store().info().uuid.to_string() == uuid);
        found.ok_or_else(|| {
            let message = format!("this server has no disk {}", uuid.escape_debug());
            Problem::new(404, "no-disk", message, "/api/v1/disks lists them, each with its uuid")
        })
    }
}

fn json(status: u16, value: &impl Serialize) -> Response {
    Response::api(status, "application/json", value)
}

/// The most operations at the same time; each has a thread.
const MOST_JOBS: usize = 16;
