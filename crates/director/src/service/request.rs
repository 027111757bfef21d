//! The head of a viewer's request, as far as a director needs it.

use cluster::TitleName;
use percent_encoding::percent_decode_str;

/// A request of a viewer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ViewerRequest<'a> {
    pub(super) method: &'a str,
    /// Path and query.
    pub(super) target: &'a str,
    pub(super) authorization: Option<&'a [u8]>,
    /// Where the viewer has found the director.
    pub(super) host: Option<&'a str>,
    /// Whether a proxy has taken the request over TLS.
    pub(super) over_tls: bool,
    pub(super) keeps_connection: bool,
}

/// A head that is not accepted; the connection ends with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadHead {
    pub(super) status: u16,
    pub(super) error: &'static str,
    pub(super) message: &'static str,
}

impl<'a> ViewerRequest<'a> {
    /// The request at the beginning of `bytes` and the length of its head; `None` where more bytes
    /// are needed.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let len = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if bytes.len() < LARGEST_HEAD => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(TOO_LARGE);
            }
            Err(httparse::Error::Version) => return Err(VERSION),
            Err(_) => return Err(MALFORMED),
        };
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(MALFORMED);
        };
        let mut request = Self {
            method,
            target: origin_form(target),
            authorization: None,
            host: None,
            over_tls: false,
            keeps_connection: parsed.version == Some(1),
        };
        for header in parsed.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let is_value = |value: &[u8]| header.value.eq_ignore_ascii_case(value);
            if is("authorization") {
                request.authorization = Some(header.value);
            } else if is("host") {
                request.host = std::str::from_utf8(header.value).ok().filter(|host| is_host(host));
            } else if is("x-forwarded-proto") {
                request.over_tls = is_value(b"https");
            } else if is("connection") {
                if is_value(b"close") {
                    request.keeps_connection = false;
                } else if is_value(b"keep-alive") {
                    request.keeps_connection = true;
                }
            } else if is("transfer-encoding") || is("content-length") && !is_value(b"0") {
                return Err(BODY);
            }
        }
        Ok(Some((request, len)))
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The first value of a parameter of the query, decoded.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let value = self.raw_query(name)?;
        Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
    }

    /// The first value of a parameter of the query, as it was sent.
    pub(super) fn raw_query(&self, name: &str) -> Option<&'a str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// How the viewer has reached the director: the beginning of its addresses.
    pub(super) fn base(&self) -> Option<String> {
        let scheme = if self.over_tls { "https" } else { "http" };
        self.host.map(|host| format!("{scheme}://{host}"))
    }

    /// The title that is asked for below `/t/`: `TITLE/..` or `TITLE.mp4`. `None` for other paths
    /// and for what cannot be the name of a title.
    pub(super) fn title(&self) -> Option<TitleName> {
        let below = self.path().strip_prefix("/t/")?;
        let name = match below.split_once('/') {
            Some((name, _)) => name,
            None => below.rsplit_once('.')?.0,
        };
        TitleName::new(percent_decode_str(name).decode_utf8().ok()?).ok()
    }
}

/// Whether a text can stand for a host in an address, so that it can be written into a manifest.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.:[]_".contains(c))
}

/// Path and query of a target, which a proxy may send with scheme and host.
fn origin_form(target: &str) -> &str {
    let after_scheme = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    match after_scheme {
        Some(rest) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => target,
    }
}

const MALFORMED: BadHead =
    BadHead { status: 400, error: "malformed", message: "this is no request of HTTP/1.1" };
const VERSION: BadHead =
    BadHead { status: 505, error: "version-not-supported", message: "use HTTP/1.1 or HTTP/1.0" };
const BODY: BadHead =
    BadHead { status: 400, error: "body", message: "a director takes no request with a body" };
const TOO_LARGE: BadHead = BadHead {
    status: 431,
    error: "head-too-large",
    message: "a request head has at most 16 KiB and 64 fields",
};
/// Bytes of a head.
const LARGEST_HEAD: usize = 16 * 1024;
/// Header fields of a request.
const MOST_HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_part_of_the_path_below_t() {
        let rows = [
            ("/t/film/master.m3u8?start=3", Some("film")),
            ("/t/film/0/17.m4s?s=a", Some("film")),
            ("/t/film.mp4", Some("film")),
            ("/t/film.of.1927.mp4?x=/", Some("film.of.1927")),
            ("/t/Metropolis%20(1927)/manifest.mpd", Some("Metropolis (1927)")),
            ("http://director:80/t/film.mp4", Some("film")),
            ("/t/a%2Fb.mp4", Some("a/b")),
            ("/t/%ff.mp4", None),
            ("/t/a%0Ab.mp4", None),
            ("/t/film", None),
            ("/t/.mp4", None),
            ("/t/", None),
            ("/titles", None),
            ("*", None),
        ];
        for (target, title) in rows {
            let bytes = format!("GET {target} HTTP/1.1\r\n\r\n");
            let (request, len) = ViewerRequest::parse(bytes.as_bytes()).unwrap().unwrap();
            assert_eq!(len, bytes.len());
            assert_eq!(request.title().as_ref().map(TitleName::as_str), title, "{target}");
        }
    }

    #[test]
    fn heads_have_a_form_and_bounds() {
        let many = "A: b\r\n".repeat(65);
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(LARGEST_HEAD));
        let rows = [
            ("GET / HTTP/1.1\r\n\r\n", "true"),
            ("GET / HTTP/1.0\r\n\r\n", "false"),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "true"),
            ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", "false"),
            ("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "true"),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "400 body"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "400 body"),
            ("GET / HTTP/2.0\r\n\r\n", "505 version-not-supported"),
            ("\u{16}\u{3}\u{1}\r\n\r\n", "400 malformed"),
            ("GET /a b HTTP/1.1\r\n\r\n", "505 version-not-supported"),
            ("GET / HTTP/1.1\r\n", "more"),
            (&long, "431 head-too-large"),
            (&format!("GET / HTTP/1.1\r\n{many}\r\n"), "431 head-too-large"),
        ];
        for (bytes, wanted) in rows {
            let shown = match ViewerRequest::parse(bytes.as_bytes()) {
                Ok(Some((request, _))) => request.keeps_connection.to_string(),
                Ok(None) => "more".to_owned(),
                Err(bad) => format!("{} {}", bad.status, bad.error),
            };
            assert_eq!(shown, wanted, "{}", &bytes[..bytes.len().min(60)]);
        }
    }
}
