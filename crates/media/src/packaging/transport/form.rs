//! The form of a track in a transport stream: stream type and descriptors (ISO/IEC 13818-1, 2.4.4
//! and 2.6), and how its LDUs become access units.
//!
//! | codec | stream type | in front of each LDU | at LDUs where decoding may start |
//! |---|---|---|---|
//! | H.264 | 0x1b | access unit delimiter | SPS, PPS |
//! | HEVC | 0x24 | access unit delimiter | VPS, SPS, PPS |
//! | MPEG-1, MPEG-2 video | 0x01, 0x02 | | |
//! | MPEG-4 part 2 | 0x10 | | the configuration |
//! | AAC | 0x0f | ADTS header | |
//! | AC-3, E-AC-3 | 0x81, 0x87 | | |
//! | MPEG audio | 0x03, 0x04 | | |
//!
//! Lengths of NAL units become start codes of as many bytes, so lengths must have four bytes. The
//! number of bytes in front of an LDU does not depend on the LDU: a segment's length is known from
//! the index.

use super::adts::Adts;
use crate::codec::{AAC, NalConfig, SampleEntry, avc_config, hevc_config};
use crate::{TrackDescription, TrackIndex, TrackKind};

/// The reason why a track has no form in a transport stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its {} cannot go out in an MPEG transport stream: {why}",
    if *.kind == TrackKind::Video { "video" } else { "audio" }
)]
pub struct NoTransportForm {
    kind: TrackKind,
    why: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Reason {
    #[error("{codec} has no form there; {} have", if *.kind == TrackKind::Video {
        "H.264, HEVC, MPEG-1, MPEG-2 and MPEG-4 part 2"
    } else {
        "AAC, AC-3, E-AC-3 and MPEG audio"
    })]
    Codec { codec: String, kind: TrackKind },
    #[error("{0} is stored without a configuration that could be read")]
    NoConfiguration(String),
    #[error("the lengths of its NAL units have other than four bytes")]
    NalLengths,
    #[error("ADTS has no form for this configuration of AAC ({0})")]
    NoAdts(&'static str),
    #[error("the title is, or was, played while it is recorded")]
    Growing,
    #[error("DRM systems alone give its key, and none does so for transport streams")]
    Key,
    #[error("a packet has {0} bytes, more than a frame of the codec can have")]
    LargePacket(u32),
}

impl NoTransportForm {
    /// The reason for a track of a title that is, or was, played while it is recorded.
    pub(in crate::packaging) fn growing(kind: TrackKind) -> Self {
        Self { kind, why: Reason::Growing }
    }

    /// The reason for a track whose key DRM systems alone give to players.
    pub(in crate::packaging) fn without_key(kind: TrackKind) -> Self {
        Self { kind, why: Reason::Key }
    }
}

/// The form of a track in a transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::packaging) struct StreamForm {
    /// `stream_type` in the PMT.
    pub(super) stream_type: u8,
    /// `stream_id` of PES packets.
    pub(super) stream_id: u8,
    /// The descriptors of the PMT.
    pub(super) descriptors: Vec<u8>,
    pub(super) framing: Framing,
}

/// What becomes of an LDU's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// NAL units with lengths become NAL units with start codes.
    NalUnits {
        codec: NalCodec,
        /// Parameter sets with start codes.
        sets: Vec<u8>,
    },
    /// An ADTS header is put in front.
    Adts(Adts),
    /// Bytes stay as they are. These go in front of LDUs where decoding may start.
    AsStored { configuration: Vec<u8> },
}

/// A codec of NAL units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NalCodec {
    H264,
    Hevc,
}

impl StreamForm {
    /// The form of a track; fails where its codec, configuration or packets have none.
    pub(in crate::packaging) fn of(track: &TrackIndex) -> Result<Self, NoTransportForm> {
        let description = &track.description;
        let kind = description.kind;
        let failed = |why| NoTransportForm { kind, why };
        let form = Self::of_description(description).map_err(failed)?;
        let most = match form.framing {
            Framing::Adts(ref adts) => MOST_ADTS - u32::try_from(adts.len()).unwrap_or(MOST_ADTS),
            // A PES packet of sound states its length in 16 bits.
            _ if kind == TrackKind::Audio => MOST_SOUND,
            _ => u32::MAX,
        };
        match track.ldus.iter().map(|ldu| ldu.size).max().filter(|size| *size > most) {
            Some(size) => Err(failed(Reason::LargePacket(size))),
            None => Ok(form),
        }
    }

