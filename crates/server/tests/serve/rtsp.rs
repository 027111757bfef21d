//! RTSP from outside: what each request is answered, and packets over the connection and over UDP
//! that give the stored LDUs.

use crate::certificates::{Authority, connect};
use crate::fixture::{TestServer, TestStore, eventually, ffmpeg, media};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::version::TLS13;
use server::access::{TitlePatterns, TokenClaims, ViewerLimits, new_key_file};
use server::{Server, ServerConfig};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use units::BitRate;

/// A player that sends exactly the given bytes.
pub(crate) struct Player {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    number: u32,
    pub(crate) session: String,
    /// Packets by channel, in order.
    packets: BTreeMap<u8, Vec<Vec<u8>>>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

impl Player {
    pub(crate) fn connect(server: &TestServer) -> Self {
        let address = server.server.rtsp_address().expect("RTSP is on");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (session, packets) = (String::new(), BTreeMap::new());
        Self { stream: BufReader::new(stream), address, number: 0, session, packets }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next message: a reply, or `None` after a packet, which is kept, and at the end.
    fn read(&mut self) -> Option<Option<Reply>> {
        let first = loop {
            match self.stream.fill_buf() {
                Ok(bytes) => break bytes.first().copied()?,
                // A signal may end the wait early.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        };
        if first == b'$' {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head).ok()?;
            let mut packet = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
            self.stream.read_exact(&mut packet).ok()?;
            self.packets.entry(head[1]).or_default().push(packet);
            return Some(None);
        }
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let pair = |line: &String| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.trim().to_owned())
        };
        let mut reply =
            Reply { status, fields: lines[1..].iter().map(pair).collect(), body: String::new() };
        let length = reply.field("Content-Length").parse().unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        reply.body = String::from_utf8(body).unwrap();
        Some(Some(reply))
    }

    fn read_reply(&mut self) -> Reply {
        loop {
            if let Some(reply) = self.read().expect("the connection goes on") {
                return reply;
            }
        }
    }

    /// Sends a request of a title's path with these further fields, and reads its reply.
    pub(crate) fn ask(&mut self, method: &str, path: &str, fields: &str) -> Reply {
        self.request(method, path, fields);
        self.answer()
    }

    /// Sends a request, whose reply is read later.
    pub(crate) fn request(&mut self, method: &str, path: &str, fields: &str) {
        self.number += 1;
        let session = match self.session.as_str() {
            "" => String::new(),
            session => format!("Session: {session}\r\n"),
        };
        let (number, address) = (self.number, self.address);
        let head = format!("{method} rtsp://{address}{path} RTSP/1.0\r\nCSeq: {number}\r\n");
        self.send(format!("{head}{session}{fields}\r\n").as_bytes());
    }

    /// The reply to the last request.
    pub(crate) fn answer(&mut self) -> Reply {
        let reply = self.read_reply();
        assert_eq!(reply.field("CSeq"), self.number.to_string(), "{reply:?}");
        if let Some((session, _)) = reply.field("Session").split_once(';') {
            session.clone_into(&mut self.session);
        }
        reply
    }

    pub(crate) fn set_up(&mut self, title: &str, tracks: &[(u16, String)]) {
        for (track, transport) in tracks {
            let fields = format!("Transport: {transport}\r\n");
            let reply = self.ask("SETUP", &format!("/t/{title}/trackID={track}"), &fields);
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }

    /// Reads packets until the server ends the connection.
    pub(crate) fn read_to_end(&mut self) {
        while let Some(message) = self.read() {
            assert!(message.is_none(), "{message:?}");
        }
        assert_eq!(self.stream.fill_buf().unwrap(), b"", "the connection has ended");
    }

    /// Reads packets until each of these channels has ended with BYE.
    pub(crate) fn read_to_goodbye(&mut self, channels: &[u8]) {
        let has_ended = |player: &Self, channel| {
            let last = player.packets.get(channel).and_then(|packets| packets.last());
            last.is_some_and(|packet| packet.windows(4).any(|four| four == [0x81, 203, 0, 1]))
        };
        while !channels.iter().all(|channel| has_ended(self, channel)) {
            assert!(self.read().expect("packets come").is_none());
        }
    }
}

pub(crate) fn interleaved(track: u16) -> (u16, String) {
    (track, format!("RTP/AVP/TCP;unicast;interleaved={}-{}", track * 2, track * 2 + 1))
}

fn serve(fixture: &TestStore) -> TestServer {
    fixture.serve_with(|config| config.rtsp = Some("127.0.0.1:0".parse().unwrap()))
}

/// No session is left, and nothing is reserved.
pub(crate) fn assert_balanced(server: &TestServer) {
    eventually("no session is left", || server.status("/sessions") == 0);
    eventually("nothing is reserved", || server.status("/active") == 0);
}

/// The NAL units of a file's pictures, without parameter sets, as FFmpeg reads them.
fn nal_units(file: &Path) -> Vec<Vec<u8>> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-i"])
        .arg(file)
        .args(["-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", "-"])
        .output()
        .expect("ffmpeg runs; apt install ffmpeg");
    let bytes = output.stdout;
    let starts: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&[0, 0, 1])).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let unit = |(start, end): (&usize, usize)| {
        let unit = &bytes[start + 3..end];
        // The start code of the next unit may have a zero more.
        let zeros = unit.iter().rev().take_while(|byte| **byte == 0).count();
        unit[..unit.len() - zeros].to_vec()
    };
    let units = starts.iter().zip(ends).map(unit);
    units.filter(|unit| !matches!(unit[0] & 0x1f, 7 | 8)).collect()
}

