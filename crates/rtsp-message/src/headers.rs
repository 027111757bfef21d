//! The header fields that decide what is played and where it goes, and addresses. Numbers and text
//! only.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fmt;
use std::time::Duration;
use units::nanos;

/// How the packets of a track are to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportSpec {
    /// Over UDP to these ports of the player.
    Udp {
        /// For packets.
        rtp: u16,
        /// For reports.
        rtcp: u16,
    },
    /// Between the messages of the connection; the channels where the player names them.
    Interleaved {
        /// The channel of packets, and that of reports.
        channels: Option<(u8, u8)>,
    },
}

/// What the packets of a transport have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// RTP with what the address names (`RTP/AVP`).
    Rtp,
    /// RTP with a transport stream (`MP2T/RTP`).
    TransportStreamInRtp,
    /// A transport stream alone (`MP2T`).
    TransportStream,
}

/// The first transport of a `Transport` field that exists here; `None`: there is none.
pub fn transport(value: &str) -> Option<(Profile, TransportSpec)> {
    value.split(',').find_map(|spec| {
        let mut words = spec.split(';').map(str::trim);
        let protocol = words.next()?.to_ascii_uppercase();
        let mut ports = None;
        let mut channels = None;
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name.to_ascii_lowercase().as_str() {
                "multicast" => return None,
                "client_port" => ports = Some(pair(value)?),
                "interleaved" => {
                    let (rtp, rtcp) = pair(value)?;
                    channels = Some((u8::try_from(rtp).ok()?, u8::try_from(rtcp).ok()?));
                }
                "mode" if !value.trim_matches('"').eq_ignore_ascii_case("play") => return None,
                _ => {}
            }
        }
        let (profile, is_udp) = match protocol.as_str() {
            "RTP/AVP" | "RTP/AVP/UDP" => (Profile::Rtp, true),
            "RTP/AVP/TCP" => (Profile::Rtp, false),
            "MP2T/RTP" | "MP2T/RTP/UDP" => (Profile::TransportStreamInRtp, true),
            "MP2T/RTP/TCP" => (Profile::TransportStreamInRtp, false),
            // Some players of cable operators name the layer between, ITU-T H.222.1.
            "MP2T" | "MP2T/UDP" | "MP2T/H2221/UDP" => (Profile::TransportStream, true),
            _ => return None,
        };
        if !is_udp {
            return Some((profile, TransportSpec::Interleaved { channels }));
        }
        let (rtp, rtcp) = ports.filter(|(rtp, rtcp)| *rtp > 0 && *rtcp > 0)?;
        Some((profile, TransportSpec::Udp { rtp, rtcp }))
    })
}

/// `4-5`, or `4` for `4-5`.
fn pair(text: &str) -> Option<(u16, u16)> {
    let (first, second) = text.split_once('-').unwrap_or((text, ""));
    let first: u16 = first.trim().parse().ok()?;
    let second = match second.trim() {
        "" => first.checked_add(1)?,
        second => second.parse().ok()?,
    };
    Some((first, second))
}

/// A `Range` in normal play time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NptRange {
    /// `None`: from the present position.
    pub start: Option<Duration>,
    /// `None`: to the end.
    pub stop: Option<Duration>,
}

/// The range of a `Range` field; `None`: not one in normal play time.
pub fn range(value: &str) -> Option<NptRange> {
    let (start, stop) =
        value.trim().strip_prefix("npt")?.trim().strip_prefix('=')?.split_once('-')?;
    let start = match start.trim() {
        "" | "now" => None,
        start => Some(npt(start)?),
    };
    let stop = match stop.trim() {
        "" => None,
        stop => Some(npt(stop)?),
    };
    Some(NptRange { start, stop })
}

/// Seconds (`12.5`) or hours, minutes and seconds (`1:02:03.5`).
fn npt(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    for (place, part) in text.split(':').enumerate() {
        let has_digits_only = part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if place > 2 || !has_digits_only {
            return None;
        }
        seconds = seconds * 60.0 + part.parse::<f64>().ok()?;
    }
    // No title is longer than thirty years.
    (seconds <= 1e9).then(|| Duration::from_secs_f64(seconds))
}

/// A `Scale` in thousandths, limited to the speeds that exist; `None`: not a speed. Negative ones
/// and zero are `Some(None)`: nothing is played backwards.
pub fn scale(value: &str) -> Option<Option<u32>> {
    let scale: f64 = value.trim().parse().ok().filter(|scale: &f64| scale.is_finite())?;
    if scale <= 0.0 {
        return Some(None);
    }
    let limited = (scale * 1000.0).round().clamp(SLOWEST_MILLI, FASTEST_MILLI);
    // Through a duration, whose conversion is exact for such small whole numbers.
    u32::try_from(Duration::from_secs_f64(limited).as_secs()).ok().map(Some)
}

/// A time for a `Range` field.
pub fn seconds(time: Duration) -> String {
    format!("{}.{:03}", time.as_secs(), nanos(time) / 1_000_000 % 1000)
}

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The title.
    pub title: String,
    /// The stream, where it names one.
    pub stream: Option<StreamName>,
}

/// A stream of a title in its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamName {
    /// `trackID=N`: a track alone.
    Track(u16),
    /// `ts`: pictures and sound in a transport stream.
    Transport,
}

