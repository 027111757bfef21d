//! Titles that an operator sends to an address: the bytes that a receiver gets, and the session.

use crate::admin::{Administered, JSON};
use crate::fixture::eventually;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use store::Store;
use units::{BitRate, ByteCount};

/// A receiver, and its port.
fn receiver() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// What comes until nothing does for two seconds, or `is_enough` is true of it.
fn receive(socket: &UdpSocket, is_enough: impl Fn(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let (mut datagram, mut received) = ([0; 2048], Vec::new());
    while !is_enough(&received) {
        match socket.recv(&mut datagram) {
            Ok(length) => received.push(datagram[..length].to_vec()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if received.is_empty() => {}
            Err(_) => break,
        }
    }
    received
}

fn send(api: &Administered, body: &str) -> u64 {
    let response = api.ask("POST", "/api/v1/sessions", JSON, body.as_bytes());
    assert_eq!(response.status, 201, "{body}: {}", response.text());
    let session = response.json()["session"].as_u64().unwrap();
    assert_eq!(response.field("location"), Some(&*format!("/api/v1/sessions/{session}")));
    session
}

fn sessions(api: &Administered) -> Value {
    api.ask("GET", "/api/v1/sessions", "", b"").json()
}

fn is_null(packet: &[u8]) -> bool {
    packet[1] & 0x1f == 0x1f && packet[2] == 0xff
}

/// The packets without null packets, from each PAT to the next, as the checks have segments.
pub(crate) fn between_tables(packets: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for packet in packets.chunks(188).filter(|packet| !is_null(packet)) {
        if packet[1..3] == [0x40, 0] {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("begins with tables").extend_from_slice(packet);
    }
    parts
}

/// The clock time of a packet that has one, in ticks of 27 MHz.
fn clock(packet: &[u8]) -> Option<u64> {
    let has_clock = packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0;
    let field = packet[6..12].iter().fold(0, |field, byte| field << 8 | u64::from(*byte));
    has_clock.then_some((field >> 15) * 300 + (field & 0x1ff))
}

/// Checks that each clock time is that of its place, to a tick, and comes within 40 ms. Returns the
/// number of them.
pub(crate) fn assert_constant(packets: &[u8], rate: u64) -> usize {
    let clocks: Vec<(usize, u64)> = packets
        .chunks(188)
        .enumerate()
        .filter_map(|(place, packet)| Some((place, clock(packet)?)))
        .collect();
    for pair in clocks.windows(2) {
        let [(a, first), (b, second)] = [pair[0], pair[1]];
        let exact = (b - a) as u64 * 188 * 8 * 27_000_000 / rate;
        assert!((second - first).abs_diff(exact) <= 1, "{} ticks, not {exact}", second - first);
        assert!(exact <= 27_000_000 / 25, "{exact} ticks without a clock time");
    }
    clocks.len()
}

#[test]
fn a_title_at_a_constant_rate_has_that_between_all_its_clock_times() {
    const RATE: u64 = 3_000_000;
    let api = Administered::new(Duration::from_secs(20));
    let (socket, port) = receiver();
    let body = format!(r#"{{"title":"film","to":"udp://127.0.0.1:{port}","rate":{RATE}}}"#);
    let session = send(&api, &body);
    let report = api.ask("GET", &format!("/api/v1/sessions/{session}"), "", b"").json();
    assert_eq!(report["sent_to"], format!("127.0.0.1:{port}"), "{report}");
    let received = receive(&socket, |_| false);
    assert!(received.iter().all(|datagram| datagram.len() == 7 * 188));
    let packets = received.concat();
    let clocks = assert_constant(&packets, RATE);
    assert!(clocks > 150, "one each 40 ms of 6 s, not {clocks}");
    let streams = testkit::ts::check(&between_tables(&packets)).unwrap();
    assert_eq!(streams[0].packets.len(), 150, "25 pictures in each of 6 s");
    eventually("its session has ended", || sessions(&api)["total"] == 0);
    let status = api.ask("GET", "/status", "", b"").json();
    assert_eq!(status["deadline_misses"], 0, "{status}");
}

#[test]
fn a_title_in_rtp_repeats_until_its_session_is_ended() {
    let api = Administered::new(Duration::from_secs(20));
    let (socket, port) = receiver();
    let body = format!(r#"{{"title":"song","to":"rtp://127.0.0.1:{port}","loop":true}}"#);
    let first = send(&api, &body);
    // The clock is set anew where the title begins again.
    let restarts = |datagram: &Vec<u8>| {
        datagram[12..].chunks(188).any(|packet| clock(packet).is_some() && packet[5] & 0x80 != 0)
    };
    let received = receive(&socket, |received| received.iter().any(restarts));
    assert!(received.iter().all(|it| it[0] == 0x80 && it[1] & 0x7f == 33 && it.len() % 188 == 12));
    let numbers = received.iter().map(|it| u16::from_be_bytes([it[2], it[3]]));
    let numbers: Vec<u16> = numbers.collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
    let (once, _) = received.split_at(received.iter().position(restarts).expect("it repeats"));
    let payload: Vec<u8> = once.iter().flat_map(|it| it[12..].to_vec()).collect();
    let streams = testkit::ts::check(&between_tables(&payload)).unwrap();
    assert!(!streams[0].packets.is_empty());
    // Each time through is a session of its own, and has the number of the first one.
    let number = format!("/api/v1/sessions/{first}");
    eventually("it is listed", || sessions(&api)["sessions"][0]["session"] == first);
    eventually("it is found", || api.ask("GET", &number, "", b"").status == 200);
    assert_eq!(api.ask("DELETE", &number, "", b"").status, 204);
    eventually("it is over", || {
        let metrics = api.ask("GET", "/metrics", "", b"");
        metrics.text().contains("tenuto_channels 0\n") && sessions(&api)["total"] == 0
    });
    assert_eq!(api.ask("DELETE", &number, "", b"").status, 404);
}

#[test]
fn a_channel_that_comes_to_damage_ends_and_is_counted() {
    let api = Administered::with(Duration::from_secs(20), |config| {
        config.read_size = Some(ByteCount::kib(256));
        let store = Store::open(&config.stores[0]).unwrap();
        let title = store.title("film").unwrap();
        let runs = store.runs(title.id, 0).unwrap();
        let last = runs[0].start + title.tracks[0].bytes - 1;
        drop(store);
        let file = OpenOptions::new().read(true).write(true).open(&config.stores[0]).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, last).unwrap();
        file.write_all_at(&[byte[0] ^ 1], last).unwrap();
    });
    let (_receiver, port) = receiver();
    send(&api, &format!(r#"{{"title":"film","to":"udp://127.0.0.1:{port}"}}"#));
    let failed = "tenuto_channel_failures_total{cause=\"not-served\"} 1\n";
    eventually("it has ended", || {
        let metrics = api.ask("GET", "/metrics", "", b"").text().to_owned();
        metrics.contains("tenuto_channels 0\n") && metrics.contains(failed)
    });
}

#[test]
fn a_title_that_never_fits_is_refused_as_a_viewer_is_and_without_a_wait() {
    let api = Administered::with(Duration::from_secs(20), |config| {
        config.network = Some(BitRate(500_000));
    });
    let (_receiver, port) = receiver();
    let body = format!(r#"{{"title":"film","to":"udp://127.0.0.1:{port}"}}"#);
    let response = api.ask("POST", "/api/v1/sessions", JSON, body.as_bytes());
    let problem = response.json();
    let words = ["error", "cause", "resource", "retry"].map(|name| problem[name].as_str());
    assert_eq!(response.status, 503, "{problem}");
    assert_eq!(words, [Some("refused"), Some("title"), Some("network"), Some("never")]);
    assert!(problem["retry_after_ms"].is_null() && response.field("retry-after").is_none());
    let text = problem.to_string();
    assert!(text.contains("a higher --network rate") && !text.contains("wait"), "{text}");
}
