//! The LDUs of a transport stream (ISO/IEC 13818-1), found in its bytes as they arrive: its PES
//! packets, with their time stamps.
//!
//! ```text
//!   188 bytes ─▶ PID 0 ────────▶ PAT ─▶ the PID of the map
//!             ─▶ that PID ─────▶ PMT ─▶ pictures and sounds
//!             ─▶ PID of one ───▶ PES packet: PTS, DTS, bytes ──▶ sink(LDU)
//! ```
//!
//! A PES packet of pictures may not state its length: it ends where the next one begins, or with
//! the segment. One of which packets are missing is not passed on. Checksums are not verified,
//! nothing is decrypted, and of several programmes the first one is read.

use crate::boxes::ticks;
use crate::ldus::{FoundLdu, LduPlace};
use units::Moment;

/// Reads one transport stream, or the segments of one, one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransportReader {
    with_bytes: bool,
    /// The bytes of a packet that is not complete.
    partial: Vec<u8>,
    /// Whether a packet has not begun as packets do: nothing more is read until the next segment.
    is_lost: bool,
    tables: [TableBytes; 2],
    map_pid: Option<u16>,
    /// Pictures first.
    streams: Vec<ElementaryStream>,
    /// The last time stamp, extended beyond 33 bits.
    last: Option<i64>,
}

/// The bytes of a table that has not arrived whole.
#[derive(Clone, Debug, Default)]
struct TableBytes(Vec<u8>);

#[derive(Clone, Debug)]
struct ElementaryStream {
    pid: u16,
    is_video: bool,
    /// The continuity counter of the last packet.
    counter: Option<u8>,
    open: Option<OpenPes>,
}

/// A PES packet that has begun.
#[derive(Clone, Debug)]
struct OpenPes {
    /// Whether its first packet says that decoding may begin here.
    sync: bool,
    /// The header, until all of it has arrived.
    head: Vec<u8>,
    stamps: Option<PesStamps>,
    /// Bytes that are left, where the header states the length.
    left: Option<usize>,
    size: usize,
    bytes: Vec<u8>,
    /// When its last byte arrived.
    at: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PesStamps {
    presentation: u64,
    decode: u64,
}

impl TransportReader {
    /// A reader that passes on the bytes of LDUs, or only their places and times.
    pub(crate) fn new(with_bytes: bool) -> Self {
        Self { with_bytes, ..Self::default() }
    }

    /// A segment begins, or the stream goes on elsewhere.
    pub(crate) fn begin(&mut self) {
        self.partial.clear();
        self.is_lost = false;
        for stream in &mut self.streams {
            (stream.open, stream.counter) = (None, None);
        }
    }

    /// Takes the next bytes, and passes on the LDUs that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Moment, sink: &mut dyn FnMut(FoundLdu)) {
        if !self.partial.is_empty() {
            let (first, rest) = bytes.split_at(bytes.len().min(PACKET - self.partial.len()));
            self.partial.extend_from_slice(first);
            bytes = rest;
            if self.partial.len() < PACKET {
                return;
            }
            let packet = std::mem::take(&mut self.partial);
            self.packet(&packet, now, sink);
            self.partial = packet;
            self.partial.clear();
        }
        let packets = bytes.chunks_exact(PACKET);
        let rest = packets.remainder();
        for packet in packets {
            self.packet(packet, now, sink);
        }
        if !self.is_lost {
            self.partial.extend_from_slice(rest);
        }
    }

