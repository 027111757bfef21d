//! One or more simulated disks in virtual time.
//!
//! ```text
//!   file 0, file 1, file 2 ...   of `each` bytes, distributed over the disks in turn
//!        │ on its disk: one after another, beginning at `from`
//!        │ in pieces: each piece of the disk's files at a random position among them
//!        ▼
//!   disk 0, disk 1 ...           one clock for all
//! ```

use super::layout::PAGE;
use super::{IoCompletion, IoRequest, Port, VIRTUAL_HEARTBEAT};
use crate::log::OperationKind;
use crate::transfers::Cells;
use device::{DeviceError, Direction, SimulatedDisk};
use std::collections::VecDeque;
use std::time::Duration;
use units::{ByteCount, Moment};

/// A port to simulated disks, which calculates times and moves no bytes. Opening and closing files
/// takes no time.
#[derive(Debug)]
pub struct SimulatedPort {
    /// The disks, at least one, all at the same time.
    disks: Vec<SimulatedDisk>,
    /// The distance between the beginnings of two files.
    each: u64,
    /// The position of the first file.
    from: u64,
    /// The permutation of the files' pieces, if they are fragmented.
    pieces: Option<Cells>,
    /// The alignment of requests.
    grain: u64,
    /// Requests in flight in the order of completion, and of submission where they complete
    /// together: the time of completion, the tag and the result.
    under_way: VecDeque<(Moment, u64, Result<(), DeviceError>)>,
}

impl SimulatedPort {
    /// A port to a disk that has no other users.
    pub fn new(disk: SimulatedDisk) -> Self {
        Self::with_files(disk, ByteCount(0))
    }

    /// A port to a disk with files of `each` bytes, one after another.
    pub fn with_files(disk: SimulatedDisk, each: ByteCount) -> Self {
        Self {
            disks: vec![disk],
            each: each.0,
            from: 0,
            pieces: None,
            grain: 1,
            under_way: VecDeque::new(),
        }
    }

    /// Adds disks, which are at the same time as the first.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = SimulatedDisk>) -> Self {
        self.disks.extend(more);
        self
    }

    /// Sets the position of the first file.
    #[must_use]
    pub fn from(self, from: ByteCount) -> Self {
        Self { from: from.0, ..self }
    }

    /// Extends requests to whole pages, as direct reads are.
    #[must_use]
    pub fn by_pages(self) -> Self {
        Self { grain: PAGE, ..self }
    }

    /// Fragments the files, `files` on each disk, into pieces of this size in random order.
    #[must_use]
    pub fn in_pieces(self, files: u32, piece: ByteCount, seed: u64) -> Self {
        let all = self.each.saturating_mul(files.into());
        Self { pieces: Some(Cells::new(all, piece.0, seed)), ..self }
    }

    /// Submits a request to its disk; a request for several pieces completes with the last one.
    fn ask(&self, request: &IoRequest) -> Result<Moment, DeviceError> {
        let count = self.disks.len() as u64;
        let file = u64::from(request.file);
        let disk = &self.disks[usize::try_from(file % count).expect("below the disks")];
        let place = file / count * self.each + request.offset;
        let one = |place: u64, len: u64| {
            let from = units::align_down(self.from + place, self.grain);
            let len = units::align_up(self.from + place + len, self.grain) - from;
            let direction = match request.kind {
                OperationKind::Read => Direction::Read,
                OperationKind::Write => Direction::Write,
            };
            disk.ask(direction, from, len)
        };
        let Some(pieces) = &self.pieces else { return one(place, request.len) };
        let (mut at, end, mut done) = (place, place + request.len, disk.now());
        while at < end {
            let next = (at / pieces.cell() + 1) * pieces.cell();
            let len = next.min(end) - at;
            done = done.max(one(pieces.moved(at), len)?);
            at += len;
        }
        Ok(done)
    }
}

impl Port for SimulatedPort {
    fn now(&self) -> Moment {
        self.disks[0].now()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let (done, result) = match self.ask(&request) {
            Ok(done) => (done, Ok(())),
            Err(error) => (self.now(), Err(error)),
        };
        // One disk completes in the order of submission: a place is searched only where there are
        // several, or after an error.
        let place = match self.under_way.back() {
            Some((last, ..)) if *last > done => {
                self.under_way.partition_point(|(at, ..)| *at <= done)
            }
            _ => self.under_way.len(),
        };
        self.under_way.insert(place, (done, request.tag, result));
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let next = self.under_way.front().map(|(moment, ..)| *moment);
        let then = match next {
            Some(next) if next <= until => Some(next),
            None if until == Moment::MAX => None,
            _ => Some(until),
        };
        for disk in &self.disks {
            then.iter().for_each(|then| disk.advance_to(*then));
        }
        let now = self.now();
        while self.under_way.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((at, tag, result)) = self.under_way.pop_front()
        {
            done.push(IoCompletion::new(tag, at, result));
        }
        Ok(())
    }

    fn heartbeat(&self) -> Duration {
        VIRTUAL_HEARTBEAT
    }

    fn method(&self) -> String {
        let name = self.disks[0].model().name();
        match self.disks.len() {
            1 => format!("simulated {name}"),
            count => format!("{count} simulated {name}"),
        }
    }
}
