//! The parameters of a disk, as in a data sheet or a measurement: the input of a
//! [`DiskModel`](crate::DiskModel), and the form of a parameter file.
//!
//! A parameter file is TOML with the names below; `models/*.toml` are the built-in ones, and users'
//! files are parsed in the same way ([`Parameters::parse`]). Numbers are in common units
//! (milliseconds, MB/s of 10^6 bytes, `256KiB`). `checks.rs` refuses impossible numbers. There is
//! no arithmetic here.

use serde::{Deserialize, Deserializer, Serialize};
use units::{ByteCount, Reason};

/// The parameters of one disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// The name on the command line: `hdd-20tb`.
    pub name: String,
    /// A description for users: maker, family, year.
    pub title: String,
    /// The source of each number, for users.
    pub sources: Vec<String>,
    /// The capacity in bytes.
    pub capacity: u64,
    /// The mechanics.
    pub mechanics: Mechanics,
}

/// The mechanics of a disk: actuator and platters, or flash.
#[derive(Clone, Debug, PartialEq)]
pub enum Mechanics {
    /// One actuator over spinning platters.
    Spinning(Spinning),
    /// No moving parts.
    Flash(Flash),
}

/// A disk with an actuator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spinning {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Surfaces: tracks that the head reaches without moving.
    pub heads: u32,
    /// Time from the end of a track to the start of the next in the same cylinder, in ms.
    pub head_switch_ms: f64,
    /// Time from the end of a cylinder to the start of the next, in ms.
    pub cylinder_switch_ms: f64,
    /// Time from the command's arrival until the head starts, in ms.
    pub overhead_ms: f64,
    /// The seek time.
    pub seek: SeekTimes,
    /// The bytes that the disk reads ahead after a read, and keeps of earlier reads.
    #[serde(deserialize_with = "size")]
    pub read_ahead: u64,
    /// The bytes of writes that are complete while they are only in the disk's memory. Zero: none.
    #[serde(default, deserialize_with = "size")]
    pub write_back: u64,
    /// The rate of the interface in MB/s: transfers between the host and the disk's memory.
    pub bus_mb_s: f64,
    /// The zones, outermost first.
    pub zones: Vec<Zone>,
}

/// The time of a seek over `x` of the full stroke (0 < x <= 1): settle + track + root × √x up to
/// the knee, from there a straight line to `full` at x = 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekTimes {
    /// The settling time of the head in ms; part of every seek.
    pub settle_ms: f64,
    /// The rest of the shortest seek, in ms.
    pub track_ms: f64,
    /// Coefficient of √x, in ms.
    pub root_ms: f64,
    /// The distance at which the head reaches its full speed, as a share of the stroke.
    pub knee: f64,
    /// The longest seek, settling included, in ms.
    pub full_ms: f64,
}

/// A zone of a spinning disk; in a file a pair, `[until, mb_s]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Zone {
    /// The end of the zone as a share of the capacity; the last ends at 1.
    pub until: f64,
    /// The sustained rate of the medium, head and cylinder switches included, in MB/s. The
    /// interface may be slower.
    pub mb_s: f64,
}

/// A disk without an actuator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Time from a command's arrival to its first byte, in ms.
    pub latency_ms: f64,
    /// The number of commands whose latencies overlap.
    pub lanes: u32,
    /// The sequential read rate in MB/s.
    pub read_mb_s: f64,
    /// The sequential write rate in MB/s.
    pub write_mb_s: f64,
}

impl Parameters {
    /// Parses the text of a parameter file.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let file: File =
            toml::from_str(text).map_err(|error| no_parameter_file(&with_line(&error, text)))?;
        let mechanics = match (file.spinning, file.flash) {
            (Some(spinning), None) => Mechanics::Spinning(spinning),
            (None, Some(flash)) => Mechanics::Flash(flash),
            _ => {
                let wanted = "a disk has one of the tables [spinning] and [flash]";
                return Err(no_parameter_file(wanted));
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

    /// The text of a parameter file. [`Parameters::parse`] gives the same numbers.
    pub fn to_toml(&self) -> String {
        let Self { name, title, sources, capacity, mechanics } = self.clone();
        let (spinning, flash) = match mechanics {
            Mechanics::Spinning(arm) => (Some(arm), None),
            Mechanics::Flash(chips) => (None, Some(chips)),
        };
        let file = File { name, title, sources, capacity, spinning, flash };
        toml::to_string(&file).expect("a file of names, numbers and text")
    }
}

/// What is wrong with a parameter file, after the number of the line.
fn with_line(error: &toml::de::Error, text: &str) -> String {
    let at = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
    let line = at.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{line}{}", error.message())
}

fn no_parameter_file(why: &str) -> Reason {
    format!("no parameter file of a disk: {why}").into()
}

#[derive(Serialize, Deserialize)]
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

impl From<Zone> for (f64, f64) {
    fn from(zone: Zone) -> Self {
        (zone.until, zone.mb_s)
    }
}

/// Parses a size such as `"2MiB"`, or a plain number of bytes.
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

#[cfg(test)]
mod tests {
    use crate::{DiskModel, Parameters};

    #[test]
    fn written_parameters_are_parsed_to_the_same_numbers() {
        for model in DiskModel::presets() {
            let mut parameters = model.parameters().clone();
            parameters.title += " \"quoted\" \\ and\nbroken";
            assert_eq!(Parameters::parse(&parameters.to_toml()), Ok(parameters));
        }
    }
}
