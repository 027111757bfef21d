//! What is computed once for the transport streams of a title: for each segment its LDUs, its
//! length in bytes, and the continuity counters at its beginning.
//!
//! Pictures have the segments of the fragmented MP4. The sound beside them is cut at the decode
//! times of the pictures at which segments begin, so that the clock runs on from one segment to the
//! next. Sound that goes on after the pictures has segments of its own.

use super::block::{BlockStream, PacketBlock};
use super::constant_rate::lowest_rate;
use super::schedule::{self, RenditionTrack, Span, TABLES_DISTANCE, Unit, media_time, to_clock};
use super::tables::tables;
use super::{PACKET, StreamForm};
use crate::TrackKind;
use crate::packaging::body::{Body, Slice};
use crate::packaging::encryption::ChainedSegment;
use crate::packaging::rates::Rates;
use crate::packaging::segments::{LduRun, data, micros};
use crate::packaging::{Packaging, partition};
use std::ops::Range;
use std::sync::Arc;
use units::{BitRate, MediaTime, Timescale};

/// The transport streams of a title.
#[derive(Debug)]
pub(in crate::packaging) struct Plan {
    /// By the number of the track that leads; `None` for tracks without a form.
    pub(super) renditions: Vec<Option<Rendition>>,
    /// `EXT-X-TARGETDURATION` of all media playlists, in seconds.
    pub(super) target_duration: u64,
}

/// A transport stream: a video track with the default sound, or one track alone.
#[derive(Debug)]
pub(super) struct Rendition {
    /// The tracks of its streams; the first one leads.
    pub(super) tracks: Vec<u16>,
    /// The length of each segment in microseconds.
    pub(super) lengths: Vec<u64>,
    pub(super) rates: Rates,
    /// The lowest constant rate that it can be sent at.
    pub(super) lowest_rate: BitRate,
    segments: Vec<PlannedSegment>,
    /// The end of the last segment on the clock, which has no further one.
    pub(super) starts: Vec<i64>,
}

#[derive(Debug)]
struct PlannedSegment {
    /// The LDUs of the sound beside pictures.
    sound: Range<usize>,
    /// The continuity counter of each stream's first packet.
    counters: [u8; 2],
    bytes: u64,
}

impl Plan {
    pub(in crate::packaging) fn of(packaging: &Packaging) -> Self {
        let numbers = (0u16..).take(packaging.tracks.len());
        let mut renditions: Vec<Option<Rendition>> =
            numbers.map(|number| Rendition::of(packaging, number)).collect();
        let lengths = renditions.iter().flatten().flat_map(|rendition| &rendition.lengths);
        let longest = lengths.max().copied().unwrap_or(0);
        let target_duration = ((longest + 500_000) / 1_000_000).max(1);
        for rendition in renditions.iter_mut().flatten() {
            let is_encrypted = packaging.encryption().is_some();
            let sent = |clear| if is_encrypted { ChainedSegment::padded(clear) } else { clear };
            let sizes: Vec<u64> = rendition.segments.iter().map(|it| sent(it.bytes)).collect();
            rendition.rates = Rates::of_segments(&sizes, &rendition.lengths, target_duration);
        }
        Self { renditions, target_duration }
    }
}

impl Rendition {
    /// The transport stream that this track leads; `None` if it has none.
    fn of(packaging: &Packaging, lead: u16) -> Option<Self> {
        packaging.track(lead)?;
        packaging.form(lead).ok()?;
        let is_video = packaging.description(lead).kind == TrackKind::Video;
        let sound = packaging.transport_sound().filter(|_| is_video);
        let tracks: Vec<u16> = [lead].into_iter().chain(sound).collect();
        let mut rendition = Self {
            tracks,
            lengths: packaging.segments(lead).lengths().collect(),
            rates: Rates::default(),
            lowest_rate: BitRate(0),
            segments: Vec::new(),
            starts: Vec::new(),
        };
        rendition.cut(packaging);
        rendition.count(packaging);
        Some(rendition)
    }

    /// Finds the beginnings of the segments, and the sound beside the pictures of each.
    fn cut(&mut self, packaging: &Packaging) {
        let segments = packaging.segments(self.tracks[0]);
        let source = source(packaging, self.tracks[0]);
        let firsts = (0..segments.count()).filter_map(|number| segments.parts(number)?.first());
        self.starts = firsts.map(|run| source.begins(run)).collect();
        let Some(&sound) = self.tracks.get(1) else {
            return self.segments.extend(self.starts.iter().map(|_| PlannedSegment::new(0..0)));
        };
        self.extend(segments.end(), packaging.segments(sound).end(), packaging.target_time());
        let runs = packaging.segments(sound).runs();
        let all =
            runs.first().map_or(0..0, |first| first.ldus.start..runs[runs.len() - 1].ldus.end);
        let earlier = runs.first().map_or(0, |run| run.earlier);
        let source = self::source(packaging, sound);
        if let Some(start) = self.starts.first_mut()
            && !all.is_empty()
        {
            // What decoders need of the sound before its beginning may come before the pictures.
            *start = (*start).min(source.decoded(all.start, earlier));
        }
        let mut first = all.start;
        for next in self.starts.iter().skip(1).copied().chain([i64::MAX]) {
            let end = partition(first..all.end, |ldu| source.decoded(ldu, earlier) < next);
            self.segments.push(PlannedSegment::new(first..end));
            first = end;
        }
    }

