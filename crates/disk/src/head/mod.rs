//! The moving part of a disk: serves one request after another in the time of the model.
//!
//! Time comes in as a [`Moment`]; the same head runs in a simulation and beside a real clock. It
//! does not choose an order: requests are served as they come. A read that goes on where the last
//! one ended costs no positioning as long as the disk read on by itself and its cache still holds
//! the place; so does a write that goes on where the last write ended (the disk joins them).
//!
//! Other writes take what reads take, unless the disk has a write-back cache: then a write is
//! called done when it is in the disk's memory, and put on the platter while nobody asks for
//! anything, when the memory is full, or at a [`Head::flush`]. What was begun is ended: a read that
//! comes meanwhile waits for one such write.

use crate::DiskModel;
use crate::model::{Chips, Kind};
use crate::platters::{Platters, duration};
use crate::write_cache::WriteCache;
use std::time::Duration;
use units::{Moment, float};

/// How one request was served. `start` + `overhead` + `seek` + `rotation` + `transfer` = `finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// When the disk turned to it: at once, or when it had finished the one before.
    pub start: Moment,
    /// Until the head starts; on a solid-state disk, until the first byte.
    pub overhead: Duration,
    /// The head's movement.
    pub seek: Duration,
    /// Waiting for the platter.
    pub rotation: Duration,
    /// From the first byte to the last.
    pub transfer: Duration,
    /// When all of it is done.
    pub finish: Moment,
}

/// A disk at work.
#[derive(Clone, Debug)]
pub struct Head {
    model: DiskModel,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    HeadPosition(HeadPosition),
    Lanes(Lanes),
}

/// The head follows the line of bytes that passed or will pass it: `at` passes at `passed`, and it
/// reads on to `limit`, where it stays.
///
/// ```text
///        from            at              limit
///   ──────┬───────────────┬────────────────┬──────▶ offset
///         └─ in the cache ┴─ read ahead ───┘
/// ```
#[derive(Clone, Debug, Default)]
struct HeadPosition {
    /// When the disk is free.
    free: u64,
    from: u64,
    at: u64,
    passed: u64,
    limit: u64,
    /// The last thing done was a write.
    wrote: bool,
    cache: WriteCache,
    /// Part of a revolution that the request at hand waits for the platter; by its angle if `None`.
    turn: Option<f64>,
}

#[derive(Clone, Debug)]
struct Lanes {
    /// When each lane can take the next command.
    lanes: Vec<u64>,
    /// When the interface is free.
    bus: u64,
}

impl Head {
    pub(crate) fn new(model: DiskModel) -> Self {
        let state = match &model.kind {
            Kind::Spinning(_) => State::HeadPosition(HeadPosition::default()),
            Kind::Flash(chips) => State::Lanes(Lanes {
                lanes: vec![0; usize::try_from(chips.lanes).unwrap_or(1)],
                bus: 0,
            }),
        };
        Self { model, state }
    }

    /// The disk this is the head of.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// Serves `len` bytes at `offset`, asked for at `arrival`, after everything asked before.
    /// Arrivals never decrease; the bytes lie within the disk.
    pub fn serve(&mut self, arrival: Moment, offset: u64, len: u64, write: bool) -> Service {
        self.serve_at(arrival, offset, len, write, None)
    }

    /// Serves a read as [`Head::serve`] does, but wherever it must wait for the platter it waits
    /// `turn` of a revolution, 0 to 1, whatever the angle: for chance, and for the worst case.
    pub fn serve_turned(&mut self, arrival: Moment, offset: u64, len: u64, turn: f64) -> Service {
        self.serve_at(arrival, offset, len, false, Some(turn.clamp(0.0, 1.0)))
    }

