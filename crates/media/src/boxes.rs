//! Boxes of ISO BMFF and QuickTime as raw bytes: iterating over boxes in memory, and writing
//! containers around the output of `mp4-atom`.
//!
//! It is for boxes whose bytes must be kept (sample entries) or that `mp4-atom` does not parse in
//! their QuickTime form; all others use `mp4-atom`. Nothing here is recursive.
//!
//! ```text
//! size u32 | kind 4 bytes | payload            size counts from its own first byte
//! 1    u32 | kind 4 bytes | size u64 | payload
//! ```

use mp4_atom::FourCC;

/// A complete box in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBox<'a> {
    pub(crate) kind: FourCC,
    /// The box with its header.
    pub(crate) whole: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// The error that bytes do not divide into boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotBoxes;

/// The boxes that `bytes` consist of; ends after the first error. QuickTime may end a list of boxes
/// with four zero bytes; a rest shorter than a header counts as that.
pub(crate) fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = Result<RawBox<'_>, NotBoxes>> {
    std::iter::from_fn(move || {
        if bytes.len() < 8 {
            return None;
        }
        let found = split_box(bytes);
        // After an error the boundaries of all further boxes are unknown.
        bytes = found.map_or(&[], |found| &bytes[found.whole.len()..]);
        Some(found.ok_or(NotBoxes))
    })
}

/// The first box of this kind among those that `bytes` consist of, up to the first error.
pub(crate) fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<RawBox<'a>> {
    boxes(bytes).map_while(Result::ok).find(|found| found.kind == FourCC::new(kind))
}

fn split_box(bytes: &[u8]) -> Option<RawBox<'_>> {
    let size = be_u32(bytes, 0)?;
    let kind = FourCC::from(be_u32(bytes, 4)?);
    let (header, size) = match size {
        // Size zero: the box extends to the end of what contains it (ISO/IEC 14496-12, 4.2).
        0 => (8, bytes.len()),
        1 => (16, usize::try_from(be_u64(bytes, 8)?).ok()?),
        _ => (8, usize::try_from(size).ok()?),
    };
    let whole = bytes.get(..size)?;
    // A size below that of the header fails here, so that iterating always advances.
    Some(RawBox { kind, whole, payload: whole.get(header..)? })
}

/// The big-endian number at `at`, if the bytes reach that far.
pub(crate) fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

/// The big-endian number of 32 bits at `at`, if the bytes reach that far.
pub(crate) fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// The big-endian number of 64 bits at `at`, if the bytes reach that far.
pub(crate) fn be_u64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes(*bytes))
}

/// Writes a box: the header, then the output of `payload`.
pub(crate) fn write_box(out: &mut Vec<u8>, kind: &[u8; 4], payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    // Boxes are nested, so the size is known, and filled in, after the payload.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(kind);
    payload(out);
    let size = u32::try_from(out.len() - start).expect("boxes of headers stay below 4 GiB");
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes a box of `mp4-atom`. Panics if it refuses a value: the caller keeps values in range.
pub(crate) fn write_atom(out: &mut Vec<u8>, atom: &impl mp4_atom::Encode) {
    atom.encode(out).expect("an atom with values in range");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_iterated_until_the_first_invalid_one() {
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"free", |out| out.extend_from_slice(b"abc"));
        bytes.extend_from_slice(b"\0\0\0\x01skip\0\0\0\0\0\0\0\x12xy");
        let kinds: Vec<_> = boxes(&bytes).map(|b| b.unwrap().kind.to_string()).collect();
        assert_eq!(kinds, ["free", "skip"]);
        assert_eq!(find(&bytes, b"skip").unwrap().payload, b"xy");
        for lie in [&b"\0\0\0\x07free"[..], b"\0\0\0\x09free", b"\0\0\0\x01free\xff\xff\xff\xff"] {
            let found: Vec<_> = boxes(lie).map(|b| b.is_ok()).collect();
            assert_eq!(found, [false], "{lie:?}");
        }
    }
}
