//! A job file: groups of streams that run at the same time, as TOML.
//!
//! ```text
//!   duration = "5min"          the length of the run; may be omitted
//!   [global]                   defaults of all groups; any key of a group but its name
//!   target = "/mnt/films"
//!   [[group]]                  one or more
//!   name = "play-out"          letters, digits, - and _
//!   profile = "xdcam422"       a name, or a TOML file
//!   streams = 20               1 by default
//!   direction = "read"         or "write"; the profile's share of reads by default
//!   rate = "800Mbps"           of all streams of the group, instead of the profile's
//!   read_frames, buffer_frames, layout, method, size, fill_level, buffered, drop_caches, verify,
//!   threshold, threshold_window, threshold_each
//!                              as the options of `meter run`
//! ```
//!
//! The module reads no file: what is named in a job is opened by `job.rs`.

use crate::profiles::with_line;
use crate::target::{FrameNames, Layout};
use device::Method;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount, Reason, parse_duration};

/// A job as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    /// The length of the run.
    #[serde(default, deserialize_with = "duration")]
    pub(super) duration: Option<Duration>,
    #[serde(default)]
    global: GroupKeys,
    #[serde(default)]
    group: Vec<GroupKeys>,
}

/// The keys of a group, or of the defaults of all groups.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupKeys {
    name: Option<String>,
    profile: Option<String>,
    target: Option<String>,
    #[serde(default, deserialize_with = "whole::<100_000, _, _>")]
    pub(super) streams: Option<u32>,
    pub(super) direction: Option<Direction>,
    #[serde(default, deserialize_with = "rate")]
    pub(super) rate: Option<BitRate>,
    #[serde(default, deserialize_with = "whole::<1000, _, _>")]
    pub(super) read_frames: Option<u32>,
    #[serde(default, deserialize_with = "whole::<10_000, _, _>")]
    pub(super) buffer_frames: Option<u32>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) layout: Option<Layout>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) method: Option<Method>,
    #[serde(default, deserialize_with = "size")]
    pub(super) size: Option<ByteCount>,
    #[serde(default, deserialize_with = "whole::<99, _, _>")]
    pub(super) fill_level: Option<u64>,
    #[serde(default, deserialize_with = "parsed")]
    pub(super) names: Option<FrameNames>,
    pub(super) existing: Option<bool>,
    pub(super) buffered: Option<bool>,
    pub(super) drop_caches: Option<bool>,
    pub(super) verify: Option<bool>,
    #[serde(default, deserialize_with = "rate")]
    pub(super) threshold: Option<BitRate>,
    #[serde(default, deserialize_with = "duration")]
    pub(super) threshold_window: Option<Duration>,
    pub(super) threshold_each: Option<bool>,
}

/// The direction of all operations of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Read,
    Write,
}

/// A group with the defaults of its job.
#[derive(Clone, Debug)]
pub(super) struct GroupSpec {
    pub(super) name: String,
    pub(super) profile: String,
    pub(super) target: String,
    pub(super) keys: GroupKeys,
}

impl JobFile {
    /// Reads the text of a job file. The error names the line and the key, or the group.
    pub(super) fn read(text: &str) -> Result<Self, Reason> {
        let read: Result<Self, toml::de::Error> = toml::from_str(text);
        let job = read.map_err(|error| Reason::new(with_line(&error, text), KEYS))?;
        if job.global.name.is_some() {
            return Err(Reason::new("[global] has a name", "groups have names: [[group]]"));
        }
        Ok(job)
    }

    /// The groups in their order.
    pub(super) fn groups(&self) -> Result<Vec<GroupSpec>, Reason> {
        if self.group.is_empty() || self.group.len() > MOST_GROUPS {
            let text = format!("{} groups", self.group.len());
            return Err(Reason::new(text, format!("write 1 to {MOST_GROUPS} times [[group]]")));
        }
        let mut names = BTreeSet::new();
        let mut groups = Vec::new();
        for (number, group) in (1..).zip(&self.group) {
            let spec = group.clone().or(&self.global).spec(number)?;
            if !names.insert(spec.name.clone()) {
                let text = format!("two groups are named {}", spec.name);
                return Err(Reason::new(text, "give each a name of its own"));
            }
            groups.push(spec);
        }
        Ok(groups)
    }
}