    fn of_description(track: &TrackDescription) -> Result<Self, Reason> {
        let entry = SampleEntry(&track.sample_entry);
        let (codec, kind) = (track.codec.clone(), track.kind);
        let missing = || Reason::NoConfiguration(codec.clone());
        let form = match (kind, &entry.kind()) {
            (TrackKind::Video, b"avc1" | b"avc3") => {
                let record = entry.child(b"avcC").ok_or_else(missing)?;
                nal_units(NalCodec::H264, &avc_config(record).ok_or_else(missing)?)?
            }
            (TrackKind::Video, b"hvc1" | b"hev1") => {
                let record = entry.child(b"hvcC").ok_or_else(missing)?;
                nal_units(NalCodec::Hevc, &hevc_config(record).ok_or_else(missing)?)?
            }
            (TrackKind::Video, b"m2v1") => Self::as_stored(0x02, VIDEO, &[], &[]),
            (TrackKind::Video, b"m1v ") => Self::as_stored(0x01, VIDEO, &[], &[]),
            (_, b"mp4v" | b"mp4a") => {
                let config = entry.descriptor().ok_or_else(missing)?;
                mpeg4(track, config.object_type, config.specific)?
            }
            (TrackKind::Audio, b".mp3") => mpeg_audio(track),
            (TrackKind::Audio, b"ac-3") => {
                let record = entry.child(b"dac3").ok_or_else(missing)?;
                let descriptor = ac3_descriptor(record).ok_or_else(missing)?;
                Self::as_stored(0x81, PRIVATE, &[&registration(b"AC-3"), &descriptor], &[])
            }
            (TrackKind::Audio, b"ec-3") => {
                Self::as_stored(0x87, PRIVATE, &[&registration(b"EAC3")], &[])
            }
            _ => return Err(Reason::Codec { codec, kind }),
        };
        Ok(form.in_language(&track.language))
    }

    fn as_stored(stream_type: u8, stream_id: u8, parts: &[&[u8]], configuration: &[u8]) -> Self {
        let framing = Framing::AsStored { configuration: configuration.to_vec() };
        Self { stream_type, stream_id, descriptors: parts.concat(), framing }
    }

    /// ISO/IEC 13818-1, 2.6.18, for sound in a language.
    fn in_language(mut self, language: &str) -> Self {
        let letters = language.as_bytes();
        let known = letters.len() == 3 && letters.iter().all(u8::is_ascii_lowercase);
        if known && language != "und" && self.stream_id != VIDEO {
            self.descriptors.extend_from_slice(&[0x0a, 4]);
            self.descriptors.extend_from_slice(letters);
            self.descriptors.push(0);
        }
        self
    }

    /// Whether it is video.
    pub(super) fn is_video(&self) -> bool {
        self.stream_id == VIDEO
    }

    /// The number of bytes in front of an LDU. `sync`: decoding may start there.
    pub(super) fn prefix_len(&self, sync: bool) -> usize {
        let (each, at_sync) = match &self.framing {
            Framing::NalUnits { codec, sets } => (codec.delimiter().len(), sets.len()),
            Framing::Adts(adts) => (adts.len(), 0),
            Framing::AsStored { configuration } => (0, configuration.len()),
        };
        each + if sync { at_sync } else { 0 }
    }

    /// Appends the bytes in front of an LDU of this size.
    pub(super) fn write_prefix(&self, out: &mut Vec<u8>, size: u32, sync: bool) {
        match &self.framing {
            Framing::NalUnits { codec, sets } => {
                out.extend_from_slice(codec.delimiter());
                if sync {
                    out.extend_from_slice(sets);
                }
            }
            Framing::Adts(adts) => adts.write(out, size),
            Framing::AsStored { configuration } if sync => out.extend_from_slice(configuration),
            Framing::AsStored { .. } => {}
        }
    }
}

