//! Replay as ONVIF has it (Streaming Specification, 6): fields of PLAY that choose pictures, pace
//! and times of day, and the header extension by which each packet has its time of day.
//!
//! ```text
//!   RTP header, X = 1 | 0xabac | 3 words | NTP time, 64 bits | C E D T 0000 | CSeq | 0    | payload
//! ```
//! The time of day of a title's beginning is that of its ingest.

use std::time::Duration;
use units::nanos;

/// The option by which players ask for it.
pub(super) const FEATURE: &str = "onvif-replay";

/// What a playback does beside plain RTSP.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayOptions {
    pub(super) frames: FrameChoice,
    /// Whether it is sent at the times of the title, and not as fast as the player takes it.
    pub(super) is_paced: bool,
    /// Whether its range is told in times of day.
    pub(super) by_clock: bool,
    /// Where packets have the header extension, the low byte of the number of the PLAY.
    pub(super) number: Option<u8>,
    /// The time since 1970 of the title's beginning.
    pub(super) epoch: Duration,
}

impl ReplayOptions {
    /// Plain RTSP. `epoch`: the time since 1970 of the title's beginning.
    pub(super) fn plain(epoch: Duration) -> Self {
        Self { frames: FrameChoice::All, is_paced: true, by_clock: false, number: None, epoch }
    }
}

/// Which pictures are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameChoice {
    All,
    /// Pictures from which others are decoded.
    Predicted,
    /// Key frames, at least this far from each other.
    Intra(Duration),
}

/// The choice of a `Frames` field; `None`: it is none.
pub(super) fn frames(value: &str) -> Option<FrameChoice> {
    match value.trim().split_once('/') {
        None => match value.trim() {
            "all" => Some(FrameChoice::All),
            "predicted" => Some(FrameChoice::Predicted),
            "intra" => Some(FrameChoice::Intra(Duration::ZERO)),
            _ => None,
        },
        Some(("intra", interval)) => {
            let interval: u32 = interval.parse().ok()?;
            Some(FrameChoice::Intra(Duration::from_millis(u64::from(interval))))
        }
        Some(_) => None,
    }
}

