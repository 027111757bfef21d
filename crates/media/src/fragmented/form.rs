//! The form of the LDUs of a track, where LDUs tell it in their first bytes: sound, and pictures of
//! MPEG-2, VP9 and AV1. One track has one header, so a stream in which it changes is read up to
//! there.
//!
//! Of AAC in MP4 the LDUs tell only whether one channel or a pair comes first; the sampling rate,
//! and whether five channels follow one or none do, is not seen. Other codecs are not looked at.

use crate::LduIndex;
use crate::codec::{Bits, SampleEntry};

/// Looks at the beginning of each LDU of a track.
#[derive(Debug)]
pub(super) struct FormWatch {
    codec: FormCodec,
    /// The number of LDUs that have been seen whole.
    seen: usize,
    /// Bytes of the present LDU that have not been seen; `None` between two.
    left: Option<u32>,
    head: Vec<u8>,
    first: Option<String>,
    /// What looks like a change, and the number of LDUs that agree: one may be damaged.
    suspected: Option<(NewForm, u32)>,
}

/// A change of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewForm {
    /// The first LDU of the new form.
    pub(super) ldu: usize,
    pub(super) before: String,
    pub(super) after: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormCodec {
    Aac,
    Ac3,
    Eac3,
    MpegAudio,
    MpegVideo,
    Vp9,
    Av1,
}

impl FormWatch {
    /// A watch for a track with this sample entry; `None` where its LDUs do not tell their form.
    pub(super) fn of(sample_entry: &[u8]) -> Option<Self> {
        let entry = SampleEntry(sample_entry);
        let codec = match &entry.kind() {
            b"ac-3" => FormCodec::Ac3,
            b"ec-3" => FormCodec::Eac3,
            b"vp09" => FormCodec::Vp9,
            b"av01" => FormCodec::Av1,
            b"mp4a" | b"mp4v" => match entry.descriptor()?.object_type {
                // Low complexity, with spectral band replication and parametric stereo or without.
                0x40 if matches!(entry.descriptor()?.specific.first()? >> 3, 2 | 5 | 29) => {
                    FormCodec::Aac
                }
                0x69 | 0x6b => FormCodec::MpegAudio,
                0x60..=0x65 | 0x6a => FormCodec::MpegVideo,
                _ => return None,
            },
            _ => return None,
        };
        Some(Self::new(codec))
    }

    fn new(codec: FormCodec) -> Self {
        Self { codec, seen: 0, left: None, head: Vec::new(), first: None, suspected: None }
    }

    /// Takes the next bytes of the track, whose LDUs `index` has.
    pub(super) fn push(&mut self, mut bytes: &[u8], index: &LduIndex) {
        while !bytes.is_empty() && self.seen < index.len() {
            let left = self.left.get_or_insert_with(|| index.get(self.seen).size);
            let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            let wanted = HEAD.saturating_sub(self.head.len()).min(taken);
            self.head.extend_from_slice(&bytes[..wanted]);
            *left -= u32::try_from(taken).expect("at most what is left");
            bytes = &bytes[taken..];
            if *left == 0 {
                self.end_ldu();
            }
        }
    }

    fn end_ldu(&mut self) {
        if let Some(after) = self.codec.form(&self.head) {
            self.note(after);
        }
        (self.seen, self.left) = (self.seen + 1, None);
        self.head.clear();
    }

    fn note(&mut self, after: String) {
        let Some(before) = &self.first else {
            self.first = Some(after);
            return;
        };
        if self.is_certain() {
            return;
        }
        match &mut self.suspected {
            _ if *before == after => self.suspected = None,
            Some((new, count)) if new.after == after => *count += 1,
            suspected => {
                let new = NewForm { ldu: self.seen, before: before.clone(), after };
                *suspected = Some((new, 1));
            }
        }
    }

    /// The channels of sound of which the LDUs tell better than the sample entry: that of MPEG
    /// audio says two whatever there are.
    pub(super) fn channels(&self) -> Option<u16> {
        let of_one = self.first.as_ref()?.starts_with("sound of 1 channel ");
        (self.codec == FormCodec::MpegAudio).then_some(if of_one { 1 } else { 2 })
    }

