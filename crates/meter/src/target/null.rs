//! A target that is nothing: every operation is over as soon as it is asked for.
//!
//! What a run on it takes is what the meter itself takes.

use super::{Arrived, Port, Request};
use device::DeviceError;
use std::time::Instant;
use units::Moment;

/// See the head of this file. As a real target it says of all that it finds over at one moment that
/// they were over then.
#[derive(Debug)]
pub struct NullPort {
    origin: Instant,
    over: Vec<u64>,
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
        self.over.push(request.tag);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        let at = self.now();
        if self.over.is_empty() && until != Moment::MAX {
            std::thread::sleep(until.since(at));
        }
        done.extend(self.over.drain(..).map(|tag| Arrived::new(tag, at, Ok(()))));
        Ok(())
    }

    fn method(&self) -> String {
        "nothing: no target".to_owned()
    }
}
