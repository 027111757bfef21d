//! The answer of a node, read from its connection.

use crate::clock::ClockDifference;
use serde::Deserialize;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime};

/// What a node has answered.
#[derive(Debug, Default)]
pub(super) struct NodeReply {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) authenticate: Option<String>,
    /// In seconds.
    pub(super) retry_after: Option<u64>,
    /// What the node's clock said.
    date: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether another question can be asked on the connection.
    pub(super) keeps_connection: bool,
}

/// Why a node refuses, in the form of all of its refusals.
#[derive(Debug, Default, Deserialize)]
struct NodeProblem {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    cause: Option<String>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

/// An answer that did not come.
#[derive(Debug)]
pub(super) enum ReplyError {
    /// The connection had ended when the question was sent.
    Ended,
    Failed(io::Error),
    Malformed,
}

/// What the answer means for the viewer.
#[derive(Debug)]
pub(super) enum NodeVerdict {
    /// Reserved, with the address of the session.
    Reserved(String),
    /// Not reserved; the time at which it would fit, where the node knows it.
    Full(Option<Duration>),
    /// The node has no lease, and admits nobody.
    CutOff,
    /// The node has no RTSP.
    NoRtsp,
    /// The node does not take the question for one of a director.
    DirectorUnknown,
    /// The viewer gets the answer as it is.
    ForViewer,
    /// An answer that no node of this version gives.
    Unknown,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("it has ended the connection"),
            Self::Failed(error) if is_timeout(error) => f.write_str("it does not answer in time"),
            Self::Failed(error) => write!(f, "{error}"),
            Self::Malformed => f.write_str("its answer cannot be read"),
        }
    }
}

impl NodeReply {
    /// Reads an answer to the end, before `deadline`.
    pub(super) fn read(stream: &mut impl Read, deadline: Instant) -> Result<Self, ReplyError> {
        let mut bytes = Vec::with_capacity(1024);
        let (mut reply, head, length) = loop {
            more(stream, &mut bytes, deadline)?;
            if let Some(found) = Self::of_head(&bytes)? {
                break found;
            }
            if bytes.len() > LARGEST {
                return Err(ReplyError::Malformed);
            }
        };
        let end = head + length.unwrap_or(0);
        if end > LARGEST {
            return Err(ReplyError::Malformed);
        }
        while bytes.len() < end {
            more(stream, &mut bytes, deadline)?;
        }
        // Without a length the body is not awaited, and the connection not used again.
        reply.keeps_connection &= length.is_some() && bytes.len() == end;
        reply.body = bytes.split_off(head);
        if length.is_some() {
            reply.body.truncate(end - head);
        }
        Ok(reply)
    }

    /// How far the node's clock is from this one's, for an answer to a question of that time.
    pub(super) fn clock_difference(&self, sent: SystemTime) -> Option<ClockDifference> {
        ClockDifference::of(self.date.as_deref()?, sent, SystemTime::now())
    }

    /// The answer's head, where it ends, and the length of the body if the head has it.
    fn of_head(bytes: &[u8]) -> Result<Option<(Self, usize, Option<usize>)>, ReplyError> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let head = match parsed.parse(bytes).map_err(|_| ReplyError::Malformed)? {
            httparse::Status::Partial => return Ok(None),
            httparse::Status::Complete(head) => head,
        };
        let mut reply = Self {
            status: parsed.code.unwrap_or(0),
            keeps_connection: parsed.version == Some(1),
            ..Self::default()
        };
        let mut length = None;
        for header in parsed.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let text = || str::from_utf8(header.value).ok().map(str::to_owned);
            let number = || str::from_utf8(header.value).ok()?.trim().parse::<u64>().ok();
            if is("content-length") {
                let found = number().and_then(|length| usize::try_from(length).ok());
                length = Some(found.filter(|len| *len <= LARGEST).ok_or(ReplyError::Malformed)?);
            } else if is("location") {
                reply.location = text();
            } else if is("retry-after") {
                reply.retry_after = number();
            } else if is("content-type") {
                reply.content_type = text();
            } else if is("www-authenticate") {
                reply.authenticate = text();
            } else if is("date") {
                reply.date = text();
            } else if is("connection") {
                reply.keeps_connection &= !header.value.eq_ignore_ascii_case(b"close");
            }
        }
        Ok(Some((reply, head, length)))
    }

    /// Whether the node has no title of this name.
    pub(super) fn is_no_title(&self) -> bool {
        let problem = || serde_json::from_slice::<NodeProblem>(&self.body).unwrap_or_default();
        self.status == 404 && problem().is("no-title")
    }

    /// What the answer means.
    pub(super) fn verdict(&self) -> NodeVerdict {
        let problem = || serde_json::from_slice::<NodeProblem>(&self.body).unwrap_or_default();
        match self.status {
            201 => self.location.clone().map_or(NodeVerdict::Unknown, NodeVerdict::Reserved),
            403 if problem().is("director-unknown") => NodeVerdict::DirectorUnknown,
            503 => {
                let problem = problem();
                if problem.is("cut-off") {
                    return NodeVerdict::CutOff;
                }
                if problem.is("no-rtsp") {
                    return NodeVerdict::NoRtsp;
                }
                let exact = problem.retry_after_ms.map(Duration::from_millis);
                let time = exact.or(self.retry_after.map(Duration::from_secs));
                NodeVerdict::Full(time.map(|time| time.min(LONGEST_WAIT)))
            }
            400..500 => NodeVerdict::ForViewer,
            _ => NodeVerdict::Unknown,
        }
    }
}

