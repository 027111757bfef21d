//! A client of `h2`, or frames that no such client sends, against a carrier, in memory.

use super::carrier::Carrier;
use super::pipe::Pipe;
use super::{BODY_WINDOW, HttpEvent, MOST_LANES};
use crate::tls::{PLAIN_BYTES, SealedBuffers};
use bytes::Bytes;
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn carrier_id() -> ConnectionId {
    ConnectionId::named(1)
}

/// A carrier, and what its thread and its sockets have been told.
struct Server {
    carrier: Carrier,
    buffers: SealedBuffers,
    start: Instant,
    now: Instant,
    named: u64,
    /// Chunks that the peer has not read.
    on_the_way: VecDeque<Vec<u8>>,
    /// Requests by their lanes: what was received of each.
    received: BTreeMap<ConnectionId, Vec<u8>>,
    sent: Vec<(ConnectionId, u64)>,
    lost: Vec<ConnectionId>,
    closed: Vec<ConnectionId>,
    is_over: bool,
    is_closing_lost: bool,
    /// Whether bytes of requests are taken as they come.
    is_wanting: bool,
}

impl Server {
    fn new() -> Self {
        let start = Instant::now();
        Self {
            carrier: Carrier::new(carrier_id(), start),
            buffers: SealedBuffers::default(),
            start,
            now: start,
            named: 1,
            on_the_way: VecDeque::new(),
            received: BTreeMap::new(),
            sent: Vec::new(),
            lost: Vec::new(),
            closed: Vec::new(),
            is_over: false,
            is_closing_lost: true,
            is_wanting: true,
        }
    }

    /// Takes bytes of the client, and does what is possible.
    fn take(&mut self, bytes: &[u8]) {
        self.carrier.pipe.put(bytes);
        self.advance();
    }

    fn advance(&mut self) {
        let mut events = Vec::new();
        loop {
            let named = &mut self.named;
            let name = || {
                *named += 1;
                ConnectionId::named(*named)
            };
            self.carrier.give_room(&mut self.buffers);
            self.carrier.advance(self.now, name, &mut events);
            let chunk = self.carrier.chunk(&mut self.buffers);
            let is_idle = chunk.is_none() && events.is_empty();
            if let Some((slice, _)) = chunk {
                assert!(slice.len() <= PLAIN_BYTES);
                self.on_the_way.push_back(slice.to_vec());
                assert!(self.on_the_way.len() <= 2, "chunks ahead of the kernel");
            }
            if is_idle {
                return;
            }
            events.drain(..).for_each(|event| self.note(event));
        }
    }

    fn note(&mut self, event: HttpEvent) {
        match event {
            HttpEvent::Lane { carrier, lane } => {
                assert_eq!(carrier, carrier_id());
                self.received.insert(lane, Vec::new());
                if self.is_wanting {
                    self.want(lane);
                }
            }
            HttpEvent::Over { .. } => self.is_over = true,
            HttpEvent::Socket(SocketEvent::Received { connection, buffer, outcome }) => {
                assert_eq!(buffer.len(), outcome.unwrap());
                self.received.get_mut(&connection).unwrap().extend(&buffer);
                if !buffer.is_empty() {
                    self.want(connection);
                }
            }
            HttpEvent::Socket(SocketEvent::Sent { connection, tag }) => {
                self.sent.push((connection, tag));
            }
            HttpEvent::Socket(SocketEvent::SendFailed { connection, .. }) => {
                self.lost.push(connection);
                if self.is_closing_lost {
                    self.carrier.close_lane(connection);
                }
            }
            HttpEvent::Socket(SocketEvent::Closed { connection }) => self.closed.push(connection),
            other => panic!("{other:?}"),
        }
    }

    fn want(&mut self, lane: ConnectionId) {
        if let Some(lane) = self.carrier.lane(lane) {
            lane.wanted = Some(Vec::new());
        }
    }

