//! Disk time that is kept for writes at a guaranteed rate: a token bucket beside the reads.
//!
//! ```text
//!   tokens   ▲ burst ───────┐        ┌──── ...      nanoseconds of disk time, by the charges
//!            │        ╱     │    ╱   │
//!            │    ╱         │╱       │              refilled with `part` of the time that passes
//!            └──────────────┴────────┴──▶           a write begins when its charge is there
//! ```
//!
//! In any stretch of `t`, writes that begin by this rule are charged `burst + part × t` at most,
//! however they come. So reads that take `W` without a pause are done, writes included, after
//!
//! ```text
//!   t = W + tokens + part × t          t = (W + tokens) / (1 - part)          tokens ≤ burst
//! ```
//!
//! Admission therefore counts with reads that take `1 / (1 - part)` times as long, and with
//! `burst / (1 - part)` more after each pause: what `admission::schedule` knows as the delay after
//! a pause. In the run the tokens of the moment take the place of the burst. While reads follow
//! each other, the end that this gives never moves back: time that passes with reads is refilled by
//! `part` of itself, time that passes with writes costs the tokens that were counted for it.
//!
//! Where the disk is slower than calibrated, writes are taken to be as much slower as reads.

use crate::disk_timings::DiskTimings;
use std::time::Duration;
use units::{ByteCount, Moment};

/// The part of a disk's time that is kept for writes; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteShare {
    /// The part of all time, in parts of [`WriteShare::WHOLE`].
    pub part: u64,
    /// Nanoseconds of disk time that writes may take at once.
    pub burst: u64,
}

impl WriteShare {
    /// The whole of a disk's time.
    pub const WHOLE: u64 = 1 << 20;

    /// The largest part that writes are given: seven eighths. What is left is for what is not
    /// counted, and for those who look at what is recorded.
    pub const MOST: u64 = Self::WHOLE / 8 * 7;

    /// Nothing is kept.
    pub const NONE: Self = Self { part: 0, burst: 0 };

    /// Whether anything is kept.
    pub fn is_some(self) -> bool {
        self.part > 0
    }

    /// The part of all time, from 0 to 1; more where more is asked for than there is.
    pub fn ratio(self) -> f64 {
        self.part as f64 / Self::WHOLE as f64
    }

    /// What writes are given of it: where nothing is refused, more may be asked for than there is,
    /// and reads would wait for ever.
    pub fn given(self) -> Self {
        Self { part: self.part.min(Self::MOST), ..self }
    }

    /// How long other work that took `taken` must pause so that writes have their part of both.
    pub fn pause_after(self, taken: Duration) -> Duration {
        let left = Self::WHOLE - self.given().part;
        let pause = taken.as_nanos() * u128::from(Self::WHOLE - left) / u128::from(left);
        Duration::from_nanos(u64::try_from(pause).unwrap_or(u64::MAX))
    }

    /// What both keep together.
    fn and(self, other: Self) -> Self {
        let part = self.part.saturating_add(other.part);
        Self { part, burst: self.burst.saturating_add(other.burst) }
    }

    /// Nanoseconds that pass until the disk has done `nanos` of other work, from a moment at which
    /// no tokens are left; `slowdown` in 1,024ths. `u64::MAX` where writes leave it no time.
    #[inline]
    pub(crate) fn beside(self, nanos: u64, slowdown: u64) -> u64 {
        if self.part == 0 {
            return nanos;
        }
        let part = u128::from(self.part).saturating_mul(1024 + u128::from(slowdown)) >> 10;
        match u128::from(Self::WHOLE).checked_sub(part) {
            None | Some(0) => u64::MAX,
            Some(left) => {
                let whole = u128::from(nanos) * u128::from(Self::WHOLE) / left;
                u64::try_from(whole).unwrap_or(u64::MAX)
            }
        }
    }
}

/// One write, or several that are made one after the other, with nothing between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteJob {
    /// The places that are written to; a flush counts as one.
    pub places: u32,
    /// The bytes in all.
    pub bytes: ByteCount,
}

impl WriteJob {
    /// Nanoseconds of disk time that it takes at most, with the way there and the way back to the
    /// reads; `None` where no times of the disk are known.
    ///
    /// A write is taken to cost what a read costs at the same place, or what a write beside reads
    /// is known to cost (measured, or from the model of a solid-state disk), if that is more.
    pub fn charge(self, timings: &DiskTimings) -> Option<u64> {
        let costs = timings.costs.as_ref()?;
        let there = costs.batch(self.places.into(), costs.slowest_transfer(self.bytes.0));
        let computed = there.saturating_add(costs.positioning(1));
        let measured = timings.writing.map_or(0, |cost| {
            let sizes = self.bytes.0.div_ceil(cost.write_size.0.max(1)).max(1);
            let each = u64::try_from(cost.slowest.as_nanos()).unwrap_or(u64::MAX);
            sizes.saturating_mul(each)
        });
        Some(computed.max(measured))
    }
}

