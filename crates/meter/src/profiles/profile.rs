//! One profile as in its TOML file.
//!
//! ```text
//!   name = "prores-hq-uhd"          title = "..."
//!   bytes = 3_753_750               of a frame; without fps, of an operation
//!   fps = "24000/1001"              or 24, a whole number; omitted: not paced
//!   read_frames = 12                frames in one read, as a group of pictures (default 1)
//!   read_percent = 100              the rest is written (default 100)
//!   random_percent = 0              operations at a random position (default 0)
//!   pattern = "sequential"          (the default) or file-per-frame, runs, mixed
//!   transfers = { length = 10_485_760, blocks = [4096, 65536] }   without fps: what is drawn, see
//!                                   `Transfers`; may be omitted
//!   bits_per_s = 720_000_000        as published; may be omitted
//!   definition = { kind = "rate" }  what the bytes follow from, see `Definition`; default: table
//!   source = "..."                  status = "verified" | "derived" | "house"
//!   [drawn]                         omitted, or what operations are drawn from, see `Drawn`
//! ```

use super::Drawn;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount, Reason};

/// An access profile: the size, rate and pattern of a stream's operations.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name on the command line.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// Bytes of a frame, or of an operation where there are no frames.
    pub bytes: u64,
    /// The frame rate; `None` for as fast as possible.
    pub fps: Option<Fps>,
    /// Frames in one read or write: a whole group of pictures. In time is as for the first of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub read_frames: u32,
    /// Percentage of operations that read.
    #[serde(default = "all")]
    pub read_percent: u8,
    /// Percentage of operations at a random position.
    #[serde(default)]
    pub random_percent: u8,
    /// The order in which files are read.
    #[serde(default)]
    pub pattern: Pattern,
    /// The transfers that `meter transfers` draws; `None`: frames, one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// The published bit rate, rounded as in its source.
    pub bits_per_s: Option<u64>,
    /// The definition from which `bytes` follows.
    #[serde(default)]
    pub definition: Definition,
    /// The source of the figures.
    pub source: String,
    /// The quality of the source.
    pub status: Status,
    /// The mix from which operations are drawn, where they are not frames one after another. The
    /// figures above are then its means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn: Option<Drawn>,
}

/// The random transfers of a profile that is not paced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// The largest transfer in bytes; the smallest is 1 KiB.
    pub length: u64,
    /// Block sizes in bytes, all with the same probability.
    pub blocks: Vec<u32>,
    /// The random number generator.
    #[serde(default)]
    pub dice: Rolled,
}

/// The random number generators from which transfers are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rolled {
    /// Uniform numbers.
    #[default]
    Honest,
    /// The numbers of msMeter, with its percentages and lengths.
    Msmeter,
}

/// An exact frame rate in frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fps {
    /// The number of frames in `seconds`.
    pub frames: u32,
    /// The length in seconds.
    pub seconds: u32,
}

/// The order in which files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One file from its beginning.
    #[default]
    Sequential,
    /// Each frame is a file that is opened, read and closed.
    FilePerFrame,
    /// Sequential runs that begin at any position in any file.
    Runs,
    /// Several patterns in parallel.
    Mixed,
}

/// The quality of a profile's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The source states these figures.
    Verified,
    /// The figures are computed from those of the source.
    Derived,
    /// There is no source: our own choice, or the user's.
    House,
}

/// The definition from which the bytes of a frame follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Definition {
    /// `bits_per_s` divided by the frame rate.
    Rate,
    /// A published number of bytes; `bits_per_s` is the same, rounded to whole megabits.
    #[default]
    Table,
    /// 10 bit 4:2:2: 48 pixels in 128 bytes, lines of whole such groups.
    V210 {
        /// The width in pixels.
        width: u64,
        /// The height in pixels.
        height: u64,
    },
    /// 10 bit RGB: 4 bytes a pixel after a header of 2,048 bytes.
    Dpx10 {
        /// The width in pixels.
        width: u64,
        /// The height in pixels.
        height: u64,
    },
    /// Half float RGB: 6 bytes a pixel.
    ExrHalf {
        /// The width in pixels.
        width: u64,
        /// The height in pixels.
        height: u64,
    },
    /// Picture samples without padding.
    Packed {
        /// The width in pixels.
        width: u64,
        /// The height in pixels.
        height: u64,
        /// Bits of a pixel: 12 of a raw picture, 20 of 10 bit 4:2:2.
        bits: u64,
    },
    /// Audio, one frame of samples per video frame.
    Pcm {
        /// Number of channels.
        channels: u64,
        /// Samples per second of each channel.
        rate: u64,
        /// Bits per sample.
        bits: u64,
    },
}

