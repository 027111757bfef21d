//! FFmpeg, GStreamer and mpv play titles over RTSP, and what they decode is what is in the source.
//!
//! RTSP is paced: each play takes as long as its film, so several are played at once.

use crate::desktop::{checksums, checksums_of_source};
use crate::files::ADMITS_ALL;
use crate::films::Verdict::Refuses;
use crate::films::{self, FILMS, Film, film};
use crate::gstreamer;
use crate::program::TestDir;
use crate::transport::assert_same_frames;
use std::process::Command;

/// A title of each payload format, with those below.
const TITLES: &[&str] = &[
    "h264-aac",
    "h264-mp3",
    "h264-ac3",
    "h264-opus",
    "h264-pcm",
    "hevc-aac",
    "vp9-opus",
    "mpeg2-ac3",
    "mpeg4-mp3",
    "aac",
    "mp3",
];

/// Titles for RTSP alone.
const MORE: &[Film] = &[
    film("mpeg1-mp2", "mpg", "-c:v mpeg1video -bf 2 -c:a mp2", "yuv420p", Refuses, Refuses),
    film("s24", "mov", "-vn -c:a pcm_s24le", "", Refuses, Refuses),
    film("alaw", "mov", "-vn -ar 8000 -c:a pcm_alaw", "", Refuses, Refuses),
];

/// Titles that are also played over UDP: pictures in fragments, and sound alone.
const OVER_UDP: &[&str] = &["h264-aac", "hevc-aac", "mp3"];

/// A title that is also played through a tunnel.
const OVER_HTTP: &str = "h264-aac";

/// Titles that GStreamer plays, too, over TCP or UDP. Over TCP it drops pictures of MPEG-2.
const IN_GSTREAMER: &[(&str, &str)] = &[("h264-aac", "rtspt"), ("mpeg2-ac3", "rtsp")];

/// Titles that are also played as transport streams.
const IN_TRANSPORT: &[&str] = &["h264-aac", "hevc-aac", "mpeg2-ac3"];

#[test]
fn players_decode_over_rtsp_what_is_in_the_source() {
    let dir = films::stored();
    MORE.iter().for_each(|film| film.take_in(&dir));
    let films: Vec<(&Film, String)> = FILMS
        .iter()
        .filter(|film| TITLES.contains(&film.title))
        .chain(MORE)
        .map(|film| (film, film.path(&dir)))
        .collect();
    assert_eq!(films.len(), TITLES.len() + MORE.len());
    // All of 127.0.0.0/8 is this machine: an address of its own for each run of the tests.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.1:8554");
    let _server = dir.serve(&format!("{ADMITS_ALL} --rtsp {listen}"));
    let (dir, listen) = (&dir, &listen);
    std::thread::scope(|scope| {
        for (number, (film, source)) in films.iter().enumerate() {
            let address = format!("rtsp://{listen}/t/{}", film.title);
            scope.spawn(move || ffmpeg_plays(dir, number, film, source, &address));
        }
        let of_gstreamer = films
            .iter()
            .filter(|(film, _)| IN_GSTREAMER.iter().any(|(title, _)| *title == film.title));
        scope.spawn(move || {
            for (film, source) in of_gstreamer {
                let scheme = IN_GSTREAMER.iter().find(|(title, _)| *title == film.title);
                let scheme = scheme.expect("it is one of them").1;
                gstreamer_plays(
                    dir,
                    film,
                    source,
                    &format!("{scheme}://{listen}/t/{}", film.title),
                );
            }
        });
        let (film, source) = &films[0];
        let address = format!("rtsp://{listen}/t/{}", film.title);
        scope.spawn(move || mpv_plays(dir, film, source, &address));
        for (film, source) in films.iter().filter(|(film, _)| IN_TRANSPORT.contains(&film.title)) {
            let address = format!("rtsp://{listen}/t/{}/ts", film.title);
            scope.spawn(move || assert_same_frames(film.title, source, &address));
        }
    });
}

fn ffmpeg_plays(dir: &TestDir, number: usize, film: &Film, source: &str, address: &str) {
    let wanted = decoded(dir, number, film, &["-i", source]);
    let mut ways = vec!["tcp"];
    ways.extend(OVER_UDP.contains(&film.title).then_some("udp"));
    ways.extend((film.title == OVER_HTTP).then_some("http"));
    for way in ways {
        let got = decoded(dir, number, film, &["-rtsp_transport", way, "-i", address]);
        assert_eq!(got, wanted, "FFmpeg on {address} over {way}");
    }
}

fn gstreamer_plays(dir: &TestDir, film: &Film, source: &str, address: &str) {
    let (pictures, sound) = gstreamer::play(dir, address);
    let wanted = gstreamer::pictures_of_source(film, source);
    assert!(pictures == wanted, "GStreamer on {address}: {} bytes of pictures", pictures.len());
    assert!(!sound.is_empty(), "GStreamer on {address} has sound");
}

fn mpv_plays(dir: &TestDir, film: &Film, source: &str, address: &str) {
    let log = dir.at("mpv.log");
    let output = Command::new("timeout")
        .args(["60", "mpv", "--no-config", "--no-terminal", "--hwdec=no", "--framedrop=no"])
        .args(["--vo=null", "--ao=null", "--untimed", "--vf=lavfi=[showinfo]"])
        .args(["--rtsp-transport=tcp", &format!("--log-file={log}"), address])
        .output()
        .expect("timeout runs");
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(
        output.status.success(),
        "mpv (apt-get install mpv) does not play {address}: {output:?}\n{said}"
    );
    assert_eq!(checksums(&said), checksums_of_source(film, source), "mpv on {address}: pictures");
}

/// The MD5 of each decoded picture, and of all sound as it is stored.
fn decoded(dir: &TestDir, number: usize, film: &Film, input: &[&str]) -> (Vec<String>, String) {
    let files = ["pictures", "sound"].map(|what| dir.at(&format!("{number}.{what}")));
    let mut command = Command::new("timeout");
    command.args(["60", "ffmpeg", "-nostdin", "-y", "-v", "error"]).args(input);
    if !film.layout.is_empty() {
        command.args(["-map", "0:v", "-fps_mode", "passthrough", "-f", "framemd5", &files[0]]);
    }
    // Over RTP, numbers of PCM have the other order of bytes.
    let codec = match film.title {
        "h264-pcm" => "pcm_s16le",
        "s24" => "pcm_s24le",
        _ => "copy",
    };
    command.args(["-map", "0:a", "-c:a", codec, "-f", "md5", &files[1]]);
    let output = command.output().expect("timeout runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ffmpeg (apt-get install ffmpeg) on {input:?}:\n{said}");
    let read = |path: &String| std::fs::read_to_string(path).unwrap_or_default();
    let pictures = read(&files[0]);
    let lines = pictures.lines().filter(|line| !line.starts_with('#'));
    let sums = lines.filter_map(|line| line.rsplit(',').next()).map(|sum| sum.trim().to_owned());
    (sums.collect(), read(&files[1]))
}
