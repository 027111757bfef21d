//! Access to a store: through its server's control socket, or by opening it where it is not served.
//!
//! Both ways execute the requests of `server::control`, so that a command does not depend on which
//! it is.

use crate::failure::{Code, Failure};
use crate::out::Bar;
use crate::stopping::on_signals_to_a_recording;
use device::{BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, Pool};
use disk::Calibration;
use server::control::{Client, ControlError, Reply, Request, StoreOwner, execute};
use server::wire;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use store::{
    BackgroundIo, Store, StoreAccess, StoreError, StoreIdentity, TitleRecord, Unthrottled,
};
use tenuto_agent::stop_on_signals;
use units::{ByteCount, Hinted};

/// Executes a request on the store at `path`: through its server's control socket, or by opening
/// the store. Shows progress where there is a terminal.
pub(crate) fn ask(path: &Path, request: &Request) -> Result<Reply, Failure> {
    ask_and_hear(path, request, &|_| {})
}

/// Executes a request as [`ask`] does; `hear` is told of what happens meanwhile.
pub(crate) fn ask_and_hear(
    path: &Path,
    request: &Request,
    hear: &dyn Fn(&wire::RecordingEvent),
) -> Result<Reply, Failure> {
    answer(path, request, hear)?.map_err(|failure| Failure::from(&failure))
}

/// Executes a request on a title as [`ask`] does; the inner error is that of a store without the
/// title, which is none where another store has it.
pub(crate) fn ask_for_title(
    path: &Path,
    request: &Request,
) -> Result<Result<Reply, Failure>, Failure> {
    match answer(path, request, &|_| {})? {
        Ok(reply) => Ok(Ok(reply)),
        Err(failure) if failure.code == NO_TITLE => Ok(Err(Failure::from(&failure))),
        Err(failure) => Err(Failure::from(&failure)),
    }
}

/// The code of a failure for want of the title.
const NO_TITLE: &str = "no-title";

/// The answer of the process that has the store; the outer error is of the way to it.
fn answer(
    path: &Path,
    request: &Request,
    hear: &dyn Fn(&wire::RecordingEvent),
) -> Result<Result<Reply, wire::Failure>, Failure> {
    let bar = Bar::new();
    // Sockets are named by the store's uuid, and the file tells the store from a copy: every path
    // to a device leads to the same server.
    let identity = Store::peek(path).map_err(not_opened)?;
    // A calibration is bounded by time, so its progress is a share; all others count bytes.
    let in_parts = matches!(request, Request::Calibrate { .. });
    let mut show = |p: wire::Progress| match &p.event {
        Some(event) => bar.above(|| hear(event)),
        None if in_parts => bar.percent(&p.stage, p.part()),
        None => bar.bytes(&p.stage, p.done, p.total),
    };
    let until = Instant::now() + WHILE_A_SERVER_STARTS;
    let owner = loop {
        if let Some(mut client) = connect(&identity)? {
            // What a recording has is worth a report. Others leave nothing: the server cleans up
            // when this process has disconnected.
            let cancel = match request {
                Request::Record { .. } => on_signals_to_a_recording(true)?,
                _ => Arc::default(),
            };
            let mut reply = match client.call_until(request, &cancel, show) {
                Ok(reply) => reply,
                Err(ControlError::Failed(failure)) => return Ok(Err(failure)),
                Err(error) => return Err(error.into()),
            };
            if !cancel.load(Ordering::Relaxed) {
                note_end_of_server(&mut reply);
            }
            return Ok(Ok(reply));
        }
        match open(path, request) {
            // A server that starts has the store, and measures its disk before it has a socket.
            Err(StoreError::Owned { .. }) if Instant::now() < until => thread::sleep(BETWEEN_TRIES),
            opened => break Unserved(opened.map_err(not_opened)?),
        }
    };
    // Without a server, an interrupted command must clean up by itself.
    let long = request.copies()
        || matches!(
            request,
            Request::Check { .. } | Request::Repair { .. } | Request::Trim | Request::Verify { .. }
        );
    let cancel = match request {
        Request::Record { .. } => on_signals_to_a_recording(false)?,
        _ if long => stop_on_signals()?,
        _ => Arc::default(),
    };
    Ok(execute(&owner, request, &cancel, &mut show))
}

/// Makes an error of the end of a recording that neither its user nor an operator has stopped.
fn note_end_of_server(reply: &mut Reply) {
    let (end, by, error) = match reply {
        Reply::Recorded(report) => (&report.end, &report.ended_by, &mut report.error),
        Reply::RecordedSeries(report) => (&report.end, &report.ended_by, &mut report.error),
        _ => return,
    };
    if end == "stopped" && by.is_none() && error.is_none() {
        *error = Some(wire::Failure {
            code: "server-ended".to_owned(),
            message: "the end or a restart of the server has ended the recording".to_owned(),
            hint: Some("what came until then is in the store; start it again".to_owned()),
        });
    }
}

/// Opens a store that is not served; for reading only where the user may not write and the request
/// only reads.
fn open(path: &Path, request: &Request) -> Result<Store, StoreError> {
    let reads = matches!(
        request,
        Request::Ls(_)
            | Request::Info { .. }
            | Request::Index { .. }
            | Request::Export { .. }
            | Request::Push { .. }
            | Request::Check { .. }
    );
    match Store::open(path) {
        // Not opened so at once: with write permission damaged metadata is repaired. A disk that is
        // protected against writing opens, and refuses the repair.
        Err(StoreError::Device(
            DeviceError::Open { source, .. } | DeviceError::Io { source, .. },
        )) if reads && NO_WRITING.contains(&source.kind()) => Store::open_read_only(path),
        opened => opened,
    }
}

