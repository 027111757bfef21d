//! Several files as the renditions of one title: one programme in several sizes, between which a
//! player may change at any segment.
//!
//! ```text
//!   film-1080.mp4   pictures, sound ┐
//!   film-720.mp4    pictures, ──────┼─▶ one title: pictures 1080, 720, 360; the first file's sound
//!   film-360.mp4    pictures, ──────┘
//! ```
//!
//! A player that changes continues with a key frame of the other rendition at the same time of the
//! programme. So the key frames of all renditions must have the same times: this is checked here,
//! and the first difference is reported. Whether they show the same programme is not checked.

use media::{LduIndex, TrackDescription, TrackKind};
use std::path::{Path, PathBuf};
use units::Reason;

/// The reason why the tracks of these files (the first is the title's own) are no renditions of
/// each other.
pub(super) fn misaligned(
    tracks: &[(TrackDescription, LduIndex)],
    file: &Path,
    others: &[PathBuf],
) -> Option<Reason> {
    let videos = tracks.iter().filter(|(track, _)| track.kind == TrackKind::Video);
    let keys: Vec<Vec<f64>> = videos.map(|(track, ldus)| key_frames(track, ldus)).collect();
    let (first, rest) = keys.split_first()?;
    if rest.len() < others.len() {
        let message = "one of the files has no video track that can be taken";
        return Some(Reason::new(message, "name files with one each"));
    }
    // The other tracks of the title's own file precede those of the other files.
    let own = rest.len() - others.len();
    rest.iter().enumerate().find_map(|(number, keys)| {
        let at = first.iter().zip(keys).find(|(a, b)| (*a - *b).abs() > NEARLY);
        let (ours, theirs) = match at {
            Some((ours, theirs)) => (Some(*ours), Some(*theirs)),
            None if first.len() == keys.len() => return None,
            None => {
                let shorter = first.len().min(keys.len());
                (first.get(shorter).copied(), keys.get(shorter).copied())
            }
        };
        let name =
            number.checked_sub(own).and_then(|i| others.get(i)).map_or(file, PathBuf::as_path);
        let shown = |at: Option<f64>| at.map_or("none".to_owned(), |at| format!("at {at:.3} s"));
        let message = format!(
            "{}: its key frames are at other times: the first file has one {}, this one {}",
            name.display(),
            shown(ours),
            shown(theirs)
        );
        let hint = "encode all of them with the same distance of key frames and none in between \
                    (for x264: -g 96 -keyint_min 96 -sc_threshold 0)";
        Some(Reason::new(message, hint))
    })
}

/// The times of a track's key frames, in seconds from its first picture.
fn key_frames(track: &TrackDescription, ldus: &LduIndex) -> Vec<f64> {
    let shown = |ldu: &media::Ldu| {
        let ticks = i128::from(ldu.decode_time) + i128::from(ldu.composition_offset);
        #[expect(clippy::cast_precision_loss, reason = "days in ticks")]
        let shown = ticks as f64 / f64::from(track.timescale.0.max(1));
        shown
    };
    let times: Vec<f64> = ldus.iter().filter(|ldu| ldu.sync).map(|ldu| shown(&ldu)).collect();
    let first = times.first().copied().unwrap_or(0.0);
    times.into_iter().map(|time| time - first).collect()
}

/// The tolerance in seconds: containers round times to milliseconds, and pictures are at least 8 ms
/// apart.
const NEARLY: f64 = 0.004;
