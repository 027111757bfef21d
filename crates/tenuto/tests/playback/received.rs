//! What the client library and `tenuto play` receive from a server, frame by frame: times and
//! bytes as FFmpeg's demuxer reads them from the source.

use crate::files::ADMITS_ALL;
use crate::program::TestDir;
use player::PlayerOptions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use tenuto_client::{ClientError, Ldu, OpenTitle, Received, TitleOptions, View};

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
    let decode = i64::try_from(ldu.decode.as_millis()).unwrap();
    (decode, decode + ldu.shift / 1_000_000, ldu.sync, format!("{:08x}", adler32(&ldu.bytes)))
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
