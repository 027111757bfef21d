//! A target without storage: every operation completes as soon as it is issued, so that a run on it
//! measures the meter itself.

use super::{IoCompletion, IoRequest, Port};
use device::DeviceError;
use std::time::Instant;
use units::Moment;

/// A target without storage: every operation completes at once. Like a real target it reports one
/// completion time for all operations that it finds complete at once.
#[derive(Debug)]
pub struct NullPort {
    origin: Instant,
    over: Vec<u64>,
}

impl NullPort {
    /// A port whose clock counts from `origin`.
    pub fn new(origin: Instant) -> Self {
        Self { origin, over: Vec::new() }
    }
}

impl Port for NullPort {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.over.push(request.tag);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let at = self.now();
        if self.over.is_empty() && until != Moment::MAX {
            std::thread::sleep(until.since(at));
        }
        done.extend(self.over.drain(..).map(|tag| IoCompletion::new(tag, at, Ok(()))));
        Ok(())
    }

    fn method(&self) -> String {
        "nothing: no target".to_owned()
    }
}
