//! Text tracks for players, whole and in segments: WebVTT, and IMSC ([`super::imsc`]).
//!
//! ```text
//!   cues          |--a--|   |-----b-----|       |c|
//!   segments   0           1            2            3      those of the first video track
//!   N/0.vtt       a          b
//!   N/1.vtt                  b                              shown in two segments, so in both, with
//!   N/2.vtt                                      c          its own times (RFC 8216, 3.5)
//! ```
//! Times are those of the media segments: zero of text is zero of the presentation, so that a whole
//! file serves DASH, where its zero is that of the period.

use super::rates::Rates;
use super::{Packaging, imsc, media_segment, segments::Segments};
use crate::{TextDescription, TextTrack};
use std::fmt::Write;
use std::ops::Range;
use units::{MediaTime, Timescale};

/// The form in which players get text tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    /// WebVTT, as text.
    #[default]
    WebVtt,
    /// IMSC, a profile of TTML: documents in fragmented MP4, and as a file.
    Imsc,
}

impl TextForm {
    const ALL: [Self; 2] = [Self::WebVtt, Self::Imsc];
}

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
pub(super) struct ShownCue<'a> {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) text: &'a str,
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
    pub fn text_playlist(&self, text: u16, form: TextForm, query: &str) -> Option<String> {
        self.text(text)?;
        let lengths = self.text_segments()?.lengths();
        Some(super::playlist::text(self, text, form, lengths, query))
    }

    /// The initialization segment of a text track as IMSC; `None` if there is no such track.
    pub fn text_init(&self, text: u16) -> Option<Vec<u8>> {
        let (_, track) = self.text(text)?;
        Some(media_segment::text_init(&track.description, &imsc::sample_entry(), TEXT_SCALE))
    }

    /// A segment of a text track; `None` if there is no such track or segment.
    pub fn text_segment(&self, text: u16, number: u32, form: TextForm) -> Option<Vec<u8>> {
        let (line, track) = self.text(text)?;
        let (segments, k) = (self.text_segments()?, usize::try_from(number).ok()?);
        let time = bounds(segments).nth(k)?;
        let shown = line.shown(track).take_while(|cue| cue.start < time.end);
        let shown = shown.filter(|cue| cue.end > time.start);
        if form == TextForm::Imsc {
            let boundaries = self.text_boundaries();
            let document = imsc::document(&track.description, shown);
            let time = *boundaries.get(k)?..*boundaries.get(k + 1)?;
            return Some(imsc::segment(&document, time, number.saturating_add(1)));
        }
        let mut out = SEGMENT_HEAD.to_owned();
        shown.for_each(|cue| cue.write(&mut out));
        Some(out.into_bytes())
    }

    /// A text track as one file; `None` if the presentation has no such track.
    pub fn text_file(&self, text: u16, form: TextForm, clock: CueClock) -> Option<String> {
        let (_, track) = self.text(text)?;
        let shown = self.cue_line(clock)?.shown(track);
        if form == TextForm::Imsc {
            return Some(imsc::document(&track.description, shown));
        }
        let mut out = FILE_HEAD.to_owned();
        shown.for_each(|cue| cue.write(&mut out));
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
        let rates = TextForm::ALL.map(|form| self.highest_text_rate(form, |rates| rates.peak));
        units::BitRate(rates.into_iter().max().unwrap_or(0))
    }

    pub(super) fn highest_text_rate(&self, form: TextForm, rate: fn(&Rates) -> u64) -> u64 {
        self.text_rates(form).iter().map(rate).max().unwrap_or(0)
    }

    /// The rates of each text track in a form.
    pub(super) fn text_rates(&self, form: TextForm) -> &[Rates] {
        &self.text_rates[form as usize]
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

    /// The boundaries of text segments in ms, strictly rising: the last one ends with the longest
    /// track.
    pub(super) fn text_boundaries(&self) -> Vec<u64> {
        let Some(segments) = self.text_segments() else { return Vec::new() };
        let starts = segments.starts().iter().map(|start| start.0.div_euclid(1_000_000));
        let ends = self.videos().into_iter().chain(self.audio_tracks());
        let end = ends.map(|track| self.segments(track).end()).max().unwrap_or_default();
        let mut boundaries: Vec<u64> = Vec::with_capacity(segments.count() + 1);
        for at in starts.chain([(end.0 + 500_000).div_euclid(1_000_000)]) {
            let least = boundaries.last().map_or(0, |last| last + 1);
            boundaries.push(at.unsigned_abs().max(least));
        }
        boundaries
    }

    /// The rates of each text track in segments, by form.
    pub(super) fn rates_of_texts(&self) -> [Vec<Rates>; 2] {
        TextForm::ALL.map(|form| {
            let tracks = self.index.texts.iter().filter(|_| self.text_line.is_some());
            tracks.map(|track| self.rates_of_text(track, form)).collect()
        })
    }

    fn rates_of_text(&self, track: &TextTrack, form: TextForm) -> Rates {
        let (Some(line), Some(segments)) = (self.text_line, self.text_segments()) else {
            return Rates::default();
        };
        let bounds: Vec<Range<i64>> = bounds(segments).collect();
        let lengths: Vec<u64> = segments.lengths().collect();
        // What each segment has more than the one before, so that a cue that is shown in many
        // segments is counted once.
        let mut more = vec![0i64; bounds.len() + 1];
        for cue in line.shown(track) {
            let bytes = i64::try_from(cue.length(form)).unwrap_or(i64::MAX);
            more[bounds.partition_point(|it| it.end <= cue.start)] += bytes;
            more[bounds.partition_point(|it| it.start < cue.end)] -= bytes;
        }
        let empty = match form {
            TextForm::WebVtt => SEGMENT_HEAD.len() as u64,
            TextForm::Imsc => {
                let document = imsc::document(&track.description, std::iter::empty());
                imsc::SEGMENT_HEAD_BYTES + document.len() as u64
            }
        };
        let mut cues = 0;
        let sizes = more[..bounds.len()].iter().map(|more| {
            cues += more;
            empty + cues.unsigned_abs()
        });
        let (sizes, boundaries) = (sizes.collect::<Vec<_>>(), self.text_boundaries());
        Rates::of_sizes(&sizes, &lengths, &boundaries, TEXT_SCALE, self.target_duration)
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
    fn length(&self, form: TextForm) -> usize {
        if form == TextForm::Imsc {
            return imsc::length(self);
        }
        time(self.start).len() + time(self.end).len() + " --> \n\n\n".len() + self.text.len()
    }
}

/// Writes a cue with its times in ms.
pub(super) fn write_cue(out: &mut String, start: i64, end: i64, text: &str) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{} --> {}\n{text}\n\n", time(start), time(end));
}

/// A time in ms as WebVTT and TTML have it.
pub(super) fn time(ms: i64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}", seconds % 60)
}

/// The ticks of text tracks: those of cues.
pub(super) const TEXT_SCALE: Timescale = Timescale(1000);
/// The head of a file.
pub(super) const FILE_HEAD: &str = "WEBVTT\n\n";
/// Zero of the cues is zero of the media segments, which are on no other clock (RFC 8216, 3.5).
const SEGMENT_HEAD: &str = "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n\n";
