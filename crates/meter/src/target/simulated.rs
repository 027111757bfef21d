//! A simulated disk, in its virtual time.

use super::{Arrived, Port, Request};
use crate::log::Kind;
use device::{DeviceError, SimulatedDisk};
use std::collections::BTreeMap;
use units::{ByteCount, Moment};

/// Asks a simulated disk for times and touches no bytes.
#[derive(Debug)]
pub struct SimulatedPort {
    disk: SimulatedDisk,
    asked: u64,
    /// From the beginning of one file to that of the next.
    each: u64,
    /// By when it arrives and when it was asked for: the tag, and how it went.
    under_way: BTreeMap<(Moment, u64), (u64, Result<(), DeviceError>)>,
}

impl SimulatedPort {
    /// Reads from this disk, which nobody else uses meanwhile.
    pub fn new(disk: SimulatedDisk) -> Self {
        Self { disk, asked: 0, each: 0, under_way: BTreeMap::new() }
    }

    /// As if there were files of `each` bytes on it, one after another. Opening and closing them
    /// takes no time.
    pub fn with_files(disk: SimulatedDisk, each: ByteCount) -> Self {
        Self { each: each.0, ..Self::new(disk) }
    }
}

impl Port for SimulatedPort {
    fn now(&self) -> Moment {
        self.disk.now()
    }

    fn begin(&mut self, request: Request) -> Result<(), DeviceError> {
        let Request { tag, kind, file, offset, len, .. } = request;
        let offset = u64::from(file) * self.each + offset;
        let asked = match kind {
            Kind::Read => self.disk.ask(offset, len),
            Kind::Write => self.disk.ask_write(offset, len),
        };
        let (done, result) = match asked {
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
            done.push(Arrived::new(tag, at, result));
        }
        Ok(())
    }

    fn method(&self) -> String {
        format!("simulated {}", self.disk.model().name())
    }
}
