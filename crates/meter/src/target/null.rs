//! A target that is nothing: every operation is over as soon as it is asked for.
//!
//! What a run on it takes is what the meter itself takes.

use super::{Arrived, Port, Request};
use device::DeviceError;
use std::time::Instant;
use units::Moment;

/// See the head of this file.
#[derive(Debug)]
pub struct NullPort {
    origin: Instant,
    over: Vec<Arrived>,
}

impl NullPort {
    /// `origin` is moment zero.
    pub fn new(origin: Instant) -> Self {
        Self { origin, over: Vec::new() }
    }
}

impl Port for NullPort {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn begin(&mut self, request: Request) -> Result<(), DeviceError> {
        let at = self.now();
        self.over.push(Arrived::new(request.tag, at, Ok(())));
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        if self.over.is_empty() && until != Moment::MAX {
            std::thread::sleep(until.since(self.now()));
        }
        done.append(&mut self.over);
        Ok(())
    }

    fn method(&self) -> String {
        "nothing: no target".to_owned()
    }
}
