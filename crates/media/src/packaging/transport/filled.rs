//! A title as one file at a constant rate: the packets of a [`ConstantRate`](super::ConstantRate),
//! each at a place that is known before, so that any range of the file can be made alone.
//!
//! ```text
//!   packets    |t|t|a|a|0|0|0|b|c|b|b|0|0|...    t: table, c: clock time alone, 0: null packet
//!   parts      |<-- part 0 -->|<-- part 1 --     each ends with the last packet of a unit
//!   file       length = rate x duration, in whole packets
//! ```
//! The plan of a file has what each part begins with. The packets of a part are placed again when
//! they are sent: a list of all would be longer than the title's index.
//!
//! Nothing is paced here. Packets that had to wait at the title's end make the file longer.

use super::PACKET;
use super::block::PacketBlock;
use super::constant_rate::{ClockLine, Pace, clock_packet, null_packet};
use super::form::StreamForm;
use super::schedule::{self, TABLES_DISTANCE, Unit, media_time};
use super::tables::{stream_pid, tables};
use super::writer::PacketWriter;
use crate::packaging::Packaging;
use crate::packaging::body::{Body, Slice};
use crate::packaging::segments::data;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use units::BitRate;

/// A part of a file at a constant rate, of which a [`FilledWriter`] makes packets.
pub struct FilledPart {
    stream: Arc<FilledStream>,
    start: FilledStart,
    packets: u64,
}

/// What all parts of a file share.
struct FilledStream {
    packaging: Arc<Packaging>,
    lead: u16,
    pace: Pace,
    /// The time of the first packet on the clock of the title.
    origin: i64,
    line: ClockLine,
}

/// What a part begins with: a unit of a segment, and the state before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FilledStart {
    segment: usize,
    unit: usize,
    cursor: Cursor,
}

/// The state between two packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    /// The number of packets before.
    place: u64,
    /// The places at which the clock was sent first and last.
    first_clock: Option<u64>,
    clock: Option<u64>,
    /// When the tables were sent last.
    tables_at: Option<i64>,
    /// The continuity counters of the next tables, and of each stream's next packet.
    tables: u8,
    counters: [u8; 2],
}

/// What is at one place or several.
#[derive(Clone, Copy, Debug)]
enum Item {
    Null(u64),
    /// The clock alone, with this counter.
    Clock(u8),
    /// A table by its number in the PAT and the PMT, with this counter.
    Table(usize, u8),
    /// Packets of the unit.
    Made(u64),
}

/// Where the packets of a part are.
struct PartLayout {
    block: Arc<PacketBlock>,
    runs: Vec<PlacedRun>,
}

/// Packets of one kind from a place in the part on.
struct PlacedRun {
    at: u64,
    /// The packets of the block before it.
    made: u64,
    kind: PlacedKind,
}

enum PlacedKind {
    Null,
    /// The clock alone, or a table.
    Whole(Vec<u8>),
    Made,
}

/// Makes the packets of a range of a part.
#[derive(Debug)]
pub struct FilledWriter {
    part: Arc<FilledPart>,
    layout: PartLayout,
    units: PacketWriter,
    range: Range<u64>,
    /// The next packet, the end of the range's, and the run that the next one is in.
    at: u64,
    end: u64,
    run: usize,
}

impl Packaging {
    /// The transport stream that this track leads, from the title's start to its end, as a file at
    /// a constant rate. `None` if the track has no form in a transport stream. Takes time in
    /// proportion to the title's LDUs.
    pub fn transport_file(self: &Arc<Self>, track: u16, rate: BitRate) -> Option<Body> {
        let rendition = self.rendition(track)?;
        let (pace, sources) = (Pace::new(rate), rendition.sources(self));
        let (mut cursor, mut parts) = (Cursor::default(), vec![FilledStart::default()]);
        let (mut first, mut line, mut size) = (None, None, PartSize::default());
        for segment in 0..rendition.starts.len() {
            let mut number = 0;
            schedule::units(&rendition.span(self, segment), &sources, &mut |unit| {
                let origin = *first.get_or_insert(unit.at);
                if size.is_full(cursor.place) {
                    parts.push(FilledStart { segment, unit: number, cursor });
                    size = PartSize { start: cursor.place, ..PartSize::default() };
                }
                cursor.add(&unit, sources[unit.stream].form, pace, origin, &mut |_| {});
                if let Some(place) = cursor.first_clock {
                    line.get_or_insert_with(|| ClockLine::of_unit(place, unit.at));
                }
                size.add(&unit);
                number += 1;
            });
        }
        let length: u64 = rendition.lengths.iter().sum();
        let packets = pace.place_of(i128::from(length) * 1000).max(cursor.place);
        let stream = Arc::new(FilledStream {
            packaging: Arc::clone(self),
            lead: track,
            pace,
            origin: first?,
            line: line?,
        });
        let ends = parts.iter().skip(1).map(|next| next.cursor.place).chain([packets]);
        let slices = parts.iter().zip(ends).map(|(start, end)| {
            let packets = end - start.cursor.place;
            let part = FilledPart { stream: Arc::clone(&stream), start: *start, packets };
            Slice::Filled { range: 0..packets * PACKET as u64, part: Arc::new(part) }
        });
        Some(slices.collect())
    }
}