/// The resource that the path of an address names; `None`: there is none.
pub fn target(path: &str) -> Option<Target> {
    let mut parts = path.strip_prefix("/t/")?.split('/');
    let title = percent_decode_str(parts.next()?).decode_utf8().ok()?.into_owned();
    if title.is_empty() {
        return None;
    }
    let stream = match parts.next() {
        None | Some("") => None,
        Some(TRANSPORT_STREAM) => Some(StreamName::Transport),
        Some(part) => Some(StreamName::Track(part.strip_prefix(TRACK)?.parse().ok()?)),
    };
    // Some players put a slash behind the address of a stream.
    let is_end = parts.all(str::is_empty);
    is_end.then_some(Target { title, stream })
}

impl Target {
    /// The path of its address.
    pub fn path(&self) -> String {
        let title = utf8_percent_encode(&self.title, ESCAPED);
        match self.stream {
            None => format!("/t/{title}"),
            Some(stream) => format!("/t/{title}/{stream}"),
        }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Track(track) => write!(f, "{TRACK}{track}"),
            Self::Transport => f.write_str(TRANSPORT_STREAM),
        }
    }
}

/// Every character that is not unreserved in RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The last part of a track's address, before its number.
const TRACK: &str = "trackID=";
/// The last part of a transport stream's address.
const TRANSPORT_STREAM: &str = "ts";
/// The speeds of the query parameter `speed`.
const SLOWEST_MILLI: f64 = 16.0;
const FASTEST_MILLI: f64 = 64_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_chosen_in_the_order_of_the_player() {
        let of = |profile, rtp, rtcp| Some((profile, TransportSpec::Udp { rtp, rtcp }));
        let udp = |rtp, rtcp| of(Profile::Rtp, rtp, rtcp);
        let tcp = |channels| Some((Profile::Rtp, TransportSpec::Interleaved { channels }));
        let in_rtp = Profile::TransportStreamInRtp;
        for (value, wanted) in [
            ("RTP/AVP;unicast;client_port=4588-4589", udp(4588, 4589)),
            ("RTP/AVP/UDP;unicast;client_port=4588;mode=\"PLAY\"", udp(4588, 4589)),
            ("RTP/AVP/TCP;unicast;interleaved=2-3", tcp(Some((2, 3)))),
            ("RTP/AVP/TCP;unicast", tcp(None)),
            ("RTP/AVP;multicast, RTP/AVP/TCP;interleaved=0-1", tcp(Some((0, 1)))),
            ("RTP/SAVP;unicast;client_port=4-5,RTP/AVP;client_port=6-7", udp(6, 7)),
            ("MP2T/RTP/UDP;unicast;client_port=6-7", of(in_rtp, 6, 7)),
            ("MP2T/H2221/UDP;unicast;client_port=6", of(Profile::TransportStream, 6, 7)),
            ("MP2T/UDP;destination=192.0.2.1;client_port=6", of(Profile::TransportStream, 6, 7)),
            ("MP2T/DVBC/QAM;unicast", None),
            ("RTP/AVP;unicast", None),
            ("RTP/AVP;unicast;client_port=0-1", None),
            ("RTP/AVP;unicast;client_port=70000-1", None),
            ("RTP/AVP;unicast;client_port=65535", None),
            ("RTP/AVP;unicast;client_port=4-5;mode=RECORD", None),
            ("RTP/AVP/TCP;interleaved=300-301", None),
            ("", None),
        ] {
            assert_eq!(transport(value), wanted, "{value}");
        }
    }

    #[test]
    fn ranges_and_scales_are_parsed() {
        let ms = Duration::from_millis;
        let given = |start: Option<u64>, stop: Option<u64>| {
            Some(NptRange { start: start.map(ms), stop: stop.map(ms) })
        };
        for (value, wanted) in [
            ("npt=0.000-", given(Some(0), None)),
            ("npt=10-20.5", given(Some(10_000), Some(20_500))),
            ("npt=now-", given(None, None)),
            ("npt=-7", given(None, Some(7000))),
            ("npt = 1:02:03.5 - ", given(Some(3_723_500), None)),
            ("npt=10", None),
            ("npt=x-", None),
            ("npt=1e5-", None),
            ("npt=inf-", None),
            ("npt=1:2:3:4-", None),
            ("clock=19961108T142300Z-", None),
            ("smpte=0:10:00-", None),
        ] {
            assert_eq!(range(value), wanted, "{value}");
        }
        for (value, wanted) in [
            ("1", Some(Some(1000))),
            ("2.0", Some(Some(2000))),
            ("0.001", Some(Some(16))),
            ("1000", Some(Some(64_000))),
            ("-1", Some(None)),
            ("0", Some(None)),
            ("x", None),
            ("NaN", None),
            ("inf", None),
        ] {
            assert_eq!(scale(value), wanted, "{value}");
        }
        assert_eq!(seconds(ms(61_005)), "61.005");
    }

    #[test]
    fn addresses_name_titles_and_tracks() {
        let named = |title: &str, stream| Some(Target { title: title.to_owned(), stream });
        for (path, wanted) in [
            ("/t/film", named("film", None)),
            ("/t/film/", named("film", None)),
            ("/t/A%2FB%20%C3%A4/trackID=2", named("A/B ä", Some(StreamName::Track(2)))),
            ("/t/film/ts", named("film", Some(StreamName::Transport))),
            ("/t/film/ts/", named("film", Some(StreamName::Transport))),
            ("/t/film/trackID=x", None),
            ("/t/film/trackID=2/3", None),
            ("/t/film/0.m3u8", None),
            ("/t/", None),
            ("/t/%ff", None),
            ("/film", None),
        ] {
            let found = target(path);
            assert_eq!(found, wanted, "{path}");
            if let Some(found) = found {
                assert_eq!(found.path(), path.trim_end_matches('/'));
            }
        }
    }
}
