//! The cues in a Matroska stream of WebVTT tracks, as FFmpeg writes it to a pipe; and which tracks
//! of a file are cropped, which FFmpeg does not tell.
//!
//! ```text
//! Segment ┬ Tracks ─ TrackEntry ┬ TrackNumber, TrackType, CodecID
//!         │                     └ Video ─ PixelCropTop, PixelCropLeft ..
//!         └ Cluster ┬ Timestamp                          ms
//!                   └ BlockGroup ┬ Block                 track, time from the cluster's i16, flags,
//!                                │                       then "identifier \n settings \n text"
//!                                └ BlockDuration         ms; absent: zero
//! ```
//!
//! An element is an identifier, a length, and that many bytes. Elements that contain others are
//! entered by reading on behind their length, all others are skipped.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A cue as FFmpeg converted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundCue<'a> {
    /// The number of the track, from zero.
    pub(super) track: usize,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) text: Cow<'a, str>,
}

/// The cues of all tracks, times in ms; `None` if the bytes are no such stream.
pub(super) fn cues(mut bytes: &[u8]) -> Option<Vec<FoundCue<'_>>> {
    let mut cues: Vec<FoundCue<'_>> = Vec::new();
    let (mut cluster, mut plain) = (0, Vec::new());
    while !bytes.is_empty() {
        let id = number(&mut bytes, true)?;
        let length = number(&mut bytes, false)?;
        if ENTERED.contains(&id) {
            continue;
        }
        let payload = bytes.get(..usize::try_from(length).ok()?)?;
        bytes = &bytes[payload.len()..];
        match id {
            TIMESTAMP => cluster = unsigned(payload)?,
            // Whether a track's blocks have the text alone.
            CODEC => plain.push(!payload.starts_with(b"D_WEBVTT")),
            BLOCK => cues.push(block(payload, cluster, &plain)?),
            DURATION => {
                let cue = cues.last_mut()?;
                cue.end = cue.start.checked_add(unsigned(payload)?)?;
            }
            _ => {}
        }
    }
    Some(cues)
}

/// The streams of a file, as FFmpeg counts them, of whose pictures players are to show a part.
pub(super) fn cropped_streams(file: &Path) -> io::Result<Vec<u32>> {
    let mut head = Vec::new();
    File::open(file)?.take(MAX_HEAD).read_to_end(&mut head)?;
    Ok(cropped(&head))
}

/// The streams that are cropped, by the beginning of a file.
fn cropped(mut bytes: &[u8]) -> Vec<u32> {
    // Whether each track is a stream to FFmpeg, and whether it is cropped.
    let mut tracks: Vec<(bool, bool)> = Vec::new();
    while let (Some(id), Some(length)) = (number(&mut bytes, true), number(&mut bytes, false)) {
        if id == CLUSTER {
            break;
        }
        if id == TRACK_ENTRY {
            tracks.push((false, false));
        }
        if ENTERED.contains(&id) || id == VIDEO {
            continue;
        }
        let Some(payload) = usize::try_from(length).ok().and_then(|length| bytes.get(..length))
        else {
            break;
        };
        bytes = &bytes[payload.len()..];
        let Some((is_stream, is_cropped)) = tracks.last_mut() else { continue };
        match id {
            TRACK_TYPE => *is_stream = unsigned(payload).is_some_and(|it| STREAMS.contains(&it)),
            id if CROPS.contains(&id) => {
                *is_cropped |= unsigned(payload).is_some_and(|pixels| pixels > 0);
            }
            _ => {}
        }
    }
    let streams = tracks.iter().filter(|(is_stream, _)| *is_stream);
    let cropped = (0..).zip(streams).filter(|(_, (_, is_cropped))| *is_cropped);
    cropped.map(|(number, _)| number).collect()
}

fn block<'a>(mut payload: &'a [u8], cluster: i64, plain: &[bool]) -> Option<FoundCue<'a>> {
    // FFmpeg numbers tracks from one in the order of its output.
    let track = usize::try_from(number(&mut payload, false)?).ok()?.checked_sub(1)?;
    let (&[high, low, _flags], text) = payload.split_first_chunk()?;
    let start = cluster.checked_add(i16::from_be_bytes([high, low]).into())?;
    let text = match *plain.get(track)? {
        true => text,
        false => text.splitn(3, |byte| *byte == b'\n').nth(2)?,
    };
    Some(FoundCue { track, start, end: start, text: String::from_utf8_lossy(text) })
}

