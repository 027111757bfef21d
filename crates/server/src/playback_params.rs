//! The query parameters of a manifest: which part of the title, at which speed, and how long the
//! player waits for admission. Values that are invalid by themselves are refused here; whether the
//! title has such a part is decided by `media`.
//!
//! ```text
//!   /t/film/master.m3u8?start=600&stop=900     five minutes of it
//!                      ?speed=2                at twice the speed: the reservation follows
//!                      ?skip=3                 every fourth group of pictures
//!                      ?speed=-1               the last group first
//!                      ?wait=20                wait up to 20 s rather than be refused
//!                      ?priority=low           give way to others
//!   /t/film.ts?rate=8Mbps                       the transport stream at a constant rate
//! ```

use crate::config::ServerConfig;
use engine::Priority;
use media::Excerpt;
use std::time::Duration;
use units::BitRate;

/// A part of a title, and the speed at which it is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaybackParams {
    pub(crate) excerpt: Excerpt,
    /// Seconds of media played in a second, in thousandths.
    pub(crate) speed_milli: u32,
    /// The constant rate of its file with a transport stream; `None`: it has no such file.
    pub(crate) rate: Option<BitRate>,
}

impl Default for PlaybackParams {
    fn default() -> Self {
        Self { excerpt: Excerpt::default(), speed_milli: 1000, rate: None }
    }
}

/// An invalid parameter, and the values that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadParameter(pub(crate) String);

impl PlaybackParams {
    /// The parameters in a query of names and values, without a constant rate.
    pub(crate) fn of(query: &[(String, String)]) -> Result<Self, BadParameter> {
        let speed = value(query, "speed").map(speed).transpose()?.unwrap_or(1000);
        let excerpt = Excerpt {
            start: time(query, "start")?.unwrap_or_default(),
            stop: time(query, "stop")?,
            skip: value(query, "skip").map(skip).transpose()?.unwrap_or(0),
            backwards: speed < 0,
        };
        Ok(Self { excerpt, speed_milli: speed.unsigned_abs(), rate: None })
    }

    /// The query of a manifest with these parameters, without what is the default. A manifest has
    /// no constant rate.
    pub(crate) fn query(&self) -> String {
        let Excerpt { start, stop, skip, backwards } = self.excerpt;
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        let speed = f64::from(self.speed_milli) / if backwards { -1000.0 } else { 1000.0 };
        let parts = [
            ("start", Some(start).filter(|start| !start.is_zero()).map(seconds)),
            ("stop", stop.map(seconds)),
            ("skip", Some(skip).filter(|skip| *skip > 0).map(|skip| skip.to_string())),
            (
                "speed",
                Some(speed)
                    .filter(|_| backwards || self.speed_milli != 1000)
                    .map(|it| it.to_string()),
            ),
        ];
        let parts =
            parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        parts.collect::<Vec<_>>().join("&")
    }

    /// The parameters in a query as [`Self::query`] writes it.
    pub(crate) fn of_text(query: &str) -> Result<Self, BadParameter> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self::of(&pairs)
    }

    /// Whether the whole title is played forwards, at whatever speed.
    pub(crate) fn is_all(&self) -> bool {
        self.excerpt == Excerpt::default()
    }

    /// The due time in milliseconds of media that is due at `ms` at normal speed.
    pub(crate) fn due(&self, ms: u32) -> u32 {
        let due = u64::from(ms) * 1000 / u64::from(self.speed_milli.max(1));
        u32::try_from(due).unwrap_or(u32::MAX)
    }
}

/// How long the player waits for its start (`wait`); `None` if it does not say.
pub(crate) fn max_wait(query: &[(String, String)]) -> Result<Option<Duration>, BadParameter> {
    let max_wait = time(query, "wait")?;
    if max_wait.is_some_and(|wait| wait > ServerConfig::LONGEST_WAIT) {
        let most = ServerConfig::LONGEST_WAIT.as_secs();
        return Err(BadParameter(format!(
            "wait is at most {most} s; request the manifest again later instead"
        )));
    }
    Ok(max_wait)
}

/// Where in a title a player goes on (`start`) that asks for no part of it; `None` if the query
/// does not say.
pub(crate) fn start(query: &[(String, String)]) -> Result<Option<Duration>, BadParameter> {
    time(query, "start")
}

/// The constant rate of a transport stream (`rate`); `None` if the query has none.
pub(crate) fn rate(query: &[(String, String)]) -> Result<Option<BitRate>, BadParameter> {
    let Some(text) = value(query, "rate") else { return Ok(None) };
    match text.parse::<BitRate>() {
        Ok(rate) if (LOWEST_RATE..=HIGHEST_RATE).contains(&rate) => Ok(Some(rate)),
        _ => {
            let text = shown(text);
            let range = format!("from {LOWEST_RATE} to {HIGHEST_RATE}");
            Err(BadParameter(format!("rate={text} is not a rate {range}, such as 8Mbps")))
        }
    }
}

/// The priority that the player asks for (`priority`); `None` if it does not say.
pub(crate) fn priority(query: &[(String, String)]) -> Result<Option<Priority>, BadParameter> {
    let Some(text) = value(query, "priority") else { return Ok(None) };
    let known = Priority::ALL.into_iter().find(|priority| priority.word() == text);
    known.map(Some).ok_or_else(|| {
        let text = shown(text);
        BadParameter(format!("priority={text} is none of low, normal and high"))
    })
}