/// What a writer with a guaranteed rate does again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteDemand {
    /// Nanoseconds from one round to the next.
    pub period: u64,
    /// The write of a round. Where `joins`, it becomes one with those of all other such writers of
    /// the disk when the disk is busy; otherwise it is made by itself.
    pub write: WriteJob,
    /// Whether the writer waits for others when the disk is busy.
    pub joins: bool,
    /// The write of a round that all writers make once.
    pub shared: Option<WriteJob>,
}

impl WriteDemand {
    /// What is to be kept of a disk for all of these writers, if `charge` is what a write takes, in
    /// nanoseconds.
    ///
    /// Writers that join are charged as one write of all, and what they share once, each by the
    /// shortest period of these. Another writer is charged by its own.
    ///
    /// The burst is two rounds of each: one that was delayed when the next is there, and of a disk
    /// with a write cache, a round that was charged before the disk has made it.
    pub fn share_of<'a>(
        demands: impl Iterator<Item = &'a Self>,
        charge: impl Fn(WriteJob) -> u64,
    ) -> WriteShare {
        let (mut joined, mut shared) = (WriteJob { places: 0, bytes: ByteCount(0) }, 0);
        let mut shortest = u64::MAX;
        let mut alone = WriteShare::NONE;
        for demand in demands {
            if !demand.joins {
                let round = charge(demand.write).saturating_add(demand.shared.map_or(0, &charge));
                alone = alone.and(share(round, demand.period));
                continue;
            }
            joined.places = joined.places.saturating_add(demand.write.places);
            joined.bytes.0 = joined.bytes.0.saturating_add(demand.write.bytes.0);
            shared = shared.max(demand.shared.map_or(0, &charge));
            shortest = shortest.min(demand.period);
        }
        let joined = if joined.places > 0 { charge(joined) } else { 0 };
        alone.and(share(joined.saturating_add(shared), shortest))
    }
}

fn share(round: u64, period: u64) -> WriteShare {
    let part = u128::from(round) * u128::from(WriteShare::WHOLE);
    let part = part.div_ceil(u128::from(period.max(1)));
    let part = u64::try_from(part).unwrap_or(u64::MAX);
    WriteShare { part, burst: round.saturating_mul(2) }
}

/// The tokens of one disk: nanoseconds of disk time that writes may take now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteTokens {
    share: WriteShare,
    tokens: u64,
    at: Moment,
}

impl WriteTokens {
    /// Another part of the disk is kept from now on. What was saved up stays, as far as it is
    /// within the new burst.
    pub fn set_share(&mut self, now: Moment, share: WriteShare) {
        self.refill(now);
        self.share = share;
        self.tokens = self.tokens.min(share.burst);
    }

    /// The tokens of a whole burst are there. To be told before it is decided whether the reads are
    /// on time beside the share.
    pub fn fill(&mut self) {
        self.tokens = self.share.burst;
    }

    /// The part of the disk that is kept.
    pub fn share(&self) -> WriteShare {
        self.share
    }

    /// The tokens at `now`.
    pub fn left(&self, now: Moment) -> u64 {
        let passed = u128::from(now.0.saturating_sub(self.at.0));
        let more = passed * u128::from(self.share.part) / u128::from(WriteShare::WHOLE);
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        self.tokens.saturating_add(more).min(self.share.burst)
    }

    /// Takes the tokens of a write that begins now, if they are there.
    pub fn take(&mut self, now: Moment, charge: u64) -> bool {
        self.refill(now);
        let has = charge <= self.tokens;
        if has {
            self.tokens -= charge;
        }
        has
    }

