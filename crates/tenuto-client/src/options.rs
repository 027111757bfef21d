//! The options of a run of viewers.

use crate::ClientError;
use crate::tls::{Identity, Trust};
use player::{AbrRule, Behaviour, PlayerOptions};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, Reason, parse_duration, show_duration};

/// The options of [`super::play`].
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// The addresses to play: HLS playlists (`.m3u8`), DASH manifests (`.mpd`), progressive MP4
    /// files, titles over RTSP, or a server's root (or its `/titles`), which stands for all its
    /// titles. They are distributed over the viewers.
    pub urls: Vec<String>,
    /// The number of viewers.
    pub viewers: u32,
    /// The arrival times of viewers.
    pub arrivals: Arrivals,
    /// The assignment of titles to viewers.
    pub choice: Choice,
    /// The viewers in the order of their arrival, in place of `viewers`, `arrivals` and `choice`.
    pub trace: Option<ViewerTrace>,
    /// The form in which a title of a server's root is played.
    pub form: Form,
    /// How RTP comes from addresses of RTSP.
    pub rtsp: RtspTransport,
    /// The rate at which each viewer reads from its connections, all of them together; `None`: as
    /// fast as they come. Datagrams are not limited.
    pub bandwidth: Option<BitRate>,
    /// The seed of arrivals and choices.
    pub seed: u64,
    /// The time from the first arrival at which all viewers leave. `None`: until the last title has
    /// been played to its end.
    pub duration: Option<Duration>,
    /// The actions of each viewer besides watching: pauses, seeks, and so on.
    pub behaviour: Behaviour,
    /// The mean time that a viewer stays, exponentially distributed. `None`: to the end.
    pub stay: Option<Duration>,
    /// The part of each title that is played, and the speed.
    pub view: View,
    /// The buffering of each player.
    pub player: PlayerOptions,
    /// The rule for changes between the renditions of a title.
    pub switching: AbrRule,
    /// The path under which the first viewer's media is saved: the file itself, or for HLS one file
    /// per track (`film.mp4` becomes `film.video.mp4` and `film.audio.mp4`).
    pub save: Option<PathBuf>,
    /// Whether a refused viewer tries again after the server's `Retry-After`; otherwise it leaves.
    pub retry: bool,
    /// The longest time without a byte while a response is incomplete; after it the request has
    /// failed.
    pub patience: Duration,
    /// The certificates that are trusted behind an `https` address.
    pub trust: Trust,
    /// The client certificate of the viewers, for servers that require one.
    pub identity: Option<Identity>,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            viewers: 1,
            arrivals: Arrivals::AllAtOnce,
            choice: Choice::RoundRobin,
            trace: None,
            form: Form::Hls,
            rtsp: RtspTransport::Tcp,
            bandwidth: None,
            seed: 1,
            duration: None,
            behaviour: Behaviour::default(),
            stay: None,
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

/// Playback parameters of a Tenuto server, added to the address as a query. Other servers ignore
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// The start in the title.
    pub from: Option<Duration>,
    /// The end in the title.
    pub to: Option<Duration>,
    /// Seconds of media shown per second, negative for backwards. The player plays at this speed.
    pub speed: Option<f64>,
    /// Number of groups of pictures that are skipped after each one shown.
    pub skip: Option<u32>,
    /// The longest time that a viewer waits for admission instead of being refused.
    pub wait: Option<Duration>,
}

impl View {
    /// The query `start=60&speed=2`; empty without parameters.
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

/// The arrival times of viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// All viewers at the start.
    AllAtOnce,
    /// One at the start, and one more after each interval.
    Every(Duration),
    /// Independent arrivals with this mean interval.
    Poisson(Duration),
}

impl Arrivals {
    /// The arrival of each of `viewers` in order, from the start of the run. The first viewer
    /// arrives at the start.
    pub fn times(self, viewers: u32, random: &mut fastrand::Rng) -> Vec<Duration> {
        let mut at = Duration::ZERO;
        (0..viewers)
            .map(|_| {
                let arrival = at;
                at += match self {
                    Self::AllAtOnce => Duration::ZERO,
                    Self::Every(gap) => gap,
                    Self::Poisson(mean) => exponential(mean, random),
                };
                arrival
            })
            .collect()
    }
}

