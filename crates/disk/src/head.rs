//! The moving part of a disk: serves one request after another in the time of the model.
//!
//! Time comes in as a [`Moment`]; the same head runs in a simulation and beside a real clock. It
//! does not choose an order: requests are served as they come. A read that goes on where the last
//! one ended costs no positioning as long as the disk read on by itself and its cache still holds
//! the place; so does a write that goes on where the last write ended (the disk joins them).
//!
//! Other writes take what reads take, unless the disk has a write-back cache: then a write is called
//! done when it is in the disk's memory, and put on the platter while nobody asks for anything, when
//! the memory is full, or at a [`Head::flush`]. What was begun is ended: a read that comes meanwhile
//! waits for one such write.

use crate::model::{Chips, Kind};
use crate::platters::{Platters, duration, float};
use crate::write_cache::WriteCache;
use crate::{DiskModel, platters};
use std::time::Duration;
use units::Moment;

/// How one request was served. `start` + `overhead` + `seek` + `rotation` + `transfer` = `finish`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// When the disk turned to it: at once, or when it had finished the one before.
    pub start: Moment,
    /// Until the arm starts; on a solid-state disk, until the first byte.
    pub overhead: Duration,
    /// The arm's movement.
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
    Arm(Arm),
    Lanes(Lanes),
}

/// The arm follows the line of bytes that passed or will pass it: `at` passes at `passed`, and it
/// reads on to `limit`, where it stays.
///
/// ```text
///        from            at              limit
///   ──────┬───────────────┬────────────────┬──────▶ offset
///         └─ in the cache ┴─ read ahead ───┘
/// ```
#[derive(Clone, Debug, Default)]
struct Arm {
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
            Kind::Spinning(_) => State::Arm(Arm::default()),
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
            (Kind::Spinning(platters), State::Arm(arm)) => {
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
            (Kind::Spinning(platters), State::Arm(arm)) => {
                arm.write_out_until(platters, arrival.0);
                arm.free = arm.free.max(arrival.0);
                while arm.write_out(platters) {}
                Moment(arm.free)
            }
            (_, State::Lanes(lanes)) => arrival.max(Moment(lanes.bus)),
            _ => unreachable!("a head is made from its model"),
        }
    }

    /// How long a request for `offset` would wait for arm and platter (its [`Service::seek`] and
    /// [`Service::rotation`]) if the disk turned to it at `start`. By this a disk that may choose
    /// among waiting requests chooses. Nothing moves.
    pub fn positioning(&self, start: Moment, offset: u64, write: bool) -> Duration {
        match (&self.model.kind, &self.state) {
            (Kind::Spinning(platters), State::Arm(arm)) => {
                // One byte, which takes no time to speak of, by a copy of the arm.
                let service = arm.clone().serve(platters, start.0, offset, offset + 1, write);
                service.seek + service.rotation
            }
            _ => Duration::ZERO,
        }
    }
}

impl Arm {
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

    /// Puts one area of the write cache on the platter as soon as the arm is free; whether there
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

    /// How far the arm has read on by `now`.
    fn streamed_by(&self, p: &Platters, now: u64) -> f64 {
        let on = p.streamed(self.at) + float(now.saturating_sub(self.passed));
        on.min(p.streamed(self.limit))
    }

