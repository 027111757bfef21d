//! Spans and log records as OTLP has them in JSON (opentelemetry.io/docs/specs/otlp): identifiers
//! as hexadecimal digits, 64-bit integers as strings, names in lowerCamelCase. Sends nothing.

use super::context::{SpanId, TraceContext};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A step of a session that is over.
#[derive(Clone, Debug)]
pub(crate) struct SpanRecord {
    pub(crate) name: &'static str,
    /// The span itself, and its trace.
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<SpanId>,
    /// Whether it is a session, which a player has asked for: its parent is in another program.
    pub(crate) is_session: bool,
    pub(crate) begun: SystemTime,
    pub(crate) ended: SystemTime,
    /// Attributes whose value is null are left out.
    pub(crate) attributes: Vec<(&'static str, Value)>,
    /// Why it has failed; `None`: it has not.
    pub(crate) error: Option<String>,
}

/// A line of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogRecord {
    pub(crate) at: SystemTime,
    /// An object.
    pub(crate) line: Arc<Value>,
    /// The session that it is about, where there is one.
    pub(crate) session: Option<TraceContext>,
}

/// The body of a request to `/v1/traces`.
pub(crate) fn traces(resource: &Value, spans: &[SpanRecord]) -> Value {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }] })
}

/// The body of a request to `/v1/logs`.
pub(crate) fn logs(resource: &Value, records: &[LogRecord]) -> Value {
    let records: Vec<Value> = records.iter().map(log_record).collect();
    json!({ "resourceLogs": [{
        "resource": resource,
        "scopeLogs": [{ "scope": scope(), "logRecords": records }],
    }] })
}

/// What all spans and records are of.
pub(crate) fn resource(attributes: &[(String, String)]) -> Value {
    let text = |(key, value): &(String, String)| attribute(key, &value.as_str().into());
    json!({ "attributes": attributes.iter().map(text).collect::<Vec<Value>>() })
}

fn scope() -> Value {
    json!({ "name": "tenuto", "version": env!("CARGO_PKG_VERSION") })
}

fn span(span: &SpanRecord) -> Value {
    let SpanRecord { name, context, parent, is_session, begun, ended, attributes, error } = span;
    let known = attributes.iter().filter(|(_, value)| !value.is_null());
    let known: Vec<Value> = known.map(|(key, value)| attribute(key, value)).collect();
    let mut made = json!({
        "traceId": context.trace.to_string(),
        "spanId": context.span.to_string(),
        "flags": context.flags(*is_session && parent.is_some()),
        "name": name,
        "kind": if *is_session { SERVER } else { INTERNAL },
        "startTimeUnixNano": nanoseconds(*begun),
        // The clock may have been set back.
        "endTimeUnixNano": nanoseconds(*ended.max(begun)),
        "attributes": known,
    });
    if let Some(parent) = parent {
        made["parentSpanId"] = parent.to_string().into();
    }
    if let Some(why) = error {
        made["status"] = json!({ "code": ERROR, "message": cut(why) });
    }
    made
}

fn log_record(LogRecord { at, line, session }: &LogRecord) -> Value {
    let none = Map::new();
    let fields = line.as_object().unwrap_or(&none);
    // The record has these in fields of its own.
    let is_own = |key: &str| ["time", "trace_id", "span_id"].contains(&key);
    let known = fields.iter().filter(|(key, value)| !is_own(key) && !value.is_null());
    let (number, text) = severity(line);
    let event = line["event"].as_str();
    let body = match (event, line["method"].as_str(), line["target"].as_str()) {
        (Some(event), ..) => event.to_owned(),
        (None, Some(method), Some(target)) => cut(&format!("{method} {target}")).to_owned(),
        _ => String::new(),
    };
    let mut made = json!({
        "timeUnixNano": nanoseconds(*at),
        "observedTimeUnixNano": nanoseconds(*at),
        "severityNumber": number,
        "severityText": text,
        "eventName": event.unwrap_or("request"),
        "body": { "stringValue": body },
        "attributes": known.map(|(key, value)| attribute(key, value)).collect::<Vec<Value>>(),
    });
    if let Some(TraceContext { trace, span, .. }) = session {
        made["traceId"] = trace.to_string().into();
        made["spanId"] = span.to_string().into();
        made["flags"] = (session.map_or(0, |it| it.flags(false)) & 0xff).into();
    }
    made
}

