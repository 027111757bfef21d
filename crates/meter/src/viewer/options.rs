//! What to play, for how many viewers, and how they behave.

use crate::tls::{Identity, Trust};
use player::{AbrRule, Behaviour, PlayerOptions};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use units::{parse_duration, show_duration};

/// Everything [`super::play`] needs to know.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// What is played: HLS playlists (`.m3u8`), DASH manifests (`.mpd`), progressive MP4 files, or
    /// a server's root (or its `/titles`), which stands for all its titles. Several are shared out
    /// among the viewers.
    pub urls: Vec<String>,
    /// How many viewers come.
    pub viewers: u32,
    /// When they come.
    pub arrivals: Arrivals,
    /// Which viewer takes which title.
    pub choice: Choice,
    /// How a title found through a server's root is played.
    pub form: Form,
    /// Decides arrivals and choices: the same seed gives the same viewers.
    pub seed: u64,
    /// After this time from the first arrival all viewers leave and none arrives.
    /// `None`: until the last title has been played to its end.
    pub duration: Option<Duration>,
    /// What each viewer does besides watching: pauses, seeks, and so on.
    pub behaviour: Behaviour,
    /// Which part of each title, and how fast.
    pub view: View,
    /// How each player buffers.
    pub player: PlayerOptions,
    /// Whether it changes between the renditions of a title.
    pub switching: AbrRule,
    /// Keep what the first viewer gets: the file itself, or for HLS one file per track whose name
    /// says which (`film.mp4` becomes `film.video.mp4` and `film.audio.mp4`).
    pub save: Option<PathBuf>,
    /// Whether a refused viewer comes again when the server's `Retry-After` is over. If not, it
    /// goes away.
    pub retry: bool,
    /// A server that sends nothing for this long while a response is incomplete has failed.
    pub patience: Duration,
    /// Whom to believe behind an `https` address.
    pub trust: Trust,
    /// Who viewers say they are, where a server wants to know.
    pub identity: Option<Identity>,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            viewers: 1,
            arrivals: Arrivals::AllAtOnce,
            choice: Choice::RoundRobin,
            form: Form::Hls,
            seed: 1,
            duration: None,
            behaviour: Behaviour::default(),
            view: View::default(),
            player: PlayerOptions { dead_band: DEAD_BAND, ..PlayerOptions::default() },
            switching: AbrRule::Never,
            save: None,
            retry: false,
            patience: PATIENCE,
            trust: Trust::default(),
            identity: None,
        }
    }
}

/// Playback parameters of a Tenuto server, added to the address as a query.
/// Other servers pass over it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// From here.
    pub from: Option<Duration>,
    /// To here.
    pub to: Option<Duration>,
    /// Seconds of media shown in a second, negative for backwards. The player plays at this pace.
    pub speed: Option<f64>,
    /// Groups of pictures left out after each that is shown.
    pub skip: Option<u32>,
    /// Rather than being refused a viewer waits so long.
    pub wait: Option<Duration>,
}

impl View {
    /// `start=60&speed=2`; empty where nothing is asked for.
    pub fn query(&self) -> String {
        let time = |time: Duration| time.as_secs_f64().to_string();
        let pairs = [
            ("start", self.from.map(time)),
            ("stop", self.to.map(time)),
            ("speed", self.speed.map(|speed| speed.to_string())),
            ("skip", self.skip.map(|skip| skip.to_string())),
            ("wait", self.wait.map(time)),
        ];
        let given =
            pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        given.collect::<Vec<_>>().join("&")
    }

    /// The playback speed.
    pub fn pace(&self) -> f64 {
        self.speed.map_or(1.0, f64::abs)
    }
}

/// When viewers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Everybody at the start.
    AllAtOnce,
    /// One at the start and one more each time this has passed.
    Every(Duration),
    /// Independently of each other, with this mean time between two.
    Poisson(Duration),
}

