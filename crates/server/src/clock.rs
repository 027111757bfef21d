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

    /// The clock that was zero so long ago.
    pub(crate) fn with_zero(ago: Duration) -> Self {
        let now = Instant::now();
        Self { start: now.checked_sub(ago).unwrap_or(now) }
    }

    pub(crate) fn now(self) -> Moment {
        Moment::ZERO + self.start.elapsed()
    }

    pub(crate) fn uptime(self) -> Duration {
        self.start.elapsed()
    }
}
