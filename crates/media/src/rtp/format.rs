//! The payload format of a track: which RFC its packets follow, and how SDP describes it.

use crate::boxes::be_u16;
use crate::codec::{AAC, NalConfig, SampleEntry, avc_config, hevc_config};
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
    Aac,
    Ac3,
    Opus,
    MpegAudio,
    /// `frame`: bytes of one instant in all channels. `swaps`: stored with the low byte first.
    L16 {
        frame: usize,
        swaps: bool,
    },
}

impl PayloadFormat {
    /// The format of a track, `None` if its codec has none here. `dynamic`: the payload type where
    /// the codec has no static one, from 96 to 127.
    pub fn of(track: &TrackDescription, dynamic: u8) -> Option<Self> {
        let entry = SampleEntry(&track.sample_entry);
        let rate = track.sample_rate;
        match (track.kind, &entry.kind()) {
            (TrackKind::Video, b"avc1" | b"avc3") => h264(entry.child(b"avcC")?, dynamic),
            (TrackKind::Video, b"hvc1" | b"hev1") => hevc(entry.child(b"hvcC")?, dynamic),
            (TrackKind::Audio, _) if rate == 0 => None,
            (TrackKind::Audio, b"mp4a") => {
                let config = entry.descriptor()?;
                match config.object_type {
                    AAC => aac(track, config.specific, dynamic),
                    0x69 | 0x6b => Some(mpeg_audio()),
                    _ => None,
                }
            }
            (TrackKind::Audio, b".mp3") => Some(mpeg_audio()),
            (TrackKind::Audio, b"ac-3") => {
                let encoding = format!("ac3/{rate}/{}", track.channels);
                Some(Self::dynamic(PayloadLayout::Ac3, dynamic, rate, encoding, String::new()))
            }
            (TrackKind::Audio, b"Opus") if track.channels <= 2 => {
                // RFC 7587, 7: always 48,000 and 2, whatever was encoded.
                let parameters = if track.channels == 2 { "sprop-stereo=1" } else { "" };
                let encoding = "opus/48000/2".to_owned();
                Some(Self::dynamic(
                    PayloadLayout::Opus,
                    dynamic,
                    48_000,
                    encoding,
                    parameters.to_owned(),
                ))
            }
            (TrackKind::Audio, _) => l16(track, entry, dynamic),
            _ => None,
        }
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

/// MP3 has a static payload type, whose clock is that of video.
fn mpeg_audio() -> PayloadFormat {
    let encoding = "MPA/90000".to_owned();
    PayloadFormat::dynamic(PayloadLayout::MpegAudio, MPA, VIDEO_CLOCK, encoding, String::new())
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
    let mut parameters =
        "streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;\
                          indexdeltalength=3;config="
            .to_owned();
    config.iter().for_each(|byte| write!(parameters, "{byte:02X}").unwrap_or_default());
    let rate = track.sample_rate;
    let encoding = format!("MPEG4-GENERIC/{rate}/{}", track.channels);
    Some(PayloadFormat::dynamic(PayloadLayout::Aac, dynamic, rate, encoding, parameters))
}

fn l16(track: &TrackDescription, entry: SampleEntry<'_>, dynamic: u8) -> Option<PayloadFormat> {
    let swaps = match &entry.kind() {
        b"twos" => false,
        b"sowt" => true,
        // ISO/IEC 23003-5: flags (bit 0: the low byte first), then the bits of a number.
        b"ipcm" => match entry.child(b"pcmC")?.get(4..6)? {
            [flags, 16] => flags & 1 != 0,
            _ => return None,
        },
        _ => return None,
    };
    let stored_bits = be_u16(entry.0, 26)?;
    let (channels, rate) = (track.channels, track.sample_rate);
    if stored_bits != 16 || channels == 0 {
        return None;
    }
    let layout = PayloadLayout::L16 { frame: usize::from(channels) * 2, swaps };
    let encoding = format!("L16/{rate}/{channels}");
    Some(PayloadFormat::dynamic(layout, dynamic, rate, encoding, String::new()))
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
