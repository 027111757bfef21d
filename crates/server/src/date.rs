//! Dates as text: for HTTP fields (RFC 9110, 5.6.7) and for the log (ISO 8601).

use std::time::{SystemTime, UNIX_EPOCH};

/// A time in the format of HTTP's `Date` field: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// A time in ISO 8601 with milliseconds: `2026-11-21T05:41:58.123Z`.
pub(crate) fn iso_date(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    let of_day = since.as_secs() % 86_400;
    format!(
        "{year}-{:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        month + 1,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        since.subsec_millis()
    )
}

/// Year, month (from 0) and day (from 1) of a day counted from 1 January 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    loop {
        let length = LENGTHS[month] + u64::from(month == 1 && leap(year));
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
        month += 1;
    }
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_formatted_as_in_the_rfc() {
        let shown = |seconds| http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(shown(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(shown(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(shown(951_827_696), "Tue, 29 Feb 2000 12:34:56 GMT");
        assert_eq!(shown(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
        let shown = iso_date(UNIX_EPOCH + Duration::from_millis(1_795_239_718_045));
        assert_eq!(shown, "2026-11-21T05:41:58.045Z");
    }
}