/// The NAL units in packets: single ones, and fragments (RFC 6184).
fn received_units(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        let number = |packet: &[u8]| u16::from_be_bytes([packet[2], packet[3]]);
        if i > 0 {
            assert_eq!(number(packet), number(&packets[i - 1]).wrapping_add(1));
        }
        let payload = &packet[12..];
        match (payload[0] & 0x1f, payload[1] & 0x80 != 0) {
            (28, true) => units.push(vec![payload[0] & 0xe0 | payload[1] & 0x1f]),
            (28, false) => {}
            _ => units.push(Vec::new()),
        }
        let from = if payload[0] & 0x1f == 28 { 2 } else { 0 };
        units.last_mut().unwrap().extend_from_slice(&payload[from..]);
    }
    units
}

fn timestamp(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[4..8].try_into().unwrap())
}

#[test]
fn a_title_is_described_set_up_and_played_to_its_end_over_the_connection() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let mut player = Player::connect(&server);
    let reply = player.ask("OPTIONS", "/t/film", "");
    assert!(reply.field("Public").contains("PLAY"), "{reply:?}");
    let reply = player.ask("DESCRIBE", "/t/film", "Accept: application/sdp\r\n");
    assert_eq!((reply.status, reply.field("Content-Type")), (200, "application/sdp"));
    assert_eq!(reply.field("Content-Base"), format!("rtsp://{}/t/film/", player.address));
    assert!(reply.body.contains("a=rtpmap:96 H264/90000\r\n"), "{}", reply.body);
    assert!(reply.body.contains("a=rtpmap:97 MPEG4-GENERIC/44100/1\r\n"), "{}", reply.body);
    player.set_up("film", &[interleaved(0), interleaved(1)]);
    assert_eq!(server.status("/admitted"), 0, "only PLAY is an admission request");
    let reply = player.ask("PLAY", "/t/film/", "Range: npt=0-\r\n");
    assert_eq!((reply.status, reply.field("Scale")), (200, "1.000"), "{reply:?}");
    assert!(reply.field("Range").starts_with("npt=0.000-6."), "{reply:?}");
    let info = reply.field("RTP-Info").to_owned();
    player.read_to_goodbye(&[1, 3]);
    let pictures = &player.packets[&0];
    assert!(received_units(pictures) == nal_units(&media().film), "every NAL unit, in order");
    let first = &pictures[0];
    let seq = u16::from_be_bytes([first[2], first[3]]);
    let said = format!("trackID=0;seq={seq};rtptime={}", timestamp(first));
    assert!(info.contains(&said), "{info} has {said}");
    let marked: Vec<u32> =
        pictures.iter().filter(|p| p[1] & 0x80 != 0).map(|p| timestamp(p)).collect();
    assert_eq!(marked.len(), 150, "25 pictures in each of 6 s");
    let mut shown: Vec<u32> = marked.iter().map(|at| at.wrapping_sub(marked[0])).collect();
    shown.sort_unstable();
    assert!(shown.windows(2).all(|two| two[1] - two[0] == 3600), "{shown:?}");
    assert_balanced(&server);
    assert_eq!(server.status("/deadline_misses"), 0);
    assert_eq!(player.ask("TEARDOWN", "/t/film/", "").status, 200);
    assert_eq!(player.ask("PLAY", "/t/film/", "").status, 454);
}

