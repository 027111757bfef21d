//! Stored bytes into packets (ISO/IEC 13818-1, 2.4.3): headers, stuffing, and start codes instead
//! of the lengths of NAL units.
//!
//! ```text
//!   stored      length NAL ............................ | length NAL ....
//!   PES         header delimiter sets 00000001 NAL .............. 00000001 NAL ....
//!   packets     |h clock PES ....|h PES ..........|h PES ..........|h stuffing PES|
//! ```
//! This is the one place in which payload is copied: a packet has 184 bytes of it, and lists of so
//! short slices would cost a socket more than the copy. A writer takes stored bytes in pieces of
//! any size and fills what room it is given. It never fails: of stored bytes that are not in their
//! codec's form something is made that no decoder can show, with the announced number of bytes.
//!
//! An access unit that is stored with a delimiter of its own has only this one: what is missing
//! then is stuffing in the PES header, so that lengths do not depend on stored bytes.

use super::block::{BlockUnit, PacketBlock};
use super::form::{Framing, NalCodec, START_CODE};
use super::schedule::{CLOCK_FIELD, DELAY};
use super::tables::SYNC;
use super::{ORIGIN, PACKET, PAYLOAD, StreamForm};
use std::ops::Range;
use std::sync::Arc;

/// Makes the packets of a range of a block.
#[derive(Debug)]
pub struct PacketWriter {
    block: Arc<PacketBlock>,
    /// Units that have not begun, and the end of the range's.
    rest: Range<usize>,
    /// The place in the block behind the last complete packet.
    at: u64,
    range: Range<u64>,
    /// The sound beside pictures; of it so many bytes have been used, and so many are to come.
    sound: Vec<u8>,
    sound_at: usize,
    sound_to_come: usize,
    current: Option<Current>,
    /// The begin of a packet whose stored bytes have not all come.
    packet: [u8; PACKET],
    filled: usize,
}

/// A unit of which packets are being made.
#[derive(Debug)]
struct Current {
    unit: usize,
    /// The number of its packets, and of those that have begun.
    packets: usize,
    begun: usize,
    /// Bytes of its PES packet.
    pes_bytes: usize,
    /// Bytes to be sent before further stored ones.
    made: Vec<u8>,
    made_at: usize,
    /// The LDUs of the unit that have not begun, in the block's list of sizes.
    ldus: Range<usize>,
    /// Stored bytes of the LDU that have not been used.
    ldu_left: usize,
    /// Stored bytes of the NAL unit that have not been used.
    nal_left: usize,
    /// Stored bytes that are dropped.
    dropped: usize,
    /// Stored bytes that were looked at and have not been used.
    ahead: Ahead,
}

/// Some stored bytes that have been read and not used: a length, and the first byte of a NAL unit.
#[derive(Debug, Default)]
struct Ahead {
    bytes: [u8; START_CODE.len() + 1],
    used: usize,
    len: usize,
}

impl PacketWriter {
    /// A writer of a range of a block's packets. It takes the bytes of [`PacketBlock::parts`], all
    /// of them, though it may be done before.
    pub fn new(block: Arc<PacketBlock>, range: Range<u64>) -> Self {
        let range = range.start..range.end.min(block.len());
        let rest = block.touched(&range);
        let beside = block.units[rest.clone()].iter().filter(|of| of.unit.stream > 0);
        let sound: u64 = beside.map(|of| of.unit.bytes).sum();
        Self {
            at: rest.clone().next().map_or(range.start, |first| block.units[first].at),
            rest,
            range,
            block,
            sound: Vec::new(),
            sound_at: 0,
            sound_to_come: usize::try_from(sound).expect("a part of a segment"),
            current: None,
            packet: [0; PACKET],
            filled: 0,
        }
    }

    /// Whether all packets of the range have been made.
    pub fn is_done(&self) -> bool {
        self.at >= self.range.end
    }

