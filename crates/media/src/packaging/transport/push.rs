//! A transport stream for a sender that has its own pace: unit by unit, each with the time at which
//! it is sent.
//!
//! ```text
//!   title time   base ......... at ........................ decoded, shown
//!   sent         origin         origin + (at - base)
//!   clock                       at - DELAY                  at
//! ```
//! The clock in the packets of a unit is the time of its sending, half a second before it is
//! decoded. The units are those of the segments of HLS. PAT and PMT are repeated, since packets may
//! be lost, and continuity counters go on when the stream is continued elsewhere in the title.

use super::block::{BlockStream, PacketBlock};
use super::plan::Rendition;
use super::schedule::{self, TABLES_DISTANCE, Unit, media_time, to_clock};
use super::tables::tables as make_tables;
use super::writer::PacketWriter;
use crate::packaging::Packaging;
use crate::packaging::segments::data;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use units::{MediaTime, Timescale};

/// The units of a transport stream from a position on.
#[derive(Debug)]
pub struct TransportPush {
    lead: u16,
    streams: Arc<[BlockStream]>,
    /// The number of the segment behind the units.
    segment: usize,
    units: VecDeque<Unit>,
    /// Pictures shown before this time cannot be decoded from the position on.
    shown_from: i64,
    counters: TransportCounters,
    /// When the tables were sent last.
    tables_at: Option<i64>,
    is_discontinuous: bool,
}

/// The continuity counters of a transport stream, to go on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    tables: u8,
    streams: [u8; 2],
    /// Whether anything has been sent.
    is_used: bool,
}

/// Packets that are sent together.
#[derive(Debug)]
pub struct TransportUnit {
    /// The stored bytes that they are made from: the number of the stream, and bytes of its track.
    pub stream: usize,
    /// See `stream`; empty for the clock alone.
    pub bytes: Range<u64>,
    /// When they are sent, on the clock of the title.
    pub at: MediaTime,
    tables: Vec<u8>,
    block: Arc<PacketBlock>,
    is_discontinuous: bool,
}

impl Packaging {
    /// The transport stream that this track leads, for a sender at its own pace, from the last
    /// picture that decoding may start at and that is shown by `from`. `None` if the track has no
    /// form in a transport stream.
    pub fn transport_push(
        &self,
        track: u16,
        from: MediaTime,
        counters: TransportCounters,
    ) -> Option<TransportPush> {
        let rendition = self.rendition(track)?;
        let mut push = TransportPush {
            lead: track,
            streams: rendition.streams(self)?,
            segment: 0,
            units: VecDeque::new(),
            shown_from: i64::MIN,
            counters,
            tables_at: None,
            is_discontinuous: counters.is_used,
        };
        let from = to_clock(from.0, Timescale(1_000_000_000));
        push.segment = rendition.starts.partition_point(|start| *start <= from).saturating_sub(1);
        while push.load(self, rendition) && from > 0 {
            let is_entry = |unit: &Unit| {
                unit.stream == 0 && !unit.ldus.is_empty() && unit.sync && unit.shown <= from
            };
            if let Some(entry) = push.units.iter().rposition(is_entry) {
                // From the title's start on all can be decoded.
                if push.units[entry].ldus.start == 0 {
                    break;
                }
                push.shown_from = push.units[entry].shown;
                push.units.drain(..entry);
                break;
            }
            // The first picture of the segment is decoded by then, and shown later.
            let Some(before) = push.segment.checked_sub(2) else { break };
            push.segment = before;
            push.units.clear();
        }
        Some(push)
    }
}

impl TransportPush {
    /// The position at which it starts: when its first picture is shown.
    pub fn first(&self) -> MediaTime {
        media_time(self.shown_from.max(0))
    }

