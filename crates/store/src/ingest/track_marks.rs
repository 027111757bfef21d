//! What a title keeps of a track and FFmpeg's MP4 muxer has no place for: what sound is for, and
//! languages that the source names by other codes than those of ISO 639-2.

use super::plan::RemuxPlan;
use super::probe::{ProbeOutput, ProbedStream, tag};
use media::{SoundPurposes, TrackDescription, language_code};

/// What is known of one track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackMarks {
    /// The code of its language, if the source names one.
    language: Option<String>,
    purposes: SoundPurposes,
}

impl TrackMarks {
    /// The marks of the tracks of a plan, in its order. Of tracks of further files nothing is
    /// known.
    pub(super) fn of(found: &ProbeOutput, plan: &RemuxPlan) -> Vec<Self> {
        let streams = plan.streams.iter().map(|taken| {
            let own = |stream: &&ProbedStream| taken.file == 0 && stream.index == taken.index;
            found.streams.iter().find(own)
        });
        streams.map(|stream| stream.map(Self::of_stream).unwrap_or_default()).collect()
    }

    fn of_stream(stream: &ProbedStream) -> Self {
        let marks = &stream.disposition;
        let purposes = SoundPurposes {
            visual_impaired: marks.visual_impaired != 0,
            hearing_impaired: marks.hearing_impaired != 0,
            comment: marks.comment != 0,
            dub: marks.dub != 0,
        };
        Self {
            language: tag(&stream.tags, "language").and_then(language_code),
            purposes: if stream.is_video() { SoundPurposes::default() } else { purposes },
        }
    }

    /// Completes the description of the track. A language that FFmpeg has kept stays as it is.
    pub(super) fn complete(&self, track: &mut TrackDescription) {
        if let Some(language) = self.language.as_ref().filter(|_| track.language == "und") {
            track.language.clone_from(language);
        }
        track.purposes = self.purposes;
    }
}

/// The notes on languages of tracks of a plan that have no code.
pub(super) fn unknown_languages(found: &ProbeOutput, plan: &RemuxPlan) -> Vec<String> {
    let taken = |stream: &&ProbedStream| {
        plan.streams.iter().any(|taken| taken.file == 0 && taken.index == stream.index)
    };
    let unknown = found.streams.iter().filter(taken).filter_map(|stream| {
        let language = tag(&stream.tags, "language")?;
        language_code(language).is_none().then(|| {
            format!(
                "the language \"{language}\" of stream {} is no code of ISO 639 and is left out",
                stream.index
            )
        })
    });
    unknown.collect()
}
