//! A collector of OpenTelemetry that takes OTLP in JSON over HTTP, by the text of its
//! specification (opentelemetry-proto 1.10, and "JSON Protobuf Encoding" of OTLP 1.10). What a
//! request has against it is kept as a fault.

use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector on an address of this machine, until the end of the test.
pub(crate) struct Collector {
    pub(crate) url: String,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    requests: usize,
    spans: Vec<Value>,
    logs: Vec<Value>,
    resources: Vec<Value>,
    faults: Vec<String>,
}

impl Collector {
    /// One that answers the first requests with these statuses and takes all others.
    pub(crate) fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::new(Mutex::new(Taken::default()));
        let list = Arc::clone(&taken);
        std::thread::spawn(move || {
            let mut statuses = statuses.iter();
            for stream in listener.incoming().flatten() {
                // A client may go without a further request.
                let _ = answer(stream, &mut statuses, &list);
            }
        });
        Self { url, taken }
    }

    /// The requests so far, whatever they were answered.
    pub(crate) fn requests(&self) -> usize {
        self.taken.lock().unwrap().requests
    }

    /// The spans that were taken, with `attributes` as an object.
    pub(crate) fn spans(&self) -> Vec<Value> {
        self.taken.lock().unwrap().spans.clone()
    }

    /// The log records that were taken, with `attributes` as an object.
    pub(crate) fn logs(&self) -> Vec<Value> {
        self.taken.lock().unwrap().logs.clone()
    }

    /// The attributes of the sender, one object for each request.
    pub(crate) fn resources(&self) -> Vec<Value> {
        self.taken.lock().unwrap().resources.clone()
    }

    /// What was against the specification.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.taken.lock().unwrap().faults.clone()
    }
}

