//! The content of a sample entry: the RFC 6381 codec string, channels, sampling rate, QuickTime or
//! ISO.
//!
//! Only the values that players need beforehand are parsed; the entry itself is kept byte for byte.
//! If a configuration cannot be parsed, the entry's plain fields are used.
//!
//! ```text
//! any entry    8 header, 6 reserved, 2 data reference, then
//! pictures    16, width u16, height u16, 50 more, child boxes        (children at 86)
//! sound        version u16, 6, channels u16, bits u16, 4, rate 16.16 (children at 36)
//!   version 1  4 × u32 more                                          (children at 52)
//!   version 2  size u32, rate f64, channels u32, 20 more             (children at 72)
//! ```

use crate::boxes::{be_u16, be_u32, be_u64, boxes, find, write_box};
use crate::dolby_vision;
use mp4_atom::FourCC;

/// A complete sample entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleEntry<'a>(pub(crate) &'a [u8]);

/// The colours of pictures by ISO/IEC 23091-2; 2 where they are declared unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colours {
    pub(crate) primaries: u16,
    pub(crate) transfer: u16,
    pub(crate) matrix: u16,
}

impl<'a> SampleEntry<'a> {
    /// The four-character code of the entry.
    pub(crate) fn kind(self) -> [u8; 4] {
        self.0.get(4..8).map_or(*b"    ", |kind| kind.try_into().expect("four bytes"))
    }

    /// Whether its payload is encrypted (ISO/IEC 23001-7, QuickTime DRM).
    pub(crate) fn is_encrypted(self) -> bool {
        matches!(&self.kind(), b"encv" | b"enca" | b"drms" | b"drmi" | b"p608")
    }

    /// Whether the entry names a codec: FFmpeg writes codes that no reader knows as other bytes.
    pub(crate) fn has_name(self) -> bool {
        self.kind().iter().all(|byte| (b' '..=b'~').contains(byte)) && self.kind() != *b"    "
    }

    /// Whether the entry is only valid in a QuickTime file.
    pub(crate) fn is_quicktime(self) -> bool {
        !ISO_KINDS.contains(&&self.kind())
            // Versions 1 and 2 of sound entries, and the box `wave`, exist in QuickTime files only.
            || (self.is_sound_kind() && self.sound_version() != 0)
            || self.child(b"wave").is_some()
    }

    /// Whether the payload is PCM, in which QuickTime counts every instant as a sample.
    pub(crate) fn is_pcm(self) -> bool {
        PCM_KINDS.contains(&&self.kind())
    }

    /// The RFC 6381 codec string; the four-character code where the RFC has no form.
    pub(crate) fn codec(self) -> String {
        self.known_codec().unwrap_or_else(|| printable(&self.kind()))
    }

