//! HTTP/2: the answers of HTTP/1.1, sessions that outlast their streams, and clients that misuse
//! it.

use crate::certificates::Authority;
use crate::client::{TestResponse, playlist_uris};
use crate::fixture::{TestServer, TestStore, eventually, ffmpeg, media};
use crate::tls::secured;
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use server::access::{TokenClaims, new_key_file};
use server::{Server, TlsFiles};
use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use units::{BitRate, ByteCount};

/// TLS over a socket, whose reads and writes do not wait.
struct Wire {
    tls: StreamOwned<ClientConnection, TcpStream>,
    /// Whether the kernel has all that was written.
    is_flushed: Arc<AtomicBool>,
    /// Whether TLS is to end in this direction.
    is_ending: Arc<AtomicBool>,
}

fn polled<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Poll::Pending
        }
        result => Poll::Ready(result),
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_ending.swap(false, Ordering::Relaxed) {
            self.tls.conn.send_close_notify();
            let _ = self.tls.flush();
        }
        let mut bytes = vec![0; into.remaining().min(16 * 1024)];
        polled(self.tls.read(&mut bytes).map(|count| into.put_slice(&bytes[..count])))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed.store(false, Ordering::Relaxed);
        polled(self.tls.write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = polled(self.tls.flush());
        self.is_flushed.store(flushed.is_ready(), Ordering::Relaxed);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// One connection that speaks HTTP/2.
struct Http2Client {
    requests: SendRequest<Bytes>,
    connection: Pin<Box<Connection<Wire, Bytes>>>,
    /// The socket below it.
    socket: TcpStream,
    /// Whether the kernel has all that was written.
    is_flushed: Arc<AtomicBool>,
    /// Whether TLS is to end in this direction.
    is_ending: Arc<AtomicBool>,
    /// Why the connection has ended.
    end: Option<Result<(), h2::Error>>,
}

/// A response and the connection that it comes over, as far as its head.
struct Begun {
    response: TestResponse,
    body: RecvStream,
}

impl Http2Client {
    fn connect(authority: &Authority, serving: &TestServer) -> Self {
        let address = serving.server.address();
        let socket = TcpStream::connect(address).unwrap();
        // Of the waits between two looks.
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let below = socket.try_clone().unwrap();
        let name = ServerName::from(address.ip());
        let config = Arc::new(authority.http2_config());
        let mut tls = StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket);
        while tls.conn.is_handshaking() {
            if let Err(error) = tls.conn.complete_io(&mut tls.sock) {
                assert!(polled::<()>(Err(error)).is_pending(), "a handshake");
            }
        }
        below.set_nonblocking(true).unwrap();
        assert_eq!(tls.conn.alpn_protocol(), Some(&b"h2"[..]));
        let is_flushed = Arc::new(AtomicBool::new(true));
        let is_ending = Arc::new(AtomicBool::new(false));
        let mut builder = Builder::new();
        builder.initial_window_size(WINDOW).initial_connection_window_size(64 * WINDOW);
        let mut handshake = Box::pin(builder.handshake::<_, Bytes>(Wire {
            tls,
            is_flushed: Arc::clone(&is_flushed),
            is_ending: Arc::clone(&is_ending),
        }));
        let context = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(Ok((requests, connection))) = handshake.as_mut().poll(context) else {
            panic!("a greeting needs no answer")
        };
        Self {
            requests,
            connection: Box::pin(connection),
            socket: below,
            is_flushed,
            is_ending,
            end: None,
        }
    }

    /// Lets the connection read and write until `ready` has a value.
    fn until<T>(&mut self, what: &str, mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let (context, start) = (&mut Context::from_waker(Waker::noop()), Instant::now());
        loop {
            self.look(context);
            if let Poll::Ready(value) = ready(context) {
                return value;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "not within 60 s: {what}");
            self.wait();
        }
    }

    /// Lets the connection read and write what is possible now.
    fn look(&mut self, context: &mut Context<'_>) {
        if self.end.is_none()
            && let Poll::Ready(end) = self.connection.as_mut().poll(context)
        {
            self.end = Some(end);
        }
    }

    /// Waits for bytes of the server, for a moment.
    fn wait(&self) {
        self.socket.set_nonblocking(false).unwrap();
        let _ = self.socket.peek(&mut [0; 1]);
        self.socket.set_nonblocking(true).unwrap();
    }

    fn send(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> ResponseFuture {
        let mut request = Request::builder().method(method).uri(format!("https://test{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.requests.send_request(request.body(()).unwrap(), true).unwrap().0
    }

    /// Sends a request with a body, until the server's machine has all of it.
    fn upload(&mut self, path: &str, token: &str, body: &Bytes) -> ResponseFuture {
        self.uploaded(path, token, body).0
    }

    /// As [`Http2Client::upload`], with the stream.
    fn uploaded(
        &mut self,
        path: &str,
        token: &str,
        body: &Bytes,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::builder().method("PUT").uri(format!("https://test{path}"));
        let request = request.header("Content-Length", body.len());
        let request = request.header("Authorization", format!("Bearer {token}"));
        let (response, mut stream) =
            self.requests.send_request(request.body(()).unwrap(), false).unwrap();
        let mut left = body.clone();
        while !left.is_empty() {
            stream.reserve_capacity(left.len());
            let room = self.until("room for the body", |context| {
                let polled = stream.poll_capacity(context);
                assert!(!matches!(polled, Poll::Ready(None | Some(Err(_)))), "{polled:?}");
                if stream.capacity() > 0 { Poll::Ready(stream.capacity()) } else { Poll::Pending }
            });
            let part = left.split_to(room.min(left.len()));
            stream.send_data(part, left.is_empty()).unwrap();
        }
        let is_flushed = Arc::clone(&self.is_flushed);
        self.until("the end of the body", |_| match is_flushed.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        // A socket that is closed with unread bytes drops what it has not sent.
        let port = format!(":{:04X} ", self.socket.local_addr().unwrap().port());
        eventually("the server's machine has the body", || {
            let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
            let own = all.lines().find(|line| line[..line.len().min(20)].contains(&port));
            own.is_some_and(|line| line.contains(" 00000000:"))
        });
        (response, stream)
    }

    /// Waits for the head of a response.
    fn head(&mut self, mut response: ResponseFuture) -> Result<Begun, h2::Error> {
        let response = self.until("a response", |context| Pin::new(&mut response).poll(context))?;
        let (parts, body) = response.into_parts();
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
        };
        let response = TestResponse {
            status: parts.status.as_u16(),
            fields: parts.headers.iter().map(field).collect(),
            body: Vec::new(),
            whole: false,
        };
        Ok(Begun { response, body })
    }

    /// Reads a body to its end.
    fn read(&mut self, begun: Begun) -> TestResponse {
        let Begun { mut response, mut body } = begun;
        loop {
            match self.until("a body", |context| body.poll_data(context)) {
                Some(Ok(bytes)) => {
                    response.body.extend_from_slice(&bytes);
                    // It fails where the body has ended.
                    let _ = body.flow_control().release_capacity(bytes.len());
                }
                Some(Err(_)) => return response,
                None => {
                    response.whole = true;
                    return response;
                }
            }
        }
    }

    fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        let response = self.send(method, path, fields);
        let begun = self.head(response).expect("a response");
        self.read(begun)
    }

    fn get(&mut self, path: &str) -> TestResponse {
        self.request("GET", path, &[])
    }

    /// The addresses of the segments of a new session; `None`: refused.
    fn segments(&mut self, title: &str) -> Option<Vec<String>> {
        let path = format!("/t/{title}/master.m3u8");
        let master = self.get(&path);
        if master.status != 200 {
            return None;
        }
        let list = playlist_uris(master.text(), &path)[0].clone();
        Some(playlist_uris(self.get(&list).text(), &list))
    }

    /// Waits for the end of the connection.
    fn ended(&mut self) -> Result<(), h2::Error> {
        let (context, start) = (&mut Context::from_waker(Waker::noop()), Instant::now());
        loop {
            self.look(context);
            if let Some(end) = self.end.take() {
                return end;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "the connection ends");
            self.wait();
        }
    }
}

/// What a client takes of a response that it does not read.
const WINDOW: u32 = 64 * 1024;
const MASTER: &str = "/t/film/master.m3u8";

/// What curl writes that asks for HTTP/2 with these arguments.
fn curl(authority: &Authority, arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--http2", "--cacert"]).arg(&authority.file).args(arguments);
    let output = curl.output().expect("curl runs; apt install curl");
    String::from_utf8(output.stdout).unwrap()
}

/// A minute of pictures at a low rate: longer than the test, and cheap to hold.
fn long() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http2-long.mp4");
    ffmpeg(
        "-f lavfi -i testsrc2=s=160x90:r=10:d=60 -c:v libx264 -preset ultrafast -g 20 -b:v 100k \
         -maxrate 100k -bufsize 200k",
        &path,
    );
    path
}

/// A method, a target, and the fields of a request.
type Compared<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// As over HTTP/1.1: more than one piece is on its way to the disk when the end of the connection
/// is noticed.
#[test]
fn an_upload_counts_whose_client_ends_the_connection_behind_its_last_byte() {
    let (keys, uploads) = (TestStore::with(&[]), TestStore::with(&[]));
    let file = keys.directory.join("keys");
    new_key_file(&file).unwrap();
    let exp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
    let operator = TokenClaims { exp, operator: true, ..TokenClaims::default() };
    let operator = operator.sign(&file).unwrap();
    let (store, authority, serving) = secured(&[&media().film], |config| {
        config.tokens = Some(file.clone());
        config.uploads = Some(uploads.directory.clone());
    });
    let disk = Store::peek(&store.path).unwrap().uuid;
    let path = |name: &str| format!("/api/v1/disks/{disk}/titles/{name}");
    let body = Bytes::from(vec![7; 3 << 20]);
    let found = |name: &str| {
        let fields = [("Authorization", &*format!("Bearer {operator}"))];
        authority.client(&serving).request("GET", &path(name), &fields).status == 200
    };

    let mut half = Http2Client::connect(&authority, &serving);
    let answer = half.upload(&format!("{}?as=file", path("half")), &operator, &body);
    half.is_ending.store(true, Ordering::Relaxed);
    half.look(&mut Context::from_waker(Waker::noop()));
    half.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(half.head(answer).expect("an answer").response.status, 201);

    // Two at a time, and another request, of a client that reads no answer.
    let mut gone = Http2Client::connect(&authority, &serving);
    let _other = gone.send("GET", &format!("{MASTER}?token={operator}"), &[]);
    let _answers = ["one", "two"]
        .map(|name| gone.upload(&format!("{}?as=file", path(name)), &operator, &body));
    // Not dropped before: an end with answers that nobody has read takes along what is on its way.
    gone.socket.shutdown(Shutdown::Write).unwrap();
    eventually("both titles are there", || found("one") && found("two"));
    drop(gone);

    // A stream that its client ends alone, and says so in one way or the other.
    let mut ended = Http2Client::connect(&authority, &serving);
    for (name, reason) in [("cancelled", Reason::CANCEL), ("unheard", Reason::NO_ERROR)] {
        let path = format!("{}?as=file", path(name));
        let (answer, mut stream) = ended.uploaded(&path, &operator, &body);
        stream.send_reset(reason);
        drop((answer, stream));
        ended.look(&mut Context::from_waker(Waker::noop()));
    }
    eventually("both titles are there, too", || found("cancelled") && found("unheard"));
    assert_eq!(ended.get("/healthz").status, 200, "the connection goes on");
    drop(ended);

    // Of one that is not whole nothing stays.
    let mut part = Http2Client::connect(&authority, &serving);
    let request = Request::builder().method("PUT");
    let request = request.uri(format!("https://test{}?as=file", path("part")));
    let request = request.header("Content-Length", body.len() + 1);
    let request = request.header("Authorization", format!("Bearer {operator}"));
    let (_answer, mut stream) =
        part.requests.send_request(request.body(()).unwrap(), false).unwrap();
    stream.send_data(body.slice(..1000), false).unwrap();
    part.until("an upload has begun", |_| {
        let begun = std::fs::read_dir(&uploads.directory)
            .unwrap()
            .any(|file| file.unwrap().file_name().to_string_lossy().ends_with(".upload"));
        if begun { Poll::Ready(()) } else { Poll::Pending }
    });
    drop((part, stream));
    eventually("it is removed", || {
        let left = std::fs::read_dir(&uploads.directory).unwrap();
        !left.into_iter().any(|it| it.unwrap().file_name().to_string_lossy().ends_with(".upload"))
    });
    assert!(!found("part"));
    eventually("no connection is left", || {
        let fields = [("Authorization", &*format!("Bearer {operator}"))];
        let status = authority.client(&serving).request("GET", "/status", &fields).json();
        status["connections"].as_u64() == Some(1)
    });
}

#[test]
fn answers_are_those_of_http_11() {
    let files = [media().film.as_path(), &media().large];
    let (_store, authority, serving) = secured(&files, |config| {
        config.memory = Some(ByteCount::mib(256));
        config.fills = Some(4);
    });
    let mut plain = authority.client(&serving);
    let mut http2 = Http2Client::connect(&authority, &serving);
    let text = plain.get(MASTER).text().to_owned();
    let list = &playlist_uris(&text, MASTER)[0];
    let parts = playlist_uris(plain.get(list).text(), list);
    let (file, _) = plain.get_following("/t/film.mp4");
    let (large, _) = plain.get_following("/t/large.mp4");
    let tag = plain.get(&parts[1]).field("etag").expect("a tag").to_owned();
    let requests: &[Compared<'_>] = &[
        ("GET", list, &[]),
        ("GET", list, &[("Accept-Encoding", "gzip")]),
        ("GET", &parts[0], &[]),
        ("GET", &parts[1], &[]),
        ("HEAD", &parts[1], &[]),
        ("GET", &parts[2], &[("CMCD-Request", "bl=1000,su")]),
        ("GET", &file, &[]),
        ("GET", &file, &[("Range", "bytes=100-99999")]),
        ("GET", &file, &[("Range", "bytes=0-9,100-200,-5")]),
        ("GET", &file, &[("Range", "bytes=99999999-")]),
        ("HEAD", &file, &[("Range", "bytes=0-9")]),
        ("GET", &large, &[]),
        ("GET", "/origin/film/master.m3u8", &[]),
        ("GET", "/titles", &[]),
        ("GET", "/t/none/master.m3u8", &[]),
        ("GET", "/t/film/0/99999.m4s?s=1", &[]),
        ("GET", "/%zz", &[]),
        ("POST", "/titles", &[]),
        ("PATCH", "/titles", &[]),
        ("PUT", &file, &[]),
        ("BREW", "/titles", &[]),
        ("OPTIONS", "/t/film/master.m3u8", &[("Access-Control-Request-Method", "GET")]),
        ("GET", "/console/", &[]),
        ("GET", "/api/v1/openapi.json", &[]),
        ("GET", "/api/v1/none", &[]),
        ("GET", &parts[1], &[("If-None-Match", &tag)]),
    ];
    let is_divided = |response: &TestResponse| {
        response.field("content-type").is_some_and(|kind| kind.starts_with("multipart/"))
    };
    let comparable = |response: &TestResponse| {
        let mut fields = response.fields.clone();
        fields.retain(|(name, _)| match name.as_str() {
            "date" | "connection" | "cmsd-dynamic" => false,
            "content-type" => !is_divided(response),
            _ => true,
        });
        (response.status, fields, response.whole)
    };
    for (method, path, fields) in requests {
        let wanted = plain.request(method, path, fields);
        let got = http2.request(method, path, fields);
        assert_eq!(comparable(&got), comparable(&wanted), "{method} {path} {fields:?}");
        // Several ranges are divided by a line of the response.
        let is_same = got.body == wanted.body || is_divided(&wanted);
        assert!(is_same && got.body.len() == wanted.body.len(), "{method} {path} {fields:?}");
        if wanted.field("connection") == Some("close") {
            plain = authority.client(&serving);
        }
    }
    let token = file.split_once("?s=").unwrap().1;
    let ended = http2.request("DELETE", &format!("/t/film/session?s={token}"), &[]);
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    assert_eq!(http2.get(&file).error(), "session-ended");
    for counter in ["/deadline_misses", "/guarantee_violations/scheduler"] {
        assert_eq!(http2.get("/status").json().pointer(counter).unwrap(), 0, "{counter}");
    }
}

#[test]
fn curl_fetches_many_segments_over_one_connection() {
    let (store, authority, serving) = secured(&[&media().film], |config| {
        config.access_log = Some(config.stores[0].with_file_name("access.log"));
    });
    let base = format!("https://{}", serving.server.address());
    let curl = |arguments: &[&str]| curl(&authority, arguments);
    let master = curl(&[&format!("{base}{MASTER}")]);
    let list = playlist_uris(&master, MASTER)[0].clone();
    let segments = playlist_uris(&curl(&[&format!("{base}{list}")]), &list);
    let mut arguments = vec!["--parallel", "--write-out", "%{http_version} %{http_code}\n"];
    let urls: Vec<String> = segments.iter().map(|path| format!("{base}{path}")).collect();
    urls.iter().for_each(|url| arguments.extend(["--output", "/dev/null", url]));
    let told = curl(&arguments);
    assert_eq!(told.lines().collect::<Vec<_>>(), vec!["2 200"; segments.len()]);
    let refused = curl(&["--data", "x", "--write-out", "%{http_code}", &format!("{base}/titles")]);
    assert!(refused.contains("body-not-allowed") && refused.ends_with("400"), "{refused}");
    drop(serving);
    let log = std::fs::read_to_string(store.directory.join("access.log")).unwrap();
    let logged = segments.iter().filter(|path| log.contains(path.split('?').next().unwrap()));
    assert_eq!(logged.count(), segments.len(), "each request is a line of the log");
}

#[test]
fn http_2_is_for_those_who_ask_for_it_and_may_be_off() {
    let (_store, authority, serving) = secured(&[], |config| config.http2 = false);
    let url = format!("https://{}/healthz", serving.server.address());
    let told = curl(&authority, &["--write-out", "%{http_version}", "--output", "/dev/null", &url]);
    assert_eq!(told, "1.1");
}

#[test]
fn uploads_and_events_go_over_http_2() {
    let given = std::cell::OnceCell::new();
    let administered = crate::admin::Administered::with(Duration::from_secs(20), |config| {
        let authority = Authority::new(config.stores[0].parent().unwrap());
        config.tls = Some(authority.identity("server", 30));
        let _ = given.set(authority);
    });
    let authority = given.get().unwrap();
    let base = format!("https://{}", administered.serving.server.address());
    let bearer = format!("Authorization: Bearer {}", administered.operator());
    let curl = |arguments: &[&str]| curl(authority, &[&["--header", &bearer], arguments].concat());
    let (title, file) = (format!("{base}{}", administered.title("heavy")), media().heavy.as_path());
    let file = file.to_str().unwrap();
    let told =
        curl(&["--upload-file", file, "--write-out", "%{http_version} %{http_code}", &title]);
    assert!(told.ends_with("2 201"), "{told}");
    let titles = curl(&[&format!("{base}/titles")]);
    assert!(titles.contains("\"heavy\""), "{titles}");
    let json = ["--header", "Content-Type: application/json", "--request", "PATCH"];
    let renamed = curl(&[&json[..], &["--data", "{\"name\":\"light\"}", &title]].concat());
    assert!(!renamed.contains("\"error\""), "{renamed}");
    let gone = curl(&["--request", "DELETE", "--write-out", "%{http_code}", &title]);
    assert!(gone.ends_with("404"), "{gone}");
    // Of no known length, which HTTP/1.1 refuses, too.
    let unknown = curl(&["--upload-file", "-", "--write-out", "%{http_code}", &title]);
    assert!(unknown.ends_with("411"), "{unknown}");
    // It has no end; the time limit is curl's.
    let events = curl(&["--no-buffer", "--max-time", "2", &format!("{base}/api/v1/events")]);
    assert!(events.matches("event: status").count() > 1, "{events}");
    assert_eq!(administered.uploads(), 0);
}

#[test]
fn a_session_stays_with_its_connection_and_goes_with_it() {
    let (_store, authority, serving) =
        secured(&[&long()], |config| config.network = Some(BitRate(5_000_000)));
    let revoked = || {
        let status = authority.client(&serving).get("/status").json();
        status["revoked"].as_u64().expect("a number")
    };
    // Viewers who begin to fetch a segment and end the request, until no further one is admitted.
    let mut viewers = Vec::new();
    let refused = loop {
        let mut viewer = Http2Client::connect(&authority, &serving);
        let Some(segments) = viewer.segments("http2-long") else {
            break viewer.get("/t/http2-long/master.m3u8");
        };
        assert_eq!(viewer.get(&segments[1]).status, 200);
        let response = viewer.send("GET", &segments[2], &[]);
        drop(viewer.head(response));
        assert_eq!(viewer.get("/healthz").status, 200);
        viewers.push(viewer);
        assert!(viewers.len() < 1000, "a place is refused at some time");
    };
    assert_eq!((refused.status, revoked()), (503, 0), "{refused:?}");
    assert_eq!(refused.json()["resource"], "network");
    assert!(viewers.len() > 2, "{} have a place", viewers.len());
    drop(viewers);
    eventually("the places of those whose connections have ended are taken", || {
        let _ = Http2Client::connect(&authority, &serving).segments("http2-long");
        revoked() > 0
    });
}

#[test]
fn a_stream_that_is_not_read_ends_alone() {
    let (_store, authority, serving) = secured(&[&media().large], |config| {
        config.memory = Some(ByteCount::mib(256));
        config.send_timeout = Duration::from_millis(1500);
    });
    let mut client = Http2Client::connect(&authority, &serving);
    let path = client.get("/t/large.mp4").field("location").unwrap().to_owned();
    let response = client.send("GET", &path, &[]);
    let mut stopped = client.head(response).unwrap();
    // Another request plays on over the same connection, longer than the time limit.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1800) {
        let part = client.request("GET", &path, &[("Range", "bytes=0-999999")]);
        assert!(part.status == 206 && part.whole, "{part:?}");
    }
    let error = loop {
        match client.until("the end of the stream", |context| stopped.body.poll_data(context)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the body is not whole"),
        }
    };
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{error}");
    assert_eq!(client.get("/healthz").status, 200);
    let metrics = client.get("/metrics").text().to_owned();
    assert!(metrics.contains("tenuto_http_send_timeouts_total 1\n"), "{metrics}");
    // The request that asks is one itself.
    assert!(metrics.contains("tenuto_http2_streams 1\n"), "{metrics}");
}

