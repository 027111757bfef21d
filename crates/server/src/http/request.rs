//! Parsing a request head: method, path, query, and the fields that the server uses.
//!
//! Bytes in, values out; owns no socket. A path is a list of names, decoded one by one, that are
//! only compared with names in the catalogue. No part of it reaches a file system, so `..` and
//! `%2f` are names like any other (of no title).

use super::cmcd::{self, Cmcd};
use super::coding::AcceptEncoding;
use super::conditions::Conditions;
use super::range::RangeField;
use crate::access::Permit;
use crate::telemetry::TraceContext;
use director::question::{
    CLIENT_HEADER, ELSEWHERE_HEADER, PEER_HEADER, SIGNATURE_HEADER, STEERING_HEADER, SignedText,
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A method that the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Options,
    /// Ends a session.
    Delete,
    /// Ends a session: what a page can send when it is closed (`navigator.sendBeacon`).
    Post,
    /// Changes something, in the admin API.
    Patch,
    /// Makes a title, in the admin API.
    Put,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Delete => "DELETE",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Put => "PUT",
        }
    }
}

/// A parsed request head.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    /// The names of the path, decoded; `/` is one empty name.
    pub(crate) path: Vec<String>,
    /// The query's names and values, decoded, in order.
    pub(crate) query: Vec<(String, String)>,
    /// The target as received, without tokens, for the log.
    pub(crate) target: String,
    pub(crate) logged: LoggedFields,
    pub(crate) range: Option<RangeField>,
    pub(crate) conditions: Conditions,
    pub(crate) accept_encoding: AcceptEncoding,
    /// What the player reports of itself.
    pub(crate) cmcd: Option<Box<Cmcd>>,
    /// The token of an `Authorization: Bearer` field, or of the query.
    pub(crate) token: Option<String>,
    /// What that token permits, once it has been checked, and the operator's service, once it has
    /// decided.
    pub(crate) permit: Permit,
    /// The claims of that token, where one was needed.
    pub(crate) claims: Option<Arc<Map<String, Value>>>,
    /// How long the viewer has waited until the operator's service allowed the session; `None`: it
    /// has not been asked.
    pub(crate) authorized: Option<Duration>,
    /// The question of a director, which asks for a viewer.
    pub(crate) question: Option<Box<SignedQuestion>>,
    /// The signature of another node of the cluster, and the target that it has signed.
    pub(crate) of_peer: Option<Box<(String, String)>>,
    /// The viewer for whom a director asks, once its question has been checked.
    pub(crate) viewer: Option<IpAddr>,
    /// The client that the connection is of.
    pub(crate) peer: Option<IpAddr>,
    /// The span that the player or a proxy has named.
    pub(crate) parent: Option<TraceContext>,
    pub(crate) body: AnnouncedBody,
    pub(crate) keep_alive: bool,
}

/// What a director adds to the request of a viewer, and the target that it has signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SignedQuestion {
    pub(crate) client: String,
    pub(crate) target: String,
    pub(crate) steering: String,
    pub(crate) elsewhere: String,
    pub(crate) signature: String,
}

impl SignedQuestion {
    /// What the signature is of.
    pub(crate) fn signed(&self) -> SignedText<'_> {
        let Self { client, target, steering, elsewhere, .. } = self;
        SignedText { client, target, steering, elsewhere }
    }
}

/// What a head says of the body that follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnnouncedBody {
    /// Bytes; zero where there is none.
    pub(crate) length: u64,
    /// Whether it is JSON.
    pub(crate) is_json: bool,
    /// Whether the client waits to be told to send it (`Expect: 100-continue`).
    pub(crate) is_announced: bool,
    /// Whether it is a part of something (`Content-Range`).
    pub(crate) is_part: bool,
    /// Whether it is compressed (`Content-Encoding`).
    pub(crate) is_encoded: bool,
    /// Whether it is a form with the file among its parts (`multipart/...`).
    pub(crate) is_form: bool,
    /// Whether the head states its length, which may be zero.
    pub(crate) is_counted: bool,
}

