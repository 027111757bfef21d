//! Requests out of received bytes, and replies into bytes. Parsing is `rtsp-types`'; the limits
//! are ours. What a request asks for is decided elsewhere.

use super::tunnel::{self, TunnelHead, TunnelStart};
use rtsp_types::headers::{CONTENT_TYPE, CSEQ, RETRY_AFTER, SERVER};
use rtsp_types::{HeaderName, HeaderValue, Message, ParseError, Request, StatusCode, Version};
use std::borrow::Cow;
use std::time::Duration;

/// What the received bytes begin with.
#[derive(Debug)]
pub enum Incoming {
    /// Less than a message.
    Partial,
    /// Bytes that are no request, and their number: a packet of the player (RTCP), a response, a
    /// line end.
    Other(usize),
    /// A request, and its bytes.
    Request(Box<Request<Vec<u8>>>, usize),
    /// The head of a half of a tunnel through HTTP, and its bytes.
    Tunnel(TunnelHead, usize),
    /// Not a message, or one that is too large: the reply, after which the connection ends.
    Rejected(RtspReply),
}

/// The first message in `input`.
pub fn next(input: &[u8]) -> Incoming {
    match input {
        [] => return Incoming::Partial,
        // RFC 2326, 10.12: a channel, a length, and so many bytes.
        [b'$', _, high, low, ..] => {
            let length = 4 + usize::from(u16::from_be_bytes([*high, *low]));
            return if input.len() < length { Incoming::Partial } else { Incoming::Other(length) };
        }
        [b'$', ..] => return Incoming::Partial,
        [b'\r' | b'\n', ..] => return Incoming::Other(1),
        _ => {}
    }
    let head = &input[..input.len().min(MAX_MESSAGE)];
    match tunnel::start(head) {
        TunnelStart::Half(start, length) => return Incoming::Tunnel(start, length),
        TunnelStart::Partial if input.len() < MAX_MESSAGE => return Incoming::Partial,
        TunnelStart::Partial | TunnelStart::None => {}
    }
    let (told_apart, left_out) = without_lookalikes(head);
    match Message::<Vec<u8>>::parse(&*told_apart) {
        Ok((Message::Request(request), length)) => {
            Incoming::Request(Box::new(request), length + left_out)
        }
        Ok((_, length)) => Incoming::Other(length + left_out),
        Err(ParseError::Incomplete(missing))
            if input.len().saturating_add(missing.map_or(1, usize::from)) <= MAX_MESSAGE =>
        {
            Incoming::Partial
        }
        Err(ParseError::Incomplete(_)) => {
            let text = "a request has at most 16 KiB, its body included; send less";
            Incoming::Rejected(RtspReply::error(413, text).with_cseq_of(head))
        }
        Err(ParseError::Error) => {
            let text = "this is not an RTSP request; send a request line and fields as in RFC 2326";
            Incoming::Rejected(RtspReply::error(400, text).with_cseq_of(head))
        }
    }
}

/// The input without the fields of its first head that `rtsp-types` takes for others, and their
/// bytes: to it a name that begins with another is the same (`Accept-Language` and `Accept`).
fn without_lookalikes(input: &[u8]) -> (Cow<'_, [u8]>, usize) {
    let is_lookalike = |line: &[u8]| {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
        let name = line[..colon].trim_ascii();
        FIELDS.iter().any(|field| {
            let shorter = name.len().min(field.len());
            name.len() != field.len()
                && name[..shorter].eq_ignore_ascii_case(&field.as_bytes()[..shorter])
        })
    };
    let (mut kept, mut at) = (Vec::new(), 0);
    let mut left_out = 0;
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            break;
        }
        // A line that is not complete yet, or the request line, is looked at by the parser.
        if at > 0 && line.ends_with(b"\n") && is_lookalike(line) {
            left_out += line.len();
        } else {
            kept.extend_from_slice(line);
        }
        at += line.len();
    }
    if left_out == 0 {
        return (Cow::Borrowed(input), 0);
    }
    kept.extend_from_slice(&input[at..]);
    (Cow::Owned(kept), left_out)
}

/// A reply to a request.
#[derive(Debug)]
pub struct RtspReply {
    /// The status code.
    pub status: u16,
    fields: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

impl RtspReply {
    /// A reply without a body.
    pub fn new(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: Vec::new() }
    }

