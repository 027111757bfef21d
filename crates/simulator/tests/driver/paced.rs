//! A disk that works in bursts, written from the definition of a pace (`disk::ReadPace`): `n` reads
//! without a pause take at most `once + n × each`, from any of them on.

use disk::{Calibration, LONGER, ReadGuarantee, ReadPace};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

/// A disk that is quick for a random time and then as late as its pace allows.
#[derive(Clone, Debug)]
pub(crate) struct PacedDisk {
    pub(crate) pace: ReadPace,
    /// The size of a read that takes `each`.
    pub(crate) read: u32,
    /// The end of the last read.
    ended: Moment,
    /// The least, over the reads since the last pause, of a read's end and what the later ones take
    /// at the pace.
    at_pace: Moment,
}

impl PacedDisk {
    pub(crate) fn new(pace: ReadPace, read: u32) -> Self {
        Self { pace, read, ended: Moment::ZERO, at_pace: Moment::ZERO }
    }

    /// The end of a read behind all others.
    pub(crate) fn serve(&mut self, now: Moment, len: u32, late: bool) -> Moment {
        if now > self.ended {
            (self.ended, self.at_pace) = (now, now);
        }
        let takes = self.pace.each.mul_f64(f64::from(len) / f64::from(self.read));
        self.at_pace = self.at_pace.min(self.ended) + takes;
        let soonest = self.ended + takes / FASTEST_FACTOR;
        self.ended = if late { soonest.max(self.at_pace + self.pace.once) } else { soonest };
        self.ended
    }

    /// The record of a calibration of this disk.
    pub(crate) fn calibration(&self, slot: Duration) -> Calibration {
        let reads = (slot.saturating_sub(self.pace.once)).as_nanos() / self.pace.each.as_nanos();
        let guarantee = ReadGuarantee {
            read_size: ByteCount(self.read.into()),
            min_read: u32::try_from(reads).expect("few reads").max(1),
            mean_read: slot.as_secs_f64() / self.pace.each.as_secs_f64(),
            longest_read: self.pace.once + self.pace.each,
            longer: [0; LONGER],
            pace: self.pace,
        };
        Calibration {
            slot,
            guarantees: vec![guarantee],
            queue_depth: 2,
            r0: BitRate::of(guarantee.read_size, self.pace.each),
            t0: Duration::ZERO,
            zones: Vec::new(),
            actuator: None,
            writing: None,
            method: "of a simulated disk".to_owned(),
            measured_at: 0,
            measured: None,
            outliers: Vec::new(),
        }
    }
}

/// How many times as fast as its pace the disk is at its fastest.
const FASTEST_FACTOR: u32 = 4;