/// Fields that are written to the log as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedFields {
    pub(crate) user_agent: Option<String>,
    pub(crate) range: Option<String>,
    /// The clients that a proxy names; not taken for true.
    pub(crate) forwarded_for: Option<String>,
}

impl HttpRequest {
    /// The first value of a parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is a request to the admin API.
    pub(crate) fn is_for_api(&self) -> bool {
        self.path.first().is_some_and(|name| name == API)
    }
}

/// Why a head was rejected. The connection is closed after the response, because the start of the
/// next request is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeadError {
    pub(crate) status: u16,
    /// One stable word.
    pub(crate) code: &'static str,
    /// One sentence: what is wrong and what to do.
    pub(crate) message: &'static str,
    /// Whether the request was for the admin API.
    pub(crate) is_for_api: bool,
}

/// The result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parsed {
    /// The head is not complete.
    Partial,
    /// A request, and the bytes of its head.
    Request(Box<HttpRequest>, usize),
    /// Not a request that can be answered.
    Rejected(HeadError),
}

/// Parses the first request head in `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Parsed::Partial,
        // At least `MAX_HEAD` bytes are here. Without a line end among them, the first line is too
        // long.
        Ok(_) if !bytes[..MAX_HEAD].contains(&b'\n') => return Parsed::Rejected(TOO_LONG_LINE),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Parsed::Rejected(TOO_LARGE),
        Err(httparse::Error::Version) => return Parsed::Rejected(VERSION),
        Err(_) => return Parsed::Rejected(MALFORMED),
    };
    match request(&head) {
        Ok(request) => Parsed::Request(Box::new(request), length),
        Err(rejection) => {
            let is_for_api = head.path.is_some_and(is_target_of_api);
            Parsed::Rejected(HeadError { is_for_api, ..rejection })
        }
    }
}

