//! The streams that the reproductions of Lee and Srivastava share, and a disk in place of the one
//! that the paper does not name.

use device::SimulatedDisk;
use disk::{DiskModel, ReadCost};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A stream of motion JPEG (R): 540 KB/s.
pub(super) const MJPEG: BitRate = BitRate(540_000 * 8);
/// One picture, 640 by 480: about 18 KB, 30 a second.
pub(super) const FRAME: ByteCount = ByteCount(18_000);

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
        let disk = SimulatedDisk::new(model);
        let step = (model.capacity().0 - size.0) / streams.max(2);
        for cycle in 0..CYCLES {
            for stream in 0..streams {
                let before = disk.now();
                // Each cycle reads the next bytes of every stream.
                let shift = cycle * size.0 % step;
                disk.advance_to(disk.ask(stream * step + shift, size.0).expect("it is well"));
                // The first cycle begins with a disk at rest and is not counted.
                if cycle > 0 {
                    reads.push((size, disk.now().since(before)));
                }
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
    let disk = SimulatedDisk::new(model);
    let (size, start) = (unit.0 * group, units::align_down(model.capacity().0 / 2, 4096));
    let mut place = start;
    disk.advance_to(disk.ask(place, size).expect("it is well"));
    // The first read includes the seek, so that timing begins after it.
    place += size;
    let (from, begun) = (place, disk.now());
    while place - from < READ_FOR_A_RATE {
        disk.advance_to(disk.now() + host);
        disk.advance_to(disk.ask(place, size).expect("it is well"));
        place += size;
    }
    BitRate::of(ByteCount(place - from), disk.now().since(begun))
}

const CYCLES: u64 = 20;

const READ_FOR_A_RATE: u64 = 10_000_000;