impl Profile {
    /// Checks that such a stream is possible.
    pub fn check(&self) -> Result<(), Reason> {
        if self.bytes == 0 || self.bytes > MOST_BYTES {
            let most = ByteCount(MOST_BYTES);
            let hint = format!("take 1 to {MOST_BYTES} ({most})");
            return Err(Reason::new(format!("bytes = {}", self.bytes), hint));
        }
        if self.read_frames == 0 || self.read().0 > MOST_BYTES || self.read_frames > MOST_FRAMES {
            let most = (MOST_BYTES / self.bytes).min(MOST_FRAMES.into());
            let hint = format!("take 1 to {most}, {} together at most", ByteCount(MOST_BYTES));
            let text = format!("{} frames in one read", self.read_frames);
            return Err(Reason::new(text, hint));
        }
        if self.read_frames > 1 && self.pattern == Pattern::FilePerFrame {
            let text = format!("{} frames in one read, and each in its file", self.read_frames);
            return Err(Reason::new(text, "a read does not go beyond a file: take 1"));
        }
        if self.read_percent > 100 || self.random_percent > 100 {
            return Err(Reason::new("more than 100 percent", "take 0 to 100"));
        }
        if let Some(wrong) = self.drawn.as_ref().and_then(Drawn::wrong) {
            return Err(wrong);
        }
        if let Some(Transfers { length, blocks, .. }) = &self.transfers {
            let unfit = |block: &u32| *block < 1024 || u64::from(*block) > MOST_BYTES;
            if blocks.is_empty() || blocks.iter().any(unfit) || *length < 1024 {
                return Err("transfers: take blocks of 1024 bytes to 256 MiB".into());
            }
        }
        match self.rate() {
            Some(rate) if rate > MOST_RATE => {
                let hint = format!("take {MOST_RATE} at most");
                Err(Reason::new(format!("{rate} a stream"), hint))
            }
            _ => Ok(()),
        }
    }

    /// The bit rate of a stream; `None` if it is not paced.
    pub fn rate(&self) -> Option<BitRate> {
        let Fps { frames, seconds } = self.fps?;
        let bits = u128::from(self.bytes) * 8 * u128::from(frames);
        Some(BitRate(u64::try_from(bits / u128::from(seconds)).unwrap_or(u64::MAX)))
    }

    /// The profile of `streams` streams that have this rate together: their frames are as large,
    /// and due at other intervals. Operations without a frame rate get one.
    pub fn at_rate(&self, all: BitRate, streams: u32) -> Result<Self, Reason> {
        let bits = u128::from(self.bytes) * 8 * u128::from(streams.max(1));
        let fps = Fps::reduced(all.0.into(), bits).ok_or_else(|| {
            let text = format!("{all} for {}", units::show::count(streams, "stream"));
            Reason::new(text, "no frame would ever be due: take more")
        })?;
        Self { fps: Some(fps), ..self.clone() }.checked()
    }

    /// This profile with `frames` frames in each read or write.
    pub fn in_reads_of(&self, frames: u32) -> Result<Self, Reason> {
        Self { read_frames: frames, ..self.clone() }.checked()
    }

    fn checked(self) -> Result<Self, Reason> {
        self.check().map(|()| self)
    }

    /// The size of one read or write.
    pub fn read(&self) -> ByteCount {
        ByteCount(self.bytes.saturating_mul(self.read_frames.into()))
    }

    /// The rate of reads and writes, in which `fps` is that of their frames.
    pub fn reads_per_second(&self, fps: Fps) -> Fps {
        let seconds = fps.seconds.saturating_mul(self.read_frames);
        Fps { seconds, ..fps }
    }

    /// The space of a read in a file: whole pages.
    pub fn slot(&self) -> u64 {
        crate::target::slot(self.read())
    }

    /// Why streams of this profile cannot be run, and the remedy; `None` if they can.
    pub fn cannot_run(&self) -> Option<Reason> {
        match self {
            Self { drawn: Some(drawn), .. } if drawn.sizes().len() > 1 => Some(
                "its operations are drawn of many sizes, and a stream's frames have one".into(),
            ),
            Self { fps: None, .. } => Some(Reason::new(
                "it has no fps, so that nothing of it is ever late",
                "`tenuto meter transfers` measures it as fast as it goes",
            )),
            Self { pattern: Pattern::Runs, .. } => Some(Reason::new(
                "it jumps between files, and streams go through their own",
                "`tenuto meter transfers` measures it",
            )),
            _ => None,
        }
    }
}

/// The word in a profile's file.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The word in a profile's file.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl FromStr for Profile {
    type Err = Reason;

    /// Parses the text of a profile's file.
    fn from_str(text: &str) -> Result<Self, Reason> {
        let read: Result<Self, toml::de::Error> = toml::from_str(text);
        let profile = read.map_err(|error| {
            let what = super::with_line(&error, text);
            let hint = "`tenuto meter profiles prores-hq-uhd --toml` prints one";
            Reason::new(format!("not a profile: {what}"), hint)
        })?;
        profile.checked()
    }
}

impl Fps {
    /// The rate of `frames` in `seconds`, within a billionth; `None` if it is too small or too
    /// large.
    pub(crate) fn reduced(frames: u128, seconds: u128) -> Option<Self> {
        let (mut larger, mut smaller) = (frames, seconds);
        while smaller > 0 {
            (larger, smaller) = (smaller, larger % smaller);
        }
        let (frames, seconds) = (frames / larger.max(1), seconds / larger.max(1));
        let widest = 128 - (frames | seconds).leading_zeros();
        let shift = widest.saturating_sub(u32::BITS);
        let fit = |number: u128| u32::try_from(number >> shift).ok().filter(|fit| *fit > 0);
        Some(Self { frames: fit(frames)?, seconds: fit(seconds)? })
    }

