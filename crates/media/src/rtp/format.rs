//! The payload format of a track: which RFC its packets follow, and how SDP describes it.

use super::packetise::nal_units;
use crate::boxes::be_u16;
use crate::codec::{
    AAC, DecoderConfig, MPEG4_VISUAL, NalConfig, SampleEntry, avc_config, hevc_config,
    visual_profile,
};
use crate::{TrackDescription, TrackKind};
use std::fmt::Write;

/// How the LDUs of a track become packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadFormat {
    pub(super) layout: PayloadLayout,
    /// The payload type in packets and SDP.
    pub payload_type: u8,
    /// Ticks per second of the packets' time stamps.
    pub clock_rate: u32,
    /// The encoding as `a=rtpmap` names it, with clock rate and channels.
    pub encoding: String,
    /// The parameters of `a=fmtp`; empty if there are none.
    pub parameters: String,
}

/// The layout of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadLayout {
    H264 {
        length_bytes: usize,
    },
    Hevc {
        length_bytes: usize,
    },
    MpegVideo,
    Mpeg4Visual,
    Av1,
    Vp9,
    Aac,
    Ac3,
    Eac3,
    Opus,
    MpegAudio,
    Pcm(PcmForm),
    /// Packets of a transport stream.
    TransportStream,
}

/// How the numbers of PCM are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PcmForm {
    /// Bytes of a number.
    pub(super) bytes: usize,
    pub(super) channels: u16,
    /// Whether the low byte is stored first.
    pub(super) swaps: bool,
}

impl PayloadFormat {
    /// The format of a track, `None` if its codec has none here. `dynamic`: the payload type where
    /// the codec has no static one, from 96 to 127.
    pub fn of(track: &TrackDescription, dynamic: u8) -> Option<Self> {
        let entry = SampleEntry(&track.sample_entry);
        match track.kind {
            TrackKind::Video => video(entry, dynamic),
            TrackKind::Audio if track.sample_rate > 0 => audio(track, entry, dynamic),
            _ => None,
        }
    }

    /// Whether a picture states that no other is decoded from it. Pictures of H.264, HEVC and MPEG
    /// state it.
    pub fn is_discardable(&self, ldu: &[u8]) -> bool {
        let all = |length_bytes, is_slice: fn(u8) -> bool, is_kept: fn(u8) -> bool| {
            let heads = nal_units(ldu, length_bytes).filter_map(|unit| unit.first().copied());
            let slices: Vec<u8> = heads.filter(|head| is_slice(*head)).collect();
            !slices.is_empty() && !slices.into_iter().any(is_kept)
        };
        match self.layout {
            PayloadLayout::H264 { length_bytes } => {
                all(length_bytes, |head| matches!(head & 0x1f, 1..=5), |head| head & 0x60 != 0)
            }
            // Sub-layer non-reference pictures have the even types below 16.
            PayloadLayout::Hevc { length_bytes } => all(
                length_bytes,
                |head| head >> 1 & 0x3f < 32,
                |head| head >> 1 & 0x3f >= 16 || head & 2 != 0,
            ),
            // A B-picture by its header (ISO/IEC 13818-2, 6.2.3).
            PayloadLayout::MpegVideo => ldu
                .windows(6)
                .find(|bytes| bytes.starts_with(&[0, 0, 1, 0]))
                .is_some_and(|bytes| bytes[5] >> 3 & 7 == 3),
            _ => false,
        }
    }

    /// The format of an MPEG transport stream (RFC 2250, 2): what is packetised are packets of it
    /// that are sent together.
    pub fn transport_stream() -> Self {
        let encoding = "MP2T/90000".to_owned();
        Self::dynamic(PayloadLayout::TransportStream, MP2T, VIDEO_CLOCK, encoding, String::new())
    }

    fn dynamic(
        layout: PayloadLayout,
        number: u8,
        rate: u32,
        encoding: String,
        parameters: String,
    ) -> Self {
        Self { layout, payload_type: number, clock_rate: rate, encoding, parameters }
    }
}

