//! A title's LDUs one by one with their times, for a sender that paces them itself (RTP).
//!
//! The times are those of segments: the title begins with the first picture that can be decoded,
//! and an edit list moves tracks against each other.

use super::clip::is_before;
use super::timeline::{REORDERED, ticks};
use super::{Packaging, partition};
use crate::TrackKind;
use std::ops::Range;
use units::{MediaTime, Timescale};

/// An LDU as a sender needs it: its bytes and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedLdu {
    /// The bytes of the LDU in the track's data.
    pub bytes: Range<u64>,
    /// The time at which it is decoded, in the title. Negative before the title's start.
    pub decoded: MediaTime,
    /// The time at which it is shown, in the title.
    pub shown: MediaTime,
    /// The time at which it is shown, in ticks of `scale`.
    pub shown_ticks: i64,
    /// Ticks until the next LDU.
    pub duration: u32,
    /// Ticks per second.
    pub scale: Timescale,
    /// Whether decoding may start here.
    pub sync: bool,
}

impl Packaging {
    /// The number of LDUs of a track; zero if there is no such track.
    pub fn ldu_count(&self, track: u16) -> usize {
        self.index().tracks.get(usize::from(track)).map_or(0, |track| track.ldus.len())
    }

    /// The LDU of this number in decode order; `None` if the track has fewer.
    pub fn pushed(&self, track: u16, ldu: usize) -> Option<PushedLdu> {
        let i = usize::from(track);
        let (stored, line) = (self.index().tracks.get(i)?, &self.segment_lines[i]);
        if ldu >= stored.ldus.len() {
            return None;
        }
        let found = stored.ldus.get(ldu);
        let decoded = line.place(ticks(found.decode_time));
        let shown = match stored.description.kind {
            TrackKind::Video => decoded.saturating_add(i64::from(found.composition_offset)),
            _ => decoded,
        };
        Some(PushedLdu {
            bytes: found.offset..found.offset + u64::from(found.size),
            decoded: line.time(decoded),
            shown: line.time(shown),
            shown_ticks: shown,
            duration: found.duration,
            scale: line.scale,
            sync: found.sync,
        })
    }

    /// The number of LDUs of a track that are decoded before a time.
    pub fn ldus_before(&self, track: u16, time: MediaTime) -> usize {
        // Decode times never decrease.
        partition(0..self.ldu_count(track), |ldu| {
            self.pushed(track, ldu).is_some_and(|found| found.decoded < time)
        })
    }

    /// One past the last LDU of a track, in decode order, that is shown before a time.
    pub fn ldus_until(&self, track: u16, time: MediaTime) -> usize {
        let before = self.ldus_before(track, time);
        let kind = self.index().tracks.get(usize::from(track)).map(|it| it.description.kind);
        if kind != Some(TrackKind::Video) {
            return before;
        }
        let is_shown = |ldu: &usize| {
            self.pushed(track, *ldu).is_some_and(|found| is_before(found.shown, time))
        };
        let decoded = (before + REORDERED).min(self.ldu_count(track));
        (0..decoded).rev().find(is_shown).map_or(0, |last| last + 1)
    }

    /// The end of the bytes of the LDUs that are decoded before a time.
    pub fn bytes_before(&self, track: u16, time: MediaTime) -> u64 {
        let last = self.ldus_before(track, time).checked_sub(1);
        last.and_then(|last| self.pushed(track, last)).map_or(0, |last| last.bytes.end)
    }

    /// The LDU at which a track begins when the title is played from `from` on: of pictures the
    /// last that decoding may start at and that is shown by then, of sound the first that ends
    /// later. At the title's start it is the first one: decoders need what an edit list hides.
    pub fn entry(&self, track: u16, from: MediaTime) -> Option<usize> {
        let count = self.ldu_count(track);
        if from <= MediaTime::ZERO || count == 0 {
            return (count > 0).then_some(0);
        }
        // The first LDU that is decoded after `from`.
        let low = self.ldus_before(track, from + MediaTime(1));
        let kind = self.index().tracks.get(usize::from(track))?.description.kind;
        if kind != TrackKind::Video {
            return Some(low.saturating_sub(1));
        }
        let is_entry = |ldu: &usize| {
            self.pushed(track, *ldu).is_some_and(|found| found.sync && found.shown <= from)
        };
        Some((0..low).rev().find(is_entry).unwrap_or(0))
    }
}
