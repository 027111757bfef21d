//! The disk, the streams and the ways of reading that the reproductions of Alderman and Diallo
//! share.

pub(super) use meter::emulated::{MB, MPEG1};

use device::SimulatedDisk;
use disk::DiskModel;
use meter::operations::SimulatedPort;
use meter::rounds::{Capacity, Cut, Order, RoundsOutcome, RoundsPlan, most_streams, run};
use std::convert::Infallible;
use units::ByteCount;

/// The paper's other block, 512 KB.
pub(super) const HALF_MB: ByteCount = ByteCount(512_000);

/// How a round's blocks are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// One by one in SCAN order: their best.
    Scan,
    /// One by one in a random order, new in each round.
    Arrival,
    /// All requested at once, in the order of the streams, divided into pieces of this size: the
    /// paper's asynchronous reads.
    AtOnce(ByteCount),
    /// All requested at once, in a random order, divided into pieces of this size: the paper's
    /// threads.
    Threads(ByteCount),
}

/// The disk of their measurements.
pub(super) fn their_disk() -> DiskModel {
    DiskModel::preset("st39183w").expect("a built-in model")
}

/// Plan of `streams` streams, spread over the disk, for a hundred rounds.
pub(super) fn their_plan(model: &DiskModel, streams: u32, block: ByteCount) -> RoundsPlan {
    RoundsPlan::spread(streams, model.capacity(), block, MPEG1)
}

/// Runs a plan on a new simulated disk.
pub(super) fn rounds(model: &DiskModel, way: Way, plan: RoundsPlan) -> RoundsOutcome {
    let port = SimulatedPort::new(SimulatedDisk::new(model));
    let streams = u32::try_from(plan.starts.len()).expect("few streams");
    let order = match way {
        Way::Scan | Way::AtOnce(_) => plan.order,
        Way::Arrival | Way::Threads(_) => Order::Arrival(SEED),
    };
    let ran = match way {
        Way::Scan | Way::Arrival => {
            run(&RoundsPlan { order, ..plan }, &mut { port }, &mut |_| true)
        }
        Way::AtOnce(piece) | Way::Threads(piece) => {
            let plan = RoundsPlan { order, at_once: streams, ..plan };
            run(&plan, &mut Cut::new(port, piece), &mut |_| true)
        }
    };
    ran.expect("a simulated disk without faults reads")
}

/// The most streams by this rule, one more at a time.
pub(super) fn most(
    model: &DiskModel,
    way: Way,
    block: ByteCount,
    holds: impl Fn(&RoundsOutcome) -> bool,
) -> Capacity {
    let attempt =
        |streams| Ok::<_, Infallible>(rounds(model, way, their_plan(model, streams, block)));
    // Near the results, so that the search takes few attempts.
    let about = match way {
        Way::Scan | Way::Arrival => 60,
        Way::AtOnce(_) | Way::Threads(_) => 30,
    };
    let Ok(found) = most_streams(about, holds, attempt);
    found
}

/// Seed of all random numbers in these reproductions.
const SEED: u64 = 1;
