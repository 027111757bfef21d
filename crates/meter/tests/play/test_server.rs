//! A server for tests: one film as HLS and as a file, and any behaviour that a test scripts.
//!
//! The film is five pieces of 200 ms; video segments have 1,000 bytes, audio segments 100, headers
//! 30. Each admission request gets a number, which is the token of the playlists that follow.

use crate::secured::{Secured, accept, linger};
use rustls::ServerConfig;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

type Script = dyn Fn(&str, Option<usize>) -> Option<Reply> + Send + Sync;

/// A running server; its threads end with the test's process.
pub(crate) struct TestServer {
    address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// Opens the server. `script` may answer a request itself: it receives the target and, for a
    /// request for admission, the number of earlier ones.
    pub(crate) fn open(
        script: impl Fn(&str, Option<usize>) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::open_with(None, Arc::new(script))
    }

    /// Opens the server over TLS.
    pub(crate) fn open_secured(
        secured: &Secured,
        script: impl Fn(&str, Option<usize>) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::open_with(Some(Arc::clone(&secured.config)), Arc::new(script))
    }

    fn open_with(tls: Option<Arc<ServerConfig>>, script: Arc<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let server = ScriptedServer {
            script,
            admissions: Arc::new(AtomicUsize::new(0)),
            asked: Arc::clone(&asked),
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (server, tls) = (server.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => server.serve(stream),
                    Some(tls) => {
                        let mut stream = accept(&tls, stream);
                        server.serve(&mut stream);
                        linger(&stream);
                    }
                });
            }
        });
        Self { address, scheme, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The targets of all requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A response, and how it is sent.
pub(crate) struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    delay: Duration,
    cut: Option<usize>,
    close: bool,
    /// Whether ranges of the file can be requested.
    ranged: bool,
    /// Set when the client closes the connection.
    closes: Option<Arc<OnceLock<()>>>,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: &str, body: impl Into<Vec<u8>>) -> Self {
        let (headers, body) = (headers.to_owned(), body.into());
        Self {
            status,
            headers,
            body,
            delay: Duration::ZERO,
            cut: None,
            close: false,
            ranged: false,
            closes: None,
        }
    }

    pub(crate) fn segment(len: usize) -> Self {
        Self::new(200, "", vec![7; len])
    }

    pub(crate) fn file(bytes: Vec<u8>) -> Self {
        Self { ranged: true, ..Self::new(200, "", bytes) }
    }

    /// The response to a request for this range.
    fn part(self, range: Option<Range<usize>>) -> Self {
        match range {
            Some(range) if self.ranged => ranged(&self.body, range),
            _ => self,
        }
    }

    pub(crate) fn refusal(resource: &str, retry_after: u64) -> Self {
        let body = format!(r#"{{"resource":"{resource}","error":"refused","message":"no room"}}"#);
        Self::new(503, &format!("Retry-After: {retry_after}\r\n"), body)
    }

    /// A refusal that says that it will always be refused.
    pub(crate) fn refusal_for_ever() -> Self {
        let body = r#"{"resource":"disk","error":"refused","cause":"title","retry":"never",
            "retry_after_ms":null,"message":"too fast for this disk"}"#;
        Self::new(503, "", body)
    }

    pub(crate) fn after_ms(mut self, millis: u64) -> Self {
        self.delay = Duration::from_millis(millis);
        self
    }

    /// Sends only `bytes` of the body and closes the connection.
    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// Sets `closed` when the client closes the connection: it has read the reply.
    pub(crate) fn telling(mut self, closed: &Arc<OnceLock<()>>) -> Self {
        self.closes = Some(Arc::clone(closed));
        self
    }

    pub(crate) fn saying_close(mut self) -> Self {
        self.headers += "Connection: close\r\n";
        self.just_close()
    }

    pub(crate) fn just_close(mut self) -> Self {
        self.close = true;
        self
    }
}

#[derive(Clone)]
struct ScriptedServer {
    script: Arc<Script>,
    admissions: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    fn serve(&self, mut stream: impl Read + Write) {
        let (mut pending, mut closed) = (Vec::new(), Vec::new());
        while let Some((target, range)) = next_request(&mut stream, &mut pending) {
            self.asked.lock().unwrap().push(target.clone());
            let admission =
                is_admission(&target).then(|| self.admissions.fetch_add(1, Ordering::Relaxed));
            let reply = (self.script)(&target, admission);
            let reply = match reply {
                Some(reply) => reply.part(range),
                None => default_reply(&target, range, admission),
            };
            std::thread::sleep(reply.delay);
            if send(&mut stream, &reply).is_err() || reply.close || reply.cut.is_some() {
                return;
            }
            closed.extend(reply.closes);
        }
        for closed in closed {
            let _ = closed.set(());
        }
    }
}