    /// The segment, or the stream, is complete: passes on what has no stated length.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(FoundLdu)) {
        for number in 0..self.streams.len() {
            self.close(number, sink);
        }
    }

    fn packet(&mut self, packet: &[u8], now: Moment, sink: &mut dyn FnMut(FoundLdu)) {
        let [SYNC, second, third, control, ..] = *packet else {
            self.is_lost = true;
            self.streams.iter_mut().for_each(|stream| stream.open = None);
            return;
        };
        if self.is_lost {
            return;
        }
        let (begins, pid) = (second & 0x40 != 0, u16::from_be_bytes([second & 0x1f, third]));
        let (mut from, mut flags) = (4, 0);
        if control & 0x20 != 0 {
            from = 5 + usize::from(packet[4]);
            flags = if packet[4] > 0 { packet[5] } else { 0 };
        }
        let Some(payload) = packet.get(from..).filter(|_| control & 0x10 != 0) else { return };
        if pid == 0 {
            if let Some(table) = self.tables[0].push(payload, begins, 0) {
                self.map_pid = map_pid_of(&table);
            }
        } else if self.map_pid == Some(pid) {
            if let Some(table) = self.tables[1].push(payload, begins, 2) {
                self.take_map(&table);
            }
        } else if let Some(number) = self.streams.iter().position(|stream| stream.pid == pid) {
            self.media(number, payload, begins, (control & 0xf, flags), now, sink);
        }
    }

    fn media(
        &mut self,
        number: usize,
        payload: &[u8],
        begins: bool,
        (counter, flags): (u8, u8),
        now: Moment,
        sink: &mut dyn FnMut(FoundLdu),
    ) {
        let stream = &mut self.streams[number];
        let is_announced = flags & 0x80 != 0;
        match stream.counter.replace(counter) {
            // A packet may come twice.
            Some(before) if before == counter && !is_announced => return,
            Some(before) if (before + 1) & 0xf != counter && !is_announced => stream.open = None,
            _ => {}
        }
        if begins {
            self.close(number, sink);
            let sync = flags & 0x40 != 0 || !self.streams[number].is_video;
            self.streams[number].open = Some(OpenPes::new(sync, now));
        }
        let with_bytes = self.with_bytes;
        let Some(open) = &mut self.streams[number].open else { return };
        open.at = now;
        match open.push(payload, with_bytes) {
            PesState::Open => {}
            PesState::Complete => self.close(number, sink),
            PesState::Useless => self.streams[number].open = None,
        }
    }

    // Passes on the PES packet that is open, if its length is not stated or it is complete.
    fn close(&mut self, number: usize, sink: &mut dyn FnMut(FoundLdu)) {
        let Some(open) = self.streams[number].open.take() else { return };
        let (Some(stamps), None | Some(0)) = (open.stamps, open.left) else { return };
        let decode = self.extended(stamps.decode);
        // The difference is that of 33 bits.
        let shift = signed_33(stamps.presentation.wrapping_sub(stamps.decode));
        let nanos = shift * 1_000_000_000 / i64::from(CLOCK_HZ);
        let place = LduPlace {
            decode: ticks(u64::try_from(decode).unwrap_or(0), u64::from(CLOCK_HZ)),
            shift: nanos,
            sync: open.sync,
            size: u32::try_from(open.size).unwrap_or(u32::MAX),
            ..LduPlace::default()
        };
        sink(FoundLdu { stream: number, place, bytes: open.bytes, at: open.at });
    }

    fn extended(&mut self, stamp: u64) -> i64 {
        let stamp = stamp.cast_signed();
        let extended = self
            .last
            .map_or(stamp, |last| last + signed_33(stamp.wrapping_sub(last).cast_unsigned()));
        self.last = Some(extended);
        extended
    }

    // The pictures and sounds of the programme; what is open stays so if they are the same.
    fn take_map(&mut self, table: &[u8]) {
        let mut found = streams_of(table);
        found.sort_by_key(|(_, is_video)| !*is_video);
        found.truncate(MOST_STREAMS);
        let own = self.streams.iter().map(|stream| (stream.pid, stream.is_video));
        if !own.eq(found.iter().copied()) {
            let stream =
                |(pid, is_video)| ElementaryStream { pid, is_video, counter: None, open: None };
            self.streams = found.into_iter().map(stream).collect();
        }
    }
}

/// What has become of a PES packet.
enum PesState {
    Open,
    Complete,
    /// A packet without a time, or none at all.
    Useless,
}

impl OpenPes {
    fn new(sync: bool, at: Moment) -> Self {
        let (head, bytes) = (Vec::new(), Vec::new());
        Self { sync, head, stamps: None, left: None, size: 0, bytes, at }
    }

    fn push(&mut self, bytes: &[u8], with_bytes: bool) -> PesState {
        if self.stamps.is_some() {
            return self.push_body(bytes, with_bytes);
        }
        self.head.extend_from_slice(bytes);
        if self.head.len() < PES_HEADER {
            return PesState::Open;
        }
        let end = PES_HEADER + usize::from(self.head[8]);
        if !self.head.starts_with(&[0, 0, 1]) || self.head[6] >> 6 != 2 {
            return PesState::Useless;
        }
        if self.head.len() < end {
            return PesState::Open;
        }
        let head = std::mem::take(&mut self.head);
        let presentation = stamp(&head[PES_HEADER..end]).filter(|_| head[7] & 0x80 != 0);
        let Some(presentation) = presentation else { return PesState::Useless };
        let decode = stamp(&head[PES_HEADER + STAMP..]).filter(|_| head[7] & 0x40 != 0);
        let decode = decode.unwrap_or(presentation);
        self.stamps = Some(PesStamps { presentation, decode });
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        self.left = (length > 0).then(|| (length + 6).saturating_sub(end));
        self.push_body(&head[end..], with_bytes)
    }

    fn push_body(&mut self, bytes: &[u8], with_bytes: bool) -> PesState {
        let taken = self.left.map_or(bytes.len(), |left| left.min(bytes.len()));
        self.size += taken;
        if self.size > LARGEST_LDU {
            return PesState::Useless;
        }
        if with_bytes {
            self.bytes.extend_from_slice(&bytes[..taken]);
        }
        self.left = self.left.map(|left| left - taken);
        if self.left == Some(0) { PesState::Complete } else { PesState::Open }
    }
}