#[test]
fn ranges_pauses_and_speeds_are_played_as_the_replies_say() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let mut player = Player::connect(&server);
    player.set_up("film", &[interleaved(0), interleaved(1)]);
    // 2.4 s lies in the group of pictures that begins at 2 s. Range of the reply, and the pictures
    // that are shown within it; in the middle of a group some more are needed to decode them.
    let mut pictures = Vec::new();
    // A player that has what comes before the position does not get it again.
    for (asked, style, played, within, more) in [
        ("npt=2.4-2.6", "", "npt=2.000-2.600", 15, 3),
        ("npt=2.4-2.6", "First-Prior", "npt=2.400-2.600", 5, 3),
        ("npt=2.43-2.6", "First-Prior", "npt=2.400-2.600", 5, 3),
        ("npt=2.4-3", "RAP", "npt=2.000-3.000", 25, 0),
    ] {
        let fields = format!("Range: {asked}\r\nSeek-Style: {style}\r\n");
        let reply = player.ask("PLAY", "/t/film/", &fields);
        assert_eq!(reply.field("Range"), played, "{reply:?}");
        let is_exact = style == "First-Prior";
        assert_eq!(reply.field("Seek-Style"), if is_exact { style } else { "" }, "{reply:?}");
        player.read_to_goodbye(&[1, 3]);
        pictures = std::mem::take(&mut player.packets).remove(&0).unwrap();
        let is_first = |first: &u32| {
            pictures.iter().all(|picture| timestamp(picture).wrapping_sub(*first) < 1 << 31)
        };
        let first = pictures.iter().map(|it| timestamp(it)).find(is_first).unwrap();
        let marked = pictures.iter().filter(|p| p[1] & 0x80 != 0);
        let shown: Vec<u32> = marked.map(|p| timestamp(p).wrapping_sub(first) / 3600).collect();
        assert!((0..within).all(|picture| shown.contains(&picture)), "{asked}: {shown:?}");
        assert!(shown.len() <= (within + more) as usize, "{asked}: {shown:?}");
    }
    let last = u16::from_be_bytes(pictures.last().unwrap()[2..4].try_into().unwrap());

    // At four times the speed the pictures alone go out, and time stamps are of what is seen.
    let reply = player.ask("PLAY", "/t/film/", "Range: npt=0-\r\nScale: 4\r\n");
    assert_eq!((reply.status, reply.field("Scale")), (200, "4.000"), "{reply:?}");
    let next = last.wrapping_add(1);
    assert!(reply.field("RTP-Info").contains(&format!("seq={next};")), "{reply:?}");
    player.read_to_goodbye(&[1]);
    let pictures = std::mem::take(&mut player.packets).remove(&0).unwrap();
    let mut shown: Vec<u32> = pictures
        .iter()
        .filter(|p| p[1] & 0x80 != 0)
        .map(|p| timestamp(p).wrapping_sub(timestamp(&pictures[0])))
        .collect();
    shown.sort_unstable();
    assert_eq!((shown.len(), shown[149]), (150, 149 * 900));

    assert_eq!(player.ask("PLAY", "/t/film/", "Range: npt=1-\r\n").status, 200);
    // Into the group of pictures that begins there.
    let is_later = |packet: &Vec<u8>| timestamp(packet).wrapping_sub(timestamp(&pictures[0])) > 0;
    eventually("a later picture comes", || {
        let is_packet = player.read().is_some_and(|reply| reply.is_none());
        is_packet
            && player
                .packets
                .get(&0)
                .is_some_and(|it| it.iter().filter(|p| is_later(p)).count() > 20)
    });
    let begin = |reply: &Reply| -> f64 {
        let range = reply.field("Range").strip_prefix("npt=").unwrap();
        range.split('-').next().unwrap().parse().unwrap()
    };
    let reply = player.ask("PAUSE", "/t/film/", "");
    assert_eq!(reply.status, 200, "{reply:?}");
    let paused = begin(&reply);
    assert_eq!(server.status("/sessions"), 1, "a paused session goes on");
    // With the picture that is shown then, not with the key frame before it.
    let resumed = begin(&player.ask("PLAY", "/t/film/", ""));
    assert!(paused > 1.1 && (paused - 0.041..=paused).contains(&resumed), "{paused} {resumed}");
    // At the key frame again, where a range is named.
    let reply = player.ask("PLAY", "/t/film/", "Range: npt=1.5-\r\n");
    assert!((begin(&reply) - 1.0).abs() < 1e-6, "{reply:?}");
    drop(player);
    assert_balanced(&server);
}

#[test]
fn sound_before_the_first_picture_is_sent() {
    let late = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtsp-late.mp4");
    ffmpeg(
        "-f lavfi -i sine=440:d=3 -itsoffset 1.5 -f lavfi -i testsrc2=s=160x90:r=25:d=1.5 -map 1:v \
         -map 0:a -c:v libx264 -preset ultrafast -g 25 -c:a aac",
        &late,
    );
    let fixture = TestStore::with(&[&late]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
    });
    let mut player = Player::connect(&server);
    let transports = [(0, "0-1"), (1, "2-3")];
    let transports = transports
        .map(|(track, channels)| (track, format!("RTP/AVP/TCP;unicast;interleaved={channels}")));
    player.set_up("rtsp-late", &transports);
    let reply = player.ask("PLAY", "/t/rtsp-late/", "Range: npt=0-2\r\n");
    assert!(reply.field("Range").starts_with("npt=0.000-"), "{reply:?}");
    player.read_to_goodbye(&[1, 3]);
    let sent = |channel: u8| player.packets.get(&channel).map_or(0, Vec::len);
    // 43 packets of sound in a second, and half a second of pictures.
    assert!((80..=90).contains(&sent(2)), "{}", sent(2));
    assert!(sent(0) >= 12, "{}", sent(0));
}

#[test]
fn packets_over_udp_arrive_and_silence_ends_the_session() {
    let fixture = TestStore::with(&[&media().film]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        // Longer than a second of film takes to come on a slow machine.
        config.rtsp_timeout = Duration::from_secs(6);
    });
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    for socket in &sockets {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    let [rtp, rtcp] = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
    let mut player = Player::connect(&server);
    // The address that packets go to is the connection's, whatever is asked for.
    let transport = format!("RTP/AVP;unicast;destination=192.0.2.1;client_port={rtp}-{rtcp}");
    player.set_up("film", &[(0, transport)]);
    assert_eq!(player.ask("PLAY", "/t/film/", "Range: npt=0-1\r\n").status, 200);
    let mut packet = [0; 2048];
    let mut received: Vec<Vec<u8>> = Vec::new();
    let receive = |socket: &UdpSocket, packet: &mut [u8]| loop {
        match socket.recv(packet) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => break received.expect("a packet"),
        }
    };
    let length = receive(&sockets[1], &mut packet);
    assert_eq!((packet[1], length > 28), (200, true));
    loop {
        let length = receive(&sockets[0], &mut packet);
        received.push(packet[..length].to_vec());
        if received.iter().filter(|packet| packet[1] & 0x80 != 0).count() == 25 {
            break;
        }
    }
    let wanted = nal_units(&media().film);
    let units = received_units(&received);
    assert!(!units.is_empty() && wanted.starts_with(&units), "as stored, without a gap");
    // Played again, and never heard of: the session ends while it plays.
    let slowly = "Range: npt=0-\r\nScale: 0.25\r\n";
    assert_eq!(player.ask("PLAY", "/t/film/", slowly).status, 200);
    eventually("the session has timed out", || {
        let metrics = server.client().get("/metrics");
        metrics.text().contains("tenuto_rtsp_session_timeouts_total 1")
    });
    assert_balanced(&server);
}

