//! The cues in a Matroska stream of WebVTT tracks, as FFmpeg writes it to a pipe.
//!
//! ```text
//! Segment ┬ Tracks ─ TrackEntry ─ TrackNumber, CodecID
//!         └ Cluster ┬ Timestamp                          ms
//!                   └ BlockGroup ┬ Block                 track, time from the cluster's i16, flags,
//!                                │                       then "identifier \n settings \n text"
//!                                └ BlockDuration         ms; absent: zero
//! ```
//!
//! An element is an identifier, a length, and that many bytes. Elements that contain others are
//! entered by reading on behind their length, all others are skipped.

use std::borrow::Cow;

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
const ENTERED: [u64; 5] = [0x1853_8067, 0x1f43_b675, 0xa0, 0x1654_ae6b, 0xae];
const TIMESTAMP: u64 = 0xe7;
const CODEC: u64 = 0x86;
const BLOCK: u64 = 0xa1;
const DURATION: u64 = 0x9b;

#[cfg(test)]
mod tests {
    use super::*;

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