    /// Adds segments for sound that goes on long after the pictures; the last segment is longer if
    /// it goes on for less than half of a segment.
    fn extend(&mut self, pictures: MediaTime, sound: MediaTime, target: MediaTime) {
        let (mut from, target) = (pictures, target.0.max(1));
        if sound.0 - from.0 > target / 2 {
            while from < sound {
                let rest = sound.0 - from.0;
                let to = if rest > target + target / 2 { from + MediaTime(target) } else { sound };
                self.starts.push(to_clock(from.0, Timescale(1_000_000_000)));
                self.lengths.push(micros(to) - micros(from));
                from = to;
            }
        } else if let Some(last) = self.lengths.last_mut()
            && sound > pictures
        {
            *last += micros(sound) - micros(pictures);
        }
    }

    /// Counts the packets of all segments.
    fn count(&mut self, packaging: &Packaging) {
        let sources = self.sources(packaging);
        let (mut counters, mut bursts, mut tables_at) = ([0u8; 2], Vec::new(), None);
        for number in 0..self.segments.len() {
            self.segments[number].counters = counters;
            let mut packets = TABLES;
            let span = self.span(packaging, number);
            schedule::units(&span, &sources, &mut |unit: Unit| {
                let count = unit.packets(sources[unit.stream].form);
                packets += count;
                let has_tables = tables_at.is_none_or(|last| unit.at - last >= TABLES_DISTANCE);
                let tables = if has_tables { TABLES } else { 0 };
                tables_at = if has_tables { Some(unit.at) } else { tables_at };
                bursts.push((media_time(unit.at).0, tables + count));
                // The clock alone does not count.
                if !unit.ldus.is_empty() {
                    let counter = &mut counters[unit.stream];
                    *counter = counter.wrapping_add(count.to_le_bytes()[0]);
                }
            });
            self.segments[number].bytes = packets * PACKET as u64;
        }
        self.lowest_rate = lowest_rate(&bursts);
    }

    pub(super) fn sources<'a>(&self, packaging: &'a Packaging) -> Vec<RenditionTrack<'a>> {
        self.tracks.iter().map(|track| source(packaging, *track)).collect()
    }

    /// The LDUs and the time of a segment.
    pub(super) fn span(&self, packaging: &Packaging, number: usize) -> Span {
        let parts = packaging.segments(self.tracks[0]).parts(number);
        let mut runs = vec![parts.map(<[LduRun]>::to_vec).unwrap_or_default()];
        if let Some(&sound) = self.tracks.get(1) {
            let wanted = &self.segments[number].sound;
            let all = packaging.segments(sound).runs();
            let first = all.partition_point(|run| run.ldus.end <= wanted.start);
            let within = all[first..].iter().take_while(|run| run.ldus.start < wanted.end);
            let cut = |run: &LduRun| LduRun {
                ldus: run.ldus.start.max(wanted.start)..run.ldus.end.min(wanted.end),
                ..run.clone()
            };
            runs.push(within.map(cut).collect());
        }
        Span { runs, start: self.starts[number], end: self.starts.get(number + 1).copied() }
    }

    pub(super) fn streams(&self, packaging: &Packaging) -> Option<Arc<[BlockStream]>> {
        let form = |track: u16| packaging.form(track).ok().map(Arc::clone);
        let streams =
            self.tracks.iter().map(|&track| Some(BlockStream { track, form: form(track)? }));
        Some(streams.collect::<Option<Vec<_>>>()?.into())
    }

    /// One past the last LDU of the sound beside the pictures of a segment.
    pub(super) fn sound_end(&self, segment: usize) -> Option<usize> {
        self.segments.get(segment).map(|planned| planned.sound.end)
    }

    /// A segment as a body; `None` if there is none of this number.
    pub(super) fn segment(&self, packaging: &Packaging, number: u32) -> Option<Body> {
        let counter = number.to_le_bytes()[0];
        let number = usize::try_from(number).ok()?;
        let planned = self.segments.get(number)?;
        let streams = self.streams(packaging)?;
        let mut body = Body::default();
        body.push_generated(tables(counter, &streams));
        let mut counters = planned.counters;
        let mut block = PacketBlock::new(Arc::clone(&streams));
        let (span, sources) = (self.span(packaging, number), self.sources(packaging));
        schedule::units(&span, &sources, &mut |unit: Unit| {
            if block.is_full() {
                let full = std::mem::replace(&mut block, PacketBlock::new(Arc::clone(&streams)));
                body.push(packets(full));
            }
            let index = &sources[unit.stream].track.ldus;
            let counter = &mut counters[unit.stream];
            let (stored, ldus) = (data(index, unit.ldus.clone()), unit.ldus.clone());
            block.push(unit, stored, index.range(ldus).map(|ldu| ldu.size), counter);
        });
        body.push(packets(block));
        debug_assert_eq!(body.len(), planned.bytes, "the length is stated before");
        Some(body)
    }
}

impl PlannedSegment {
    fn new(sound: Range<usize>) -> Self {
        Self { sound, counters: [0; 2], bytes: 0 }
    }
}

fn source(packaging: &Packaging, track: u16) -> RenditionTrack<'_> {
    let number = usize::from(track);
    let form: &StreamForm = packaging.form(track).expect("only tracks with a form are sources");
    RenditionTrack {
        track: &packaging.index.tracks[number],
        line: &packaging.segment_lines[number],
        form,
    }
}

fn packets(block: PacketBlock) -> Slice {
    Slice::Packets { range: 0..block.len(), block: Arc::new(block) }
}

/// Packets of a segment's tables.
const TABLES: u64 = 2;