    /// Samples per second of audio.
    pub(crate) fn sample_rate(self) -> Option<u32> {
        if self.sound_version() == 2 {
            let rate = f64::from_bits(be_u64(self.0, 40)?);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be a positive number in range"
            )]
            return (1.0..=4e9).contains(&rate).then_some(rate as u32);
        }
        // Rates above 65,535 Hz do not fit into 16.16 and are written as zero.
        Some(be_u32(self.0, 32)? >> 16).filter(|&rate| rate > 0)
    }

    /// The channels of audio: from the codec's configuration, else from the entry's own field, in
    /// which FFmpeg always writes 2.
    pub(crate) fn channels(self) -> Option<u16> {
        self.configured_channels().or_else(|| match self.sound_version() {
            2 => u16::try_from(be_u32(self.0, 48)?).ok(),
            _ => be_u16(self.0, 24),
        })
    }

    fn is_sound_kind(self) -> bool {
        matches!(&self.kind(), b"mp4a" | b"ac-3" | b"ec-3" | b"Opus" | b"fLaC")
    }

    /// Width and height of the stored picture, in pixels.
    pub(crate) fn stored_size(self) -> Option<(u32, u32)> {
        Some((be_u16(self.0, 32)?.into(), be_u16(self.0, 34)?.into()))
    }

    /// Width and height of a pixel of a picture, in a unit of their own; `None` if not positive.
    pub(crate) fn pixel_aspect(self) -> Option<(u32, u32)> {
        let pasp = self.child(b"pasp")?;
        Some((be_u32(pasp, 0)?, be_u32(pasp, 4)?)).filter(|&(across, down)| across > 0 && down > 0)
    }

    /// The colours of pictures, from the colour box or VP9's configuration.
    pub(crate) fn colours(self) -> Option<Colours> {
        let colour =
            self.child(b"colr").filter(|colr| matches!(colr.get(..4), Some(b"nclx" | b"nclc")));
        match colour {
            Some(colr) => Some(Colours {
                primaries: be_u16(colr, 4)?,
                transfer: be_u16(colr, 6)?,
                matrix: be_u16(colr, 8)?,
            }),
            None => {
                let [primaries, transfer, matrix] = self.child(b"vpcC")?.get(7..)?.first_chunk()?;
                let [primaries, transfer, matrix] =
                    [primaries, transfer, matrix].map(|&it| it.into());
                Some(Colours { primaries, transfer, matrix })
            }
        }
    }

    fn sound_version(self) -> u16 {
        be_u16(self.0, 16).unwrap_or(0)
    }

    /// The payload of a child box, also inside QuickTime's `wave`.
    pub(crate) fn child(self, kind: &[u8; 4]) -> Option<&'a [u8]> {
        let sound = match self.sound_version() {
            1 => 52,
            2 => 72,
            _ => 36,
        };
        // The kind of the entry may be unknown: children are sought at both places.
        [PICTURE_CHILDREN, sound].into_iter().filter_map(|at| self.0.get(at..)).find_map(
            |children| {
                let inside = find(children, b"wave").and_then(|wave| find(wave.payload, kind));
                find(children, kind).or(inside).map(|found| found.payload)
            },
        )
    }

    /// The entry with further parameter sets, each with the type of its NAL unit. `in_band`: with
    /// the name that allows sets among the pictures as well. `None` where that cannot be written.
    pub(crate) fn with_sets(self, further: &[(u8, Vec<u8>)], in_band: bool) -> Option<Vec<u8>> {
        let is_avc = self.child(b"avcC").is_some();
        let kind: &[u8; 4] = match &self.kind() {
            b"avc1" | b"avc3" if in_band => b"avc3",
            b"dva1" | b"dvav" if in_band => b"dvav",
            b"hvc1" | b"hev1" if in_band => b"hev1",
            b"dvh1" | b"dvhe" if in_band => b"dvhe",
            _ => &self.kind(),
        };
        let record = match is_avc {
            true => avc_record_with(self.child(b"avcC")?, further)?,
            false => hevc_record_with(self.child(b"hvcC")?, further, !in_band)?,
        };
        (record.len() <= MOST_RECORD).then_some(())?;
        let record_kind = if is_avc { b"avcC" } else { b"hvcC" };
        let mut entry = Vec::new();
        write_box(&mut entry, kind, |out| {
            out.extend_from_slice(&self.0[8..PICTURE_CHILDREN]);
            let mut rest = &self.0[PICTURE_CHILDREN..];
            for child in boxes(rest).map_while(Result::ok) {
                rest = &rest[child.whole.len()..];
                match child.kind == FourCC::new(record_kind) {
                    true => write_box(out, record_kind, |out| out.extend_from_slice(&record)),
                    false => out.extend_from_slice(child.whole),
                }
            }
            out.extend_from_slice(rest);
        });
        Some(entry)
    }

    fn known_codec(self) -> Option<String> {
        let kind = self.kind();
        let name = printable(&kind);
        match &kind {
            b"avc1" | b"avc3" => {
                let record = self.child(b"avcC")?;
                let [_, profile, compatible, level] = record.first_chunk()?;
                Some(format!("{name}.{profile:02x}{compatible:02x}{level:02x}"))
            }
            b"hvc1" | b"hev1" => hevc(&name, self.child(b"hvcC")?),
            b"dvh1" | b"dvhe" => dolby_vision::codec(&name, self),
            b"av01" => av1(self.child(b"av1C")?),
            b"vp09" | b"vp08" => {
                // A full box begins with four bytes of version and flags.
                let [profile, level, depth] = self.child(b"vpcC")?.get(4..)?.first_chunk()?;
                Some(format!("{name}.{profile:02}.{level:02}.{:02}", depth >> 4))
            }
            b"mp4v" | b"mp4a" => mpeg4(&name, self.descriptor()?),
            _ => None,
        }
    }

    /// The configuration of an MPEG-4 codec.
    pub(crate) fn descriptor(self) -> Option<DecoderConfig<'a>> {
        decoder_config(self.child(b"esds")?.get(4..)?)
    }

    fn configured_channels(self) -> Option<u16> {
        match &self.kind() {
            b"mp4a" => {
                // Other object types (MP3, for example) have no configuration of this form.
                let config = self.descriptor().filter(|c| c.object_type == AAC)?;
                aac_config(config.specific)?.1
            }
            b"Opus" => self.child(b"dOps")?.get(1).copied().map(u16::from),
            b"ac-3" => {
                let bits = self.child(b"dac3")?.first_chunk::<3>()?;
                ac3_channels(bits[1] >> 3, bits[1] >> 2 & 1)
            }
            b"ec-3" => {
                let bits = self.child(b"dec3")?.get(2..)?.first_chunk::<3>()?;
                ac3_channels(bits[1] >> 1, bits[1] & 1)
            }
            _ => None,
        }
    }
}