#[test]
fn rapid_resets_end_the_connection_and_no_other() {
    let (_store, authority, serving) = secured(&[&media().film], |_| {});
    let mut other = Http2Client::connect(&authority, &serving);
    let segment = other.segments("film").expect("a viewer has a place").remove(2);
    let mut attacker = Http2Client::connect(&authority, &serving);
    let mut sent = 0;
    while attacker.end.is_none() && sent < 100_000 {
        // Each is dropped at once, which ends its stream.
        for _ in 0..50 {
            let request = Request::builder().uri(format!("https://test{segment}"));
            let request = request.body(()).unwrap();
            sent += u32::from(attacker.requests.send_request(request, true).is_ok());
        }
        attacker.look(&mut Context::from_waker(Waker::noop()));
    }
    let error = attacker.ended().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "after {sent}: {error}");
    eventually("nothing of it is left", || {
        let metrics = other.get("/metrics").text().to_owned();
        metrics.contains("tenuto_http2_streams 1\n")
    });
    let response = other.get(&segment);
    assert!(response.status == 200 && response.whole, "{response:?}");
}

#[test]
fn streams_count_as_connections_of_their_client() {
    let (_store, authority, serving) = secured(&[&media().large], |config| {
        config.memory = Some(ByteCount::mib(256));
        config.max_client_connections = Some(3);
    });
    let mut client = Http2Client::connect(&authority, &serving);
    let path = client.get("/t/large.mp4").field("location").unwrap().to_owned();
    let open = [(); 2].map(|()| {
        let response = client.send("GET", &path, &[]);
        client.head(response).unwrap()
    });
    let refused = client.get("/healthz");
    assert_eq!((refused.status, &*refused.error()), (429, "too-many-client-connections"));
    drop(open);
    eventually("the streams are over", || client.get("/healthz").status == 200);
}