/// The payloads that come within a second of the last one.
fn datagrams(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut packet = [0; 2048];
    let mut received = Vec::new();
    loop {
        match socket.recv(&mut packet) {
            Ok(length) => received.push(packet[..length].to_vec()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The first one comes after the start-up.
            Err(_) if received.is_empty() => {}
            Err(_) => return received,
        }
    }
}

#[test]
fn a_transport_stream_goes_alone_over_udp_and_is_marked_where_it_goes_on_elsewhere() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let mut player = Player::connect(&server);
    let described = player.ask("DESCRIBE", "/t/film/ts", "");
    let lines = "m=video 0 RTP/AVP 33\r\na=rtpmap:33 MP2T/90000\r\na=control:ts\r\n";
    assert!(described.body.ends_with(lines), "{}", described.body);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let port = socket.local_addr().unwrap().port();
    let transport = format!("Transport: MP2T/H2221/UDP;unicast;client_port={port}\r\n");
    let reply = player.ask("SETUP", "/t/film", &transport);
    let described = reply.field("Transport").to_owned();
    assert!(described.starts_with(&format!("MP2T/UDP;unicast;client_port={port};")), "{reply:?}");
    let tcp = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
    assert_eq!(player.ask("SETUP", "/t/film/trackID=0", tcp).status, 455, "the only stream");
    for (range, played, is_discontinuous) in
        [("npt=2.4-3", "npt=2.000-3.000", false), ("npt=0-1", "npt=0.000-1.000", true)]
    {
        let reply = player.ask("PLAY", "/t/film/", &format!("Range: {range}\r\nScale: 2\r\n"));
        assert_eq!((reply.field("Range"), reply.field("Scale")), (played, "1.000"), "{reply:?}");
        let received = datagrams(&socket);
        assert!(received.iter().all(|it| it.len() % 188 == 0 && it.len() <= 7 * 188));
        let mut between_tables: Vec<Vec<u8>> = Vec::new();
        for (number, packet) in received.concat().chunks(188).enumerate() {
            if packet[1..3] == [0x40, 0] {
                between_tables.push(Vec::new());
            }
            let part = between_tables.last_mut().expect("begins with tables");
            part.extend_from_slice(packet);
            if number == 2 {
                // The flag of the first clock, without which the checks take it.
                assert_eq!(packet[5] & 0x80 != 0, is_discontinuous);
                let at = part.len() - 188 + 5;
                part[at] &= 0x7f;
            }
        }
        let streams = testkit::ts::check(&between_tables).unwrap();
        let pictures = &streams[0].packets;
        assert!(pictures[0].random_access && (25..=27).contains(&pictures.len()));
        assert!(!streams[1].packets.is_empty());
    }
    drop(player);
    assert_balanced(&server);
}

#[test]
fn requests_come_through_a_tunnel_of_the_same_player_only() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let open = |head: &str| {
        let mut player = Player::connect(&server);
        player.send(format!("{head} /t/film HTTP/1.0\r\nx-sessioncookie: c1\r\n\r\n").as_bytes());
        player
    };
    let status = |player: &mut Player| {
        let reply = player.read_reply();
        assert_eq!(reply.field("Connection"), "close", "{reply:?}");
        reply.status
    };
    assert_eq!(status(&mut open("POST")), 400, "no GET has this cookie");
    let mut replies = open("GET");
    assert_eq!(status(&mut replies), 200);
    assert_eq!(status(&mut open("GET")), 400, "the cookie is in use");
    let address = replies.address;
    let mut requests = open("POST");
    let message = |method: &str, path: &str, number: u32, fields: &str| {
        let head = format!("{method} rtsp://{address}{path} RTSP/1.0\r\nCSeq: {number}\r\n");
        STANDARD.encode(format!("{head}{fields}\r\n"))
    };
    let tcp = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
    let sent =
        [message("OPTIONS", "/t/film", 1, ""), message("SETUP", "/t/film/trackID=0", 2, tcp)];
    // In parts that end anywhere.
    sent.concat().as_bytes().chunks(7).for_each(|part| requests.send(part));
    assert_eq!(replies.read_reply().field("CSeq"), "1");
    let reply = replies.read_reply();
    assert_eq!((reply.status, reply.field("CSeq")), (200, "2"));
    let session = format!("Session: {}\r\nRange: npt=0-1\r\n", reply.field("Session"));
    // Another connection for requests, in place of the first.
    drop(requests);
    let mut requests = open("POST");
    requests.send(message("PLAY", "/t/film/", 3, &session).as_bytes());
    assert_eq!(replies.read_reply().status, 200);
    replies.read_to_goodbye(&[1]);
    assert!(!replies.packets[&0].is_empty());
    requests.send(b"*");
    assert!(replies.read().is_none() && requests.read().is_none(), "both connections end");
    assert_balanced(&server);
}