fn answer(
    stream: TcpStream,
    statuses: &mut impl Iterator<Item = &'static u16>,
    taken: &Mutex<Taken>,
) -> std::io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? <= 2 {
            break;
        }
        head.push(line.trim_end().to_ascii_lowercase());
    }
    let field = |name: &str| head.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    let length = field("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    let mut taken = taken.lock().unwrap();
    taken.requests += 1;
    let status = *statuses.next().unwrap_or(&200);
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    if field("content-type") != Some("application/json") {
        taken.faults.push(format!("the content type {:?}", field("content-type")));
    }
    if status == 200 {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        if let Err(fault) = taken.take(path, &body) {
            taken.faults.push(format!("{path}: {fault}: {body}"));
        }
    }
    let mut output = stream;
    let text = "{}";
    write!(
        output,
        "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

impl Taken {
    fn take(&mut self, path: &str, body: &Value) -> Result<(), String> {
        let (message, parts, of_scope, records) = match path {
            "/v1/traces" => ("TracesData", "resourceSpans", "scopeSpans", "spans"),
            "/v1/logs" => ("LogsData", "resourceLogs", "scopeLogs", "logRecords"),
            _ => return Err("no such path".to_owned()),
        };
        check(message, body)?;
        for part in list(&body[parts]) {
            self.resources.push(attributes(&part["resource"])?);
            for record in list(&part[of_scope]).flat_map(|scope| list(&scope[records])) {
                let mut record = record.clone();
                record["attributes"] = attributes(&record)?;
                if records == "spans" {
                    let time = |name: &str| record[name].as_str().and_then(|it| it.parse().ok());
                    let [begun, ended]: [Option<u64>; 2] =
                        ["startTimeUnixNano", "endTimeUnixNano"].map(time);
                    if begun.is_none() || begun > ended || record["name"] == "" {
                        return Err("a span without a time or a name".to_owned());
                    }
                    self.spans.push(record);
                } else {
                    self.logs.push(record);
                }
            }
        }
        Ok(())
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The attributes as an object: text, numbers and truth as in JSON.
fn attributes(of: &Value) -> Result<Value, String> {
    let mut all = BTreeMap::new();
    for pair in list(&of["attributes"]) {
        let key = pair["key"].as_str().unwrap_or_default().to_owned();
        let value = &pair["value"];
        let value = match value["intValue"].as_str() {
            Some(text) => {
                text.parse::<i64>().map_err(|_| "an integer of other than digits")?.into()
            }
            None => {
                value.as_object().and_then(|it| it.values().next()).cloned().unwrap_or_default()
            }
        };
        if all.insert(key.clone(), value).is_some() {
            return Err(format!("two attributes {key}"));
        }
    }
    serde_json::to_value(all).map_err(|error| error.to_string())
}

/// What a field of a message is in JSON.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Truth,
    /// Bytes as hexadecimal digits, of this number.
    Id(usize),
    /// A 64-bit integer, as a string.
    Long,
    Int,
    Double,
    /// An enumeration, up to this number.
    Enum(u64),
    Message(&'static str),
    List(&'static str),
}

use Kind::{Double, Enum, Id, Int, List, Long, Message, Text, Truth};

type Fields = &'static [(&'static str, Kind)];

/// The messages of opentelemetry-proto, as far as spans and log records have them.
const MESSAGES: &[(&str, Fields)] = &[
    ("TracesData", &[("resourceSpans", List("ResourceSpans"))]),
    ("LogsData", &[("resourceLogs", List("ResourceLogs"))]),
    (
        "ResourceSpans",
        &[
            ("resource", Message("Resource")),
            ("scopeSpans", List("ScopeSpans")),
            ("schemaUrl", Text),
        ],
    ),
    (
        "ResourceLogs",
        &[("resource", Message("Resource")), ("scopeLogs", List("ScopeLogs")), ("schemaUrl", Text)],
    ),
    ("Resource", &[("attributes", List("KeyValue")), ("droppedAttributesCount", Int)]),
    ("ScopeSpans", &[("scope", Message("Scope")), ("spans", List("Span")), ("schemaUrl", Text)]),
    (
        "ScopeLogs",
        &[("scope", Message("Scope")), ("logRecords", List("LogRecord")), ("schemaUrl", Text)],
    ),
    (
        "Scope",
        &[
            ("name", Text),
            ("version", Text),
            ("attributes", List("KeyValue")),
            ("droppedAttributesCount", Int),
        ],
    ),
    (
        "Span",
        &[
            ("traceId", Id(32)),
            ("spanId", Id(16)),
            ("traceState", Text),
            ("parentSpanId", Id(16)),
            ("flags", Int),
            ("name", Text),
            ("kind", Enum(5)),
            ("startTimeUnixNano", Long),
            ("endTimeUnixNano", Long),
            ("attributes", List("KeyValue")),
            ("droppedAttributesCount", Int),
            ("status", Message("Status")),
        ],
    ),
    ("Status", &[("message", Text), ("code", Enum(2))]),
    (
        "LogRecord",
        &[
            ("timeUnixNano", Long),
            ("observedTimeUnixNano", Long),
            ("severityNumber", Enum(24)),
            ("severityText", Text),
            ("body", Message("AnyValue")),
            ("attributes", List("KeyValue")),
            ("droppedAttributesCount", Int),
            ("flags", Int),
            ("traceId", Id(32)),
            ("spanId", Id(16)),
            ("eventName", Text),
        ],
    ),
    ("KeyValue", &[("key", Text), ("value", Message("AnyValue"))]),
    (
        "AnyValue",
        &[
            ("stringValue", Text),
            ("boolValue", Truth),
            ("intValue", Long),
            ("doubleValue", Double),
            ("arrayValue", Message("ArrayValue")),
            ("kvlistValue", Message("KeyValueList")),
        ],
    ),
    ("ArrayValue", &[("values", List("AnyValue"))]),
    ("KeyValueList", &[("values", List("KeyValue"))]),
];

/// Whether a value is a message of this name; if not, why.
fn check(message: &str, value: &Value) -> Result<(), String> {
    let (_, fields) = MESSAGES.iter().find(|(name, _)| *name == message).expect("a message");
    let object = value.as_object().ok_or_else(|| format!("{message} is no object"))?;
    if message == "AnyValue" && object.len() > 1 {
        return Err("a value of several kinds".to_owned());
    }
    let mut named = HashSet::new();
    for (name, value) in object {
        let (_, kind) = fields
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| format!("{message} has no field {name}"))?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_it = match *kind {
            Text => value.is_string(),
            Truth => value.is_boolean(),
            Double => value.is_number(),
            Int => value.as_u64().is_some_and(|it| it <= u64::from(u32::MAX)),
            Enum(most) => value.as_u64().is_some_and(|it| it <= most),
            Long => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
            Id(length) => value.as_str().is_some_and(|text| {
                text.len() == length && digits(text) && text.bytes().any(|byte| byte != b'0')
            }),
            Message(of) => check(of, value).map(|()| true)?,
            List(of) => {
                let values = value.as_array().ok_or_else(|| format!("{name} is no list"))?;
                values.iter().try_for_each(|value| check(of, value)).map(|()| true)?
            }
        };
        if !is_it {
            return Err(format!("{message}: {name} is {value}"));
        }
        named.insert(name.as_str());
    }
    let needed: &[&str] = match message {
        "Span" => &["traceId", "spanId", "name", "startTimeUnixNano", "endTimeUnixNano"],
        "KeyValue" => &["key", "value"],
        _ => &[],
    };
    match needed.iter().find(|name| !named.contains(**name)) {
        Some(missing) => Err(format!("{message} has no {missing}")),
        None => Ok(()),
    }
}