/// The value of a `Rate-Control` or an `Immediate` field; `None`: it is none.
pub(super) fn yes_or_no(value: &str) -> Option<bool> {
    match value.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// The beginning and the end of a `Range` in times of day (`clock=`), as times since 1970; `None`:
/// it is not one.
pub(super) fn clock_range(value: &str) -> Option<(Option<Duration>, Option<Duration>)> {
    let (start, stop) =
        value.trim().strip_prefix("clock")?.trim().strip_prefix('=')?.split_once('-')?;
    let time = |text: &str| match text.trim() {
        "" => Some(None),
        text => clock_time(text).map(Some),
    };
    let (start, stop) = (time(start)?, time(stop)?);
    // An open beginning would have no end to count from.
    start.map(|start| (Some(start), stop))
}

/// `20261126T180203.5Z` as time since 1970.
fn clock_time(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let has_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = date.len() == 8 && time.len() == 6 && (1..=9).contains(&fraction.len());
    if !fits || ![date, time, fraction].into_iter().all(has_digits) {
        return None;
    }
    let number = |text: &str| text.parse::<u64>().ok();
    let (year, month, day) = (number(&date[..4])?, number(&date[4..6])?, number(&date[6..])?);
    let (hour, minute, second) = (number(&time[..2])?, number(&time[2..4])?, number(&time[4..])?);
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    // A leap second is the 60th.
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = ((days_until(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let billionths = number(&format!("{fraction:0<9}"))?;
    Some(Duration::from_secs(seconds) + Duration::from_nanos(billionths))
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days_until(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + (month * 153 + 2) / 5 + day - 1 - DAYS_BEFORE_1970
}

/// A time since 1970 as a `Range` in times of day has it, to the millisecond.
pub(super) fn clock(time: Duration) -> String {
    let (days, second) = (time.as_secs() / 86_400 + DAYS_BEFORE_1970, time.as_secs() % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let of_year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_days = of_era - (of_year * 365 + of_year / 4 - of_year / 100);
    let month = (of_days * 5 + 2) / 153;
    let day = of_days - (month * 153 + 2) / 5 + 1;
    let year = era * 400 + of_year + u64::from(month > 9);
    let month = if month > 9 { month - 9 } else { month + 3 };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let thousandths = nanos(time) / 1_000_000 % 1000;
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{thousandths:03}Z")
}

/// What the header extension of a packet says.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTime {
    /// When what is in it is shown, since 1970.
    pub(super) clock: Duration,
    /// Whether decoding may start with it (C).
    pub(super) is_clean: bool,
    /// Whether it is of the last of its track (E and T).
    pub(super) is_last: bool,
    /// Whether it does not follow what was sent before (D).
    pub(super) is_discontinuous: bool,
    /// The low byte of the number of the PLAY.
    pub(super) number: u8,
}

impl PacketTime {
    /// The head of a packet with the extension behind the fixed header.
    pub(super) fn extend(&self, head: &[u8]) -> Vec<u8> {
        let seconds = self.clock.as_secs() + SECONDS_BEFORE_1970;
        let fraction = (u64::from(self.clock.subsec_nanos()) << 32) / 1_000_000_000;
        let time = (seconds << 32) | fraction;
        let bits = [(self.is_clean, 0x80), (self.is_last, 0x50), (self.is_discontinuous, 0x20)];
        let flags: u8 = bits.iter().filter(|(is_set, _)| *is_set).map(|(_, bits)| bits).sum();
        let (fixed, rest) = head.split_at(FIXED_HEADER.min(head.len()));
        let mut out = fixed.to_vec();
        if let Some(first) = out.first_mut() {
            *first |= EXTENDED;
        }
        out.extend_from_slice(&[0xab, 0xac, 0, 3]);
        out.extend_from_slice(&time.to_be_bytes());
        out.extend_from_slice(&[flags, self.number, 0, 0]);
        out.extend_from_slice(rest);
        out
    }
}

/// Days from the beginning of March of the year 0 to 1970.
const DAYS_BEFORE_1970: u64 = 719_468;
/// Seconds from 1900, where NTP begins, to 1970.
const SECONDS_BEFORE_1970: u64 = 2_208_988_800;
/// Bytes of an RTP header before its extension, and the bit that announces one (RFC 3550, 5.1).
const FIXED_HEADER: usize = 12;
const EXTENDED: u8 = 0x10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed() {
        let ms = Duration::from_millis;
        for (value, wanted) in [
            ("all", Some(FrameChoice::All)),
            ("predicted", Some(FrameChoice::Predicted)),
            (" intra ", Some(FrameChoice::Intra(Duration::ZERO))),
            ("intra/4000", Some(FrameChoice::Intra(ms(4000)))),
            ("intra/", None),
            ("intra/-1", None),
            ("intra/1.5", None),
            ("predicted/4000", None),
            ("", None),
        ] {
            assert_eq!(frames(value), wanted, "{value}");
        }
        assert_eq!(["yes", "no", "YES", ""].map(yes_or_no), [Some(true), Some(false), None, None]);
    }

    #[test]
    fn times_of_day_are_parsed_and_told() {
        let at = |seconds, ms| Duration::from_secs(seconds) + Duration::from_millis(ms);
        for (value, wanted) in [
            ("clock=19700101T000000Z-", Some((Some(at(0, 0)), None))),
            (
                "clock=20261126T180203.5Z-20280229T235959.999Z",
                Some((Some(at(1_795_716_123, 500)), Some(at(1_835_481_599, 999)))),
            ),
            (" clock = 20000301T000000Z - ", Some((Some(at(951_868_800, 0)), None))),
            ("clock=-20261126T180203Z", None),
            ("clock=20261126T180203-", None),
            ("clock=20261326T180203Z-", None),
            ("clock=20261126T250203Z-", None),
            ("clock=2026é1126T1802Z-", None),
            ("clock=19691231T235959Z-", None),
            ("clock=20261126T180203.Z-", None),
            ("npt=0-", None),
        ] {
            assert_eq!(clock_range(value), wanted, "{value}");
        }
        for time in [0, 68_169_599, 951_782_399, 951_782_400, 1_795_716_123, 4_102_444_799] {
            let told = clock(at(time, 250));
            assert_eq!(clock_time(&told), Some(at(time, 250)), "{told}");
        }
        assert_eq!(clock(at(1_795_716_123, 500)), "20261126T180203.500Z");
    }

    #[test]
    fn the_extension_is_behind_the_fixed_header() {
        let time = PacketTime {
            clock: Duration::from_millis(1_500),
            is_clean: true,
            is_last: false,
            is_discontinuous: true,
            number: 7,
        };
        let mut head = [9; 14];
        head[0] = 0x80;
        let out = time.extend(&head);
        assert_eq!((out[0], &out[1..12], &out[28..]), (0x90, &[9; 11][..], &[9, 9][..]));
        let ntp = [0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0];
        assert_eq!((&out[12..16], &out[16..24]), (&[0xab, 0xac, 0, 3][..], &ntp[..]));
        assert_eq!(out[24..28], [0xa0, 7, 0, 0]);
    }
}