#[test]
fn a_refusal_is_453_with_the_words_and_the_time_of_http() {
    let fixture = TestStore::with(&[&media().film]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        config.network = Some(BitRate(9_500_000));
        config.wait = Duration::ZERO;
    });
    // All ask at once: on a slow machine the first film would be over before the last player asks.
    let mut players: Vec<Player> = (0..12).map(|_| Player::connect(&server)).collect();
    for player in &mut players {
        player.set_up("film", &[interleaved(0), interleaved(1)]);
    }
    for player in &mut players {
        player.request("PLAY", "/t/film/", "");
    }
    let answered = players.into_iter().map(|mut player| {
        let reply = player.answer();
        (player, reply)
    });
    let (admitted, mut refused): (Vec<_>, Vec<_>) =
        answered.partition(|(_, reply)| reply.status == 200);
    let (mut refused, reply) =
        refused.pop().expect("12 viewers of 1.5 Mb/s do not fit in 9.5 Mb/s");
    assert_eq!(reply.status, 453, "{reply:?}");
    assert!(reply.field("Retry-After").parse::<u32>().is_ok(), "{reply:?}");
    let body: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    let words = ["error", "cause", "resource"].map(|name| body[name].as_str().unwrap().to_owned());
    assert_eq!(words, ["refused", "sessions", "network"], "as over HTTP");
    // The session that was refused is still set up, and plays when there is room.
    assert!(!admitted.is_empty());
    drop(admitted);
    eventually("there is room", || refused.ask("PLAY", "/t/film/", "").status == 200);
    drop(refused);
    assert_balanced(&server);
}

#[test]
fn a_refused_speed_or_place_leaves_the_session_playing() {
    let fixture = TestStore::with(&[&media().film]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        // Enough for the pictures, with a read in the start-up time, and for no higher speed.
        config.network = Some(BitRate(4_500_000));
        config.segment = Duration::from_secs(1);
        config.read_size = Some(units::ByteCount::kib(256));
        config.wait = Duration::ZERO;
    });
    let mut player = Player::connect(&server);
    player.set_up("film", &[interleaved(0)]);
    let reply = player.ask("PLAY", "/t/film/", "Range: npt=0-3\r\n");
    assert_eq!(reply.status, 200, "{reply:?}");
    eventually("a packet comes", || player.read().is_some_and(|reply| reply.is_none()));
    for fields in ["Scale: 32\r\n", "Range: npt=now-\r\nScale: 64\r\n", "Scale: 32\r\n"] {
        let reply = player.ask("PLAY", "/t/film/", fields);
        assert_eq!(reply.status, 453, "{reply:?}");
        eventually("its session is there", || server.status("/sessions") == 1);
    }
    // All pictures come, each once, as if nothing had been asked for.
    player.read_to_goodbye(&[1]);
    let pictures = std::mem::take(&mut player.packets).remove(&0).unwrap();
    let numbers = pictures.iter().map(|p| u16::from_be_bytes([p[2], p[3]])).collect::<Vec<_>>();
    assert!(numbers.windows(2).all(|two| two[1] == two[0].wrapping_add(1)), "{numbers:?}");
    let first = timestamp(&pictures[0]);
    let marked = pictures.iter().filter(|p| p[1] & 0x80 != 0);
    let shown: Vec<u32> = marked.map(|p| timestamp(p).wrapping_sub(first) / 3600).collect();
    assert!((0..75).all(|picture| shown.contains(&picture)), "{shown:?}");
    drop(player);
    assert_balanced(&server);
}