    /// The bytes for the client, which the kernel has taken.
    fn give(&mut self) -> Option<Vec<u8>> {
        let bytes = self.on_the_way.pop_front()?;
        self.carrier.chunk_taken(&mut self.buffers);
        self.advance();
        Some(bytes)
    }

    fn send(&mut self, lane: ConnectionId, slices: Vec<SendSlice>, tag: u64) {
        self.carrier.lane(lane).expect("a lane").send(slices, tag);
        self.advance();
    }

    fn lanes(&self) -> Vec<ConnectionId> {
        self.received.keys().copied().collect()
    }

    /// What was received of the request of a lane.
    fn request(&self, lane: ConnectionId) -> &str {
        std::str::from_utf8(&self.received[&lane]).unwrap()
    }
}

/// A client, and the server that it speaks to.
struct Pair {
    server: Server,
    pipe: Pipe,
    requests: SendRequest<Bytes>,
    connection: Pin<Box<Connection<Pipe, Bytes>>>,
    /// Why the connection has ended.
    end: Option<Result<(), h2::Error>>,
}

fn now<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

impl Pair {
    fn new(window: u32) -> Self {
        let (pipe, mut server) = (Pipe::default(), Server::new());
        pipe.give_room(vec![0; 64 * 1024].into(), usize::MAX);
        let mut builder = Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(16 * 1024 * 1024);
        let mut handshake = Box::pin(builder.handshake::<_, Bytes>(pipe.clone()));
        let Poll::Ready(Ok((requests, connection))) = now(&mut handshake) else {
            panic!("a greeting needs no answer")
        };
        server.advance();
        Self { server, pipe, requests, connection: Box::pin(connection), end: None }
    }

    /// Carries bytes until neither side has any.
    fn run(&mut self) {
        self.server.advance();
        loop {
            if self.end.is_none()
                && let Poll::Ready(end) = now(&mut self.connection)
            {
                self.end = Some(end);
            }
            let (memory, slice) = self.pipe.take_room().expect("the client's room");
            let bytes = slice.to_vec();
            drop(slice);
            self.pipe.give_room(memory, usize::MAX);
            if !bytes.is_empty() {
                self.server.take(&bytes);
            }
            match self.server.give() {
                Some(bytes) => self.pipe.put(&bytes),
                None if bytes.is_empty() => return,
                None => {}
            }
        }
    }

    /// Sends a request without a body. Returns its response to come, and its lane.
    fn get(&mut self, path: &str) -> (ResponseFuture, ConnectionId) {
        let (response, _, lane) = self.request("GET", path, true);
        (response, lane)
    }

    fn request(
        &mut self,
        method: &str,
        path: &str,
        is_whole: bool,
    ) -> (ResponseFuture, SendStream<Bytes>, ConnectionId) {
        let request = Request::builder().method(method).uri(format!("https://a{path}"));
        let (response, body) =
            self.requests.send_request(request.body(()).unwrap(), is_whole).unwrap();
        self.run();
        (response, body, *self.server.lanes().last().expect("a lane"))
    }
}

/// The status and the body of a response that has begun.
fn begun(response: &mut ResponseFuture) -> (u16, RecvStream) {
    let Poll::Ready(Ok(response)) = now(response) else { panic!("no response has come") };
    (response.status().as_u16(), response.into_body())
}

/// The bytes of a body that have come; the client takes all of them out of its window, or none.
fn read(body: &mut RecvStream, is_taking: bool) -> Vec<u8> {
    let mut all = Vec::new();
    while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(&mut Context::from_waker(Waker::noop()))
    {
        all.extend_from_slice(&bytes);
        if is_taking {
            body.flow_control().release_capacity(bytes.len()).unwrap();
        }
    }
    all
}

/// The head of a response with a body of this many bytes.
fn head(length: usize) -> SendSlice {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-One: 1\r\n\r\n");
    text.into_bytes().into()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}

/// Memory of a response, and a slice of all of it.
fn shared(count: usize) -> (Arc<[u8]>, SendSlice) {
    let memory: Arc<[u8]> = bytes(count).into();
    (Arc::clone(&memory), SendSlice::Bytes { range: 0..memory.len(), bytes: memory })
}