    /// The reply with the time after which to come again, in whole seconds and not too early.
    #[must_use]
    pub fn retry_after(self, time: Option<Duration>) -> Self {
        let Some(time) = time else { return self };
        let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        self.field(RETRY_AFTER, secs.max(1).to_string())
    }

    /// The reply to a request that no server of RTSP 1.0 can answer; `None` to any other.
    pub fn to_unusable(request: &Request<Vec<u8>>) -> Option<Self> {
        if value(request, &CSEQ).and_then(sequence_number).is_none() {
            return Some(Self::error(400, "a request needs a CSeq field with a number"));
        }
        (request.version() != Version::V1_0).then(|| Self::error(505, "use RTSP/1.0"))
    }

    /// The reply with the number of the request that it answers.
    #[must_use]
    pub fn to_request(self, request: &Request<Vec<u8>>) -> Self {
        match value(request, &CSEQ).and_then(sequence_number) {
            Some(number) => self.field(CSEQ, number),
            None => self,
        }
    }

    /// An error with a sentence that says what to do.
    pub fn error(status: u16, text: &str) -> Self {
        Self::new(status).field(CONTENT_TYPE, "text/plain").body(format!("{text}\r\n"))
    }

    /// The reply with a field more.
    #[must_use]
    pub fn field(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// The reply with this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Takes over the sequence number of a request that could not be parsed, where it has one.
    fn with_cseq_of(self, head: &[u8]) -> Self {
        let line = head.split(|byte| *byte == b'\n').find_map(|line| {
            let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
            name.eq_ignore_ascii_case("cseq").then(|| value.trim().to_owned())
        });
        match line.as_deref().and_then(sequence_number) {
            Some(number) => self.field(CSEQ, number),
            None => self,
        }
    }

    /// The body as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The bytes that are sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut builder =
            rtsp_types::Response::builder(Version::V1_0, StatusCode::from(self.status))
                .header(SERVER, "tenuto");
        for (name, value) in &self.fields {
            builder = builder.header(name.clone(), HeaderValue::from(value.clone()));
        }
        let mut bytes = Vec::new();
        // Writing into memory does not fail.
        builder.build(self.body.as_slice()).write(&mut bytes).unwrap_or_default();
        bytes
    }
}

/// The value of a request's field.
pub fn value<'a>(request: &'a Request<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    request.header(name).map(HeaderValue::as_str)
}

/// The number in the value of a `CSeq` field; `None`: there is none, to be sent back either.
pub fn sequence_number(value: &str) -> Option<&str> {
    let is_number = value.len() <= 10 && value.bytes().all(|b| b.is_ascii_digit());
    (is_number && !value.is_empty()).then_some(value)
}

/// The status of a refusal by admission control (RFC 2326, 11.3.5): a reservation failed. 503 is
/// for a server that serves nobody.
pub const NOT_ENOUGH_BANDWIDTH: u16 = 453;
/// The most bytes of a request; players send less than 1 KiB.
const MAX_MESSAGE: usize = 16 * 1024;
/// The most received bytes that are kept: a packet of the player has up to 64 KiB.
pub const MAX_INPUT: usize = 4 + 65_535;

