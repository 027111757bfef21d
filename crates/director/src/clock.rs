//! How far the clock of another machine is from the clock of this one, as its HTTP answers tell.
//!
//! ```text
//!   sent ─────────────▶ answer made (Date: whole seconds) ─────────────▶ received
//!   Date is before sent or after received: the clocks differ by this much at least
//! ```
//!
//! Nothing is corrected here: what is signed with a time by one machine and checked by another
//! needs clocks that are synchronised, and who runs them is told when they are not.

use std::fmt;
use std::time::{Duration, SystemTime};

/// How far another machine's clock is ahead of the clock of this one: negative where it is behind.
/// Zero where the times of an exchange agree within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockDifference {
    millis: i64,
}

impl ClockDifference {
    /// The difference by the `Date` of an answer to a request that was sent and answered at these
    /// times of this machine; `None` where the field is no date.
    pub fn of(date: &str, sent: SystemTime, received: SystemTime) -> Option<Self> {
        let date = httpdate::parse_http_date(date.trim()).ok()?;
        // The field leaves out the part of a second.
        let latest = date + Duration::from_secs(1);
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let ahead = date.duration_since(received).map_or(0, millis);
        let behind = sent.duration_since(latest).map_or(0, millis);
        Some(Self { millis: ahead - behind })
    }

    /// The difference by two times, in seconds of Unix time.
    pub fn between(other: u64, here: u64) -> Self {
        let millis =
            |secs: u64| i64::try_from(secs).unwrap_or(i64::MAX / 2000).min(i64::MAX / 2000);
        Self { millis: (millis(other) - millis(here)) * 1000 }
    }

    /// The difference in seconds.
    pub fn seconds(self) -> f64 {
        self.millis as f64 / 1000.0
    }

    /// How large it is, in whichever direction.
    pub fn size(self) -> Duration {
        Duration::from_millis(self.millis.unsigned_abs())
    }

    /// Whether synchronised clocks cannot be so far apart.
    pub fn is_large(self) -> bool {
        self.size() > LARGEST
    }
}

impl fmt::Display for ClockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.millis < 0 { "behind" } else { "ahead of" };
        write!(f, "{:.1} s {direction}", self.size().as_secs_f64())
    }
}

/// What to do where clocks differ.
pub const SYNCHRONISE: &str = "synchronise the clocks of both machines (NTP)";

/// Clocks that are synchronised by NTP differ by milliseconds, also over a slow network.
const LARGEST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_tells_how_far_clocks_are_apart_at_least() {
        // Milliseconds from 08:49:37 of this machine: sent, and received.
        let rows = [
            ("08:49:37", 0, 0, 0),
            ("08:49:37", 999, 1_000, 0),
            // An answer takes its time.
            ("08:49:38", 0, 2_000, 0),
            ("08:49:38", 0, 700, 300),
            ("08:49:37", 1_300, 2_000, -300),
            ("08:54:37", 0, 100, 299_900),
            ("08:44:37", 500, 600, -299_500),
        ];
        let start = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let at = |millis| start + Duration::from_millis(millis);
        for (time, sent, received, wanted) in rows {
            let date = format!("Sun, 06 Nov 1994 {time} GMT");
            let found = ClockDifference::of(&date, at(sent), at(received)).unwrap();
            assert_eq!(found.millis, wanted, "{time} {sent} {received}");
            assert_eq!(found.is_large(), wanted.abs() > 5_000);
        }
        for wrong in ["", "yesterday", "Sun, 06 Nov 1994 08:49:37"] {
            assert_eq!(ClockDifference::of(wrong, at(0), at(0)), None, "{wrong}");
        }
    }

    #[test]
    fn a_difference_is_told_with_its_direction() {
        let rows =
            [(107, 100, "7.0 s ahead of"), (100, 420, "320.0 s behind"), (1, 1, "0.0 s ahead of")];
        for (other, here, wanted) in rows {
            assert_eq!(ClockDifference::between(other, here).to_string(), wanted);
        }
        assert_eq!(ClockDifference::between(100, 420).seconds(), -320.0);
        // Times that nobody has.
        assert!(ClockDifference::between(u64::MAX, 0).is_large());
    }
}