fn request(head: &httparse::Request<'_, '_>) -> Result<HttpRequest, HeadError> {
    let (method, target) = (head.method.ok_or(MALFORMED)?, head.path.ok_or(MALFORMED)?);
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "DELETE" => Method::Delete,
        "POST" => Method::Post,
        "PATCH" => Method::Patch,
        "PUT" => Method::Put,
        _ => return Err(METHOD),
    };
    let mut request = HttpRequest {
        method,
        path: Vec::new(),
        query: Vec::new(),
        target: without_token(target),
        logged: LoggedFields::default(),
        range: None,
        conditions: Conditions::default(),
        accept_encoding: AcceptEncoding::default(),
        cmcd: None,
        token: None,
        permit: Permit::default(),
        claims: None,
        authorized: None,
        question: None,
        of_peer: None,
        viewer: None,
        peer: None,
        parent: None,
        body: AnnouncedBody::default(),
        // An HTTP/1.0 connection ends with its response: a client that asks to keep it would have
        // to be told so in the response (RFC 9112, C.2.2), and no player asks.
        keep_alive: head.version == Some(1),
    };
    let (mut hosts, mut length) = (0, None);
    for field in head.headers.iter() {
        if cmcd::is_field(field.name) {
            let text = std::str::from_utf8(field.value).ok();
            request.cmcd.get_or_insert_default().take(text);
            continue;
        }
        let value = std::str::from_utf8(field.value).map_err(|_| MALFORMED)?.trim();
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("range") {
            request.range = RangeField::parse(value);
            request.logged.range = Some(value.to_owned());
        } else if is("user-agent") {
            request.logged.user_agent = Some(value.to_owned());
        } else if is("x-forwarded-for") {
            request.logged.forwarded_for = Some(value.to_owned());
        } else if request.conditions.take(field.name, value) {
            continue;
        } else if is("accept-encoding") {
            request.accept_encoding.take(value);
        } else if is("authorization") {
            request.token = bearer_token(value).map(str::to_owned);
        } else if is(PEER_HEADER) {
            request.of_peer = Some(Box::new((value.to_owned(), target.to_owned())));
        } else if is(SIGNATURE_HEADER) {
            request.question.get_or_insert_default().signature = value.to_owned();
        } else if is(STEERING_HEADER) {
            request.question.get_or_insert_default().steering = value.to_owned();
        } else if is(ELSEWHERE_HEADER) {
            request.question.get_or_insert_default().elsewhere = value.to_owned();
        } else if is(CLIENT_HEADER) {
            request.question.get_or_insert_default().client = value.to_owned();
        } else if is("connection") {
            let has = |word| value.split(',').any(|v| v.trim().eq_ignore_ascii_case(word));
            request.keep_alive &= !has("close");
        } else if is("host") {
            hosts += 1;
        } else if is("traceparent") {
            request.parent = TraceContext::parse(value);
        } else if is("content-type") {
            let kind = value.split(';').next().unwrap_or_default().trim();
            request.body.is_json = kind.eq_ignore_ascii_case("application/json");
            request.body.is_form = kind.to_ascii_lowercase().starts_with("multipart/");
        } else if is("expect") {
            request.body.is_announced = value.eq_ignore_ascii_case("100-continue");
        } else if is("content-range") {
            request.body.is_part = true;
        } else if is("content-encoding") {
            request.body.is_encoded = !value.eq_ignore_ascii_case("identity");
        } else if is("content-length") && length.is_none() {
            length = Some(value);
        } else if is("transfer-encoding") || is("content-length") {
            return Err(if is_target_of_api(target) { LENGTH } else { BODY });
        }
    }
    // Required by RFC 9112, 3.2.
    if head.version == Some(1) && hosts != 1 {
        return Err(HOST);
    }
    if let Some(question) = &mut request.question {
        question.target = target.to_owned();
    }
    take_target(target, &mut request)?;
    request.body.is_counted = length.is_some();
    request.body.length = length.map_or(Some(0), whole_number).ok_or(LENGTH)?;
    // The bytes of a body that is not read would be parsed as the next request.
    if request.body.length > 0 && !request.is_for_api() {
        return Err(BODY);
    }
    request.token = request.token.take().or_else(|| request.query("token").map(str::to_owned));
    Ok(request)
}

/// A number of digits alone.
fn whole_number(value: &str) -> Option<u64> {
    value.bytes().all(|digit| digit.is_ascii_digit()).then(|| value.parse().ok())?
}

/// The token of an `Authorization` field. Other schemes are a proxy's: its credentials are no token
/// of this server.
pub(crate) fn bearer_token(field: &str) -> Option<&str> {
    let (scheme, token) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A target for the log: a token in it must not let readers of the log play. Of a session's token
/// the beginning stays, by which the lines of one session are found.
pub(crate) fn without_token(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => match decode(name).as_deref() {
            Some("token" | "ticket") => format!("{name}=..."),
            Some("s") if value.chars().nth(SESSION_DIGITS).is_some() => {
                format!("{name}={}...", value.chars().take(SESSION_DIGITS).collect::<String>())
            }
            _ => pair.to_owned(),
        },
        None => pair.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').map(hidden).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Splits and decodes the target: `/path?query`, `http://host/path?query`, or `*`.
fn take_target(target: &str, request: &mut HttpRequest) -> Result<(), HeadError> {
    if target == "*" && request.method == Method::Options {
        return Ok(());
    }
    let origin = origin_form(target);
    let (path, query) = origin.split_once('?').unwrap_or((origin, ""));
    let path = path.strip_prefix('/').ok_or(MALFORMED)?;
    request.path = path.split('/').map(decode).collect::<Option<_>>().ok_or(ESCAPE)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name == cmcd::PARAMETER {
            request.cmcd.get_or_insert_default().take(decode(value).as_deref());
            continue;
        }
        request.query.push((decode(name).ok_or(ESCAPE)?, decode(value).ok_or(ESCAPE)?));
    }
    Ok(())
}

/// The path and query of a target. Servers must accept the absolute form, too (RFC 9112, 3.2.2).
fn origin_form(target: &str) -> &str {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let Some(scheme) = scheme else { return target };
    let authority = &target[scheme.len()..];
    authority.find('/').map_or("/", |slash| &authority[slash..])
}

/// Whether a target that may not be decoded is below the API's path.
fn is_target_of_api(target: &str) -> bool {
    origin_form(target).split(['/', '?']).nth(1).is_some_and(|name| name == API)
}

/// Decodes the percent escapes of one name; `None` where an escape is incomplete or the result is
/// not UTF-8.
fn decode(name: &str) -> Option<String> {
    let bytes = name.as_bytes();
    let whole =
        |i: usize| bytes.get(i + 1..i + 3).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit));
    // The decoder leaves a broken escape as it is.
    if (0..bytes.len()).any(|i| bytes[i] == b'%' && !whole(i)) {
        return None;
    }
    Some(percent_decode_str(name).decode_utf8().ok()?.into_owned())
}