    /// Where the form changes for the first time.
    pub(super) fn changed(&self) -> Option<&NewForm> {
        self.suspected.as_ref().map(|(new, _)| new).filter(|_| self.is_certain())
    }

    /// The LDUs that are known to be of the first form.
    pub(super) fn certain(&self) -> usize {
        self.suspected.as_ref().map_or(usize::MAX, |(new, _)| new.ldu)
    }

    fn is_certain(&self) -> bool {
        let needed = if self.codec.is_video() { 1 } else { AGREEING };
        self.suspected.as_ref().is_some_and(|(_, count)| *count >= needed)
    }

    /// Forgets the first LDUs; the index that is passed on from now on is without them.
    pub(super) fn forget(&mut self, ldus: usize) {
        self.seen = self.seen.saturating_sub(ldus);
        if let Some((new, _)) = &mut self.suspected {
            new.ldu = new.ldu.saturating_sub(ldus);
        }
    }
}

impl FormCodec {
    fn is_video(self) -> bool {
        matches!(self, Self::MpegVideo | Self::Vp9 | Self::Av1)
    }

    /// The form of an LDU that begins with these bytes; `None` if it does not tell it.
    fn form(self, head: &[u8]) -> Option<String> {
        let mut bits = Bits::new(head);
        match self {
            Self::Aac => match bits.take(3)? {
                0 => Some("sound whose first channel is single".to_owned()),
                1 => Some("sound whose first channels are a pair".to_owned()),
                _ => None,
            },
            Self::Ac3 => {
                (bits.take(16)? == 0x0b77).then_some(())?;
                bits.take(16)?;
                let rate = bits.take(2)?;
                bits.take(6 + 5 + 3)?;
                Some(sound(*RATES.get(usize::try_from(rate).ok()?)?, bits.take(3)?))
            }
            Self::Eac3 => {
                (bits.take(16)? == 0x0b77).then_some(())?;
                bits.take(2 + 3 + 11)?;
                let rate = *RATES.get(usize::try_from(bits.take(2)?).ok()?)?;
                bits.take(2)?;
                Some(sound(rate, bits.take(3)?))
            }
            Self::MpegAudio => {
                (bits.take(11)? == 0x7ff).then_some(())?;
                let halved = match bits.take(2)? {
                    3 => 1,
                    2 => 2,
                    0 => 4,
                    _ => return None,
                };
                bits.take(2 + 1 + 4)?;
                let rate = [44_100, 48_000, 32_000];
                let rate = rate.get(usize::try_from(bits.take(2)?).ok()?)? / halved;
                bits.take(2)?;
                let channels = if bits.take(2)? == 3 { "1 channel" } else { "2 channels" };
                Some(format!("sound of {channels} of {rate} Hz"))
            }
            Self::MpegVideo => {
                (bits.take(32)? == 0x0000_01b3).then_some(())?;
                Some(format!("pictures of {}x{}", bits.take(12)?, bits.take(12)?))
            }
            Self::Vp9 => vp9_key_frame(&mut bits),
            Self::Av1 => av1_sequence(head),
        }
    }
}

/// The form of pictures by the header of a key frame of VP9 (VP9 bitstream specification, 6.2);
/// other frames do not tell it.
fn vp9_key_frame(bits: &mut Bits<'_>) -> Option<String> {
    (bits.take(2)? == 2).then_some(())?;
    let profile = bits.take(1)? | bits.take(1)? << 1;
    if profile == 3 {
        bits.take(1)?;
    }
    let shows_another = bits.take(1)? == 1;
    let is_key = bits.take(1)? == 0;
    (!shows_another && is_key).then_some(())?;
    bits.take(2)?;
    (bits.take(24)? == 0x49_8342).then_some(())?;
    let depth = match profile {
        0 | 1 => 8,
        _ => 10 + 2 * bits.take(1)?,
    };
    let is_rgb = bits.take(3)? == 7;
    let has_subsampling = profile & 1 == 1;
    match (is_rgb, has_subsampling) {
        (true, true) => bits.take(1)?,
        (true, false) => 0,
        (false, true) => bits.take(4)?,
        (false, false) => bits.take(1)?,
    };
    let (width, height) = (bits.take(16)? + 1, bits.take(16)? + 1);
    Some(format!("pictures of {width}x{height} ({depth} bit, profile {profile})"))
}