/// A number of variable length; an identifier keeps the bit that marks the length.
fn number(bytes: &mut &[u8], is_id: bool) -> Option<u64> {
    let first = *bytes.first()?;
    let length = usize::try_from(first.leading_zeros()).ok()? + 1;
    let all = bytes.get(..length)?;
    *bytes = &bytes[length..];
    let value = all.iter().try_fold(0u64, |value, byte| {
        value.checked_mul(256).map(|value| value | u64::from(*byte))
    })?;
    Some(if is_id { value } else { value & !(1 << (7 * length)) })
}

fn unsigned(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0i64, |value, byte| value.checked_mul(256)?.checked_add(i64::from(*byte)))
}

/// Segment, Cluster, BlockGroup, Tracks, TrackEntry.
const ENTERED: [u64; 5] = [0x1853_8067, CLUSTER, 0xa0, 0x1654_ae6b, TRACK_ENTRY];
const CLUSTER: u64 = 0x1f43_b675;
const TRACK_ENTRY: u64 = 0xae;
const TRACK_TYPE: u64 = 0x83;
const VIDEO: u64 = 0xe0;
/// PixelCropBottom, PixelCropTop, PixelCropLeft, PixelCropRight.
const CROPS: [u64; 4] = [0x54aa, 0x54bb, 0x54cc, 0x54dd];
/// The types of tracks that FFmpeg makes streams of: video, audio, subtitles, metadata.
const STREAMS: [i64; 4] = [1, 2, 0x11, 0x21];
const TIMESTAMP: u64 = 0xe7;
const CODEC: u64 = 0x86;
const BLOCK: u64 = 0xa1;
const DURATION: u64 = 0x9b;

/// The bytes of a file in which its tracks are described.
const MAX_HEAD: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cropped_streams_are_found_in_front_of_the_clusters() {
        let mut stream = vec![0x1a, 0x45, 0xdf, 0xa3, 0x81, 9];
        stream.extend([0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255]);
        stream.extend(b"\x16\x54\xae\x6b\x80");
        // A button, sound, and two videos, of which one crops nothing.
        stream.extend(b"\xae\x80\x83\x81\x12\xae\x80\x83\x81\x02");
        stream.extend(b"\xae\x80\x83\x81\x01\xe0\x80\xb0\x81\x09\x54\xbb\x81\x00");
        stream.extend(b"\xae\x80\x83\x81\x01\xe0\x80\xb0\x81\x09\x54\xdd\x82\x01\x00");
        assert_eq!(cropped(&stream), [2]);
        let behind = [&stream[..stream.len() - 5], b"\x1f\x43\xb6\x75\x80\x54\xdd\x81\x09"];
        assert_eq!(cropped(&behind.concat()), [0; 0]);
        for end in 0..stream.len() {
            assert_eq!(cropped(&stream[..end]), [0; 0], "{end}");
        }
    }

    #[test]
    fn cues_are_read_and_other_bytes_are_not() {
        let mut stream = vec![0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255];
        stream.extend(b"\x16\x54\xae\x6b\x80\xae\x80\xd7\x81\x01\x86\x88D_WEBVTT");
        stream.extend(b"\xae\x80\xd7\x81\x02\x86\x8dS_TEXT/WEBVTT");
        stream.extend(b"\x1f\x43\xb6\x75\x80\xe7\x82\x03\xe8");
        stream.extend(b"\xa0\x80\xa1\x8a\x81\x00\x0a\x00\n\nText\x9b\x82\x01\x00");
        stream.extend(b"\xa0\x80\xa1\x88\x82\xff\xff\x00\nT\xff\n");
        let cue = |track, start, end, text: &str| FoundCue {
            track,
            start,
            end,
            text: text.to_owned().into(),
        };
        let wanted = [cue(0, 1010, 1266, "Text"), cue(1, 999, 999, "\nT\u{fffd}\n")];
        assert_eq!(cues(&stream).unwrap(), wanted);
        assert_eq!(cues(b""), Some(vec![]));
        for end in 1..stream.len() {
            if let Some(some) = cues(&stream[..end]) {
                assert!(some.len() <= 2);
            }
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut bytes = stream.clone();
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            // Never panics.
            let _ = cues(&bytes);
        }
    }
}