#[test]
fn requests_are_heads_of_http_11() {
    let mut pair = Pair::new(65_535);
    let (_, lane) = pair.get("/t/film/master.m3u8?s=1");
    let head = "GET /t/film/master.m3u8?s=1 HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n";
    assert_eq!(pair.server.request(lane), head);
    // A body of unknown length is announced as one, and refused as over HTTP/1.1.
    let (_, _, lane) = pair.request("PUT", "/api/v1/titles/x", false);
    assert!(pair.server.request(lane).ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n"));
    let (_, _, lane) = pair.request("OPTIONS", "/", true);
    assert!(pair.server.request(lane).starts_with("OPTIONS / HTTP/1.1\r\n"));
}

#[test]
fn every_byte_arrives_once_and_sends_are_reported_in_order() {
    for window in [1, 100, 16_384, 65_535, 5_000_000] {
        let mut pair = Pair::new(window);
        let sizes = if window == 1 { [0, 3, 200, 1, 0] } else { [300, 70_000, 1, 200_000, 16_385] };
        let (mut response, lane) = pair.get("/");
        pair.server.send(lane, vec![head(sizes.iter().sum())], 0);
        let mut wanted = Vec::new();
        for (size, tag) in sizes.into_iter().zip(1..) {
            let slices = [size / 3, 0, size - size / 3].map(bytes);
            wanted.extend(slices.concat());
            pair.server.send(lane, slices.map(SendSlice::from).into(), tag);
        }
        pair.run();
        let (status, mut body) = begun(&mut response);
        let (mut got, mut last) = (Vec::new(), 0);
        while got.len() < wanted.len() {
            let more = read(&mut body, true);
            assert!(!more.is_empty(), "window {window}: {} of {}", got.len(), wanted.len());
            got.extend(more);
            let taken = pair.server.carrier.taken(lane, u64::MAX);
            assert!(taken >= last && taken >= got.len() as u64);
            last = taken;
            pair.run();
        }
        assert!(status == 200 && got == wanted && body.is_end_stream(), "window {window}");
        assert_eq!(pair.server.sent, [0, 1, 2, 3, 4, 5].map(|tag| (lane, tag)));
        pair.server.carrier.lane(lane).unwrap().finish();
        pair.server.carrier.close_lane(lane);
        pair.run();
        assert_eq!(pair.server.closed, [lane]);
        assert!(pair.end.is_none() && pair.server.lost.is_empty());
    }
}

#[test]
fn responses_without_a_body_and_without_an_end() {
    let mut pair = Pair::new(65_535);
    for (method, text, status) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200),
        ("DELETE", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n", 304),
        ("GET", "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n", 307),
    ] {
        let (mut response, _, lane) = pair.request(method, "/", true);
        pair.server.send(lane, vec![text.as_bytes().to_vec().into()], 1);
        pair.run();
        let (got, body) = begun(&mut response);
        assert!(got == status && body.is_end_stream(), "{method} {text}");
        assert_eq!(pair.server.sent.pop(), Some((lane, 1)));
    }
    let (mut response, lane) = pair.get("/events");
    let text = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    pair.server.send(lane, vec![text.into()], 1);
    for event in [&b"one"[..], b"two"] {
        pair.server.send(lane, vec![event.to_vec().into()], 2);
    }
    pair.run();
    let (_, mut body) = begun(&mut response);
    assert!(read(&mut body, true) == b"onetwo" && !body.is_end_stream());
    pair.server.carrier.lane(lane).unwrap().finish();
    pair.run();
    assert!(read(&mut body, true).is_empty() && body.is_end_stream());
}

