//! MPEG-1 and MPEG-2 video (RFC 2250, 3): packets that end where slices do, as far as they fit.
//!
//! ```text
//!   picture    sequence | GOP | picture | extensions | slice | slice | slice .............. | slice
//!   packets    |hdr ---------------------------------------------- |hdr ------|hdr ------- |hdr ---
//!               headers, and slices that fit whole                  a slice in fragments    whole
//! ```
//! Headers begin a packet, and a packet that begins within a slice ends with it, so that a receiver
//! goes on at the next slice after a lost packet. The optional header extension of MPEG-2 is not
//! sent: it repeats a part of the stream for decoders that lost it.

use super::packetise::{Emit, MOST_PAYLOAD, Packetizer};
use std::ops::Range;

/// What the header in front of each payload says of the picture (RFC 2250, 3.4).
#[derive(Clone, Copy, Debug, Default)]
struct PictureHeader {
    temporal_reference: u16,
    /// I, P, B or D, from 1.
    kind: u8,
    /// The flags and codes of the vectors as bits of the last byte.
    vectors: u8,
}

/// The bytes of the next packet.
#[derive(Debug, Default)]
struct NextPacket {
    bytes: Range<usize>,
    has_sequence: bool,
    begins_slice: bool,
    ends_slice: bool,
}

impl Packetizer {
    /// Makes the packets of a picture, or of two fields.
    pub(super) fn mpeg_video(&mut self, ldu: &[u8], timestamp: u32, emit: &mut Emit<'_>) {
        let mut picture = PictureHeader::default();
        let mut next = NextPacket::default();
        for (code, part) in parts(ldu) {
            let is_slice = SLICES.contains(&code);
            // The headers of a second field.
            let begins = matches!(code, PICTURE | SEQUENCE | GROUP) && next.begins_slice;
            let is_full = next.bytes.len() + part.len() > MOST;
            if begins || is_full && (next.begins_slice || !is_slice) {
                self.mpeg_packet(ldu, &mut next, picture, timestamp, emit);
            }
            if code == PICTURE {
                picture = PictureHeader::of(&ldu[part.clone()]);
            }
            let start = if next.bytes.is_empty() { part.start } else { next.bytes.start };
            next.bytes = start..part.end;
            next.has_sequence |= code == SEQUENCE;
            next.begins_slice |= is_slice;
            next.ends_slice = is_slice;
            let is_fragmented = next.bytes.len() > MOST;
            while next.bytes.len() > MOST {
                let rest = next.bytes.start + MOST..next.bytes.end;
                next.bytes.end = rest.start;
                next.ends_slice = false;
                self.mpeg_packet(ldu, &mut next, picture, timestamp, emit);
                next = NextPacket { bytes: rest, ends_slice: is_slice, ..next };
            }
            if is_fragmented {
                self.mpeg_packet(ldu, &mut next, picture, timestamp, emit);
            }
        }
        self.mpeg_packet(ldu, &mut next, picture, timestamp, emit);
    }

    /// Sends the next packet, if it has bytes.
    fn mpeg_packet(
        &mut self,
        ldu: &[u8],
        next: &mut NextPacket,
        picture: PictureHeader,
        timestamp: u32,
        emit: &mut Emit<'_>,
    ) {
        let NextPacket { bytes, has_sequence, begins_slice, ends_slice } = std::mem::take(next);
        if bytes.is_empty() {
            return;
        }
        let [high, low] = picture.temporal_reference.to_be_bytes();
        let flags =
            u8::from(has_sequence) << 5 | u8::from(begins_slice) << 4 | u8::from(ends_slice) << 3;
        let header = [high, low, flags | picture.kind, picture.vectors];
        let is_last = bytes.end == ldu.len();
        self.packet(&header, &ldu[bytes], is_last, timestamp, emit);
    }
}

impl PictureHeader {
    /// The values of a picture header (ISO/IEC 13818-2, 6.2.3), as far as it goes.
    fn of(header: &[u8]) -> Self {
        let byte = |at: usize| header.get(at).copied().unwrap_or(0);
        let [a, b] = [byte(4), byte(5)];
        let kind = b >> 3 & 7;
        // Behind 10 bits of reference, 3 of the kind and 16 of delay: a flag and a code of three
        // bits forwards, then the same backwards.
        let bits = u32::from_be_bytes([byte(7), byte(8), byte(9), 0]) << 5;
        let [first, ..] = bits.to_be_bytes();
        let (forward, backward) = (first >> 4, first & 0xf);
        let vectors = match kind {
            2 => forward,
            3 => backward << 4 | forward,
            _ => 0,
        };
        Self { temporal_reference: u16::from(a) << 2 | u16::from(b >> 6), kind, vectors }
    }
}

/// The parts of a picture with the codes that they begin with. Bytes in front of the first start
/// code are stuffing.
fn parts(ldu: &[u8]) -> impl Iterator<Item = (u8, Range<usize>)> + '_ {
    // A prefix at the very end has no code.
    let find = |from| start_code(ldu, from).filter(|at| at + START.len() < ldu.len());
    let mut next = find(0);
    std::iter::from_fn(move || {
        let start = next?;
        next = find(start + START.len() + 1);
        Some((ldu[start + START.len()], start..next.unwrap_or(ldu.len())))
    })
}

/// The place of the first start code prefix from `from` on.
fn start_code(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some([a, b, c]) = bytes.get(at..at + START.len()) {
        match (a, b, c) {
            (0, 0, 1) => return Some(at),
            // Neither this byte nor the two before can be in a prefix.
            (_, _, 2..) => at += 3,
            _ => at += 1,
        }
    }
    None
}

/// The prefix of start codes.
const START: [u8; 3] = [0, 0, 1];
const SLICES: std::ops::RangeInclusive<u8> = 0x01..=0xaf;
const PICTURE: u8 = 0x00;
const SEQUENCE: u8 = 0xb3;
const GROUP: u8 = 0xb8;
/// The bytes of a payload behind the header of four bytes.
const MOST: usize = MOST_PAYLOAD - 4;