/// The codec string of HEVC by ISO/IEC 14496-15, annex E.3: profile, compatibility bits reversed,
/// tier and level, constraints without trailing zero bytes.
fn hevc(name: &str, record: &[u8]) -> Option<String> {
    let profile = *record.get(1)?;
    let space = ["", "A", "B", "C"][usize::from(profile >> 6)];
    let tier = if profile & 0x20 == 0 { 'L' } else { 'H' };
    // Annex E.3 lists the flags from the lowest bit on, the record from the highest.
    let compatible = be_u32(record, 2)?.reverse_bits();
    let level = *record.get(12)?;
    let mut codec = format!("{name}.{space}{}.{compatible:X}.{tier}{level}", profile & 0x1f);
    let constraints = record.get(6..12)?;
    let used = constraints.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    for byte in &constraints[..used] {
        codec.push_str(&format!(".{byte:X}"));
    }
    Some(codec)
}

/// What the record of a codec of NAL units says of them.
#[derive(Debug)]
pub(crate) struct NalConfig<'a> {
    /// The number of bytes of a NAL unit's length.
    pub(crate) length_bytes: usize,
    /// The parameter sets, each with the type of its NAL unit.
    pub(crate) sets: Vec<(u8, &'a [u8])>,
}

/// An `avcC` record (ISO/IEC 14496-15, 5.3.3.1): SPS (7), then PPS (8).
pub(crate) fn avc_config(record: &[u8]) -> Option<NalConfig<'_>> {
    let length_bytes = usize::from(record.get(4)? & 3) + 1;
    let (mut sets, mut rest) = (Vec::new(), record.get(5..)?);
    // A count, then each with its length.
    for (kind, mask) in [(7, 0x1f), (8, 0xff)] {
        let count = rest.first()? & mask;
        rest = rest.get(1..)?;
        for _ in 0..count {
            sets.push((kind, take_set(&mut rest)?));
        }
    }
    Some(NalConfig { length_bytes, sets })
}

/// An `hvcC` record (ISO/IEC 14496-15, 8.3.3.1): VPS (32), SPS (33) and PPS (34).
pub(crate) fn hevc_config(record: &[u8]) -> Option<NalConfig<'_>> {
    let length_bytes = usize::from(record.get(21)? & 3) + 1;
    let arrays = *record.get(22)?;
    let (mut sets, mut rest) = (Vec::new(), record.get(23..)?);
    for _ in 0..arrays {
        let kind = rest.first()? & 0x3f;
        let count = be_u16(rest, 1)?;
        rest = rest.get(3..)?;
        for _ in 0..count {
            let set = take_set(&mut rest)?;
            if (32..=34).contains(&kind) {
                sets.push((kind, set));
            }
        }
    }
    Some(NalConfig { length_bytes, sets })
}

