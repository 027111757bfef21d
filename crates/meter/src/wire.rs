//! Forms in messages of what has no form of its own: reasons, and maps whose keys are no texts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use units::Reason;

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