    /// Makes packets of `stored`, from which it removes what it has used, in whole packets at the
    /// beginning of `room`, which should have room for several. Returns the part of `room` that has
    /// bytes of the range; empty: it needs further stored bytes, or is done.
    pub fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize> {
        self.take_sound(stored);
        let mut made = 0;
        while self.sound_to_come == 0
            && !self.is_done()
            && let Some(packet) = room.get_mut(made..made + PACKET)
        {
            packet[..self.filled].copy_from_slice(&self.packet[..self.filled]);
            if !self.make_packet(stored, packet) {
                self.packet[..self.filled].copy_from_slice(&packet[..self.filled]);
                break;
            }
            self.filled = 0;
            self.at += PACKET as u64;
            // A packet in front of the range is overwritten by the next.
            if self.at > self.range.start {
                made += PACKET;
            }
        }
        if self.is_done() {
            // The range ends within a unit.
            *stored = &[];
        }
        // The range may begin and end within packets.
        let first = self.at - made as u64;
        let within = |at: u64| usize::try_from(at.saturating_sub(first)).expect("in the room");
        let end = within(self.at.min(self.range.end));
        within(self.range.start).min(end)..end
    }

    /// Keeps the sound, which comes before the pictures that it is sent with.
    fn take_sound(&mut self, stored: &mut &[u8]) {
        let (sound, rest) = stored.split_at(self.sound_to_come.min(stored.len()));
        self.sound.extend_from_slice(sound);
        self.sound_to_come -= sound.len();
        *stored = rest;
    }

    /// Fills the rest of a packet. False: stored bytes are missing.
    fn make_packet(&mut self, stored: &mut &[u8], packet: &mut [u8]) -> bool {
        if self.filled == 0 {
            if self.current.as_ref().is_none_or(|current| current.begun == current.packets) {
                let Some(unit) = self.rest.next() else { return false };
                self.current = Some(Current::new(unit, &self.block));
            }
            let current = self.current.as_mut().expect("just made");
            let of = &self.block.units[current.unit];
            if current.begun == 0 && !of.unit.ldus.is_empty() {
                let form = &*self.block.streams[of.unit.stream].form;
                if !current.begin(of, form, &self.block.sizes, stored) {
                    return false;
                }
            }
            self.filled = current.write_header(of, self.block.pid(current.unit), packet);
        }
        let current = self.current.as_mut().expect("a packet has a unit");
        let of = &self.block.units[current.unit];
        let form = &*self.block.streams[of.unit.stream].form;
        if of.unit.stream == 0 {
            current.fill(form, &self.block.sizes, stored, &mut packet[..], &mut self.filled);
        } else {
            let mut sound = &self.sound[self.sound_at..];
            current.fill(form, &self.block.sizes, &mut sound, &mut packet[..], &mut self.filled);
            self.sound_at = self.sound.len() - sound.len();
        }
        self.filled == PACKET
    }
}

impl Current {
    fn new(unit: usize, block: &PacketBlock) -> Self {
        let of = &block.units[unit];
        let bytes = block.bytes_of(unit);
        let form = &block.streams[of.unit.stream].form;
        let pes_bytes = if of.unit.ldus.is_empty() { 0 } else { of.unit.pes_bytes(form) };
        let number = |bytes: u64| usize::try_from(bytes).expect("in memory");
        Self {
            unit,
            packets: number((bytes.end - bytes.start) / PACKET as u64),
            begun: 0,
            pes_bytes: number(pes_bytes),
            made: Vec::new(),
            made_at: 0,
            ldus: of.sizes.clone(),
            ldu_left: 0,
            nal_left: 0,
            dropped: 0,
            ahead: Ahead::default(),
        }
    }

    /// Makes the PES header and what is in front of the first LDU. False: stored bytes are missing.
    fn begin(
        &mut self,
        of: &BlockUnit,
        form: &StreamForm,
        sizes: &[u32],
        stored: &mut &[u8],
    ) -> bool {
        let size = of.sizes.clone().next().map_or(0, |first| sizes[first]);
        let mut stuffing = 0;
        if let Framing::NalUnits { codec, .. } = &form.framing {
            let wanted = self.ahead.bytes.len().min(size as usize);
            if !self.ahead.look(wanted, stored) {
                return false;
            }
            stuffing = self.ahead.own_delimiter(*codec, size).unwrap_or(0);
        }
        write_pes_header(&mut self.made, of, form, self.pes_bytes, stuffing);
        self.next_ldu(form, sizes, of.unit.sync);
        // Stored bytes that are not sent are missing behind the header, where stuffing is instead.
        self.dropped = stuffing;
        true
    }

    /// Makes what is in front of the next LDU. `sync`: decoding may start there.
    fn next_ldu(&mut self, form: &StreamForm, sizes: &[u32], sync: bool) {
        let Some(number) = self.ldus.next() else { return };
        form.write_prefix(&mut self.made, sizes[number], sync);
        self.ldu_left = sizes[number] as usize;
    }

