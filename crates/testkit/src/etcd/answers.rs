//! The answers of an etcd in memory, as JSON.

use super::records::{Records, TestRecord};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The status and the answer to a request.
pub(super) fn to(
    path: &str,
    body: &Value,
    token: &str,
    records: &mut Records,
) -> (&'static str, Value) {
    let header = |records: &Records| {
        json!({
            "cluster_id": "7", "member_id": "1", "revision": records.revision().to_string(),
            "raft_term": "2",
        })
    };
    let not_found = |message: &str| {
        ("404 Not Found", json!({ "error": message, "code": 5, "message": message }))
    };
    let refused = |status: &'static str, code: u32, message: &str| {
        (status, json!({ "error": message, "code": code, "message": message }))
    };
    if records.user.is_some() && path != "/v3/auth/authenticate" && !records.tokens.contains(token)
    {
        return match token {
            "" => refused("400 Bad Request", 3, "etcdserver: user name is empty"),
            _ => refused("401 Unauthorized", 16, "etcdserver: invalid auth token"),
        };
    }
    match path {
        "/v3/auth/authenticate" => {
            let user = body["name"].as_str().zip(body["password"].as_str());
            let known = records.user.as_ref();
            if known.map(|(name, password)| (&**name, &**password)) != user {
                let message = "etcdserver: authentication failed, invalid user ID or password";
                return refused("400 Bad Request", 3, message);
            }
            let token = format!("token.{}", records.begin());
            records.tokens.insert(token.clone());
            ("200 OK", json!({ "header": header(records), "token": token }))
        }
        "/v3/kv/range" => {
            let revision = number(&body["revision"]);
            if revision != 0 && revision < records.compacted() {
                let message = "etcdserver: mvcc: required revision has been compacted";
                let failure = json!({ "error": message, "code": 11, "message": message });
                return ("400 Bad Request", failure);
            }
            let end = body.get("range_end").map(bytes);
            let found = records.range(&bytes(&body["key"]), end.as_deref());
            let limit = match number(&body["limit"]) {
                0 => found.len(),
                limit => usize::try_from(limit).unwrap(),
            };
            let shown: Vec<Value> =
                found.iter().take(limit).map(|(key, record)| shown(key, record)).collect();
            let mut answer = json!({ "header": header(records), "count": found.len().to_string() });
            if found.len() > limit {
                answer["more"] = true.into();
            }
            if !shown.is_empty() {
                answer["kvs"] = shown.into();
            }
            ("200 OK", answer)
        }
        "/v3/kv/txn" => {
            let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
            let is_met = list("compare").iter().all(|condition| is_met(condition, records));
            let writes = list("success");
            if is_met && !writes.is_empty() {
                for write in &writes {
                    let lease = number(&write["request_put"]["lease"]);
                    if lease != 0 && !records.has_lease(lease) {
                        return not_found("etcdserver: requested lease not found");
                    }
                }
                records.writes += 1;
                let revision = records.begin();
                for write in &writes {
                    let put = &write["request_put"];
                    if put.is_null() {
                        let key = bytes(&write["request_delete_range"]["key"]);
                        records.delete_at(revision, &key);
                    } else {
                        let (key, value) = (bytes(&put["key"]), bytes(&put["value"]));
                        records.put_at(revision, &key, &value, number(&put["lease"]));
                    }
                }
            }
            let mut answer = json!({ "header": header(records) });
            if is_met {
                answer["succeeded"] = true.into();
            }
            ("200 OK", answer)
        }
        "/v3/lease/grant" => {
            let id = records.grant().to_string();
            ("200 OK", json!({ "header": header(records), "ID": id, "TTL": body["TTL"] }))
        }
        "/v3/lease/keepalive" => {
            let mut result = json!({ "header": header(records), "ID": body["ID"] });
            if records.has_lease(number(&body["ID"])) {
                // A lease of any time: the client takes the smaller of this and its own.
                result["TTL"] = "600".into();
            }
            ("200 OK", json!({ "result": result }))
        }
        "/v3/lease/revoke" => {
            if records.end_lease(number(&body["ID"])) {
                ("200 OK", json!({ "header": header(records) }))
            } else {
                not_found("etcdserver: requested lease not found")
            }
        }
        _ => not_found("Not Found"),
    }
}

fn is_met(condition: &Value, records: &Records) -> bool {
    let end = condition.get("range_end").map(bytes);
    let found = records.range(&bytes(&condition["key"]), end.as_deref());
    let wanted = |record: &TestRecord| match condition["target"].as_str() {
        Some("VERSION") => record.version == number(&condition["version"]),
        // Only "LESS".
        Some("MOD") => record.changed < number(&condition["mod_revision"]),
        Some("LEASE") => record.lease == number(&condition["lease"]),
        other => panic!("a condition on {other:?}"),
    };
    if found.is_empty() {
        let none = TestRecord { value: Vec::new(), lease: 0, version: 0, changed: 0 };
        return wanted(&none);
    }
    found.iter().all(|(_, record)| wanted(record))
}

/// A watch, and how far it is.
pub(super) struct TestWatch {
    from: Vec<u8>,
    end: Vec<u8>,
    /// The revision of the next change that is sent.
    next: u64,
    has_ended: bool,
}

impl TestWatch {
    pub(super) fn of(body: &Value, records: &Records) -> Self {
        let request = &body["create_request"];
        let next = match number(&request["start_revision"]) {
            0 => records.revision() + 1,
            revision => revision,
        };
        let (from, end) = (bytes(&request["key"]), bytes(&request["range_end"]));
        Self { from, end, next, has_ended: false }
    }

    pub(super) fn created(&mut self, records: &Records) -> Value {
        let header = json!({ "cluster_id": "7", "revision": records.revision().to_string() });
        json!({ "result": { "header": header, "created": true } })
    }

    /// The changes that were not yet sent.
    pub(super) fn next(&mut self, records: &Records) -> Option<Value> {
        if self.has_ended {
            return None;
        }
        let header = json!({ "cluster_id": "7", "revision": records.revision().to_string() });
        if self.next <= records.compacted() && self.next <= records.revision() {
            self.has_ended = true;
            let compacted = records.compacted().to_string();
            return Some(json!({ "result": {
                "header": header, "canceled": true, "compact_revision": compacted,
            } }));
        }
        let in_range = |key: &[u8]| *self.from <= *key && *key < *self.end;
        let changes = records.history().iter();
        let events: Vec<Value> = changes
            .filter(|change| change.revision >= self.next && in_range(&change.key))
            .map(|change| {
                let revision = change.revision.to_string();
                let key = STANDARD.encode(&change.key);
                match &change.value {
                    Some(value) => json!({ "kv": {
                        "key": key, "value": STANDARD.encode(value), "mod_revision": revision,
                    } }),
                    None => json!({
                        "type": "DELETE", "kv": { "key": key, "mod_revision": revision },
                    }),
                }
            })
            .collect();
        self.next = self.next.max(records.revision() + 1);
        (!events.is_empty()).then(|| json!({ "result": { "header": header, "events": events } }))
    }
}

fn shown(key: &[u8], record: &TestRecord) -> Value {
    json!({
        "key": STANDARD.encode(key), "value": STANDARD.encode(&record.value),
        "mod_revision": record.changed.to_string(), "version": record.version.to_string(),
        "lease": record.lease.to_string(),
    })
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap()
}

fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        value => value.as_u64().unwrap_or(0),
    }
}
