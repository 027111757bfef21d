//! The size of a picture by the head of its file: JPEG, PNG, DPX, OpenEXR, JPEG 2000, and TIFF by
//! its first directory. Nothing is decoded, and of other files no size is found.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureFormat {
    Png,
    Dpx,
    OpenExr,
    Jpeg,
    Jpeg2000,
    Tiff,
}

impl PictureFormat {
    /// The format of a file that begins so; of boxes those of JPEG 2000 are the only ones.
    pub(super) fn of_head(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [b'S', b'D', b'P', b'X', ..] | [b'X', b'P', b'D', b'S', ..] => Some(Self::Dpx),
            [0x76, 0x2f, 0x31, 0x01, ..] => Some(Self::OpenExr),
            [0xff, 0xd8, ..] => Some(Self::Jpeg),
            [0xff, 0x4f, 0xff, 0x51, ..] => Some(Self::Jpeg2000),
            [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => Some(Self::Tiff),
            _ => (head.get(4..8)? == b"jP  ").then_some(Self::Jpeg2000),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Dpx => "DPX",
            Self::OpenExr => "OpenEXR",
            Self::Jpeg => "JPEG",
            Self::Jpeg2000 => "JPEG 2000",
            Self::Tiff => "TIFF",
        }
    }
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PictureSize {
    width: u32,
    height: u32,
}

impl fmt::Display for PictureSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The size of the picture in a file; `None` if its head does not tell it.
pub(super) fn picture_size(file: &File) -> Option<PictureSize> {
    HEADS.iter().find_map(|length| {
        let head = part(file, 0, *length)?;
        match directory_of_tiff(&head) {
            Some(at) => of_tiff(&head, &part(file, at, HEADS[0])?),
            None => of_head(&head),
        }
    })
}

/// The bytes of a part of a file; fewer at its end.
pub(super) fn part(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let (mut bytes, mut got) = (vec![0; length], 0);
    while got < length {
        match file.read_at(&mut bytes[got..], at + got as u64).ok()? {
            0 => break,
            more => got += more,
        }
    }
    bytes.truncate(got);
    Some(bytes)
}

fn of_head(head: &[u8]) -> Option<PictureSize> {
    let size = |width, height| Some(PictureSize { width, height });
    match head {
        [0x89, b'P', b'N', b'G', ..] => size(big(head, 16)?, big(head, 20)?),
        [b'S', b'D', b'P', b'X', ..] => size(big(head, 772)?, big(head, 776)?),
        [b'X', b'P', b'D', b'S', ..] => size(little(head, 772)?, little(head, 776)?),
        [0x76, 0x2f, 0x31, 0x01, ..] => of_exr(head),
        [0xff, 0xd8, ..] => of_jpeg(head),
        [0xff, 0x4f, 0xff, 0x51, ..] => of_code_stream(head),
        _ => {
            // The boxes of JPEG 2000 files; the header of the image is a box of fixed length.
            let is_jp2 = head.get(4..8) == Some(b"jP  ");
            let at = head.windows(8).position(|it| it == b"\0\0\0\x16ihdr").filter(|_| is_jp2)?;
            size(big(head, at + 12)?, big(head, at + 8)?)
        }
    }
}

/// The header of frames is behind segments with their lengths.
fn of_jpeg(head: &[u8]) -> Option<PictureSize> {
    let mut at = 2;
    loop {
        let [0xff, kind] = *head.get(at..)?.first_chunk()? else { return None };
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            let sides = big(head, at + 5)?;
            return Some(PictureSize { width: sides & 0xffff, height: sides >> 16 });
        }
        if kind == 0xff {
            at += 1;
            continue;
        }
        let [high, low] = *head.get(at + 2..)?.first_chunk()?;
        at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
    }
}

/// The size is that of the reference grid less its offset (ISO/IEC 15444-1, A.5.1).
fn of_code_stream(head: &[u8]) -> Option<PictureSize> {
    let side = |at| big(head, at)?.checked_sub(big(head, at + 8)?);
    Some(PictureSize { width: side(8)?, height: side(12)? })
}

/// The attribute `dataWindow` has the first and the last pixel.
fn of_exr(head: &[u8]) -> Option<PictureSize> {
    let name = b"dataWindow\0box2i\0";
    let at = head.windows(name.len()).position(|it| it == name)? + name.len() + 4;
    let side = |at| little(head, at + 8)?.wrapping_sub(little(head, at)?).checked_add(1);
    Some(PictureSize { width: side(at)?, height: side(at + 4)? })
}