    fn serve_at(
        &mut self,
        arrival: Moment,
        offset: u64,
        len: u64,
        write: bool,
        turn: Option<f64>,
    ) -> Service {
        let end = offset.checked_add(len).filter(|end| *end <= self.model.capacity().0);
        let end = end.unwrap_or_else(|| {
            panic!("{len} bytes at {offset} are beyond a disk of {}", self.model.capacity())
        });
        match (&self.model.kind, &mut self.state) {
            (Kind::Spinning(platters), State::HeadPosition(arm)) => {
                arm.turn = turn;
                arm.serve(platters, arrival.0, offset, end, write)
            }
            (Kind::Flash(chips), State::Lanes(lanes)) => lanes.serve(chips, arrival, len, write),
            _ => unreachable!("a head is made from its model"),
        }
    }

    /// When everything written is where a power cut does not reach it, if that is asked for at
    /// `arrival`, after everything asked before.
    pub fn flush(&mut self, arrival: Moment) -> Moment {
        match (&self.model.kind, &mut self.state) {
            (Kind::Spinning(platters), State::HeadPosition(arm)) => {
                arm.write_out_until(platters, arrival.0);
                arm.free = arm.free.max(arrival.0);
                while arm.write_out(platters) {}
                Moment(arm.free)
            }
            (_, State::Lanes(lanes)) => arrival.max(Moment(lanes.bus)),
            _ => unreachable!("a head is made from its model"),
        }
    }

    /// How long a request for `offset` would wait for seek and rotation (its [`Service::seek`] and
    /// [`Service::rotation`]) if the disk turned to it at `start`. By this a disk that may choose
    /// among waiting requests chooses. Nothing moves.
    pub fn positioning(&self, start: Moment, offset: u64, write: bool) -> Duration {
        match (&self.model.kind, &self.state) {
            (Kind::Spinning(platters), State::HeadPosition(arm)) => {
                // One byte, which takes no time to speak of, by a copy of the head.
                let service = arm.clone().serve(platters, start.0, offset, offset + 1, write);
                service.seek + service.rotation
            }
            _ => Duration::ZERO,
        }
    }
}

impl HeadPosition {
    fn serve(&mut self, p: &Platters, arrival: u64, offset: u64, end: u64, write: bool) -> Service {
        self.write_out_until(p, arrival);
        let kept = write && end - offset <= p.write_back;
        while kept && self.cache.bytes() + (end - offset) > p.write_back && self.write_out(p) {}
        let start = arrival.max(self.free);
        let ready = start + p.overhead;
        let in_memory = kept || self.cache.holds(offset, end);
        let (seek, rotation, transfer) = if in_memory {
            if write {
                self.cache.insert(offset, end);
            }
            (0, 0, nanos(float(end - offset) * p.bus_per_byte))
        } else if write && self.wrote && offset == self.at {
            let transfer = nanos(p.streamed(end) - p.streamed(offset));
            self.settle_at(p, offset, end, ready + transfer, write);
            (0, 0, transfer)
        } else if !write && self.holds(p, offset, ready) {
            let (rotation, transfer) = self.go_on(p, offset, end, ready);
            (0, rotation, transfer)
        } else {
            let (seek, rotation, transfer) = self.position(p, offset, end, ready);
            self.settle_at(p, offset, end, ready + seek + rotation + transfer, write);
            (seek, rotation, transfer)
        };
        let finish = ready + seek + rotation + transfer;
        self.free = finish;
        Service {
            start: Moment(start),
            overhead: Duration::from_nanos(p.overhead),
            seek: Duration::from_nanos(seek),
            rotation: Duration::from_nanos(rotation),
            transfer: Duration::from_nanos(transfer),
            finish: Moment(finish),
        }
    }

    /// What the disk does while nobody asks.
    fn write_out_until(&mut self, p: &Platters, arrival: u64) {
        while self.free < arrival && self.write_out(p) {}
    }

    /// Puts one area of the write cache on the platter as soon as the head is free; whether there
    /// was one.
    fn write_out(&mut self, p: &Platters) -> bool {
        if self.cache.bytes() == 0 {
            return false;
        }
        let Some((offset, end)) = self.cache.next(self.at) else { return false };
        let mut finish = self.free + nanos(p.streamed(end) - p.streamed(offset));
        if !(self.wrote && offset == self.at) {
            let (seek, rotation, transfer) = self.position(p, offset, end, self.free);
            finish = self.free + seek + rotation + transfer;
        }
        self.settle_at(p, offset, end, finish, true);
        self.free = finish;
        true
    }