impl GroupKeys {
    /// These keys, and those of `defaults` that are not among them.
    fn or(self, defaults: &Self) -> Self {
        let defaults = defaults.clone();
        Self {
            name: self.name,
            profile: self.profile.or(defaults.profile),
            target: self.target.or(defaults.target),
            streams: self.streams.or(defaults.streams),
            direction: self.direction.or(defaults.direction),
            rate: self.rate.or(defaults.rate),
            read_frames: self.read_frames.or(defaults.read_frames),
            buffer_frames: self.buffer_frames.or(defaults.buffer_frames),
            layout: self.layout.or(defaults.layout),
            method: self.method.or(defaults.method),
            size: self.size.or(defaults.size),
            fill_level: self.fill_level.or(defaults.fill_level),
            names: self.names.or(defaults.names),
            existing: self.existing.or(defaults.existing),
            buffered: self.buffered.or(defaults.buffered),
            drop_caches: self.drop_caches.or(defaults.drop_caches),
            verify: self.verify.or(defaults.verify),
            threshold: self.threshold.or(defaults.threshold),
            threshold_window: self.threshold_window.or(defaults.threshold_window),
            threshold_each: self.threshold_each.or(defaults.threshold_each),
        }
    }

    fn spec(self, number: u32) -> Result<GroupSpec, Reason> {
        let given = |value: &Option<String>, key: &str, of: &str, hint: &str| {
            let missing = || Reason::new(format!("{of} has no {key}"), hint.to_owned());
            value.clone().ok_or_else(missing)
        };
        let of = format!("group {number}");
        let name = given(&self.name, "name", &of, "write name = \"play-out\", for example")?;
        // The name is that of a directory of --out, too.
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if name.is_empty() || name.len() > 60 || !name.chars().all(fits) {
            let text = format!("{of}: name = \"{name}\"");
            return Err(Reason::new(text, "take up to 60 letters, digits, - and _"));
        }
        let of = format!("group {name}");
        let needing = [
            ("threshold_window", self.threshold_window.is_some()),
            ("threshold_each", self.threshold_each.is_some()),
        ];
        let without = needing.iter().find(|(_, given)| *given && self.threshold.is_none());
        if let Some((key, _)) = without {
            let text = format!("{of} has {key} and no threshold");
            return Err(Reason::new(text, "write threshold = \"400Mbps\", for example"));
        }
        if self.threshold_window == Some(Duration::ZERO) {
            let text = format!("{of}: threshold_window: no rate has a mean of no time");
            return Err(Reason::new(text, "leave it out for the time of a client's buffer"));
        }
        let profiles = "`tenuto meter profiles` lists the profiles of streams";
        let targets = "a directory, a file, a block device, s3://BUCKET, sim:MODEL, or null:";
        Ok(GroupSpec {
            profile: given(&self.profile, "profile", &of, profiles)?,
            target: given(&self.target, "target", &of, targets)?,
            name,
            keys: self,
        })
    }
}

/// Every group has a thread of its own.
const MOST_GROUPS: usize = 64;

const KEYS: &str = "docs/guide/measure-storage.md lists the keys of a job file";

fn parsed<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    text(from, "text")?.parse().map(Some).map_err(Error::custom)
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BitRate>, D::Error> {
    text(from, "a rate with its unit: \"800Mbps\"")?.parse().map(Some).map_err(Error::custom)
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ByteCount>, D::Error> {
    text(from, "a size with its unit: \"64GiB\"")?.parse().map(Some).map_err(Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = text(from, "a time with its unit: \"20s\"")?;
    parse_duration(&text).map(Some).map_err(Error::custom)
}

/// The text of a value, which is in quotes; the error says to write `wanted`.
fn text<'de, D: Deserializer<'de>>(from: D, wanted: &str) -> Result<String, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::String(text) => Ok(text),
        other => Err(Error::custom(format!("{other} is not in quotes; write {wanted}"))),
    }
}

