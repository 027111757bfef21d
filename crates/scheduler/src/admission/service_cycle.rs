//! Lee and Srivastava's service cycle: everybody is read for once in a cycle that is long enough
//! for it; the streams' mean rates, and what each read costs before its first byte, say how long.
//!
//! ```text
//!   t = b/r0 + t0                          (1)    a read of b bytes
//!   r = r0 / (1 + r0 t0 / b)               (2)    the rate of such reads
//!   T ≥ s r0 t0 / (r0 - s R)               (3)    the cycle of s streams of rate R
//!   B = R T                                (4)    what each is read at once
//!   S_max < r0 / R                         (5)
//! ```
//!
//! Here s R is the sum of the streams' mean rates. The cycle is followed by reading longer, and
//! reads have a size of their own here: so B of the mean stream must not exceed it, and what all
//! play in a cycle must fit into memory. As printed, equation 4 lacks the factor s that T contains.
//!
//! Source: W. Lee, J. Srivastava, "Experiences with evaluating system QoS and channel performance
//! on media-on-demand systems", eq. 1 to 5. No guarantee: r0 and t0 are means, and so are the
//! rates. Where they are not known: [`Average`].

use super::average::Average;
use super::{AdmissionRequest, Policy, Resource, Verdict, memory};
use crate::demand::RateSummary;
use crate::disk_timings::DiskTimings;
use disk::ReadCost;
use std::time::Duration;
use units::{BitRate, ByteCount};

pub(super) struct ServiceCycle;

impl Policy for ServiceCycle {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let Some(line) = &supply.timings.line else {
            return Average.decide(request);
        };
        let line = lately(line, supply.timings);
        let mut all = books.summary();
        all += demand.summary();
        let Some(read) = mean_read(&line, all, supply.slot) else {
            return Verdict::refuse(Resource::Disk, demand.first(), 1);
        };
        // The cycle is followed by longer reads, but no read is longer than this.
        if read.0 > supply.read_size {
            let missing = (read.0 - supply.read_size).div_ceil(supply.read_size.max(1));
            return Verdict::refuse(Resource::Disk, demand.first(), missing);
        }
        memory::just_in_time(books, supply, demand)
    }
}

// B of the mean stream; `None` where no cycle is long enough.
fn mean_read(line: &ReadCost, all: RateSummary, slot: Duration) -> Option<ByteCount> {
    let streams = u32::try_from(all.streams).ok()?;
    if streams == 0 {
        return Some(ByteCount(0));
    }
    let rate = BitRate::of(ByteCount(all.rate.div_ceil(all.streams)), slot);
    line.buffer(streams, rate)
}

fn lately(line: &ReadCost, timings: &DiskTimings) -> ReadCost {
    let t0 = u64::try_from(line.t0.as_nanos()).unwrap_or(u64::MAX);
    let r0 = (u128::from(line.r0.0) << 20) / u128::from(timings.stretch(1 << 20));
    ReadCost {
        r0: BitRate(u64::try_from(r0).expect("not above what it was")),
        t0: Duration::from_nanos(timings.stretch(t0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r0 100 Mb/s, t0 10 ms; 16 streams of 4.32 Mb/s, the paper's MJPEG of 540 KB/s. T = 16 × 100
    /// × 0.01 / (100 - 69.12) = 0.518 s; B = 4.32 Mb/s × 0.518 s = 279,793 bytes.
    #[test]
    fn the_papers_cycle() {
        let line = ReadCost { r0: BitRate(100_000_000), t0: Duration::from_millis(10) };
        let slot = Duration::from_millis(500);
        let of = |streams| {
            let all = RateSummary { rate: streams * 270_000, streams, ..RateSummary::default() };
            mean_read(&line, all, slot).map(|bytes| bytes.0)
        };
        assert_eq!(of(16), Some(279_792));
        assert_eq!(of(0), Some(0));
        assert!(of(23).is_some(), "99.36 Mb/s");
        assert_eq!(of(24), None, "more than r0: equation 5");
        let slower = lately(&line, &DiskTimings { slowdown: 1024, ..DiskTimings::default() });
        assert_eq!((slower.r0.0, slower.t0.as_millis()), (50_000_000, 20));
    }
}
