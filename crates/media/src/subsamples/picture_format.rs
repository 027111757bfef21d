//! What a sequence parameter set says of the pictures that follow, as far as all pictures of one
//! track must have it alike: players are told it once, in front of the track.
//!
//! What changes without notice to a decoder (level, reference pictures, colours, frames or fields)
//! is left out.

use crate::codec::Bits;
use std::fmt;

/// The form of the pictures of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PictureFormat {
    /// The number of the profile.
    pub(super) profile: u32,
    /// `chroma_format_idc`: 0 without colours, then 4:2:0, 4:2:2, 4:4:4.
    pub(super) chroma: u32,
    /// Bits of a sample of brightness and of one of colour.
    pub(super) depth: [u32; 2],
    /// Pixels across and down, as shown.
    pub(super) size: [u32; 2],
}

impl PictureFormat {
    /// Crops what the parameter set states next, in units of chroma samples; `down`: how many rows
    /// more such a unit has.
    pub(super) fn crop(mut self, bits: &mut Bits<'_>, down: u32) -> Option<Self> {
        if bits.flag()? {
            let [across, rows] = match self.chroma {
                1 => [2, 2],
                2 => [2, 1],
                _ => [1, 1],
            };
            let left = bits.ue()?.checked_add(bits.ue()?)?.checked_mul(across)?;
            let top = bits.ue()?.checked_add(bits.ue()?)?.checked_mul(rows * down)?;
            self.size = [self.size[0].checked_sub(left)?, self.size[1].checked_sub(top)?];
        }
        Some(self)
    }
}

impl fmt::Display for PictureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, chroma, depth: [depth, _], size: [width, height] } = self;
        let chroma = ["no colours", "4:2:0", "4:2:2", "4:4:4"]
            .get(usize::try_from(*chroma).unwrap_or(usize::MAX))
            .unwrap_or(&"unknown colours");
        write!(f, "{width}x{height} ({chroma}, {depth} bit, profile {profile})")
    }
}