    /// The time from a stream's first frame to this one. Exact over years.
    pub fn moment(self, frame: u64) -> Duration {
        let nanos = u128::from(frame) * u128::from(self.seconds) * 1_000_000_000;
        Duration::from_nanos(u64::try_from(nanos / u128::from(self.frames)).unwrap_or(u64::MAX))
    }

    /// The number of frames due before `time`.
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

/// A whole number, or text.
impl<'de> Deserialize<'de> for Fps {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FpsVisitor)
    }
}

struct FpsVisitor;

impl Visitor<'_> for FpsVisitor {
    type Value = Fps;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fps as a whole number or a fraction such as \"30000/1001\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Fps, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Fps, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Fps, E> {
        self.visit_str(&number.to_string())
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

/// The largest number of frames in one read: groups of pictures are far shorter.
const MOST_FRAMES: u32 = 1000;

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(frames: &u32) -> bool {
    *frames == 1
}

/// The largest frame: it must fit in the memory of one read.
const MOST_BYTES: u64 = 256 << 20;

/// The largest bit rate: no single stream of media is faster, so that a larger one is an error in
/// the file.
const MOST_RATE: BitRate = BitRate(400_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    const GOOD: &str = "name = \"x\"\ntitle = \"X\"\nbytes = 1000\nfps = \"25\"\n\
        pattern = \"sequential\"\ndefinition = { kind = \"table\" }\nsource = \"me\"\n\
        status = \"house\"\n";

    #[test]
    fn an_error_in_a_file_is_reported_with_its_line() {
        let profile: Profile = GOOD.parse().unwrap();
        assert_eq!((profile.rate(), profile.cannot_run()), (Some(BitRate(200_000)), None));
        let wrong = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            text.parse::<Profile>().unwrap_err().one_line()
        };
        let said = wrong("\"25\"", "\"25/0\"");
        assert!(said.contains("line 4") && said.contains("fraction such as"), "{said}");
        let said = wrong("\"25\"", "29.97");
        assert!(said.contains("line 4") && said.contains("fraction such as"), "{said}");
        assert!(wrong("\"25\"", "0").contains("fps = '0': a whole number"));
        assert!(wrong("bytes", "bites").contains("line 3: unknown field `bites`"));
        assert!(wrong("= 1000", "= 0").starts_with("bytes = 0; take 1 to"));
        assert!(wrong("= 1000", "= 200000000\nread_percent = 101").contains("percent"));
        assert!(wrong("\"25\"", "\"4000000000\"").contains("a stream; take"));
    }

    #[test]
    fn what_a_profile_need_not_say_is_as_usual() {
        let profile: Profile = GOOD.parse().unwrap();
        for (line, without) in [
            ("fps = \"25\"\n", "fps = 25\n"),
            ("pattern = \"sequential\"\n", ""),
            ("definition = { kind = \"table\" }\n", ""),
        ] {
            let text = GOOD.replace(line, without);
            assert_ne!(text, GOOD);
            assert_eq!(text.parse::<Profile>().unwrap(), profile, "{line}");
        }
    }

    #[test]
    fn a_rate_for_all_streams_sets_the_frame_rate() {
        let profile: Profile = GOOD.parse().unwrap();
        let fps = |bits, streams| {
            profile.at_rate(BitRate(bits), streams).map(|paced| paced.fps.unwrap().to_string())
        };
        assert_eq!(fps(800_000, 4).unwrap(), "25");
        assert_eq!(fps(100_000, 1).unwrap(), "25/2");
        assert_eq!(fps(1, 100).unwrap(), "1/800000", "a frame in nine days");
        let paced = profile.at_rate(BitRate(999_999_999_937), 1000).unwrap();
        assert_eq!(paced.rate(), Some(BitRate(999_999_999)));
        assert!(fps(0, 1).is_err());
    }

    #[test]
    fn a_group_of_frames_is_one_read() {
        let text = GOOD.replace("bytes = 1000", "bytes = 1000\nread_frames = 12");
        let profile: Profile = text.parse().unwrap();
        let reads = profile.reads_per_second(profile.fps.unwrap());
        assert_eq!((profile.read(), reads.to_string()), (ByteCount(12_000), "25/12".into()));
        assert_eq!(profile.rate(), Some(BitRate(200_000)), "that of the frames");
        let wrong = |from: &str, to: &str| {
            let parsed = text.replace(from, to).parse::<Profile>();
            parsed.unwrap_err().one_line()
        };
        assert!(wrong("= 12", "= 0").starts_with("0 frames in one read; take 1 to 1000"));
        assert!(wrong("= 1000\n", "= 200000000\n").contains("12 frames in one read; take 1 to 1,"));
        assert!(wrong("sequential", "file-per-frame").contains("each in its file"));
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
