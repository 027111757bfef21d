//! The clean aperture of pictures (ISO/IEC 14496-12, 12.1.4): the part of the stored picture that
//! is shown.
//!
//! ```text
//! clap    width, height, distance of the centres across and down: each a fraction of u32
//! ```

use crate::TrackDescription;
use crate::boxes::{be_u32, boxes, write_box};
use crate::codec::{PICTURE_CHILDREN, SampleEntry};

impl TrackDescription {
    /// Puts a clean aperture into the sample entry of pictures. The size of the track becomes that
    /// of the aperture. `false`: it is no part of the picture, and nothing is changed.
    pub fn set_clean_aperture(&mut self, aperture: &[u8; 32]) -> bool {
        let entry = SampleEntry(&self.sample_entry);
        let Some([width, height]) = shown(entry, aperture, [self.width, self.height]) else {
            return false;
        };
        let mut with = Vec::new();
        write_box(&mut with, &entry.kind(), |out| {
            out.extend_from_slice(&entry.0[8..PICTURE_CHILDREN]);
            let children = &entry.0[PICTURE_CHILDREN..];
            let length = boxes(children).map_while(Result::ok).map(|child| child.whole.len()).sum();
            let (children, rest) = children.split_at(length);
            out.extend_from_slice(children);
            write_box(out, b"clap", |out| out.extend_from_slice(aperture));
            out.extend_from_slice(rest);
        });
        (self.sample_entry, self.width, self.height) = (with, width, height);
        true
    }
}

/// The size as shown of an aperture of pictures whose whole is shown in this size; `None` if it is
/// no part of them.
fn shown(entry: SampleEntry<'_>, aperture: &[u8; 32], size: [u32; 2]) -> Option<[u32; 2]> {
    let (width, height) = entry.stored_size()?;
    (entry.0.len() >= PICTURE_CHILDREN && entry.child(b"clap").is_none()).then_some(())?;
    // QuickTime's track headers have the size of stored pixels, whatever their shape.
    let is_stored = size == [width, height] && entry.pixel_aspect().is_some_and(|(x, y)| x != y);
    let side = |at: usize, stored: u32, shown: u32| {
        let (over, under) = (be_u32(aperture, at)?, be_u32(aperture, at + 4)?);
        let whole = u64::from(stored) * u64::from(under);
        let within = over > 0 && under > 0 && u64::from(over) <= whole;
        within.then_some(())?;
        if is_stored {
            return Some(shown);
        }
        let scaled = u128::from(shown) * u128::from(over) + u128::from(whole) / 2;
        u32::try_from(scaled / u128::from(whole)).ok().filter(|side| *side > 0)
    };
    Some([side(0, width, size[0])?, side(8, height, size[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrackKind;
    use units::Timescale;

    /// A track of 720 x 576 pixels of which so many are shown, with this shape of pixels.
    fn track(pixel: [u32; 2], width: u32) -> TrackDescription {
        let mut sample_entry = Vec::new();
        write_box(&mut sample_entry, b"avc1", |out| {
            out.extend_from_slice(&[0; 24]);
            out.extend([720_u16, 576].iter().flat_map(|side| side.to_be_bytes()));
            out.extend_from_slice(&[0; 50]);
            write_box(out, b"pasp", |out| {
                out.extend(pixel.iter().flat_map(|side| side.to_be_bytes()));
            });
            out.extend_from_slice(&[0; 4]);
        });
        let plain = TrackDescription::plain(TrackKind::Video, Timescale(25));
        TrackDescription { sample_entry, width, height: 576, ..plain }
    }

    fn aperture(fractions: [u32; 8]) -> [u8; 32] {
        let bytes: Vec<u8> = fractions.iter().flat_map(|part| part.to_be_bytes()).collect();
        *bytes.first_chunk().unwrap()
    }

    #[test]
    fn the_aperture_is_behind_the_other_boxes_and_is_what_is_shown() {
        let clap = aperture([704, 1, 1136, 2, 0, 1, 0, 1]);
        let mut wide = track([16, 15], 768);
        assert!(wide.set_clean_aperture(&clap));
        assert_eq!((wide.width, wide.height), (751, 568));
        let end = wide.sample_entry.len() - 4;
        assert_eq!(wide.sample_entry[end - 40..end], [&b"\0\0\0\x28clap"[..], &clap].concat());
        assert_eq!(SampleEntry(&wide.sample_entry).pixel_aspect(), Some((16, 15)));
        assert!(!wide.set_clean_aperture(&clap), "it has one");
        let mut of_quicktime = track([16, 15], 720);
        assert!(of_quicktime.set_clean_aperture(&clap));
        assert_eq!((of_quicktime.width, of_quicktime.height), (720, 576));
    }

    #[test]
    fn what_is_no_part_of_the_picture_is_no_aperture() {
        for fractions in [[721, 1, 576, 1], [0, 1, 576, 1], [704, 0, 576, 1], [704, 1, 1153, 2]] {
            let [a, b, c, d] = fractions;
            let mut whole = track([1, 1], 720);
            let before = whole.clone();
            assert!(!whole.set_clean_aperture(&aperture([a, b, c, d, 0, 1, 0, 1])));
            assert_eq!(whole, before);
        }
    }
}
