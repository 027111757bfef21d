//! Thumbnails: small pictures of a title at equal distances of time, which players show while a
//! viewer moves the position. A JPEG image has up to 25 of them, left to right and row by row.
//!
//! ```text
//!   image 0                     image 1                  a title of 6 min, one each 10 s
//!   │  0 │  1 │  2 │  3 │  4 │  │ 25 │ 26 │ 27 │ 28 │ 29 │
//!   │  5 │  6 │  7 │  8 │  9 │  │ 30 │ 31 │ 32 │ 33 │ 34 │
//!   │ 10 │ 11 │ 12 │ 13 │ 14 │  │ 35 │      black
//!   │ 15 │ 16 │ 17 │ 18 │ 19 │
//!   │ 20 │ 21 │ 22 │ 23 │ 24 │
//!
//! a section of the index region:
//!   interval u32, s     width u16, height u16, pixels of a thumbnail     count u32
//!   images   u32, per image: JPEG (u32 length and bytes)
//! ```
//!
//! They are in the index region, which is read whole when a title is opened, so that they are
//! bounded: 2 MiB. In data of their own each image would be a read in time that no stream needs,
//! which on a disk full of viewers comes after seconds, when the viewer has moved on; and a read
//! that is reserved would cost each viewer an admission. In memory an image is sent at once.

use std::sync::Arc;
use std::time::Duration;
use units::{Decoder, Encoder, Malformed};

/// The thumbnails of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnails {
    /// Seconds from one to the next: whole ones, so that no manifest rounds.
    interval: u32,
    /// Width and height of a thumbnail in pixels.
    size: (u16, u16),
    count: u32,
    images: Vec<Arc<[u8]>>,
}

impl Thumbnails {
    /// The most thumbnails of a title.
    pub const MAX_COUNT: u32 = 1000;
    /// The most bytes of all images of a title: 2,900 for each thumbnail of a film of two hours,
    /// which is 1.6 bits for a pixel.
    pub const MAX_BYTES: usize = 2 << 20;
    /// Thumbnails in a row of an image.
    pub const COLUMNS: u32 = 5;
    /// Rows of thumbnails in an image.
    pub const ROWS: u32 = 5;
    /// Thumbnails in an image; the last image may have fewer.
    pub const IN_IMAGE: u32 = Self::COLUMNS * Self::ROWS;

    /// Thumbnails of `size` pixels each `interval` seconds from the start of the title, and the
    /// images that they are in. `None` if these do not match, or are more than a title may have.
    pub fn new(
        interval: u32,
        size: (u16, u16),
        count: u32,
        images: Vec<Arc<[u8]>>,
    ) -> Option<Self> {
        let bytes: usize = images.iter().map(|image| image.len()).sum();
        let is_valid = interval > 0
            && [size.0, size.1].iter().all(|side| (1..=MAX_SIDE).contains(side))
            && (1..=Self::MAX_COUNT).contains(&count)
            && images.len() as u64 == u64::from(count.div_ceil(Self::IN_IMAGE))
            && bytes <= Self::MAX_BYTES
            && images.iter().all(|image| image.starts_with(&JPEG));
        is_valid.then_some(Self { interval, size, count, images })
    }

    /// The time from one to the next, in whole seconds.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval.into())
    }

    /// Width and height of one in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.size.0.into(), self.size.1.into())
    }

    /// The number of thumbnails.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The JPEG images, each but the last with [`Thumbnails::IN_IMAGE`] of them.
    pub fn images(&self) -> &[Arc<[u8]>] {
        &self.images
    }

    /// The bytes of all images.
    pub fn bytes(&self) -> u64 {
        self.images.iter().map(|image| image.len() as u64).sum()
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.u32(self.interval);
        out.u16(self.size.0);
        out.u16(self.size.1);
        out.u32(self.count);
        out.count32(self.images.len());
        self.images.iter().for_each(|image| out.bytes32(image));
    }

    pub(crate) fn decode(reader: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (interval, size) = (reader.u32()?, (reader.u16()?, reader.u16()?));
        let count = reader.u32()?;
        let images = (0..reader.count32(IMAGE_LEN)?).map(|_| Ok(reader.bytes32()?.into()));
        let images = images.collect::<Result<_, Malformed>>()?;
        Self::new(interval, size, count, images)
            .ok_or(Malformed("thumbnails that no title can have"))
    }
}

/// The start of an image: the marker SOI (ISO/IEC 10918-1, B.2.1), and the first byte of another.
const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];
/// The most pixels of a side of a thumbnail: 5 in a row are as wide as a screen of HDTV.
const MAX_SIDE: u16 = 384;
/// Bytes of the shortest encoded image.
const IMAGE_LEN: usize = 4 + JPEG.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbnails_that_no_title_can_have_are_none() {
        let image = |bytes: usize| -> Arc<[u8]> { [&JPEG, &vec![0; bytes][..]].concat().into() };
        let made = |interval, size, count, images| Thumbnails::new(interval, size, count, images);
        let whole = Thumbnails::MAX_BYTES - JPEG.len();
        let cases = [
            ("one", made(10, (160, 90), 1, vec![image(0)]), true),
            ("as many as an image has", made(1, (160, 90), 25, vec![image(0)]), true),
            ("one more", made(1, (160, 90), 26, vec![image(0)]), false),
            ("in two images", made(1, (160, 90), 26, vec![image(0); 2]), true),
            ("none", made(10, (160, 90), 0, vec![]), false),
            ("all at once", made(0, (160, 90), 1, vec![image(0)]), false),
            ("no height", made(10, (160, 0), 1, vec![image(0)]), false),
            ("a wall", made(10, (385, 90), 1, vec![image(0)]), false),
            ("too many", made(10, (160, 90), 1001, vec![image(0); 41]), false),
            ("as large as possible", made(10, (160, 90), 1, vec![image(whole)]), true),
            ("larger", made(10, (160, 90), 1, vec![image(whole + 1)]), false),
            ("no JPEG", made(10, (160, 90), 1, vec![b"GIF89a"[..].into()]), false),
        ];
        for (name, made, is_valid) in cases {
            assert_eq!(made.is_some(), is_valid, "{name}");
        }
    }
}