impl TableBytes {
    // Takes the payload of a packet; returns the table of this kind, without its checksum, once it
    // has arrived whole.
    fn push(&mut self, payload: &[u8], begins: bool, kind: u8) -> Option<Vec<u8>> {
        if begins {
            let pointer = usize::from(*payload.first()?);
            self.0.clear();
            self.0.extend_from_slice(payload.get(1 + pointer..)?);
        } else if !self.0.is_empty() {
            self.0.extend_from_slice(payload);
        }
        let [first, high, low, ..] = *self.0 else { return None };
        let length = usize::from(u16::from_be_bytes([high & 0xf, low]));
        if first != kind || length > LONGEST_TABLE {
            self.0.clear();
            return None;
        }
        let table = self.0.get(..(3 + length).checked_sub(CHECKSUM)?)?.to_vec();
        if self.0.len() < 3 + length {
            return None;
        }
        self.0.clear();
        Some(table)
    }
}

/// The PID of the first programme's map (2.4.4.3).
fn map_pid_of(table: &[u8]) -> Option<u16> {
    let programmes = table.get(8..)?.chunks_exact(4);
    let mut maps = programmes.filter(|entry| entry[..2] != [0, 0]);
    maps.next().map(|entry| u16::from_be_bytes([entry[2] & 0x1f, entry[3]]))
}

/// The PIDs of pictures (`true`) and sounds in a map (2.4.4.8).
fn streams_of(table: &[u8]) -> Vec<(u16, bool)> {
    let mut found = Vec::new();
    let Some([high, low]) = table.get(10..12) else { return found };
    let about = usize::from(u16::from_be_bytes([high & 0xf, *low]));
    let mut rest = table.get(12 + about..).unwrap_or_default();
    while let [kind, pid_high, pid_low, high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([high & 0xf, *low]));
        let Some((descriptors, next)) = behind.split_at_checked(length) else { break };
        if let Some(is_video) = is_video(*kind, descriptors) {
            found.push((u16::from_be_bytes([pid_high & 0x1f, *pid_low]), is_video));
        }
        rest = next;
    }
    found
}

/// Whether a stream type (table 2-34, ATSC A/53, and Apple's for encrypted samples) is that of
/// pictures; `None`: neither they nor sound.
fn is_video(kind: u8, descriptors: &[u8]) -> Option<bool> {
    match kind {
        0x01 | 0x02 | 0x10 | 0x1b | 0x24 | 0x33 | 0xdb | 0xea => Some(true),
        0x03 | 0x04 | 0x0f | 0x11 | 0x81 | 0x87 | 0xc1 | 0xc2 | 0xcf => Some(false),
        // Private data, which its descriptors name: AC-3, E-AC-3, DTS, AAC (ETSI EN 300 468), or a
        // registered format.
        0x06 => {
            let mut rest = descriptors;
            while let [tag, length, behind @ ..] = rest {
                let (content, next) = behind.split_at_checked(usize::from(*length))?;
                match (tag, content) {
                    (0x6a | 0x7a..=0x7c, _) => return Some(false),
                    (0x05, [b'O', b'p', b'u', b's', ..] | [b'A' | b'E', b'A' | b'C', ..]) => {
                        return Some(false);
                    }
                    _ => rest = next,
                }
            }
            None
        }
        _ => None,
    }
}

/// A time stamp of 33 bits in five bytes (2.4.3.7).
fn stamp(bytes: &[u8]) -> Option<u64> {
    let [a, b, c, d, e] = *bytes.first_chunk::<STAMP>()?;
    let bits = |byte: u8, mask: u8, left: u32| u64::from(byte & mask) >> 1 << left;
    Some(
        bits(a, 0xe, 30)
            | u64::from(b) << 22
            | bits(c, 0xfe, 15)
            | u64::from(d) << 7
            | bits(e, 0xfe, 0),
    )
}

/// The number that the lower 33 bits hold in two's complement.
fn signed_33(bits: u64) -> i64 {
    (bits << 31).cast_signed() >> 31
}

/// The number of streams of a programme that are read: pictures, and sounds in some languages.
pub(crate) const MOST_STREAMS: usize = 8;

/// Bytes of a packet, and the first of them.
const PACKET: usize = 188;
const SYNC: u8 = 0x47;

/// Bytes of a PES header in front of its optional fields, and of a time stamp there.
const PES_HEADER: usize = 9;
const STAMP: usize = 5;

/// The longest table of a programme (2.4.4.9), and the bytes of its checksum.
const LONGEST_TABLE: usize = 1021;
const CHECKSUM: usize = 4;

/// The largest PES packet that is put together: more than a picture of 8K has.
const LARGEST_LDU: usize = 32 << 20;

/// Ticks of time stamps per second.
const CLOCK_HZ: u32 = 90_000;

#[cfg(test)]
mod tests;