impl NodeProblem {
    fn is(&self, word: &str) -> bool {
        [&self.cause, &self.error].into_iter().any(|known| known.as_deref() == Some(word))
    }
}

fn more(stream: &mut impl Read, bytes: &mut Vec<u8>, deadline: Instant) -> Result<(), ReplyError> {
    if Instant::now() >= deadline {
        return Err(ReplyError::Failed(ErrorKind::TimedOut.into()));
    }
    let mut memory = [0; 2048];
    match stream.read(&mut memory) {
        Ok(0) if bytes.is_empty() => Err(ReplyError::Ended),
        Ok(0) => Err(ReplyError::Malformed),
        Ok(len) => {
            bytes.extend_from_slice(&memory[..len]);
            Ok(())
        }
        Err(error) if bytes.is_empty() && !is_timeout(&error) => Err(ReplyError::Ended),
        Err(error) => Err(ReplyError::Failed(error)),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

/// Longest time that a viewer is told to wait: a bound for sums with it.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of an answer, head and body: a refusal with its texts has less than 2 KiB.
const LARGEST: usize = 64 * 1024;
/// Header fields of an answer.
const MOST_HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_understood() {
        let rows = [
            (
                "201 Created\r\nLocation: /t/a?s=1\r\nContent-Length: 0",
                "",
                "Reserved(\"/t/a?s=1\") true",
            ),
            ("201 Created\r\nContent-Length: 0", "", "Unknown true"),
            ("201 Created\r\nLocation: /x", "", "Reserved(\"/x\") false"),
            ("503 Full\r\nRetry-After: 3\r\nContent-Length: 2", "{}", "Full(Some(3s)) true"),
            (
                "503 Full\r\nContent-Length: 23",
                r#"{"retry_after_ms":1500}"#,
                "Full(Some(1.5s)) true",
            ),
            (
                "503 Full\r\nRetry-After: 18446744073709551615\r\nContent-Length: 0",
                "",
                "Full(Some(86400s)) true",
            ),
            ("503 Full\r\nContent-Length: 20", r#"{"error":"stopping"}"#, "Full(None) true"),
            ("503 Off\r\nContent-Length: 19", r#"{"cause":"cut-off"}"#, "CutOff true"),
            ("503 None\r\nContent-Length: 19", r#"{"error":"no-rtsp"}"#, "NoRtsp true"),
            (
                "403 No\r\nContent-Length: 28",
                r#"{"cause":"director-unknown"}"#,
                "DirectorUnknown true",
            ),
            ("403 No\r\nConnection: close\r\nContent-Length: 0", "", "ForViewer false"),
            ("404 None\r\nContent-Length: 0", "", "ForViewer true"),
            ("200 OK\r\nContent-Length: 7", "#EXTM3U", "Unknown true"),
            ("500 Error\r\nContent-Length: 0", "", "Unknown true"),
        ];
        for (head, body, wanted) in rows {
            let bytes = format!("HTTP/1.1 {head}\r\n\r\n{body}");
            let deadline = Instant::now() + Duration::from_secs(60);
            let reply = NodeReply::read(&mut bytes.as_bytes(), deadline).unwrap();
            let shown = format!("{:?} {}", reply.verdict(), reply.keeps_connection);
            assert_eq!(shown, wanted, "{head}");
            // In pieces of one byte.
            let pieces = bytes.bytes().map(|byte| [byte]).collect::<Vec<_>>();
            let mut pieces: Box<dyn Read> = Box::new(io::empty().chain(Pieces(pieces)));
            let again = NodeReply::read(&mut pieces, deadline).unwrap();
            assert_eq!(format!("{:?}", again.verdict()), wanted.rsplit_once(' ').unwrap().0);
        }
        for bytes in
            ["", "HTTP/1.1 201", "nonsense\r\n\r\n", "HTTP/1.1 201 A\r\nContent-Length: x\r\n\r\n"]
        {
            let deadline = Instant::now() + Duration::from_secs(60);
            assert!(NodeReply::read(&mut bytes.as_bytes(), deadline).is_err(), "{bytes}");
        }
    }

    /// Gives one byte with each read.
    struct Pieces(Vec<[u8; 1]>);

    impl Read for Pieces {
        fn read(&mut self, memory: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            memory[0] = self.0.remove(0)[0];
            Ok(1)
        }
    }
}