    /// When the tokens of a write are there; `None`: never, because it takes more than a burst.
    pub fn ready_at(&self, now: Moment, charge: u64) -> Option<Moment> {
        let left = self.left(now);
        if charge <= left {
            return Some(now);
        }
        if charge > self.share.burst || self.share.part == 0 {
            return None;
        }
        let wait = u128::from(charge - left) * u128::from(WriteShare::WHOLE);
        let wait = wait.div_ceil(u128::from(self.share.part)) + 1;
        Some(Moment(now.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))))
    }

    fn refill(&mut self, now: Moment) {
        // What is rounded off is less than a nanosecond each time.
        self.tokens = self.left(now);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::DiskModel;

    const MS: u64 = 1_000_000;

    fn half(burst: u64) -> WriteShare {
        WriteShare { part: WriteShare::WHOLE / 2, burst }
    }

    #[test]
    fn writes_take_no_more_than_the_burst_and_their_part_of_any_stretch() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let burst = rng.u64(1..=100) * MS;
            let share = WriteShare { part: rng.u64(1..WriteShare::WHOLE), burst };
            let mut tokens = WriteTokens::default();
            tokens.set_share(Moment::ZERO, share);
            let (mut now, mut begun) = (Moment::ZERO, Vec::new());
            for _ in 0..200 {
                let charge = rng.u64(1..=burst);
                if rng.bool() {
                    now = Moment(now.0 + rng.u64(0..burst));
                } else {
                    now = tokens.ready_at(now, charge).expect("within the burst");
                    assert!(tokens.take(now, charge), "seed {seed}: it is time");
                    begun.push((now.0, charge));
                }
            }
            for first in 0..begun.len() {
                let mut charged = 0;
                for (at, charge) in &begun[first..] {
                    charged += charge;
                    let passed = u128::from(at - begun[first].0);
                    let part = passed * u128::from(share.part) / u128::from(WriteShare::WHOLE);
                    assert!(u128::from(charged) <= u128::from(burst) + part + 1, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn reads_take_longer_by_the_part_that_is_kept() {
        let (half, none) = (half(10 * MS), WriteShare::NONE);
        assert_eq!([none.beside(7, 0), half.beside(7, 0)], [7, 14]);
        // Half as slow again, writes take three quarters of the time, and then all of it.
        assert_eq!([half.beside(8, 512), half.beside(8, 1024)], [32, u64::MAX]);
        assert_eq!(WriteShare { part: WriteShare::WHOLE, burst: 0 }.beside(1, 0), u64::MAX);
    }

    #[test]
    fn reads_are_left_an_eighth_whatever_writes_ask_for() {
        let eighth = WriteShare::WHOLE / 8;
        for (part, left) in [(0, 8), (4, 4), (7, 1), (8, 1), (60, 1)] {
            let asked = WriteShare { part: part * eighth, burst: 3 };
            let given = asked.given();
            assert_eq!((WriteShare::WHOLE - given.part, given.burst), (left * eighth, 3));
        }
    }

    #[test]
    fn a_write_waits_for_its_tokens_and_one_above_the_burst_for_ever() {
        let mut tokens = WriteTokens::default();
        assert_eq!(tokens.ready_at(Moment::ZERO, 1), None, "nothing is kept");
        tokens.set_share(Moment::ZERO, half(10 * MS));
        assert!(!tokens.take(Moment::ZERO, 1), "nothing is saved up yet");
        assert_eq!(tokens.left(Moment(8 * MS)), 4 * MS);
        assert_eq!(tokens.left(Moment(80 * MS)), 10 * MS);
        assert!(tokens.take(Moment(80 * MS), 6 * MS));
        assert_eq!(tokens.ready_at(Moment(80 * MS), 10 * MS), Some(Moment(92 * MS + 1)));
        assert_eq!(tokens.ready_at(Moment(80 * MS), 10 * MS + 1), None);
        tokens.set_share(Moment(80 * MS), half(2 * MS));
        assert_eq!(tokens.left(Moment(80 * MS)), 2 * MS);
    }

    /// A positioning of the ST39183W takes up to some 20 ms, of a solid-state disk 0.1 ms.
    #[test]
    fn a_write_is_charged_the_way_there_and_the_way_back() {
        let charge = |model: &str, places, bytes| {
            let model = DiskModel::preset(model).unwrap();
            let timings = DiskTimings::of_model(&model, ByteCount::MIB, 1);
            let job = WriteJob { places, bytes: ByteCount(bytes) };
            let costs = timings.costs.as_ref().unwrap();
            (job.charge(&timings).unwrap(), costs.positioning(1))
        };
        let (one, positioning) = charge("st39183w", 1, 4096);
        assert!(one > 2 * positioning, "{one}");
        let (three, _) = charge("st39183w", 3, 4096);
        assert!((one..one + 2 * positioning).contains(&three), "in one sweep: {three}");
        assert!(charge("ssd-nvme", 1, 4096).0 < MS);
        assert_eq!(
            WriteJob { places: 1, bytes: ByteCount(1) }.charge(&DiskTimings::default()),
            None
        );
    }

    #[test]
    fn what_writers_join_is_kept_as_one_write_and_what_they_share_once() {
        let job = |places| WriteJob { places, bytes: ByteCount(0) };
        let of = |period| WriteDemand { period, write: job(5), joins: true, shared: Some(job(3)) };
        let alone = |period| WriteDemand { joins: false, shared: None, ..of(period) };
        // A write takes one, and one for each place.
        let share = |demands: &[WriteDemand]| {
            let charge = |job: WriteJob| u64::from(job.places) + 1;
            let share = WriteDemand::share_of(demands.iter(), charge);
            (share.part * 1000 / WriteShare::WHOLE, share.burst)
        };
        assert_eq!(share(&[]), (0, 0));
        assert_eq!(share(&[of(1000)]), (6 + 4, 20));
        assert_eq!(share(&[of(1000), of(1000)]), (11 + 4, 30));
        assert_eq!(share(&[of(1000), of(500)]), (2 * (11 + 4), 30));
        // A writer that does not join is charged by its own period.
        assert_eq!(share(&[alone(100), alone(1000)]), (60 + 6, 24));
        assert_eq!(share(&[of(1000), alone(100)]), (6 + 4 + 60, 20 + 12));
    }
}