#[test]
fn each_bad_request_has_its_status_and_reserves_nothing() {
    let fixture = TestStore::with(&[&media().film, &media().large]);
    let server = serve(&fixture);
    let tcp = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
    for (method, path, fields, status) in [
        ("DESCRIBE", "/t/nothing", "", 404),
        ("DESCRIBE", "/film", "", 404),
        ("DESCRIBE", "/t/film", "Accept: text/html\r\n", 406),
        ("DESCRIBE", "/t/film", "Accept: application/sdp;q=0\r\n", 406),
        ("DESCRIBE", "/t/film", "Accept: text/html, APPLICATION/SDP\r\n", 200),
        ("DESCRIBE", "/t/film", "Accept-Language: en\r\nAccept-Encoding: gzip\r\n", 200),
        ("DESCRIBE", "/t/large", "", 415),
        ("DESCRIBE", "/t/film", "Require: com.example\r\n", 551),
        ("DESCRIBE", "/t/none", "Require: onvif-replay\r\n", 404),
        ("SETUP", "/t/film/trackID=0", "", 400),
        ("SETUP", "/t/film/trackID=0", "Transport: RTP/AVP;multicast\r\n", 461),
        ("SETUP", "/t/film/trackID=9", tcp, 404),
        ("SETUP", "/t/film/trackID=0", "Transport: MP2T/UDP;client_port=4000\r\n", 461),
        ("DESCRIBE", "/t/large/ts", "", 415),
        ("SETUP", "/t/film", tcp, 459),
        ("PLAY", "/t/film", "", 454),
        ("PLAY", "/t/film", "Session: 0\r\n", 454),
        ("PAUSE", "/t/film", "", 454),
        ("TEARDOWN", "/t/film", "", 454),
        ("GET_PARAMETER", "/t/film", "Content-Length: 4\r\n", 451),
        ("RECORD", "/t/film", "", 405),
        ("DANCE", "/t/film", "", 501),
    ] {
        let mut player = Player::connect(&server);
        let fields = format!("{fields}{}", if status == 451 { "\r\nabcd" } else { "" });
        let reply = match status {
            451 => {
                player.send(
                    format!("{method} rtsp://a{path} RTSP/1.0\r\nCSeq: 1\r\n{fields}").as_bytes(),
                );
                player.read_reply()
            }
            _ => player.ask(method, path, &fields),
        };
        assert_eq!(reply.status, status, "{method} {path} {fields}: {reply:?}");
    }
    let mut player = Player::connect(&server);
    player.set_up("film", &[interleaved(0)]);
    // The channels of another track are not given a second time; its own are.
    for (track, wanted, given) in [(1, "0-1", "2-3"), (1, "1-2", "2-3"), (0, "0-1", "0-1")] {
        let fields = format!("Transport: RTP/AVP/TCP;unicast;interleaved={wanted}\r\n");
        let reply = player.ask("SETUP", &format!("/t/film/trackID={track}"), &fields);
        let transport = reply.field("Transport");
        assert!(transport.contains(&format!(";interleaved={given};")), "{wanted}: {transport}");
    }
    for (method, path, fields, status) in [
        ("PLAY", "/t/film/", "Range: npt=7-\r\n", 457),
        ("PLAY", "/t/film/", "Range: npt=3-2\r\n", 457),
        ("PLAY", "/t/film/", "Range: smpte=0:1-\r\n", 457),
        ("PLAY", "/t/film/", "Scale: -1\r\n", 451),
        ("PLAY", "/t/film/", "Scale: 0\r\n", 451),
        ("PLAY", "/t/film/", "Scale: fast\r\n", 400),
        ("PLAY", "/t/film/trackID=0", "", 460),
        ("SETUP", "/t/large/trackID=0", tcp, 404),
        ("GET_PARAMETER", "/t/film/", "", 200),
        ("PLAY", "/t/film/", "", 200),
        ("SETUP", "/t/film/trackID=0", tcp, 455),
        ("TEARDOWN", "/t/film/", "", 200),
    ] {
        let reply = player.ask(method, path, fields);
        assert_eq!(reply.status, status, "{method} {path} {fields}: {reply:?}");
    }
    assert_balanced(&server);
}

#[test]
fn a_title_is_described_and_set_up_with_the_token_that_opens_it() {
    let fixture = TestStore::with(&[&media().film]);
    let keys = fixture.directory.join("keys.json");
    new_key_file(&keys).unwrap();
    let token = |title: &str, max_height| {
        let title = Some(TitlePatterns::One(title.to_owned()));
        let limits = ViewerLimits { max_height, ..ViewerLimits::default() };
        let claims = TokenClaims { exp: u64::MAX, title, limits, ..TokenClaims::default() };
        claims.sign(&keys).unwrap()
    };
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        config.tokens = Some(keys.clone());
    });
    let (good, other) = (token("film", Some(10_000)), token("other", None));
    let low = token("film", Some(10));
    for (query, field, status) in [
        ("", "", 401),
        ("?token=x", "", 401),
        (&*format!("?token={other}"), "", 403),
        (&*format!("?token={low}"), "", 403),
        (&*format!("?token={good}"), "", 200),
        ("", &*format!("Authorization: Bearer {good}\r\n"), 200),
    ] {
        let mut player = Player::connect(&server);
        let reply = player.ask("DESCRIBE", &format!("/t/film{query}"), field);
        assert_eq!(reply.status, status, "{query} {field}: {reply:?}");
        assert_eq!(reply.field("WWW-Authenticate").is_empty(), status != 401);
        // The addresses in the description have no token.
        let tcp = "Transport: RTP/AVP/TCP;interleaved=0-1\r\n";
        let reply = player.ask("SETUP", "/t/film/trackID=0", tcp);
        assert_eq!(reply.status == 200, status == 200, "{query} {field}: {reply:?}");
    }
}

#[test]
fn bytes_that_are_no_requests_end_their_connection_alone() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let long = "x".repeat(20_000);
    for (sent, status) in [
        ("BLAH\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("OPTIONS * RTSP/1.0\r\n\r\n".to_owned(), 400),
        ("OPTIONS * RTSP/2.0\r\nCSeq: 1\r\n\r\n".to_owned(), 505),
        (format!("OPTIONS * RTSP/1.0\r\nCSeq: 7\r\nX: {long}\r\n\r\n"), 413),
        // A body that cannot be taken is not waited for.
        ("OPTIONS * RTSP/1.0\r\nCSeq: 7\r\nContent-Length: 99999\r\n\r\n".to_owned(), 413),
        (
            "OPTIONS * RTSP/1.0\r\nCSeq: 7\r\nContent-Length: 99999999\r\n\r\n".to_owned() + &long,
            413,
        ),
        ("\r\n$\0\0\u{4}abcdOPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".to_owned(), 200),
    ] {
        let mut player = Player::connect(&server);
        player.send(sent.as_bytes());
        let reply = player.read_reply();
        assert_eq!(reply.status, status, "{sent:.40}: {reply:?}");
        if status == 413 {
            assert_eq!(reply.field("CSeq"), "7");
            assert!(player.read().is_none(), "the connection ends");
        }
    }
    assert_eq!(Player::connect(&server).ask("OPTIONS", "/t/film", "").status, 200);
    assert_balanced(&server);
}

