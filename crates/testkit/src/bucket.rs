//! A bucket of the S3 protocol in memory, for the part of the protocol that is in use.
//!
//! It checks the form of requests, not their signatures: only a real server does that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A bucket in memory.
#[derive(Clone, Default)]
pub struct TestBucket {
    /// The objects by the path of their address, `/BUCKET/KEY`.
    pub objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Uploaded parts of incomplete objects, by number.
    pub parts: Arc<Mutex<BTreeMap<u32, Vec<u8>>>>,
    /// What was asked, such as `PUT` or `PUT part 1`, in order.
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Whether it writes also where the request has a condition that is not met, as some servers
    /// do.
    pub ignores_conditions: bool,
    /// What goes wrong with the next requests: each once, with the first request of its kind.
    pub faults: Arc<Mutex<Vec<(&'static str, BucketFault)>>>,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketFault {
    /// Nothing: the request is answered as it should be.
    None,
    /// This is the answer.
    Answers(&'static str),
    /// The connection ends in the middle of the answer.
    Truncates,
    /// There is no answer for as long as the client waits.
    IsSilent,
}

/// An answer in place of the bucket's own, by what is asked.
pub type WrongAnswer = fn(&str) -> Option<&'static str>;

impl TestBucket {
    /// Starts a server that answers until the test's process ends; returns its endpoint.
    ///
    /// # Panics
    /// Where no port can be had.
    pub fn listen(&self, wrong: WrongAnswer) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let bucket = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let bucket = bucket.clone();
                std::thread::spawn(move || bucket.serve(stream, wrong));
            }
        });
        endpoint
    }

    /// Answers the requests of one connection.
    ///
    /// # Panics
    /// For a request that is not of the protocol, or not signed in a header by `key`.
    pub fn serve(&self, stream: impl Read + Write, wrong: WrongAnswer) {
        let mut input = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if input.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            };
            let len = header("content-length").map_or(0, |len| len.parse().unwrap());
            let mut body = vec![0; len];
            input.read_exact(&mut body).unwrap();
            let mut line = head.split(' ');
            let (method, target) = (line.next().unwrap(), line.next().unwrap());
            let signature = header("authorization").unwrap_or_default();
            assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=key/"), "{signature}");
            assert!(!target.to_lowercase().contains("amz"), "signed in the address: {target}");
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let part = query.split('&').find_map(|pair| pair.strip_prefix("partNumber="));
            let what = match (part, query.contains("uploadId="), query.contains("uploads=")) {
                (Some(part), ..) => format!("{method} part {part}"),
                (None, true, _) => format!("{method} upload"),
                (None, _, true) => "POST uploads".to_owned(),
                _ if query.contains("list-type=2") => "LIST".to_owned(),
                _ if header("if-none-match") == Some("*") => format!("{method} new"),
                _ => method.to_owned(),
            };
            self.asked.lock().unwrap().push(what.clone());
            let fault = self.next_fault(&what);
            if fault == Some(BucketFault::IsSilent) {
                let _ = input.read(&mut [0]);
                return;
            }
            let wrong = match fault {
                Some(BucketFault::Answers(answer)) => Some(answer),
                _ => wrong(&what),
            };
            let answer = match wrong {
                Some(answer) => answer.as_bytes().to_vec(),
                None if what == "LIST" => self.list(path, query),
                None => self.answer(&what, &decoded(path), header("range"), body),
            };
            if fault == Some(BucketFault::Truncates) {
                let _ = input.get_mut().write_all(&answer[..answer.len() / 2]);
                return;
            }
            // A client that has gone takes no answer.
            if input.get_mut().write_all(&answer).and_then(|()| input.get_mut().flush()).is_err() {
                return;
            }
        }
    }

    /// The fault of this request, if it has one.
    fn next_fault(&self, what: &str) -> Option<BucketFault> {
        let mut faults = self.faults.lock().unwrap();
        let found = faults.iter().position(|(of, _)| *of == what)?;
        Some(faults.remove(found).1)
    }

    fn answer(&self, what: &str, path: &str, range: Option<&str>, body: Vec<u8>) -> Vec<u8> {
        let mut objects = self.objects.lock().unwrap();
        let mut parts = self.parts.lock().unwrap();
        let xml = |text: &str| whole("200 OK", text.as_bytes());
        match what {
            "PUT new" if objects.contains_key(path) && !self.ignores_conditions => {
                whole("412 Precondition Failed", b"<Error><Code>PreconditionFailed</Code></Error>")
            }
            "PUT" | "PUT new" => {
                objects.insert(path.to_owned(), body);
                whole("200 OK", b"")
            }
            "HEAD" => match objects.get(path) {
                None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                Some(object) => {
                    let len = object.len();
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes()
                }
            },
            "GET" => {
                let Some(object) = objects.get(path) else {
                    return whole("404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>");
                };
                let Some(range) = range else { return whole("200 OK", object) };
                let (first, last) = range[6..].split_once('-').unwrap();
                let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                if first >= object.len() {
                    let text = b"<Error><Code>InvalidRange</Code></Error>";
                    return whole("416 Requested Range Not Satisfiable", text);
                }
                whole("206 Partial Content", &object[first..=last.min(object.len() - 1)])
            }
            "DELETE" => {
                objects.remove(path);
                whole("204 No Content", b"")
            }
            "POST uploads" => xml(
                "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <UploadId>u1</UploadId></InitiateMultipartUploadResult>",
            ),
            "POST upload" => {
                let listed = String::from_utf8(body).unwrap().matches("<PartNumber>").count();
                assert_eq!(listed, parts.len());
                let all = std::mem::take(&mut *parts).into_values().flatten().collect();
                objects.insert(path.to_owned(), all);
                xml("<CompleteMultipartUploadResult/>")
            }
            "DELETE upload" => {
                parts.clear();
                whole("204 No Content", b"")
            }
            part => {
                let number = part.strip_prefix("PUT part ").unwrap().parse().unwrap();
                parts.insert(number, body);
                whole("200 OK", b"")
            }
        }
    }

    /// A page of three keys, so that a list of some objects has pages.
    fn list(&self, path: &str, query: &str) -> Vec<u8> {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
        };
        let base = format!("{}/", path.trim_end_matches('/'));
        let prefix = value("prefix").unwrap_or_default();
        // The token is the last key as it was listed, and is encoded once more in the query.
        let after = value("continuation-token").map_or_else(String::new, |token| decoded(&token));
        let objects = self.objects.lock().unwrap();
        let keys = objects.iter().filter_map(|(path, object)| {
            let key = path.strip_prefix(&base)?;
            let is_listed = key.starts_with(&prefix) && *key > *after;
            is_listed.then(|| (key, object.len(), tag_of(object)))
        });
        let mut keys = keys.peekable();
        // As the client asks for it, keys are encoded as in a URL.
        assert_eq!(value("encoding-type").as_deref(), Some("url"));
        let mut text = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                        <EncodingType>url</EncodingType>"
            .to_owned();
        let mut last = String::new();
        for (key, size, tag) in keys.by_ref().take(PAGE) {
            let shown = key.bytes().fold(String::new(), |mut shown, byte| {
                let _ = match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' => {
                        write!(shown, "{}", char::from(byte))
                    }
                    byte => write!(shown, "%{byte:02X}"),
                };
                shown
            });
            let _ = write!(
                text,
                "<Contents><Key>{shown}</Key><ETag>{tag:x}</ETag><Size>{size}</Size></Contents>"
            );
            last = shown;
        }
        if keys.peek().is_some() {
            let _ = write!(text, "<NextContinuationToken>{last}</NextContinuationToken>");
        }
        text.push_str("</ListBucketResult>");
        whole("200 OK", text.as_bytes())
    }

    /// The sizes of the objects, by their keys.
    ///
    /// # Panics
    /// Where a thread of the server panicked.
    pub fn sizes(&self) -> Vec<usize> {
        self.objects.lock().unwrap().values().map(Vec::len).collect()
    }
}

/// What other content does not have.
fn tag_of(object: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}

/// Keys of a page of a list.
const PAGE: usize = 3;

fn whole(status: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nETag: \"e\"\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Text without its percent encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).expect("keys are UTF-8")
}
