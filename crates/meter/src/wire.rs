//! Forms in messages of what has no form of its own: quantities, reasons, and maps whose keys are
//! no texts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use units::{BitRate, ByteCount, Reason};

/// A number of bytes as a number.
pub(crate) mod bytes {
    use super::{ByteCount, Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
    pub(crate) fn serialize<S: Serializer>(bytes: &ByteCount, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(bytes.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ByteCount, D::Error> {
        u64::deserialize(from).map(ByteCount)
    }
}

/// Rates by name as numbers.
pub(crate) mod rates {
    use super::{BTreeMap, BitRate, Deserialize, Deserializer, Serializer};

    type Rates = BTreeMap<String, BitRate>;

    pub(crate) fn serialize<S: Serializer>(rates: &Rates, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(rates.iter().map(|(name, rate)| (name, rate.0)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rates, D::Error> {
        let numbers = BTreeMap::<String, u64>::deserialize(from)?;
        Ok(numbers.into_iter().map(|(name, rate)| (name, BitRate(rate))).collect())
    }
}

/// A map as its pairs.
pub(crate) mod pairs {
    use super::{BTreeMap, Deserialize, DeserializeOwned, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: DeserializeOwned + Ord,
        V: DeserializeOwned,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

/// A reason, if there is one, as its message and its hint.
pub(crate) mod reason {
    use super::{Deserialize, Deserializer, Reason, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        reason: &Option<Reason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        reason.as_ref().map(|reason| (&reason.message, &reason.hint)).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Reason>, D::Error> {
        let parts = Option::<(String, Option<String>)>::deserialize(from)?;
        Ok(parts.map(|(message, hint)| Reason { message, hint }))
    }
}
