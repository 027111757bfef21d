//! LDUs into packets. The only state is that of the stream: sequence number, source, counts.

use super::MTU;
use super::format::{PayloadFormat, PayloadLayout, PcmForm};

/// Makes the packets of one track for one receiver.
#[derive(Clone, Debug)]
pub struct Packetizer {
    layout: PayloadLayout,
    payload_type: u8,
    ssrc: u32,
    sequence: u16,
    // Whether the next packet is the first, or the first after a pause.
    resumes: bool,
    packets: u32,
    payload_bytes: u32,
}

/// A packet to be written: its head, whose bytes are made here, and a slice of the LDU.
pub(super) type Emit<'a> = dyn FnMut(&[u8], &[u8]) + 'a;

impl Packetizer {
    /// A stream of packets with this source, whose first packet has this sequence number; both
    /// should be random (RFC 3550, 5.1).
    pub fn new(format: &PayloadFormat, ssrc: u32, sequence: u16) -> Self {
        Self {
            layout: format.layout,
            payload_type: format.payload_type,
            ssrc,
            sequence,
            resumes: true,
            packets: 0,
            payload_bytes: 0,
        }
    }

    /// The synchronization source of the stream.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// The sequence number of the next packet.
    pub fn next_sequence(&self) -> u16 {
        self.sequence
    }

    /// Packets, and bytes of their payloads, so far; both wrap.
    pub fn counts(&self) -> (u32, u32) {
        (self.packets, self.payload_bytes)
    }

    /// Sound goes on after a pause: its next packet is marked, so that receivers may adjust their
    /// delay (RFC 3551, 4.1).
    pub fn resume(&mut self) {
        self.resumes = true;
    }

    /// Makes the packets of an LDU. `emit` gets the head and the rest of each, in order. An LDU
    /// that is not in its codec's form gives packets up to where it is.
    pub fn packetise(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        if ldu.is_empty() {
            return;
        }
        match self.layout {
            PayloadLayout::H264 { length_bytes } => {
                self.nal_units(ldu, length_bytes, 1, timestamp, emit);
            }
            PayloadLayout::Hevc { length_bytes } => {
                self.nal_units(ldu, length_bytes, 2, timestamp, emit);
            }
            PayloadLayout::Aac => self.aac(ldu, timestamp, emit),
            PayloadLayout::Ac3 => self.ac3(ldu, timestamp, emit),
            PayloadLayout::Eac3 => self.eac3(ldu, timestamp, emit),
            PayloadLayout::Opus => {
                let marker = std::mem::take(&mut self.resumes);
                self.packet(&[], ldu, marker, timestamp, emit);
            }
            PayloadLayout::MpegAudio => self.mpeg_audio(ldu, timestamp, emit),
            PayloadLayout::Pcm(form) => self.pcm(ldu, form, timestamp, emit),
            PayloadLayout::MpegVideo => self.mpeg_video(ldu, timestamp, emit),
            PayloadLayout::Mpeg4Visual => {
                let mut parts = ldu.chunks(MOST_PAYLOAD).peekable();
                while let Some(part) = parts.next() {
                    self.packet(&[], part, parts.peek().is_none(), timestamp, emit);
                }
            }
            PayloadLayout::Av1 => self.av1(ldu, timestamp, emit),
            PayloadLayout::TransportStream => {
                for part in ldu.chunks(TRANSPORT_PACKETS * TRANSPORT_PACKET) {
                    // RFC 2250, 2.1: time stamps do not go on from the ones before.
                    let marker = std::mem::take(&mut self.resumes);
                    self.packet(&[], part, marker, timestamp, emit);
                }
            }
            PayloadLayout::Vp9 => self.vp9(ldu, timestamp, emit),
        }
    }

    // RFC 6184, 5.6 and 5.8 (header of one byte); RFC 7798, 4.4.1 and 4.4.3 (of two).
    fn nal_units(
        &mut self,
        ldu: &[u8],
        length_bytes: usize,
        header: usize,
        timestamp: u32,
        emit: &mut Emit<'_>,
    ) {
        let mut units = nal_units(ldu, length_bytes).filter(|unit| unit.len() > header).peekable();
        while let Some(unit) = units.next() {
            // The marker is on the last packet of the access unit.
            let last = units.peek().is_none();
            if unit.len() <= MOST_PAYLOAD {
                self.packet(&[], unit, last, timestamp, emit);
                continue;
            }
            let (indicator, kind): (Vec<u8>, u8) = match header {
                1 => (vec![unit[0] & 0xe0 | FU_A], unit[0] & 0x1f),
                _ => (vec![unit[0] & 0x81 | HEVC_FU << 1, unit[1]], unit[0] >> 1 & 0x3f),
            };
            let rest = &unit[header..];
            let mut fragments = rest.chunks(MOST_PAYLOAD - header - 1).enumerate().peekable();
            while let Some((number, fragment)) = fragments.next() {
                let ends = fragments.peek().is_none();
                let start_end = u8::from(number == 0) << 7 | u8::from(ends) << 6;
                let mut head = indicator.clone();
                head.push(start_end | kind);
                self.packet(&head, fragment, last && ends, timestamp, emit);
            }
        }
    }

