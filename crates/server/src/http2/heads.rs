//! Heads of HTTP/2 as those of HTTP/1.1, and the other way round.
//!
//! It decides nothing on a request: what HTTP/1.1 refuses is refused by the same parser. Names and
//! values have been checked by `h2`, so none has a line break.

use h2::RecvStream;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};

/// The head of a request as HTTP/1.1 has it. Its connection ends with the response.
pub(super) fn request_head(request: &Request<RecvStream>) -> Vec<u8> {
    let (uri, fields) = (request.uri(), request.headers());
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut head = Vec::with_capacity(512);
    for part in [request.method().as_str(), " ", target, " HTTP/1.1\r\nConnection: close\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    let mut add = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    // The authority takes the place of the field (RFC 9113, 8.3.1).
    if let Some(authority) = uri.authority() {
        add("Host", authority.as_str().as_bytes());
    }
    for (name, value) in fields {
        if *name != HOST || uri.authority().is_none() {
            add(name.as_str(), value.as_bytes());
        }
    }
    if !request.body().is_end_stream() && !fields.contains_key(CONTENT_LENGTH) {
        // A body of unknown length, which HTTP/1.1 announces so.
        add("Transfer-Encoding", b"chunked");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of a response, and the length of its body; `None`: it ends with the connection.
pub(super) fn response_head(text: &[u8], is_head: bool) -> Option<(Response<()>, Option<u64>)> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    parsed.parse(text).ok()?;
    let status = StatusCode::from_u16(parsed.code?).ok()?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if name != CONNECTION {
            headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
        }
    }
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let has_body =
        !is_head && status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED;
    let length = if has_body { announced } else { Some(0) };
    let mut response = Response::new(());
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Some((response, length))
}

/// The most fields of a response; the server's have some twenty.
const MOST_FIELDS: usize = 64;