    /// Writes the header of the next packet and its adaptation field; returns their length.
    fn write_header(&mut self, of: &BlockUnit, pid: u16, packet: &mut [u8]) -> usize {
        let (is_first, is_last) = (self.begun == 0, self.begun + 1 == self.packets);
        let clock = if is_first && of.unit.has_clock { CLOCK_FIELD } else { 0 };
        let all = if of.unit.has_clock { CLOCK_FIELD } else { 0 } + self.pes_bytes;
        let stuffing = if is_last { self.packets * PAYLOAD - all } else { 0 };
        let field = clock + stuffing;
        let has_payload = self.pes_bytes > 0;
        let [high, low] = pid.to_be_bytes();
        let starts = u8::from(is_first && has_payload) << 6;
        let control = u8::from(field > 0) << 5 | u8::from(has_payload) << 4;
        let passed = if has_payload { self.begun } else { 0 };
        let counter = of.counter.wrapping_add(passed.to_le_bytes()[0]) & 0xf;
        packet[..4].copy_from_slice(&[SYNC, starts | high, low, control | counter]);
        self.begun += 1;
        let head = &mut packet[4..];
        if field > 0 {
            head[..field].fill(0xff);
            head[0] = u8::try_from(field - 1).expect("within a packet");
        }
        if field > 1 {
            let may_start = is_first && of.unit.sync;
            head[1] = u8::from(may_start) << 6 | u8::from(clock > 0) << 4;
        }
        if clock > 0 {
            head[2..CLOCK_FIELD].copy_from_slice(&clock_reference(of.unit.at - DELAY));
        }
        4 + field
    }

    /// Fills a packet from `filled` on, as far as stored bytes are there.
    fn fill(
        &mut self,
        form: &StreamForm,
        sizes: &[u32],
        stored: &mut &[u8],
        packet: &mut [u8],
        filled: &mut usize,
    ) {
        while *filled < packet.len() {
            let room = &mut packet[*filled..];
            if !self.made.is_empty() {
                *filled += self.take_made(room);
            } else if self.dropped > 0 {
                if !self.drop_stored(stored) {
                    return;
                }
            } else if self.ldu_left == 0 {
                if self.ldus.is_empty() {
                    return;
                }
                // Only pictures have something in front where decoding may start.
                self.next_ldu(form, sizes, false);
            } else if self.nal_left == 0 && matches!(form.framing, Framing::NalUnits { .. }) {
                if !self.begin_nal(stored) {
                    return;
                }
            } else {
                let is_nal = self.nal_left > 0;
                let most = if is_nal { self.nal_left } else { self.ldu_left }.min(room.len());
                let count = self.ahead.take(stored, &mut room[..most]);
                if count == 0 {
                    return;
                }
                *filled += count;
                self.ldu_left -= count;
                self.nal_left -= if is_nal { count } else { 0 };
            }
        }
    }

    /// Moves made bytes into `room`; returns their number.
    fn take_made(&mut self, room: &mut [u8]) -> usize {
        let count = room.len().min(self.made.len() - self.made_at);
        room[..count].copy_from_slice(&self.made[self.made_at..self.made_at + count]);
        self.made_at += count;
        if self.made_at == self.made.len() {
            self.made.clear();
            self.made_at = 0;
        }
        count
    }

    /// Reads a length and makes a start code of it. False: stored bytes are missing.
    fn begin_nal(&mut self, stored: &mut &[u8]) -> bool {
        let wanted = START_CODE.len().min(self.ldu_left);
        if !self.ahead.look(wanted, stored) {
            return false;
        }
        let mut length = [0; START_CODE.len()];
        let taken = self.ahead.take(&mut &[][..], &mut length[..wanted]);
        self.ldu_left -= taken;
        if taken < START_CODE.len() {
            // Less than a length is left: zeros may follow an access unit.
            self.made.resize(taken, 0);
        } else {
            self.made.extend_from_slice(&START_CODE);
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            self.nal_left = length.min(self.ldu_left);
        }
        true
    }

