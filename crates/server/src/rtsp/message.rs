//! Requests out of received bytes, and replies into bytes. Parsing is `rtsp-types`'; the limits
//! are ours.

use super::tunnel::{self, TunnelHead, TunnelStart};
use crate::http::Response;
use rtsp_types::headers::{CONTENT_TYPE, CSEQ, RETRY_AFTER, SERVER};
use rtsp_types::{HeaderName, HeaderValue, Message, ParseError, Request, StatusCode, Version};

/// What the received bytes begin with.
#[derive(Debug)]
pub(super) enum Incoming {
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
pub(super) fn next(input: &[u8]) -> Incoming {
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
    match Message::<Vec<u8>>::parse(head) {
        Ok((Message::Request(request), length)) => Incoming::Request(Box::new(request), length),
        Ok((_, length)) => Incoming::Other(length),
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

/// A reply to a request.
#[derive(Debug)]
pub(super) struct RtspReply {
    pub(super) status: u16,
    fields: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

impl RtspReply {
    pub(super) fn new(status: u16) -> Self {
        Self { status, fields: Vec::new(), body: Vec::new() }
    }

    /// An error with a sentence that says what to do.
    pub(super) fn error(status: u16, text: &str) -> Self {
        Self::new(status).field(CONTENT_TYPE, "text/plain").body(format!("{text}\r\n"))
    }

    /// The reply with the words of an HTTP response: the same refusal has the same text.
    /// `refused`: admission control refuses it.
    pub(super) fn of_http(response: Response, refused: bool) -> Self {
        let status = match response.head.status() {
            // RFC 2326, 11.3.5: a reservation failed. 503 is for a server that serves nobody.
            _ if refused => 453,
            429 => 453,
            410 => 454,
            other => other,
        };
        let mut reply = Self::new(status).field(CONTENT_TYPE, "application/json");
        if let Some(after) = response.head.value("Retry-After") {
            reply = reply.field(RETRY_AFTER, after);
        }
        reply.body(response.body)
    }

    pub(super) fn field(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
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

    pub(super) fn to_bytes(&self) -> Vec<u8> {
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
pub(super) fn value<'a>(request: &'a Request<Vec<u8>>, name: &HeaderName) -> Option<&'a str> {
    request.header(name).map(HeaderValue::as_str)
}

/// The number in the value of a `CSeq` field; `None`: there is none, to be sent back either.
pub(super) fn sequence_number(value: &str) -> Option<&str> {
    let is_number = value.len() <= 10 && value.bytes().all(|b| b.is_ascii_digit());
    (is_number && !value.is_empty()).then_some(value)
}

/// The most bytes of a request; players send less than 1 KiB.
const MAX_MESSAGE: usize = 16 * 1024;
/// The most received bytes that are kept: a packet of the player has up to 64 KiB.
pub(super) const MAX_INPUT: usize = 4 + 65_535;
