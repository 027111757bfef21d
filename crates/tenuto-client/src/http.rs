//! An incremental parser of HTTP/1.1 responses. Pure: bytes in, parts out.
//!
//! ```text
//!  push(bytes) ──▶ Head ──▶ Length(n) │ Chunked │ UntilClosed ──▶ Done
//!                   │                    body bytes to the sink
//!                   └─ 1xx heads are skipped
//! ```
//!
//! The parser does not keep bodies: the caller's sink counts, collects or writes them.

use std::ops::Range;

/// The parts of a response head that a player needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    /// Whether the connection can be reused.
    pub(crate) keep_alive: bool,
    pub(crate) location: Option<String>,
    /// The delay in seconds; a date is ignored.
    pub(crate) retry_after: Option<u64>,
    /// From `Content-Range`: the range of the body, and the length of the file.
    pub(crate) range: Option<(Range<u64>, Option<u64>)>,
}

/// The reason why a response is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotHttp(pub(crate) &'static str);

/// The parser of one response.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    state: BodyState,
    /// The part of the head (or of a chunk's size line) received so far.
    pending: Vec<u8>,
    head: Option<ResponseHead>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BodyState {
    #[default]
    Head,
    Length(u64),
    UntilClosed,
    ChunkSize,
    Chunk(u64),
    /// The line end after a chunk's data.
    ChunkEnd,
    Trailer,
    Done,
}

impl ResponseReader {
    /// Takes the next bytes and gives those of the body to `sink`. Bytes after the end of the
    /// response are an error, because requests are not pipelined.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        sink: &mut dyn FnMut(&ResponseHead, &[u8]),
    ) -> Result<(), NotHttp> {
        while !bytes.is_empty() {
            bytes = match self.state {
                BodyState::Head => self.push_head(bytes)?,
                BodyState::Length(left) => {
                    let rest = self.body(bytes, left, sink);
                    let left = left - (bytes.len() - rest.len()) as u64;
                    self.state = if left == 0 { BodyState::Done } else { BodyState::Length(left) };
                    rest
                }
                BodyState::UntilClosed => self.body(bytes, u64::MAX, sink),
                BodyState::Chunk(left) => {
                    let rest = self.body(bytes, left, sink);
                    let left = left - (bytes.len() - rest.len()) as u64;
                    self.state =
                        if left == 0 { BodyState::ChunkEnd } else { BodyState::Chunk(left) };
                    rest
                }
                BodyState::ChunkSize | BodyState::ChunkEnd | BodyState::Trailer => {
                    self.push_line(bytes)?
                }
                BodyState::Done => return Err(NotHttp("more bytes than were announced")),
            };
        }
        Ok(())
    }

    /// Handles the end of the connection: it is valid for a body without a length, otherwise the
    /// response is truncated.
    pub(crate) fn closed(&mut self) -> Result<(), NotHttp> {
        match self.state {
            BodyState::UntilClosed | BodyState::Done => {
                self.state = BodyState::Done;
                Ok(())
            }
            BodyState::Head => Err(NotHttp("closed before an answer")),
            _ => Err(NotHttp("closed in the middle of an answer")),
        }
    }

    /// Whether nothing has arrived yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.state == BodyState::Head && self.pending.is_empty() && self.head.is_none()
    }

    /// The head, once the response is complete.
    pub(crate) fn take_complete(&mut self) -> Option<ResponseHead> {
        if self.state != BodyState::Done {
            return None;
        }
        self.state = BodyState::Head;
        self.head.take()
    }

    fn body<'a>(
        &self,
        bytes: &'a [u8],
        left: u64,
        sink: &mut dyn FnMut(&ResponseHead, &[u8]),
    ) -> &'a [u8] {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (body, rest) = bytes.split_at(len);
        sink(self.head.as_ref().expect("a body follows its head"), body);
        rest
    }

    fn push_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], NotHttp> {
        let before = self.pending.len();
        // One byte more than allowed tells a head that is too long from one that just fits.
        let take = bytes.len().min(MAX_HEAD + 1 - before);
        self.pending.extend_from_slice(&bytes[..take]);
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.pending).map_err(|_| NotHttp("no status line"))?;
        let httparse::Status::Complete(len) = parsed else {
            if self.pending.len() > MAX_HEAD {
                return Err(NotHttp("an endless head"));
            }
            return Ok(&bytes[take..]);
        };
        let (head, body) = read_head(&response)?;
        self.pending.clear();
        if head.status >= 200 {
            self.state = body;
            self.head = Some(head);
        }
        Ok(&bytes[len - before..])
    }

    fn push_line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], NotHttp> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.pending.extend_from_slice(&bytes[..taken]);
        if self.pending.len() > MAX_LINE {
            return Err(NotHttp("an endless line between chunks"));
        }
        if end.is_some() {
            let line = std::mem::take(&mut self.pending);
            self.state = after_line(self.state, line.trim_ascii())?;
        }
        Ok(&bytes[taken..])
    }
}