fn video(entry: SampleEntry<'_>, dynamic: u8) -> Option<PayloadFormat> {
    let format = |layout, encoding: &str, parameters: String| {
        let encoding = format!("{encoding}/{VIDEO_CLOCK}");
        Some(PayloadFormat::dynamic(layout, dynamic, VIDEO_CLOCK, encoding, parameters))
    };
    match &entry.kind() {
        b"avc1" | b"avc3" => h264(entry.child(b"avcC")?, dynamic),
        b"hvc1" | b"hev1" => hevc(entry.child(b"hvcC")?, dynamic),
        b"m1v " | b"m2v1" => Some(mpeg_video()),
        b"mp4v" => {
            let DecoderConfig { object_type, specific } = entry.descriptor()?;
            match object_type {
                MPEG2_VISUAL_FIRST..=MPEG2_VISUAL_LAST | MPEG1_VISUAL => Some(mpeg_video()),
                MPEG4_VISUAL if !specific.is_empty() => {
                    let profile = visual_profile(specific).unwrap_or(1);
                    let parameters = format!("profile-level-id={profile};config={}", hex(specific));
                    format(PayloadLayout::Mpeg4Visual, "MP4V-ES", parameters)
                }
                _ => None,
            }
        }
        b"av01" => {
            let [_, level, depth] = entry.child(b"av1C")?.first_chunk()?;
            let (profile, level, tier) = (level >> 5, level & 0x1f, depth >> 7);
            let parameters = format!("profile={profile};level-idx={level};tier={tier}");
            format(PayloadLayout::Av1, "AV1", parameters)
        }
        b"vp09" => {
            let profile = entry.child(b"vpcC")?.get(4)?;
            format(PayloadLayout::Vp9, "VP9", format!("profile-id={profile}"))
        }
        _ => None,
    }
}

fn audio(track: &TrackDescription, entry: SampleEntry<'_>, dynamic: u8) -> Option<PayloadFormat> {
    let (rate, channels) = (track.sample_rate, track.channels);
    let format = |layout, clock: u32, encoding: String, parameters: &str| {
        let parameters = parameters.to_owned();
        Some(PayloadFormat::dynamic(layout, dynamic, clock, encoding, parameters))
    };
    match &entry.kind() {
        b"mp4a" => {
            let config = entry.descriptor()?;
            match config.object_type {
                AAC => aac(track, config.specific, dynamic),
                0x69 | 0x6b => Some(mpeg_audio()),
                _ => None,
            }
        }
        b".mp3" => Some(mpeg_audio()),
        b"ac-3" => format(PayloadLayout::Ac3, rate, format!("ac3/{rate}/{channels}"), ""),
        b"ec-3" => format(PayloadLayout::Eac3, rate, format!("eac3/{rate}/{channels}"), ""),
        b"Opus" if channels <= 2 => {
            // RFC 7587, 7: always 48,000 and 2, whatever was encoded.
            let parameters = if channels == 2 { "sprop-stereo=1" } else { "" };
            format(PayloadLayout::Opus, 48_000, "opus/48000/2".to_owned(), parameters)
        }
        _ => pcm(track, entry, dynamic),
    }
}

/// MPEG audio has a static payload type, whose clock is that of video.
fn mpeg_audio() -> PayloadFormat {
    let encoding = "MPA/90000".to_owned();
    PayloadFormat::dynamic(PayloadLayout::MpegAudio, MPA, VIDEO_CLOCK, encoding, String::new())
}

/// MPEG-1 and MPEG-2 video have one static payload type.
fn mpeg_video() -> PayloadFormat {
    let encoding = "MPV/90000".to_owned();
    PayloadFormat::dynamic(PayloadLayout::MpegVideo, MPV, VIDEO_CLOCK, encoding, String::new())
}

fn h264(record: &[u8], dynamic: u8) -> Option<PayloadFormat> {
    let [_, profile, compatible, level, ..] = *record else { return None };
    let NalConfig { length_bytes, sets } = avc_config(record)?;
    let sets: Vec<String> = sets.into_iter().map(|(_, set)| base64(set)).collect();
    let parameters = format!(
        "packetization-mode=1;profile-level-id={profile:02X}{compatible:02X}{level:02X};\
         sprop-parameter-sets={}",
        sets.join(",")
    );
    let (layout, encoding) = (PayloadLayout::H264 { length_bytes }, "H264/90000".to_owned());
    Some(PayloadFormat::dynamic(layout, dynamic, VIDEO_CLOCK, encoding, parameters))
}

