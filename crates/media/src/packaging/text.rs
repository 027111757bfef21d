//! Text tracks for players: WebVTT, whole and in segments.
//!
//! ```text
//!   cues          |--a--|   |-----b-----|       |c|
//!   segments   0           1            2            3      those of the first video track
//!   N/0.vtt       a          b
//!   N/1.vtt                  b                              shown in two segments, so in both, with
//!   N/2.vtt                                      c          its own times (RFC 8216, 3.5)
//! ```
//! Times are those of the media segments: zero of WebVTT is zero of the presentation, so that a
//! whole file serves DASH, where its zero is that of the period.

use super::rates::Rates;
use super::{Packaging, segments::Segments};
use crate::{TextDescription, TextTrack};
use std::fmt::Write;
use std::ops::Range;
use units::MediaTime;

/// Where the cues of a title are in a presentation of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLine {
    /// The time that is added to a cue's.
    pub(super) later: MediaTime,
    /// The end of the presentation, beyond which it has no cue; `None`: cues end it themselves.
    pub(super) end: Option<MediaTime>,
}

/// The clock that cues are on. Both are the same unless a part of a title begins between two key
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CueClock {
    /// Zero is the beginning of the first segment: a key frame.
    Segments,
    /// Zero is the beginning of the MP4 file: exactly that of the part.
    File,
}

/// A cue in a presentation, in ms.
struct ShownCue<'a> {
    start: i64,
    end: i64,
    text: &'a str,
}

impl TextLine {
    /// The cues that are shown in the presentation, in the order of their starts.
    fn shown<'a>(&self, track: &'a TextTrack) -> impl Iterator<Item = ShownCue<'a>> + 'a {
        let ms = |time: MediaTime| (time.0 + 500_000).div_euclid(1_000_000);
        let (later, end) = (ms(self.later), self.end.map_or(i64::MAX, ms));
        let cues = track.cues().iter().map(move |cue| ShownCue {
            start: (i64::from(cue.start) + later).max(0),
            end: (i64::from(cue.end) + later).min(end),
            text: &cue.text,
        });
        cues.filter(|cue| cue.start < cue.end)
    }
}

impl Packaging {
    /// The HLS playlist of a text track; `None` if the presentation has no such track.
    pub fn text_playlist(&self, text: u16, query: &str) -> Option<String> {
        self.text(text)?;
        let lengths = self.text_segments()?.lengths();
        Some(super::playlist::text(self.target_duration, text, lengths, query))
    }

    /// A segment of a text track as WebVTT; `None` if there is no such track or segment.
    pub fn text_segment(&self, text: u16, number: u32) -> Option<String> {
        let (line, track) = self.text(text)?;
        let number = usize::try_from(number).ok()?;
        let segments = self.text_segments()?;
        let time = bounds(segments).nth(number)?;
        let mut out = SEGMENT_HEAD.to_owned();
        let shown = line.shown(track).take_while(|cue| cue.start < time.end);
        shown.filter(|cue| cue.end > time.start).for_each(|cue| cue.write(&mut out));
        Some(out)
    }

    /// A text track as one WebVTT file; `None` if the presentation has no such track.
    pub fn text_file(&self, text: u16, clock: CueClock) -> Option<String> {
        let (_, track) = self.text(text)?;
        let mut out = FILE_HEAD.to_owned();
        self.cue_line(clock)?.shown(track).for_each(|cue| cue.write(&mut out));
        Some(out)
    }

    /// Where cues are on a clock; `None` if the presentation can have none.
    pub(super) fn cue_line(&self, clock: CueClock) -> Option<TextLine> {
        let in_file = self.file_clip.filter(|_| clock == CueClock::File).map(|clip| TextLine {
            later: MediaTime::ZERO - clip.start,
            end: clip.stop.map(|stop| stop - clip.start),
        });
        in_file.or(self.text_line)
    }

    /// The bit rate of text that a player fetches beside pictures and sound, at most.
    pub fn text_rate(&self) -> units::BitRate {
        units::BitRate(self.highest_text_rate(|rates| rates.peak))
    }

    pub(super) fn highest_text_rate(&self, rate: fn(&Rates) -> u64) -> u64 {
        self.text_rates.iter().map(rate).max().unwrap_or(0)
    }

    /// The text tracks of the presentation with their numbers.
    pub(super) fn texts(&self) -> impl Iterator<Item = (u16, &TextDescription)> {
        let all = if self.text_line.is_some() { &self.index.texts[..] } else { &[] };
        (0..).zip(all.iter().map(|text| &text.description))
    }

    fn text(&self, number: u16) -> Option<(TextLine, &TextTrack)> {
        self.text_line.zip(self.index.texts.get(usize::from(number)))
    }

    /// The segments that text has: those of the video track by which sound is cut, too.
    fn text_segments(&self) -> Option<&Segments> {
        let lead = self.videos().into_iter().min().or(self.default_audio())?;
        Some(self.segments(lead))
    }

    /// The rates of each text track in segments.
    pub(super) fn rates_of_texts(&self) -> Vec<Rates> {
        let (Some(line), Some(segments)) = (self.text_line, self.text_segments()) else {
            return Vec::new();
        };
        let bounds: Vec<Range<i64>> = bounds(segments).collect();
        let lengths: Vec<u64> = segments.lengths().collect();
        let rates = self.index.texts.iter().map(|track| {
            // What each segment has more than the one before, so that a cue that is shown in many
            // segments is counted once.
            let mut more = vec![0i64; bounds.len() + 1];
            for cue in line.shown(track) {
                let bytes = i64::try_from(cue.length()).unwrap_or(i64::MAX);
                more[bounds.partition_point(|it| it.end <= cue.start)] += bytes;
                more[bounds.partition_point(|it| it.start < cue.end)] -= bytes;
            }
            let mut size = SEGMENT_HEAD.len() as i64;
            let sizes = more[..bounds.len()].iter().map(|more| {
                size += more;
                size.unsigned_abs()
            });
            Rates::of_segments(&sizes.collect::<Vec<_>>(), &lengths, self.target_duration)
        });
        rates.collect()
    }
}

/// The time of each segment in ms. The last one has no end: pictures may end before the sound.
fn bounds(segments: &Segments) -> impl Iterator<Item = Range<i64>> + '_ {
    let starts = segments.starts().iter().map(|start| start.0.div_euclid(1_000_000));
    let ends = starts.clone().skip(1).chain([i64::MAX]);
    starts.zip(ends).map(|(start, end)| start..end)
}

impl ShownCue<'_> {
    fn write(&self, out: &mut String) {
        write_cue(out, self.start, self.end, self.text);
    }

    /// The bytes of the written cue.
    fn length(&self) -> usize {
        time(self.start).len() + time(self.end).len() + " --> \n\n\n".len() + self.text.len()
    }
}

/// Writes a cue with its times in ms.
pub(super) fn write_cue(out: &mut String, start: i64, end: i64, text: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{} --> {}\n{text}\n\n", time(start), time(end));
}

/// A WebVTT timestamp.
fn time(ms: i64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}", seconds % 60)
}

/// The head of a file.
pub(super) const FILE_HEAD: &str = "WEBVTT\n\n";
/// Zero of the cues is zero of the media segments, which are on no other clock (RFC 8216, 3.5).
const SEGMENT_HEAD: &str = "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n\n";
