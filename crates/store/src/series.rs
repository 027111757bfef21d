//! A recording that goes on for ever, as titles in a folder: their names, and which of them stay.
//!
//! ```text
//!   hall/20261128T081500Z   hall/20261128T082500Z   hall/20261128T083500Z   (is being recorded)
//!   └── ended before the time that is kept: removed
//! ```
//!
//! Nothing is read or written here, and no clock is read. A title of the folder with another name
//! is not a part: whoever renames a part keeps it.

use std::time::Duration;
use units::show;

/// A part of a series that is a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeriesPart {
    /// The title's name.
    pub(crate) name: String,
    /// The Unix time in seconds at which it begins.
    pub(crate) begins: u64,
    pub(crate) duration: Duration,
}

impl SeriesPart {
    /// The part of a series that has this name; `None` for another title.
    pub(crate) fn of(series: &str, name: &str, duration: Duration) -> Option<Self> {
        let time = name.strip_prefix(series)?.strip_prefix('/')?;
        Some(Self { name: name.to_owned(), begins: show::parse_basic_utc(time)?, duration })
    }

    /// Whether it ended longer ago than `keep`. `now`: Unix seconds.
    pub(crate) fn is_expired(&self, keep: Duration, now: u64) -> bool {
        let end = Duration::from_secs(self.begins).saturating_add(self.duration);
        end.saturating_add(keep) < Duration::from_secs(now)
    }
}

/// The name of a part that begins now, and the Unix time in it: the first second whose name is not
/// taken, behind that of the part before. An input that comes faster than it plays has parts that
/// are named in advance; a clock that is set back by more than that is followed.
pub(crate) fn part_name(
    series: &str,
    now: u64,
    before: Option<u64>,
    is_taken: impl Fn(&str) -> bool,
) -> (String, u64) {
    let before = before.filter(|before| before.saturating_sub(now) < MOST_AHEAD);
    let first = before.map_or(now, |before| now.max(before + 1));
    let names = (first..).map(|begins| (format!("{series}/{}", show::basic_utc(begins)), begins));
    let mut free = names.skip_while(|(name, _)| is_taken(name));
    free.next().expect("there are more seconds than titles")
}

/// The times from one attempt to open a lost input to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackOff {
    last: Option<Duration>,
}

impl BackOff {
    /// How long to wait before the next attempt.
    pub(crate) fn next_wait(&mut self) -> Duration {
        let next = self.last.map_or(FIRST_WAIT, |last| (last * 2).min(LONGEST_WAIT));
        *self.last.insert(next)
    }

    /// How long to wait where an input goes on in another form, after a connection that has lasted
    /// so long: it is there, so that each second would be lost, but one that changes all the time
    /// is not opened all the time.
    pub(crate) fn wait_after_change(&mut self, lasted: Duration) -> Duration {
        if lasted >= STEADY { Duration::ZERO } else { self.next_wait() }
    }
}

/// Decides when a user is warned that less is kept than was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShortWarning {
    told: Option<Duration>,
}

impl ShortWarning {
    /// Whether the length that is kept is news: the first one, and one that is a tenth shorter.
    pub(crate) fn is_news(&mut self, kept: Duration) -> bool {
        let is_news = self.told.is_none_or(|told| kept < told - told / 10);
        if is_news {
            self.told = Some(kept);
        }
        is_news
    }
}

/// The seconds by which names may be ahead of the clock.
const MOST_AHEAD: u64 = 60;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a connection lasts at least after which the next one is opened at once: longer than
/// what is found out of an input when it is opened.
const STEADY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// 28 November 2026, 08:35:12 UTC.
    const NOW: u64 = 1_795_854_912;

    #[test]
    fn parts_are_named_by_their_beginning() {
        let both: &[&str] = &["hall/20261128T083512Z", "hall/20261128T083513Z"];
        for (before, taken, name) in [
            (None, &[][..], "hall/20261128T083512Z"),
            (None, both, "hall/20261128T083514Z"),
            (Some(NOW - 600), &[], "hall/20261128T083512Z"),
            (Some(NOW), &[], "hall/20261128T083513Z"),
            (Some(NOW + 3), both, "hall/20261128T083516Z"),
            // The clock was set back.
            (Some(NOW + 3600), &[], "hall/20261128T083512Z"),
        ] {
            let (given, begins) = part_name("hall", NOW, before, |name| taken.contains(&name));
            assert_eq!(given, name, "{before:?} {taken:?}");
            assert_eq!(show::parse_basic_utc(&name[5..]), Some(begins));
        }
    }

    #[test]
    fn only_titles_with_such_names_are_parts() {
        for (name, begins) in [
            ("hall/20261128T083512Z", Some(NOW)),
            ("hall/20261128T083512", None),
            ("hall/2026112T083512Z", None),
            ("hall/20261328T083512Z", None),
            ("hall/accident", None),
            ("hall", None),
            ("hall2/20261128T083512Z", None),
            ("hall/x/20261128T083512Z", None),
        ] {
            let part = SeriesPart::of("hall", name, Duration::ZERO);
            assert_eq!(part.map(|part| part.begins), begins, "{name}");
        }
    }

    #[test]
    fn a_part_expires_when_its_end_is_longer_ago_than_what_is_kept() {
        let part = SeriesPart::of("hall", "hall/20261128T083512Z", Duration::from_secs(600));
        let part = part.expect("a part");
        let day = Duration::from_secs(86_400);
        for (seconds, expired) in [(0, false), (86_400, false), (87_000, false), (87_001, true)] {
            assert_eq!(part.is_expired(day, NOW + seconds), expired, "after {seconds} s");
        }
        // A clock that was set back.
        assert!(!part.is_expired(Duration::ZERO, NOW - 10));
        assert!(!part.is_expired(Duration::MAX, u64::MAX));
    }

    #[test]
    fn attempts_become_rarer_and_warnings_come_when_less_is_kept() {
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = (0..7).map(|_| back_off.next_wait().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = [60, 10, 9, 0, 10, 3]
            .map(|lasted| back_off.wait_after_change(Duration::from_secs(lasted)).as_secs())
            .to_vec();
        assert_eq!(waits, [0, 0, 1, 2, 0, 4]);
        let mut warning = ShortWarning::default();
        let news =
            [100, 100, 95, 90, 89, 85, 80].map(|kept| warning.is_news(Duration::from_secs(kept)));
        assert_eq!(news, [true, false, false, false, true, false, true]);
    }
}