fn is_admission(target: &str) -> bool {
    // A playlist is asked for with parameters; a file with the token of its admission.
    let path = target.split('?').next().unwrap_or_default();
    path.ends_with("/master.m3u8") || [".mp4", ".mpd"].iter().any(|end| target.ends_with(end))
}

fn send(stream: &mut impl Write, reply: &Reply) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} Said\r\n{}Content-Length: {}\r\n\r\n",
        reply.status,
        reply.headers,
        reply.body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body[..reply.cut.unwrap_or(reply.body.len())])?;
    stream.flush()
}

/// The target and range of the next request; `None` if there is none.
fn next_request(
    stream: &mut impl Read,
    pending: &mut Vec<u8>,
) -> Option<(String, Option<Range<usize>>)> {
    let end = loop {
        if let Some(end) = pending.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let mut bytes = [0; 4096];
        let len = stream.read(&mut bytes).ok().filter(|len| *len > 0)?;
        pending.extend_from_slice(&bytes[..len]);
    };
    let head = String::from_utf8(pending.drain(..end).collect()).unwrap();
    let target = head.split(' ').nth(1).unwrap().to_owned();
    let range = head.lines().find_map(|line| line.strip_prefix("Range: bytes=")).map(|range| {
        let (first, last) = range.split_once('-').unwrap();
        first.parse().unwrap()..last.parse::<usize>().unwrap() + 1
    });
    Some((target, range))
}

fn default_reply(target: &str, range: Option<Range<usize>>, admission: Option<usize>) -> Reply {
    let number = admission.unwrap_or_default();
    let path = target.split('?').next().unwrap();
    let token = target.split_once("?s=").map_or(String::new(), |(_, token)| token.to_owned());
    let name = path.rsplit('/').next().unwrap();
    match path {
        "/titles" => Reply::new(
            200,
            "",
            r#"{"titles":[{"name":"film","kind":"media"},{"name":"a b","kind":"media"}]}"#,
        ),
        "/page" | "/page.m3u8" => Reply::new(200, "", "<html>no film here</html>"),
        "/broken.m3u8" => Reply::new(500, "", "on fire\nand more"),
        "/around" => Reply::new(302, "Location: /around\r\n", ""),
        _ if path.starts_with("/t/nothing") => Reply::new(404, "", "no such title"),
        _ if name == "master.m3u8" => Reply::new(200, "", master(number)),
        "/t/film.mp4" if token.is_empty() => {
            Reply::new(307, &format!("Location: /t/film.mp4?s={number}\r\n"), "")
        }
        "/t/film.mp4" => ranged(&media_mp4(), range.expect("players ask for ranges")),
        _ if name.ends_with(".m3u8") => Reply::new(200, "", media(&name[..1], &token)),
        _ if name == "init.mp4" => Reply::segment(30),
        _ if path.contains("/0/") => Reply::segment(1000),
        _ if path.contains("/1/") => Reply::segment(100),
        _ => Reply::new(404, "", ""),
    }
}

fn master(token: usize) -> String {
    format!(
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",DEFAULT=YES,\
         URI=\"1.m3u8?s={token}\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\n0.m3u8?s={token}\n"
    )
}

fn media(track: &str, token: &str) -> String {
    let segments: String =
        (0..5).map(|i| format!("#EXTINF:0.2,\n{track}/{i}.m4s?s={token}\n")).collect();
    format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n\
         #EXT-X-MAP:URI=\"{track}/init.mp4?s={token}\"\n{segments}#EXT-X-ENDLIST\n"
    )
}

fn ranged(file: &[u8], range: Range<usize>) -> Reply {
    let range = range.start..range.end.min(file.len());
    let header =
        format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end - 1, file.len());
    Reply::new(206, &header, &file[range])
}

/// A film as a file: one track, 30 samples of 10,000 bytes, 100 ms each, with its tables in front.
pub(crate) fn media_mp4() -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
    let boxed = |kind: &str, content: Vec<u8>| {
        let size = u32::try_from(8 + content.len()).unwrap();
        [&size.to_be_bytes()[..], kind.as_bytes(), &content].concat()
    };
    let front = 8 + 4;
    // The position of the samples follows from the size of the tables, which does not depend on it.
    let moov = |place: u32| {
        let stbl = [
            boxed("stts", words(&[0, 1, 30, 100])),
            boxed("stsz", words(&[0, 10_000, 30])),
            boxed("stsc", words(&[0, 1, 1, 30, 1])),
            boxed("stco", words(&[0, 1, place])),
        ]
        .concat();
        let minf = boxed("minf", boxed("stbl", stbl));
        let mdhd = boxed("mdhd", words(&[0, 0, 0, 1000, 3000, 0]));
        boxed("moov", boxed("trak", boxed("mdia", [mdhd, minf].concat())))
    };
    let place = front + moov(0).len() + 8;
    let samples = (0..300_000u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
    [boxed("ftyp", b"isom".to_vec()), moov(u32::try_from(place).unwrap()), boxed("mdat", samples)]
        .concat()
}