/// The fields that requests are asked for.
const FIELDS: [&str; 20] = [
    "Accept",
    "Authorization",
    "Bandwidth",
    "Blocksize",
    "Content-Length",
    "Content-Type",
    "CSeq",
    "Frames",
    "Immediate",
    "Range",
    "Rate-Control",
    "Require",
    "Scale",
    "Seek-Style",
    "Session",
    "Speed",
    "Supported",
    "Transport",
    "User-Agent",
    "x-Dynamic-Rate",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::TunnelHalf;

    #[test]
    fn a_field_is_not_taken_for_one_that_its_name_begins_with() {
        let request = |fields: &str| {
            let text = format!("DESCRIBE rtsp://a/t/b RTSP/1.0\r\nCSeq: 1\r\n{fields}\r\nrest");
            match next(text.as_bytes()) {
                Incoming::Request(request, length) => {
                    assert_eq!(&text[length..], "rest");
                    let of = |name| value(&request, &name).map(str::to_owned);
                    (of(rtsp_types::headers::ACCEPT), of(rtsp_types::headers::SESSION))
                }
                other => panic!("{other:?}"),
            }
        };
        let some = |text: &str| Some(text.to_owned());
        for (fields, wanted) in [
            ("Accept-Language: en\r\nAccept-Ranges: npt\r\n", (None, None)),
            ("Accept: a/b\r\nAccept-Language: en\r\nSes: x\r\n", (some("a/b"), None)),
            ("ACCEPT-foo: x\r\naccept: a/b\r\nS: y\r\n", (some("a/b"), None)),
            ("Session: 1\r\nSession-Id: 2\r\n", (None, some("1"))),
        ] {
            assert_eq!(request(fields), wanted, "{fields}");
        }
    }

    /// What is found in `input`, in short.
    fn found(input: &[u8]) -> String {
        match next(input) {
            Incoming::Partial => "part".to_owned(),
            Incoming::Other(length) => format!("other {length}"),
            Incoming::Request(request, length) => {
                let number = value(&request, &CSEQ).and_then(sequence_number).unwrap_or("-");
                let path = request.request_uri().map_or("*", |uri| uri.path());
                format!("{} {path} {number} {length}", <&str>::from(request.method()))
            }
            Incoming::Tunnel(TunnelHead { half: TunnelHalf::Get, .. }, _) => "get".to_owned(),
            Incoming::Tunnel(TunnelHead { half: TunnelHalf::Post, .. }, _) => "post".to_owned(),
            Incoming::Rejected(reply) => {
                let bytes = reply.to_bytes();
                String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned()
            }
        }
    }

    #[test]
    fn messages_are_found_in_received_bytes() {
        let long = format!("PLAY rtsp://a/t/b RTSP/1.0\r\nA: {}", "x".repeat(MAX_MESSAGE));
        let described = "DESCRIBE rtsp://a/t/b RTSP/1.0\r\nCSeq: 2\r\n\r\nOPT";
        for (input, wanted) in [
            ("", "part"),
            ("\r\n", "other 1"),
            ("$\0\0\x02abc", "other 6"),
            ("$\0\0\x02a", "part"),
            ("$", "part"),
            (described, "DESCRIBE /t/b 2 43"),
            ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n", "OPTIONS * 1 31"),
            ("OPTIONS * RTSP/1.0\r\nCSeq: x1\r\n\r\n", "OPTIONS * - 32"),
            ("DESCRIBE rtsp://a/t/b RTSP/1.0\r\nCSe", "part"),
            ("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", "other 28"),
            ("GET / HTTP/1.0\r\nx-sessioncookie: c\r\n\r\n", "get"),
            ("POST / HTTP/1.0\r\nx-sessioncookie: c\r\n\r\n", "post"),
            ("\0\x01\x02", "RTSP/1.0 400 Bad Request"),
        ] {
            assert_eq!(found(input.as_bytes()), wanted, "{}", input.escape_debug());
        }
        assert_eq!(found(long.as_bytes()), "RTSP/1.0 413 Request Message Body Too Large");
    }

    #[test]
    fn refusals_say_when_to_come_again() {
        let time = Duration::from_millis;
        for (after, wanted) in
            [(None, ""), (Some(time(1)), "1"), (Some(time(2000)), "2"), (Some(time(2001)), "3")]
        {
            let bytes = RtspReply::new(NOT_ENOUGH_BANDWIDTH).retry_after(after).to_bytes();
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.starts_with("RTSP/1.0 453 "), "{text}");
            let field = text.lines().find_map(|line| line.strip_prefix("Retry-After: "));
            assert_eq!(field.unwrap_or_default(), wanted);
        }
    }

    /// Any bytes, and requests with some bytes changed: nothing panics, and all that is found lies
    /// within what was received, so that whoever takes it away comes to an end.
    #[test]
    fn any_bytes_are_taken() {
        let request = "SETUP rtsp://a:554/t/b%20c/trackID=1 RTSP/1.0\r\nCSeq: 7\r\n\
                       Transport: RTP/AVP;client_port=4-5\r\nContent-Length: 3\r\n\r\nabc$\0\0\x01x";
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = request.as_bytes().to_vec();
            match seed % 4 {
                0 => bytes.iter_mut().for_each(|byte| *byte = random.u8(..)),
                _ => {
                    for _ in 0..random.usize(1..6) {
                        let at = random.usize(..bytes.len());
                        bytes[at] = random.choice(*b"\r\n :/%$;=-0\xff").unwrap_or(0);
                    }
                    bytes.truncate(random.usize(..=bytes.len()));
                }
            }
            let mut left = &bytes[..];
            while let Incoming::Other(taken)
            | Incoming::Request(_, taken)
            | Incoming::Tunnel(_, taken) = next(left)
            {
                assert!((1..=left.len()).contains(&taken), "seed {seed}");
                left = &left[taken..];
            }
        }
    }
}
