//! A small HTTP client that sends exactly the given bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection to a server: a socket, or TLS over one.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: BufReader<S>,
}

/// A response.
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body has the announced length.
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A calibration on a busy machine takes a minute.
        stream.set_read_timeout(Some(Duration::from_secs(180))).unwrap();
        Self { stream: BufReader::new(stream) }
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn get(&mut self, path: &str) -> TestResponse {
        self.request("GET", path, &[])
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> TestResponse {
        let fields: String = fields.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes());
        self.read_response(method != "HEAD").expect("a response")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The server may have closed the connection; its response can still be read.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Reads the next response; `None` if the connection has ended without one.
    pub(crate) fn read_response(&mut self, with_body: bool) -> Option<TestResponse> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response =
            TestResponse { status, fields: Vec::new(), body: Vec::new(), whole: true };
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            response.fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        if with_body {
            let length: u64 = response.field("content-length").map_or(0, |n| n.parse().unwrap());
            let read = (&mut self.stream).take(length).read_to_end(&mut response.body);
            response.whole = read.is_ok() && response.body.len() as u64 == length;
        }
        Some(response)
    }

    /// Follows a redirect on the same connection.
    pub(crate) fn get_following(&mut self, path: &str) -> (String, TestResponse) {
        let response = self.get(path);
        if response.status != 307 {
            return (path.to_owned(), response);
        }
        let location = response.field("location").unwrap();
        let location = match location.starts_with('/') {
            true => location.to_owned(),
            false => format!("{}{location}", &path[..=path.rfind('/').unwrap()]),
        };
        let response = self.get(&location);
        (location, response)
    }
}

impl std::fmt::Debug for TestResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, fields) = (self.body.len(), &self.fields);
        write!(f, "{} {fields:?}, {bytes} bytes, whole: {}", self.status, self.whole)
    }
}

impl TestResponse {
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

/// The URIs in a playlist, also those in `URI="..."`, resolved against the playlist's path.
pub(crate) fn playlist_uris(playlist: &str, at: &str) -> Vec<String> {
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
