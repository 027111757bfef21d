//! A compact encoding of LDU indexes: 4 to 5 bytes for a video frame, 1 to 4 for an audio packet.
//!
//! ```text
//! count  u32      LDUs
//! groups u32
//! anchor × groups, absolute, so that a group can be read alone:
//!     first  u32  number of its first LDU
//!     at     u32  where its codes start in the code bytes
//!     offset u64  of that LDU in the track's data
//!     time   u64  its decode time in ticks
//! code bytes, per LDU:
//!     head   u8   bit 0 sync
//!                 bit 1 droppable
//!                 bit 2 size as the LDU before
//!                 bit 3 duration as the LDU before
//!                 bits 4-5 composition offset: 0 as before, 1 in durations, 2 in ticks
//!     size        varint, unless as before
//!     duration    varint, unless as before
//!     composition zigzag varint, unless as before
//! ```
//! A group starts at a sync LDU; "before" is zero at its start. If every LDU is sync, or none for a
//! long time, groups have a fixed length.

use crate::title::{Ldu, LduIndex};
use units::{Decoder, Encoder, Malformed};

/// The error of an index that contradicts itself.
pub(crate) const IMPOSSIBLE: Malformed = Malformed("values that no writer makes");

/// The start of a group.
struct Anchor {
    first: usize,
    at: usize,
    offset: u64,
    time: u64,
}

/// The values that the next LDU may repeat.
#[derive(Default)]
struct Before {
    size: u32,
    duration: u32,
    composition: i32,
}

/// Appends the encoded index.
pub(crate) fn encode(index: &LduIndex, out: &mut Encoder) {
    let mut anchors: Vec<Anchor> = Vec::new();
    let mut codes = Encoder::default();
    let mut before = Before::default();
    for (i, ldu) in index.iter().enumerate() {
        // The first LDU always begins a group.
        let run = anchors.last().map_or(usize::MAX, |a| i - a.first);
        if run >= GROUP_MAX || (ldu.sync && run >= GROUP_MIN) {
            let (offset, time) = (ldu.offset, ldu.decode_time);
            anchors.push(Anchor { first: i, at: codes.len(), offset, time });
            before = Before::default();
        }
        encode_ldu(&ldu, &mut before, &mut codes);
    }
    out.count32(index.len());
    out.count32(anchors.len());
    for anchor in &anchors {
        out.count32(anchor.first);
        out.count32(anchor.at);
        out.u64(anchor.offset);
        out.u64(anchor.time);
    }
    out.bytes(codes.written());
}

/// Decodes all remaining bytes as one index.
pub(crate) fn decode(reader: &mut Decoder<'_>) -> Result<LduIndex, Malformed> {
    let count = reader.count32(1)?;
    let groups = reader.count32(ANCHOR_LEN)?;
    let mut anchors = reader.clone();
    reader.bytes(groups * ANCHOR_LEN)?;
    let codes_len = reader.len();
    let mut index = LduIndex::default();
    let mut before = Before::default();
    let mut next = next_anchor(&mut anchors, groups > 0)?;
    let mut seen = 0;
    for i in 0..count {
        if let Some(anchor) = next.as_ref().filter(|a| a.first == i) {
            let at = codes_len - reader.len();
            // An anchor repeats what the codes before it add up to. A reader that begins at it
            // relies on it.
            let truth = (at, index.data_len(), index.duration_ticks());
            if truth != (anchor.at, anchor.offset, anchor.time) {
                return Err(IMPOSSIBLE);
            }
            before = Before::default();
            seen += 1;
            next = next_anchor(&mut anchors, seen < groups)?;
        }
        decode_ldu(reader, &mut before, &mut index)?;
    }
    if next.is_some() || !reader.is_empty() || (count > 0 && groups == 0) {
        return Err(IMPOSSIBLE);
    }
    Ok(index)
}

fn next_anchor(reader: &mut Decoder<'_>, more: bool) -> Result<Option<Anchor>, Malformed> {
    if !more {
        return Ok(None);
    }
    let position = |n: u32| usize::try_from(n).map_err(|_| IMPOSSIBLE);
    let (first, at) = (position(reader.u32()?)?, position(reader.u32()?)?);
    Ok(Some(Anchor { first, at, offset: reader.u64()?, time: reader.u64()? }))
}

fn encode_ldu(ldu: &Ldu, before: &mut Before, out: &mut Encoder) {
    let composition = ldu.composition_offset;
    // Composition offsets are almost always whole durations, and then small.
    let steps = i32::try_from(ldu.duration)
        .ok()
        .filter(|&d| d > 0 && composition % d == 0)
        .map(|d| composition / d);
    let kind = match steps {
        _ if composition == before.composition => AS_BEFORE,
        Some(_) => IN_DURATIONS,
        None => IN_TICKS,
    };
    let same_size = ldu.size == before.size;
    let same_duration = ldu.duration == before.duration;
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.u8(flag(ldu.sync, SYNC)
        | flag(ldu.droppable, DROPPABLE)
        | flag(same_size, SAME_SIZE)
        | flag(same_duration, SAME_DURATION)
        | (kind << COMPOSITION_SHIFT));
    if !same_size {
        out.varint(ldu.size);
    }
    if !same_duration {
        out.varint(ldu.duration);
    }
    match (kind, steps) {
        (AS_BEFORE, _) => {}
        (_, Some(steps)) => out.zigzag(steps),
        (_, None) => out.zigzag(composition),
    }
    *before = Before { size: ldu.size, duration: ldu.duration, composition };
}

fn decode_ldu(
    reader: &mut Decoder<'_>,
    before: &mut Before,
    index: &mut LduIndex,
) -> Result<(), Malformed> {
    let head = reader.u8()?;
    let size = if head & SAME_SIZE == 0 { reader.varint()? } else { before.size };
    let duration = if head & SAME_DURATION == 0 { reader.varint()? } else { before.duration };
    let composition = match head >> COMPOSITION_SHIFT {
        AS_BEFORE => before.composition,
        IN_DURATIONS => {
            // The encoder uses this form only for durations that fit.
            let duration = i32::try_from(duration).map_err(|_| IMPOSSIBLE)?;
            reader.zigzag()?.checked_mul(duration).ok_or(IMPOSSIBLE)?
        }
        IN_TICKS => reader.zigzag()?,
        _ => return Err(IMPOSSIBLE),
    };
    let (sync, droppable) = (head & SYNC != 0, head & DROPPABLE != 0);
    index.push(size, duration, composition, sync, droppable);
    *before = Before { size, duration, composition };
    Ok(())
}

const SYNC: u8 = 1;
const DROPPABLE: u8 = 1 << 1;
const SAME_SIZE: u8 = 1 << 2;
const SAME_DURATION: u8 = 1 << 3;
const COMPOSITION_SHIFT: u32 = 4;
const AS_BEFORE: u8 = 0;
const IN_DURATIONS: u8 = 1;
const IN_TICKS: u8 = 2;

const ANCHOR_LEN: usize = 24;
/// The smallest group: an anchor costs 24 bytes, less than one per LDU.
const GROUP_MIN: usize = 32;
/// The largest group: no LDU is further than this from an anchor, also if key frames are rare.
const GROUP_MAX: usize = 256;