/// Whether a query has any of a manifest's parameters.
pub(crate) fn has_any(query: &[(String, String)]) -> bool {
    ["start", "stop", "speed", "skip", "wait", "priority"]
        .iter()
        .any(|name| value(query, name).is_some())
}

fn value<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn time(query: &[(String, String)], name: &str) -> Result<Option<Duration>, BadParameter> {
    let Some(text) = value(query, name) else { return Ok(None) };
    let valid = text.parse::<f64>().ok().filter(|s| (0.0..=LATEST).contains(s));
    let seconds = valid.ok_or_else(|| {
        let text = shown(text);
        BadParameter(format!("{name}={text} is not a number of seconds such as 90 or 12.5"))
    })?;
    // Rounded to the millisecond, so that one part has one entity tag.
    Ok(Some(Duration::from_millis(rounded(seconds * 1000.0))))
}

fn speed(text: &str) -> Result<i32, BadParameter> {
    let milli = text.parse::<f64>().ok().filter(|speed| speed.is_finite()).and_then(|speed| {
        // Bounded first, so that the number fits an integer.
        let magnitude = rounded(speed.abs().min(LATEST) * 1000.0);
        let milli = i32::try_from(magnitude).ok().filter(|milli| SPEEDS_MILLI.contains(milli))?;
        Some(if speed < 0.0 { -milli } else { milli })
    });
    milli.ok_or_else(|| {
        let text = shown(text);
        BadParameter(format!(
            "speed={text} is not a speed: from 0.016 to 64, negative for backwards; \
             to pause, request no media"
        ))
    })
}

fn skip(text: &str) -> Result<u32, BadParameter> {
    text.parse().map_err(|_| {
        let text = shown(text);
        BadParameter(format!("skip={text} is not a number of groups to leave out, such as 3"))
    })
}

/// A client's text, shortened and escaped for a message.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, bounded"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The latest time in a title, in seconds: thirty years.
const LATEST: f64 = 1e9;
/// Constant rates that a player may ask for; which of them a title can have is known from its LDUs.
const LOWEST_RATE: BitRate = BitRate(1000);
const HIGHEST_RATE: BitRate = BitRate(10_000_000_000);
/// Speeds that a player may ask for, in thousandths: 1/64 to 64 times.
const SPEEDS_MILLI: std::ops::RangeInclusive<i32> = 16..=64_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Vec<(String, String)> {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn parameters_are_parsed() {
        let ms = Duration::from_millis;
        let all = Excerpt::default();
        let table: &[(&str, Excerpt, u32)] = &[
            ("", all, 1000),
            (
                "start=90&stop=91.5",
                Excerpt { start: ms(90_000), stop: Some(ms(91_500)), ..all },
                1000,
            ),
            ("speed=2&skip=3", Excerpt { skip: 3, ..all }, 2000),
            ("speed=-0.5", Excerpt { backwards: true, ..all }, 500),
            ("start=0.0004", all, 1000),
        ];
        for (text, excerpt, speed_milli) in table {
            let params =
                PlaybackParams { excerpt: *excerpt, speed_milli: *speed_milli, rate: None };
            assert_eq!(PlaybackParams::of(&query(text)), Ok(params), "{text}");
        }
        assert_eq!(max_wait(&query("wait=1.5")), Ok(Some(ms(1500))));
        assert_eq!(max_wait(&query("wait=0")), Ok(Some(ms(0))), "no wait is not the default");
        assert_eq!(max_wait(&query("")), Ok(None));
        assert_eq!(priority(&query("priority=low")), Ok(Some(Priority::Low)));
        assert_eq!(priority(&query("")), Ok(None));
        assert_eq!(rate(&query("rate=8.5Mbps")), Ok(Some(BitRate(8_500_000))));
        assert_eq!(rate(&query("rate=8000000")), Ok(Some(BitRate(8_000_000))));
        assert_eq!(rate(&query("")), Ok(None));
        assert_eq!(
            PlaybackParams { speed_milli: 2000, ..PlaybackParams::default() }.due(3000),
            1500
        );
    }

    #[test]
    fn an_invalid_value_is_named_in_the_error() {
        for text in [
            "start=",
            "start=x",
            "start=-1",
            "start=NaN",
            "start=inf",
            "start=1e99",
            "stop=-0.1",
            "speed=0",
            "speed=NaN",
            "speed=-inf",
            "speed=65",
            "speed=0.001",
            "speed=",
            "speed=1e308",
            "skip=-1",
            "skip=1.5",
            "skip=4294967296",
            "skip=x",
            "skip=",
        ] {
            let name = text.split('=').next().unwrap();
            let BadParameter(why) = PlaybackParams::of(&query(text)).unwrap_err();
            assert!(why.starts_with(&format!("{name}=")), "{text}: {why}");
        }
        for text in ["wait=31", "wait=-1", "wait=NaN", "wait=soon"] {
            assert!(max_wait(&query(text)).is_err(), "{text}");
        }
        for text in
            ["rate=", "rate=0", "rate=-1", "rate=8MB", "rate=inf", "rate=1e99", "rate=11Gbps"]
        {
            assert!(rate(&query(text)).is_err(), "{text}");
        }
        for text in ["priority=", "priority=Low", "priority=1"] {
            assert!(priority(&query(text)).is_err(), "{text}");
        }
    }
}
