//! Dolby Vision: the record in a sample entry (Dolby Vision Streams Within the ISO Base Media File
//! Format, 3.2), and what players are told of it.
//!
//! ```text
//! dvcC, dvvC, dvwC    version u16 | profile 7 bits, level 6, layers 3 | base layer 4, 28 reserved
//! ```
//! The pictures of most profiles have a base layer that every player shows. Those of profile 5 have
//! colours of their own: a player of plain HEVC would show them in green and violet, so that their
//! sample entry has a name that it does not know.

use crate::boxes::be_u16;
use crate::codec::SampleEntry;

/// What the record of a track says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DolbyVision {
    /// The number of the profile.
    pub profile: u8,
    /// The number of the level: pixels per second, in steps.
    pub level: u8,
    /// What the base layer is (`dv_bl_signal_compatibility_id`): 0 nothing that others show, 1
    /// HDR10, 2 SDR, 4 HLG, 6 HDR10 of a Blu-ray disc.
    base: u8,
}

impl DolbyVision {
    /// The record of a sample entry.
    pub(crate) fn of(entry: SampleEntry<'_>) -> Option<Self> {
        let record = [b"dvcC", b"dvvC", b"dvwC"].into_iter().find_map(|kind| entry.child(kind))?;
        let bits = be_u16(record, 2)?;
        let [profile, level] = [bits >> 9, bits >> 3 & 0x3f].map(|it| it.to_le_bytes()[0]);
        Some(Self { profile, level, base: record.get(4)? >> 4 })
    }

    /// Whether other players would show the pictures in wrong colours.
    pub fn has_own_colours(self) -> bool {
        // Records of other profiles that are older than the field have zero there, too.
        self.profile == 5 || (self.profile == 10 && self.base == 0)
    }

    /// The brand of the base layer in files and playlists.
    fn brand(self) -> Option<&'static [u8; 4]> {
        match (self.profile, self.base) {
            (8 | 10, 1) => Some(b"db1p"),
            (8 | 10, 2) => Some(b"db2g"),
            (8 | 10, 4) => Some(b"db4h"),
            _ => None,
        }
    }
}

/// The sample entry with the name that tells players of colours that are not those of HEVC.
pub(crate) fn named(entry: SampleEntry<'_>) -> Vec<u8> {
    let mut named = entry.0.to_vec();
    if DolbyVision::of(entry).is_some_and(|vision| vision.profile == 5) {
        match &entry.kind() {
            b"hvc1" => named[4..8].copy_from_slice(b"dvh1"),
            b"hev1" => named[4..8].copy_from_slice(b"dvhe"),
            _ => {}
        }
    }
    named
}

/// The codec string of a sample entry with a name of Dolby Vision: `dvh1.05.06`.
pub(crate) fn codec(name: &str, entry: SampleEntry<'_>) -> Option<String> {
    let DolbyVision { profile, level, .. } = DolbyVision::of(entry)?;
    Some(format!("{name}.{profile:02}.{level:02}"))
}

/// What playlists and manifests say where every player shows the base layer: the codec that adds to
/// it, and the brand of the base layer (`dvh1.08.06` and `db4h`).
pub(crate) fn supplemental_codec(entry: SampleEntry<'_>) -> Option<(String, &'static str)> {
    let (name, brand) = name_and_brand(entry)?;
    Some((codec(name, entry)?, std::str::from_utf8(brand).ok()?))
}

/// The brand of an initialization segment whose base layer every player shows.
pub(crate) fn brand(entry: SampleEntry<'_>) -> Option<&'static [u8; 4]> {
    name_and_brand(entry).map(|(_, brand)| brand)
}

fn name_and_brand(entry: SampleEntry<'_>) -> Option<(&'static str, &'static [u8; 4])> {
    let name = match &entry.kind() {
        b"hvc1" => "dvh1",
        b"hev1" => "dvhe",
        b"av01" => "dav1",
        _ => return None,
    };
    Some((name, DolbyVision::of(entry)?.brand()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::write_box;

    /// A sample entry of HEVC with a record of this profile, level 6 and this base layer.
    fn entry(kind: &[u8; 4], name: &[u8; 4], profile: u16, base: u8) -> Vec<u8> {
        let mut entry = Vec::new();
        write_box(&mut entry, kind, |out| {
            out.extend_from_slice(&[0; 78]);
            write_box(out, name, |out| {
                out.extend([1, 0]);
                out.extend((profile << 9 | 6 << 3 | 0b101).to_be_bytes());
                out.extend([base << 4, 0, 0, 0]);
                out.extend([0; 16]);
            });
        });
        entry
    }

    #[test]
    fn only_profile_5_gets_a_name_that_players_of_hevc_do_not_know() {
        let named = |kind, record, profile, base| {
            let renamed = named(SampleEntry(&entry(kind, record, profile, base)));
            let renamed = SampleEntry(&renamed);
            let own = DolbyVision::of(renamed).unwrap().has_own_colours();
            let more = supplemental_codec(renamed).map(|(codec, brand)| format!("{codec}/{brand}"));
            (renamed.codec(), own, more.unwrap_or_default())
        };
        let told = |codec: &str, own, more: &str| (codec.to_owned(), own, more.to_owned());
        assert_eq!(named(b"hvc1", b"dvcC", 5, 0), told("dvh1.05.06", true, ""));
        assert_eq!(named(b"hev1", b"dvcC", 5, 0), told("dvhe.05.06", true, ""));
        assert_eq!(named(b"hvc1", b"dvvC", 8, 1), told("hvc1", false, "dvh1.08.06/db1p"));
        assert_eq!(named(b"hvc1", b"dvvC", 8, 4), told("hvc1", false, "dvh1.08.06/db4h"));
        assert_eq!(named(b"hvc1", b"dvcC", 7, 6), told("hvc1", false, ""));
        assert_eq!(named(b"av01", b"dvvC", 10, 0), told("av01", true, ""));
        assert_eq!(named(b"av01", b"dvvC", 10, 1), told("av01", false, "dav1.10.06/db1p"));
    }
}
