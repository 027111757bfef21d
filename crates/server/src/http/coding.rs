//! Content coding (RFC 9110, sections 8.4 and 12.5.3): playlists, manifests and JSON as gzip for
//! clients that take it, usually a tenth of their size. Media is sent as it is stored.
//!
//! ```text
//!   a page or playlist ─▶ text of 1 KiB to 1 MiB, gzip accepted? ──▶ conditions ─▶ response
//!                          │ yes: Content-Encoding, tag "T-gzip"       │ 304, 412
//!                          └ in any case: Vary: Accept-Encoding        ▼
//! ```

use super::conditions::{ConditionResult, Validators};
use super::request::{HttpRequest, Method};
use super::response::{Head, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use units::show::http_date;

/// What an `Accept-Encoding` field says of the codings of this server: weights in thousandths;
/// `None` where a coding is not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptEncoding {
    gzip: Option<u16>,
    identity: Option<u16>,
    // `*`: every coding that is not named.
    other: Option<u16>,
}

impl AcceptEncoding {
    /// Takes a field of the request, which may have several; elements that are not valid are
    /// ignored.
    pub(crate) fn take(&mut self, field: &str) {
        for element in field.split(',') {
            let (coding, parameters) = element.split_once(';').unwrap_or((element, ""));
            let Some(weight) = weight(parameters) else { continue };
            let coding = coding.trim();
            if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
                self.gzip = Some(weight);
            } else if coding.eq_ignore_ascii_case("identity") {
                self.identity = Some(weight);
            } else if coding == "*" {
                self.other = Some(weight);
            }
        }
    }

    /// Whether the client takes gzip, and at least as gladly as no coding.
    pub(crate) fn prefers_gzip(self) -> bool {
        let gzip = self.gzip.or(self.other).unwrap_or(0);
        gzip > 0 && gzip >= self.identity.unwrap_or(0)
    }
}

/// The weight in the parameters of an element: 1 where there is none; `None` if it is not valid.
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1000);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value = value.trim();
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    // At most three digits (RFC 9110, 12.4.2).
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// A response in the coding that the request prefers, or what its conditions make of it.
pub(crate) fn negotiated(request: &HttpRequest, mut response: Response) -> Response {
    if response.head.status() != 200 {
        return response;
    }
    let gzip = is_text(&response.head) && request.accept_encoding.prefers_gzip();
    let coded = Some(&response.body).filter(|_| gzip).and_then(|body| compressed(body));
    if let (Some(_), Some(etag)) = (&coded, &mut response.etag) {
        // The coded bytes are others, so they have a tag of their own (8.8.3.3).
        etag.truncate(etag.len() - 1);
        etag.push_str("-gzip\"");
    }
    if let Some(etag) = response.etag.take() {
        let present = Validators { etag: &etag, modified: response.modified };
        match request.conditions.evaluate(present) {
            ConditionResult::Proceed => add_validators(&mut response.head, present),
            ConditionResult::Failed => return Response::precondition_failed(),
            ConditionResult::NotModified => return not_modified(&response.head, present),
        }
    }
    if is_text(&response.head) {
        response.head = response.head.field("Vary", VARY);
    }
    if let Some(body) = coded {
        response.head = response.head.field("Content-Encoding", "gzip");
        response.length = body.len() as u64;
        response.body = body;
    }
    if request.method == Method::Head {
        response.body = Vec::new();
    }
    response
}

/// 304 in place of a response: the fields that a cache updates.
fn not_modified(whole: &Head, present: Validators<'_>) -> Response {
    let mut head = Head::new(304).field("Vary", VARY);
    add_validators(&mut head, present);
    if let Some(cached) = whole.value("Cache-Control") {
        head = head.field("Cache-Control", cached);
    }
    Response::only_head(head, 0)
}

fn add_validators(head: &mut Head, present: Validators<'_>) {
    head.add("ETag", present.etag);
    if let Some(modified) = present.modified {
        head.add("Last-Modified", http_date(modified));
    }
}

/// Whether the content is text, of which most kinds shrink to a tenth.
fn is_text(head: &Head) -> bool {
    let kind = head.value("Content-Type").unwrap_or_default();
    TEXT.iter().any(|text| kind.starts_with(text))
}

