//! One profile, as its TOML file has it.
//!
//! ```text
//!   name = "prores-hq-uhd"          title = "..."
//!   bytes = 3_753_750               of a frame; without fps, of an operation
//!   fps = "24000/1001"              whole or a fraction; left out: not paced
//!   read_percent = 100              the rest is written (100 if left out)
//!   random_percent = 0              operations at a random place (0 if left out)
//!   pattern = "sequential"          or file-per-frame, runs, mixed
//!   transfers = { length = 10_485_760, blocks = [4096, 65536] }   without fps: what is drawn, see
//!                                   `Transfers`; may be left out
//!   bits_per_s = 720_000_000        as published; may be left out
//!   definition = { kind = "rate" }  what the bytes follow from, see `Definition`
//!   source = "..."                  status = "verified" | "derived" | "house"
//!   [drawn]                         left out, or what operations are drawn from, see `Drawn`
//! ```

use super::Drawn;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// An access profile: the size, rate and pattern of a stream's operations.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// How it is called on the command line.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// Bytes of a frame, or of an operation where there are no frames.
    pub bytes: u64,
    /// Frames a second; `None`: as fast as it goes.
    pub fps: Option<Fps>,
    /// Percentage of operations that read.
    #[serde(default = "all")]
    pub read_percent: u8,
    /// Percentage of operations at a random position.
    #[serde(default)]
    pub random_percent: u8,
    /// How files are gone through.
    pub pattern: Pattern,
    /// What `meter transfers` draws; `None`: frames, one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// As published, rounded as it was there.
    pub bits_per_s: Option<u64>,
    /// What `bytes` follows from.
    pub definition: Definition,
    /// The source of the figures.
    pub source: String,
    /// How far that goes.
    pub status: Status,
    /// What operations are drawn from, where they are not frames one after another. The figures
    /// above are then its means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
}

/// What is drawn for transfers that are not paced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// Bytes of a transfer at most; 1 KiB at least.
    pub length: u64,
    /// Bytes of a block: each of these is as likely as any other.
    pub blocks: Vec<u32>,
    /// By which dice.
    #[serde(default)]
    pub dice: Rolled,
}

/// By which dice transfers are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rolled {
    /// Every number as likely as any other.
    #[default]
    Honest,
    /// As msMeter rolls them, with its percentages and lengths.
    Msmeter,
}

/// Frames a second, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fps {
    /// The number of frames in `seconds`.
    pub frames: u32,
    /// The length in seconds.
    pub seconds: u32,
}

/// How files are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One file from its beginning on.
    Sequential,
    /// Each frame is a file: opened, read, closed.
    FilePerFrame,
    /// Sequential runs that begin anywhere in any file.
    Runs,
    /// Several of these at once.
    Mixed,
}

/// How far the source goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It states these very figures.
    Verified,
    /// The figures are computed from what the source states.
    Derived,
    /// There is none: our own choice, or the user's.
    House,
}

/// What the bytes of a frame follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Definition {
    /// `bits_per_s` shared out among the frames.
    Rate,
    /// A published number of bytes; `bits_per_s` is that rounded to whole megabits.
    Table,
    /// 10 bit 4:2:2: 48 pixels in 128 bytes, lines of whole such groups.
    V210 {
        /// In pixels.
        width: u64,
        /// In pixels.
        height: u64,
    },
    /// 10 bit RGB: 4 bytes a pixel after a header of 2,048 bytes.
    Dpx10 {
        /// In pixels.
        width: u64,
        /// In pixels.
        height: u64,
    },
    /// Half float RGB: 6 bytes a pixel.
    ExrHalf {
        /// In pixels.
        width: u64,
        /// In pixels.
        height: u64,
    },
    /// Sound, by frames.
    Pcm {
        /// How many.
        channels: u64,
        /// Samples a second of each.
        rate: u64,
        /// Bits per sample.
        bits: u64,
    },
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// It is not such a file.
    #[error("not a profile: {0}; `tenuto meter profiles prores-hq-uhd --toml` prints one")]
    Unreadable(String),
    /// It asks for what cannot be.
    #[error("{0}")]
    Impossible(String),
}

impl Profile {
    /// Whether there can be such a stream.
    pub fn check(&self) -> Result<(), ProfileError> {
        let impossible = |what: String| Err(ProfileError::Impossible(what));
        if self.bytes == 0 || self.bytes > MOST_BYTES {
            let most = ByteCount(MOST_BYTES);
            return impossible(format!("bytes = {}; take 1 to {MOST_BYTES} ({most})", self.bytes));
        }
        if self.read_percent > 100 || self.random_percent > 100 {
            return impossible("more than 100 percent; take 0 to 100".to_owned());
        }
        if let Some(wrong) = self.drawn.as_ref().and_then(Drawn::wrong) {
            return impossible(wrong);
        }
        if let Some(Transfers { length, blocks, .. }) = &self.transfers {
            let unfit = |block: &u32| *block < 1024 || u64::from(*block) > MOST_BYTES;
            if blocks.is_empty() || blocks.iter().any(unfit) || *length < 1024 {
                return impossible("transfers: take blocks of 1024 bytes to 256 MiB".to_owned());
            }
        }
        match self.rate() {
            Some(rate) if rate > MOST_RATE => {
                impossible(format!("{rate} a stream; take {MOST_RATE} at most"))
            }
            _ => Ok(()),
        }
    }

