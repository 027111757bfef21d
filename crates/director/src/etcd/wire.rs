//! The JSON of etcd's gateway: bytes in base64, 64-bit numbers as texts, zeros left out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster::ClusterChange;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// What every answer begins with.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct AnswerHeader {
    /// The identity of the etcd, which a restored one does not share.
    #[serde(default, deserialize_with = "number")]
    pub(super) cluster_id: u64,
    #[serde(default, deserialize_with = "number")]
    pub(super) revision: u64,
}

/// A key with its value.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct KeyValue {
    #[serde(deserialize_with = "bytes")]
    pub(crate) key: Vec<u8>,
    #[serde(default, deserialize_with = "bytes")]
    pub(crate) value: Vec<u8>,
    #[serde(default, deserialize_with = "number")]
    pub(crate) mod_revision: u64,
    /// The lease with which the record ends; 0 for one that stays.
    #[serde(default, deserialize_with = "number")]
    pub(crate) lease: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct RangeAnswer {
    #[serde(default)]
    pub(super) header: AnswerHeader,
    #[serde(default)]
    pub(super) kvs: Vec<KeyValue>,
    #[serde(default)]
    pub(super) more: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct TransactionAnswer {
    #[serde(default)]
    pub(super) succeeded: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct GrantAnswer {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub(super) id: u64,
    #[serde(rename = "TTL", default, deserialize_with = "number")]
    pub(super) ttl: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct TokenAnswer {
    pub(super) token: String,
}

/// One message of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Streamed<T> {
    pub(super) result: Option<T>,
    pub(super) error: Option<EtcdFailure>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KeepAliveAnswer {
    /// Zero for a lease that has ended.
    #[serde(rename = "TTL", default, deserialize_with = "number")]
    pub(super) ttl: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct WatchAnswer {
    #[serde(default)]
    pub(super) header: AnswerHeader,
    #[serde(default)]
    pub(super) canceled: bool,
    #[serde(default, deserialize_with = "number")]
    pub(super) compact_revision: u64,
    #[serde(default)]
    pub(super) cancel_reason: String,
    #[serde(default)]
    pub(super) events: Vec<WatchEvent>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WatchEvent {
    /// `DELETE`, or left out where a record was put.
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    pub(super) kv: KeyValue,
}

/// A request that etcd did not carry out.
#[derive(Debug, Default, Deserialize)]
pub(super) struct EtcdFailure {
    #[serde(default, alias = "grpc_code")]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

/// A condition of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Condition<'a> {
    /// No record has this key.
    Absent(&'a str),
    /// The record of this key is held by this lease.
    HeldBy(&'a str, u64),
    /// No key begins with this text.
    Empty(&'a str),
    /// The record of this key is not there, or was written at this revision at the latest.
    Unchanged(&'a str, u64),
    /// All records whose keys begin with this text were written at this revision at the latest.
    UnchangedBelow(&'a str, u64),
}

/// A change of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordWrite {
    /// The record is put; with a lease it ends with that.
    Put {
        key: String,
        value: String,
        lease: Option<u64>,
    },
    Delete {
        key: String,
    },
}

impl Condition<'_> {
    pub(super) fn to_json(&self) -> Value {
        match *self {
            Self::Absent(key) => json!({
                "key": encoded(key), "target": "VERSION", "version": "0", "result": "EQUAL",
            }),
            Self::HeldBy(key, lease) => json!({
                "key": encoded(key), "target": "LEASE", "lease": lease.to_string(),
                "result": "EQUAL",
            }),
            Self::Unchanged(key, revision) => json!({
                "key": encoded(key), "target": "MOD",
                "mod_revision": revision.saturating_add(1).to_string(), "result": "LESS",
            }),
            Self::UnchangedBelow(prefix, revision) => json!({
                "key": encoded(prefix), "range_end": encoded(after(prefix)), "target": "MOD",
                "mod_revision": revision.saturating_add(1).to_string(), "result": "LESS",
            }),
            Self::Empty(prefix) => json!({
                "key": encoded(prefix), "range_end": encoded(after(prefix)),
                "target": "VERSION", "version": "0", "result": "EQUAL",
            }),
        }
    }
}

impl RecordWrite {
    /// The write of a change, below the prefix of the cluster. What is put with a lease ends with
    /// that.
    pub(crate) fn of(change: &ClusterChange, prefix: &str, lease: Option<u64>) -> Self {
        let (key, value) = change.to_record();
        let key = format!("{prefix}{key}");
        match value {
            Some(value) => Self::Put { key, value, lease },
            None => Self::Delete { key },
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Put { key, value, lease } => json!({ "request_put": {
                "key": encoded(key), "value": encoded(value),
                "lease": lease.unwrap_or(0).to_string(),
            } }),
            Self::Delete { key } => json!({ "request_delete_range": { "key": encoded(key) } }),
        }
    }
}

/// Bytes as the gateway takes them.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The first key behind all that begin with `prefix`, which ends with `/`.
pub(super) fn after(prefix: &str) -> String {
    let mut end = prefix.strip_suffix('/').unwrap_or(prefix).to_owned();
    end.push('0');
    end
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map_err(D::Error::custom)
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }
    match Either::deserialize(from)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_behind_a_prefix_are_in_its_range() {
        assert_eq!(after("/tenuto/a/"), "/tenuto/a0");
        assert!("/tenuto/a/\u{10ffff}" < &*after("/tenuto/a/"));
    }

    #[test]
    fn answers_have_texts_for_numbers_and_no_zeros() {
        let text = r#"{"header":{"cluster_id":"14841639068965178418","revision":"7"},
            "kvs":[{"key":"YQ==","mod_revision":"3","version":"1","lease":"9"},{"key":"YQ=="}]}"#;
        let answer: RangeAnswer = serde_json::from_str(text).unwrap();
        assert_eq!(answer.header.cluster_id, 14_841_639_068_965_178_418);
        let KeyValue { key, value, mod_revision, lease } = &answer.kvs[0];
        assert_eq!((*lease, answer.kvs[1].lease), (9, 0));
        assert_eq!((&key[..], value.len(), *mod_revision, answer.more), (&b"a"[..], 0, 3, false));
        let text = r#"{"error":{"grpc_code":5,"http_code":404,"message":"no lease"}}"#;
        let answer: Streamed<KeepAliveAnswer> = serde_json::from_str(text).unwrap();
        assert_eq!(answer.error.unwrap().code, 5);
    }
}