/// The form of pictures by the sequence header of AV1 (AV1 specification, 5.5), which is in front
/// of a key frame; frames without one do not tell it.
fn av1_sequence(mut head: &[u8]) -> Option<String> {
    loop {
        let (header, rest) = head.split_first()?;
        let (kind, is_extended, has_size) = (header >> 3 & 15, header & 4 != 0, header & 2 != 0);
        let rest = rest.get(usize::from(is_extended)..)?;
        // A unit without a size goes on to the end of the LDU.
        let (size, unit) = if has_size { leb128(rest)? } else { (rest.len(), rest) };
        if kind == 1 {
            return av1_sequence_header(&mut Bits::new(unit));
        }
        head = unit.get(size..)?;
    }
}

/// A number in groups of seven bits, the lowest first, and the bytes behind it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let end = bytes.iter().take(4).position(|byte| byte & 0x80 == 0)?;
    let value =
        bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, &bytes[end + 1..]))
}

fn av1_sequence_header(bits: &mut Bits<'_>) -> Option<String> {
    let profile = bits.take(3)?;
    bits.take(1)?;
    let is_reduced = bits.take(1)? == 1;
    if is_reduced {
        bits.take(5)?;
    } else {
        let mut delay_bits = None;
        if bits.take(1)? == 1 {
            bits.take(64)?;
            if bits.take(1)? == 1 {
                // A number behind as many zeros as it has bits but the first.
                let mut zeros = 0;
                while bits.take(1)? == 0 {
                    zeros += 1;
                }
                bits.take(zeros)?;
            }
            if bits.take(1)? == 1 {
                delay_bits = Some(usize::try_from(bits.take(5)?).ok()? + 1);
                bits.take(32 + 5 + 5)?;
            }
        }
        let has_display_delay = bits.take(1)? == 1;
        for _ in 0..=bits.take(5)? {
            bits.take(12)?;
            if bits.take(5)? > 7 {
                bits.take(1)?;
            }
            if let Some(delay_bits) = delay_bits
                && bits.take(1)? == 1
            {
                bits.take(2 * delay_bits + 1)?;
            }
            if has_display_delay && bits.take(1)? == 1 {
                bits.take(4)?;
            }
        }
    }
    let of_width = usize::try_from(bits.take(4)?).ok()? + 1;
    let of_height = usize::try_from(bits.take(4)?).ok()? + 1;
    let (width, height) = (bits.take(of_width)? + 1, bits.take(of_height)? + 1);
    Some(format!("pictures of {width}x{height} (profile {profile})"))
}

/// The form of AC-3, with the number of its mode of channels (ETSI TS 102 366, 4.4.2.3).
fn sound(rate: u32, mode: u32) -> String {
    let mode = ["1+1", "1/0", "2/0", "3/0", "2/1", "3/1", "2/2", "3/2"][mode as usize & 7];
    format!("sound of {mode} channels of {rate} Hz")
}

/// The sampling rates of AC-3 by their number.
const RATES: [u32; 3] = [48_000, 44_100, 32_000];

/// LDUs of sound in a row that are of another form before that is no damage: 0.4 s of AAC. Of
/// pictures one is enough, because their header is at the beginning of a packet of its own.
const AGREEING: u32 = 16;