fn after_line(state: BodyState, line: &[u8]) -> Result<BodyState, NotHttp> {
    match state {
        BodyState::ChunkSize => {
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let text = std::str::from_utf8(digits.trim_ascii()).ok();
            match text.and_then(|text| u64::from_str_radix(text, 16).ok()) {
                Some(0) => Ok(BodyState::Trailer),
                Some(size) => Ok(BodyState::Chunk(size)),
                None => Err(NotHttp("a chunk without a size")),
            }
        }
        BodyState::ChunkEnd if line.is_empty() => Ok(BodyState::ChunkSize),
        BodyState::ChunkEnd => Err(NotHttp("a chunk longer than its size")),
        _ if line.is_empty() => Ok(BodyState::Done),
        _ => Ok(BodyState::Trailer),
    }
}

fn read_head(response: &httparse::Response<'_, '_>) -> Result<(ResponseHead, BodyState), NotHttp> {
    let status = response.code.unwrap_or_default();
    let mut head =
        ResponseHead { status, keep_alive: response.version == Some(1), ..ResponseHead::default() };
    let mut body = BodyState::UntilClosed;
    for header in response.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { continue };
        let value = value.trim();
        let name = |wanted: &str| header.name.eq_ignore_ascii_case(wanted);
        if name("content-length") && body != BodyState::ChunkSize {
            let len = value.parse().map_err(|_| NotHttp("a length that is no number"))?;
            body = if len == 0 { BodyState::Done } else { BodyState::Length(len) };
        } else if name("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            body = BodyState::ChunkSize;
        } else if name("connection") {
            head.keep_alive = !value.eq_ignore_ascii_case("close")
                && (head.keep_alive || value.eq_ignore_ascii_case("keep-alive"));
        } else if name("location") {
            head.location = Some(value.to_owned());
        } else if name("retry-after") {
            head.retry_after = value.parse().ok();
        } else if name("content-range") {
            head.range = content_range(value);
        }
    }
    if matches!(status, 204 | 304) {
        body = BodyState::Done;
    }
    // The end of such a body is the end of its connection.
    head.keep_alive &= body != BodyState::UntilClosed;
    Ok((head, body))
}

/// Parses `bytes 0-99/1234` or `bytes 0-99/*`.
fn content_range(value: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, total) = value.strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let first: u64 = first.trim().parse().ok()?;
    let last: u64 = last.trim().parse().ok()?;
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    Some((first..last.checked_add(1)?, total))
}

/// The largest response head.
const MAX_HEAD: usize = 32 * 1024;

/// The largest number of headers.
const MAX_HEADERS: usize = 64;

/// The largest line between chunks: a chunk's size with extensions, or one trailer.
const MAX_LINE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// The head and body of `response`, pushed `step` bytes at a time.
    fn read(response: &str, step: usize, close: bool) -> Result<(ResponseHead, String), NotHttp> {
        let mut reader = ResponseReader::default();
        let mut body = Vec::new();
        for bytes in response.as_bytes().chunks(step) {
            reader.push(bytes, &mut |_, bytes| body.extend_from_slice(bytes))?;
        }
        if close {
            reader.closed()?;
        }
        let head = reader.take_complete().ok_or(NotHttp("not complete"))?;
        Ok((head, String::from_utf8(body).unwrap()))
    }

    fn check(response: &str, close: bool, head: ResponseHead, body: &str) {
        for step in [1, 2, 7, 10_000] {
            let wanted = Ok((head.clone(), body.to_owned()));
            assert_eq!(read(response, step, close), wanted, "in pieces of {step}");
        }
    }

    #[test]
    fn responses_with_every_kind_of_length_are_parsed_however_they_are_split() {
        let ok = ResponseHead { status: 200, keep_alive: true, ..ResponseHead::default() };
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, ok.clone(), "hello");
        check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, ok.clone(), "");
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n",
            false,
            ok,
            "hello",
        );
        let last = ResponseHead { status: 200, ..ResponseHead::default() };
        check("HTTP/1.1 200 OK\r\n\r\nhello", true, last.clone(), "hello");
        check(
            "HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nhe",
            false,
            last.clone(),
            "he",
        );
        check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhe", false, last, "he");
    }

    #[test]
    fn the_headers_that_a_player_needs_are_kept() {
        let (head, _) = read(
            "HTTP/1.1 503 Busy\r\nRetry-After: 12\r\nLocation: /x?s=1\r\n\
             Content-Range: bytes 5-9/1234\r\nContent-Length: 0\r\n\r\n",
            9,
            false,
        )
        .unwrap();
        assert_eq!((head.status, head.retry_after), (503, Some(12)));
        assert_eq!(head.location.as_deref(), Some("/x?s=1"));
        assert_eq!(head.range, Some((5..10, Some(1234))));
    }

    #[test]
    fn an_invalid_response_is_refused_with_the_reason() {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
        assert_eq!(read(cut, 9, true), Err(NotHttp("closed in the middle of an answer")));
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello";
        assert_eq!(read(long, 99, false), Err(NotHttp("more bytes than were announced")));
        assert_eq!(read("SSH-2.0-OpenSSH\r\n", 99, false), Err(NotHttp("no status line")));
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(60 * 1024));
        assert!(read(&endless, 8192, false).is_err());
        let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
        assert_eq!(read(chunk, 99, false), Err(NotHttp("a chunk without a size")));
    }
}
