//! Quantities in a scenario's text, with units: `500ms`, `64MiB`, `8.5Mbps`.
//!
//! They are written back exactly, as whole numbers of nanoseconds, bytes and bits, so that a drawn
//! scenario can be stored.

pub(super) mod time {
    //! Reads and writes a [`Duration`].
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        let nanos = time.as_nanos();
        match nanos % 1_000_000 {
            0 => to.collect_str(&format_args!("{}ms", nanos / 1_000_000)),
            _ => to.collect_str(&format_args!("{nanos}ns")),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        units::parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

pub(super) mod text {
    //! Reads and writes a [`units::ByteCount`] or [`units::BitRate`].
    use super::Whole;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Whole, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&value.whole())
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

pub(super) mod optional_text {
    //! Reads and writes an optional [`units::ByteCount`] or [`units::BitRate`].
    use super::Whole;
    use serde::{Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T, S>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
    where
        T: Whole,
        S: Serializer,
    {
        match value {
            Some(value) => super::text::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        super::text::deserialize(from).map(Some)
    }
}

pub(super) mod policy {
    //! Reads and writes a policy by its name.
    use scheduler::PolicyKind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(policy: &PolicyKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(policy.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PolicyKind, D::Error> {
        let name = String::deserialize(from)?;
        let names = || PolicyKind::all().map(PolicyKind::name).collect::<Vec<_>>().join(", ");
        PolicyKind::named(&name).ok_or_else(|| {
            D::Error::custom(format_args!("'{name}' is not a policy; the policies are {}", names()))
        })
    }
}

/// The value as the whole number that [`std::str::FromStr`] reads without a unit.
pub(crate) trait Whole {
    fn whole(&self) -> u64;
}

impl Whole for units::ByteCount {
    fn whole(&self) -> u64 {
        self.0
    }
}

impl Whole for units::BitRate {
    fn whole(&self) -> u64 {
        self.0
    }
}