/// Bytes of an LDU in which it tells its form: the longest is the sequence header of AV1, in front
/// of which metadata may be.
const HEAD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the form changes of LDUs of AAC that begin with these elements, in pieces of any size.
    fn changed(elements: &[u8]) -> Vec<Option<usize>> {
        let mut index = LduIndex::default();
        elements.iter().for_each(|_| index.push(20, 1024, 0, true, false));
        let bytes: Vec<u8> =
            elements.iter().flat_map(|element| [[element << 5; 10], [7; 10]].concat()).collect();
        let of_piece = |piece| {
            let mut watch = FormWatch::new(FormCodec::Aac);
            bytes.chunks(piece).for_each(|bytes| watch.push(bytes, &index));
            watch.changed().map(|new| new.ldu)
        };
        [1, 7, 20, 10_000].map(of_piece).to_vec()
    }

    #[test]
    fn a_damaged_packet_is_no_other_form() {
        let (pair, single, fill) = ([1].as_slice(), [0].as_slice(), [6].as_slice());
        for (elements, wanted) in [
            ([pair.repeat(40), single.repeat(16)].concat(), Some(40)),
            ([pair.repeat(40), single.repeat(15)].concat(), None),
            ([pair.repeat(9), single.repeat(15), pair.repeat(9), single.repeat(9)].concat(), None),
            // What tells nothing counts neither way.
            ([single.repeat(3), fill.repeat(9), [&[1, 6][..]; 20].concat()].concat(), Some(12)),
            ([fill.repeat(9), pair.repeat(9)].concat(), None),
        ] {
            assert_eq!(changed(&elements), [wanted; 4], "{elements:?}");
        }
    }

    #[test]
    fn ldus_tell_their_form_in_their_first_bytes() {
        let table: &[(FormCodec, &[u8], Option<&str>)] = &[
            (FormCodec::Aac, &[0x01, 0x40], Some("sound whose first channel is single")),
            (FormCodec::Aac, &[0x21, 0x10], Some("sound whose first channels are a pair")),
            // A fill element is first.
            (FormCodec::Aac, &[0xde, 0x02], None),
            (FormCodec::Aac, &[], None),
            (
                FormCodec::Ac3,
                &[0x0b, 0x77, 0xc6, 0xa2, 0x14, 0x40, 0x43],
                Some("sound of 2/0 channels of 48000 Hz"),
            ),
            (
                FormCodec::Eac3,
                &[0x0b, 0x77, 0x02, 0xff, 0x3f, 0x86],
                Some("sound of 3/2 channels of 48000 Hz"),
            ),
            (
                FormCodec::MpegAudio,
                &[0xff, 0xfd, 0xa4, 0x00],
                Some("sound of 2 channels of 48000 Hz"),
            ),
            (FormCodec::MpegVideo, &[0, 0, 1, 0xb3, 0x2d, 0x02, 0x40], Some("pictures of 720x576")),
            (FormCodec::MpegVideo, &[0, 0, 1, 0, 0x2d, 0x02, 0x40], None),
            // From FFmpeg with libvpx: 4:2:0, and 4:4:4 of ten bits; a frame that is no key frame,
            // and one that shows another.
            (
                FormCodec::Vp9,
                &[0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xf0, 0x0b, 0x36, 0x04],
                Some("pictures of 320x180 (8 bit, profile 0)"),
            ),
            (
                FormCodec::Vp9,
                &[0xb1, 0x24, 0xc1, 0xa1, 0x00, 0x01, 0x3f, 0x80, 0xb3, 0xb0],
                Some("pictures of 640x360 (10 bit, profile 3)"),
            ),
            (FormCodec::Vp9, &[0x86, 0x00, 0x40, 0x92, 0x9c, 0x44, 0x40, 0x0d, 0x10, 0x00], None),
            (FormCodec::Vp9, &[0x88], None),
            // From FFmpeg with libaom: with a temporal delimiter in front, and as it is in MP4.
            (
                FormCodec::Av1,
                &[0x12, 0, 0x0a, 0x0b, 0, 0, 0, 4, 0x3c, 0xfe, 0xcc, 0xff, 0xf9, 0x80, 0x40],
                Some("pictures of 320x180 (profile 0)"),
            ),
            (
                FormCodec::Av1,
                &[0x0a, 0x0b, 0, 0, 0, 4, 0x3c, 0xfe, 0xcc, 0xfb, 0xf9, 0x00, 0x40],
                Some("pictures of 320x180 (profile 0)"),
            ),
            // A frame, and a sequence header that is cut short.
            (FormCodec::Av1, &[0x32, 0x03, 0x14, 0, 0xa3, 0x12, 0], None),
            (FormCodec::Av1, &[0x0a, 0x0b, 0, 0, 0, 4], None),
        ];
        for (codec, head, form) in table {
            assert_eq!(codec.form(head).as_deref(), *form, "{codec:?} {head:x?}");
        }
    }
}