#[test]
fn a_body_that_ends_early_is_no_whole_one() {
    let mut pair = Pair::new(65_535);
    let (mut response, lane) = pair.get("/");
    pair.server.send(lane, vec![head(10), b"12345".to_vec().into()], 1);
    pair.run();
    pair.server.carrier.close_lane(lane);
    pair.run();
    let (_, mut body) = begun(&mut response);
    let context = &mut Context::from_waker(Waker::noop());
    let mut last = body.poll_data(context);
    if matches!(last, Poll::Ready(Some(Ok(_)))) {
        last = body.poll_data(context);
    }
    let Poll::Ready(Some(Err(error))) = last else { panic!("{last:?}") };
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
}

#[test]
fn a_reset_in_the_middle_of_a_body_gives_all_memory_back() {
    let mut pair = Pair::new(100_000);
    let (mut response, lane) = pair.get("/");
    let (memory, slice) = shared(1_000_000);
    pair.server.send(lane, vec![head(2_000_000), slice], 1);
    pair.run();
    let (_, mut body) = begun(&mut response);
    assert_eq!(read(&mut body, false).len(), 100_000);
    assert_eq!(pair.server.carrier.taken(lane, u64::MAX), 100_000);
    assert_eq!((Arc::strong_count(&memory), pair.server.sent.len()), (2, 0));
    drop((response, body));
    pair.run();
    assert_eq!((&pair.server.lost[..], &pair.server.closed[..]), (&[lane][..], &[lane][..]));
    assert_eq!(Arc::strong_count(&memory), 1);
    // The connection goes on.
    let (mut response, lane) = pair.get("/");
    pair.server.send(lane, vec![head(1), b"x".to_vec().into()], 1);
    pair.run();
    assert_eq!(read(&mut begun(&mut response).1, true), b"x");
}

#[test]
fn a_lane_is_not_closed_while_a_frame_has_its_slices() {
    let mut pair = Pair::new(5_000_000);
    let (_response, lane) = pair.get("/");
    let (memory, slice) = shared(1_000_000);
    pair.server.send(lane, vec![head(1_000_000), slice], 1);
    // The kernel takes nothing: two chunks are with it, and a frame is half written.
    assert_eq!(pair.server.on_the_way.len(), 2);
    pair.server.carrier.close_lane(lane);
    pair.server.advance();
    assert_eq!((Arc::strong_count(&memory), &pair.server.closed[..]), (2, &[][..]));
    pair.run();
    assert_eq!((Arc::strong_count(&memory), &pair.server.closed[..]), (1, &[lane][..]));
}