    /// What a stream moves; `None` if it is not paced.
    pub fn rate(&self) -> Option<BitRate> {
        let Fps { frames, seconds } = self.fps?;
        let bits = u128::from(self.bytes) * 8 * u128::from(frames);
        Some(BitRate(u64::try_from(bits / u128::from(seconds)).unwrap_or(u64::MAX)))
    }

    /// What a frame takes in a file: whole pages.
    pub fn slot(&self) -> u64 {
        crate::target::slot(ByteCount(self.bytes))
    }

    /// Why streams of it cannot be run, and what can be done; `None` if they can.
    pub fn cannot_run(&self) -> Option<&'static str> {
        match self {
            Self { drawn: Some(drawn), .. } if drawn.sizes().len() > 1 => {
                Some("its operations are drawn of many sizes, and a stream's frames have one")
            }
            Self { fps: None, .. } => Some(
                "it has no fps, so that nothing of it is ever late; `tenuto meter transfers` \
                 measures it as fast as it goes",
            ),
            Self { pattern: Pattern::Runs, .. } => Some(
                "it jumps between files, and streams go through their own; `tenuto meter \
                 transfers` measures it",
            ),
            _ => None,
        }
    }
}

impl Pattern {
    /// As a file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::FilePerFrame => "file-per-frame",
            Self::Runs => "runs",
            Self::Mixed => "mixed",
        }
    }
}

impl Status {
    /// As a file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Derived => "derived",
            Self::House => "house",
        }
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    /// A file's text.
    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let read: Result<Self, toml::de::Error> = toml::from_str(text);
        let profile = read.map_err(|error| {
            let at = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = at.map(|line| format!("line {line}: ")).unwrap_or_default();
            ProfileError::Unreadable(format!("{line}{}", error.message()))
        })?;
        profile.check()?;
        Ok(profile)
    }
}

impl Fps {
    /// How long after a stream's first frame this one is due. Exact over years.
    pub fn moment(self, frame: u64) -> Duration {
        let nanos = u128::from(frame) * u128::from(self.seconds) * 1_000_000_000;
        Duration::from_nanos(u64::try_from(nanos / u128::from(self.frames)).unwrap_or(u64::MAX))
    }

    /// How many frames are due before `time`.
    pub fn frames_before(self, time: Duration) -> u64 {
        let frames = time.as_nanos() * u128::from(self.frames);
        let per = u128::from(self.seconds) * 1_000_000_000;
        u64::try_from(frames.div_ceil(per)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Fps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            1 => write!(f, "{}", self.frames),
            seconds => write!(f, "{}/{seconds}", self.frames),
        }
    }
}

impl FromStr for Fps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("fps = '{text}': a whole number or a fraction such as 30000/1001");
        let (frames, seconds) = text.split_once('/').unwrap_or((text, "1"));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let fps = Self { frames: number(frames)?, seconds: number(seconds)? };
        if fps.frames == 0 || fps.seconds == 0 {
            return Err(wrong());
        }
        Ok(fps)
    }
}

impl<'de> Deserialize<'de> for Fps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Fps {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

fn all() -> u8 {
    100
}

/// Memory for one read.
const MOST_BYTES: u64 = 256 << 20;

/// No single stream of media is faster: an error in the file is likelier.
const MOST_RATE: BitRate = BitRate(400_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"x\"\ntitle = \"X\"\nbytes = 1000\nfps = \"25\"\n\
        pattern = \"sequential\"\ndefinition = { kind = \"table\" }\nsource = \"me\"\n\
        status = \"house\"\n";

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place() {
        let profile: Profile = GOOD.parse().unwrap();
        assert_eq!((profile.rate(), profile.cannot_run()), (Some(BitRate(200_000)), None));
        let wrong = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            text.parse::<Profile>().unwrap_err().to_string()
        };
        let said = wrong("\"25\"", "\"25/0\"");
        assert!(said.contains("line 4") && said.contains("fraction such as"), "{said}");
        assert!(wrong("bytes", "bites").contains("line 3: unknown field `bites`"));
        assert!(wrong("= 1000", "= 0").starts_with("bytes = 0; take 1 to"));
        assert!(wrong("= 1000", "= 200000000\nread_percent = 101").contains("percent"));
        assert!(wrong("\"25\"", "\"4000000000\"").contains("a stream; take"));
    }

    #[test]
    fn frames_do_not_drift() {
        let fps: Fps = "30000/1001".parse().unwrap();
        let day = Duration::from_secs(86_400);
        let frames = fps.frames_before(day);
        assert_eq!(frames, 2_589_411);
        assert!(fps.moment(frames) >= day && fps.moment(frames - 1) < day);
        assert_eq!(fps.moment(30_000_000), Duration::from_secs(1_001_000));
    }
}
