//! How many streams a disk holds by the closed forms of the literature.
//!
//! They are for planning and comparison; admission stands on a [`Calibration`](crate::Calibration).
//! All speak of equal streams of constant rate, each making one read per round. A million bytes is
//! 8 Mb here: Alderman and Diallo's figures come out only in one system of units.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// Özden, Rastogi and Silberschatz's disk, as Alderman and Diallo use it: every read at the inner
/// tracks' rate, with a whole revolution, the head crossing the disk twice a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundCost {
    /// Transfer.
    pub rate: BitRate,
    /// A revolution (t_rot).
    pub revolution: Duration,
    /// Settling after a movement (t_settle).
    pub settle: Duration,
    /// A full stroke (t_seek).
    pub full_seek: Duration,
}

impl RoundCost {
    /// The largest q with q (d/r_disk + t_rot + t_settle) + 2 t_seek <= d/r_disp, `block` being d
    /// and `stream` r_disp.
    pub fn streams(&self, block: ByteCount, stream: BitRate) -> u64 {
        let each = block.time_at(self.rate).saturating_add(self.revolution + self.settle);
        let round = block.time_at(stream).saturating_sub(self.full_seek * 2);
        whole_parts(round, each)
    }
}

/// Transfer alone: the whole streams in `disk` / `stream`.
pub fn ratio(disk: BitRate, stream: BitRate) -> u64 {
    disk.0.checked_div(stream.0).unwrap_or(0)
}

/// Lee and Srivastava's read: t = b/r0 + t0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// The rate of an endless read.
    pub r0: BitRate,
    /// What each read costs before its first byte.
    pub t0: Duration,
}

impl ReadCost {
    /// Eq. 1: t = b/r0 + t0.
    pub fn time(&self, bytes: ByteCount) -> Duration {
        bytes.time_at(self.r0).saturating_add(self.t0)
    }

    /// Eq. 2: r = r0 / (1 + r0 t0 / b), the rate of reads of `bytes` one after another.
    pub fn rate(&self, bytes: ByteCount) -> BitRate {
        BitRate::of(bytes, self.time(bytes))
    }

    /// Eq. 3: T = s r0 t0 / (r0 - s R), the shortest service cycle in which `streams` streams of
    /// rate `stream` are all read for. `None` when no cycle is long enough.
    pub fn cycle(&self, streams: u32, stream: BitRate) -> Option<Duration> {
        let wanted = u128::from(streams) * u128::from(stream.0);
        let spare = u128::from(self.r0.0).checked_sub(wanted).filter(|spare| *spare > 0)?;
        let together = u128::from(streams) * u128::from(self.r0.0);
        let nanos = together.saturating_mul(self.t0.as_nanos()) / spare;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// Eq. 4: B = R T, what one stream plays during that cycle, and so what is read for it at
    /// once. (As printed, the equation lacks the factor s that T contains.)
    pub fn buffer(&self, streams: u32, stream: BitRate) -> Option<ByteCount> {
        self.cycle(streams, stream).map(|cycle| stream.bytes_in(cycle))
    }

    /// Eq. 5: S_max < r0 / R, the most streams for which there is a cycle at all.
    pub fn streams(&self, stream: BitRate) -> u64 {
        self.r0.0.saturating_sub(1).checked_div(stream.0).unwrap_or(0)
    }
}

fn whole_parts(time: Duration, part: Duration) -> u64 {
    let parts = time.as_nanos().checked_div(part.as_nanos()).unwrap_or(0);
    u64::try_from(parts).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: ByteCount = ByteCount(1_000_000);
    const MPEG1: BitRate = BitRate(1_500_000);

    fn st39183w(rate: BitRate) -> RoundCost {
        RoundCost {
            rate,
            revolution: Duration::from_micros(8_330),
            settle: Duration::from_micros(600),
            full_seek: Duration::from_millis(17),
        }
    }

    /// Alderman and Diallo, 5.1: 70 by the bound with the 120 Mb/s they put in for the inner
    /// tracks, 68 by the ratio with the measured mean (100 MB in 7.8 s), and 44 by the bound with
    /// the inner tracks' measured rate (100 MB in 10.9 s).
    #[test]
    fn the_papers_disk_holds_what_the_paper_says() {
        let measured = |secs_x10: u64| BitRate(800_000_000 * 10 / secs_x10);
        assert_eq!(st39183w(BitRate(120_000_000)).streams(MB, MPEG1), 70);
        assert_eq!(ratio(measured(78), MPEG1), 68);
        assert_eq!(st39183w(measured(109)).streams(MB, MPEG1), 44);
    }

    #[test]
    fn the_service_cycle_is_exactly_long_enough() {
        let cost = ReadCost { r0: BitRate(100_000_000), t0: Duration::from_millis(10) };
        let stream = BitRate(4_320_000); // 540 KB/s, the paper's MJPEG
        assert_eq!(cost.streams(stream), 23);
        for streams in [1, 10, 16, 23] {
            let cycle = cost.cycle(streams, stream).unwrap();
            let read = cost.buffer(streams, stream).unwrap();
            let busy = cost.time(read) * streams;
            let gap = busy.abs_diff(cycle);
            assert!(gap < Duration::from_micros(1), "{streams}: {busy:?} in {cycle:?}");
        }
        assert_eq!(cost.cycle(24, stream), None);
        assert_eq!(cost.rate(ByteCount(125_000)), BitRate(50_000_000), "half the time is t0");
    }

    #[test]
    fn nothing_divides_by_zero() {
        assert_eq!(ratio(MPEG1, BitRate(0)), 0);
        assert_eq!(st39183w(BitRate(0)).streams(MB, MPEG1), 0);
        assert_eq!(ReadCost { r0: BitRate(0), t0: Duration::ZERO }.streams(BitRate(0)), 0);
    }
}