/// The first name of the admin API's addresses.
const API: &str = "api";
/// Digits of a session's token in the log: a quarter of them.
const SESSION_DIGITS: usize = 8;
/// The longest request head in bytes. Browsers send less than 2 KiB.
pub(crate) const MAX_HEAD: usize = 16 * 1024;
/// The most header fields. Browsers send about 20.
const MAX_FIELDS: usize = 64;

const MALFORMED: HeadError = rejection(
    400,
    "malformed-request",
    "this is not an HTTP/1.1 request head; send a request line and fields as in RFC 9112",
);
const ESCAPE: HeadError = rejection(
    400,
    "malformed-url",
    "the URL has a broken % escape, or one that is not UTF-8; escape each name's UTF-8 bytes",
);
const HOST: HeadError =
    rejection(400, "host-missing", "an HTTP/1.1 request needs exactly one Host field");
const BODY: HeadError =
    rejection(400, "body-not-allowed", "this address takes no body; send the request without one");
const LENGTH: HeadError = rejection(
    411,
    "length-required",
    "a body needs its length in one Content-Length field, and is not taken in chunks \
     (Transfer-Encoding)",
);
const METHOD: HeadError = rejection(
    501,
    "method-unknown",
    "this server has no such method at any address; it has GET, HEAD, OPTIONS, POST, PUT, PATCH and \
     DELETE",
);
const TOO_LONG_LINE: HeadError =
    rejection(414, "url-too-long", "the request line is longer than 16 KiB");
const TOO_LARGE: HeadError = rejection(
    431,
    "head-too-large",
    "the request head has more than 64 fields or 16 KiB; send less",
);
const VERSION: HeadError = rejection(505, "version-not-supported", "use HTTP/1.1 or HTTP/1.0");

const fn rejection(status: u16, code: &'static str, message: &'static str) -> HeadError {
    HeadError { status, code, message, is_for_api: false }
}