/// An `avcC` record with further sets behind its own; `None` if it has no room for them.
fn avc_record_with(record: &[u8], further: &[(u8, Vec<u8>)]) -> Option<Vec<u8>> {
    let config = avc_config(record)?;
    let mut out = record.get(..5)?.to_vec();
    let mut own_bytes = 5;
    for (kind, most, marks) in [(7, 31, 0xe0), (8, 255, 0)] {
        let own = config.sets.iter().filter(|(of, _)| *of == kind).map(|(_, set)| *set);
        own_bytes += 1 + own.clone().map(|set| 2 + set.len()).sum::<usize>();
        let more = further.iter().filter(|(of, _)| *of == kind).map(|(_, set)| set.as_slice());
        let count = own.clone().count() + more.clone().count();
        (count <= most).then_some(())?;
        out.push(u8::try_from(count).ok()? | marks);
        own.chain(more).try_for_each(|set| put_set(&mut out, set))?;
    }
    // Profiles with more than 4:2:0 or 8 bits have further fields.
    out.extend_from_slice(record.get(own_bytes..)?);
    Some(out)
}

/// An `hvcC` record with further sets behind its own. `complete`: none are among the pictures.
fn hevc_record_with(record: &[u8], further: &[(u8, Vec<u8>)], complete: bool) -> Option<Vec<u8>> {
    let (mut rest, mut arrays) = (record.get(23..)?, Vec::new());
    for _ in 0..*record.get(22)? {
        let kind = rest.first()? & 0x3f;
        let count = be_u16(rest, 1)?;
        rest = rest.get(3..)?;
        let sets = (0..count).map(|_| take_set(&mut rest)).collect::<Option<Vec<_>>>()?;
        arrays.push((kind, sets));
    }
    for (kind, set) in further {
        match arrays.iter_mut().find(|(of, _)| of == kind) {
            Some((_, sets)) => sets.push(set),
            None => arrays.push((*kind, vec![set])),
        }
    }
    let mut out = record.get(..22)?.to_vec();
    out.push(u8::try_from(arrays.len()).ok()?);
    for (kind, sets) in arrays {
        let is_set = (32..=34).contains(&kind);
        out.push(if complete && is_set { 0x80 | kind } else { kind });
        out.extend(u16::try_from(sets.len()).ok()?.to_be_bytes());
        sets.into_iter().try_for_each(|set| put_set(&mut out, set))?;
    }
    Some(out)
}

/// Writes a parameter set with its length in front.
fn put_set(out: &mut Vec<u8>, set: &[u8]) -> Option<()> {
    out.extend(u16::try_from(set.len()).ok()?.to_be_bytes());
    out.extend_from_slice(set);
    Some(())
}

/// A parameter set with its length of 16 bits in front.
fn take_set<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(be_u16(rest, 0)?);
    let set = rest.get(2..2 + length)?;
    *rest = &rest[2 + length..];
    Some(set)
}

/// The codec string of AV1 by its ISO BMFF binding, section 5: profile, level and tier, bit depth.
fn av1(record: &[u8]) -> Option<String> {
    let [_, level, depth] = record.first_chunk()?;
    let (profile, level) = (level >> 5, level & 0x1f);
    let tier = if depth & 0x80 == 0 { 'M' } else { 'H' };
    let depth = match (depth & 0x40 != 0, depth & 0x20 != 0) {
        (false, _) => 8,
        (true, false) => 10,
        (true, true) => 12,
    };
    Some(format!("av01.{profile}.{level:02}{tier}.{depth:02}"))
}