#[test]
fn a_message_that_comes_slowly_and_connections_over_the_limit_are_closed() {
    let fixture = TestStore::with(&[]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        config.head_timeout = Duration::from_millis(500);
        config.max_client_connections = Some(2);
    });
    let mut slow = Player::connect(&server);
    slow.send(b"OPTIONS * RTSP/1.0\r\nCSeq:");
    assert!(slow.read().is_none(), "closed");
    let mut connected = [Player::connect(&server), Player::connect(&server)];
    for player in &mut connected {
        assert_eq!(player.ask("OPTIONS", "/t/film", "").status, 200);
    }
    assert!(Player::connect(&server).read().is_none(), "one too many");
}

#[test]
fn players_that_read_nothing_or_vanish_leave_nothing_behind() {
    let fixture = TestStore::with(&[&media().film, &media().heavy]);
    let server = fixture.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        config.send_timeout = Duration::from_secs(1);
    });
    for _ in 0..3 {
        let mut leaver = Player::connect(&server);
        leaver.set_up("film", &[interleaved(0), interleaved(1)]);
        assert_eq!(leaver.ask("PLAY", "/t/film/", "").status, 200);
        // A second PLAY whose answer nobody waits for.
        leaver.send(b"PLAY rtsp://a/t/film/ RTSP/1.0\r\nCSeq: 9\r\nRange: npt=1-\r\n");
        leaver.send(format!("Session: {}\r\n\r\n", leaver.session).as_bytes());
    }
    assert_balanced(&server);
    let mut stalled = Player::connect(&server);
    stalled.set_up("heavy", &[interleaved(0)]);
    assert_eq!(stalled.ask("PLAY", "/t/heavy/", "").status, 200);
    eventually("the send timeout is counted", || {
        let metrics = server.client().get("/metrics");
        metrics.text().contains("tenuto_rtsp_send_timeouts_total 1")
    });
    assert_balanced(&server);
}

#[test]
fn over_tls_packets_go_with_the_connection_only_and_a_request_in_the_clear_is_told() {
    let store = TestStore::with(&[&media().film]);
    let authority = Authority::new(&store.directory);
    let server = store.serve_with(|config| {
        config.rtsp = Some("127.0.0.1:0".parse().unwrap());
        config.tls = Some(authority.identity("server", 30));
    });
    let mut clear = Player::connect(&server);
    clear.send(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    let reply = clear.read_reply();
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("rtsps://"), "{}", reply.body);
    assert!(clear.read().is_none(), "the connection ends");

    let address = server.server.rtsp_address().unwrap();
    let mut config = authority.config(&TLS13);
    config.alpn_protocols.clear();
    let mut player = connect(address, &Arc::new(config));
    let mut ask = |method: &str, path: &str, fields: &str| {
        let request =
            format!("{method} rtsps://{address}{path} RTSP/1.0\r\nCSeq: 1\r\n{fields}\r\n");
        player.send(request.as_bytes());
        player.read_response(true).expect("a reply")
    };
    let described = ask("DESCRIBE", "/t/film", "");
    let base = described.field("content-base").unwrap();
    assert!(described.status == 200 && base.starts_with("rtsps://"), "{base}");
    let path = "/t/film/trackID=0";
    for (spec, status) in
        [("RTP/AVP;unicast;client_port=5000-5001", 461), ("RTP/AVP/TCP;interleaved=0-1", 200)]
    {
        let reply = ask("SETUP", path, &format!("Transport: {spec}\r\n"));
        assert_eq!(reply.status, status, "{spec}: {}", reply.text());
    }
}

/// What the header extension of ONVIF says: seconds and fraction of its NTP time, flags, number.
fn replay_extension(packet: &[u8]) -> (u32, u32, u8, u8) {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    assert_eq!((packet[0], word(12)), (0x90, 0xabac_0003), "each packet has the extension");
    (word(16), word(20), packet[24], packet[25])
}

/// The packets of the last picture alone are marked as those of the end of the track.
fn assert_only_the_last_is_marked(packets: &[Vec<u8>], what: &str) {
    let last = timestamp(packets.last().unwrap());
    for packet in packets {
        let marks = if timestamp(packet) == last { 0x50 } else { 0 };
        assert_eq!(replay_extension(packet).2 & 0x50, marks, "{what}");
    }
}

/// Packets without the extension, as other players have them.
fn plain(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().map(|packet| [&packet[..12], &packet[28..]].concat()).collect()
}