#[test]
fn a_stream_that_is_not_read_does_not_hold_up_another_one() {
    let mut pair = Pair::new(65_535);
    let (mut first, idle) = pair.get("/idle");
    let (mut second, plays) = pair.get("/plays");
    let (memory, slice) = shared(5_000_000);
    pair.server.send(idle, vec![head(5_000_000), slice], 1);
    pair.server.send(plays, vec![head(5_000_000), bytes(5_000_000).into()], 1);
    pair.run();
    let (_, mut unread) = begun(&mut first);
    let (_, mut body) = begun(&mut second);
    let mut count = 0;
    while !body.is_end_stream() {
        count += read(&mut body, true).len();
        pair.run();
    }
    assert_eq!((count, &pair.server.sent[..]), (5_000_000, &[(plays, 1)][..]));
    // What its thread measures it by: it takes nothing.
    assert_eq!(pair.server.carrier.taken(idle, u64::MAX), 65_535);
    assert_eq!(read(&mut unread, false).len(), 65_535);
    pair.server.carrier.close_lane(idle);
    pair.run();
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn bodies_of_requests_wait_for_the_operation_in_a_bounded_window() {
    let mut pair = Pair::new(65_535);
    let length = 3 * BODY_WINDOW as usize;
    let request = Request::builder().method("PUT").uri("https://a/api/v1/titles/x");
    let request = request.header("content-length", length).body(()).unwrap();
    let (mut response, mut body) = pair.requests.send_request(request, false).unwrap();
    body.send_data(bytes(length).into(), true).unwrap();
    pair.run();
    let lane = pair.server.lanes()[0];
    // The thread of the tests takes everything at once.
    let head = pair.server.received[&lane].windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    assert!(pair.server.received[&lane][head + 4..] == bytes(length));
    pair.server.send(lane, vec![b"HTTP/1.1 204 No Content\r\n\r\n".to_vec().into()], 1);
    pair.run();
    assert_eq!(begun(&mut response).0, 204);

    let request = Request::builder().method("PUT").uri("https://a/api/v1/titles/x");
    let request = request.header("content-length", length).body(()).unwrap();
    let (mut response, mut body) = pair.requests.send_request(request, false).unwrap();
    pair.run();
    let lane = *pair.server.lanes().last().unwrap();
    pair.server.carrier.lane(lane).unwrap().wanted = None;
    let before = pair.server.received[&lane].len();
    body.send_data(bytes(length).into(), true).unwrap();
    pair.run();
    pair.server.want(lane);
    pair.server.carrier.lane(lane).unwrap().wanted = Some(Vec::new());
    pair.server.advance();
    let held = pair.server.received[&lane].len() - before;
    assert!(held <= BODY_WINDOW as usize, "{held}");
    // Refused in the middle: the client is told to send no more.
    let text = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n".to_vec();
    pair.server.send(lane, vec![text.into()], 1);
    pair.server.carrier.close_lane(lane);
    pair.run();
    assert_eq!(begun(&mut response).0, 413);
    assert!(pair.end.is_none());
}

#[test]
fn a_retired_connection_ends_with_its_last_stream() {
    let mut pair = Pair::new(65_535);
    let (mut response, lane) = pair.get("/");
    pair.server.carrier.retire();
    pair.run();
    assert!(!pair.server.is_over);
    pair.server.send(lane, vec![head(3), b"end".to_vec().into()], 1);
    pair.run();
    assert_eq!(read(&mut begun(&mut response).1, true), b"end");
    pair.server.carrier.close_lane(lane);
    pair.run();
    assert!(pair.server.is_over);
    assert!(matches!(pair.end, Some(Ok(()))), "{:?}", pair.end);
    // Without a stream it ends at once.
    let mut pair = Pair::new(65_535);
    pair.run();
    pair.server.carrier.retire();
    pair.run();
    assert!(pair.server.is_over && matches!(pair.end, Some(Ok(()))));
}

#[test]
fn a_header_list_that_is_a_little_too_long_is_refused_alone() {
    let mut pair = Pair::new(65_535);
    for (size, is_taken) in [(15_000, true), (17_000, false)] {
        let request = Request::builder().uri("https://a/").header("x", "a".repeat(size));
        let (mut response, _) =
            pair.requests.send_request(request.body(()).unwrap(), true).unwrap();
        pair.run();
        match is_taken {
            true => assert!(now(&mut response).is_pending()),
            false => assert_eq!(begun(&mut response).0, 431),
        }
        assert_eq!((pair.server.received.len(), pair.end.is_none()), (1, true), "{size}");
    }
}

/// A frame of this type on a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET`, `https` and `/`, of the static table.
const GET: [u8; 3] = [0x82, 0x87, 0x84];

/// A server that has been greeted.
fn greeted() -> Server {
    let mut server = Server::new();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    server.take(&[&preface[..], &frame(SETTINGS, 0, 0, &[])].concat());
    server
}

/// The reason of the last GOAWAY that the server has sent.
fn farewell(server: &mut Server) -> Option<u32> {
    let mut all = Vec::new();
    while let Some(bytes) = server.give() {
        all.extend(bytes);
    }
    let (mut rest, mut reason) = (&all[..], None);
    while let [a, b, c, kind, _, _, _, _, _, after @ ..] = rest {
        let (payload, next) = after.split_at(u32::from_be_bytes([0, *a, *b, *c]) as usize);
        if *kind == GOAWAY {
            reason = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
        rest = next;
    }
    reason
}

/// A client that ends its stream behind the last byte of a body waits for no answer, and the body
/// counts; so does one whose thread takes the body later. Without its end a body is none.
#[test]
fn a_body_that_has_come_whole_is_delivered_before_the_end_of_its_stream() {
    for reason in [NO_ERROR, CANCEL] {
        for (ends, is_wanted) in [(END_STREAM, true), (END_STREAM, false), (0, true), (0, false)] {
            let mut server = greeted();
            server.is_wanting = is_wanted;
            let frames = [
                frame(HEADERS, END_HEADERS, 1, &GET),
                frame(DATA, 0, 1, b"all of "),
                frame(DATA, ends, 1, b"a body"),
                frame(RST_STREAM, 0, 1, &reason.to_be_bytes()),
            ];
            server.take(&frames.concat());
            let lane = server.lanes()[0];
            let is_whole = ends == END_STREAM;
            let is_held = is_whole && !is_wanted;
            assert_eq!(server.lost.is_empty(), is_held, "{reason} {ends} {is_wanted}");
            if is_held {
                server.is_wanting = true;
                server.want(lane);
                server.advance();
            }
            assert_eq!(server.lost, [lane]);
            let body = server.request(lane).split_once("\r\n\r\n").map(|(_, body)| body);
            assert_eq!(body == Some("all of a body"), is_whole, "{reason} {ends} {is_wanted}");
            assert_eq!(server.closed, [lane]);
        }
    }
}

/// The thread that answers a stream that has ended learns that nobody hears it.
#[test]
fn an_answer_to_a_stream_that_has_ended_fails_and_waits_for_nothing() {
    let mut server = greeted();
    (server.is_wanting, server.is_closing_lost) = (false, false);
    server.take(&frame(HEADERS, END_HEADERS, 1, &GET));
    server.take(&frame(DATA, END_STREAM, 1, b"body"));
    server.take(&frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes()));
    let lane = server.lanes()[0];
    assert_eq!(server.lost, []);
    server.send(lane, vec![head(0)], 1);
    assert_eq!((&server.lost[..], &server.sent[..]), (&[lane][..], &[][..]), "before its body");
    server.want(lane);
    server.advance();
    server.send(lane, vec![head(0)], 2);
    assert_eq!((&server.lost[..], &server.sent[..]), (&[lane; 2][..], &[][..]), "and behind it");
}

/// A request without a body, and the end of its stream by the client.
fn begun_and_reset(number: u32) -> [Vec<u8>; 2] {
    let stream = 2 * number + 1;
    let request = frame(HEADERS, END_STREAM | END_HEADERS, stream, &GET);
    [request, frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())]
}