    /// The tracks that its bytes are of, and the first byte of each.
    pub fn first_bytes(&self, packaging: &Packaging) -> Vec<(u16, u64)> {
        let Some(rendition) = packaging.rendition(self.lead) else { return Vec::new() };
        let first = |(stream, &track): (usize, &u16)| {
            let index = &packaging.index.tracks[usize::from(track)].ldus;
            let mut units = self.units.iter();
            let unit = units.find(|unit| unit.stream == stream && !unit.ldus.is_empty());
            let ldu = unit.map_or_else(
                || rendition.sound_end(self.segment.wrapping_sub(1)).unwrap_or(index.len()),
                |unit| unit.ldus.start,
            );
            (track, data(index, ldu..index.len()).start)
        };
        rendition.tracks.iter().enumerate().map(first).collect()
    }

    /// The continuity counters to go on with.
    pub fn counters(&self) -> TransportCounters {
        self.counters
    }

    /// The next unit; `None` at the end of the title. `packaging` is the one that it was made from.
    pub fn next(&mut self, packaging: &Packaging) -> Option<TransportUnit> {
        let rendition = packaging.rendition(self.lead)?;
        while self.units.is_empty() {
            if !self.load(packaging, rendition) {
                return None;
            }
        }
        let mut unit = self.units.pop_front()?;
        let index = &packaging.index.tracks[usize::from(rendition.tracks[unit.stream])].ldus;
        let is_clock = unit.ldus.is_empty();
        let bytes = if is_clock { 0..0 } else { data(index, unit.ldus.clone()) };
        if unit.stream == 0 && !is_clock && unit.shown < self.shown_from {
            // The clock is sent in its place.
            (unit.ldus, unit.bytes, unit.sync) = (0..0, 0, false);
        }
        let mut tables = Vec::new();
        if self.tables_at.is_none_or(|last| unit.at - last >= TABLES_DISTANCE) {
            tables = make_tables(self.counters.tables, &self.streams);
            self.counters.tables = self.counters.tables.wrapping_add(1);
            self.tables_at = Some(unit.at);
        }
        let (stream, at) = (unit.stream, media_time(unit.at));
        let sizes = index.range(unit.ldus.clone()).map(|ldu| ldu.size);
        let mut block = PacketBlock::new(Arc::clone(&self.streams));
        let stored = if unit.ldus.is_empty() { 0..0 } else { bytes.clone() };
        block.push(unit, stored, sizes, &mut self.counters.streams[stream]);
        self.counters.is_used = true;
        let is_discontinuous = std::mem::take(&mut self.is_discontinuous);
        Some(TransportUnit { stream, bytes, at, tables, block: Arc::new(block), is_discontinuous })
    }

    /// Appends the units of the next segment. False: there is none.
    fn load(&mut self, packaging: &Packaging, rendition: &Rendition) -> bool {
        if self.segment >= rendition.starts.len() {
            return false;
        }
        let (span, sources) =
            (rendition.span(packaging, self.segment), rendition.sources(packaging));
        schedule::units(&span, &sources, &mut |unit| self.units.push_back(unit));
        self.segment += 1;
        true
    }
}

impl TransportUnit {
    /// The packets, from all of its stored bytes.
    pub fn packets(&self, mut stored: &[u8]) -> Vec<u8> {
        let before = self.tables.len();
        let length = usize::try_from(self.block.len()).expect("in memory");
        let mut out = self.tables.clone();
        out.resize(before + length, 0);
        let mut writer = PacketWriter::new(Arc::clone(&self.block), 0..self.block.len());
        let mut made = before;
        while !writer.is_done() {
            let part = writer.write(&mut stored, &mut out[made..]);
            if part.is_empty() {
                break;
            }
            made += part.len();
        }
        out.truncate(made);
        if self.is_discontinuous
            && let Some(flags) = out.get_mut(before + FLAGS)
        {
            *flags |= DISCONTINUITY;
        }
        out
    }
}

/// The place of the flags in a packet whose adaptation field has a clock, and the flag that its
/// clock does not go on from the one before (ISO/IEC 13818-1, 2.4.3.5).
const FLAGS: usize = 5;
const DISCONTINUITY: u8 = 0x80;