/// The codec string of MPEG-4 codecs by RFC 6381, 3.3: the object type, then the codec's own
/// configuration.
fn mpeg4(name: &str, config: DecoderConfig<'_>) -> Option<String> {
    let object_type = config.object_type;
    match object_type {
        AAC => Some(format!("{name}.40.{}", aac_config(config.specific)?.0)),
        MPEG4_VISUAL => match visual_profile(config.specific) {
            Some(profile) => Some(format!("{name}.20.{profile}")),
            None => Some(format!("{name}.20")),
        },
        _ => Some(format!("{name}.{object_type:02X}")),
    }
}

/// The profile and level of MPEG-4 part 2, where its configuration has a visual object sequence
/// (ISO/IEC 14496-2, 6.2.2).
pub(crate) fn visual_profile(config: &[u8]) -> Option<u8> {
    let start = config.windows(4).position(|code| code == VISUAL_SEQUENCE_START)?;
    config.get(start + 4).copied()
}

/// The `DecoderConfigDescriptor` of ISO/IEC 14496-1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecoderConfig<'a> {
    pub(crate) object_type: u8,
    /// The codec's own configuration.
    pub(crate) specific: &'a [u8],
}

fn decoder_config(es: &[u8]) -> Option<DecoderConfig<'_>> {
    let es = descriptor(es, 0x03)?;
    let flags = *es.get(2)?;
    let mut rest = es.get(3..)?;
    // Three optional fields, by flags: number of another stream, address, number of a clock stream.
    if flags & 0x80 != 0 {
        rest = rest.get(2..)?;
    }
    if flags & 0x40 != 0 {
        rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    }
    if flags & 0x20 != 0 {
        rest = rest.get(2..)?;
    }
    let config = descriptor(rest, 0x04)?;
    // 13 bytes precede: object type, stream type and buffer size (1 + 4), two bit rates (4 each).
    let specific = config.get(13..).and_then(|rest| descriptor(rest, 0x05)).unwrap_or(&[]);
    Some(DecoderConfig { object_type: *config.first()?, specific })
}

/// The content of the descriptor with this tag at the beginning of `bytes`.
fn descriptor(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    if *bytes.first()? != tag {
        return None;
    }
    let mut length = 0;
    // A length has up to four bytes of seven bits; the top bit is set if another one follows.
    for (i, byte) in bytes.get(1..)?.iter().take(4).enumerate() {
        length = length << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            let content = bytes.get(2 + i..)?;
            return Some(&content[..length.min(content.len())]);
        }
    }
    None
}

/// The audio object type and, if present, the number of channels (ISO/IEC 14496-3, 1.6.2).
fn aac_config(config: &[u8]) -> Option<(u8, Option<u16>)> {
    let mut bits = Bits::new(config);
    let mut object_type = bits.take(5)?;
    // 31 is the escape for the types from 32 on.
    if object_type == 31 {
        object_type = 32 + bits.take(6)?;
    }
    let object_type = u8::try_from(object_type).ok()?;
    let channels = || {
        let mut bits = bits.clone();
        // 15 is the escape for a rate that is not in the table: 24 bits with the rate follow.
        if bits.take(4)? == 15 {
            bits.take(24)?;
        }
        match bits.take(4)? {
            n @ 1..=6 => u16::try_from(n).ok(),
            // Configuration 7 is 7.1: eight channels.
            7 => Some(8),
            _ => None,
        }
    };
    Some((object_type, channels()))
}

/// Reads numbers of any number of bits, the highest bit first.
#[derive(Clone, Debug)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of bits taken.
    pub(crate) at: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bits as a number; the last 32 of them if there are more.
    pub(crate) fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }
}

/// The number of channels by the audio coding mode and low-frequency channel of ETSI TS 102 366.
fn ac3_channels(mode: u8, low: u8) -> Option<u16> {
    let full = [2, 1, 2, 3, 3, 4, 4, 5][usize::from(mode & 7)];
    Some(full + u16::from(low))
}

/// The four-character code with characters that are valid in a playlist's quotes.
fn printable(kind: &[u8; 4]) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    kind.iter().map(|&byte| keep(char::from(byte))).collect::<String>().trim_end().to_owned()
}