impl Arrivals {
    /// The arrival of each of `viewers`, from the start of the run, in order. The first comes at
    /// once.
    pub fn times(self, viewers: u32, random: &mut fastrand::Rng) -> Vec<Duration> {
        let mut at = Duration::ZERO;
        (0..viewers)
            .map(|_| {
                let arrival = at;
                at += match self {
                    Self::AllAtOnce => Duration::ZERO,
                    Self::Every(gap) => gap,
                    // 1 - u is never zero, so the logarithm is finite.
                    Self::Poisson(mean) => mean.mul_f64(-(1.0 - random.f64()).ln()),
                };
                arrival
            })
            .collect()
    }
}

/// As it is written on the command line.
impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllAtOnce => write!(f, "all"),
            Self::Every(gap) => write!(f, "every:{}", show_duration(*gap)),
            Self::Poisson(mean) => write!(f, "poisson:{}", show_duration(*mean)),
        }
    }
}

/// Not a way to arrive, or not a way to choose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not {wanted}")]
pub struct ParseChoiceError {
    given: String,
    wanted: &'static str,
}

/// `all`, `every:200ms` or `poisson:500ms`.
impl FromStr for Arrivals {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseChoiceError {
            given: text.to_owned(),
            wanted: "a way to arrive: 'all', 'every:200ms' or 'poisson:500ms'",
        };
        let time = |text| parse_duration(text).map_err(|_| error());
        match text.split_once(':') {
            None if text == "all" => Ok(Self::AllAtOnce),
            Some(("every", gap)) => time(gap).map(Self::Every),
            Some(("poisson", mean)) => time(mean).map(Self::Poisson),
            _ => Err(error()),
        }
    }
}

/// Which viewer takes which title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Viewer 0 the first, viewer 1 the second, and so on, around.
    RoundRobin,
    /// Each draws one.
    Random,
}

/// `in-turn` or `random`.
impl FromStr for Choice {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "in-turn" => Ok(Self::RoundRobin),
            "random" => Ok(Self::Random),
            _ => Err(ParseChoiceError {
                given: text.to_owned(),
                wanted: "a way to choose titles: 'in-turn' or 'random'",
            }),
        }
    }
}

/// How a title of a server is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/t/TITLE/master.m3u8`.
    Hls,
    /// `/t/TITLE.mp4`.
    Progressive,
}

/// `hls` or `mp4`.
impl FromStr for Form {
    type Err = ParseChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "hls" => Ok(Self::Hls),
            "mp4" => Ok(Self::Progressive),
            _ => Err(ParseChoiceError {
                given: text.to_owned(),
                wanted: "a form to play: 'hls' or 'mp4'",
            }),
        }
    }
}

/// A third of a frame at 30 per second. One process plays all viewers, so a piece may be noticed a
/// little after it came; this is not the server's fault and nobody would see it.
const DEAD_BAND: Duration = Duration::from_millis(10);

/// Longer than any player waits before it gives up; a stalled disk shows as a stall, not an error.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read_as_they_are_written() {
        for text in ["all", "every:200ms", "poisson:500ms", "poisson:1.50s"] {
            assert_eq!(text.parse::<Arrivals>().unwrap().to_string(), text);
        }
        for text in ["", "poisson", "every:5", "poisson:fast", "all:1s"] {
            let error = text.parse::<Arrivals>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a way to arrive")), "{error}");
        }
    }

    #[test]
    fn viewers_come_as_told() {
        let ms = Duration::from_millis;
        let times = |arrivals: Arrivals, n| arrivals.times(n, &mut fastrand::Rng::with_seed(7));
        assert_eq!(times(Arrivals::AllAtOnce, 3), [ms(0); 3]);
        assert_eq!(times(Arrivals::Every(ms(200)), 3), [ms(0), ms(200), ms(400)]);
        let poisson = times(Arrivals::Poisson(ms(500)), 4001);
        assert!(poisson.is_sorted() && poisson[0] == ms(0));
        let mean = poisson[4000] / 4000;
        assert!(mean > ms(475) && mean < ms(525), "three sigma are 24 ms: {mean:?}");
        assert_eq!(poisson, times(Arrivals::Poisson(ms(500)), 4001), "the seed decides");
    }
}
