//! Times of day.

use std::fmt;
use std::str::FromStr;

/// A time of every day, such as `02:00-14:00`: from a minute to just before another, also across
/// midnight. Equal ends are the whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyWindow {
    /// Minutes after midnight.
    from: u16,
    to: u16,
}

/// A text that is no time of every day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time of day such as 02:00-14:00")]
pub struct BadWindow(String);

impl DailyWindow {
    /// Whether a time of day, in minutes after midnight, is within it.
    pub fn contains(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

impl FromStr for DailyWindow {
    type Err = BadWindow;

    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let minutes = |text: &str| -> Option<u16> {
            let (hours, minutes) = text.split_once(':')?;
            let number = |text: &str, below: u16| {
                let digits = text.len() == 2 && text.bytes().all(|c| c.is_ascii_digit());
                text.parse::<u16>().ok().filter(|number| digits && *number < below)
            };
            Some(number(hours, 24)? * 60 + number(minutes, 60)?)
        };
        let ends = text.split_once('-').and_then(|(from, to)| {
            // The end of the day has a name of its own.
            let to = if to == "24:00" { 0 } else { minutes(to)? };
            Some(Self { from: minutes(from)?, to })
        });
        ends.ok_or_else(|| BadWindow(text.chars().take(40).collect()))
    }
}

impl fmt::Display for DailyWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_of_every_day() {
        for (text, within, outside) in [
            ("02:00-14:00", vec![120, 839], vec![119, 840, 0]),
            ("22:30-06:00", vec![1350, 1439, 0, 359], vec![360, 1349]),
            ("00:00-24:00", vec![0, 720, 1439], vec![]),
            ("23:00-24:00", vec![1380, 1439], vec![0, 1379]),
        ] {
            let window: DailyWindow = text.parse().unwrap();
            assert!(within.iter().all(|minute| window.contains(*minute)), "{text}");
            assert!(!outside.iter().any(|minute| window.contains(*minute)), "{text}");
            let again: DailyWindow = window.to_string().parse().unwrap();
            assert_eq!(again, window);
        }
        for text in ["", "2-14", "02:00", "02:00-25:00", "02:60-03:00", "+2:00-03:00", "02:00-3:00"]
        {
            let error = text.parse::<DailyWindow>().unwrap_err();
            assert!(error.to_string().contains("02:00-14:00"), "{error}");
        }
    }
}