/// Whether `entry` is exactly one box.
pub(crate) fn is_one_box(entry: &[u8]) -> bool {
    boxes(entry).next().is_some_and(|first| first.is_ok_and(|b| b.whole.len() == entry.len()))
}

/// Where the child boxes of pictures begin.
pub(crate) const PICTURE_CHILDREN: usize = 86;
/// The longest record of parameter sets that is made of those in a track: sets have some hundred
/// bytes at most, and players are told the record before anything else.
const MOST_RECORD: usize = 16 << 10;

pub(crate) const AAC: u8 = 0x40;
pub(crate) const MPEG4_VISUAL: u8 = 0x20;
const VISUAL_SEQUENCE_START: [u8; 4] = [0, 0, 1, 0xb0];

/// Entries that are valid in ISO files and that FFmpeg writes; all others make a file QuickTime.
const ISO_KINDS: &[&[u8; 4]] = &[
    b"avc1", b"avc3", b"hvc1", b"hev1", b"av01", b"vp08", b"vp09", b"mp4v", b"mp4a", b"ac-3",
    b"ec-3", b"Opus", b"fLaC", b"alac", b"dtsc", b"dtsh", b"dtse", b"mlpa", b"vc-1", b"samr",
    b"sawb", b"s263", b"vvc1", b"vvi1", b"ipcm", b"fpcm", b"mjp2", b"dvh1", b"dvhe", b"dvav",
];

const PCM_KINDS: &[&[u8; 4]] = &[
    b"twos", b"sowt", b"in24", b"in32", b"fl32", b"fl64", b"raw ", b"NONE", b"lpcm", b"ulaw",
    b"alaw", b"ipcm", b"fpcm",
];