/// A time drawn from the exponential distribution with this mean.
pub(crate) fn exponential(mean: Duration, random: &mut fastrand::Rng) -> Duration {
    // 1 - u is never zero, so the logarithm is finite.
    mean.mul_f64(-(1.0 - random.f64()).ln())
}

/// Formats it in the notation of the command line.
impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllAtOnce => write!(f, "all"),
            Self::Every(gap) => write!(f, "every:{}", show_duration(*gap)),
            Self::Poisson(mean) => write!(f, "poisson:{}", show_duration(*mean)),
        }
    }
}

/// Parses `all`, `every:200ms` or `poisson:500ms`.
impl FromStr for Arrivals {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || {
            let wanted = "a way to arrive: 'all', 'every:200ms' or 'poisson:500ms'";
            Reason::from(format!("'{text}' is not {wanted}"))
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

/// The assignment of titles to viewers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Viewer 0 gets the first title, viewer 1 the second, and so on, in turn.
    RoundRobin,
    /// Each viewer gets a random title, all with the same probability.
    Random,
    /// Each viewer gets a random title; the title of rank `k`, in the order of the list, has a
    /// probability proportional to `k` to the power of minus this exponent (G. K. Zipf).
    Zipf(f64),
}

impl Choice {
    /// The index of each viewer's title, among this many titles (at least one).
    pub fn titles(self, viewers: u32, titles: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        let mut sum = 0.0;
        let cumulated: Vec<f64> = match self {
            Self::Zipf(exponent) => (1..=titles)
                .map(|rank| {
                    sum += (rank as f64).powf(-exponent);
                    sum
                })
                .collect(),
            Self::RoundRobin | Self::Random => Vec::new(),
        };
        let draw = |number: u32| match self {
            Self::RoundRobin => number as usize % titles,
            Self::Random => random.usize(..titles),
            Self::Zipf(_) => {
                let at = random.f64() * sum;
                cumulated.partition_point(|until| *until <= at).min(titles - 1)
            }
        };
        (0..viewers).map(draw).collect()
    }
}

/// Parses `in-turn`, `random` or `zipf:1.0`.
impl FromStr for Choice {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let exponent = |text: &str| text.parse().ok().filter(|e| (0.0..=MOST_SKEW).contains(e));
        let choice = match text.split_once(':') {
            None if text == "in-turn" => Some(Self::RoundRobin),
            None if text == "random" => Some(Self::Random),
            Some(("zipf", skew)) => exponent(skew).map(Self::Zipf),
            _ => None,
        };
        choice.ok_or_else(|| {
            let wanted = "a way to choose titles: 'in-turn', 'random' or 'zipf:1.0' (from 0 to 10)";
            format!("'{text}' is not {wanted}").into()
        })
    }
}

/// Viewers as they were observed: when each arrived, and what it played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewerTrace {
    rows: Vec<(Duration, String)>,
}

impl ViewerTrace {
    /// Time from the first arrival, and name of the title, of each viewer in order.
    pub fn rows(&self) -> &[(Duration, String)] {
        &self.rows
    }

    /// The arrival of each viewer, and the index of its title in `names`. The error is the first
    /// name that is not there.
    pub(crate) fn of_titles(
        &self,
        names: &[String],
    ) -> Result<(Vec<Duration>, Vec<usize>), ClientError> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (number, name) in names.iter().enumerate() {
            known.entry(name).or_insert(number);
        }
        let find = |(at, name): &(Duration, String)| match known.get(name.as_str()) {
            Some(number) => Ok((*at, *number)),
            None => Err(ClientError::from(Reason::new(
                format!("the trace has the title '{name}', which no address offers"),
                "give the address of the server with all its titles",
            ))),
        };
        let found: Result<Vec<_>, _> = self.rows.iter().map(find).collect();
        Ok(found?.into_iter().unzip())
    }
}

