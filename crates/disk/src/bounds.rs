//! The number of streams that a disk holds by closed formulas of the literature.
//!
//! They are for planning and comparison; admission uses a [`Calibration`](crate::Calibration). All
//! assume equal streams of constant rate with one read per round each. A million bytes is 8 Mb
//! here: Alderman and Diallo's figures agree only in one system of units.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// The disk of Özden, Rastogi and Silberschatz, as Alderman and Diallo use it: every read has the
/// rate of the inner tracks and a whole revolution, and the head crosses the disk twice a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundCost {
    /// The transfer rate (r_disk).
    pub rate: BitRate,
    /// The time of a revolution (t_rot).
    pub revolution: Duration,
    /// The settling time after a seek (t_settle).
    pub settle: Duration,
    /// The time of a full stroke (t_seek).
    pub full_seek: Duration,
}

impl RoundCost {
    /// The largest q with q (d/r_disk + t_rot + t_settle) + 2 t_seek <= d/r_disp, where `block` is
    /// d and `stream` is r_disp.
    pub fn streams(&self, block: ByteCount, stream: BitRate) -> u64 {
        let each = block.time_at(self.rate).saturating_add(self.revolution + self.settle);
        let round = block.time_at(stream).saturating_sub(self.full_seek * 2);
        whole_parts(round, each)
    }
}

/// The number of whole streams in the ratio `disk` / `stream`, which counts transfer only.
pub fn ratio(disk: BitRate, stream: BitRate) -> u64 {
    disk.0.checked_div(stream.0).unwrap_or(0)
}

/// The cost of a read by Lee and Srivastava: t = b/r0 + t0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// The rate of an endless read.
    pub r0: BitRate,
    /// The time of each read before its first byte.
    pub t0: Duration,
}

impl ReadCost {
    /// The time of a read by eq. 1: t = b/r0 + t0.
    pub fn time(&self, bytes: ByteCount) -> Duration {
        bytes.time_at(self.r0).saturating_add(self.t0)
    }

    /// The shortest service cycle in which `streams` streams of rate `stream` can be read, by eq.
    /// 3: T = s r0 t0 / (r0 - s R). `None` when no cycle is long enough.
    pub fn cycle(&self, streams: u32, stream: BitRate) -> Option<Duration> {
        let wanted = u128::from(streams) * u128::from(stream.0);
        let spare = u128::from(self.r0.0).checked_sub(wanted).filter(|spare| *spare > 0)?;
        let together = u128::from(streams) * u128::from(self.r0.0);
        let nanos = together.saturating_mul(self.t0.as_nanos()) / spare;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// The buffer of a stream by eq. 4: B = R T, the bytes that it plays in a cycle and that one
    /// read fetches. (As printed, the equation lacks the factor s that T contains.)
    pub fn buffer(&self, streams: u32, stream: BitRate) -> Option<ByteCount> {
        self.cycle(streams, stream).map(|cycle| stream.bytes_in(cycle))
    }

    /// The number of streams that no service cycle exceeds, by eq. 5: S_max = r0 / R. As many as
    /// that in whole take all of r0, and so have a cycle only where a read costs no more than its
    /// transfer.
    pub fn streams(&self, stream: BitRate) -> u64 {
        ratio(self.r0, stream)
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

    /// Alderman and Diallo, 5.1: 70 streams by the bound with their 120 Mb/s for the inner tracks,
    /// 68 by the ratio with the measured mean (100 MB in 7.8 s), and 44 by the bound with the
    /// measured rate of the inner tracks (100 MB in 10.9 s).
    #[test]
    fn the_papers_disk_holds_the_papers_number_of_streams() {
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
        // A whole number of streams of all of r0, as transfer alone counts them.
        assert_eq!(cost.streams(BitRate(20_000_000)), 5);
    }

    #[test]
    fn nothing_divides_by_zero() {
        assert_eq!(ratio(MPEG1, BitRate(0)), 0);
        assert_eq!(st39183w(BitRate(0)).streams(MB, MPEG1), 0);
        assert_eq!(ReadCost { r0: BitRate(0), t0: Duration::ZERO }.streams(BitRate(0)), 0);
    }
}
