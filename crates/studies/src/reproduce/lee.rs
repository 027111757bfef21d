//! The streams that the reproductions of Lee and Srivastava share, and a disk in place of the one
//! that the paper does not name.

use device::SimulatedDisk;
use disk::{DiskModel, ReadCost};
use meter::operations::SimulatedPort;
use meter::rounds::{RoundsOutcome, RoundsPlan, run};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, float};

pub(super) use meter::emulated::{MJPEG, MJPEG_FRAME as FRAME, fewest_frames};

/// Runs rounds on the disk in virtual time.
pub(super) fn rounds(model: &DiskModel, plan: RoundsPlan) -> RoundsOutcome {
    run(&plan, &mut SimulatedPort::new(SimulatedDisk::new(model)), &mut |_| true)
        .expect("a simulated disk without faults reads")
}

/// The disk in place of theirs: a SCSI disk of the same years.
pub(super) fn stand_in() -> DiskModel {
    DiskModel::preset("st39183w").expect("a built-in model")
}

/// t = b/r0 + t0 (eq. 1), fitted to reads of many sizes, each as far from the one before as the
/// reads of a service cycle of `streams` streams are.
pub(super) fn cost_of_cycles(model: &DiskModel, streams: u64) -> ReadCost {
    let mut reads = Vec::new();
    for frames in [1, 2, 4, 8, 16, 32, 64] {
        let size = ByteCount(FRAME.0 * frames);
        let (mut head, mut now) = (model.head(), Moment::ZERO);
        let step = (model.capacity().0 - size.0) / streams.max(2);
        for cycle in 0..CYCLES {
            for stream in 0..streams {
                // Each cycle reads the next bytes of every stream.
                let shift = cycle * size.0 % step;
                let done = head.serve(now, stream * step + shift, size.0, false).finish;
                // The first cycle begins with a disk at rest and is not counted.
                if cycle > 0 {
                    reads.push((size, done.since(now)));
                }
                now = done;
            }
        }
    }
    ReadCost::fit(&reads).expect("larger reads take longer")
}

/// The rate of units read one after another, `group` of them in a read, when the host takes so
/// long for each read: in the middle of the disk.
pub(super) fn rate_of_units(
    model: &DiskModel,
    unit: ByteCount,
    group: u64,
    host: Duration,
) -> BitRate {
    let mut head = model.head();
    let (size, start) = (unit.0 * group, units::align_down(model.capacity().0 / 2, 4096));
    // The first read includes the seek, so that timing begins after it.
    let begun = head.serve(Moment::ZERO, start, size, false).finish;
    let (mut now, mut read) = (begun, 0);
    while read < READ_FOR_A_RATE {
        read += size;
        // The platter turns on while the host works, so that the time of the host costs more than
        // itself: the next unit may have passed the head.
        now = head.serve(now + host, start + read, size, false).finish;
    }
    BitRate::of(ByteCount(read), now.since(begun))
}

/// Converts bits to millions of bytes.
pub(super) fn megabytes(bits: u64) -> f64 {
    float(bits) / 8e6
}

const CYCLES: u64 = 20;

const READ_FOR_A_RATE: u64 = 10_000_000;