/// Where the first directory of a TIFF file is: anywhere in the file, often behind the picture.
fn directory_of_tiff(head: &[u8]) -> Option<u64> {
    match head {
        [b'I', b'I', 42, 0, ..] => little(head, 4).map(u64::from),
        [b'M', b'M', 0, 42, ..] => big(head, 4).map(u64::from),
        _ => None,
    }
}

/// The directory has the number of its entries, then entries of 12 bytes, in the order of their
/// tags: tag, type, count, value.
fn of_tiff(head: &[u8], directory: &[u8]) -> Option<PictureSize> {
    let is_little = head.first() == Some(&b'I');
    let short = |at: usize| {
        let bytes = *directory.get(at..)?.first_chunk()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let entries = 0..usize::from(short(0)?);
    let side = |tag| {
        let at = entries.clone().map(|entry| 2 + 12 * entry).find(|at| short(*at) == Some(tag))?;
        match short(at + 2)? {
            TIFF_SHORT => short(at + 8).map(u32::from),
            TIFF_LONG if is_little => little(directory, at + 8),
            TIFF_LONG => big(directory, at + 8),
            _ => None,
        }
    };
    Some(PictureSize { width: side(TIFF_WIDTH)?, height: side(TIFF_HEIGHT)? })
}

pub(super) fn big(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?))
}

pub(super) fn little(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?))
}

/// The bytes of a file that are looked at: a block, and more if it does not tell the size. JPEG
/// may have a thumbnail of up to 64 KiB in front.
const HEADS: [usize; 2] = [4 << 10, 128 << 10];

/// Tags and types of the entries of a TIFF directory.
const TIFF_WIDTH: u16 = 256;
const TIFF_HEIGHT: u16 = 257;
const TIFF_SHORT: u16 = 3;
const TIFF_LONG: u16 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_tell_the_size() {
        let dpx = |magic: &[u8], sides: [u8; 8]| [magic, &[0; 768], &sides].concat();
        let exr = [
            b"\x76\x2f\x31\x01\x02\0\0\0dataWindow\0box2i\0\x10\0\0\0".as_slice(),
            &[255, 255, 255, 255, 0, 0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0],
        ];
        let table: &[(&str, Vec<u8>)] = &[
            ("png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x0a\0\0\0\x07".to_vec()),
            ("dpx", dpx(b"SDPX", [0, 0, 0, 10, 0, 0, 0, 7])),
            ("dpx, little", dpx(b"XPDS", [10, 0, 0, 0, 7, 0, 0, 0])),
            ("jpeg", b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\0\x07\0\x0a\x01".to_vec()),
            ("exr", exr.concat()),
            (
                "j2k",
                [b"\xff\x4f\xff\x51\0\0\0\0\0\0\0\x0c\0\0\0\x07\0\0\0\x02".as_slice(), &[0; 4]]
                    .concat(),
            ),
            ("jp2", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x16ihdr\0\0\0\x07\0\0\0\x0a".to_vec()),
        ];
        for (name, head) in table {
            assert_eq!(of_head(head), Some(PictureSize { width: 10, height: 7 }), "{name}");
            // A head that is cut short tells nothing, and is no panic.
            for length in 0..head.len() {
                let shorter = of_head(&head[..length]);
                assert!(shorter.is_none() || *name == "jpeg", "{name} {length}");
            }
        }
        assert_eq!(of_head(b"\xff\xd8\xff\xda\0\0"), None);
    }

    #[test]
    fn the_directory_of_a_tiff_file_tells_the_size() {
        let little = (
            b"II*\0\x09\0\0\0".as_slice(),
            [
                b"\x03\0".as_slice(),
                b"\xfe\0\x04\0\x01\0\0\0\0\0\0\0",
                b"\0\x01\x03\0\x01\0\0\0\x0a\0\xff\xff",
                b"\x01\x01\x04\0\x01\0\0\0\x07\0\0\0",
            ]
            .concat(),
        );
        let big = (
            b"MM\0*\0\0\0\x09".as_slice(),
            [
                b"\0\x02".as_slice(),
                b"\x01\0\0\x04\0\0\0\x01\0\0\0\x0a",
                b"\x01\x01\0\x03\0\0\0\x01\0\x07\xff\xff",
            ]
            .concat(),
        );
        for (head, directory) in [little, big] {
            assert_eq!(directory_of_tiff(head), Some(9));
            let size = PictureSize { width: 10, height: 7 };
            assert_eq!(of_tiff(head, &directory), Some(size));
            for length in 0..directory.len() - 4 {
                assert_eq!(of_tiff(head, &directory[..length]), None, "{length}");
            }
        }
        assert_eq!(directory_of_tiff(b"II*\0\x09"), None);
    }
}
