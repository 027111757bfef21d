//! The server's clock: moments since its start.

use std::time::{Duration, Instant};
use units::Moment;

/// The clock that drives the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the clock; moment zero is now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Moment {
        Moment::ZERO + self.start.elapsed()
    }

    pub(crate) fn uptime(self) -> Duration {
        self.start.elapsed()
    }
}