impl NalCodec {
    /// An access unit delimiter for any pictures, with its start code.
    pub(super) fn delimiter(self) -> &'static [u8] {
        match self {
            Self::H264 => &[0, 0, 0, 1, 9, 0xf0],
            Self::Hevc => &[0, 0, 0, 1, 0x46, 1, 0x50],
        }
    }

    /// Whether a NAL unit that begins with this byte is an access unit delimiter.
    pub(super) fn is_delimiter(self, first: u8) -> bool {
        match self {
            Self::H264 => first & 0x1f == 9,
            Self::Hevc => first >> 1 & 0x3f == 35,
        }
    }
}

fn nal_units(codec: NalCodec, config: &NalConfig<'_>) -> Result<StreamForm, Reason> {
    if config.length_bytes != START_CODE.len() {
        return Err(Reason::NalLengths);
    }
    let (stream_type, descriptors) = match codec {
        NalCodec::H264 => (0x1b, Vec::new()),
        NalCodec::Hevc => (0x24, registration(b"HEVC").to_vec()),
    };
    let sets = config.sets.iter().flat_map(|(_, set)| [&START_CODE, *set].concat()).collect();
    let framing = Framing::NalUnits { codec, sets };
    Ok(StreamForm { stream_type, stream_id: VIDEO, descriptors, framing })
}

/// By the object type of ISO/IEC 14496-1, table 5.
fn mpeg4(track: &TrackDescription, object_type: u8, config: &[u8]) -> Result<StreamForm, Reason> {
    match (track.kind, object_type) {
        (TrackKind::Video, 0x20) => Ok(StreamForm::as_stored(0x10, VIDEO, &[], config)),
        (TrackKind::Video, 0x60..=0x65) => Ok(StreamForm::as_stored(0x02, VIDEO, &[], &[])),
        (TrackKind::Video, 0x6a) => Ok(StreamForm::as_stored(0x01, VIDEO, &[], &[])),
        (TrackKind::Audio, 0x69 | 0x6b) => Ok(mpeg_audio(track)),
        (TrackKind::Audio, AAC) => {
            let framing = Framing::Adts(Adts::of(config).map_err(Reason::NoAdts)?);
            let descriptors = Vec::new();
            Ok(StreamForm { stream_type: 0x0f, stream_id: AUDIO, descriptors, framing })
        }
        _ => Err(Reason::Codec { codec: track.codec.clone(), kind: track.kind }),
    }
}

/// MPEG-1 has the sampling rates from 32 kHz on, MPEG-2 the halves of them.
fn mpeg_audio(track: &TrackDescription) -> StreamForm {
    let stream_type = if track.sample_rate >= 32_000 { 0x03 } else { 0x04 };
    StreamForm::as_stored(stream_type, AUDIO, &[], &[])
}

/// ISO/IEC 13818-1, 2.6.8.
fn registration(format: &[u8; 4]) -> [u8; 6] {
    let [a, b, c, d] = *format;
    [5, 4, a, b, c, d]
}

/// `AC-3_audio_stream_descriptor` of ATSC A/52, A.4.3, from the `AC3SpecificBox` of ETSI TS
/// 102 366.
fn ac3_descriptor(record: &[u8]) -> Option<[u8; 6]> {
    let bits = record.first_chunk::<3>()?;
    let bits = u32::from_be_bytes([0, bits[0], bits[1], bits[2]]);
    let take = |shift: u32, width: u32| u8::try_from(bits >> shift & ((1 << width) - 1));
    let [rate, id, mode] = [take(22, 2).ok()?, take(17, 5).ok()?, take(14, 3).ok()?];
    let [channels, bit_rate] = [take(11, 3).ok()?, take(5, 5).ok()?];
    // The bit rate is exact, surround is not indicated, the service is a full one, and the language
    // is in a descriptor of its own.
    Some([0x81, 4, rate << 5 | id, bit_rate << 2, mode << 5 | channels << 1 | 1, 0xff])
}

/// What begins a NAL unit.
pub(super) const START_CODE: [u8; 4] = [0, 0, 0, 1];
const VIDEO: u8 = 0xe0;
const AUDIO: u8 = 0xc0;
/// `private_stream_1`, which ATSC and DVB prescribe for AC-3.
const PRIVATE: u8 = 0xbd;
/// `aac_frame_length` has 13 bits.
const MOST_ADTS: u32 = (1 << 13) - 1;
/// What a PES packet of sound may have, less its header.
const MOST_SOUND: u32 = 65_000;
