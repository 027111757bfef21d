//! The head of a disk: serves one request after another in the model's time.
//!
//! Times are arguments ([`Moment`]), so that the same head runs in a simulation and with a real
//! clock. It does not choose an order: requests are served in order of arrival. A read that
//! continues the last one costs no positioning as long as the disk read ahead and its cache still
//! holds the place; the same applies to a write that continues the last write (the disk joins
//! them).
//!
//! Other writes take as long as reads, unless the disk has a write-back cache: then a write is
//! complete when it is in the disk's memory, and is written to the platter while the disk is idle,
//! when the memory is full, or at a [`Head::flush`]. A write to the platter is not interrupted: a
//! read that arrives meanwhile waits for it.

use crate::DiskModel;
use crate::model::{Chips, Kind};
use crate::platters::{Platters, duration};
use crate::write_cache::WriteCache;
use std::time::Duration;
use units::{Moment, float};

/// The service of one request. `start` + `overhead` + `seek` + `rotation` + `transfer` = `finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The start of the service: the arrival, or the end of the service before.
    pub start: Moment,
    /// Time until the head starts; on a solid-state disk, until the first byte.
    pub overhead: Duration,
    /// Time of the head's seek.
    pub seek: Duration,
    /// Time of waiting for the platter.
    pub rotation: Duration,
    /// Time from the first byte to the last.
    pub transfer: Duration,
    /// The end of the service.
    pub finish: Moment,
}

/// The state of a disk's head.
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

/// The position of the head on the line of bytes that pass it: `at` passes at `passed`, and it
/// reads ahead to `limit`, where it stays.
///
/// ```text
///        from            at              limit
///   ──────┬───────────────┬────────────────┬──────▶ offset
///         └─ in the cache ┴─ read ahead ───┘
/// ```
#[derive(Clone, Debug, Default)]
struct HeadPosition {
    /// The time at which the disk is free.
    free: u64,
    from: u64,
    at: u64,
    passed: u64,
    limit: u64,
    /// Whether the last operation was a write.
    wrote: bool,
    cache: WriteCache,
    /// The share of a revolution that the current request waits for the platter; `None` for the
    /// wait by the angle.
    turn: Option<f64>,
}

#[derive(Clone, Debug)]
struct Lanes {
    /// The time at which each lane can take the next command.
    lanes: Vec<u64>,
    /// The time at which the interface is free.
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

    /// The model of the disk.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// Serves `len` bytes at `offset`, requested at `arrival`, after all earlier requests. Arrivals
    /// never decrease; the bytes are within the disk.
    pub fn serve(&mut self, arrival: Moment, offset: u64, len: u64, write: bool) -> Service {
        self.serve_at(arrival, offset, len, write, None)
    }

