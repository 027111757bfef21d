//! Whether the end of a picture's file is missing, as after a copy that was cut short: by the
//! length that DPX has in its head, the offsets of OpenEXR, and the marks at the end of PNG, JPEG
//! and JPEG 2000. Nothing is decoded; of TIFF, and of tiles and parts of OpenEXR, nothing is known.

use super::picture_size::{PictureFormat, big, little, part};
use std::fs::File;

/// Whether the end of the picture in a file is missing, as far as it can be told.
pub(super) fn is_cut(file: &File) -> bool {
    let Ok(length) = file.metadata().map(|about| about.len()) else { return false };
    let Some(head) = part(file, 0, HEAD) else { return false };
    let tail = || part(file, length.saturating_sub(TAIL as u64), TAIL).unwrap_or_default();
    let has_mark = |mark: &[u8]| tail().windows(mark.len()).any(|it| it == mark);
    match PictureFormat::of_head(&head) {
        Some(PictureFormat::Png) => !has_mark(b"IEND"),
        Some(PictureFormat::Jpeg | PictureFormat::Jpeg2000) => !has_mark(b"\xff\xd9"),
        Some(PictureFormat::Dpx) => dpx_length(&head).is_some_and(|whole| whole > length),
        Some(PictureFormat::OpenExr) => last_chunk(&head, file).is_some_and(|end| end > length),
        Some(PictureFormat::Tiff) | None => false,
    }
}

/// The length of the whole file (SMPTE ST 268-1, field 4); `None` where it is undefined.
fn dpx_length(head: &[u8]) -> Option<u64> {
    let is_big = head.first() == Some(&b'S');
    let length = if is_big { big(head, 16) } else { little(head, 16) }?;
    (length != 0 && length != u32::MAX).then_some(u64::from(length))
}

/// The end of the last chunk of lines in the file, in bytes. Chunks may be in any order; one that
/// was never written has the offset zero, and no end within the file.
fn last_chunk(head: &[u8], file: &File) -> Option<u64> {
    let flags = little(head, 4)?;
    if flags & (TILED | DEEP | PARTS) != 0 {
        return None;
    }
    let (mut at, mut lines, mut height) = (8, None, None);
    // Attributes: name, type, both with a zero behind, length, value; a zero ends them.
    while *head.get(at)? != 0 {
        let name = text(head, at)?;
        let kind = text(head, at + name.len() + 1)?;
        let value = at + name.len() + kind.len() + 6;
        match name {
            b"compression" => lines = lines_of_chunk(*head.get(value)?),
            b"dataWindow" => {
                let last = little(head, value + 12)?.wrapping_sub(little(head, value + 4)?);
                height = Some(u64::from(last) + 1);
            }
            _ => {}
        }
        at = value.checked_add(usize::try_from(little(head, value - 4)?).ok()?)?;
    }
    let chunks = height?.div_ceil(lines?);
    let table = part(file, at as u64 + 1, usize::try_from(chunks.min(MOST_CHUNKS) * 8).ok()?)?;
    if (table.len() as u64) < chunks.min(MOST_CHUNKS) * 8 {
        return Some(u64::MAX);
    }
    let offsets = table.as_chunks::<8>().0.iter().map(|offset| u64::from_le_bytes(*offset));
    let last = offsets.clone().max()?;
    if offsets.min() == Some(0) {
        return Some(u64::MAX);
    }
    // A chunk: its first line, the length of its data, and these.
    let length = part(file, last, 8).and_then(|chunk| little(&chunk, 4));
    Some(length.map_or(u64::MAX, |length| last.saturating_add(8 + u64::from(length))))
}

/// The text at a place of a head, up to its zero.
fn text(head: &[u8], at: usize) -> Option<&[u8]> {
    let rest = head.get(at..)?;
    rest.get(..rest.iter().position(|byte| *byte == 0)?)
}

/// The lines of a chunk by the method of its compression.
fn lines_of_chunk(compression: u8) -> Option<u64> {
    match compression {
        0..=2 => Some(1),
        3 | 5 => Some(16),
        4 | 6..=8 => Some(32),
        9 => Some(256),
        _ => None,
    }
}

/// Bits of the second word of OpenEXR.
const TILED: u32 = 0x200;
const DEEP: u32 = 0x800;
const PARTS: u32 = 0x1000;
/// Bytes at the beginning of a file that are looked at.
const HEAD: usize = 64 << 10;
/// Bytes at its end in which a mark may be: cameras fill the rest.
const TAIL: usize = 4 << 10;
/// Chunks whose offsets are looked at.
const MOST_CHUNKS: u64 = 100_000;
