//! A part of a segment whose length is known and whose packets are made from stored bytes on their
//! way to the socket.
//!
//! ```text
//!   units     P0 S0 P1 P2 S1 ...        each with its place, so that a range needs only what it
//!                                       touches
//!   parts     S0 S1 .. | P0 P1 P2 ..    what is fetched, in this order: the sound is small and
//!                                       waits in memory, the pictures pass through
//! ```

use super::schedule::Unit;
use super::tables::stream_pid;
use super::{PACKET, StreamForm};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Packets to be made from stored bytes by a [`super::PacketWriter`].
#[derive(Clone, PartialEq, Eq)]
pub struct PacketBlock {
    pub(super) streams: Arc<[BlockStream]>,
    pub(super) units: Vec<BlockUnit>,
    /// The stored size of each LDU of all units, in their order.
    pub(super) sizes: Vec<u32>,
    len: u64,
    /// The stored bytes of streams that do not lead.
    beside: u64,
}

/// A stream of a rendition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockStream {
    /// The number of its track.
    pub(super) track: u16,
    pub(super) form: Arc<StreamForm>,
}

/// A unit in its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockUnit {
    pub(super) unit: Unit,
    /// The place of the unit in the block.
    pub(super) at: u64,
    /// The continuity counter of its first packet.
    pub(super) counter: u8,
    /// The LDUs of the unit in the list of sizes.
    pub(super) sizes: Range<usize>,
    /// The bytes of the unit in the track's data.
    stored: Range<u64>,
}

impl PacketBlock {
    pub(super) fn new(streams: Arc<[BlockStream]>) -> Self {
        Self { streams, units: Vec::new(), sizes: Vec::new(), len: 0, beside: 0 }
    }

    /// Appends a unit whose LDUs have these bytes and sizes. `counter`: of the stream's next
    /// packet, which is advanced.
    pub(super) fn push(
        &mut self,
        unit: Unit,
        stored: Range<u64>,
        sizes: impl Iterator<Item = u32>,
        counter: &mut u8,
    ) {
        let packets = unit.packets(&self.streams[unit.stream].form);
        let first = self.sizes.len();
        self.sizes.extend(sizes);
        // A packet without payload repeats the counter of the one before (2.4.3.3).
        let is_clock = unit.ldus.is_empty();
        let own = if is_clock { counter.wrapping_sub(1) } else { *counter };
        if !is_clock {
            *counter = counter.wrapping_add(packets.to_le_bytes()[0]);
        }
        if unit.stream > 0 {
            self.beside += unit.bytes;
        }
        let sizes = first..self.sizes.len();
        self.units.push(BlockUnit { unit, at: self.len, counter: own & 0xf, sizes, stored });
        self.len += packets * PACKET as u64;
    }

    /// Whether further units belong into another block.
    pub(super) fn is_full(&self) -> bool {
        Self::is_most(self.len, self.beside, self.units.len())
    }

    /// Whether these are as many bytes of packets, stored bytes of sound beside pictures or units
    /// as are sent together.
    pub(super) fn is_most(bytes: u64, sound: u64, units: usize) -> bool {
        bytes >= MOST_BYTES || sound >= MOST_SOUND || units >= MOST_UNITS
    }

    /// The number of bytes of all packets.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no packets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stored bytes that a range of the packets is made from, in the order in which a writer
    /// takes them: track, and bytes of its data.
    pub fn parts(&self, range: &Range<u64>) -> Vec<(u16, Range<u64>)> {
        let units = &self.units[self.touched(range)];
        let mut parts: Vec<(u16, Range<u64>)> = Vec::new();
        // The stream that leads comes last.
        for stream in (0..self.streams.len()).rev() {
            let track = self.streams[stream].track;
            for of in units.iter().filter(|of| of.unit.stream == stream) {
                let mut stored = of.stored.clone();
                if stream == 0 {
                    // Packets are longer than what they are made of. The last one is made whole.
                    let most = (range.end - of.at).saturating_add(MADE_AHEAD);
                    stored.end = stored.end.min(stored.start + most);
                }
                match parts.last_mut() {
                    _ if stored.is_empty() => {}
                    Some((last, bytes))
                        if *last == track && bytes.end == stored.start && !of.unit.begins_run =>
                    {
                        bytes.end = stored.end;
                    }
                    _ => parts.push((track, stored)),
                }
            }
        }
        parts
    }

    /// The units that have bytes in a range of the packets.
    pub(super) fn touched(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.units.partition_point(|of| of.at <= range.start).saturating_sub(1);
        let end = self.units.partition_point(|of| of.at < range.end);
        first..end.max(first)
    }

    /// The bytes of a unit.
    pub(super) fn bytes_of(&self, unit: usize) -> Range<u64> {
        let end = self.units.get(unit + 1).map_or(self.len, |next| next.at);
        self.units[unit].at..end
    }

    /// The packet identifier of a unit.
    pub(super) fn pid(&self, unit: usize) -> u16 {
        stream_pid(self.units[unit].unit.stream)
    }
}

impl fmt::Debug for PacketBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} units in {} bytes", self.units.len(), self.len)
    }
}

/// The most stored bytes that a writer takes beyond the end of a range: a packet, and a length with
/// the byte behind it, at which it looks.
const MADE_AHEAD: u64 = PACKET as u64 + 5;
/// The bytes at which a block is full: as many as one request for stored bytes has.
const MOST_BYTES: u64 = 3 << 20;
/// The stored bytes of sound beside pictures at which a block is full: they wait in memory.
const MOST_SOUND: u64 = 256 << 10;
/// The most units of a block: their list is in memory while it is sent.
const MOST_UNITS: usize = 1 << 13;
