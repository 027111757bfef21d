//! A viewer against scripted servers: what it does when `PLAY` is refused after a pause, and when
//! the node of a director is lost before it plays.

use super::going_on::FIRST_TRIES;
use crate::{ClientError, OpenTitle, Received, RtspTransport, TitleOptions};
use player::PlayerOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// An answer to `PLAY`: a status, fields, and a body.
type Answer<'a> = (u16, &'a str, &'a str);

/// How often the viewer pauses and resumes; the answers to `PLAY`; the LDUs received, or the
/// resource of the refusal, or `error`; how often the viewer was put off.
type Row<'a> = (usize, &'a [Answer<'a>], Result<&'a str, &'a str>, u32);

/// The packets of a track of sound, and the end: two LDUs, and goodbye.
const MEDIA: [&[u8]; 3] = [
    b"$\0\0\x0e\x80\x60\0\0\0\0\0\0\0\0\0\x09ab",
    b"$\0\0\x0e\x80\x60\0\x01\0\0\x03\x84\0\0\0\x09cd",
    b"$\x01\0\x08\x81\xcb\0\x01\0\0\0\x09",
];

/// Answers the requests of one connection, those for `PLAY` one after the other so, and returns
/// their methods. The media follows the last answer.
fn serve(listener: &TcpListener, plays: &[Answer<'_>]) -> Vec<String> {
    // The first connection only tries the address.
    let [_, mut socket] = [(); 2].map(|()| listener.accept().unwrap().0);
    let requests = BufReader::new(TcpStream::try_clone(&socket).unwrap());
    let (mut methods, mut plays) = (Vec::new(), plays.iter());
    let mut sequence = String::new();
    for line in requests.lines().map_while(Result::ok) {
        if line.ends_with("RTSP/1.0") {
            methods.push(line.split(' ').next().unwrap_or_default().to_owned());
        } else if let Some(number) = line.strip_prefix("CSeq: ") {
            number.clone_into(&mut sequence);
        } else if line.is_empty() {
            let method = methods.last().map_or("", String::as_str);
            let description = "v=0\r\nm=audio 0 RTP/AVP 96\r\na=rtpmap:96 L16/90000\r\n";
            let (status, fields, body) = match method {
                "DESCRIBE" => (200, "", description),
                "SETUP" => (200, "Session: 1\r\n", ""),
                "PLAY" => *plays.next().unwrap(),
                _ => (200, "", ""),
            };
            let length = body.len();
            let head = format!("RTSP/1.0 {status} x\r\nCSeq: {sequence}\r\n{fields}");
            let answer = format!("{head}Content-Length: {length}\r\n\r\n{body}");
            // A viewer that leaves takes no answer.
            let _ = socket.write_all(answer.as_bytes());
            if method == "PLAY" && plays.len() == 0 && status == 200 {
                MEDIA.iter().for_each(|packet| socket.write_all(packet).unwrap());
            }
        }
    }
    methods
}

#[test]
fn a_resumption_that_is_refused_is_repeated_when_the_server_says() {
    const OK: Answer<'_> = (200, "", "");
    const NOW: &str = "Retry-After: 0\r\n";
    const NEVER: &str = r#"{"resource": "disk", "message": "too slow", "retry": "never"}"#;
    let rows: [Row<'_>; 5] = [
        (1, &[OK, OK], Ok("ab cd"), 0),
        (1, &[OK, (453, NOW, ""), (500, NOW, ""), (503, NOW, ""), OK], Ok("ab cd"), 3),
        (2, &[OK, (453, NOW, ""), OK], Ok("ab cd"), 1),
        (1, &[OK, (453, NOW, NEVER)], Err("disk"), 1),
        (1, &[OK, (454, NOW, "")], Err("error"), 0),
    ];
    for (pauses, plays, wanted, put_off) in rows {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("rtsp://{}/film", listener.local_addr().unwrap());
        thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener, plays));
            let player =
                PlayerOptions { start: Duration::from_millis(20), ..PlayerOptions::default() };
            let options =
                TitleOptions { player, rtsp: RtspTransport::Tcp, ..TitleOptions::default() };
            let mut title = OpenTitle::open(&url, options).unwrap();
            for _ in 0..pauses {
                title.pause();
                title.resume();
            }
            let mut found = Vec::new();
            let received = loop {
                match title.receive(Duration::from_secs(30)) {
                    Ok(Received::Ldu(ldu)) => found.push(String::from_utf8(ldu.bytes).unwrap()),
                    Ok(Received::End) => break Ok(found.join(" ")),
                    Ok(Received::Nothing) => panic!("{plays:?}: nothing for 30 s"),
                    Err(ClientError::Refused { refusal, .. }) => break Err(refusal.resource),
                    Err(_) => break Err("error".to_owned()),
                }
            };
            let received = received.as_deref().map_err(String::as_str);
            assert_eq!(received, wanted, "{plays:?}");
            assert_eq!(title.put_off(), put_off, "{plays:?}");
            drop(title);
            let asked = server.join().unwrap();
            let asked: Vec<_> = asked.iter().filter(|method| *method == "PLAY").collect();
            assert_eq!(asked.len(), plays.len(), "{plays:?}");
        });
    }
}

