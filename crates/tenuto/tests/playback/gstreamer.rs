//! GStreamer plays every title from HLS, from progressive MP4 and from an export, and what it
//! decodes is, byte for byte, what FFmpeg decodes from the source.

use crate::files::ADMITS_ALL;
use crate::films::{self, FILMS, Film, INSTANTS, OnceEach, PICTURES};
use crate::program::TestDir;
use std::process::{Command, Output, Stdio};
use std::sync::Once;

#[test]
fn gstreamer_plays_what_ffmpeg_reads_in_the_source() {
    let dir = films::stored();
    let server = dir.serve(ADMITS_ALL);
    for film in FILMS {
        let title = film.title;
        let export = dir.export(title);
        let wanted = pictures_of_source(film, &film.path(&dir));
        for address in [
            server.url(&format!("/t/{title}/master.m3u8")),
            server.url(&format!("/t/{title}.mp4")),
            format!("file://{export}"),
        ] {
            let (pictures, sound) = play(&dir, &address);
            assert_eq!(pictures.len(), wanted.len(), "{address}: bytes of decoded pictures");
            // The JPEG decoder is another than FFmpeg's, and may round otherwise.
            if film.layout != JPEG {
                assert!(pictures == wanted, "{address}: the pictures differ from the source's");
            }
            let instants = sound.len() / 2;
            assert!(
                (INSTANTS - CUT..INSTANTS + PADDING).contains(&instants),
                "{address}: {instants} instants of sound",
            );
        }
    }
}

/// Plays to the end without a warning; decoded pictures and sound as raw bytes.
pub(crate) fn play(dir: &TestDir, address: &str) -> (Vec<u8>, Vec<u8>) {
    play_by(dir, "playbin", address)
}

/// As [`play`], by another of GStreamer's players.
pub(crate) fn play_by(dir: &TestDir, player: &str, address: &str) -> (Vec<u8>, Vec<u8>) {
    let (pictures, sound) = (dir.at("pictures.raw"), dir.at("sound.raw"));
    let mut output = launch(player, address, &pictures, &sound);
    // Where the machine does much else, its UDP sources sometimes wait for one another, or for an
    // end that was sent. What it decodes is checked in any case.
    if output.status.code() == Some(KILLED) {
        output = launch(player, address, &pictures, &sound);
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| {
            ["GstMessageWarning", "ERROR", "is not mapped"].iter().any(|it| line.contains(it))
        })
        .collect();
    assert!(output.status.success(), "GStreamer does not play {address}:\n{said}");
    assert!(complaints.is_empty(), "GStreamer on {address}:\n{}", complaints.join("\n"));
    assert!(said.contains("eos"), "GStreamer did not reach the end of {address}");
    let read = |path| std::fs::read(path).expect("GStreamer wrote it");
    (read(&pictures), read(&sound))
}

/// Runs a player, at most a minute, with empty files for its output.
fn launch(player: &str, address: &str, pictures: &str, sound: &str) -> Output {
    // The first of GStreamer's programs on a machine lists all plugins, and some complain of
    // themselves on that occasion.
    static LISTED: Once = Once::new();
    LISTED.call_once(|| {
        let list =
            Command::new("gst-inspect-1.0").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(list.is_ok_and(|it| it.success()), "gst-inspect-1.0 runs");
    });
    for path in [pictures, sound] {
        std::fs::write(path, "").expect("a file in the test's folder");
    }
    Command::new("timeout")
        .args(["60", "gst-launch-1.0", "-m", player])
        .arg(format!("uri={address}"))
        .arg(format!("video-sink=filesink location={pictures}"))
        .arg(format!(
            "audio-sink=audioconvert ! audio/x-raw,format=S16LE,channels=1 ! filesink location={sound}"
        ))
        // Its log also names tags that it does not know.
        .env("GST_DEBUG", "default:2")
        .output()
        .expect("gst-launch-1.0 runs (apt-get install gstreamer1.0-tools)")
}

/// The exit code of `timeout` when it has ended the program.
const KILLED: i32 = 124;

/// The source's pictures, decoded by FFmpeg, in the layout that GStreamer gives them.
pub(crate) fn pictures_of_source(film: &Film, source: &str) -> Vec<u8> {
    static FOUND: OnceEach<Vec<u8>> = OnceEach::new();
    if film.layout.is_empty() {
        return Vec::new();
    }
    FOUND.get(film, || {
        let layout = if film.layout == JPEG { "yuvj420p" } else { film.layout };
        let output = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-i", source, "-fps_mode", "passthrough"])
            .args(["-f", "rawvideo", "-pix_fmt", layout, "-"])
            .output()
            .expect("ffmpeg runs (apt-get install ffmpeg)");
        assert_eq!(output.stdout.len() % PICTURES, 0, "{source} has {PICTURES} pictures");
        assert!(!output.stdout.is_empty(), "{source} has pictures");
        output.stdout
    })
}

const JPEG: &str = "jpeg";

/// GStreamer leaves out AAC's last packet where an edit list ends within it, in the source, too.
const CUT: usize = 1024;

/// What encoders add at the ends, which not every container lets a player cut off: at most three
/// packets.
const PADDING: usize = 3 * 1536;
