//! A request as it lies in the bytes that a client has sent.

use crate::response::HttpResponse;
use httparse::{Header, Status};
use serde_json::json;
use std::borrow::Cow;
use std::net::IpAddr;
use url::form_urlencoded;

/// A request of HTTP/1.1 or HTTP/1.0.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// Path and query, as they were sent.
    pub target: &'a str,
    fields: &'a [Header<'a>],
    /// The body; empty where there is none.
    pub body: &'a [u8],
    /// The client's address; IPv4 where it came as IPv4 within IPv6.
    pub client: IpAddr,
    /// Whether the connection is one of TLS.
    pub over_tls: bool,
}

/// A request that is not accepted; the connection ends with the response.
pub(crate) type BadRequest = Box<HttpResponse>;

/// A request with its length, and whether the client wants the connection to go on.
pub(crate) struct ParsedRequest<'a> {
    pub(crate) request: HttpRequest<'a>,
    pub(crate) len: usize,
    pub(crate) keeps_connection: bool,
}

/// Where a request has come from, and how large its body may be.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext {
    pub(crate) client: IpAddr,
    pub(crate) over_tls: bool,
    pub(crate) largest_body: usize,
}

impl<'a> HttpRequest<'a> {
    /// The path without the query.
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The first value of a header field; its name in any case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The first value of a header field, where it is text.
    pub fn text_field(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.field(name)?).ok()
    }

    /// The first value of a parameter of the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| Cow::into_owned(value))
    }

    /// The first value of a parameter of the query, as it was sent.
    pub fn raw_query(&self, name: &str) -> Option<&'a str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A request as a client at 127.0.0.1 sends it: for tests of closures.
    ///
    /// # Panics
    /// When `bytes` are not one whole request.
    pub fn for_test<R>(bytes: &[u8], use_it: impl FnOnce(&HttpRequest<'_>) -> R) -> R {
        let context = RequestContext {
            client: IpAddr::from([127, 0, 0, 1]),
            over_tls: false,
            largest_body: usize::MAX,
        };
        let mut headers = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let parsed = parse(bytes, &mut headers, context).ok().flatten();
        use_it(&parsed.expect("a whole request").request)
    }
}

/// Memory for the header fields of a request.
pub(crate) fn no_fields<'a>() -> [Header<'a>; MOST_FIELDS] {
    [httparse::EMPTY_HEADER; MOST_FIELDS]
}

/// The request at the beginning of `bytes`; `None` while a part of it is missing.
pub(crate) fn parse<'a>(
    bytes: &'a [u8],
    fields: &'a mut [Header<'a>],
    context: RequestContext,
) -> Result<Option<ParsedRequest<'a>>, BadRequest> {
    let mut parsed = httparse::Request::new(fields);
    let head = match parsed.parse(bytes) {
        Ok(Status::Complete(head)) => head,
        Ok(Status::Partial) if bytes.len() < LARGEST_HEAD => return Ok(None),
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return bad(431, "head-too-large", "a request head has at most 16 KiB and 64 fields");
        }
        Err(httparse::Error::Version) => {
            return bad(505, "version-not-supported", "use HTTP/1.1 or HTTP/1.0");
        }
        Err(_) => return malformed(),
    };
    let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return malformed() };
    let mut keeps_connection = parsed.version == Some(1);
    let mut length = 0_usize;
    for field in parsed.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        let is_value = |value: &[u8]| field.value.eq_ignore_ascii_case(value);
        if is("connection") && is_value(b"close") {
            keeps_connection = false;
        } else if is("connection") && is_value(b"keep-alive") {
            keeps_connection = true;
        } else if is("transfer-encoding") {
            return bad(400, "body", "a body has a Content-Length here");
        } else if is("content-length") {
            let text = std::str::from_utf8(field.value).ok();
            // A sign would be parsed, too.
            let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            match text.and_then(|text| text.parse().ok()) {
                Some(given) => length = given,
                None => return bad(400, "body", "Content-Length is not a number of bytes"),
            }
        }
    }
    if length > 0 && context.largest_body == 0 {
        return bad(400, "body", "no request with a body is taken here");
    }
    if length > context.largest_body {
        let most = context.largest_body;
        return bad(413, "body-too-large", &format!("a body has at most {most} bytes"));
    }
    let len = head + length;
    let Some(body) = bytes.get(head..len) else { return Ok(None) };
    let RequestContext { client, over_tls, .. } = context;
    let fields = &*parsed.headers;
    let target = origin_form(target);
    let request = HttpRequest { method, target, fields, body, client, over_tls };
    Ok(Some(ParsedRequest { request, len, keeps_connection }))
}