/// How much is in a part.
#[derive(Clone, Copy, Debug, Default)]
struct PartSize {
    /// The place at which it begins.
    start: u64,
    sound: u64,
    units: usize,
}

impl PartSize {
    fn add(&mut self, unit: &Unit) {
        self.units += 1;
        self.sound += if unit.stream > 0 { unit.bytes } else { 0 };
    }

    /// Whether further units belong into another part.
    fn is_full(&self, place: u64) -> bool {
        let bytes = (place - self.start) * PACKET as u64;
        PacketBlock::is_most(bytes, self.sound, self.units)
    }
}

impl Cursor {
    /// Places null packets, and clock times between them, until a place.
    fn fill(&mut self, until: u64, pace: Pace, emit: &mut dyn FnMut(Item)) {
        while self.place < until {
            if !self.send_clock(pace, emit) {
                let count = self.until_clock(pace).min(until - self.place);
                emit(Item::Null(count));
                self.place += count;
            }
        }
    }

    /// Places a unit as soon as it is due and there is room, with tables where they are due.
    fn add(
        &mut self,
        unit: &Unit,
        form: &StreamForm,
        pace: Pace,
        origin: i64,
        emit: &mut dyn FnMut(Item),
    ) {
        let due = i128::from(media_time(unit.at).0) - i128::from(media_time(origin).0);
        self.fill(pace.place_of(due), pace, emit);
        if self.tables_at.is_none_or(|last| unit.at - last >= TABLES_DISTANCE) {
            for table in 0..2 {
                self.send_clock(pace, emit);
                emit(Item::Table(table, self.tables));
                self.place += 1;
            }
            self.tables = self.tables.wrapping_add(1);
            self.tables_at = Some(unit.at);
        }
        let mut left = unit.packets(form);
        let mut has_clock = unit.has_clock;
        while left > 0 {
            self.send_clock(pace, emit);
            let count = if has_clock { 1 } else { self.until_clock(pace).min(left) };
            if std::mem::take(&mut has_clock) {
                self.first_clock.get_or_insert(self.place);
                self.clock = Some(self.place);
            }
            emit(Item::Made(count));
            self.place += count;
            left -= count;
            // The clock alone does not count.
            if !unit.ldus.is_empty() {
                let counter = &mut self.counters[unit.stream];
                *counter = counter.wrapping_add(count.to_le_bytes()[0]);
            }
        }
    }

    /// The number of packets before the next clock time is due.
    fn until_clock(&self, pace: Pace) -> u64 {
        let due = |last: u64| (last + pace.clock_distance()).saturating_sub(self.place);
        self.clock.map_or(u64::MAX, due)
    }

    /// Places the clock alone where it is due; whether it is.
    fn send_clock(&mut self, pace: Pace, emit: &mut dyn FnMut(Item)) -> bool {
        let is_due = self.until_clock(pace) == 0;
        if is_due {
            emit(Item::Clock(self.counters[0].wrapping_sub(1) & 0xf));
            self.clock = Some(self.place);
            self.place += 1;
        }
        is_due
    }
}

impl FilledPart {
    /// The stored bytes that a range of the part is made from, in the order in which a writer takes
    /// them: track, and bytes of its data. Takes time in proportion to the LDUs of a segment.
    pub fn parts(&self, range: &Range<u64>) -> Vec<(u16, Range<u64>)> {
        let layout = self.layout();
        layout.block.parts(&layout.made_in(range))
    }

    /// The number of tracks of which the file is made.
    pub fn streams(&self) -> usize {
        let FilledStream { packaging, lead, .. } = &*self.stream;
        packaging.transport_tracks(*lead).map_or(0, |tracks| tracks.len())
    }

    /// The length of the part in bytes.
    pub fn size(&self) -> u64 {
        self.packets * PACKET as u64
    }

