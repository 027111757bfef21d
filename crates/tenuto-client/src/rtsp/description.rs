//! The tracks in a session description (SDP, RFC 8866).

use crate::url::Url;

/// One media of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedTrack {
    /// The address that `SETUP` names.
    pub(crate) control: String,
    pub(crate) is_video: bool,
    /// The number of the payload's format in RTP packets.
    pub(crate) payload_type: u8,
    /// Ticks of its time stamps per second.
    pub(crate) clock_hz: u32,
    /// The encoding of `a=rtpmap`, without its numbers, and the parameters of `a=fmtp`.
    pub(crate) encoding: String,
    pub(crate) parameters: String,
}

/// The first video and the first audio in the description of a title, and the address of the
/// aggregate.
pub(crate) fn read_description(
    base: &Url,
    text: &str,
) -> Result<(String, Vec<DescribedTrack>), &'static str> {
    let mut sections = text.split("\nm=");
    let session = sections.next().unwrap_or_default();
    if !session.starts_with("v=0") {
        return Err("it does not begin with v=0");
    }
    let aggregate = match attribute(session, "control:").filter(|control| *control != "*") {
        None => base.to_string(),
        Some(control) => resolved(base, control)?,
    };
    let mut tracks: Vec<DescribedTrack> = Vec::new();
    for section in sections {
        let kind = section.split_whitespace().next().unwrap_or_default();
        let is_video = kind == "video";
        let wanted = is_video || kind == "audio";
        if !wanted || tracks.iter().any(|track| track.is_video == is_video) {
            continue;
        }
        tracks.push(read_track(base, section, is_video)?);
    }
    // The first track is the one whose LDUs are judged.
    tracks.sort_by_key(|track| !track.is_video);
    match tracks.is_empty() {
        true => Err("it has neither video nor audio"),
        false => Ok((aggregate, tracks)),
    }
}

fn read_track(base: &Url, section: &str, is_video: bool) -> Result<DescribedTrack, &'static str> {
    let line = section.lines().next().unwrap_or_default();
    let format = line.split_whitespace().nth(3).and_then(|format| format.parse().ok());
    let payload_type: u8 = format.ok_or("a media line has no payload type")?;
    let map = attributes(section, "rtpmap:").find_map(|map| {
        let (number, encoding) = map.split_once(' ')?;
        (number.parse() == Ok(payload_type)).then(|| encoding.split_once('/'))?
    });
    let clock_hz = map.map_or_else(
        || fixed_clock(payload_type),
        |(_, numbers)| numbers.split('/').next()?.parse().ok(),
    );
    let clock_hz = clock_hz.filter(|hz| *hz > 0);
    let encoding = map.map_or_else(|| fixed_encoding(payload_type), |(encoding, _)| encoding);
    let parameters = attributes(section, "fmtp:").find_map(|format| {
        let (number, parameters) = format.split_once(' ')?;
        (number.parse() == Ok(payload_type)).then_some(parameters)
    });
    let control = match attribute(section, "control:") {
        None => base.to_string(),
        Some(control) => resolved(base, control)?,
    };
    Ok(DescribedTrack {
        control,
        is_video,
        payload_type,
        clock_hz: clock_hz.ok_or("a track has no clock")?,
        encoding: encoding.trim().to_owned(),
        parameters: parameters.unwrap_or_default().trim().to_owned(),
    })
}

/// The clock of a payload type that needs no `rtpmap` (RFC 3551, tables 4 and 5).
fn fixed_clock(payload_type: u8) -> Option<u32> {
    Some(match payload_type {
        0 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 13 | 15 | 18 => 8000,
        6 => 16_000,
        10 | 11 => 44_100,
        14 | 25 | 26 | 28 | 31..=34 => 90_000,
        16 => 11_025,
        17 => 22_050,
        _ => return None,
    })
}

/// The encoding of a payload type without an `rtpmap`, as far as its payload has a header.
fn fixed_encoding(payload_type: u8) -> &'static str {
    match payload_type {
        14 => "MPA",
        32 => "MPV",
        33 => "MP2T",
        _ => "",
    }
}

/// The address of a track. A relative one is added to the base as to a directory, as players do
/// (RFC 2326, C.1.1 and C.3).
fn resolved(base: &Url, control: &str) -> Result<String, &'static str> {
    if control.contains("://") {
        return Ok(control.to_owned());
    }
    if control.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err("the address of a track makes no sense");
    }
    Ok(base.below(control))
}

fn attribute<'a>(section: &'a str, name: &'a str) -> Option<&'a str> {
    attributes(section, name).next()
}

fn attributes<'a>(section: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = section.lines().filter_map(|line| line.strip_prefix("a="));
    lines.filter_map(move |line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, Vec<DescribedTrack>), &'static str> {
        let base = Url::parse("rtsp://h:8554/t/film?token=x").unwrap();
        read_description(&base, &text.replace('|', "\r\n"))
    }

    #[test]
    fn the_first_video_and_the_first_audio_are_played() {
        let text = "v=0|o=- 1 1 IN IP4 h|s=film|a=control:*|\
            m=audio 0 RTP/AVP 97|a=rtpmap:97 MPEG4-GENERIC/48000/2|a=fmtp:97 mode=AAC-hbr|\
            a=control:trackID=2|\
            m=video 0 RTP/AVP 96|a=rtpmap:96 H264/90000|a=control:rtsp://h:8554/t/film/trackID=1|\
            m=video 0 RTP/AVP 98|a=rtpmap:98 H265/90000|a=control:trackID=9|\
            m=application 0 RTP/AVP 99|a=control:trackID=3|";
        let (aggregate, tracks) = read(text).unwrap();
        assert_eq!(aggregate, "rtsp://h:8554/t/film?token=x");
        let shown: Vec<_> = tracks
            .iter()
            .map(|track| {
                let DescribedTrack { control, payload_type, encoding, parameters, .. } = track;
                (
                    control.as_str(),
                    *payload_type,
                    track.clock_hz,
                    format!("{encoding} {parameters}"),
                )
            })
            .collect();
        let wanted = [
            ("rtsp://h:8554/t/film/trackID=1", 96, 90_000, "H264 ".to_owned()),
            ("rtsp://h:8554/t/film/trackID=2", 97, 48_000, "MPEG4-GENERIC mode=AAC-hbr".to_owned()),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_payload_type_of_old_needs_no_map() {
        let (_, tracks) = read("v=0|m=audio 0 RTP/AVP 0|").unwrap();
        assert_eq!((tracks[0].clock_hz, tracks[0].is_video), (8000, false));
        let (_, tracks) = read("v=0|m=video 0 RTP/AVP 33|").unwrap();
        assert_eq!((tracks[0].clock_hz, tracks[0].encoding.as_str()), (90_000, "MP2T"));
        assert_eq!(tracks[0].control, "rtsp://h:8554/t/film?token=x");
    }

    #[test]
    fn a_description_that_cannot_be_played_is_refused_with_the_reason() {
        let cases = [
            ("", "v=0"),
            ("v=0|m=text 0 RTP/AVP 96|", "neither"),
            ("v=0|m=video 0 RTP/AVP|", "payload type"),
            ("v=0|m=video 0 RTP/AVP 300|", "payload type"),
            ("v=0|m=video 0 RTP/AVP 96|", "no clock"),
            ("v=0|m=video 0 RTP/AVP 96|a=rtpmap:96 H264/0|", "no clock"),
            ("v=0|m=video 0 RTP/AVP 26|a=control:a b|", "no sense"),
        ];
        for (text, wanted) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
    }
}
