//! Requests to the console and answers, one on each connection.
//!
//! ```text
//!   accept ──too many──▶ closed
//!      └──▶ thread:  head, body ──▶ answer ──▶ closed
//!                       │ 10 s: closed
//! ```
//!
//! A browser on the same machine opens a connection in microseconds, so that none is kept.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A request, as far as the console needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConsoleRequest {
    pub(super) method: String,
    /// The path without the query.
    pub(super) path: String,
    /// What follows the path after `?`.
    pub(super) query: String,
    /// `Host`: the address as the browser has it.
    pub(super) host: String,
    /// `Origin`: the page that makes the request, if the browser says so.
    pub(super) origin: Option<String>,
    /// Whether the field is there that pages of other origins cannot send.
    pub(super) is_own: bool,
    /// The token of `Authorization: Bearer`.
    pub(super) bearer: Option<String>,
    pub(super) body: Vec<u8>,
}

/// The header field of requests that change something. The browser sends it to another origin only
/// after that has allowed it, which the console does not.
pub(super) const OWN: &str = "Tenuto-Console";

impl ConsoleRequest {
    /// The first value of a parameter of the query, with `%` sequences decoded.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        url::form_urlencoded::parse(self.query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }
}

/// An answer to a request.
#[derive(Debug)]
pub(super) struct ConsoleAnswer {
    pub(super) status: u16,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl ConsoleAnswer {
    /// An answer with a body of this type.
    pub(super) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let fields = vec![("Content-Type", content_type.to_owned())];
        Self { status, fields, body: body.into() }
    }

    /// A value as JSON.
    pub(super) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, "application/json", value.to_string())
    }

    /// An error: a stable word, a sentence, and what to do about it.
    pub(super) fn problem(status: u16, error: &str, message: &str, hint: Option<&str>) -> Self {
        let hint = hint.unwrap_or_default();
        let body = serde_json::json!({ "error": error, "message": message, "hint": hint });
        Self::json(status, &body)
    }

    /// The answer with a header field more.
    pub(super) fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    fn into_bytes(self, is_head: bool) -> Vec<u8> {
        let is_kept = self.fields.iter().any(|(name, _)| *name == "Cache-Control");
        let kept = if is_kept { "" } else { "Cache-Control: no-store\r\n" };
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Length: {}\r\nServer: tenuto\r\n{kept}\
             Connection: close\r\n",
            self.status,
            phrase(self.status),
            self.body.len(),
        );
        for (name, value) in &self.fields {
            head.extend([*name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if !is_head {
            bytes.extend(self.body);
        }
        bytes
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

/// Accepts connections and answers their requests until `over` is set and another one comes.
pub(super) fn serve(
    listener: &TcpListener,
    over: &AtomicBool,
    answer: impl Fn(&ConsoleRequest) -> ConsoleAnswer + Send + Sync + 'static,
) {
    let (answer, open) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    loop {
        let accepted = listener.accept();
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok((mut stream, _)) = accepted else {
            // Out of descriptors, for example: the next attempt would fail at once, too.
            std::thread::sleep(PAUSE);
            continue;
        };
        if open.load(Ordering::Acquire) >= MOST_CONNECTIONS {
            continue;
        }
        let counted = CountedRequest::new(&open);
        let answer = Arc::clone(&answer);
        let work = move || {
            let _counted = counted;
            // A browser that has gone needs no answer.
            let _ = converse(&mut stream, &*answer);
            let _ = stream.shutdown(Shutdown::Both);
        };
        // Without a thread the connection is dropped.
        let _ = std::thread::Builder::new().name("console".to_owned()).spawn(work);
    }
}

/// One open connection, counted until it is dropped.
struct CountedRequest(Arc<AtomicUsize>);

impl CountedRequest {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(open))
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn converse(
    stream: &mut TcpStream,
    answer: &dyn Fn(&ConsoleRequest) -> ConsoleAnswer,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (answer, is_head) = match read(stream)? {
        Ok(request) => (answer(&request), request.method == "HEAD"),
        Err(answer) => (answer, false),
    };
    stream.write_all(&answer.into_bytes(is_head))
}

/// Reads a request, or the answer to what is none.
fn read(stream: &mut TcpStream) -> io::Result<Result<ConsoleRequest, ConsoleAnswer>> {
    let (start, mut bytes, mut piece) = (Instant::now(), Vec::new(), [0; 4096]);
    loop {
        match parse(&bytes) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) => {}
            Err(answer) => return Ok(Err(answer)),
        }
        if start.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

/// The request in `bytes`; `None` while a part of it is missing.
fn parse(bytes: &[u8]) -> Result<Option<ConsoleRequest>, ConsoleAnswer> {
    let bad = |message| ConsoleAnswer::problem(400, "malformed", message, None);
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) if bytes.len() < LARGEST_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let message = "a request head has at most 16 KiB and 64 fields";
            return Err(ConsoleAnswer::problem(431, "head-too-large", message, None));
        }
        Err(_) => return Err(bad("this is no request of HTTP/1.1")),
    };
    let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
        return Err(bad("this is no request of HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = ConsoleRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        ..ConsoleRequest::default()
    };
    let mut length = 0;
    for header in parsed.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { continue };
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            value.clone_into(&mut request.host);
        } else if is("origin") {
            request.origin = Some(value.to_owned());
        } else if is(OWN) {
            request.is_own = true;
        } else if is("authorization") {
            request.bearer = value.strip_prefix("Bearer ").map(str::to_owned);
        } else if is("content-length") {
            length = value.parse().map_err(|_| bad("Content-Length is not a number"))?;
        } else if is("transfer-encoding") {
            return Err(bad("a body has a Content-Length"));
        }
    }
    if length > LARGEST_BODY {
        let message = "a body has at most 64 KiB";
        return Err(ConsoleAnswer::problem(413, "body-too-large", message, None));
    }
    let Some(body) = bytes.get(head..head + length) else { return Ok(None) };
    body.clone_into(&mut request.body);
    Ok(Some(request))
}

/// Connections at a time: a browser opens six.
const MOST_CONNECTIONS: usize = 64;
/// Time for a request, and for taking any part of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time before the next connection is accepted after an error.
const PAUSE: Duration = Duration::from_millis(50);
const LARGEST_HEAD: usize = 16 << 10;
const LARGEST_BODY: usize = 64 << 10;
const MOST_HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_head_and_its_body_within_bounds() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
        let rows = [
            ("GET /a?b=%20c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a b=%20c h "),
            ("POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", "POST /a   {}"),
            ("POST /a HTTP/1.1\r\ncontent-length: 2\r\n\r\n{", "more"),
            ("GET / HTTP/1.1\r\n", "more"),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"),
            ("POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", "413"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}\r\n\r\n", "400"),
            (&many, "431"),
        ];
        for (bytes, wanted) in rows {
            let shown = match parse(bytes.as_bytes()) {
                Ok(Some(ConsoleRequest { method, path, query, host, body, .. })) => {
                    let body = String::from_utf8(body).unwrap();
                    format!("{method} {path} {query} {host} {body}")
                }
                Ok(None) => "more".to_owned(),
                Err(answer) => answer.status.to_string(),
            };
            assert_eq!(shown, wanted, "{}", &bytes[..bytes.len().min(60)]);
        }
    }
}