    /// Serves a read like [`Head::serve`], but every wait for the platter takes `turn` of a
    /// revolution, 0 to 1, whatever the angle: for random and worst cases.
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
        let within = offset.checked_add(len).filter(|end| *end <= self.model.capacity().0);
        // The caller keeps reads within the disk: beyond its end no zone has a rate.
        let end = within.unwrap_or_else(|| {
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

    /// The time at which all writes are safe from a power cut, if a flush is requested at
    /// `arrival`, after all earlier requests.
    pub fn flush(&mut self, arrival: Moment) -> Moment {
        match (&self.model.kind, &mut self.state) {
            (Kind::Spinning(platters), State::HeadPosition(arm)) => {
                // Areas that idle time sufficed for are written by now and do not delay the flush.
                arm.write_out_until(platters, arrival.0);
                arm.free = arm.free.max(arrival.0);
                while arm.write_out(platters) {}
                Moment(arm.free)
            }
            (_, State::Lanes(lanes)) => arrival.max(Moment(lanes.bus)),
            _ => unreachable!("a head is made from its model"),
        }
    }

    /// The time for seek and rotation (see [`Service::seek`] and [`Service::rotation`]) of a
    /// request for `offset` if its service began at `start`. A disk chooses by it among waiting
    /// requests. The head does not move.
    pub fn positioning(&self, start: Moment, offset: u64, write: bool) -> Duration {
        match (&self.model.kind, &self.state) {
            (Kind::Spinning(platters), State::HeadPosition(arm)) => {
                // A read of one byte by a copy of the head, whose transfer time is negligible.
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
        // A full cache delays the write until older areas are on the platter.
        while kept && self.cache.bytes() + (end - offset) > p.write_back && self.write_out(p) {}
        let start = arrival.max(self.free);
        let ready = start + p.overhead;
        // A read of cached bytes needs them from memory: the platter has older ones.
        let in_memory = kept || self.cache.holds(offset, end);
        let (seek, rotation, transfer) = if in_memory {
            if write {
                self.cache.insert(offset, end);
            }
            (0, 0, nanos(float(end - offset) * p.bus_per_byte))
        } else if write && self.wrote && offset == self.at {
            // The disk joins contiguous writes, so that the second one loses no revolution.
            let transfer = nanos(p.transfer(offset, end));
            self.settle_at(p, offset, end, ready + transfer, write);
            (0, 0, transfer)
        } else if !write && self.holds(p, offset, ready) {
            let (rotation, transfer) = self.go_on(p, offset, end, ready);
            (0, rotation, transfer)
        } else {
            let (seek, rotation) = self.position(p, offset, ready);
            let transfer = nanos(p.transfer(offset, end));
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

    /// Writes cached areas while the disk is idle until `arrival`.
    fn write_out_until(&mut self, p: &Platters, arrival: u64) {
        while self.free < arrival && self.write_out(p) {}
    }

    /// Writes one area of the write cache to the platter as soon as the head is free; returns
    /// whether there was one.
    fn write_out(&mut self, p: &Platters) -> bool {
        if self.cache.bytes() == 0 {
            return false;
        }
        // The disk writes by itself, from its memory: there is no overhead of a command, and no
        // byte crosses the interface.
        let Some((offset, end)) = self.cache.next(self.at) else { return false };
        let mut finish = self.free + nanos(p.streamed(end) - p.streamed(offset));
        if !(self.wrote && offset == self.at) {
            let (seek, rotation) = self.position(p, offset, self.free);
            finish += seek + rotation;
        }
        self.settle_at(p, offset, end, finish, true);
        self.free = finish;
        true
    }

    /// Whether `offset` is in the cache at `now`, or the next byte to be read.
    fn holds(&self, p: &Platters, offset: u64, now: u64) -> bool {
        self.from <= offset
            && offset <= self.limit
            && (offset <= self.at || p.streamed(offset) <= self.streamed_by(p, now))
    }

    /// The time for the platter to turn from its angle at `now` to this place.
    fn rotation(&self, p: &Platters, now: u64, streamed: f64) -> f64 {
        self.turn.map_or_else(|| p.rotation(now, streamed), |turn| turn * float(p.revolution))
    }

    /// The streamed time to which the head has read ahead by `now`.
    fn streamed_by(&self, p: &Platters, now: u64) -> f64 {
        let on = p.streamed(self.at) + float(now.saturating_sub(self.passed));
        on.min(p.streamed(self.limit))
    }

    /// Serves a read from the cache or the read-ahead: (rotation, transfer).
    fn go_on(&mut self, p: &Platters, offset: u64, end: u64, ready: u64) -> (u64, u64) {
        let full = self.passed + nanos(p.streamed(self.limit) - p.streamed(self.at));
        let mut rotation = 0;
        if ready > full {
            // The cache was full and the head stopped: the next byte needs another revolution.
            let wait = nanos(self.rotation(p, ready, p.streamed(self.limit)));
            (self.at, self.passed) = (self.limit, ready + wait);
            if end > self.at {
                rotation = wait;
            }
        }
        let across = |from: u64| nanos(float(end.saturating_sub(from)) * p.bus_per_byte);
        let mut done = ready + rotation;
        if end > self.at {
            done = done.max(self.passed + nanos(p.streamed(end) - p.streamed(self.at)));
        }
        // All bytes cross the interface, cached ones from now on, and those behind the place where
        // the head stopped once they pass it.
        done = done.max(ready + across(offset));
        if rotation > 0 {
            done = done.max(self.passed + across(self.at));
        }
        self.limit = self.limit.max((end + p.read_ahead).min(p.capacity));
        // The cache has a fixed size: what is read ahead overwrites the oldest bytes.
        self.from = self.from.max(end.saturating_sub(p.read_ahead));
        self.wrote = false;
        (rotation, done - ready - rotation)
    }

    /// Moves the head and waits for the platter: (seek, rotation).
    fn position(&self, p: &Platters, offset: u64, ready: u64) -> (u64, u64) {
        let streamed = p.streamed(offset);
        // The head has moved on with the read-ahead since the last request.
        let distance = (p.place(streamed) - p.place(self.streamed_by(p, ready))).abs();
        let seek = nanos(p.seek.time(distance));
        let rotation = nanos(self.rotation(p, ready + seek, streamed));
        (seek, rotation)
    }

    fn settle_at(&mut self, p: &Platters, offset: u64, end: u64, finish: u64, write: bool) {
        let ahead = if write { 0 } else { p.read_ahead };
        // A write leaves nothing in the cache for reads.
        self.from = if write { end } else { offset.max(end.saturating_sub(p.read_ahead)) };
        (self.at, self.passed) = (end, finish);
        self.limit = (end + ahead).min(p.capacity);
        self.wrote = write;
    }
}

impl Lanes {
    /// Latencies overlap, one in each lane; transfers follow one another in the order of arrival.
    fn serve(&mut self, chips: &Chips, arrival: Moment, len: u64, write: bool) -> Service {
        let lane = self.lanes.iter_mut().min().expect("a disk has a lane");
        *lane = (*lane).max(arrival.0) + chips.latency;
        // Lanes share one interface: a byte waits for its lane and for the transfers before it.
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