const NO_ERROR: u32 = 0;
const CANCEL: u32 = 8;
const CALM: u32 = 11;

#[test]
fn a_thousand_rapid_resets_end_the_connection_and_leave_nothing() {
    let mut server = greeted();
    let flood: Vec<u8> = (0..1000).flat_map(begun_and_reset).flatten().collect();
    server.take(&flood);
    assert_eq!((farewell(&mut server), server.is_over), (Some(CALM), true));
    // Each for itself, after its request has reached the thread and before it is answered.
    let mut server = greeted();
    for number in 0..1000 {
        begun_and_reset(number).iter().for_each(|frame| server.take(frame));
        while server.on_the_way.len() > 1 {
            server.give();
        }
        if server.is_over {
            break;
        }
    }
    assert_eq!((farewell(&mut server), server.is_over), (Some(CALM), true));
    let requests = server.received.len();
    assert!(requests <= 3 * MOST_LANES as usize, "{requests}");
    assert_eq!((server.lost.len(), server.closed.len()), (requests, requests));
}

#[test]
fn a_viewer_who_seeks_for_a_minute_keeps_the_connection() {
    let mut server = greeted();
    for number in 0..1000 {
        server.now = server.start + Duration::from_millis(60) * number;
        begun_and_reset(number).iter().for_each(|frame| server.take(frame));
        while server.give().is_some() {}
    }
    assert_eq!((server.is_over, server.closed.len()), (false, 1000));
}