#[test]
fn recordings_are_replayed_as_onvif_has_it() {
    let fixture = TestStore::with(&[&media().film]);
    let server = serve(&fixture);
    let mut player = Player::connect(&server);
    player.set_up("film", &[interleaved(0), interleaved(1)]);
    let wanted = "Require: onvif-replay\r\nImmediate: yes\r\nRate-Control: no\r\n";
    for (fields, status) in [
        ("Frames: some\r\n", 400),
        ("Frames: intra/x\r\n", 400),
        ("Rate-Control: slowly\r\n", 400),
        ("Immediate: now\r\n", 400),
        ("Range: clock=20261332T000000Z-\r\n", 457),
        ("Range: clock=29990101T000000Z-\r\n", 457),
        ("Range: clock=-20261126T000000Z\r\n", 457),
        ("Require: onvif-replay, com.example\r\n", 551),
    ] {
        assert_eq!(player.ask("PLAY", "/t/film/", fields).status, status, "{fields}");
    }
    assert_eq!(server.status("/admitted"), 0);
    let mut play = |fields: &str, channels: &[u8]| {
        let reply = player.ask("PLAY", "/t/film/", &format!("{wanted}{fields}"));
        assert_eq!(reply.status, 200, "{fields}: {reply:?}");
        player.read_to_goodbye(channels);
        let number = u8::try_from(player.number).unwrap();
        (reply, std::mem::take(&mut player.packets), number)
    };
    // All of it, as fast as it is taken.
    let (_, mut packets, number) = play("Range: npt=0-\r\nFrames: all\r\n", &[1, 3]);
    let pictures = packets.remove(&0).unwrap();
    assert!(received_units(&plain(&pictures)) == nal_units(&media().film));
    let (seconds, fraction, flags, last) = replay_extension(&pictures[0]);
    assert_eq!((flags, last), (0xa0, number), "decoding starts here, and nothing was before");
    let (_, _, flags, _) = replay_extension(pictures.last().unwrap());
    assert_eq!(flags, 0x50, "the last of the track");
    let sound = packets.remove(&2).unwrap();
    assert_eq!(replay_extension(&sound[0]).2, 0xa0);
    assert_eq!(replay_extension(&sound[1]).2, 0x80);
    // Key frames: all, and 2.5 s from each other at least.
    for (fields, times) in [
        ("Range: npt=0-\r\nFrames: intra\r\n", &[0, 1, 2, 3, 4, 5][..]),
        ("Range: npt=0-\r\nFrames: intra/2500\r\n", &[0, 3]),
    ] {
        let (_, packets, _) = play(fields, &[1, 3]);
        assert!(!packets.contains_key(&2), "without sound, whose end is told");
        let shown: Vec<u32> = packets[&0]
            .iter()
            .filter(|packet| packet[1] & 0x80 != 0)
            .map(|packet| replay_extension(packet).0 - seconds)
            .collect();
        assert_eq!(shown, times, "{fields}");
        assert!(packets[&0].iter().all(|packet| replay_extension(packet).2 & 0x80 != 0));
        assert_only_the_last_is_marked(&packets[&0], fields);
    }
    let (_, packets, _) = play("Range: npt=0-\r\nFrames: predicted\r\n", &[1, 3]);
    assert_only_the_last_is_marked(&packets[&0], "predicted");
    let units = received_units(&plain(&packets[&0]));
    let slices = units.iter().filter(|unit| matches!(unit[0] & 0x1f, 1 | 5));
    let (kept, dropped): (Vec<_>, Vec<_>) = slices.partition(|unit| unit[0] & 0x60 != 0);
    assert!(kept.len() > 6 && dropped.is_empty(), "{} and {}", kept.len(), dropped.len());
    // From a time of day on: 2.4 s lies in the group of pictures that begins at 2 s.
    let at = |seconds: u32| {
        let unix = u64::from(seconds) - 2_208_988_800;
        let mut date = Command::new("date");
        date.args(["-u", "+%Y%m%dT%H%M%S", "-d", &format!("@{unix}")]);
        let told = date.output().expect("date runs").stdout;
        String::from_utf8(told).unwrap().trim().to_owned()
    };
    let thousandths = ((u64::from(fraction) + 1) * 1000) >> 32;
    let range = format!("Range: clock={}.4Z-\r\nFrames: intra\r\n", at(seconds + 2));
    let (reply, packets, _) = play(&range, &[1, 3]);
    let began = format!("clock={}.{thousandths:03}Z-", at(seconds + 2));
    assert!(reply.field("Range").starts_with(&began), "{began}: {reply:?}");
    assert_eq!(replay_extension(&packets[&0][0]).0, seconds + 2);
    drop(player);
    assert_balanced(&server);
    assert_eq!(server.status("/deadline_misses"), 0);
}

#[test]
fn a_session_ends_with_its_server_and_the_next_one_has_the_port() {
    let fixture = TestStore::with(&[&media().film]);
    let config = ServerConfig { rtsp: "127.0.0.1:0".parse().ok(), ..fixture.config() };
    let serving = TestServer { server: Server::start(config.clone()).unwrap() };
    let mut player = Player::connect(&serving);
    player.set_up("film", &[interleaved(0)]);
    assert_eq!(player.ask("PLAY", "/t/film", "").status, 200);
    let address = player.address;
    let handover = serving.server.hand_over().unwrap();
    assert_eq!(handover.sessions(), 0);
    while player.read().is_some() {}
    let next = TestServer { server: Server::take_over(handover, config).unwrap() };
    assert_eq!(next.server.rtsp_address(), Some(address));
    assert_eq!(Player::connect(&next).ask("OPTIONS", "/t/film", "").status, 200);
}
