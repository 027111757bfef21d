//! The `sidx` box (ISO/IEC 14496-12, 8.16.3): the position and duration of each segment of a file.
//!
//! ```text
//!   size 'sidx' │ version, flags │ reference ID │ timescale │ earliest, first offset (32 or 64 bit)
//!   │ reserved, count │ count x ( type:1 size:31 │ duration │ SAP )
//!   └──────────────── the box ────────────────┘ first offset ▶ piece ▶ piece ▶ ...
//! ```

use super::time::ticks;
use std::ops::Range;
use std::time::Duration;

/// The positions and durations of segments. `bytes` start at `at` in the file; other boxes may
/// precede the index.
pub(super) fn read(bytes: &[u8], at: u64) -> Result<Vec<(Range<u64>, Duration)>, &'static str> {
    let (content, end) = find(bytes).ok_or("there is no sidx box where its manifest says")?;
    let mut reader = SidxReader(content);
    let pieces = (|| {
        let version = reader.number(4)? >> 24;
        reader.number(4)?;
        let scale = reader.number(4)?;
        // Version 1 has 64-bit times and offsets.
        let wide = if version == 0 { 4 } else { 8 };
        reader.number(wide)?;
        let mut next = at.checked_add(end)?.checked_add(reader.number(wide)?)?;
        let count = reader.number(4)? & 0xffff;
        let mut pieces = Vec::new();
        for _ in 0..count {
            let (size, duration) = (reader.number(4)?, reader.number(4)?);
            reader.number(4)?;
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

/// The content of the box, and the position of its end.
fn find(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let mut at = 0;
    loop {
        let header = bytes.get(at..at + 8)?;
        let size = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let end = at.checked_add(usize::try_from(size).ok()?)?;
        if &header[4..] == b"sidx" {
            return Some((bytes.get(at + 8..end)?, end as u64));
        }
        // A box of size zero or without an end also ends the search.
        at = (end >= at + 8).then_some(end)?;
    }
}

struct SidxReader<'a>(&'a [u8]);

impl SidxReader<'_> {
    fn number(&mut self, len: usize) -> Option<u64> {
        let (number, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
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
