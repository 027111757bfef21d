//! The order in which a segment's LDUs and clock times are sent.
//!
//! ```text
//!   pictures   P0        P1        P2        P3        one PES packet each, with the clock
//!   sound      S0             S1             S2        one PES packet for some frames
//!   sent       P0 S0     P1   S1   P2        P3 S2     by decode time
//!   clock      *         *         *         *         and between, where it would be too seldom
//! ```
//! Everything is sent [`DELAY`] before it is decoded. A segment begins with the clock and has it as
//! often at its end, so that segments may follow one another or be read alone.

use super::form::StreamForm;
use super::{CLOCK, PAYLOAD};
use crate::TrackIndex;
use crate::packaging::segments::LduRun;
use crate::packaging::timeline::{Timeline, ticks};
use std::ops::Range;
use units::{MediaTime, Timescale};

/// A track of a rendition.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenditionTrack<'a> {
    pub(super) track: &'a TrackIndex,
    pub(super) line: &'a Timeline,
    pub(super) form: &'a StreamForm,
}

/// What is sent together: a PES packet of one or more LDUs, or the clock alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The number of the stream in its rendition.
    pub(super) stream: usize,
    /// When its sending begins, [`DELAY`] later. Never decreases.
    pub(super) at: i64,
    pub(super) decoded: i64,
    pub(super) shown: i64,
    /// Empty: the clock alone.
    pub(super) ldus: Range<usize>,
    /// The stored bytes of its LDUs.
    pub(super) bytes: u64,
    pub(super) has_clock: bool,
    /// Whether decoding may start here.
    pub(super) sync: bool,
    /// Whether its stored bytes do not follow those of the stream's unit before.
    pub(super) begins_run: bool,
}

/// The LDUs of a segment, and its time on the clock.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Per stream of the rendition.
    pub(super) runs: Vec<Vec<LduRun>>,
    pub(super) start: i64,
    /// The start of the next segment; `None` in the last one.
    pub(super) end: Option<i64>,
}

impl RenditionTrack<'_> {
    /// The decode time of an LDU on the clock, for an excerpt that plays it so much `earlier`.
    pub(super) fn decoded(&self, ldu: usize, earlier: i64) -> i64 {
        self.clock(self.track.ldus.get(ldu).decode_time, earlier)
    }

    /// The decode time of the first LDU of a run on the clock.
    pub(super) fn begins(&self, run: &LduRun) -> i64 {
        self.clock(run.first(&self.track.ldus).decode_time, run.earlier)
    }

    fn clock(&self, decode_time: u64, earlier: i64) -> i64 {
        let at = self.line.place(ticks(decode_time)).saturating_sub(earlier);
        to_clock(at, self.line.scale)
    }

    /// The PES packets of a run of LDUs. LDUs without bytes are left out: they show nothing new.
    fn units(&self, stream: usize, run: LduRun) -> impl Iterator<Item = Unit> + '_ {
        let numbered = run.ldus.clone().zip(run.range(&self.track.ldus));
        let mut ldus = numbered.filter(|(_, ldu)| ldu.size > 0).peekable();
        let mut begins_run = true;
        std::iter::from_fn(move || {
            let (number, first) = ldus.next()?;
            let decoded = self.clock(first.decode_time, run.earlier);
            let mut unit = Unit {
                stream,
                at: decoded,
                decoded,
                shown: decoded,
                ldus: number..number + 1,
                bytes: first.size.into(),
                has_clock: stream == 0,
                sync: first.sync,
                begins_run: std::mem::take(&mut begins_run),
            };
            if self.form.is_video() {
                let ahead = i64::from(first.composition_offset);
                let shown = self.line.place(ticks(first.decode_time).saturating_add(ahead));
                unit.shown = to_clock(shown.saturating_sub(run.earlier), self.line.scale);
                unit.decoded = decoded.min(unit.shown);
            }
            // FFmpeg does not know how long the first frame of a stream is, so that the second one
            // needs a time stamp, too.
            let alone = self.form.is_video() || unit.begins_run;
            let most = if alone { 1 } else { MOST_FRAMES };
            let mut length = first.duration;
            // A player counts the times of further frames from the first one's.
            while let Some((next, ldu)) = ldus.next_if(|(next, ldu)| {
                *next == unit.ldus.end
                    && unit.ldus.len() < most
                    && length == first.duration
                    && unit.bytes + u64::from(ldu.size) <= MOST_BYTES
            }) {
                unit.ldus.end = next + 1;
                unit.bytes += u64::from(ldu.size);
                length = ldu.duration;
            }
            Some(unit)
        })
    }
}

