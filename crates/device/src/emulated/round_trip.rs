//! How long the way to an emulated disk and back takes: what is the kernel's and this program's,
//! and not the disk's.
//!
//! ```text
//!   read() ──▶ block layer ─ loop device ─ FUSE ──▶ came │ the disk │ answered ──▶ ... ──▶ read()
//!          └───────────── there ──────────────────┘      └ and back ┘
//! ```
//!
//! Measured once, by reads of one block from either end in turn: as far apart as those of a program
//! that waits for a disk, with as cold a processor. The median: on a busy machine it says what
//! the way mostly takes and not what it takes at worst.

use super::drive::Drive;
use crate::{Pool, realtime};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

/// By reads of `path`, which is this drive's disk of `size`, in the model's time. Nobody else uses
/// the disk meanwhile.
///
/// # Errors
/// The disk cannot be read.
pub(super) fn measure(drive: &Drive, path: &Path, size: ByteCount) -> io::Result<Duration> {
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            // Run at once, as the drive is; where that is refused, as everybody.
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
    let mut buffer = pool.take(len).expect("it was made for one");
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

/// A disk has at least one.
const BLOCK: ByteCount = ByteCount(4096);

/// Each takes a full stroke: a third of a second in all.
const READS: u32 = 15;