fn hevc(record: &[u8], dynamic: u8) -> Option<PayloadFormat> {
    let NalConfig { length_bytes, sets } = hevc_config(record)?;
    let named = |(wanted, name): (u8, &str)| {
        let of_kind = sets.iter().filter(|(kind, _)| *kind == wanted);
        let sets: Vec<String> = of_kind.map(|(_, set)| base64(set)).collect();
        (!sets.is_empty()).then(|| format!("{name}={}", sets.join(",")))
    };
    let names = [(32, "sprop-vps"), (33, "sprop-sps"), (34, "sprop-pps")];
    let parameters: Vec<String> = names.into_iter().filter_map(named).collect();
    let (layout, encoding) = (PayloadLayout::Hevc { length_bytes }, "H265/90000".to_owned());
    let parameters = parameters.join(";");
    Some(PayloadFormat::dynamic(layout, dynamic, VIDEO_CLOCK, encoding, parameters))
}

fn aac(track: &TrackDescription, config: &[u8], dynamic: u8) -> Option<PayloadFormat> {
    if config.is_empty() {
        return None;
    }
    let parameters = format!(
        "streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;\
         indexdeltalength=3;config={}",
        hex(config)
    );
    let rate = track.sample_rate;
    let encoding = format!("MPEG4-GENERIC/{rate}/{}", track.channels);
    Some(PayloadFormat::dynamic(PayloadLayout::Aac, dynamic, rate, encoding, parameters))
}

fn pcm(track: &TrackDescription, entry: SampleEntry<'_>, dynamic: u8) -> Option<PayloadFormat> {
    let stored_bits = be_u16(entry.0, 26)?;
    let (channels, rate) = (track.channels, track.sample_rate);
    let (name, bytes, swaps) = match &entry.kind() {
        b"twos" if stored_bits == 16 => ("L16", 2, false),
        b"sowt" if stored_bits == 16 => ("L16", 2, true),
        // QuickTime: a box with one number says that the low byte is first.
        b"in24" => ("L24", 3, entry.child(b"enda").and_then(|enda| be_u16(enda, 0)) == Some(1)),
        // ISO/IEC 23003-5: flags (bit 0: the low byte first), then the bits of a number.
        b"ipcm" => match entry.child(b"pcmC")?.get(4..6)? {
            [flags, 16] => ("L16", 2, flags & 1 != 0),
            [flags, 24] => ("L24", 3, flags & 1 != 0),
            _ => return None,
        },
        b"ulaw" => ("PCMU", 1, false),
        b"alaw" => ("PCMA", 1, false),
        _ => return None,
    };
    // RFC 3551, 6: static types for telephony.
    let number = match (name, rate, channels) {
        (_, _, 0) => return None,
        ("PCMU", 8000, 1) => PCMU,
        ("PCMA", 8000, 1) => PCMA,
        _ => dynamic,
    };
    let layout = PayloadLayout::Pcm(PcmForm { bytes, channels, swaps });
    let encoding = format!("{name}/{rate}/{channels}");
    Some(PayloadFormat::dynamic(layout, number, rate, encoding, String::new()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02X}").unwrap_or_default();
        text
    })
}

/// Base 64 of RFC 4648, 4, as SDP has parameter sets.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

const VIDEO_CLOCK: u32 = 90_000;
/// The static payload type of MPEG audio (RFC 3551, 6).
const MPA: u8 = 14;
/// The static payload types of MPEG video, transport streams and telephony (RFC 3551, 6).
const MPV: u8 = 32;
const MP2T: u8 = 33;
const PCMU: u8 = 0;
const PCMA: u8 = 8;
/// Object types of ISO/IEC 14496-1, table 5.
const MPEG2_VISUAL_FIRST: u8 = 0x60;
const MPEG2_VISUAL_LAST: u8 = 0x65;
const MPEG1_VISUAL: u8 = 0x6a;