#[test]
fn connections_above_a_limit_are_told_so_in_their_protocol_and_ended() {
    // Connections of a client, and of all clients; the status and its error.
    for (client, all, status, error) in
        [(Some(1), 10, 429, "too-many-client-connections"), (None, 1, 503, "too-many-connections")]
    {
        let (_store, authority, serving) = secured(&[], |config| {
            config.max_client_connections = client;
            config.max_connections = all;
        });
        let mut first = authority.client(&serving);
        assert_eq!(first.get("/healthz").status, 200);
        let mut second = Http2Client::connect(&authority, &serving);
        let refused = second.get("/healthz");
        assert_eq!((refused.status, &*refused.error()), (status, error));
        assert!(refused.field("retry-after").is_some(), "{refused:?}");
        second.ended().expect("an end that was announced");
        assert_eq!(first.get("/healthz").status, 200, "another connection goes on");
    }
}

#[test]
fn idle_and_silent_connections_are_ended() {
    let (_store, authority, serving) = secured(&[], |config| {
        config.idle_timeout = Duration::from_millis(100);
        config.head_timeout = Duration::from_secs(3);
    });
    let mut idle = Http2Client::connect(&authority, &serving);
    assert_eq!(idle.get("/healthz").status, 200);
    let mut silent = Http2Client::connect(&authority, &serving);
    for client in [&mut idle, &mut silent] {
        client.ended().expect("an end that was announced");
    }
}