/// The bytes as gzip; `None` where they are too few to gain anything, or so many that other players
/// of this thread would wait.
fn compressed(body: &[u8]) -> Option<Vec<u8>> {
    if !(SMALLEST..=LARGEST).contains(&body.len()) {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// The beginnings of the content types that are text.
const TEXT: [&str; 7] = [
    "text/",
    "application/ttml+xml",
    "application/vnd.apple.mpegurl",
    "application/dash+xml",
    "application/json",
    "application/openmetrics-text",
    "image/svg+xml",
];
/// Caches keep a response for each coding.
const VARY: &str = "Accept-Encoding";
/// One packet holds as much without a coding.
const SMALLEST: usize = 1024;
/// About 10 ms of a processor, in which other players of the thread wait. The playlist of a title
/// of ten hours has less.
const LARGEST: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::{Parsed, parse};
    use std::io::Read;

    #[test]
    fn gzip_is_sent_to_those_who_prefer_it() {
        for (fields, gzip) in [
            (&["gzip"][..], true),
            (&["gzip, deflate, br, zstd"], true),
            (&["GZIP"], true),
            (&["x-gzip"], true),
            (&["br", "gzip"], true),
            (&["gzip;q=0.001"], true),
            (&["gzip ; Q=1.000"], true),
            (&["*"], true),
            (&["*;q=0.1, br"], true),
            (&["gzip, identity"], true),
            (&["identity;q=0.5, gzip;q=0.5"], true),
            (&[], false),
            (&[""], false),
            (&["br"], false),
            (&["identity"], false),
            (&["gzip;q=0"], false),
            (&["gzip;q=0.000, *"], false),
            (&["*;q=0"], false),
            (&["identity, gzip;q=0.9"], false),
            (&["gzip;q=1.1"], false),
            (&["gzip;q=2"], false),
            (&["gzip;q=-1"], false),
            (&["gzip;q=0.1234"], false),
            (&["gzip;q="], false),
            (&["gzip;level=9"], false),
            (&["gzip2, agzip"], false),
        ] {
            let mut accepted = AcceptEncoding::default();
            fields.iter().for_each(|field| accepted.take(field));
            assert_eq!(accepted.prefers_gzip(), gzip, "{fields:?}");
        }
    }

    fn request(method: &str, fields: &str) -> HttpRequest {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let Parsed::Request(request, _) = parse(head.as_bytes()) else { panic!("{head}") };
        *request
    }

    fn text_of(size: usize) -> Response {
        let mut response = Response::new(200, "application/json", vec![b'x'; size]);
        response.etag = Some("\"a\"".to_owned());
        response
    }

    #[test]
    fn a_coded_response_has_its_own_length_and_tag() {
        let accepts = "Accept-Encoding: gzip\r\n";
        let plain = negotiated(&request("GET", ""), text_of(SMALLEST));
        assert_eq!((plain.length, plain.head.value("ETag")), (1024, Some("\"a\"")));
        assert_eq!(plain.head.value("Vary"), Some("Accept-Encoding"));
        let coded = negotiated(&request("GET", accepts), text_of(SMALLEST));
        assert_eq!(coded.head.value("Content-Encoding"), Some("gzip"));
        assert_eq!(coded.head.value("ETag"), Some("\"a-gzip\""));
        assert_eq!(coded.head.value("Vary"), Some("Accept-Encoding"));
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&coded.body[..]).read_to_end(&mut body).unwrap();
        assert!(body == text_of(SMALLEST).body);
        let head = negotiated(&request("HEAD", accepts), text_of(SMALLEST));
        assert_eq!((head.length, head.body.len()), (coded.length, 0));
        for size in [0, SMALLEST - 1, LARGEST + 1] {
            let response = negotiated(&request("GET", accepts), text_of(size));
            assert_eq!(response.head.value("Content-Encoding"), None, "{size}");
            assert_eq!(response.length, size as u64);
        }
        let media =
            negotiated(&request("GET", accepts), Response::new(200, "video/mp4", vec![0; 5000]));
        assert_eq!((media.length, media.head.value("Vary")), (5000, None));
    }

    #[test]
    fn a_tag_is_that_of_one_coding() {
        for (coding, tag, status) in [
            ("gzip", "\"a-gzip\"", 304),
            ("gzip", "\"a\"", 200),
            ("identity", "\"a\"", 304),
            ("identity", "\"a-gzip\"", 200),
        ] {
            let fields = format!("Accept-Encoding: {coding}\r\nIf-None-Match: {tag}\r\n");
            let response = negotiated(&request("GET", &fields), text_of(2000));
            assert_eq!(response.head.status(), status, "{coding} {tag}");
            assert_eq!(response.head.value("Vary"), Some("Accept-Encoding"), "{coding} {tag}");
        }
    }
}