fn whole<'de, const MOST: u64, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let value = toml::Value::deserialize(from)?;
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    let within = number.filter(|number| (1..=MOST).contains(number));
    let fitting = within.and_then(|number| T::try_from(number).ok());
    let quotes = if value.is_str() { ", without quotes" } else { "" };
    let wrong = || Error::custom(format!("{value} is not a whole number from 1 to {MOST}{quotes}"));
    fitting.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"duration = "2min"
[global]
target = "/mnt/films"
buffer_frames = 4

[[group]]
name = "play-out"
profile = "xdcam422"
streams = 20

[[group]]
name = "ingest"
profile = "xavc300-25"
direction = "write"
rate = "800Mbps"
target = "/mnt/ingest"
"#;

    #[test]
    fn a_group_has_the_defaults_of_the_job() {
        let job = JobFile::read(JOB).unwrap();
        assert_eq!(job.duration, Some(Duration::from_secs(120)));
        let groups = job.groups().unwrap();
        let [first, second] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((&*first.name, &*first.target), ("play-out", "/mnt/films"));
        assert_eq!((first.keys.streams, first.keys.buffer_frames), (Some(20), Some(4)));
        assert_eq!(
            (&*second.target, second.keys.direction),
            ("/mnt/ingest", Some(Direction::Write))
        );
        assert_eq!((second.keys.rate, second.keys.streams), (Some(BitRate(800_000_000)), None));
    }

    /// What is replaced in the job above, by what, and what the error says.
    const WRONG: &[(&str, &str, &str)] = &[
        ("streams = 20", "stream = 20", "line 9: unknown field `stream`, expected one of"),
        ("duration =", "runtime =", "line 1: unknown field `runtime`"),
        ("streams = 20", "streams = 0", "line 9: 0 is not a whole number from 1 to 100000"),
        ("streams = 20", "streams = \"40\"", "line 9: \"40\" is not a whole number from 1 to"),
        ("streams = 20", "streams = 2.5", "line 9: 2.5 is not a whole number from 1 to"),
        ("\"2min\"", "20", "line 1: 20 is not in quotes; write a time with its unit: \"20s\""),
        ("\"800Mbps\"", "100", "line 15: 100 is not in quotes; write a rate with its unit: \"800"),
        ("buffer_frames = 4", "size = 64", "line 4: 64 is not in quotes; write a size with"),
        ("buffer_frames = 4", "layout = 4", "line 4: 4 is not in quotes; write text"),
        ("\"800Mbps\"", "\"fast\"", "line 15: 'fast' is not a bit rate"),
        ("\"write\"", "\"both\"", "line 14: unknown variant `both`"),
        ("buffer_frames = 4", "layout = \"heap\"", "line 4: 'heap' is no layout"),
        ("profile = \"xdcam422\"\n", "", "group play-out has no profile"),
        ("name = \"ingest\"\n", "", "group 2 has no name"),
        ("\"ingest\"", "\"play-out\"", "two groups are named play-out"),
        ("\"ingest\"", "\"../ingest\"", "group 2: name = \"../ingest\""),
        ("target = \"/mnt/films\"", "name = \"all\"", "[global] has a name"),
        ("target = \"/mnt/films\"\n", "", "group play-out has no target"),
        ("buffer_frames = 4", "threshold = 0", "line 4: 0 is not in quotes; write a rate"),
        ("streams = 20", "threshold_each = true", "group play-out has threshold_each and no"),
        ("streams = 20", "threshold_window = \"1s\"", "group play-out has threshold_window and"),
        (
            "streams = 20",
            "threshold = \"1Mbps\"\nthreshold_window = \"0s\"",
            "group play-out: threshold_window: no rate",
        ),
    ];

    #[test]
    fn an_error_names_its_line_or_its_group() {
        for (from, to, says) in WRONG {
            assert!(JOB.contains(from), "{from}");
            let text = JOB.replacen(from, to, 1);
            let said = JobFile::read(&text).and_then(|job| job.groups()).unwrap_err();
            assert!(said.message.starts_with(says), "{from} -> {to}: {said:?}");
            assert!(said.hint.is_some(), "{said:?}");
        }
        let none = JobFile::read("duration = \"1s\"").unwrap().groups().unwrap_err();
        assert_eq!(none.message, "0 groups");
    }
}
