//! The time of the round trip to an emulated disk: the share of the kernel and this program,
//! without the disk's.
//!
//! ```text
//!   read() ──▶ block layer ─ loop device ─ FUSE ──▶ came │ the disk │ answered ──▶ ... ──▶ read()
//!          └───────────── there ──────────────────┘      └ and back ┘
//! ```
//!
//! It is measured once, by reads of one block from both ends in turn: as far apart in time as those
//! of a program that waits for a disk, so that caches are as cold. The median is used, because on a
//! busy machine it is the usual time and not the worst.

use super::drive::Drive;
use crate::{Pool, realtime};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

/// Measures the round trip by reads of `path`, which is the disk of `drive` and has `size`, in the
/// model's time. Nobody else uses the disk meanwhile.
///
/// # Errors
/// Fails if the disk cannot be read.
pub(super) fn measure(drive: &Drive, path: &Path, size: ByteCount) -> io::Result<Duration> {
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            // Real-time priority like the drive's; without the right to it, the usual priority.
            let _ = realtime::enter();
            read(drive, path, size)
        });
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn read(drive: &Drive, path: &Path, size: ByteCount) -> io::Result<Duration> {
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("an int");
    let file = File::options().read(true).custom_flags(direct).open(path)?;
    let pool = Pool::new(BLOCK, BLOCK);
    let len = usize::try_from(BLOCK.0).expect("a block");
    let mut buffer = pool.take(len).expect("the pool has one buffer");
    let mut round_trips = Vec::new();
    for read in 0..READS {
        let offset = if read % 2 == 0 { 0 } else { size.0 - BLOCK.0 };
        let asked = drive.now();
        file.read_exact_at(&mut buffer, offset)?;
        let had = drive.now();
        if let Some((came, answered)) = drive.latest() {
            round_trips.push(came.since(asked) + had.since(answered));
        }
    }
    round_trips.sort_unstable();
    Ok(round_trips.get(round_trips.len() / 2).copied().unwrap_or_default())
}

/// The smallest size of a disk.
const BLOCK: ByteCount = ByteCount(4096);

/// The number of reads, each with a full stroke: a third of a second in all.
const READS: u32 = 15;
