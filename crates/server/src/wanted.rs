//! What a viewer may say behind a manifest's address: which part of the title, how fast, how long it
//! would wait. Read here, and refused here in words where it makes no sense by itself; whether the
//! title has such a part is for whoever packages it.
//!
//! ```text
//!   /t/film/master.m3u8?start=600&stop=900     five minutes of it
//!                      ?speed=2                at twice the speed: the booking follows
//!                      ?skip=3                 each fourth group of pictures
//!                      ?speed=-1               the last group first
//!                      ?wait=20                rather wait 20 s than be refused
//! ```

use crate::http::Request;
use media::Excerpt;
use std::time::Duration;

/// A part of a title, at a speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) excerpt: Excerpt,
    /// Seconds of media shown in a second, in thousandths.
    pub(crate) speed_milli: u32,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { excerpt: Excerpt::default(), speed_milli: 1000 }
    }
}

/// A parameter that makes no sense, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadParameter(pub(crate) String);

impl Wanted {
    /// What a request asks for.
    pub(crate) fn of(request: &Request) -> Result<Self, BadParameter> {
        let speed = request.query("speed").map(speed).transpose()?.unwrap_or(1000);
        let excerpt = Excerpt {
            start: time(request, "start")?.unwrap_or_default(),
            stop: time(request, "stop")?,
            skip: request.query("skip").map(skip).transpose()?.unwrap_or(0),
            backwards: speed < 0,
        };
        Ok(Self { excerpt, speed_milli: speed.unsigned_abs() })
    }

    /// Whether all of the title is wanted, in its order.
    pub(crate) fn is_all(&self) -> bool {
        self.excerpt == Excerpt::default()
    }

    /// When something is due that is shown at `ms` at normal speed.
    pub(crate) fn due(&self, ms: u32) -> u32 {
        let due = u64::from(ms) * 1000 / u64::from(self.speed_milli.max(1));
        u32::try_from(due).unwrap_or(u32::MAX)
    }
}

/// How long a viewer would wait for its start.
pub(crate) fn patience(request: &Request) -> Result<Duration, BadParameter> {
    let patience = time(request, "wait")?.unwrap_or_default();
    if patience > LONGEST_WAIT {
        let most = LONGEST_WAIT.as_secs();
        return Err(BadParameter(format!("wait is at most {most} s; come again later instead")));
    }
    Ok(patience)
}

/// Whether a request has any of these parameters.
pub(crate) fn asks(request: &Request) -> bool {
    ["start", "stop", "speed", "skip", "wait"].iter().any(|name| request.query(name).is_some())
}

fn time(request: &Request, name: &str) -> Result<Option<Duration>, BadParameter> {
    let Some(text) = request.query(name) else { return Ok(None) };
    let seconds = text.parse::<f64>().ok().filter(|s| (0.0..=LATEST).contains(s));
    let seconds = seconds.ok_or_else(|| {
        let text = shown(text);
        BadParameter(format!("{name}={text} is not a number of seconds such as 90 or 12.5"))
    })?;
    // To the millisecond, so that one part has one name.
    Ok(Some(Duration::from_millis(rounded(seconds * 1000.0))))
}

fn speed(text: &str) -> Result<i32, BadParameter> {
    let milli = text.parse::<f64>().ok().filter(|speed| speed.is_finite()).and_then(|speed| {
        let milli = rounded(speed.abs().min(LATEST) * 1000.0);
        let milli = i32::try_from(milli).ok().filter(|milli| SPEEDS_MILLI.contains(milli))?;
        Some(if speed < 0.0 { -milli } else { milli })
    });
    milli.ok_or_else(|| {
        let text = shown(text);
        BadParameter(format!(
            "speed={text} is not a speed: from 0.016 to 64, negative for backwards; \
             for a pause, ask for nothing"
        ))
    })
}

fn skip(text: &str) -> Result<u32, BadParameter> {
    text.parse().map_err(|_| {
        let text = shown(text);
        BadParameter(format!("skip={text} is not a number of groups to leave out, such as 3"))
    })
}

/// What somebody sent, fit for a message.
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

/// A client gives up on a manifest after about half a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Thirty years, in seconds: no title is so long.
const LATEST: f64 = 1e9;
/// The speeds that [`scheduler::View`] knows: 1/64 to 64.
const SPEEDS_MILLI: std::ops::RangeInclusive<i32> = 16..=64_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    fn request(query: &str) -> Request {
        let head = format!("GET /t/a/master.m3u8?{query} HTTP/1.1\r\nHost: a\r\n\r\n");
        match parse(head.as_bytes()) {
            Parsed::Request(request, _) => request,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn parameters_and_what_they_mean() {
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
        for (query, excerpt, speed_milli) in table {
            let wanted = Wanted { excerpt: *excerpt, speed_milli: *speed_milli };
            assert_eq!(Wanted::of(&request(query)), Ok(wanted), "{query}");
        }
        assert_eq!(patience(&request("wait=1.5")), Ok(ms(1500)));
        assert_eq!(Wanted { speed_milli: 2000, ..Wanted::default() }.due(3000), 1500);
    }

    #[test]
    fn nonsense_is_named() {
        for query in [
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
            let name = query.split('=').next().unwrap();
            let BadParameter(why) = Wanted::of(&request(query)).unwrap_err();
            assert!(why.starts_with(&format!("{name}=")), "{query}: {why}");
        }
        for query in ["wait=31", "wait=-1", "wait=NaN", "wait=soon"] {
            assert!(patience(&request(query)).is_err(), "{query}");
        }
    }
}