    // RFC 3640, 3.3.6: one access unit, or a fragment of it, behind its size.
    fn aac(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        // 13 bits have the size; no encoder makes larger units.
        let Some(size) = u16::try_from(ldu.len()).ok().filter(|size| *size < 1 << 13) else {
            return;
        };
        let [high, low] = (size << 3).to_be_bytes();
        let mut fragments = ldu.chunks(MOST_PAYLOAD - 4).peekable();
        while let Some(fragment) = fragments.next() {
            let last = fragments.peek().is_none();
            self.packet(&[0, 16, high, low], fragment, last, timestamp, emit);
        }
    }

    // RFC 4184, 4.1.1: the type of the frame or fragment, and the number of either.
    fn ac3(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let most = MOST_PAYLOAD - 2;
        let Ok(count) = u8::try_from(ldu.len().div_ceil(most)) else { return };
        for (number, fragment) in ldu.chunks(most).enumerate() {
            let kind = match number {
                0 if count == 1 => 0,
                // Five eighths of a frame can be decoded by themselves.
                0 if fragment.len() * 8 >= ldu.len() * 5 => 1,
                0 => 2,
                _ => 3,
            };
            let last = number + 1 == usize::from(count);
            self.packet(&[kind, count], fragment, last, timestamp, emit);
        }
    }

    // RFC 2250, 3.5: 16 zero bits, and the offset of the fragment in the frame.
    fn mpeg_audio(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let mut offset = 0u16;
        for fragment in ldu.chunks(MOST_PAYLOAD - 4) {
            let [high, low] = offset.to_be_bytes();
            let marker = std::mem::take(&mut self.resumes);
            self.packet(&[0, 0, high, low], fragment, marker, timestamp, emit);
            offset = offset.saturating_add(u16::try_from(fragment.len()).unwrap_or(u16::MAX));
        }
    }

    // RFC 3551, 4.5.11 and 4.5.14, and RFC 3190, 4: numbers with the high byte first, in whole
    // instants.
    fn pcm(&mut self, ldu: &[u8], form: PcmForm, mut timestamp: u32, emit: &mut Emit<'_>) {
        let frame = usize::from(form.channels) * form.bytes;
        let instants = (MOST_PAYLOAD / frame).max(1);
        for part in ldu.chunks(instants * frame) {
            let marker = std::mem::take(&mut self.resumes);
            if form.swaps {
                let mut swapped = part.to_vec();
                swapped.chunks_exact_mut(form.bytes).for_each(<[u8]>::reverse);
                self.packet(&[], &swapped, marker, timestamp, emit);
            } else {
                self.packet(&[], part, marker, timestamp, emit);
            }
            let count = u32::try_from(part.len() / frame).unwrap_or(u32::MAX);
            timestamp = timestamp.wrapping_add(count);
        }
    }

    // RFC 3550, 5.1, and the payload's own header.
    pub(super) fn packet(
        &mut self,
        payload_header: &[u8],
        payload: &[u8],
        marker: bool,
        timestamp: u32,
        emit: &mut Emit<'_>,
    ) {
        let mut head = [0; RTP_HEADER + LONGEST_PAYLOAD_HEADER];
        head[0] = VERSION;
        head[1] = u8::from(marker) << 7 | self.payload_type;
        head[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        head[4..8].copy_from_slice(&timestamp.to_be_bytes());
        head[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
        let length = RTP_HEADER + payload_header.len();
        head[RTP_HEADER..length].copy_from_slice(payload_header);
        emit(&head[..length], payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.packets = self.packets.wrapping_add(1);
        let bytes = u32::try_from(payload_header.len() + payload.len()).unwrap_or(u32::MAX);
        self.payload_bytes = self.payload_bytes.wrapping_add(bytes);
    }
}

/// The NAL units of an LDU, each with its length in front; ends where a length does not fit.
pub(super) fn nal_units(mut ldu: &[u8], length_bytes: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = ldu.split_at_checked(length_bytes)?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (unit, rest) = rest.split_at_checked(length)?;
        ldu = rest;
        Some(unit)
    })
}

/// Version 2, without padding, extension and contributing sources.
const VERSION: u8 = 2 << 6;
const RTP_HEADER: usize = 12;
const LONGEST_PAYLOAD_HEADER: usize = 4;
/// The most bytes of a payload with its own header.
pub(super) const MOST_PAYLOAD: usize = MTU - RTP_HEADER;
/// The NAL unit type of a fragment in RFC 6184.
const FU_A: u8 = 28;
/// The NAL unit type of a fragment in RFC 7798.
const HEVC_FU: u8 = 49;
/// Bytes of a packet of a transport stream, and how many fit into a packet.
const TRANSPORT_PACKET: usize = 188;
const TRANSPORT_PACKETS: usize = MOST_PAYLOAD / TRANSPORT_PACKET;