    /// Serves a read that the cache holds or the arm is coming to: (rotation, transfer).
    fn go_on(&mut self, p: &Platters, offset: u64, end: u64, ready: u64) -> (u64, u64) {
        let full = self.passed + nanos(p.streamed(self.limit) - p.streamed(self.at));
        let mut rotation = 0;
        if ready > full {
            // The cache filled and the arm stopped: what is next must come round again.
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

    /// Moves the arm and waits for the platter: (seek, rotation, transfer).
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
    platters::whole(time.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ByteCount;

    const MB: u64 = 1_000_000;

    fn millis(time: Duration) -> f64 {
        (time.as_secs_f64() * 1e5).round() / 1e2
    }

    #[test]
    fn reading_on_costs_no_positioning() {
        let model = DiskModel::preset("st39183w").unwrap();
        let mut head = model.head();
        let mut now = Moment::ZERO;
        for i in 0..100 {
            let service = head.serve(now, i * MB, MB, false);
            assert_eq!(service.seek, Duration::ZERO);
            assert!(i == 0 || service.rotation.is_zero(), "{i}: {service:?}");
            now = service.finish;
        }
        let secs = now.as_secs_f64();
        assert!((6.8..7.0).contains(&secs), "the paper's 6.9 s for 100 MB outermost: {secs}");
    }

    #[test]
    fn a_pause_fills_the_cache_and_then_costs_a_turn_at_most() {
        let model = DiskModel::preset("st39183w").unwrap();
        let mut head = model.head();
        let first = head.serve(Moment::ZERO, 0, 64 << 10, false);
        let later = first.finish + Duration::from_secs(1);
        let cached = head.serve(later, 64 << 10, 64 << 10, false);
        assert_eq!(millis(cached.finish.since(later)), 1.94, "overhead and 64 KiB over the bus");
        let later = later + Duration::from_secs(1);
        let rest = head.serve(later, 128 << 10, 1 << 20, false);
        let time = rest.finish.since(later);
        let media = Duration::from_secs_f64((1u64 << 20) as f64 / 14.4e6);
        assert!(time < media + model.revolution(), "part from cache, the rest read: {time:?}");
    }

    #[test]
    fn going_back_costs_a_turn_and_going_far_a_stroke() {
        let model = DiskModel::preset("st39183w").unwrap();
        let mut head = model.head();
        let first = head.serve(Moment::ZERO, MB, 4096, false);
        let back = head.serve(first.finish, 0, 4096, false);
        assert!(back.seek < Duration::from_millis(2) && back.finish > first.finish);
        let far = head.serve(back.finish, model.capacity().0 - 4096, 4096, false);
        assert!((16.9..=17.0).contains(&millis(far.seek)), "{far:?}");
        assert!(far.rotation < model.revolution());
    }

    fn with_write_cache(size: &str) -> DiskModel {
        let text = DiskModel::preset_text("hdd-20tb").unwrap();
        let text = text.replacen("bus_mb_s", &format!("write_back = \"{size}\"\nbus_mb_s"), 1);
        DiskModel::new(crate::Parameters::parse(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_write_cache_takes_writes_at_the_speed_of_the_bus_and_pays_at_the_flush() {
        let written = |model: &DiskModel| {
            let mut head = model.head();
            let place = |i: u64| (i * 7919 % 100) * (model.capacity().0 / 100) / 4096 * 4096;
            let mut now = Moment::ZERO;
            for i in 0..50 {
                now = head.serve(now, place(i), 64 << 10, true).finish;
            }
            (millis(now.since(Moment::ZERO)), millis(head.flush(now).since(Moment::ZERO)))
        };
        let (done, safe) = written(&DiskModel::preset("hdd-20tb").unwrap());
        assert_eq!(done, safe, "without a cache what is done is safe");
        let (early, later) = written(&with_write_cache("64MiB"));
        assert!((10.0..12.0).contains(&early), "50 times overhead and 64 KiB of bus: {early}");
        assert!(later > 200.0 && later < safe * 0.8, "one sweep beats {safe} ms: {later}");
        let (full, _) = written(&with_write_cache("1MiB"));
        assert!(full > 30.0 * 5.0 && full < done, "beyond the memory a write waits: {full}");
    }

    #[test]
    fn what_is_in_the_write_cache_is_read_from_it_and_goes_out_when_nobody_asks() {
        let model = with_write_cache("64MiB");
        let mut head = model.head();
        let far = model.capacity().0 / 2;
        let write = head.serve(Moment::ZERO, far, MB, true);
        let read = head.serve(write.finish, far, MB / 2, false);
        assert!(read.seek.is_zero() && read.rotation.is_zero(), "{read:?}");
        let later = read.finish + Duration::from_secs(1);
        assert_eq!(head.flush(later), later, "it went out meanwhile");
        let next = head.serve(later, far + MB, 4096, false);
        assert!(next.seek.is_zero(), "the arm stands where it wrote: {next:?}");
    }

    #[test]
    fn a_long_read_pays_for_every_switch_and_a_short_one_rarely() {
        let model = DiskModel::preset("st39183w").unwrap();
        let read = |len: f64| {
            model.head().serve(Moment::ZERO, 0, crate::platters::whole(len), false).transfer
        };
        let track = 14.493e6 * (10.0 * 8.333_333 + 9.0 * 0.8 + 1.1) / 1e4;
        let (turn, cylinder) = (millis(read(track - 512.0)), millis(read(track * 10.0 + 512.0)));
        assert!((8.2..8.34).contains(&turn), "a track is a turn: {turn}");
        assert!((91.6..91.9).contains(&cylinder), "10 turns, 9 heads, 1 step: {cylinder}");
    }

    #[test]
    fn the_estimate_of_positioning_is_what_serving_takes() {
        let model = DiskModel::preset("st39183w").unwrap();
        let mut head = model.head();
        let mut now = head.serve(Moment::ZERO, 0, 64 << 10, false).finish;
        for (offset, write) in [
            (64 << 10, false),
            (3000 * MB, false),
            (10 * MB, true),
            (10 * MB + 4096, true),
            (10 * MB + 8192, false),
        ] {
            let estimate = head.positioning(now, offset, write);
            let service = head.serve(now, offset, 4096, write);
            assert_eq!(estimate, service.seek + service.rotation, "{offset} {write}");
            now = service.finish;
        }
    }

    #[test]
    fn a_solid_state_disk_overlaps_latencies_and_shares_its_bus() {
        let model = DiskModel::preset("ssd-nvme").unwrap();
        let finish = |at: u64, len: u64, count: u32| {
            let mut head = model.head();
            (0..count).map(|_| head.serve(Moment(at), 0, len, false).finish).last().unwrap()
        };
        let one = finish(0, 4096, 1).0;
        assert_eq!(one, 85_000 + 631);
        assert_eq!(finish(0, 4096, 76).0, 85_000 + 76 * 631, "one latency for all lanes");
        assert!(finish(0, 4096, 77).0 > 170_000, "one more than lanes waits");
        let gib = finish(0, 1 << 20, 1024).as_secs_f64();
        assert!((0.165..0.170).contains(&gib), "6.5 GB/s: {gib}");
    }

    #[test]
    fn random_small_reads_take_seek_and_half_a_turn() {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut head, mut now) = (model.head(), Moment::ZERO);
        for _ in 0..2000 {
            let offset = rng.u64(0..model.capacity().0 / 4096) * 4096;
            now = head.serve(now, offset, 4096, false).finish;
        }
        let mean = millis(now.since(Moment::ZERO) / 2000);
        assert!((11.5..12.9).contains(&mean), "8 ms of seek and 4.17 of rotation: {mean}");
    }

    #[test]
    fn the_wait_for_the_platter_can_be_told() {
        let model = DiskModel::preset("st39183w").unwrap();
        let mut head = model.head();
        let far = model.capacity().0 / 2;
        for (turn, wait) in [(0.0, 0.0), (0.5, 4.17), (1.0, 8.33), (7.0, 8.33)] {
            for place in [far, 0] {
                let now = head.serve(Moment::ZERO, 4 * MB, 4096, false).finish;
                let told = head.serve_turned(now, place, MB, turn);
                assert_eq!(millis(told.rotation), wait, "{turn} at {place}");
            }
        }
        let plain = model.head().serve(Moment::ZERO, far, MB, false);
        assert!(plain.rotation < model.revolution());
    }

    #[test]
    #[should_panic(expected = "beyond a disk of 1 KiB")]
    fn there_is_nothing_beyond_the_end() {
        let model = DiskModel::preset("ssd-sata").unwrap().scaled_to(ByteCount(1024));
        model.head().serve(Moment::ZERO, 1024, 1, false);
    }
}
