//! The `sidx` box (ISO/IEC 14496-12, 8.16.3): the position and duration of each segment of a file.
//!
//! ```text
//!   size 'sidx' │ version, flags │ reference ID │ timescale │ earliest, first offset (32 or 64 bit)
//!   │ reserved, count │ count x ( type:1 size:31 │ duration │ SAP )
//!   └──────────────── the box ────────────────┘ first offset ▶ piece ▶ piece ▶ ...
//! ```

use crate::boxes::{boxes, ticks, u32_at, u64_at};
use std::ops::Range;
use std::time::Duration;

/// The positions and durations of segments. `bytes` start at `at` in the file; other boxes may
/// precede the index.
pub(super) fn read(bytes: &[u8], at: u64) -> Result<Vec<(Range<u64>, Duration)>, &'static str> {
    let found = boxes(bytes).find(|(kind, ..)| kind == b"sidx");
    let (_, content, end) = found.ok_or("there is no sidx box where its manifest says")?;
    let word = |at| u32_at(content, at).map(u64::from);
    let pieces = (|| {
        let scale = word(8)?;
        // Version 1 has 64-bit times and offsets, so that the table begins later.
        let (offset, table) = match word(0)? >> 24 {
            0 => (word(16)?, 20),
            _ => (u64_at(content, 20)?, 28),
        };
        let mut next = at.checked_add(end as u64)?.checked_add(offset)?;
        let count = usize::try_from(word(table)? & 0xffff).ok()?;
        let mut pieces = Vec::new();
        for row in (0..count).map(|row| table + 4 + 12 * row) {
            let (size, duration, _) = (word(row)?, word(row + 4)?, word(row + 8)?);
            // The top bit marks a reference to another index.
            if size >> 31 == 1 {
                return Some(None);
            }
            let to = next.checked_add(size)?;
            pieces.push((next..to, ticks(duration, scale)));
            next = to;
        }
        Some(Some(pieces))
    })();
    match pieces {
        None => Err("its sidx box is cut or makes no sense"),
        Some(None) => Err("its sidx box leads to more of them, which is not supported"),
        Some(Some(pieces)) if pieces.is_empty() => Err("its sidx box names no segments"),
        Some(Some(pieces)) => Ok(pieces),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidx(version: u32, references: &[(u32, u32)]) -> Vec<u8> {
        let mut words = vec![version << 24, 1, 1000];
        // The earliest time, and five bytes before the first piece.
        words.extend(if version == 0 { vec![0, 5] } else { vec![0, 0, 0, 5] });
        words.push(u32::try_from(references.len()).unwrap());
        for (size, duration) in references {
            words.extend([*size, *duration, 0x9000_0000]);
        }
        let content: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let size = u32::try_from(8 + content.len()).unwrap();
        [&size.to_be_bytes()[..], b"sidx", &content].concat()
    }

    #[test]
    fn pieces_follow_the_box() {
        for (version, end) in [(0, 700 + 56 + 5), (1, 700 + 64 + 5)] {
            let bytes = sidx(version, &[(100, 2000), (50, 1500)]);
            let wanted = vec![
                (end..end + 100, Duration::from_secs(2)),
                (end + 100..end + 150, Duration::from_millis(1500)),
            ];
            assert_eq!(read(&bytes, 700), Ok(wanted.clone()));
            let more = [&[0, 0, 0, 8][..], b"free", &bytes].concat();
            assert_eq!(read(&more, 692), Ok(wanted));
        }
    }

    #[test]
    fn an_invalid_box_is_refused_with_the_reason() {
        let whole = sidx(0, &[(100, 2000), (50, 1500)]);
        for len in 0..whole.len() {
            assert!(read(&whole[..len], 0).is_err(), "{len} bytes of it");
        }
        let told = |bytes: &[u8]| read(bytes, 0).unwrap_err();
        assert!(told(&sidx(0, &[(1 << 31 | 100, 2000)])).contains("leads to more"));
        assert!(told(&sidx(0, &[])).contains("no segments"));
        assert!(told(b"\0\0\0\x08free").contains("no sidx box"));
        assert!(told(b"\0\0\0\x00free\0\0\0\x08sidx").contains("no sidx box"));
    }
}
