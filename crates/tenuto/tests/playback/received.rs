//! What the client library and `tenuto play` receive from a server, frame by frame: times and
//! bytes as FFmpeg's demuxer reads them from the source.

use crate::files::ADMITS_ALL;
use crate::program::TestDir;
use player::{PlaybackState, PlayerOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use tenuto_client::{ClientError, Ldu, OpenTitle, Received, RtspTransport, TitleOptions, View};

/// Three seconds, a key frame in each, with B-frames, and sound.
const FILM: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=3 -f lavfi -i sine=440:d=3:r=48000 \
    -c:v libx264 -preset ultrafast -bf 2 -g 25 -sc_threshold 0 -pix_fmt yuv420p -c:a aac";

/// Play-out starts at once, and everything may be fetched before it is due.
fn eager() -> TitleOptions {
    let player = PlayerOptions { start: Duration::ZERO, ..PlayerOptions::default() };
    TitleOptions { player, ..TitleOptions::default() }
}

#[test]
fn a_program_receives_the_ldus_of_a_title_with_their_times() {
    let dir = TestDir::with_store_of(64);
    let source = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let server = dir.serve(ADMITS_ALL);
    for path in ["/t/film/master.m3u8", "/t/film/manifest.mpd"] {
        let mut title = OpenTitle::open(&server.url(path), eager()).expect("admitted");
        assert_eq!((title.tracks(), title.duration().as_secs()), (2, 3), "{path}");
        let ldus = received(&mut title, usize::MAX);
        for (track, stream) in ["v:0", "a:0"].into_iter().enumerate() {
            let own = ldus.iter().filter(|ldu| ldu.track == track);
            let got: Vec<_> = own.map(described).collect();
            assert_eq!(got, packets(&source, stream), "{path}: {stream}");
        }
        assert!(ldus.iter().all(|ldu| ldu.due.is_none_or(|due| ldu.arrived < due)));
        assert_eq!(title.report().stalls.count, 0);
    }
}

#[test]
fn a_title_is_paused_sought_sped_up_and_stopped() {
    let dir = TestDir::with_store_of(64);
    let source = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let server = dir.serve(ADMITS_ALL);
    let mut title = OpenTitle::open(&server.url("/t/film/master.m3u8"), eager()).expect("admitted");
    title.pause();
    let all = packets(&source, "v:0");
    // A pause stops the clock; the buffer is filled all the same.
    let ldus = received(&mut title, all.len());
    assert_eq!(ldus.iter().filter(|ldu| ldu.track == 0).count(), all.len());
    let stopped = title.position();
    // Sound may arrive after the last picture.
    while matches!(title.receive(Duration::from_secs(1)), Ok(Received::Ldu(_))) {}
    assert_eq!(title.receive(Duration::from_millis(100)), Ok(Received::Nothing));
    assert_eq!(title.position(), stopped);
    title.seek(Duration::from_secs(2));
    assert!(title.position() >= Duration::from_secs(2));
    title.set_view(View { speed: Some(2.0), ..View::default() }).expect("admitted again");
    assert_eq!(title.duration(), Duration::from_millis(1500));
    assert!(title.position() < Duration::from_millis(1500), "it is opened from its start");
    title.stop();
    while title.receive(Duration::ZERO).expect("no error") != Received::End {}
    let nobody = OpenTitle::open(&server.url("/t/nobody/master.m3u8"), eager()).unwrap_err();
    assert!(matches!(nobody, ClientError::Request { .. }), "{nobody}");
}

/// The LDUs of a transport stream and of RTP are those of fragmented MP4, with the same times.
#[test]
fn a_program_receives_the_same_ldus_over_every_protocol() {
    let dir = TestDir::with_store_of(64);
    let source = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.5:8554");
    let server = dir.serve(&format!("{ADMITS_ALL} --rtsp {listen}"));
    let open = |url: &str, options| OpenTitle::open(url, options).expect("admitted");
    let mut title = open(&server.url("/t/film/master.m3u8"), eager());
    let wanted = tracks_of(&received(&mut title, usize::MAX));
    let film = format!("rtsp://{listen}/t/film");
    let whole = View::default();
    let from_1_s = View { from: Some(Duration::from_secs(1)), ..whole };
    let rows = [
        (server.url("/t/film/master-ts.m3u8"), RtspTransport::Tcp, whole, true),
        (format!("{film}/ts"), RtspTransport::Tcp, whole, true),
        (film.clone(), RtspTransport::Tcp, whole, false),
        (film.clone(), RtspTransport::Udp, whole, false),
        (film, RtspTransport::Tcp, from_1_s, false),
    ];
    std::thread::scope(|scope| {
        for (url, rtsp, view, is_transport) in rows {
            let wanted = &wanted;
            scope.spawn(move || {
                let mut title = open(&url, TitleOptions { rtsp, view, ..eager() });
                let got = tracks_of(&received(&mut title, usize::MAX));
                let name = format!("{url} {rtsp:?} {view:?}");
                if is_transport {
                    assert_eq!(got[0].len(), wanted[0].len(), "{name}");
                    for (got, wanted) in got[0].iter().zip(&wanted[0]) {
                        assert!((got.0 - wanted.0).abs() <= TICK, "{name}: at {} µs", got.0);
                        assert_eq!(got.1, wanted.1, "{name}: at {} µs", got.0);
                        let units = with_start_codes(&wanted.2);
                        assert!(got.2.ends_with(&units), "{name}: at {} µs", got.0);
                    }
                    let sound =
                        |track: &[Shown]| track.iter().flat_map(|ldu| ldu.2.clone()).collect();
                    let (got, wanted): (Vec<u8>, Vec<u8>) = (sound(&got[1]), sound(&wanted[1]));
                    assert_eq!(without_adts(&got), wanted, "{name}");
                    return;
                }
                for (got, wanted) in got.iter().zip(wanted) {
                    // A part begins with the key frame, and with the sound, at its start.
                    let from = wanted.len() - got.len();
                    let second = wanted[from + 1].0;
                    for (number, (got, wanted)) in got.iter().zip(&wanted[from..]).enumerate() {
                        // What is before the start, such as the first packet of AAC, is at it.
                        let apart = got.0 - (wanted.0 - second);
                        let is_same = apart.abs() <= TICK || number == 0 && apart > 0;
                        assert!(is_same, "{name}: {} is {apart} µs late", got.0);
                        let at = got.0;
                        assert!((got.1, &got.2) == (wanted.1, &wanted.2), "{name}: at {at} µs");
                    }
                }
            });
        }
    });
}

/// A title is controlled over RTSP as over HTTP, and its LDUs have their times in the title.
#[test]
fn a_title_is_paused_and_sought_over_rtsp() {
    let dir = TestDir::with_store_of(64);
    let source = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.6:8554");
    let _server = dir.serve(&format!("{ADMITS_ALL} --rtsp {listen}"));
    let url = format!("rtsp://{listen}/t/film");
    let mut title = OpenTitle::open(&url, eager()).expect("admitted");
    assert_eq!((title.tracks(), title.duration().as_secs()), (2, 3));
    let first = received(&mut title, 1).pop().expect("a picture");
    assert_eq!((first.track, first.time, first.sync), (0, Duration::ZERO, true));
    assert!(first.decode.is_none() && first.due.is_some());
    title.pause();
    assert_eq!(title.state(), PlaybackState::Paused);
    let stopped = title.position();
    title.resume();
    title.seek(Duration::from_secs(2));
    let sought = loop {
        let ldu = received(&mut title, 1).pop().expect("a picture");
        if ldu.time >= Duration::from_secs(2) {
            break ldu;
        }
    };
    assert_eq!((sought.time, sought.sync), (Duration::from_secs(2), true));
    assert!(title.position() >= Duration::from_secs(2) && stopped < Duration::from_secs(2));
    // Behind the end there is nothing: the server refuses, and the film goes on to its end.
    title.seek(Duration::from_secs(900));
    let rest = tracks_of(&received(&mut title, usize::MAX));
    assert!(rest[0].len() > 10, "{} pictures", rest[0].len());
    assert_eq!(title.state(), PlaybackState::Finished);
}

/// Time in microseconds from the second LDU of the track, whether decoding can begin there, and the
/// bytes.
type Shown = (i64, bool, Vec<u8>);

/// Microseconds of a tick of 90 kHz, and what is rounded.
const TICK: i64 = 15;

/// The LDUs of pictures and sound.
fn tracks_of(ldus: &[Ldu]) -> [Vec<Shown>; 2] {
    [0, 1].map(|track| {
        let own: Vec<_> = ldus.iter().filter(|ldu| ldu.track == track).collect();
        let micros = |ldu: &Ldu| i64::try_from(ldu.time.as_micros()).unwrap();
        let second = own.get(1).map_or(0, |ldu| micros(ldu));
        own.iter().map(|ldu| (micros(ldu) - second, ldu.sync, ldu.bytes.clone())).collect()
    })
}

/// NAL units with start codes in place of their lengths.
fn with_start_codes(mut ldu: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((length, rest)) = ldu.split_first_chunk::<4>() {
        let (unit, next) = rest.split_at(u32::from_be_bytes(*length) as usize);
        out.extend([&[0, 0, 0, 1], unit].concat());
        ldu = next;
    }
    out
}

/// AAC without the headers of ADTS (ISO/IEC 13818-7, 6.2), which have seven bytes each.
fn without_adts(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [0xff, _, _, a, b, c, _, ..] = *bytes {
        let length = usize::from(a & 3) << 11 | usize::from(b) << 3 | usize::from(c >> 5);
        let (frame, next) = bytes.split_at(length);
        out.extend_from_slice(&frame[7..]);
        bytes = next;
    }
    assert!(bytes.is_empty(), "not ADTS");
    out
}

#[test]
fn viewers_of_rtsp_receive_every_frame() {
    let dir = TestDir::with_store_of(64);
    let source = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.2:8554");
    let _server = dir.serve(&format!("{ADMITS_ALL} --rtsp {listen}"));
    let address = format!("rtsp://{listen}/t/film");
    let frames = packets(&source, "v:0").len() as u64;
    // (options, frames that each of two viewers receives)
    let rows: [(&str, u64); 4] = [
        ("--rtsp-transport tcp", frames),
        ("--rtsp-transport udp", frames),
        ("--from 1s --to 2s", 25),
        ("--rtsp-transport udp --speed 2", frames),
    ];
    std::thread::scope(|scope| {
        for (options, frames) in rows {
            let (dir, address) = (&dir, &address);
            scope.spawn(move || {
                let mut args = vec!["play", address, "--viewers", "2", "--json"];
                args.extend(options.split_whitespace());
                let report: Value = serde_json::from_str(&dir.tenuto(&args)).expect("JSON");
                for viewer in report["viewers"].as_array().expect("viewers") {
                    assert_eq!(viewer["stage"], "finished", "{options}: {viewer:#}");
                    let received = viewer["ldus"]["received"].as_u64().expect("a number");
                    // B-frames that belong to the end of a part come with it.
                    assert!((frames..frames + 3).contains(&received), "{options}: {viewer:#}");
                    assert_eq!(viewer["rtp"]["lost"], 0, "{options}: {viewer:#}");
                }
                assert_eq!(report["totals"]["finished"], 2, "{options}");
            });
        }
    });
    dir.fails(&format!("play rtsp://{listen}/t/nobody"), 1, "not found (404)");
    dir.fails(&format!("play {address} --save x.mp4"), 2, "over RTSP");
    dir.fails(&format!("play {address} --skip 1"), 1, "RTSP has no skip");
}

/// The next LDUs until the end, or until so many of the first track have arrived.
fn received(title: &mut OpenTitle, most: usize) -> Vec<Ldu> {
    let mut ldus = Vec::new();
    let mut pictures = 0;
    while pictures < most {
        match title.receive(Duration::from_secs(20)).expect("no error") {
            Received::Ldu(ldu) => {
                pictures += usize::from(ldu.track == 0);
                ldus.push(ldu);
            }
            Received::End => break,
            Received::Nothing => panic!("nothing for 20 s, after {} LDUs", ldus.len()),
        }
    }
    ldus
}

/// Decode time and presentation time in milliseconds from the first decode time, whether decoding
/// can begin there, and the Adler-32 checksum of the bytes.
type Described = (i64, i64, bool, String);

fn described(ldu: &Ldu) -> Described {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap();
    let decode = ms(ldu.decode.expect("fragments have decode times"));
    (decode, ms(ldu.time), ldu.sync, format!("{:08x}", adler32(&ldu.bytes)))
}

/// RFC 1950, 8.2.
fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1, 0);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    b << 16 | a
}

/// The packets of a stream of a file, as FFmpeg's demuxer has them.
fn packets(file: &str, stream: &str) -> Vec<Described> {
    let entries = "packet=pts_time,dts_time,flags,data_hash";
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", stream, "-show_data_hash", "adler32"])
        .args(["-show_entries", entries, "-of", "compact=p=0", file])
        .output()
        .expect("ffprobe runs");
    // Side data breaks the line of its packet.
    let text = String::from_utf8(output.stdout).expect("text").replace("\n|", "|");
    let mut packets: Vec<Described> = Vec::new();
    let mut first = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let fields: BTreeMap<&str, &str> =
            line.split('|').filter_map(|field| field.split_once('=')).collect();
        let micros = |name| {
            let seconds: f64 = fields[name].parse().expect("a time");
            // The first decode times of a file may be negative.
            units::rounded(seconds * 1e6 + 1e12).cast_signed()
        };
        let first = *first.get_or_insert(micros("dts_time"));
        let ms = |name| (micros(name) - first).div_euclid(1000);
        let hash = fields["data_hash"].trim_start_matches("adler32:").to_owned();
        packets.push((ms("dts_time"), ms("pts_time"), fields["flags"].starts_with('K'), hash));
    }
    packets
}