/// The connection to the server of a store, if it is served.
fn connect(identity: &StoreIdentity) -> Result<Option<Client>, Failure> {
    Client::connect(identity).map_err(|error| match error {
        ControlError::Io(error) => {
            Failure::from(error.reason().about("cannot reach the store's server"))
        }
        other => other.into(),
    })
}

pub(crate) fn not_opened(error: StoreError) -> Failure {
    match error {
        // There was no control socket: the owner is another command, or another user's server.
        StoreError::Owned { .. } => Failure::from(error).hint(
            "wait until the other command has finished; a server accepts commands of its own user",
        ),
        StoreError::Damaged { .. } => Failure::from(error)
            .hint("`tenuto check STORE --rebuild` lists the titles that can be recovered"),
        other => other.into(),
    }
}

/// How long a command waits for a store that another process has and no server offers.
const WHILE_A_SERVER_STARTS: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// Errors of a store that the user may not write to.
const NO_WRITING: [io::ErrorKind; 2] =
    [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];

/// A path that is valid in every working directory.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A store that no server serves, opened by this command.
struct Unserved(Store);

impl StoreAccess for Unserved {
    fn store(&self) -> &Store {
        &self.0
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &Unthrottled
    }
}

impl StoreOwner for Unserved {
    fn recording_io(&self) -> Box<dyn BackgroundIo + '_> {
        Box::new(Unthrottled)
    }

    fn remove(&self, title: &str, copy_only: bool) -> Result<(TitleRecord, bool), StoreError> {
        let title = match copy_only {
            true => self.0.hide_copy(title)?,
            false => self.0.hide(title)?,
        };
        self.0.release(title.id);
        Ok((title, false))
    }

    fn calibrate(
        &self,
        budget: Duration,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<Calibration, StoreError> {
        let show = &mut |p: CalibrateProgress| progress(wire::Progress::of_part(p.stage, p.done));
        let calibration = measure(&**self.0.device(), Some(self.0.scratch()), budget, show)?;
        self.0.set_calibration(&calibration)?;
        Ok(calibration)
    }

    fn served_file(&self) -> Result<wire::ServedFile, wire::Failure> {
        Err(not_served())
    }

    fn status(&self) -> Result<wire::ServerStatus, wire::Failure> {
        Err(not_served())
    }

    fn sessions(
        &self,
        _: Option<u64>,
        _: Option<&str>,
    ) -> Result<wire::SessionList, wire::Failure> {
        Err(not_served())
    }

    fn decisions(&self) -> Result<wire::DecisionList, wire::Failure> {
        Err(not_served())
    }

    fn end_recording(&self, _: &str) -> Result<(), wire::Failure> {
        Err(not_served())
    }

    fn end_session(&self, _: u64) -> Result<(), wire::Failure> {
        Err(not_served())
    }

    fn end_sessions(&self, _: &str) -> Result<wire::EndedSessions, wire::Failure> {
        Err(not_served())
    }

    fn reload(&self) -> Result<wire::ReloadReport, wire::Failure> {
        Err(not_served())
    }

    fn drain(&self, _: Option<bool>) -> Result<wire::DrainReport, wire::Failure> {
        Err(not_served())
    }

    fn restart(&self) -> Result<(), wire::Failure> {
        Err(not_served())
    }

    fn stop(&self, _: Duration) -> Result<(), wire::Failure> {
        Err(not_served())
    }
}

fn not_served() -> wire::Failure {
    wire::Failure::new("not-served", "no server serves this store", "start `tenuto serve`")
}

/// Measures a device that no other process uses, for about `budget`.
pub(crate) fn measure(
    device: &dyn BlockDevice,
    scratch: Option<Range<u64>>,
    budget: Duration,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, DeviceError> {
    let mut options =
        CalibrateOptions { budget, scratch, ..CalibrateOptions::default() }.with_long_run();
    options.read_sizes.push(LARGEST_READ);
    // Every read in flight has a buffer of the largest size.
    let depth = options.depths.iter().copied().max().unwrap_or(1);
    let pool = Pool::new(ByteCount(LARGEST_READ.0 * u64::from(depth)), LARGEST_READ);
    device::calibrate(device, &pool, &options, DiskAccess::Exclusive, progress)
}

/// The largest read measured: as large as a server's largest read.
const LARGEST_READ: ByteCount = ByteCount::mib(16);

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match &error {
            ControlError::Failed(failure) => Self::from(failure),
            _ => Self::of(&error),
        }
    }
}

impl From<&wire::Failure> for Failure {
    fn from(failure: &wire::Failure) -> Self {
        // A server sends words in place of error types. The same words give the same exit codes on
        // both ways to a store.
        let code = match failure.code.as_str() {
            "cancelled" => return Self::interrupted(),
            "damaged" | "data-damaged" => Code::Damage,
            "rate-not-held" => Code::Refused,
            _ => Code::Failed,
        };
        Self { code, sentence: failure.message.clone(), hint: failure.hint.clone() }
    }
}
