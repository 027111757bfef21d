//! The binary files of `blktrace`: one for each processor, or merged by `blkparse -d`.
//!
//! ```text
//!   0 magic 0x65617407 | 4 sequence | 8 time ns | 16 sector | 24 bytes | 28 action | 32 pid
//!   36 device | 40 cpu | 44 error (16 bit) | 46 length of what follows (16 bit) | 48 ...
//!   action: the event in its low half, flags of the request in its high half
//! ```
//!
//! The magic number determines the byte order.

use super::blkparse::once_each;
use super::{FileNumbers, Operation, Trace, TraceError};
use std::time::Duration;

const MAGIC: u32 = 0x6561_7400;
const HEAD: usize = 48;
const SECTOR: u64 = 512;

/// Events in the action's low half: `Q`, `D` and `C` of `blkparse`.
const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
const DONE: u32 = 8;
/// Flags in the action's high half.
const WRITES: u32 = 1 << 17;
const NOTE: u32 = 1 << 26;
const DISCARDS: u32 = 1 << 29;

pub(super) fn is(bytes: &[u8]) -> bool {
    order(bytes).is_some()
}

/// Whether the file is little-endian; `None` if it is no such file.
fn order(bytes: &[u8]) -> Option<bool> {
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let fits = |magic: u32| magic & 0xffff_ff00 == MAGIC;
    match (fits(u32::from_le_bytes(magic)), fits(u32::from_be_bytes(magic))) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    // A trace has the byte order of the machine that wrote it.
    let little = order(bytes).ok_or(TraceError::Unknown)?;
    let mut files = FileNumbers::default();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let wrong = |why| TraceError::Byte { at, why };
        let rest = &bytes[at..];
        let head = rest.get(..HEAD).ok_or(wrong("an event has 48 bytes"))?;
        if order(head) != Some(little) {
            return Err(wrong("an event begins with 0x65617407"));
        }
        // Fields are read where the kernel's header has them, because no alignment is guaranteed.
        let part = |from: usize, length: usize| {
            let bytes = head[from..from + length].iter().map(|byte| u64::from(*byte));
            let add = |sum, byte| sum << 8 | byte;
            if little { bytes.rev().fold(0, add) } else { bytes.fold(0, add) }
        };
        let word = |from| u32::try_from(part(from, 4)).unwrap_or(u32::MAX);
        // The name of a process or a message may follow the head.
        let length = HEAD + usize::try_from(part(46, 2)).unwrap_or(usize::MAX);
        if rest.len() < length {
            return Err(wrong("what follows an event is missing"));
        }
        let (action, count) = (word(28), part(24, 4));
        let what = match action & 0xffff {
            QUEUED => 'Q',
            ISSUED => 'D',
            DONE => 'C',
            _ => '-',
        };
        // Messages, discards and flushes move no data.
        if what != '-' && action & (NOTE | DISCARDS) == 0 && count > 0 {
            let operation = Operation {
                at: Some(Duration::from_nanos(part(8, 8))),
                file: files.number(&part(36, 4).to_string()),
                offset: part(16, 8).saturating_mul(SECTOR),
                bytes: count,
                write: action & WRITES != 0,
            };
            found.push((what, operation));
        }
        at += length;
    }
    // An operation has up to three events here, and is counted by one.
    Ok(Trace { format: "blktrace", operations: once_each(found), rates: None })
}
