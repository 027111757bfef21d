//! A target without storage whose clock advances only when it is read or slept on: a run on it
//! executes the same instructions every time, for tests and for counting them. It uses no real
//! time.

use super::{IoCompletion, IoRequest, Port};
use device::DeviceError;
use std::cell::Cell;
use std::time::Duration;
use units::{Moment, nanos};

/// A target without storage whose clock advances by a constant step, otherwise like
/// [`NullPort`](super::NullPort).
#[derive(Debug)]
pub struct TickingPort {
    now: Cell<u64>,
    tick: u64,
    late: u64,
    /// Sleeps so far.
    pub slept: u64,
    over: Vec<u64>,
}

impl TickingPort {
    /// A port whose clock advances by `tick` on each reading.
    pub fn new(tick: Duration) -> Self {
        let tick = nanos(tick);
        Self { now: Cell::new(0), tick, late: 0, slept: 0, over: Vec::new() }
    }

    /// Delays every wake-up by `late`.
    #[must_use]
    pub fn waking_late(self, late: Duration) -> Self {
        Self { late: nanos(late), ..self }
    }
}

impl Port for TickingPort {
    fn now(&self) -> Moment {
        self.now.set(self.now.get() + self.tick);
        Moment(self.now.get())
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.over.push(request.tag);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        if self.over.is_empty() && until.0 > self.now.get() {
            self.now.set(until.0 + self.late);
            self.slept += 1;
        }
        let at = self.now();
        done.extend(self.over.drain(..).map(|tag| IoCompletion::new(tag, at, Ok(()))));
        Ok(())
    }

    fn method(&self) -> String {
        "nothing: no target and no time".to_owned()
    }
}