fn bad<T>(status: u16, error: &str, message: &str) -> Result<T, BadRequest> {
    Err(Box::new(HttpResponse::problem(status, error, message, json!({}))))
}

fn malformed<T>() -> Result<T, BadRequest> {
    bad(400, "malformed", "this is no request of HTTP/1.1")
}

/// Path and query of a target, which a proxy may send with scheme and host.
fn origin_form(target: &str) -> &str {
    let after_scheme = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    match after_scheme {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    }
}

/// Bytes of a head.
const LARGEST_HEAD: usize = 16 << 10;
/// Header fields of a request.
const MOST_FIELDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_head_and_its_body_within_bounds() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(LARGEST_HEAD));
        let rows = [
            // Bytes, the largest body: what they are.
            ("GET /a?b=%20c+d HTTP/1.1\r\nHost: h\r\n\r\n", 0, "GET /a b= c d h true ''"),
            ("GET / HTTP/1.0\r\n\r\n", 0, "GET / b= - false ''"),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 0, "GET / b= - true ''"),
            ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", 0, "GET / b= - false ''"),
            ("GET http://h:80/x?b=1 HTTP/1.1\r\n\r\n", 0, "GET /x b=1 - true ''"),
            ("GET https://h HTTP/1.1\r\n\r\n", 0, "GET / b= - true ''"),
            ("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0, "GET / b= - true ''"),
            ("POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 2, "POST /a b= - true '{}'"),
            ("POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\n{", 2, "more"),
            ("POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\n", 2, "413 body-too-large"),
            ("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 0, "400 body"),
            ("POST /a HTTP/1.1\r\nContent-Length: x\r\n\r\n", 9, "400 body"),
            ("POST /a HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 9, "400 body"),
            ("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 9, "400 body"),
            ("GET / HTTP/2.0\r\n\r\n", 0, "505 version-not-supported"),
            ("GET /a b HTTP/1.1\r\n\r\n", 0, "505 version-not-supported"),
            ("\u{16}\u{3}\u{1}\r\n\r\n", 0, "400 malformed"),
            ("GET / HTTP/1.1\r\n", 0, "more"),
            (&long, 0, "431 head-too-large"),
            (&many, 0, "431 head-too-large"),
        ];
        for (bytes, largest_body, wanted) in rows {
            let mut fields = no_fields();
            let client = IpAddr::from([10, 0, 0, 1]);
            let context = RequestContext { client, over_tls: false, largest_body };
            let shown = match parse(bytes.as_bytes(), &mut fields, context) {
                Ok(Some(ParsedRequest { request, len, keeps_connection })) => {
                    assert_eq!(len, bytes.len());
                    let HttpRequest { method, body, .. } = request;
                    let (path, b) = (request.path(), request.query("b").unwrap_or_default());
                    let host = request.text_field("hOST").unwrap_or("-");
                    let body = std::str::from_utf8(body).unwrap();
                    format!("{method} {path} b={b} {host} {keeps_connection} '{body}'")
                }
                Ok(None) => "more".to_owned(),
                Err(bad) => bad.in_short(),
            };
            assert_eq!(shown, wanted, "{}", &bytes[..bytes.len().min(60)]);
        }
    }
}
