//! Reaching a store: its owner's control socket if a server has it, else by opening it.
//!
//! Both ways speak `server::control`'s requests and replies, so that a command neither knows nor
//! shows which it was.

use crate::failure::{Code, Failure};
use crate::out::Bar;
use device::{BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, Pool, Turns};
use disk::Calibration;
use media::TitleKind;
use server::control::{Client, ControlError, Reply, Request};
use server::wire;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::{CheckOptions, FreePace, IngestOptions, Progress, Store, StoreError};
use units::ByteCount;

/// Asks the store at `path`. Progress is shown where there is a terminal.
pub(crate) fn ask(path: &Path, request: &Request) -> Result<Reply, Failure> {
    let bar = Bar::new();
    let identity = Store::peek(path)?;
    let client = Client::connect(identity.uuid)
        .map_err(|error| Failure::new(format!("cannot reach the store's server: {error}")))?;
    match client {
        Some(mut client) => {
            let in_parts = matches!(request, Request::Calibrate { .. });
            let show = |p: wire::Progress| match in_parts {
                true => bar.percent(&p.stage, p.part()),
                false => bar.bytes(&p.stage, p.done, p.total),
            };
            Ok(client.call(request, show)?)
        }
        None => {
            let store = open(path)?;
            // Without a server an interrupted command must clean up by itself. (With one, the
            // server does when this process is gone.)
            let long = matches!(
                request,
                Request::Ingest { .. } | Request::Export { .. } | Request::Check { .. }
            );
            let cancel = if long { on_interrupt()? } else { Arc::default() };
            answer(&store, request, &bar, &cancel)
        }
    }
}

/// Opens a store that nobody serves.
fn open(path: &Path) -> Result<Store, Failure> {
    Store::open(path).map_err(|error| match error {
        StoreError::Owned { .. } => Failure::from(error).hint(
            "wait for the other tenuto command; a server is reached by the user who started it",
        ),
        other => other.into(),
    })
}

/// A flag that SIGINT and SIGTERM set; a second one ends the program.
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let failed = |error: io::Error| Failure::new(format!("cannot handle signals: {error}"));
        // In this order the first signal finds the flag unset.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(failed)?;
    }
    Ok(flag)
}

/// A path as somebody with another working directory must write it.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// What a server would answer.
fn answer(
    store: &Store,
    request: &Request,
    bar: &Bar,
    cancel: &AtomicBool,
) -> Result<Reply, Failure> {
    let progress = &mut |p: Progress| bar.bytes(p.stage, p.done, p.total);
    Ok(match request {
        Request::Ls => Reply::Titles(store.titles().iter().map(wire::Title::from).collect()),
        Request::Info { title: None } => {
            Reply::Store(wire::StoreInfo::new(&store.info(), store.calibration().as_ref()))
        }
        Request::Info { title: Some(name) } => {
            let no_title = || StoreError::NoTitle { name: name.clone() };
            let record = store.title(name).ok_or_else(no_title)?;
            let index = store.index(record.id)?;
            Reply::Title(wire::TitleDetail::new(&record, &index))
        }
        Request::Index { title: name } => {
            let no_title = || StoreError::NoTitle { name: name.clone() };
            let record = store.title(name).ok_or_else(no_title)?;
            Reply::Index(wire::to_hex(&store.index(record.id)?.encode()))
        }
        Request::Ingest { files, as_file, title, allow_damaged, renditions } => {
            let options = IngestOptions {
                kind: if *as_file { TitleKind::File } else { TitleKind::Media },
                name: title.clone(),
                allow_damaged: *allow_damaged,
                renditions: *renditions,
            };
            let outcomes = store::ingest(store, files, &options, &FreePace, progress, cancel);
            Reply::Ingest(wire::IngestReport::from(outcomes.as_slice()))
        }
        Request::Rm { title } => {
            let record = store.remove(title)?;
            Reply::Removed { title: wire::Title::from(&record), in_use: false }
        }
        Request::Rename { old, new } => {
            store.rename(old, new)?;
            Reply::Renamed
        }
        Request::Export { title, out } => {
            let report = store::export(store, title, out, &FreePace, progress, cancel)?;
            Reply::Export(wire::ExportReport::from(&report))
        }
        Request::Check { scrub } => {
            let options = CheckOptions { scrub: *scrub };
            let report = store.check_paced(&options, &FreePace, progress, cancel)?;
            Reply::Check(wire::CheckReport::from(&report))
        }
        Request::Calibrate { seconds } => {
            let budget = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
            let calibration = measure(&**store.device(), Some(store.scratch()), budget, bar)?;
            store.set_calibration(&calibration)?;
            Reply::Calibration(Box::new(wire::Calibration::from(&calibration)))
        }
        Request::Status => {
            return Err(Failure::new("nobody serves this store").hint("start `tenuto serve`"));
        }
    })
}

/// Measures a device that is ours alone, for about so long.
pub(crate) fn measure(
    device: &dyn BlockDevice,
    scratch: Option<Range<u64>>,
    budget: Duration,
    bar: &Bar,
) -> Result<Calibration, DeviceError> {
    let mut options = CalibrateOptions { budget, scratch, ..CalibrateOptions::default() };
    options.read_sizes.push(LARGEST_READ);
    let depth = options.depths.iter().copied().max().unwrap_or(1);
    let pool = Pool::new(ByteCount(LARGEST_READ.0 * u64::from(depth)), LARGEST_READ);
    let show = &mut |p: CalibrateProgress| bar.percent(p.stage, p.done);
    device::calibrate(device, &pool, &options, Turns::Alone, show)
}

/// What a hard disk of today wants, and more than any server will buffer by the thousand.
const LARGEST_READ: ByteCount = ByteCount::mib(16);

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match &error {
            ControlError::Failed(failure) => Self::from(failure),
            _ => Self::of(&error.to_string()),
        }
    }
}

impl From<&wire::Failure> for Failure {
    fn from(failure: &wire::Failure) -> Self {
        match failure.code.as_str() {
            "cancelled" => Self::interrupted(),
            "damaged" | "data-damaged" => Self::of(&failure.message).code(Code::Damage),
            _ => Self::of(&failure.message),
        }
    }
}
