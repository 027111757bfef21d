//! The boxes of ISO BMFF files (ISO/IEC 14496-12, 4.2), and the big-endian numbers in them.

use std::time::Duration;

/// A box: its type, its content, and the position of its end in the bytes that were searched.
pub(crate) type MediaBox<'a> = ([u8; 4], &'a [u8], usize);

/// The boxes side by side in `bytes`, up to the first invalid one.
pub(crate) fn boxes(bytes: &[u8]) -> impl Iterator<Item = MediaBox<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &bytes[at..];
        let (kind, header, size) = box_header(rest, rest.len() as u64)?;
        // A box that reaches beyond the bytes is cut; its content would be read wrongly.
        let this = rest.get(..usize::try_from(size).ok()?)?;
        at += this.len();
        Some((kind, &this[header..], at))
    })
}

/// The content of the first box at `path`.
pub(crate) fn find<'a>(bytes: &'a [u8], path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else { return Some(bytes) };
    let (_, content, _) = boxes(bytes).find(|(kind, ..)| kind == *first)?;
    find(content, rest)
}

/// The type, the length of the header, and the length of the whole box, which is at most `left`.
pub(crate) fn box_header(bytes: &[u8], left: u64) -> Option<([u8; 4], usize, u64)> {
    let kind: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
    let (header, size) = match u32_at(bytes, 0)? {
        // Zero stands for the rest of the file, one for a length of 64 bits behind the type.
        0 => (8, left),
        1 => (16, u64_at(bytes, 8)?),
        size => (8, u64::from(size)),
    };
    (size >= header as u64).then_some((kind, header, size))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The duration of `count` ticks at `scale` ticks per second.
pub(crate) fn ticks(count: u64, scale: u64) -> Duration {
    let nanos = u128::from(count) * 1_000_000_000 / u128::from(scale.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