/// The sampling rates of AAC by index (ISO/IEC 14496-3, table 1.18).
pub(crate) const AAC_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(kind: &[u8; 4], config: &[u8; 4], record: &[u8]) -> String {
        let mut entry = Vec::new();
        write_box(&mut entry, kind, |out| {
            out.extend_from_slice(&[0; 78]);
            write_box(out, config, |out| out.extend_from_slice(record));
        });
        SampleEntry(&entry).codec()
    }

    #[test]
    fn codec_strings_have_the_form_that_browsers_require() {
        let avc = picture(b"avc1", b"avcC", &[1, 0x64, 0, 0x1f, 0xff]);
        assert_eq!(avc, "avc1.64001f");
        let hvcc = [1, 0x01, 0x60, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 93];
        assert_eq!(picture(b"hvc1", b"hvcC", &hvcc), "hvc1.1.6.L93.90");
        assert_eq!(picture(b"av01", b"av1C", &[0x81, 0x04, 0x0c, 0]), "av01.0.04M.08");
        assert_eq!(picture(b"av01", b"av1C", &[0x81, 0x2d, 0xec, 0]), "av01.1.13H.12");
        let vpcc = [1, 0, 0, 0, 0, 31, 0x82, 1, 1, 1];
        assert_eq!(picture(b"vp09", b"vpcC", &vpcc), "vp09.00.31.08");
        assert_eq!(picture(b"apcn", b"none", &[]), "apcn");
        assert_eq!(picture(b"a\"\n\xff", b"none", &[]), "a___");
        assert_eq!(picture(b"avc1", b"none", &[]), "avc1", "without its configuration");
    }

    #[test]
    fn further_parameter_sets_are_put_into_the_record() {
        let entry = |kind: &[u8; 4], config: &[u8; 4], record: &[u8]| {
            let mut entry = Vec::new();
            write_box(&mut entry, kind, |out| {
                out.extend_from_slice(&[7; 78]);
                write_box(out, config, |out| out.extend_from_slice(record));
                write_box(out, b"pasp", |out| out.extend_from_slice(&[1; 8]));
                out.extend_from_slice(&[0; 4]);
            });
            entry
        };
        let further = [(8, vec![0x68, 9]), (7, vec![0x67, 8])];
        let own = [1, 0x64, 0, 31, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68, 0xfd, 0xf8, 0xf8, 0];
        let wanted = [
            &[1, 0x64, 0, 31, 0xff, 0xe2, 0, 1, 0x67, 0, 2, 0x67, 8][..],
            &[2, 0, 1, 0x68, 0, 2, 0x68, 9, 0xfd, 0xf8, 0xf8, 0],
        ];
        let avc = entry(b"avc1", b"avcC", &own);
        let found = SampleEntry(&avc).with_sets(&further, false).unwrap();
        assert_eq!(found, entry(b"avc1", b"avcC", &wanted.concat()));
        let found = SampleEntry(&avc).with_sets(&[], true).unwrap();
        assert_eq!(found, entry(b"avc3", b"avcC", &own));
        let many = vec![(7, vec![0x67, 8]); 31];
        assert_eq!(SampleEntry(&avc).with_sets(&many, false), None, "the count has five bits");
        let long = vec![(8, vec![0x68; 60_000])];
        assert_eq!(SampleEntry(&avc).with_sets(&long, false), None);

        let own = [&[1; 22][..], &[2, 0xa1, 0, 1, 0, 1, 0x42, 39, 0, 1, 0, 1, 5]].concat();
        let further = [(33, vec![0x42, 9]), (34, vec![0x44])];
        let with = |marks: u8| {
            let arrays = [
                &[3, marks | 33, 0, 2, 0, 1, 0x42, 0, 2, 0x42, 9][..],
                &[39, 0, 1, 0, 1, 5, marks | 34, 0, 1, 0, 1, 0x44],
            ];
            [&[1; 22][..], &arrays.concat()].concat()
        };
        let hevc = entry(b"hvc1", b"hvcC", &own);
        let found = SampleEntry(&hevc).with_sets(&further, false).unwrap();
        assert_eq!(found, entry(b"hvc1", b"hvcC", &with(0x80)));
        let found = SampleEntry(&hevc).with_sets(&further, true).unwrap();
        assert_eq!(found, entry(b"hev1", b"hvcC", &with(0)));
    }

    #[test]
    fn audio_is_described_by_its_configuration() {
        let esds = |object_type, specific: &[u8]| {
            let mut es = vec![0, 0, 0, 0, 0x03, 0x80, 0x80, 0x80, 22, 0, 1, 0];
            es.extend_from_slice(&[0x04, 17, object_type, 0x15]);
            es.extend_from_slice(&[0; 11]);
            es.extend_from_slice(&[0x05, u8::try_from(specific.len()).unwrap()]);
            es.extend_from_slice(specific);
            es
        };
        let sound = |version: u8, esds: &[u8]| {
            let mut entry = Vec::new();
            write_box(&mut entry, b"mp4a", |out| {
                out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, version, 0, 0, 0, 0, 0, 0]);
                out.extend_from_slice(&[0, 2, 0, 16, 0, 0, 0, 0, 0xbb, 0x80, 0, 0]);
                if version == 0 {
                    write_box(out, b"esds", |out| out.extend_from_slice(esds));
                } else {
                    out.extend_from_slice(&[0; 16]);
                    write_box(out, b"wave", |out| {
                        write_box(out, b"esds", |out| out.extend_from_slice(esds));
                    });
                }
            });
            let it = SampleEntry(&entry);
            (it.codec(), it.sample_rate(), it.channels(), it.is_quicktime())
        };
        let lc_5_1 = [0x11, 0xb0];
        let told = |codec: &str, channels, quicktime| {
            (codec.to_owned(), Some(48_000), Some(channels), quicktime)
        };
        assert_eq!(sound(0, &esds(0x40, &lc_5_1)), told("mp4a.40.2", 6, false));
        assert_eq!(sound(1, &esds(0x40, &lc_5_1)), told("mp4a.40.2", 6, true));
        assert_eq!(sound(0, &esds(0x6b, &[])), told("mp4a.6B", 2, false));
    }
}
