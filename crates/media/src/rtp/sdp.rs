//! SDP (RFC 4566) of a title, as RTSP's DESCRIBE answers it (RFC 2326, C).

use super::PayloadFormat;
use crate::TrackKind;
use std::fmt::Write;
use std::time::Duration;

/// A track as a section of a description.
#[derive(Clone, Copy, Debug)]
pub struct MediaSection<'a> {
    /// Pictures or sound.
    pub kind: TrackKind,
    /// The payload format of the track.
    pub format: &'a PayloadFormat,
    /// The address of the track, relative to that of the title.
    pub control: &'a str,
}

/// The description of a title with these tracks. `id` distinguishes descriptions that differ;
/// `address` is the server's, with its kind in front (`IP4 192.0.2.1`).
pub fn session_description(
    name: &str,
    id: u64,
    address: &str,
    duration: Duration,
    sections: &[MediaSection<'_>],
) -> String {
    // A line break in a name would begin another line.
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let kind = address.split(' ').next().unwrap_or("IP4");
    let anywhere = if kind == "IP6" { "::" } else { "0.0.0.0" };
    let mut text = format!(
        "v=0\r\no=- {id} 1 IN {address}\r\ns={}\r\nc=IN {kind} {anywhere}\r\nt=0 0\r\n\
         a=control:*\r\na=range:npt=0-{:.3}\r\n",
        if name.is_empty() { " " } else { &name },
        duration.as_secs_f64(),
    );
    for section in sections {
        let media = if section.kind == TrackKind::Video { "video" } else { "audio" };
        let format = section.format;
        let number = format.payload_type;
        let mut line =
            |line: std::fmt::Arguments<'_>| write!(text, "{line}\r\n").unwrap_or_default();
        line(format_args!("m={media} 0 RTP/AVP {number}"));
        line(format_args!("a=rtpmap:{number} {}", format.encoding));
        if !format.parameters.is_empty() {
            line(format_args!("a=fmtp:{number} {}", format.parameters));
        }
        line(format_args!("a=control:{}", section.control));
    }
    text
}
