//! A request to put a new program, or a new configuration, in the place of this server while its
//! sessions go on. It is granted if the program that is to come can be used; the owner of the
//! server then makes the change ([`crate::Server::hand_over`]).

use crate::shared::Shared;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use units::Reason;

type Check = Box<dyn Fn() -> Result<(), Reason> + Send + Sync>;

/// Whether this server is to be replaced.
pub(crate) struct Restart {
    check: OnceLock<Check>,
    granted: AtomicBool,
    shared: Arc<Shared>,
}

impl Restart {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { check: OnceLock::new(), granted: AtomicBool::new(false), shared }
    }

    /// How the program that is to come is checked; the first call counts.
    pub(crate) fn check_by(&self, check: impl Fn() -> Result<(), Reason> + Send + Sync + 'static) {
        let _ = self.check.set(Box::new(check));
    }

    /// Grants a request, or says why the server goes on as it is.
    pub(crate) fn request(&self) -> Result<(), Reason> {
        let Some(check) = self.check.get() else {
            let why = "nothing starts this server again in its place";
            return Err(Reason::new(why, "stop it and start it again"));
        };
        if self.shared.stopping.load(Ordering::Relaxed) {
            return Err(Reason::new("the server is stopping", "start it again when it has ended"));
        }
        if self.shared.works() {
            let why = "an ingest, an export, a check or a calibration is running";
            return Err(Reason::new(why, "try again when it has ended"));
        }
        check()?;
        self.granted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a request was granted.
    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restart").field("granted", &self.is_granted()).finish_non_exhaustive()
    }
}
