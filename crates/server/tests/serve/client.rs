//! A small HTTP client that sends exactly what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body was as long as announced.
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let fields: String = fields.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes());
        self.answer(method != "HEAD").expect("an answer")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The server may have closed already; the answer is there all the same.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The next answer; `None`: the connection has ended without one.
    pub(crate) fn answer(&mut self, with_body: bool) -> Option<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, fields: Vec::new(), body: Vec::new(), whole: true };
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            answer.fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        if with_body {
            let length: u64 = answer.field("content-length").map_or(0, |n| n.parse().unwrap());
            let read = (&mut self.stream).take(length).read_to_end(&mut answer.body);
            answer.whole = read.is_ok() && answer.body.len() as u64 == length;
        }
        Some(answer)
    }

    /// Follows a redirect on the same connection.
    pub(crate) fn get_following(&mut self, path: &str) -> (String, Answer) {
        let answer = self.get(path);
        if answer.status != 307 {
            return (path.to_owned(), answer);
        }
        let location = answer.field("location").unwrap().to_owned();
        let answer = self.get(&location);
        (location, answer)
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, fields) = (self.body.len(), &self.fields);
        write!(f, "{} {fields:?}, {bytes} bytes, whole: {}", self.status, self.whole)
    }
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The stable word of an error.
    pub(crate) fn error(&self) -> String {
        let json = self.json();
        assert!(json["message"].as_str().is_some_and(|m| !m.is_empty()), "{json}");
        json["error"].as_str().expect("an error has a word").to_owned()
    }
}

/// The addresses in a playlist, those in `URI="..."` too, made absolute from where it was.
pub(crate) fn addresses(playlist: &str, at: &str) -> Vec<String> {
    let base = &at[..=at.split('?').next().unwrap().rfind('/').unwrap()];
    let mut all = Vec::new();
    for line in playlist.lines() {
        if let Some((_, rest)) = line.split_once("URI=\"") {
            all.push(format!("{base}{}", rest.split('"').next().unwrap()));
        } else if !line.starts_with('#') && !line.is_empty() {
            all.push(format!("{base}{line}"));
        }
    }
    all
}
