//! What a disk is, in the numbers a data sheet or a measurement gives: the input of a
//! [`DiskModel`](crate::DiskModel), and the form of a parameter file.
//!
//! A parameter file is TOML with the names below; `models/*.toml` are the ones that come along, and
//! a user's own is read the same way ([`Parameters::parse`]). Numbers are in the units people use
//! (milliseconds, MB/s of 10^6 bytes, `256KiB`). What cannot be is refused by `checks.rs`. No
//! arithmetic here.

use serde::{Deserialize, Deserializer};
use units::ByteCount;

/// One disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// As typed on the command line: `hdd-20tb`.
    pub name: String,
    /// For people: maker, family, year.
    pub title: String,
    /// Where each number comes from, for people.
    pub sources: Vec<String>,
    /// Bytes.
    pub capacity: u64,
    /// How it comes to a place.
    pub mechanics: Mechanics,
}

/// Actuator and platters, or chips.
#[derive(Clone, Debug, PartialEq)]
pub enum Mechanics {
    /// One actuator over spinning platters.
    Spinning(Spinning),
    /// No moving parts.
    Flash(Flash),
}

/// A disk with an actuator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spinning {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Surfaces: tracks that the head reaches without moving.
    pub heads: u32,
    /// From the end of a track to the start of the next in the same cylinder, in ms.
    pub head_switch_ms: f64,
    /// From the end of a cylinder to the start of the next, in ms.
    pub cylinder_switch_ms: f64,
    /// From the command's arrival until the head starts, in ms.
    pub overhead_ms: f64,
    /// The seek time.
    pub seek: SeekTimes,
    /// What the disk reads on, unasked, after a read, and keeps of what it read: bytes.
    #[serde(deserialize_with = "size")]
    pub read_ahead: u64,
    /// Writes that the disk calls done while they are only in its memory: bytes. Zero: none.
    #[serde(default, deserialize_with = "size")]
    pub write_back: u64,
    /// Rate of the interface in MB/s: transfers between host and the disk's memory.
    pub bus_mb_s: f64,
    /// Outermost first.
    pub zones: Vec<Zone>,
}

/// The time of a seek over `x` of the full stroke (0 < x <= 1): settle +
/// track + root × √x up to the knee, from there a straight line to `full` at x = 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekTimes {
    /// Until the head is quiet enough to read, in ms; part of every movement.
    pub settle_ms: f64,
    /// The rest of the shortest movement, in ms.
    pub track_ms: f64,
    /// Coefficient of √x, in ms.
    pub root_ms: f64,
    /// Where the head reaches its full speed, as a part of the stroke.
    pub knee: f64,
    /// The longest movement, settle included, in ms.
    pub full_ms: f64,
}

/// A zone of a spinning disk; in a file a pair, `[until, mb_s]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(from = "(f64, f64)")]
pub struct Zone {
    /// Where it ends, as a part of the capacity in bytes; the last ends at 1.
    pub until: f64,
    /// Sustained, head and cylinder switches included, in MB/s.
    pub mb_s: f64,
}

/// A disk without an actuator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// From a command's arrival to its first byte, in ms.
    pub latency_ms: f64,
    /// Commands whose latencies overlap.
    pub lanes: u32,
    /// Sequential, in MB/s.
    pub read_mb_s: f64,
    /// Sequential, in MB/s.
    pub write_mb_s: f64,
}

/// A parameter file that is none, or one of no possible disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// Not TOML, a name that is not one of ours, or one that is missing.
    #[error("no parameter file of a disk: {0}")]
    Form(String),
    /// A number that no disk has.
    #[error("{what} = {given}, but {wanted}")]
    Impossible {
        /// As in the file: `spinning.rpm`.
        what: String,
        /// What stands there.
        given: String,
        /// What would be possible.
        wanted: &'static str,
    },
}

impl Parameters {
    /// Reads a parameter file's text.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let file: File = toml::from_str(text).map_err(|error| {
            ParameterError::Form(error.to_string().trim_end().replace('\n', "\n  "))
        })?;
        let mechanics = match (file.spinning, file.flash) {
            (Some(spinning), None) => Mechanics::Spinning(spinning),
            (None, Some(flash)) => Mechanics::Flash(flash),
            _ => {
                let wanted = "a disk has one of the tables [spinning] and [flash]";
                return Err(ParameterError::Form(wanted.into()));
            }
        };
        let parameters = Self {
            name: file.name,
            title: file.title,
            sources: file.sources,
            capacity: file.capacity,
            mechanics,
        };
        parameters.check()?;
        Ok(parameters)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(deserialize_with = "size")]
    capacity: u64,
    spinning: Option<Spinning>,
    flash: Option<Flash>,
}

impl From<(f64, f64)> for Zone {
    fn from((until, mb_s): (f64, f64)) -> Self {
        Self { until, mb_s }
    }
}

/// `"2MiB"`, or a bare number of bytes.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a size such as \"256KiB\", or a number of bytes")]
    enum Typed {
        Bytes(u64),
        Text(String),
    }
    match Typed::deserialize(from)? {
        Typed::Bytes(bytes) => Ok(bytes),
        Typed::Text(text) => {
            text.parse::<ByteCount>().map(|size| size.0).map_err(serde::de::Error::custom)
        }
    }
}
