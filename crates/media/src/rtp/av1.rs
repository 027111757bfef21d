//! AV1 (RTP Payload Format For AV1, version 1.0 of the Alliance for Open Media) and VP9 (RFC 9628).
//!
//! ```text
//!   temporal unit    delimiter | sequence header | frame .....................
//!   packets                     |hdr sequence    |hdr frame ..... |hdr frame ...
//! ```
//! Of AV1 each packet has one OBU or a fragment of one, without its size, which the packet has.
//! Temporal delimiters and tile lists are not sent. Of VP9 a packet has a part of a frame, or of a
//! superframe as it is stored.

use super::packetise::{Emit, MOST_PAYLOAD, Packetizer};

impl Packetizer {
    /// Makes the packets of a temporal unit.
    pub(super) fn av1(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let is_sent = |obu: &Obu<'_>| !matches!(obu.kind(), TEMPORAL_DELIMITER | TILE_LIST);
        let mut sent = obus(ldu).filter(is_sent).peekable();
        // A sequence header is stored with each frame at which decoding may start.
        let is_new = obus(ldu).any(|obu| obu.kind() == SEQUENCE_HEADER);
        let mut is_first = is_new;
        while let Some(obu) = sent.next() {
            let is_last_obu = sent.peek().is_none();
            let (head, mut rest) = (&obu.header[..obu.header_len], obu.payload);
            let mut begins = true;
            loop {
                let header = if begins { head } else { &[] };
                let (part, behind) = rest.split_at(rest.len().min(MOST_PAYLOAD - 1 - header.len()));
                let goes_on = !behind.is_empty();
                let aggregation = u8::from(!begins) << 7
                    | u8::from(goes_on) << 6
                    | ONE_ELEMENT
                    | u8::from(std::mem::take(&mut is_first)) << 3;
                let mut payload_header = [aggregation, 0, 0];
                payload_header[1..=header.len()].copy_from_slice(header);
                let marker = is_last_obu && !goes_on;
                self.packet(&payload_header[..=header.len()], part, marker, timestamp, emit);
                if !goes_on {
                    break;
                }
                (rest, begins) = (behind, false);
            }
        }
    }

    /// Makes the packets of a VP9 frame: the descriptor of RFC 9628, 4.2, in its shortest form,
    /// without layers and picture numbers.
    pub(super) fn vp9(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let predicted = if is_vp9_key_frame(ldu) { 0 } else { VP9_PREDICTED };
        let mut parts = ldu.chunks(MOST_PAYLOAD - 1).peekable();
        let mut begins = VP9_BEGINS;
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let ends = if is_last { VP9_ENDS } else { 0 };
            let descriptor = predicted | std::mem::take(&mut begins) | ends;
            self.packet(&[descriptor], part, is_last, timestamp, emit);
        }
    }
}

/// An open bitstream unit as it is sent.
struct Obu<'a> {
    /// One or two bytes, without the flag of the size.
    header: [u8; 2],
    header_len: usize,
    payload: &'a [u8],
}

impl Obu<'_> {
    fn kind(&self) -> u8 {
        self.header[0] >> 3 & 0xf
    }
}

/// The units of an LDU (AV1 specification, 5.3); ends where one does not fit.
fn obus(mut ldu: &[u8]) -> impl Iterator<Item = Obu<'_>> {
    std::iter::from_fn(move || {
        let first = *ldu.first()?;
        let header_len = if first & HAS_EXTENSION == 0 { 1 } else { 2 };
        let (header, mut rest) = ldu.split_at_checked(header_len)?;
        let mut size = rest.len();
        if first & HAS_SIZE != 0 {
            size = usize::try_from(leb128(&mut rest)?).ok()?;
        }
        let (payload, rest) = rest.split_at_checked(size)?;
        ldu = rest;
        let extension = header.get(1).copied().unwrap_or(0);
        Some(Obu { header: [first & !HAS_SIZE, extension], header_len, payload })
    })
}

/// A number in groups of seven bits, the lowest first (AV1 specification, 4.10.5).
fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..56).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Whether a VP9 frame is a key frame, by the first bits of its header (VP9 specification, 6.2):
/// two of a mark, two of the profile, a reserved one in profile 3, one if a frame that exists is
/// shown, and the type.
fn is_vp9_key_frame(frame: &[u8]) -> bool {
    let Some(first) = frame.first() else { return false };
    let shift = if first >> 4 & 3 == 3 { 1 } else { 2 };
    first >> shift & 3 == 0
}

/// The number of elements of a packet, W in its header.
const ONE_ELEMENT: u8 = 1 << 4;
const HAS_EXTENSION: u8 = 1 << 2;
const HAS_SIZE: u8 = 1 << 1;
const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const VP9_PREDICTED: u8 = 1 << 6;
const VP9_BEGINS: u8 = 1 << 3;
const VP9_ENDS: u8 = 1 << 2;