/// A request head as a request.
#[cfg(test)]
pub(crate) fn parsed(head: &str) -> HttpRequest {
    match parse(head.as_bytes()) {
        Parsed::Request(request, _) => *request,
        other => panic!("{head}: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> u16 {
        match parse(head.as_bytes()) {
            Parsed::Partial => 0,
            Parsed::Request(..) => 200,
            Parsed::Rejected(rejection) => rejection.status,
        }
    }

    #[test]
    fn a_connection_is_kept_by_http_1_1_alone() {
        for (head, kept) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
        ] {
            let Parsed::Request(request, _) = parse(head.as_bytes()) else { panic!("{head:?}") };
            assert_eq!(request.keep_alive, kept, "{head:?}");
        }
    }

    #[test]
    fn each_request_head_gets_its_status() {
        let long_line = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(MAX_HEAD));
        let long_field =
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(MAX_FIELDS));
        let table: &[(&str, u16)] = &[
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET / HTTP/1.0\r\n\r\n", 200),
            ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("", 0),
            ("GET", 0),
            ("GET / HTTP/1.1\r\nHost:", 0),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET t/a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /%ff%fe HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            // Heads that a proxy before this server may read as another request than this server.
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n", 411),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length\u{b}: 0\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", 400),
            ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            // RFC 9112, 2.2, allows a line to end so; without bodies nothing can hide behind it.
            ("GET / HTTP/1.1\nHost: a\n\n", 200),
            ("GET  /  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("\u{16}\u{3}\u{1}\u{2}", 400),
            ("GET / HTTP/1.1\r\nHo st: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1", 400),
            // The API has bodies; those whose end is unclear are no one's.
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1", 200),
            ("PUT /apis HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1", 400),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            ("PUT http://a/api HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n1", 411),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n1", 411),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 411),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 411),
            ("PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 411),
            (
                "PUT /api HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
                411,
            ),
            ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            (&long_line, 414),
            (&long_field, 431),
            (&many, 431),
            ("GET / HTTP/2.0\r\n\r\n", 505),
        ];
        for (head, expected) in table {
            assert_eq!(status(head), *expected, "{:?}", &head[..head.len().min(80)]);
        }
    }

    #[test]
    fn names_of_a_path_are_decoded_separately() {
        let path = |target: &str| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            match parse(head.as_bytes()) {
                Parsed::Request(request, _) => (request.path, request.query),
                other => panic!("{target}: {other:?}"),
            }
        };
        assert_eq!(path("/t/a%2Fb/%C3%A4%20%25.mp4").0, ["t", "a/b", "ä %.mp4"]);
        assert_eq!(path("/t/../x").0, ["t", "..", "x"]);
        assert_eq!(path("//").0, ["", ""]);
        let query = path("/?s=1%262&s=3&x").1;
        let pairs: Vec<_> = query.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("s", "1&2"), ("s", "3"), ("x", "")]);
    }

    #[test]
    fn a_token_is_in_the_query_or_a_field_and_not_in_the_log() {
        for (target, field, token, logged) in [
            ("/t/a.mp4?token=x.y.z&s=1", "", Some("x.y.z"), "/t/a.mp4?token=...&s=1"),
            ("/t/a.mp4?s=1&to%6ben=x", "", Some("x"), "/t/a.mp4?s=1&to%6ben=..."),
            ("/t/a.mp4", "Authorization: bearer  x\r\n", Some("x"), "/t/a.mp4"),
            ("/t/a.mp4?token=y", "Authorization: Bearer x\r\n", Some("x"), "/t/a.mp4?token=..."),
            ("/t/a.mp4", "Authorization: Basic eDp5\r\n", None, "/t/a.mp4"),
            ("/t/a.mp4?%73=0123456789abcdef", "", None, "/t/a.mp4?%73=01234567..."),
            ("/t/a.mp4?s=ääääääääb&x=0123456789", "", None, "/t/a.mp4?s=ääääääää...&x=0123456789"),
        ] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n");
            let Parsed::Request(request, _) = parse(head.as_bytes()) else { panic!("{head}") };
            assert_eq!((request.token.as_deref(), request.target.as_str()), (token, logged));
        }
    }

    #[test]
    fn a_prefix_of_a_head_is_partial_and_bytes_after_the_head_are_not_consumed() {
        let head = "GET /t/a.mp4?s=0 HTTP/1.1\r\nHost: a\r\nRange: bytes=0-\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(parse(&head.as_bytes()[..end]), Parsed::Partial, "{end}");
        }
        let two = format!("{head}GET");
        assert!(matches!(parse(two.as_bytes()), Parsed::Request(_, n) if n == head.len()));
    }
}