/// The number and the name of a record's severity.
fn severity(line: &Value) -> (u8, &'static str) {
    let event = line["event"].as_str().unwrap_or_default();
    let is_refusal = line["verdict"] == "refused" || line["status"] == 503;
    let is_error = line["status"].as_u64().is_some_and(|status| status >= 500) && !is_refusal
        || event.ends_with("-failed")
        || event == "stopped" && !line["failed"].is_null()
        || ["disk-lost", "damage-found", "guarantee-violated"].contains(&event);
    let is_warning = is_refusal
        || line.get("aborted").is_some()
        || !line["cut_short"].is_null()
        || ["disk-slow", "session-preempted", "configuration-not-reloaded"].contains(&event);
    match (is_error, is_warning) {
        (true, _) => (17, "ERROR"),
        (false, true) => (13, "WARN"),
        (false, false) => (9, "INFO"),
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": any_value(value) })
}

/// A value of JSON as OTLP's `AnyValue`.
fn any_value(value: &Value) -> Value {
    match value {
        // A value without a content.
        Value::Null => json!({}),
        Value::Bool(truth) => json!({ "boolValue": truth }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({ "intValue": whole.to_string() }),
            None => json!({ "doubleValue": number.as_f64() }),
        },
        Value::String(text) => json!({ "stringValue": cut(text) }),
        Value::Array(values) => {
            let values: Vec<Value> = values.iter().map(any_value).collect();
            json!({ "arrayValue": { "values": values } })
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| attribute(key, value));
            json!({ "kvlistValue": { "values": fields.collect::<Vec<Value>>() } })
        }
    }
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// The beginning of a text that may be the client's.
fn cut(text: &str) -> &str {
    let most = text.len().min(LONGEST_TEXT);
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Bytes of a text in a span or a record: what strangers write into a request line is bounded by
/// the head alone.
const LONGEST_TEXT: usize = 1024;
/// The kinds of spans that there are here, and the status of one that has failed.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const ERROR: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn at(nanoseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(nanoseconds)
    }

    #[test]
    fn a_span_is_written_as_the_specification_has_it() {
        let record = SpanRecord {
            name: "session",
            context: TraceContext::parse(CONTEXT).unwrap(),
            parent: Some(SpanId::of([1; 8])),
            is_session: true,
            begun: at(1_544_712_660_000_000_001),
            ended: at(1_544_712_661_000_000_000),
            attributes: vec![
                ("tenuto.title", "film".into()),
                ("tenuto.session", u64::MAX.into()),
                ("tenuto.delivered_bytes", 5.into()),
                ("tenuto.reason", Value::Null),
                ("tenuto.worst_lateness", 0.5.into()),
            ],
            error: Some("no room".to_owned()),
        };
        let resource = resource(&[("service.name".to_owned(), "tenuto".to_owned())]);
        let version = env!("CARGO_PKG_VERSION");
        let expected = json!({ "resourceSpans": [{
            "resource": { "attributes": [
                { "key": "service.name", "value": { "stringValue": "tenuto" } },
            ] },
            "scopeSpans": [{
                "scope": { "name": "tenuto", "version": version },
                "spans": [{
                    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                    "spanId": "00f067aa0ba902b7",
                    "parentSpanId": "0101010101010101",
                    "flags": 0x301,
                    "name": "session",
                    "kind": 2,
                    "startTimeUnixNano": "1544712660000000001",
                    "endTimeUnixNano": "1544712661000000000",
                    "attributes": [
                        { "key": "tenuto.title", "value": { "stringValue": "film" } },
                        // An integer of OTLP is signed.
                        { "key": "tenuto.session", "value": { "doubleValue": u64::MAX as f64 } },
                        { "key": "tenuto.delivered_bytes", "value": { "intValue": "5" } },
                        { "key": "tenuto.worst_lateness", "value": { "doubleValue": 0.5 } },
                    ],
                    "status": { "code": 2, "message": "no room" },
                }],
            }],
        }] });
        assert_eq!(traces(&resource, &[record]), expected);
    }

    #[test]
    fn a_record_has_the_fields_of_its_line_and_texts_are_cut() {
        let line = json!({
            "event": "session-ended", "time": "2026-01-01T00:00:00Z", "title": "é".repeat(2000),
            "observed_slack": null, "guarantee_violations": { "disk": 1 }, "preempted": [3],
        });
        let record =
            LogRecord { at: at(7), line: Arc::new(line), session: TraceContext::parse(CONTEXT) };
        let made = logs(&resource(&[]), &[record]);
        let title = "é".repeat(512);
        let expected = json!({
            "timeUnixNano": "7",
            "observedTimeUnixNano": "7",
            "severityNumber": 9,
            "severityText": "INFO",
            "eventName": "session-ended",
            "body": { "stringValue": "session-ended" },
            "attributes": [
                { "key": "event", "value": { "stringValue": "session-ended" } },
                { "key": "guarantee_violations", "value": { "kvlistValue": { "values": [
                    { "key": "disk", "value": { "intValue": "1" } },
                ] } } },
                { "key": "preempted", "value": { "arrayValue": { "values": [
                    { "intValue": "3" },
                ] } } },
                { "key": "title", "value": { "stringValue": title } },
            ],
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
            "spanId": "00f067aa0ba902b7",
            "flags": 1,
        });
        assert_eq!(made["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0], expected);
    }

    #[test]
    fn each_line_has_its_severity() {
        for (line, expected) in [
            (json!({ "method": "GET", "target": "/", "status": 200 }), "INFO"),
            (json!({ "method": "GET", "target": "/", "status": 404 }), "INFO"),
            (json!({ "method": "GET", "target": "/", "status": 503 }), "WARN"),
            (json!({ "method": "GET", "target": "/", "status": 500 }), "ERROR"),
            (json!({ "method": "GET", "target": "/", "status": 200, "aborted": "left" }), "WARN"),
            (json!({ "event": "decision", "verdict": "refused" }), "WARN"),
            (json!({ "event": "session-ended", "cut_short": "overload" }), "WARN"),
            (json!({ "event": "session-ended", "cut_short": "server-stopped" }), "WARN"),
            (json!({ "event": "disk-lost" }), "ERROR"),
            (json!({ "event": "webhook-failed" }), "ERROR"),
        ] {
            assert_eq!(severity(&line).1, expected, "{line}");
        }
    }
}