/// Answers the requests of one connection with 302 to this address, but for `OPTIONS`; without one
/// the connection ends at the first request. Returns the first lines of the requests.
fn redirect(mut socket: TcpStream, to: Option<&str>) -> Vec<String> {
    let requests = BufReader::new(TcpStream::try_clone(&socket).unwrap());
    let (mut asked, mut sequence) = (Vec::new(), String::new());
    for line in requests.lines().map_while(Result::ok) {
        if let Some(request) = line.strip_suffix(" RTSP/1.0") {
            asked.push(request.to_owned());
        } else if let Some(number) = line.strip_prefix("CSeq: ") {
            number.clone_into(&mut sequence);
        } else if line.is_empty() {
            let Some(to) = to else { break };
            let is_options = asked.last().is_some_and(|request| request.starts_with("OPTIONS"));
            let head = match is_options {
                true => "200 OK\r\n".to_owned(),
                false => format!("302 Found\r\nLocation: {to}\r\n"),
            };
            let answer = format!("RTSP/1.0 {head}CSeq: {sequence}\r\nContent-Length: 0\r\n\r\n");
            socket.write_all(answer.as_bytes()).unwrap();
        }
    }
    asked
}

#[test]
fn a_viewer_whose_node_is_lost_before_it_plays_asks_the_director_again() {
    let [director, lost, node] = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [director_at, lost_at, node_at] =
        [&director, &lost, &node].map(|it| format!("rtsp://{}/film", it.local_addr().unwrap()));
    let accept = |listener: &TcpListener| listener.accept().unwrap().0;
    // The second node is not lost, or all are and the viewer gives up.
    for is_there in [true, false] {
        thread::scope(|scope| {
            let directed = scope.spawn(|| {
                drop(accept(&director));
                let first = redirect(accept(&director), Some(&format!("{lost_at}?ticket=a")));
                let second = if is_there { &node_at } else { &lost_at };
                let tries = if is_there { 1 } else { FIRST_TRIES };
                let again = (0..tries).map(|_| redirect(accept(&director), Some(second)));
                let again: Vec<Vec<String>> = again.collect();
                (first, again)
            });
            let losing = scope.spawn(|| {
                // The first connection to each server only tries the address.
                drop(accept(&lost));
                let times = if is_there { 1 } else { 1 + usize::from(FIRST_TRIES) };
                (0..times).for_each(|_| drop(redirect(accept(&lost), None)));
            });
            let serving = is_there.then(|| scope.spawn(|| serve(&node, &[(200, "", "")])));
            let player =
                PlayerOptions { start: Duration::from_millis(20), ..PlayerOptions::default() };
            let options =
                TitleOptions { player, rtsp: RtspTransport::Tcp, ..TitleOptions::default() };
            let opened = OpenTitle::open(&director_at, options);
            let mut found = Vec::new();
            if let Ok(mut title) = opened {
                while let Ok(Received::Ldu(ldu)) = title.receive(Duration::from_secs(30)) {
                    found.push(String::from_utf8(ldu.bytes).unwrap());
                }
            }
            assert_eq!(found, if is_there { vec!["ab", "cd"] } else { vec![] });
            let (first, again) = directed.join().unwrap();
            assert_eq!(
                first,
                [format!("OPTIONS {director_at}"), format!("DESCRIBE {director_at}")]
            );
            assert_eq!(again[0], [format!("DESCRIBE {director_at}?ticket=a")]);
            losing.join().unwrap();
            if let Some(serving) = serving {
                assert_eq!(serving.join().unwrap()[..3], ["DESCRIBE", "SETUP", "PLAY"]);
            }
        });
    }
}