#[test]
fn frames_that_only_cost_memory_or_time_end_their_connection() {
    let block = |fields: Vec<u8>| [&GET[..], &fields].concat();
    let headers = |flags, fields| frame(HEADERS, flags, 1, &block(fields));
    // One field of 4,000 bytes is put into the table, and named again and again by one byte.
    let mut bomb = vec![0x40, 1, b'x', 0x7f, 0xa1, 0x1e];
    bomb.extend(std::iter::repeat_n(b'a', 4000));
    bomb.extend(std::iter::repeat_n(0xbe, 10_000));
    let unending: Vec<u8> = std::iter::once(headers(END_STREAM, Vec::new()))
        .chain((0..2000).map(|_| frame(CONTINUATION, 0, 1, &[0x00, 1, b'y', 1, b'z'])))
        .flatten()
        .collect();
    let empty: Vec<u8> = std::iter::once(headers(0, Vec::new()))
        .chain((0..20_000).map(|_| frame(CONTINUATION, 0, 1, &[])))
        .flatten()
        .collect();
    for (name, attack) in [
        ("a short header list that expands", headers(END_STREAM | END_HEADERS, bomb)),
        ("an unending header list", unending),
        ("an unending header list of nothing", empty),
        ("a window of more than 2 GiB", frame(8, 0, 0, &0x7fff_ffffu32.to_be_bytes())),
        ("DATA on no stream", frame(0, 0, 0, b"x")),
        ("a frame that is too long", frame(0, 0, 1, &[0; 17_000])),
        ("no frames", b"GET / HTTP/1.1\r\n\r\n".repeat(10)),
    ] {
        let mut server = greeted();
        for part in attack.chunks(4096) {
            server.take(part);
        }
        let reason = farewell(&mut server);
        let requests = server.received.len();
        assert!(
            requests == 0 && server.is_over && reason > Some(0),
            "{name}: {reason:?}, {requests} requests"
        );
    }
}

#[test]
fn answers_to_pings_and_settings_do_not_pile_up() {
    let mut server = greeted();
    let flood: Vec<u8> = (0..20_000u64)
        .flat_map(|number| {
            [frame(PING, 0, 0, &number.to_be_bytes()), frame(SETTINGS, 0, 0, &[])].concat()
        })
        .collect();
    server.take(&flood);
    // The peer reads nothing: two chunks are with the kernel, and what it has sent is not read on.
    assert_eq!(server.on_the_way.len(), 2);
    assert!(!server.carrier.pipe.is_read());
    while server.give().is_some() {}
    assert!(server.carrier.pipe.is_read() && !server.is_over);
}

#[test]
fn more_streams_than_allowed_are_refused_alone() {
    let mut server = greeted();
    for number in 0..MOST_LANES + 10 {
        server.take(&begun_and_reset(number)[0]);
    }
    assert_eq!(server.received.len(), MOST_LANES as usize);
    assert_eq!((farewell(&mut server), server.is_over), (None, false));
    let lane = server.lanes()[0];
    server.send(lane, vec![head(1), b"x".to_vec().into()], 7);
    while server.give().is_some() {}
    assert_eq!(server.sent, [(lane, 7)]);
}

#[test]
fn the_end_of_a_connection_gives_back_what_its_lanes_held() {
    let mut pair = Pair::new(5_000_000);
    pair.server.is_closing_lost = false;
    let kept: Vec<_> = (0..3).map(|_| pair.get("/")).collect();
    let memories: Vec<Arc<[u8]>> = kept
        .iter()
        .map(|(_, lane)| {
            let (memory, slice) = shared(1_000_000);
            pair.server.send(*lane, vec![head(1_000_000), slice], 1);
            memory
        })
        .collect();
    let mut events = Vec::new();
    let server = pair.server;
    let lanes = server.carrier.close(&mut events);
    assert_eq!((lanes.len(), events.len()), (3, 3), "{events:?}");
    assert!(memories.iter().all(|memory| Arc::strong_count(memory) == 1));
}