#[test]
fn a_server_that_leaves_answers_what_was_asked_and_ends_connections() {
    let (store, authority, serving) = secured(&[&media().heavy], |_| {});
    let mut busy = Http2Client::connect(&authority, &serving);
    let path = busy.get("/t/heavy.mp4").field("location").unwrap().to_owned();
    let mut idle = Http2Client::connect(&authority, &serving);
    assert_eq!(idle.get("/healthz").status, 200);
    let response = busy.send("GET", &path, &[("Range", "bytes=0-5999999")]);
    let begun = busy.head(response).unwrap();
    let files = |kind: &str| store.directory.join(format!("server-{kind}.pem"));
    let tls = Some(TlsFiles { certificate: files("certificate"), key: files("key") });
    let config = server::ServerConfig { tls, ..store.config() };
    let next = std::thread::scope(|scope| {
        let handover = scope.spawn(move || serving.server.hand_over().unwrap());
        let response = busy.read(begun);
        assert!(response.whole && response.body.len() == 6_000_000, "{response:?}");
        for client in [&mut busy, &mut idle] {
            client.ended().expect("an end that was announced");
        }
        handover.join().unwrap()
    });
    let next = TestServer { server: Server::take_over(next, config).unwrap() };
    let mut again = Http2Client::connect(&authority, &next);
    let part = again.request("GET", &path, &[("Range", "bytes=0-999")]);
    assert_eq!((part.status, part.body.len()), (206, 1000), "the session goes on");
}
