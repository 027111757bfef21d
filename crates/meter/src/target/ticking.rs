//! A target that is nothing, by a clock that only moves when somebody looks at it or sleeps: the same
//! instructions every time, for tests and for counting them.
//!
//! Knows no real time.

use super::{Arrived, Port, Request};
use device::DeviceError;
use std::cell::Cell;
use std::time::Duration;
use units::Moment;

/// See the head of this file. As [`NullPort`](super::NullPort) else.
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
    /// Each look at the clock finds it so much later.
    pub fn new(tick: Duration) -> Self {
        let tick = nanos(tick);
        Self { now: Cell::new(0), tick, late: 0, slept: 0, over: Vec::new() }
    }

    /// Who sleeps is woken so much too late.
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

    fn begin(&mut self, request: Request) -> Result<(), DeviceError> {
        self.over.push(request.tag);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        if self.over.is_empty() && until.0 > self.now.get() {
            self.now.set(until.0 + self.late);
            self.slept += 1;
        }
        let at = self.now();
        done.extend(self.over.drain(..).map(|tag| Arrived::new(tag, at, Ok(()))));
        Ok(())
    }

    fn method(&self) -> String {
        "nothing: no target and no time".to_owned()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