/// One viewer per line: `TIME TITLE`, in any order. Times count from the first of them. Empty lines
/// and lines that begin with `#` are ignored.
impl FromStr for ViewerTrace {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let row = line.split_once(char::is_whitespace).and_then(|(at, title)| {
                Some((parse_duration(at).ok()?, title.trim_start().to_owned()))
            });
            rows.push(row.ok_or_else(|| {
                let line_number = number + 1;
                Reason::new(
                    format!("line {line_number}: '{line}' is not a time and a title"),
                    "write a viewer on each line, such as '12.5s film'",
                )
            })?);
        }
        rows.sort_by_key(|(at, _)| *at);
        let Some(first) = rows.first().map(|(at, _)| *at) else {
            return Err(Reason::new(
                "the trace has no viewer",
                "write one on each line: '0s film'",
            ));
        };
        rows.iter_mut().for_each(|(at, _)| *at -= first);
        Ok(Self { rows })
    }
}

/// The form in which a title of a server is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// HLS: `/t/TITLE/master.m3u8`.
    Hls,
    /// DASH: `/t/TITLE/manifest.mpd`.
    Dash,
    /// A file: `/t/TITLE.mp4`.
    Progressive,
}

/// How RTP packets come from an RTSP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtspTransport {
    /// Interleaved in the connection of RTSP (RFC 2326, 10.12).
    #[default]
    Tcp,
    /// As UDP, to two ports for each track.
    Udp,
}

/// The largest exponent of Zipf's law: beyond, everybody watches the first title.
const MOST_SKEW: f64 = 10.0;

/// The longest stall that does not count: a third of a frame at 30 per second. One process plays
/// all viewers, so that it may notice a piece a little after its arrival.
const DEAD_BAND: Duration = Duration::from_millis(10);

/// The time limit for a response: longer than any player waits, so that a stalled disk shows as a
/// stall and not as an error.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_parsed_as_they_are_formatted() {
        for text in ["all", "every:200ms", "poisson:500ms", "poisson:1.50s"] {
            assert_eq!(text.parse::<Arrivals>().unwrap().to_string(), text);
        }
        for text in ["", "poisson", "every:5", "poisson:fast", "all:1s"] {
            let error = text.parse::<Arrivals>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a way to arrive")), "{error}");
        }
    }

    #[test]
    fn viewers_arrive_by_the_given_pattern() {
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

    #[test]
    fn titles_are_chosen_by_rank() {
        let titles = |text: &str, viewers| {
            let choice: Choice = text.parse().unwrap();
            let mut count = [0; 4];
            for title in choice.titles(viewers, 4, &mut fastrand::Rng::with_seed(7)) {
                count[title] += 1;
            }
            count
        };
        assert_eq!(titles("in-turn", 6), [2, 2, 1, 1]);
        // Of 12 + 6 + 4 + 3 parts the titles of rank 1 to 4 get these; three sigma are 150.
        let zipf = titles("zipf:1.0", 10_000);
        for (drawn, expected) in zipf.into_iter().zip([4800, 2400, 1600, 1200]) {
            assert!(i32::abs_diff(drawn, expected) < 150, "{zipf:?}");
        }
        let flat = titles("zipf:0", 10_000);
        assert!(flat.iter().all(|drawn| i32::abs_diff(*drawn, 2500) < 150), "{flat:?}");
        for text in ["", "zipf", "zipf:", "zipf:-1", "zipf:11", "zipf:nan", "random:1"] {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a way to choose")), "{error}");
        }
    }

    #[test]
    fn a_trace_is_read_in_order_of_time_and_titles_are_found_by_name() {
        let secs = Duration::from_secs;
        let trace: ViewerTrace = "12s b film\n# noon\n\n 10s a\n1min b film\n".parse().unwrap();
        let rows: Vec<_> = trace.rows().iter().map(|(at, name)| (*at, name.as_str())).collect();
        assert_eq!(rows, [(secs(0), "a"), (secs(2), "b film"), (secs(50), "b film")]);
        let names = ["b film", "a"].map(str::to_owned);
        let (arrivals, titles) = trace.of_titles(&names).unwrap();
        assert_eq!((arrivals, titles), (vec![secs(0), secs(2), secs(50)], vec![1, 0, 0]));
        let error = trace.of_titles(&names[..1]).unwrap_err().to_string();
        assert!(error.contains("the title 'a'"), "{error}");
        for (text, part) in
            [("0s a\n5s", "line 2: '5s'"), ("soon a", "line 1"), ("# a", "no viewer")]
        {
            let error = text.parse::<ViewerTrace>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
