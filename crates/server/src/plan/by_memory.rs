//! The streams that a disk holds with a limit of memory: never fewer with a higher limit.
//!
//! One simulation for each limit does not give that. With more memory the disk reads further ahead
//! for the streams that there are, so that the next viewer meets other books, and a few streams
//! fewer may be admitted.
//!
//! ```text
//!   streams │                   ●━━━━━━━━▶  with more memory than is of use: as with just enough
//!           │             ●━━━━━┛           powers of two: no more than what a higher one holds
//!           │       ●━━━━━┛
//!           │     ┏━┛                       between two of them: halved towards the limit in
//!           │ ●━━━┛                         question, with the results of both as bounds
//!           └─┴─────┴─────┴─────┴────────▶ memory
//!                             enough
//! ```
//!
//! Every result is that of a simulation with at most the memory in question, or fewer streams.
//! Where to halve does not depend on the limit in question, so that any two limits agree.

use scheduler::{CapacityResult, Resource};
use units::ByteCount;

/// The streams that a disk holds with a limit of memory, and without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldStreams {
    /// With the memory in question.
    pub limited: CapacityResult,
    /// If memory is no limit; never fewer.
    pub unlimited: CapacityResult,
}

/// The streams that are held with `memory` (`None`: without limit) of which about `enough` is of
/// use. `simulate` has the result for one limit.
pub(super) fn held(
    memory: Option<ByteCount>,
    enough: ByteCount,
    simulate: &dyn Fn(ByteCount) -> CapacityResult,
) -> HeldStreams {
    let at = |limit: u64| LimitResult { limit, held: simulate(ByteCount(limit)) };
    let mut top = at(enough.0.clamp(1, MOST_MEMORY).next_power_of_two());
    while top.held.short_of == Some(Resource::Memory) && top.limit < MOST_MEMORY {
        top = at(top.limit * 2);
    }
    let unlimited = top.held;
    let limited = match memory.filter(|memory| memory.0 < top.limit) {
        Some(ByteCount::ZERO) => simulate(ByteCount::ZERO),
        Some(memory) => below(memory.0, top, &at),
        None => unlimited,
    };
    HeldStreams { limited, unlimited }
}

/// A limit of memory in bytes and what is held with it.
#[derive(Clone, Copy)]
struct LimitResult {
    limit: u64,
    held: CapacityResult,
}

/// What is held with `limit`, which is below that of `top`.
fn below(limit: u64, top: LimitResult, at: &dyn Fn(u64) -> LimitResult) -> CapacityResult {
    let octave = 1 << limit.ilog2();
    let mut high = octave_of(octave * 2, top, at);
    let mut low = at(octave).at_most(high.held);
    while low.limit < limit {
        if low.held.streams == high.held.streams {
            // More memory holds no more.
            return CapacityResult { short_of: high.held.short_of, ..low.held };
        }
        if high.limit - low.limit <= low.limit / CLOSE {
            break;
        }
        let middle = at(u64::midpoint(low.limit, high.limit));
        let middle = middle.at_least(low.held).at_most(high.held);
        if middle.limit <= limit { low = middle } else { high = middle }
    }
    low.held
}

/// What is held with `limit`, a power of two up to that of `top`.
fn octave_of(limit: u64, top: LimitResult, at: &dyn Fn(u64) -> LimitResult) -> LimitResult {
    if limit >= top.limit {
        return top;
    }
    let step = at(limit).at_most(top.held);
    let (mut fewest, mut higher) = (step, limit * 2);
    while higher < top.limit {
        let above = at(higher);
        if above.held.streams > step.held.streams * CLEARLY_MORE.0 / CLEARLY_MORE.1 {
            break;
        }
        fewest = fewest.at_most(above.held);
        higher *= 2;
    }
    fewest
}

impl LimitResult {
    /// This step where less memory holds `lower`.
    fn at_least(self, lower: CapacityResult) -> Self {
        let own = self.held;
        let held = CapacityResult { short_of: own.short_of, ..lower };
        if lower.streams < own.streams { self } else { Self { held, ..self } }
    }

    /// This step where more memory holds `higher`.
    fn at_most(self, higher: CapacityResult) -> Self {
        let (streams, short_of) = (higher.streams, higher.short_of);
        let held = CapacityResult { streams, short_of, ..self.held };
        if self.held.streams > streams { Self { held, ..self } } else { self }
    }
}

/// Where a limit holds so many times the streams of a lower one, no limit above holds fewer than
/// the lower one: simulations differ by a few percent.
const CLEARLY_MORE: (u64, u64) = (5, 4);
/// Two limits are close if the higher one is above the lower one by at most this part of it.
const CLOSE: u64 = 32;
/// Memory whose sums do not overflow.
const MOST_MEMORY: u64 = 1 << 52;

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream for each 10 MiB, up to 200, and a few percent more or less of both by chance.
    fn simulate(limit: ByteCount) -> CapacityResult {
        let by_memory = (limit.0 / (10 << 20)).min(200);
        let chance = limit.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        let short_of = if by_memory < 200 { Resource::Memory } else { Resource::Disk };
        let streams = by_memory * (1000 + 2 * chance) / 1000;
        CapacityResult { streams, short_of: Some(short_of), memory: limit.0, late: 0 }
    }

    #[test]
    fn results_that_go_up_and_down_are_held_in_order() {
        let held = |mib| {
            let of = |limit: ByteCount| simulate(ByteCount(limit.0 >> 20 << 20));
            held(Some(ByteCount::mib(mib)), ByteCount::mib(5000), &of)
        };
        let (mut before, mut alone_before, mut alone_fell) = (0, 0, 0);
        for mib in (0..9000).step_by(7) {
            let alone = simulate(ByteCount::mib(mib));
            let HeldStreams { limited, unlimited } = held(mib);
            assert!(before <= limited.streams, "{mib} MiB: {limited:?}, before {before}");
            assert!(limited.streams <= unlimited.streams && limited.memory <= mib << 20);
            // A thirtieth of the memory, and what chance makes of it.
            let least = alone.streams * 9 / 10;
            assert!(limited.streams + 1 >= least, "{mib} MiB: {limited:?} of {alone:?}");
            alone_fell += u32::from(alone.streams < alone_before);
            (before, alone_before) = (limited.streams, alone.streams);
        }
        assert!(alone_fell > 100, "only {alone_fell}");
    }

    #[test]
    fn memory_that_does_not_suffice_is_not_unlimited() {
        let held = held(None, ByteCount::mib(1), &simulate);
        assert_eq!(held.limited, held.unlimited);
        assert_eq!(held.unlimited.memory, 2048 << 20, "the first limit at which the disk is short");
        assert_eq!(held.unlimited.short_of, Some(Resource::Disk));
    }
}