/// Calls `emit` for all units of a segment in the order of sending.
pub(super) fn units(span: &Span, sources: &[RenditionTrack<'_>], emit: &mut dyn FnMut(Unit)) {
    let of_stream = |stream: usize| {
        let runs = span.runs.get(stream).map_or(&[][..], Vec::as_slice);
        let source = sources.get(stream);
        runs.iter().flat_map(move |run| {
            source.into_iter().flat_map(move |source| source.units(stream, run.clone()))
        })
    };
    let (mut lead, mut other) = (of_stream(0).peekable(), of_stream(1).peekable());
    let mut clock = Clock { last: None, at: span.start };
    loop {
        let next = match (lead.peek(), other.peek()) {
            (Some(first), Some(second)) if second.at < first.at => other.next(),
            (Some(_), _) => lead.next(),
            (None, _) => other.next(),
        };
        let Some(mut unit) = next else { break };
        unit.at = unit.at.max(clock.at);
        clock.advance(unit.at, unit.has_clock, emit);
        emit(unit);
    }
    if let Some(end) = span.end {
        clock.advance(end, true, emit);
    }
}

/// When the clock was sent last, and how far sending has come.
struct Clock {
    last: Option<i64>,
    at: i64,
}

impl Clock {
    /// Sends the clock as often as it is due before something at `at`, which may have it itself.
    fn advance(&mut self, at: i64, has_clock: bool, emit: &mut dyn FnMut(Unit)) {
        if self.last.is_none() && !(has_clock && at == self.at) {
            self.send(self.at, emit);
        }
        for _ in 0..MOST_CLOCKS {
            let Some(due) = self.last.map(|last| last + CLOCK_DISTANCE).filter(|due| *due < at)
            else {
                break;
            };
            self.send(due, emit);
        }
        self.at = at;
        if has_clock {
            self.last = Some(at);
        }
    }

    fn send(&mut self, at: i64, emit: &mut dyn FnMut(Unit)) {
        self.last = Some(at);
        emit(Unit {
            stream: 0,
            at,
            decoded: at,
            shown: at,
            ldus: 0..0,
            bytes: 0,
            has_clock: true,
            sync: false,
            begins_run: false,
        });
    }
}

impl Unit {
    /// Bytes of its PES packet: header, what is in front of the LDUs, and these.
    pub(super) fn pes_bytes(&self, form: &StreamForm) -> u64 {
        let before = self.ldus.len() * form.prefix_len(self.sync);
        (self.pes_header() + before) as u64 + self.bytes
    }

    /// Bytes of its PES header without stuffing.
    pub(super) fn pes_header(&self) -> usize {
        9 + if self.decoded == self.shown { 5 } else { 10 }
    }

    /// The number of its packets.
    pub(super) fn packets(&self, form: &StreamForm) -> u64 {
        if self.ldus.is_empty() {
            return 1;
        }
        let clock = if self.has_clock { CLOCK_FIELD } else { 0 };
        (clock as u64 + self.pes_bytes(form)).div_ceil(PAYLOAD as u64)
    }
}

/// Ticks of a track as ticks of the clock, rounded.
pub(super) fn to_clock(ticks: i64, scale: Timescale) -> i64 {
    let scale = i128::from(scale.0.max(1));
    let at = (i128::from(ticks) * i128::from(CLOCK) + scale / 2).div_euclid(scale);
    i64::try_from(at).unwrap_or(i64::MAX / 4).clamp(i64::MIN / 4, i64::MAX / 4)
}

/// A time on the clock as media time.
pub(super) fn media_time(clock: i64) -> MediaTime {
    MediaTime(clock.saturating_mul(100_000) / (CLOCK / 10_000))
}

/// Bytes of an adaptation field with the clock alone.
pub(super) const CLOCK_FIELD: usize = 8;
/// The time by which everything is sent before it is decoded. It is longer than the distance of
/// clock times, over which the bytes of a picture are spread, and shorter than the second that data
/// may stay in a decoder (ISO/IEC 13818-1, 2.4.2.6).
pub(super) const DELAY: i64 = CLOCK / 2;
/// The distance of tables: monitors of DVB call half a second an error (ETSI TR 101 290, 5.2.1).
pub(super) const TABLES_DISTANCE: i64 = CLOCK / 4;
/// The longest distance of two clock times, which must be less than 100 ms (2.7.2).
const CLOCK_DISTANCE: i64 = CLOCK * 90 / 1000;
/// The most clock times in a pause: three minutes. A longer pause is a jump of the clock.
const MOST_CLOCKS: usize = 2000;
/// Frames of sound in a PES packet. Time stamps may be 700 ms apart (2.7.4); a frame lasts 20 to
/// 40 ms, in HE-AAC of low rates up to 128 ms.
const MOST_FRAMES: usize = 5;
/// Stored bytes of a PES packet of several frames: with headers 16 packets, less than the buffer of
/// a decoder of AAC, which has 3584 bytes (2.4.2.3).
const MOST_BYTES: u64 = 2800;