    /// Drops stored bytes. False: further ones are missing.
    fn drop_stored(&mut self, stored: &mut &[u8]) -> bool {
        let mut sink = [0; MOST_STUFFING];
        while self.dropped > 0 {
            let most = self.dropped.min(sink.len());
            let count = self.ahead.take(stored, &mut sink[..most]);
            if count == 0 {
                return false;
            }
            self.dropped -= count;
            self.ldu_left -= count;
        }
        true
    }
}

impl Ahead {
    /// Reads until so many bytes are there. False: stored bytes are missing.
    fn look(&mut self, wanted: usize, stored: &mut &[u8]) -> bool {
        let have = self.len - self.used;
        self.bytes.copy_within(self.used..self.len, 0);
        (self.used, self.len) = (0, have);
        if let Some(missing) = wanted.checked_sub(have) {
            let (bytes, rest) = stored.split_at(missing.min(stored.len()));
            self.bytes[have..have + bytes.len()].copy_from_slice(bytes);
            self.len += bytes.len();
            *stored = rest;
        }
        self.len >= wanted
    }

    /// Takes bytes that were looked at, then stored ones; returns their number.
    fn take(&mut self, stored: &mut &[u8], to: &mut [u8]) -> usize {
        if self.used < self.len {
            let count = to.len().min(self.len - self.used);
            to[..count].copy_from_slice(&self.bytes[self.used..self.used + count]);
            self.used += count;
            return count;
        }
        let (bytes, rest) = stored.split_at(to.len().min(stored.len()));
        to[..bytes.len()].copy_from_slice(bytes);
        *stored = rest;
        bytes.len()
    }

    /// The length of an access unit delimiter at the beginning of an LDU of `size` bytes, with its
    /// own length; `None` where there is none.
    fn own_delimiter(&self, codec: NalCodec, size: u32) -> Option<usize> {
        let [a, b, c, d, first] = *self.bytes.first_chunk::<5>().filter(|_| self.len == 5)?;
        let length = u32::from_be_bytes([a, b, c, d]);
        let whole = usize::try_from(length.checked_add(4)?).ok()?;
        let fits = length > 0 && whole <= MOST_STUFFING && whole <= size as usize;
        (fits && codec.is_delimiter(first)).then_some(whole)
    }
}

/// ISO/IEC 13818-1, 2.4.3.6. `pes_bytes`: of the whole packet, without its stuffing.
fn write_pes_header(
    out: &mut Vec<u8>,
    of: &BlockUnit,
    form: &StreamForm,
    pes_bytes: usize,
    stuffing: usize,
) {
    let unit = &of.unit;
    // Behind the length. Pictures that are longer have none.
    let length = u16::try_from(pes_bytes - 6).unwrap_or(0);
    out.extend_from_slice(&[0, 0, 1, form.stream_id]);
    out.extend_from_slice(&length.to_be_bytes());
    let has_both = unit.decoded != unit.shown;
    let stamps = unit.pes_header() - 9 + stuffing;
    let stamps = u8::try_from(stamps).expect("some bytes");
    // An access unit begins behind the header.
    out.extend_from_slice(&[0x84, 0x80 | u8::from(has_both) << 6, stamps]);
    out.extend_from_slice(&stamp(2 | u8::from(has_both), unit.shown));
    if has_both {
        out.extend_from_slice(&stamp(1, unit.decoded));
    }
    out.resize(out.len() + stuffing, 0xff);
}

/// A time stamp of 33 bits between markers, behind four bits that name it.
fn stamp(name: u8, at: i64) -> [u8; 5] {
    let at = wrapped(at);
    let byte = |shift: u32| (at >> shift & 0xff).to_le_bytes()[0];
    [name << 4 | byte(30) << 1 | 1, byte(22), byte(14) | 1, byte(7), byte(0) << 1 | 1]
}

/// 33 bits of 90 kHz, six reserved ones, and 9 bits of 27 MHz, which are zero (2.4.3.4).
fn clock_reference(at: i64) -> [u8; 6] {
    let at = wrapped(at);
    let [_, _, _, a, b, c, d, e] = (at << 7).to_be_bytes();
    [a, b, c, d, e | 0x7e, 0]
}

/// A time of the title as the clock has it: 33 bits, which wrap.
pub(super) fn wrapped(at: i64) -> u64 {
    let at = i128::from(at) + i128::from(ORIGIN);
    u64::try_from(at.rem_euclid(1 << 33)).expect("33 bits")
}

/// Stuffing bytes of a PES header (2.4.3.7).
const MOST_STUFFING: usize = 32;
