//! Access to a store: through its server's control socket, or by opening it where it is not served.
//!
//! Both ways execute the requests of `server::control`, so that a command does not depend on which
//! it is.

use crate::failure::{Code, Failure};
use crate::out::Bar;
use device::{BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, Pool};
use disk::Calibration;
use server::control::{Client, ControlError, Reply, Request, StoreOwner, execute};
use server::wire;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::{BackgroundIo, Store, StoreError, TitleRecord, Unthrottled};
use units::ByteCount;

/// Executes a request on the store at `path`: through its server's control socket, or by opening
/// the store. Shows progress where there is a terminal.
pub(crate) fn ask(path: &Path, request: &Request) -> Result<Reply, Failure> {
    let bar = Bar::new();
    let identity = Store::peek(path)?;
    let client = Client::connect(identity.uuid)
        .map_err(|error| Failure::new(format!("cannot reach the store's server: {error}")))?;
    let in_parts = matches!(request, Request::Calibrate { .. });
    let mut show = |p: wire::Progress| match in_parts {
        true => bar.percent(&p.stage, p.part()),
        false => bar.bytes(&p.stage, p.done, p.total),
    };
    if let Some(mut client) = client {
        return Ok(client.call(request, show)?);
    }
    let owner = Unserved(open(path)?);
    // Without a server, an interrupted command must clean up by itself. With one, the server
    // cleans up when this process has disconnected.
    let long =
        matches!(request, Request::Ingest { .. } | Request::Export { .. } | Request::Check { .. });
    let cancel = if long { on_interrupt()? } else { Arc::default() };
    execute(&owner, request, &cancel, &mut show).map_err(|failure| Failure::from(&failure))
}

/// Opens a store that is not served.
fn open(path: &Path) -> Result<Store, Failure> {
    Store::open(path).map_err(|error| match error {
        StoreError::Owned { .. } => Failure::from(error).hint(
            "wait for the other tenuto command; a server is reached by the user who started it",
        ),
        StoreError::Damaged { .. } => Failure::from(error).hint(
            "`tenuto check STORE --rebuild` shows what can be had back if its catalogue is lost",
        ),
        other => other.into(),
    })
}

/// A flag that SIGINT and SIGTERM set; a second one ends the program.
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let failed = |error: io::Error| Failure::new(format!("cannot handle signals: {error}"));
        // Registered in this order, the first signal finds the flag unset and does not end the
        // program.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(failed)?;
    }
    Ok(flag)
}

/// A path that is valid in every working directory.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A store that no server serves, opened by this command.
struct Unserved(Store);

impl StoreOwner for Unserved {
    fn store(&self) -> &Store {
        &self.0
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &Unthrottled
    }

    fn remove(&self, title: &str) -> Result<(TitleRecord, bool), StoreError> {
        Ok((self.0.remove(title)?, false))
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

    fn status(&self) -> Result<wire::ServerStatus, wire::Failure> {
        let message = "no server serves this store; start `tenuto serve`".to_owned();
        Err(wire::Failure { code: "not-served".to_owned(), message })
    }
}

/// Measures a device that no other process uses, for about `budget`.
pub(crate) fn measure(
    device: &dyn BlockDevice,
    scratch: Option<Range<u64>>,
    budget: Duration,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, DeviceError> {
    let mut options = CalibrateOptions { budget, scratch, ..CalibrateOptions::default() };
    options.read_sizes.push(LARGEST_READ);
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