    /// Places the packets again.
    fn layout(&self) -> PartLayout {
        let FilledStream { packaging, lead, pace, origin, .. } = &*self.stream;
        let rendition = packaging.rendition(*lead).expect("planned with the file");
        let streams = rendition.streams(packaging).expect("planned with the file");
        let sources = rendition.sources(packaging);
        let mut block = PacketBlock::new(Arc::clone(&streams));
        let FilledStart { segment, unit: first, mut cursor } = self.start;
        let (mut counters, end) = (cursor.counters, cursor.place + self.packets);
        let (mut runs, mut at, mut made) = (Vec::<PlacedRun>::new(), 0, 0);
        let mut emit = |item: Item| {
            let (count, kind) = match item {
                Item::Null(count) => (count, PlacedKind::Null),
                Item::Made(count) => (count, PlacedKind::Made),
                Item::Clock(counter) => {
                    (1, PlacedKind::Whole(clock_packet(stream_pid(0), counter).to_vec()))
                }
                Item::Table(number, counter) => {
                    let both = tables(counter, &streams);
                    (1, PlacedKind::Whole(both[number * PACKET..(number + 1) * PACKET].to_vec()))
                }
            };
            let packets = if matches!(kind, PlacedKind::Made) { count } else { 0 };
            let goes_on = runs.last().is_some_and(|last| last.kind.is_same(&kind));
            if !goes_on {
                runs.push(PlacedRun { at, made, kind });
            }
            at += count;
            made += packets;
        };
        let mut skipped = first;
        for segment in segment..rendition.starts.len() {
            schedule::units(&rendition.span(packaging, segment), &sources, &mut |unit| {
                if skipped > 0 {
                    skipped -= 1;
                    return;
                }
                if cursor.place >= end {
                    return;
                }
                let source = &sources[unit.stream];
                cursor.add(&unit, source.form, *pace, *origin, &mut emit);
                let (index, ldus) = (&source.track.ldus, unit.ldus.clone());
                let stored = if ldus.is_empty() { 0..0 } else { data(index, ldus.clone()) };
                let counter = &mut counters[unit.stream];
                block.push(unit, stored, index.range(ldus).map(|ldu| ldu.size), counter);
            });
            if cursor.place >= end {
                break;
            }
        }
        // The last part goes on to the end of the file.
        cursor.fill(end, *pace, &mut emit);
        PartLayout { block: Arc::new(block), runs }
    }
}

impl PartLayout {
    /// The bytes of the block that are in a range of the part, in whole packets.
    fn made_in(&self, range: &Range<u64>) -> Range<u64> {
        let before = |packet: u64| {
            let run = &self.runs[self.run(packet)];
            let within = if matches!(run.kind, PlacedKind::Made) { packet - run.at } else { 0 };
            run.made + within
        };
        let first = before(range.start / PACKET as u64);
        let end = before(range.end.div_ceil(PACKET as u64));
        if first == end { 0..0 } else { first * PACKET as u64..end * PACKET as u64 }
    }

    /// The run that a packet is in, or the last one.
    fn run(&self, packet: u64) -> usize {
        self.runs.partition_point(|run| run.at <= packet).saturating_sub(1)
    }
}

impl PlacedKind {
    /// Whether a run of one goes on with the other.
    fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Null, Self::Null) | (Self::Made, Self::Made))
    }
}

impl FilledWriter {
    /// A writer of a range of a part. It takes the bytes of [`FilledPart::parts`], all of them,
    /// though it may be done before.
    pub fn new(part: Arc<FilledPart>, range: Range<u64>) -> Self {
        let layout = part.layout();
        let units = PacketWriter::new(Arc::clone(&layout.block), layout.made_in(&range));
        let at = range.start / PACKET as u64;
        let end = range.end.div_ceil(PACKET as u64).min(part.packets);
        Self { run: layout.run(at), part, layout, units, range, at, end }
    }

    /// Whether all packets of the range have been made.
    pub fn is_done(&self) -> bool {
        self.at >= self.end
    }

    /// Makes packets of `stored`, as [`PacketWriter::write`].
    pub fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize> {
        let FilledStream { pace, line, .. } = &*self.part.stream;
        // Sound is kept, and what is left when all units have been made is dropped.
        self.units.write(stored, &mut []);
        let mut made = 0;
        while self.at < self.end
            && let Some(packet) = room.get_mut(made..made + PACKET)
        {
            while self.layout.runs.get(self.run + 1).is_some_and(|next| next.at <= self.at) {
                self.run += 1;
            }
            match &self.layout.runs[self.run].kind {
                PlacedKind::Null => packet.copy_from_slice(&null_packet()),
                PlacedKind::Whole(whole) => packet.copy_from_slice(whole),
                PlacedKind::Made if self.units.write(stored, packet).is_empty() => break,
                PlacedKind::Made => {}
            }
            line.set_clock(packet, self.part.start.cursor.place + self.at, *pace);
            self.at += 1;
            made += PACKET;
        }
        // The range may begin and end within packets.
        let first = self.at * PACKET as u64 - made as u64;
        let within = |at: u64| usize::try_from(at.saturating_sub(first)).expect("in the room");
        let end = within((self.at * PACKET as u64).min(self.range.end));
        within(self.range.start).min(end)..end
    }
}

impl PartialEq for FilledPart {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream) && self.start == other.start
    }
}

impl Eq for FilledPart {}

impl fmt::Debug for FilledPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets from {} on", self.packets, self.start.cursor.place)
    }
}

impl fmt::Debug for PartLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs of {:?}", self.runs.len(), self.block)
    }
}
