//! A viewer of RTSP whose seeks and changes of speed are refused, with a scripted server that sends
//! frames in the connection. What the frames contain is not looked at.

use super::{ViewerOutcome, play, verdicts};
use player::PlayerOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenuto_client::PlayOptions;

/// Serves the titles `/t/STATUS`: each `PLAY` after the first is answered with that status. The
/// film goes on until two of them have been answered, and for some frames more.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Answers the requests of one connection until it is closed.
fn answer(mut stream: TcpStream) {
    let out = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let plays = Arc::new(AtomicUsize::new(0));
    let mut input = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut input) {
        let field = |name: &str| {
            let line = request.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let is_play = request.starts_with("PLAY");
        let place = if is_play { plays.fetch_add(1, Ordering::SeqCst) } else { 0 };
        let path = request.split_whitespace().nth(1).unwrap_or_default();
        let status = match path.rsplit('/').next() {
            Some(status) if place > 0 => status.to_owned(),
            _ => "200".to_owned(),
        };
        let body = if request.starts_with("DESCRIBE") { DESCRIPTION } else { "" };
        let reply = format!(
            "RTSP/1.0 {status} .\r\nCSeq: {}\r\nSession: 1\r\nContent-Length: {}\r\n\r\n{body}",
            field("CSeq: "),
            body.len()
        );
        out.lock().unwrap().write_all(reply.as_bytes()).unwrap();
        if is_play && place == 0 {
            let (out, plays) = (Arc::clone(&out), Arc::clone(&plays));
            std::thread::spawn(move || send_film(&out, &plays));
        }
    }
}

/// The next request; what else the viewer sends in the connection is passed over.
fn next_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let [b'$', _, high, low, ..] = input[..] {
            let length = 4 + usize::from(u16::from_be_bytes([high, low]));
            if input.len() >= length {
                input.drain(..length);
                continue;
            }
        } else if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let request = input.drain(..end + 4).collect();
            return String::from_utf8(request).ok();
        }
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(len) if len > 0 => input.extend_from_slice(&some[..len]),
            _ => return None,
        }
    }
}

/// One packet for each frame of 40 ms, and a goodbye.
fn send_film(out: &Mutex<TcpStream>, plays: &AtomicUsize) {
    let mut left = FRAMES_AFTER;
    for number in 0_u16.. {
        let stamp = 3600 * u32::from(number);
        let packet = [
            &[b'$', 0, 0, 16, 0x80, 0xe0][..],
            &number.to_be_bytes(),
            &stamp.to_be_bytes(),
            &[0, 0, 0, 9],
            b"data",
        ];
        if out.lock().unwrap().write_all(&packet.concat()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(40));
        if plays.load(Ordering::SeqCst) == 3 {
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    let goodbye = [b'$', 1, 0, 8, 0x81, 203, 0, 1, 0, 0, 0, 9];
    let _ = out.lock().unwrap().write_all(&goodbye);
}

#[test]
fn a_refused_seek_or_speed_leaves_a_viewer_of_rtsp_as_it_was() {
    let address = serve();
    // The answer; seeks and speeds that are refused; changes that were waited for.
    let rows = [(453, 1, 0), (454, 1, 0), (457, 1, 0), (503, 1, 0), (200, 0, 2)];
    let options = PlayOptions {
        urls: rows.iter().map(|(status, ..)| format!("rtsp://{address}/t/{status}")).collect(),
        viewers: 5,
        behaviour: "200ms seek 90s; 600ms speed 2".parse().unwrap(),
        player: PlayerOptions {
            start: Duration::ZERO,
            dead_band: Duration::from_secs(3),
            ..PlayOptions::default().player
        },
        ..PlayOptions::default()
    };
    let report = play(&options).unwrap();
    assert_eq!(verdicts(&report), [(ViewerOutcome::Admitted, "finished"); 5], "{report:#?}");
    for ((status, refused, changes), viewer) in rows.into_iter().zip(&report.viewers) {
        assert!(viewer.url.ends_with(&status.to_string()));
        assert_eq!((viewer.refused_seeks, viewer.refused_speeds), (refused, refused), "{status}");
        assert_eq!((viewer.seeks_ms.len(), viewer.stalls), (changes, 0), "{status}");
        assert!(viewer.pieces > u64::from(FRAMES_AFTER) / 2, "{viewer:?}");
    }
    assert_eq!((report.totals.refused_seeks, report.totals.refused_speeds), (4, 4));
}

const DESCRIPTION: &str = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";

/// Frames that follow the last answer.
const FRAMES_AFTER: u32 = 8;
