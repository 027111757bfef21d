//! Numbers and texts in the form in which users read them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::fmt::Display;
use std::time::{Duration, SystemTime};

/// The length of a film: `1:32:05`, `4:20`; under a minute with tenths: `9.5 s`.
pub fn length(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    // Rounded before it is split, so that 59.6 s does not become 60 seconds of a minute.
    let whole = Duration::try_from_secs_f64(seconds.round()).unwrap_or_default().as_secs();
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A Unix time as UTC: `2026-11-21 05:45`.
pub fn moment(unix: u64) -> String {
    date(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix)))
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

/// A time in the format of HTTP's `Date` field (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(time: SystemTime) -> String {
    date(Some(time)).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A Unix time in ISO 8601: `2026-11-21T05:41:58Z`.
pub fn iso_seconds(unix: u64) -> String {
    date(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix))).to_string()
}

/// A Unix time in the basic format of ISO 8601, which can be part of a name: `20261121T054158Z`.
pub fn basic_utc(unix: u64) -> String {
    date(SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix)))
        .strftime(BASIC_UTC)
        .to_string()
}

/// The Unix time of a text that [`basic_utc`] has written.
pub fn parse_basic_utc(text: &str) -> Option<u64> {
    let time = DateTime::strptime(BASIC_UTC, text).ok()?.to_zoned(TimeZone::UTC).ok()?;
    let unix = u64::try_from(time.timestamp().as_second()).ok()?;
    // One spelling of each time: numbers could have fewer digits.
    (basic_utc(unix) == text).then_some(unix)
}

const BASIC_UTC: &str = "%Y%m%dT%H%M%SZ";

/// A time in ISO 8601 with milliseconds: `2026-11-21T05:41:58.123Z`.
pub fn iso_date(time: SystemTime) -> String {
    format!("{:.3}", date(Some(time)))
}

// A clock that is set to a year after 9999 is shown as far as dates go.
fn date(time: Option<SystemTime>) -> Timestamp {
    time.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(Timestamp::MAX)
}

/// A count in groups of three: `1,234,567`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// A count with its noun, given in the singular: `1 title`, `2 titles`, `0 copies`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    format!("{number} {}", plural(&number, noun))
}

/// A noun, given in the singular, in the form that follows `number`.
pub fn plural<N: PartialEq + From<u8>>(number: &N, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if *number == N::from(1) => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

/// A relative difference such as 0.25 with a sign: `+25.0 %`; beyond a factor of ten the factor:
/// `178 times`.
pub fn change(difference: f64, decimals: usize) -> String {
    if difference.abs() < 10.0 {
        return format!("{:+.decimals$} %", difference * 100.0);
    }
    // A share cannot fall by more than itself: a large negative one is an error bound.
    let sign = if difference < 0.0 { "-" } else { "" };
    format!("{sign}{:.0} times", difference.abs() + 1.0)
}

/// Milliseconds: `420 ms`, `1.20 s`.
pub fn millis(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.2} s", ms / 1e3) }
}

/// `text` with each paragraph broken into lines of at most `width` bytes.
pub fn wrapped(text: &str, width: usize) -> String {
    text.split("\n\n").map(|paragraph| broken(paragraph, width)).collect::<Vec<_>>().join("\n\n")
}

fn broken(paragraph: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        if column > 0 {
            let fits = column + 1 + word.len() <= width;
            lines.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        lines.push_str(word);
        column += word.len();
    }
    lines
}

/// The first `most` of `all` things, and the number of the others: `a, b, and 3 more`. `where_all`
/// follows that number: where all of them are shown.
pub fn first_of<T: Display>(
    things: impl Iterator<Item = T>,
    most: usize,
    all: u64,
    where_all: &str,
) -> String {
    let shown: Vec<String> = things.take(most).map(|thing| thing.to_string()).collect();
    let more = match all.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!(", and {more} more{where_all}"),
    };
    format!("{}{more}", shown.join(", "))
}

/// A word of a command as a shell takes it for one: in quotes where it needs them.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// Text with control characters escaped. File names, and what other programs print, are untrusted:
/// nothing in them may control a terminal or look like a line of this program.
pub fn escaped(text: &str) -> Cow<'_, str> {
    // Nearly every text has none, and is not copied.
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.into() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Whether a character is a control character, or controls text without being seen: it changes the
/// direction of the text around it (U+202A to U+202E, U+2066 to U+2069) or has no width (U+200B,
/// U+FEFF). Joiners, which some scripts need, are not among them.
pub fn is_control(c: char) -> bool {
    let unseen =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{feff}');
    unseen || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_groups() {
        assert_eq!([7, 999, 1000, 1_234_567].map(thousands), ["7", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn counts_have_a_noun_in_their_number() {
        let shown = [0u64, 1, 2].map(|n| count(n, "title"));
        assert_eq!(shown, ["0 titles", "1 title", "2 titles"]);
        assert_eq!([count(2u32, "copy"), count(2usize, "key")], ["2 copies", "2 keys"]);
    }

    #[test]
    fn large_changes_are_factors() {
        let shown = [0.0, 0.256, -0.5, 9.99, 177.282, -11.0].map(|part| change(part, 1));
        assert_eq!(shown, ["+0.0 %", "+25.6 %", "-50.0 %", "+999.0 %", "178 times", "-12 times"]);
    }

    #[test]
    fn lengths_and_moments() {
        let lengths = [9.54, 59.94, 260.0, 5525.4].map(length);
        assert_eq!(lengths, ["9.5 s", "59.9 s", "4:20", "1:32:05"]);
        let moments = [0, 951_782_399, 951_782_400, 1_795_239_900].map(moment);
        assert_eq!(
            moments,
            ["1970-01-01 00:00", "2000-02-28 23:59", "2000-02-29 00:00", "2026-11-21 05:45"]
        );
        assert_eq!(moment(u64::MAX), "9999-12-30 22:00");
    }

    #[test]
    fn dates_are_formatted_as_in_the_rfc() {
        let shown = |seconds| http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(shown(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(shown(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(shown(951_827_696), "Tue, 29 Feb 2000 12:34:56 GMT");
        assert_eq!(shown(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
        let unix = [0, 951_782_399, 951_782_400, 1_772_396_100, 4_107_542_400];
        let wanted = [
            "1970-01-01T00:00:00Z",
            "2000-02-28T23:59:59Z",
            "2000-02-29T00:00:00Z",
            "2026-03-01T20:15:00Z",
            "2100-03-01T00:00:00Z",
        ];
        assert_eq!(unix.map(iso_seconds), wanted);
        let shown = iso_date(SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_239_718_045));
        assert_eq!(shown, "2026-11-21T05:41:58.045Z");
    }
}