    /// Whether `offset` is in the cache at `now`, or the next byte to come.
    fn holds(&self, p: &Platters, offset: u64, now: u64) -> bool {
        self.from <= offset
            && offset <= self.limit
            && (offset <= self.at || p.streamed(offset) <= self.streamed_by(p, now))
    }

    /// How long the platter takes from `now` to this place.
    fn rotation(&self, p: &Platters, now: u64, streamed: f64) -> f64 {
        self.turn.map_or_else(|| p.rotation(now, streamed), |turn| turn * float(p.revolution))
    }

    /// How far the head has read on by `now`.
    fn streamed_by(&self, p: &Platters, now: u64) -> f64 {
        let on = p.streamed(self.at) + float(now.saturating_sub(self.passed));
        on.min(p.streamed(self.limit))
    }

    /// Serves a read that the cache holds or the head is coming to: (rotation, transfer).
    fn go_on(&mut self, p: &Platters, offset: u64, end: u64, ready: u64) -> (u64, u64) {
        let full = self.passed + nanos(p.streamed(self.limit) - p.streamed(self.at));
        let mut rotation = 0;
        if ready > full {
            // The cache filled and the head stopped: what is next must come round again.
            let wait = nanos(self.rotation(p, ready, p.streamed(self.limit)));
            (self.at, self.passed) = (self.limit, ready + wait);
            if end > self.at {
                rotation = wait;
            }
        }
        let mut done = ready + rotation;
        if end > self.at {
            done = done.max(self.passed + nanos(p.streamed(end) - p.streamed(self.at)));
        }
        done = done.max(ready + nanos(float(end - offset) * p.bus_per_byte));
        self.limit = self.limit.max((end + p.read_ahead).min(p.capacity));
        self.from = self.from.max(end.saturating_sub(p.read_ahead));
        self.wrote = false;
        (rotation, done - ready - rotation)
    }

    /// Moves the head and waits for the platter: (seek, rotation, transfer).
    fn position(&self, p: &Platters, offset: u64, end: u64, ready: u64) -> (u64, u64, u64) {
        let streamed = p.streamed(offset);
        let distance = (p.place(streamed) - p.place(self.streamed_by(p, ready))).abs();
        let seek = nanos(p.seek.time(distance));
        let rotation = nanos(self.rotation(p, ready + seek, streamed));
        (seek, rotation, nanos(p.streamed(end) - streamed))
    }

    fn settle_at(&mut self, p: &Platters, offset: u64, end: u64, finish: u64, write: bool) {
        let ahead = if write { 0 } else { p.read_ahead };
        self.from = if write { end } else { offset.max(end.saturating_sub(p.read_ahead)) };
        (self.at, self.passed) = (end, finish);
        self.limit = (end + ahead).min(p.capacity);
        self.wrote = write;
    }
}

impl Lanes {
    /// Latencies overlap, one a lane; transfers follow one another, in the order of arrival.
    fn serve(&mut self, chips: &Chips, arrival: Moment, len: u64, write: bool) -> Service {
        let lane = self.lanes.iter_mut().min().expect("a disk has a lane");
        *lane = (*lane).max(arrival.0) + chips.latency;
        let first_byte = (*lane).max(self.bus);
        let per_byte = if write { chips.write_per_byte } else { chips.read_per_byte };
        let transfer = duration(float(len) * per_byte);
        self.bus = (Moment(first_byte) + transfer).0;
        Service {
            start: arrival,
            overhead: Moment(first_byte).since(arrival),
            seek: Duration::ZERO,
            rotation: Duration::ZERO,
            transfer,
            finish: Moment(self.bus),
        }
    }
}

fn nanos(time: f64) -> u64 {
    units::rounded(time.ceil())
}

#[cfg(test)]
mod tests;
