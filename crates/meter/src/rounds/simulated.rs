//! Rounds on a simulated disk, in its virtual time.

use super::{Arrived, Port};
use device::{DeviceError, SimulatedDisk};
use std::collections::BTreeMap;
use units::Moment;

/// Asks a simulated disk for times and touches no bytes.
#[derive(Debug)]
pub struct SimulatedPort {
    disk: SimulatedDisk,
    asked: u64,
    /// By when it arrives and when it was asked for: the tag, and how it went.
    under_way: BTreeMap<(Moment, u64), (u64, Result<(), DeviceError>)>,
}

impl SimulatedPort {
    /// Reads from this disk, which nobody else uses meanwhile.
    pub fn new(disk: SimulatedDisk) -> Self {
        Self { disk, asked: 0, under_way: BTreeMap::new() }
    }
}

impl Port for SimulatedPort {
    fn now(&self) -> Moment {
        self.disk.now()
    }

    fn begin(&mut self, tag: u64, offset: u64, len: u64) -> Result<(), DeviceError> {
        let (done, result) = match self.disk.ask(offset, len) {
            Ok(done) => (done, Ok(())),
            Err(error) => (self.disk.now(), Err(error)),
        };
        self.under_way.insert((done, self.asked), (tag, result));
        self.asked += 1;
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        let next = self.under_way.first_key_value().map(|((moment, _), _)| *moment);
        match next {
            Some(next) if next <= until => self.disk.advance_to(next),
            None if until == Moment::MAX => {}
            _ => self.disk.advance_to(until),
        }
        let now = self.disk.now();
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= now
        {
            let ((at, _), (tag, result)) = entry.remove_entry();
            done.push(Arrived { tag, at, result });
        }
        Ok(())
    }

    fn method(&self) -> String {
        format!("simulated {}", self.disk.model().name())
    }
}
